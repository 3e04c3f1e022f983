/* Sums along rows and columns. */
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"

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
