/* generate_kinds.c - R-MAT and planted-class graphs as functions of a counter. */
#include "partition/generate_kinds.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "base/size.h"
#include "partition/permute.h"

/* Graph500's quadrant probabilities a = 0.57, b = c = 0.19, d = 0.05, in
 * 1/65536: 16 random bits choose a quadrant, so one Philox call gives 8 levels. */
#define RMAT_A 37356u
#define RMAT_AB 49807u
#define RMAT_ABC 62259u

/* Planted classes: shares of the edges inside a community, inside the class,
 * anywhere; and the length of a class's mean feature vector, of which a
 * linear model alone can make about half of the vertices of 16 classes out. */
#define SBM_COMMUNITY 0.80
#define SBM_CLASS 0.12
#define SBM_COMMUNITY_VERTICES 2000u
#define SBM_SKEW 1.4 /* x^SKEW for uniform x: low places get more edges, mildly */
#define SBM_SIGNAL 1.75f
/* Vertices whose label is drawn at random: no model can do better than about
 * 1 - SBM_MISLABELLED, so an accuracy tells something. */
#define SBM_MISLABELLED 0.05

static void draw(uint32_t out[4], const gs_gen *g, uint64_t item, uint32_t round, uint32_t use)
{
    const uint32_t counter[4] = {(uint32_t)item, (uint32_t)(item >> 32), round, use};
    gs_philox4x32(out, counter, g->key);
}

/* -- rmat ------------------------------------------------------------------- */

/* One try; false where an end is beyond n or both are the same. */
static bool rmat_try(const gs_gen *g, uint64_t item, uint32_t attempt, uint64_t ends[2])
{
    uint64_t u = 0, v = 0;
    uint32_t bits[4] = {0};

    for (uint32_t level = 0; level < g->ids.bits; level++) {
        if (level % 8 == 0)
            draw(bits, g, item, attempt, GS_GEN_EDGE | level / 8);
        const uint32_t r = bits[level / 2 % 4] >> (level % 2 * 16) & 0xffff;
        u = u << 1 | (r >= RMAT_AB);
        v = v << 1 | ((r >= RMAT_A && r < RMAT_AB) || r >= RMAT_ABC);
    }
    ends[0] = gs_part__scramble(&g->ids, u);
    ends[1] = gs_part__scramble(&g->ids, v);
    return ends[0] < g->n && ends[1] < g->n && ends[0] != ends[1];
}

void gs_gen__rmat_edges(const gs_gen *g, int64_t *pairs, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ends[2];
        for (uint32_t attempt = 0; !rmat_try(g, first + i, attempt, ends); attempt++)
            ;
        pairs[2 * i] = (int64_t)ends[0];
        pairs[2 * i + 1] = (int64_t)ends[1];
    }
}

int64_t gs_gen__rmat_label(const gs_gen *g, uint64_t id)
{
    uint32_t bits[4];
    draw(bits, g, id, 0, GS_GEN_LABEL);
    return (int64_t)((uint64_t)bits[0] * g->classes >> 32);
}

/* -- sbm ---------------------------------------------------------------------- */

static uint64_t community_first(const gs_gen *g, uint64_t c)
{
    return (uint64_t)(((unsigned __int128)c * g->n + g->communities - 1) / g->communities);
}

static uint64_t community_of(const gs_gen *g, uint64_t place)
{
    return (uint64_t)((unsigned __int128)place * g->communities / g->n);
}

/* 0 .. n - 1 from 32 random bits. */
static uint64_t below(uint64_t n, uint32_t bits) { return (uint64_t)(((unsigned __int128)n * bits) >> 32); }

static uint64_t place_in(const gs_gen *g, uint64_t community, uint32_t bits)
{
    const uint64_t first = community_first(g, community), size = community_first(g, community + 1) - first;
    const uint64_t at = (uint64_t)((double)size * pow(gs_uniform_open(bits), SBM_SKEW));
    return first + GS_MIN(at, size - 1);
}

