/* cluster.c - a few random intervals of the store and the edges between their vertices.
 *
 * As ClusterLoader of torch_geometric, with the store's own intervals as clusters: their rows and chunks are read in
 * long runs. Rows: targets of the chosen intervals in store order, then their other vertices. */
#include <string.h>

#include "base/index_width.h"
#include "base/size.h"
#include "sample/columns.h"
#include "sample/sample_internal.h"

typedef struct chosen {
    const gs_sampler *s;
    gs_batch_arena *a;
    uint32_t count;
    const uint32_t *interval; /* [count] ascending */
} chosen;

static uint32_t first_row(const gs_adjacency *in, uint32_t interval) { return interval * in->interval_rows; }

static uint32_t end_row(const gs_adjacency *in, uint32_t interval)
{
    return (uint32_t)GS_MIN((uint64_t)(interval + 1) * in->interval_rows, in->vertices);
}

static void choose(chosen *c, const gs_batch *b)
{
    const gs_sampler *s = c->s;
    const gs_order order = gs_order_of(s->options.seed, b->epoch, s->things);
    const uint32_t first = b->number * s->options.batch_size;
    uint32_t *list = c->a->place;

    c->count = GS_MIN(s->options.batch_size, s->things - first);
    c->interval = list;
    for (uint32_t i = 0; i < c->count; i++) {
        const uint32_t interval = s->options.ordered ? first + i : gs_order_at(&order, first + i);
        uint32_t at = i;
        for (; at > 0 && list[at - 1] > interval; at--)
            list[at] = list[at - 1];
        list[at] = interval;
    }
    for (uint32_t i = 0; i < c->count; i++)
        c->a->interval_slot[list[i]] = i + 1;
}

/* False where there are too many. */
static bool number_rows(const chosen *c, gs_batch *b)
{
    const gs_adjacency *in = c->s->in;
    gs_batch_arena *a = c->a;
    uint32_t *vertex = a->unique.vertex;
    uint64_t n = 0;

    for (uint32_t i = 0; i < c->count; i++)
        n += end_row(in, c->interval[i]) - first_row(in, c->interval[i]);
    if (n > c->s->limits.vertices)
        return false;
    n = 0;
    for (int others = 0; others < 2; others++) {
        for (uint32_t i = 0; i < c->count; i++) {
            const uint32_t first = first_row(in, c->interval[i]), end = end_row(in, c->interval[i]);
            for (uint32_t v = first; v < end; v++)
                if (gs_sample__is_target(c->s, v) == (others == 0)) {
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

static bool take_edges(const chosen *c, const gs_batch *b)
{
    const gs_adjacency *in = c->s->in;
    gs_batch_arena *a = c->a;
    gs_raw_edges *raw = &a->raw;

    for (uint32_t row = 0; row < b->vertices; row++) {
        const uint32_t v = a->unique.vertex[row];
        const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
        uint32_t own = 0;
        raw->start[row] = (uint32_t)raw->count;
        for (uint64_t k = first; k < end; k++) {
            if (k % GS_STOP_EVERY == 0 && gs_sample__is_stopped(c->s))
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
            own += other == v;
        }
        a->in_degree[row] = (float)(raw->count - raw->start[row]);
        if (a->loops != NULL)
            a->loops[row] = (float)own;
    }
    raw->start[b->vertices] = (uint32_t)raw->count;
    return true;
}

static void forget(const gs_sampler *s, gs_batch_arena *a, const gs_batch *b)
{
    const uint32_t first = b->number * s->options.batch_size, count = GS_MIN(s->options.batch_size, s->things - first);
    for (uint32_t i = 0; i < count; i++)
        a->interval_slot[a->place[i]] = 0;
}

gs_status gs_sample__cluster(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    chosen c = {.s = s, .a = a};

    choose(&c, b);
    const bool fits = number_rows(&c, b) && take_edges(&c, b);
    forget(s, a, b);
    return fits ? GS_OK : gs_sample__overflow(b, s);
}

/* ---- of edges that stay in the store ------------------------------------- */

typedef struct reading {
    const gs_sampler *s;
    gs_batch *batch;
    gs_batch_arena *const *arena;
    uint32_t batches;
} reading;

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
            if (raw->type != NULL)
                raw->type[raw->count] = (uint16_t)gs_type_at(v->type, v->type_bytes, k);
            if (raw->weight != NULL)
                raw->weight[raw->count] = v->weight != NULL ? v->weight[k] : 1;
        }
    }
    return true;
}

static gs_status give_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const reading *const r = context;

    if (gs_sample__is_stopped(r->s))
        return gs_sample__check_stop(r->s);
    for (uint32_t k = 0; k < r->batches; k++) {
        const uint32_t *const slot = r->arena[k]->interval_slot;
        if (!r->batch[k].overflows && slot[target] > 0 && slot[operand] > 0)
            r->batch[k].overflows = !take_chunk(r->s, r->arena[k], target, operand, v);
    }
    return GS_OK;
}

static void count_degrees(gs_batch_arena *a, const gs_batch *b)
{
    for (uint32_t row = 0; row < b->vertices; row++) {
        uint32_t own = 0;
        for (uint32_t k = a->raw.start[row]; k < a->raw.start[row + 1]; k++)
            own += a->raw.source[k] == row;
        a->in_degree[row] = (float)(a->raw.start[row + 1] - a->raw.start[row]);
        if (a->loops != NULL)
            a->loops[row] = (float)own;
    }
}

/* Each interval is in one batch of an epoch, so batches that are drawn together share no chunk. */
gs_status gs_sample__cluster_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches)
{
    gs_columns *const columns = s->in->columns;
    const uint64_t parts = s->in->parts;
    reading r = {s, b, arena, batches};

    memset(columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < batches; k++) {
        chosen c = {.s = s, .a = arena[k]};
        choose(&c, &b[k]);
        b[k].overflows = !number_rows(&c, &b[k]);
        for (uint32_t i = 0; i < c.count && !b[k].overflows; i++)
            for (uint32_t j = 0; j < c.count; j++)
                columns->wanted[c.interval[i] * parts + c.interval[j]] = 1;
    }
    gs_status st = gs_edge_scanner_run(columns->scan, columns->wanted, give_chunk, &r);
    for (uint32_t k = batches; k-- > 0;) {
        forget(s, arena[k], &b[k]);
        if (st != GS_OK && st != GS_EBUDGET)
            continue;
        if (b[k].overflows) {
            st = gs_sample__overflow(&b[k], s);
        } else {
            gs_sample__order_by_row(arena[k], b[k].vertices);
            count_degrees(arena[k], &b[k]);
        }
    }
    return st;
}
