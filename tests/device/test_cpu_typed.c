/* Sums by edge type, and their transpose, against plain loops: the same bits as those of adding the edges
 * in order, on every instruction set and number of threads. */
#include <string.h>

#include "base/alloc.h"
#include "device_fixture.h"

typedef struct typed_case {
    uint32_t index_bytes, type_bytes, targets, operand_rows, width, types;
    bool pick;
    void *target, *index, *type;
    uint32_t *start;
    float *operand, *before, *want;
    size_t acc_floats;
} typed_case;

/* Types come in runs of up to 4 edges, as after sorting inside a target, and now and then alone. */
static uint32_t type_at(const typed_case *c, uint32_t k) { return random_below(k % 5 == 0 ? k : k / 4, 11, c->types); }

static void expect(const typed_case *c)
{
    const size_t narrow = c->width, many = (size_t)c->width * c->types;
    for (uint32_t t = 0; t < c->targets; t++)
        for (uint32_t k = c->start[t]; k < c->start[t + 1]; k++) {
            const size_t from = random_below(k, 7, c->operand_rows) * (c->pick ? many : narrow);
            const size_t to = (2 * t + 1) * (c->pick ? narrow : many), shift = type_at(c, k) * narrow;
            for (uint32_t col = 0; col < c->width; col++)
                c->want[to + (c->pick ? 0 : shift) + col] += c->operand[from + (c->pick ? shift : 0) + col];
        }
}

static void make_case(typed_case *c, const uint32_t *degree)
{
    const size_t edges_at_most = 60000, wide = (size_t)c->width * c->types;
    c->start = test_malloc((c->targets + 1) * sizeof(uint32_t));
    c->start[0] = 0;
    for (uint32_t t = 0; t < c->targets; t++)
        c->start[t + 1] = c->start[t] + degree[t];
    const uint32_t edges = c->start[c->targets];
    assert_true(edges <= edges_at_most);
    c->target = test_malloc((size_t)c->targets * c->index_bytes);
    c->index = test_malloc((size_t)edges * c->index_bytes);
    c->type = test_malloc((size_t)edges * c->type_bytes);
    for (uint32_t t = 0; t < c->targets; t++)
        put_number(c->target, c->index_bytes, t, 2 * t + 1);
    for (uint32_t k = 0; k < edges; k++) {
        put_number(c->index, c->index_bytes, k, random_below(k, 7, c->operand_rows));
        put_number(c->type, c->type_bytes, k, type_at(c, k));
    }
    c->operand = random_floats(c->operand_rows * (c->pick ? wide : c->width), 8, -3, 3);
    c->acc_floats = (2 * (size_t)c->targets + 1) * (c->pick ? c->width : wide);
    c->before = random_floats(c->acc_floats, 9, -3, 3);
    c->want = random_floats(c->acc_floats, 9, -3, 3);
    expect(c);
}

static void free_case(typed_case *c)
{
    test_free(c->target);
    test_free(c->index);
    test_free(c->type);
    test_free(c->start);
    test_free(c->operand);
    test_free(c->before);
    test_free(c->want);
}

static void run_case(gs_device *d, void *context)
{
    const typed_case *const c = context;
    float *const acc = test_malloc(c->acc_floats * sizeof(float));
    memcpy(acc, c->before, c->acc_floats * sizeof(float));
    const gs_edge_launch l = {.edges = {.index_bytes = c->index_bytes, .targets = c->targets, .target = c->target,
                                        .start = c->start, .index = c->index, .type = c->type,
                                        .type_bytes = c->type_bytes},
                              .operand = c->operand, .acc = acc, .width = c->width, .types = c->types,
                              .pick = c->pick};
    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    gs_assert_ok(gs_device_run_edges(d, &l));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
    gs_assert_all_close(acc, c->want, c->acc_floats, 0, 0); /* prints the place */
    test_free(acc);
}

static void test_typed__every_width_both_directions(void **state)
{
    static const uint32_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40, 64, 65, 100, 129, 257};
    static const uint32_t bytes[][2] = {{2, 1}, {2, 2}, {4, 1}, {4, 4}}; /* of indices, of types */
    uint32_t degree[50];
    (void)state;
    for (uint32_t t = 0; t < 50; t++)
        degree[t] = t % 5 == 0 ? 0 : random_below(t, 3, 20);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        for (int pick = 0; pick < 2; pick++) {
            typed_case c = {.index_bytes = bytes[i % 4][0], .type_bytes = bytes[i % 4][1], .targets = 50,
                            .operand_rows = 37, .width = widths[i], .types = 1 + (uint32_t)i % 4 * 3,
                            .pick = pick == 1};
            make_case(&c, degree);
            on_every_device(run_case, &c);
            free_case(&c);
        }
}

static void test_typed__hub_between_others(void **state)
{
    uint32_t degree[300];
    (void)state;
    for (uint32_t t = 0; t < 300; t++)
        degree[t] = random_below(t, 4, 9);
    degree[120] = 50000;
    for (int pick = 0; pick < 2; pick++) {
        typed_case c = {.index_bytes = 4, .type_bytes = 2, .targets = 300, .operand_rows = 500, .width = 50,
                        .types = 5, .pick = pick == 1};
        make_case(&c, degree);
        on_every_device(run_case, &c);
        free_case(&c);
    }
}

static void test_typed__refuses_what_it_cannot_read(void **state)
{
    const uint32_t start[2] = {0, 0}, target[1] = {0};
    float acc[1] = {3};
    gs_device *d = NULL;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    gs_edge_launch l = {
        .edges = {.index_bytes = 4, .targets = 1, .target = target, .start = start, .type_bytes = 1},
        .acc = acc,
        .width = 1,
        .types = 1};
    gs_assert_ok(gs_device_run_edges(d, &l)); /* no edges */
    assert_true(acc[0] == 3);
    l.edges.type_bytes = 3;
    gs_assert_fails(gs_device_run_edges(d, &l), GS_EINVAL, "edge types of 3 bytes; only 1, 2 and 4 exist");
    l.edges.index_bytes = 1;
    gs_assert_fails(gs_device_run_edges(d, &l), GS_EINVAL, "indices of 1 bytes; only 2 and 4 exist");
    gs_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed__every_width_both_directions),
        cmocka_unit_test(test_typed__hub_between_others),
        cmocka_unit_test(test_typed__refuses_what_it_cannot_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
