/* The CPU device: computes on host memory, returns when done. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"
#include "device/cpu/ceilings.h"
#include "device/cpu/cpu.h"
#include "device/cpu/edge_layout.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/lots.h"
#include "device/cpu/row_sums.h"
#include "device/cpu/sequence.h"
#include "device/cpu/team.h"
#include "device/cpu/type_batch.h"
#include "device/cpu/type_matrices.h"
#include "device/cpu/vertex.h"

static void cpu_close(void *context)
{
    gs_cpu *const cpu = context;
    gs_free(cpu->sequence);
    gs_free(cpu->hub_rows);
    gs_free(cpu->matrices);
    gs_free(cpu->kept);
    gs_free(cpu->edge_scratch);
    gs_free(cpu->edge_state);
    gs_free(cpu->edge_slot);
    gs_free(cpu->edge_step);
    gs_free(cpu->step);
    gs_free(cpu->partial);
    gs_free(cpu->transposed);
    gs_free(cpu->outer);
    gs_free(cpu);
}

static const char *cpu_name(const void *context) { return ((const gs_cpu *)context)->name; }

static bool cpu_unified(const void *context)
{
    (void)context;
    return true;
}

/* What a program's largest launches need. */
typedef struct needs {
    uint32_t steps;
    uint64_t partial_floats, transposed_floats, outer_floats, sequence_floats, matrix_floats, kept_floats;
    gs_cpu_edge_needs edge;
} needs;

static void widen(gs_cpu_edge_needs *n, gs_cpu_edge_needs by)
{
    n->steps = GS_MAX(n->steps, by.steps);
    n->states = GS_MAX(n->states, by.states);
    n->floats = GS_MAX(n->floats, by.floats);
    n->row_floats = GS_MAX(n->row_floats, by.row_floats);
}

static needs find_needs(const gs_cpu *cpu, const gs_program *p)
{
    needs n = {0};
    for (uint32_t s = 0; s < p->stages; s++) {
        const gs_stage *const stage = &p->stage[s];
        uint64_t partial = 0, transposed = 0;
        for (uint32_t i = 0; i < stage->instrs; i++) {
            const gs_instr *const in = &stage->instr[i];
            if (gs_cpu__is_transposed(in->op) && in->b.index < p->params)
                transposed += (uint64_t)p->param[in->b.index].rows * p->param[in->b.index].cols;
            if (!gs_op_into_param(in->op) || in->dst >= p->params)
                continue;
            const gs_param *const grad = &p->param[in->dst];
            const bool outer = in->op == GS_OP_OUTER || in->op == GS_OP_FAN_OUTER;
            if (!outer || gs_cpu__outer_is_small(grad->rows, grad->cols, UINT32_MAX))
                partial += gs_cpu__lot_floats(in->op, grad->rows, grad->cols);
            if (outer && !gs_cpu__outer_is_small(grad->rows, grad->cols, 1)) {
                const uint32_t rows = in->op == GS_OP_FAN_OUTER ? stage->reg[in->a.index].width : grad->rows;
                n.outer_floats = GS_MAX(n.outer_floats, gs_cpu__outer_floats(rows, grad->cols));
            }
        }
        n.partial_floats = GS_MAX(n.partial_floats, gs_cpu__partial_floats(partial));
        n.transposed_floats = GS_MAX(n.transposed_floats, transposed);
        n.steps = GS_MAX(n.steps, stage->instrs);
        widen(&n.edge, gs_cpu__edge_needs(stage));
        n.matrix_floats = GS_MAX(n.matrix_floats, gs_cpu__transposed_matrix_floats(p, stage));
        n.kept_floats = GS_MAX(n.kept_floats, gs_cpu__kept_floats(stage));
        n.sequence_floats = GS_MAX(n.sequence_floats, gs_cpu__sequence_floats(cpu, p, stage));
    }
    return n;
}

