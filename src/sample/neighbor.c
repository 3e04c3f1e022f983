/* neighbor.c - the targets, drawn in-edges of theirs, drawn in-edges of the sources of these, and so on.
 *
 * As NeighborLoader of torch_geometric draws: a vertex is expanded once, at the hop where it first appears. Memory is
 * waited for seldom: edges are named first, looked at GS_SAMPLE_PENDING later, their vertices looked up in the table
 * after all of these are under way. */
#include <assert.h>

#include "base/size.h"
#include "sample/sample_internal.h"

#define AHEAD 16u /* vertices whose list is asked for before it is needed */

typedef struct drawing {
    const gs_sampler *s;
    gs_batch_arena *a;
    const gs_batch *b;
    uint32_t fanout; /* of this hop */
    bool full;       /* too many vertices, or told to give up */
} drawing;

/* Looks at what is pending: vertices become rows. */
static void take_pending(drawing *d)
{
    gs_batch_arena *a = d->a;
    const gs_adjacency *in = d->s->in;
    uint32_t *row = a->raw.source + a->raw.count;
    uint32_t full = 0;

    for (uint32_t k = 0; k < a->pendings; k++) {
        row[k] = in->other[a->pending[k]];
        gs_unique_prefetch(&a->unique, row[k]);
    }
    if (a->raw.type != NULL || a->raw.weight != NULL)
        for (uint32_t k = 0; k < a->pendings; k++)
            gs_raw__carry(&a->raw, a->raw.count + k, in, a->pending[k]);
    for (uint32_t k = 0; k < a->pendings; k++) {
        row[k] = gs_unique_put(&a->unique, row[k]);
        full |= row[k] == GS_UNIQUE_NONE;
    }
    a->raw.count += a->pendings;
    a->pendings = 0;
    d->full |= full != 0 || gs_sample__is_stopped(d->s);
}

static inline void add_edge(drawing *d, uint64_t edge)
{
    gs_batch_arena *a = d->a;
    __builtin_prefetch(&d->s->in->other[edge]);
    a->pending[a->pendings] = edge;
    if (++a->pendings == GS_SAMPLE_PENDING)
        take_pending(d);
}

/* Edges that are drawn from a list; of weighted ones, at most so many. */
uint64_t gs_sample__drawn_of(const gs_sampler_options *o, uint32_t fanout, uint64_t degree)
{
    if (fanout == 0 || degree == 0 || (!o->replace && degree <= fanout))
        return degree;
    return fanout;
}

void gs_sample__draw_places(const gs_sampler *s, gs_batch_arena *a, uint32_t k, uint32_t degree, gs_random_stream *r)
{
    if (s->options.replace)
        gs_draw__repeated(a->place, k, degree, r);
    else
        gs_draw__distinct(a->place, k, degree, r, &a->set);
}

/* Draws from [first, first + degree), the edges of a vertex or those of one type; how many. */
static uint32_t draw_places(drawing *d, uint64_t first, uint32_t degree, gs_random_stream *r)
{
    const gs_sampler_options *o = &d->s->options;
    gs_batch_arena *a = d->a;
    const uint32_t k = (uint32_t)gs_sample__drawn_of(o, d->fanout, degree);

    if (o->weighted) {
        const float *weight = d->s->in->weight + first;
        return o->replace ? gs_draw__weighted_repeated(a->place, k, weight, degree, r, &a->set)
                          : gs_draw__weighted(a->place, k, weight, degree, r, &a->set);
    }
    gs_sample__draw_places(d->s, a, k, degree, r);
    return k;
}

/* False where the batch's edges would be too many. */
static bool expand(drawing *d, uint64_t first, uint64_t degree, gs_random_stream *r)
{
    const gs_sampler_options *o = &d->s->options;
    gs_batch_arena *a = d->a;

    if (d->full || a->raw.count + a->pendings + gs_sample__drawn_of(o, d->fanout, degree) > a->raw.most)
        return false;
    if (d->fanout == 0 || degree == 0 || (!o->replace && !o->weighted && degree <= d->fanout)) {
        for (uint64_t k = 0; k < degree && !d->full; k++)
            add_edge(d, first + k);
        return !d->full;
    }
    const uint32_t n = draw_places(d, first, (uint32_t)degree, r);
    for (uint32_t k = 0; k < n; k++)
        add_edge(d, first + a->place[k]);
    return true;
}

