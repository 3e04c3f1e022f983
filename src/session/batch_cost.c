#include "session/batch_cost.h"

#include <stdio.h>

#include "base/size.h"
#include "schedule/simulate.h"

static bool goes_over_edges(const gs_task *t)
{
    return t->kind == GS_TASK_EDGES || t->kind == GS_TASK_UNROLL || t->kind == GS_TASK_BACK;
}

/* The task as the executor cuts it (exec/bind.c). False: nothing of it is left. */
static bool cut(gs_task *t, const gs_batch_edges *e)
{
    const gs_stage *const s = &e->program->stage[t->stage];
    const uint32_t rows = e->rows[t->stage];

    if (t->first_row >= rows && t->kind != GS_TASK_ZERO && !goes_over_edges(t))
        return false;
    t->rows = GS_MIN(t->rows, rows - GS_MIN(rows, t->first_row));
    if (t->kind == GS_TASK_ZERO && t->sum < s->sums && gs_stage_sums_rows(s, t->sum))
        t->bytes = GS_MIN(t->bytes, (uint64_t)rows * s->reg[s->sum[t->sum].reg].width * sizeof(float));
    return true;
}

/* Rows of a tile for which all of the stage is computed. */
static uint32_t whole_rows(const gs_batch_edges *e, const gs_task *t)
{
    const uint32_t whole = e->whole[t->stage];
    return whole > t->first_row ? GS_MIN(t->rows, whole - t->first_row) : 0;
}

/* Edges of a stage and the rows at their ends, as a chunk has them. */
static gs_chunk chunk_of(const gs_edges *v, uint32_t operands)
{
    const uint64_t edges = v->targets == 0 ? 0 : v->start[v->targets] - v->start[0];
    return (gs_chunk){.edges = edges, .targets = v->targets, .operands = (uint32_t)GS_MIN(operands, edges)};
}

/* False: nothing of the task is left. */
static bool task_work(gs_work *w, const gs_session *s, const gs_batch_edges *e, const gs_batch *batch,
                      const gs_task *task)
{
    const uint32_t file = task->file - s->program->arrays;
    gs_task t = *task;
    gs_edge_set set[2] = {{0}, {0}};
    gs_chunk chunk;

    if (!cut(&t, e))
        return false;
    if (goes_over_edges(&t)) {
        chunk = chunk_of(&e->edges[t.stage], batch->vertices);
        if (chunk.edges == 0)
            return false;
        set[file] = (gs_edge_set){.chunk = &chunk};
    }
    const uint32_t whole = whole_rows(e, &t), rest = t.rows - whole;
    t.rows = t.kind == GS_TASK_VERTEX ? whole : t.rows;
    gs_task_work(w, s->program, set, 1, &t);
    if (t.kind == GS_TASK_VERTEX && rest > 0)
        gs_vertex_work(w, s->program, &e->needs.rest[t.stage], rest);
    return true;
}

double gs_batch_picking(const gs_session *s, uint64_t picked)
{
    const gs_work picking = {.kind = GS_WORK_MEMORY, .amount = {1, 2 * (double)picked}};
    return picked > 0 ? gs_cost_seconds(&s->machine.cost, &picking) : 0;
}

void gs_batch_predict(gs_predicted *out, const gs_session *s, const gs_batch_edges *e, const gs_batch *batch,
                      uint64_t picked, uint64_t copied)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    const gs_link link = gs_cost_link(&s->machine.cost, GS_LINK_TO_DEVICE);
    gs_predicted x = {.stall_seconds = copied > 0 && link.bps > 0 ? (double)copied / link.bps : 0};

    x.vertex_seconds = gs_batch_picking(s, picked);
    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        gs_work w;
        if (!task_work(&w, s, e, batch, &s->plan->task[i]))
            continue;
        *(w.kind == GS_WORK_SUM || w.kind == GS_WORK_EDGES ? &x.edge_seconds : &x.vertex_seconds) +=
            gs_cost_seconds(&s->machine.cost, &w);
    }
    x.seconds = x.edge_seconds + x.vertex_seconds + x.stall_seconds;
    snprintf(x.bottleneck, sizeof(x.bottleneck), "%s", x.stall_seconds > x.seconds / 2  ? "copies to the device"
                                                       : x.edge_seconds > x.seconds / 2 ? "edge sums"
                                                                                        : "vertex programs");
    *out = x;
}

void gs_batch_observe(gs_fit *fit, const gs_session *s, const gs_batch_edges *e, const gs_batch *batch)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];

    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        double begin, end;
        gs_work w;
        if (gs_exec_is_joined(s->run.exec, i) || !task_work(&w, s, e, batch, &s->plan->task[i]))
            continue;
        gs_exec_span(s->run.exec, i, &begin, &end);
        gs_fit_add(fit, &w, end - begin, gs_cost_seconds(&s->machine.cost, &w), 1);
    }
}

void gs_batch_amounts(gs_pass_report *out, const gs_session *s, const gs_batch_edges *e)
{
    const gs_pass *const pass = &s->program->pass[s->pass.train];
    const double most = (double)out->edges;

    out->dense_flops = out->edge_flops = 0;
    out->edges = out->rows = 0;
    for (uint32_t k = pass->first_stage; k < pass->first_stage + pass->stages; k++) {
        const uint64_t edges = s->program->stage[k].sums == 0 ? 0 : chunk_of(&e->edges[k], 0).edges;
        double dense, edge;
        gs_stage_flops(s->program, &s->program->stage[k], e->whole[k], edges, &dense, &edge);
        out->dense_flops += dense;
        out->edge_flops += edge;
        if (e->rows[k] > e->whole[k]) {
            gs_stage_flops(s->program, &e->needs.rest[k], e->rows[k] - e->whole[k], 0, &dense, &edge);
            out->dense_flops += dense;
        }
        out->edges += edges;
        out->rows += e->rows[k];
    }
    if (most > 0)
        out->edge_bytes = (uint64_t)((double)out->edge_bytes * ((double)out->edges / most));
}
