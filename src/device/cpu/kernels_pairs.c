/* kernels_pairs.c - scores of many pairs of rows, and the sums of their gradients. */
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_rows.h"

#include <math.h>

#define QUERIES 4u /* rows that go over the same vectors of candidates */

/* ---- candidates side by side ----------------------------------------------- */

void GS_KERNEL(pair_pack)(float *panel, const float *from, uint32_t rows, uint32_t width)
{
    for (uint32_t first = 0; first < rows; first += GS_LANES) {
        const uint32_t n = rows - first < GS_LANES ? rows - first : GS_LANES;
        float *const to = panel + (size_t)first * width;
        for (uint32_t r = 0; r < GS_LANES; r++)
            for (uint32_t c = 0; c < width; c++)
                to[(size_t)c * GS_LANES + r] = r < n ? from[(size_t)(first + r) * width + c] : 0;
    }
}

/* ---- scores ---------------------------------------------------------------- */

GS_INLINE gs_vf step(gs_vf sum, gs_vf q, gs_vf c, float weight, gs_cpu_similarity s)
{
    if (s == GS_CPU_DISTANCE) {
        const gs_vf d = q - c;
        return sum + d * d;
    }
    if (s == GS_CPU_RELU) {
        const gs_vf x = q + c;
        return sum + gs_splat(weight) * gs_select(x > 0.0f, x, gs_splat(0));
    }
    return sum + q * c;
}

GS_INLINE void put(float *score, gs_vf sum, gs_cpu_similarity s)
{
    gs_store(score, sum);
    for (uint32_t i = 0; i < GS_LANES && s == GS_CPU_DISTANCE; i++)
        score[i] = -sqrtf(score[i]);
}

/* An element is a sum over the columns in their order, whatever stands beside it. */
GS_INLINE void score_some(float *score, const float *query, uint32_t queries, const float *vector,
                          const gs_cpu_pairs *p, gs_cpu_similarity s)
{
    const uint32_t width = p->width;
    gs_vf sum[QUERIES] = {{0}};

    for (uint32_t c = 0; c < width; c++) {
        const gs_vf v = gs_load(vector + (size_t)c * GS_LANES);
        const float weight = s == GS_CPU_RELU ? p->weight[c] : 0;
        for (uint32_t q = 0; q < queries; q++)
            sum[q] = step(sum[q], gs_splat(query[(size_t)q * width + c]), v, weight, s);
    }
    for (uint32_t q = 0; q < queries; q++)
        put(score + q * p->stride, sum[q], s);
}

GS_INLINE void score_all(const gs_cpu_pairs *p, gs_cpu_similarity s)
{
    for (uint32_t v = 0; v < p->vectors; v++) {
        const float *const vector = p->panel + (size_t)v * GS_LANES * p->width;
        float *const score = p->score + (size_t)v * GS_LANES;
        uint32_t q = 0;
        for (; q + QUERIES <= p->queries; q += QUERIES)
            score_some(score + q * p->stride, p->query + (size_t)q * p->width, QUERIES, vector, p, s);
        for (; q < p->queries; q++)
            score_some(score + q * p->stride, p->query + (size_t)q * p->width, 1, vector, p, s);
    }
}

void GS_KERNEL(pair_scores)(const gs_cpu_pairs *p)
{
    if (p->similarity == GS_CPU_DISTANCE)
        score_all(p, GS_CPU_DISTANCE);
    else if (p->similarity == GS_CPU_RELU)
        score_all(p, GS_CPU_RELU);
    else
        score_all(p, GS_CPU_DOT);
}

/* ---- gradients ------------------------------------------------------------- */

/* to += the rows at `from`, each times its coefficient, in their order; `n` vectors (a constant) cover the columns, the
 * last one ends where they do. */
GS_INLINE void mix_vectors(float *to, const float *from, const float *by, const gs_cpu_pair_mix *m, uint32_t columns,
                           const uint32_t n)
{
    const uint32_t tail = columns - GS_LANES;
    gs_vf sum[GS_MOST_VECTORS];

    _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        sum[v] = gs_load(to + (v + 1 < n ? v * GS_LANES : tail));
    for (uint32_t k = 0; k < m->others; k++) {
        const float c = by[k * m->by_other];
        const float *const x = from + (size_t)k * m->width;
        if (c == 0)
            continue;
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
            sum[v] += gs_splat(c) * gs_load(x + (v + 1 < n ? v * GS_LANES : tail));
    }
    _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        gs_store(to + (v + 1 < n ? v * GS_LANES : tail), sum[v]);
}

static void mix_row(float *to, const float *by, const gs_cpu_pair_mix *m)
{
    for (uint32_t k = 0; k < m->others && m->width < GS_LANES; k++)
        for (uint32_t i = 0; i < m->width && by[k * m->by_other] != 0; i++)
            to[i] += by[k * m->by_other] * m->other[(size_t)k * m->width + i];
    const uint32_t vectors = m->width < GS_LANES ? 0 : (m->width + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + GS_MOST_VECTORS - 1) / GS_MOST_VECTORS;
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t first = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
        const uint32_t columns = (next < m->width ? next : m->width) - first;
#define MIX_VECTORS(N) mix_vectors(to + first, m->other + first, by, m, columns, N)
        GS_BY_VECTORS(columns, MIX_VECTORS);
    }
}

void GS_KERNEL(pair_mix)(float *out, const gs_cpu_pair_mix *m)
{
    for (uint32_t r = 0; r < m->rows; r++)
        mix_row(out + (size_t)r * m->width, m->coefficient + r * m->by_row, m);
}

void GS_KERNEL(pair_relu)(const gs_cpu_pair_relu *p)
{
    for (uint32_t q = 0; q < p->queries; q++) {
        const float *const query = p->query + (size_t)q * p->width;
        float *const d_query = p->d_query + (size_t)q * p->width;
        for (uint32_t k = 0; k < p->others; k++) {
            const float c = p->coefficient[q * p->stride + k];
            const float *const other = p->other + (size_t)k * p->width;
            float *const d_other = p->d_other + (size_t)k * p->width;
            for (uint32_t i = 0; i < p->width && c != 0; i++) {
                const float sum = query[i] + other[i], d = sum > 0 ? c * p->weight[i] : 0;
                d_query[i] += d;
                d_other[i] += d;
                p->d_weight[i] += sum > 0 ? c * sum : 0;
            }
        }
    }
}
