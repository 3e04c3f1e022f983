/* LSTMs over edges against float64, step by step (support/lstm.c): forward and backward, widths that fill no vector,
 * hubs whose states are kept in several levels, sequences that go on from chunk to chunk, vertices without edges; and
 * the same bits whatever the number of threads. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "device_fixture.h"
#include "support/lstm.h"

enum { OPERANDS = 50 };

/* A chunk: target t is row 2 t + 1 of the interval. */
typedef struct sequence_fixture {
    gs_program program;
    gs_stage stage;
    gs_edge_reg edge_reg;
    gs_param param;
    uint32_t index_bytes, width, targets, rows, edges;
    uint32_t *start;
    void *target, *index;
    void *type; /* two bytes an edge, or NULL */
    uint32_t *order; /* edges of each target as its sequence goes */
    float *gates, *weight, *state, *cell, *d_state, *d_cell; /* what the launches begin with */
    /* expected */
    double *after_state, *after_cell, *before_d_state, *before_d_cell, *d_gates, *d_weight;
} sequence_fixture;

typedef struct results {
    float *state, *cell, *d_state, *d_cell, *d_gates, *d_weight;
} results;

#define STARTED_GATES 0.5f /* what the accumulated ones begin with */
#define STARTED_WEIGHT -0.25f

static uint32_t get(const void *p, uint32_t bytes, uint32_t i)
{
    return bytes == 2 ? ((const uint16_t *)p)[i] : ((const uint32_t *)p)[i];
}

static void put(void *p, uint32_t bytes, uint32_t i, uint32_t v)
{
    if (bytes == 2)
        ((uint16_t *)p)[i] = (uint16_t)v;
    else
        ((uint32_t *)p)[i] = v;
}

static float *filled(size_t n, float v)
{
    float *const p = test_malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        p[i] = v;
    return p;
}

static void sequence_open(sequence_fixture *b, uint32_t width, uint32_t index_bytes, const uint32_t *degree,
                          uint32_t targets, bool fresh)
{
    memset(b, 0, sizeof(*b));
    b->param = (gs_param){.name = "w", .dims = 2, .rows = 4 * width, .cols = width};
    b->edge_reg = (gs_edge_reg){.kind = GS_EDGE_OPERAND, .width = 4 * width, .array = 0};
    b->stage = (gs_stage){.name = "lstm", .sums = 1, .edge_regs = 1, .edge_reg = &b->edge_reg};
    b->stage.sum[0] = (gs_sum){.kind = GS_SUM_LSTM_BACK};
    b->program = (gs_program){.params = 1, .stages = 1, .param = &b->param, .stage = &b->stage};
    b->index_bytes = index_bytes;
    b->width = width;
    b->targets = targets;
    b->rows = 2 * targets + 1;
    b->start = test_malloc((targets + 1) * sizeof(uint32_t));
    b->target = test_malloc((size_t)targets * index_bytes);
    b->start[0] = 0;
    for (uint32_t t = 0; t < targets; t++) {
        b->start[t + 1] = b->start[t] + degree[t];
        put(b->target, index_bytes, t, 2 * t + 1);
    }
    b->edges = b->start[targets];
    b->index = test_malloc((size_t)b->edges * index_bytes + 1);
    for (uint32_t k = 0; k < b->edges; k++)
        put(b->index, index_bytes, k, random_below(k, 9, OPERANDS));
    b->order = test_malloc((b->edges + 1) * sizeof(uint32_t));
    for (uint32_t k = 0; k < b->edges; k++)
        b->order[k] = k;
    const size_t n = (size_t)b->rows * width;
    b->gates = random_floats((size_t)OPERANDS * 4 * width, 1, -1.5f, 1.5f);
    b->weight = random_floats((size_t)4 * width * width, 2, -1 / sqrtf((float)width), 1 / sqrtf((float)width));
    b->state = fresh ? filled(n, 0) : random_floats(n, 3, -1, 1);
    b->cell = fresh ? filled(n, 0) : random_floats(n, 4, -2, 2);
    b->d_state = random_floats(n, 5, -1, 1);
    b->d_cell = fresh ? filled(n, 0) : random_floats(n, 6, -1, 1);
}

