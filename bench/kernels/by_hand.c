#include "by_hand.h"

#include <math.h>
#include <stddef.h>

#include "device/cpu/simd_math.h"

_Static_assert(GS_LANES == 8, "a head is a vector, and so are all heads' scores");

#define VECTORS (HAND_WIDTH / GS_LANES)
#define SLOPE 0.2f

GS_INLINE const float *row(const float *array, uint32_t i, uint32_t width) { return array + (size_t)i * width; }

GS_INLINE void prefetch(const float *array, uint32_t i, uint32_t width)
{
    const char *const p = (const char *)row(array, i, width);
    for (uint32_t b = 0; b < width * sizeof(float); b += 64)
        __builtin_prefetch(p + b);
}

GS_INLINE uint32_t ahead_of(const hand_launch *l, uint32_t k, uint32_t last)
{
    return l->index[last - k > HAND_AHEAD ? k + HAND_AHEAD : last];
}

#define EACH(v) _Pragma("GCC unroll 8") for (uint32_t v = 0; v < VECTORS; v++)

void hand_weighted(const hand_launch *l, uint32_t first, uint32_t end)
{
    const uint32_t last = l->start[end] - 1;
    for (uint32_t t = first; t < end; t++) {
        float *const acc = l->acc[0] + (size_t)t * HAND_WIDTH;
        gs_vf sum[VECTORS];
        EACH(v) sum[v] = gs_load(acc + v * GS_LANES);
        for (uint32_t k = l->start[t]; k < l->start[t + 1]; k++) {
            const float *const x = row(l->operand[0], l->index[k], HAND_WIDTH);
            const gs_vf w = gs_splat(l->weight[k]);
            prefetch(l->operand[0], ahead_of(l, k, last), HAND_WIDTH);
            EACH(v) sum[v] += w * gs_load(x + v * GS_LANES);
        }
        EACH(v) gs_store(acc + v * GS_LANES, sum[v]);
    }
}

void hand_gated(const hand_launch *l, uint32_t first, uint32_t end)
{
    const uint32_t last = l->start[end] - 1;
    for (uint32_t t = first; t < end; t++) {
        float *const acc = l->acc[0] + (size_t)t * HAND_WIDTH;
        const float *const mine = row(l->target[0], t, HAND_WIDTH);
        gs_vf sum[VECTORS];
        EACH(v) sum[v] = gs_load(acc + v * GS_LANES);
        for (uint32_t k = l->start[t]; k < l->start[t + 1]; k++) {
            const float *const gate = row(l->operand[0], l->index[k], HAND_WIDTH);
            const float *const x = row(l->operand[1], l->index[k], HAND_WIDTH);
            const uint32_t next = ahead_of(l, k, last);
            prefetch(l->operand[0], next, HAND_WIDTH);
            prefetch(l->operand[1], next, HAND_WIDTH);
            EACH(v) sum[v] += gs_v_sigmoid(gs_load(mine + v * GS_LANES) + gs_load(gate + v * GS_LANES)) *
                              gs_load(x + v * GS_LANES);
        }
        EACH(v) gs_store(acc + v * GS_LANES, sum[v]);
    }
}

GS_INLINE gs_vf leaky(gs_vf x) { return gs_select(x > 0.0f, x, x * SLOPE); }

GS_INLINE int any(gs_vi mask)
{
    int64_t bits = 0;
    for (int i = 0; i < GS_LANES; i++)
        bits |= mask[i];
    return bits != 0;
}

void hand_attention(const hand_launch *l, uint32_t first, uint32_t end)
{
    const uint32_t last = l->start[end] - 1;
    for (uint32_t t = first; t < end; t++) {
        float *const acc = l->acc[0] + (size_t)t * HAND_WIDTH;
        const gs_vf mine = gs_load(row(l->target[0], t, HAND_HEADS));
        gs_vf sum[VECTORS], most = gs_splat(-INFINITY), norm = gs_splat(0);
        EACH(v) sum[v] = gs_splat(0);
        for (uint32_t k = l->start[t]; k < l->start[t + 1]; k++) {
            const uint32_t u = l->index[k], next = ahead_of(l, k, last);
            const float *const x = row(l->operand[1], u, HAND_WIDTH);
            const gs_vf score = leaky(gs_load(row(l->operand[0], u, HAND_HEADS)) + mine);
            prefetch(l->operand[0], next, HAND_HEADS);
            prefetch(l->operand[1], next, HAND_WIDTH);
            if (any(score > most)) {
                const gs_vf higher = gs_select(score > most, score, most), factor = gs_v_exp(most - higher);
                most = higher;
                norm *= factor;
                EACH(v) sum[v] *= gs_splat(factor[v]);
            }
            const gs_vf p = gs_v_exp(score - most);
            norm += p;
            EACH(v) sum[v] += gs_splat(p[v]) * gs_load(x + v * GS_LANES);
        }
        const gs_vf inverse = gs_select(norm > 0.0f, 1.0f / norm, norm);
        EACH(v) gs_store(acc + v * GS_LANES, sum[v] * gs_splat(inverse[v]));
        gs_store(l->maximum + (size_t)t * HAND_HEADS, most + gs_v_log(norm));
    }
}

