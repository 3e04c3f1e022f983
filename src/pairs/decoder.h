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

/* The end that is given. The other one is asked for: the tail of a head, or the head of a tail. */
typedef enum gs_pair_end { GS_PAIR_HEAD, GS_PAIR_TAIL } gs_pair_end;

/* In the order of the words of .decoder. */
typedef enum gs_decoder_kind {
    GS_DECODER_DOT,
    GS_DECODER_DISTMULT,
    GS_DECODER_COMPLEX,
    GS_DECODER_TRANSE,
    GS_DECODERS
} gs_decoder_kind;

typedef struct gs_decoder {
    bool of_types; /* it has a learned row for each type of edge */
    bool halves;   /* rows are of an even width */
    bool distance; /* the similarity is minus the Euclidean distance; else a dot product */
    /* query[width] of the row of an end, and of the type's, which is NULL without `of_types`. */
    void (*query)(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which);
    /* Adds to the gradients of the end's row and of the type's, of that of its query. */
    void (*back)(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                 uint32_t width, gs_pair_end which);
} gs_decoder;

const gs_decoder *gs_decoder_of(gs_decoder_kind kind);

#endif /* GS_PAIRS_DECODER_H */
