/* simd_rows.h - vectors of 4, 8 and 16 numbers from rows of float32, bfloat16 or float16, and rows that lie anywhere,
 * one an edge.
 *
 * Included by kernel files only, as simd.h says. gs_vN_rounded() is its argument: the compiler, which may fuse a
 * product with the sum that it goes into, does not look through it, so that both are rounded.
 */
#ifndef GS_DEVICE_CPU_SIMD_ROWS_H
#define GS_DEVICE_CPU_SIMD_ROWS_H

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "base/dtype.h"
#include "device/cpu/edge_plan.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd.h"

/* A register that holds so many bytes; without one they go by way of memory. Without FMA nothing is fused. */
#if defined(__x86_64__) && !defined(__FMA__)
#define GS_ROUNDED_16(v) ((void)0)
#define GS_ROUNDED_32(v) ((void)0)
#define GS_ROUNDED_64(v) ((void)0)
#elif defined(__x86_64__)
#define GS_ROUNDED_16(v) __asm__("" : "+x"(v))
#define GS_ROUNDED_32(v) __asm__("" : "+x"(v))
#if defined(__AVX512F__)
#define GS_ROUNDED_64(v) __asm__("" : "+v"(v))
#else
#define GS_ROUNDED_64(v) __asm__("" : "+m"(v))
#endif
#else
#define GS_ROUNDED_16(v) __asm__("" : "+m"(v))
#define GS_ROUNDED_32(v) __asm__("" : "+m"(v))
#define GS_ROUNDED_64(v) __asm__("" : "+m"(v))
#endif

#define GS_DEFINE_OPERAND(N, BYTES)                                                                           \
    typedef float gs_v##N##_v __attribute__((vector_size(BYTES)));                                            \
    typedef float gs_v##N##_mem __attribute__((vector_size(BYTES), aligned(4), may_alias));                   \
    typedef uint32_t gs_v##N##_words __attribute__((vector_size(BYTES)));                                     \
    typedef uint16_t gs_v##N##_halves __attribute__((vector_size((BYTES) / 2), aligned(2), may_alias));       \
    GS_INLINE gs_v##N##_v gs_v##N##_load(const float *p) { return *(const gs_v##N##_mem *)p; }                \
    GS_INLINE void gs_v##N##_store(float *p, gs_v##N##_v v) { *(gs_v##N##_mem *)p = v; }                      \
    GS_INLINE gs_v##N##_v gs_v##N##_load_bf16(const uint16_t *p)                                              \
    {                                                                                                         \
        return (gs_v##N##_v)(__builtin_convertvector(*(const gs_v##N##_halves *)p, gs_v##N##_words) << 16);   \
    }                                                                                                         \
    GS_INLINE gs_v##N##_v gs_v##N##_rounded(gs_v##N##_v v)                                                    \
    {                                                                                                         \
        GS_ROUNDED_##BYTES(v);                                                                                \
        return v;                                                                                             \
    }

/* Loads float16 where no instruction loads so many. */
#define GS_DEFINE_F16(N)                                               \
    GS_INLINE gs_v##N##_v gs_v##N##_load_f16(const uint16_t *p)        \
    {                                                                  \
        gs_v##N##_v v;                                                 \
        for (int i = 0; i < (N); i++)                                  \
            v[i] = gs_f32_from_f16(p[i]);                              \
        return v;                                                      \
    }

GS_DEFINE_OPERAND(4, 16)
#if defined(__F16C__)
GS_INLINE gs_v4_v gs_v4_load_f16(const uint16_t *p)
{
    return (gs_v4_v)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i_u *)p));
}
#else
GS_DEFINE_F16(4)
#endif

#if GS_LANES >= 8
GS_DEFINE_OPERAND(8, 32)
#if defined(__F16C__)
GS_INLINE gs_v8_v gs_v8_load_f16(const uint16_t *p)
{
    return (gs_v8_v)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
}
#else
GS_DEFINE_F16(8)
#endif
#endif

