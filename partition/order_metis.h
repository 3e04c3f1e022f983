/* order_metis.h - intervals by METIS, for graphs that fit its memory. */
#ifndef GS_PARTITION_ORDER_METIS_H
#define GS_PARTITION_ORDER_METIS_H

#include <metis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "partition/blocks.h"
#include "partition/order.h"
#include "partition/job.h"
#include "partition/lp.h"

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

typedef struct gs_metis_call {
    uint32_t parts;
    uint64_t seed;
    real_t *share; /* [parts] of the weight that each is to have; NULL: equal ones */
    const char *if_short, *if_failed; /* what to do where it has too little memory, or gives up */
} gs_metis_call;

/* METIS's part of each vertex. Of a graph of many components a smaller one is cut, whose lists take the place of the
 * graph's: *bundled says so. GS_ENOMEM, GS_EUNSUPPORTED. */
gs_status gs_part__metis_cut(uint32_t *part, bool *bundled, gs_metis_graph *g, const gs_metis_call *call);

/* Interval of every vertex by METIS; `part` is [N]. */
gs_status gs_part__metis(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);
/* The same of clusters with weights; `part` is [g->vertices]. Of the edges about `most` stay, the heaviest of each
 * cluster. A meeting: all ranks get what rank 0 has cut. */
gs_status gs_part__metis_clusters(uint32_t *part, const gs_lp_graph *g, const gs_part_grid *grid, gs_part_job *job,
                                  uint64_t most);
/* "" or why METIS cannot be used. */
void gs_part__metis_fits(char *why, size_t cap, const gs_part_job *job, const gs_part_blocks *b,
                         const gs_part_grid *grid);

#endif /* GS_PARTITION_ORDER_METIS_H */
