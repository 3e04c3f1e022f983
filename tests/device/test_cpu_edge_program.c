/* Edge programs against float64, edge by edge: every kind of sum, the shapes of real models and odd ones, on every
 * instruction set, cut in launches, and the same bits whatever the number of threads. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "edge_fixture.h"
#include "support/formulas.h"

enum { TARGETS = 120 };

/* Empty targets, single edges, some that fill tiles. */
static void some_degrees(uint32_t *degree, uint32_t n)
{
    for (uint32_t t = 0; t < n; t++)
        degree[t] = t % 7 == 0 ? 0 : t % 31 == 0 ? 300 + t : random_below(t, 3, 14);
}

static void open_edges(edge_fixture *b, uint32_t index_bytes)
{
    uint32_t degree[TARGETS];
    some_degrees(degree, TARGETS);
    edges_init(b, index_bytes, TARGETS, degree, 61);
}

static void test_edge_program__weighted_sum_of_rows(void **state)
{
    static const uint32_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 41, 64, 65, 100, 129, 130, 602};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (!takes_shape(i, 3, 0))
            continue;
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 2 : 4);
        const uint32_t row = add_operand(&b, widths[i], -2, 2);
        const uint32_t value = add_op(&b, GS_OP_MUL, widths[i], in_reg(add_weight(&b)), in_reg(row));
        add_sum(&b, GS_SUM_ADD, value);
        edges_check(&b, 2e-6);
        edges_free(&b);
    }
}

static void test_edge_program__weights_that_are_not_there_are_one(void **state)
{
    edge_fixture b;
    (void)state;
    open_edges(&b, 4);
    const uint32_t row = add_operand(&b, 20, -2, 2), weight = add_weight(&b);
    add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, 20, in_reg(row), in_reg(weight)));
    add_sum(&b, GS_SUM_ADD, weight); /* the in-degree */
    test_free((void *)(uintptr_t)b.edge_weight);
    b.edge_weight = NULL;
    edges_check(&b, 2e-6);
    edges_free(&b);
}

static void test_edge_program__gated_sum(void **state)
{
    static const uint32_t widths[] = {1, 3, 4, 8, 13, 16, 64, 70, 200};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (!takes_shape(i, 3, 1))
            continue;
        const uint32_t w = widths[i];
        edge_fixture b;
        open_edges(&b, 4);
        const uint32_t mine = add_target(&b, w, -3, 3), gate = add_operand(&b, w, -3, 3),
                       row = add_operand(&b, w, -2, 2);
        const uint32_t pre = add_op(&b, GS_OP_ADD, w, in_reg(mine), in_reg(gate));
        const uint32_t open = add_op(&b, GS_OP_SIGMOID, w, in_reg(pre), NO_OPERAND);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(open), in_reg(row)));
        edges_check(&b, 4e-6);
        edges_free(&b);
    }
}

static void test_edge_program__largest_and_least(void **state)
{
    static const uint32_t widths[] = {1, 2, 5, 8, 11, 16, 33, 64, 140};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (!takes_shape(i, 3, 2))
            continue;
        const uint32_t w = widths[i];
        edge_fixture b;
        open_edges(&b, 2);
        const uint32_t row = add_operand(&b, w, -2, -1); /* below 0: what an empty target must not keep */
        const uint32_t scaled = add_op(&b, GS_OP_MUL, w, in_reg(row), in_reg(add_weight(&b)));
        add_sum(&b, GS_SUM_MAX, row);
        add_sum(&b, GS_SUM_MIN, row);
        add_sum(&b, GS_SUM_MAX, scaled);
        add_sum(&b, GS_SUM_MIN, scaled);
        edges_check(&b, 1e-6);
        edges_free(&b);
    }
}

/* Who has a maximum is kept by processors alone. */
static bool keeps_who(void) { return strcmp(isa_names[0], "cuda") != 0; }

/* Whole numbers, so that several edges have the largest one: of one source, which then is who has it, or of several,
 * among a few edges, or in several pieces of a hub. */
