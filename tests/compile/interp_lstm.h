/* interp_lstm.h - an LSTM over the edges of one vertex, in float64, straight from the formulas of
 * Hochreiter and Schmidhuber with forget gates (gates in torch's order i, f, g, o), and its derivative. */
#ifndef GS_TESTS_COMPILE_INTERP_LSTM_H
#define GS_TESTS_COMPILE_INTERP_LSTM_H

#include <stdint.h>

/* state[h] after `steps` rows x[k] of [4h], from 0; w[4h, h]. */
void lstm_forward(double *state, const double *const *x, uint32_t steps, const double *w, uint32_t h);

/* Adds to dx[k][4h] and, unless it is NULL, to dw[4h, h], for the gradient dstate[h]. */
void lstm_backward(double *const *dx, double *dw, const double *dstate, const double *const *x, uint32_t steps,
                   const double *w, uint32_t h);

#endif
