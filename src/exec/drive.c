/* drive.c - drives the three lanes of a pass, and what is read ahead of its next run.
 *
 * The thread that feeds the device also feeds and reaps io: before each launch
 * it hands over every write and read that may start, so that the disk has
 * work while the device computes; only when the next launch misses its bytes does
 * it sleep on a completion, and that time is the stall time.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "exec/exec_internal.h"

uint32_t gs_exec__missing_dep(const gs_exec *e, const gs_task *t)
{
    for (uint32_t i = 0; i < t->deps; i++)
        if (!gs_exec__is_done(e, e->plan->dep[t->first_dep + i]))
            return e->plan->dep[t->first_dep + i];
    return GS_NONE;
}

static bool deps_done(const gs_exec *e, const gs_task *t) { return gs_exec__missing_dep(e, t) == GS_NONE; }

void gs_exec__set_done(gs_exec *e, uint32_t task)
{
    __atomic_store_n(&e->done[task], 1, __ATOMIC_RELEASE);
    if (e->several != NULL)
        gs_exec__several_notify(e, task);
}

/* Parts that a transfer is made of; a whole one is a single part. */
static uint32_t parts_of(const gs_task *t) { return t->kind == GS_TASK_READ && t->runs > 0 ? t->runs : 1; }

static uint64_t tag_of(uint32_t task, uint32_t part) { return (uint64_t)part << 32 | task; }
static uint32_t task_of(uint64_t tag) { return (uint32_t)tag; }
static uint32_t part_of(uint64_t tag) { return (uint32_t)(tag >> 32); }

gs_io_request gs_exec__request(const gs_exec *e, uint64_t tag)
{
    const gs_task *t = &e->plan->task[task_of(tag)];
    gs_io_request r = {.file = e->io_file[t->file], .write = t->kind == GS_TASK_WRITE, .offset = t->offset,
                       .length = t->bytes, .memory = gs_exec__host(e, t->place), .tag = tag};
    if (t->kind == GS_TASK_READ && t->runs > 0) {
        const gs_run run = e->plan->run[t->first_run + part_of(tag)];
        r.offset += run.first * GS_BLOCK_BYTES;
        r.memory = (uint8_t *)r.memory + run.first * GS_BLOCK_BYTES;
        r.length = run.blocks * GS_BLOCK_BYTES;
    }
    return r;
}

/* Of the run that the transfer is for. */
static gs_exec_stats *counts_of(gs_exec *e, uint32_t index)
{
    return gs_exec__is_ahead(e, index) ? &e->ahead.stats : &e->stats;
}

gs_status gs_exec__submit(gs_exec *e, uint32_t index, uint32_t *part)
{
    const uint32_t parts = parts_of(&e->plan->task[index]);
    gs_status st = GS_OK;

    if (*part == 0)
        e->runs_left[index] = parts;
    for (; *part < parts && st == GS_OK; *part += st == GS_OK) {
        const gs_io_request r = gs_exec__request(e, tag_of(index, *part));
        st = gs_io_submit(e->io, &r);
        counts_of(e, index)->requests += st == GS_OK;
        e->ahead.flying += st == GS_OK && gs_exec__is_ahead(e, index);
    }
    if (st == GS_OK)
        *part = 0;
    return st;
}

/* Hands over tasks of one lane, in order, until one has to wait. */
static gs_status feed(gs_exec *e, enum lane lane)
{
    while (e->next[lane] < e->end[lane]) {
        const uint32_t index = e->lane_task[e->next[lane]];
        if (!deps_done(e, &e->plan->task[index]))
            return GS_OK;
        uint32_t whole = 0;
        if (e->span != NULL && (lane == LANE_WRITE || e->next_run == 0))
            e->span[index][0] = gs_now();
        const gs_status st = gs_exec__submit(e, index, lane == LANE_READ ? &e->next_run : &whole);
        if (st == GS_EAGAIN)
            return GS_OK;
        if (st != GS_OK)
            return st;
        e->next[lane]++;
    }
    return GS_OK;
}

