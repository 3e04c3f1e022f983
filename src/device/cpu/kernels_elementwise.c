/* Elementwise operators: plain loops that the compiler vectorises where an
 * operation is one instruction, vector functions of simd_math.h where not. */
#include <math.h>

#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"

/* A run of n elements, each operand a vector or one number for all. */
typedef void (*run_fn)(float *d, const float *a, const float *b, size_t n);

/* NAME_vv, _vs, _sv, _ss: which of the operands are vectors, which are single numbers. */
#define DEFINE_BINARY(NAME, EXPR)                                                              \
    static void NAME##_vv(float *d, const float *a, const float *b, size_t n)                  \
    {                                                                                          \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++)                                     \
        {                                                                                      \
            const float x = a[i], y = b[i];                                                    \
            d[i] = (EXPR);                                                                     \
        }                                                                                      \
    }                                                                                          \
    static void NAME##_vs(float *d, const float *a, const float *b, size_t n)                  \
    {                                                                                          \
        const float y = *b;                                                                    \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++)                                     \
        {                                                                                      \
            const float x = a[i];                                                              \
            d[i] = (EXPR);                                                                     \
        }                                                                                      \
    }                                                                                          \
    static void NAME##_sv(float *d, const float *a, const float *b, size_t n)                  \
    {                                                                                          \
        const float x = *a;                                                                    \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++)                                     \
        {                                                                                      \
            const float y = b[i];                                                              \
            d[i] = (EXPR);                                                                     \
        }                                                                                      \
    }                                                                                          \
    static void NAME##_ss(float *d, const float *a, const float *b, size_t n)                  \
    {                                                                                          \
        const float x = *a, y = *b;                                                            \
        const float value = (EXPR);                                                            \
        for (size_t i = 0; i < n; i++)                                                         \
            d[i] = value;                                                                      \
    }

#define PICK(condition, yes, no) ((condition) ? (yes) : (no))
#define NUMBER(value) (value)
#define X(id, name, value) DEFINE_BINARY(name, value)
GS_CPU_OF_TWO(X)
#undef X

static run_fn pick(gs_op op, bool a_vector, bool b_vector)
{
    static const run_fn table[GS_OP_COUNT][2][2] = {
#define X(id, name, value) [id] = {{name##_ss, name##_sv}, {name##_vs, name##_vv}},
        GS_CPU_OF_TWO(X)
#undef X
    };
    return table[op][a_vector][b_vector];
}

static const float *row_start(gs_cpu_operand o, uint32_t row, uint32_t width)
{
    return o.shape == GS_CPU_FULL ? o.p + (size_t)row * width : o.shape == GS_CPU_COLUMN ? o.p + row : o.p;
}

/* A row of width 1 is one number, and a column of numbers is then the full shape. */
static gs_cpu_operand narrowed(gs_cpu_operand o, uint32_t width)
{
    if (width == 1 && o.shape == GS_CPU_COLUMN)
        o.shape = GS_CPU_FULL;
    if (width == 1 && o.shape == GS_CPU_ROW)
        o.shape = GS_CPU_SCALAR;
    return o;
}

void GS_KERNEL(binary)(gs_op op, float *dst, gs_cpu_operand a, gs_cpu_operand b, uint32_t rows, uint32_t width)
{
    a = narrowed(a, width);
    b = narrowed(b, width);
    const bool a_vector = a.shape == GS_CPU_FULL || a.shape == GS_CPU_ROW;
    const bool b_vector = b.shape == GS_CPU_FULL || b.shape == GS_CPU_ROW;
    const run_fn run = pick(op, a_vector, b_vector);
    const bool flat_a = a.shape == GS_CPU_FULL || a.shape == GS_CPU_SCALAR;
    const bool flat_b = b.shape == GS_CPU_FULL || b.shape == GS_CPU_SCALAR;

    if (flat_a && flat_b) {
        run(dst, a.p, b.p, (size_t)rows * width);
        return;
    }
    for (uint32_t r = 0; r < rows; r++)
        run(dst + (size_t)r * width, row_start(a, r, width), row_start(b, r, width), width);
}

/* A run of n elements of three operands: bit k of `vectors` says that operand k is a vector. */
typedef void (*run_three_fn)(float *d, const float *const *a, unsigned vectors, size_t n);

#define DEFINE_TERNARY(NAME, EXPR)                                                                             \
    GS_INLINE void NAME##_of(float *d, const float *const *a, const unsigned vectors, size_t n)               \
    {                                                                                                          \
        const float *const a0 = a[0], *const a1 = a[1], *const a2 = a[2];                                      \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++)                                                     \
        {                                                                                                      \
            const float x = a0[vectors & 1 ? i : 0], y = a1[vectors & 2 ? i : 0], z = a2[vectors & 4 ? i : 0]; \
            d[i] = (EXPR);                                                                                     \
        }                                                                                                      \
    }                                                                                                          \
    static void NAME(float *d, const float *const *a, unsigned vectors, size_t n)                             \
    {                                                                                                          \
        switch (vectors) {                                                                                     \
        case 0: NAME##_of(d, a, 0, n); break;                                                                  \
        case 1: NAME##_of(d, a, 1, n); break;                                                                  \
        case 2: NAME##_of(d, a, 2, n); break;                                                                  \
        case 3: NAME##_of(d, a, 3, n); break;                                                                  \
        case 4: NAME##_of(d, a, 4, n); break;                                                                  \
        case 5: NAME##_of(d, a, 5, n); break;                                                                  \
        case 6: NAME##_of(d, a, 6, n); break;                                                                  \
        default: NAME##_of(d, a, 7, n); break;                                                                 \
        }                                                                                                      \
    }

