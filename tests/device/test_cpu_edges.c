/* Edge launches against plain loops, and against sums in float64. Sums must be the same bits as those of adding the
 * edges in order, on every instruction set and number of threads, of float32 rows or of what other rows become. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device_fixture.h"

/* `counted`: an edge may stand for several. `scaled`: each row is multiplied by a number. */
typedef struct edges_kind {
    gs_dtype dtype;
    bool counted, scaled;
} edges_kind;

typedef struct edges_case {
    edges_kind kind;
    uint32_t index_bytes, targets, acc_rows, operand_rows, edges, width;
    void *target, *index;
    uint32_t *start;
    uint8_t *count; /* or NULL */
    void *operand;  /* of the kind's type */
    float *value;   /* the operand as float32, before it is scaled */
    float *scale;   /* or NULL */
    float *before, *want;
    double *exact, *size; /* the sum, and that of its terms' sizes */
} edges_case;

static const edges_kind plain;

/* Some of its numbers are below what float16 has without leading zeros. */
static void make_operand(edges_case *c)
{
    const size_t n = (size_t)c->operand_rows * c->width;
    c->value = random_floats(n, 8, -3, 3);
    for (size_t i = 0; c->kind.dtype != GS_F32 && i < n; i += 17)
        c->value[i] *= 1e-6f;
    c->operand = test_malloc(n * gs_dtype_bytes(c->kind.dtype));
    gs_convert_from_f32(c->operand, c->kind.dtype, c->value, n);
    gs_convert_to_f32(c->value, c->operand, c->kind.dtype, n);
    c->scale = c->kind.scaled ? random_floats(c->operand_rows, 12, 0.01f, 2) : NULL;
}

static void make_sums(edges_case *c)
{
    const size_t n = (size_t)c->acc_rows * c->width;
    c->before = random_floats(n, 9, -3, 3);
    c->want = test_malloc(n * sizeof(float));
    c->exact = test_malloc(n * sizeof(double));
    c->size = test_malloc(n * sizeof(double));
    memcpy(c->want, c->before, n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        c->exact[i] = c->before[i];
        c->size[i] = fabs(c->exact[i]);
    }
    for (uint32_t t = 0; t < c->targets; t++)
        for (uint32_t k = c->start[t]; k < c->start[t + 1]; k++)
            for (uint32_t col = 0; col < c->width; col++) {
                const size_t row = get_number(c->index, c->index_bytes, k), to = (size_t)(2 * t + 1) * c->width + col;
                const float times = c->count != NULL ? (float)c->count[k] : 1;
                const float by = c->scale != NULL ? c->scale[row] : 1;
                volatile const float copy = c->value[row * c->width + col] * by, term = copy * times; /* both round */
                const double exact = (double)c->value[row * c->width + col] * by * times;
                c->want[to] += term;
                c->exact[to] += exact;
                c->size[to] += fabs(exact);
            }
}

/* `degree[t]` edges each; targets are every second row of acc; operands repeat (multi-edges). */
static void make_case(edges_case *c, uint32_t index_bytes, uint32_t targets, const uint32_t *degree,
                      uint32_t operand_rows, uint32_t width, edges_kind kind)
{
    *c = (edges_case){.kind = kind, .index_bytes = index_bytes, .targets = targets, .acc_rows = 2 * targets + 1,
                      .operand_rows = operand_rows, .width = width};
    c->start = test_malloc((targets + 1) * sizeof(uint32_t));
    c->start[0] = 0;
    for (uint32_t t = 0; t < targets; t++)
        c->start[t + 1] = c->start[t] + degree[t];
    c->edges = c->start[targets];
    c->target = test_malloc((size_t)targets * index_bytes);
    c->index = test_malloc((size_t)c->edges * index_bytes);
    for (uint32_t t = 0; t < targets; t++)
        put_number(c->target, index_bytes, t, 2 * t + 1);
    for (uint32_t k = 0; k < c->edges; k++)
        put_number(c->index, index_bytes, k, random_below(k, 7, operand_rows));
    c->count = kind.counted ? test_malloc(c->edges) : NULL;
    for (uint32_t k = 0; kind.counted && k < c->edges; k++)
        c->count[k] = (uint8_t)(1 + random_below(k, 11, k % 3 == 0 ? 255 : 2));
    make_operand(c);
    make_sums(c);
}

static void free_case(edges_case *c)
{
    test_free(c->target);
    test_free(c->index);
    test_free(c->count);
    test_free(c->start);
    test_free(c->operand);
    test_free(c->value);
    test_free(c->scale);
    test_free(c->before);
    test_free(c->want);
    test_free(c->exact);
    test_free(c->size);
}

