/* launch.c - a compute task meets its bytes: one launch on the device. */
#include "base/clock.h"
#include "base/size.h"
#include "exec/bound.h"
#include "exec/lane.h"
#include "exec/watch.h"

/* The chunk's edges as a launch sees them, or those of the graph that is bound; it accumulates for `rows` rows of the
 * target interval. */
static gs_status edges_of(gs_edges *out, gs_exec *e, const gs_exec_device *x, const gs_task *t, uint32_t rows)
{
    const gs_edges *const bound = gs_exec__bound_edges(e, t);
    gs_chunk_view view, *const v = &view;

    if (bound != NULL) {
        *out = *bound;
        gs_exec__brought_edges(e, x, out);
        out->operand_rows = gs_exec__interval_rows(e, t->operand);
        out->target_rows = rows;
        return GS_OK;
    }
    GS_TRY(gs_exec__view_chunk(e, x, t, v));
    *out = gs_exec_edges_of(v, e->chunks.feature_type);
    out->operand_rows = gs_exec__interval_rows(e, t->operand);
    out->target_rows = rows;
    out->end = v->edges;
    return GS_OK;
}

static gs_row_sum rows_of(const gs_exec *e, const gs_task *t)
{
    gs_row_sum rows = {.scale = GS_NONE};
    (void)gs_sum_of_rows(&rows, &e->program->stage[t->stage], t->sum);
    return rows;
}

static const float *scale_of(const gs_exec *e, const gs_exec_device *x, const gs_task *t, const gs_row_sum *rows)
{
    return rows->scale != GS_NONE ? gs_exec__at(e, x, e->plan->reg[t->first_reg]) : NULL;
}

static gs_status launch_own(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_row_sum rows = rows_of(e, t);
    const gs_own_launch l = {.dtype = e->program->array[rows.array].dtype, .own = gs_exec__at(e, x, t->source),
                             .scale = scale_of(e, x, t, &rows), .acc = gs_exec__at(e, x, t->place), .rows = t->rows,
                             .width = s->reg[s->sum[t->sum].reg].width};
    return gs_device_add_own(x->device, &l);
}

static gs_status launch_edges(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_row_sum rows = rows_of(e, t);
    const gs_array *const array = &e->program->array[rows.array];
    gs_edges edges;
    const gs_status st = edges_of(&edges, e, x, t, t->rows);

    if (st != GS_OK || gs_edges_none(&edges))
        return st;
    if (rows.types != GS_TYPES_NONE && edges.type_bytes == 0)
        return gs_fail(GS_EINVAL, "the model uses edge types, and this store's edges have none");
    const gs_exec_named *const named = gs_exec__named(e, rows.array);
    if (named != NULL) {
        edges.index_bytes = named->edges->index_bytes;
        edges.target = named->edges->target;
        edges.index = named->edges->index;
    }
    const gs_edge_launch l = {.edges = edges, .operand = named != NULL ? named->all : gs_exec__at(e, x, t->source),
                              .acc = gs_exec__at(e, x, t->place), .dtype = array->dtype,
                              .scale = scale_of(e, x, t, &rows),
                              .width = GS_MIN(s->reg[s->sum[t->sum].reg].width, array->width),
                              .types = rows.types == GS_TYPES_NONE ? 0 : e->chunks.edge_types,
                              .pick = rows.types == GS_TYPES_OF_ROWS};
    return gs_device_run_edges(x->device, &l);
}

static gs_accumulator accumulator_of(const gs_exec *e, const gs_exec_device *x, const gs_place *place)
{
    return (gs_accumulator){.acc = gs_exec__at(e, x, place[GS_SUM_ACC]),
                            .maximum = gs_exec__at(e, x, place[GS_SUM_MAXIMUM]),
                            .norm = gs_exec__at(e, x, place[GS_SUM_NORM])};
}

/* A chunk of an LSTM, as far as forward and backward have it in common. */
static gs_sequence_launch sequence_of(const gs_exec *e, const gs_task *t, const gs_edges *edges)
{
    const gs_sum *m = &e->program->stage[t->stage].sum[0];
    return (gs_sequence_launch){.edges = *edges,
                                .width = e->program->param[m->weight].cols, .weight = e->args->param[m->weight]};
}

