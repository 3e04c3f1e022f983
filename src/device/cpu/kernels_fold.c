/* Sums of groups of columns (a head's dot product), their transpose, and copies of rows. */
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_rows.h"

#define ROW4(n) n, n + 1, n + 2, n + 3
#define ROW16(n) ROW4(n), ROW4(n + 4), ROW4(n + 8), ROW4(n + 12)
#define ROW64(n) ROW16(n), ROW16(n + 16), ROW16(n + 32), ROW16(n + 48)
#define ROW256(n) ROW64(n), ROW64(n + 64), ROW64(n + 128), ROW64(n + 192)
const uint32_t GS_KERNEL(row_numbers)[GS_CPU_TILE_EDGES] = {ROW256(0), ROW256(256), ROW256(512), ROW256(768)};

/* Two vectors to one: blocks of `H` lanes, those at even places plus those at odd ones, of a and b by turns. */
#if GS_LANES == 16
#define JOIN8(a, b) (__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) + \
                     __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#define JOIN4(a, b) (__builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27) + \
                     __builtin_shufflevector(a, b, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
#define JOIN2(a, b) (__builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) + \
                     __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
#define JOIN1(a, b) (__builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) + \
                     __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
#elif GS_LANES == 8
#define JOIN4(a, b) (__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + \
                     __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#define JOIN2(a, b) (__builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + \
                     __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15))
#define JOIN1(a, b) (__builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + \
                     __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15))
#else
#define JOIN2(a, b) (__builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7))
#define JOIN1(a, b) (__builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7))
#endif

/* Lane i of the result: the sum of the lanes of p[i], added in the same tree for each. */
GS_INLINE gs_vf sums_of(gs_vf *p)
{
#if GS_LANES >= 16
    for (int i = 0; i < 8; i++)
        p[i] = JOIN8(p[i], p[i + 8]);
#endif
#if GS_LANES >= 8
    for (int i = 0; i < 4; i++)
        p[i] = JOIN4(p[i], p[i + 4]);
#endif
    for (int i = 0; i < 2; i++)
        p[i] = JOIN2(p[i], p[i + 2]);
    return JOIN1(p[0], p[1]);
}

/* The same for groups of half a vector: lane 2 i of the result is the sum of the lower half of p[i], lane 2 i + 1
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
        gs_store(dst, halves ? sums_of_halves(part) : sums_of(part));
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
                gs_store(dst, sums_of(part));
                dst += GS_LANES;
                filled = 0;
            }
        }
    }
    if (filled > 0) {
        for (uint32_t i = filled; i < GS_LANES; i++)
            part[i] = (gs_vf){0};
        gs_store_part(dst, sums_of(part), filled);
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
    for (uint32_t r = 0; r < rows; r++)
        memcpy(dst + (size_t)r * width, gs_row(a, r), width * sizeof(float));
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
