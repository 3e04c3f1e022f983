/* bench_edge_programs - what does an edge program cost beside the same one written by hand?
 *
 *   bench_edge_programs [threads] [repetitions]
 *
 * Gated sum (G-GCN), attention (GAT) and its two gradients, and a weighted sum, through
 * gs_device_run_edge_program() and through by_hand.c, in turn, on the same graphs and rows. Both must give the
 * same numbers. The best of several runs counts; the ratio is evaluator / by hand.
 */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "bench_common.h"
#include "by_hand.h"
#include "device/device.h"

#define MAX_REGS 24
#define HAND_EDGES 4096 /* about, of a range of targets that one thread takes */

typedef void (*hand_fn)(const hand_launch *l, uint32_t first, uint32_t end);

/* An edge program and its memory, put together register by register. */
typedef struct shape {
    const char *name;
    hand_fn by_hand;
    gs_program program;
    gs_stage stage;
    gs_reg reg[8];
    gs_edge_reg edge_reg[MAX_REGS];
    gs_instr instr[MAX_REGS];
    const float *rows[MAX_REGS];
    gs_accumulator sum[GS_STAGE_SUMS];
    hand_launch hand;
    const bench_graph *graph;
    uint32_t operand_rows, operands, targets;
    uint64_t edge_bytes; /* of rows and indices at the operand end */
} shape;

static uint32_t add_reg(shape *s, gs_edge_reg_kind kind, uint32_t width)
{
    s->edge_reg[s->stage.edge_regs] = (gs_edge_reg){.kind = kind, .width = width, .array = GS_NONE};
    return s->stage.edge_regs++;
}

static uint32_t operand(shape *s, uint32_t width)
{
    const uint32_t r = add_reg(s, GS_EDGE_OPERAND, width);
    s->rows[r] = s->hand.operand[s->operands] = bench_random_floats((uint64_t)s->operand_rows * width, 10 + r);
    s->operands++;
    s->edge_bytes += width * sizeof(float);
    return r;
}

static uint32_t target(shape *s, uint32_t width)
{
    const uint32_t r = add_reg(s, GS_EDGE_TARGET, width);
    s->rows[r] = s->hand.target[s->targets] = bench_random_floats((uint64_t)s->graph->targets * width, 10 + r);
    s->targets++;
    return r;
}

static uint32_t does(shape *s, gs_op op, uint32_t width, uint32_t a, uint32_t b)
{
    const uint32_t r = add_reg(s, GS_EDGE_TEMP, width);
    s->instr[s->stage.edge_instrs++] = (gs_instr){.op = op, .dst = r, .a = {.kind = GS_FROM_REG, .index = a},
                                                  .b = {.kind = GS_FROM_REG, .index = b}, .alpha = 0.2f};
    return r;
}

static uint32_t does_number(shape *s, gs_op op, uint32_t width, uint32_t a, float b)
{
    const uint32_t r = does(s, op, width, a, 0);
    s->instr[s->stage.edge_instrs - 1].b = (gs_operand){.kind = GS_FROM_CONST, .value = b};
    return r;
}

static void sum(shape *s, gs_sum_kind kind, uint32_t value, uint32_t score)
{
    const uint32_t i = s->stage.sums++, r = s->stage.regs++, width = s->edge_reg[value].width;
    const uint64_t rows = s->graph->targets;
    s->reg[r] = (gs_reg){.kind = GS_REG_SUM, .dtype = GS_F32, .width = width, .array = GS_NONE};
    s->stage.sum[i] =
        (gs_sum){.kind = kind, .array = GS_NONE, .reg = r, .value = value, .score = score, .lse = GS_NONE};
    s->sum[i] = (gs_accumulator){.acc = bench_pages(rows * width * 4), .maximum = bench_pages(rows * HAND_HEADS * 4),
                                 .norm = bench_pages(rows * HAND_HEADS * 4)};
    s->hand.acc[i] = bench_pages(rows * width * 4);
    if (i == 0) {
        s->hand.maximum = bench_pages(rows * HAND_HEADS * 4);
        s->hand.norm = bench_pages(rows * HAND_HEADS * 4);
    }
}

static void make_weighted(shape *s)
{
    const uint32_t row = operand(s, HAND_WIDTH), weight = add_reg(s, GS_EDGE_WEIGHT, 1);
    s->hand.weight = bench_random_floats(s->graph->edges, 3);
    s->edge_bytes += sizeof(float);
    sum(s, GS_SUM_ADD, does(s, GS_OP_MUL, HAND_WIDTH, weight, row), GS_NONE);
}