/* UNROLL and BACK. */
static gs_status launch_sequence(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_place *place = &e->plan->reg[t->first_reg];
    gs_edges edges;
    const gs_status st = edges_of(&edges, e, x, t, gs_exec__interval_rows(e, t->target));

    if (st != GS_OK || gs_edges_none(&edges))
        return st;
    gs_sequence_launch l = sequence_of(e, t, &edges);
    l.gates = gs_exec__at(e, x, t->source);
    l.state = gs_exec__at(e, x, place[GS_STATE]);
    l.cell = gs_exec__at(e, x, place[GS_STATE_CELL]);
    if (t->kind == GS_TASK_UNROLL)
        return gs_device_run_sequence(x->device, &l);
    l.d_state = gs_exec__at(e, x, place[GS_STATE_D]);
    l.d_cell = gs_exec__at(e, x, place[GS_STATE_D_CELL]);
    l.d_gates = gs_exec__at(e, x, t->place);
    l.d_weight = s->sum[0].learned ? x->grad[s->sum[0].weight] : NULL;
    return gs_device_run_sequence_back(x->device, &l);
}

static gs_status launch_program(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_place *place = &e->plan->reg[t->first_reg];
    gs_accumulator sum[GS_STAGE_SUMS];
    const bool sequence = s->sum[0].kind == GS_SUM_LSTM;
    gs_edges edges;
    const gs_status st = edges_of(&edges, e, x, t, sequence ? gs_exec__interval_rows(e, t->target) : t->rows);

    if (st != GS_OK || (gs_edges_none(&edges) && t->whole == 0))
        return st;
    for (uint32_t r = 0; r < s->edge_regs; r++)
        x->edge_rows[r] = gs_exec__at(e, x, place[r]);
    for (uint32_t i = 0; i < s->sums; i++) /* sums of rows have tasks of their own */
        sum[i] = gs_stage_sums_rows(s, i) ? (gs_accumulator){0}
                                          : accumulator_of(e, x, &place[s->edge_regs + i * GS_SUM_PLACES]);
    if (sequence) {
        gs_sequence_launch l = sequence_of(e, t, &edges);
        l.gates = x->edge_rows[s->sum[0].value];
        l.state = sum[0].acc;
        l.cell = sum[0].maximum;
        return gs_device_run_sequence(x->device, &l);
    }
    if (edges.type_bytes == 0 && gs_stage_has_types(s))
        return gs_fail(GS_EINVAL, "the model uses edge types, and this store's edges have none");
    const gs_edge_program_launch l = {.program = e->program, .stage = s, .edges = edges,
                                      .seed = e->args->seed, .epoch = e->args->epoch, .rows = x->edge_rows,
                                      .sum = sum, .param = e->args->param, .grad = x->grad, .whole = t->whole != 0};
    return e->args->rehearse != NULL ? e->args->rehearse(e->args->rehearsal, x->device, &l)
                                     : gs_device_run_edge_program(x->device, &l);
}

static gs_status zero_state(const gs_exec_device *x, const gs_accumulator *a, uint64_t count)
{
    const gs_status st = gs_device_zero(x->device, a->acc, count * sizeof(float));
    return st == GS_OK ? gs_device_zero(x->device, a->maximum, count * sizeof(float)) : st;
}

/* Neutral values before a sum's first chunk, final values after its last. */
static gs_status launch_frame(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_sum *sum = &s->sum[t->sum];
    gs_accumulator a = accumulator_of(e, x, &e->plan->reg[t->first_reg]);
    const uint32_t heads = sum->kind == GS_SUM_ATTEND ? s->reg[sum->lse].width : 0;
    a.beside = sum->beside;
    if (sum->kind == GS_SUM_LSTM)
        return t->kind == GS_TASK_BEGIN ? zero_state(x, &a, (uint64_t)t->rows * s->reg[sum->reg].width) : GS_OK;
    if (t->kind == GS_TASK_BEGIN)
        return gs_device_begin_sum(x->device, sum->kind, &a, t->rows, s->reg[sum->reg].width, heads);
    return gs_device_finish_sum(x->device, sum->kind, &a, t->rows, s->reg[sum->reg].width, heads);
}

/* `s` on the rows of the task, which the registers in x->reg begin with. */
static gs_status launch_rows(gs_exec *e, gs_exec_device *x, const gs_task *t, const gs_stage *s)
{
    const gs_vertex_launch l = {.program = e->program, .stage = s, .rows = t->rows, .reg = x->reg,
                                .param = e->args->param, .grad = x->grad, .statistic = x->statistic,
                                .metrics = &x->metrics, .seed = e->args->seed, .epoch = e->args->epoch,
                                .loss_scale = e->args->loss_scale,
                                .loss_smoothing = e->args->loss_smoothing, .loss_weight = e->args->loss_weight,
                                .loss_factor = gs_exec__loss_factor(e, x, t)};
    return t->rows > 0 ? gs_device_run_vertex(x->device, &l) : GS_OK;
}

