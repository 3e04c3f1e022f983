/* simulate_several.c - a plan of several devices with a cost model's clock.
 *
 * Lanes take their tasks in list order and waits point backward, so one walk through the list knows when each task can
 * begin: when its lane, what it waits for, and the wire or disk that it goes over are free.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/simulate_internal.h"

#define USUAL_COPY_BPS 10e9 /* of a wire without a throttle: a copy in memory */

struct clocks {
    const gs_simulation_input *in;
    double *done;                       /* [tasks of the pass] */
    double lane[GS_PLAN_LANES], disk, driver;
    double wire[GS_TOPOLOGY_DEVICES][2]; /* of each switch: to its devices, to the host */
    double busy[GS_PLAN_DEVICES][2];    /* of each device: along edges, other */
    double copied;                      /* wires to and from the host */
    gs_simulation out;
};

static double begin_of(const struct clocks *k, const gs_task *t, uint32_t lane)
{
    const uint32_t first = k->in->plan->pass[k->in->pass].first_task;
    double begin = lane < GS_LANE_DEVICES ? 0 : k->lane[lane];
    for (uint32_t i = 0; i < t->deps; i++)
        begin = GS_MAX(begin, k->done[k->in->plan->dep[t->first_dep + i] - first]);
    return begin;
}

/* The disk moves what is submitted in order; one thread verifies what has come. */
static double transfer(struct clocks *k, const gs_task *t, double begin)
{
    const gs_cost *const c = k->in->cost;
    const bool read = t->kind == GS_TASK_READ;
    const double requests = gs_task_requests(t), bytes = (double)gs_task_bytes(k->in->plan, t);
    const double took = requests * c->request_seconds + bytes / (read ? c->read_bps : c->write_bps);
    const double check =
        read && t->check != GS_CHECK_NONE ? gs_cost_seconds(c, &(gs_work){GS_WORK_CHECK, {requests, bytes}}) : 0;

    k->disk = GS_MAX(k->disk, begin) + took;
    *(read ? &k->out.read_seconds : &k->out.write_seconds) += took;
    k->out.check_seconds += check;
    k->driver = GS_MAX(k->driver, k->disk + c->latency_seconds) + check;
    return k->driver;
}

static double copy(struct clocks *k, const gs_task *t, double begin)
{
    const uint32_t s = gs_topology_switch_of(k->in->topology, t->device);
    const gs_topology_switch *const at = &k->in->topology->at[s];
    const bool forward = t->kind == GS_TASK_FORWARD;
    const double bps = forward ? at->peer_bps : at->host_bps;
    const double took = (double)gs_task_bytes(k->in->plan, t) / (bps > 0 ? bps : USUAL_COPY_BPS);
    double *const wire = forward ? NULL : &k->wire[s][t->kind == GS_TASK_DOWNLOAD];

    if (wire == NULL)
        return begin + took;
    k->copied += took;
    return *wire = GS_MAX(*wire, begin) + took;
}

static double compute(struct clocks *k, const gs_task *t, double begin)
{
    gs_work w;
    gs_task_work(&w, k->in->program, k->in->set, k->in->parts, t);
    const double took = gs_cost_seconds(k->in->cost, &w);
    k->busy[t->device][w.kind == GS_WORK_SUM || w.kind == GS_WORK_EDGES ? 0 : 1] += took;
    return begin + took;
}

/* The device that computes longest speaks for all. */
static void sum_up(struct clocks *k, double seconds)
{
    gs_simulation *const x = &k->out;
    double most = -1;

    for (uint32_t d = 0; d < k->in->plan->devices; d++) {
        const double busy = k->busy[d][0] + k->busy[d][1];
        if (busy <= most)
            continue;
        most = busy;
        x->edge_seconds = k->busy[d][0];
        x->vertex_seconds = k->busy[d][1];
    }
    x->seconds = seconds;
    x->stall_seconds = seconds - most;
    x->bottleneck = gs_simulation_bottleneck(x);
    if (k->copied / k->in->topology->switches > GS_MAX(x->read_seconds + x->write_seconds, most))
        x->bottleneck = "copies to devices";
}

gs_status gs_simulate_several(gs_simulation *out, const gs_simulation_input *in)
{
    const gs_plan_pass *const pass = &in->plan->pass[in->pass];
    struct clocks k = {.in = in, .done = gs_malloc_array((size_t)pass->tasks + 1, sizeof(*k.done))};
    double seconds = 0;

    if (k.done == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t i = 0; i < pass->tasks; i++) {
        const gs_task *const t = &in->plan->task[pass->first_task + i];
        const uint32_t lane = gs_task_lane(t);
        const double begin = begin_of(&k, t, lane);
        const double end = lane < GS_LANE_DEVICES     ? transfer(&k, t, begin)
                           : gs_task_is_copy(t->kind) ? copy(&k, t, begin)
                                                      : compute(&k, t, begin);
        k.done[i] = k.lane[lane] = end;
        seconds = GS_MAX(seconds, end);
    }
    sum_up(&k, seconds);
    *out = k.out;
    gs_free(k.done);
    return GS_OK;
}
