#include "pairs/decoder.h"

#include <string.h>

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