static void test_edge_program__who_has_the_largest(void **state)
{
    const uint32_t rows = 3000;
    static const uint32_t widths[] = {1, 3, 8, 11, 16, 33, 64, 140};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (!takes_shape(i, 3, 2) || !keeps_who())
            continue;
        const uint32_t w = widths[i];
        uint32_t degree[TARGETS];
        edge_fixture b;
        some_degrees(degree, TARGETS);
        degree[1] = hub_edges(9000);
        edges_init(&b, 4, TARGETS, degree, rows);
        const uint32_t row = add_operand(&b, w, -3000, -1), number = add_operand(&b, 1, 1, 9);
        for (uint32_t k = 0; k < rows * w; k++)
            ((float *)(uintptr_t)b.rows[row])[k] = floorf(b.rows[row][k] / (k % w % 2 == 0 ? 1 : 300));
        for (uint32_t k = 0; k < rows; k++)
            ((float *)(uintptr_t)b.rows[number])[k] = floorf(b.rows[number][k]);
        add_held(&b, GS_SUM_MAX_HELD, row, number);
        add_held(&b, GS_SUM_MIN_HELD, row, number);
        edges_check(&b, 1e-6);
        edges_free(&b);
    }
}

/* The operator of a row and of `other`, in either order; where it crosses 0, and has few digits there, a number up. */
static uint32_t do_each(edge_fixture *b, gs_op op, uint32_t width, gs_operand row, gs_operand other, gs_operand third)
{
    const bool one = gs_op_inputs(op) == 1, swap = !one && other.kind == GS_FROM_REG;
    const uint32_t value = add_op(b, op, width, swap ? other : row, one ? NO_OPERAND : swap ? row : other);
    gs_instr *const in = &b->instr[b->stage.edge_instrs - 1];
    in->alpha = op_formula_of(op)->alpha;
    if (gs_op_inputs(op) == 3)
        in->c = third;
    return op_formula_of(op)->range[0].least > 0 ? add_op(b, GS_OP_ADD, width, in_reg(value), in_const(2)) : value;
}

/* Each operator of rows of both ends, a number an edge, a parameter and a constant, on rows of several widths. */
static void test_edge_program__every_operator(void **state)
{
    static const uint32_t widths[] = {1, 3, 4, 8, 16, 21, 64};
    (void)state;
    for (gs_op op = 0; op < GS_OP_COUNT; op++) {
        if (!gs_op_is_each(op) || !takes_kind((size_t)op, 3, 0))
            continue;
        const uint32_t w = widths[(uint32_t)op % (sizeof(widths) / sizeof(widths[0]))];
        edge_fixture b;
        open_edges(&b, 4);
        const uint32_t ours = add_operand(&b, w, 0.25f, 2), theirs = add_target(&b, w, 0.25f, 2);
        const uint32_t apart = add_op(&b, GS_OP_SUB, w, in_reg(ours), in_reg(theirs));
        const gs_operand row = in_reg(op_formula_of(op)->positive ? ours : apart);
        const gs_operand other[4] = {in_reg(theirs), in_reg(add_weight(&b)), in_param(edges_param(&b, w)),
                                     in_const(0.75f)};
        for (uint32_t i = 0; i < (gs_op_inputs(op) == 1 ? 1 : 4); i++)
            add_sum(&b, GS_SUM_ADD, do_each(&b, op, w, row, other[i], other[(i + 1) % 4]));
        edges_check(&b, 1e-5);
        edges_free(&b);
    }
}

/* score = leaky_relu(a_src[u] + a_dst[v]) */
static uint32_t gat_score(edge_fixture *b, uint32_t heads, uint32_t operand, uint32_t target)
{
    const uint32_t pre = add_op(b, GS_OP_ADD, heads, in_reg(operand), in_reg(target));
    return add_op(b, GS_OP_LEAKY_RELU, heads, in_reg(pre), NO_OPERAND);
}

static const uint32_t head_shapes[][2] = {{1, 1}, {1, 7}, {1, 8}, {1, 41}, {1, 64}, {2, 3}, {2, 8}, {2, 20}, {3, 5},
                                          {4, 16}, {8, 1}, {8, 7}, {8, 8}, {8, 16}, {8, 12}, {16, 4}, {17, 3}, {8, 33},
                                          {2, 4}, {4, 4}, {4, 8}, {2, 16}, {16, 8}, {3, 41}, {2, 132}};

static void test_edge_program__attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(head_shapes) / sizeof(head_shapes[0]); i++) {
        if (!takes_shape(i, 3, 0))
            continue;
        const uint32_t h = head_shapes[i][0], w = h * head_shapes[i][1];
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 4 : 2);
        const uint32_t source = add_operand(&b, h, -3, 3), mine = add_target(&b, h, -3, 3);
        const uint32_t score = gat_score(&b, h, source, mine);
        add_attend(&b, add_operand(&b, w, -2, 2), score);
        edges_check(&b, 4e-6);
        edges_free(&b);
    }
}