static uint64_t cpu_scratch_bytes(const void *context, const gs_program *p)
{
    const gs_cpu *const cpu = context;
    const needs n = find_needs(cpu, p);
    const uint64_t edge = n.edge.steps * (sizeof(gs_cpu_edge_step) + sizeof(gs_cpu_edge_slot)) +
                          n.edge.states * sizeof(gs_cpu_edge_state) +
                          (cpu->threads * n.edge.floats + GS_CPU_HUB_PIECES * n.edge.row_floats) * sizeof(float);
    /* every allocation may be rounded up by the C library */
    return n.steps * sizeof(gs_cpu_step) +
           (n.partial_floats + n.transposed_floats + n.outer_floats + n.sequence_floats + n.matrix_floats +
            n.kept_floats) * sizeof(float) +
           edge + 10 * GS_BLOCK_BYTES + gs_cpu__gemm_bytes(context);
}

/* Room for `count` elements; what is there already is kept if it is enough. */
static bool make_room(void *where, uint64_t had, uint64_t count, size_t size)
{
    void *old;
    if (had >= count)
        return true;
    memcpy(&old, where, sizeof(old));
    void *const fresh = gs_malloc_array(count, size);
    if (fresh == NULL)
        return false;
    gs_free(old);
    memcpy(where, &fresh, sizeof(fresh));
    return true;
}

static gs_status prepare_edges(gs_cpu *cpu, const gs_cpu_edge_needs *n)
{
    const gs_status st = GS_ENOMEM;
    if (!make_room(&cpu->edge_step, cpu->edge_steps, n->steps, sizeof(*cpu->edge_step)) ||
        !make_room(&cpu->edge_slot, cpu->edge_steps, n->steps, sizeof(*cpu->edge_slot)) ||
        !make_room(&cpu->edge_state, cpu->edge_states, n->states, sizeof(*cpu->edge_state)))
        return gs_fail(st, "device cpu: out of memory for %u steps of an edge program", n->steps);
    cpu->edge_steps = GS_MAX(cpu->edge_steps, n->steps);
    cpu->edge_states = GS_MAX(cpu->edge_states, n->states);
    if (!make_room(&cpu->edge_scratch, cpu->edge_floats, n->floats, cpu->threads * sizeof(float)))
        return gs_fail(st, "device cpu: out of memory for tiles of edges");
    cpu->edge_floats = GS_MAX(cpu->edge_floats, n->floats);
    if (!make_room(&cpu->hub_rows, cpu->hub_row_floats, n->row_floats, GS_CPU_HUB_PIECES * sizeof(float)))
        return gs_fail(st, "device cpu: out of memory for the partial sums of edges");
    cpu->hub_row_floats = GS_MAX(cpu->hub_row_floats, n->row_floats);
    return GS_OK;
}

static gs_status cpu_prepare(void *context, const gs_program *p)
{
    gs_cpu *const cpu = context;
    const needs n = find_needs(cpu, p);
    const gs_status no_memory = GS_ENOMEM;

    if (!make_room(&cpu->step, cpu->steps, n.steps, sizeof(*cpu->step)))
        return gs_fail(no_memory, "device cpu: out of memory for %u steps", n.steps);
    cpu->steps = GS_MAX(cpu->steps, n.steps);
    if (!make_room(&cpu->partial, cpu->partial_floats, n.partial_floats, sizeof(float)))
        return gs_fail(no_memory, "device cpu: out of memory for the partial sums of rows");
    cpu->partial_floats = GS_MAX(cpu->partial_floats, n.partial_floats);
    if (!make_room(&cpu->transposed, cpu->transposed_floats, n.transposed_floats, sizeof(float)))
        return gs_fail(no_memory, "device cpu: out of memory for transposed weights");
    cpu->transposed_floats = GS_MAX(cpu->transposed_floats, n.transposed_floats);
    if (!make_room(&cpu->outer, cpu->outer_floats, n.outer_floats, sizeof(float)))
        return gs_fail(no_memory, "device cpu: out of memory for the partial sums of gradients");
    cpu->outer_floats = GS_MAX(cpu->outer_floats, n.outer_floats);
    if (!make_room(&cpu->sequence, cpu->sequence_floats, n.sequence_floats, sizeof(float)))
        return gs_fail(no_memory, "device cpu: out of memory for the tiles of an lstm");
    cpu->sequence_floats = GS_MAX(cpu->sequence_floats, n.sequence_floats);
    if (!make_room(&cpu->matrices, cpu->matrix_floats, n.matrix_floats, sizeof(float)))
        return gs_fail(no_memory, "device cpu: out of memory for transposed matrices of edge types");
    cpu->matrix_floats = GS_MAX(cpu->matrix_floats, n.matrix_floats);
    cpu->matrix_stage = NULL;
    if (!make_room(&cpu->kept, cpu->kept_floats, n.kept_floats, sizeof(float)))
        return gs_fail(no_memory, "device cpu: out of memory for rows of edges by type");
    cpu->kept_floats = GS_MAX(cpu->kept_floats, n.kept_floats);
    const gs_status st = prepare_edges(cpu, &n.edge);
    return st == GS_OK ? gs_cpu__gemm_warm(cpu) : st;
}

