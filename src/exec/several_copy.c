/* several_copy.c - copies between the host and devices, no faster than their wires.
 *
 * A wire is a clock: a copy takes its time on it from when it could begin, not from when a thread got round to it, so that
 * a busy machine does not slow a wire down. The thread copies, then sleeps until that time is over.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "exec/several.h"

static uint64_t copy_runs(const gs_plan *p, const gs_task *t, uint8_t *to, const uint8_t *from)
{
    uint64_t bytes = 0;
    if (t->kind == GS_TASK_DOWNLOAD || t->runs == 0) {
        memcpy(to, from, t->bytes);
        return t->bytes;
    }
    for (uint32_t r = 0; r < t->runs; r++) {
        const uint64_t at = p->run[t->first_run + r].first * GS_BLOCK_BYTES;
        const uint64_t n = GS_MIN(p->run[t->first_run + r].blocks * GS_BLOCK_BYTES, t->bytes - at);
        memcpy(to + at, from + at, n);
        bytes += n;
    }
    return bytes;
}

static void sleep_until(double when)
{
    const struct timespec t = {.tv_sec = (time_t)when, .tv_nsec = (long)((when - (double)(time_t)when) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

/* From when to when the copy has the wire; false where that is not throttled. */
static bool reserve(struct gs_exec_several *s, const gs_task *t, uint64_t bytes, double ready, double span[2])
{
    const uint32_t number = gs_topology_switch_of(&s->topology, t->device);
    const gs_topology_switch *const at = &s->topology.at[number];
    const bool forward = t->kind == GS_TASK_FORWARD;
    const double bps = forward ? at->peer_bps : at->host_bps;
    double *const wire = forward ? &s->peer[t->device] : &s->wire[number][t->kind == GS_TASK_DOWNLOAD];

    if (bps <= 0)
        return false;
    pthread_mutex_lock(&s->lock);
    span[0] = GS_MAX(*wire, ready);
    span[1] = *wire = span[0] + (double)bytes / bps;
    pthread_mutex_unlock(&s->lock);
    return true;
}

void gs_exec__several_copy(gs_exec_lane *l, const gs_task *t, double ready, double span[2])
{
    gs_exec *const e = l->of->e;
    const gs_exec_device *const x = &e->on[t->device], *const from = t->kind == GS_TASK_FORWARD ? &e->on[t->peer] : x;

    span[0] = gs_now();
    const uint64_t bytes = copy_runs(e->plan, t, gs_exec__at(e, x, t->place), gs_exec__at(e, from, t->source));
    span[1] = gs_now();
    l->bytes += bytes;
    if (reserve(l->of, t, bytes, ready, span) && gs_now() < span[1])
        sleep_until(span[1]);
}
