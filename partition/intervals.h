/* intervals.h - the interval of every vertex: by METIS, for graphs that fit its memory, and by label propagation, for
 * graphs of any size. */
#ifndef GS_PARTITION_INTERVALS_H
#define GS_PARTITION_INTERVALS_H

#include <metis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/store.h" /* GS_SHARDS_MOST */

/* -- a simple undirected graph as neighbour lists in a file, read block by block.
 *
 * Memory: a few words a vertex; what grows with the edges is in a file without a name in the store's folder.
 *
 * Ranks that make shards have the table of all blocks each, and a file with the lists of their own: consecutive
 * blocks, of about as many neighbours each. What is known of vertices they all have, so calls on a graph of theirs are
 * meetings. Blocks do not depend on how many ranks there are, and blocks are all that a result depends on: it is that
 * of one process that has as much memory. */

/* Consecutive vertices whose lists are read at once. */
typedef struct gs_lp_block {
    uint64_t offset; /* bytes, in the file of the rank that has it */
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
    uint32_t owned[GS_SHARDS_MOST + 1]; /* [ranks + 1] the first block of each rank; of one: 0, blocks */
    uint32_t most_words; /* of a block */
    uint64_t end;        /* of the file */
    int fd;
    char *path;
} gs_lp_graph;

/* The first vertex of a block, or of what is behind the last. */
static inline uint64_t gs_lp_first(const gs_lp_graph *g, uint32_t block)
{
    return block < g->blocks ? g->block[block].first : g->vertices;
}
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
/* Of a block that this rank has. `words` has room for g->most_words. Any thread. */
gs_status gs_lp__read(const gs_lp_graph *g, uint32_t block, uint32_t *words);

/* -- every vertex with its list, in parallel. */

/* A vertex with its list, for `visit`. Return GS_OK to go on. */
typedef struct gs_lp_vertex {
    const gs_lp_block *block;
    uint32_t id, degree;
    const uint32_t *list;
    uint32_t thread;
    struct gs_lp_tally *tally; /* of the thread, for the visitor's use */
} gs_lp_vertex;
typedef gs_status gs_lp_visit(void *context, const gs_lp_vertex *v);
/* All vertices of blocks first, first + step, ... that this rank has: blocks in parallel, vertices of a block in
 * ascending order on one thread. `done` of progress is the caller's affair. No meeting. */
gs_status gs_lp__each(const gs_lp_graph *g, gs_part_job *job, uint32_t first, uint32_t step, gs_lp_visit *visit,
                      void *context);

/* -- rounds in which vertices take the label that most of their neighbours have. */

/* Labels and how much of each may be. */
typedef struct gs_lp_labels {
    uint32_t *of;    /* [vertices] */
    uint32_t *size;  /* [count] weight of the vertices that have it */
    uint32_t count;
    uint64_t most;   /* weight that each may have ... */
    const gs_part_grid *grid; /* ... or, if not NULL, capacity times 1 + slack */
    double slack;
} gs_lp_labels;
uint64_t gs_lp__capacity(const gs_lp_labels *l, uint32_t label);

/* At most `rounds` rounds, fewer where hardly anything moves any more. */
gs_status gs_lp__propagate(gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job, uint32_t rounds);

/* -- a graph whose vertices are the labels of another. */

/* Renames labels to 0 .. count - 1 and makes the graph of them. */
gs_status gs_lp__contract(gs_lp_graph *out, gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job);

/* -- labels that are exactly full. */

/* Moves vertices until no label has more than its interval has rows, those
 * that lose least first. Every vertex weighs 1. */
gs_status gs_lp__make_exact(gs_lp_labels *l, const gs_lp_graph *g, gs_part_job *job);

/* Interval of every vertex; `part` is [N]. */
gs_status gs_part__lp(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);

/* -- a graph of very many components made fit for METIS.
 *
 * METIS stops coarsening where vertices without edges outnumber those with some, and its first bisection looks for each
 * of them through all: quadratic in the components. So small components leave the graph, and bundles of them, vertices
 * without edges, stand for them. */

/* A graph as METIS takes it; its arrays are the caller's. */
typedef struct gs_metis_graph {
    idx_t vertices;
    idx_t *start, *neighbour, *edge_weight; /* [vertices + 1], [start[vertices]]; edge_weight NULL: 1 */
    idx_t *weight; /* of vertices; NULL: 1 */
} gs_metis_graph;

typedef struct gs_metis_bundles {
    idx_t *of;     /* [vertices of the whole graph] vertex of the smaller one; NULL: the graph is as it was */
    idx_t *weight; /* of the smaller one's vertices */
    idx_t vertices;
} gs_metis_bundles;

/* Where `g` has many components, its arrays become those of the smaller graph, in place, but for g->weight, which
 * becomes b->weight. A component is small where it weighs at most a 32nd of one of `parts`. GS_ENOMEM. */
gs_status gs_part__metis_bundle(gs_metis_bundles *b, gs_metis_graph *g, uint32_t parts);
void gs_part__metis_bundles_free(gs_metis_bundles *b);

/* Interval of every vertex by METIS; `part` is [N]. */
gs_status gs_part__metis(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);
/* The same of clusters with weights; `part` is [g->vertices]. Of the edges about `most` stay, the heaviest of each
 * cluster. A meeting: all ranks get what rank 0 has cut. */
gs_status gs_part__metis_clusters(uint32_t *part, const gs_lp_graph *g, const gs_part_grid *grid, gs_part_job *job,
                                  uint64_t most);
/* "" or why METIS cannot be used. */
void gs_part__metis_fits(char *why, size_t cap, const gs_part_job *job, const gs_part_blocks *b,
                         const gs_part_grid *grid);

#endif /* GS_PARTITION_INTERVALS_H */