static uint32_t edges_mask(edge_fixture *b, uint32_t width, uint32_t source, uint32_t destination, bool self)
{
    const uint32_t r = add_op(b, GS_OP_EDGE_MASK, width, in_reg(source), in_reg(destination));
    b->instr[b->stage.edge_instrs - 1].alpha = 0.5f; /* sums of 2 are exact */
    b->instr[b->stage.edge_instrs - 1].site = 6;
    b->instr[b->stage.edge_instrs - 1].self = self;
    return r;
}

/* What is drawn for an edge depends on its ends, type and rank among its parallels, wherever tiles and threads cut;
 * attention's norm counts dropped edges too. */
static void test_edge_program__dropout_of_edges(void **state)
{
    static const uint32_t widths[] = {1, 2, 3, 4, 7, 8, 12, 16, 33, 3};
    (void)state;
    for (size_t i = 0; i < 4 * sizeof(widths) / sizeof(widths[0]); i++) {
        if (!takes_shape(i, 3, 0))
            continue;
        const uint32_t w = widths[i / 4], wide = (i / 4 < 9 ? 5 : 48) * w; /* 48: heads that a GPU takes one by one */
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 2 : 4);
        edges_make_parallel(&b);
        const uint32_t ours = add_operand_id(&b, 1), theirs = add_target_id(&b, 1); /* some are the same */
        const uint32_t mask =
            i % 4 < 2 ? edges_mask(&b, w, ours, theirs, i % 4 == 1) : edges_mask(&b, w, theirs, ours, i % 4 == 3);
        const uint32_t x = add_operand(&b, wide, 1, 2), score = add_operand(&b, w, -3, 3);
        add_sum(&b, GS_SUM_ADD, mask);
        add_attend(
            &b,
            add_op(&b, GS_OP_MUL, wide, in_reg(x), in_reg(add_op(&b, GS_OP_EXPAND, wide, in_reg(mask), NO_OPERAND))),
            add_op(&b, GS_OP_LEAKY_RELU, w, in_reg(score), NO_OPERAND));
        edges_check(&b, 1e-5);
        edges_free(&b);
    }
}

/* A mask of as many columns as the rows have, and another of one, of another site: a GPU's lanes share what they draw,
 * and the widest rows have more than a draw a lane. */
static void test_edge_program__dropout_of_edges_columns(void **state)
{
    static const uint32_t widths[] = {3, 16, 41, 66, 300};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (!takes_kind(i, 1, 0)) /* the least and the widest are among them */
            continue;
        const uint32_t w = widths[i];
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 2 : 4);
        edges_make_parallel(&b);
        const uint32_t ours = add_operand_id(&b, 1), theirs = add_target_id(&b, 1), x = add_operand(&b, w, 1, 2);
        const uint32_t columns = edges_mask(&b, w, ours, theirs, false), whole = edges_mask(&b, 1, ours, theirs, true);
        b.instr[b.stage.edge_instrs - 1].site = 7;
        const uint32_t kept = add_op(&b, GS_OP_MUL, w, in_reg(x), in_reg(columns));
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(kept), in_reg(whole)));
        edges_check(&b, 2e-6);
        edges_free(&b);
    }
}

static void test_edge_program__dropout_of_a_hubs_edges(void **state)
{
    enum { HUB = 9000, RUN = 6000 };
    const uint32_t degree[3] = {2, HUB, 5};
    edge_fixture b;
    (void)state;
    edges_init(&b, 2, 3, degree, 61);
    edges_make_parallel(&b);
    for (uint32_t k = 0; k < HUB; k++) /* one run longer than a piece */
        ((uint16_t *)b.index)[2 + k] = k < RUN ? 4 : 5;
    memset(b.type, 0, b.edges);
    add_sum(&b, GS_SUM_ADD, edges_mask(&b, 2, add_operand_id(&b, 0), add_target_id(&b, 500), false));
    edges_check(&b, 0);
    edges_free(&b);
}

