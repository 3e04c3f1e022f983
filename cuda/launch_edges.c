/* Launches over the edges of a chunk. */
#include "base/philox.h"
#include "base/size.h"
#include "cuda/cuda_internal.h"

/* Arrays of a chunk that every launch has. */
typedef struct chunk_binds {
    uint32_t target, start, index, type, weight;
} chunk_binds;

static chunk_binds bind_chunk(gs_cuda *c, const gs_edges *e)
{
    const uint64_t end = gs_edges_end(e);
    return (chunk_binds){
        .target = gs_cuda_bind_range(c, e->target, (uint64_t)e->targets * e->index_bytes, GS_CUDA_IN),
        .start = gs_cuda_bind_range(c, e->start, (e->targets + 1ull) * sizeof(uint32_t), GS_CUDA_IN),
        .index = gs_cuda_bind_range(c, e->index, end * e->index_bytes, GS_CUDA_IN),
        .type = GS_NONE,
        .weight = GS_NONE,
    };
}

static uint32_t bind_types(gs_cuda *c, const gs_edges *e)
{
    return e->type == NULL ? GS_NONE
                           : gs_cuda_bind_range(c, e->type, gs_edges_end(e) * e->type_bytes, GS_CUDA_IN);
}

/* Rows of so many bytes at the operand end, of which those that edges name are needed. */
static uint32_t bind_operand(gs_cuda *c, const gs_edges *e, const void *rows, uint64_t bytes)
{
    const uint32_t list = gs_cuda_bind_range(c, e->used, (uint64_t)e->used_rows * e->index_bytes, GS_CUDA_IN);
    const uint32_t b = gs_cuda_bind_range(c, rows, e->operand_rows * bytes, GS_CUDA_IN);
    gs_cuda_bind_used(c, b, e->operand_rows, list, e->used_rows, e->index_bytes);
    return b;
}

static gs_cu_memory at(const gs_cuda *c, uint32_t bind) { return bind == GS_NONE ? 0 : c->bind[bind].at; }

static void set_chunk(const gs_cuda *c, gs_edge_args *a, const chunk_binds *b, const gs_edges *e)
{
    a->target = (const void *)at(c, b->target);
    a->start = (const gs_u32 *)at(c, b->start);
    a->index = (const void *)at(c, b->index);
    a->type = (const void *)at(c, b->type);
    a->weight = (const float *)at(c, b->weight);
    a->targets = e->targets;
    a->index_bytes = e->index_bytes;
    a->type_bytes = b->type == GS_NONE ? 0 : e->type_bytes;
    a->first_edge = e->end > 0 ? 0 : e->start[0];
    a->edges = (uint32_t)gs_edges_end(e) - a->first_edge;
}

static uint32_t mask_of(uint32_t bytes) { return bytes == 0 ? 0 : UINT32_MAX >> (32 - 8 * bytes); }

/* Hubs are cut by the launch's sizes alone, so that results do not depend on anything else. `whole`: the chunk, as the
 * host names it; NULL: targets are taken as they come. */
static gs_status launch_edges(gs_cuda *c, const gs_cuda_edge_code *code, gs_edge_args *a, const gs_edges *whole)
{
    const gs_edge_kernel *const k = &code->k;
    const uint32_t groups = GS_BLOCK_LANES / k->lanes;
    gs_status st;

    a->index_mask = mask_of(a->index_bytes);
    a->type_mask = mask_of(a->type_bytes);
    a->piece_edges = (uint32_t)GS_MAX(gs_div_up(a->edges, gs_cuda_stretches(k)), (uint64_t)GS_CUDA_HUB_EDGES);
    a->pieces = a->edges > a->piece_edges ? (uint32_t)gs_div_up(a->edges, a->piece_edges) : 0;
    a->partial = (float *)(c->state + c->scratch_offset);
    if (whole != NULL && (st = gs_cuda_order_of(c, &a->order, whole->target, whole->start, a->targets, groups,
                                                a->piece_edges)) != GS_OK)
        return st;
    st = gs_cuda_launch(c, code->run, gs_div_up(a->targets + 2ull * a->pieces, groups), k->slices,
                        groups * k->shared_floats * (uint32_t)sizeof(float), a, k->name);
    if (st == GS_OK && a->pieces > 0 && !k->keeps)
        st = gs_cuda_launch(c, code->merge, gs_div_up(2ull * a->pieces, groups), k->slices, 0, a, k->name);
    return st;
}

