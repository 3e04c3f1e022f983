/* The optimiser's step where parameters, gradients and its state are: one kernel over all of them, as they lie one
 * after the other. */
#include "cuda/kept_params.h"

#include <math.h>

#include "base/size.h"
#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

void gs_cuda_drop_params(gs_cuda *c)
{
    if (c->state.moments != 0)
        c->d->memory_free(c->state.moments);
    c->state.moments = c->state.previous = 0;
    c->state.states = c->state.fault = 0;
    c->state.kept = false;
}

static gs_status clear(const gs_cuda *c, gs_cu_memory memory, uint64_t bytes)
{
    return gs_cuda_check(c, c->d->fill(memory, 0, bytes, c->streams.compute), "clearing memory");
}

gs_status gs_cuda_keep_params(void *context, const float *const *param, uint32_t states)
{
    gs_cuda *const c = context;
    const uint64_t bytes = (states + 1) * c->state.learned_bytes + sizeof(c->state.fault);
    gs_status st;

    if (c->program == NULL || states > 2)
        return gs_fail(GS_EINVAL, "device cuda: parameters of no program, or of an optimiser with %u runs of state",
                       states);
    if ((st = gs_cuda_synchronize(c)) != GS_OK)
        return st;
    gs_cuda_drop_params(c);
    /* between them, too */
    if ((st = clear(c, c->state.at, c->state.learned_bytes)) != GS_OK)
        return st;
    if ((st = gs_cuda_check(c, c->d->memory_alloc(&c->state.moments, bytes), "memory for the optimizer's state")) !=
            GS_OK ||
        (st = clear(c, c->state.moments, bytes)) != GS_OK)
        return st;
    c->state.previous = c->state.moments + states * c->state.learned_bytes;
    for (uint32_t i = 0; i < c->program->params && st == GS_OK; i++)
        if (!c->program->param[i].fixed)
            st = gs_cuda_copy_in(c, gs_cuda_param(c, i), param[i],
                                 gs_param_elements(&c->program->param[i]) * sizeof(float), c->streams.compute,
                                 "copying parameters");
    if (st == GS_OK)
        st = gs_cuda_synchronize(c);
    c->state.states = states;
    c->state.kept = st == GS_OK;
    return st;
}

gs_cu_memory gs_cuda_step_fault(const gs_cuda *c) { return c->state.previous + c->state.learned_bytes; }

/* Their partial sums stand where cuBLAS works, which does nothing between passes; the host adds them in order. */
gs_status gs_cuda_gradient_norm(void *context, double *out)
{
    gs_cuda *const c = context;
    double partial[GS_SQUARES], sum = 0;
    gs_status st;

    _Static_assert(sizeof(partial) <= GS_CUDA_LEAST_WORKSPACE, "the workspace holds the partial sums");
    if (!c->state.kept || c->in_pass)
        return gs_fail(GS_EINVAL, "device cuda: the norm of gradients that are not there");
    const gs_cu_memory at = c->state.at + c->state.workspace_offset;
    gs_squares_args a = {.value = (const float *)(c->state.at + c->state.grads_offset),
                         .partial = (double *)at,
                         .count = c->state.learned_bytes / sizeof(float)};
    if ((st = gs_cuda_begin(c)) == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_SQUARES], GS_SQUARES / GS_BLOCK_LANES, 1, 0, &a, "gs_squares");
    if ((st = gs_cuda_end(c, st)) == GS_OK)
        st = gs_cuda_copy_out(c, partial, at, sizeof(partial), c->streams.compute, "copying the gradients' norm");
    const gs_status ended = gs_cuda_synchronize(c); /* also after a failure: `partial` goes */
    if (st != GS_OK || ended != GS_OK)
        return st != GS_OK ? st : ended;
    for (gs_u32 i = 0; i < GS_SQUARES; i++)
        sum += partial[i];
    *out = sqrt(sum);
    return GS_OK;
}

