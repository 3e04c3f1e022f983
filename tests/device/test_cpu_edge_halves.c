/* Edge programs that read rows of bfloat16, against float64 of the rounded numbers, edge by edge: attention and its
 * gradients, gates, largest and least values, weighted sums; rows at either end, beside others of float32; on every
 * instruction set, cut in launches, and the same bits whatever the number of threads. */
#include "edge_fixture.h"

enum { TARGETS = 120 };

/* Empty targets, single edges, some that fill tiles; or a hub among them. */
static void open_edges(edge_fixture *b, uint32_t index_bytes, uint32_t hub)
{
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t % 31 == 0 ? 300 + t : random_below(t, 3, 14);
    degree[TARGETS / 2] += hub_edges(hub);
    edges_init(b, index_bytes, TARGETS, degree, 61);
}

/* Heads, and columns of each: fewer than a vector, half of one, whole ones, and such as end within one. */
static const uint32_t shapes[][2] = {{1, 64}, {8, 8}, {2, 1}, {8, 12}, {2, 33}, {16, 4}, {1, 42},
                                     {4, 16}, {8, 33}, {2, 132}, {16, 2}, {1, 16}, {3, 6}, {8, 32}};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* Scores of 16 heads are rounded, too, at the operand end. */
static uint32_t some_scores(edge_fixture *b, uint32_t heads)
{
    const uint32_t ours = add_operand(b, heads, -3, 3), theirs = add_target(b, heads, -3, 3);
    if (heads == 16)
        edges_halve(b, ours);
    const uint32_t pre = add_op(b, GS_OP_ADD, heads, in_reg(ours), in_reg(theirs));
    return add_op(b, GS_OP_LEAKY_RELU, heads, in_reg(pre), NO_OPERAND);
}

static void test_edge_halves__attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        const uint32_t h = shapes[i][0], w = h * shapes[i][1];
        edge_fixture b;
        if (!takes_shape(i, 3, 0))
            continue;
        open_edges(&b, i % 2 == 0 ? 4 : 2, i == 0 ? 20000 : 0);
        const uint32_t score = some_scores(&b, h);
        add_attend(&b, edges_halve(&b, add_operand(&b, w, -2, 2)), score);
        edges_check(&b, i == 0 ? 3e-5 : 4e-6);
        edges_free(&b);
    }
}

/* The weights' gradient by the dot product of rows at both ends, either of which, or both, are rounded; by source the
 * rows of gradients are summed as well. */
static void test_edge_halves__attention_backward(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (uint32_t which = 1; which < 4 && takes_shape(i, 3, 1); which++) {
            const uint32_t h = shapes[i][0], w = h * shapes[i][1];
            edge_fixture b;
            open_edges(&b, 4, 0);
            const uint32_t alpha = add_operand(&b, h, 0.1f, 1), mean = add_target(&b, h, -2, -1);
            const uint32_t g = add_operand(&b, w, 0, 1), x = add_target(&b, w, 0, 1); /* nothing cancels */
            if ((which & 1) != 0)
                edges_halve(&b, g);
            if ((which & 2) != 0)
                edges_halve(&b, x);
            if (h == 16)
                edges_halve(&b, alpha);
            const uint32_t dot =
                add_op(&b, GS_OP_FOLD, h, in_reg(add_op(&b, GS_OP_MUL, w, in_reg(g), in_reg(x))), NO_OPERAND);
            add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, h, in_reg(alpha),
                                           in_reg(add_op(&b, GS_OP_SUB, h, in_reg(dot), in_reg(mean)))));
            const uint32_t wide = add_op(&b, GS_OP_EXPAND, w, in_reg(alpha), NO_OPERAND);
            add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(wide), in_reg(g)));
            edges_check(&b, 5e-6);
            edges_free(&b);
        }
}

static void test_edge_halves__gates_and_largest(void **state)
{
    static const uint32_t widths[] = {2, 8, 16, 30, 64, 70, 130, 256};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        const uint32_t w = widths[i];
        edge_fixture b;
        if (!takes_shape(i, 3, 2))
            continue;
        open_edges(&b, 2, 0);
        const uint32_t mine = edges_halve(&b, add_target(&b, w, -3, 3));
        const uint32_t gate = edges_halve(&b, add_operand(&b, w, -3, 3));
        const uint32_t row = edges_halve(&b, add_operand(&b, w, -2, -1)); /* below 0: empty targets keep none of it */
        const uint32_t pre = add_op(&b, GS_OP_ADD, w, in_reg(mine), in_reg(gate));
        const uint32_t open = add_op(&b, GS_OP_SIGMOID, w, in_reg(pre), NO_OPERAND);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(open), in_reg(row)));
        add_sum(&b, GS_SUM_MAX, row);
        add_sum(&b, GS_SUM_MIN, row);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_ROWMAX, 1, in_reg(gate), NO_OPERAND));
        edges_check(&b, 4e-6);
        edges_free(&b);
    }
}

/* Straight from memory to the sums in registers, without a tile. */
static void test_edge_halves__weighted_sum_of_rows(void **state)
{
    static const uint32_t widths[] = {2, 4, 8, 14, 16, 30, 32, 66, 130, 256, 602};
    (void)state;
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        edge_fixture b;
        if (!takes_shape(i, 3, 0))
            continue;
        open_edges(&b, i % 2 == 0 ? 2 : 4, i == 4 ? 20000 : 0);
        const uint32_t row = edges_halve(&b, add_operand(&b, widths[i], -2, 2));
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, widths[i], in_reg(add_weight(&b)), in_reg(row)));
        edges_check(&b, i == 4 ? 1e-5 : 2e-6);
        edges_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_halves__attention),
        cmocka_unit_test(test_edge_halves__attention_backward),
        cmocka_unit_test(test_edge_halves__gates_and_largest),
        cmocka_unit_test(test_edge_halves__weighted_sum_of_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
