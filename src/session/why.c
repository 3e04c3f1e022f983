/* why.c - seconds of a pass by stage and by what was busy, and who was waited for.
 *
 * Of each task the executor knows when it began and ended. Where a device stands still before a computation, the task
 * that this one waits for and that ended last is to blame for as long as it was under way; for the time before, what
 * that one waited for; and so on back to when the device stopped. Time in which nothing that it waits for was under way
 * is that of the queue which the task stood in: its link's. */
#include "session/why.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "plan/links.h"
#include "schedule/simulate.h"

/* What works for a stage: columns of the table. */
typedef enum worker { VERTICES, EDGES, READS, WRITES, UPLOADS, FORWARDS, DOWNLOADS, LOADS, WORKERS } worker;

static const char *const worker_name[WORKERS] = {
    [VERTICES] = "vertex programs", [EDGES] = "edges",         [READS] = "reads",         [WRITES] = "writes",
    [UPLOADS] = "to devices",       [FORWARDS] = "between devices", [DOWNLOADS] = "to the host",
    [LOADS] = "disk to devices",
};

typedef struct row {
    uint32_t tasks;
    uint64_t bytes;
    double predicted, measured, floor, waited;
    double until; /* of lane `lane`, the last one that was looked at: when it was busy last */
    uint32_t lane;
} row;

typedef struct table {
    const gs_session *s;
    double flops, gather_bps;
    row *row; /* [stages][WORKERS] */
} table;

static worker worker_of(const gs_task *t)
{
    static const worker of_device[GS_DEVICE_LANES] = {[GS_LANE_UPLOAD] = UPLOADS, [GS_LANE_FORWARD] = FORWARDS,
                                                      [GS_LANE_DOWNLOAD] = DOWNLOADS, [GS_LANE_LOAD] = LOADS};
    const uint32_t lane = gs_task_lane(t);

    if (t->kind != GS_TASK_MOVE)
        return t->kind == GS_TASK_EDGES || t->kind == GS_TASK_UNROLL || t->kind == GS_TASK_BACK ? EDGES : VERTICES;
    return lane == GS_LANE_READ    ? READS
           : lane == GS_LANE_WRITE ? WRITES
                                   : of_device[(lane - GS_LANE_DEVICES) % GS_DEVICE_LANES];
}

static row *row_of(const table *a, const gs_task *t) { return &a->row[t->stage * WORKERS + worker_of(t)]; }

/* Seconds of products at their rate, and of the rows that edges gather. */
static double floor_of(const table *a, const gs_work *w)
{
    const double products = w->kind == GS_WORK_VERTEX ? w->amount[2] + w->amount[3]
                            : w->kind == GS_WORK_EDGES ? w->amount[5]
                                                         : 0;
    const double gathered = w->kind == GS_WORK_SUM ? w->amount[2] : w->kind == GS_WORK_EDGES ? w->amount[3] : 0;
    return (a->flops > 0 ? products / a->flops : 0) +
           (a->gather_bps > 0 ? gathered * sizeof(float) / a->gather_bps : 0);
}

static void add_costs(const table *a, row *r, const gs_task *t)
{
    const gs_session *const s = a->s;
    const gs_session_machine *const m = &s->machine;
    const gs_cost *const host = gs_session_host_cost(s);
    gs_work w;

    if (t->kind == GS_TASK_MOVE) {
        gs_link_load load = {gs_task_link(t), gs_task_bytes(s->plan, t), gs_task_requests(t)};
        r->bytes += load.bytes;
        r->predicted += gs_link_seconds(m->topology, &m->cost, host, &load);
        load.requests = 0;
        r->floor += gs_link_seconds(m->topology, &m->cost, host, &load);
        return;
    }
    gs_task_work(&w, s->program, s->edges.set, gs_store_chunks(s->store)->parts, t);
    r->predicted += gs_cost_seconds(gs_cost_on(&m->cost, host, m->topology, t->device), &w) /
                    (m->topology != NULL ? gs_topology_speed(m->topology, t->device) : 1);
    r->floor += floor_of(a, &w);
}

