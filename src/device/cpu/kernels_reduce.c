/* Sums along rows and columns, and the loss: softmax and cross-entropy of a block of rows. */
#include <math.h>

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

static float row_max(const float *a, uint32_t n)
{
    gs_vf m = gs_splat(a[0]);
    uint32_t i = 0;
    for (; i + GS_LANES <= n; i += GS_LANES) {
        const gs_vf x = gs_load(a + i);
        m = gs_select(x > m, x, m);
    }
    if (i < n && n >= GS_LANES) { /* the last ones, some of them once more */
        const gs_vf x = gs_load(a + n - GS_LANES);
        m = gs_select(x > m, x, m);
        i = n;
    }
    float max = gs_lanes_max(m);
    for (; i < n; i++)
        max = a[i] > max ? a[i] : max;
    return max;
}

/* True where `label` is the first of the largest. */
static bool is_hit(const float *a, uint32_t label, float max)
{
    if (a[label] != max)
        return false;
    for (uint32_t c = 0; c < label; c++)
        if (a[c] == max)
            return false;
    return true;
}

/* Sum of e^(a - max); with `e`, the terms are written there. */
static float exp_total(float *e, const float *a, uint32_t n, float max)
{
    gs_vf sum = {0};
    uint32_t i = 0;
    for (; i + GS_LANES <= n; i += GS_LANES) {
        const gs_vf x = gs_v_exp(gs_load(a + i) - max);
        sum += x;
        if (e != NULL)
            gs_store(e + i, x);
    }
    if (i < n) {
        const gs_vf x = gs_v_exp(gs_load_part(a + i, n - i) - max);
        if (e != NULL)
            gs_store_part(e + i, x, n - i);
        sum += gs_select(gs_lane_numbers() < (int32_t)(n - i), x, (gs_vf){0});
    }
    return gs_lanes_sum(sum);
}

/* One training row: its loss; the gradient where it is wanted. */
static double train_row(const gs_cpu_xent *x, float *gradient, const float *a, uint32_t label, float max)
{
    const float at_label = a[label];
    const float total = exp_total(gradient, a, x->classes, max);
    if (gradient != NULL) {
        const float inverse = 1.0f / total;
        gradient[label] -= total; /* before scaling: softmax - 1 */
        uint32_t c = 0;
        for (; c + GS_LANES <= x->classes; c += GS_LANES)
            gs_store(gradient + c, gs_load(gradient + c) * inverse * x->scale);
        if (c < x->classes)
            gs_store_part(gradient + c, gs_load_part(gradient + c, x->classes - c) * inverse * x->scale,
                          x->classes - c);
    }
    return log((double)total) - ((double)at_label - (double)max);
}

void GS_KERNEL(xent)(const gs_cpu_xent *x, gs_metrics *m)
{
    enum { TRAIN = 1, SPLITS = 4 }; /* gs_split of the store: none, train, valid, test */

    for (uint32_t r = 0; r < x->rows; r++) {
        const float *const a = x->logits + (size_t)r * x->classes;
        float *const gradient = x->gradient == NULL ? NULL : x->gradient + (size_t)r * x->classes;
        const int64_t label = x->label[r];
        const uint8_t split = x->split[r];

        if (label < 0 || label >= x->classes || split == 0 || split >= SPLITS) {
            if (gradient != NULL)
                memset(gradient, 0, x->classes * sizeof(float));
            continue;
        }
        const float max = row_max(a, x->classes);
        m->rows[split]++;
        m->correct[split] += is_hit(a, (uint32_t)label, max);
        if (split == TRAIN)
            m->loss_sum += train_row(x, gradient, a, (uint32_t)label, max);
        else if (gradient != NULL)
            memset(gradient, 0, x->classes * sizeof(float));
    }
}
