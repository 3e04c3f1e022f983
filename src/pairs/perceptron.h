/* perceptron.h - what is lin1 of a row of an end, and what are its gradients?
 *
 * lin1 is a matrix for heads beside one for tails, so lin1([h, t]) is the sum of a product for either end: rows are
 * projected once, whatever they are paired with. The bias is of heads. Where rows are of whole pairs there is one
 * matrix, that of heads. One thread calls.
 */
#ifndef GS_PAIRS_PERCEPTRON_H
#define GS_PAIRS_PERCEPTRON_H

#include "base/status.h"
#include "device/cpu/kernels.h"
#include "pairs/decoder.h"

typedef struct gs_perceptron {
    const gs_cpu_kernels *kernels;
    uint32_t width, threads, ends; /* ends: 2, or 1 of rows of pairs */
    float *matrix[2], *turned[2]; /* [gs_pair_end][width, width] of lin1, and transposed */
    float *gradient;              /* [width, width] */
    const float *bias;
} gs_perceptron;

/* GS_ENOMEM. Release with gs_perceptron_close() in any case. */
gs_status gs_perceptron_open(gs_perceptron *p, const gs_cpu_kernels *kernels, uint32_t width, uint32_t threads,
                             uint32_t ends);
void gs_perceptron_close(gs_perceptron *p);
uint64_t gs_perceptron_bytes(uint32_t width);
/* Takes lin1 as it is now. */
void gs_perceptron_take(gs_perceptron *p, const gs_decoder_values *values);
/* to[rows, width] = the rows as ends of this kind. */
void gs_perceptron_project(const gs_perceptron *p, float *to, const float *row, uint32_t rows, gs_pair_end end);
/* From the gradients of projected rows: adds those of the rows to d_row, and of lin1 to `d`. */
void gs_perceptron_back(gs_perceptron *p, float *d_row, const gs_decoder_values *d, const float *d_projected,
                        const float *row, uint32_t rows, gs_pair_end end);

#endif /* GS_PAIRS_PERCEPTRON_H */
