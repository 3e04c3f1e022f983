#include "base/dtype.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const struct {
    const char *name;
    size_t bytes;
} types[GS_DTYPE_COUNT] = {
#define X(id, type_name, type_bytes) [id] = {type_name, type_bytes},
    GS_DTYPE_MAP(X)
#undef X
};

size_t gs_dtype_bytes(gs_dtype t)
{
    assert((unsigned)t < GS_DTYPE_COUNT);
    return types[t].bytes;
}

const char *gs_dtype_name(gs_dtype t)
{
    assert((unsigned)t < GS_DTYPE_COUNT);
    return types[t].name;
}

bool gs_dtype_parse(gs_dtype *out, const char *name)
{
    for (unsigned t = 0; t < GS_DTYPE_COUNT; t++) {
        if (strcmp(name, types[t].name) == 0) {
            *out = (gs_dtype)t;
            return true;
        }
    }
    return false;
}

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    return u;
}

static float float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof(v));
    return v;
}

uint16_t gs_bf16_from_f32(float v)
{
    const uint32_t u = bits_of(v);
    const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    const uint32_t quiet_nan = (u >> 16) | 0x40; /* the payload's rest must not round to infinity */
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

float gs_f32_from_bf16(uint16_t v) { return float_of((uint32_t)v << 16); }

uint16_t gs_f16_from_f32(float v)
{
    const uint32_t u = bits_of(v), magnitude = u & 0x7fffffff, sign = (u >> 16) & 0x8000;

    if (magnitude > 0x7f800000) /* NaN: quiet, upper payload kept, as F16C does */
        return (uint16_t)(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
    if (magnitude >= 0x477ff000) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        /* Below 2^-14: adding 0.5 makes the last bit of the sum weigh 2^-24, the
         * step of f16's subnormals, and the addition rounds to nearest even. */
        return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000));
    }
    const uint32_t rebased = magnitude - (112u << 23); /* exponent bias 127 -> 15 */
    return (uint16_t)(sign | ((rebased + 0xfff + ((rebased >> 13) & 1)) >> 13));
}

float gs_f32_from_f16(uint16_t v)
{
    const uint32_t sign = (uint32_t)(v & 0x8000) << 16, magnitude = v & 0x7fff;

    if (magnitude > 0x7c00)
        return float_of(sign | 0x7fc00000 | (magnitude << 13));
    if (magnitude == 0x7c00)
        return float_of(sign | 0x7f800000);
    if (magnitude < 0x400) /* subnormal: steps of 2^-24, exact in f32 */
        return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
    return float_of(sign | ((magnitude << 13) + (112u << 23)));
}

#if defined(__x86_64__)
/* The processor's own conversion, 8 at a time; gives the number done. */
__attribute__((target("avx,f16c"))) static size_t f16_to_f32_wide(float *dst, const uint16_t *src, size_t n)
{
    const size_t whole = n & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + i))));
    return whole;
}

__attribute__((target("avx,f16c"))) static size_t f16_from_f32_wide(uint16_t *dst, const float *src, size_t n)
{
    const size_t whole = n & ~(size_t)7;
    for (size_t i = 0; i < whole; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(dst + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(src + i), _MM_FROUND_TO_NEAREST_INT));
    return whole;
}

/* CPUID itself: clang's __builtin_cpu_supports() knows f16c only from version 15. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}
#else
static size_t f16_to_f32_wide(float *dst, const uint16_t *src, size_t n) { (void)dst, (void)src, (void)n; return 0; }
static size_t f16_from_f32_wide(uint16_t *dst, const float *src, size_t n) { (void)dst, (void)src, (void)n; return 0; }
static bool has_f16c(void) { return false; }
#endif

void gs_convert_to_f32(float *dst, const void *src, gs_dtype from, size_t n)
{
    const uint16_t *const half = src;

    assert(gs_dtype_is_feature(from));
    if (from == GS_F32) {
        if (n > 0)
            memmove(dst, src, n * sizeof(*dst));
    } else if (from == GS_BF16) {
        for (size_t i = 0; i < n; i++)
            dst[i] = gs_f32_from_bf16(half[i]);
    } else {
        for (size_t i = has_f16c() ? f16_to_f32_wide(dst, half, n) : 0; i < n; i++)
            dst[i] = gs_f32_from_f16(half[i]);
    }
}

void gs_convert_from_f32(void *dst, gs_dtype to, const float *src, size_t n)
{
    uint16_t *const half = dst;

    assert(gs_dtype_is_feature(to));
    if (to == GS_F32) {
        if (n > 0)
            memmove(dst, src, n * sizeof(*src));
    } else if (to == GS_BF16) {
        for (size_t i = 0; i < n; i++)
            half[i] = gs_bf16_from_f32(src[i]);
    } else {
        for (size_t i = has_f16c() ? f16_from_f32_wide(half, src, n) : 0; i < n; i++)
            half[i] = gs_f16_from_f32(src[i]);
    }
}

/* ---- train tasks ------------------------------------------------------- */

static const struct {
    const char *name;
    gs_dtype labels;
} tasks[GS_TRAIN_TASK_COUNT] = {
#define X(id, task_name, dtype) [id] = {task_name, dtype},
    GS_TRAIN_TASK_MAP(X)
#undef X
};

const char *gs_train_task_name(gs_train_task t)
{
    static const char *const of_pairs[] = {"link", "edge-classify", "edge-regress"};

    assert((unsigned)t < GS_TRAIN_TASKS);
    return gs_train_task_is_of_pairs(t) ? of_pairs[t - GS_TRAIN_TASK_LINK] : tasks[t].name;
}

bool gs_train_task_parse(gs_train_task *out, const char *name)
{
    for (unsigned t = 0; t < GS_TRAIN_TASK_COUNT; t++)
        if (strcmp(name, tasks[t].name) == 0) {
            *out = (gs_train_task)t;
            return true;
        }
    return false;
}

gs_dtype gs_train_task_labels(gs_train_task t)
{
    assert((unsigned)t < GS_TRAIN_TASK_COUNT);
    return tasks[t].labels;
}

bool gs_train_task_of_labels(gs_train_task *out, gs_dtype labels)
{
    for (unsigned t = 0; t < GS_TRAIN_TASK_COUNT; t++)
        if (tasks[t].labels == labels) {
            *out = (gs_train_task)t;
            return true;
        }
    return false;
}
