/* simulate.c - drives the lane machine (plan/lanes.h) with a cost model's clock.
 *
 * A plan without copies as tasks has one thread, which submits, verifies and computes: the order of events is that of
 * exec/drive.c, what changes there changes here. A plan with them has a thread for each lane of a device: every task
 * begins when its lane, what it waits for, and the link or disk that it goes over are free, and links and the disk
 * serve tasks in the order of the plan. The driving thread then only verifies what has come.
 */
#include "schedule/simulate.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "plan/lanes.h"
#include "schedule/link.h"

struct sim {
    const gs_simulation_input *in;
    const gs_plan_pass *pass;
    gs_lanes lanes;
    gs_predicted out;      /* of the run being simulated */
    gs_stage_work *work;    /* [stages] */
    double *end;            /* [tasks] when each of the plan's is over; of a transfer: has arrived */
    double now;             /* of the driving thread */
    double wire_free[GS_WIRES]; /* has moved all that was submitted */
    double wire_seconds;    /* that wires between devices and the host were busy */
    /* with one thread: what is under way, in the order in which it will arrive */
    uint32_t *flying;       /* [tasks + aheads of the pass] */
    uint32_t first, last;
    /* with a thread for each lane of a device */
    double begin, over;     /* of the run: lanes begin together */
    double lane_free[GS_PLAN_LANES];
    double busy[GS_PLAN_DEVICES][2];          /* of each device: along edges, other */
    const gs_task *before[GS_PLAN_DEVICES];   /* what it computed last, NULL: nothing yet */
    double launched[GS_PLAN_DEVICES];         /* when that, or what was launched with it first, began */
};

static const gs_task *task_at(const struct sim *s, uint32_t task) { return &s->in->plan->task[task]; }

static void find_work(const struct sim *s, gs_work *w, const gs_task *t)
{
    gs_task_work_by(w, s->in->program, &s->work[t->stage], s->in->set, s->in->parts, t);
}

/* ---- resources ---- */

static const gs_cost *cost_on(const struct sim *s, const gs_task *t)
{
    return gs_cost_on(s->in->cost, s->in->host_cost, s->in->topology, t->device);
}

/* A wire moves what it is given in order: until when? */
static double take_wire(struct sim *s, gs_plan_link link, double seconds, double begin)
{
    const uint32_t wire = gs_link_wire(s->in->topology, link);

    s->wire_seconds += wire >= GS_WIRE_SWITCHES && wire < GS_WIRE_PEERS ? seconds : 0;
    s->wire_free[wire] = GS_MAX(s->wire_free[wire], begin) + seconds;
    return s->wire_free[wire];
}

/* When the bytes of a move that could begin then have arrived. */
static double move(struct sim *s, const gs_task *t, double begin)
{
    const gs_link_load load = {gs_task_link(t), gs_task_bytes(s->in->plan, t), gs_task_requests(t)};
    const double took = gs_link_seconds(s->in->topology, s->in->cost, s->in->host_cost, &load);
    double end = take_wire(s, load.link, took, begin);

    if (gs_task_is_copy(t))
        return end;
    if (gs_link_driver(load.link) == GS_DRIVER_DIRECT) {
        const gs_plan_link to = gs_link_to(t->device);
        const double bps = gs_link_of(s->in->topology, cost_on(s, t), to).bps;
        const double passed = take_wire(s, to, (double)t->bytes / bps, begin);
        end = GS_MAX(end, passed);
    }
    *(gs_task_reads(t) ? &s->out.read_seconds : &s->out.write_seconds) += took;
    return end + s->in->cost->latency_seconds;
}

static double check_seconds(const struct sim *s, const gs_task *t)
{
    if (t->check == GS_CHECK_NONE)
        return 0;
    const gs_work check = {GS_WORK_CHECK, {gs_task_requests(t), (double)gs_task_bytes(s->in->plan, t)}};
    return gs_cost_seconds(s->in->cost, &check);
}

static bool is_along_edges(const gs_work *w) { return w->kind == GS_WORK_SUM || w->kind == GS_WORK_EDGES; }

/* ---- one thread submits, verifies and computes ---- */

static void spend(struct sim *s, double seconds, double *on)
{
    s->now += seconds;
    *on += seconds;
}

static void submit(struct sim *s, uint32_t task)
{
    const gs_task *const t = task_at(s, task);
    const gs_work work = {GS_WORK_SUBMIT, {gs_task_requests(t)}};
    spend(s, gs_cost_seconds(s->in->cost, &work), &s->out.check_seconds);
    s->end[task] = move(s, t, s->now);
    s->flying[s->last++] = task;
}

