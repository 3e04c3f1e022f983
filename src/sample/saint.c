/* saint.c - GraphSAINT (Zeng et al., ICLR'20): vertices drawn by three laws, and all edges between them.
 *
 * Rows: targets among the drawn vertices in store order, then the others. */
#include "sample/sample_internal.h"

static bool take_edge(const gs_sampler *s, gs_raw_edges *raw, uint64_t edge, uint32_t source)
{
    if (raw->count == raw->most)
        return false;
    raw->source[raw->count] = source;
    gs_raw__carry(raw, raw->count, s->in, edge);
    if (s->edge_factor != NULL) {
        const float own = s->options.coefficients_alone ? 1.0f : raw->weight[raw->count];
        raw->weight[raw->count] = own * s->edge_factor[edge].factor;
    }
    raw->count++;
    return true;
}

/* Edges of a row; false where they are too many, or no more are wanted. */
static bool find_row(const gs_sampler *s, gs_batch_arena *a, uint32_t row, gs_saint_edge *count)
{
    const gs_adjacency *in = s->in;
    const uint32_t v = a->unique.vertex[row];
    const uint64_t first = gs_adjacency_first(in, v), end = gs_adjacency_first(in, (uint64_t)v + 1);
    uint32_t own = 0;

    a->raw.start[row] = (uint32_t)a->raw.count;
    for (uint64_t k = first; k < end; k++) {
        const uint32_t source = gs_unique_find(&a->unique, in->other[k]);
        own += in->other[k] == v;
        if ((k - first) % GS_STOP_EVERY == 0 && gs_sample__is_stopped(s))
            return false;
        if (source == GS_UNIQUE_NONE)
            continue;
        if (count != NULL)
            count[k].count++;
        else if (!take_edge(s, &a->raw, k, source))
            return false;
    }
    a->in_degree[row] = (float)(end - first);
    if (a->loops != NULL)
        a->loops[row] = (float)own;
    return true;
}

gs_status gs_saint__find_edges(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a, gs_saint_edge *count)
{
    for (uint32_t row = 0; row < b->vertices; row++)
        if (!find_row(s, a, row, count))
            return gs_sample__overflow(b, s);
    a->raw.start[b->vertices] = (uint32_t)a->raw.count;
    return GS_OK;
}

gs_status gs_sample__saint(gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    gs_status st;

    if ((st = gs_saint__draw(b, s, a)) != GS_OK || (st = gs_saint__number_rows(b, s, a)) != GS_OK ||
        (st = gs_saint__find_edges(b, s, a, NULL)) != GS_OK)
        return st;
    b->expanded = b->vertices;
    for (uint32_t row = 0; row < b->targets && s->loss_factor != NULL; row++)
        a->loss_weight[row] = s->loss_factor[a->unique.vertex[row]];
    return GS_OK;
}