static void run_case(gs_device *d, const edges_case *c)
{
    const size_t n = (size_t)c->acc_rows * c->width;
    float *const acc = test_malloc(n * sizeof(float));
    memcpy(acc, c->before, n * sizeof(float));
    const gs_edge_launch l = {.edges = {.index_bytes = c->index_bytes, .targets = c->targets, .target = c->target,
                                        .start = c->start, .index = c->index, .count = c->count},
                              .operand = c->operand, .dtype = c->kind.dtype, .scale = c->scale, .acc = acc,
                              .width = c->width};
    gs_alloc_freeze(true);
    const uint64_t frozen = gs_alloc_frozen_count();
    gs_assert_ok(gs_device_run_edges(d, &l));
    assert_int_equal(gs_alloc_frozen_count(), frozen);
    gs_alloc_freeze(false);
    if (c->count != NULL) { /* a product and its sum may round once or twice */
        gs_assert_all_close(acc, c->want, n, 1e-5, 2e-3);
    } else {
        gs_assert_all_close(acc, c->want, n, 0, 0); /* prints the place */
        assert_memory_equal(acc, c->want, n * sizeof(float));
    }
    if (c->edges < 10000) /* each addition may be off by half a unit of the last place */
        for (size_t i = 0; i < n; i++)
            if (!(fabs(acc[i] - c->exact[i]) <= 20 * 6e-8 * c->size[i]))
                fail_msg("number %zu is %g, not %g", i, (double)acc[i], c->exact[i]);
    test_free(acc);
}

static void each_device(gs_device *d, void *context) { run_case(d, context); }

static void test_edges__every_width_both_index_types(void **state)
{
    static const uint32_t widths[] = {1,  2,  3,  4,  5,  6,  7,   8,   9,   12,  15,  16,  17,
                                      20, 23, 24, 25, 28, 31, 32,  33,  40,  41,  47,  48,  55,
                                      56, 57, 63, 64, 65, 72, 100, 120, 127, 128, 129, 256, 602};
    uint32_t degree[80];
    (void)state;
    for (uint32_t t = 0; t < 80; t++) /* empty targets, single edges, and remainders of 4 */
        degree[t] = t % 5 == 0 ? 0 : random_below(t, 3, 14);
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
        for (uint32_t i = 0; i < 24; i++) {
            const edges_kind kind = {.dtype = (gs_dtype[]){GS_F32, GS_BF16, GS_F16}[i / 8], .counted = i & 2,
                                     .scaled = i & 4};
            edges_case c;
            make_case(&c, i % 2 ? 2 : 4, 80, degree, 61, widths[w], kind);
            on_every_device(each_device, &c);
            free_case(&c);
        }
}

static void test_edges__hub_of_100000_edges_between_others(void **state)
{
    static const uint32_t widths[] = {3, 16, 41, 64, 130};
    enum { TARGETS = 300 };
    uint32_t degree[TARGETS];
    (void)state;
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = random_below(t, 4, 9);
    degree[120] = 100000;
    degree[121] = 30000; /* two in a row: the second starts in a range that the first one reaches */
    degree[TARGETS - 1] = 20000;
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        edges_case c;
        make_case(&c, 4, TARGETS, degree, 1000, widths[w], w == 3 ? (edges_kind){GS_BF16, false, true} : plain);
        on_every_device(each_device, &c);
        free_case(&c);
    }
}

static void test_edges__many_threads_give_the_same_bits(void **state)
{
    enum { TARGETS = 4000 };
    static uint32_t degree[TARGETS];
    (void)state;
    for (uint32_t t = 0; t < TARGETS; t++) { /* a heavy tail */
        const float u = random_between(t, 5, 0.002f, 1);
        degree[t] = (uint32_t)(3 / u);
    }
    edges_case c;
    make_case(&c, 4, TARGETS, degree, 5000, 48, (edges_kind){GS_F16, false, true});
    for (unsigned threads = 1; threads <= 7; threads += 3) {
        gs_device *d = NULL;
        gs_assert_ok(gs_device_open(&d, "cpu", threads));
        run_case(d, &c);
        gs_device_close(d);
    }
    free_case(&c);
}

static void test_edges__order_does_not_depend_on_chunks(void **state)
{
    /* one target whose edges come in two launches: the same bits as in one */
    const uint32_t degree[1] = {900};
    (void)state;
    edges_case c;
    make_case(&c, 4, 1, degree, 50, 20, plain);
    gs_device *const d = open_isa("generic", 1);
    float *const acc = test_malloc(3 * 20 * sizeof(float));
    memcpy(acc, c.before, 3 * 20 * sizeof(float));
    for (int half = 0; half < 2; half++) {
        const uint32_t start[2] = {0, half == 0 ? 411 : 900 - 411};
        const gs_edge_launch l = {.edges = {.index_bytes = 4, .targets = 1, .target = c.target, .start = start,
                                            .index = (const uint32_t *)c.index + (half == 0 ? 0 : 411)},
                                  .operand = c.operand, .acc = acc, .width = 20};
        gs_assert_ok(gs_device_run_edges(d, &l));
    }
    assert_memory_equal(acc, c.want, 3 * 20 * sizeof(float));
    test_free(acc);
    free_case(&c);
    gs_device_close(d);
}

