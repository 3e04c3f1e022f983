/* Operators of vertex programs, each over rows. */
#include <math.h>
#include <string.h>

#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_rows.h"

/* ---- elementwise ----
 *
 * Elementwise operators: plain loops that the compiler vectorises where an
 * operation is one instruction, vector functions of simd_math.h where not. */

/* Rows of n elements of two or three operands, each rows of vectors or of one number: bit k of `vectors` says that
 * operand k has vectors, step[k] is how far apart its rows are. */
typedef struct rows_of_each {
    const float *a[3];
    size_t step[3], n;
    uint32_t rows;
    unsigned vectors;
} rows_of_each;

#define DEFINE_EACH(NAME, EXPR, OPERANDS)                                                                          \
    GS_INLINE void NAME##_of(float *d, rows_of_each o, const unsigned vectors)                                     \
    {                                                                                                              \
        for (uint32_t r = 0; r < o.rows; r++, d += o.n) {                                                          \
            const float *const a0 = o.a[0] + r * o.step[0], *const a1 = o.a[1] + r * o.step[1],                    \
                        *const a2 = (OPERANDS) > 2 ? o.a[2] + r * o.step[2] : a1;                                  \
            const float x0 = *a0, y0 = *a1, z0 = *a2;                                                              \
            _Pragma("omp simd") for (size_t i = 0; i < o.n; i++)                                                   \
            {                                                                                                      \
                const float x = vectors & 1 ? a0[i] : x0, y = vectors & 2 ? a1[i] : y0,                            \
                            z = vectors & 4 ? a2[i] : z0;                                                          \
                (void)z;                                                                                           \
                d[i] = (EXPR);                                                                                     \
            }                                                                                                      \
        }                                                                                                          \
    }                                                                                                              \
    static void NAME##_run(float *d, const rows_of_each *o)                                                        \
    {                                                                                                              \
        switch (o->vectors) {                                                                                      \
        case 0: NAME##_of(d, *o, 0); break;                                                                        \
        case 1: NAME##_of(d, *o, 1); break;                                                                        \
        case 2: NAME##_of(d, *o, 2); break;                                                                        \
        case 3: NAME##_of(d, *o, 3); break;                                                                        \
        case 4: NAME##_of(d, *o, (OPERANDS) > 2 ? 4 : 0); break;                                                   \
        case 5: NAME##_of(d, *o, (OPERANDS) > 2 ? 5 : 0); break;                                                   \
        case 6: NAME##_of(d, *o, (OPERANDS) > 2 ? 6 : 0); break;                                                   \
        default: NAME##_of(d, *o, (OPERANDS) > 2 ? 7 : 0); break;                                                  \
        }                                                                                                          \
    }

#define PICK(condition, yes, no) ((condition) ? (yes) : (no))
#define NUMBER(value) (value)
#define X(id, name, value) DEFINE_EACH(name, value, 2)
GS_CPU_OF_TWO(X)
#undef X
#define X(id, name, value) DEFINE_EACH(name, value, 3)
GS_CPU_OF_THREE(X)
#undef X

/* A row of width 1 is one number, and a column of numbers is then the full shape. */
static gs_cpu_operand narrowed(gs_cpu_operand o, uint32_t width)
{
    if (width == 1 && o.shape == GS_CPU_COLUMN)
        o.shape = GS_CPU_FULL;
    if (width == 1 && o.shape == GS_CPU_ROW)
        o.shape = GS_CPU_SCALAR;
    return o;
}

