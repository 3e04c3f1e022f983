/* Dropout: Philox4x32-10 (base/philox.h says which counter) for many counters at a
 * time, then a compare and a multiply for each element.
 *
 * A 64-bit lane holds one counter. A 32 x 32 -> 64 bit multiply reads only the
 * lower half of a lane, so the upper half may hold anything: shifting a product
 * gives its high word, and the product itself serves as its low word.
 */
#include "base/philox.h"
#include "device/cpu_kernels_isa.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define PAIRS (GS_LANES / 2)  /* counters a vector */
#define CHAINS 4              /* vectors at a time: a round is a chain of about 6 cycles, this fills them */
#define STEP (PAIRS * CHAINS) /* counters a step */
#define BATCH 64              /* counters between generating and using: words stay in L1 */

typedef uint64_t vq __attribute__((vector_size(8 * PAIRS)));
typedef uint32_t half_mem __attribute__((vector_size(4 * PAIRS), aligned(4), may_alias));
typedef uint64_t vq_mem __attribute__((vector_size(8 * PAIRS), aligned(4), may_alias));

GS_INLINE vq multiply_low_halves(vq a, uint32_t by)
{
    const vq b = (vq){0} + by;
#if defined(__AVX512F__) && PAIRS == 8
    return (vq)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && PAIRS == 4
    return (vq)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && PAIRS == 2
    return (vq)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * b;
#endif
}

GS_INLINE vq widen(const uint32_t *p) { return __builtin_convertvector(*(const half_mem *)p, vq); }

/* Words 0, 1 in the lanes of `low` and 2, 3 in those of `high`, to the order of memory. */
GS_INLINE void store_words(uint32_t *words, vq low, vq high)
{
#if PAIRS == 8
    const vq first = __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
    const vq second = __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
#elif PAIRS == 4
    const vq first = __builtin_shufflevector(low, high, 0, 4, 1, 5);
    const vq second = __builtin_shufflevector(low, high, 2, 6, 3, 7);
#else
    const vq first = __builtin_shufflevector(low, high, 0, 2);
    const vq second = __builtin_shufflevector(low, high, 1, 3);
#endif
    *(vq_mem *)words = first;
    *(vq_mem *)(words + 2 * PAIRS) = second;
}

/* words[4 * STEP] of STEP counters {id[i], group[i], site, epoch}. */
GS_INLINE void philox_step(uint32_t *words, const uint32_t *id, const uint32_t *group, const gs_cpu_dropout *d)
{
    vq c0[CHAINS], c1[CHAINS], c2[CHAINS], c3[CHAINS];
    uint32_t k0 = d->key[0], k1 = d->key[1];
    for (int i = 0; i < CHAINS; i++) {
        c0[i] = widen(id + i * PAIRS);
        c1[i] = widen(group + i * PAIRS);
        c2[i] = (vq){0} + d->site;
        c3[i] = (vq){0} + d->epoch;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < CHAINS; i++) {
            const vq p0 = multiply_low_halves(c0[i], GS_PHILOX_M0), p1 = multiply_low_halves(c2[i], GS_PHILOX_M1);
            c0[i] = (p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = p1;
            c2[i] = (p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = p0;
        }
        k0 += GS_PHILOX_W0;
        k1 += GS_PHILOX_W1;
    }
    for (int i = 0; i < CHAINS; i++)
        store_words(words + i * 4 * PAIRS, (c0[i] & 0xffffffffu) | (c1[i] << 32),
                    (c2[i] & 0xffffffffu) | (c3[i] << 32));
}

GS_INLINE void apply(const gs_cpu_dropout *d, float *dst, const float *src, const uint32_t *words, size_t n)
{
    const int32_t threshold = (int32_t)d->threshold;
    const float scale = d->scale;
    _Pragma("omp simd") for (size_t i = 0; i < n; i++)
    {
        const float scaled = src[i] * scale;
        dst[i] = (int32_t)(words[i] >> 8) >= threshold ? scaled : 0.0f;
    }
}

/* Walks (row, group of 4 columns) in order, BATCH counters at a time. With whole groups the words of
 * a batch lie as the elements do; else every row's last group is cut. */
void GS_KERNEL(dropout)(const gs_cpu_dropout *d, float *dst, const float *src, const uint32_t *id, uint32_t rows,
                        uint32_t width)
{
    uint32_t ids[BATCH] = {0}, groups[BATCH] = {0}, words[4 * BATCH];
    const uint32_t row_groups = (width + 3) / 4;
    uint32_t row = 0, group = 0;

    while (row < rows) {
        const uint32_t first_row = row, first_group = group;
        uint32_t n = 0;
        while (n < BATCH && row < rows) {
            const uint32_t take = row_groups - group < BATCH - n ? row_groups - group : BATCH - n;
            for (uint32_t i = 0; i < take; i++) {
                ids[n + i] = id[row];
                groups[n + i] = group + i;
            }
            n += take;
            group += take;
            if (group == row_groups) {
                group = 0;
                row++;
            }
        }
        for (uint32_t i = 0; i < n; i += STEP)
            philox_step(words + 4 * i, ids + i, groups + i, d);

        if (width % 4 == 0) {
            const size_t at = (size_t)first_row * width + 4 * first_group;
            apply(d, dst + at, src + at, words, 4 * (size_t)n);
            continue;
        }
        for (uint32_t i = 0, r = first_row, g = first_group; i < n; r++, g = 0) {
            const uint32_t take = row_groups - g < n - i ? row_groups - g : n - i;
            const uint32_t from = 4 * g, to = g + take == row_groups ? width : 4 * (g + take);
            const size_t at = (size_t)r * width + from;
            apply(d, dst + at, src + at, words + 4 * i, to - from);
            i += take;
        }
    }
}