/* ---- sums of rows ---- */

static const gs_cuda_edge_code *find_rows(const gs_cuda *c, const gs_row_sums *rows)
{
    for (uint32_t i = 0; i < c->edges; i++)
        if (gs_cuda_sums_rows(&c->edge[i], rows))
            return &c->edge[i];
    return NULL;
}

gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l)
{
    gs_cuda *const c = context;
    const gs_edges *const e = &l->edges;
    const gs_sum_types by = l->types == 0 ? GS_TYPES_NONE : l->pick ? GS_TYPES_OF_ROWS : GS_TYPES_OF_SUM;
    const uint32_t types = l->types == 0 ? 1 : l->types;
    const gs_row_sums rows = {by, l->width, types, l->dtype, l->scale != NULL};
    const gs_cuda_edge_code *const code = find_rows(c, &rows);
    const uint64_t wide = (uint64_t)l->width * types;
    gs_edge_args a = {.weight = NULL};
    gs_status st = gs_cuda_begin(c);

    if (code == NULL)
        st = gs_fail(GS_EINVAL, "device cuda: not prepared for sums of%s rows of %u %s of %u types",
                     rows.scaled ? " scaled" : "", l->width, gs_dtype_name(l->dtype), types);
    chunk_binds b = bind_chunk(c, e);
    if (l->types > 0)
        b.type = bind_types(c, e);
    const uint32_t operand =
        bind_operand(c, e, l->operand, (l->pick ? wide : l->width) * gs_dtype_bytes(l->dtype));
    const uint32_t scale =
        rows.scaled ? gs_cuda_bind_range(c, l->scale, e->operand_rows * sizeof(float), GS_CUDA_IN) : GS_NONE;
    const uint32_t acc = gs_cuda_bind_range(
        c, l->acc, e->target_rows * (by == GS_TYPES_OF_SUM ? wide : l->width) * sizeof(float), GS_CUDA_INOUT);
    if (st == GS_OK && (st = gs_cuda_stage(c)) == GS_OK) {
        set_chunk(c, &a, &b, e);
        a.in[0] = (const float *)at(c, operand);
        a.in[1] = (const float *)at(c, scale);
        a.acc[0] = (float *)at(c, acc);
        st = launch_edges(c, code, &a, e);
    }
    return gs_cuda_end(c, st);
}

/* ---- edge programs ---- */

static void bind_sums(gs_cuda *c, const gs_edge_program_launch *l, gs_cuda_sum_binds *b)
{
    const gs_stage *const s = l->stage;
    for (uint32_t i = 0; i < s->sums; i++) {
        const gs_sum *const sum = &s->sum[i];
        b[i] = (gs_cuda_sum_binds){GS_NONE, GS_NONE, GS_NONE};
        if (gs_stage_sums_rows(s, i) || sum->kind == GS_SUM_OUTER)
            continue;
        const uint64_t row = l->edges.target_rows * sizeof(float);
        b[i].acc = gs_cuda_bind_range(c, l->sum[i].acc, row * s->reg[sum->reg].width, GS_CUDA_INOUT);
        if (sum->kind != GS_SUM_ATTEND)
            continue;
        b[i].maximum = gs_cuda_bind_range(c, l->sum[i].maximum, row * s->edge_reg[sum->score].width, GS_CUDA_INOUT);
        b[i].norm = gs_cuda_bind_range(c, l->sum[i].norm, row * s->edge_reg[sum->score].width, GS_CUDA_INOUT);
    }
}

/* Rows that the stage's kernels read; c->where[r] is the bind. */
static void bind_rows(gs_cuda *c, const gs_edge_program_launch *l)
{
    for (uint32_t r = 0; r < l->stage->edge_regs; r++) {
        const gs_edge_reg *const reg = &l->stage->edge_reg[r];
        const uint64_t width = reg->typed ? l->program->array[reg->array].width : reg->width;
        c->where[r] = GS_NONE;
        if (gs_edge_reg_only_rows(l->stage, r))
            continue;
        if (reg->kind == GS_EDGE_OPERAND)
            c->where[r] = bind_operand(c, &l->edges, l->rows[r], width * sizeof(float));
        else if (reg->kind == GS_EDGE_TARGET)
            c->where[r] =
                gs_cuda_bind_range(c, l->rows[r], l->edges.target_rows * width * sizeof(float), GS_CUDA_IN);
    }
}

