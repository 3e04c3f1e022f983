#include "support/formulas.h"

#include <math.h>

#include "support/support.h"

#define F(name, expression)                                              \
    static double name(double x, double y, double z, double alpha)       \
    {                                                                    \
        (void)x, (void)y, (void)z, (void)alpha;                          \
        return (expression);                                             \
    }

F(f_add, x + y)
F(f_sub, x - y)
F(f_mul, x * y)
F(f_div, x / y)
F(f_max, fmax(x, y))
F(f_min, fmin(x, y))
F(f_neg, -x)
F(f_exp, exp(x))
F(f_log, log(x))
F(f_sqrt, sqrt(x))
F(f_rsqrt, 1 / sqrt(x))
F(f_sigmoid, x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)))
F(f_tanh, tanh(x))
F(f_relu, x < 0 ? 0 : x)
F(f_leaky_relu, x > 0 ? x : alpha * x)
F(f_elu, x > 0 ? x : alpha * expm1(x))
F(f_step, x > 0 ? 1 : 0)
F(f_gelu, x * erfc(-x / sqrt(2)) / 2)
F(f_gelu_slope, erfc(-x / sqrt(2)) / 2 + x * exp(-x * x / 2) / sqrt(2 * acos(-1)))
F(f_silu, x >= 0 ? x / (1 + exp(-x)) : x * (exp(x) / (1 + exp(x))))
F(f_abs, x < 0 ? -x : x)
/* 8 bits, fewer below 2^-126; ties to even */
#define EXPONENT fmax(x == 0 ? -126 : ilogb(x), -126)
F(f_nearest, ldexp(nearbyint(ldexp(x, 7 - (int)EXPONENT)), (int)EXPONENT - 7))
F(f_pow, pow(x, alpha))
F(f_where, x == 0 ? z : y)
F(f_eq, x == y ? 1 : 0)
F(f_ne, x == y ? 0 : 1)
F(f_lt, y - x > 0 ? 1 : 0)
F(f_le, x < y || x == y ? 1 : 0)
F(f_gt, x - y > 0 ? 1 : 0)
F(f_ge, x > y || x == y ? 1 : 0)

/* CUDA's guide gives expf and tanhf 2 units beside the rounded value, expm1f and logf 1; what follows rounds once or
 * twice more, and a product may double the units of what it is given. */
