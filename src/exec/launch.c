/* launch.c - a compute task meets its bytes: one launch on the device. */
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "exec/exec_internal.h"
#include "store/chunk_view.h"

static uint32_t interval_rows(const gs_exec *e, uint32_t interval)
{
    const uint64_t first = (uint64_t)interval * e->interval_rows;
    return (uint32_t)GS_MIN(e->interval_rows, e->vertices - first);
}

/* What the chunk's own header says about types and weights, against the store. */
static gs_status check_edge_data(const gs_exec *e, const gs_chunk_view *v)
{
    if (v->type_bytes != e->type_bytes || (v->weight != NULL) != e->weights)
        return gs_fail(GS_EFORMAT, "its edges carry other data than the store's");
    for (uint64_t k = 0; k < v->edges && v->type_bytes > 0; k++) {
        const uint32_t type = v->type_bytes == 1 ? ((const uint8_t *)v->type)[k] : ((const uint16_t *)v->type)[k];
        if (type >= e->edge_types)
            return gs_fail(GS_EFORMAT, "an edge has type %u of %u", type, e->edge_types);
    }
    return GS_OK;
}

static uint8_t *state_of(const gs_exec *e, const gs_task *t)
{
    const uint64_t set = t->file - e->program->arrays;
    return &e->chunk_seen[(set * e->parts + t->target) * e->parts + t->operand];
}

static gs_chunk_expect expect_of(const gs_exec *e, const gs_task *t)
{
    const gs_exec_chunk *const c = &e->chunk[t->file - e->program->arrays][(uint64_t)t->target * e->parts + t->operand];
    return (gs_chunk_expect){.target_rows = interval_rows(e, t->target), .operand_rows = interval_rows(e, t->operand),
                             .index_bytes = e->index_bytes, .edges = c->edges, .targets = c->targets,
                             .operands = c->operands};
}

/* Indices of a chunk are looked at in depth when its bytes are first used; after that its checksum stands for them.
 * Chunks that are not `from` the ring (copies of what is resident, too) have their checksum verified here too. */
static gs_status view_bytes(gs_exec *e, const gs_task *t, const void *data, gs_region from, gs_chunk_view *view)
{
    const gs_chunk_expect expect = expect_of(e, t);
    uint8_t *const seen = state_of(e, t);
    const bool first = *seen == GS_CHUNK_UNSEEN;
    gs_status st = GS_OK;

    if (first && from != GS_REGION_RING &&
        (st = gs_exec__check_chunks(e, t->file - e->program->arrays, t->target, t->operand, data, t->chunk_bytes)) !=
            GS_OK)
        return st;
    st = gs_chunk_view_make(view, data, t->chunk_bytes, &expect, first || !e->verify);
    if (st == GS_OK && (first || !e->verify))
        st = check_edge_data(e, view);
    if (st != GS_OK)
        return gs_fail(st, "%s: chunk (%u, %u): %s", e->file[t->file].path, t->target,
                       t->operand, gs_last_error());
    *seen = GS_MAX(*seen, GS_CHUNK_CHECKED);
    return GS_OK;
}

static gs_status view_chunk(gs_exec *e, const gs_exec_device *x, const gs_task *t, gs_chunk_view *view)
{
    const gs_chunk_expect expect = expect_of(e, t);
    const void *const data = gs_exec__at(e, x, t->chunk);

    if (!x->hidden && *state_of(e, t) != GS_CHUNK_MERGED)
        return view_bytes(e, t, data, t->chunk.region, view);
    if (x->hidden) /* checked on its way there */
        gs_chunk_view_place(view, data, &expect, e->type_bytes, e->weights);
    else
        gs_chunk_merged_view(view, data, &expect);
    return GS_OK;
}

gs_status gs_exec__check_upload(gs_exec *e, const gs_task *t)
{
    gs_chunk_view view;
    return view_bytes(e, t, gs_exec__host(e, t->source), t->source.region, &view);
}

/* The chunk's edges as a launch sees them; it accumulates for `rows` rows of the target interval. */
static gs_edges edges_of(const gs_exec *e, const gs_exec_device *x, const gs_task *t, const gs_chunk_view *v,
                         uint32_t rows)
{
    return (gs_edges){.index_bytes = v->index_bytes, .targets = v->targets, .target = v->target, .start = v->start,
                      .index = v->index, .count = v->count, .weight = v->weight, .type = v->type,
                      .type_bytes = v->type_bytes, .operand_rows = interval_rows(e, t->operand), .target_rows = rows,
                      .used = v->operand, .used_rows = v->operands, .end = x->hidden ? v->edges : 0};
}

/* Is this the pass of a sum that needs each row and nothing else of an edge? */
static bool sums_rows(const gs_exec *e, const gs_task *t)
{
    return t->kind == GS_TASK_EDGES && e->program->stage[t->stage].sum[t->sum].kind == GS_SUM_ROWS;
}

