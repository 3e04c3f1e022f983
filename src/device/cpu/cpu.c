/* The CPU device: computes on host memory, returns when done. */
#include "device/cpu/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <dnnl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/philox.h"
#include "base/size.h"
#include "device/cpu/bf16.h"
#include "device/cpu/edge_program.h"
#include "device/cpu/edge_runs.h"
#include "device/cpu/gemm.h"
#include "device/cpu/steps.h"

/* ---- ceilings ---- */

/* What the machine does at best with as little as possible around it. Each repeats a short run for half a second and
 * gives the best of them, as others may share the machine. */

#define SECONDS 0.5
#define ALL UINT64_MAX               /* tasks: all threads */
#define COPY_BYTES (128 * GS_MIB)   /* more than last-level caches hold */
#define GATHER_ROWS (1u << 20)      /* at most, rows a repetition */
#define GATHER_BYTES (256 * GS_MIB) /* about, a repetition */

/* Runs BODY until SECONDS have passed (at least twice: the first one warms) and
 * leaves the best time in BEST. */
#define MEASURE(BEST, BODY)                                                                    \
    do {                                                                                       \
        const double until_ = gs_now() + SECONDS;                                              \
        (BEST) = 1e30;                                                                         \
        for (int run_ = 0; run_ < 2 || gs_now() < until_; run_++) {                            \
            const double start_ = gs_now();                                                    \
            BODY;                                                                              \
            const double took_ = gs_now() - start_;                                            \
            (BEST) = GS_MIN(BEST, took_);                                                      \
        }                                                                                      \
    } while (0)

/* Page-aligned floats with a value everywhere, touched by the threads that will use them. */
static float *filled(uint64_t floats)
{
    float *const p = gs_alloc_pages(floats * sizeof(float));
    if (p == NULL)
        return NULL;
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < floats; i++)
        p[i] = 1.0f;
    return p;
}

static void drop(float *p, uint64_t floats) { gs_free_pages(p, floats * sizeof(float)); }

/* The library's own product of whole matrices, on all threads. */
static gs_status cpu_measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)
{
    const uint64_t a_floats = (uint64_t)rows * in, b_floats = (uint64_t)out * in, c_floats = (uint64_t)rows * out;
    const int before = gs_cpu__enter(context, ALL);
    float *const a = filled(a_floats), *const b = filled(b_floats), *const c = filled(c_floats);
    gs_status st = GS_OK;
    bool fine = true;
    double best = 0;

    if (a == NULL || b == NULL || c == NULL) {
        st = gs_fail(GS_ENOMEM, "device cpu: out of memory for a product of %u x %u x %u", rows, in, out);
        goto done;
    }
    MEASURE(best,
            fine = fine && dnnl_sgemm('N', 'T', rows, out, in, 1.0f, a, in, b, in, 0.0f, c, out) == dnnl_success);
    if (fine)
        *flops_per_second = 2.0 * (double)a_floats * out / best;
    else
        st = gs_fail(GS_EDEVICE, "device cpu: oneDNN could not multiply %u x %u x %u", rows, in, out);
done:
    drop(a, a_floats);
    drop(b, b_floats);
    drop(c, c_floats);
    gs_cpu__leave(before);
    return st;
}

static void fill_index(uint32_t *index, uint32_t n, uint64_t table_rows)
{
    for (uint32_t i = 0; i < n; i += 4) {
        uint32_t word[4];
        gs_philox4x32(word, (const uint32_t[4]){i, 0, 0, 0}, (const uint32_t[2]){17, 0});
        for (uint32_t j = 0; j < 4 && i + j < n; j++)
            index[i + j] = (uint32_t)(((uint64_t)word[j] * table_rows) >> 32);
    }
}

/* One repetition: every thread its share of the rows. */
static float gather_all(const gs_cpu *cpu, const float *table, const uint32_t *index, uint32_t rows, uint32_t width,
                        uint32_t ahead)
{
    float sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        const uint64_t threads = (uint64_t)omp_get_num_threads(), me = (uint64_t)omp_get_thread_num();
        const uint64_t first = rows * me / threads, end = rows * (me + 1) / threads;
        sum += cpu->k->gather(table, index + first, end - first, width, ahead);
    }
    return sum;
}