static const op_formula formulas[] = {
    {.op = GS_OP_ADD, .value = f_add},
    {.op = GS_OP_SUB, .value = f_sub},
    {.op = GS_OP_MUL, .value = f_mul},
    {.op = GS_OP_DIV, .value = f_div, .positive = true},
    {.op = GS_OP_MAX, .value = f_max},
    {.op = GS_OP_MIN, .value = f_min},
    {.op = GS_OP_NEG, .value = f_neg, .range = {{-5, 5, 0, 0}}},
    {.op = GS_OP_EXP, .value = f_exp, .gpu = {.ulps = 2.5}, .range = {{-105, 90, 1.5, 0}, {-1, 1, 1.5, 0}}},
    {.op = GS_OP_LOG, .value = f_log, .positive = true,
     .range = {{0, 3, 1.5, 0}, {0.9f, 1.1f, 1.5, 0}, {0, 3e38f, 1.5, 0}, {0, 1e-37f, 1.5, 0}}},
    {.op = GS_OP_SQRT, .value = f_sqrt, .positive = true, .range = {{0, 100, 0.5, 0}}},
    {.op = GS_OP_RSQRT, .value = f_rsqrt, .positive = true, .range = {{1e-3f, 100, 1.5, 0}}},
    {.op = GS_OP_SIGMOID, .value = f_sigmoid, .gpu = {.ulps = 4.5}, .range = {{-110, 110, 3, 0}, {-4, 4, 3, 0}}},
    {.op = GS_OP_TANH, .value = f_tanh, .gpu = {.ulps = 2.5},
     .range = {{-12, 12, 2.5, 0}, {-0.7f, 0.7f, 2.5, 0}, {-1e-4f, 1e-4f, 2.5, 0}}},
    {.op = GS_OP_RELU, .value = f_relu, .range = {{-2, 2, 0, 0}}},
    {.op = GS_OP_LEAKY_RELU, .value = f_leaky_relu, .alpha = 0.3f, .range = {{-2, 2, 0.5, 0}}},
    {.op = GS_OP_ELU, .value = f_elu, .alpha = 0.3f, .gpu = {.ulps = 3.5},
     .range = {{-30, 3, 2.5, 0}, {-1, 0, 2.5, 0}, {-1e-5f, 0, 2.5, 0}}},
    {.op = GS_OP_STEP, .value = f_step, .range = {{-2, 2, 0, 0}}},
    /* beside 0 a GPU takes the rounded argument of erfcf; the slope is 0 at -0.75 */
    {.op = GS_OP_GELU, .value = f_gelu, .gpu = {.ulps = 6, .least = 0.0625},
     .range = {{-14, 14, 6, 0}, {-2, 2, 6, 0}, {-1e-4f, 1e-4f, 6, 0}}},
    {.op = GS_OP_GELU_SLOPE, .value = f_gelu_slope, .gpu = {.ulps = 6, .least = 0.125},
     .range = {{-14, 14, 6, 0.125}, {-14, -2, 6, 0}, {0, 3, 6, 0}}},
    {.op = GS_OP_SILU, .value = f_silu, .gpu = {.ulps = 6}, .range = {{-100, 100, 4, 1e-36}, {-4, 4, 4, 1e-36}}},
    {.op = GS_OP_ABS, .value = f_abs, .range = {{-5, 5, 0, 0}}},
    {.op = GS_OP_NEAREST, .value = f_nearest, .range = {{-5, 5, 0, 0}, {1, 3e38f, 0, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = 2.5f, .positive = true, .gpu = {.ulps = 4.5},
     .range = {{0, 10, 0.6, 0}, {0.99f, 1.01f, 0.6, 0}, {-2, 2, 0.6, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = 3, .gpu = {.ulps = 4.5}, .range = {{-10, 10, 0.6, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = -0.7f, .gpu = {.ulps = 4.5}, .range = {{0, 1e-3f, 0.6, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = -5, .gpu = {.ulps = 4.5}, .range = {{-3, 3, 0.6, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = 57.25f, .gpu = {.ulps = 4.5}, .range = {{0, 5, 0.6, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = 2, .gpu = {.ulps = 4.5}, .range = {{-3, 3, 0.5, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = 1, .range = {{-3, 3, 0, 0}}},
    {.op = GS_OP_POW, .value = f_pow, .alpha = 0, .range = {{-3, 3, 0, 0}}},
    {.op = GS_OP_WHERE, .value = f_where},
    {.op = GS_OP_EQ, .value = f_eq},
    {.op = GS_OP_NE, .value = f_ne},
    {.op = GS_OP_LT, .value = f_lt},
    {.op = GS_OP_LE, .value = f_le},
    {.op = GS_OP_GT, .value = f_gt},
    {.op = GS_OP_GE, .value = f_ge},
};

const op_formula *op_formula_at(size_t i)
{
    return i < sizeof(formulas) / sizeof(formulas[0]) ? &formulas[i] : NULL;
}

const op_formula *op_formula_of(gs_op op)
{
    static const op_formula *first[GS_OP_COUNT]; /* asked for once an element */
    if (first[op] != NULL)
        return first[op];
    for (size_t i = 0; first[op] == NULL && op_formula_at(i) != NULL; i++)
        if (op_formula_at(i)->op == op)
            first[op] = op_formula_at(i);
    if (first[op] == NULL)
        fail_msg("the tests have no formula of %s", gs_op_name(op));
    return first[op];
}
