/* Losses of a block of rows: cross-entropy of the softmax of classes, of labels one by one, and errors of numbers. */
#include <math.h>

#include "base/dtype.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"

enum { TRAIN = 1, VALID = 2, SPLITS = 4 }; /* gs_split of the store: none, train, valid, test */

/* ---- classes -------------------------------------------------------------- */

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

/* The first of the largest; `n` where they are not numbers. No branch asks which, as it would not be foreseen: the one
 * furthest from the end. What is read behind the end is no further than 0. */
static uint32_t first_at(const float *a, uint32_t n, float max)
{
    gs_vf to_end = (float)n - __builtin_convertvector(gs_lane_numbers(), gs_vf), most = {0};
    for (uint32_t c = 0; c < n; c += GS_LANES, to_end -= (float)GS_LANES) {
        const gs_vf x = c + GS_LANES <= n ? gs_load(a + c) : gs_load_part(a + c, n - c);
        const gs_vf at = gs_select(x == max, to_end, (gs_vf){0});
        most = gs_select(at > most, at, most);
    }
    return n - (uint32_t)gs_lanes_max(most);
}

/* Threads add whole numbers, so that their order does not matter. */
static void count(uint32_t *at) { (void)__atomic_fetch_add(at, 1, __ATOMIC_RELAXED); }