#if GS_LANES >= 16
GS_DEFINE_OPERAND(16, 64)
#if defined(__AVX512F__)
GS_INLINE gs_v16_v gs_v16_load_f16(const uint16_t *p)
{
    return (gs_v16_v)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
}
#else
GS_DEFINE_F16(16)
#endif
#endif

GS_INLINE float gs_number_from_bf16(uint16_t v)
{
    const uint32_t bits = (uint32_t)v << 16;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

GS_INLINE float gs_number_from_f16(uint16_t v)
{
#if defined(__F16C__)
    return _cvtsh_ss(v);
#else
    return gs_f32_from_f16(v);
#endif
}

GS_INLINE float gs_number_rounded(float x)
{
    GS_ROUNDED_16(x);
    return x;
}

/* A vector of the row at x, from column `at` on. */
#define GS_OF_LANES_JOIN(lanes) gs_v##lanes##_load_bf16
#define GS_OF_LANES(lanes) GS_OF_LANES_JOIN(lanes)
GS_INLINE gs_vf gs_load_row(const float *x, size_t at, const bool half)
{
    return half ? GS_OF_LANES(GS_LANES)((const uint16_t *)(const void *)x + at) : gs_load(x + at);
}

GS_INLINE const float *gs_row(const gs_cpu_rows *r, size_t e) { return r->p + (size_t)r->at[e] * r->stride; }

#define GS_LINE_FLOATS 16 /* of a cache line */
#define GS_ROWS_AHEAD 8   /* edges: their rows came near with the tile, but few stayed in the first-level cache */
#define GS_RUNS_AHEAD 4   /* whose targets' rows are on their way: they are read once, from far */

/* The run of edges so far behind run r, or the last one. */
GS_INLINE const gs_cpu_edge_run *gs_run_ahead(const gs_cpu_edge_run *run, uint32_t runs, uint32_t r)
{
    return &run[r + GS_RUNS_AHEAD < runs ? r + GS_RUNS_AHEAD : runs - 1];
}

/* `n` vectors that are read soon. */
GS_INLINE void gs_prefetch(const float *row, const uint32_t n)
{
    for (uint32_t i = 0; i < n * GS_LANES; i += GS_LINE_FLOATS)
        __builtin_prefetch(row + i);
}

/* The numbers 0, 1, 2, ...: rows that lie one after the other. */
GS_INLINE gs_cpu_rows gs_rows_in_order(const float *p, uint32_t width)
{
    return (gs_cpu_rows){.p = p, .at = GS_KERNEL(row_numbers), .stride = width};
}

GS_INLINE float *gs_slot(const gs_cpu_edge_frame *f, uint32_t slot)
{
    return f->work->scratch + f->plan->slot[slot].offset * f->plan->tile;
}

GS_INLINE size_t gs_row_floats(const gs_cpu_edge_value *v) { return v->half ? v->width / 2 : v->width; }

GS_INLINE gs_cpu_rows gs_value_rows(const gs_cpu_edge_frame *f, const gs_cpu_edge_value *v)
{
    switch (v->form) {
    case GS_CPU_EDGE_SLOT:
        return gs_rows_in_order(gs_slot(f, v->slot), v->width);
    case GS_CPU_EDGE_OPERAND:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->operand, .stride = gs_row_floats(v), .half = v->half};
    case GS_CPU_EDGE_TARGET:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->target, .stride = gs_row_floats(v), .half = v->half};
    case GS_CPU_EDGE_OPERAND_TYPE:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->operand_type, .stride = v->width};
    case GS_CPU_EDGE_TARGET_TYPE:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->target_type, .stride = v->width};
    case GS_CPU_EDGE_STORED:
        return (gs_cpu_rows){.p = v->p + (size_t)f->tile->edge * v->stride, .at = GS_KERNEL(row_numbers),
                             .stride = v->stride};
    default:
        return (gs_cpu_rows){.p = v->p, .at = GS_KERNEL(row_numbers), .stride = 0};
    }
}

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
GS_INLINE gs_vf gs_sums_of(gs_vf *p)
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

#endif /* GS_DEVICE_CPU_SIMD_ROWS_H */
