/* lp_graph.h - a simple undirected graph as neighbour lists in a file, read block by block.
 *
 * Memory: a few words a vertex; what grows with the edges is in a file without a name in the store's folder. */
#ifndef GS_PARTITION_LP_GRAPH_H
#define GS_PARTITION_LP_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/blocks.h"
#include "partition/job.h"

/* Consecutive vertices whose lists are read at once. */
typedef struct gs_lp_block {
    uint64_t offset; /* bytes, in the file */
    uint32_t first, vertices, words;
} gs_lp_block;

/* A simple undirected graph. In the file each vertex has a word that says how
 * many neighbours follow, then these, ascending; if weighted, a neighbour's
 * number is followed by the edge's weight. */
typedef struct gs_lp_graph {
    uint64_t vertices, neighbours; /* neighbours: of all lists */
    uint64_t edge_weight;          /* of all lists */
    bool weighted;
    uint32_t *weight; /* [vertices] owned; NULL: each is 1 */
    gs_lp_block *block; /* by first vertex */
    uint32_t blocks, block_cap;
    uint32_t most_words; /* of a block */
    uint64_t end;        /* of the file */
    int fd;
    char *path;
} gs_lp_graph;

static inline uint32_t gs_lp_weight(const gs_lp_graph *g, uint64_t v) { return g->weight != NULL ? g->weight[v] : 1; }

/* Calls `put` of gs_lp_sink for every neighbour of every list, in any order;
 * both ends list an edge. Called twice, once for counts. */
typedef struct gs_lp_sink gs_lp_sink;
typedef gs_status gs_lp_source(void *context, gs_lp_sink *sink);
/* `vertex` has `neighbour`; `writer` numbers the calling thread. Weights of equal pairs
 * add up in a weighted graph, else pairs count once. */
gs_status gs_lp__put(gs_lp_sink *sink, uint32_t writer, uint32_t vertex, uint32_t neighbour, uint32_t weight);
/* `vertices`, `weighted` and `weight` of `g` are set, the rest is 0. */
gs_status gs_lp__graph_make(gs_lp_graph *g, gs_part_job *job, gs_lp_source *source, void *context);
gs_status gs_lp__graph_of_blocks(gs_lp_graph *g, gs_part_job *job, const gs_part_blocks *b);
void gs_lp__graph_free(gs_lp_graph *g);
/* `words` has room for g->most_words. Any thread. */
gs_status gs_lp__read(const gs_lp_graph *g, uint32_t block, uint32_t *words);

#endif /* GS_PARTITION_LP_GRAPH_H */
