/* bench_kernels - how close do the CPU device's kernels come to the machine?
 *
 *   bench_kernels [edges|gemm|dropout|math] [threads]
 *   bench_kernels rates THREADS [product:IN:OUT | gradient:OUT:IN | gather:ROWS:WIDTH | copy | exp]...
 *
 * `rates` prints what a floor is made of (in_memory_gather.sh): flops a second of oneDNN's products whose rows are in
 * the cache, bytes of random rows gathered, bytes read and written by copies of memory, and exponentials of numbers in
 * the cache. All threads are busy at once; the shortest of many short calls counts, so that what else runs here costs
 * little.
 *
 * Each part first checks an answer against plain loops, then times the best of
 * several runs, and prints it beside a ceiling measured on the same machine: edge
 * sums beside gs_device_measure_gather(), products beside whole-matrix oneDNN,
 * elementwise work beside copying. Tables of edge sums are larger than a last-level cache.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/philox.h"
#include "base/size.h"
#include "bench_common.h"
#include "device/cpu/gemm.h"
#include "device/cpu/kernels.h"
#include "device/device.h"

#define TABLE_BYTES (256 * GS_MIB)
#define GATHERED_BYTES (512 * GS_MIB) /* about, by one launch */

/* ---- edges ---- */

#define EDGES_PER_TARGET 16

/* Every 1009th target, bit by bit: the order of the sums is a promise. */
static void check_edges(const gs_edge_launch *l)
{
    for (uint32_t t = 0; t < l->edges.targets; t += 1009)
        for (uint32_t c = 0; c < l->width; c++) {
            float sum = 0;
            for (uint32_t k = l->edges.start[t]; k < l->edges.start[t + 1]; k++)
                sum += ((const float *)l->operand)[(uint64_t)((const uint32_t *)l->edges.index)[k] * l->width + c];
            if (sum != l->acc[(uint64_t)t * l->width + c])
                bench_die("an edge sum is wrong");
        }
}

static uint32_t power_of_two(uint64_t most)
{
    uint32_t n = 1;
    while (2ull * n <= most)
        n *= 2;
    return n;
}

static uint32_t table_rows(uint32_t width) { return power_of_two(TABLE_BYTES / 4 / width); }

static void bench_edges_of(gs_device *d, uint32_t width, bool skewed, double ceiling)
{
    const uint32_t rows = table_rows(width), edges = power_of_two(GATHERED_BYTES / 4 / width);
    const uint32_t targets = edges / EDGES_PER_TARGET;
    bench_graph g = bench_make_graph(rows, targets, edges, skewed);
    const uint64_t bytes = (uint64_t)rows * width * 4, acc_bytes = (uint64_t)targets * width * 4;
    float *const operand = bench_pages(bytes), *const acc = bench_pages(acc_bytes);
    for (uint64_t i = 0; i < bytes / 4; i++)
        operand[i] = (float)((i * 2654435761u) >> 20 & 1023) - 512.0f;

    const gs_edge_launch l = {.edges = {.index_bytes = 4, .targets = targets, .target = g.target, .start = g.start,
                                        .index = g.index},
                              .operand = operand, .acc = acc, .width = width};
    bench_need(gs_device_run_edges(d, &l));
    check_edges(&l);
    double best = 1e30;
    for (int run = 0; run < BENCH_RUNS; run++) {
        const double start = gs_now();
        bench_need(gs_device_run_edges(d, &l));
        best = fmin(best, gs_now() - start);
    }
    const double rate = (double)edges * width * 4 / best;
    printf("edges  %-8s width %4u  %9u rows %10u edges  %7.2f GB/s of rows  %5.1f %% of gather %.2f GB/s  %6.1f M "
           "edges/s\n",
           skewed ? "skewed" : "uniform", width, rows, edges, rate * 1e-9, 100 * rate / ceiling, ceiling * 1e-9,
           edges / best * 1e-6);
    fflush(stdout);
    gs_free_pages(operand, bytes);
    gs_free_pages(acc, acc_bytes);
    bench_free_graph(&g);
}

static void bench_edges(gs_device *d)
{
    static const uint32_t widths[] = {16, 41, 64, 100, 128, 256};
    for (size_t i = 0; i < GS_ARRAY_LEN(widths); i++) {
        const uint32_t width = widths[i];
        double ceiling = 0;
        bench_need(gs_device_measure_gather(d, table_rows(width), width, &ceiling));
        bench_edges_of(d, width, false, ceiling);
        bench_edges_of(d, width, true, ceiling);
    }
}

