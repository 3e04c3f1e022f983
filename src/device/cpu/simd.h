/* simd.h - vectors of floats as wide as the instruction set that a file is
 * being compiled for, in the compiler's own vector language.
 *
 * Kernel files are compiled once for every instruction set (meson.build), with
 * GS_ISA naming it; GS_KERNEL(x) gives each copy a name of its own. Only they
 * include this header: a `static inline` function here is one copy a file, so
 * no code for a newer CPU can be linked into a place that an older one runs.
 */
#ifndef GS_DEVICE_CPU_SIMD_H
#define GS_DEVICE_CPU_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GS_KERNEL_JOIN(name, isa) gs_cpu__##name##_##isa
#define GS_KERNEL_NAME(name, isa) GS_KERNEL_JOIN(name, isa)
#define GS_KERNEL(name) GS_KERNEL_NAME(name, GS_ISA)

#if defined(GS_LANES)
/* tests build the code of wide vectors for CPUs that do not have them */
#elif defined(__AVX512F__)
#define GS_LANES 16
#elif defined(__AVX2__)
#define GS_LANES 8
#else
#define GS_LANES 4 /* SSE2, or what the compiler makes of it elsewhere */
#endif

#if defined(__AVX2__)
#include <immintrin.h>
#endif
#if GS_LANES == 16 && defined(__AVX512F__)
#define GS_HAS_PERMUTE /* lanes by numbers that are known when it runs, from one vector or two */
#endif

#define GS_INLINE static inline __attribute__((always_inline))

typedef float gs_vf __attribute__((vector_size(4 * GS_LANES)));
typedef int32_t gs_vi __attribute__((vector_size(4 * GS_LANES)));
typedef uint32_t gs_vu __attribute__((vector_size(4 * GS_LANES)));
/* The same in memory, where nothing is known of alignment but a float's. */
typedef float gs_vf_mem __attribute__((vector_size(4 * GS_LANES), aligned(4), may_alias));

GS_INLINE gs_vf gs_load(const float *p) { return *(const gs_vf_mem *)p; }
GS_INLINE void gs_store(float *p, gs_vf v) { *(gs_vf_mem *)p = v; }

