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
    GS_DECODER_PRODUCT = GS_DECODERS /* of labels alone (label_step.h) */
} gs_decoder_kind;

typedef struct gs_decoder {
    bool of_types; /* it has a learned row for each type of edge */
    bool halves;   /* rows are of an even width */
    bool projects; /* rows of ends are products with lin1 before they are anything else (perceptron.h) */
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

#endif /* GS_PAIRS_DECODER_H */
