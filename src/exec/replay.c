/* replay.c - a pass's transfers by themselves: how long has the disk for them, where it waits for nothing?
 *
 * The same requests in the order of the plan, as many under way as in a run, and nothing computed or checked. They go
 * where the plan has them go, and come over one another: what the run held is lost.
 */
#include "base/clock.h"
#include "exec/exec_run.h"

static gs_status take_some(gs_exec *e)
{
    gs_io_completion done[32];
    uint32_t n;

    GS_TRY(gs_exec__reap(e, done, 32, &n));
    for (uint32_t i = 0; i < n; i++) {
        if (done[i].status != GS_OK) {
            const gs_io_request r = gs_exec__request(e, done[i].tag);
            return gs_io_explain(e->files.io, &r, &done[i]);
        }
    }
    return GS_OK;
}

static gs_status hand_over(gs_exec *e, uint32_t task)
{
    uint32_t part = 0;
    gs_status st;

    while ((st = gs_exec__submit(e, task, &part)) == GS_EAGAIN)
        if ((st = take_some(e)) != GS_OK)
            return st;
    return st;
}

gs_status gs_exec_replay(gs_exec *e, uint32_t pass, const volatile int *stop, double *seconds)
{
    const gs_plan_pass *const p = &e->plan->pass[pass];
    gs_status st = GS_OK;

    gs_exec__forget_ahead(e);
    const double begin = gs_now();
    for (uint32_t i = p->first_task; i < p->first_task + p->tasks && st == GS_OK; i++) {
        if (stop != NULL && *stop)
            st = gs_fail(GS_EINTERRUPTED, "interrupted while transfers were timed");
        else if (gs_task_driver(&e->plan->task[i]) == GS_DRIVER_IO)
            st = hand_over(e, i);
    }
    while (st == GS_OK && gs_io_outstanding(e->files.io) > 0)
        st = take_some(e);
    const double end = gs_now();
    gs_exec__forget_ahead(e); /* after a failure: memory that the kernel may still write to is not given back */
    if (st == GS_OK)
        *seconds = end - begin;
    return st;
}