void GS_KERNEL(each)(gs_op op, float *dst, const gs_cpu_operand *operand, uint32_t rows, uint32_t width)
{
    static void (*const table[GS_OP_COUNT])(float *d, const rows_of_each *o) = {
#define X(id, name, value) [id] = name##_run,
        GS_CPU_OF_TWO(X) GS_CPU_OF_THREE(X)
#undef X
    };
    const unsigned operands = gs_op_inputs(op);
    rows_of_each e = {.n = width, .rows = rows};
    bool flat = true;

    for (unsigned k = 0; k < operands; k++) {
        const gs_cpu_operand o = narrowed(operand[k], width);
        e.a[k] = o.p;
        e.step[k] = o.shape == GS_CPU_FULL ? width : o.shape == GS_CPU_COLUMN ? 1 : 0;
        e.vectors |= (o.shape == GS_CPU_FULL || o.shape == GS_CPU_ROW) ? 1u << k : 0;
        flat = flat && (o.shape == GS_CPU_FULL || o.shape == GS_CPU_SCALAR);
    }
    if (flat) {
        e.n = (size_t)rows * width;
        e.rows = rows > 0; /* of no rows, numbers may not be there either */
    }
    table[op](dst, &e);
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
    static void (*const table[GS_DTYPE_COUNT])(float *d, const void *src, size_t n) = { /* gs_cpu__can_cast() */
        [GS_F32] = cast_f32, [GS_BF16] = cast_bf16, [GS_F16] = cast_f16, [GS_U8] = cast_u8,
        [GS_U16] = cast_u16, [GS_U32] = cast_u32,   [GS_I32] = cast_i32};
    table[from](dst, src, n);
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

/* ---- sums of rows and of columns ---- */

static float row_total(const float *a, uint32_t n)
{
    gs_vf sum = {0};
    uint32_t i = 0;
    for (; i + GS_LANES <= n; i += GS_LANES)
        sum += gs_load(a + i);
    if (i < n)
        sum += gs_load_part(a + i, n - i);
    return gs_lanes_sum(sum);
}

void GS_KERNEL(rowsum)(float *dst, const float *a, uint32_t rows, uint32_t width)
{
    for (uint32_t r = 0; r < rows; r++)
        dst[r] = row_total(a + (size_t)r * width, width);
}

void GS_KERNEL(rowmax)(float *dst, const float *a, uint32_t rows, uint32_t width)
{
    for (uint32_t r = 0; r < rows; r++, a += width) {
        float most = a[0];
#pragma omp simd reduction(max : most)
        for (uint32_t c = 1; c < width; c++)
            most = a[c] > most ? a[c] : most;
        dst[r] = most;
    }
}

/* `tile` (a constant) vectors of columns stay in registers over all rows. */
GS_INLINE void colsum_tile(float *acc, const float *a, uint32_t rows, uint32_t width, const uint32_t tile)
{
    gs_vf sum[8];
    for (uint32_t v = 0; v < tile; v++)
        sum[v] = (gs_vf){0};
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < tile; v++)
            sum[v] += gs_load(a + (size_t)r * width + v * GS_LANES);
    for (uint32_t v = 0; v < tile; v++)
        gs_store(acc + v * GS_LANES, gs_load(acc + v * GS_LANES) + sum[v]);
}

void GS_KERNEL(colsum)(float *acc, const float *a, uint32_t rows, uint32_t width)
{
    uint32_t c = 0;
    for (; c + 8 * GS_LANES <= width; c += 8 * GS_LANES)
        colsum_tile(acc + c, a + c, rows, width, 8);
    for (; c + GS_LANES <= width; c += GS_LANES)
        colsum_tile(acc + c, a + c, rows, width, 1);
    if (c == width)
        return;
    const uint32_t rest = width - c;
    gs_vf sum = {0};
    for (uint32_t r = 0; r < rows; r++)
        sum += gs_load_part(a + (size_t)r * width + c, rest);
    gs_store_part(acc + c, gs_load_part(acc + c, rest) + sum, rest);
}

void GS_KERNEL(moments)(double *restrict sums, bool squares, const float *restrict a, uint32_t rows, uint32_t width)
{
    for (uint32_t r = 0; r < rows; r++, a += width) {
        _Pragma("omp simd") for (uint32_t c = 0; c < width; c++)
            sums[c] += (double)a[c];
        if (squares)
            _Pragma("omp simd") for (uint32_t c = 0; c < width; c++)
                sums[width + c] += (double)a[c] * (double)a[c];
    }
}

/* ---- groups of columns ---- */

#define ROW4(n) n, n + 1, n + 2, n + 3
#define ROW16(n) ROW4(n), ROW4(n + 4), ROW4(n + 8), ROW4(n + 12)
#define ROW64(n) ROW16(n), ROW16(n + 16), ROW16(n + 32), ROW16(n + 48)
#define ROW256(n) ROW64(n), ROW64(n + 64), ROW64(n + 128), ROW64(n + 192)
const uint32_t GS_KERNEL(row_numbers)[GS_CPU_TILE_EDGES] = {ROW256(0), ROW256(256), ROW256(512), ROW256(768)};

