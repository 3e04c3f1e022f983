/* What a device holds: of the host's memory, for a program, and for a run. */
#include "cuda/state.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/cuda_device.h"
#include "cuda/driver.h"
#include "cuda/file_reads.h"
#include "cuda/launch.h"
#include "cuda/gpu_links.h"
#include "cuda/gpu_params.h"
#include "cuda/streams.h"

/* ---- CUDA's libraries ---- */

#define GPUS 64u /* that are told apart */

static bool noted[GPUS];
static uint64_t contexts_bytes, compiler_bytes;

static uint64_t growth(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

void gs_cuda_note_resident(int gpu, const gs_cuda_resident *r)
{
    const unsigned at = (unsigned)gpu % GPUS;
    if (noted[at])
        return;
    noted[at] = true;
    contexts_bytes += growth(r->before, r->made);
    compiler_bytes += growth(r->made, r->compiled);
}

gs_device_libraries gs_cuda_libraries(const void *context)
{
    const uint64_t libraries = gs_cuda_libraries_bytes();
    (void)context;
    if (libraries == 0)
        return (gs_device_libraries){0, 0};
    return (gs_device_libraries){.held = libraries + contexts_bytes + compiler_bytes,
                                 .later = GS_CUDA_FIRST_USE_BYTES + growth(compiler_bytes, GS_CUDA_COMPILER_BYTES)};
}

/* ---- state of a program ---- */

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

/* Bytes that cuBLAS works in: 32 MiB from Hopper on, 4 MiB before it, as its documents ask for; of budgets of less than
 * a GiB a 32nd, but 4 MiB at least. With less it takes kernels that need less. */
static uint64_t workspace_bytes(const gs_cuda *c)
{
    const uint64_t most = c->major >= 9 ? 32 * GS_MIB : GS_CUDA_LEAST_WORKSPACE;
    return gs_cuda_share(c, GS_CUDA_WORKSPACE_PARTS, GS_CUDA_LEAST_WORKSPACE, most);
}

/* Bytes beside and between parameters, gradients, the optimiser's state and scratch. */
static uint64_t state_bytes(const gs_cuda *c, const gs_program *p)
{
    return sums_bytes(p) + workspace_bytes(c) + 5 * ALIGNMENT * (uint64_t)(p->params + 1) +
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

static gs_status take_state(gs_cuda *c, const gs_program *p, const gs_cuda_scratch *scratch)
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
        c, c->d->memory_alloc(&c->state.at, c->state.workspace_offset + workspace_bytes(c)),
        "memory for parameters and scratch");
    void *const workspace = (void *)(c->state.at + c->state.workspace_offset);
    if (st == GS_OK && c->d->blas_workspace(c->blas, workspace, workspace_bytes(c)) != 0)
        return (st = gs_cuda_synchronize(c)) != GS_OK
                   ? st
                   : gs_fail(GS_EDEVICE, "device cuda: cuBLAS does not take its workspace of %llu bytes",
                             (unsigned long long)workspace_bytes(c));
    return st;
}

/* Where sequences' orders of targets stand while they are copied. */
#define ORDER_PAGES (GS_CUDA_ORDER_WORDS * sizeof(uint32_t))

/* For programs with sequences, besides. */
static gs_status take_order(gs_cuda *c)
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

static void give_state(gs_cuda *c)
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

/* ---- memory of a run ---- */

static gs_status pin(gs_cuda *c, const gs_device_range *r)
{
    gs_cuda_memory *const m = &c->memory;
    bool pinned = false;
    if (r->bytes == 0)
        return GS_OK;
    const gs_status st = gs_cuda_pin(c, r->memory, r->bytes, GS_CU_HOST_PORTABLE | GS_CU_HOST_MAPPED, &pinned);
    if (pinned) {
        gs_cu_memory *const at = &m->reached[m->registered];
        m->pinned[m->registered++] = *r;
        if (c->d->host_address(at, r->memory, 0) != 0)
            *at = 0;
    }
    return st;
}

gs_cu_memory gs_cuda_reached(const gs_cuda *c, const void *memory, uint64_t bytes)
{
    const gs_cuda_memory *const m = &c->memory;
    for (uint32_t i = 0; i < m->registered; i++) {
        const uintptr_t first = (uintptr_t)m->pinned[i].memory, at = (uintptr_t)memory;
        if (at >= first && at - first <= m->pinned[i].bytes && bytes <= m->pinned[i].bytes - (at - first))
            return m->reached[i] == 0 ? 0 : m->reached[i] + (at - first);
    }
    return 0;
}

void gs_cuda_give_memory(void *context, void *arena, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_cuda_memory *const m = &c->memory;
    (void)arena, (void)bytes;
    gs_cuda_quiet(c);
    gs_cuda_close_reads(c);
    gs_cuda_leave(c);
    for (uint32_t i = 0; i < m->registered; i++)
        c->d->host_unregister(m->pinned[i].memory);
    if (m->arena != 0)
        c->d->memory_free(m->arena);
    *m = (gs_cuda_memory){.arena = 0};
    c->unpinned[0] = 0;
}

gs_status gs_cuda_take_memory(void *context, const gs_device_memory *want, void **arena)
{
    gs_cuda *const c = context;
    gs_cuda_memory *const m = &c->memory;
    const uint64_t bytes = GS_MAX(want->arena_bytes, 1) + (want->aligned ? GS_BLOCK_BYTES : 0);

    GS_TRY(gs_cuda_check(c, c->d->memory_alloc(&m->arena, bytes), "taking .device_memory"));
    for (size_t i = 0; i < GS_ARRAY_LEN(want->host); i++)
        GS_TRY(pin(c, &want->host[i]));
    *arena = (void *)(want->aligned ? gs_align_up(m->arena, GS_BLOCK_BYTES) : m->arena);
    return GS_OK;
}

