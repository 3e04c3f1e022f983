/* Edges multiplied by the matrix of their type, and the gradients of these matrices, against float64 edge by edge: few
 * and many types, one that most edges have and some that none has, every width of a register block, a target of many
 * edges. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "edge_fixture.h"

enum { TARGETS = 120 };

/* Where the products of the device may round, to 11 bits. */
static bool rounds(void) { return getenv("GS_TEST_MATMUL") != NULL; }
static double within(double tolerance) { return rounds() ? 1e-2 : tolerance; }

/* Half of the edges are of type 0, and of the others no type is the last one. */
static void open_edges(edge_fixture *b, uint32_t index_bytes, uint32_t types)
{
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t == 31 ? hub_edges(9000) : random_below(t, 3, 14);
    edges_init(b, index_bytes, TARGETS, degree, 61);
    edges_make_typed(b, types);
    for (uint32_t k = 0; k < b->edges; k++)
        b->type[k] = (uint8_t)(k % 2 == 0 || types == 1 ? 0 : b->type[k] % (types - 1));
}

static gs_operand in_matrices(uint32_t param) { return (gs_operand){.kind = GS_FROM_PARAM, .index = param}; }

static const uint32_t shapes[][3] = {/* types, in, out */
                                     {1, 4, 4},    {3, 1, 7},     {2, 6, 1},     {5, 8, 8},   {7, 16, 16},
                                     {40, 16, 32}, {200, 33, 20}, {256, 20, 65}, {9, 64, 48}, {12, 50, 100}};

static void test_edge_batch__rows_by_the_matrix_of_their_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (!takes_shape(i, 2, 0))
            continue;
        const uint32_t in = shapes[i][1], out = shapes[i][2];
        edge_fixture b;
        open_edges(&b, i % 2 == 0 ? 2 : 4, shapes[i][0]);
        const uint32_t u = add_operand(&b, in, 0.25f, 1), v = add_target(&b, out, 0.25f, 1),
                       w = add_matrices(&b, in, out);
        const uint32_t share = add_by_type(&b, GS_EDGE_TARGET, 1, 0.1f, 1),
                       product = add_op(&b, GS_OP_BY_TYPE, out, in_reg(u), in_matrices(w));
        const uint32_t shared = add_op(&b, GS_OP_MUL, out, in_reg(product), in_reg(share));
        const uint32_t scaled = add_op(&b, GS_OP_MUL, out, in_reg(v), in_reg(add_weight(&b)));
        add_sum(&b, GS_SUM_ADD, shared);
        add_sum(&b, GS_SUM_MAX, product);
        add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_BY_TYPE_T, in, in_reg(scaled), in_matrices(w)));
        edges_check(&b, within(5e-5)); /* 9000 numbers of one sign, one after the other */
        edges_free(&b);
    }
}

/* Several parameters are transposed, each into a place of its own; a product of a product. */
static void test_edge_batch__products_one_after_the_other(void **state)
{
    (void)state;
    edge_fixture b;
    open_edges(&b, 4, 6);
    const uint32_t u = add_operand(&b, 12, 0.5f, 1), first = add_matrices(&b, 24, 12), second = add_matrices(&b, 7, 24);
    const uint32_t there = add_op(&b, GS_OP_BY_TYPE_T, 24, in_reg(u), in_matrices(first));
    const uint32_t on = add_op(&b, GS_OP_BY_TYPE_T, 7, in_reg(there), in_matrices(second));
    add_sum(&b, GS_SUM_ADD, add_op(&b, GS_OP_BY_TYPE, 24, in_reg(on), in_matrices(second)));
    add_sum(&b, GS_SUM_ADD, there);
    edges_check(&b, within(5e-5)); /* 9000 numbers of one sign, one after the other */
    edges_free(&b);
}