/* The gradients of attention: by source (rows and scores) and by destination (scores). */
static void test_edge_program__attention_backward(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(head_shapes) / sizeof(head_shapes[0]); i++)
        for (int by_source = 0; by_source < 2 && takes_shape(i, 3, 1); by_source++) {
            const uint32_t h = head_shapes[i][0], w = h * head_shapes[i][1];
            edge_fixture b;
            open_edges(&b, 4);
            const uint32_t ours = add_operand(&b, h, -1, 1), theirs = add_target(&b, h, -1, 1);
            uint32_t (*const destination)(edge_fixture *, uint32_t, float, float) =
                by_source ? add_operand : add_target;
            uint32_t (*const source)(edge_fixture *, uint32_t, float, float) = by_source ? add_target : add_operand;
            const uint32_t lse = destination(&b, h, 1, 2), mean = destination(&b, h, -2, -1);
            const uint32_t g = destination(&b, w, 0, 1), x = source(&b, w, 0, 1); /* nothing cancels */

            const uint32_t pre = add_op(&b, GS_OP_ADD, h, in_reg(ours), in_reg(theirs));
            const uint32_t score = add_op(&b, GS_OP_LEAKY_RELU, h, in_reg(pre), NO_OPERAND);
            const uint32_t alpha =
                add_op(&b, GS_OP_EXP, h, in_reg(add_op(&b, GS_OP_SUB, h, in_reg(score), in_reg(lse))), NO_OPERAND);
            const uint32_t dot =
                add_op(&b, GS_OP_FOLD, h, in_reg(add_op(&b, GS_OP_MUL, w, in_reg(g), in_reg(x))), NO_OPERAND);
            const uint32_t d_score =
                add_op(&b, GS_OP_MUL, h, in_reg(alpha), in_reg(add_op(&b, GS_OP_SUB, h, in_reg(dot), in_reg(mean))));
            const uint32_t step = add_op(&b, GS_OP_STEP, h, in_reg(pre), NO_OPERAND);
            const uint32_t slope = add_op(
                &b, GS_OP_ADD, h, in_reg(add_op(&b, GS_OP_MUL, h, in_reg(step), in_const(0.8f))), in_const(0.2f));
            add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, h, in_reg(d_score), in_reg(slope)));
            if (by_source) {
                const uint32_t wide = add_op(&b, GS_OP_EXPAND, w, in_reg(alpha), NO_OPERAND);
                add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(wide), in_reg(g)));
            }
            edges_check(&b, 5e-6);
            edges_free(&b);
        }
}

/* Every operator on rows at both ends, weights, parameters and constants; values with several uses; a product that is
 * folded and summed; spreads that are read as they are; sums of one register twice. */
static void everything(edge_fixture *b, uint32_t h, uint32_t d)
{
    const uint32_t w = h * d;
    const uint32_t u = add_operand(b, w, 0.5f, 2), v = add_target(b, w, 0.5f, 2), s = add_operand(b, h, 0.5f, 2);
    const uint32_t weight = add_weight(b), p = edges_param(b, w), one = edges_param(b, 1);
    const uint32_t q = add_op(b, GS_OP_DIV, w, in_reg(u), in_param(p));
    const uint32_t r = add_op(b, GS_OP_DIV, w, in_const(1.5f), in_reg(v));
    const uint32_t m = add_op(b, GS_OP_MAX, w, in_reg(q), in_reg(r));
    const uint32_t equal = add_op(b, GS_OP_EQ, w, in_reg(m), in_reg(q));
    const uint32_t t = add_op(b, GS_OP_SUB, w, in_reg(weight), in_reg(m));
    const uint32_t th = add_op(b, GS_OP_TANH, w, in_reg(t), NO_OPERAND);
    const uint32_t wide = add_op(b, GS_OP_EXPAND, w, in_reg(s), NO_OPERAND);
    const uint32_t more = add_op(b, GS_OP_ADD, w, in_reg(wide), in_reg(th));
    const uint32_t product = add_op(b, GS_OP_MUL, w, in_reg(more), in_reg(wide));
    const uint32_t folded = add_op(b, GS_OP_FOLD, h, in_reg(product), NO_OPERAND);
    const uint32_t whole = add_op(b, GS_OP_ROWSUM, 1, in_reg(more), NO_OPERAND);
    const uint32_t most =
        add_op(b, GS_OP_ROWMAX, 1, in_reg(add_op(b, GS_OP_MIN, w, in_reg(more), in_reg(v))), NO_OPERAND);
    const uint32_t size = add_op(b, GS_OP_ADD, 1, in_reg(whole), in_reg(most));
    const uint32_t scaled = add_op(b, GS_OP_MUL, h, in_reg(folded), in_reg(size));
    const uint32_t root = add_op(b, GS_OP_SQRT, w, in_reg(u), NO_OPERAND);
    const uint32_t log = add_op(b, GS_OP_LOG, w, in_reg(v), NO_OPERAND);
    const uint32_t both = add_op(b, GS_OP_MUL, w, in_reg(root), in_reg(log));
    const uint32_t biased =
        add_op(b, GS_OP_ADD, w, in_reg(add_op(b, GS_OP_MUL, w, in_reg(both), in_param(one))), in_reg(equal));
    add_sum(b, GS_SUM_ADD, scaled);
    add_sum(b, GS_SUM_ADD, biased);
    add_sum(b, GS_SUM_ADD, wide);
    add_sum(b, GS_SUM_MAX, biased);
}