/* ---- preparing a program ---- */

/* May products of edges' rows round their factors, and is there a tensor core that takes them? */
static bool rounds(const gs_cuda *c) { return c->compute_type != GS_CUBLAS_COMPUTE_FP32 && c->major >= 8; }

/* ---- scratch ---- */

/* Is its gradient made of dot products of blocks, in parts as column sums are? */
static bool is_mixed(const gs_program *p, uint32_t param)
{
    for (uint32_t s = 0; s < p->stages; s++)
        for (uint32_t i = 0; i < p->stage[s].instrs; i++)
            if (p->stage[s].instr[i].op == GS_OP_MIX_OUTER && p->stage[s].instr[i].dst == param)
                return true;
    return false;
}

/* Scratch is one launch's: sums of hubs, of columns, or of the loss, or tiles of sequences. */
static uint64_t scratch_of(const gs_cuda *c, const gs_cuda_code *k, const gs_program *p)
{
    uint64_t bytes = GS_MAX(GS_CUDA_LOSS_PARTS * sizeof(gs_loss_part),
                            (uint64_t)GS_CUDA_COLSUM_PARTS * GS_LOSS_FIGURES * gs_program_loss_columns(p) *
                                sizeof(double));
    for (uint32_t i = 0; i < k->edges; i++)
        bytes = GS_MAX(bytes, gs_cuda_hub_bytes(c, &k->edge[i].k));
    for (uint32_t i = 0; i < p->params; i++)
        if (p->param[i].rows == 1 || is_mixed(p, i))
            bytes =
                GS_MAX(bytes, (uint64_t)GS_CUDA_COLSUM_PARTS * gs_param_elements(&p->param[i]) * 2 * sizeof(double));
    for (uint32_t i = 0; i < k->sequences; i++)
        bytes = GS_MAX(bytes, gs_cuda_sequence_bytes(c, &k->sequence[i].k));
    return gs_align_up(bytes, ALIGNMENT);
}

/* Bytes for the sorted targets of a sequence's launch. */
static uint64_t order_bytes(const gs_cuda_code *k) { return k->sequences > 0 ? GS_CUDA_SORTED * sizeof(uint32_t) : 0; }

/* Bytes for a portion of edges by type. */
static uint64_t typed_bytes(const gs_cuda *c, const gs_cuda_code *k)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < k->typed_stages; i++)
        bytes = GS_MAX(bytes, gs_cuda_typed_bytes(c, &k->typed[i]));
    return bytes;
}

static gs_cuda_scratch scratch_bytes(const gs_cuda *c, const gs_cuda_code *k, const gs_program *p)
{
    return (gs_cuda_scratch){.launch = scratch_of(c, k, p), .order = order_bytes(k), .typed = typed_bytes(c, k)};
}

/* Parameters, gradients and the optimiser's two runs of state are charged by who owns them; here is what lies beside
 * and between them. */
uint64_t gs_cuda_scratch_bytes(const void *context, const gs_program *p)
{
    const gs_cuda *const c = context;
    char *text = NULL;
    gs_cuda_code k;
    gs_cuda_scratch s = {0, 0, 0};
    (void)gs_cuda_write_code(&k, &text, p, rounds(c)); /* what it refuses is refused by prepare */
    if (k.edge != NULL)
        s = scratch_bytes(c, &k, p);
    gs_cuda_free_code(&k);
    free(text); /* open_memstream's */
    return s.launch + s.order + s.typed + state_bytes(c, p);
}

/* ---- programs ---- */

void gs_cuda_drop_program(gs_cuda *c)
{
    gs_cuda_quiet(c);
    gs_cuda_drop_params(c);
    give_state(c);
    if (c->code.module != NULL)
        c->d->module_unload(c->code.module);
    gs_cuda_free_code(&c->code);
    gs_free(c->where);
    c->where = NULL;
    c->program = NULL;
}

static uint32_t most_registers(const gs_program *p)
{
    uint32_t n = 1;
    for (uint32_t s = 0; s < p->stages; s++)
        n = GS_MAX(n, GS_MAX(p->stage[s].regs, p->stage[s].edge_regs));
    return n;
}

/* The code that was written, c->code from now on. */
static gs_status take_code(gs_cuda *c, const gs_program *p, const char *text)
{
    const gs_cuda_code *const k = &c->code;
    const gs_cuda_scratch scratch = scratch_bytes(c, k, p);
    if (k->edges + k->vertices + k->sequences + k->typed_stages > 0)
        GS_TRY(gs_cuda_load(c, &c->code.module, text));
    if ((c->where = gs_calloc(most_registers(p), sizeof(*c->where))) == NULL)
        return gs_fail(GS_ENOMEM, "device cuda: out of memory for kernels");
    GS_TRY(take_state(c, p, &scratch));
    GS_TRY(gs_cuda_find_code(c));
    return k->sequences > 0 ? take_order(c) : GS_OK;
}

gs_status gs_cuda_prepare(void *context, const gs_program *p)
{
    gs_cuda *const c = context;
    char *text = NULL;
    gs_status st;

    gs_cuda_drop_program(c);
    GS_TRY(gs_cuda_enter(c));
    if ((st = gs_cuda_write_code(&c->code, &text, p, rounds(c))) == GS_OK)
        st = take_code(c, p, text);
    free(text); /* open_memstream's */
    if (st == GS_OK)
        c->program = p;
    else
        gs_cuda_drop_program(c);
    return st;
}