gs_status gs_cuda_step(void *context, const gs_update *u)
{
    gs_cuda *const c = context;
    gs_status st;

    if (!c->state.kept || c->in_pass || c->state.states != gs_update_states(u))
        return gs_fail(GS_EINVAL, "device cuda: a step of parameters that are not there, or of another optimiser's");
    gs_step_args a = {.value = (float *)c->state.at,
                      .grad = (const float *)(c->state.at + c->state.grads_offset),
                      .first = (float *)c->state.moments,
                      .second = (float *)(c->state.moments + (u->adam ? c->state.learned_bytes : 0)),
                      .previous = (float *)c->state.previous,
                      .fault = (gs_u32 *)gs_cuda_step_fault(c),
                      .count = c->state.learned_bytes / sizeof(float),
                      .adam = u->adam,
                      .rate = u->rate,
                      .decay = u->decay,
                      .add1 = u->add1,
                      .keep2 = u->keep2,
                      .add2 = u->add2,
                      .root = u->root,
                      .epsilon = u->epsilon,
                      .scale = u->scale,
                      .shrink = u->shrink,
                      .momentum = u->momentum};
    if ((st = gs_cuda_begin(c)) == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_STEP], gs_cuda_blocks(a.count / 4), 1, 0, &a, "gs_step");
    return gs_cuda_end(c, st);
}

/* Brings the learned parameters, laid out from `at` on as those that are kept. */
static gs_status bring(gs_cuda *c, float *const *param, gs_cu_memory at)
{
    gs_status st;

    if (!c->state.kept)
        return gs_fail(GS_EINVAL, "device cuda: parameters that are not there");
    if ((st = gs_cuda_enter(c)) != GS_OK)
        return st;
    for (uint32_t i = 0; i < c->program->params && st == GS_OK; i++)
        if (!c->program->param[i].fixed)
            st = gs_cuda_copy_out(c, param[i], at + c->state.param_offset[i],
                                  gs_param_elements(&c->program->param[i]) * sizeof(float), c->streams.compute,
                                  "copying parameters");
    const gs_status ended = gs_cuda_synchronize(c);
    return st != GS_OK ? st : ended;
}

gs_status gs_cuda_fetch_params(void *context, float *const *param)
{
    gs_cuda *const c = context;
    return bring(c, param, c->state.at);
}

gs_status gs_cuda_fetch_previous(void *context, float *const *param)
{
    gs_cuda *const c = context;
    return bring(c, param, c->state.previous);
}

bool gs_cuda_stepped_well(const void *context) { return ((const gs_cuda *)context)->state.fault == 0; }

/* One run of the optimiser's state, tensor by tensor: to `out`, or from `in` where that is not NULL. */
static gs_status move_state(gs_cuda *c, uint32_t run, float *const *out, const float *const *in)
{
    gs_status st;

    if (!c->state.kept || run >= c->state.states)
        return gs_fail(GS_EINVAL, "device cuda: run %u of an optimiser's state that is not there", run);
    if ((st = gs_cuda_enter(c)) != GS_OK)
        return st;
    for (uint32_t i = 0; i < c->program->params && st == GS_OK; i++) {
        const gs_param *const p = &c->program->param[i];
        const uint64_t bytes = gs_param_elements(p) * sizeof(float);
        const gs_cu_memory at = c->state.moments + run * c->state.learned_bytes + c->state.param_offset[i];
        if (p->fixed)
            continue;
        st = in != NULL ? gs_cuda_copy_in(c, at, in[i], bytes, c->streams.compute, "copying the optimizer's state")
                        : gs_cuda_copy_out(c, out[i], at, bytes, c->streams.compute, "copying the optimizer's state");
    }
    const gs_status ended = gs_cuda_synchronize(c);
    return st != GS_OK ? st : ended;
}

gs_status gs_cuda_fetch_state(void *context, uint32_t run, float *const *state)
{
    return move_state(context, run, state, NULL);
}

gs_status gs_cuda_put_state(void *context, uint32_t run, const float *const *state)
{
    return move_state(context, run, NULL, state);
}
