/* progress.c - how far a pass has come, for any thread that asks. Relaxed atomics: what is counted orders nothing. */
#include "exec/progress.h"

#include "exec/exec_run.h"

void gs_exec__enter_progress(gs_exec *e, uint32_t pass)
{
    const gs_ahead *const list = e->plan->ahead + e->plan->pass[pass].first_ahead;

    __atomic_store_n(&e->progress.tasks, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&e->progress.bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&e->progress.pass, pass, __ATOMIC_RELAXED);
    for (uint32_t k = 0; k < e->lanes.ahead; k++)
        if (e->lanes.state[list[k].task] == GS_FETCHED)
            gs_exec__count(e, list[k].task);
}

void gs_exec__count(gs_exec *e, uint32_t task)
{
    const gs_task *const t = &e->plan->task[task];

    __atomic_fetch_add(&e->progress.tasks, 1, __ATOMIC_RELAXED);
    if (gs_task_is_transfer(t))
        __atomic_fetch_add(&e->progress.bytes, gs_task_bytes(e->plan, t), __ATOMIC_RELAXED);
}

void gs_exec_get_progress(const gs_exec *e, gs_exec_progress *out)
{
    out->pass = __atomic_load_n(&e->progress.pass, __ATOMIC_RELAXED);
    out->tasks = __atomic_load_n(&e->progress.tasks, __ATOMIC_RELAXED);
    out->bytes = __atomic_load_n(&e->progress.bytes, __ATOMIC_RELAXED);
}
