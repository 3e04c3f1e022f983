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

static gs_status poll(const gs_exec_lane *l, uint64_t number, bool wait, bool *done)
{
    gs_device *const d = l->e->on[l->device].device;
    return l->kind == GS_LANE_COMPUTE ? gs_device_poll(d, number, wait, done)
                                      : gs_device_poll_transfers(d, gs_exec__way_of(l), number, wait, done);
}

gs_status gs_exec__retire(gs_exec_lane *l, bool wait)
{
    gs_exec *const e = l->e;
    const double begin = gs_now();
    gs_status st = GS_OK;
    bool done = true;

    assert(pthread_equal(l->owner, pthread_self()));
    while (l->flights > 0 && st == GS_OK) {
        st = poll(l, l->flight[0].number, wait, &done);
        if (st != GS_OK || !done)
            break;
        const uint32_t task = l->flight[0].task;
        l->last = gs_now();
        if (e->span != NULL)
            e->span[task][1] = l->last;
        if (e->kernels != NULL && l->kind == GS_LANE_COMPUTE &&
            !gs_device_launch_span(e->on[l->device].device, l->flight[0].first, l->flight[0].number, e->kernels[task]))
            memset(e->kernels[task], 0, sizeof(e->kernels[task]));
        l->flights--;
        memmove(&l->flight[0], &l->flight[1], l->flights * sizeof(l->flight[0]));
        gs_exec__finish(e, task);
        wait = false;
    }
    l->busy_seconds += gs_now() - begin;
    return st;
}

/* `first`: the task's first launch, if it has any. */
static gs_status note_flight(gs_exec_lane *l, uint32_t task, uint64_t first)
{
    gs_device *const d = l->e->on[l->device].device;
    uint64_t number = 0;
    gs_status st = GS_OK;

    if (l->kind == GS_LANE_COMPUTE)
        number = gs_device_last_launch(d);
    else
        st = gs_device_mark_transfers(d, gs_exec__way_of(l), &number);
    if (st == GS_OK && l->flights == GS_EXEC_FLIGHT)
        st = gs_exec__retire(l, true);
    if (st != GS_OK)
        return st;
    l->flight[l->flights].task = task;
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

gs_status gs_exec__run_next(gs_exec_lane *l)
{
    gs_exec *const e = l->e;
    const uint32_t task = gs_lanes_next(&e->lanes, l->lane);
    const gs_task *const t = &e->plan->task[task];
    uint64_t first = 0;
    double span[2];
    gs_status st;

    assert(pthread_equal(l->owner, pthread_self()));
    gs_lanes_begin(&e->lanes, l->lane);
    if (gs_exec__beginning != NULL)
        gs_exec__beginning(e, task);
    if (l->kind == GS_LANE_COMPUTE) {
        first = e->kernels != NULL ? gs_device_last_launch(e->on[l->device].device) + 1 : 0;
        span[0] = gs_now();
        st = gs_exec__launch(e, &e->on[l->device], t);
        span[1] = gs_now();
        gs_exec__pace(l, span);
        l->busy_seconds += span[1] - span[0];
    } else {
        st = gs_exec__copy(l, t, ready_at(l, t), span);
    }
    if (e->span != NULL)
        memcpy(e->span[task], span, sizeof(span));
    if (st == GS_OK && !gs_device_unified(e->on[l->device].device))
        return note_flight(l, task, first);
    l->last = span[1];
    if (st == GS_OK)
        gs_exec__finish(e, task);
    return st;
}
