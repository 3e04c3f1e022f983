/* neighbor_columns.c - a group of batches of neighbours, hop by hop, of lists that stay in the store.
 *
 * The draw from a list depends on its length and on the stream of random numbers of its vertex. So all batches of
 * the group name the places that they draw, the columns go by once and say which vertices these are, and these become
 * rows in the order in which they were drawn: the same batches as of lists in memory. */
#include "base/size.h"
#include "sample/columns.h"
#include "sample/sample_internal.h"

/* Names the edges of a row by their places; false where the batch's edges would be too many. */
static bool draw_row(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t fanout, uint32_t row)
{
    const uint32_t v = a->unique.vertex[row];
    const uint64_t degree = gs_adjacency_degree(s->in, v);
    const uint64_t n = gs_sample__drawn_of(&s->options, fanout, degree);
    const bool all = fanout == 0 || degree == 0 || (!s->options.replace && degree <= fanout);
    uint32_t *const place = a->rows.place + a->raw.count;

    a->raw.start[row] = (uint32_t)a->raw.count;
    if (a->raw.count + n > a->raw.most)
        return false;
    if (!all) {
        gs_random_stream r = gs_random_stream_of(s->key, v, b->number, b->epoch);
        gs_sample__draw_places(s, a, (uint32_t)n, (uint32_t)degree, &r);
    }
    for (uint32_t k = 0; k < n; k++)
        place[k] = all ? k : a->place[k];
    a->raw.count += n;
    a->raw.start[row + 1] = (uint32_t)a->raw.count;
    return true;
}

static void draw_hop(gs_batch *b, const gs_sampler *s, gs_batch_arena *a, uint32_t fanout)
{
    for (uint32_t row = b->expanded; row < a->unique.count && !b->overflows; row++)
        b->overflows = !draw_row(b, s, a, fanout, row);
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

static gs_status draw_hops(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                           uint32_t threads)
{
    for (uint32_t h = 0; h < s->options.hops; h++) {
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(threads, 1u)) if (threads > 1)
        for (uint32_t k = 0; k < batches; k++)
            draw_hop(&b[k], s, arena[k], s->options.fanout[h]);
        const gs_status st = gs_columns__answer(s->in->columns, s->in, b, arena, batches);
        if (st != GS_OK)
            return st;
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(threads, 1u)) if (threads > 1)
        for (uint32_t k = 0; k < batches; k++)
            end_hop(&b[k], arena[k], h);
    }
    return GS_OK;
}

gs_status gs_sample__neighbor_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                      uint32_t first, uint32_t count, uint32_t threads)
{
    gs_status st;

    for (uint32_t k = 0; k < batches; k++)
        gs_sample__take_targets(&b[k], s, arena[k], first, count);
    if ((st = draw_hops(b, s, arena, batches, threads)) != GS_OK)
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