/* ---- vertex programs ---- */

#define TILE_REGS 4

/* A program of one stage that owns what it points to. */
typedef struct tile {
    gs_program program;
    gs_stage stage;
    gs_param param;
    gs_reg reg[TILE_REGS];
    void *memory[TILE_REGS];
    const float *weight;
    float *grad;
    uint32_t rows;
} tile;

static double time_tile(gs_device *d, tile *t, gs_instr *instr, uint32_t instrs)
{
    t->stage.regs = TILE_REGS;
    t->stage.reg = t->reg;
    t->stage.instr = instr;
    t->stage.instrs = instrs;
    t->program.stages = 1;
    t->program.stage = &t->stage;
    t->program.params = 1;
    t->program.param = &t->param;
    bench_need(gs_device_prepare(d, &t->program));
    const gs_vertex_launch l = {.program = &t->program, .stage = &t->stage, .rows = t->rows,
                                .reg = t->memory, .param = &t->weight, .grad = &t->grad,
                                .seed = 5, .epoch = 1, .loss_scale = 1};
    bench_need(gs_device_run_vertex(d, &l));
    double best = 1e30;
    for (int run = 0; run < BENCH_RUNS; run++) {
        const double start = gs_now();
        bench_need(gs_device_run_vertex(d, &l));
        best = fmin(best, gs_now() - start);
    }
    return best;
}

static gs_operand from_reg(uint32_t r) { return (gs_operand){.kind = GS_FROM_REG, .index = r}; }

static void check_gemm(const tile *t, const float *x, const float *w, const float *y, uint32_t in, uint32_t out)
{
    for (uint32_t r = 0; r < t->rows; r += 97)
        for (uint32_t o = 0; o < out; o += 5) {
            double sum = 0, size = 0;
            for (uint32_t i = 0; i < in; i++) {
                sum += (double)x[(uint64_t)r * in + i] * (double)w[o * in + i];
                size += fabs((double)x[(uint64_t)r * in + i] * (double)w[o * in + i]);
            }
            if (!(fabs(sum - (double)y[(uint64_t)r * out + o]) <= 1e-5 * size))
                bench_die("a product is wrong");
        }
}

static void bench_gemm_of(gs_device *d, uint32_t rows, uint32_t in, uint32_t out)
{
    tile t = {.rows = rows};
    float *const x = bench_random_floats((uint64_t)rows * in, 3);
    float *const y = bench_random_floats((uint64_t)rows * out, 4);
    float *const back = bench_pages((uint64_t)rows * in * 4), *const w = bench_random_floats((uint64_t)in * out, 5);
    t.grad = bench_pages((uint64_t)in * out * 4);
    t.weight = w;
    t.param = (gs_param){.dims = 2, .rows = out, .cols = in};
    t.memory[0] = x;
    t.memory[1] = y;
    t.memory[2] = back;
    t.memory[3] = back;
    t.reg[0] = t.reg[2] = t.reg[3] = (gs_reg){.dtype = GS_F32, .width = in};
    t.reg[1] = (gs_reg){.dtype = GS_F32, .width = out};
    const gs_operand weight = {.kind = GS_FROM_PARAM};
    gs_instr forward = {.op = GS_OP_MATMUL_T, .dst = 1, .a = from_reg(0), .b = weight};
    gs_instr backward = {.op = GS_OP_MATMUL, .dst = 2, .a = from_reg(1), .b = weight};
    gs_instr outer = {.op = GS_OP_OUTER, .dst = 0, .a = from_reg(1), .b = from_reg(0)};
    const double flops = 2.0 * rows * in * out;
    double ceiling = 0;

    bench_need(gs_device_measure_gemm(d, rows, in, out, &ceiling));
    const double f = flops / time_tile(d, &t, &forward, 1);
    check_gemm(&t, x, w, y, in, out);
    const double b = flops / time_tile(d, &t, &backward, 1);
    const double o = flops / time_tile(d, &t, &outer, 1);
    printf("gemm   %6u rows %4u -> %4u  forward %6.1f  backward %6.1f  gradient %6.1f GFLOP/s  (whole-matrix sgemm "
           "%6.1f)\n",
           rows, in, out, f * 1e-9, b * 1e-9, o * 1e-9, ceiling * 1e-9);
    fflush(stdout);
    gs_free_pages(x, (uint64_t)rows * in * 4);
    gs_free_pages(back, (uint64_t)rows * in * 4);
    gs_free_pages(y, (uint64_t)rows * out * 4);
    gs_free_pages(w, (uint64_t)in * out * 4);
    gs_free_pages(t.grad, (uint64_t)in * out * 4);
}

