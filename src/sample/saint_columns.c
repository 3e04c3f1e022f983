/* saint_columns.c - GraphSAINT's batches of a group, of lists that stay in the store: when their vertices are drawn
 * (saint_steps.c), one pass gives the edges between those of each batch. */
#include <string.h>

#include "base/index_width.h"
#include "base/size.h"
#include "sample/columns.h"

static bool has_operands(const gs_batch_arena *a, uint32_t target, uint32_t operand)
{
    return a->interval_slot[target] != 0 && a->interval_slot[operand] != 0;
}

/* Edges of the row in this chunk whose sources are in the batch. */
static void take_row(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                     uint32_t t, uint32_t operand)
{
    const uint32_t row = a->rows.order[p];
    gs_raw_edges *const raw = &a->raw;

    for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
        const uint32_t vertex = operand + gs_index_at(v->index, v->index_bytes, k),
                       source = gs_unique_find(&a->unique, vertex);
        if (source == GS_UNIQUE_NONE)
            continue;
        if (raw->count == raw->most) {
            b->overflows = true;
            return;
        }
        raw->source[raw->count] = source;
        a->rows.place[raw->count] = row;
        if (raw->type != NULL)
            raw->type[raw->count] = (uint16_t)gs_type_at(v->type, v->type_bytes, k);
        if (raw->weight != NULL)
            raw->weight[raw->count] = v->weight != NULL ? v->weight[k] : 1;
        if (s->loss_factor != NULL) {
            const float own = s->options.coefficients_alone ? 1.0f : raw->weight[raw->count];
            raw->weight[raw->count] = own * gs_saint__edge_factor(s, vertex, a->unique.vertex[row]);
        }
        raw->count++;
    }
}

/* The chunks between intervals that have rows of a batch. */
static void want_chunks(const gs_column_pass *w)
{
    const uint64_t parts = w->s->in->parts;

    memset(w->columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        uint32_t *const has = w->arena[k]->interval_slot;
        if (w->batch[k].overflows)
            continue;
        for (uint32_t row = 0; row < w->batch[k].vertices; row++)
            has[w->arena[k]->unique.vertex[row] / w->s->in->interval_rows] = 1;
        for (uint64_t i = 0; i < parts; i++)
            for (uint64_t j = 0; j < parts && has[i] != 0; j++)
                w->columns->wanted[i * parts + j] |= (uint8_t)has[j];
    }
}

static void finish(const gs_batch *b, const gs_sampler *s, gs_batch_arena *a)
{
    gs_sample__order_by_row(a, b->vertices);
    for (uint32_t row = 0; row < b->vertices; row++) {
        const uint32_t v = a->unique.vertex[row];
        a->in_degree[row] = (float)gs_adjacency_degree(s->in, v);
        if (a->loops != NULL)
            a->loops[row] = s->in->own != NULL ? (float)s->in->own[v] : 0;
    }
    for (uint32_t row = 0; row < b->targets && s->loss_factor != NULL; row++)
        a->loss_weight[row] = s->loss_factor[a->unique.vertex[row]];
}

static gs_status take_subgraphs(const gs_column_pass *w)
{
    const gs_sampler *const s = w->s;

#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(w->threads, 1u)) if (w->threads > 1)
    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows)
            w->batch[k].overflows = gs_saint__number_rows(&w->batch[k], s, w->arena[k]) != GS_OK;
    gs_columns__sort_rows(w, false);
    want_chunks(w);
    const gs_status st = gs_columns__meet(w, has_operands, take_row);
    for (uint32_t k = 0; k < w->batches; k++)
        memset(w->arena[k]->interval_slot, 0, s->in->parts * sizeof(uint32_t));
    return st;
}

gs_status gs_sample__saint_columns(gs_batch *b, const gs_sampler *s, gs_batch_arena *const *arena, uint32_t batches,
                                   uint32_t threads)
{
    const gs_column_pass w = {s, s->in->columns, b, arena, batches, threads};
    gs_status st = gs_saint__draw_columns(b, s, arena, batches, threads);

    if (st != GS_OK || (st = take_subgraphs(&w)) != GS_OK)
        return st;
#pragma omp parallel for schedule(dynamic) num_threads((int)GS_MAX(threads, 1u)) if (threads > 1)
    for (uint32_t k = 0; k < batches; k++)
        if (!b[k].overflows) {
            finish(&b[k], s, arena[k]);
            b[k].expanded = b[k].vertices;
        }
    for (uint32_t k = batches; k-- > 0;)
        if (b[k].overflows)
            st = gs_sample__overflow(&b[k], s);
    return st;
}
