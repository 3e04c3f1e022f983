/* Launches over the edges of a chunk. */
#include "base/philox.h"
#include "base/size.h"
#include "cuda/cuda_internal.h"

/* What every launch is told of a chunk. */
static gs_edge_args chunk_args(const gs_edges *e)
{
    return (gs_edge_args){.target = e->target,
                          .index = e->index,
                          .start = e->start,
                          .type = e->type,
                          .weight = e->weight,
                          .targets = e->targets,
                          .index_bytes = e->index_bytes,
                          .type_bytes = e->type == NULL ? 0 : e->type_bytes,
                          .edges = (uint32_t)e->end};
}

static uint32_t mask_of(uint32_t bytes) { return bytes == 0 ? 0 : UINT32_MAX >> (32 - 8 * bytes); }

/* Hubs are cut by the launch's sizes alone, so that results do not depend on anything else. */
static gs_status launch_edges(gs_cuda *c, const gs_cuda_edge_code *code, gs_edge_args *a)
{
    const gs_edge_kernel *const k = &code->k;
    const uint32_t groups = GS_BLOCK_LANES / k->lanes;

    a->index_mask = mask_of(a->index_bytes);
    a->type_mask = mask_of(a->type_bytes);
    a->piece_edges = (uint32_t)GS_MAX(gs_div_up(a->edges, gs_cuda_stretches(k)), (uint64_t)GS_CUDA_HUB_EDGES);
    a->pieces = a->edges > a->piece_edges ? (uint32_t)gs_div_up(a->edges, a->piece_edges) : 0;
    a->partial = (float *)(c->state + c->scratch_offset);
    const gs_status st = gs_cuda_launch(c, code->run, gs_div_up(a->targets + 2ull * a->pieces, groups), k->slices,
                                        groups * k->shared_floats * (uint32_t)sizeof(float), a, k->name);
    if (st != GS_OK || a->pieces == 0 || k->keeps)
        return st;
    return gs_cuda_launch(c, code->merge, gs_div_up(2ull * a->pieces, groups), k->slices, 0, a, k->name);
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
    const gs_sum_types by = l->types == 0 ? GS_TYPES_NONE : l->pick ? GS_TYPES_OF_ROWS : GS_TYPES_OF_SUM;
    const gs_row_sums rows = {by, l->width, GS_MAX(l->types, 1), l->dtype, l->scale != NULL};
    const gs_cuda_edge_code *const code = find_rows(c, &rows);
    gs_edge_args a = chunk_args(&l->edges);
    gs_status st = gs_cuda_begin(c);

    if (code == NULL)
        st = gs_fail(GS_EINVAL, "device cuda: not prepared for sums of%s rows of %u %s of %u types",
                     rows.scaled ? " scaled" : "", l->width, gs_dtype_name(l->dtype), rows.types);
    a.weight = NULL;
    if (l->types == 0) {
        a.type = NULL;
        a.type_bytes = 0;
    }
    a.in[0] = l->operand;
    a.in[1] = l->scale;
    a.acc[0] = l->acc;
    if (st == GS_OK)
        st = launch_edges(c, code, &a);
    return gs_cuda_end(c, st);
}

/* ---- edge programs ---- */

gs_status gs_cuda_run_edge_kernel(gs_cuda *c, const gs_cuda_edge_run *r, const gs_cuda_edge_code *code, float *kept)
{
    const gs_edge_kernel *const k = &code->k;
    gs_edge_args a = r->args;
    for (uint32_t q = 0; q < k->inputs; q++)
        a.in[q] = (const float *)(k->input[q].param ? gs_cuda_param(c, k->input[q].index)
                                                    : c->where[k->input[q].index]);
    for (uint32_t q = 0; q < k->sums; q++) {
        const gs_accumulator *const sum = &r->l->sum[k->sum[q]];
        a.acc[q] = sum->acc;
        a.maximum[q] = sum->maximum;
        a.norm[q] = sum->norm;
    }
    if (k->keeps)
        a.acc[0] = kept;
    return launch_edges(c, code, &a);
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

/* What the stage does edge by edge. */
static gs_status run_kernels(gs_cuda *c, gs_cuda_edge_run *r)
{
    const gs_edge_program_launch *const l = r->l;
    const uint32_t stage = (uint32_t)(l->stage - l->program->stage);
    for (uint32_t q = 0; q < l->stage->edge_regs; q++)
        c->where[q] = (gs_cu_memory)l->rows[q];
    for (uint32_t i = 0; i < c->batches; i++)
        if (c->batch[i].stage == stage)
            return gs_cuda_run_batches(c, r, &c->batch[i]);
    return gs_cuda_run_edge_kernels(c, r);
}

static gs_status run_program(gs_cuda *c, const gs_edge_program_launch *l)
{
    gs_cuda_edge_run r = {.l = l, .args = chunk_args(&l->edges)};
    gs_status st = gs_cuda_begin(c);
    r.args.epoch = l->epoch;
    gs_random_key(r.args.key, l->seed, GS_RANDOM_EDGES);
    if (st == GS_OK)
        st = run_kernels(c, &r);
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
