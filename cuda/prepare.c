/* A program is prepared for its launches: its kernels, its parameters' memory, scratch. */
#include "cuda/prepare.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/kept_params.h"
#include "cuda/launch_typed.h"
#include "cuda/launch_edges.h"
#include "cuda/launch_sequence.h"
#include "cuda/launch_vertex.h"
#include "cuda/streams.h"

#define ALIGNMENT 256u

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
    return s.launch + s.order + s.typed + gs_cuda_state_bytes(c, p);
}

/* ---- programs ---- */

void gs_cuda_drop_program(gs_cuda *c)
{
    gs_cuda_quiet(c);
    gs_cuda_drop_params(c);
    gs_cuda_give_state(c);
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
    gs_status st = GS_OK;
    if (k->edges + k->vertices + k->sequences + k->typed_stages > 0)
        st = gs_cuda_load(c, &c->code.module, text);
    if (st == GS_OK && (c->where = gs_calloc(most_registers(p), sizeof(*c->where))) == NULL)
        st = gs_fail(GS_ENOMEM, "device cuda: out of memory for kernels");
    if (st == GS_OK && (st = gs_cuda_take_state(c, p, &scratch)) == GS_OK)
        st = gs_cuda_find_code(c);
    return st == GS_OK && k->sequences > 0 ? gs_cuda_take_order(c) : st;
}

gs_status gs_cuda_prepare(void *context, const gs_program *p)
{
    gs_cuda *const c = context;
    char *text = NULL;
    gs_status st;

    gs_cuda_drop_program(c);
    if ((st = gs_cuda_enter(c)) != GS_OK)
        return st;
    if ((st = gs_cuda_write_code(&c->code, &text, p, rounds(c))) == GS_OK)
        st = take_code(c, p, text);
    free(text); /* open_memstream's */
    if (st == GS_OK)
        c->program = p;
    else
        gs_cuda_drop_program(c);
    return st;
}