gs_status gs_cuda_run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept)
{
    const gs_edge_kernel *const k = &code->k;
    const bool whole = r->args.place == NULL;
    gs_edge_args a = r->args;
    for (uint32_t q = 0; q < k->inputs; q++)
        a.in[q] = (const float *)(k->input[q].param ? gs_cuda_param(c, k->input[q].index)
                                                    : c->where[k->input[q].index]);
    for (uint32_t q = 0; q < k->sums; q++) {
        a.acc[q] = (float *)at(c, r->sums[k->sum[q]].acc);
        a.maximum[q] = (float *)at(c, r->sums[k->sum[q]].maximum);
        a.norm[q] = (float *)at(c, r->sums[k->sum[q]].norm);
    }
    if (k->keeps)
        a.acc[0] = kept;
    return launch_edges(c, code, &a, whole ? &r->l->edges : NULL);
}

gs_status gs_cuda_run_edge_kernels(gs_cuda *c, const gs_cuda_edge_run *r)
{
    const uint32_t stage = (uint32_t)(r->l->stage - r->l->program->stage);
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < c->edges && st == GS_OK; i++)
        if (c->edge[i].stage == stage && !c->edge[i].k.keeps)
            st = gs_cuda_run_edge_kernel(c, r, &c->edge[i], NULL);
    return st;
}

/* What the stage does edge by edge; c->where[r] becomes the address. */
static gs_status run_kernels(gs_cuda *c, gs_cuda_edge_run *r, const chunk_binds *chunk)
{
    const gs_edge_program_launch *const l = r->l;
    const uint32_t stage = (uint32_t)(l->stage - l->program->stage);
    set_chunk(c, &r->args, chunk, &l->edges);
    r->args.epoch = l->epoch;
    gs_random_key(r->args.key, l->seed, GS_RANDOM_EDGES);
    for (uint32_t q = 0; q < l->stage->edge_regs; q++)
        c->where[q] = at(c, (uint32_t)c->where[q]);
    for (uint32_t i = 0; i < c->batches; i++)
        if (c->batch[i].stage == stage)
            return gs_cuda_run_batches(c, r, &c->batch[i]);
    return gs_cuda_run_edge_kernels(c, r);
}

static gs_status run_program(gs_cuda *c, const gs_edge_program_launch *l)
{
    gs_cuda_edge_run r = {.l = l};
    gs_status st = gs_cuda_begin(c);
    const gs_edges *const e = &l->edges;
    chunk_binds b = bind_chunk(c, e);
    if (e->weight != NULL)
        b.weight = gs_cuda_bind_range(c, e->weight, gs_edges_end(e) * sizeof(float), GS_CUDA_IN);
    b.type = bind_types(c, e);
    bind_rows(c, l);
    bind_sums(c, l, r.sums);
    if (st == GS_OK && (st = gs_cuda_stage(c)) == GS_OK)
        st = run_kernels(c, &r, &b);
    return gs_cuda_end(c, st);
}

static gs_status check_launch(const gs_cuda *c, const gs_edge_program_launch *l)
{
    const gs_stage *const s = l->stage;
    if (l->program != c->program)
        return gs_fail(GS_EINVAL, "device cuda: stage \"%s\" was not prepared", s->name);
    if (l->edges.type == NULL && gs_stage_has_types(s))
        return gs_fail(GS_EINVAL, "device cuda: stage \"%s\" takes columns by the type of edges that have none",
                       s->name);
    for (uint32_t i = 0; i < s->sums; i++)
        if (s->sum[i].kind == GS_SUM_OUTER && (l->grad == NULL || l->grad[s->sum[i].weight] == NULL))
            return gs_fail(GS_EINVAL, "device cuda: stage \"%s\", sum %u: no gradient of matrices that these rows fit",
                           s->name, i);
    return GS_OK;
}

gs_status gs_cuda_run_edge_program(void *context, const gs_edge_program_launch *l)
{
    gs_cuda *const c = context;
    const gs_device_pass alone = {.program = l->program, .param = l->param, .grad = l->grad};
    gs_status st = check_launch(c, l), ended;

    if (st != GS_OK)
        return st;
    if (c->in_pass)
        return run_program(c, l);
    if ((st = gs_cuda_begin_pass(c, &alone)) != GS_OK)
        return st;
    st = run_program(c, l);
    ended = gs_cuda_end_pass(c);
    return st != GS_OK ? st : ended;
}
