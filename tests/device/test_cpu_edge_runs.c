/* Products by the matrices of edges' types of the sums of runs, and of pairs of operand and type: against
 * float64 edge by edge, and how many. */
#include "device/cpu/cpu.h"
#include "edge_fixture.h"
#include "program/products.h"

enum { TARGETS = 120, PAIR_OPERANDS = 400 };

static const uint32_t shapes[][3] = {/* types, in, out */
                                     {1, 4, 4},    {3, 1, 7},     {2, 6, 1},     {7, 16, 16},
                                     {256, 20, 65}, {9, 64, 48}};

static gs_operand in_matrices(uint32_t param) { return (gs_operand){.kind = GS_FROM_PARAM, .index = param}; }

/* As a store has them: the edges of a target by type. Some runs are of one edge. */
static void sort_types(edge_fixture *b)
{
    for (uint32_t t = 0; t < b->targets; t++)
        for (uint32_t k = b->start[t] + 1; k < b->start[t + 1]; k++)
            for (uint32_t i = k; i > b->start[t] && b->type[i - 1] > b->type[i]; i--) {
                const uint8_t type = b->type[i];
                b->type[i] = b->type[i - 1];
                b->type[i - 1] = type;
            }
}

static void open_runs(edge_fixture *b, uint32_t index_bytes, uint32_t types)
{
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t == 31 ? types + 40 : random_below(t, 3, 40);
    edges_init(b, index_bytes, TARGETS, degree, 61);
    edges_make_typed(b, types);
    sort_types(b);
    b->stage.products = GS_PRODUCTS_OF_RUNS;
}

static uint32_t count_runs(const edge_fixture *b)
{
    uint32_t runs = 0;
    for (uint32_t t = 0; t < b->targets; t++)
        for (uint32_t k = b->start[t]; k < b->start[t + 1]; k++)
            runs += k == b->start[t] || b->type[k] != b->type[k - 1];
    return runs;
}

static gs_cpu_kernels counting;
static const gs_cpu_kernels *counted;
static uint32_t multiplied;

static void count_rows(float *dst, const float *a, const float *matrix, uint32_t rows, uint32_t in, uint32_t out,
                       bool adds)
{
    __atomic_fetch_add(&multiplied, rows, __ATOMIC_RELAXED);
    counted->by_matrix(dst, a, matrix, rows, in, out, adds);
}

/* Rows that a device multiplies by matrices in one launch of the fixture. */
static uint32_t count_products(const edge_fixture *b)
{
    edges_result r = {.sum = {{0}}};
    gs_device *d;
    gs_assert_ok(gs_cpu_kernels_find(&counted));
    counting = *counted;
    counting.by_matrix = count_rows;
    multiplied = 0;
    gs_cpu__test_kernels = &counting;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    edges_run(b, d, 1, &r);
    gs_device_close(d);
    gs_cpu__test_kernels = NULL;
    edges_result_free(&r);
    return multiplied;
}

static void test_edge_runs__one_product_for_edges_of_a_target_and_a_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint32_t in = shapes[i][1], out = shapes[i][2];
        edge_fixture b;
        open_runs(&b, i % 2 == 0 ? 2 : 4, shapes[i][0]);
        const uint32_t u = add_operand(&b, in, 0.25f, 1), w = add_matrices(&b, in, out);
        const uint32_t share = add_by_type(&b, GS_EDGE_TARGET, 1, 0.1f, 1), v = add_target(&b, out, 0.25f, 1);
        const uint32_t x = i % 3 == 0 ? u : add_op(&b, GS_OP_MUL, in, in_reg(u), in_reg(add_weight(&b)));
        const uint32_t product = add_op(&b, GS_OP_BY_TYPE, out, in_reg(x), in_matrices(w));
        const uint32_t shared = add_op(&b, GS_OP_MUL, out, in_reg(product), in_reg(share));
        add_sum(&b, GS_SUM_ADD, shared);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, out, in_reg(v), in_reg(shared)));
        add_sum(&b, i % 2 == 0 ? GS_SUM_ADD : GS_SUM_ADD_TYPE, product);
        edges_check(&b, 2e-5);
        assert_int_equal(count_products(&b), count_runs(&b));
        edges_free(&b);
    }
}

/* Edges in their order, until there are `most` pairs; then from there on anew. *portions: how many there were. */
static uint32_t count_pairs(const edge_fixture *b, uint32_t most, uint32_t *portions)
{
    bool seen[256][PAIR_OPERANDS] = {{false}};
    uint32_t pairs = 0, now = 0;

    *portions = 1;
    for (uint32_t k = 0; k < b->edges; k++) {
        const uint32_t operand = get_number(b->index, b->index_bytes, k), type = b->type[k];
        if (!seen[type][operand] && now == most) {
            memset(seen, 0, sizeof(seen));
            ++*portions;
            now = 0;
        }
        now += !seen[type][operand];
        pairs += !seen[type][operand];
        seen[type][operand] = true;
    }
    return pairs;
}

