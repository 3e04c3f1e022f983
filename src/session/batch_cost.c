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

/* Edges of a stage and the rows at their ends, as a chunk has them. */
static gs_chunk chunk_of(const gs_edges *v, uint32_t operands)
{
    const uint64_t edges = v->targets == 0 ? 0 : v->start[v->targets] - v->start[0];
    return (gs_chunk){.edges = edges, .targets = v->targets, .operands = (uint32_t)GS_MIN(operands, edges)};
}

static double task_seconds(const gs_session *s, const gs_batch_edges *e, const gs_batch *batch, const gs_task *task,
                           gs_work_kind *kind)
{
    const uint32_t file = task->file - s->program->arrays;
    gs_task t = *task;
    gs_edge_set set[2] = {{0}, {0}};
    gs_chunk chunk;
    gs_work w;

    if (!cut(&t, e))
        return 0;
    if (goes_over_edges(&t)) {
        chunk = chunk_of(&e->edges[t.stage], batch->vertices);
        if (chunk.edges == 0)
            return 0;
        set[file] = (gs_edge_set){.chunk = &chunk};
    }
    gs_task_work(&w, s->program, set, 1, &t);
    *kind = w.kind;
    return gs_cost_seconds(&s->machine.cost, &w);
}

void gs_batch_predict(gs_predicted *out, const gs_session *s, const gs_batch_edges *e, const gs_batch *batch,
                      uint64_t picked, uint64_t copied)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->pass.train];
    const gs_work picking = {.kind = GS_WORK_MEMORY, .amount = {1, 2 * (double)picked}};
    const gs_link link = gs_cost_link(&s->machine.cost, GS_LINK_TO_DEVICE);
    gs_predicted x = {.stall_seconds = copied > 0 && link.bps > 0 ? (double)copied / link.bps : 0};

    x.vertex_seconds = picked > 0 ? gs_cost_seconds(&s->machine.cost, &picking) : 0;
    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        gs_work_kind kind = GS_WORK_MEMORY;
        const double seconds = task_seconds(s, e, batch, &s->plan->task[i], &kind);
        *(kind == GS_WORK_SUM || kind == GS_WORK_EDGES ? &x.edge_seconds : &x.vertex_seconds) += seconds;
    }
    x.seconds = x.edge_seconds + x.vertex_seconds + x.stall_seconds;
    snprintf(x.bottleneck, sizeof(x.bottleneck), "%s", x.stall_seconds > x.seconds / 2  ? "copies to the device"
                                                       : x.edge_seconds > x.seconds / 2 ? "edge sums"
                                                                                        : "vertex programs");
    *out = x;
}