static gs_status cpu_measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second)
{
    static const uint32_t aheads[] = {4, 8, 16, 32, 64}; /* the best distance depends on the machine */
    const gs_cpu *const cpu = context;
    const uint64_t row_bytes = width * sizeof(float);
    const uint32_t rows = (uint32_t)GS_MAX(GS_MIN(GATHER_BYTES / row_bytes, (uint64_t)GATHER_ROWS), 1024u);
    const int before = gs_cpu__enter(cpu, ALL);
    uint32_t *const index = gs_malloc_array(rows, sizeof(*index));
    float *const table = filled(table_rows * width);
    volatile float sink = 0;
    gs_status st = GS_OK;
    double best = 1e30;

    if (index == NULL || table == NULL) {
        st = gs_fail(GS_ENOMEM, "device cpu: out of memory for a table of %llu rows of %u floats",
                     (unsigned long long)table_rows, width);
        goto done;
    }
    fill_index(index, rows, table_rows);
    for (size_t a = 0; a < GS_ARRAY_LEN(aheads); a++) {
        for (int run = 0; run < 4; run++) {
            const double start = gs_now();
            sink = sink + gather_all(cpu, table, index, rows, width, aheads[a]);
            const double took = gs_now() - start;
            best = GS_MIN(best, took);
        }
    }
    *bytes_per_second = (double)rows * (double)row_bytes / best;
done:
    gs_free(index);
    drop(table, table_rows * width);
    gs_cpu__leave(before);
    return st;
}

static void copy_all(float *to, const float *from)
{
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < COPY_BYTES; i += GS_MIB)
        memcpy((char *)to + i, (const char *)from + i, GS_MIB);
}

/* Bytes copied from one place to another a second, each counted once. */
static gs_status cpu_measure_copy(void *context, double *bytes_per_second)
{
    const uint64_t floats = COPY_BYTES / sizeof(float);
    const int before = gs_cpu__enter(context, ALL);
    float *const from = filled(floats), *const to = filled(floats);
    gs_status st = GS_OK;
    double best = 0;

    if (from == NULL || to == NULL) {
        st = gs_fail(GS_ENOMEM, "device cpu: out of memory for measuring copies");
        goto done;
    }
    MEASURE(best, copy_all(to, from));
    *bytes_per_second = (double)COPY_BYTES / best;
done:
    drop(from, floats);
    drop(to, floats);
    gs_cpu__leave(before);
    return st;
}

/* ---- which kernels may run here ---- */

extern const gs_cpu_kernels gs_cpu__kernels_generic;
static bool always(void) { return true; }

#if defined(__x86_64__) && !defined(GS_ONE_ISA) /* meson.build */
extern const gs_cpu_kernels gs_cpu__kernels_avx2, gs_cpu__kernels_avx512;

/* These ask for everything that meson.build lets the compiler use in the files. F16C is asked of
 * CPUID itself: not every compiler's __builtin_cpu_supports() knows it. */
static bool has_avx2(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) &&
           (c & bit_F16C) != 0;
}

static bool has_avx512(void) { return has_avx2() && __builtin_cpu_supports("avx512f"); }
#define X86(kernels, supported) kernels, supported
#else
#define X86(kernels, supported) NULL, NULL
#endif

static const struct {
    const char *word; /* of GS_ISA */
    const gs_cpu_kernels *kernels;
    bool (*supported)(void);
} isas[] = {
    {"generic", &gs_cpu__kernels_generic, always},
    {"avx2", X86(&gs_cpu__kernels_avx2, has_avx2)},
    {"avx512", X86(&gs_cpu__kernels_avx512, has_avx512)},
};

const gs_cpu_kernels *gs_cpu__test_kernels;

/* The best kernels that this CPU and GS_ISA (generic, avx2, avx512) allow. `note` says, for
 * the device's name, when GS_ISA asked for other ones ("" else). GS_EINVAL for an unknown GS_ISA. */
static gs_status find_kernels(const gs_cpu_kernels **out, const char **note)
{
    const char *const wish = getenv("GS_ISA");
    size_t limit = GS_ARRAY_LEN(isas) - 1, best;

    if (gs_cpu__test_kernels != NULL) {
        *out = gs_cpu__test_kernels;
        *note = " of a test";
        return GS_OK;
    }
    if (wish != NULL && wish[0] != '\0') {
        for (limit = 0; limit < GS_ARRAY_LEN(isas) && strcmp(wish, isas[limit].word) != 0; limit++)
            continue;
        if (limit == GS_ARRAY_LEN(isas))
            return gs_fail(GS_EINVAL, "GS_ISA=%s: not an instruction set; use generic, avx2 or avx512", wish);
    }
    for (best = limit; isas[best].kernels == NULL || !isas[best].supported(); best--)
        continue; /* ends at generic at the latest */

    *out = isas[best].kernels;
    *note = wish == NULL || wish[0] == '\0' ? "" : best == limit ? " as GS_ISA says" : ", the best below GS_ISA here";
    return GS_OK;
}