static void bench_gemm(gs_device *d)
{
    static const uint32_t shapes[][3] = {{16384, 16, 16},  {16384, 64, 64},  {16384, 64, 7},    {16384, 128, 128},
                                         {16384, 256, 41}, {16384, 256, 256}, {16384, 602, 256}, {2048, 1433, 16},
                                         {2048, 256, 256}};
    for (size_t i = 0; i < GS_ARRAY_LEN(shapes); i++)
        bench_gemm_of(d, shapes[i][0], shapes[i][1], shapes[i][2]);
}

static void check_dropout(const float *x, const float *y, const uint32_t *id, uint32_t rows, uint32_t width)
{
    uint32_t key[2], word[4];
    gs_random_key(key, 5, GS_RANDOM_DROPOUT);
    for (uint32_t r = 0; r < rows; r += 31)
        for (uint32_t c = 0; c < width; c++) {
            gs_philox4x32(word, (const uint32_t[4]){id[r], c / 4, 3, 1}, key);
            const float want = gs_uniform_f32(word[c % 4]) >= 0.5f ? 2.0f * x[(uint64_t)r * width + c] : 0.0f;
            if (want != y[(uint64_t)r * width + c])
                bench_die("a dropout mask is wrong");
        }
}

/* Operators of one input on 16K rows of 256: bytes written a second. */
static void bench_unary(gs_device *d, gs_op op, const char *name, uint32_t width, double copy)
{
    const uint32_t rows = 16384 * 256 / width;
    const uint64_t floats = (uint64_t)rows * width;
    tile t = {.rows = rows};
    float *const x = bench_random_floats(floats, 6), *const y = bench_pages(floats * 4);
    uint32_t *const id = bench_pages(rows * 4ull);
    for (uint32_t r = 0; r < rows; r++)
        id[r] = r * 7919;
    t.memory[0] = x;
    t.memory[1] = y;
    t.memory[2] = id;
    t.memory[3] = y;
    t.reg[0] = t.reg[1] = t.reg[3] = (gs_reg){.dtype = GS_F32, .width = width};
    t.reg[2] = (gs_reg){.dtype = GS_U32, .width = 1};
    gs_instr in = {.op = op, .dst = 1, .a = from_reg(0), .b = from_reg(2), .alpha = 0.5f, .site = 3};
    const double rate = (double)(floats * 4) / time_tile(d, &t, &in, 1);
    if (op == GS_OP_DROPOUT)
        check_dropout(x, y, id, rows, width);
    printf("vertex %-10s width %4u  %7.2f GB/s written  (copy %.2f GB/s)\n", name, width, rate * 1e-9, copy * 1e-9);
    fflush(stdout);
    gs_free_pages(x, floats * 4);
    gs_free_pages(y, floats * 4);
    gs_free_pages(id, rows * 4ull);
}

/* ---- rates ---- */

#define OWN_ROWS 1024u /* of a product: in a second-level cache, as the engine's tiles are */
#define OWN_COPY (64 * GS_MIB)
#define COPY_PIECE (4 * GS_MIB)
#define OWN_SECONDS 0.3
#define OWN_RUNS 200u /* at least */

typedef enum rate_kind { RATE_PRODUCT, RATE_GRADIENT, RATE_COPY, RATE_EXP } rate_kind;

