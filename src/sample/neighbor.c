/* neighbor.c - the targets, drawn in-edges of theirs, drawn in-edges of the sources of these, and so on.
 *
 * As NeighborLoader of torch_geometric draws: a vertex is expanded once, at the hop where it first appears. The draw
 * from a list depends on its length and on the stream of random numbers of its vertex alone, so a hop names the edges
 * that it draws by their places, and whoever has the lists says which vertices these are, in the order in which they
 * were drawn: the same batches of lists in memory and in the store. */
#include <assert.h>
#include <string.h>

#include "base/dtype.h"
#include "base/size.h"
#include "sample/sample_internal.h"

#define AHEAD 16u /* vertices whose list is asked for before it is needed */

typedef struct drawing {
    const gs_sampler *s;
    gs_batch_arena *a;
    const gs_batch *b;
    uint32_t hop;
    uint32_t fanout; /* of this hop, and of the type of edges at hand where each has its own */
    bool full;       /* too many vertices, or told to give up */
} drawing;

/* ---- of lists in memory -------------------------------------------------- */

/* Looks at what is pending: vertices become rows. Memory is waited for seldom: edges are named first, looked at
 * GS_SAMPLE_PENDING later, their vertices looked up in the table after all of these are under way. */
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
    if (a->raw.type != NULL || a->raw.weight != NULL || a->raw.feature != NULL)
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

/* First edge of another type than that of `first`, before `end`. */
static uint64_t type_end(const gs_adjacency *a, uint64_t first, uint64_t end)
{
    const uint32_t type = gs_adjacency_type(a, first);
    uint64_t low = first + 1, step = 1;
    while (low + step < end && gs_adjacency_type(a, low + step - 1) == type) {
        low += step;
        step *= 2;
    }
    uint64_t high = GS_MIN(low + step, end);
    GS_BISECT(low, high, gs_adjacency_type(a, middle) == type);
    return low;
}

/* ---- naming edges -------------------------------------------------------- */

/* Edges that are drawn from a list; of weighted ones, at most so many. */
static uint64_t drawn_of(const gs_sampler_options *o, uint32_t fanout, uint64_t degree)
{
    if (fanout == GS_FANOUT_NONE)
        return 0;
    if (fanout == 0 || degree == 0 || (!o->replace && degree <= fanout))
        return degree;
    return fanout;
}

/* Draws from [first, first + degree), the edges of a vertex or those of one type, into a->place; how many. There are
 * `before` others of the vertex before them. */
static uint32_t draw_places(const drawing *d, uint64_t first, uint32_t degree, uint32_t before, gs_random_stream *r)
{
    const gs_sampler_options *o = &d->s->options;
    gs_batch_arena *a = d->a;
    const uint32_t k = (uint32_t)drawn_of(o, d->fanout, degree);

    if (o->weighted) {
        const float *weight = d->s->in->weight + first;
        return o->replace ? gs_draw__weighted_repeated(a->place, k, weight, degree, r, &a->set)
                          : gs_draw__weighted(a->place, k, weight, degree, r, before, &a->set);
    }
    if (o->replace)
        gs_draw__repeated(a->place, k, degree, r);
    else
        gs_draw__distinct(a->place, k, degree, r, &a->set);
    return k;
}

/* Of a list in the store: its first n edges, or those of a->place. */
static void note_places(gs_batch_arena *a, uint64_t n, bool all, uint32_t type)
{
    uint32_t *const place = a->rows.place + a->raw.count;

    for (uint32_t k = 0; k < n; k++)
        place[k] = all ? k : a->place[k];
    for (uint32_t k = 0; k < n && a->rows.types != NULL; k++)
        a->raw.type[a->raw.count + k] = (uint16_t)type;
    a->raw.count += n;
}

/* Names edges of a list of so many, which begins at edge `first` in memory, behind `before` others of the vertex. False
 * where the batch's edges would be too many. */