static void test_edges__nothing_to_do_touches_nothing(void **state)
{
    const uint32_t start[3] = {0, 0, 0}, target[2] = {0, 1};
    float acc[2] = {1, 2};
    gs_device *d = NULL;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    gs_edge_launch l = {.edges = {.index_bytes = 4, .targets = 0, .start = start}, .acc = acc, .width = 1};
    gs_assert_ok(gs_device_run_edges(d, &l));
    l.edges.targets = 2;
    l.edges.target = target;
    gs_assert_ok(gs_device_run_edges(d, &l));
    assert_true(acc[0] == 1 && acc[1] == 2);
    l.edges.index_bytes = 3;
    gs_assert_fails(gs_device_run_edges(d, &l), GS_EINVAL, "indices of 3 bytes; only 2 and 4 exist");
    l.edges.index_bytes = 4;
    l.dtype = GS_I32;
    gs_assert_fails(gs_device_run_edges(d, &l), GS_EINVAL, "rows of i32; only f32, bf16 and f16 can be summed");
    const gs_edge_launch by_type = {.edges = {.index_bytes = 4, .type_bytes = 1}, .dtype = GS_BF16, .types = 2};
    gs_assert_fails(gs_device_run_edges(d, &by_type), GS_EINVAL, "edge launch by type: rows of bf16");
    gs_device_close(d);
}

static void add_and_zero(gs_device *d, void *context)
{
    static const size_t sizes[] = {0, 1, 7, 1000, 200003};
    (void)context;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        const size_t n = sizes[s];
        float *const a = random_floats(n + 1, 1, -1, 1), *const b = random_floats(n, 2, -1, 1);
        float *const want = random_floats(n + 1, 1, -1, 1);
        for (size_t i = 0; i < n; i++)
            want[i] = a[i] + b[i];
        gs_assert_ok(gs_device_add_own(d, &(gs_own_launch){.own = b, .acc = a, .rows = n, .width = 1}));
        assert_memory_equal(a, want, (n + 1) * sizeof(float)); /* one beyond is left alone */
        gs_assert_ok(gs_device_zero(d, a, n * sizeof(float)));
        for (size_t i = 0; i < n; i++)
            assert_true(a[i] == 0);
        assert_true(a[n] == want[n]);
        test_free(a);
        test_free(b);
        test_free(want);
    }
}

/* Own rows of each type, scaled or not: the bits of a float32 copy. */
static void add_own(gs_device *d, void *context)
{
    static const uint32_t widths[] = {1, 3, 4, 15, 16, 17, 41, 602};
    (void)context;
    for (uint32_t i = 0; i < 6 * sizeof(widths) / sizeof(widths[0]); i++) {
        edges_case c = {.kind = {.dtype = (gs_dtype[]){GS_F32, GS_BF16, GS_F16}[i % 3], .scaled = i / 3 % 2},
                        .operand_rows = 301, .width = widths[i / 6]};
        const size_t n = (size_t)c.operand_rows * c.width;
        float *const acc = random_floats(n + 1, 1, -1, 1), *const want = random_floats(n + 1, 1, -1, 1);
        make_operand(&c);
        for (size_t k = 0; k < n; k++) {
            volatile const float copy = c.value[k] * (c.scale != NULL ? c.scale[k / c.width] : 1);
            want[k] += copy;
        }
        gs_assert_ok(gs_device_add_own(d, &(gs_own_launch){.dtype = c.kind.dtype, .own = c.operand, .scale = c.scale,
                                                           .acc = acc, .rows = c.operand_rows, .width = c.width}));
        assert_memory_equal(acc, want, (n + 1) * sizeof(float));
        free_case(&c);
        test_free(acc);
        test_free(want);
    }
}

static void test_device__add_own_rows_of_every_type(void **state)
{
    (void)state;
    on_every_device(add_own, NULL);
}

static void test_device__add_and_zero(void **state)
{
    (void)state;
    on_every_device(add_and_zero, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges__every_width_both_index_types),
        cmocka_unit_test(test_edges__hub_of_100000_edges_between_others),
        cmocka_unit_test(test_edges__many_threads_give_the_same_bits),
        cmocka_unit_test(test_edges__order_does_not_depend_on_chunks),
        cmocka_unit_test(test_edges__nothing_to_do_touches_nothing),
        cmocka_unit_test(test_device__add_own_rows_of_every_type),
        cmocka_unit_test(test_device__add_and_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