/* gs_sums_of() for groups of half a vector: lane 2 i of the result is the sum of the lower half of p[i], lane 2 i + 1
 * that of its upper half. The steps leave the lower halves' sums first. */
GS_INLINE gs_vf sums_of_halves(gs_vf *p)
{
#if GS_LANES == 16
    for (int i = 0; i < 4; i++)
        p[i] = JOIN4(p[i], p[i + 4]);
#endif
#if GS_LANES >= 8
    for (int i = 0; i < 2; i++)
        p[i] = JOIN2(p[i], p[i + 2]);
#endif
    const gs_vf sums = JOIN1(p[0], p[1]);
#if GS_LANES == 16
    return __builtin_shufflevector(sums, sums, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
#elif GS_LANES == 8
    return __builtin_shufflevector(sums, sums, 0, 4, 1, 5, 2, 6, 3, 7);
#else
    return __builtin_shufflevector(sums, sums, 0, 2, 1, 3);
#endif
}

/* What is added up: numbers of a, or their products with those of b, in float32 or either in bfloat16. */
typedef struct fold_form {
    bool product, a_half, b_half;
} fold_form;

GS_INLINE gs_vf term(const float *x, const float *y, size_t at, const fold_form f)
{
    const gs_vf v = gs_load_row(x, at, f.a_half);
    return f.product ? v * gs_load_row(y, at, f.b_half) : v;
}

/* Sums of groups of a vector or of half of one, rows of `vectors` of them (a constant that divides the terms of a
 * vector of sums): the terms stay in registers. Returns the rows done; fewer than make a vector of sums remain. */
GS_INLINE uint32_t fold_even(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows,
                             const uint32_t vectors, const bool halves, const fold_form form)
{
    const uint32_t terms = halves ? GS_LANES / 2 : GS_LANES, step = terms / vectors;
    uint32_t r = 0;
    for (; r + step <= rows; r += step, dst += GS_LANES) {
        gs_vf part[GS_LANES];
        _Pragma("GCC unroll 16") for (uint32_t i = 0; i < terms; i++)
        {
            const uint32_t e = r + i / vectors;
            part[i] = term(gs_row(a, e), form.product ? gs_row(b, e) : NULL, (size_t)(i % vectors) * GS_LANES, form);
        }
        gs_store(dst, halves ? sums_of_halves(part) : gs_sums_of(part));
    }
    return r;
}

GS_INLINE uint32_t fold_most(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t vectors,
                             const bool halves, const fold_form form)
{
    const uint32_t terms = halves ? GS_LANES / 2 : GS_LANES;
    if (vectors == 1)
        return fold_even(dst, a, b, rows, 1, halves, form);
    if (vectors == 2)
        return fold_even(dst, a, b, rows, 2, halves, form);
    if (terms >= 4 && vectors == 4)
        return fold_even(dst, a, b, rows, 4, halves, form);
    if (terms >= 8 && vectors == 8)
        return fold_even(dst, a, b, rows, 8, halves, form);
    return 0;
}

/* Columns [from, from + each) of a row of `width` (at least a vector), to be summed over lanes. The
 * part that fills no vector is read with what stands before or after it in the row, and masked. */
GS_INLINE gs_vf group_part(const float *x, const float *y, uint32_t from, uint32_t each, uint32_t width,
                           const fold_form form)
{
    const uint32_t rest = each % GS_LANES, tail = from + each - rest;
    gs_vf sum = {0};
    for (uint32_t c = from; c < tail; c += GS_LANES)
        sum += term(x, y, c, form);
    if (rest > 0) {
        const uint32_t at = tail + GS_LANES <= width ? tail : width - GS_LANES;
        const int32_t low = (int32_t)(tail - at);
        const gs_vi lane = gs_lane_numbers(), wanted = (lane >= low) & (lane < low + (int32_t)rest);
        sum += (gs_vf)((gs_vi)term(x, y, at, form) & wanted);
    }
    return sum;
}

GS_INLINE void fold_wide(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups,
                         const uint32_t each, const fold_form form)
{
    const uint32_t width = groups * each;
    gs_vf part[GS_LANES];
    uint32_t filled = 0, r = each == GS_LANES ? fold_most(dst, a, b, rows, groups, false, form) : 0;
    for (dst += (size_t)r * groups; r < rows; r++) {
        const float *const x = gs_row(a, r), *const y = form.product ? gs_row(b, r) : NULL;
        for (uint32_t g = 0; g < groups; g++) {
            part[filled++] = group_part(x, y, g * each, each, width, form);
            if (filled == GS_LANES) {
                gs_store(dst, gs_sums_of(part));
                dst += GS_LANES;
                filled = 0;
            }
        }
    }
    if (filled > 0) {
        for (uint32_t i = filled; i < GS_LANES; i++)
            part[i] = (gs_vf){0};
        gs_store_part(dst, gs_sums_of(part), filled);
    }
}

/* Groups of half a vector, rows of whole vectors. */
GS_INLINE void fold_halves(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t width,
                           const fold_form form)
{
    gs_vf part[GS_LANES / 2];
    uint32_t filled = 0, r = fold_most(dst, a, b, rows, width / GS_LANES, true, form);
    for (dst += (size_t)r * (width / (GS_LANES / 2)); r < rows; r++) {
        const float *const x = gs_row(a, r), *const y = form.product ? gs_row(b, r) : NULL;
        for (uint32_t c = 0; c < width; c += GS_LANES) {
            part[filled++] = term(x, y, c, form);
            if (filled == GS_LANES / 2) {
                gs_store(dst, sums_of_halves(part));
                dst += GS_LANES;
                filled = 0;
            }
        }
    }
    if (filled > 0) {
        for (uint32_t i = filled; i < GS_LANES / 2; i++)
            part[i] = (gs_vf){0};
        gs_store_part(dst, sums_of_halves(part), 2 * (size_t)filled);
    }
}

/* Rows of less than a vector. */
GS_INLINE void fold_narrow(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups,
                           uint32_t each, const fold_form form)
{
    for (uint32_t r = 0; r < rows; r++) {
        const float *const x = gs_row(a, r), *const y = form.product ? gs_row(b, r) : NULL;
        for (uint32_t g = 0; g < groups; g++) {
            float sum = 0;
            for (uint32_t c = g * each; c < (g + 1) * each; c++)
                sum += form.product ? x[c] * y[c] : x[c];
            *dst++ = sum;
        }
    }
}

#ifdef GS_HAS_PERMUTE
#define SMALL_MOST 8 /* columns of a small group, and vectors of a row of such */

/* As a whole vector where that stays before `end`: what is too much is written over by the rows that follow. */
GS_INLINE void store_groups(float *dst, gs_vf v, uint32_t groups, const float *end)
{
    if (end - dst >= GS_LANES)
        gs_store(dst, v);
    else
        gs_store_part(dst, v, groups);
}

/* Rows of one or two vectors in small groups: column c of all groups is one permutation. */
GS_INLINE void fold_small(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups,
                          uint32_t each, const fold_form form)
{
    const uint32_t tail = groups * each - GS_LANES; /* the second vector ends where the row ends */
    const float *const end = dst + (size_t)rows * groups;
    gs_vi at[SMALL_MOST];
    for (uint32_t c = 0; c < each; c++) {
        at[c] = (gs_lane_numbers() * (int32_t)each) + (int32_t)c;
        at[c] = (at[c] & (at[c] < GS_LANES)) | ((at[c] - (int32_t)tail + GS_LANES) & (at[c] >= GS_LANES));
    }
    for (uint32_t r = 0; r < rows; r++, dst += groups) {
        const float *const x = gs_row(a, r), *const y = form.product ? gs_row(b, r) : NULL;
        const gs_vf first = term(x, y, 0, form), second = term(x, y, tail, form);
        gs_vf sum = gs_permute_two(first, second, at[0]);
        for (uint32_t c = 1; c < each; c++)
            sum += gs_permute_two(first, second, at[c]);
        store_groups(dst, sum, groups, end);
    }
}

static bool folds_small(uint32_t groups, uint32_t each)
{
    return each <= SMALL_MOST && groups <= GS_LANES && groups * each >= GS_LANES && groups * each <= 2 * GS_LANES;
}

/* Rows of a few vectors, made of at most a vector of numbers: each vector is one permutation. */
static void spread_small(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t groups, uint32_t each)
{
    const uint32_t width = groups * each, vectors = (width + GS_LANES - 1) / GS_LANES;
    gs_vi at[SMALL_MOST];
    uint32_t first[SMALL_MOST];
    for (uint32_t v = 0; v < vectors; v++) {
        first[v] = v + 1 < vectors ? v * GS_LANES : width - GS_LANES;
        for (uint32_t i = 0; i < GS_LANES; i++)
            at[v][i] = (int32_t)((first[v] + i) / each);
    }
    for (uint32_t r = 0; r < rows; r++, dst += width) {
        const gs_vf x = gs_load_part(gs_row(a, r), groups);
        for (uint32_t v = 0; v < vectors; v++)
            gs_store(dst + first[v], gs_permute(x, at[v]));
    }
}

static bool spreads_small(uint32_t groups, uint32_t each)
{
    return each > 1 && each < GS_LANES && groups <= GS_LANES && groups * each >= GS_LANES &&
           groups * each <= SMALL_MOST * GS_LANES;
}
#endif

/* Rows of bfloat16 have a vector at least. */
GS_INLINE void fold_as(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups,
                       uint32_t each, const fold_form form)
{
    const bool wide = form.a_half || form.b_half || groups * each >= GS_LANES;
    if (each == GS_LANES / 2 && groups % 2 == 0)
        fold_halves(dst, a, b, rows, groups * each, form);
#ifdef GS_HAS_PERMUTE
    else if (folds_small(groups, each))
        fold_small(dst, a, b, rows, groups, each, form);
#endif
    else if (wide && each == GS_LANES && form.product)
        fold_wide(dst, a, b, rows, groups, GS_LANES, form);
    else if (wide && each == 4 * GS_LANES && form.product)
        fold_wide(dst, a, b, rows, groups, 4 * GS_LANES, form);
    else if (wide)
        fold_wide(dst, a, b, rows, groups, each, form);
    else
        fold_narrow(dst, a, b, rows, groups, each, form);
}

void GS_KERNEL(fold)(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups,
                     uint32_t each)
{
    if (b == NULL)
        fold_as(dst, a, b, rows, groups, each, (fold_form){.product = false});
    else if (a->half && b->half)
        fold_as(dst, a, b, rows, groups, each, (fold_form){.product = true, .a_half = true, .b_half = true});
    else if (a->half)
        fold_as(dst, a, b, rows, groups, each, (fold_form){.product = true, .a_half = true});
    else if (b->half)
        fold_as(dst, b, a, rows, groups, each, (fold_form){.product = true, .a_half = true});
    else
        fold_as(dst, a, b, rows, groups, each, (fold_form){.product = true});
}

/* A narrow group is written as a whole vector where that stays within the result: what is too much is
 * written over by the groups that follow. */
GS_INLINE void spread_groups(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t groups, uint32_t each)
{
    float *const end = dst + (size_t)rows * groups * each;
    for (uint32_t r = 0; r < rows; r++) {
        const float *const x = gs_row(a, r);
        for (uint32_t g = 0; g < groups; g++, dst += each) {
            const gs_vf v = gs_splat(x[g]);
            uint32_t c = 0;
            for (; c + GS_LANES <= each; c += GS_LANES)
                gs_store(dst + c, v);
            if (c < each && end - dst >= (ptrdiff_t)(c + GS_LANES)) {
                gs_store(dst + c, v);
                continue;
            }
            for (; c < each; c++)
                dst[c] = x[g];
        }
    }
}

/* Groups of half a vector, an even number of them. */
static void spread_halves(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t groups)
{
    for (uint32_t r = 0; r < rows; r++) {
        const float *const x = gs_row(a, r);
        for (uint32_t g = 0; g < groups; g += 2, dst += GS_LANES)
            gs_store(dst, gs_splat_halves(x[g], x[g + 1]));
    }
}

/* Copies of rows: constant widths for the narrow ones. */
GS_INLINE void copy_rows(float *dst, const gs_cpu_rows *a, uint32_t rows, const uint32_t width)
{
    const gs_cpu_rows from = *a; /* which stays in registers, whatever dst is */
    for (uint32_t r = 0; r < rows; r++)
        memcpy(dst + (size_t)r * width, gs_row(&from, r), width * sizeof(float));
}

#define COPY_CASE(N)                  \
    case N:                           \
        copy_rows(dst, a, rows, N);   \
        break

void GS_KERNEL(expand)(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t groups, uint32_t each)
{
    if (each == GS_LANES / 2 && groups % 2 == 0) {
        spread_halves(dst, a, rows, groups);
        return;
    }
#ifdef GS_HAS_PERMUTE
    if (spreads_small(groups, each)) {
        spread_small(dst, a, rows, groups, each);
        return;
    }
#endif
    if (each > 1) {
        spread_groups(dst, a, rows, groups, each);
        return;
    }
    switch (groups) {
        COPY_CASE(1);
        COPY_CASE(2);
        COPY_CASE(4);
        COPY_CASE(8);
    default:
        copy_rows(dst, a, rows, groups);
    }
}

void GS_KERNEL(widen)(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t width)
{
    for (uint32_t r = 0; r < rows; r++, dst += width) {
        const float *const x = gs_row(a, r);
        uint32_t c = 0;
        for (; c + GS_LANES <= width; c += GS_LANES)
            gs_store(dst + c, gs_load_row(x, c, true));
        for (; c < width; c++)
            dst[c] = gs_number_from_bf16(((const uint16_t *)(const void *)x)[c]);
    }
}

/* ---- blocks of columns ----
 *
 * Mixes: a row is blocks of columns, and each block of the result a weighted sum of them. Weights are few
 * and shared by all rows, blocks tens of columns wide, so the work is additions of one block to another. */

#define ROWS_A_TURN 16 /* whose dot products are added in float64: a turn's blocks stay in the first-level cache */

void GS_KERNEL(mix)(float *dst, const float *a, const gs_cpu_mix *m, uint32_t rows)
{
    const uint32_t each = m->each;
    for (size_t r = 0; r < rows; r++, a += (size_t)m->from * each)
        for (uint32_t j = 0; j < m->to; j++, dst += each) {
            memset(dst, 0, each * sizeof(*dst));
            for (uint32_t i = 0; i < m->from; i++) {
                const float w = m->weight[(size_t)i * m->from_stride + (size_t)j * m->to_stride];
                const float *const x = a + (size_t)i * each;
                for (uint32_t c = 0; c < each; c++)
                    dst[c] += w * x[c];
            }
        }
}

static float dot(const float *x, const float *y, uint32_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

void GS_KERNEL(mix_outer)(float *sum, const float *a, const float *b, uint32_t rows, uint32_t m, uint32_t n,
                          uint32_t each)
{
    const size_t a_width = (size_t)m * each, b_width = (size_t)n * each;
    for (uint32_t first = 0; first < rows; first += ROWS_A_TURN) {
        const uint32_t end = rows - first > ROWS_A_TURN ? first + ROWS_A_TURN : rows;
        for (uint32_t i = 0; i < m; i++)
            for (uint32_t j = 0; j < n; j++) {
                double total = 0;
                for (size_t r = first; r < end; r++)
                    total += (double)dot(a + r * a_width + (size_t)i * each, b + r * b_width + (size_t)j * each, each);
                sum[(size_t)i * n + j] += (float)total;
            }
    }
}

/* ---- a step of an LSTM ---- */

/* Columns [c, c + n) of a row, n <= GS_LANES. */
GS_INLINE void step_part(float *gate, const float *before, float *cell, float *state, size_t width, size_t n)
{
    const gs_vf i = gs_v_sigmoid(gs_load_part(gate, n)), f = gs_v_sigmoid(gs_load_part(gate + width, n));
    const gs_vf g = gs_v_tanh(gs_load_part(gate + 2 * width, n)), o = gs_v_sigmoid(gs_load_part(gate + 3 * width, n));
    const gs_vf c = f * gs_load_part(before, n) + i * g;

    gs_store_part(gate, i, n);
    gs_store_part(gate + width, f, n);
    gs_store_part(gate + 2 * width, g, n);
    gs_store_part(gate + 3 * width, o, n);
    gs_store_part(cell, c, n);
    if (state != NULL)
        gs_store_part(state, o * gs_v_tanh(c), n);
}

void GS_KERNEL(lstm_step)(float *gate, const float *before, float *cell, float *state, uint32_t rows, uint32_t width)
{
    for (size_t r = 0; r < rows; r++, gate += 4 * (size_t)width)
        for (size_t c = 0; c < width; c += GS_LANES) {
            const size_t at = r * width + c, left = width - c;
            float *const s = state == NULL ? NULL : state + at;
            if (left >= GS_LANES)
                step_part(gate + c, before + at, cell + at, s, width, GS_LANES);
            else
                step_part(gate + c, before + at, cell + at, s, width, left);
        }
}

GS_INLINE void back_part(float *gate, const float *before, const float *cell, const float *d_state, float *d_cell,
                         size_t width, size_t n)
{
    const gs_vf i = gs_load_part(gate, n), f = gs_load_part(gate + width, n);
    const gs_vf g = gs_load_part(gate + 2 * width, n), o = gs_load_part(gate + 3 * width, n);
    const gs_vf t = gs_v_tanh(gs_load_part(cell, n)), dh = gs_load_part(d_state, n);
    const gs_vf dc = gs_load_part(d_cell, n) + dh * o * (1.0f - t * t);

    gs_store_part(gate, dc * g * i * (1.0f - i), n);
    gs_store_part(gate + width, dc * gs_load_part(before, n) * f * (1.0f - f), n);
    gs_store_part(gate + 2 * width, dc * i * (1.0f - g * g), n);
    gs_store_part(gate + 3 * width, dh * t * o * (1.0f - o), n);
    gs_store_part(d_cell, dc * f, n);
}

void GS_KERNEL(lstm_back)(float *gate, const float *before, const float *cell, const float *d_state, float *d_cell,
                          uint32_t rows, uint32_t width)
{
    for (size_t r = 0; r < rows; r++, gate += 4 * (size_t)width)
        for (size_t c = 0; c < width; c += GS_LANES) {
            const size_t at = r * width + c, left = width - c;
            if (left >= GS_LANES)
                back_part(gate + c, before + at, cell + at, d_state + at, d_cell + at, width, GS_LANES);
            else
                back_part(gate + c, before + at, cell + at, d_state + at, d_cell + at, width, left);
        }
}

/* ---- attention's sums at their end ---- */

/* What sums are multiplied by: one over the norm; where that is no number above 0, -0 without edges, 0 where all scores
 * are -inf, or NaN. Half the vertices of a graph may have no edges: which do no branch could foresee. */
static gs_vf shares_of(gs_vf norm, bool beside)
{
    const gs_vi none = beside ? norm == 0.0f : (gs_vi)norm == INT32_MIN;
    const gs_vf nothing = gs_select(none, gs_splat(0.0f), gs_splat(NAN));
    return gs_select(norm > 0.0f, 1.0f / norm, gs_select(norm == 0.0f, nothing, norm));
}

/* No edges: the sum is 0; the logarithm gives -inf. */
void GS_KERNEL(finish_attend)(const gs_accumulator *sum, uint32_t rows, uint32_t width, uint32_t heads)
{
    const uint32_t each = width / heads;
    const size_t n = (size_t)rows * heads;
    float *acc = sum->acc;
    for (size_t i = 0; i < n; i += GS_LANES) {
        const size_t some = n - i < GS_LANES ? n - i : GS_LANES;
        const gs_vf share = shares_of(gs_load_part(sum->norm + i, some), sum->beside);
        float by[GS_LANES];
        if (each == 1) {
            gs_store_part(acc + i, gs_load_part(acc + i, some) * share, some);
            continue;
        }
        gs_store(by, share);
        for (size_t k = 0; k < some; k++, acc += each)
            for (uint32_t c = 0; c < each; c++)
                acc[c] *= by[k];
    }
    GS_KERNEL(unary)(GS_OP_LOG, sum->norm, sum->norm, n, 0);
    GS_KERNEL(add)(sum->maximum, sum->norm, n);
}