/* The calling thread's best rate. */
static double own_rate(rate_kind kind, uint32_t a_width, uint32_t b_width)
{
    const bool copies = kind == RATE_COPY, exps = kind == RATE_EXP; /* of OWN_ROWS numbers: a row has one */
    const uint64_t a_bytes = copies ? OWN_COPY : OWN_ROWS * a_width * 4ull,
                   b_bytes = copies ? OWN_COPY : OWN_ROWS * b_width * 4ull, w_bytes = 4ull * a_width * b_width + 64;
    float *const a = bench_random_floats(a_bytes / 4, 3), *const b = bench_random_floats(b_bytes / 4, 4),
                 *const w = bench_random_floats(w_bytes / 4, 5);
    const double work = copies ? 2.0 * COPY_PIECE : exps ? (double)OWN_ROWS : 2.0 * OWN_ROWS * a_width * b_width;
    const gs_cpu_kernels *k = NULL;
    double best = 1e30, spent = 0;
    bool fine = gs_cpu_kernels_find(&k) == GS_OK;

    for (uint64_t run = 0; fine && (run < OWN_RUNS || spent < OWN_SECONDS); run++) {
        const uint64_t at = run * COPY_PIECE % OWN_COPY / 4;
        const double start = gs_now();
        if (kind == RATE_PRODUCT) /* the weight as it is, and transposed: the faster way counts */
            fine = gs_cpu__sgemm('N', run % 2 == 0 ? 'N' : 'T', OWN_ROWS, b_width, a_width, a, a_width, w,
                                 run % 2 == 0 ? b_width : a_width, 0, b, b_width);
        else if (kind == RATE_GRADIENT)
            fine = gs_cpu__sgemm('T', 'N', a_width, b_width, OWN_ROWS, a, a_width, b, b_width, 0, w, b_width);
        else if (exps)
            k->unary(GS_OP_EXP, b, a, OWN_ROWS, 0);
        else
            memcpy(b + at, a + at, COPY_PIECE);
        const double took = gs_now() - start;
        best = fmin(best, took);
        spent += took;
    }
    if (!fine)
        bench_die("a kernel could not be run");
    gs_free_pages(a, a_bytes);
    gs_free_pages(b, b_bytes);
    gs_free_pages(w, w_bytes);
    return work / best;
}

static void bench_rate(gs_device *d, const char *what, unsigned threads)
{
    char kind[16] = "";
    unsigned a = 0, b = 0;
    double rate = 0;
    const int fields = sscanf(what, "%15[a-z]:%u:%u", kind, &a, &b);
    const bool copies = strcmp(kind, "copy") == 0, product = strcmp(kind, "product") == 0,
               exps = strcmp(kind, "exp") == 0;
    if (fields != (copies || exps ? 1 : 3) || (!copies && !exps && (a == 0 || b == 0)))
        bench_die(what);
    if (strcmp(kind, "gather") == 0)
        bench_need(gs_device_measure_gather(d, a, b, &rate));
    else if (copies || exps || product || strcmp(kind, "gradient") == 0) {
        omp_set_num_threads((int)threads); /* one: oneDNN would else have more, outside of a region of several */
#pragma omp parallel reduction(+ : rate)
        rate += own_rate(copies ? RATE_COPY : exps ? RATE_EXP : product ? RATE_PRODUCT : RATE_GRADIENT, exps ? 1 : a,
                         exps ? 1 : b);
    } else
        bench_die(what);
    printf("%s %.6g\n", what, rate);
}

int main(int argc, char **argv)
{
    const char *const part = argc > 1 ? argv[1] : "all";
    const bool all = strcmp(part, "all") == 0;
    gs_device *d = NULL;
    double copy = 0;

    bench_need(gs_device_open(&d, "cpu", argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0));
    printf("%s\n", gs_device_name(d));
    for (int i = 3; i < argc && strcmp(part, "rates") == 0; i++)
        bench_rate(d, argv[i], (unsigned)strtoul(argv[2], NULL, 10));
    if (all || strcmp(part, "edges") == 0)
        bench_edges(d);
    if (all || strcmp(part, "gemm") == 0)
        bench_gemm(d);
    if (all || strcmp(part, "dropout") == 0 || strcmp(part, "math") == 0)
        bench_need(gs_device_measure_copy(d, &copy));
    if (all || strcmp(part, "dropout") == 0) {
        bench_unary(d, GS_OP_DROPOUT, "dropout", 256, copy);
        bench_unary(d, GS_OP_DROPOUT, "dropout", 64, copy);
        bench_unary(d, GS_OP_DROPOUT, "dropout", 7, copy);
    }
    if (all || strcmp(part, "math") == 0) {
        for (gs_op op = 0; op < GS_OP_COUNT; op++)
            if (gs_op_is_each(op) && gs_op_inputs(op) == 1)
                bench_unary(d, op, gs_op_name(op), 256, copy);
    }
    gs_device_close(d);
    return 0;
}
