/* lane.c - lanes of tasks: one thread for all, or one for each. */
#include "exec/lane.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "exec/messages.h"

/* ---- a lane --------------------------------------------------------------- */

/* What a lane of a device does with its next task: launches or copies it, and notes when it is done. */

void (*gs_exec__beginning)(const gs_exec *e, uint32_t task);

/* Does the device know, by streams and events, what is to come behind what is begun here? Reads past the host it does
 * not. */
static bool keeps_order(const gs_exec_lane *l) { return l->defers && l->kind != GS_LANE_LOAD; }

gs_status gs_exec__take_lanes(gs_exec *e)
{
    const uint32_t lanes = e->lanes.lanes - GS_LANE_DEVICES;

    if ((e->lane = gs_arena_take(&e->arrays, lanes, sizeof(*e->lane))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' lanes");
    for (uint32_t k = 0; k < lanes; k++) {
        const bool messages = e->plan->ranks > 0 && k >= GS_DEVICE_LANES;
        const uint32_t device = messages ? 0 : k / GS_DEVICE_LANES;
        e->lane[k] = (gs_exec_lane){.e = e, .lane = GS_LANE_DEVICES + k, .device = device,
                                    .kind = messages ? k : k % GS_DEVICE_LANES,
                                    .defers = !messages && !gs_device_unified(e->on[device].device)};
        /* another GPU may put what it sends where this one's streams have no say */
        e->lanes.follows[GS_LANE_DEVICES + k] = keeps_order(&e->lane[k]) && e->lane[k].kind != GS_LANE_FORWARD;
    }
    return GS_OK;
}

/* A run of a pass begins, driven by this thread. */
static void enter(gs_exec_lane *l)
{
    l->owner = pthread_self();
    l->busy_seconds = l->wait_seconds = l->owes = 0;
    l->handed_over = 0;
    l->bytes = 0;
    l->last = l->e->stats.entered; /* a wire is free from then on, however late this thread is */
    l->flights = 0;
}

/* Is the oldest of what is under way done? */
static gs_status poll(gs_exec_lane *l, bool wait, bool *done)
{
    gs_device *const d = l->e->on[l->device].device;
    const uint64_t number = l->flight[0].number;
    if (l->kind == GS_LANE_LOAD)
        return gs_exec__poll_chunk(l, &l->e->plan->task[l->e->lanes.task[l->flight[0].at]], number, wait, done);
    return l->kind == GS_LANE_COMPUTE ? gs_device_poll(d, number, wait, done)
                                      : gs_device_poll_transfers(d, gs_exec__way_of(l->lane), number, wait, done);
}

/* When the device computed the oldest of them: of tasks that it was given at once each has the part of its edges. */
static void note_kernels(const gs_exec_lane *l)
{
    gs_exec *const e = l->e;
    const uint32_t *const task = &e->lanes.task[l->flight[0].at], count = l->flight[0].count;
    double span[2] = {0, 0}, edges = 0, done = 0;

    if (!gs_device_launch_span(e->on[l->device].device, l->flight[0].first, l->flight[0].number, span))
        span[0] = span[1] = 0;
    for (uint32_t i = 0; i < count && count > 1; i++)
        edges += (double)gs_exec__chunk_edges(e, &e->plan->task[task[i]]);
    for (uint32_t i = 0; i < count; i++) {
        const double part = count > 1 ? (double)gs_exec__chunk_edges(e, &e->plan->task[task[i]]) / edges : 1;
        e->kernels[task[i]][0] = span[0] + done * (span[1] - span[0]);
        done = i + 1 < count ? done + part : 1;
        e->kernels[task[i]][1] = span[0] + done * (span[1] - span[0]);
    }
}

/* Takes in what was under way and is done, oldest first; `wait`: at least the oldest. */
static gs_status retire(gs_exec_lane *l, bool wait)
{
    gs_exec *const e = l->e;
    const double begin = gs_now();
    gs_status st = GS_OK;
    bool done = true;

    assert(pthread_equal(l->owner, pthread_self()));
    while (l->flights > 0 && st == GS_OK) {
        st = poll(l, wait, &done);
        if (st != GS_OK || !done)
            break;
        const uint32_t *const task = &e->lanes.task[l->flight[0].at], count = l->flight[0].count;
        l->last = gs_now();
        for (uint32_t i = 0; i < count && e->span != NULL; i++)
            e->span[task[i]][1] = l->last;
        if (e->kernels != NULL && l->kind == GS_LANE_COMPUTE)
            note_kernels(l);
        l->flights--;
        memmove(&l->flight[0], &l->flight[1], l->flights * sizeof(l->flight[0]));
        for (uint32_t i = 0; i < count; i++)
            gs_exec__finish(e, task[i]);
        wait = false;
    }
    l->busy_seconds += gs_now() - begin;
    return st;
}

static gs_status note_flight(gs_exec_lane *l, gs_exec_flight flight)
{
    const uint32_t most = l->kind == GS_LANE_LOAD      ? GS_EXEC_LOADS
                          : l->kind == GS_LANE_COMPUTE ? GS_EXEC_FLIGHT
                                                       : GS_EXEC_COPIES;
    GS_TRY(l->flights == most ? retire(l, true) : GS_OK);
    l->flight[l->flights++] = flight;
    return GS_OK;
}

/* What the lane begins next comes, on the device, behind what the task waits for that is not over yet. */
static gs_status go_behind(const gs_exec_lane *l, const gs_task *t)
{
    const gs_exec *const e = l->e;

    for (uint32_t i = 0; i < t->deps; i++) {
        const uint32_t other = e->plan->dep[t->first_dep + i];
        const uint32_t lane = gs_task_lane(&e->plan->task[other]);
        if (lane != l->lane && !gs_lanes_is_done(&e->lanes, other))
            GS_TRY(gs_device_go_behind(e->on[l->device].device, gs_exec__way_of(l->lane), gs_exec__way_of(lane),
                                       e->transfers.runs_left[other]));
    }
    return GS_OK;
}

/* When a copy could begin: what it waits for has ended, and so has the one before it. */
static double ready_at(const gs_exec_lane *l, const gs_task *t)
{
    double ready = l->last;
    for (uint32_t i = 0; i < t->deps; i++)
        ready = GS_MAX(ready, l->e->span[l->e->plan->dep[t->first_dep + i]][1]);
    return ready;
}

/* Number of the lane's next tasks that are begun at once. A sequence's steps are launches by themselves. */
static uint32_t count_next(const gs_exec_lane *l)
{
    const gs_exec *const e = l->e;
    const gs_task *const t = &e->plan->task[gs_lanes_next(&e->lanes, l->lane)];
    if (t->kind != GS_TASK_EDGES || !l->defers || e->args->there != NULL ||
        gs_sum_is_sequence(&e->program->stage[t->stage].sum[0]))
        return 1;
    return gs_lanes_ready_together(&e->lanes, l->lane);
}

static gs_status launch(gs_exec_lane *l, const uint32_t *task, uint32_t count)
{
    gs_exec *const e = l->e;
    gs_exec_device *const x = &e->on[l->device];
    gs_status st;

    if (count == 1)
        return gs_exec__launch(e, x, &e->plan->task[task[0]]);
    st = gs_device_begin_group(x->device);
    for (uint32_t i = 0; i < count && st == GS_OK; i++)
        st = gs_exec__launch(e, x, &e->plan->task[task[i]]);
    const double begin = gs_now();
    st = gs_device_end_group(x->device, st);
    x->edge_seconds += gs_now() - begin;
    return st;
}

/* Begins the lane's next task, which is ready, and where the device has memory of its own those that may begin with it.
 * Such a device may still have them under way after that; else it is done. */
static gs_status run_next(gs_exec_lane *l)
{
    gs_exec *const e = l->e;
    gs_device *const d = e->on[l->device].device;
    const uint32_t at = e->lanes.lane[l->lane].next, count = count_next(l), *const task = &e->lanes.task[at];
    gs_exec_flight flight = {.at = at, .count = count};
    double span[2];
    gs_status st;

    assert(pthread_equal(l->owner, pthread_self()));
    for (uint32_t i = 0; i < count; i++) {
        gs_lanes_begin(&e->lanes, l->lane);
        if (gs_exec__beginning != NULL)
            gs_exec__beginning(e, task[i]);
    }
    if (e->lanes.follows[l->lane])
        GS_TRY(go_behind(l, &e->plan->task[task[0]])); /* all that the others wait for is over */
    if (l->kind == GS_LANE_COMPUTE) {
        flight.first = e->kernels != NULL ? gs_device_last_launch(d) + 1 : 0;
        const bool paced = gs_exec__is_paced(l);
        const double had = paced ? gs_thread_now() : 0; /* a call of the kernel */
        span[0] = gs_now();
        st = launch(l, task, count);
        span[1] = gs_now();
        if (paced)
            gs_exec__pace(l, span, gs_thread_now() - had);
        l->busy_seconds += span[1] - span[0];
        flight.number = gs_device_last_launch(d);
    } else if (l->kind == GS_LANE_LOAD) {
        span[0] = span[1] = gs_now();
        st = gs_exec__load_chunk(l, &e->plan->task[task[0]], &flight.number);
    } else {
        st = gs_exec__copy(l, &e->plan->task[task[0]], ready_at(l, &e->plan->task[task[0]]), span);
        if (st == GS_OK)
            st = gs_device_mark_transfers(d, gs_exec__way_of(l->lane), &flight.number);
    }
    for (uint32_t i = 0; i < count && e->span != NULL; i++)
        memcpy(e->span[task[i]], span, sizeof(span));
    if (st == GS_OK && l->defers && e->args->there == NULL) { /* else nobody waits, and the device keeps the order */
        for (uint32_t i = 0; i < count && keeps_order(l); i++)
            gs_exec__tell(e, task[i], flight.number);
        return note_flight(l, flight);
    }
    l->last = span[1];
    if (st == GS_OK)
        gs_exec__finish(e, task[0]);
    return st;
}

/* A pass's tasks of the lane, driven by this thread. `get_ready`: waits until the task may begin. */
static gs_status run_lane(gs_exec_lane *l, gs_status (*get_ready)(gs_exec_lane *l, uint32_t task))
{
    gs_exec *const e = l->e;
    uint32_t task;

    enter(l);
    while ((task = gs_lanes_next(&e->lanes, l->lane)) != GS_NONE) {
        if (e->args->stop != NULL && *e->args->stop)
            return gs_fail(GS_EINTERRUPTED, "interrupted");
        GS_TRY(get_ready(l, task));
        GS_TRY(run_next(l));
    }
    while (l->flights > 0)
        GS_TRY(retire(l, true));
    return GS_OK;
}

/* ---- one thread ----------------------------------------------------------- */

/* Where a device computes on host memory, and is the only one, or a graph is bound, the thread that feeds it also feeds
 * and reaps io: before each launch it hands over every write and read that may start, so that the disk has work while
 * the device computes; only when the next launch misses its bytes does it sleep on a completion, and that time is the
 * stall time.
 */

static gs_status pump_along(gs_exec *e)
{
    const double begin = gs_now(), checked = e->stats.check_seconds;
    const gs_status st = gs_exec__pump(e, false);
    e->stats.submit_seconds += gs_now() - begin - (e->stats.check_seconds - checked);
    return st;
}

static gs_status pump_until_ready(gs_exec_lane *l, uint32_t task)
{
    gs_exec *const e = l->e;
    gs_status st = pump_along(e);
    const double begin = gs_now();

    while (st == GS_OK && gs_lanes_missing_dep(&e->lanes, task) != GS_NONE)
        st = l->flights > 0 ? retire(l, true) : gs_exec__pump(e, true);
    l->wait_seconds += gs_now() - begin;
    return st;
}

gs_status gs_exec__run_alone(gs_exec *e) { return run_lane(&e->lane[0], pump_until_ready); }

/* ---- several threads ------------------------------------------------------ */

/* Devices whose copies are tasks: each lane of theirs is a thread, the thread that called drives io.
 *
 * A lane takes its tasks in list order and waits for what a task needs (waiters.c). The threads live as long as the run
 * and sleep between passes.
 */

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
    lock(e);
    gs_failure_keep(&e->several->failure, st);
    gs_exec__wake_all(&e->waiters);
    unlock(e);
}

/* Under the lock. Is it over, and was no device told before, which might have had others behind it? */
static bool saw_its_end(const gs_exec *e, uint32_t task)
{
    return gs_lanes_is_done(&e->lanes, task) && e->transfers.runs_left[task] == 0;
}

/* What is under way may be what others wait for, so no lane sleeps on others before it has seen its own done. Fails
 * where the pass has. */
static gs_status sleep_until_ready(gs_exec_lane *l, uint32_t task)
{
    gs_exec *const e = l->e;

    GS_TRY(retire(l, false));
    while (l->flights > 0 && gs_lanes_missing_dep(&e->lanes, task) != GS_NONE)
        GS_TRY(retire(l, true));
    const double begin = gs_now();
    uint32_t missing;
    bool saw_end = false;
    lock(e);
    while (e->several->failure.st == GS_OK && (missing = gs_lanes_missing_dep(&e->lanes, task)) != GS_NONE) {
        l->waiter->missing[0] = missing;
        sleep_on(e, l->waiter);
        saw_end = saw_end || saw_its_end(e, missing);
    }
    gs_exec__waits_no_more(l->waiter);
    l->handed_over += saw_end;
    const gs_status st = e->several->failure.st;
    unlock(e);
    l->wait_seconds += gs_now() - begin;
    return st;
}

/* Sleeps for so long at most, or, without seconds, until it is woken: where one of the tasks that it misses is done. */
static gs_status nap(gs_exec_lane *l, const uint32_t *missing, uint32_t count, double seconds)
{
    gs_exec *const e = l->e;
    const struct timespec until = gs_seconds_from_now(seconds);
    bool misses = false, done = false;

    lock(e);
    for (uint32_t k = 0; k < count; k++) {
        l->waiter->missing[k] = missing[k];
        misses = misses || missing[k] != GS_NONE;
        done = done || (missing[k] != GS_NONE && gs_lanes_is_done(&e->lanes, missing[k]));
    }
    if (e->several->failure.st == GS_OK && !done && seconds > 0)
        (void)pthread_cond_timedwait(&l->waiter->wake, &e->waiters.lock, &until);
    else if (e->several->failure.st == GS_OK && !done && misses)
        sleep_on(e, l->waiter);
    gs_exec__waits_no_more(l->waiter);
    const gs_status st = e->several->failure.st;
    unlock(e);
    return st;
}

/* ---- messages ---- */

#define NAP_LEAST 20e-6
#define NAP_MOST 1e-3

/* A pass's messages of one lane: many are under way, and they end in their order. Nobody but this thread has MPI go on
 * with them, so it looks again and again. */
static gs_status run_messages(gs_exec_lane *l)
{
    gs_exec_attended now = {.over = false};
    double seconds = NAP_LEAST;

    for (;;) {
        GS_TRY(gs_exec__attend_messages(l, &now));
        if (now.over)
            return GS_OK;
        seconds = now.some ? NAP_LEAST : GS_MIN(2 * seconds, NAP_MOST);
        if (now.some)
            continue;
        GS_TRY(nap(l, &now.missing, 1, now.under_way ? seconds : 0));
    }
}

/* ---- a rank's thread ---- */

/* Where a rank's device computes on host memory, the thread that computes copies, too, and sees to messages between
 * tasks and where it waits: what goes from thread to thread waits for a processor each time, on which other ranks
 * compute. Another thread looks after messages while a task takes long. */

#define ATTEND_EVERY 100e-6

static bool does_all(const gs_exec *e) { return e->plan->ranks > 0 && !e->defers; }

static gs_exec_lane *of_rank(gs_exec *e, uint32_t kind) { return &e->lane[kind]; }

/* *some: messages have begun or ended; *over: there are no more. */
static gs_status attend_both(gs_exec *e, bool *some, bool *over)
{
    gs_exec_attended out, in;

    GS_TRY(gs_exec__attend_messages(of_rank(e, GS_LANE_SEND - GS_LANE_DEVICES), &out));
    GS_TRY(gs_exec__attend_messages(of_rank(e, GS_LANE_RECEIVE - GS_LANE_DEVICES), &in));
    *some = out.some || in.some;
    *over = out.over && in.over;
    return GS_OK;
}

static gs_status help_with_messages(gs_exec_lane *l)
{
    bool some = false, over = false;

    for (;;) {
        GS_TRY(attend_both(l->e, &some, &over));
        if (over)
            return GS_OK;
        GS_TRY(nap(l, NULL, 0, NAP_MOST));
    }
}

#define OWN_LANES 3 /* in which the rank has tasks */

/* The lane of the next task, copies first, as others wait for them; NULL: none may begin, and of the *left lanes that
 * are not at their end these tasks are missing. */
static gs_exec_lane *next_of_rank(gs_exec *e, uint32_t missing[OWN_LANES], uint32_t *left)
{
    static const uint32_t kind[OWN_LANES] = {GS_LANE_DOWNLOAD, GS_LANE_UPLOAD, GS_LANE_COMPUTE};

    *left = 0;
    for (uint32_t k = 0; k < OWN_LANES; k++) {
        gs_exec_lane *const own = of_rank(e, kind[k]);
        const uint32_t task = gs_lanes_next(&e->lanes, own->lane);
        if (task == GS_NONE)
            continue;
        if ((missing[(*left)++] = gs_lanes_missing_dep(&e->lanes, task)) == GS_NONE)
            return own;
    }
    return NULL;
}

static gs_status run_rank(gs_exec_lane *l)
{
    gs_exec *const e = l->e;
    double looked = gs_now(), seconds = NAP_LEAST;
    bool some = false, over = false;
    uint32_t missing[OWN_LANES], left;

    for (uint32_t k = 0; k < GS_DEVICE_LANES; k++)
        enter(&e->lane[k]);
    for (;;) {
        gs_exec_lane *const next = next_of_rank(e, missing, &left);
        const double begin = gs_now();
        if (next != NULL) {
            if (e->args->stop != NULL && *e->args->stop)
                return gs_fail(GS_EINTERRUPTED, "interrupted");
            GS_TRY(run_next(next));
        }
        if (next == NULL || next->kind == GS_LANE_DOWNLOAD || begin > looked + ATTEND_EVERY) {
            GS_TRY(attend_both(e, &some, &over));
            looked = begin;
        }
        if (next == NULL && left == 0 && over)
            break;
        seconds = next != NULL || some ? NAP_LEAST : GS_MIN(2 * seconds, NAP_MOST);
        if (next == NULL && !some)
            GS_TRY(nap(l, missing, left, seconds));
        if (next == NULL && left > 0)
            l->wait_seconds += gs_now() - begin;
    }
    lock(e);
    pthread_cond_signal(&of_rank(e, GS_LANE_SEND - GS_LANE_DEVICES)->waiter->wake);
    unlock(e);
    return GS_OK;
}

static gs_status run_pass(gs_exec_lane *l)
{
    const bool all = does_all(l->e);

    if (l->messages != NULL)
        return all ? help_with_messages(l) : run_messages(l);
    return all ? run_rank(l) : run_lane(l, sleep_until_ready);
}

static void *lane_thread(void *arg)
{
    gs_exec_lane *const l = arg;
    gs_exec *const e = l->e;
    struct gs_exec_several *const s = e->several;

    if (s->node != NULL)
        (void)gs_tree_bind_thread(s->tree, s->node[l->device]);
    lock(e);
    for (uint64_t seen = 0;;) {
        while (!s->quit && s->passes == seen)
            sleep_on(e, l->waiter);
        if (s->quit)
            break;
        seen = s->passes;
        unlock(e);
        const gs_status st = run_pass(l);
        if (st != GS_OK)
            fail(e, st);
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

    if (look == 0) {
        sleep_on(e, driver_of(e));
        return true;
    }
    const struct timespec until = gs_seconds_from_now(look);
    (void)pthread_cond_timedwait(&driver_of(e)->wake, &e->waiters.lock, &until);
    const gs_status st = gs_exec__watch_lanes(e, gs_now() - begin);
    gs_failure_keep(&s->failure, st);
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
        more = s->running > 0 && s->failure.st == GS_OK;
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

    for (uint32_t k = GS_DEVICE_LANES; k < GS_PART_LANES - GS_LANE_DEVICES && e->plan->ranks > 0; k++) {
        enter(&e->lane[k]);
        gs_exec__enter_messages(&e->lane[k]);
    }
    lock(e);
    s->failure.st = GS_OK;
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
    return gs_failure_tell(&s->failure);
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
        error = pthread_create(&t->thread, &attr, lane_thread, t->lane);
        t->started = error == 0;
    }
    (void)pthread_attr_destroy(&attr);
    return error == 0 ? GS_OK : gs_fail_errno(error, "%u threads for the devices could not be had", s->threads);
}

gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c)
{
    const uint32_t threads = e->lanes.lanes - GS_LANE_DEVICES;
    gs_device *device[GS_PLAN_DEVICES];

    if (threads == 1) /* which is the driving one */
        return GS_OK;
    if (e->bound)
        return gs_fail(GS_EINVAL, "a graph in memory is bound to a device to which no task copies");
    struct gs_exec_several *const s = e->several = gs_calloc(1, sizeof(*s));
    GS_NEED(s != NULL, "out of memory: the devices' threads");
    s->tree = c->tree;
    s->node = c->node;
    gs_exec__take_wires(&e->wires, c->topology);
    s->thread = gs_calloc(threads, sizeof(*s->thread));
    if (e->span == NULL) /* by which copies know when they could begin */
        e->span = gs_arena_take(&e->arrays, e->plan->tasks + 1ull, sizeof(*e->span));
    if (s->thread == NULL || e->span == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' threads");
    GS_TRY(gs_exec__take_waiters(&e->waiters, threads + 1));
    for (uint32_t k = 0; k < threads; k++)
        if (does_all(e) ? k == GS_LANE_COMPUTE || k == GS_LANE_SEND - GS_LANE_DEVICES
                        : e->lane[k].kind != GS_LANE_LOAD || e->plan->loads) {
            e->lane[k].waiter = &e->waiters.waiter[s->threads];
            s->thread[s->threads++].lane = &e->lane[k];
        }
    for (uint32_t d = 0; d < e->devices; d++)
        device[d] = e->on[d].device;
    GS_TRY(gs_device_join(device, e->devices));
    return start_threads(s);
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
