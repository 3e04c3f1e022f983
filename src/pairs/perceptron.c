#include "pairs/decoder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

#define ROWS 64u /* of a thread at a time */

gs_status gs_perceptron_open(gs_perceptron *p, const gs_cpu_kernels *kernels, uint32_t width, uint32_t threads,
                             uint32_t ends)
{
    const uint64_t one = (uint64_t)width * width;
    float *const all = gs_malloc_array(5 * one, sizeof(*all));

    *p = (gs_perceptron){.kernels = kernels, .width = width, .threads = threads, .ends = ends, .matrix = {all, NULL}};
    if (all == NULL)
        return gs_fail(GS_ENOMEM, "no memory for a perceptron of pairs");
    p->matrix[1] = all + one;
    p->turned[0] = all + 2 * one;
    p->turned[1] = all + 3 * one;
    p->gradient = all + 4 * one;
    return GS_OK;
}

void gs_perceptron_close(gs_perceptron *p)
{
    gs_free(p->matrix[0]);
    *p = (gs_perceptron){0};
}

uint64_t gs_perceptron_bytes(uint32_t width) { return 5ull * width * width * sizeof(float); }

void gs_perceptron_take(gs_perceptron *p, const gs_decoder_values *values)
{
    const uint64_t width = p->width;

    p->bias = values->lin1_bias;
    for (uint64_t end = 0; end < p->ends; end++)
        for (uint64_t i = 0; i < width; i++)
            for (uint64_t k = 0; k < width; k++) {
                p->matrix[end][i * width + k] = values->lin1[(p->ends * i + end) * width + k];
                p->turned[end][k * width + i] = values->lin1[(p->ends * i + end) * width + k];
            }
}

void gs_perceptron_project(const gs_perceptron *p, float *to, const float *row, uint32_t rows, gs_pair_end end)
{
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (uint32_t first = 0; first < rows; first += ROWS) {
        const uint32_t n = GS_MIN(rows - first, ROWS), width = p->width;
        const uint64_t at = (uint64_t)first * width;
        const gs_cpu_pair_mix m = {.coefficient = row + at, .other = p->turned[end], .by_row = width, .by_other = 1,
                                   .rows = n, .others = width, .width = width};
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t i = 0; i < width; i++)
                to[at + (uint64_t)r * width + i] = end == GS_PAIR_HEAD ? p->bias[i] : 0;
        p->kernels->pair_mix(to + at, &m);
    }
}

void gs_perceptron_back(gs_perceptron *p, float *d_row, const gs_decoder_values *d, const float *d_projected,
                        const float *row, uint32_t rows, gs_pair_end end)
{
    const uint32_t width = p->width;

#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (uint32_t first = 0; first < rows; first += ROWS) {
        const uint64_t at = (uint64_t)first * width;
        const gs_cpu_pair_mix m = {.coefficient = d_projected + at, .other = p->matrix[end], .by_row = width,
                                   .by_other = 1, .rows = GS_MIN(rows - first, ROWS), .others = width, .width = width};
        p->kernels->pair_mix(d_row + at, &m);
    }
    memset(p->gradient, 0, (uint64_t)width * width * sizeof(*p->gradient));
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (uint32_t i = 0; i < width; i++) {
        const gs_cpu_pair_mix m = {.coefficient = d_projected + i, .other = row, .by_row = 1, .by_other = width,
                                   .rows = 1, .others = rows, .width = width};
        p->kernels->pair_mix(p->gradient + (uint64_t)i * width, &m);
    }
    for (uint64_t i = 0; i < width; i++)
        for (uint64_t k = 0; k < width; k++)
            d->lin1[(p->ends * i + (uint64_t)end) * width + k] += p->gradient[i * width + k];
    for (uint64_t r = 0; r < rows && end == GS_PAIR_HEAD; r++)
        for (uint32_t i = 0; i < width; i++)
            d->lin1_bias[i] += d_projected[r * width + i];
}