#define X(id, name, value) DEFINE_TERNARY(name, value)
GS_CPU_OF_THREE(X)
#undef X

void GS_KERNEL(ternary)(gs_op op, float *dst, const gs_cpu_operand *operand, uint32_t rows, uint32_t width)
{
    static const run_three_fn table[GS_OP_COUNT + 1] = {
#define X(id, name, value) [id] = name,
        GS_CPU_OF_THREE(X)
#undef X
        [GS_OP_COUNT] = NULL};
    gs_cpu_operand o[3];
    unsigned vectors = 0;
    bool flat = true;

    for (unsigned k = 0; k < 3; k++) {
        o[k] = narrowed(operand[k], width);
        vectors |= (o[k].shape == GS_CPU_FULL || o[k].shape == GS_CPU_ROW) ? 1u << k : 0;
        flat = flat && (o[k].shape == GS_CPU_FULL || o[k].shape == GS_CPU_SCALAR);
    }
    const size_t n = flat ? (size_t)rows * width : width;
    for (uint32_t r = 0; r < (flat ? 1 : rows); r++) {
        const float *const a[3] = {row_start(o[0], r, width), row_start(o[1], r, width), row_start(o[2], r, width)};
        table[op](dst + (size_t)r * width, a, vectors, n);
    }
}

#define DEFINE_SIMPLE(NAME, EXPR)                                               \
    static void NAME(float *d, const float *a, size_t n, float alpha)           \
    {                                                                           \
        (void)alpha;                                                            \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++)                      \
        {                                                                       \
            const float x = a[i];                                               \
            d[i] = (EXPR);                                                      \
        }                                                                       \
    }

/* x: a vector; the last, partial one is done in a register, so an element's value does
 * not depend on where in the array it stands. */
#define DEFINE_VECTOR(NAME, EXPR)                                               \
    static void NAME(float *d, const float *a, size_t n, float alpha)           \
    {                                                                           \
        size_t i = 0;                                                           \
        (void)alpha;                                                            \
        for (; i + GS_LANES <= n; i += GS_LANES) {                              \
            const gs_vf x = gs_load(a + i);                                     \
            gs_store(d + i, (EXPR));                                            \
        }                                                                       \
        if (i < n) {                                                            \
            const gs_vf x = gs_load_part(a + i, n - i);                         \
            gs_store_part(d + i, (EXPR), n - i);                                \
        }                                                                       \
    }

#define X(id, name, value) DEFINE_SIMPLE(name, value)
GS_CPU_OF_ONE(X)
#undef X
#define X(id, name, value) DEFINE_VECTOR(name, value)
GS_CPU_OF_A_VECTOR(X)
#undef X

void GS_KERNEL(unary)(gs_op op, float *dst, const float *a, size_t n, float alpha)
{
    static void (*const table[GS_OP_COUNT])(float *d, const float *a, size_t n, float alpha) = {
#define X(id, name, value) [id] = name,
        GS_CPU_OF_ONE(X) GS_CPU_OF_A_VECTOR(X)
#undef X
    };
    table[op](dst, a, n, alpha);
}

#define DEFINE_CAST(NAME, TYPE, EXPR)                                  \
    static void NAME(float *d, const void *src, size_t n)              \
    {                                                                  \
        const TYPE *const s = src;                                     \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) d[i] = (EXPR); \
    }

GS_INLINE float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

DEFINE_CAST(cast_f32, float, s[i])
DEFINE_CAST(cast_bf16, uint16_t, from_bits((uint32_t)s[i] << 16))
DEFINE_CAST(cast_u8, uint8_t, (float)s[i])
DEFINE_CAST(cast_u16, uint16_t, (float)s[i])
DEFINE_CAST(cast_u32, uint32_t, (float)s[i])
DEFINE_CAST(cast_i32, int32_t, (float)s[i])

#if defined(__F16C__)
#include <immintrin.h>
static void cast_f16(float *d, const void *src, size_t n)
{
    const uint16_t *const s = src;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(s + i))));
    for (; i < n; i++)
        d[i] = _cvtsh_ss(s[i]);
}
#else
DEFINE_CAST(cast_f16, uint16_t, gs_f32_from_f16(s[i]))
#endif

void GS_KERNEL(cast)(float *dst, const void *src, gs_dtype from, size_t n)
{
    switch (from) {
    case GS_F32:
        cast_f32(dst, src, n);
        break;
    case GS_BF16:
        cast_bf16(dst, src, n);
        break;
    case GS_F16:
        cast_f16(dst, src, n);
        break;
    case GS_U8:
        cast_u8(dst, src, n);
        break;
    case GS_U16:
        cast_u16(dst, src, n);
        break;
    case GS_U32:
        cast_u32(dst, src, n);
        break;
    case GS_I32:
        cast_i32(dst, src, n);
        break;
    default:
        __builtin_unreachable(); /* gs_cpu__can_cast() */
    }
}

GS_INLINE uint32_t to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

void GS_KERNEL(round)(uint16_t *dst, const float *src, size_t n)
{
    _Pragma("omp simd") for (size_t i = 0; i < n; i++)
    {
        const uint32_t u = to_bits(src[i]), upper = u >> 16;
        const uint32_t rounded = (u + 0x7fff + (upper & 1)) >> 16;
        dst[i] = (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? upper | 0x40 : rounded); /* a NaN stays one */
    }
}
