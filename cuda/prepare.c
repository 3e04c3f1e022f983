/* What a program needs before its launches: its kernels, its parameters' memory, scratch. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cuda/cuda_internal.h"

#define ALIGNMENT 256u

/* Kernels of a program, written and listed. */
typedef struct code {
    FILE *out;
    gs_cuda_edge_code *edge;
    gs_cuda_vertex_code *vertex;
    gs_cuda_sequence_code *sequence;
    gs_batch_plan *batch;
    gs_cuda_batch_code *batch_code;
    uint32_t edges, vertices, sequences, batches, batch_codes;
    bool tf32; /* products of edges' rows may round so */
} code;

static gs_status no_memory(void) { return gs_fail(GS_ENOMEM, "device cuda: out of memory for kernels"); }

/* Kernels there can be: a few for each stage. */
static uint32_t most_kernels(const gs_program *p)
{
    uint32_t n = 1;
    for (uint32_t s = 0; s < p->stages; s++)
        n += 4 * GS_STAGE_SUMS + p->stage[s].instrs + p->stage[s].edge_instrs;
    return n;
}

static gs_row_sums kernel_of(const gs_program *p, const gs_stage *s, uint32_t sum, const gs_row_sum *r)
{
    const uint32_t from = p->array[r->array].width, to = s->reg[s->sum[sum].reg].width, width = GS_MIN(from, to);
    return (gs_row_sums){.by = r->types, .width = width, .dtype = p->array[r->array].dtype,
                         .types = GS_MAX(from, to) / width, .scaled = r->scale != GS_NONE};
}

static void write_rows(code *k, const gs_program *p, const gs_stage *s)
{
    for (uint32_t i = 0; i < s->sums; i++) {
        uint32_t at = 0;
        gs_row_sum of;
        if (!gs_sum_of_rows(&of, s, i))
            continue;
        const gs_row_sums rows = kernel_of(p, s, i, &of);
        while (at < k->edges && !gs_cuda_sums_rows(&k->edge[at], &rows))
            at++;
        if (at < k->edges)
            continue;
        k->edge[k->edges].stage = GS_NONE;
        gs_generate_rows(k->out, &k->edge[k->edges++].k, &rows);
    }
}

static gs_status write_edges(code *k, const gs_program *p, uint32_t stage)
{
    gs_edge_kernel kernel[GS_STAGE_SUMS];
    uint32_t n = 0;
    const gs_status st = gs_generate_edges(k->out, kernel, &n, p, stage);
    for (uint32_t i = 0; i < n && st == GS_OK; i++)
        k->edge[k->edges++] = (gs_cuda_edge_code){.k = kernel[i], .stage = stage};
    return st;
}

static gs_status write_vertices(code *k, const gs_program *p, uint32_t stage)
{
    const gs_stage *const s = &p->stage[stage];
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < s->instrs && st == GS_OK;) {
        if (!gs_generates_vertex(s, &s->instr[i])) {
            i++;
            continue;
        }
        gs_vertex_kernel *const v = &k->vertex[k->vertices++].k;
        st = gs_generate_vertex(k->out, v, p, stage, i);
        i = v->end;
    }
    return st;
}

static gs_status write_sequence(code *k, const gs_program *p, const gs_stage *s)
{
    const uint32_t width = p->param[s->sum[0].weight].cols;
    for (uint32_t i = 0; i < k->sequences; i++)
        if (k->sequence[i].k.width == width)
            return GS_OK;
    if (k->sequences == 0)
        fputs(gs_cuda_sequence_text, k->out);
    return gs_generate_sequence(k->out, &k->sequence[k->sequences++].k, width);
}

