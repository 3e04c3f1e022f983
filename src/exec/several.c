/* several.c - devices whose copies are tasks: each lane of theirs is a thread, the thread that called drives io.
 *
 * A lane takes its tasks in list order and waits for what a task needs (waiters.h). The threads live as long as the run
 * and sleep between passes.
 */
#include "exec/several.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"

/* As much as threads have where nobody says otherwise: GPUs' libraries, which lanes call, do not say what they need.
 * What a thread touches of it is part of the libraries' allowance. */
#define STACK_BYTES (8 * GS_MIB)

/* ---- waiting ---- */

static void lock(gs_exec *e) { pthread_mutex_lock(&e->waiters.lock); }
static void unlock(gs_exec *e) { pthread_mutex_unlock(&e->waiters.lock); }

static gs_exec_waiter *driver_of(gs_exec *e) { return &e->waiters.waiter[e->several->threads]; }

static void sleep_on(gs_exec *e, gs_exec_waiter *w) { pthread_cond_wait(&w->wake, &e->waiters.lock); }

/* The first failure ends the pass on every lane. */
static void fail(gs_exec *e, gs_status st)
{
    struct gs_exec_several *const s = e->several;

    lock(e);
    if (s->failed == GS_OK) {
        s->failed = st;
        snprintf(s->why, sizeof(s->why), "%s", gs_last_error());
    }
    gs_exec__wake_all(&e->waiters);
    unlock(e);
}

/* False where the pass has failed. */
static bool wait_for_deps(gs_exec_thread *t, uint32_t task)
{
    gs_exec *const e = t->e;
    const double begin = gs_now();

    lock(e);
    while (e->several->failed == GS_OK &&
           (t->waiter->missing[0] = gs_lanes_missing_dep(&e->lanes, task)) != GS_NONE)
        sleep_on(e, t->waiter);
    gs_exec__waits_no_more(t->waiter);
    const bool fine = e->several->failed == GS_OK;
    unlock(e);
    t->lane->wait_seconds += gs_now() - begin;
    return fine;
}

/* ---- a lane ---- */

/* Before `task`: what is under way may be what others wait for, so no lane sleeps on others before it has seen its
 * own done. `failed`: the pass has. */
static gs_status get_ready(gs_exec_thread *t, uint32_t task, bool *failed)
{
    gs_exec_lane *const l = t->lane;
    gs_status st = l->flights > 0 ? gs_exec__retire(l, false) : GS_OK;

    while (st == GS_OK && l->flights > 0 && gs_lanes_missing_dep(&l->e->lanes, task) != GS_NONE)
        st = gs_exec__retire(l, true);
    *failed = st == GS_OK && !wait_for_deps(t, task);
    return st;
}

static void run_lane(gs_exec_thread *t)
{
    gs_exec_lane *const l = t->lane;
    gs_exec *const e = l->e;
    uint32_t task;
    gs_status st = GS_OK;

    gs_exec__enter_lane(l);
    while (st == GS_OK && (task = gs_lanes_next(&e->lanes, l->lane)) != GS_NONE) {
        bool failed = false;
        if (e->args->stop != NULL && *e->args->stop)
            st = gs_fail(GS_EINTERRUPTED, "interrupted");
        else
            st = get_ready(t, task, &failed);
        if (failed)
            return;
        if (st == GS_OK)
            st = gs_exec__run_next(l);
    }
    while (st == GS_OK && l->flights > 0)
        st = gs_exec__retire(l, true);
    if (st != GS_OK)
        fail(e, st);
}

static void *lane_thread(void *arg)
{
    gs_exec_thread *const t = arg;
    gs_exec *const e = t->e;
    struct gs_exec_several *const s = e->several;

    if (s->node != NULL)
        (void)gs_tree_bind_thread(s->tree, s->node[t->lane->device]);
    lock(e);
    for (uint64_t seen = 0;;) {
        while (!s->quit && s->passes == seen)
            sleep_on(e, t->waiter);
        if (s->quit)
            break;
        seen = s->passes;
        unlock(e);
        run_lane(t);
        lock(e);
        if (--s->running == 0)
            pthread_cond_signal(&driver_of(e)->wake);
    }
    unlock(e);
    return NULL;
}

/* ---- a pass ---- */