static void test_edge_batch__attention_over_products(void **state)
{
    (void)state;
    edge_fixture b;
    open_edges(&b, 2, 20);
    const uint32_t u = add_operand(&b, 10, rounds() ? 0.25f : -1, 1), /* what cancels has no bits left */
                   v = add_target(&b, 16, -1, 1);
    const uint32_t p = add_op(&b, GS_OP_BY_TYPE, 16, in_reg(u), in_matrices(add_matrices(&b, 10, 16)));
    add_attend(&b, p, add_op(&b, GS_OP_FOLD, 2, in_reg(add_op(&b, GS_OP_MUL, 16, in_reg(p), in_reg(v))), NO_OPERAND));
    edges_check(&b, within(2e-4));
    edges_free(&b);
}

/* ---- gradients ---- */

typedef struct outer_fixture {
    edge_fixture b;
    uint32_t types, in, out, param;
    uint32_t alike;       /* a parameter: the matrix that all edges have beside theirs, or GS_NONE */
    uint32_t x, g, share; /* registers */
    uint16_t *type;       /* of edges: more of them than a byte holds */
} outer_fixture;

/* grad(w)[type] += x(target)' (share g(operand)), as the derivative of a mean by type over out-edges has it. */
static void open_outer(outer_fixture *o, uint32_t types, uint32_t in, uint32_t out)
{
    edge_fixture *const b = &o->b;
    *o = (outer_fixture){.types = types, .in = in, .out = out, .alike = GS_NONE};
    open_edges(b, 4, 1);
    b->types = types;
    o->type = test_malloc(b->edges * sizeof(*o->type));
    for (uint32_t k = 0; k < b->edges; k++)
        o->type[k] = (uint16_t)(k % 3 == 0 ? types / 2 : random_below(k, 5, types));
    o->x = add_target(b, in, -1, 1);
    o->g = add_operand(b, out, -1, 1);
    o->share = add_by_type(b, GS_EDGE_OPERAND, 1, 0.1f, 1);
    o->param = add_matrices(b, in, out);
    const uint32_t value = add_op(b, GS_OP_MUL, out, in_reg(o->g), in_reg(o->share));
    const uint32_t sum = add_sum(b, GS_SUM_OUTER, value);
    b->reg[b->stage.sum[sum].reg].width = 1;
    b->stage.sum[sum].score = o->x;
    b->stage.sum[sum].weight = o->param;
    /* shares the stage with it */
    add_sum(b, GS_SUM_ADD, add_op(b, GS_OP_BY_TYPE_T, in, in_reg(value), in_matrices(o->param)));
}

static void close_outer(outer_fixture *o)
{
    test_free(o->type);
    edges_free(&o->b);
}

static void open_outer_runs(outer_fixture *o, uint32_t types, uint32_t in, uint32_t out)
{
    edge_fixture *const b = &o->b;
    open_outer(o, types, in, out);
    for (uint32_t k = 0; k < b->edges; k++)
        o->type[k] = (uint16_t)(random_below(k / 3, 5, types));
    b->stage.products = GS_PRODUCTS_OF_RUNS;
}

/* Few operands, so that pairs have several edges each. */
static void open_outer_pairs(outer_fixture *o, uint32_t types, uint32_t in, uint32_t out)
{
    edge_fixture *const b = &o->b;
    const uint32_t few = types < 4 ? types : 4;
    open_outer(o, types, in, out);
    for (uint32_t k = 0; k < b->edges; k++)
        o->type[k] = (uint16_t)(random_below(k, 5, few) * types / few);
    b->stage.products = GS_PRODUCTS_OF_PAIRS;
}

/* The same products are of a matrix that edges of all types add to, too. */
static void open_outer_alike(outer_fixture *o, uint32_t types, uint32_t in, uint32_t out)
{
    edge_fixture *const b = &o->b;
    open_outer(o, types, in, out);
    o->alike = add_matrices(b, in, out);
    b->param[o->alike].rows = in;
    const uint32_t sum = add_sum(b, GS_SUM_OUTER, b->stage.sum[0].value);
    b->reg[b->stage.sum[sum].reg].width = 1;
    b->stage.sum[sum].score = o->x;
    b->stage.sum[sum].weight = o->alike;
    b->stage.sum[sum].dense = true;
}

