/* test_tape.c - is each operation's derivative what differences of its value say? */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tape.h"

/* Two parameters a [4, 6] and b [6, 6], of which an operation takes what fits. */
enum { ROWS = 4, COLS = 6, PARAMS = ROWS * COLS + COLS * COLS };

typedef struct input {
    ref_tape tape;
    ref_node *a, *b, *row, *column, *heads; /* b's first row, first column over ROWS rows, first two of these */
} input;

typedef ref_node *(*operation)(input *in);

/* A single number that depends on every element of x differently. */
static ref_node *condense(ref_tape *t, const ref_node *x)
{
    ref_node *const weight = ref_zeros(t, x->rows, x->cols);
    for (size_t i = 0; i < x->rows * x->cols; i++)
        weight->x[i] = sin(1.0 + (double)i);
    return ref_block_sum(t, ref_column_sum(t, ref_mul(t, x, weight)), 1);
}

static ref_node *run(input *in, operation op, const double *value, double *gradient)
{
    in->tape = ref_tape_new();
    in->a = ref_variable(&in->tape, ROWS, COLS, value, gradient);
    in->b = ref_variable(&in->tape, COLS, COLS, value + ROWS * COLS, gradient + ROWS * COLS);
    in->row = ref_rows(&in->tape, in->b, 0, 1);
    in->column = ref_columns(&in->tape, ref_rows(&in->tape, in->b, 1, ROWS), 0, 1);
    in->heads = ref_columns(&in->tape, ref_rows(&in->tape, in->b, 1, ROWS), 0, 2);
    return condense(&in->tape, op(in));
}

static double value_of(operation op, const double *value)
{
    input in;
    double unused[PARAMS] = {0};
    const double v = run(&in, op, value, unused)->x[0];
    ref_tape_free(&in.tape);
    return v;
}

static void check(const char *name, operation op)
{
    double value[PARAMS], gradient[PARAMS] = {0};
    ref_random r = ref_random_seed(5);
    input in;
    for (size_t i = 0; i < PARAMS; i++)
        value[i] = 0.3 + ref_random_uniform(&r); /* positive, for log and sqrt */
    ref_tape_backward(&in.tape, run(&in, op, value, gradient));
    ref_tape_free(&in.tape);
    for (size_t i = 0; i < PARAMS; i++) {
        const double h = 1e-5, was = value[i];
        value[i] = was + h;
        const double above = value_of(op, value);
        value[i] = was - h;
        const double below = value_of(op, value);
        value[i] = was;
        if (!(fabs(gradient[i] - (above - below) / (2.0 * h)) <= 1e-8 * (1.0 + fabs(gradient[i]))))
            fail_msg("%s: element %zu: %.12g, differences say %.12g", name, i, gradient[i],
                     (above - below) / (2.0 * h));
    }
}

static const size_t edges[7] = {0, 2, 2, 1, 0, 2, 0}; /* row 3 of 4 has none */

#define OP(name, expression) \
    static ref_node *op_##name(input *in) { ref_tape *const t = &in->tape; return expression; }