/* Under the lock. False where the run is given up. */
static bool driver_sleeps(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;
    const double begin = gs_now(), look = e->patience.look;
    gs_status st = GS_OK;

    if (look == 0) {
        sleep_on(e, driver_of(e));
        return true;
    }
    const struct timespec until = gs_seconds_from_now(look);
    (void)pthread_cond_timedwait(&driver_of(e)->wake, &e->waiters.lock, &until);
    if ((st = gs_exec__watch_lanes(e, gs_now() - begin)) != GS_OK && s->failed == GS_OK) {
        s->failed = st;
        snprintf(s->why, sizeof(s->why), "%s", gs_last_error());
    }
    return st == GS_OK;
}

/* Nothing is under way: until a transfer may start, or all lanes have ended. False then. */
static bool wait_for_lanes(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;
    gs_exec_waiter *const driver = driver_of(e);
    bool more = true;

    lock(e);
    for (;;) {
        const bool may = gs_exec__may_transfer(e, driver->missing);
        more = s->running > 0 && s->failed == GS_OK;
        if (may || !more || !driver_sleeps(e))
            break;
    }
    gs_exec__waits_no_more(driver);
    unlock(e);
    return more;
}

static void start_pass(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;

    lock(e);
    s->failed = GS_OK;
    s->passes++;
    s->running = s->threads;
    gs_exec__wake_all(&e->waiters);
    unlock(e);
}

gs_status gs_exec__several_run(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;
    gs_status st = GS_OK;

    start_pass(e);
    for (bool more = true; more && st == GS_OK;)
        if ((st = gs_exec__pump(e, gs_io_outstanding(e->files.io) > 0)) == GS_OK && gs_io_outstanding(e->files.io) == 0)
            more = wait_for_lanes(e);
    if (st != GS_OK)
        fail(e, st);
    lock(e);
    while (s->running > 0 && driver_sleeps(e))
        ;
    unlock(e);
    return s->failed == GS_OK ? GS_OK : gs_fail(s->failed, "%s", s->why);
}

/* ---- opening and closing ---- */

static gs_status start_threads(struct gs_exec_several *s)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);

    if (error == 0)
        error = pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (uint32_t k = 0; k < s->threads && error == 0; k++) {
        gs_exec_thread *const t = &s->thread[k];
        error = pthread_create(&t->thread, &attr, lane_thread, t);
        t->started = error == 0;
    }
    (void)pthread_attr_destroy(&attr);
    return error == 0 ? GS_OK : gs_fail_errno(error, "%u threads for the devices could not be had", s->threads);
}

gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c)
{
    struct gs_exec_several *const s = gs_calloc(1, sizeof(*s));
    const uint32_t threads = e->lanes.lanes - GS_LANE_DEVICES;
    gs_device *device[GS_PLAN_DEVICES];
    gs_status st;

    if (s == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    e->several = s;
    s->tree = c->tree;
    s->node = c->node;
    gs_exec__take_wires(&e->wires, c->topology);
    if ((s->thread = gs_calloc(threads, sizeof(*s->thread))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    if ((st = gs_exec__take_waiters(&e->waiters, threads + 1)) != GS_OK)
        return st;
    for (uint32_t k = 0; k < threads; k++)
        if (e->lane[k].kind != GS_LANE_LOAD || e->plan->loads) {
            s->thread[s->threads] = (gs_exec_thread){.e = e, .lane = &e->lane[k],
                                                     .waiter = &e->waiters.waiter[s->threads]};
            s->threads++;
        }
    for (uint32_t d = 0; d < e->devices; d++)
        device[d] = e->on[d].device;
    st = gs_device_join(device, e->devices, e->plan->ring);
    return st == GS_OK ? start_threads(s) : st;
}

void gs_exec__several_close(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;

    if (s == NULL)
        return;
    if (s->threads > 0) {
        lock(e);
        s->quit = true;
        gs_exec__wake_all(&e->waiters);
        unlock(e);
    }
    for (uint32_t k = 0; k < s->threads; k++)
        if (s->thread[k].started)
            pthread_join(s->thread[k].thread, NULL);
    gs_exec__give_waiters(&e->waiters);
    gs_exec__give_wires(&e->wires);
    gs_free(s->thread);
    gs_free(s);
    e->several = NULL;
}
