/* bound.h - a batch is bound to the plan, and comes to the device. */
#ifndef GS_EXEC_BOUND_H
#define GS_EXEC_BOUND_H

#include "exec/exec_run.h"

/* Where a device's part of that is, from `memory` on. */
void gs_exec__lay_spread(gs_exec *e, const gs_exec_config *c, uint8_t *memory);
/* Bytes of it. */
uint64_t gs_exec__spread_bytes(const gs_exec_config *c);

/* Behind the launches of a pass, which are done: results of the run come to the host from a device with memory
 * of its own. Waits. */
gs_status gs_exec__take_results(gs_exec *e);
/* Edges of the bound graph where the device has them. */
void gs_exec__brought_edges(const gs_exec *e, const gs_exec_device *x, gs_edges *edges);
/* Factors of the losses of a vertex task's rows, likewise; NULL: 1. */
const float *gs_exec__loss_factor(const gs_exec *e, const gs_exec_device *x, const gs_task *t);

/* A plan of many rows runs on a graph of fewer, which is in memory: each task is cut to the rows that are there
 * (plan/bind.h).
 */

/* A run that is opened to be bound has a plan of one interval that neither reads nor writes. */
gs_status gs_exec__check_bound(const gs_exec *e);
/* Before the stage's first tile: zeroes the rest of the rows that the stage stores, as far as others read them. */
gs_status gs_exec__zero_behind(gs_exec *e, gs_exec_device *x, const gs_task *t);
/* Copies named rows of a vertex task's tile to the registers that load them. */
void gs_exec__load_named(const gs_exec *e, const gs_exec_device *x, const gs_task *t);
/* The array's named rows; NULL: they are where the plan has them. */
static inline const gs_exec_named *gs_exec__named(const gs_exec *e, uint32_t array)
{
    return e->graph != NULL && e->graph->named != NULL && e->graph->named->array == array ? e->graph->named : NULL;
}
/* Those that the sums of the task's stage go over; NULL: no graph is bound. */
static inline const gs_edges *gs_exec__bound_edges(const gs_exec *e, const gs_task *t)
{
    return e->graph != NULL ? &e->graph->edges[t->stage] : NULL;
}

#endif /* GS_EXEC_BOUND_H */
