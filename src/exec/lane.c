/* lane.c - what a lane of a device does with its next task: launches or copies it, and notes when it is done. */
#include "exec/lane.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"

void (*gs_exec__beginning)(const gs_exec *e, uint32_t task);

gs_status gs_exec__take_lanes(gs_exec *e)
{
    const uint32_t lanes = e->lanes.lanes - GS_LANE_DEVICES;

    if ((e->lane = gs_calloc(lanes, sizeof(*e->lane))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory: the devices' lanes");
    for (uint32_t k = 0; k < lanes; k++)
        e->lane[k] = (gs_exec_lane){.e = e, .lane = GS_LANE_DEVICES + k, .device = k / GS_DEVICE_LANES,
                                    .kind = k % GS_DEVICE_LANES};
    return GS_OK;
}

void gs_exec__enter_lane(gs_exec_lane *l)
{
    l->owner = pthread_self();
    l->busy_seconds = l->wait_seconds = l->owes = 0;
    l->bytes = 0;
    l->last = gs_now();
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
                                      : gs_device_poll_transfers(d, gs_exec__way_of(l), number, wait, done);
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

gs_status gs_exec__retire(gs_exec_lane *l, bool wait)
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

/* Tasks lanes.task[at .. +count); `first`: their first launch, if they have any, or the load. */
static gs_status note_flight(gs_exec_lane *l, uint32_t at, uint32_t count, uint64_t first)
{
    gs_device *const d = l->e->on[l->device].device;
    uint64_t number = 0;
    gs_status st = GS_OK;

    if (l->kind == GS_LANE_COMPUTE)
        number = gs_device_last_launch(d);
    else if (l->kind == GS_LANE_LOAD)
        number = first;
    else
        st = gs_device_mark_transfers(d, gs_exec__way_of(l), &number);
    if (st == GS_OK && l->flights == (l->kind == GS_LANE_LOAD ? GS_EXEC_LOADS : GS_EXEC_FLIGHT))
        st = gs_exec__retire(l, true);
    if (st != GS_OK)
        return st;
    l->flight[l->flights].at = at;
    l->flight[l->flights].count = count;
    l->flight[l->flights].first = first;
    l->flight[l->flights++].number = number;
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
    if (t->kind != GS_TASK_EDGES || gs_device_unified(e->on[l->device].device) ||
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

gs_status gs_exec__run_next(gs_exec_lane *l)
{
    gs_exec *const e = l->e;
    const uint32_t at = e->lanes.lane[l->lane].next, count = count_next(l), *const task = &e->lanes.task[at];
    uint64_t first = 0;
    double span[2];
    gs_status st;

    assert(pthread_equal(l->owner, pthread_self()));
    for (uint32_t i = 0; i < count; i++) {
        gs_lanes_begin(&e->lanes, l->lane);
        if (gs_exec__beginning != NULL)
            gs_exec__beginning(e, task[i]);
    }
    if (l->kind == GS_LANE_COMPUTE) {
        first = e->kernels != NULL ? gs_device_last_launch(e->on[l->device].device) + 1 : 0;
        span[0] = gs_now();
        st = launch(l, task, count);
        span[1] = gs_now();
        gs_exec__pace(l, span);
        l->busy_seconds += span[1] - span[0];
    } else if (l->kind == GS_LANE_LOAD) {
        span[0] = span[1] = gs_now();
        st = gs_exec__load_chunk(l, &e->plan->task[task[0]], &first);
    } else {
        st = gs_exec__copy(l, &e->plan->task[task[0]], ready_at(l, &e->plan->task[task[0]]), span);
    }
    for (uint32_t i = 0; i < count && e->span != NULL; i++)
        memcpy(e->span[task[i]], span, sizeof(span));
    if (st == GS_OK && !gs_device_unified(e->on[l->device].device))
        return note_flight(l, at, count, first);
    l->last = span[1];
    if (st == GS_OK)
        gs_exec__finish(e, task[0]);
    return st;
}