static bool expand(drawing *d, uint64_t first, uint64_t degree, uint32_t before, uint32_t type, gs_random_stream *r)
{
    const gs_sampler_options *o = &d->s->options;
    gs_batch_arena *a = d->a;
    const bool all = d->fanout == 0 || degree == 0 || (!o->replace && !o->weighted && degree <= d->fanout);

    if (d->full)
        return false;
    if (d->fanout == GS_FANOUT_NONE)
        return true;
    const uint64_t n = all ? degree : draw_places(d, first, (uint32_t)degree, before, r);
    if (a->raw.count + a->pendings + n > a->raw.most) /* edges without weight are none of them */
        return false;
    if (a->rows.place != NULL)
        note_places(a, n, all, type);
    else if (all)
        for (uint64_t k = 0; k < n && !d->full; k++)
            add_edge(d, first + k);
    else
        for (uint64_t k = 0; k < n; k++)
            add_edge(d, first + a->place[k]);
    return !d->full;
}

/* The same of edges of one type. */
static bool expand_type(drawing *d, uint64_t first, uint64_t degree, uint32_t before, uint32_t type,
                        gs_random_stream *r)
{
    d->fanout = gs_fanout_of(&d->s->options, d->hop, type);
    return expand(d, first, degree, before, type, r);
}

static bool expand_row(drawing *d, uint32_t row)
{
    const gs_adjacency *in = d->s->in;
    const gs_batch_arena *const a = d->a;
    const uint32_t v = a->unique.vertex[row];
    const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
    gs_random_stream r = gs_random_stream_of(d->s->key, v, d->b->number, d->b->epoch);

    if (a->rows.types != NULL) {
        const uint32_t *const edges = a->rows.types + (uint64_t)row * in->edge_types;
        for (uint32_t type = 0; type < in->edge_types; type++)
            if (!expand_type(d, 0, edges[type], 0, type, &r))
                return false;
        return true;
    }
    if (!d->s->options.by_type || in->type == NULL)
        return expand(d, first, end - first, 0, 0, &r);
    for (uint64_t at = first, next; at < end; at = next) {
        next = type_end(in, at, end);
        if (!expand_type(d, at, next - at, (uint32_t)(at - first), gs_adjacency_type(in, at), &r))
            return false;
    }
    return true;
}

static inline void prefetch_list(const gs_adjacency *in, uint32_t v)
{
    __builtin_prefetch(in->first32 != NULL ? (const void *)&in->first32[v] : &in->first64[v]);
}

/* Names the edges of all rows that are not expanded. */
static void draw_hop(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t hop)
{
    drawing d = {.s = s, .a = a, .b = b, .hop = hop, .fanout = s->options.fanout[hop], .full = b->overflows};
    const uint32_t end = a->unique.count;

    for (uint32_t row = b->expanded; row < end && !b->overflows; row++) {
        if (row + AHEAD < end)
            prefetch_list(s->in, a->unique.vertex[row + AHEAD]);
        a->raw.start[row] = (uint32_t)(a->raw.count + a->pendings);
        b->overflows = !expand_row(&d, row) || (row % GS_STOP_EVERY == 0 && gs_sample__is_stopped(s));
    }
    if (b->overflows)
        return;
    if (a->pendings > 0)
        take_pending(&d);
    a->raw.start[end] = (uint32_t)a->raw.count;
    b->overflows = d.full;
}

/* ---- of lists in the store: what chunks say ------------------------------ */

/* Draws by type need the edges of each type in a list, which a pass before counts. */

static void carry(gs_raw_edges *raw, uint64_t k, const gs_chunk_view *v, uint64_t at, uint32_t operand)
{
    raw->source[k] = operand + gs_index_at(v->index, v->index_bytes, at);
    gs_raw__carry_chunk(raw, k, v, at);
}

/* Those of the row's edges that were drawn of this chunk get their sources and what they carry. */
static void answer_row(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                       uint32_t t, uint32_t operand)
{
    const uint32_t row = a->rows.order[p], passed = a->rows.passed[p], n = v->start[t + 1] - v->start[t];
    (void)s;
    (void)b;

    for (uint32_t k = a->raw.start[row]; k < a->raw.start[row + 1]; k++) {
        const uint32_t place = a->rows.place[k] - passed;
        if (place < n) /* else of a chunk before or after this one */
            carry(&a->raw, k, v, (uint64_t)v->start[t] + place, operand);
    }
    a->rows.passed[p] = passed + n;
}

