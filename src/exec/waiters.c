/* waiters.c - whoever ends a task wakes the threads that wait for it, so nothing polls. */

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "exec/exec_run.h"
#include "exec/watch.h"

gs_status gs_exec__take_waiters(gs_exec_waiters *w, uint32_t count)
{
    GS_NEED((w->waiter = gs_calloc(count, sizeof(*w->waiter))) != NULL, "out of memory: the devices' threads");
    pthread_condattr_t monotonic;
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    for (; w->count < count; w->count++) {
        pthread_cond_init(&w->waiter[w->count].wake, &monotonic);
        gs_exec__waits_no_more(&w->waiter[w->count]);
    }
    pthread_condattr_destroy(&monotonic);
    return GS_OK;
}

void gs_exec__give_waiters(gs_exec_waiters *w)
{
    if (w->count > 0)
        pthread_mutex_destroy(&w->lock);
    for (uint32_t k = 0; k < w->count; k++)
        pthread_cond_destroy(&w->waiter[k].wake);
    gs_free(w->waiter);
    *w = (gs_exec_waiters){.count = 0};
}

void gs_exec__waits_no_more(gs_exec_waiter *w) { memset(w->missing, 0xff, sizeof(w->missing)); }

void gs_exec__wake_all(gs_exec_waiters *w)
{
    for (uint32_t k = 0; k < w->count; k++)
        pthread_cond_signal(&w->waiter[k].wake);
}

static bool waits_for(const gs_exec_waiter *w, uint32_t task)
{
    for (size_t i = 0; i < GS_ARRAY_LEN(w->missing); i++)
        if (w->missing[i] == task)
            return true;
    return false;
}

/* Those that wait for it. */
static void wake(gs_exec_waiters *w, uint32_t task)
{
    if (w->count == 0)
        return;
    pthread_mutex_lock(&w->lock);
    for (uint32_t k = 0; k < w->count; k++)
        if (waits_for(&w->waiter[k], task))
            pthread_cond_signal(&w->waiter[k].wake);
    pthread_mutex_unlock(&w->lock);
}

void gs_exec__tell(gs_exec *e, uint32_t task, uint64_t number)
{
    e->transfers.runs_left[task] = (uint32_t)number;
    gs_lanes_tell(&e->lanes, task);
    wake(&e->waiters, task);
}

void gs_exec__finish(gs_exec *e, uint32_t task)
{
    if (!gs_lanes_is_ahead(&e->lanes, task)) /* else the next run has it from its beginning */
        gs_exec__count(e, task);
    gs_lanes_finish(&e->lanes, task);
    wake(&e->waiters, task);
}