static void make_gated(shape *s)
{
    const uint32_t gate = operand(s, HAND_WIDTH), row = operand(s, HAND_WIDTH), mine = target(s, HAND_WIDTH);
    const uint32_t open = does(s, GS_OP_SIGMOID, HAND_WIDTH, does(s, GS_OP_ADD, HAND_WIDTH, mine, gate), 0);
    sum(s, GS_SUM_ADD, does(s, GS_OP_MUL, HAND_WIDTH, open, row), GS_NONE);
}

static void make_attention(shape *s)
{
    const uint32_t source = operand(s, HAND_HEADS), row = operand(s, HAND_WIDTH), mine = target(s, HAND_HEADS);
    const uint32_t score = does(s, GS_OP_LEAKY_RELU, HAND_HEADS, does(s, GS_OP_ADD, HAND_HEADS, source, mine), 0);
    sum(s, GS_SUM_ATTEND, row, score);
}

static void make_attention_gradient(shape *s, bool by_source)
{
    uint32_t (*const destination)(shape *, uint32_t) = by_source ? operand : target;
    uint32_t (*const source)(shape *, uint32_t) = by_source ? target : operand;
    const uint32_t h = HAND_HEADS, w = HAND_WIDTH;
    const uint32_t a_dst = destination(s, h), lse = destination(s, h), mean = destination(s, h), g = destination(s, w);
    const uint32_t a_src = source(s, h), x = source(s, w);
    const uint32_t pre = does(s, GS_OP_ADD, h, a_src, a_dst);
    const uint32_t alpha = does(s, GS_OP_EXP, h, does(s, GS_OP_SUB, h, does(s, GS_OP_LEAKY_RELU, h, pre, 0), lse), 0);
    const uint32_t dot = does(s, GS_OP_FOLD, h, does(s, GS_OP_MUL, w, g, x), 0);
    const uint32_t d_score = does(s, GS_OP_MUL, h, alpha, does(s, GS_OP_SUB, h, dot, mean));
    const uint32_t step = does_number(s, GS_OP_MUL, h, does(s, GS_OP_STEP, h, pre, 0), 0.8f);
    sum(s, GS_SUM_ADD, does(s, GS_OP_MUL, h, d_score, does_number(s, GS_OP_ADD, h, step, 0.2f)), GS_NONE);
    if (by_source)
        sum(s, GS_SUM_ADD, does(s, GS_OP_MUL, w, does(s, GS_OP_EXPAND, w, alpha, 0), g), GS_NONE);
}

static void make_by_source(shape *s) { make_attention_gradient(s, true); }
static void make_by_destination(shape *s) { make_attention_gradient(s, false); }

static void free_floats(const float *p, uint64_t floats)
{
    if (p != NULL)
        gs_free_pages((void *)(uintptr_t)p, floats * 4);
}

static void free_shape(shape *s)
{
    const uint64_t rows = s->graph->targets;
    for (uint32_t r = 0; r < s->stage.edge_regs; r++)
        free_floats(s->rows[r], (uint64_t)s->edge_reg[r].width *
                                    (s->edge_reg[r].kind == GS_EDGE_TARGET ? s->graph->targets : s->operand_rows));
    for (uint32_t i = 0; i < s->stage.sums; i++) {
        free_floats(s->sum[i].acc, rows * s->reg[i].width);
        free_floats(s->hand.acc[i], rows * s->reg[i].width);
        free_floats(s->sum[i].maximum, rows * HAND_HEADS);
        free_floats(s->sum[i].norm, rows * HAND_HEADS);
    }
    free_floats(s->hand.maximum, rows * HAND_HEADS);
    free_floats(s->hand.norm, rows * HAND_HEADS);
    free_floats(s->hand.weight, s->graph->edges);
}

static void run_by_hand(const shape *s, unsigned threads)
{
    const bench_graph *const g = s->graph;
    const uint32_t step = (uint32_t)GS_MAX((uint64_t)HAND_EDGES * g->targets / g->edges, 1u);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (uint32_t t = 0; t < g->targets; t += step) {
        const uint32_t end = GS_MIN(t + step, g->targets);
        if (g->start[t] < g->start[end])
            s->by_hand(&s->hand, t, end);
    }
}

static void begin(const shape *s, gs_device *d)
{
    for (uint32_t i = 0; i < s->stage.sums; i++) {
        const uint32_t width = s->reg[i].width;
        bench_need(gs_device_begin_sum(d, s->stage.sum[i].kind, &s->sum[i], s->graph->targets, width, HAND_HEADS));
        memset(s->hand.acc[i], 0, (uint64_t)s->graph->targets * width * 4);
    }
}

