/* saint_cover.c - coefficients of GraphSAINT's batches, from batches drawn beforehand.
 *
 * These estimate how likely each vertex and edge is: an edge into v then weighs C_v / C_edge, so that the sum over a
 * vertex' drawn in-edges, in batches that have the vertex, is its full sum on average; a target's loss weighs
 * n / (C_v * targets) for n batches, so that the sum of losses is the mean over all targets on average.
 *
 * Lists in memory have a count for each edge. Where the edges do not fit, counts of them do not: there each vertex has
 * the numbers of the batches that it was in, and an edge was in those that its two ends share. */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/sample_internal.h"

#define COVER_EPOCH UINT32_MAX /* batches drawn beforehand are of no epoch that is trained */
#define TOGETHER 64u           /* batches, of lists that stay in the store */

static float factor_of(uint32_t drawn, uint32_t both)
{
    return GS_MIN((float)GS_MAX(drawn, 1u) / (float)GS_MAX(both, 1u), GS_SAINT_MOST_FACTOR);
}

/* Never drawn counts once. */
static float loss_factor_of(const gs_sampler *s, uint32_t batches, uint32_t drawn)
{
    return (float)((double)batches / (GS_MAX(drawn, 1u) * (double)s->targets));
}

/* ---- lists in memory ----------------------------------------------------- */

/* Counts of batches and of vertices in them become factors of losses and edges. */
static void make_factors(gs_sampler *s, const uint32_t *drawn, uint32_t batches)
{
    const gs_adjacency *in = s->in;
    for (uint32_t v = 0; v < in->vertices; v++) {
        const uint64_t end = gs_adjacency_first(in, (uint64_t)v + 1);
        for (uint64_t k = gs_adjacency_first(in, v); k < end; k++)
            s->edge_factor[k].factor = factor_of(drawn[v], s->edge_factor[k].count);
        s->loss_factor[v] = loss_factor_of(s, batches, drawn[v]);
    }
}

static gs_status count_batches(gs_sampler *s, uint64_t want, uint32_t *drawn, uint32_t *batches)
{
    gs_batch_arena *a = NULL;
    gs_batch b = {.epoch = COVER_EPOCH};
    gs_status st = gs_batch_arena_make(&a, s);

    for (uint64_t total = 0; st == GS_OK && total < want; b.number++) {
        gs_unique_clear(&a->unique);
        a->raw.count = 0;
        if ((st = gs_saint__draw(&b, s, a)) != GS_OK || (st = gs_saint__number_rows(&b, s, a)) != GS_OK ||
            (st = gs_saint__find_edges(&b, s, a, s->edge_factor)) != GS_OK)
            break;
        for (uint32_t row = 0; row < b.vertices; row++)
            drawn[a->unique.vertex[row]]++;
        total += b.vertices;
    }
    *batches = b.number;
    gs_batch_arena_free(a);
    return st;
}

static gs_status cover_in_memory(gs_sampler *s, uint64_t want)
{
    uint32_t *drawn = gs_calloc(s->in->vertices, sizeof(*drawn)), batches = 0;
    gs_status st = GS_ENOMEM;

    s->edge_factor = gs_calloc(GS_MAX(s->in->edges, 1), sizeof(*s->edge_factor));
    if (drawn == NULL || s->edge_factor == NULL)
        st = gs_fail(st, "no memory for the coefficients of the graph's edges");
    else if ((st = count_batches(s, want, drawn, &batches)) == GS_OK)
        make_factors(s, drawn, batches);
    gs_free(drawn);
    return st;
}

/* ---- lists in the store -------------------------------------------------- */

/* Vertices of the batches, one after the other. */
typedef struct covering {
    uint32_t *vertex; /* [most] */
    uint64_t total, want, most;
    uint64_t *end;    /* [room] of each batch */
    uint32_t batches, room;
} covering;

static gs_status add_batch(covering *c, const gs_batch_arena *a)
{
    if (c->batches == c->room) {
        const uint32_t room = 2 * c->room + 64;
        uint64_t *const end = gs_realloc(c->end, room * sizeof(*end));
        if (end == NULL)
            return gs_fail(GS_ENOMEM, "no memory for the coefficients of the graph's edges");
        c->end = end;
        c->room = room;
    }
    memcpy(c->vertex + c->total, a->unique.vertex, a->unique.count * sizeof(*c->vertex));
    c->total += a->unique.count;
    c->end[c->batches++] = c->total;
    return GS_OK;
}