/* Of the gradients: those of the types' matrices, then of the one for all. */
static size_t elements(const outer_fixture *o)
{
    return ((size_t)o->types + (o->alike != GS_NONE)) * o->in * o->out;
}

/* No sanitizer need look at what is expected. */
static __attribute__((no_sanitize("address", "undefined"))) double *expect_outer(const outer_fixture *o,
                                                                                 double **magnitude)
{
    const edge_fixture *const b = &o->b;
    const size_t n = (size_t)o->types * o->in * o->out, most = n + (size_t)o->in * o->out;
    double *const want = calloc(most, sizeof(*want)), *const size = *magnitude = calloc(most, sizeof(*size));
    for (uint32_t t = 0; t < b->targets; t++)
        for (uint32_t k = b->start[t]; k < b->start[t + 1]; k++) {
            const uint32_t target = 2 * t + 1, operand = get_number(b->index, b->index_bytes, k), type = o->type[k];
            const double share = (double)b->rows[o->share][(size_t)operand * o->types + type];
            for (uint32_t i = 0; i < o->in; i++)
                for (uint32_t c = 0; c < o->out; c++) {
                    const double d = (double)b->rows[o->x][(size_t)target * o->in + i] * share *
                                     (double)b->rows[o->g][(size_t)operand * o->out + c];
                    const size_t e = (size_t)i * o->out + c, own = (size_t)type * o->in * o->out + e;
                    want[own] += d;
                    size[own] += fabs(d);
                    want[n + e] += d;
                    size[n + e] += fabs(d);
                }
        }
    return want;
}

/* With the types of this fixture, which are more than fit in a byte. */
static gs_edge_program_launch typed_launch(const outer_fixture *o, const gs_accumulator *sum)
{
    gs_edge_program_launch l = edges_launch(&o->b, sum);
    l.edges.type = o->type;
    l.edges.type_bytes = 2;
    return l;
}

static void compare_outer(const float *grad, const double *want, const double *magnitude, size_t n, double times)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)grad[i] - 1 - times * want[i]) <= within(1e-5) * (1 + times * magnitude[i])))
            fail_msg("element %zu: %.9g, not 1 + %.9g (magnitudes %.3g)", i, (double)grad[i], times * want[i],
                     magnitude[i]);
}

/* Adds to the gradient, which starts at 1, and the same once more: each time by what it should be. Returns what it was
 * after the first launch. */
static float *check_launches(const outer_fixture *o, gs_device *d, const double *want, const double *magnitude)
{
    const edge_fixture *const b = &o->b;
    const size_t n = elements(o);
    float *const grad = test_malloc(n * sizeof(float)), *const once = test_malloc(n * sizeof(float));
    float *const acc[3] = {random_floats(b->target_rows, 1, 0, 1),
                           random_floats((size_t)b->target_rows * o->in, 2, 0, 1),
                           random_floats(b->target_rows, 3, 0, 1)};
    float *all[EDGES_MAX] = {[0] = NULL};
    const gs_accumulator sum[3] = {{.acc = acc[0]}, {.acc = acc[1]}, {.acc = acc[2]}};
    gs_edge_program_launch l = typed_launch(o, sum);
    l.grad = all;
    all[o->param] = grad;
    if (o->alike != GS_NONE)
        all[o->alike] = grad + (size_t)o->types * o->in * o->out;
    for (size_t i = 0; i < n; i++)
        grad[i] = 1;
    gs_assert_ok(gs_device_prepare(d, &b->program));
    for (uint32_t s = 0; s < b->stage.sums; s++)
        gs_assert_ok(launch_begin_sum(d, b->stage.sum[s].kind, &sum[s], b->target_rows, s == 1 ? o->in : 1, 0));
    gs_assert_ok(launch_edge_program(d, &l));
    memcpy(once, grad, n * sizeof(float));
    compare_outer(once, want, magnitude, n, 1);
    gs_assert_ok(launch_edge_program(d, &l));
    compare_outer(grad, want, magnitude, n, 2);
    for (uint32_t r = 0; r < b->target_rows; r++)
        assert_true(acc[0][r] == 0);
    for (uint32_t s = 0; s < 3; s++)
        test_free(acc[s]);
    test_free(grad);
    return once;
}

