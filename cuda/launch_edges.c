/* Launches over the edges of a chunk. */
#include "base/philox.h"
#include "base/size.h"
#include "cuda/cuda_internal.h"

/* Arrays of a chunk that every launch has. */
typedef struct chunk_binds {
    uint32_t target, start, index, type, weight;
} chunk_binds;

static chunk_binds bind_chunk(gs_cuda *c, const void *target, uint32_t targets, const uint32_t *start, const void *index,
                              uint32_t index_bytes, uint64_t last)
{
    return (chunk_binds){
        .target = gs_cuda_bind_range(c, target, (uint64_t)targets * index_bytes, GS_CUDA_IN),
        .start = gs_cuda_bind_range(c, start, (targets + 1ull) * sizeof(uint32_t), GS_CUDA_IN),
        .index = gs_cuda_bind_range(c, index, last * index_bytes, GS_CUDA_IN),
        .type = GS_NONE,
        .weight = GS_NONE,
    };
}

/* Rows of `width` floats at the operand end, of which `used` are needed. */
static uint32_t bind_operand(gs_cuda *c, const float *rows, uint32_t count, uint64_t width, const void *used, uint32_t used_rows,
                             uint32_t index_bytes)
{
    const uint32_t list = gs_cuda_bind_range(c, used, (uint64_t)used_rows * index_bytes, GS_CUDA_IN);
    const uint32_t b = gs_cuda_bind_range(c, rows, count * width * sizeof(float), GS_CUDA_IN);
    gs_cuda_bind_used(c, b, count, list, used_rows, index_bytes);
    return b;
}

static gs_cu_memory at(const gs_cuda *c, uint32_t bind) { return bind == GS_NONE ? 0 : c->bind[bind].at; }

/* `edges`: see gs_edge_launch. */
static void set_chunk(const gs_cuda *c, gs_edge_args *a, const chunk_binds *b, uint32_t targets, const uint32_t *start,
                      uint32_t index_bytes, uint64_t edges)
{
    a->target = (const void *)at(c, b->target);
    a->start = (const gs_u32 *)at(c, b->start);
    a->index = (const void *)at(c, b->index);
    a->type = (const void *)at(c, b->type);
    a->weight = (const float *)at(c, b->weight);
    a->targets = targets;
    a->index_bytes = index_bytes;
    a->first_edge = edges > 0 ? 0 : start[0];
    a->edges = (uint32_t)gs_edges_end(start, targets, edges) - a->first_edge;
}

/* Hubs are cut by the launch's sizes alone, so that results do not depend on anything else. */
static gs_status launch_edges(gs_cuda *c, const gs_cuda_edge_code *code, gs_edge_args *a)
{
    const gs_edge_kernel *const k = &code->k;
    const uint32_t groups = GS_BLOCK_LANES / k->lanes;
    gs_status st;

    a->piece_edges = (uint32_t)GS_MAX(gs_div_up(a->edges, gs_cuda_stretches(k)), (uint64_t)GS_CUDA_HUB_EDGES);
    a->pieces = a->edges > a->piece_edges ? (uint32_t)gs_div_up(a->edges, a->piece_edges) : 0;
    a->partial = (float *)(c->state + c->scratch_offset);
    st = gs_cuda_launch(c, code->run, gs_div_up(a->targets + 2ull * a->pieces, groups), k->slices,
                        groups * k->shared_floats * (uint32_t)sizeof(float), a, k->name);
    if (st == GS_OK && a->pieces > 0)
        st = gs_cuda_launch(c, code->merge, gs_div_up(2ull * a->pieces, groups), k->slices, 0, a, k->name);
    return st;
}

/* ---- sums of rows ---- */

static const gs_cuda_edge_code *find_rows(const gs_cuda *c, uint32_t width)
{
    for (uint32_t i = 0; i < c->edges; i++)
        if (c->edge[i].stage == GS_NONE && c->edge[i].k.width == width)
            return &c->edge[i];
    return NULL;
}