/* The end of edges of the type of edge `from`. */
static uint32_t chunk_type_end(const gs_chunk_view *v, uint32_t from, uint32_t end, uint32_t *type)
{
    *type = gs_type_at(v->type, v->type_bytes, from);
    while (from < end && gs_type_at(v->type, v->type_bytes, from) == *type)
        from++;
    return from;
}

static void count_types(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                        uint32_t t, uint32_t operand)
{
    uint32_t *const types = a->rows.types + (uint64_t)a->rows.order[p] * s->in->edge_types;
    (void)b;
    (void)operand;

    for (uint32_t at = v->start[t], end = v->start[t + 1], next, type; at < end; at = next) {
        next = chunk_type_end(v, at, end, &type);
        types[type] += next - at;
    }
}

/* answer_row() where places are among the edges of their types, which ascend as those of the chunk do. */
static void answer_types(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                         uint32_t t, uint32_t operand)
{
    const uint32_t row = a->rows.order[p], last = a->raw.start[row + 1];
    uint32_t *const passed = a->rows.types + (uint64_t)row * s->in->edge_types;
    uint32_t k = a->raw.start[row];
    (void)b;

    for (uint32_t at = v->start[t], end = v->start[t + 1], next, type; at < end; at = next) {
        next = chunk_type_end(v, at, end, &type);
        while (k < last && a->raw.type[k] < type)
            k++;
        for (; k < last && a->raw.type[k] == type; k++)
            if (a->rows.place[k] - passed[type] < next - at)
                carry(&a->raw, k, v, (uint64_t)at + (a->rows.place[k] - passed[type]), operand);
        passed[type] += next - at;
    }
}

/* ---- hops ---------------------------------------------------------------- */

static void zero_types(const gs_sample_pass *w)
{
    const uint64_t types = w->s->in->edge_types;
    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows) {
            const uint64_t first = w->batch[k].expanded, rows = w->arena[k]->unique.count - first;
            memset(w->arena[k]->rows.types + first * types, 0, rows * types * sizeof(uint32_t));
        }
}

/* Of the rows that are not expanded, where draws are by type. */
static gs_status find_types(const gs_sample_pass *w)
{
    if (w->arena[0]->rows.types == NULL)
        return GS_OK;
    zero_types(w);
    gs_columns__sort_rows(w, false);
    return gs_columns__meet(w, NULL, count_types);
}

/* What the hop's edges are. */
static gs_status resolve(const gs_sample_pass *w)
{
    const bool by_type = w->arena[0]->rows.types != NULL;

    if (w->columns == NULL) /* draw_hop() has looked */
        return GS_OK;
    gs_columns__sort_rows(w, true);
    if (by_type)
        zero_types(w);
    return gs_columns__meet(w, NULL, by_type ? answer_types : answer_row);
}

/* Sources of the hop's edges, which are rows of the graph, become rows of the batch. */
static void number_sources(gs_batch *b, gs_batch_arena *a)
{
    for (uint64_t k = a->raw.start[b->expanded]; k < a->raw.count && !b->overflows; k++) {
        a->raw.source[k] = gs_unique_put(&a->unique, a->raw.source[k]);
        b->overflows = a->raw.source[k] == GS_UNIQUE_NONE;
    }
}

/* ---- degrees ------------------------------------------------------------- */

