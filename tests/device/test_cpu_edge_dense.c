/* Edges multiplied by one matrix, as the gradient of a maximum is, and the gradient of that matrix, beside a sum of
 * what several steps make of a row: against float64 edge by edge, with the same bits on any number of threads. */
#include <math.h>
#include <stdlib.h>

#include "edge_fixture.h"

enum { TARGETS = 120 };

/* A gradient in parts beside the sums; rows narrower than a vector; several blocks of columns; one too large for parts;
 * of rows that have few zeros. */
static const struct shape {
    uint32_t in, out;
    bool picked, held; /* held: targets know which source has each number, but where several do */
} shapes[] = {{64, 64, true, false},   {5, 3, true, false},  {33, 40, true, false},  {130, 100, true, false},
              {200, 180, true, false}, {64, 48, false, false}, {64, 64, true, true}, {70, 70, true, true}};

typedef struct dense {
    edge_fixture b;
    struct shape s;
    uint32_t x, limit, g, y, param; /* registers: operand, target, operand, target */
    uint32_t who, number;           /* of `held`: target, operand */
} dense;

/* 1 where `who` is the source's number, or where it is 0 and the product of x is above 0. */
static uint32_t add_choice(dense *d)
{
    edge_fixture *const b = &d->b;
    const uint32_t n = d->s.in, rows[] = {b->target_rows * n, b->operand_rows};
    d->who = add_target(b, n, 0, 1);
    d->number = add_operand(b, 1, 0, 1);
    float *const numbers[] = {(float *)(uintptr_t)b->rows[d->who], (float *)(uintptr_t)b->rows[d->number]};
    for (uint32_t i = 0; i < rows[0]; i++) /* a third of the rows have no 0 */
        numbers[0][i] = (float)(i / n % 3 == 0 ? 1 + random_below(i, 21, 9) : random_below(i, 22, 9));
    for (uint32_t i = 0; i < rows[1]; i++)
        numbers[1][i] = (float)(1 + i % 9);
    const uint32_t product = add_op(b, GS_OP_DENSE, n, in_reg(d->x),
                                    (gs_operand){.kind = GS_FROM_PARAM, .index = d->param}),
                   above = add_op(b, GS_OP_EQ, n, in_reg(add_op(b, GS_OP_STEP, n, in_reg(product), NO_OPERAND)),
                                  in_const(1)),
                   same = add_op(b, GS_OP_EQ, n, in_reg(d->number), in_reg(d->who)),
                   choice = add_op(b, GS_OP_WHERE, n, in_reg(d->who), in_reg(same));
    b->instr[b->stage.edge_instrs - 1].c = in_reg(above);
    return choice;
}

static void open_dense(dense *d, struct shape s)
{
    edge_fixture *const b = &d->b;
    uint32_t degree[TARGETS];
    for (uint32_t t = 0; t < TARGETS; t++)
        degree[t] = t % 7 == 0 ? 0 : t == 31 ? 5000 : random_below(t, 3, 14); /* 5000: a hub is cut in pieces */
    *d = (dense){.s = s};
    edges_init(b, 4, TARGETS, degree, 61);
    d->x = add_operand(b, s.in, -1, 1);
    d->limit = add_target(b, s.in, 0.25f, 0.75f);
    d->g = add_operand(b, s.in, -1, 1);
    d->y = add_target(b, s.out, 0, 1);
    d->param = b->program.params++;
    b->param[d->param] = (gs_param){.dims = 2, .rows = s.in, .cols = s.out};
    b->weight[d->param] = random_floats((size_t)s.in * s.out, 900, 0.1f, 1.1f);
    const uint32_t above = s.held ? GS_NONE
                                  : add_op(b, GS_OP_STEP, s.in, in_reg(add_op(b, GS_OP_SUB, s.in, in_reg(d->x),
                                                                              in_reg(d->limit))), NO_OPERAND);
    const uint32_t picks = s.held     ? add_choice(d)
                           : s.picked ? add_op(b, GS_OP_EQ, s.in, in_reg(above), in_const(1))
                                      : above;
    const uint32_t value = add_op(b, GS_OP_MUL, s.in, in_reg(picks), in_reg(d->g));
    const uint32_t row = add_op(b, GS_OP_RELU, s.out, in_reg(d->y), NO_OPERAND);
    add_sum(b, GS_SUM_ADD, add_op(b, GS_OP_DENSE, s.out, in_reg(value),
                                  (gs_operand){.kind = GS_FROM_PARAM, .index = d->param}));
    const uint32_t outer = add_sum(b, GS_SUM_OUTER, row);
    b->reg[b->stage.sum[outer].reg].width = 1;
    b->stage.sum[outer].score = value;
    b->stage.sum[outer].weight = d->param;
    b->stage.sum[outer].dense = true;
}

