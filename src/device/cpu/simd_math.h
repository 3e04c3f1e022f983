/* simd_math.h - exp, log, tanh, sigmoid, expm1, powers and gelu of vectors; and, at the end, the formula of every
 * elementwise operator.
 *
 * Against float64, in units of the last place, the largest errors found: exp and log 1, tanh 1.3, elu 1.4, sigmoid 2.2,
 * powers 0.5, silu 2.8, gelu 4.8, its slope 3.8 (tests/support/formulas.c holds the bounds).
 *
 * Range reductions and polynomials are those of Cephes (expf, logf, tanhf; S.
 * Moshier), without branches. ln 2 is split in two so that n * LN2_HIGH is
 * exact; constants with fewer digits than a float shows are exact.
 * Infinities, NaN and subnormal numbers behave as in libm.
 */
#ifndef GS_DEVICE_CPU_SIMD_MATH_H
#define GS_DEVICE_CPU_SIMD_MATH_H

#include <math.h>
#include <stdbool.h>

#include "device/cpu/simd.h"

#define GS_LN2_HIGH 0.693359375f
#define GS_LN2_LOW -2.12194440e-4f
#define GS_LOG2_E 1.44269504088896341f
#define GS_ROUND_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer in the low bits */

GS_INLINE gs_vf gs_v_power_of_two(gs_vi n) { return (gs_vf)((n + 127) << 23); }

/* x = n ln 2 + r with |r| <= ln 2 / 2; returns e^r - 1. */
GS_INLINE gs_vf gs_v_exp_reduced(gs_vi *n, gs_vf x)
{
    const gs_vf shifted = x * GS_LOG2_E + GS_ROUND_MAGIC;
    const gs_vf whole = shifted - GS_ROUND_MAGIC;
    *n = (gs_vi)((gs_vu)shifted - (gs_vu)gs_splat(GS_ROUND_MAGIC));

    const gs_vf r = (x - whole * GS_LN2_HIGH) - whole * GS_LN2_LOW;
    gs_vf p = gs_splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return p * (r * r) + r;
}

GS_INLINE gs_vf gs_v_exp(gs_vf x)
{
    gs_vi n;
    x = gs_select(x > 89.0f, gs_splat(89.0f), x);     /* e^89 overflows */
    x = gs_select(x < -104.0f, gs_splat(-104.0f), x); /* e^-104 is below half the least subnormal */
    const gs_vf e = gs_v_exp_reduced(&n, x) + 1.0f;
    const gs_vi half = n >> 1; /* in two steps: 2^n itself may not be a float when the result is */
    return e * gs_v_power_of_two(half) * gs_v_power_of_two(n - half);
}

/* e^x - 1 for x <= 0 (any value is allowed above, and meaningless). */
GS_INLINE gs_vf gs_v_expm1_negative(gs_vf x)
{
    gs_vi n;
    x = gs_select(x > 0.0f, gs_splat(0.0f), x);
    x = gs_select(x < -20.0f, gs_splat(-20.0f), x);
    const gs_vf e = gs_v_exp_reduced(&n, x), scale = gs_v_power_of_two(n);
    return scale * e + (scale - 1.0f);
}