/* Edges that a row would have in the batch, and, of these, self loops: as many as are to be expected. */
static void would_draw(const gs_sampler *s, const gs_batch_arena *a, uint32_t row, float *in_degree, float *loops)
{
    const gs_adjacency *in = s->in;
    const gs_sampler_options *o = &s->options;
    const uint32_t last = o->hops - 1, v = a->unique.vertex[row];
    const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
    uint64_t drawn = 0;

    if (a->rows.types != NULL)
        for (uint32_t type = 0; type < in->edge_types; type++)
            drawn += drawn_of(o, gs_fanout_of(o, last, type), a->rows.types[(uint64_t)row * in->edge_types + type]);
    else if (!o->by_type || in->type == NULL)
        drawn = drawn_of(o, o->fanout[last], end - first);
    else
        for (uint64_t at = first, next; at < end; at = next) {
            next = type_end(in, at, end);
            drawn += drawn_of(o, gs_fanout_of(o, last, gs_adjacency_type(in, at)), next - at);
        }
    *in_degree = (float)drawn;
    if (loops == NULL)
        return;
    const uint64_t own = gs_adjacency_loops(in, v);
    *loops = own == 0 ? 0 : (float)((double)own * (double)drawn / (double)(end - first));
}

/* in_degree and loops of all rows, when all hops were drawn. */
static void count_degrees(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
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
        if (row + AHEAD < a->unique.count)
            prefetch_list(in, a->unique.vertex[row + AHEAD]);
        would_draw(s, a, row, &a->in_degree[row], a->loops != NULL ? &a->loops[row] : NULL);
    }
}

/* ---- batches ------------------------------------------------------------- */

static void take_seeds(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    const gs_batch_seeds *const seeds = &a->seeds;

    b->hops = s->options.hops;
    b->targets = b->hop_end[0] = seeds->vertices;
    b->seeds = seeds->of_caller;
    for (uint32_t i = 0; i < seeds->vertices; i++)
        (void)gs_unique_put(&a->unique, seeds->vertex[i]); /* row i: each is there once */
}

/* The batch's targets from `first` on, at most `count`, as rows. */
static void take_targets(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t first, uint32_t count)
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

static void end_hop(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t hop)
{
    if (a->rows.place != NULL)
        number_sources(b, a);
    if (hop == 0 && s->options.seeds != NULL && !b->overflows)
        gs_sample__leave_out(b, s, a);
    b->expanded = b->hop_end[hop];
    b->hop_end[hop + 1] = a->unique.count;
}

static gs_status draw_hops(const gs_sample_pass *w)
{
    for (uint32_t h = 0; h < w->s->options.hops; h++) {
        GS_TRY(find_types(w));
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
        for (uint32_t k = 0; k < w->batches; k++)
            draw_hop(&w->batch[k], w->s, w->arena[k], h);
        GS_TRY(resolve(w));
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
        for (uint32_t k = 0; k < w->batches; k++)
            end_hop(&w->batch[k], w->s, w->arena[k], h);
    }
    return find_types(w);
}

static gs_status draw(const gs_sample_pass *w, uint32_t first, uint32_t count)
{
    for (uint32_t k = 0; k < w->batches; k++)
        if (w->s->options.seeds != NULL)
            take_seeds(&w->batch[k], w->s, w->arena[k]);
        else
            take_targets(&w->batch[k], w->s, w->arena[k], first, count);
    const gs_status st = draw_hops(w);
    for (uint32_t k = 0; k < w->batches && st == GS_OK; k++)
        if (!w->batch[k].overflows) {
            count_degrees(&w->batch[k], w->s, w->arena[k]);
            w->batch[k].vertices = w->arena[k]->unique.count;
        }
    return st;
}

/* ---- the law ------------------------------------------------------------- */

static gs_status check(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets)
{
    if (targets == 0 && o->seeds == NULL)
        return gs_fail(GS_EINVAL, "no vertex is to be trained, so there is none to draw the neighbours of");
    if (o->hops == 0 || o->hops > GS_SAMPLE_HOPS)
        return gs_fail(GS_EINVAL, "fanouts of %u hops: give 1 to %u", o->hops, GS_SAMPLE_HOPS);
    if (o->weighted && in->columns != NULL)
        return gs_fail(GS_EINVAL, "edges are to be drawn by weight, and they do not fit in memory");
    if (o->weighted && in->weight == NULL)
        return gs_fail(GS_EINVAL, "edges are to be drawn by weight, and the store has no weights");
    if (o->by_type && in->edge_types == 0)
        return gs_fail(GS_EINVAL, "edges are to be drawn by type, and the store has no types");
    if (o->types > 0 && o->types != in->edge_types)
        return gs_fail(GS_EINVAL, ".fanout: has lists of %u types of edges, and the store has %u types; give a list "
                       "for each, or one for all", o->types, in->edge_types);
    assert(!o->by_type || in->columns != NULL || in->by_type); /* gs_adjacency_sort_types() */
    for (uint64_t k = 0; o->weighted && k < in->edges; k++)
        if (in->weight[k] < 0)
            return gs_fail(GS_EINVAL, "edges are to be drawn by weight, and one has the weight %g",
                           (double)in->weight[k]);
    return GS_OK;
}

