/* decoder.h - how probable is an edge of a type between two vertices, by their rows?
 *
 * Every decoder is a *query* and a similarity: of one end, the type and which end it is comes a row, and the score of a
 * pair is how similar that is to the row of the other end. So the scores of a pair with many others are one product of
 * matrices, in training as in evaluations, and the gradient of a query is all that a decoder has besides.
 * Rows are `width` floats; complex numbers have their real parts in the first half. Pure functions; any thread.
 */
#ifndef GS_PAIRS_DECODER_H
#define GS_PAIRS_DECODER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "device/cpu/kernels.h" /* gs_cpu_similarity */

/* The end that is given. The other one is asked for: the tail of a head, or the head of a tail. */
typedef enum gs_pair_end { GS_PAIR_HEAD, GS_PAIR_TAIL } gs_pair_end;

/* In the order of the words of .decoder. */
typedef enum gs_decoder_kind {
    GS_DECODER_DOT,
    GS_DECODER_DISTMULT,
    GS_DECODER_COMPLEX,
    GS_DECODER_TRANSE,
    GS_DECODER_MLP,
    GS_DECODERS,                     /* that score pairs */
    GS_DECODER_PRODUCT = GS_DECODERS /* of labels alone (pair_step.h) */
} gs_decoder_kind;

typedef struct gs_decoder {
    bool of_types; /* it has a learned row for each type of edge */
    bool halves;   /* rows are of an even width */
    bool projects; /* rows of ends are products with lin1 before they are anything else */
    gs_cpu_similarity similarity;
    /* query[width] of the row of an end, and of the type's, which is NULL without `of_types`. */
    void (*query)(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which);
    /* Adds to the gradients of the end's row and of the type's, of that of its query. */
    void (*back)(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                 uint32_t width, gs_pair_end which);
} gs_decoder;

const gs_decoder *gs_decoder_of(gs_decoder_kind kind);

/* What a decoder has learned besides rows of vertices; or the gradients of that. NULL: it has none such. */
typedef struct gs_decoder_values {
    float *types;                     /* [types, width] */
    float *lin1, *lin1_bias;          /* [width, 2 * width], [width] */
    float *lin2, *lin2_bias;          /* [width], [1]; of labels [columns, width], [columns], and lin1 of a product
                                       * is [width, width] */
} gs_decoder_values;

/* -- what is lin1 of a row of an end, and what are its gradients?
 *
 * lin1 is a matrix for heads beside one for tails, so lin1([h, t]) is the sum of a product for either end: rows are
 * projected once, whatever they are paired with. The bias is of heads. Where rows are of whole pairs there is one
 * matrix, that of heads. One thread calls.
 */

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

#endif /* GS_PAIRS_DECODER_H */