GS_INLINE gs_vf gs_v_log(gs_vf x)
{
    const gs_vi tiny = x < 0x1p-126f;
    const gs_vf scaled = gs_select(tiny, x * 0x1p23f, x);
    const gs_vu bits = (gs_vu)scaled;
    gs_vi e = (gs_vi)(bits >> 23) - 126 - (tiny & 23);
    gs_vf m = (gs_vf)((bits & 0x007fffffu) | 0x3f000000u); /* [0.5, 1) */
    const gs_vi small = m < 0.707106781186547524f;
    e += small; /* -1 where true */
    m = gs_select(small, m + m, m) - 1.0f;

    const gs_vf z = m * m, exponent = __builtin_convertvector(e, gs_vf);
    gs_vf p = gs_splat(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    gs_vf y = p * m * z + exponent * GS_LN2_LOW - 0.5f * z;
    y = (m + y) + exponent * GS_LN2_HIGH;

    y = gs_select(x == 0.0f, gs_splat(-INFINITY), y);
    y = gs_select(x < 0.0f, gs_splat(NAN), y);
    return gs_select((x == INFINITY) | (x != x), x, y);
}

GS_INLINE gs_vf gs_v_abs(gs_vf x) { return (gs_vf)((gs_vu)x & 0x7fffffffu); }

GS_INLINE gs_vf gs_v_tanh(gs_vf x)
{
    const gs_vf a = gs_v_abs(x), z = x * x;
    const gs_vf large = 1.0f - 2.0f / (gs_v_exp(a + a) + 1.0f);
    gs_vf p = gs_splat(-5.70498872745e-3f);
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const gs_vf near_zero = p * z * x + x;
    const gs_vf signed_large = (gs_vf)((gs_vu)large | ((gs_vu)x & 0x80000000u));
    return gs_select(a < 0.625f, near_zero, signed_large);
}

/* e^-|x| cannot overflow, so neither side loses its small values. */
GS_INLINE gs_vf gs_v_sigmoid(gs_vf x)
{
    const gs_vf e = gs_v_exp(-gs_v_abs(x));
    return gs_select(x < 0.0f, e, gs_splat(1.0f)) / (1.0f + e);
}

/* Half as many numbers, as float64. */
typedef float gs_vf_half __attribute__((vector_size(2 * GS_LANES)));
typedef double gs_vd __attribute__((vector_size(4 * GS_LANES)));
typedef uint64_t gs_vl __attribute__((vector_size(4 * GS_LANES)));

/* x^y for finite x > 0 as 2^(y log2 x), in float64: a float32 logarithm has not the digits that y takes from it.
 * x = 2^e m with m from sqrt(1/2) to sqrt(2), log2 m the series of artanh((m - 1) / (m + 1)) (4e-13 of it), 2^f that of
 * the exponential (2e-10). */
GS_INLINE gs_vf_half gs_v_pow_half(gs_vf_half x, double y)
{
    const gs_vd zero = {0}, magic = zero + 0x1.8p52; /* adding it rounds to an integer in the low bits */
    const gs_vl bits = (gs_vl)__builtin_convertvector(x, gs_vd);
    const gs_vd whole = (gs_vd)((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
    const gs_vl above = (gs_vl)(whole > 1.4142135623730951);
    const gs_vd m = (gs_vd)((above & (gs_vl)(whole * 0.5)) | (~above & (gs_vl)whole));
    const gs_vd one = (gs_vd)(above & (gs_vl)(zero + 1.0));
    const gs_vd e = (gs_vd)(bits >> 52 | 0x4330000000000000u) - (0x1p52 + 1023.0) + one;
    const gs_vd s = (m - 1.0) / (m + 1.0), z = s * s;
    gs_vd p = zero + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;

    gs_vd t = y * (e + p * s * 2.8853900817779268); /* 2 / ln 2 */
    const gs_vl large = (gs_vl)(t > 160.0), small = (gs_vl)(t < -160.0);
    t = (gs_vd)((large & (gs_vl)(zero + 160.0)) | (small & (gs_vl)(zero - 160.0)) | (~(large | small) & (gs_vl)t));
    const gs_vd shifted = t + magic, r = (t - (shifted - magic)) * 0.69314718055994531;
    const gs_vl n = (gs_vl)shifted - (gs_vl)magic;
    gs_vd q = zero + 1.0 / 40320;
    q = q * r + 1.0 / 5040;
    q = q * r + 1.0 / 720;
    q = q * r + 1.0 / 120;
    q = q * r + 1.0 / 24;
    q = q * r + 1.0 / 6;
    q = q * r + 0.5;
    q = q * r + 1.0;
    q = q * r + 1.0;
    return __builtin_convertvector(q * (gs_vd)((n + 1023) << 52), gs_vf_half);
}

/* x^alpha as libm's powf has it, for a finite alpha. */
GS_INLINE gs_vf gs_v_pow(gs_vf x, float alpha)
{
    union {
        gs_vf all;
        gs_vf_half half[2];
    } v = {.all = gs_v_abs(x)};
    const gs_vf a = v.all;
    const bool whole = alpha == floorf(alpha), odd = whole && alpha * 0.5f != floorf(alpha * 0.5f);
    if (alpha == 0.0f)
        return gs_splat(1.0f);
    if (alpha == 1.0f || alpha == 2.0f)
        return alpha == 1.0f ? x : x * x;
    v.half[0] = gs_v_pow_half(v.half[0], (double)alpha);
    v.half[1] = gs_v_pow_half(v.half[1], (double)alpha);
    gs_vf y = gs_select(a == 0.0f, gs_splat(alpha > 0.0f ? 0.0f : INFINITY), v.all);
    y = gs_select(a == INFINITY, gs_splat(alpha > 0.0f ? INFINITY : 0.0f), y);
    if (odd)
        y = (gs_vf)((gs_vu)y | ((gs_vu)x & 0x80000000u));
    else if (!whole)
        y = gs_select((x < 0.0f) & (a != INFINITY), gs_splat(NAN), y);
    return gs_select(x != x, x, y);
}

/* e^(-t^2 / 2) = its return value * 2^n, for 0 <= t <= 15. t has a part whose square is exact; the rest is a small
 * factor. */
GS_INLINE gs_vf gs_v_bell(gs_vi *n, gs_vf t)
{
    const gs_vf high = (gs_vf)((gs_vu)t & 0xfffff000u), rest = (high - t) * (high + t) * 0.5f;
    const gs_vf e = gs_v_exp_reduced(n, high * high * -0.5f) + 1.0f;
    return e * (1.0f + rest * (1.0f + rest * (0.5f + rest * (1.66666667e-1f + rest * 4.16666667e-2f))));
}

/* x 2^n, which may be subnormal. */
GS_INLINE gs_vf gs_v_scaled(gs_vf x, gs_vi n)
{
    const gs_vi half = n >> 1;
    return x * gs_v_power_of_two(half) * gs_v_power_of_two(n - half);
}

/* P(X > t) / e^(-t^2 / 2) of a standard normal X, for 0 <= t <= 15: a polynomial in (t - 2.75) / (t + 2.75), fitted at
 * Chebyshev's nodes to (1 + 1.375 t) times it within 2e-9, over 1 + 1.375 t. */
GS_INLINE gs_vf gs_v_normal_ratio(gs_vf t)
{
    const gs_vf q = (t - 2.75f) / (t + 2.75f);
    gs_vf p = gs_splat(3.8414347528e-05f);
    p = p * q + 5.3868768432e-05f;
    p = p * q - 2.5969482749e-04f;
    p = p * q - 5.8354337239e-04f;
    p = p * q + 9.9937858605e-04f;
    p = p * q + 3.8133592649e-03f;
    p = p * q - 5.5228236157e-03f;
    p = p * q - 2.2675167767e-02f;
    p = p * q + 7.7801775083e-02f;
    p = p * q - 8.1365592789e-02f;
    p = p * q - 4.8786488973e-02f;
    p = p * q + 6.2502763550e-01f;
    return p / (1.0f + 1.375f * t);
}

/* |x|, but 15 beyond it, where normal numbers do not come any more: P(X > 15) = 4e-51. */
GS_INLINE gs_vf gs_v_normal_size(gs_vf x)
{
    const gs_vf t = gs_v_abs(x);
    return gs_select(t > 15.0f, gs_splat(15.0f), t);
}

/* x P(X < x); as torch's NaN at -infinity. */
GS_INLINE gs_vf gs_v_gelu(gs_vf x)
{
    gs_vi n;
    const gs_vf t = gs_v_normal_size(x), tail = gs_v_bell(&n, t) * gs_v_normal_ratio(t);
    return gs_select(x < 0.0f, gs_v_scaled(tail * -t, n) + (x - x), x * (1.0f - gs_v_scaled(tail, n)));
}

/* P(X < x) + x e^(-x^2 / 2) / sqrt(2 pi); as torch's NaN at an infinity. */
GS_INLINE gs_vf gs_v_gelu_slope(gs_vf x)
{
    gs_vi n;
    const gs_vf t = gs_v_normal_size(x), bell = gs_v_bell(&n, t);
    const gs_vf d = gs_v_scaled(bell * (gs_v_normal_ratio(t) - t * 3.98942280e-1f), n);
    return gs_select(x < 0.0f, d, 1.0f - d) + (x - x);
}

/* The nearest of bfloat16, ties to even. */
GS_INLINE gs_vf gs_v_nearest(gs_vf x)
{
    const gs_vu u = (gs_vu)x;
    return gs_select(x != x, x, (gs_vf)((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u));
}

/* ---- the operators of form EACH (tensor/op.h): operator, a name, and its value ---- */

/* Operators of two numbers x and y, or of two vectors of them: a file that takes the list defines PICK(condition, yes,
 * no) and NUMBER(constant). NaN wins a maximum, as in torch.maximum. */
#define GS_CPU_OF_TWO(X)                                       \
    X(GS_OP_ADD, add, x + y)                                   \
    X(GS_OP_SUB, sub, x - y)                                   \
    X(GS_OP_MUL, mul, x * y)                                   \
    X(GS_OP_DIV, div, x / y)                                   \
    X(GS_OP_MAX, max, PICK((x > y) | (x != x), x, y))          \
    X(GS_OP_MIN, min, PICK((x < y) | (x != x), x, y))          \
    X(GS_OP_EQ, equal, PICK(x == y, NUMBER(1.0f), NUMBER(0.0f)))     \
    X(GS_OP_NE, differ, PICK(x != y, NUMBER(1.0f), NUMBER(0.0f)))    \
    X(GS_OP_LT, less, PICK(x < y, NUMBER(1.0f), NUMBER(0.0f)))       \
    X(GS_OP_LE, at_most, PICK(x <= y, NUMBER(1.0f), NUMBER(0.0f)))   \
    X(GS_OP_GT, greater, PICK(x > y, NUMBER(1.0f), NUMBER(0.0f)))    \
    X(GS_OP_GE, at_least, PICK(x >= y, NUMBER(1.0f), NUMBER(0.0f)))

/* Operators of three numbers x, y and z. */
#define GS_CPU_OF_THREE(X) X(GS_OP_WHERE, where, x != 0.0f ? y : z)

/* Operators of one number x and alpha, where the compiler finds vector instructions. NaN stays, as in torch.relu. */
#define GS_CPU_OF_ONE(X)                                       \
    X(GS_OP_NEG, neg, -x)                                      \
    X(GS_OP_ABS, absolute, fabsf(x))                           \
    X(GS_OP_SQRT, square_root, sqrtf(x))                       \
    X(GS_OP_RSQRT, reciprocal_root, 1.0f / sqrtf(x))           \
    X(GS_OP_RELU, relu, x < 0.0f ? 0.0f : x)                   \
    X(GS_OP_LEAKY_RELU, leaky_relu, x > 0.0f ? x : alpha * x)  \
    X(GS_OP_STEP, step, x > 0.0f ? 1.0f : 0.0f)

/* Operators of a vector x and the number alpha. */
#define GS_CPU_OF_A_VECTOR(X)                                  \
    X(GS_OP_EXP, exponential, gs_v_exp(x))                     \
    X(GS_OP_LOG, logarithm, gs_v_log(x))                       \
    X(GS_OP_SIGMOID, sigmoid, gs_v_sigmoid(x))                 \
    X(GS_OP_TANH, hyperbolic_tangent, gs_v_tanh(x))            \
    X(GS_OP_GELU, gelu, gs_v_gelu(x))                          \
    X(GS_OP_GELU_SLOPE, gelu_slope, gs_v_gelu_slope(x))        \
    X(GS_OP_SILU, silu, x * gs_v_sigmoid(x))                   \
    X(GS_OP_POW, power, gs_v_pow(x, alpha))                    \
    X(GS_OP_NEAREST, nearest, gs_v_nearest(x))                 \
    X(GS_OP_ELU, elu, gs_select(x > 0.0f, x, gs_v_expm1_negative(x) * alpha))

#endif /* GS_DEVICE_CPU_SIMD_MATH_H */