/* Of a step of a plan of batches: what it keeps, or multiplies. */
static gs_status write_step(code *k, const gs_program *p, const gs_batch_plan *b, const gs_batch_step *step)
{
    const gs_edge_reg *const reg = p->stage[b->stage].edge_reg;
    const gs_batch_kind kind = step->kind == GS_BATCH_ADD_OUTER ? GS_BATCH_OUTER
                               : step->turned                   ? GS_BATCH_PRODUCT_T
                                                                : GS_BATCH_PRODUCT;
    if (step->kind == GS_BATCH_KEEP) {
        gs_cuda_edge_code *const keep = &k->edge[k->edges++];
        keep->stage = b->stage;
        return gs_generate_keep(k->out, &keep->k, p, b->stage, step->x);
    }
    for (uint32_t i = 0; i < k->batch_codes; i++)
        if (gs_cuda_makes_batch(&k->batch_code[i], kind, reg[step->x].width, reg[step->y].width))
            return GS_OK;
    gs_generate_batch(k->out, &k->batch_code[k->batch_codes++].k, kind, reg[step->x].width, reg[step->y].width,
                      k->tf32);
    return GS_OK;
}

static gs_status write_batch(code *k, const gs_program *p, uint32_t stage)
{
    gs_batch_plan *const b = &k->batch[k->batches];
    gs_status st = gs_batch_plan_stage(b, p, stage);
    if (k->batches++ == 0)
        fputs(gs_cuda_batch_text, k->out);
    for (uint32_t i = 0; i < b->steps && st == GS_OK; i++)
        st = write_step(k, p, b, &b->step[i]);
    return st;
}

static gs_status check_instrs(const gs_stage *s)
{
    for (uint32_t i = 0; i < s->instrs; i++)
        if (!gs_op_is(s->instr[i].op, GS_FACT_VERTEX))
            return gs_fail(GS_EUNSUPPORTED, "device cuda: stage \"%s\": %s is not there; use .device cpu", s->name,
                           gs_op_name(s->instr[i].op));
    return GS_OK;
}

static gs_status write_program(code *k, const gs_program *p, bool tf32, char **text, size_t *bytes)
{
    gs_status st = GS_OK;

    *k = (code){.out = open_memstream(text, bytes), .tf32 = tf32};
    k->edge = gs_calloc(most_kernels(p), sizeof(*k->edge));
    k->vertex = gs_calloc(most_kernels(p), sizeof(*k->vertex));
    k->sequence = gs_calloc(p->stages + 1, sizeof(*k->sequence));
    k->batch = gs_calloc(p->stages + 1, sizeof(*k->batch));
    k->batch_code = gs_calloc(most_kernels(p), sizeof(*k->batch_code));
    if (k->out == NULL || k->edge == NULL || k->vertex == NULL || k->sequence == NULL || k->batch == NULL ||
        k->batch_code == NULL)
        st = no_memory();
    for (uint32_t s = 0; s < p->stages && st == GS_OK; s++) {
        if ((st = check_instrs(&p->stage[s])) != GS_OK)
            break;
        write_rows(k, p, &p->stage[s]);
        const bool sequence = p->stage[s].sums > 0 && gs_sum_is_sequence(&p->stage[s].sum[0]);
        st = sequence ? write_sequence(k, p, &p->stage[s]) : write_edges(k, p, s);
        if (st == GS_OK && gs_stage_has_batches(&p->stage[s]))
            st = write_batch(k, p, s);
        if (st == GS_OK)
            st = write_vertices(k, p, s);
    }
    if (k->out != NULL && fclose(k->out) != 0 && st == GS_OK)
        st = no_memory();
    return st;
}

static void drop_code(code *k, char *text)
{
    gs_free(k->edge);
    gs_free(k->vertex);
    gs_free(k->sequence);
    gs_free(k->batch);
    gs_free(k->batch_code);
    free(text); /* open_memstream's */
}

gs_status gs_cuda_write_program(char **text, const gs_program *p, bool tf32)
{
    size_t bytes = 0;
    code k;
    const gs_status st = write_program(&k, p, tf32, text, &bytes);
    drop_code(&k, NULL);
    return st;
}

/* ---- memory ---- */