/* First edge of another type than that of `first`, before `end`. */
static uint64_t type_end(const gs_adjacency *a, uint64_t first, uint64_t end)
{
    const uint32_t type = gs_adjacency_type(a, first);
    uint64_t low = first + 1, step = 1;
    while (low + step < end && gs_adjacency_type(a, low + step - 1) == type) {
        low += step;
        step *= 2;
    }
    for (uint64_t high = GS_MIN(low + step, end); low < high;) {
        const uint64_t middle = low + (high - low) / 2;
        if (gs_adjacency_type(a, middle) == type)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool expand_row(drawing *d, uint32_t row)
{
    const gs_adjacency *in = d->s->in;
    const uint32_t v = d->a->unique.vertex[row];
    const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
    gs_random_stream r = gs_random_stream_of(d->s->key, v, d->b->number, d->b->epoch);

    d->a->raw.start[row] = (uint32_t)(d->a->raw.count + d->a->pendings);
    if (!d->s->options.by_type || in->type == NULL)
        return expand(d, first, end - first, &r);
    for (uint64_t at = first, next; at < end; at = next) {
        next = type_end(in, at, end);
        if (!expand(d, at, next - at, &r))
            return false;
    }
    return true;
}

static gs_status draw_hops(drawing *d, gs_batch *b)
{
    gs_batch_arena *a = d->a;
    const gs_adjacency *in = d->s->in;
    uint32_t row = 0;

    for (uint32_t h = 0; h < b->hops; h++) {
        const uint32_t end = a->unique.count;
        d->fanout = d->s->options.fanout[h];
        for (; row < end; row++) {
            if (row + AHEAD < end) {
                const uint32_t v = a->unique.vertex[row + AHEAD];
                __builtin_prefetch(in->first32 != NULL ? (const void *)&in->first32[v] : &in->first64[v]);
            }
            if (!expand_row(d, row))
                return gs_sample__overflow(b, d->s);
        }
        take_pending(d);
        if (d->full)
            return gs_sample__overflow(b, d->s);
        b->hop_end[h + 1] = a->unique.count;
    }
    b->expanded = row;
    a->raw.start[row] = (uint32_t)a->raw.count;
    return GS_OK;
}

/* Self loops of a vertex in the graph. */
static uint64_t own_loops(const gs_adjacency *in, uint32_t v)
{
    uint64_t own = 0;
    if (in->own != NULL)
        return in->own[v];
    if ((in->loops[v / 64] >> (v % 64) & 1) == 0)
        return 0;
    for (uint64_t k = gs_adjacency_first(in, v); k < gs_adjacency_first(in, (uint64_t)v + 1); k++)
        own += in->other[k] == v;
    return own;
}

/* Edges that a row would have in the batch, and, of these, self loops: as many as are to be expected. */
static void would_draw(const gs_sampler *s, const gs_batch_arena *a, uint32_t row, float *in_degree, float *loops)
{
    const gs_adjacency *in = s->in;
    const gs_sampler_options *o = &s->options;
    const uint32_t fanout = o->fanout[o->hops - 1], v = a->unique.vertex[row];
    const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
    uint64_t drawn = 0;

    if (a->rows.types != NULL)
        for (uint32_t type = 0; type < in->edge_types; type++)
            drawn += gs_sample__drawn_of(o, fanout, a->rows.types[(uint64_t)row * in->edge_types + type]);
    else if (!o->by_type || in->type == NULL)
        drawn = gs_sample__drawn_of(o, fanout, end - first);
    else
        for (uint64_t at = first, next; at < end; at = next) {
            next = type_end(in, at, end);
            drawn += gs_sample__drawn_of(o, fanout, next - at);
        }
    *in_degree = (float)drawn;
    if (loops == NULL)
        return;
    const uint64_t own = own_loops(in, v);
    *loops = own == 0 ? 0 : (float)((double)own * (double)drawn / (double)(end - first));
}

void gs_sample__count_degrees(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    const gs_adjacency *in = s->in;

    for (uint32_t row = 0; row < b->expanded; row++) {
        const uint32_t from = a->raw.start[row], to = a->raw.start[row + 1], v = a->unique.vertex[row];
        a->in_degree[row] = (float)(to - from);
        if (a->loops == NULL)
            continue;
        a->loops[row] = 0;
        if (in->own != NULL ? in->own[v] > 0 : (in->loops[v / 64] >> (v % 64) & 1) != 0)
            for (uint32_t k = from; k < to; k++)
                a->loops[row] += a->raw.source[k] == row;
    }
    for (uint32_t row = b->expanded; row < a->unique.count; row++) {
        if (row + AHEAD < a->unique.count) {
            const uint32_t v = a->unique.vertex[row + AHEAD];
            __builtin_prefetch(in->first32 != NULL ? (const void *)&in->first32[v] : &in->first64[v]);
        }
        would_draw(s, a, row, &a->in_degree[row], a->loops != NULL ? &a->loops[row] : NULL);
    }
}

void gs_sample__take_targets(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t first, uint32_t count)
{
    const gs_order order = gs_order_of(s->options.seed, b->epoch, s->targets);
    const uint32_t from = b->number * s->options.batch_size + first;

    b->hops = s->options.hops;
    b->targets = b->hop_end[0] = GS_MIN(count, gs_sampler_targets(s, b->number) - first);
    for (uint32_t i = 0; i < b->targets; i++) {
        const uint32_t row =
            gs_unique_put(&a->unique, s->target[s->options.ordered ? from + i : gs_order_at(&order, from + i)]);
        assert(row == i); /* a target is there once */
        (void)row;
    }
}

gs_status gs_sample__neighbor(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t first, uint32_t count)
{
    drawing d = {.s = s, .a = a, .b = b};
    gs_status st;

    gs_sample__take_targets(b, s, a, first, count);
    if ((st = draw_hops(&d, b)) != GS_OK)
        return st;
    gs_sample__count_degrees(b, s, a);
    b->vertices = a->unique.count;
    return GS_OK;
}