static gs_status feed_all(gs_exec *e)
{
    gs_status st = feed(e, LANE_WRITE);
    if (st == GS_OK)
        st = feed(e, LANE_READ);
    return st == GS_OK ? gs_exec__feed_ahead(e) : st;
}

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
    const uint32_t index = task_of(c->tag);
    const gs_task *t = &e->plan->task[index];
    const gs_io_request r = gs_exec__request(e, c->tag);
    gs_status st = GS_OK;

    if (c->status != GS_OK)
        return gs_io_explain(e->io, &r, c);
    gs_exec_stats *const counts = counts_of(e, index);
    if (counts == &e->ahead.stats)
        e->ahead.flying--;
    else if (e->span != NULL)
        e->span[index][1] = gs_now();
    if (t->kind == GS_TASK_WRITE) {
        counts->written_bytes += r.length;
    } else {
        counts->read_bytes += r.length;
        if (e->several == NULL && (st = gs_device_host_wrote(e->on->device, r.memory, r.length)) != GS_OK)
            return st;
        if (t->check != GS_CHECK_NONE)
            st = check(e, t, &r, counts);
    }
    if (--e->runs_left[index] == 0)
        gs_exec__set_done(e, index);
    return st;
}

static gs_status reap(gs_exec *e, bool wait)
{
    gs_io_completion done[32];
    uint32_t n;
    gs_status st = GS_OK;
    do {
        n = gs_io_reap(e->io, done, 32, wait);
        for (uint32_t i = 0; i < n && st == GS_OK; i++)
            st = finish_one(e, &done[i]);
        wait = false;
    } while (n == 32 && st == GS_OK);
    return st;
}

gs_status gs_exec__pump(gs_exec *e, bool wait)
{
    gs_status st;
    if ((st = feed_all(e)) != GS_OK || (st = reap(e, wait)) != GS_OK)
        return st;
    /* What was reaped may have freed a place: the disk should not wait for the next launch. */
    if ((st = feed_all(e)) != GS_OK)
        return st;
    gs_io_reap(e->io, NULL, 0, false); /* what was only queued goes to the kernel */
    return GS_OK;
}

static gs_status pump_along(gs_exec *e)
{
    const double begin = gs_now(), checked = e->stats.check_seconds;
    const gs_status st = gs_exec__pump(e, false);
    e->stats.submit_seconds += gs_now() - begin - (e->stats.check_seconds - checked);
    return st;
}

/* Notes which launches are done, in their order; `wait`: at least the oldest. */
static gs_status retire(gs_exec *e, bool wait)
{
    const double begin = gs_now();
    gs_status st = GS_OK;
    bool done = true;
    while (e->flights > 0 && st == GS_OK) {
        st = gs_device_poll(e->on->device, e->flight[0].launch, wait, &done);
        if (st != GS_OK || !done)
            break;
        if (e->span != NULL)
            e->span[e->flight[0].task][1] = gs_now();
        e->done[e->flight[0].task] = 1;
        e->flights--;
        memmove(&e->flight[0], &e->flight[1], e->flights * sizeof(e->flight[0]));
        wait = false;
    }
    e->stats.compute_seconds += gs_now() - begin;
    return st;
}

/* A unified device's launch is done when it returns. */
static gs_status note_launch(gs_exec *e, uint32_t index)
{
    gs_status st;
    if (gs_device_unified(e->on->device)) {
        e->done[index] = 1;
        return GS_OK;
    }
    if (e->flights == GS_EXEC_FLIGHT && (st = retire(e, true)) != GS_OK)
        return st;
    e->flight[e->flights].task = index;
    e->flight[e->flights++].launch = gs_device_last_launch(e->on->device);
    return GS_OK;
}

static gs_status wait_until_ready(gs_exec *e, const gs_task *t)
{
    const double begin = gs_now();
    gs_status st = GS_OK;
    while (st == GS_OK && !deps_done(e, t)) {
        const bool flights = e->flights > 0; /* what they free may be what reads wait for */
        if (flights && (st = retire(e, true)) != GS_OK)
            break;
        st = gs_exec__pump(e, !flights);
    }
    e->stats.stall_seconds += gs_now() - begin;
    return st;
}