/* Ids 3 r of both ends meet where the rows do. */
static void test_edge_program__loops_are_told_from_other_edges(void **state)
{
    (void)state;
    for (uint32_t bytes = 2; bytes <= 4; bytes += 2) {
        edge_fixture b;
        open_edges(&b, bytes);
        const uint32_t loop = add_op(&b, GS_OP_IS_LOOP, 1, in_reg(add_operand_id(&b, 0)), in_reg(add_target_id(&b, 0)));
        const uint32_t row = add_operand(&b, 20, -2, 2);
        add_sum(&b, GS_SUM_ADD, loop);
        add_sum(&b, GS_SUM_ADD,
                add_op(&b, GS_OP_MUL, 20, in_reg(row), in_reg(add_op(&b, GS_OP_SUB, 1, in_const(1), in_reg(loop)))));
        edges_check(&b, 2e-6);
        edges_free(&b);
    }
}

static void test_edge_program__every_operator_and_operand(void **state)
{
    static const uint32_t shapes[][2] = {{1, 1}, {1, 2}, {1, 9}, {2, 1},  {2, 2},  {2, 4}, {8, 1},
                                         {3, 7}, {4, 8}, {8, 8}, {2, 16}, {5, 32}, {9, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!takes_shape(i, 3, 2))
            continue;
        edge_fixture b;
        open_edges(&b, 4);
        everything(&b, shapes[i][0], shapes[i][1]);
        edges_check(&b, 1e-5);
        edges_free(&b);
    }
}

/* Hubs next to each other and at both ends: pieces, merged in order. */
static void test_edge_program__hubs(void **state)
{
    uint32_t degree[TARGETS];
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        const uint32_t heads = kind == 2 ? 3 : 2, width = kind == 2 ? 3 * 41 : 24;
        edge_fixture b;
        some_degrees(degree, TARGETS);
        degree[0] = hub_edges(9000);
        degree[60] = hub_edges(gs_test_all() ? 50000 : 17000);
        degree[61] = hub_edges(12000);
        degree[TARGETS - 1] = hub_edges(5000);
        edges_init(&b, 4, TARGETS, degree, 1000);
        const uint32_t row = add_operand(&b, width, -2, 2);
        if (kind != 1) {
            const uint32_t score = gat_score(&b, heads, add_operand(&b, heads, -4, 4), add_target(&b, heads, -4, 4));
            add_attend(&b, row, score);
            add_attend(&b, add_operand(&b, heads, -2, 2), score);
        } else {
            add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, 24, in_reg(row), in_reg(add_weight(&b))));
            add_sum(&b, GS_SUM_MAX, row);
            add_sum(&b, GS_SUM_MIN, row);
        }
        edges_check(&b, 3e-5);
        edges_free(&b);
    }
}

/* Scores so far apart that only differences to the maximum can be raised to e; equal ones; both in turn. Sums of rows
 * of two widths, with a factor and without, attend by them. */
static void test_edge_program__extreme_scores(void **state)
{
    static const float ranges[][2] = {{-1e4f, 1e4f}, {1e4f, 1e4f}, {-1e4f, -1e4f}, {0, 0}, {-90, 90}, {-1e30f, 1e30f}};
    (void)state;
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        for (uint32_t h = 1; h <= 8; h *= 2) {
            edge_fixture b;
            open_edges(&b, 4);
            const uint32_t score = add_operand(&b, h, ranges[i][0], ranges[i][1]);
            const uint32_t rows = add_operand(&b, h * 8, -2, 2), factor = add_target(&b, h, -2, 2);
            add_attend(&b, rows, score);
            add_attend(&b, factor, score);
            add_attend(&b, add_op(&b, GS_OP_MUL, h * 8, in_reg(rows),
                                  in_reg(add_op(&b, GS_OP_EXPAND, h * 8, in_reg(factor), NO_OPERAND))), score);
            edges_check(&b, 6e-6);
            edges_free(&b);
        }
}