gs_status gs_cpu_kernels_find(const gs_cpu_kernels **out)
{
    const char *note;
    return find_kernels(out, &note);
}

/* ---- threads of a launch, and launches that are nothing but pieces of memory ---- */

/* Bytes below which a second thread costs more than it brings. */
#define PARALLEL_BYTES (256 * GS_KIB)

/* One or all, nothing between: libgomp ends the threads that a smaller team leaves out. */
int gs_cpu__enter(const gs_cpu *cpu, uint64_t tasks)
{
    const int before = omp_get_max_threads();
    omp_set_num_threads(tasks == 1 ? 1 : (int)cpu->threads);
    return before;
}

void gs_cpu__leave(int before) { omp_set_num_threads(before); }

float *gs_cpu__tile(const gs_cpu *cpu)
{
    const gs_cpu_room *const tiles = &cpu->room[GS_CPU_TILES];
    return tiles->at + (uint64_t)omp_get_thread_num() * tiles->floats;
}

/* Pieces of a flat launch: one a thread, none for what one thread does as fast. */
static uint64_t piece_bytes(const gs_cpu *cpu, uint64_t bytes)
{
    return bytes < PARALLEL_BYTES ? bytes : gs_align_up(gs_div_up(bytes, cpu->threads), 64);
}

static gs_status cpu_add_own(void *context, const gs_own_launch *l)
{
    const gs_cpu *const cpu = context;
    const uint64_t row = l->width * sizeof(float), piece = gs_div_up(piece_bytes(cpu, l->rows * row), row);
    const int before = gs_cpu__enter(cpu, gs_div_up(l->rows, piece));
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < l->rows; i += piece)
        cpu->k->add_own(l, i, GS_MIN(i + piece, l->rows));
    gs_cpu__leave(before);
    return GS_OK;
}

static gs_status cpu_zero(void *context, void *memory, uint64_t bytes)
{
    const gs_cpu *const cpu = context;
    const uint64_t piece = piece_bytes(cpu, bytes);
    const int before = gs_cpu__enter(cpu, gs_div_up(bytes, piece));
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < bytes; i += piece)
        memset((char *)memory + i, 0, GS_MIN(piece, bytes - i));
    gs_cpu__leave(before);
    return GS_OK;
}

static gs_status cpu_copy(void *context, void *to, const void *from, uint64_t bytes)
{
    const gs_cpu *const cpu = context;
    const uint64_t piece = piece_bytes(cpu, bytes);
    const int before = gs_cpu__enter(cpu, gs_div_up(bytes, piece));
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < bytes; i += piece)
        memcpy((char *)to + i, (const char *)from + i, GS_MIN(piece, bytes - i));
    gs_cpu__leave(before);
    return GS_OK;
}

/* ---- opening, and scratch ---- */

static void cpu_close(void *context)
{
    gs_cpu *const cpu = context;
    for (int use = 0; use < GS_CPU_USES; use++)
        gs_free(cpu->room[use].at);
    gs_cpu__free_run_stages(cpu);
    gs_free(cpu->edge_state);
    gs_free(cpu->edge_slot);
    gs_free(cpu->edge_step);
    gs_free(cpu->step);
    gs_free(cpu);
}

static const char *cpu_name(const void *context) { return ((const gs_cpu *)context)->name; }
static bool cpu_rounds(const void *context) { return ((const gs_cpu *)context)->bf16 != NULL; }

/* Scratch of a program's largest launches. */
typedef struct needs {
    uint32_t steps, edge_steps, edge_states;
    uint64_t floats[GS_CPU_USES];
} needs;

static void widen(needs *n, gs_cpu_use use, uint64_t floats) { n->floats[use] = GS_MAX(n->floats[use], floats); }

/* How many of its floats a use has. */
static uint64_t pieces_of(const gs_cpu *cpu, gs_cpu_use use)
{
    return use == GS_CPU_TILES ? cpu->threads : use == GS_CPU_HUB_ROWS ? GS_CPU_HUB_PIECES : 1;
}

