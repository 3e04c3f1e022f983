/* cluster.c - a few random intervals of the store and the edges between their vertices.
 *
 * As ClusterLoader of torch_geometric, with the store's own intervals as clusters: their rows and chunks are read in
 * long runs. Rows: targets of the chosen intervals in store order, then their other vertices. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"
#include "sample/sample_internal.h"

static uint32_t first_row(const gs_adjacency *in, uint32_t interval) { return interval * in->interval_rows; }

static uint32_t end_row(const gs_adjacency *in, uint32_t interval)
{
    return (uint32_t)GS_MIN((uint64_t)(interval + 1) * in->interval_rows, in->vertices);
}

static uint32_t intervals_of(const gs_sampler *s, const gs_batch *b)
{
    return GS_MIN(s->options.batch_size, s->things - b->number * s->options.batch_size);
}

/* The batch's intervals, ascending, into a->place. */
static void choose(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    const gs_order order = gs_order_of(s->options.seed, b->epoch, s->things);
    const uint32_t first = b->number * s->options.batch_size, count = intervals_of(s, b);
    uint32_t *const list = a->place;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t interval = s->options.ordered ? first + i : gs_order_at(&order, first + i);
        uint32_t at = i;
        for (; at > 0 && list[at - 1] > interval; at--)
            list[at] = list[at - 1];
        list[at] = interval;
    }
    for (uint32_t i = 0; i < count; i++)
        a->interval_slot[list[i]] = i + 1;
}

static void forget(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    for (uint32_t i = 0, count = intervals_of(s, b); i < count; i++)
        a->interval_slot[a->place[i]] = 0;
}

/* False where there are too many. */
static bool number_rows(const gs_sampler *s, gs_batch_arena *a, gs_batch *b)
{
    const gs_adjacency *in = s->in;
    const uint32_t *const interval = a->place, count = intervals_of(s, b);
    uint32_t *vertex = a->unique.vertex;
    uint64_t n = 0;

    for (uint32_t i = 0; i < count; i++)
        n += end_row(in, interval[i]) - first_row(in, interval[i]);
    if (n > s->limits.vertices)
        return false;
    n = 0;
    for (int others = 0; others < 2; others++) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t first = first_row(in, interval[i]), end = end_row(in, interval[i]);
            for (uint32_t v = first; v < end; v++)
                if (gs_sample__is_target(s, v) == (others == 0)) {
                    a->row_of[(uint64_t)i * in->interval_rows + (v - first)] = (uint32_t)n;
                    vertex[n++] = v;
                }
        }
        if (others == 0)
            b->targets = (uint32_t)n;
    }
    b->vertices = b->expanded = b->hop_end[0] = (uint32_t)n;
    return true;
}

/* ---- of lists in memory -------------------------------------------------- */

static bool take_edges(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    const gs_adjacency *in = s->in;
    gs_raw_edges *raw = &a->raw;

    for (uint32_t row = 0; row < b->vertices; row++) {
        const uint32_t v = a->unique.vertex[row];
        const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
        raw->start[row] = (uint32_t)raw->count;
        for (uint64_t k = first; k < end; k++) {
            if (k % GS_STOP_EVERY == 0 && gs_sample__is_stopped(s))
                return false;
            const uint32_t other = in->other[k], interval = other / in->interval_rows;
            const uint32_t slot = a->interval_slot[interval];
            if (slot == 0)
                continue;
            if (raw->count == raw->most)
                return false;
            raw->source[raw->count] =
                a->row_of[(uint64_t)(slot - 1) * in->interval_rows + (other - first_row(in, interval))];
            gs_raw__carry(raw, raw->count++, in, k);
        }
    }
    raw->start[b->vertices] = (uint32_t)raw->count;
    return true;
}

/* ---- of edges that stay in the store ------------------------------------- */

/* Appends the chunk's edges, each with its row; false where they are too many. */
static bool take_chunk(const gs_sampler *s, gs_batch_arena *a, uint32_t target, uint32_t operand,
                       const gs_chunk_view *v)
{
    const uint32_t *const to = a->row_of + (uint64_t)(a->interval_slot[target] - 1) * s->in->interval_rows,
                   *const from = a->row_of + (uint64_t)(a->interval_slot[operand] - 1) * s->in->interval_rows;
    gs_raw_edges *const raw = &a->raw;

    if (raw->most - raw->count < v->start[v->targets])
        return false;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t row = to[gs_index_at(v->target, v->index_bytes, t)];
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++, raw->count++) {
            raw->source[raw->count] = from[gs_index_at(v->index, v->index_bytes, k)];
            a->rows.place[raw->count] = row;
            gs_raw__carry_chunk(raw, raw->count, v, k);
        }
    }
    return true;
}