/* A fanout above all in-degrees draws no more than these. */
static gs_status find_longest(gs_sampler *s)
{
    for (uint32_t v = 0; v < s->in->vertices; v++)
        s->longest = GS_MAX(s->longest, gs_adjacency_degree(s->in, v));
    return GS_OK;
}

static uint32_t most_places(const gs_sampler *s)
{
    const gs_sampler_options *const o = &s->options;
    uint32_t most = 1;

    for (uint32_t h = 0; h < o->hops; h++)
        for (uint32_t t = 0; t < GS_MAX(o->types, 1u); t++) {
            const uint32_t fanout = gs_fanout_of(o, h, t);
            if (fanout != GS_FANOUT_NONE)
                most = GS_MAX(most, o->replace ? fanout : (uint32_t)GS_MIN(fanout, s->longest));
        }
    return most;
}

/* Edges that a hop draws of each vertex at most, of all types together; 0: all. */
static uint64_t most_drawn(const gs_sampler_options *o, uint32_t hop, uint64_t types)
{
    uint64_t sum = 0;

    if (o->types == 0)
        return o->fanout[hop] * types;
    for (uint32_t t = 0; t < o->types; t++) {
        const uint32_t fanout = gs_fanout_of(o, hop, t);
        if (fanout == 0)
            return 0;
        sum += fanout == GS_FANOUT_NONE ? 0 : fanout;
    }
    return GS_MAX(sum, 1);
}

static void bound(uint64_t *rows, uint64_t *edges, const gs_sampler *s)
{
    const gs_sampler_options *o = &s->options;
    const uint64_t all = s->in->edges, types = o->by_type && s->in->edge_types > 0 ? s->in->edge_types : 1;
    const uint64_t first = gs_sampler_most_targets(s), others = s->in->vertices - first;
    uint64_t frontier = first, taken = first, sum = 0;

    for (uint32_t h = 0; h < o->hops; h++) {
        const uint64_t drawn = most_drawn(o, h, types);
        uint64_t most = drawn == 0 ? all : gs_mul_capped(frontier, drawn);
        if (!o->replace)
            most = GS_MIN(most, all);
        sum = most > UINT64_MAX - sum ? UINT64_MAX : sum + most;
        frontier = GS_MIN(most, others); /* an earlier hop may have reached less than it could */
        taken += frontier;
    }
    *rows = GS_MIN(taken, s->in->vertices);
    *edges = o->replace ? sum : GS_MIN(sum, all);
}

static void lay_out(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, gs_placing *p)
{
    if (s->in->columns != NULL && s->options.by_type)
        a->rows.types = gs_place_array(p, (uint64_t)l->vertices * s->in->edge_types, sizeof(uint32_t));
}

static uint32_t passes(const gs_sampler_options *o, bool out)
{
    (void)out;
    return o->by_type ? 2 * o->hops + 1 : o->hops;
}

const gs_sample_law gs_sample__neighbor = {
    .facts = {.name = "neighbor", .reads = GS_SAMPLER_READS_FANOUT | GS_SAMPLER_READS_SHUFFLE, .has_parts = true},
    .orders_targets = true,
    .has_rows_by_vertex = true,
    .check = check,
    .open = find_longest,
    .bound = bound,
    .places = most_places,
    .lay_out = lay_out,
    .passes = passes,
    .draw = draw,
};