/* Stretches that a launch's edges are cut in for hubs. */
uint32_t gs_cuda_stretches(const gs_edge_kernel *k)
{
    const uint64_t bytes = 2 * sizeof(float) * (uint64_t)GS_MAX(k->row_floats, 1u);
    return (uint32_t)GS_MAX(GS_MIN(GS_CUDA_HUB_BYTES / bytes, (uint64_t)GS_CUDA_HUB_STRETCHES), 1u);
}

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
static uint64_t scratch_of(const gs_cuda *c, const code *k, const gs_program *p)
{
    uint64_t bytes = GS_CUDA_LOSS_PARTS * sizeof(gs_loss_part);
    for (uint32_t i = 0; i < k->edges; i++)
        bytes = GS_MAX(bytes, 2 * sizeof(float) * (uint64_t)gs_cuda_stretches(&k->edge[i].k) * k->edge[i].k.row_floats);
    for (uint32_t i = 0; i < p->params; i++)
        if (p->param[i].rows == 1 || is_mixed(p, i))
            bytes =
                GS_MAX(bytes, (uint64_t)GS_CUDA_COLSUM_PARTS * gs_param_elements(&p->param[i]) * 2 * sizeof(double));
    for (uint32_t i = 0; i < k->sequences; i++)
        bytes = GS_MAX(bytes, gs_cuda_sequence_bytes(&k->sequence[i].k, (uint32_t)c->processors));
    return gs_align_up(bytes, ALIGNMENT);
}

/* Of the targets of a sequence's launch, sorted. */
static uint64_t order_bytes(const code *k) { return k->sequences > 0 ? GS_CUDA_SORTED * sizeof(uint32_t) : 0; }

/* Of a portion of edges by type. */
static uint64_t batch_bytes(const gs_cuda *c, const code *k)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < k->batches; i++)
        bytes = GS_MAX(bytes, gs_cuda_batch_bytes(c, &k->batch[i]));
    return bytes;
}

/* Of the sums of statistics. */
static uint64_t sums_bytes(const gs_program *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->params; i++)
        if (p->param[i].statistic != GS_STATISTIC_NONE)
            bytes += gs_align_up(2ull * p->param[i].cols * sizeof(double), ALIGNMENT);
    return bytes;
}

/* Parameters, gradients and the optimiser's two runs of state are charged by who owns them; here is what lies beside
 * and between them. */
uint64_t gs_cuda_scratch_bytes(const void *context, const gs_program *p)
{
    char *text = NULL;
    size_t bytes = 0;
    code k;
    const gs_cuda *const c = context;
    (void)write_program(&k, p, gs_cuda_rounds(c), &text, &bytes); /* what it refuses is refused by prepare */
    const uint64_t scratch =
        k.edge == NULL ? 0 : scratch_of(c, &k, p) + order_bytes(&k) + batch_bytes(c, &k);
    drop_code(&k, text);
    return scratch + sums_bytes(p) + GS_CUDA_WORKSPACE + 5 * ALIGNMENT * (uint64_t)(p->params + 1) +
           gs_align_up(sizeof(gs_loss_part), ALIGNMENT);
}

/* Parameters, then gradients, learned ones first in both; then sums of statistics and totals of the loss. */
static void place_params(gs_cuda *c, const gs_program *p)
{
    uint64_t at = 0;
    for (int fixed = 0; fixed < 2; fixed++) {
        for (uint32_t i = 0; i < p->params; i++)
            if (p->param[i].fixed == fixed) {
                c->param_offset[i] = at;
                at += gs_align_up(gs_param_elements(&p->param[i]) * sizeof(float), ALIGNMENT);
            }
        c->learned_bytes = fixed ? c->learned_bytes : at;
    }
    c->grads_offset = at;
    for (uint32_t i = 0; i < p->params; i++)
        c->grad_offset[i] = c->grads_offset + c->param_offset[i];
    at = 2 * at;
    for (uint32_t i = 0; i < p->params; i++) {
        c->sums_offset[i] = at;
        if (p->param[i].statistic != GS_STATISTIC_NONE)
            at += gs_align_up(2ull * p->param[i].cols * sizeof(double), ALIGNMENT);
    }
    c->loss_offset = at;
    c->scratch_offset = at + gs_align_up(sizeof(gs_loss_part), ALIGNMENT);
    c->added_bytes = c->scratch_offset - c->grads_offset;
}

