/* Memory that a program has on the device for as long as it is prepared: parameters, sums of passes, and scratch. */
#include "cuda/state.h"

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

#define ALIGNMENT 256u

static gs_status no_memory(void) { return gs_fail(GS_ENOMEM, "device cuda: out of memory for a program"); }

/* Bytes of the sums of statistics. */
static uint64_t sums_bytes(const gs_program *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->params; i++)
        if (p->param[i].statistic != GS_STATISTIC_NONE)
            bytes += gs_align_up(2ull * p->param[i].cols * sizeof(double), ALIGNMENT);
    return bytes;
}

static uint64_t columns_bytes(const gs_program *p)
{
    return gs_align_up((uint64_t)GS_LOSS_FIGURES * gs_program_loss_columns(p) * sizeof(double), ALIGNMENT);
}

static uint32_t founds(const gs_program *p) { return GS_LOSS_SPLITS * GS_LOSS_SUMS * gs_program_loss_classes(p); }
static uint64_t found_bytes(const gs_program *p) { return gs_align_up(founds(p) * sizeof(uint32_t), ALIGNMENT); }

/* Bytes of the weights of a loss's columns. */
static uint64_t weight_bytes(const gs_program *p)
{
    return gs_align_up((uint64_t)gs_program_loss_width(p) * sizeof(float), ALIGNMENT);
}

uint64_t gs_cuda_workspace(const gs_cuda *c)
{
    const uint64_t most = c->major >= 9 ? 32 * GS_MIB : GS_CUDA_LEAST_WORKSPACE;
    return gs_cuda_share(c, GS_CUDA_WORKSPACE_PARTS, GS_CUDA_LEAST_WORKSPACE, most);
}

uint64_t gs_cuda_state_bytes(const gs_cuda *c, const gs_program *p)
{
    return sums_bytes(p) + gs_cuda_workspace(c) + 5 * ALIGNMENT * (uint64_t)(p->params + 1) +
           gs_align_up(sizeof(gs_loss_part), ALIGNMENT) + columns_bytes(p) + found_bytes(p) + weight_bytes(p);
}

/* Parameters, then gradients, learned ones first in both; then sums of statistics and totals of the loss. */
static void place_params(gs_cuda *c, const gs_program *p)
{
    uint64_t at;
    c->state.learned_bytes = gs_program_place_params(p, c->state.param_offset, &at) * sizeof(float);
    c->state.grads_offset = at * sizeof(float);
    for (uint32_t i = 0; i < p->params; i++) {
        c->state.param_offset[i] *= sizeof(float);
        c->state.grad_offset[i] = c->state.grads_offset + c->state.param_offset[i];
    }
    at = gs_align_up(2 * c->state.grads_offset, ALIGNMENT);
    for (uint32_t i = 0; i < p->params; i++) {
        c->state.sums_offset[i] = at;
        if (p->param[i].statistic != GS_STATISTIC_NONE)
            at += gs_align_up(2ull * p->param[i].cols * sizeof(double), ALIGNMENT);
    }
    c->state.loss_offset = at;
    c->state.columns_offset = at + gs_align_up(sizeof(gs_loss_part), ALIGNMENT);
    c->state.found_offset = c->state.columns_offset + columns_bytes(p);
    c->state.weight_offset = c->state.found_offset + found_bytes(p);
    c->state.scratch_offset = c->state.weight_offset + weight_bytes(p);
    c->state.added_bytes = c->state.weight_offset - c->state.grads_offset;
}

gs_status gs_cuda_take_state(gs_cuda *c, const gs_program *p, const gs_cuda_scratch *scratch)
{
    c->state.param_offset = gs_calloc(p->params + 1, sizeof(*c->state.param_offset));
    c->state.grad_offset = gs_calloc(p->params + 1, sizeof(*c->state.grad_offset));
    c->state.sums_offset = gs_calloc(p->params + 1, sizeof(*c->state.sums_offset));
    c->state.loss_columns = gs_program_loss_columns(p);
    c->state.columns = gs_calloc((uint64_t)c->state.loss_columns * GS_LOSS_FIGURES + 1, sizeof(*c->state.columns));
    c->state.founds = founds(p);
    c->state.found = gs_calloc((uint64_t)c->state.founds + 1, sizeof(*c->state.found));
    if (c->state.param_offset == NULL || c->state.grad_offset == NULL || c->state.sums_offset == NULL ||
        c->state.columns == NULL || c->state.found == NULL)
        return no_memory();
    place_params(c, p);
    c->state.scratch_bytes = scratch->launch;
    c->state.order_offset = c->state.scratch_offset + scratch->launch;
    c->state.typed_offset = c->state.order_offset + scratch->order;
    c->state.workspace_offset = c->state.typed_offset + scratch->typed;
    gs_status st = gs_cuda_check(
        c, c->d->memory_alloc(&c->state.at, c->state.workspace_offset + gs_cuda_workspace(c)),
        "memory for parameters and scratch");
    void *const workspace = (void *)(c->state.at + c->state.workspace_offset);
    if (st == GS_OK && c->d->blas_workspace(c->blas, workspace, gs_cuda_workspace(c)) != 0)
        return (st = gs_cuda_synchronize(c)) != GS_OK
                   ? st
                   : gs_fail(GS_EDEVICE, "device cuda: cuBLAS does not take its workspace of %llu bytes",
                             (unsigned long long)gs_cuda_workspace(c));
    return st;
}

/* Where sequences' orders of targets stand while they are copied. */
#define ORDER_PAGES (GS_CUDA_ORDER_WORDS * sizeof(uint32_t))

gs_status gs_cuda_take_order(gs_cuda *c)
{
    if ((c->state.order = gs_alloc_pages(ORDER_PAGES)) == NULL)
        return no_memory();
    return gs_cuda_pin(c, c->state.order, ORDER_PAGES, 0, &c->state.order_pinned);
}

static void give_order(gs_cuda *c)
{
    if (c->state.order != NULL) {
        if (c->state.order_pinned)
            c->d->host_unregister(c->state.order);
        gs_free_pages(c->state.order, ORDER_PAGES);
    }
    c->state.order = NULL;
}

void gs_cuda_give_state(gs_cuda *c)
{
    give_order(c);
    if (c->state.at != 0) {
        c->d->memory_free(c->state.at);
        (void)c->d->blas_stream(c->blas, c->streams.compute); /* which gives it a workspace of its own again */
    }
    gs_free(c->state.param_offset);
    gs_free(c->state.grad_offset);
    gs_free(c->state.sums_offset);
    gs_free(c->state.columns);
    gs_free(c->state.found);
    c->state = (gs_cuda_state){.at = 0};
}

gs_cu_memory gs_cuda_param(const gs_cuda *c, uint32_t param) { return c->state.at + c->state.param_offset[param]; }
gs_cu_memory gs_cuda_grad(const gs_cuda *c, uint32_t param) { return c->state.at + c->state.grad_offset[param]; }
gs_cu_memory gs_cuda_sums(const gs_cuda *c, uint32_t param) { return c->state.at + c->state.sums_offset[param]; }