/* Every `step`-th shape. */
static void check_gradients(void (*open)(outer_fixture *o, uint32_t types, uint32_t in, uint32_t out), size_t step)
{
    static const uint32_t shape[][3] = {{1, 5, 3},    {4, 8, 8},     {300, 16, 16}, {700, 3, 20},
                                        {50, 33, 40}, {10, 20, 100}, {3, 1, 1}};
    for (size_t s = step / 2; s < sizeof(shape) / sizeof(shape[0]); s += step) {
        if (step == 1 && !takes_shape(s, 2, 1))
            continue;
        outer_fixture o;
        double *magnitude;
        open(&o, shape[s][0], shape[s][1], shape[s][2]);
        const size_t n = elements(&o);
        double *const want = expect_outer(&o, &magnitude);
        for (size_t i = 0; i < isas; i++) {
            float *first = NULL;
            for (unsigned threads = 1; threads <= most_threads; threads++) {
                if (threads > 1 && !gs_test_takes(i + threads, 2)) /* 2 or 3 */
                    continue;
                gs_device *const d = open_isa(isa_names[i], threads);
                if (d == NULL)
                    break;
                float *const once = check_launches(&o, d, want, magnitude);
                if (first == NULL)
                    first = once;
                else
                    assert_memory_equal(first, once, n * sizeof(float));
                if (first != once)
                    test_free(once);
                gs_device_close(d);
            }
            test_free(first);
        }
        free(want);
        free(magnitude);
        close_outer(&o);
    }
}

static void test_edge_batch__gradients_of_the_matrices(void **state)
{
    (void)state;
    check_gradients(open_outer, 1);
}

static void test_edge_batch__gradients_of_a_matrix_for_all_beside(void **state)
{
    (void)state;
    check_gradients(open_outer_alike, 3);
}

static void test_edge_runs__gradients_of_the_sums_of_runs(void **state)
{
    (void)state;
    check_gradients(open_outer_runs, 1);
}

static void test_edge_pairs__gradients_of_the_sums_of_targets(void **state)
{
    (void)state;
    check_gradients(open_outer_pairs, 1);
}

static void refused(gs_device *d, void *context)
{
    outer_fixture o;
    float acc[1000];
    const gs_accumulator sum[2] = {{.acc = acc}, {.acc = acc}};
    (void)context;
    open_outer(&o, 3, 2, 2);
    const edge_fixture *const b = &o.b;
    gs_edge_program_launch l = typed_launch(&o, sum);
    gs_assert_ok(gs_device_prepare(d, &b->program));
    gs_assert_fails(gs_device_run_edge_program(d, &l), GS_EINVAL, "no gradient of matrices that these rows fit");
    l.edges.type = NULL;
    gs_assert_fails(gs_device_run_edge_program(d, &l), GS_EINVAL, "columns by the type of edges that have none");
    close_outer(&o);
}

static void test_edge_batch__what_is_missing_is_refused(void **state)
{
    (void)state;
    on_every_device(refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_batch__rows_by_the_matrix_of_their_type),
        cmocka_unit_test(test_edge_batch__products_one_after_the_other),
        cmocka_unit_test(test_edge_batch__attention_over_products),
        cmocka_unit_test(test_edge_batch__gradients_of_the_matrices),
        cmocka_unit_test(test_edge_batch__gradients_of_a_matrix_for_all_beside),
        cmocka_unit_test(test_edge_runs__gradients_of_the_sums_of_runs),
        cmocka_unit_test(test_edge_pairs__gradients_of_the_sums_of_targets),
        cmocka_unit_test(test_edge_batch__what_is_missing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
