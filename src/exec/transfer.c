/* transfer.c - reads, writes and copies of the plan: handed over, waited for. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "exec/lane.h"
#include "exec/watch.h"

/* ---- copies --------------------------------------------------------------- */

/* Copies between the host and devices, no faster than their wires.
 *
 * GPUs have wires of their own: what a topology says of theirs is for the planner. On host memory
 * a wire is a clock: a copy takes its time on it from when it could begin, not from when a thread got round to it, so
 * that a busy machine does not slow a wire down. The thread copies, then sleeps until that time is over.
 */

void gs_exec__take_wires(gs_exec_wires *w, const gs_topology *topology)
{
    w->topology = *topology;
    pthread_mutex_init(&w->lock, NULL);
}

void gs_exec__give_wires(gs_exec_wires *w) { pthread_mutex_destroy(&w->lock); }

gs_device_way gs_exec__way_of(uint32_t lane)
{
    const uint32_t kind = (lane - GS_LANE_DEVICES) % GS_DEVICE_LANES;
    return kind == GS_LANE_COMPUTE   ? GS_DEVICE_LAUNCHES
           : kind == GS_LANE_UPLOAD  ? GS_DEVICE_FROM_HOST
           : kind == GS_LANE_FORWARD ? GS_DEVICE_FROM_PEER
                                     : GS_DEVICE_TO_HOST;
}

/* Whose memory the task copies from; NULL: the host's, or its own device's. */
static const gs_exec_device *peer_of(const gs_exec *e, const gs_task *t)
{
    return gs_task_driver(t) == GS_DRIVER_PEER ? &e->on[t->source.memory - GS_DEVICE_MEMORIES] : NULL;
}

gs_status gs_exec__wait_copied(gs_device *d, gs_device_way way)
{
    uint64_t number;
    bool done;
    const gs_status st = gs_device_mark_transfers(d, way, &number);
    return st == GS_OK ? gs_device_poll_transfers(d, way, number, true, &done) : st;
}

static gs_status copy_runs(gs_exec_lane *l, const gs_task *t, uint8_t *to, const uint8_t *from, uint64_t *bytes)
{
    const gs_exec *const e = l->e;
    gs_device *const d = e->on[t->device].device;
    const gs_exec_device *const from_peer = peer_of(e, t);
    gs_device *const peer = from_peer != NULL ? from_peer->device : NULL;
    const gs_device_way way = gs_exec__way_of(l->lane);

    *bytes = gs_task_moves_rows(t) ? gs_task_bytes(e->plan, t) : t->bytes;
    if (gs_task_moves_rows(t)) {
        const gs_rows_launch rows = {.to = to, .from = from, .bits = e->plan->row_bits + t->first_word,
                                     .rows = t->bytes / t->row_bytes, .row_bytes = t->row_bytes};
        return gs_device_send_rows(d, &rows);
    }
    if (t->runs == 0)
        return gs_device_transfer(d, way, peer, to, from, t->bytes);
    *bytes = 0;
    for (uint32_t r = 0; r < t->runs; r++) {
        const gs_block_run run = e->plan->run[t->first_run + r];
        const uint64_t at = run.first * GS_BLOCK_BYTES, n = GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - at);
        GS_TRY(gs_device_transfer(d, way, peer, to + at, from + at, n));
        *bytes += n;
    }
    return GS_OK;
}