/* Attention of one head to rows, to rows times a number of the edge and to that number, and sums of rows and of numbers
 * beside, are added up in one walk: sums of rows of other rows, and a third one, are not. */
static void test_edge_program__sums_in_one_walk(void **state)
{
    static const uint32_t widths[] = {4, 16, 41, 64, 72, 129};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(widths) / sizeof(widths[0]); i++) {
        const uint32_t w = widths[i / 2];
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 2 : 4);
        const uint32_t rows = add_operand(&b, w, -2, 2), source = add_operand(&b, 1, -3, 3);
        const uint32_t score = gat_score(&b, 1, source, add_target(&b, 1, -3, 3));
        const uint32_t slope = add_op(&b, GS_OP_SIGMOID, 1, in_reg(score), NO_OPERAND);
        const uint32_t scaled = add_op(&b, GS_OP_MUL, w, in_reg(rows), in_reg(slope));
        if (i % 2 == 0) {
            add_attend(&b, rows, score);
            add_attend(&b, scaled, score);
            add_attend(&b, slope, score);
        } else {
            add_sum(&b, GS_SUM_ADD, scaled);
            add_sum(&b, GS_SUM_ADD, slope);
            add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(rows), in_reg(score)));
            add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(add_operand(&b, w, -2, 2)), in_reg(score)));
        }
        edges_check(&b, 6e-6);
        edges_free(&b);
    }
}

/* A number of each edge, of rows at both its ends, and a sum of the same rows are made in one walk; not where the sum's
 * number is made of it, or where rows are wider or end within a vector. */
static void test_edge_program__products_and_sums_in_one_walk(void **state)
{
    static const uint32_t widths[] = {16, 24, 32, 48, 64, 80};
    (void)state;
    for (size_t i = 0; i < 4 * sizeof(widths) / sizeof(widths[0]); i++) {
        const uint32_t w = widths[i / 4];
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 2 : 4);
        const uint32_t rows = add_operand(&b, w, 0.2f, 2), own = add_target(&b, w, 0.2f, 2); /* else dots cancel */
        const uint32_t score = gat_score(&b, 1, add_operand(&b, 1, -3, 3), add_target(&b, 1, -3, 3));
        const uint32_t product = i % 4 < 2 ? add_op(&b, GS_OP_MUL, w, in_reg(rows), in_reg(own))
                                           : add_op(&b, GS_OP_MUL, w, in_reg(own), in_reg(rows));
        const uint32_t folded = add_op(&b, GS_OP_FOLD, 1, in_reg(product), NO_OPERAND);
        const uint32_t late = add_op(&b, GS_OP_MUL, 1, in_reg(folded), in_reg(score));
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(rows), in_reg(i % 4 == 3 ? late : score)));
        add_sum(&b, GS_SUM_ADD, late);
        edges_check(&b, 6e-6);
        edges_free(&b);
    }
}

static void test_edge_program__scores_of_minus_infinity_weigh_nothing(void **state)
{
    const uint32_t degree[2] = {3, 2};
    (void)state;
    for (size_t isa = 0; isa < isas; isa++) {
        gs_device *const d = open_isa(isa_names[isa], 1);
        edge_fixture b;
        edges_result r = {0};
        if (d == NULL)
            continue;
        edges_init(&b, 4, 2, degree, 5);
        const float score[5] = {-INFINITY, 1, -INFINITY, -INFINITY, -INFINITY}, value[5] = {10, 20, 30, 40, 50};
        memcpy(b.index, (const uint32_t[5]){0, 1, 2, 3, 4}, sizeof(uint32_t[5]));
        const uint32_t s = add_operand(&b, 1, 0, 1), x = add_operand(&b, 1, 0, 1);
        memcpy((void *)(uintptr_t)b.rows[s], score, sizeof(score));
        memcpy((void *)(uintptr_t)b.rows[x], value, sizeof(value));
        add_attend(&b, x, s);
        b.stage.sum[add_attend(&b, x, s)].beside = true;
        for (uint32_t pieces = 1; pieces < 4; pieces++) {
            edges_run(&b, d, pieces, &r);
            for (int k = 0; k < 2; k++) {
                assert_true(r.sum[k].acc[1] == 20 && r.sum[k].maximum[1] == 1);
                assert_true(r.sum[k].maximum[3] == -INFINITY);
                assert_true(r.sum[k].acc[0] == 0 && r.sum[k].maximum[0] == -INFINITY); /* no edges */
            }
            assert_true(isnan(r.sum[0].acc[3])); /* 0 / 0, as torch has it */
            assert_true(r.sum[1].acc[3] == 0);   /* the vertex's own score is all that counts */
            edges_result_free(&r);
        }
        edges_free(&b);
        gs_device_close(d);
    }
}