/* The first n of a vector, n <= GS_LANES; the others are 0, or stay as they are in memory. */
#ifdef GS_HAS_PERMUTE
GS_INLINE gs_vf gs_load_part(const float *p, size_t n)
{
    return (gs_vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
}

GS_INLINE void gs_store_part(float *p, gs_vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
}
#else
GS_INLINE gs_vf gs_load_part(const float *p, size_t n)
{
    gs_vf v = {0};
    memcpy(&v, p, n * sizeof(float));
    return v;
}

GS_INLINE void gs_store_part(float *p, gs_vf v, size_t n) { memcpy(p, &v, n * sizeof(float)); }
#endif

GS_INLINE gs_vf gs_splat(float x) { return (gs_vf){0} + x; }
/* x in the lower half, y in the upper one. */
GS_INLINE gs_vf gs_splat_halves(float x, float y)
{
#if GS_LANES == 16
    return __builtin_shufflevector(gs_splat(x), gs_splat(y), 0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31);
#elif GS_LANES == 8
    return __builtin_shufflevector(gs_splat(x), gs_splat(y), 0, 1, 2, 3, 12, 13, 14, 15);
#else
    return __builtin_shufflevector(gs_splat(x), gs_splat(y), 0, 1, 6, 7);
#endif
}

/* Half a vector from p, the other half from q. */
typedef float gs_half_mem __attribute__((vector_size(2 * GS_LANES), aligned(4), may_alias));
GS_INLINE gs_vf gs_load_halves(const float *p, const float *q)
{
    const gs_half_mem low = *(const gs_half_mem *)p, high = *(const gs_half_mem *)q;
#if GS_LANES == 16
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif GS_LANES == 8
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    return __builtin_shufflevector(low, high, 0, 1, 2, 3);
#endif
}

GS_INLINE gs_vf gs_select(gs_vi mask, gs_vf yes, gs_vf no)
{
    return (gs_vf)((mask & (gs_vi)yes) | (~mask & (gs_vi)no));
}

#ifdef GS_HAS_PERMUTE
GS_INLINE float gs_lanes_sum(gs_vf v) { return _mm512_reduce_add_ps((__m512)v); }
GS_INLINE float gs_lanes_max(gs_vf v) { return _mm512_reduce_max_ps((__m512)v); }
#else
GS_INLINE float gs_lanes_sum(gs_vf v)
{
    float s = 0;
    for (int i = 0; i < GS_LANES; i++)
        s += v[i];
    return s;
}

GS_INLINE float gs_lanes_max(gs_vf v)
{
    float m = v[0];
    for (int i = 1; i < GS_LANES; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}
#endif

/* Which lanes: a register of bits where there are some, else lanes of all ones or zeros; & and | are those of C. */
#if GS_LANES == 16 && defined(__AVX512F__)
typedef __mmask16 gs_mask;
GS_INLINE gs_mask gs_is_equal(gs_vf x, gs_vf y) { return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_EQ_OQ); }
GS_INLINE gs_mask gs_is_other(gs_vf x, gs_vf y) { return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_NEQ_UQ); }
GS_INLINE gs_mask gs_is_above(gs_vf x, gs_vf y) { return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_GT_OQ); }
GS_INLINE gs_vf gs_blend(gs_mask mask, gs_vf yes, gs_vf no)
{
    return (gs_vf)_mm512_mask_blend_ps(mask, (__m512)no, (__m512)yes);
}
#else
typedef gs_vi gs_mask;
GS_INLINE gs_mask gs_is_equal(gs_vf x, gs_vf y) { return x == y; }
GS_INLINE gs_mask gs_is_other(gs_vf x, gs_vf y) { return x != y; }
GS_INLINE gs_mask gs_is_above(gs_vf x, gs_vf y) { return x > y; }
GS_INLINE gs_vf gs_blend(gs_mask mask, gs_vf yes, gs_vf no) { return gs_select(mask, yes, no); }
#endif

/* Bit i: are lanes i equal? */
#if GS_LANES == 16 && defined(__AVX512F__)
GS_INLINE uint32_t gs_equal(gs_vf x, gs_vf y) { return gs_is_equal(x, y); }
#elif GS_LANES == 8 && defined(__AVX2__)
GS_INLINE uint32_t gs_equal(gs_vf x, gs_vf y) { return (uint32_t)_mm256_movemask_ps((__m256)gs_is_equal(x, y)); }
#else
GS_INLINE uint32_t gs_equal(gs_vf x, gs_vf y)
{
    uint32_t bits = 0;
    for (int i = 0; i < GS_LANES; i++)
        bits |= (uint32_t)(x[i] == y[i]) << i;
    return bits;
}
#endif

/* Bit i: is lane i not 0? */
GS_INLINE uint32_t gs_nonzero(gs_vf v) { return ~gs_equal(v, gs_splat(0)) & ((1u << GS_LANES) - 1); }

/* 0, 1, 2, ... */
GS_INLINE gs_vi gs_lane_numbers(void)
{
    gs_vi v;
    for (int i = 0; i < GS_LANES; i++)
        v[i] = i;
    return v;
}

#ifdef GS_HAS_PERMUTE
/* Lane i is lane at[i] of v. */
GS_INLINE gs_vf gs_permute(gs_vf v, gs_vi at)
{
    return (gs_vf)_mm512_permutexvar_ps((__m512i)at, (__m512)v);
}

/* Lane i is lane at[i] of a, or at[i] - 16 of b. */
GS_INLINE gs_vf gs_permute_two(gs_vf a, gs_vf b, gs_vi at)
{
    return (gs_vf)_mm512_permutex2var_ps((__m512)a, (__m512i)at, (__m512)b);
}
#endif

#endif /* GS_DEVICE_CPU_SIMD_H */