/* Gives the edges `types` types and sorts a target's by type and operand; its sequence goes by operand. */
static void add_types(sequence_fixture *b, uint32_t types)
{
    b->type = test_malloc(b->edges * sizeof(uint16_t) + 1);
    for (uint32_t t = 0; t < b->targets; t++) {
        const uint32_t from = b->start[t], edges = b->start[t + 1] - from;
        for (uint32_t k = 0; k < edges; k++)
            put(b->type, 2, from + k, random_below(from + k, 11, types));
        for (uint32_t i = 1; i < edges; i++) /* by insertion */
            for (uint32_t k = from + i; k > from; k--) {
                const uint32_t x[2] = {get(b->type, 2, k - 1), get(b->index, b->index_bytes, k - 1)};
                const uint32_t y[2] = {get(b->type, 2, k), get(b->index, b->index_bytes, k)};
                if (x[0] < y[0] || (x[0] == y[0] && x[1] <= y[1]))
                    break;
                put(b->type, 2, k - 1, y[0]);
                put(b->type, 2, k, x[0]);
                put(b->index, b->index_bytes, k - 1, y[1]);
                put(b->index, b->index_bytes, k, x[1]);
            }
        for (uint32_t i = 1; i < edges; i++)
            for (uint32_t k = from + i; k > from; k--) {
                const uint32_t x = b->order[k - 1], y = b->order[k];
                if (get(b->index, b->index_bytes, x) <= get(b->index, b->index_bytes, y))
                    break;
                b->order[k - 1] = y;
                b->order[k] = x;
            }
    }
}

static double *doubles(const float *from, size_t n)
{
    double *const p = test_malloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        p[i] = (double)from[i];
    return p;
}

static double *constant(size_t n, double v)
{
    double *const p = test_malloc(n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        p[i] = v;
    return p;
}

static void sequence_expect(sequence_fixture *b)
{
    const size_t n = (size_t)b->rows * b->width, wide = 4 * (size_t)b->width;
    double *const gates = doubles(b->gates, OPERANDS * wide), *const weight = doubles(b->weight, wide * b->width);
    double *const state = doubles(b->state, n), *const cell = doubles(b->cell, n);
    const double **const x = test_malloc((b->edges + 1) * sizeof(*x));
    double **const dx = test_malloc((b->edges + 1) * sizeof(*dx));

    b->after_state = doubles(b->state, n);
    b->after_cell = doubles(b->cell, n);
    b->before_d_state = doubles(b->d_state, n);
    b->before_d_cell = doubles(b->d_cell, n);
    b->d_gates = constant(OPERANDS * wide, (double)STARTED_GATES);
    b->d_weight = constant(wide * b->width, (double)STARTED_WEIGHT);
    for (uint32_t t = 0; t < b->targets; t++) {
        const size_t row = (2 * (size_t)t + 1) * b->width;
        const lstm_sequence q = {.x = x, .steps = b->start[t + 1] - b->start[t], .h = b->width, .w = weight};
        for (uint32_t s = 0; s < q.steps; s++) {
            const uint32_t operand = get(b->index, b->index_bytes, b->order[b->start[t] + s]);
            x[s] = gates + operand * wide;
            dx[s] = b->d_gates + operand * wide;
        }
        lstm_forward(&q, b->after_state + row, b->after_cell + row);
        lstm_backward(&q, state + row, cell + row, b->before_d_state + row, b->before_d_cell + row, dx, b->d_weight);
    }
    test_free(gates);
    test_free(weight);
    test_free(state);
    test_free(cell);
    test_free(x);
    test_free(dx);
}

static float *copied(const float *from, size_t n)
{
    float *const p = test_malloc(n * sizeof(float));
    memcpy(p, from, n * sizeof(float));
    return p;
}

static void run(const sequence_fixture *b, gs_device *d, results *r)
{
    const size_t n = (size_t)b->rows * b->width, wide = 4 * (size_t)b->width;
    gs_sequence_launch l = {.edges = {.index_bytes = b->index_bytes, .targets = b->targets, .target = b->target,
                                      .start = b->start, .index = b->index, .type = b->type,
                                      .type_bytes = b->type ? 2 : 0, .operand_rows = OPERANDS,
                                      .target_rows = b->rows},
                            .width = b->width, .gates = b->gates, .weight = b->weight};
    r->state = copied(b->state, n);
    r->cell = copied(b->cell, n);
    r->d_state = copied(b->d_state, n);
    r->d_cell = copied(b->d_cell, n);
    r->d_gates = filled(OPERANDS * wide, STARTED_GATES);
    r->d_weight = filled(wide * b->width, STARTED_WEIGHT);
    gs_assert_ok(gs_device_prepare(d, &b->program));
    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    l.state = b->state;
    l.cell = b->cell;
    l.d_state = r->d_state;
    l.d_cell = r->d_cell;
    l.d_gates = r->d_gates;
    l.d_weight = r->d_weight;
    gs_assert_ok(launch_sequence_back(d, &l));
    l.state = r->state;
    l.cell = r->cell;
    gs_assert_ok(launch_sequence(d, &l));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
}

static void results_free(results *r)
{
    test_free(r->state);
    test_free(r->cell);
    test_free(r->d_state);
    test_free(r->d_cell);
    test_free(r->d_gates);
    test_free(r->d_weight);
}

/* Every number against the largest of its array: sums of many edges cancel. */
static void near(const float *got, const double *want, size_t n, double tolerance, const char *what)
{
    double most = 1;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance * most))
            fail_msg("%s: element %zu is %.9g, not %.9g (largest %.3g)", what, i, (double)got[i], want[i], most);
}

