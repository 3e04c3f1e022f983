/* ahead.c - the first reads of a pass's next run, made while this one ends (schedule/emit_ahead.c says which).
 *
 * They are handed over when all reads of this run are, may arrive at any time, also between the two runs, and are the
 * next one's in all that is counted. A run of another pass in between throws them away.
 */
#include <string.h>

#include "base/clock.h"
#include "exec/exec_internal.h"

static const gs_ahead *list_of(const gs_exec *e) { return e->plan->ahead + e->plan->pass[e->ahead.pass].first_ahead; }

/* Reads that were handed over as a whole. */
static uint32_t handed_over(const gs_exec *e) { return e->ahead.begun - (e->ahead.part > 0); }

bool gs_exec__is_ahead(const gs_exec *e, uint32_t task)
{
    return e->ahead.begun > 0 && e->plan->task[task].kind == GS_TASK_READ &&
           task <= list_of(e)[e->ahead.begun - 1].task;
}

/* This run's own use of the same memory is over when what the read waits for is done. */
static bool may_begin(const gs_exec *e, const gs_ahead *a)
{
    for (uint32_t i = 0; i < a->deps; i++)
        if (!gs_exec__is_done(e, e->plan->dep[a->first_dep + i]))
            return false;
    return true;
}

gs_status gs_exec__feed_ahead(gs_exec *e)
{
    if (!e->args->again || e->several != NULL || e->next[LANE_READ] < e->end[LANE_READ])
        return GS_OK;
    for (uint32_t k = handed_over(e); k < e->plan->pass[e->ahead.pass].aheads; k++) {
        const gs_ahead *const a = &list_of(e)[k];
        if (e->ahead.part == 0 && !may_begin(e, a))
            return GS_OK;
        e->ahead.begun = k + 1;
        e->done[a->task] = 0;
        const gs_status st = gs_exec__submit(e, a->task, &e->ahead.part);
        if (st != GS_OK) {
            e->ahead.begun -= e->ahead.part == 0;
            return st == GS_EAGAIN ? GS_OK : st;
        }
    }
    return GS_OK;
}

void gs_exec__forget_ahead(gs_exec *e)
{
    gs_io_completion done[32];
    while (e->io != NULL && gs_io_outstanding(e->io) > 0)
        gs_io_reap(e->io, done, 32, true);
    memset(&e->ahead, 0, sizeof(e->ahead));
}

void gs_exec__enter_pass(gs_exec *e, uint32_t pass)
{
    const gs_plan_pass *const p = &e->plan->pass[pass];

    if (e->ahead.pass != pass || e->ahead.begun == 0)
        gs_exec__forget_ahead(e);
    for (uint32_t i = p->first_task; i < p->first_task + p->tasks; i++)
        if (!gs_exec__is_ahead(e, i))
            e->done[i] = 0;
    /* what came before the run is there when it begins */
    for (uint32_t k = 0; k < e->ahead.begun && e->span != NULL; k++)
        e->span[list_of(e)[k].task][0] = e->span[list_of(e)[k].task][1] = gs_now();
    e->next[LANE_READ] += handed_over(e);
    e->next_run = e->ahead.part;
    e->stats = e->ahead.stats;
    memset(&e->ahead, 0, sizeof(e->ahead));
    e->ahead.pass = pass;
}