static __attribute__((no_sanitize("address", "undefined"))) bool counts(const dense *d, size_t target, size_t operand,
                                                                        uint32_t i)
{
    const edge_fixture *const b = &d->b;
    const uint32_t in = d->s.in;
    if (!d->s.held)
        return b->rows[d->x][operand * in + i] > b->rows[d->limit][target * in + i];
    const float who = b->rows[d->who][target * in + i];
    double product = 0;
    for (uint32_t k = 0; who == 0 && k < in; k++)
        product += (double)b->rows[d->x][operand * in + k] * (double)b->weight[d->param][(size_t)k * in + i];
    return who == 0 ? product > 0 : who == b->rows[d->number][operand];
}

/* The gradient, [in, out], and behind it the sums, [target_rows, out]; and the sizes of what they add up. No sanitizer
 * need look at what is expected. */
static __attribute__((no_sanitize("address", "undefined"))) double *expect_dense(const dense *d, double *size)
{
    const edge_fixture *const b = &d->b;
    const uint32_t in = d->s.in, out = d->s.out;
    double *const want = calloc((size_t)(in + b->target_rows) * out, sizeof(*want));
    for (uint32_t t = 0; t < b->targets; t++)
        for (uint32_t k = b->start[t]; k < b->start[t + 1]; k++) {
            const size_t target = 2 * t + 1, operand = get_number(b->index, b->index_bytes, k);
            for (uint32_t i = 0; i < in; i++) {
                if (!counts(d, target, operand, i))
                    continue;
                const double v = (double)b->rows[d->g][operand * in + i];
                for (uint32_t c = 0; c < out; c++) {
                    const size_t one = (size_t)i * out + c, sum = (in + target) * out + c;
                    const double outer = v * (double)b->rows[d->y][target * out + c],
                                 product = v * (double)b->weight[d->param][one];
                    want[one] += outer;
                    size[one] += fabs(outer);
                    want[sum] += product;
                    size[sum] += fabs(product);
                }
            }
        }
    return want;
}

static float *run_dense(const dense *d, gs_device *device)
{
    const edge_fixture *const b = &d->b;
    const size_t one = (size_t)d->s.in * d->s.out, sums = (size_t)b->target_rows * d->s.out;
    float *const got = test_malloc((one + sums) * sizeof(float)), *grad[EDGES_MAX] = {[0] = NULL};
    gs_accumulator sum[2] = {{.acc = got + one}, {0}};
    gs_edge_program_launch l = edges_launch(b, sum);
    l.grad = grad;
    grad[d->param] = got;
    for (size_t i = 0; i < one; i++)
        got[i] = 0;
    gs_assert_ok(gs_device_prepare(device, &b->program));
    gs_assert_ok(launch_begin_sum(device, GS_SUM_ADD, &sum[0], b->target_rows, d->s.out, 0));
    gs_assert_ok(launch_edge_program(device, &l));
    return got;
}

static void check_dense(const dense *d)
{
    const size_t n = (size_t)(d->s.in + d->b.target_rows) * d->s.out;
    double *const size = calloc(n, sizeof(*size)), *const want = expect_dense(d, size);
    for (size_t i = 0; i < isas; i++) {
        float *first = NULL;
        for (unsigned threads = 1; threads <= 3; threads++) {
            if (threads > 1 && !gs_test_takes(i + threads, 2)) /* 2 or 3 */
                continue;
            gs_device *const device = open_isa(isa_names[i], threads);
            if (device == NULL)
                break;
            float *const got = run_dense(d, device);
            for (size_t k = 0; k < n; k++)
                if (!(fabs((double)got[k] - want[k]) <= 1e-5 * size[k]))
                    fail_msg("[%u, %u], number %zu: %.9g, not %.9g (magnitudes %.3g)", d->s.in, d->s.out, k,
                             (double)got[k], want[k], size[k]);
            if (first != NULL) {
                assert_memory_equal(first, got, n * sizeof(float));
                test_free(got);
            } else {
                first = got;
            }
            gs_device_close(device);
        }
        test_free(first);
    }
    free(want);
    free(size);
}

static void test_edge_dense__products_and_gradients_of_one_matrix(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        dense d;
        open_dense(&d, shapes[i]);
        check_dense(&d);
        edges_free(&d.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edge_dense__products_and_gradients_of_one_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
