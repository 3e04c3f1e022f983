/* batch_limits.c - what can a batch have at most, and what does its memory hold? */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/columns.h"
#include "sample/sample_internal.h"

#define MOST_ROWS (1u << 31) /* of a table with 32 bit places */

static uint64_t multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return gs_mul_u64(&product, a, b) ? product : UINT64_MAX;
}

static void bound_neighbors(uint64_t *rows, uint64_t *edges, const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    const uint64_t all = s->in->edges, types = o->by_type && s->in->edge_types > 0 ? s->in->edge_types : 1;
    const uint64_t first = GS_MIN(o->batch_size, s->targets), others = s->in->vertices - first;
    uint64_t frontier = first, taken = first, sum = 0;

    for (uint32_t h = 0; h < o->hops; h++) {
        uint64_t most = o->fanout[h] == 0 ? all : multiply(multiply(frontier, o->fanout[h]), types);
        if (!o->replace)
            most = GS_MIN(most, all);
        sum = most > UINT64_MAX - sum ? UINT64_MAX : sum + most;
        frontier = GS_MIN(most, others); /* an earlier hop may have reached less than it could */
        taken += frontier;
    }
    *rows = GS_MIN(taken, s->in->vertices);
    *edges = o->replace ? sum : GS_MIN(sum, all);
}

uint32_t gs_sampler_targets(const gs_sampler *s, uint32_t number)
{
    return GS_MIN(s->options.batch_size, s->targets - number * s->options.batch_size);
}

static int descending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The `count` greatest of `n` values have this sum; values are left in another order. */
static uint64_t greatest(uint64_t *value, uint32_t n, uint32_t count)
{
    uint64_t sum = 0;
    qsort(value, n, sizeof(*value), descending);
    for (uint32_t k = 0; k < GS_MIN(n, count); k++)
        sum += value[k];
    return sum;
}

/* Most edges of interval i that a batch can have: those from within, and from as many other intervals as a batch has,
 * those with the most. All of them where the edges are of no store. */
static uint64_t bound_interval(const gs_sampler *s, uint32_t i, uint64_t *chunk)
{
    const gs_adjacency *in = s->in;
    const uint64_t first = (uint64_t)i * in->interval_rows, end = GS_MIN(first + in->interval_rows, in->vertices);
    uint32_t n = 0;

    if (in->chunks == NULL)
        return gs_adjacency_first(in, end) - gs_adjacency_first(in, first);
    for (uint32_t j = 0; j < in->parts; j++) {
        chunk[n] = gs_chunk_at(in->chunks, GS_BY_DEST, i, j)->edges;
        n += j != i && chunk[n] > 0;
    }
    return gs_chunk_at(in->chunks, GS_BY_DEST, i, i)->edges + greatest(chunk, n, s->options.batch_size - 1);
}

/* Edges of those intervals of which a batch can have the most. */
static uint64_t bound_clusters(const gs_sampler *s)
{
    const uint32_t parts = s->in->parts;
    uint64_t *column = gs_malloc_array(2ull * parts, sizeof(*column)), sum = s->in->edges;

    for (uint32_t i = 0; i < parts && column != NULL; i++)
        column[i] = bound_interval(s, i, column + parts);
    if (column != NULL)
        sum = greatest(column, parts, s->options.batch_size);
    gs_free(column);
    return sum;
}

static void bound(uint64_t *rows, uint64_t *edges, const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    *edges = s->in->edges;
    switch (o->kind) {
    case GS_SAMPLER_NEIGHBOR:
        bound_neighbors(rows, edges, s);
        return;
    case GS_SAMPLER_CLUSTER:
        *rows = multiply(o->batch_size, s->in->interval_rows);
        *edges = bound_clusters(s);
        break;
    case GS_SAMPLER_SAINT_NODE:
        *rows = o->batch_size;
        break;
    case GS_SAMPLER_SAINT_EDGE:
        *rows = 2ull * o->batch_size;
        break;
    case GS_SAMPLER_SAINT_WALK:
        *rows = multiply(o->batch_size, o->walk_length + 1ull);
        break;
    }
    *rows = GS_MIN(*rows, s->in->vertices);
}

static uint64_t set_limits(gs_batch_limits *l, const gs_sampler *s, uint64_t rows, uint64_t edges)
{
    l->vertices = (uint32_t)GS_MIN(GS_MAX(rows, 1), MOST_ROWS);
    l->edges = GS_MIN(GS_MAX(edges, 1), UINT32_MAX);
    const uint32_t ends = (uint32_t)GS_MIN(l->vertices, l->edges);
    for (int d = 0; d < 2; d++)
        l->chunk_bytes[d] = gs_chunk_bytes(l->edges, ends, ends, gs_batch_index_bytes(l), l->type_bytes, l->weights);
    return l->arena_bytes = gs_sample__arena_bytes(s, l);
}

void gs_sample__bounds(gs_batch_limits *l, const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    uint64_t rows = 0, edges = 0, low = 0, high = 1u << 16;

    bound(&rows, &edges, s);
    if (o->most_vertices != 0)
        rows = GS_MIN(rows, o->most_vertices);
    if (o->most_edges != 0)
        edges = GS_MIN(edges, o->most_edges);
    edges = GS_MIN(edges, UINT32_MAX); /* of a chunk */
    l->type_bytes = s->in->type_bytes;
    l->weights = s->in->weight != NULL || (s->in->columns != NULL && s->in->columns->weights) || o->coverage > 0;
    if (set_limits(l, s, rows, edges) <= o->arena_bytes || o->arena_bytes == 0)
        return;
    /* The greatest 65536th of both that the arena holds; of edges alone where a subgraph has about as many rows as it
     * can have, and far fewer edges. */
    const bool whole = o->kind != GS_SAMPLER_NEIGHBOR && set_limits(l, s, rows, 1) <= o->arena_bytes;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        const bool fits = set_limits(l, s, whole ? rows : rows * middle >> 16, edges * middle >> 16) <= o->arena_bytes;
        *(fits ? &low : &high) = middle;
    }
    set_limits(l, s, whole ? rows : rows * low >> 16, edges * low >> 16);
}

gs_status gs_sample__check_stop(const gs_sampler *s)
{
    return gs_sample__is_stopped(s) ? gs_fail(GS_EINTERRUPTED, "interrupted while batches were drawn") : GS_OK;
}

gs_status gs_sample__overflow(const gs_batch *b, const gs_sampler *s)
{
    if (gs_sample__is_stopped(s))
        return gs_sample__check_stop(s);
    return gs_fail(GS_EBUDGET, "batch %u of epoch %u has more than %u vertices or %llu edges, which is what there is "
                   "room for: give smaller batches or a smaller fanout", b->number, b->epoch,
                   s->limits.vertices, (unsigned long long)s->limits.edges);
}
