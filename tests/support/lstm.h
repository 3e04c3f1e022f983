/* lstm.h - an LSTM over a sequence of rows in float64, straight from the formulas (Hochreiter and
 * Schmidhuber with forget gates; gates in torch's order i, f, g, o), and its derivative. */
#ifndef GS_TESTS_SUPPORT_LSTM_H
#define GS_TESTS_SUPPORT_LSTM_H

#include <stdint.h>

/* One sequence: x[k] of [4h] goes into the gates of step k; w[4h, h]. */
typedef struct lstm_sequence {
    const double *const *x;
    uint32_t steps, h;
    const double *w;
} lstm_sequence;

/* state[h] and cell[h] before the sequence become those after it. */
void lstm_forward(const lstm_sequence *q, double *state, double *cell);

/* For the state and cell before the sequence: gradients d_state[h] and d_cell[h] after it become those before
 * it. Adds to dx[k][4h] and, unless it is NULL, to dw[4h, h]. */
void lstm_backward(const lstm_sequence *q, const double *state, const double *cell, double *d_state, double *d_cell,
                   double *const *dx, double *dw);

#endif
