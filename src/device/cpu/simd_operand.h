/* simd_operand.h - vectors of 4, 8 and 16 numbers from rows of float32, bfloat16 or float16.
 *
 * Included by kernel files only, as simd.h says. gs_vN_rounded() is its argument: the compiler, which may fuse a
 * product with the sum that it goes into, does not look through it, so that both are rounded.
 */
#ifndef GS_DEVICE_CPU_SIMD_OPERAND_H
#define GS_DEVICE_CPU_SIMD_OPERAND_H

#include "base/dtype.h"
#include "device/cpu/simd.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

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

#endif /* GS_DEVICE_CPU_SIMD_OPERAND_H */