/* Lane h: the sum of x[h * 8, + 8) * y[h * 8, + 8). */
GS_INLINE gs_vf dots(const float *x, const float *y)
{
    gs_vf p[VECTORS];
    EACH(v) p[v] = gs_load(x + v * GS_LANES) * gs_load(y + v * GS_LANES);
    for (int i = 0; i < 4; i++)
        p[i] = __builtin_shufflevector(p[i], p[i + 4], 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(p[i], p[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    for (int i = 0; i < 2; i++)
        p[i] = __builtin_shufflevector(p[i], p[i + 2], 0, 1, 8, 9, 4, 5, 12, 13) +
               __builtin_shufflevector(p[i], p[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(p[0], p[1], 0, 8, 2, 10, 4, 12, 6, 14) +
           __builtin_shufflevector(p[0], p[1], 1, 9, 3, 11, 5, 13, 7, 15);
}

GS_INLINE gs_vf score_gradient(gs_vf pre, gs_vf alpha, gs_vf dot, gs_vf mean)
{
    return alpha * (dot - mean) * gs_select(pre > 0.0f, gs_splat(1.0f), gs_splat(SLOPE));
}

void hand_attention_by_source(const hand_launch *l, uint32_t first, uint32_t end)
{
    const uint32_t last = l->start[end] - 1;
    for (uint32_t t = first; t < end; t++) {
        float *const acc = l->acc[1] + (size_t)t * HAND_WIDTH, *const scores = l->acc[0] + (size_t)t * HAND_HEADS;
        const float *const mine = row(l->target[1], t, HAND_WIDTH);
        const gs_vf own = gs_load(row(l->target[0], t, HAND_HEADS));
        gs_vf sum[VECTORS], score_sum = gs_load(scores);
        EACH(v) sum[v] = gs_load(acc + v * GS_LANES);
        for (uint32_t k = l->start[t]; k < l->start[t + 1]; k++) {
            const uint32_t u = l->index[k], next = ahead_of(l, k, last);
            const float *const g = row(l->operand[3], u, HAND_WIDTH);
            for (int i = 0; i < 3; i++)
                prefetch(l->operand[i], next, HAND_HEADS);
            prefetch(l->operand[3], next, HAND_WIDTH);
            const gs_vf pre = gs_load(row(l->operand[0], u, HAND_HEADS)) + own;
            const gs_vf alpha = gs_v_exp(leaky(pre) - gs_load(row(l->operand[1], u, HAND_HEADS)));
            score_sum += score_gradient(pre, alpha, dots(g, mine), gs_load(row(l->operand[2], u, HAND_HEADS)));
            EACH(v) sum[v] += gs_splat(alpha[v]) * gs_load(g + v * GS_LANES);
        }
        EACH(v) gs_store(acc + v * GS_LANES, sum[v]);
        gs_store(scores, score_sum);
    }
}

void hand_attention_by_destination(const hand_launch *l, uint32_t first, uint32_t end)
{
    const uint32_t last = l->start[end] - 1;
    for (uint32_t t = first; t < end; t++) {
        float *const scores = l->acc[0] + (size_t)t * HAND_HEADS;
        const float *const g = row(l->target[3], t, HAND_WIDTH);
        const gs_vf own = gs_load(row(l->target[0], t, HAND_HEADS));
        const gs_vf lse = gs_load(row(l->target[1], t, HAND_HEADS)), mean = gs_load(row(l->target[2], t, HAND_HEADS));
        gs_vf score_sum = gs_load(scores);
        for (uint32_t k = l->start[t]; k < l->start[t + 1]; k++) {
            const uint32_t u = l->index[k], next = ahead_of(l, k, last);
            prefetch(l->operand[0], next, HAND_HEADS);
            prefetch(l->operand[1], next, HAND_WIDTH);
            const gs_vf pre = gs_load(row(l->operand[0], u, HAND_HEADS)) + own;
            const gs_vf alpha = gs_v_exp(leaky(pre) - lse);
            score_sum += score_gradient(pre, alpha, dots(g, row(l->operand[1], u, HAND_WIDTH)), mean);
        }
        gs_store(scores, score_sum);
    }
}