static double by_evaluator(const shape *s, gs_device *d)
{
    const bench_graph *const g = s->graph;
    const gs_edge_program_launch l = {.program = &s->program, .stage = &s->stage,
                                      .edges = {.index_bytes = 4, .targets = g->targets, .target = g->target,
                                                .start = g->start, .index = g->index, .weight = s->hand.weight},
                                      .rows = s->rows, .sum = s->sum};
    const double start = gs_now();
    bench_need(gs_device_run_edge_program(d, &l));
    for (uint32_t i = 0; i < s->stage.sums; i++)
        bench_need(gs_device_finish_sum(d, s->stage.sum[i].kind, &s->sum[i], g->targets, s->reg[i].width, HAND_HEADS));
    return gs_now() - start;
}

static void check(const shape *s)
{
    for (uint32_t i = 0; i < s->stage.sums; i++) {
        const uint32_t width = s->reg[i].width;
        for (uint32_t t = 0; t < s->graph->targets; t++) {
            const double allowed = 1e-5 * (1 + s->graph->start[t + 1] - s->graph->start[t]);
            for (uint64_t c = (uint64_t)t * width; c < (uint64_t)(t + 1) * width; c++)
                if (!(fabs((double)s->sum[i].acc[c] - (double)s->hand.acc[i][c]) <= allowed))
                    bench_die("the evaluator and the kernel by hand differ");
        }
    }
}

static void bench(gs_device *d, shape *s, unsigned threads, int runs)
{
    double best = 1e30, hand = 1e30;
    s->stage.reg = s->reg;
    s->stage.edge_reg = s->edge_reg;
    s->stage.edge_instr = s->instr;
    s->program.stages = 1;
    s->program.stage = &s->stage;
    s->hand.targets = s->graph->targets;
    s->hand.start = s->graph->start;
    s->hand.index = s->graph->index;
    bench_need(gs_device_prepare(d, &s->program));
    for (int run = 0; run < runs; run++) {
        begin(s, d);
        best = fmin(best, by_evaluator(s, d));
        const double start = gs_now();
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
            run_by_hand(s, threads);
            hand = fmin(hand, gs_now() - start);
            if (run == 0)
                check(s);
        }
    }
    const double edges = s->graph->edges, bytes = edges * (double)(s->edge_bytes + sizeof(uint32_t));
    printf("%-24s %7u rows %9u edges  %6.1f M edges/s  %6.2f GB/s  by hand %6.1f M edges/s  ratio %.2f\n", s->name,
           s->operand_rows, s->graph->edges, edges / best * 1e-6, bytes / best * 1e-9, edges / hand * 1e-6,
           best / hand);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        hand_fn by_hand;
        void (*make)(shape *s);
    } shapes[] = {
        {"weighted sum", hand_weighted, make_weighted},
        {"gated sum", hand_gated, make_gated},
        {"attention", hand_attention, make_attention},
        {"attention, by source", hand_attention_by_source, make_by_source},
        {"attention, by dest.", hand_attention_by_destination, make_by_destination},
    };
    static const struct {
        uint32_t rows, edges;
        bool skewed;
    } graphs[] = {{1u << 14, 1u << 21, true}, {1u << 18, 1u << 21, true}, {1u << 18, 1u << 21, false}};
    const unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : (unsigned)omp_get_num_procs();
    const int runs = argc > 2 ? atoi(argv[2]) : BENCH_RUNS;
    gs_device *d = NULL;

    bench_need(gs_device_open(&d, "cpu", threads));
    printf("%s; rows of %d floats, %d heads\n", gs_device_name(d), HAND_WIDTH, HAND_HEADS);
    for (size_t i = 0; i < GS_ARRAY_LEN(graphs); i++) {
        bench_graph g = bench_make_graph(graphs[i].rows, graphs[i].rows, graphs[i].edges, graphs[i].skewed);
        printf("%s graph\n", graphs[i].skewed ? "skewed" : "uniform");
        for (size_t k = 0; k < GS_ARRAY_LEN(shapes); k++) {
            shape s = {
                .name = shapes[k].name, .by_hand = shapes[k].by_hand, .graph = &g, .operand_rows = graphs[i].rows};
            shapes[k].make(&s);
            bench(d, &s, threads, runs);
            free_shape(&s);
        }
        bench_free_graph(&g);
    }
    gs_device_close(d);
    return 0;
}