/* Time in which at least one of its lane's tasks was under way, as these come in the order in which they begin. */
static void add_span(row *r, const gs_task *t, double begin, double end)
{
    if (r->lane != gs_task_lane(t))
        r->until = 0;
    r->lane = gs_task_lane(t);
    r->measured += GS_MAX(end - GS_MAX(begin, r->until), 0);
    r->until = GS_MAX(r->until, end);
}

/* Of what a task waits for, that which ended last; GS_NONE: it waits for nothing of this pass. */
static uint32_t last_dep(const gs_session *s, uint32_t task, double *end)
{
    const gs_task *const t = &s->plan->task[task];
    uint32_t last = GS_NONE;

    *end = 0;
    for (uint32_t i = 0; i < t->deps; i++) {
        double began, ended;
        gs_exec_span(s->run.exec, s->plan->dep[t->first_dep + i], &began, &ended);
        if (ended > *end) {
            *end = ended;
            last = s->plan->dep[t->first_dep + i];
        }
    }
    return last;
}

/* The device stood still from `from` until the task began. */
static void blame(const table *a, uint32_t task, double from, double until)
{
    double end;

    for (uint32_t at = last_dep(a->s, task, &end); at != GS_NONE && until > from;) {
        row *const r = row_of(a, &a->s->plan->task[at]);
        double begin, ended;
        until = GS_MIN(until, end);
        if (until <= from)
            break;
        gs_exec_span(a->s->run.exec, at, &begin, &ended);
        const uint32_t before = last_dep(a->s, at, &end);
        const double since = GS_MAX(from, GS_MIN(end > 0 ? end : begin, until));
        r->waited += until - since; /* under way, and before that in its queue */
        until = since;
        at = before;
    }
}

/* gs_lanes: tasks of a pass by lane, in the order in which these take them. */
static void look_at_lanes(const table *a)
{
    const gs_plan_pass *const pass = &a->s->plan->pass[a->s->pass.train];
    const uint32_t lanes = gs_plan_lanes(a->s->plan);

    for (uint32_t lane = 0; lane < lanes; lane++) {
        const bool computes = lane >= GS_LANE_DEVICES && (lane - GS_LANE_DEVICES) % GS_DEVICE_LANES == GS_LANE_COMPUTE;
        double last = 0;
        for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
            const gs_task *const t = &a->s->plan->task[i];
            double begin, end;
            if (gs_task_lane(t) != lane || gs_exec_is_joined(a->s->run.exec, i))
                continue;
            gs_exec_span(a->s->run.exec, i, &begin, &end);
            row *const r = row_of(a, t);
            r->tasks++;
            add_costs(a, r, t);
            add_span(r, t, begin, end);
            if (computes && last > 0 && begin > last)
                blame(a, i, last, begin);
            last = GS_MAX(last, end);
        }
    }
}

gs_status gs_session_explain(const gs_session *s, double flops, double gather_bps, gs_why_fn why, void *context)
{
    const gs_program *const p = s->program;
    const gs_pass *const pass = &p->pass[s->pass.train];
    const table a = {s, flops, gather_bps, gs_calloc((size_t)p->stages * WORKERS, sizeof(row))};

    if (a.row == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the seconds of %u stages", p->stages);
    look_at_lanes(&a);
    for (uint32_t k = pass->first_stage; k < pass->first_stage + pass->stages; k++)
        for (uint32_t w = 0; w < WORKERS; w++) {
            const row *const r = &a.row[k * WORKERS + w];
            const gs_why_row out = {p->stage[k].name, worker_name[w], r->tasks,    r->bytes,
                                    r->predicted,     r->measured,    r->floor,  r->waited};
            if (r->tasks > 0)
                why(context, &out);
        }
    gs_free(a.row);
    return GS_OK;
}