/* Of nothing but infinities an infinity is the largest, and of nothing at all 0: few edges, or a hub's pieces. */
static void test_edge_program__infinity_is_a_value(void **state)
{
    static const uint32_t widths[] = {1, 3, 24, 140};
    (void)state;
    for (size_t isa = 0; isa < isas; isa++) {
        gs_device *const d = open_isa(isa_names[isa], 1);
        for (size_t i = 0; d != NULL && i < sizeof(widths) / sizeof(widths[0]); i++) {
            const uint32_t w = widths[i], degree[2] = {3, i == 2 ? hub_edges(20000) : 2};
            edge_fixture b;
            edges_result r = {0};
            edges_init(&b, 4, 2, degree, 5);
            const uint32_t row = add_operand(&b, w, 1, 2);
            float *const x = (float *)(uintptr_t)b.rows[row];
            for (uint32_t k = 0; k < 5 * w; k++)
                x[k] = k % w == w / 2 && k / w == 1 ? 7.0f : -INFINITY;
            for (uint32_t e = 0; e < 3 + degree[1]; e++)
                ((uint32_t *)b.index)[e] = e == 1 ? 1 : 2 + e % 3; /* the first target has row 1, the other has not */
            add_sum(&b, GS_SUM_MAX, row);
            add_sum(&b, GS_SUM_MIN, add_op(&b, GS_OP_NEG, w, in_reg(row), NO_OPERAND));
            const uint32_t number = add_operand(&b, 1, 3, 4);
            ((float *)(uintptr_t)b.rows[number])[1] = 9;
            if (keeps_who())
                add_held(&b, GS_SUM_MAX_HELD, row, number);
            for (uint32_t k = 0; k < 5 && keeps_who(); k++) /* who has a number that is none is not asked */
                x[k * w] = k == 1 && w > 1 ? NAN : x[k * w];
            for (uint32_t pieces = 1; pieces < 4; pieces++) {
                edges_run(&b, d, pieces, &r);
                for (uint32_t c = w > 1; c < w; c++) {
                    const float *const held = keeps_who() ? r.sum[2].acc + 3 * w + c : NULL;
                    if (held != NULL) { /* row 1 alone has the 7, three edges -inf */
                        assert_true(held[0] == r.sum[0].acc[w + c] && held[w] == (c == w / 2 ? 9 : 0));
                        assert_true(held[2 * w] == (c == w / 2 ? 1 : 3));
                    }
                    assert_true(r.sum[0].acc[w + c] == (c == w / 2 ? 7 : -INFINITY));
                    assert_true(r.sum[1].acc[w + c] == (c == w / 2 ? -7 : INFINITY));
                    assert_true(r.sum[0].acc[3 * w + c] == -INFINITY && r.sum[1].acc[3 * w + c] == INFINITY);
                    assert_true(r.sum[0].acc[c] == 0 && r.sum[1].acc[2 * w + c] == 0); /* no edges */
                }
                for (uint32_t c = 0; w > 1 && c < 3 && keeps_who(); c++) /* NaN, nobody, 0 edges */
                    assert_true(c == 0 ? isnan(r.sum[2].acc[3 * w]) : r.sum[2].acc[3 * w + c * w] == 0);
                edges_result_free(&r);
            }
            edges_free(&b);
        }
        gs_device_close(d);
    }
}

static void expect_refusal(gs_device *d, const gs_edge_program_launch *l, const char *text)
{
    gs_assert_fails(gs_device_run_edge_program(d, l), GS_EINVAL, text);
}