static gs_status take_state(gs_cuda *c, const code *k, const gs_program *p)
{
    c->param_offset = gs_calloc(p->params + 1, sizeof(*c->param_offset));
    c->grad_offset = gs_calloc(p->params + 1, sizeof(*c->grad_offset));
    c->sums_offset = gs_calloc(p->params + 1, sizeof(*c->sums_offset));
    if (c->param_offset == NULL || c->grad_offset == NULL || c->sums_offset == NULL)
        return no_memory();
    place_params(c, p);
    c->scratch_bytes = scratch_of(c, k, p);
    c->order_offset = c->scratch_offset + c->scratch_bytes;
    c->batch_offset = c->order_offset + order_bytes(k);
    c->workspace_offset = c->batch_offset + batch_bytes(c, k);
    c->state_bytes = c->workspace_offset + GS_CUDA_WORKSPACE;
    gs_status st = gs_cuda_check(c, c->d->memory_alloc(&c->state, c->state_bytes), "memory for parameters and scratch");
    if (st == GS_OK && c->d->blas_workspace(c->blas, (void *)(c->state + c->workspace_offset), GS_CUDA_WORKSPACE) != 0)
        return (st = gs_cuda_synchronize(c)) != GS_OK
                   ? st
                   : gs_fail(GS_EDEVICE, "device cuda: cuBLAS does not take its workspace of %u bytes",
                             GS_CUDA_WORKSPACE);
    return st;
}

/* Where sequences' orders of targets stand while they are copied. */
#define ORDER_PAGES (GS_CUDA_ORDER_WORDS * sizeof(uint32_t))

static gs_status take_order(gs_cuda *c)
{
    if (c->sequences == 0)
        return GS_OK;
    if ((c->order = gs_alloc_pages(ORDER_PAGES)) == NULL)
        return no_memory();
    return gs_cuda_check(c, c->d->host_register(c->order, ORDER_PAGES, 0), "pinning host memory");
}

static void give_order(gs_cuda *c)
{
    if (c->order != NULL) {
        c->d->host_unregister(c->order);
        gs_free_pages(c->order, ORDER_PAGES);
    }
    c->order = NULL;
}

/* ---- functions ---- */

static gs_status find_sequences(gs_cuda *c)
{
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < c->sequences && st == GS_OK; i++) {
        const char *const name = c->sequence[i].k.name;
        char back[64];
        snprintf(back, sizeof(back), "%s_back", name);
        if ((st = gs_cuda_check(c, c->d->module_function(&c->sequence[i].forward, c->module, name), name)) == GS_OK)
            st = gs_cuda_check(c, c->d->module_function(&c->sequence[i].window, c->module, back), back);
    }
    if (st == GS_OK && c->sequences > 0)
        st = gs_cuda_check(c, c->d->module_function(&c->turn_weight, c->module, "gs_turn_weight"), "gs_turn_weight");
    if (st == GS_OK && c->sequences > 0)
        st = gs_cuda_check(c, c->d->module_function(&c->spread_gates, c->module, "gs_spread_gates"), "gs_spread_gates");
    return st;
}

static gs_status find_batches(gs_cuda *c)
{
    static const char *const name[] = GS_CUDA_BATCH_NAMES;
    gs_status st = GS_OK;
    for (uint32_t i = 0; i < c->batch_codes && st == GS_OK; i++)
        st = gs_cuda_check(c, c->d->module_function(&c->batch_code[i].run, c->module, c->batch_code[i].k.name),
                           c->batch_code[i].k.name);
    for (uint32_t i = 0; i < GS_CUDA_BATCH_FIXED_COUNT && c->batches > 0 && st == GS_OK; i++)
        st = gs_cuda_check(c, c->d->module_function(&c->batching[i], c->module, name[i]), name[i]);
    return st;
}