static void open_pairs(edge_fixture *b, uint32_t index_bytes, uint32_t types, uint32_t operands)
{
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t == 31 ? types + 40 : random_below(t, 3, 40);
    edges_init(b, index_bytes, TARGETS, degree, operands);
    edges_make_typed(b, types);
    b->stage.products = GS_PRODUCTS_OF_PAIRS;
}

/* Sums that see the product beside the target's rows, the edge's weight and type; one is not linear in it. */
static void test_edge_pairs__one_product_for_edges_of_an_operand_and_a_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint32_t in = shapes[i][1], out = shapes[i][2];
        uint32_t portions;
        edge_fixture b;
        open_pairs(&b, i % 2 == 0 ? 2 : 4, shapes[i][0], 13);
        const uint32_t u = add_operand(&b, in, 0.25f, 1), w = add_matrices(&b, in, out);
        const uint32_t share = add_by_type(&b, GS_EDGE_OPERAND, 1, 0.1f, 1), v = add_target(&b, out, 0.25f, 1);
        const uint32_t x = i % 3 == 0 ? u : add_op(&b, GS_OP_MUL, in, in_reg(u), in_reg(share));
        const uint32_t product = add_op(&b, GS_OP_BY_TYPE, out, in_reg(x), in_matrices(w));
        const uint32_t beside =
            add_op(&b, GS_OP_RELU, out, in_reg(add_op(&b, GS_OP_SUB, out, in_reg(product), in_reg(v))),
                   (gs_operand){.kind = GS_FROM_NONE});
        add_sum(&b, i % 2 == 0 ? GS_SUM_ADD : GS_SUM_ADD_TYPE, product);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, out, in_reg(beside), in_reg(add_weight(&b))));
        add_sum(&b, GS_SUM_MAX, product);
        edges_check(&b, 2e-5);
        assert_int_equal(count_products(&b), count_pairs(&b, UINT32_MAX, &portions));
        edges_free(&b);
    }
}

/* More pairs than are made at a time, and an attention whose scores and values are products. */
static void test_edge_pairs__portions(void **state)
{
    (void)state;
    enum { IN = 300, OUT = 224 }; /* 1024 rows of both take 2 MiB */
    uint32_t portions;
    edge_fixture b;
    open_pairs(&b, 2, 30, PAIR_OPERANDS);
    const uint32_t product = add_op(&b, GS_OP_BY_TYPE, OUT, in_reg(add_operand(&b, IN, 0.25f, 1)),
                                    in_matrices(add_matrices(&b, IN, OUT)));
    const uint32_t score = add_op(&b, GS_OP_MUL, OUT, in_reg(product), in_reg(add_target(&b, OUT, -0.01f, 0.01f)));
    add_attend(&b, product, add_op(&b, GS_OP_FOLD, 2, in_reg(score), (gs_operand){.kind = GS_FROM_NONE}));
    edges_check(&b, 5e-5);
    assert_int_equal(count_products(&b), count_pairs(&b, 1024, &portions));
    assert_true(portions > 1);
    edges_free(&b);
}

/* A value of both ends has no product of its operand and type alone, nor has one that sees the operand beside it. */
static void test_edge_pairs__what_sees_more_is_refused(void **state)
{
    (void)state;
    for (uint32_t way = 0; way < 2; way++) {
        edge_fixture b;
        gs_edge_products p;
        gs_device *d;
        open_pairs(&b, 4, 3, 13);
        const uint32_t u = add_operand(&b, 4, 0, 1), v = add_target(&b, 4, 0, 1), w = add_matrices(&b, 4, 4);
        const uint32_t x = way == 0 ? add_op(&b, GS_OP_MUL, 4, in_reg(u), in_reg(v)) : u;
        const uint32_t product = add_op(&b, GS_OP_BY_TYPE, 4, in_reg(x), in_matrices(w));
        add_sum(&b, GS_SUM_ADD, way == 0 ? product : add_op(&b, GS_OP_MUL, 4, in_reg(product), in_reg(u)));
        assert_false(gs_stage_find_products(&p, &b.stage, GS_PRODUCTS_OF_PAIRS));
        gs_assert_ok(gs_device_open(&d, "cpu", 1));
        gs_assert_fails(gs_device_prepare(d, &b.program), GS_EINVAL, "not those of runs or pairs");
        gs_device_close(d);
        edges_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_pairs__one_product_for_edges_of_an_operand_and_a_type),
        cmocka_unit_test(test_edge_pairs__portions),
        cmocka_unit_test(test_edge_pairs__what_sees_more_is_refused),
        cmocka_unit_test(test_edge_runs__one_product_for_edges_of_a_target_and_a_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
