/* neighbor_columns.c - a group of batches of neighbours, hop by hop, of lists that stay in the store.
 *
 * The draw from a list depends on its length and on the stream of random numbers of its vertex. So all batches of
 * the group name the places that they draw, the columns go by once and say which vertices these are, and these become
 * rows in the order in which they were drawn: the same batches as of lists in memory. Draws by type need the edges of
 * each type in a list, which a pass before counts. */
#include <string.h>

#include "base/index_width.h"
#include "base/size.h"
#include "sample/columns.h"

/* Names the edges of a row, or those of one type in its list, by their places; false where the batch's edges would be
 * too many. */
static bool draw_list(const gs_sampler *s, gs_batch_arena *a, uint32_t fanout, uint64_t degree, uint32_t type,
                      gs_random_stream *r)
{
    const uint64_t n = gs_sample__drawn_of(&s->options, fanout, degree);
    const bool all = fanout == 0 || degree == 0 || (!s->options.replace && degree <= fanout);
    uint32_t *const place = a->rows.place + a->raw.count;

    if (a->raw.count + n > a->raw.most)
        return false;
    if (!all)
        gs_sample__draw_places(s, a, (uint32_t)n, (uint32_t)degree, r);
    for (uint32_t k = 0; k < n; k++)
        place[k] = all ? k : a->place[k];
    if (a->rows.types != NULL)
        for (uint32_t k = 0; k < n; k++)
            a->raw.type[a->raw.count + k] = (uint16_t)type;
    a->raw.count += n;
    return true;
}

static bool draw_row(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t fanout, uint32_t row)
{
    const uint32_t v = a->unique.vertex[row], types = a->rows.types != NULL ? s->in->edge_types : 0;
    gs_random_stream r = gs_random_stream_of(s->key, v, b->number, b->epoch);
    bool fits = row % GS_STOP_EVERY != 0 || !gs_sample__is_stopped(s);

    a->raw.start[row] = (uint32_t)a->raw.count;
    if (types == 0)
        fits = fits && draw_list(s, a, fanout, gs_adjacency_degree(s->in, v), 0, &r);
    for (uint32_t type = 0; type < types && fits; type++)
        fits = draw_list(s, a, fanout, a->rows.types[(uint64_t)row * types + type], type, &r);
    a->raw.start[row + 1] = (uint32_t)a->raw.count;
    return fits;
}

static void draw_hop(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t fanout)
{
    for (uint32_t row = b->expanded; row < a->unique.count && !b->overflows; row++)
        b->overflows = !draw_row(b, s, a, fanout, row);
}

/* ---- what chunks say ----------------------------------------------------- */

static void carry(gs_raw_edges *raw, uint64_t k, const gs_chunk_view *v, uint64_t at, uint32_t operand)
{
    raw->source[k] = operand + gs_index_at(v->index, v->index_bytes, at);
    if (raw->type != NULL)
        raw->type[k] = (uint16_t)gs_type_at(v->type, v->type_bytes, at);
    if (raw->weight != NULL)
        raw->weight[k] = v->weight != NULL ? v->weight[at] : 1;
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
static uint32_t type_end(const gs_chunk_view *v, uint32_t from, uint32_t end, uint32_t *type)
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
        next = type_end(v, at, end, &type);
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
        next = type_end(v, at, end, &type);
        while (k < last && a->raw.type[k] < type)
            k++;
        for (; k < last && a->raw.type[k] == type; k++)
            if (a->rows.place[k] - passed[type] < next - at)
                carry(&a->raw, k, v, (uint64_t)at + (a->rows.place[k] - passed[type]), operand);
        passed[type] += next - at;
    }
}

/* ---- hops ---------------------------------------------------------------- */

static void zero_types(const gs_column_pass *w)
{
    const uint64_t types = w->s->in->edge_types;
    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows) {
            const uint64_t first = w->batch[k].expanded, rows = w->arena[k]->unique.count - first;
            memset(w->arena[k]->rows.types + first * types, 0, rows * types * sizeof(uint32_t));
        }
}

/* Of the rows that are not expanded, where draws are by type. */
static gs_status find_types(const gs_column_pass *w)
{
    if (w->arena[0]->rows.types == NULL)
        return GS_OK;
    zero_types(w);
    gs_columns__sort_rows(w, false);
    return gs_columns__meet(w, NULL, count_types);
}

static gs_status answer(const gs_column_pass *w)
{
    const bool by_type = w->arena[0]->rows.types != NULL;

    gs_columns__sort_rows(w, true);
    if (by_type)
        zero_types(w);
    return gs_columns__meet(w, NULL, by_type ? answer_types : answer_row);
}

/* Sources of the hop's edges, which are rows of the graph, become rows of the batch. */
static void end_hop(gs_batch *b, gs_batch_arena *a, uint32_t hop)
{
    const uint32_t end = a->unique.count;

    for (uint64_t k = a->raw.start[b->expanded]; k < a->raw.count && !b->overflows; k++) {
        a->raw.source[k] = gs_unique_put(&a->unique, a->raw.source[k]);
        b->overflows = a->raw.source[k] == GS_UNIQUE_NONE;
    }
    b->expanded = end;
    b->hop_end[hop + 1] = a->unique.count;
}

static gs_status draw_hops(const gs_column_pass *w)
{
    const gs_sampler *const s = w->s;
    gs_status st;

    for (uint32_t h = 0; h < s->options.hops; h++) {
        if ((st = find_types(w)) != GS_OK)
            return st;
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
        for (uint32_t k = 0; k < w->batches; k++)
            draw_hop(&w->batch[k], s, w->arena[k], s->options.fanout[h]);
        if ((st = answer(w)) != GS_OK)
            return st;
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
        for (uint32_t k = 0; k < w->batches; k++)
            end_hop(&w->batch[k], w->arena[k], h);
    }
    return find_types(w);
}

gs_status gs_sample__neighbor_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                      uint32_t first, uint32_t count, uint32_t threads)
{
    const gs_column_pass w = {s, s->in->columns, b, arena, batches, threads};
    gs_status st;

    for (uint32_t k = 0; k < batches; k++)
        gs_sample__take_targets(&b[k], s, arena[k], first, count);
    if ((st = draw_hops(&w)) != GS_OK)
        return st;
    for (uint32_t k = batches; k-- > 0;)
        if (b[k].overflows)
            st = gs_sample__overflow(&b[k], s);
        else {
            gs_sample__count_degrees(&b[k], s, arena[k]);
            b[k].vertices = arena[k]->unique.count;
        }
    return st;
}