static void count_class(const gs_cpu_loss *x, uint8_t split, uint32_t label, uint32_t taken)
{
    uint32_t *const of = x->found + (size_t)(split - 1) * x->classes * GS_LOSS_SUMS;
    if (taken == label) {
        count(&of[(size_t)label * GS_LOSS_SUMS]);
        return;
    }
    if (taken < x->classes)
        count(&of[(size_t)taken * GS_LOSS_SUMS + 1]);
    count(&of[(size_t)label * GS_LOSS_SUMS + 2]);
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

static float factor_of(const gs_cpu_loss *x, uint32_t row) { return x->factor == NULL ? 1.0f : x->factor[row]; }

/* Weights of a row of label y: q[y] without the part that smoothing spreads, and that part for class k. */
static float weight_of(const gs_cpu_loss *x, uint32_t k) { return x->weight == NULL ? 1.0f : x->weight[k]; }
static float own_part(const gs_cpu_loss *x, uint32_t label) { return (1.0f - x->smoothing) * weight_of(x, label); }
static float spread_part(const gs_cpu_loss *x, uint32_t k)
{
    return x->smoothing * weight_of(x, k) / (float)x->classes;
}

/* The gradient of a row whose exponentials are at `gradient`. */
static void weighted_gradient(const gs_cpu_loss *x, float *gradient, uint32_t label, float total, float scale)
{
    float all = own_part(x, label);
    for (uint32_t c = 0; x->smoothing > 0 && c < x->classes; c++)
        all += spread_part(x, c);
    for (uint32_t c = 0; c < x->classes; c++) {
        const float q = (c == label ? own_part(x, label) : 0) + (x->smoothing > 0 ? spread_part(x, c) : 0);
        gradient[c] = (gradient[c] / total * all - q) * scale;
    }
}

/* The loss of a row; the gradient where it is wanted. */
static double row_loss(const gs_cpu_loss *x, float *gradient, const float *a, uint32_t label, float max, float scale)
{
    const bool plain = x->weight == NULL && x->smoothing == 0;
    const float at_label = a[label], total = exp_total(gradient, a, x->classes, max);
    const double log_total = log((double)total) + (double)max;
    if (gradient != NULL && !plain)
        weighted_gradient(x, gradient, label, total, scale);
    else if (gradient != NULL) {
        const float inverse = 1.0f / total;
        gradient[label] -= total; /* before scaling: softmax - 1 */
        uint32_t c = 0;
        for (; c + GS_LANES <= x->classes; c += GS_LANES)
            gs_store(gradient + c, gs_load(gradient + c) * inverse * scale);
        if (c < x->classes)
            gs_store_part(gradient + c, gs_load_part(gradient + c, x->classes - c) * inverse * scale,
                          x->classes - c);
    }
    if (plain)
        return log((double)total) - ((double)at_label - (double)max);
    double loss = (double)own_part(x, label) * (log_total - (double)at_label);
    for (uint32_t c = 0; x->smoothing > 0 && c < x->classes; c++)
        loss += (double)spread_part(x, c) * (log_total - (double)a[c]);
    return loss;
}

void GS_KERNEL(xent)(const gs_cpu_loss *x, gs_metrics *m)
{
    for (uint32_t r = 0; r < x->rows; r++) {
        const float *const a = x->logits + (size_t)r * x->classes;
        float *const gradient = x->gradient == NULL ? NULL : x->gradient + (size_t)r * x->classes;
        const int64_t label = ((const int32_t *)x->label)[r];
        const uint8_t split = x->split[r];

        if (label < 0 || label >= x->classes || split == 0 || split >= SPLITS) {
            if (gradient != NULL)
                memset(gradient, 0, x->classes * sizeof(float));
            continue;
        }
        const float max = row_max(a, x->classes);
        const uint32_t taken = first_at(a, x->classes, max);
        m->rows[split]++;
        m->correct[split] += taken == (uint32_t)label;
        if (x->found != NULL)
            count_class(x, split, (uint32_t)label, taken);
        if (split == TRAIN)
            m->loss_sum += (double)factor_of(x, r) *
                           row_loss(x, gradient, a, (uint32_t)label, max, x->scale * factor_of(x, r));
        else if (gradient != NULL)
            memset(gradient, 0, x->classes * sizeof(float));
        if (split == VALID)
            m->valid_loss += row_loss(x, NULL, a, (uint32_t)label, max, 1);
    }
}

/* ---- labels one by one ---------------------------------------------------- */

#define TILE 64u /* columns at a time; a multiple of the vector lanes */

/* Columns [first, first + n) of a row, padded: what is not known has mask 0. */
typedef struct tile {
    float y[TILE], mask[TILE], weight[TILE], loss[TILE], slope[TILE];
} tile;

static uint32_t fill_tile(tile *t, const gs_cpu_loss *x, const uint8_t *label, uint32_t first, uint32_t n)
{
    uint32_t known = 0;
    for (uint32_t c = 0; c < TILE; c++) {
        const bool is_known = c < n && label[first + c] <= 1;
        t->y[c] = is_known ? label[first + c] : 0;
        t->mask[c] = is_known;
        t->weight[c] = is_known && x->weight != NULL ? x->weight[first + c] : 1;
        known += is_known;
    }
    return known;
}

/* softplus(-x) = max(-x, 0) + log(1 + e^-|x|), which neither overflows nor loses the small ones. */
static void bce_tile(tile *t, const float *a, uint32_t n)
{
    for (uint32_t c = 0; c < n; c += GS_LANES) {
        const gs_vf x = n - c >= GS_LANES ? gs_load(a + c) : gs_load_part(a + c, n - c);
        const gs_vf y = gs_load(t->y + c), mask = gs_load(t->mask + c), w = gs_load(t->weight + c);
        const gs_vf e = gs_v_exp(-gs_v_abs(x)), inverse = 1.0f / (1.0f + e), zero = {0};
        const gs_vf softplus = gs_select(x < 0.0f, -x, zero) + gs_v_log(1.0f + e);
        const gs_vf one = zero + 1.0f, yes = gs_select(x < 0.0f, e, one) * inverse,
                    no = gs_select(x < 0.0f, one, e) * inverse;
        gs_store(t->loss + c, mask * ((1.0f - y) * x + (1.0f + (w - 1.0f) * y) * softplus));
        gs_store(t->slope + c, mask * ((1.0f - y) * yes - w * y * no));
    }
}

/* Figures of a split, [classes][GS_LOSS_SUMS]. */
static double *columns_of(const gs_cpu_loss *x, const gs_metrics *m, uint8_t split)
{
    return m->column == NULL ? NULL : m->column + (size_t)(split - 1) * x->classes * GS_LOSS_SUMS;
}

static void count_found(double *sum, const tile *t, const float *a, uint32_t n)
{
    for (uint32_t c = 0; c < n; c++, sum += GS_LOSS_SUMS) {
        const bool known = t->mask[c] != 0, there = t->y[c] != 0, found = a[c] > 0;
        sum[0] += known && there && found;
        sum[1] += known && !there && found;
        sum[2] += known && there && !found;
    }
}

void GS_KERNEL(bce)(const gs_cpu_loss *x, gs_metrics *m)
{
    tile t;
    for (uint32_t r = 0; r < x->rows; r++) {
        const size_t at = (size_t)r * x->classes;
        const uint8_t split = x->split[r];
        const bool counts = split > 0 && split < SPLITS, learns = split == TRAIN;
        double *const sum = counts ? columns_of(x, m, split) : NULL;
        if (!learns && x->gradient != NULL)
            memset(x->gradient + at, 0, x->classes * sizeof(float));
        for (uint32_t c = 0; counts && c < x->classes; c += TILE) {
            const uint32_t n = x->classes - c < TILE ? x->classes - c : TILE;
            m->rows[split] += fill_tile(&t, x, (const uint8_t *)x->label + at, c, n);
            if (sum != NULL)
                count_found(sum + (size_t)c * GS_LOSS_SUMS, &t, x->logits + at + c, n);
            if (learns || split == VALID)
                bce_tile(&t, x->logits + at + c, n);
            for (uint32_t k = 0; split == VALID && k < n; k++)
                m->valid_loss += (double)t.loss[k];
            if (!learns)
                continue;
            const float factor = factor_of(x, r);
            for (uint32_t k = 0; k < n; k++) {
                m->loss_sum += (double)factor * (double)t.loss[k];
                if (x->gradient != NULL)
                    x->gradient[at + c + k] = t.slope[k] * (x->scale * factor);
            }
        }
    }
}

/* ---- numbers -------------------------------------------------------------- */

/* NaN: not known. */
static float number_at(const gs_cpu_loss *x, size_t at, uint32_t row)
{
    if (x->label_type == GS_F32)
        return ((const float *)x->label)[at];
    const int32_t whole = x->label_type == GS_I32 ? ((const int32_t *)x->label)[row] : ((const uint8_t *)x->label)[at];
    const bool known = x->label_type == GS_I32 ? whole >= 0 : whole != GS_LABEL_UNKNOWN;
    return known ? (float)whole : NAN;
}

/* Of an error: its loss, and that loss's derivative. */
typedef struct gs_error {
    double loss;
    float slope;
} gs_error;

typedef gs_error error_fn(double off);

static inline gs_error squared(double off) { return (gs_error){off * off, 2.0f * (float)off}; }

static inline gs_error huber(double off)
{
    return fabs(off) <= 1 ? (gs_error){off * off / 2, (float)off} : (gs_error){fabs(off) - 0.5, off < 0 ? -1.0f : 1.0f};
}

static inline __attribute__((always_inline)) void numbers(const gs_cpu_loss *x, gs_metrics *m, error_fn *error_of)
{
    for (uint32_t r = 0; r < x->rows; r++) {
        const uint8_t split = x->split[r];
        const bool counts = split > 0 && split < SPLITS, learns = split == TRAIN;
        double *const sum = counts ? columns_of(x, m, split) : NULL;
        const float factor = learns ? factor_of(x, r) : 0;
        for (uint32_t c = 0; c < x->classes; c++) {
            const size_t at = (size_t)r * x->classes + c;
            const float y = counts ? number_at(x, at, r) : NAN;
            const double off = (double)x->logits[at] - (double)y;
            const bool known = !isnan(y);
            const gs_error e = error_of(off);
            if (x->gradient != NULL)
                x->gradient[at] = learns && known ? e.slope * (x->scale * factor) : 0;
            if (!known)
                continue;
            m->rows[split]++;
            m->loss_sum += learns ? (double)factor * e.loss : 0;
            m->valid_loss += split == VALID ? e.loss : 0;
            if (sum == NULL)
                continue;
            sum[(size_t)c * GS_LOSS_SUMS] += off * off;
            sum[(size_t)c * GS_LOSS_SUMS + 1] += fabs(off);
            sum[(size_t)c * GS_LOSS_SUMS + 2] += 1;
        }
    }
}

void GS_KERNEL(mse)(const gs_cpu_loss *x, gs_metrics *m) { numbers(x, m, squared); }
void GS_KERNEL(huber)(const gs_cpu_loss *x, gs_metrics *m) { numbers(x, m, huber); }