static void compare(const sequence_fixture *b, const results *r)
{
    const size_t n = (size_t)b->rows * b->width, wide = 4 * (size_t)b->width;
    near(r->state, b->after_state, n, 4e-6, "state");
    near(r->cell, b->after_cell, n, 4e-6, "cell");
    near(r->d_state, b->before_d_state, n, 4e-6, "gradient of the state");
    near(r->d_cell, b->before_d_cell, n, 4e-6, "gradient of the cell");
    near(r->d_gates, b->d_gates, OPERANDS * wide, 4e-6, "gradient of the rows");
    near(r->d_weight, b->d_weight, wide * b->width, 4e-6, "gradient of the weight");
}

static void same(const sequence_fixture *b, const results *x, const results *y)
{
    const size_t n = (size_t)b->rows * b->width * sizeof(float), wide = 4 * (size_t)b->width;
    assert_memory_equal(x->state, y->state, n);
    assert_memory_equal(x->cell, y->cell, n);
    assert_memory_equal(x->d_state, y->d_state, n);
    assert_memory_equal(x->d_cell, y->d_cell, n);
    assert_memory_equal(x->d_gates, y->d_gates, OPERANDS * wide * sizeof(float));
    assert_memory_equal(x->d_weight, y->d_weight, wide * b->width * sizeof(float));
}

static void sequence_close(sequence_fixture *b)
{
    test_free(b->type);
    test_free(b->order);
    test_free(b->start);
    test_free(b->target);
    test_free(b->index);
    test_free(b->gates);
    test_free(b->weight);
    test_free(b->state);
    test_free(b->cell);
    test_free(b->d_state);
    test_free(b->d_cell);
    test_free(b->after_state);
    test_free(b->after_cell);
    test_free(b->before_d_state);
    test_free(b->before_d_cell);
    test_free(b->d_gates);
    test_free(b->d_weight);
}

static void check_types(uint32_t width, uint32_t index_bytes, const uint32_t *degree, uint32_t targets, bool fresh,
                        uint32_t types)
{
    sequence_fixture b;
    sequence_open(&b, width, index_bytes, degree, targets, fresh);
    if (types > 0)
        add_types(&b, types);
    sequence_expect(&b);
    for (size_t i = 0; i < isas; i++) {
        results first = {0};
        for (unsigned threads = 1; threads <= most_threads; threads++) {
            if (threads > 1 && !gs_test_takes(i + threads, 2)) /* 2 or 3 */
                continue;
            gs_device *const d = open_isa(isa_names[i], threads);
            results r = {0};
            if (d == NULL)
                break;
            run(&b, d, &r);
            if (threads == 1) {
                compare(&b, &r);
                first = r;
            } else {
                same(&b, &first, &r);
                results_free(&r);
            }
            gs_device_close(d);
        }
        if (first.state != NULL)
            results_free(&first);
    }
    sequence_close(&b);
}

static void check(uint32_t width, uint32_t index_bytes, const uint32_t *degree,
                          uint32_t targets, bool fresh)
{
    check_types(width, index_bytes, degree, targets, fresh, 0);
}

/* No edges, one, a window and one more, and what tiles are made of. */
static void test_sequence__widths_and_degrees(void **state)
{
    static const uint32_t widths[] = {1, 2, 3, 5, 8, 13, 16, 17, 33, 64};
    uint32_t degree[150];
    (void)state;
    for (uint32_t t = 0; t < 150; t++)
        degree[t] = t % 7 == 0 ? 0 : t % 31 == 0 ? 15 + t % 4 : random_below(t, 3, 14);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        for (int fresh = 0; fresh < 2 && takes_shape(i, 2, 1); fresh++)
            check(widths[i], i % 2 == 0 ? 2 : 4, degree, 150, fresh);
}

/* Lengths around the sizes of windows and blocks: 16, 256 and 4096 steps. */
static void test_sequence__hubs_of_every_level(void **state)
{
    static const uint32_t degree[] = {3, 17, 16, 255, 256, 257, 0, 600, 4097, 1, 272, 31, 32, 33, 4095, 4096, 4400};
    enum { LEVELS = sizeof(degree) / sizeof(degree[0]), MORE_LONG = 3 };
    (void)state;
    check(6, 4, degree, takes_kind(1, 1, 0) ? LEVELS : LEVELS - MORE_LONG, true);
    if (takes_shape(1, 1, 0))
        check(6, 2, degree, LEVELS, false);
}