OP(add, ref_add(t, in->a, in->row))
OP(sub, ref_sub(t, in->column, in->a))
OP(mul, ref_mul(t, in->a, in->heads))
OP(mul_itself, ref_mul(t, in->a, in->a))
OP(div, ref_div(t, in->a, in->heads))
OP(div_by_row, ref_div(t, in->row, in->a))
OP(scale, ref_scale(t, -1.5, in->a))
OP(shift, ref_function(t, "log", 0, ref_shift(t, 2.0, in->a)))
OP(relu, ref_function(t, "relu", 0, ref_shift(t, -0.8, in->a)))
OP(leaky_relu, ref_function(t, "leaky_relu", 0.2, ref_shift(t, -0.8, in->a)))
OP(elu, ref_function(t, "elu", 0.7, ref_shift(t, -0.8, in->a)))
OP(sigmoid, ref_function(t, "sigmoid", 0, in->a))
OP(tanh, ref_function(t, "tanh", 0, in->a))
OP(exp, ref_function(t, "exp", 0, in->a))
OP(sqrt, ref_function(t, "sqrt", 0, in->a))
OP(rsqrt, ref_function(t, "rsqrt", 0, in->a))
OP(matmul, ref_matmul(t, in->a, in->b))
OP(matmul_t, ref_matmul_t(t, in->a, in->b))
OP(columns, ref_columns(t, in->a, 2, 3))
OP(rows, ref_rows(t, in->a, 1, 2))
OP(concat, ref_concat(t, in->a, ref_mul(t, in->heads, in->heads)))
OP(block_sum, ref_block_sum(t, in->a, 3))
OP(sum_of_blocks, ref_sum_of_blocks(t, in->a, 3))
OP(column_sum, ref_column_sum(t, in->a))
OP(gather, ref_gather(t, in->a, edges, 7))
OP(scatter, ref_scatter(t, ref_gather(t, in->a, edges, 7), edges, ROWS))
OP(largest, ref_extreme(t, 1.0, ref_mul(t, ref_concat(t, in->a, in->heads), in->column), edges, ROWS))
OP(smallest, ref_extreme(t, -1.0, in->a, edges, ROWS))

static void test_operations__derivatives_agree_with_differences(void **state)
{
    (void)state;
#define TRY(name) check(#name, op_##name)
    TRY(add); TRY(sub); TRY(mul); TRY(mul_itself); TRY(div); TRY(div_by_row); TRY(scale); TRY(shift);
    TRY(relu); TRY(leaky_relu); TRY(elu); TRY(sigmoid); TRY(tanh); TRY(exp); TRY(sqrt); TRY(rsqrt);
    TRY(matmul); TRY(matmul_t); TRY(columns); TRY(rows); TRY(concat); TRY(block_sum); TRY(sum_of_blocks);
    TRY(column_sum); TRY(gather); TRY(scatter); TRY(largest); TRY(smallest);
}

/* [1 2; 3 4] @ [5 6; 7 8], and by the transpose: products and spreading of shapes against numbers worked out by
 * hand. */
static void test_operations__values_by_hand(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8}, wide[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const double product[] = {19, 22, 43, 50}, transposed[] = {17, 23, 39, 53},
                        spread[] = {1, 2, 6, 8, 15, 18, 28, 32};
    ref_tape t = ref_tape_new();
    ref_node *const a = ref_constant(&t, 2, 2, x), *const b = ref_constant(&t, 2, 2, y);
    ref_node *const c = ref_constant(&t, 2, 4, wide);
    assert_memory_equal(ref_matmul(&t, a, b)->x, product, sizeof(product));
    assert_memory_equal(ref_matmul_t(&t, a, b)->x, transposed, sizeof(transposed));
    assert_memory_equal(ref_mul(&t, c, a)->x, spread, sizeof(spread));
    ref_tape_free(&t);
}

/* A tied maximum shares its derivative; where there is no row, the value is 0 and nothing goes back. */
static void test_extreme__ties_and_nothing(void **state)
{
    (void)state;
    static const double x[] = {2.0, 2.0, 1.0, -3.0};
    static const size_t to[] = {0, 0, 0, 2};
    double gradient[4] = {0};
    ref_tape t = ref_tape_new();
    ref_node *const most = ref_extreme(&t, 1.0, ref_variable(&t, 4, 1, x, gradient), to, 3);
    assert_true(most->x[0] == 2.0 && most->x[1] == 0.0 && most->x[2] == -3.0);
    ref_tape_backward(&t, ref_column_sum(&t, most));
    assert_true(gradient[0] == 0.5 && gradient[1] == 0.5 && gradient[2] == 0.0 && gradient[3] == 1.0);
    ref_tape_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations__derivatives_agree_with_differences),
        cmocka_unit_test(test_operations__values_by_hand),
        cmocka_unit_test(test_extreme__ties_and_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