static void feed(struct sim *s)
{
    static const uint32_t lane[] = {GS_LANE_WRITE, GS_LANE_READ};
    uint32_t task;

    for (size_t k = 0; k < GS_ARRAY_LEN(lane); k++)
        while ((task = gs_lanes_ready(&s->lanes, lane[k])) != GS_NONE) {
            gs_lanes_begin(&s->lanes, lane[k]);
            submit(s, task);
        }
    while ((task = gs_lanes_ready_ahead(&s->lanes)) != GS_NONE) {
        gs_lanes_begin_ahead(&s->lanes);
        submit(s, task);
    }
}

/* Takes what has arrived by now. */
static void reap(struct sim *s)
{
    for (; s->first < s->last && s->end[s->flying[s->first]] <= s->now; s->first++) {
        spend(s, check_seconds(s, task_at(s, s->flying[s->first])), &s->out.check_seconds);
        gs_lanes_finish(&s->lanes, s->flying[s->first]);
    }
}

static void pump(struct sim *s, bool wait)
{
    feed(s);
    if (wait && s->first < s->last)
        s->now = GS_MAX(s->now, s->end[s->flying[s->first]]);
    reap(s);
    feed(s);
}

/* Until the task may begin; GS_NONE: until all transfers of the run itself are over. */
static void wait_for(struct sim *s, uint32_t task)
{
    const gs_lanes *const l = &s->lanes;
    const double begin = s->now;

    while (s->first < s->last &&
           (task == GS_NONE ? !gs_lanes_are_over(l, GS_LANE_READ) || !gs_lanes_are_over(l, GS_LANE_WRITE)
                            : gs_lanes_missing_dep(l, task) != GS_NONE))
        pump(s, true);
    s->out.stall_seconds += s->now - begin;
}

static void run_on_one_thread(struct sim *s)
{
    const uint32_t lane = GS_LANE_DEVICES + GS_LANE_COMPUTE;
    const double begin = s->now;
    uint32_t task;
    gs_work w;

    memmove(s->flying, s->flying + s->first, (s->last - s->first) * sizeof(*s->flying)); /* read ahead of this run */
    s->last -= s->first;
    s->first = 0;
    while ((task = gs_lanes_next(&s->lanes, lane)) != GS_NONE) {
        pump(s, false);
        wait_for(s, task);
        gs_lanes_begin(&s->lanes, lane);
        find_work(s, &w, task_at(s, task));
        spend(s, gs_cost_seconds_beside(s->in->cost, &w, s->wire_free[GS_WIRE_DISK] - s->now, s->in->cost->read_bps),
              is_along_edges(&w) ? &s->out.edge_seconds : &s->out.vertex_seconds);
        gs_lanes_finish(&s->lanes, task);
    }
    pump(s, false);
    wait_for(s, GS_NONE);
    s->out.seconds = s->now - begin;
}

/* ---- a thread for each lane of a device ---- */

static double last_end(const struct sim *s, uint32_t first_dep, uint32_t deps, double begin)
{
    for (uint32_t i = 0; i < deps; i++)
        begin = GS_MAX(begin, s->end[s->in->plan->dep[first_dep + i]]);
    return begin;
}

/* One thread verifies what has come. */
static double transfer(struct sim *s, const gs_task *t, double begin)
{
    const double arrived = move(s, t, begin), check = check_seconds(s, t);
    s->out.check_seconds += check;
    return s->now = GS_MAX(s->now, arrived) + check;
}

/* `ready`: when all that the task waits for was done. What was there when the launch before it began is a part of that,
 * and takes no launch of its own. */
static double compute(struct sim *s, const gs_task *t, double ready, double begin)
{
    const gs_task *const before = s->before[t->device];
    const gs_cost *const cost = cost_on(s, t);
    gs_work w;
    find_work(s, &w, t);
    const bool joins = s->in->together && !s->in->topology->on_host[t->device] && is_along_edges(&w) &&
                       before != NULL && gs_tasks_go_together(before, t) && ready <= s->launched[t->device];
    const double alone = gs_cost_seconds(cost, &w), launch = joins ? cost->seconds[w.kind][0] : 0;
    const double took = (alone - launch) / gs_topology_speed(s->in->topology, t->device);
    s->busy[t->device][is_along_edges(&w) ? 0 : 1] += took;
    s->before[t->device] = t;
    if (!joins)
        s->launched[t->device] = begin;
    return begin + took;
}

static void read_ahead(struct sim *s)
{
    for (uint32_t task; (task = gs_lanes_ready_ahead(&s->lanes)) != GS_NONE;) {
        const gs_ahead *const a = gs_lanes_next_ahead(&s->lanes);
        const double begin = last_end(s, a->first_dep, a->deps, s->begin);
        gs_lanes_begin_ahead(&s->lanes);
        s->end[task] = transfer(s, task_at(s, task), begin);
        gs_lanes_finish(&s->lanes, task);
    }
}