/* One bit an edge set: other tasks read its chunks too. */
static uint64_t find_others(const gs_exec *e)
{
    uint64_t others = 0;
    for (uint32_t i = 0; i < e->plan->tasks; i++) {
        const gs_task *t = &e->plan->task[i];
        if (t->chunk.region != GS_REGION_NONE && !sums_rows(e, t))
            others |= 1ull << (t->file - e->program->arrays);
    }
    return others;
}

/* Memory that nothing is in before the first pass: the arena, or what lies behind everything that was loaded. */
static uint8_t *unused(const gs_exec *e, uint64_t *bytes)
{
    uint64_t loaded = 0;
    for (uint32_t i = 0; i < e->plan->residents; i++)
        if (e->plan->resident[i].load)
            loaded =
                GS_MAX(loaded, e->plan->resident[i].offset + gs_align_up(e->plan->resident[i].bytes, GS_BLOCK_BYTES));
    const uint64_t resident = e->region_bytes[GS_REGION_RESIDENT], arena = e->region_bytes[GS_REGION_ARENA];
    const bool behind = loaded < resident && resident - loaded > arena;
    *bytes = behind ? resident - loaded : arena;
    return behind ? e->region[GS_REGION_RESIDENT] + loaded : e->on->arena;
}

gs_status gs_exec__merge_chunks(gs_exec *e)
{
    const uint64_t others = find_others(e);
    uint64_t room, most = 0;
    uint8_t *const scratch = unused(e, &room);
    gs_status st = GS_OK;

    if (!gs_device_unified(e->on->device)) /* its edges are its own, and counts would be new to it */
        return GS_OK;
    for (uint32_t i = 0; i < e->plan->tasks && st == GS_OK; i++) {
        const gs_task *t = &e->plan->task[i];
        gs_chunk_view view;
        if (!sums_rows(e, t) || t->chunk.region != GS_REGION_RESIDENT || t->chunk.offset >= e->plan->lasting_bytes ||
            (others >> (t->file - e->program->arrays) & 1) != 0)
            continue;
        uint8_t *const seen = state_of(e, t);
        if (*seen != GS_CHUNK_UNSEEN || (st = view_chunk(e, e->on, t, &view)) != GS_OK)
            continue;
        if (view.edges > room)
            continue;
        most = GS_MAX(most, view.edges);
        if (gs_chunk_merge(&view, gs_exec__host(e, t->chunk), scratch))
            *seen = GS_CHUNK_MERGED;
    }
    memset(scratch, 0, most); /* as it was: rows that no stage makes are read as 0 */
    return st;
}

static const float *scale_of(const gs_exec *e, const gs_exec_device *x, const gs_task *t, const gs_sum *sum)
{
    return sum->scaled ? gs_exec__at(e, x, e->plan->reg[t->first_reg]) : NULL;
}

static gs_status launch_own(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_sum *sum = &s->sum[t->sum];
    const gs_own_launch l = {.dtype = e->program->array[sum->array].dtype, .own = gs_exec__at(e, x, t->source),
                             .scale = scale_of(e, x, t, sum), .acc = gs_exec__at(e, x, t->place), .rows = t->rows,
                             .width = s->reg[sum->reg].width};
    return gs_device_add_own(x->device, &l);
}

static gs_status launch_edges(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_sum *sum = &s->sum[t->sum];
    const uint32_t wide = s->reg[sum->reg].width, row = e->program->array[sum->array].width;
    gs_chunk_view view;
    gs_status st;

    if ((st = view_chunk(e, x, t, &view)) != GS_OK)
        return st;
    if (sum->kind != GS_SUM_ROWS && view.type_bytes == 0)
        return gs_fail(GS_EINVAL, "the model uses edge types, and this store's edges have none");
    const gs_edge_launch l = {.edges = edges_of(e, x, t, &view, t->rows), .operand = gs_exec__at(e, x, t->source),
                              .acc = gs_exec__at(e, x, t->place), .dtype = e->program->array[sum->array].dtype,
                              .scale = scale_of(e, x, t, sum), .width = GS_MIN(wide, row),
                              .types = sum->kind == GS_SUM_ROWS ? 0 : e->edge_types, .pick = sum->kind == GS_SUM_PICK};
    return gs_device_run_edges(x->device, &l);
}

static gs_accumulator accumulator_of(const gs_exec *e, const gs_exec_device *x, const gs_place *place)
{
    return (gs_accumulator){gs_exec__at(e, x, place[GS_SUM_ACC]), gs_exec__at(e, x, place[GS_SUM_MAXIMUM]),
                            gs_exec__at(e, x, place[GS_SUM_NORM])};
}

/* A chunk of an LSTM, as far as forward and backward have it in common. */
static gs_sequence_launch sequence_of(const gs_exec *e, const gs_exec_device *x, const gs_task *t,
                                      const gs_chunk_view *view)
{
    const gs_sum *m = &e->program->stage[t->stage].sum[0];
    return (gs_sequence_launch){.edges = edges_of(e, x, t, view, interval_rows(e, t->target)),
                                .width = e->program->param[m->weight].cols, .weight = e->args->param[m->weight]};
}