static gs_status give_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const gs_sample_pass *const w = context;

    if (gs_sample__is_stopped(w->s))
        return gs_sample__check_stop(w->s);
    for (uint32_t k = 0; k < w->batches; k++) {
        const uint32_t *const slot = w->arena[k]->interval_slot;
        if (!w->batch[k].overflows && slot[target] > 0 && slot[operand] > 0)
            w->batch[k].overflows = !take_chunk(w->s, w->arena[k], target, operand, v);
    }
    return GS_OK;
}

/* Each interval is in one batch of an epoch, so batches that are drawn together share no chunk. */
static gs_status read_edges(const gs_sample_pass *w)
{
    gs_columns *const columns = w->columns;
    const uint64_t parts = w->s->in->parts;

    memset(columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        const uint32_t *const interval = w->arena[k]->place, count = intervals_of(w->s, &w->batch[k]);
        for (uint32_t i = 0; i < count && !w->batch[k].overflows; i++)
            for (uint32_t j = 0; j < count; j++)
                columns->wanted[interval[i] * parts + interval[j]] = 1;
    }
    return gs_edge_scanner_run(columns->scan, columns->wanted, give_chunk, (void *)(uintptr_t)w);
}

/* ---- batches ------------------------------------------------------------- */

static void count_degrees(gs_batch_arena *a, const gs_batch *b)
{
    for (uint32_t row = 0; row < b->vertices; row++) {
        uint32_t own = 0;
        a->in_degree[row] = (float)(a->raw.start[row + 1] - a->raw.start[row]);
        if (a->loops == NULL)
            continue;
        for (uint32_t k = a->raw.start[row]; k < a->raw.start[row + 1]; k++)
            own += a->raw.source[k] == row;
        a->loops[row] = (float)own;
    }
}

static gs_status draw(const gs_sample_pass *w, uint32_t first, uint32_t count)
{
    const gs_sampler *const s = w->s;
    gs_status st = GS_OK;
    (void)first;
    (void)count;

    for (uint32_t k = 0; k < w->batches; k++) {
        choose(s, w->arena[k], &w->batch[k]);
        w->batch[k].overflows =
            !number_rows(s, w->arena[k], &w->batch[k]) ||
            (w->columns == NULL && !take_edges(s, w->arena[k], &w->batch[k]));
    }
    if (w->columns != NULL)
        st = read_edges(w);
    for (uint32_t k = 0; k < w->batches; k++) {
        forget(s, w->arena[k], &w->batch[k]);
        if (st != GS_OK || w->batch[k].overflows)
            continue;
        if (w->columns != NULL)
            gs_sample__order_by_row(w->arena[k], w->batch[k].vertices);
        count_degrees(w->arena[k], &w->batch[k]);
    }
    return st;
}

/* ---- the law ------------------------------------------------------------- */

static gs_status check(const gs_sampler_options *o, const gs_adjacency *in, uint32_t targets)
{
    (void)targets;
    if (o->batch_size > in->parts)
        return gs_fail(GS_EINVAL, "batches of %u intervals, and the store has %u: give a batch size of fewer",
                       o->batch_size, in->parts);
    return GS_OK;
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
    *rows = GS_MIN(gs_mul_capped(s->options.batch_size, s->in->interval_rows), s->in->vertices);
    *edges = bound_clusters(s);
}

static uint32_t most_places(const gs_sampler *s) { return s->options.batch_size; }

static void lay_out(gs_batch_arena *a, const gs_sampler *s, const gs_batch_limits *l, gs_placing *p)
{
    (void)l;
    a->row_of = gs_place_array(p, (uint64_t)s->options.batch_size * s->in->interval_rows, sizeof(uint32_t));
    a->interval_slot = gs_place_array(p, s->in->parts, sizeof(uint32_t));
}

static uint32_t passes(const gs_sampler_options *o, bool out)
{
    (void)o;
    (void)out;
    return 0;
}

const gs_sample_law gs_sample__cluster = {
    .facts = {.name = "cluster", .reads = GS_SAMPLER_READS_SHUFFLE, .counts_intervals = true},
    .subgraph = true,
    .check = check,
    .bound = bound,
    .places = most_places,
    .lay_out = lay_out,
    .passes = passes,
    .draw = draw,
};
