/* several.c - devices whose copies are tasks: each lane of theirs is a thread, the thread that called drives io.
 *
 * A lane takes its tasks in list order and waits for what a task needs. Whoever ends a task wakes the lanes that wait
 * for it, so nothing polls. The threads live as long as the run and sleep between passes.
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

/* ---- waiting and waking ---- */

void gs_exec__several_notify(gs_exec *e, uint32_t task)
{
    struct gs_exec_several *const s = e->several;

    pthread_mutex_lock(&s->lock);
    for (uint32_t k = 0; k < s->threads; k++)
        if (s->thread[k].missing == task)
            pthread_cond_signal(&s->thread[k].wake);
    for (uint32_t k = 0; k < GS_ARRAY_LEN(s->driver_missing); k++)
        if (s->driver_missing[k] == task)
            pthread_cond_signal(&s->driver);
    pthread_mutex_unlock(&s->lock);
}

/* The first failure ends the pass on every lane. */
static void fail(struct gs_exec_several *s, gs_status st)
{
    pthread_mutex_lock(&s->lock);
    if (s->failed == GS_OK) {
        s->failed = st;
        snprintf(s->why, sizeof(s->why), "%s", gs_last_error());
    }
    for (uint32_t k = 0; k < s->threads; k++)
        pthread_cond_signal(&s->thread[k].wake);
    pthread_cond_signal(&s->driver);
    pthread_mutex_unlock(&s->lock);
}

/* False where the pass has failed. */
static bool wait_for_deps(gs_exec_thread *t, uint32_t task)
{
    struct gs_exec_several *const s = t->of;
    const double begin = gs_now();

    pthread_mutex_lock(&s->lock);
    while (s->failed == GS_OK && (t->missing = gs_lanes_missing_dep(&t->lane->e->lanes, task)) != GS_NONE)
        pthread_cond_wait(&t->wake, &s->lock);
    t->missing = GS_NONE;
    const bool fine = s->failed == GS_OK;
    pthread_mutex_unlock(&s->lock);
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
        fail(t->of, st);
}

static void *lane_thread(void *arg)
{
    gs_exec_thread *const t = arg;
    struct gs_exec_several *const s = t->of;

    if (s->node != NULL)
        (void)gs_tree_bind_thread(s->tree, s->node[t->lane->device]);
    pthread_mutex_lock(&s->lock);
    for (uint64_t seen = 0;;) {
        while (!s->quit && s->passes == seen)
            pthread_cond_wait(&t->wake, &s->lock);
        if (s->quit)
            break;
        seen = s->passes;
        pthread_mutex_unlock(&s->lock);
        run_lane(t);
        pthread_mutex_lock(&s->lock);
        if (--s->running == 0)
            pthread_cond_signal(&s->driver);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- a pass ---- */

/* Nothing is under way: until a transfer may start, or all lanes have ended. False then. */
static bool wait_for_lanes(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;
    bool more = true;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        const bool may = gs_exec__may_transfer(e, s->driver_missing);
        more = s->running > 0 && s->failed == GS_OK;
        if (may || !more)
            break;
        pthread_cond_wait(&s->driver, &s->lock);
    }
    memset(s->driver_missing, 0xff, sizeof(s->driver_missing));
    pthread_mutex_unlock(&s->lock);
    return more;
}

static void start_pass(struct gs_exec_several *s)
{
    pthread_mutex_lock(&s->lock);
    s->failed = GS_OK;
    s->passes++;
    s->running = s->threads;
    for (uint32_t k = 0; k < s->threads; k++)
        pthread_cond_signal(&s->thread[k].wake);
    pthread_mutex_unlock(&s->lock);
}

gs_status gs_exec__several_run(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;
    gs_status st = GS_OK;

    start_pass(s);
    for (bool more = true; more && st == GS_OK;)
        if ((st = gs_exec__pump(e, gs_io_outstanding(e->files.io) > 0)) == GS_OK && gs_io_outstanding(e->files.io) == 0)
            more = wait_for_lanes(e);
    if (st != GS_OK)
        fail(s, st);
    pthread_mutex_lock(&s->lock);
    while (s->running > 0)
        pthread_cond_wait(&s->driver, &s->lock);
    pthread_mutex_unlock(&s->lock);
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
    gs_device *device[GS_PLAN_DEVICES];

    if (s == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    e->several = s;
    s->topology = *c->topology;
    s->tree = c->tree;
    s->node = c->node;
    memset(s->driver_missing, 0xff, sizeof(s->driver_missing));
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->driver, NULL);
    if ((s->thread = gs_calloc(e->lanes.lanes - GS_LANE_DEVICES, sizeof(*s->thread))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    for (; s->threads < e->lanes.lanes - GS_LANE_DEVICES; s->threads++) {
        gs_exec_thread *const t = &s->thread[s->threads];
        *t = (gs_exec_thread){.of = s, .lane = &e->lane[s->threads], .missing = GS_NONE};
        pthread_cond_init(&t->wake, NULL);
    }
    for (uint32_t d = 0; d < e->devices; d++)
        device[d] = e->on[d].device;
    const gs_status st = gs_device_join(device, e->devices);
    return st == GS_OK ? start_threads(s) : st;
}

void gs_exec__several_close(gs_exec *e)
{
    struct gs_exec_several *const s = e->several;

    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    for (uint32_t k = 0; k < s->threads; k++)
        pthread_cond_signal(&s->thread[k].wake);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t k = 0; k < s->threads; k++) {
        if (s->thread[k].started)
            pthread_join(s->thread[k].thread, NULL);
        pthread_cond_destroy(&s->thread[k].wake);
    }
    pthread_cond_destroy(&s->driver);
    pthread_mutex_destroy(&s->lock);
    gs_free(s->thread);
    gs_free(s);
    e->several = NULL;
}