static needs find_needs(const gs_cpu *cpu, const gs_program *p)
{
    needs n = {0};
    for (uint32_t s = 0; s < p->stages; s++) {
        const gs_stage *const stage = &p->stage[s];
        const gs_cpu_edge_needs edge = gs_cpu__edge_needs(p, stage);
        const gs_cpu_run_needs run = gs_cpu__run_needs(p, stage);
        uint64_t partial = 0, transposed = 0;
        for (uint32_t i = 0; i < stage->instrs; i++) {
            const gs_instr *const in = &stage->instr[i];
            if (gs_cpu__is_transposed(cpu, in->op) && in->b.index < p->params)
                transposed += (uint64_t)p->param[in->b.index].rows * p->param[in->b.index].cols;
            if (gs_op_has_column_sums(in->op))
                partial += gs_cpu__lot_floats(in->op, 1, stage->reg[in->a.index].width);
            if (!gs_op_into_param(in->op) || in->dst >= p->params)
                continue;
            const gs_param *const grad = &p->param[in->dst];
            const bool outer = in->op == GS_OP_OUTER || in->op == GS_OP_FAN_OUTER;
            if (!outer || gs_cpu__outer_is_small(grad->rows, grad->cols, UINT32_MAX))
                partial += gs_cpu__lot_floats(in->op, grad->rows, grad->cols);
            if (outer && !gs_cpu__outer_is_small(grad->rows, grad->cols, 1)) {
                const uint32_t rows = in->op == GS_OP_FAN_OUTER ? stage->reg[in->a.index].width : grad->rows;
                widen(&n, GS_CPU_OUTER, gs_cpu__outer_floats(rows, grad->cols));
            }
        }
        n.steps = GS_MAX(n.steps, stage->instrs);
        n.edge_steps = GS_MAX(n.edge_steps, GS_MAX(edge.steps, run.before.steps));
        n.edge_states = GS_MAX(n.edge_states, edge.states);
        widen(&n, GS_CPU_PARTIAL, gs_cpu__partial_floats(partial));
        widen(&n, GS_CPU_TRANSPOSED, transposed);
        widen(&n, GS_CPU_SEQUENCE, gs_cpu__sequence_floats(cpu, p, stage));
        widen(&n, GS_CPU_MATRICES, gs_cpu__transposed_matrix_floats(p, stage));
        widen(&n, GS_CPU_KEPT, GS_MAX(run.floats, gs_cpu__kept_floats(stage)));
        widen(&n, GS_CPU_TILES, GS_MAX(edge.floats, run.before.floats));
        widen(&n, GS_CPU_NUMBERS, edge.packed);
        widen(&n, GS_CPU_HUB_ROWS, GS_MAX(edge.row_floats, run.before.row_floats));
    }
    return n;
}

static uint64_t cpu_scratch_bytes(const void *context, const gs_program *p)
{
    const gs_cpu *const cpu = context;
    const needs n = find_needs(cpu, p);
    uint64_t bytes = n.steps * sizeof(gs_cpu_step) +
                     n.edge_steps * (sizeof(gs_cpu_edge_step) + sizeof(gs_cpu_edge_slot)) +
                     n.edge_states * sizeof(gs_cpu_edge_state) + gs_cpu__run_stage_bytes(p);
    for (int use = 0; use < GS_CPU_USES; use++)
        bytes += pieces_of(cpu, use) * n.floats[use] * sizeof(float);
    /* every allocation may be rounded up by the C library */
    return bytes + 10 * GS_BLOCK_BYTES + gs_cpu__gemm_bytes(context);
}

/* Room for `count` elements; what is there already is kept if it is enough. */
static gs_status make_room(void *where, uint64_t had, uint64_t count, size_t size, const char *what)
{
    void *old;
    if (had >= count)
        return GS_OK;
    memcpy(&old, where, sizeof(old));
    void *const fresh = gs_malloc_array(count, size);
    if (fresh == NULL)
        return gs_fail(GS_ENOMEM, "device cpu: out of memory for %s", what);
    gs_free(old);
    memcpy(where, &fresh, sizeof(fresh));
    return GS_OK;
}

