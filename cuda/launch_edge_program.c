/* Launches of edge programs. */
#include "cuda/launch_edge_program.h"

#include "base/philox.h"
#include "cuda/cuda_device.h"
#include "cuda/launch_typed.h"
#include "cuda/launch_edges.h"
#include "cuda/pass.h"
#include "cuda/streams.h"

/* Runs the stage's work edge by edge. */
static gs_status run_kernels(gs_cuda *c, gs_cuda_edge_run *r)
{
    const gs_edge_program_launch *const l = r->l;
    const uint32_t stage = (uint32_t)(l->stage - l->program->stage);
    for (uint32_t q = 0; q < l->stage->edge_regs; q++)
        c->where[q] = (gs_cu_memory)l->rows[q];
    for (uint32_t i = 0; i < c->code.typed_stages; i++)
        if (c->code.typed[i].stage == stage)
            return gs_cuda_run_typed(c, r, &c->code.typed[i]);
    return gs_cuda_run_edge_kernels(c, r);
}

static gs_status run_program(gs_cuda *c, const gs_edge_program_launch *l)
{
    gs_cuda_edge_run r = {.l = l, .edges = gs_cuda_edges_of(&l->edges)};
    gs_status st = gs_cuda_begin(c);
    r.edges.all.epoch = l->epoch;
    gs_random_key(r.edges.all.key, l->seed, GS_RANDOM_EDGES);
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