/* The stage on the tile's rows, or what is left of it (gs_exec_graph). */
static gs_status launch_tile(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *const s = &e->program->stage[t->stage];
    gs_task whole = *t, rest = *t;

    whole.rows = e->graph == NULL ? t->rows : gs_task_whole_rows(t, &e->graph->binding);
    rest.rows -= whole.rows;
    rest.first_row += whole.rows;
    const gs_status st = launch_rows(e, x, &whole, s);
    if (st != GS_OK || rest.rows == 0)
        return st;
    for (uint32_t r = 0; r < s->regs; r++)
        if (x->reg[r] != NULL)
            x->reg[r] = (uint8_t *)x->reg[r] + (uint64_t)whole.rows * s->reg[r].width * gs_dtype_bytes(s->reg[r].dtype);
    return launch_rows(e, x, &rest, &e->graph->binding.rest[t->stage]);
}

static gs_status launch_vertex(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    for (uint32_t r = 0; r < s->regs; r++)
        x->reg[r] = gs_exec__at(e, x, e->plan->reg[t->first_reg + r]);
    if (e->graph != NULL && e->graph->named != NULL)
        gs_exec__load_named(e, x, t);
    const bool watched = e->args->watch != NULL;
    gs_status st = watched ? gs_exec__watch_vertex(e, x, t, false) : GS_OK;

    if (st == GS_OK)
        st = launch_tile(e, x, t);
    return st == GS_OK && watched ? gs_exec__watch_vertex(e, x, t, true) : st;
}

static gs_status launch_statistics(gs_exec *e, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    for (uint32_t i = 0; i < s->instrs; i++) {
        const uint32_t to = s->instr[i].dst;
        if (gs_op_classof(s->instr[i].op) != GS_CLASS_STATISTIC)
            continue;
        GS_TRY(gs_exec__reduce_statistic(e, to));
        /* Every device has the sums now; those on host memory all put the same numbers to one place. */
        for (uint32_t d = 0; d < e->devices; d++)
            GS_TRY(gs_device_finish_statistic(e->on[d].device, e->program->param[to].statistic, e->args->made[to],
                                              e->on[d].statistic[to], e->program->param[to].cols, e->chunks.vertices));
    }
    return GS_OK;
}

static gs_status timed(gs_exec *e, gs_exec_device *x, const gs_task *t,
                       gs_status (*launch)(gs_exec *e, gs_exec_device *x, const gs_task *t))
{
    const double begin = gs_now();
    const gs_status st = launch(e, x, t);
    x->edge_seconds += gs_now() - begin;
    return st;
}

static gs_status launch(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    switch (t->kind) {
    case GS_TASK_BEGIN:
    case GS_TASK_FINISH:
        return launch_frame(e, x, t);
    case GS_TASK_ZERO:
        return gs_device_zero(x->device, gs_exec__at(e, x, t->place), t->bytes);
    case GS_TASK_SELF:
        return launch_own(e, x, t);
    case GS_TASK_EDGES:
        return timed(e, x, t, gs_task_sums_rows(t) ? launch_edges : launch_program);
    case GS_TASK_COPY:
        return gs_device_copy(x->device, gs_exec__at(e, x, t->place), gs_exec__at(e, x, t->source), t->bytes);
    case GS_TASK_UNROLL:
    case GS_TASK_BACK:
        return timed(e, x, t, launch_sequence);
    case GS_TASK_STATISTICS:
        return launch_statistics(e, t);
    case GS_TASK_VERTEX:
        return launch_vertex(e, x, t);
    default:
        return gs_fail(GS_EINVAL, "task kind %d is not a computation", (int)t->kind);
    }
}

/* Is it a launch that a rehearsal wants? */
static bool is_rehearsed(const gs_exec *e, const gs_task *t)
{
    return t->kind == GS_TASK_EDGES && !gs_task_sums_rows(t) && e->program->stage[t->stage].tried != 0;
}

gs_status gs_exec__launch(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    gs_task there = *t;
    gs_status st;

    if (e->args->rehearse != NULL && !is_rehearsed(e, t))
        return GS_OK;
    if (e->graph == NULL)
        return launch(e, x, t);
    if ((st = gs_exec__zero_behind(e, x, t)) != GS_OK || !gs_task_bind(&there, &e->graph->binding, e->program))
        return st;
    return launch(e, x, &there);
}
