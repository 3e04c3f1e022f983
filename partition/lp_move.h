/* lp_move.h - rounds in which vertices take the label that most of their neighbours have. */
#ifndef GS_PARTITION_LP_MOVE_H
#define GS_PARTITION_LP_MOVE_H

#include <stdint.h>

#include "partition/grid.h"
#include "partition/lp_graph.h"

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

#endif /* GS_PARTITION_LP_MOVE_H */