/* Rows as they are, or (with types) the columns of the edge's type. */
static gs_status run_rows(gs_cuda *c, const gs_edge_launch *l, const gs_typed_launch *typed)
{
    const gs_cuda_edge_code *const code = find_rows(c, l->width);
    const uint64_t stride = (uint64_t)l->width * (typed == NULL ? 1 : typed->types);
    gs_edge_args a = {.stride = stride};
    gs_status st = gs_cuda_begin(c);

    if (code == NULL)
        st = gs_fail(GS_EINVAL, "device cuda: not prepared for sums of rows of %u", l->width);
    const uint64_t last = gs_edges_end(l->start, l->targets, l->edges);
    chunk_binds b = bind_chunk(c, l->target, l->targets, l->start, l->index, l->index_bytes, last);
    if (typed != NULL) {
        a.type_bytes = typed->type_bytes;
        b.type = gs_cuda_bind_range(c, typed->type, last * typed->type_bytes, GS_CUDA_IN);
    }
    const uint32_t operand = bind_operand(c, l->operand, l->operand_rows, stride, l->used, l->used_rows, l->index_bytes);
    const uint32_t acc = gs_cuda_bind_range(c, l->acc, (uint64_t)l->target_rows * l->width * sizeof(float), GS_CUDA_INOUT);
    if (st == GS_OK && (st = gs_cuda_stage(c)) == GS_OK) {
        set_chunk(c, &a, &b, l->targets, l->start, l->index_bytes, l->edges);
        a.in[0] = (const float *)at(c, operand);
        a.acc[0] = (float *)at(c, acc);
        st = launch_edges(c, code, &a);
    }
    return gs_cuda_end(c, st);
}

gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l) { return run_rows(context, l, NULL); }

gs_status gs_cuda_run_typed(void *context, const gs_typed_launch *t)
{
    gs_cuda *const c = context;
    const gs_edge_launch *const l = &t->edges;
    gs_status st;

    if (t->pick)
        return run_rows(c, l, t);
    st = gs_cuda_begin(c);
    const uint64_t last = gs_edges_end(l->start, l->targets, l->edges);
    const chunk_binds b = bind_chunk(c, l->target, l->targets, l->start, l->index, l->index_bytes, last);
    const uint32_t type = gs_cuda_bind_range(c, t->type, last * t->type_bytes, GS_CUDA_IN);
    const uint32_t operand = bind_operand(c, l->operand, l->operand_rows, l->width, l->used, l->used_rows, l->index_bytes);
    const uint32_t acc =
        gs_cuda_bind_range(c, l->acc, (uint64_t)l->target_rows * l->width * t->types * sizeof(float), GS_CUDA_INOUT);
    if (st == GS_OK && (st = gs_cuda_stage(c)) == GS_OK) {
        gs_split_args a = {.target = (const void *)at(c, b.target),
                           .index = (const void *)at(c, b.index),
                           .type = (const void *)at(c, type),
                           .start = (const gs_u32 *)at(c, b.start),
                           .operand = (const float *)at(c, operand),
                           .acc = (float *)at(c, acc),
                           .targets = l->targets,
                           .index_bytes = l->index_bytes,
                           .type_bytes = t->type_bytes,
                           .types = t->types,
                           .width = l->width};
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_SPLIT], gs_div_up(l->targets, GS_BLOCK_LANES / 32), (uint32_t)gs_div_up(l->width, 32), 0,
                            &a, "gs_split");
    }
    return gs_cuda_end(c, st);
}

/* ---- edge programs ---- */

typedef struct sum_binds {
    uint32_t acc, maximum, norm;
} sum_binds;

static void bind_sums(gs_cuda *c, const gs_edge_program_launch *l, sum_binds *b)
{
    const gs_stage *const s = l->stage;
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *const sum = &s->sum[i];
        b[i] = (sum_binds){GS_NONE, GS_NONE, GS_NONE};
        if (sum->kind < GS_SUM_ADD)
            continue;
        const uint64_t row = l->target_rows * sizeof(float);
        b[i].acc = gs_cuda_bind_range(c, l->sum[i].acc, row * s->edge_reg[sum->value].width, GS_CUDA_INOUT);
        if (sum->kind != GS_SUM_ATTEND)
            continue;
        b[i].maximum = gs_cuda_bind_range(c, l->sum[i].maximum, row * s->edge_reg[sum->score].width, GS_CUDA_INOUT);
        b[i].norm = gs_cuda_bind_range(c, l->sum[i].norm, row * s->edge_reg[sum->score].width, GS_CUDA_INOUT);
    }
}

