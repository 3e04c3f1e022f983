/* generate.h - one graph to generate: what is asked for, and the
 * functions of a counter that its kind consists of. Nothing here has state
 * that grows with the graph, and everything is the same for any thread count. */
#ifndef GS_PARTITION_GENERATE_H
#define GS_PARTITION_GENERATE_H

#include <stdint.h>

#include "gnnstream_store.h" /* gs_generate_options */
#include "partition/integers.h"

typedef struct gs_gen {
    const gs_generate_options *opt;
    uint64_t n, edges;
    uint32_t classes, width;
    uint32_t key[2];
    gs_permute ids;    /* sbm: place in the planted order -> id; rmat: id bits */
    gs_permute splits; /* id -> rank; low ranks are the training vertices */
    uint64_t communities;
    float *mean; /* [classes][width] of the features; rmat: NULL */
} gs_gen;

/* Which number a draw is for: the top byte of the fourth counter word. */
enum gs_gen_use { GS_GEN_EDGE = 1u << 24, GS_GEN_LABEL = 2u << 24, GS_GEN_NOISE = 3u << 24, GS_GEN_MEAN = 4u << 24 };

/* Writes the pairs of `count` items from item `first`: an item is an edge of
 * rmat, an edge and its reverse of sbm. */
void gs_gen__rmat_edges(const gs_gen *g, int64_t *pairs, uint64_t first, uint64_t count);

#endif /* GS_PARTITION_GENERATE_H */
