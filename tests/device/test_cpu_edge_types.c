/* Edge programs that go by the type of each edge, against float64, edge by edge: columns picked at either end,
 * sums into the columns of a type, attention over what is picked; with a target of many edges, and cut in launches. */
#include "edge_bed.h"

enum { TARGETS = 120 };

static void open_bed(edge_bed *b, uint32_t index_bytes, uint32_t types)
{
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t == 31 ? 9000 : random_below(t, 3, 14); /* 9000: a hub is cut in pieces */
    bed_init(b, index_bytes, TARGETS, degree, 61);
    bed_make_typed(b, types);
}

/* types, columns */
static const uint32_t shapes[][2] = {{2, 1}, {3, 3}, {5, 4}, {2, 7}, {7, 8}, {4, 16}, {3, 33}, {30, 20}};

static void test_edge_types__rows_at_either_end_are_picked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        edge_bed b;
        open_bed(&b, i % 2 == 0 ? 2 : 4, shapes[i][0]);
        const uint32_t w = shapes[i][1], u = bed_by_type(&b, GS_EDGE_OPERAND, w, -2, 2);
        const uint32_t v = bed_by_type(&b, GS_EDGE_TARGET, w, -2, 2), plain = bed_operand(&b, w, -1, 1);
        bed_sum(&b, GS_SUM_ADD, bed_do(&b, GS_OP_MUL, w, in_reg(u), in_reg(v)));
        bed_sum(&b, GS_SUM_ADD,
                bed_do(&b, GS_OP_TANH, w, in_reg(bed_do(&b, GS_OP_ADD, w, in_reg(u), in_reg(plain))), NO_OPERAND));
        bed_sum(&b, GS_SUM_MAX, u);
        bed_check(&b, 4e-6);
        bed_free(&b);
    }
}

static void test_edge_types__sums_go_to_their_types_columns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        edge_bed b;
        open_bed(&b, i % 2 == 0 ? 4 : 2, shapes[i][0]);
        const uint32_t w = shapes[i][1], u = bed_operand(&b, w, -2, 2), v = bed_by_type(&b, GS_EDGE_TARGET, w, -2, 2);
        bed_sum(&b, GS_SUM_ADD_TYPE, bed_do(&b, GS_OP_MUL, w, in_reg(u), in_reg(bed_weight(&b))));
        bed_sum(&b, GS_SUM_ADD_TYPE, bed_do(&b, GS_OP_MUL, w, in_reg(v), in_reg(u)));
        bed_sum(&b, GS_SUM_ADD_TYPE, u);
        bed_check(&b, 4e-6);
        bed_free(&b);
    }
}

/* One sum alone, of rows times a number: nothing else is on the way, and no tile is made. */
static void test_edge_types__rows_times_a_number_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8 * sizeof(shapes) / sizeof(shapes[0]); i++) {
        const uint32_t w = shapes[i / 8][1] * (i % 3 == 2 ? 9 : 1);
        const gs_sum_kind kind = i % 2 == 0 ? GS_SUM_ADD : GS_SUM_ADD_TYPE;
        edge_bed b;
        open_bed(&b, i % 3 == 0 ? 2 : 4, shapes[i / 8][0]);
        const uint32_t u = i % 4 < 2 ? bed_by_type(&b, GS_EDGE_OPERAND, w, -2, 2) : bed_operand(&b, w, -2, 2);
        const uint32_t by_type[] = {bed_by_type(&b, GS_EDGE_TARGET, 1, -2, 2),
                                    bed_by_type(&b, GS_EDGE_OPERAND, 1, -2, 2)};
        const uint32_t number[] = {by_type[0], by_type[1], bed_weight(&b), bed_target(&b, 1, -2, 2),
                                   bed_operand(&b, 1, -2, 2)};
        bed_sum(&b, kind, i % 8 == 7 ? u : bed_do(&b, GS_OP_MUL, w, in_reg(u), in_reg(number[i % 5])));
        bed_check(&b, 1e-5);
        bed_free(&b);
    }
}

static void test_edge_types__attention_over_picked_rows(void **state)
{
    static const uint32_t heads[] = {1, 2, 4};
    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        edge_bed b;
        open_bed(&b, 2, 5);
        const uint32_t w = 8 * heads[i], u = bed_by_type(&b, GS_EDGE_OPERAND, w, -1, 1), v = bed_target(&b, w, -1, 1);
        bed_attend(
            &b, u,
            bed_do(&b, GS_OP_FOLD, heads[i], in_reg(bed_do(&b, GS_OP_MUL, w, in_reg(u), in_reg(v))), NO_OPERAND));
        bed_check(&b, 1e-5);
        bed_free(&b);
    }
}

static void refused(gs_device *d, void *context)
{
    edge_bed b;
    float acc[1];
    const gs_accumulator sum = {.acc = acc};
    (void)context;
    open_bed(&b, 2, 3);
    bed_sum(&b, GS_SUM_ADD, bed_by_type(&b, GS_EDGE_OPERAND, 4, -1, 1));
    gs_edge_program_launch l = bed_launch(&b, &sum);
    l.edges.type = NULL;
    l.edges.type_bytes = 0;
    gs_assert_ok(gs_device_prepare(d, &b.program));
    gs_assert_fails(gs_device_run_edge_program(d, &l), GS_EINVAL, "columns by the type of edges that have none");
    bed_free(&b);
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
