/* Mixes: a row is blocks of columns, and each block of the result a weighted sum of them. Weights are few
 * and shared by all rows, blocks tens of columns wide, so the work is additions of one block to another. */
#include <string.h>

#include "device/cpu/kernels_isa.h"

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
