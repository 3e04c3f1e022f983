/* copy.c - copies between the host and devices, no faster than their wires.
 *
 * GPUs have wires of their own: what a topology says of theirs is for the planner. On host memory
 * a wire is a clock: a copy takes its time on it from when it could begin, not from when a thread got round to it, so
 * that a busy machine does not slow a wire down. The thread copies, then sleeps until that time is over.
 */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "exec/lane.h"

void gs_exec__take_wires(gs_exec_wires *w, const gs_topology *topology)
{
    w->topology = *topology;
    pthread_mutex_init(&w->lock, NULL);
}

void gs_exec__give_wires(gs_exec_wires *w) { pthread_mutex_destroy(&w->lock); }

gs_device_way gs_exec__way_of(const gs_exec_lane *l)
{
    return l->kind == GS_LANE_UPLOAD    ? GS_DEVICE_FROM_HOST
           : l->kind == GS_LANE_FORWARD ? GS_DEVICE_FROM_PEER
                                        : GS_DEVICE_TO_HOST;
}

/* Whose memory the task copies from; NULL: the host's, or its own device's. */
static const gs_exec_device *peer_of(const gs_exec *e, const gs_task *t)
{
    return gs_task_driver(t) == GS_DRIVER_PEER ? &e->on[t->source.memory - GS_DEVICE_MEMORIES] : NULL;
}

static gs_status copy_runs(gs_exec_lane *l, const gs_task *t, uint8_t *to, const uint8_t *from, uint64_t *bytes)
{
    const gs_exec *const e = l->e;
    gs_device *const d = e->on[t->device].device;
    const gs_exec_device *const from_peer = peer_of(e, t);
    gs_device *const peer = from_peer != NULL ? from_peer->device : NULL;
    const gs_device_way way = gs_exec__way_of(l);
    gs_status st = GS_OK;

    *bytes = t->bytes;
    if (t->runs == 0)
        return gs_device_transfer(d, way, peer, to, from, t->bytes);
    *bytes = 0;
    for (uint32_t r = 0; r < t->runs && st == GS_OK; r++) {
        const gs_block_run run = e->plan->run[t->first_run + r];
        const uint64_t at = run.first * GS_BLOCK_BYTES, n = GS_MIN(run.blocks * GS_BLOCK_BYTES, t->bytes - at);
        st = gs_device_transfer(d, way, peer, to + at, from + at, n);
        *bytes += n;
    }
    return st;
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
    const double bps = gs_link_said_bps(&w->topology, gs_task_link(t));
    double *const wire = &w->busy[gs_link_wire(&w->topology, gs_task_link(t))];

    if (bps <= 0)
        return false;
    pthread_mutex_lock(&w->lock);
    span[0] = GS_MAX(*wire, ready);
    span[1] = *wire = span[0] + (double)bytes / bps;
    pthread_mutex_unlock(&w->lock);
    return true;
}

/* Threads wake up late, and computations are short: what was slept too much is taken off the next waits. */
#define PACE_LEAST 200e-6

void gs_exec__pace(gs_exec_lane *l, double span[2])
{
    const gs_exec *const e = l->e;
    const double speed = e->several == NULL ? 1 : gs_topology_speed(&e->wires.topology, l->device);

    if (speed == 1 || !gs_device_unified(e->on[l->device].device))
        return;
    l->owes += (span[1] - span[0]) * (1 / speed - 1);
    if (l->owes < PACE_LEAST)
        return;
    const double begin = span[1];
    sleep_until(begin + l->owes);
    span[1] = gs_now();
    l->owes -= span[1] - begin;
}

gs_status gs_exec__copy(gs_exec_lane *l, const gs_task *t, double ready, double span[2])
{
    gs_exec *const e = l->e;
    const gs_exec_device *const x = &e->on[t->device], *const peer = peer_of(e, t), *const from = peer ? peer : x;
    uint64_t bytes = 0;
    gs_status st = GS_OK;

    span[0] = gs_now();
    if (!gs_device_unified(x->device) && t->source.memory == GS_HOST && t->chunk_bytes > 0)
        st = gs_exec__check_upload(e, t);
    if (st == GS_OK)
        st = copy_runs(l, t, gs_exec__at(e, x, t->place), gs_exec__at(e, from, t->source), &bytes);
    span[1] = gs_now();
    l->bytes += bytes;
    if (st == GS_OK && gs_device_unified(x->device) && reserve(&e->wires, t, bytes, ready, span) && gs_now() < span[1])
        sleep_until(span[1]);
    return st;
}