static void sleep_until(double when)
{
    const struct timespec t = {.tv_sec = (time_t)when, .tv_nsec = (long)((when - (double)(time_t)when) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* From when to when the copy has the wire; false where that is not throttled. */
static bool reserve(gs_exec_wires *w, const gs_task *t, uint64_t bytes, double ready, double span[2])
{
    const double bps = gs_link_said_bps(&w->topology, gs_task_way(t));
    double *const wire = &w->busy[gs_link_wire(&w->topology, gs_task_way(t))];

    if (bps <= 0)
        return false;
    pthread_mutex_lock(&w->lock);
    span[0] = GS_MAX(*wire, ready);
    span[1] = *wire = span[0] + (double)bytes / bps;
    pthread_mutex_unlock(&w->lock);
    return true;
}

/* Others may have the processor meanwhile, and computations are short: what was waited too much is taken off the
 * next waits, and each task's span is what the device would have had, so that its share of the speed is what it
 * computed. Time in which others had the processor is no slower on a slow device: only what this thread had of it
 * counts. The thread does not sleep, as a slow processor would not: behind a sleep caches are cold, a computation takes
 * up to a quarter longer, and that as many times as the device is slow. Who wants the processor has it. */
bool gs_exec__is_paced(const gs_exec_lane *l)
{
    return !l->defers && gs_topology_speed(&l->e->wires.topology, l->device) != 1;
}

void gs_exec__pace(gs_exec_lane *l, double span[2], double computed)
{
    const double speed = gs_topology_speed(&l->e->wires.topology, l->device), end = span[1];

    span[0] += l->owes;
    l->owes += computed * (1 / speed - 1);
    span[1] += l->owes;
    while (gs_now() < span[1])
        sched_yield();
    l->owes -= gs_now() - end;
}

gs_status gs_exec__copy(gs_exec_lane *l, const gs_task *t, double ready, double span[2])
{
    gs_exec *const e = l->e;
    const gs_exec_device *const x = &e->on[t->device], *const peer = peer_of(e, t), *const from = peer ? peer : x;
    uint64_t bytes = 0;
    gs_status st = GS_OK;

    span[0] = gs_now();
    if (t->source.memory == GS_HOST && t->chunk_bytes > 0)
        st = gs_exec__check_upload(e, t);
    if (st == GS_OK)
        st = copy_runs(l, t, gs_exec__at(e, x, t->place), gs_exec__at(e, from, t->source), &bytes);
    span[1] = gs_now();
    l->bytes += bytes;
    if (st == GS_OK && !l->defers && reserve(&e->wires, t, bytes, ready, span) && gs_now() < span[1])
        sleep_until(span[1]);
    return st;
}

/* ---- reads and writes ----------------------------------------------------- */

/* Hands reads and writes to io, and takes in what has come.
 *
 * One thread does that for a run: between launches where it feeds the device too, else all the time. The first reads
 * of a pass's next run are handed over when all reads of this run are (schedule/emit.c says which). They may
 * arrive at any time, also between the two runs, and are the next one's in all that is counted. A run of another pass
 * in between throws them away.
 */

static uint64_t tag_of(uint32_t task, uint32_t part) { return (uint64_t)part << 32 | task; }
static uint32_t task_of(uint64_t tag) { return (uint32_t)tag; }
static uint32_t part_of(uint64_t tag) { return (uint32_t)(tag >> 32); }

gs_io_request gs_exec__request(const gs_exec *e, uint64_t tag)
{
    const gs_task *t = &e->plan->task[task_of(tag)];
    gs_io_request r = {.file = e->files.io_file[t->file], .write = gs_task_writes(t),
                       .offset = gs_task_on_disk(t)->offset, .length = t->bytes,
                       .memory = gs_exec__host(e, *gs_task_off_disk(t)), .tag = tag};
    if (t->runs > 0) {
        const gs_block_run run = e->plan->run[t->first_run + part_of(tag)];
        r.offset += run.first * GS_BLOCK_BYTES;
        r.memory = (uint8_t *)r.memory + run.first * GS_BLOCK_BYTES;
        r.length = run.blocks * GS_BLOCK_BYTES;
    }
    return r;
}

/* Counts of the run that the transfer is for. */
static gs_exec_stats *counts_of(gs_exec *e, uint32_t task)
{
    return gs_lanes_is_ahead(&e->lanes, task) ? &e->transfers.ahead : &e->stats;
}

gs_status gs_exec__submit(gs_exec *e, uint32_t task, uint32_t *part)
{
    const uint32_t parts = gs_task_requests(&e->plan->task[task]);
    gs_status st = GS_OK;

    if (*part == 0)
        e->transfers.runs_left[task] = parts;
    for (; *part < parts && st == GS_OK; *part += st == GS_OK) {
        gs_io_request r = gs_exec__request(e, tag_of(task, *part));
        r.offset -= e->files.file[e->plan->task[task].file].first;
        st = gs_io_submit(e->files.io, &r);
        counts_of(e, task)->requests += st == GS_OK;
    }
    if (st == GS_OK)
        *part = 0;
    return st;
}

/* ---- what may start ---- */

/* The lane's next transfer begins if it may; behind the last read of this run, the first of the next. */
static uint32_t begin_next(gs_exec *e, uint32_t lane)
{
    uint32_t task = gs_lanes_ready(&e->lanes, lane);

    if (task != GS_NONE)
        gs_lanes_begin(&e->lanes, lane);
    else if (lane == GS_LANE_READ && e->args->again && (task = gs_lanes_ready_ahead(&e->lanes)) != GS_NONE)
        gs_lanes_begin_ahead(&e->lanes);
    if (task != GS_NONE && e->span != NULL)
        e->span[task][0] = gs_now();
    return task;
}

bool gs_exec__may_transfer(const gs_exec *e, uint32_t missing[GS_LANE_DEVICES + 1])
{
    const bool ahead = e->args->again && gs_lanes_next(&e->lanes, GS_LANE_READ) == GS_NONE;
    const gs_ahead *const a = ahead ? gs_lanes_next_ahead(&e->lanes) : NULL;
    bool may = ahead && gs_lanes_ready_ahead(&e->lanes) != GS_NONE;

    for (uint32_t lane = 0; lane < GS_LANE_DEVICES; lane++) {
        const uint32_t task = gs_lanes_next(&e->lanes, lane);
        missing[lane] = task == GS_NONE ? GS_NONE : gs_lanes_missing_dep(&e->lanes, task);
        may = may || (task != GS_NONE && missing[lane] == GS_NONE);
    }
    missing[GS_LANE_DEVICES] = a == NULL ? GS_NONE : gs_lanes_missing(&e->lanes, a->first_dep, a->deps);
    return may;
}

/* Hands over transfers of one lane, in order, until one has to wait. */
static gs_status feed(gs_exec *e, uint32_t lane)
{
    for (;;) {
        if (e->transfers.rest[lane].task == GS_NONE && (e->transfers.rest[lane].task = begin_next(e, lane)) == GS_NONE)
            return GS_OK;
        const gs_status st = gs_exec__submit(e, e->transfers.rest[lane].task, &e->transfers.rest[lane].part);
        if (st != GS_OK)
            return st == GS_EAGAIN ? GS_OK : st;
        e->transfers.rest[lane].task = GS_NONE;
    }
}

static gs_status feed_all(gs_exec *e)
{
    const gs_status st = feed(e, GS_LANE_WRITE);
    return st == GS_OK ? feed(e, GS_LANE_READ) : st;
}

/* ---- what has come ---- */

static gs_status check(gs_exec *e, const gs_task *t, const gs_io_request *r, gs_exec_stats *counts)
{
    const double begin = gs_now();
    gs_status st = GS_OK;
    if (t->check == GS_CHECK_BLOCKS)
        st = gs_exec__check_blocks(e, t->file, r->offset, r->memory, r->length);
    else
        st = gs_exec__check_chunks(e, t->file - e->program->arrays, t->target, t->operand, r->memory, r->length);
    e->stats.check_seconds += gs_now() - begin;
    counts->checked_bytes += r->length;
    counts->checks++;
    return st;
}

static gs_status finish_one(gs_exec *e, const gs_io_completion *c)
{
    const uint32_t task = task_of(c->tag);
    const gs_task *t = &e->plan->task[task];
    const gs_io_request r = gs_exec__request(e, c->tag);
    gs_exec_stats *const counts = counts_of(e, task);
    gs_status st = GS_OK;

    if (c->status != GS_OK)
        return gs_io_explain(e->files.io, &r, c);
    if (counts == &e->stats && e->span != NULL)
        e->span[task][1] = gs_now();
    if (r.write) {
        counts->written_bytes += r.length;
    } else {
        counts->read_bytes += r.length;
        if (t->check != GS_CHECK_NONE)
            st = check(e, t, &r, counts);
    }
    if (--e->transfers.runs_left[task] == 0)
        gs_exec__finish(e, task);
    return st;
}

static gs_status reap(gs_exec *e, bool wait)
{
    gs_io_completion done[32];
    uint32_t n;
    gs_status st = GS_OK;
    do {
        if (!wait)
            n = gs_io_reap(e->files.io, done, 32, false);
        else if ((st = gs_exec__reap(e, done, 32, &n)) != GS_OK)
            return st;
        for (uint32_t i = 0; i < n && st == GS_OK; i++)
            st = finish_one(e, &done[i]);
        wait = false;
    } while (n == 32 && st == GS_OK);
    return st;
}

gs_status gs_exec__pump(gs_exec *e, bool wait)
{
    assert(pthread_equal(e->transfers.driver, pthread_self()));
    GS_TRY(feed_all(e));
    GS_TRY(reap(e, wait));
    /* A completion may have freed a place: the disk should not wait for the next launch. */
    GS_TRY(feed_all(e));
    gs_io_reap(e->files.io, NULL, 0, false); /* what was only queued goes to the kernel */
    return GS_OK;
}

/* ---- from run to run ---- */

void gs_exec__forget_ahead(gs_exec *e)
{
    gs_io_completion done[32];
    gs_status st = GS_OK;
    uint32_t n;
    while (st == GS_OK && gs_io_outstanding(e->files.io) > 0)
        st = gs_exec__reap(e, done, 32, &n);
    gs_lanes_forget_ahead(&e->lanes);
    for (uint32_t lane = 0; lane < GS_LANE_DEVICES; lane++) {
        e->transfers.rest[lane].task = GS_NONE;
        e->transfers.rest[lane].part = 0;
    }
    e->transfers.ahead = (gs_exec_stats){0};
}

void gs_exec__enter_pass(gs_exec *e, uint32_t pass)
{
    const gs_ahead *const list = e->plan->ahead + e->plan->pass[pass].first_ahead;

    if (e->lanes.pass != pass)
        gs_exec__forget_ahead(e);
    /* what came before the run is there when it begins */
    for (uint32_t k = 0; k < e->lanes.ahead && e->span != NULL; k++)
        e->span[list[k].task][0] = e->span[list[k].task][1] = gs_now();
    gs_exec__enter_progress(e, pass);
    gs_lanes_enter(&e->lanes, pass);
    e->transfers.driver = pthread_self();
    e->patience.quiet = e->patience.tasks = 0;
    e->stats = e->transfers.ahead;
    e->transfers.ahead = (gs_exec_stats){0};
}