static bool sbm_try(const gs_gen *g, uint64_t item, uint32_t attempt, uint64_t ends[2])
{
    uint32_t a[4], b[4];
    draw(a, g, item, attempt, GS_GEN_EDGE);
    draw(b, g, item, attempt, GS_GEN_EDGE | 1);
    /* a community by its size, then a place in it */
    const uint64_t home = community_of(g, (uint64_t)(((unsigned __int128)g->n * ((uint64_t)a[0] << 32 | a[1])) >> 64));
    const double kind = gs_uniform_open(a[3]);
    uint64_t away = home;

    if (kind > SBM_COMMUNITY + SBM_CLASS)
        away = below(g->communities, b[0]);
    else if (kind > SBM_COMMUNITY) /* communities of a class are `classes` apart */
        away = home % g->classes +
               g->classes * below((g->communities - 1 - home % g->classes) / g->classes + 1, b[0]);
    ends[0] = gs_part__permute(&g->ids, place_in(g, home, a[2]));
    ends[1] = gs_part__permute(&g->ids, place_in(g, away, b[1]));
    return ends[0] != ends[1];
}

void gs_gen__sbm_edges(const gs_gen *g, int64_t *pairs, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ends[2];
        for (uint32_t attempt = 0; !sbm_try(g, first + i, attempt, ends); attempt++)
            ;
        pairs[4 * i] = pairs[4 * i + 3] = (int64_t)ends[0];
        pairs[4 * i + 1] = pairs[4 * i + 2] = (int64_t)ends[1];
    }
}

int64_t gs_gen__sbm_label(const gs_gen *g, uint64_t id)
{
    uint32_t bits[4];
    draw(bits, g, id, 0, GS_GEN_LABEL);
    return gs_uniform_open(bits[0]) < SBM_MISLABELLED ? (int64_t)(bits[1] % g->classes) : gs_gen__sbm_class(g, id);
}

int64_t gs_gen__sbm_class(const gs_gen *g, uint64_t id)
{
    return (int64_t)(community_of(g, gs_part__permute_back(&g->ids, id)) % g->classes);
}

/* -- features ------------------------------------------------------------------ */

static void normals(float four[4], const uint32_t bits[4])
{
    for (int k = 0; k < 4; k += 2) { /* Box-Muller */
        const float radius = sqrtf(-2 * logf((float)gs_uniform_open(bits[k] | 0x80)));
        const float angle = 6.28318530717958647692f * gs_uniform_f32(bits[k + 1]);
        four[k] = radius * cosf(angle);
        four[k + 1] = radius * sinf(angle);
    }
}

static void normal_row(const gs_gen *g, float *row, uint64_t item, uint32_t use)
{
    uint32_t bits[4];
    float four[4];
    for (uint32_t c = 0; c < g->width; c += 4) {
        draw(bits, g, item, c / 4, use);
        normals(four, bits);
        memcpy(row + c, four, GS_MIN(4, g->width - c) * sizeof(float));
    }
}

void gs_gen__means(gs_gen *g)
{
    for (uint32_t k = 0; k < g->classes; k++) {
        float *const mean = g->mean + (uint64_t)k * g->width;
        double square = 0;
        normal_row(g, mean, k, GS_GEN_MEAN);
        for (uint32_t c = 0; c < g->width; c++)
            square += (double)mean[c] * (double)mean[c];
        for (uint32_t c = 0; c < g->width; c++)
            mean[c] *= SBM_SIGNAL / (float)sqrt(GS_MAX(square, 1e-12));
    }
}

void gs_gen__row(const gs_gen *g, float *row, uint64_t id, int64_t class)
{
    normal_row(g, row, id, GS_GEN_NOISE);
    if (g->mean == NULL)
        return;
    const float *const mean = g->mean + (uint64_t)class * g->width;
    for (uint32_t c = 0; c < g->width; c++)
        row[c] += mean[c];
}