static gs_status draw_together(covering *c, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t together)
{
    gs_batch b[TOGETHER];
    gs_status st = GS_OK;

    while (c->total < c->want && st == GS_OK) {
        for (uint32_t k = 0; k < together; k++) {
            b[k] = (gs_batch){.epoch = COVER_EPOCH, .number = c->batches + k};
            gs_unique_clear(&arena[k]->unique);
        }
        st = gs_saint__draw_columns(b, s, arena, together, 1);
        for (uint32_t k = 0; k < together && st == GS_OK && c->total < c->want; k++)
            st = b[k].overflows ? gs_sample__overflow(&b[k], s) : add_batch(c, arena[k]);
    }
    return st;
}

static gs_status draw_batches(covering *c, const gs_sampler *s)
{
    const uint64_t bytes = gs_sample__vertex_arena_bytes(s);
    const uint32_t together = (uint32_t)GS_MIN(GS_MAX(s->options.cover_bytes / bytes, 1), TOGETHER);
    gs_batch_arena *arena[TOGETHER] = {0};
    gs_status st = GS_OK;

    for (uint32_t k = 0; k < together && st == GS_OK; k++)
        st = gs_sample__vertex_arena_make(&arena[k], s);
    if (st == GS_OK)
        st = draw_together(c, s, arena, together);
    for (uint32_t k = 0; k < together; k++)
        gs_batch_arena_free(arena[k]);
    return st;
}

/* From the vertices of each batch to the batches of each vertex. */
static gs_status list_batches(gs_sampler *s, const covering *c)
{
    gs_saint_drawn *const d = &s->drawn;
    const uint32_t n = s->in->vertices;

    d->first = gs_calloc(n + 1ull, sizeof(*d->first));
    d->number = gs_malloc_array(c->total, sizeof(*d->number));
    if (d->first == NULL || d->number == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the coefficients of the graph's edges");
    for (uint64_t k = 0; k < c->total; k++)
        d->first[c->vertex[k] + 1]++;
    for (uint32_t v = 0; v < n; v++) {
        s->loss_factor[v] = loss_factor_of(s, c->batches, (uint32_t)d->first[v + 1]);
        d->first[v + 1] += d->first[v];
    }
    for (uint64_t k = 0, batch = 0; k < c->total; k++) { /* first[v] ascends to first[v + 1] */
        batch += k == c->end[batch];
        d->number[d->first[c->vertex[k]]++] = (uint32_t)batch;
    }
    memmove(d->first + 1, d->first, n * sizeof(*d->first));
    d->first[0] = 0;
    return GS_OK;
}

uint64_t gs_sampler_cover_bytes(uint64_t vertices, uint32_t coverage)
{
    return (vertices + 1) * sizeof(uint64_t) + vertices * sizeof(float) + vertices * coverage * sizeof(uint32_t);
}

static gs_status cover_in_store(gs_sampler *s, uint64_t want)
{
    covering c = {.want = want, .most = want + s->limits.vertices};
    gs_status st = GS_ENOMEM;

    if ((c.vertex = gs_malloc_array(c.most, sizeof(*c.vertex))) == NULL)
        st = gs_fail(st, "no memory for the coefficients of the graph's edges");
    else if ((st = draw_batches(&c, s)) == GS_OK)
        st = list_batches(s, &c);
    gs_free(c.vertex);
    gs_free(c.end);
    return st;
}

float gs_saint__edge_factor(const gs_sampler *s, uint32_t source, uint32_t dest)
{
    const gs_saint_drawn *const d = &s->drawn;
    const uint32_t *p = d->number + d->first[source], *const p_end = d->number + d->first[source + 1ull],
                   *q = d->number + d->first[dest], *const q_end = d->number + d->first[dest + 1ull];
    const uint32_t drawn = (uint32_t)(q_end - q);
    uint32_t both = 0;

    while (p < p_end && q < q_end) {
        const uint32_t a = *p, b = *q;
        both += a == b;
        p += a <= b;
        q += b <= a;
    }
    return factor_of(drawn, both);
}

gs_status gs_saint__cover(gs_sampler *s)
{
    const uint64_t want = (uint64_t)s->options.coverage * s->in->vertices;

    if ((s->loss_factor = gs_malloc_array(s->in->vertices, sizeof(*s->loss_factor))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the coefficients of the graph's edges");
    return s->in->columns != NULL ? cover_in_store(s, want) : cover_in_memory(s, want);
}
