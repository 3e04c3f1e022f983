#include "pairs/decoder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

/* ---- the dot product of both ends ------------------------------------------ */

static void query_dot(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which)
{
    (void)type;
    (void)which;
    memcpy(query, end, width * sizeof(*query));
}

static void back_dot(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                     uint32_t width, gs_pair_end which)
{
    (void)d_type;
    (void)end;
    (void)type;
    (void)which;
    for (uint32_t i = 0; i < width; i++)
        d_end[i] += d_query[i];
}

/* ---- DistMult (Yang et al., ICLR'15): sum over i of h[i] r[i] t[i] ---------- */

static void query_distmult(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which)
{
    (void)which;
    for (uint32_t i = 0; i < width; i++)
        query[i] = end[i] * type[i];
}

static void back_distmult(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                          uint32_t width, gs_pair_end which)
{
    (void)which;
    for (uint32_t i = 0; i < width; i++) {
        d_end[i] += d_query[i] * type[i];
        d_type[i] += d_query[i] * end[i];
    }
}

/* ---- ComplEx (Trouillon et al., ICML'16): the real part of the sum over i of h[i] r[i] conj(t[i]) -------- */

/* Of a head the query is h r, of a tail conj(r) t; the real part of a product with a conjugate is a dot product. */
static void query_complex(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which)
{
    const uint32_t n = width / 2;
    const float sign = which == GS_PAIR_HEAD ? 1 : -1;

    for (uint32_t i = 0; i < n; i++) {
        const float real = type[i], imaginary = sign * type[n + i];
        query[i] = end[i] * real - end[n + i] * imaginary;
        query[n + i] = end[i] * imaginary + end[n + i] * real;
    }
}

static void back_complex(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                         uint32_t width, gs_pair_end which)
{
    const uint32_t n = width / 2;
    const float sign = which == GS_PAIR_HEAD ? 1 : -1;

    for (uint32_t i = 0; i < n; i++) {
        const float real = type[i], imaginary = sign * type[n + i], d_real = d_query[i], d_imaginary = d_query[n + i];
        d_end[i] += d_real * real + d_imaginary * imaginary;
        d_end[n + i] += d_imaginary * real - d_real * imaginary;
        d_type[i] += d_real * end[i] + d_imaginary * end[n + i];
        d_type[n + i] += sign * (d_imaginary * end[i] - d_real * end[n + i]);
    }
}

/* ---- TransE (Bordes et al., NIPS'13): minus the length of h + r - t --------- */

static void query_transe(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which)
{
    const float sign = which == GS_PAIR_HEAD ? 1 : -1;
    for (uint32_t i = 0; i < width; i++)
        query[i] = end[i] + sign * type[i];
}

static void back_transe(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                        uint32_t width, gs_pair_end which)
{
    const float sign = which == GS_PAIR_HEAD ? 1 : -1;

    (void)end;
    (void)type;
    for (uint32_t i = 0; i < width; i++) {
        d_end[i] += d_query[i];
        d_type[i] += sign * d_query[i];
    }
}

/* ---- a perceptron of both ends, PyG's EdgeDecoder: lin2(relu(lin1([h, t]) + r)) ---- */

/* Of a projected row; the other end's is added before the relu. */
static void query_mlp(float *query, const float *end, const float *type, uint32_t width, gs_pair_end which)
{
    (void)which;
    for (uint32_t i = 0; i < width; i++)
        query[i] = end[i] + type[i];
}

static void back_mlp(float *d_end, float *d_type, const float *d_query, const float *end, const float *type,
                     uint32_t width, gs_pair_end which)
{
    (void)end;
    (void)type;
    (void)which;
    for (uint32_t i = 0; i < width; i++) {
        d_end[i] += d_query[i];
        d_type[i] += d_query[i];
    }
}

static const gs_decoder decoders[GS_DECODERS + 1] = { /* the last, of labels, has no queries */
    [GS_DECODER_DOT] = {.query = query_dot, .back = back_dot},
    [GS_DECODER_DISTMULT] = {.of_types = true, .query = query_distmult, .back = back_distmult},
    [GS_DECODER_COMPLEX] = {.of_types = true, .halves = true, .query = query_complex, .back = back_complex},
    [GS_DECODER_TRANSE] = {.of_types = true, .similarity = GS_CPU_DISTANCE, .query = query_transe,
                           .back = back_transe},
    [GS_DECODER_MLP] = {.of_types = true, .projects = true, .similarity = GS_CPU_RELU, .query = query_mlp,
                        .back = back_mlp},
};

const gs_decoder *gs_decoder_of(gs_decoder_kind kind) { return &decoders[kind]; }

/* ---- lin1 of rows of ends --------------------------------------------------- */

#define ROWS 64u /* of a thread at a time */

gs_status gs_perceptron_open(gs_perceptron *p, const gs_cpu_kernels *kernels, uint32_t width, uint32_t threads,
                             uint32_t ends)
{
    const uint64_t one = (uint64_t)width * width;
    float *const all = gs_malloc_array(5 * one, sizeof(*all));

    *p = (gs_perceptron){.kernels = kernels, .width = width, .threads = threads, .ends = ends, .matrix = {all, NULL}};
    GS_NEED(all != NULL, "no memory for a perceptron of pairs");
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