/* Rows that the stage's kernels read; c->where[r] is first the bind, then the address. */
static void bind_rows(gs_cuda *c, const gs_edge_program_launch *l)
{
    for (uint32_t r = 0; r < l->stage->edge_regs; r++) {
        const gs_edge_reg *const reg = &l->stage->edge_reg[r];
        c->where[r] = GS_NONE;
        if (reg->kind == GS_EDGE_OPERAND)
            c->where[r] = bind_operand(c, l->rows[r], l->operand_rows, reg->width, l->used, l->used_rows, l->index_bytes);
        else if (reg->kind == GS_EDGE_TARGET)
            c->where[r] = gs_cuda_bind_range(c, l->rows[r], (uint64_t)l->target_rows * reg->width * sizeof(float), GS_CUDA_IN);
    }
}

static gs_status run_kernels(gs_cuda *c, const gs_edge_program_launch *l, const chunk_binds *chunk, const sum_binds *sums)
{
    const uint32_t stage = (uint32_t)(l->stage - l->program->stage);
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < c->edges && st == GS_OK; i++) {
        const gs_edge_kernel *const k = &c->edge[i].k;
        gs_edge_args a = {.stride = 0};
        if (c->edge[i].stage != stage)
            continue;
        set_chunk(c, &a, chunk, l->targets, l->start, l->index_bytes, l->edges);
        a.type_bytes = l->type_bytes;
        a.epoch = l->epoch;
        gs_random_key(a.key, l->seed, GS_RANDOM_EDGES);
        for (uint32_t q = 0; q < k->inputs; q++)
            a.in[q] = (const float *)(k->input[q].param ? gs_cuda_param(c, k->input[q].index)
                                                        : at(c, (uint32_t)c->where[k->input[q].index]));
        for (uint32_t q = 0; q < k->sums; q++) {
            a.acc[q] = (float *)at(c, sums[k->sum[q]].acc);
            a.maximum[q] = (float *)at(c, sums[k->sum[q]].maximum);
            a.norm[q] = (float *)at(c, sums[k->sum[q]].norm);
        }
        st = launch_edges(c, &c->edge[i], &a);
    }
    return st;
}

static gs_status run_program(gs_cuda *c, const gs_edge_program_launch *l)
{
    sum_binds sums[GS_STAGE_SUMS];
    gs_status st = gs_cuda_begin(c);
    const uint64_t last = gs_edges_end(l->start, l->targets, l->edges);
    chunk_binds b = bind_chunk(c, l->target, l->targets, l->start, l->index, l->index_bytes, last);
    if (l->weight != NULL)
        b.weight = gs_cuda_bind_range(c, l->weight, last * sizeof(float), GS_CUDA_IN);
    if (l->type != NULL)
        b.type = gs_cuda_bind_range(c, l->type, last * l->type_bytes, GS_CUDA_IN);
    bind_rows(c, l);
    bind_sums(c, l, sums);
    if (st == GS_OK && (st = gs_cuda_stage(c)) == GS_OK)
        st = run_kernels(c, l, &b, sums);
    return gs_cuda_end(c, st);
}

gs_status gs_cuda_run_edge_program(void *context, const gs_edge_program_launch *l)
{
    gs_cuda *const c = context;
    const gs_device_pass alone = {.program = l->program, .param = l->param};
    gs_status st, ended;

    if (l->program != c->program)
        return gs_fail(GS_EINVAL, "device cuda: stage \"%s\" was not prepared", l->stage->name);
    if (c->in_pass)
        return run_program(c, l);
    if ((st = gs_cuda_begin_pass(c, &alone)) != GS_OK)
        return st;
    st = run_program(c, l);
    ended = gs_cuda_end_pass(c);
    return st != GS_OK ? st : ended;
}