static void test_edge_program__refuses_what_the_launch_lacks(void **state)
{
    gs_device *d = NULL;
    edge_fixture b;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    open_edges(&b, 4);
    const uint32_t row = add_operand(&b, 6, 0, 1);
    add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_ADD, 6, in_reg(row), in_reg(row)));
    float *const acc = test_malloc((size_t)b.target_rows * 6 * sizeof(float));
    gs_accumulator a = {.acc = acc};
    gs_edge_program_launch l = {.program = &b.program, .stage = &b.stage,
                                .edges = {.index_bytes = 4, .targets = b.targets, .target = b.target, .start = b.start,
                                          .index = b.index},
                                .rows = b.rows, .sum = &a, .param = b.weight};
    expect_refusal(d, &l, "stage \"edge stage\": not prepared for so many edge registers");
    gs_assert_ok(gs_device_prepare(d, &b.program));
    gs_assert_ok(gs_device_begin_sum(d, GS_SUM_ADD, &a, b.target_rows, 6, 0));
    gs_assert_ok(gs_device_run_edge_program(d, &l));

    a.acc = NULL;
    expect_refusal(d, &l, "sum 0: no place for this sum");
    gs_assert_fails(gs_device_begin_sum(d, GS_SUM_ADD, &a, 1, 6, 0), GS_EINVAL, "has no memory");
    a.acc = acc;
    gs_assert_fails(gs_device_finish_sum(d, GS_SUM_ATTEND, &a, 1, 6, 4), GS_EINVAL,
                    "attention of 4 heads over 6 columns");
    const float *const kept = b.rows[row];
    b.rows[row] = NULL;
    expect_refusal(d, &l, "edge register 0: rows that the launch does not have");
    b.rows[row] = kept;
    l.edges.index_bytes = 8;
    expect_refusal(d, &l, "indices of 8 bytes; only 2 and 4 exist");
    test_free(acc);
    edges_free(&b);
    gs_device_close(d);
}

static void test_edge_program__prepare_takes_what_it_says(void **state)
{
    gs_device *d = NULL;
    edge_fixture b;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 3));
    open_edges(&b, 4);
    everything(&b, 8, 75);
    const uint64_t unpacked = gs_device_scratch_bytes(d, &b.program);
    add_operand(&b, 1, 0, 1);
    add_operand(&b, 1, 0, 1);
    b.program.packed_rows = b.operand_rows;
    assert_in_range(gs_device_scratch_bytes(d, &b.program), unpacked + b.operand_rows * 4 * sizeof(float), SIZE_MAX);
    const uint64_t before = gs_alloc_live_bytes(), most = gs_device_scratch_bytes(d, &b.program);
    gs_assert_ok(gs_device_prepare(d, &b.program));
    const uint64_t took = gs_alloc_live_bytes() - before;
    assert_true(took > 0 && took <= most);
    gs_assert_ok(gs_device_prepare(d, &b.program)); /* nothing more the second time */
    assert_int_equal(gs_alloc_live_bytes() - before, took);
    gs_device_close(d);

    for (unsigned n = 1; n <= 5; n++) {
        gs_assert_ok(gs_device_open(&d, "cpu", 1));
        gs_alloc_fail_nth(n);
        const gs_status st = gs_device_prepare(d, &b.program);
        gs_alloc_fail_nth(0);
        if (st != GS_OK)
            gs_assert_fails(st, GS_ENOMEM, "device cpu: out of memory for");
        assert_int_equal(st, GS_ENOMEM);
        gs_device_close(d);
    }
    edges_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_program__weighted_sum_of_rows),
        cmocka_unit_test(test_edge_program__weights_that_are_not_there_are_one),
        cmocka_unit_test(test_edge_program__gated_sum),
        cmocka_unit_test(test_edge_program__largest_and_least),
        cmocka_unit_test(test_edge_program__who_has_the_largest),
        cmocka_unit_test(test_edge_program__every_operator),
        cmocka_unit_test(test_edge_program__attention),
        cmocka_unit_test(test_edge_program__dropout_of_edges),
        cmocka_unit_test(test_edge_program__dropout_of_edges_columns),
        cmocka_unit_test(test_edge_program__dropout_of_a_hubs_edges),
        cmocka_unit_test(test_edge_program__attention_backward),
        cmocka_unit_test(test_edge_program__loops_are_told_from_other_edges),
        cmocka_unit_test(test_edge_program__every_operator_and_operand),
        cmocka_unit_test(test_edge_program__hubs),
        cmocka_unit_test(test_edge_program__extreme_scores),
        cmocka_unit_test(test_edge_program__sums_in_one_walk),
        cmocka_unit_test(test_edge_program__products_and_sums_in_one_walk),
        cmocka_unit_test(test_edge_program__scores_of_minus_infinity_weigh_nothing),
        cmocka_unit_test(test_edge_program__infinity_is_a_value),
        cmocka_unit_test(test_edge_program__refuses_what_the_launch_lacks),
        cmocka_unit_test(test_edge_program__prepare_takes_what_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
