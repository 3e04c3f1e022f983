/* lp_visit.h - every vertex with its list, in parallel, and a tally of the labels around one. */
#ifndef GS_PARTITION_LP_VISIT_H
#define GS_PARTITION_LP_VISIT_H

#include <stdint.h>

#include "partition/lp_graph.h"

/* How often each label occurs around one vertex. Of one thread. */
typedef struct gs_lp_tally {
    uint32_t *label, *slot; /* [cap] label at a slot (UINT32_MAX: none), slots in use */
    uint64_t *weight;       /* [cap] */
    uint32_t mask, used;    /* slots in reach: mask + 1, twice the list's length at least */
    uint64_t cap;
} gs_lp_tally;
gs_status gs_lp__tally_grow(gs_lp_tally *t, uint32_t most);
void gs_lp__tally_free(gs_lp_tally *t);
/* Empties it, for at most `most` additions. GS_ENOMEM. */
static inline gs_status gs_lp__tally_start(gs_lp_tally *t, uint32_t most)
{
    for (uint32_t i = 0; i < t->used; i++)
        t->label[t->slot[i]] = UINT32_MAX;
    t->used = 0;
    if (2ull * most + 2 > t->cap) {
        const gs_status st = gs_lp__tally_grow(t, most);
        if (st != GS_OK)
            return st;
    }
    t->mask = 15;
    while (t->mask < 2ull * most)
        t->mask = t->mask << 1 | 1;
    return GS_OK;
}
static inline void gs_lp__tally_add(gs_lp_tally *t, uint32_t label, uint32_t weight)
{
    uint32_t at = label * 0x9e3779b1u >> 7 & t->mask;
    while (t->label[at] != label && t->label[at] != UINT32_MAX)
        at = (at + 1) & t->mask;
    if (t->label[at] == UINT32_MAX) {
        t->label[at] = label;
        t->weight[at] = 0;
        t->slot[t->used++] = at;
    }
    t->weight[at] += weight;
}

/* A vertex with its list, for `visit`. Return GS_OK to go on. */
typedef struct gs_lp_vertex {
    const gs_lp_block *block;
    uint32_t id, degree;
    const uint32_t *list;
    uint32_t thread;
    gs_lp_tally *tally; /* of the thread, for the visitor's use */
} gs_lp_vertex;
typedef gs_status gs_lp_visit(void *context, const gs_lp_vertex *v);
/* All vertices of blocks first, first + step, ...: blocks in parallel, vertices of a block in
 * ascending order on one thread. `done` of progress is the caller's affair. */
gs_status gs_lp__each(const gs_lp_graph *g, gs_part_job *job, uint32_t first, uint32_t step, gs_lp_visit *visit,
                      void *context);

#endif /* GS_PARTITION_LP_VISIT_H */
