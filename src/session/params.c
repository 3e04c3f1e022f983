#include "session/params.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/initial.h"
#include "base/philox.h"
#include "base/size.h"

#define MOMENTUM 0.1 /* torch.nn.BatchNorm1d's default */

uint64_t gs_params_elements(const gs_program *p)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < p->params; i++) {
        uint64_t n;
        if (!gs_mul_u64(&n, p->param[i].rows, p->param[i].cols) ||
            !gs_add_u64(&total, total, gs_align_up(n, GS_PARAM_ALIGN)))
            return UINT64_MAX;
    }
    return total;
}

uint64_t gs_params_sums(const gs_program *p)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->params; i++)
        total += p->param[i].statistic != GS_STATISTIC_NONE ? 2ull * p->param[i].cols : 0;
    return total;
}

uint64_t gs_params_learned(const gs_program *p)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->params; i++)
        total += p->param[i].fixed ? 0 : gs_param_elements(&p->param[i]);
    return total;
}

static bool place(gs_params *params, const gs_program *p)
{
    uint64_t *const at = gs_malloc_array((uint64_t)p->params + 1, sizeof(*at)), all;

    if (at == NULL)
        return false;
    params->fixed_elements = params->elements - gs_program_place_params(p, at, &all);
    for (uint32_t i = 0; i < p->params; i++) {
        params->value[i] = params->values + at[i];
        params->grad[i] = params->grads != NULL ? params->grads + at[i] : NULL;
    }
    gs_free(at);
    return true;
}

static bool take_sums(gs_params *params, const gs_program *p)
{
    uint64_t at = 0;

    params->sum_count = gs_params_sums(p);
    params->statistic = gs_calloc(p->params, sizeof(*params->statistic));
    params->sums = gs_calloc(params->sum_count + 1, sizeof(*params->sums));
    if (params->statistic == NULL || params->sums == NULL)
        return false;
    for (uint32_t i = 0; i < p->params; i++)
        if (p->param[i].statistic != GS_STATISTIC_NONE) {
            params->statistic[i] = params->sums + at;
            at += 2ull * p->param[i].cols;
        }
    return true;
}

gs_status gs_params_alloc(gs_params *out, const gs_program *p, bool grads, uint32_t states)
{
    const uint64_t elements = gs_params_elements(p), runs = 1 + (grads ? 2 + states : 0);
    gs_params made = {.count = p->params, .elements = elements};
    float *block = NULL;

    if (!gs_mul_u64(&made.block_bytes, elements, runs * sizeof(float)))
        return gs_fail(GS_ENOMEM, "the model's parameters do not fit in memory");
    made.value = gs_calloc(p->params, sizeof(*made.value));
    made.grad = gs_calloc(p->params, sizeof(*made.grad));
    if (made.block_bytes != 0)
        block = gs_alloc_pages(made.block_bytes);
    made.values = block;
    if (grads && block != NULL) {
        made.grads = block + elements;
        made.previous = block + 2 * elements;
        for (uint32_t k = 0; k < states; k++)
            made.state[k] = block + (3 + k) * elements;
    }
    if (made.value == NULL || made.grad == NULL || (made.block_bytes != 0 && block == NULL) ||
        !take_sums(&made, p) || !place(&made, p)) {
        gs_params_free(&made);
        return gs_fail(GS_ENOMEM, "no memory for the model's parameters (%llu bytes)",
                       (unsigned long long)made.block_bytes);
    }
    *out = made;
    return GS_OK;
}