/* More targets than are sorted together. */
static void test_sequence__many_targets(void **state)
{
    enum { MANY = 20000 };
    const uint32_t targets = takes_kind(1, 1, 0) ? MANY : 5000;
    static uint32_t degree[MANY];
    (void)state;
    for (uint32_t t = 0; t < targets; t++)
        degree[t] = t == targets - 3000 ? 300 : random_below(t, 4, 4);
    check(4, 2, degree, targets, false);
}

/* Edges that are sorted by type: a sequence goes by operand all the same. */
static void test_sequence__types_do_not_change_the_order(void **state)
{
    static const uint32_t degree[] = {0, 1, 5, 16, 17, 40, 3, 300, 31, 2};
    (void)state;
    for (uint32_t types = 1; types < 50; types += 6) {
        if (!takes_shape(types / 6, 2, 0))
            continue;
        check_types(5, 2, degree, sizeof(degree) / sizeof(degree[0]), false, types);
        check_types(8, 4, degree, sizeof(degree) / sizeof(degree[0]), true, types);
    }
}

/* Wide states: one tile has few targets, or a single one. */
static void test_sequence__wide_states(void **state)
{
    static const uint32_t degree[] = {20, 1, 0, 17, 3, 3, 3, 35, 2};
    (void)state;
    check(takes_kind(1, 1, 0) ? 301 : 131, 4, degree, sizeof(degree) / sizeof(degree[0]), false);
}

/* Without a place for the weight's gradient it is left out, and the rest is the same. */
static void test_sequence__weight_that_is_not_learned(void **state)
{
    static const uint32_t degree[] = {4, 20, 7};
    sequence_fixture b;
    results r = {0};
    (void)state;
    sequence_open(&b, 9, 4, degree, 3, false);
    sequence_expect(&b);
    gs_device *const two = open_isa("generic", 2); /* a pretended GPU is not always there */
    gs_device *const d = two != NULL ? two : open_isa("generic", 1);
    run(&b, d, &r);
    float *const d_state = copied(b.d_state, (size_t)b.rows * 9), *const d_cell = copied(b.d_cell, (size_t)b.rows * 9);
    float *const d_gates = filled(OPERANDS * 36, STARTED_GATES);
    const gs_sequence_launch l = {.edges = {.index_bytes = 4, .targets = 3, .target = b.target, .start = b.start,
                                            .index = b.index, .operand_rows = OPERANDS, .target_rows = b.rows},
                                  .width = 9, .gates = b.gates, .weight = b.weight, .state = b.state, .cell = b.cell,
                                  .d_state = d_state, .d_cell = d_cell, .d_gates = d_gates};
    gs_assert_ok(launch_sequence_back(d, &l));
    assert_memory_equal(d_gates, r.d_gates, OPERANDS * 36 * sizeof(float));
    gs_device_close(d);
    test_free(d_state);
    test_free(d_cell);
    test_free(d_gates);
    results_free(&r);
    sequence_close(&b);
}

static void test_sequence__bad_launches_are_refused(void **state)
{
    static const uint32_t degree[] = {1, 2};
    sequence_fixture b;
    (void)state;
    sequence_open(&b, 4, 4, degree, 2, true);
    sequence_expect(&b);
    gs_device *const d = open_isa("generic", 1);
    gs_sequence_launch l = {.edges = {.index_bytes = 4, .targets = 2, .target = b.target, .start = b.start,
                                      .index = b.index},
                            .width = 4, .gates = b.gates, .weight = b.weight, .state = b.state, .cell = b.cell};
    gs_assert_fails(gs_device_run_sequence(d, &l), GS_EINVAL, "not prepared for");
    gs_assert_ok(gs_device_prepare(d, &b.program));
    gs_assert_fails(gs_device_run_sequence_back(d, &l), GS_EINVAL, "its gradients have no memory");
    l.edges.index_bytes = 3;
    gs_assert_fails(gs_device_run_sequence(d, &l), GS_EINVAL, "indices of 3 bytes");
    l.edges.index_bytes = 4;
    l.cell = NULL;
    gs_assert_fails(gs_device_run_sequence(d, &l), GS_EINVAL, "have no memory");
    gs_device_close(d);
    sequence_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence__widths_and_degrees),
        cmocka_unit_test(test_sequence__hubs_of_every_level),
        cmocka_unit_test(test_sequence__many_targets),
        cmocka_unit_test(test_sequence__types_do_not_change_the_order),
        cmocka_unit_test(test_sequence__wide_states),
        cmocka_unit_test(test_sequence__weight_that_is_not_learned),
        cmocka_unit_test(test_sequence__bad_launches_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