static gs_status run_computes(gs_exec *e)
{
    gs_status st = GS_OK;
    while (e->next[LANE_COMPUTE] < e->end[LANE_COMPUTE]) {
        const uint32_t index = e->lane_task[e->next[LANE_COMPUTE]];
        const gs_task *t = &e->plan->task[index];
        if (e->args->stop != NULL && *e->args->stop)
            return gs_fail(GS_EINTERRUPTED, "interrupted");
        if ((e->flights > 0 && (st = retire(e, false)) != GS_OK) || (e->io != NULL && (st = pump_along(e)) != GS_OK))
            return st;
        if (!deps_done(e, t) && (st = wait_until_ready(e, t)) != GS_OK)
            return st;
        const double begin = gs_now();
        if ((st = gs_exec__launch(e, e->on, t)) != GS_OK)
            return st;
        const double end = gs_now();
        e->stats.compute_seconds += end - begin;
        if (e->span != NULL) {
            e->span[index][0] = begin;
            e->span[index][1] = end;
        }
        e->next[LANE_COMPUTE]++;
        if ((st = note_launch(e, index)) != GS_OK)
            return st;
    }
    while (e->flights > 0 && st == GS_OK)
        st = retire(e, true);
    return st;
}

/* Between the two the device has this pass's parameters. */
static gs_status run_on_device(gs_exec *e)
{
    const gs_device_pass pass = {.program = e->program, .param = e->args->param, .grad = e->args->grad,
                                 .metrics = &e->on->metrics, .statistic = e->args->statistic, .made = e->args->made};
    gs_status st = gs_device_begin_pass(e->on->device, &pass);
    if (st != GS_OK)
        return st;
    e->flights = 0;
    if ((st = run_computes(e)) == GS_OK)
        return gs_device_end_pass(e->on->device);
    char why[512];
    snprintf(why, sizeof(why), "%s", gs_last_error()); /* the first failure says more than what follows from it */
    (void)gs_device_end_pass(e->on->device);
    return gs_fail(st, "%s", why);
}

/* Everything that was handed over comes back, also after a failure: memory that
 * the kernel may still write to must not be reused. */
static gs_status drain(gs_exec *e, gs_status st)
{
    const double begin = gs_now();
    if (st == GS_OK && e->args->again)
        st = gs_exec__pump(e, false); /* the last launch has freed the last places */
    while (st == GS_OK && (e->next[LANE_WRITE] < e->end[LANE_WRITE] || e->next[LANE_READ] < e->end[LANE_READ] ||
                           (e->io != NULL && gs_io_outstanding(e->io) > e->ahead.flying)))
        st = gs_exec__pump(e, true);
    if (st != GS_OK)
        gs_exec__forget_ahead(e);
    e->stats.stall_seconds += gs_now() - begin;
    return st;
}

gs_status gs_exec_run(gs_exec *e, uint32_t pass, const gs_exec_args *args, gs_exec_stats *out)
{
    const double begin = gs_now();
    gs_status st;

    e->args = args;
    e->on->grad = args->grad;
    e->on->statistic = args->statistic;
    e->on->metrics = (gs_metrics){0};
    e->on->edge_seconds = 0;
    for (uint32_t lane = 0; lane < LANE_COUNT; lane++) {
        e->next[lane] = e->lane_first[pass * e->lanes + lane];
        e->end[lane] = e->lane_first[pass * e->lanes + lane + 1];
    }
    gs_exec__enter_pass(e, pass);
    gs_alloc_freeze(true);
    for (uint32_t d = 0; d < e->devices; d++)
        (void)gs_device_take_copied(e->on[d].device); /* what was before belongs to no pass */
    st = drain(e, e->several != NULL ? gs_exec__several_run(e, pass) : run_on_device(e));
    for (uint32_t d = 0; d < e->devices; d++) {
        const gs_device_copied copied = gs_device_take_copied(e->on[d].device);
        e->stats.copied_in_bytes += copied.in;
        e->stats.copied_out_bytes += copied.out;
    }
    gs_alloc_freeze(false);
    e->args = NULL;
    if (e->several == NULL) {
        e->stats.metrics = e->on->metrics;
        e->stats.edge_seconds = e->on->edge_seconds;
    }
    e->stats.seconds = gs_now() - begin;
    if (st == GS_OK)
        *out = e->stats;
    return st;
}