static gs_status prepare_floats(gs_cpu *cpu, const uint64_t floats[GS_CPU_USES])
{
    static const char *const what[GS_CPU_USES] = {
        "the partial sums of rows", "transposed weights", "the partial sums of gradients", "the tiles of an lstm",
        "transposed matrices of edge types", "rows of edges by type", "tiles of edges", "the partial sums of edges",
        "packed numbers of vertices"};

    for (int use = 0; use < GS_CPU_USES; use++) {
        gs_cpu_room *const room = &cpu->room[use];
        GS_TRY(make_room(&room->at, room->floats, floats[use], pieces_of(cpu, use) * sizeof(float), what[use]));
        room->floats = GS_MAX(room->floats, floats[use]);
    }
    return GS_OK;
}

static gs_status cpu_prepare(void *context, const gs_program *p)
{
    static const char steps[] = "the steps of a program", edge_steps[] = "the steps of an edge program";
    gs_cpu *const cpu = context;
    const needs n = find_needs(cpu, p);

    GS_TRY(make_room(&cpu->step, cpu->steps, n.steps, sizeof(*cpu->step), steps));
    cpu->steps = GS_MAX(cpu->steps, n.steps);
    GS_TRY(make_room(&cpu->edge_step, cpu->edge_steps, n.edge_steps, sizeof(*cpu->edge_step), edge_steps));
    GS_TRY(make_room(&cpu->edge_slot, cpu->edge_steps, n.edge_steps, sizeof(*cpu->edge_slot), edge_steps));
    GS_TRY(make_room(&cpu->edge_state, cpu->edge_states, n.edge_states, sizeof(*cpu->edge_state), edge_steps));
    cpu->edge_steps = GS_MAX(cpu->edge_steps, n.edge_steps);
    cpu->edge_states = GS_MAX(cpu->edge_states, n.edge_states);
    cpu->matrix_stage = NULL;
    GS_TRY(gs_cpu__prepare_run_stages(cpu, p));
    GS_TRY(prepare_floats(cpu, n.floats));
    return gs_cpu__gemm_warm(cpu);
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

static const gs_device_compute compute = {
    .scratch_bytes = cpu_scratch_bytes,
    .prepare = cpu_prepare,
    .begin_pass = cpu_begin_pass,
    .end_pass = cpu_end_pass,
    .run_vertex = gs_cpu__run_vertex,
    .run_edges = gs_cpu__run_edges,
    .run_edge_program = gs_cpu__run_edge_stage,
    .begin_sum = gs_cpu__begin_sum,
    .finish_sum = gs_cpu__finish_sum,
    .run_sequence = gs_cpu__run_sequence,
    .run_sequence_back = gs_cpu__run_sequence_back,
    .finish_statistic = cpu_finish_statistic,
    .add_own = cpu_add_own,
    .copy = cpu_copy,
    .zero = cpu_zero,
};

static const gs_device_ceilings ceilings = {
    .measure_gemm = cpu_measure_gemm,
    .measure_gather = cpu_measure_gather,
    .measure_copy = cpu_measure_copy,
};

static const gs_device_ops ops = {
    .close = cpu_close,
    .name = cpu_name,
    .rounds = cpu_rounds,
    .compute = &compute,
    .ceilings = &ceilings,
    .memory = &gs_device__host_memory,
    .links = &gs_device__host_links,
    .params = &gs_device__host_params,
    .reads = &gs_device__host_reads,
};

static gs_status cpu_open(const gs_device_ops **out, void **context, const gs_device_choice *choice)
{
    const gs_cpu_kernels *kernels = NULL;
    const unsigned threads = choice->threads > 0 ? choice->threads : gs_machine_cpus();
    const char *note = "";

    GS_TRY(find_kernels(&kernels, &note));
    GS_TRY(gs_threads_check(threads));
    gs_cpu *const cpu = gs_calloc(1, sizeof(*cpu));
    if (cpu == NULL)
        return gs_fail(GS_ENOMEM, "device cpu: out of memory");
    cpu->k = kernels;
    cpu->bf16 = choice->matmul == GS_MATMUL_BF16 ? gs_cpu__bf16_find(kernels) : NULL;
    cpu->threads = threads;
    snprintf(cpu->name, sizeof(cpu->name), "cpu (%s%s, %u thread%s)", kernels->name, note, cpu->threads,
             cpu->threads == 1 ? "" : "s");
    *out = &ops;
    *context = cpu;
    return GS_OK;
}

const gs_device_kind gs_cpu_kind = {.word = "cpu", .open = cpu_open};
