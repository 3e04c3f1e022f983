/* Kernels over the edges of a chunk: sums of rows, and those of edge programs. */
#include "cuda/launch_edges.h"

#include "base/size.h"
#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

/* Stretches that a launch's edges are cut in for hubs. */
uint32_t gs_cuda_stretches(const gs_edge_kernel *k)
{
    const uint64_t bytes = 2 * sizeof(float) * (uint64_t)GS_MAX(k->row_floats, 1u);
    return (uint32_t)GS_MAX(GS_MIN(GS_CUDA_HUB_BYTES / bytes, (uint64_t)GS_CUDA_HUB_STRETCHES), 1u);
}

/* What every launch is told of a chunk. */
gs_edge_args gs_cuda_chunk_args(const gs_edges *e)
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

/* Hubs are cut by the launch's sizes alone, so that results do not depend on anything else. */
static gs_status launch_edges(gs_cuda *c, const gs_cuda_edge_code *code, gs_edge_args *a)
{
    const gs_edge_kernel *const k = &code->k;
    const uint32_t groups = GS_BLOCK_LANES / k->lanes;

    a->piece_edges = (uint32_t)GS_MAX(gs_div_up(a->edges, gs_cuda_stretches(k)), (uint64_t)GS_CUDA_HUB_EDGES);
    a->pieces = a->edges > a->piece_edges ? (uint32_t)gs_div_up(a->edges, a->piece_edges) : 0;
    a->partial = (float *)(c->state.at + c->state.scratch_offset);
    const gs_status st = gs_cuda_launch(c, code->run, gs_div_up(a->targets + 2ull * a->pieces, groups), k->slices,
                                        groups * k->shared_floats * (uint32_t)sizeof(float), a, k->name);
    if (st != GS_OK || a->pieces == 0 || k->keeps)
        return st;
    return gs_cuda_launch(c, code->merge, gs_div_up(2ull * a->pieces, groups), k->slices, 0, a, k->name);
}

/* ---- sums of rows ---- */

static const gs_cuda_edge_code *find_rows(const gs_cuda *c, const gs_row_sums *rows)
{
    for (uint32_t i = 0; i < c->code.edges; i++)
        if (gs_cuda_sums_rows(&c->code.edge[i], rows))
            return &c->code.edge[i];
    return NULL;
}

gs_status gs_cuda_run_edges(void *context, const gs_edge_launch *l)
{
    gs_cuda *const c = context;
    const gs_sum_types by = l->types == 0 ? GS_TYPES_NONE : l->pick ? GS_TYPES_OF_ROWS : GS_TYPES_OF_SUM;
    const gs_row_sums rows = {by, l->width, GS_MAX(l->types, 1), l->dtype, l->scale != NULL};
    const gs_cuda_edge_code *const code = find_rows(c, &rows);
    gs_edge_args a = gs_cuda_chunk_args(&l->edges);
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

/* ---- kernels of edge programs ---- */

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
    for (uint32_t i = 0; i < c->code.edges && st == GS_OK; i++)
        if (c->code.edge[i].stage == stage && !c->code.edge[i].k.keeps)
            st = gs_cuda_run_edge_kernel(c, r, &c->code.edge[i], NULL);
    return st;
}