/* UNROLL and BACK. */
static gs_status launch_sequence(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    const gs_place *place = &e->plan->reg[t->first_reg];
    gs_chunk_view view;
    gs_status st;

    if ((st = view_chunk(e, x, t, &view)) != GS_OK)
        return st;
    gs_sequence_launch l = sequence_of(e, x, t, &view);
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
    gs_chunk_view view;
    gs_status st;

    if ((st = view_chunk(e, x, t, &view)) != GS_OK)
        return st;
    for (uint32_t r = 0; r < s->edge_regs; r++)
        x->edge_rows[r] = gs_exec__at(e, x, place[r]);
    for (uint32_t i = 0; i < s->sums; i++)
        sum[i] = accumulator_of(e, x, &place[s->edge_regs + i * GS_SUM_PLACES]);
    if (s->sum[0].kind == GS_SUM_LSTM) {
        gs_sequence_launch l = sequence_of(e, x, t, &view);
        l.gates = x->edge_rows[s->sum[0].value];
        l.state = sum[0].acc;
        l.cell = sum[0].maximum;
        return gs_device_run_sequence(x->device, &l);
    }
    if (view.type_bytes == 0 && gs_stage_has_types(s))
        return gs_fail(GS_EINVAL, "the model uses edge types, and this store's edges have none");
    const gs_edge_program_launch l = {.program = e->program, .stage = s, .edges = edges_of(e, x, t, &view, t->rows),
                                      .seed = e->args->seed, .epoch = e->args->epoch, .rows = x->edge_rows,
                                      .sum = sum, .param = e->args->param, .grad = x->grad};
    return gs_device_run_edge_program(x->device, &l);
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
    const gs_accumulator a = accumulator_of(e, x, &e->plan->reg[t->first_reg]);
    const uint32_t heads = sum->kind == GS_SUM_ATTEND ? s->reg[sum->lse].width : 0;
    if (sum->kind == GS_SUM_LSTM)
        return t->kind == GS_TASK_BEGIN ? zero_state(x, &a, (uint64_t)t->rows * s->reg[sum->reg].width) : GS_OK;
    if (t->kind == GS_TASK_BEGIN)
        return gs_device_begin_sum(x->device, sum->kind, &a, t->rows, s->reg[sum->reg].width, heads);
    return gs_device_finish_sum(x->device, sum->kind, &a, t->rows, s->reg[sum->reg].width, heads);
}

static gs_status launch_vertex(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    for (uint32_t r = 0; r < s->regs; r++)
        x->reg[r] = gs_exec__at(e, x, e->plan->reg[t->first_reg + r]);
    const gs_vertex_launch l = {.program = e->program, .stage = s, .rows = t->rows, .reg = x->reg,
                                .param = e->args->param, .grad = x->grad, .statistic = x->statistic,
                                .metrics = &x->metrics, .seed = e->args->seed, .epoch = e->args->epoch,
                                .loss_scale = e->args->loss_scale};
    return gs_device_run_vertex(x->device, &l);
}

static gs_status launch_statistics(gs_exec *e, gs_exec_device *x, const gs_task *t)
{
    const gs_stage *s = &e->program->stage[t->stage];
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < s->instrs && st == GS_OK; i++) {
        const uint32_t to = s->instr[i].dst;
        if (gs_op_classof(s->instr[i].op) != GS_CLASS_STATISTIC)
            continue;
        st = gs_exec__reduce_statistic(e, to);
        /* Every device that has a copy of its own needs it. */
        for (uint32_t d = 0; d < (x->hidden ? e->devices : 1) && st == GS_OK; d++)
            st = gs_device_finish_statistic(e->on[d].device, e->program->param[to].statistic, e->args->made[to],
                                            e->on[d].statistic[to], e->program->param[to].cols, e->vertices);
    }
    return st;
}

static gs_status timed(gs_exec *e, gs_exec_device *x, const gs_task *t,
                       gs_status (*launch)(gs_exec *e, gs_exec_device *x, const gs_task *t))
{
    const double begin = gs_now();
    const gs_status st = launch(e, x, t);
    x->edge_seconds += gs_now() - begin;
    return st;
}

gs_status gs_exec__launch(gs_exec *e, gs_exec_device *x, const gs_task *t)
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
        return timed(e, x, t, launch_edges);
    case GS_TASK_COPY:
        return gs_device_copy(x->device, gs_exec__at(e, x, t->place), gs_exec__at(e, x, t->source), t->bytes);
    case GS_TASK_UNROLL:
    case GS_TASK_BACK:
        return timed(e, x, t, launch_sequence);
    case GS_TASK_PROGRAM:
        return timed(e, x, t, launch_program);
    case GS_TASK_STATISTICS:
        return launch_statistics(e, x, t);
    case GS_TASK_VERTEX:
        return launch_vertex(e, x, t);
    default:
        return gs_fail(GS_EINVAL, "task kind %d is not a computation", (int)t->kind);
    }
}
