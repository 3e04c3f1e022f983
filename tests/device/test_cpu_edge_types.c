/* Edge programs that go by the type of each edge, against float64, edge by edge: columns picked at either end,
 * sums into the columns of a type, attention over what is picked; with a target of many edges, and cut in launches. */
#include "edge_fixture.h"

enum { TARGETS = 120 };

static void open_edges(edge_fixture *b, uint32_t index_bytes, uint32_t types)
{
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t == 31 ? hub_edges(9000) : random_below(t, 3, 14);
    edges_init(b, index_bytes, TARGETS, degree, 61);
    edges_make_typed(b, types);
}

/* types, columns */
static const uint32_t shapes[][2] = {{2, 1}, {3, 3}, {5, 4}, {2, 7}, {7, 8}, {4, 16}, {3, 33}, {30, 20}};

static void test_edge_types__rows_at_either_end_are_picked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!takes_kind(i, 1, 0)) /* the other shapes are summed into their types' columns */
            continue;
        edge_fixture b;
        open_edges(&b, i % 4 < 2 ? 2 : 4, shapes[i][0]);
        const uint32_t w = shapes[i][1], u = add_by_type(&b, GS_EDGE_OPERAND, w, -2, 2);
        const uint32_t v = add_by_type(&b, GS_EDGE_TARGET, w, -2, 2), plain = add_operand(&b, w, -1, 1);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_MUL, w, in_reg(u), in_reg(v)));
        add_sum(&b, GS_SUM_ADD,
                add_op(&b, GS_OP_TANH, w, in_reg(add_op(&b, GS_OP_ADD, w, in_reg(u), in_reg(plain))), NO_OPERAND));
        add_sum(&b, GS_SUM_MAX, u);
        edges_check(&b, 4e-6);
        edges_free(&b);
    }
}

static void test_edge_types__sums_go_to_their_types_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!takes_kind(i, 1, 1))
            continue;
        edge_fixture b;
        open_edges(&b, i % 4 < 2 ? 4 : 2, shapes[i][0]);
        const uint32_t w = shapes[i][1], u = add_operand(&b, w, -2, 2), v = add_by_type(&b, GS_EDGE_TARGET, w, -2, 2);
        add_sum(&b, GS_SUM_ADD_TYPE, add_op(&b, GS_OP_MUL, w, in_reg(u), in_reg(add_weight(&b))));
        add_sum(&b, GS_SUM_ADD_TYPE, add_op(&b, GS_OP_MUL, w, in_reg(v), in_reg(u)));
        add_sum(&b, GS_SUM_ADD_TYPE, u);
        edges_check(&b, 4e-6);
        edges_free(&b);
    }
}

/* One sum alone, of rows times a number: nothing else is on the way, and no tile is made. */
static void test_edge_types__rows_times_a_number_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!takes_shape(i, 3, 0))
            continue;
        const uint32_t w = shapes[i / 8][1] * (i % 3 == 2 ? 9 : 1);
        const gs_sum_kind kind = i % 2 == 0 ? GS_SUM_ADD : GS_SUM_ADD_TYPE;
        edge_fixture b;
        open_edges(&b, i % 3 == 0 ? 2 : 4, shapes[i / 8][0]);
        const uint32_t u = i % 4 < 2 ? add_by_type(&b, GS_EDGE_OPERAND, w, -2, 2) : add_operand(&b, w, -2, 2);
        const uint32_t by_type[] = {add_by_type(&b, GS_EDGE_TARGET, 1, -2, 2),
                                    add_by_type(&b, GS_EDGE_OPERAND, 1, -2, 2)};
        const uint32_t number[] = {by_type[0], by_type[1], add_weight(&b), add_target(&b, 1, -2, 2),
                                   add_operand(&b, 1, -2, 2)};
        add_sum(&b, kind, i % 8 == 7 ? u : add_op(&b, GS_OP_MUL, w, in_reg(u), in_reg(number[i % 5])));
        edges_check(&b, 1e-5);
        edges_free(&b);
    }
}

static void test_edge_types__attention_over_picked_rows(void **state)
{
    static const uint32_t heads[] = {1, 2, 4};
    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        edge_fixture b;
        open_edges(&b, 2, 5);
        const uint32_t w = 8 * heads[i], u = add_by_type(&b, GS_EDGE_OPERAND, w, -1, 1), v = add_target(&b, w, -1, 1);
        add_attend(
            &b, u,
            add_op(&b, GS_OP_FOLD, heads[i], in_reg(add_op(&b, GS_OP_MUL, w, in_reg(u), in_reg(v))), NO_OPERAND));
        edges_check(&b, 1e-5);
        edges_free(&b);
    }
}

static void refused(gs_device *d, void *context)
{
    edge_fixture b;
    float acc[1];
    const gs_accumulator sum = {.acc = acc};
    (void)context;
    open_edges(&b, 2, 3);
    add_sum(&b, GS_SUM_ADD, add_by_type(&b, GS_EDGE_OPERAND, 4, -1, 1));
    gs_edge_program_launch l = edges_launch(&b, &sum);
    l.edges.type = NULL;
    l.edges.type_bytes = 0;
    gs_assert_ok(gs_device_prepare(d, &b.program));
    gs_assert_fails(gs_device_run_edge_program(d, &l), GS_EINVAL, "columns by the type of edges that have none");
    edges_free(&b);
}

static void test_edge_types__edges_without_types_are_refused(void **state)
{
    (void)state;
    on_every_device(refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_types__rows_at_either_end_are_picked),
        cmocka_unit_test(test_edge_types__sums_go_to_their_types_columns),
        cmocka_unit_test(test_edge_types__rows_times_a_number_alone),
        cmocka_unit_test(test_edge_types__attention_over_picked_rows),
        cmocka_unit_test(test_edge_types__edges_without_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