static gs_status find_functions(gs_cuda *c)
{
    gs_status st = find_batches(c);
    for (uint32_t i = 0; i < c->edges && st == GS_OK; i++) {
        char merge[64];
        snprintf(merge, sizeof(merge), "%s_merge", c->edge[i].k.name);
        st = gs_cuda_check(c, c->d->module_function(&c->edge[i].run, c->module, c->edge[i].k.name), c->edge[i].k.name);
        if (st == GS_OK && !c->edge[i].k.keeps)
            st = gs_cuda_check(c, c->d->module_function(&c->edge[i].merge, c->module, merge), merge);
    }
    for (uint32_t i = 0; i < c->vertices && st == GS_OK; i++)
        st = gs_cuda_check(c, c->d->module_function(&c->vertex[i].run, c->module, c->vertex[i].k.name),
                           c->vertex[i].k.name);
    return st == GS_OK ? find_sequences(c) : st;
}

void gs_cuda_drop_program(gs_cuda *c)
{
    gs_cuda_quiet(c);
    give_order(c);
    gs_cuda_drop_params(c);
    if (c->module != NULL)
        c->d->module_unload(c->module);
    if (c->state != 0) {
        c->d->memory_free(c->state);
        (void)c->d->blas_stream(c->blas, c->compute); /* which gives it a workspace of its own again */
    }
    gs_free(c->edge);
    gs_free(c->vertex);
    gs_free(c->sequence);
    gs_free(c->batch);
    gs_free(c->batch_code);
    gs_free(c->param_offset);
    gs_free(c->grad_offset);
    gs_free(c->sums_offset);
    gs_free(c->where);
    c->module = NULL;
    c->state = 0;
    c->edge = NULL;
    c->vertex = NULL;
    c->sequence = NULL;
    c->batch = NULL;
    c->batch_code = NULL;
    c->param_offset = c->grad_offset = c->sums_offset = NULL;
    c->where = NULL;
    c->edges = c->vertices = c->sequences = c->batches = c->batch_codes = 0;
    c->program = NULL;
}

static uint32_t most_registers(const gs_program *p)
{
    uint32_t n = 1;
    for (uint32_t s = 0; s < p->stages; s++)
        n = GS_MAX(n, GS_MAX(p->stage[s].regs, p->stage[s].edge_regs));
    return n;
}

gs_status gs_cuda_prepare(void *context, const gs_program *p)
{
    gs_cuda *const c = context;
    char *text = NULL;
    size_t bytes = 0;
    code k;
    gs_status st;

    gs_cuda_drop_program(c);
    if ((st = gs_cuda_enter(c)) != GS_OK)
        return st;
    if ((st = write_program(&k, p, gs_cuda_rounds(c), &text, &bytes)) != GS_OK)
        goto done;
    if (k.edges + k.vertices + k.sequences + k.batches > 0 && (st = gs_cuda_load(c, &c->module, text)) != GS_OK)
        goto done;
    if ((c->where = gs_calloc(most_registers(p), sizeof(*c->where))) == NULL) {
        st = no_memory();
        goto done;
    }
    if ((st = take_state(c, &k, p)) != GS_OK)
        goto done;
    c->edge = k.edge;
    c->vertex = k.vertex;
    c->edges = k.edges;
    c->vertices = k.vertices;
    c->sequence = k.sequence;
    c->sequences = k.sequences;
    c->batch = k.batch;
    c->batches = k.batches;
    c->batch_code = k.batch_code;
    c->batch_codes = k.batch_codes;
    k.edge = NULL;
    k.vertex = NULL;
    k.sequence = NULL;
    k.batch = NULL;
    k.batch_code = NULL;
    if ((st = find_functions(c)) == GS_OK && (st = take_order(c)) == GS_OK)
        c->program = p;
done:
    drop_code(&k, text);
    if (st != GS_OK)
        gs_cuda_drop_program(c);
    return st;
}