/* Squares of float32 are exact in float64, so a variance loses digits only where a mean is 10^6 times the deviation. */
static gs_status cpu_finish_statistic(void *context, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                      uint64_t rows)
{
    (void)context;
    for (uint32_t c = 0; c < cols; c++) {
        const double mean = sums[c] / (double)rows, variance = sums[cols + c] / (double)rows - mean * mean;
        dst[c] = (float)(kind == GS_STATISTIC_MEAN ? mean : variance < 0 ? 0 : variance);
    }
    return GS_OK;
}

static gs_status cpu_begin_pass(void *context, const gs_device_pass *pass)
{
    gs_cpu *const cpu = context;
    (void)pass;
    cpu->in_pass = true;
    cpu->transposed_stage = cpu->matrix_stage = NULL;
    return GS_OK;
}

static gs_status cpu_end_pass(void *context)
{
    ((gs_cpu *)context)->in_pass = false;
    return GS_OK;
}

static const gs_device_ops cpu_ops = {
    .close = cpu_close,
    .name = cpu_name,
    .unified = cpu_unified,
    .scratch_bytes = cpu_scratch_bytes,
    .prepare = cpu_prepare,
    .run_vertex = gs_cpu__run_vertex,
    .run_edges = gs_cpu__run_edges,
    .run_edge_program = gs_cpu__run_edge_program,
    .begin_sum = gs_cpu__begin_sum,
    .finish_sum = gs_cpu__finish_sum,
    .run_sequence = gs_cpu__run_sequence,
    .run_sequence_back = gs_cpu__run_sequence_back,
    .copy = gs_cpu__copy,
    .finish_statistic = cpu_finish_statistic,
    .add_own = gs_cpu__add_own,
    .zero = gs_cpu__zero,
    .begin_pass = cpu_begin_pass,
    .end_pass = cpu_end_pass,
    .measure_gemm = gs_cpu__measure_gemm,
    .measure_gather = gs_cpu__measure_gather,
    .measure_copy = gs_cpu__measure_copy,
};

gs_status gs_cpu__open(const gs_device_ops **ops, void **context, unsigned threads)
{
    const gs_cpu_kernels *kernels = NULL;
    const char *note = "";

    const gs_status st = gs_cpu__kernels(&kernels, &note);
    if (st != GS_OK)
        return st;
    gs_cpu *const cpu = gs_calloc(1, sizeof(*cpu));
    if (cpu == NULL)
        return gs_fail(GS_ENOMEM, "device cpu: out of memory");
    cpu->k = kernels;
    cpu->threads = threads > 0 ? threads : gs_machine_cpus();
    snprintf(cpu->name, sizeof(cpu->name), "cpu (%s%s, %u thread%s)", kernels->name, note, cpu->threads,
             cpu->threads == 1 ? "" : "s");
    *ops = &cpu_ops;
    *context = cpu;
    return GS_OK;
}