gs_status gs_params_take_best(gs_params *params)
{
    const uint64_t bytes = GS_MAX(params->elements, 1) * sizeof(float);

    params->best = gs_alloc_pages(bytes);
    params->best_value = gs_calloc(params->count + 1, sizeof(*params->best_value));
    if (params->best == NULL || params->best_value == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the best parameters (%llu bytes)", (unsigned long long)bytes);
    for (uint32_t i = 0; i < params->count; i++)
        params->best_value[i] = params->best + (params->value[i] - params->values);
    return GS_OK;
}

void gs_params_free(gs_params *params)
{
    if (params->best != NULL)
        gs_free_pages(params->best, GS_MAX(params->elements, 1) * sizeof(float));
    gs_free(params->best_value);
    if (params->values != NULL)
        gs_free_pages(params->values, params->block_bytes);
    gs_free(params->value);
    gs_free(params->grad);
    gs_free(params->statistic);
    gs_free(params->sums);
    *params = (gs_params){0};
}

/* Each word of a counter is an element's. */
static void draw(float *value, uint64_t n, const gs_initial *from, uint64_t seed, uint32_t index)
{
    uint32_t key[2], word[4];
    float drawn[4];

    gs_random_key(key, seed, GS_RANDOM_INIT);
    for (uint64_t i = 0; i < n; i++) {
        if (i % 4 == 0) {
            const uint64_t quad = i / 4;
            const uint32_t counter[4] = {(uint32_t)quad, (uint32_t)(quad >> 32), index, 0};
            gs_philox4x32(word, counter, key);
            gs_initial_draw(drawn, from, word);
            gs_initial_draw(drawn + 2, from, word + 2);
        }
        value[i] = drawn[i % 4];
    }
}

static gs_initial initial_of(const gs_param *q)
{
    if (q->initial.rule != GS_INITIAL_GLOROT)
        return q->initial;
    return q->shape_dims >= 2 ? gs_initial_glorot(q->shape[q->shape_dims - 2], q->shape[q->shape_dims - 1])
                              : gs_initial_glorot(q->rows, q->cols);
}

/* Learned parameters are numbered by themselves: where the others stand is the compiler's business. */
void gs_params_init(gs_params *params, const gs_program *p, uint64_t seed)
{
    uint32_t learned = 0;
    for (uint32_t i = 0; i < p->params; i++) {
        const gs_param *const q = &p->param[i];
        const gs_initial from = initial_of(q);
        const uint64_t n = gs_param_elements(q);

        if (q->fixed || from.rule == GS_INITIAL_FILL)
            for (uint64_t k = 0; k < n; k++)
                params->value[i][k] = q->initial.rule == GS_INITIAL_FILL ? (float)q->initial.number : 0;
        else
            draw(params->value[i], n, &from, seed, learned);
        learned += !q->fixed;
    }
}

void gs_params_zero_grads(gs_params *params)
{
    if (params->elements != 0)
        memset(params->grads, 0, params->elements * sizeof(float));
}

void gs_params_zero_sums(gs_params *params)
{
    if (params->sum_count != 0)
        memset(params->sums, 0, params->sum_count * sizeof(*params->sums));
}

void gs_params_follow(gs_params *params, const gs_program *p, uint64_t vertices)
{
    const double unbiased = vertices > 1 ? (double)vertices / ((double)vertices - 1) : 1;
    for (uint32_t i = 0; i < p->params; i++) {
        const gs_param *const q = &p->param[i];
        const double scale = q->statistic == GS_STATISTIC_VARIANCE ? unbiased : 1;
        if (q->counter)
            params->value[i][0] += 1;
        if (q->statistic == GS_STATISTIC_NONE || q->running == GS_NONE)
            continue;
        for (uint32_t c = 0; c < q->cols; c++) {
            float *const running = &params->value[q->running][c];
            *running = (float)((1 - MOMENTUM) * (double)*running + MOMENTUM * scale * (double)params->value[i][c]);
        }
    }
}

uint32_t gs_params_find_nonfinite(float *const *value, const gs_program *p)
{
    for (uint32_t i = 0; i < p->params; i++) {
        const uint64_t n = value[i] != NULL ? gs_param_elements(&p->param[i]) : 0;
        for (uint64_t k = 0; k < n; k++)
            if (!isfinite(value[i][k]))
                return i;
    }
    return GS_NONE;
}

#define EXPONENT 0x7F800000u /* all ones: infinite or not a number */

bool gs_params_are_finite(const gs_params *params)
{
    uint32_t most = 0;

#pragma omp simd reduction(max : most)
    for (uint64_t i = 0; i < params->elements; i++) {
        uint32_t bits;
        memcpy(&bits, &params->values[i], sizeof(bits));
        most = GS_MAX(most, bits & EXPONENT);
    }
    return most != EXPONENT;
}