/* The device that computes longest speaks for all. */
static void sum_up(struct sim *s)
{
    double most = -1;

    for (uint32_t d = 0; d < s->in->plan->devices; d++) {
        const double busy = s->busy[d][0] + s->busy[d][1];
        if (busy <= most)
            continue;
        most = busy;
        s->out.edge_seconds = s->busy[d][0];
        s->out.vertex_seconds = s->busy[d][1];
    }
    s->out.seconds = s->over - s->begin;
    s->out.stall_seconds = s->out.seconds - most;
}

/* As waits point backward, the list's first task that has not begun always may: one walk knows all times. */
static void run_on_threads(struct sim *s)
{
    s->begin = s->over;
    s->wire_seconds = 0;
    memset(s->busy, 0, sizeof(s->busy));
    memset(s->before, 0, sizeof(s->before));
    for (uint32_t lane = 0; lane < s->lanes.lanes; lane++)
        s->lane_free[lane] = s->begin;
    for (uint32_t i = s->pass->first_task; i < s->pass->first_task + s->pass->tasks; i++) {
        const gs_task *const t = task_at(s, i);
        const uint32_t lane = gs_task_lane(t);
        if (gs_lanes_is_done(&s->lanes, i)) /* read ahead */
            continue;
        gs_lanes_begin(&s->lanes, lane);
        const double free = gs_task_is_transfer(t) ? s->begin : s->lane_free[lane];
        const double ready = last_end(s, t->first_dep, t->deps, s->begin), begin = GS_MAX(ready, free);
        s->end[i] = s->lane_free[lane] = lane < GS_LANE_DEVICES    ? transfer(s, t, begin)
                                         : t->kind == GS_TASK_MOVE ? move(s, t, begin)
                                                                   : compute(s, t, ready, begin);
        s->over = GS_MAX(s->over, s->end[i]);
        gs_lanes_finish(&s->lanes, i);
        read_ahead(s);
    }
    sum_up(s);
}

/* ---- what it comes to ---- */

/* The resource that is busy longest, where it is busy nearly all the time: else an epoch is
 * made of waits that memory for reading ahead would remove. */
static const char *bottleneck(const struct sim *s)
{
    const gs_predicted *const x = &s->out;
    const double disk = x->read_seconds + x->write_seconds, computing = x->edge_seconds + x->vertex_seconds;
    const double device = computing + x->check_seconds;

    if (s->in->plan->devices > 0 && s->wire_seconds / s->in->topology->switches > GS_MAX(disk, computing))
        return "copies to devices";
    if (GS_MAX(disk, device) < 0.75 * x->seconds)
        return "waiting";
    if (disk >= device)
        return x->read_seconds >= x->write_seconds ? "reading" : "writing";
    if (x->check_seconds >= GS_MAX(x->edge_seconds, x->vertex_seconds))
        return "checksums";
    return x->edge_seconds >= x->vertex_seconds ? "edge sums" : "vertex programs";
}

static void run_once(struct sim *s)
{
    gs_lanes_enter(&s->lanes, s->in->pass);
    s->out = (gs_predicted){0};
    if (s->in->plan->devices > 0)
        run_on_threads(s);
    else
        run_on_one_thread(s);
}

gs_status gs_simulate(gs_predicted *out, const gs_simulation_input *in)
{
    struct sim s = {.in = in, .pass = &in->plan->pass[in->pass]};
    gs_status st = gs_lanes_open(&s.lanes, in->plan);

    s.end = gs_malloc_array((size_t)in->plan->tasks + 1, sizeof(*s.end));
    s.flying = gs_malloc_array((size_t)s.pass->tasks + s.pass->aheads + 1, sizeof(*s.flying));
    s.work = gs_malloc_array(in->program->stages + 1ull, sizeof(*s.work));
    if (st != GS_OK || s.end == NULL || s.flying == NULL || s.work == NULL) {
        st = gs_fail(GS_ENOMEM, "out of memory while planning");
        goto done;
    }
    for (uint32_t k = 0; k < in->program->stages; k++)
        gs_stage_work_find(&s.work[k], in->program, &in->program->stage[k]);
    run_once(&s);
    if (s.pass->aheads > 0) /* an epoch among epochs is what counts: the second begins with what the first read ahead */
        run_once(&s);
    snprintf(s.out.bottleneck, sizeof(s.out.bottleneck), "%s", bottleneck(&s));
    *out = s.out;
done:
    gs_lanes_close(&s.lanes);
    gs_free(s.work);
    gs_free(s.end);
    gs_free(s.flying);
    return st;
}
