/* columns.c - the rows of a hop, sorted, meet the columns of the store, which go by once. */
#include "sample/columns.h"

#include <string.h>

#include "base/alloc.h"
#include "base/narrow.h"
#include "base/radix.h"
#include "base/size.h"
#include "sample/sample_internal.h"

static uint64_t own_bytes(const gs_store *s)
{
    const uint64_t parts = gs_store_chunks(s)->parts;
    return sizeof(gs_columns) + parts * parts;
}

gs_status gs_columns__open(gs_columns **out, const gs_store *s)
{
    const uint64_t parts = gs_store_chunks(s)->parts;
    gs_columns *c = gs_calloc(1, sizeof(*c));
    gs_status st = GS_ENOMEM;

    if (c == NULL || (c->wanted = gs_malloc_array(parts, parts)) == NULL)
        st = gs_fail(st, "%s: no memory to read its edges", gs_store_dir(s));
    else
        st = gs_edge_scanner_open(&c->scan, s, GS_BY_DEST, UINT64_MAX);
    if (st != GS_OK) {
        gs_columns__close(c);
        return st;
    }
    c->table = gs_store_chunks(s);
    c->weights = c->table->weights;
    c->bytes = own_bytes(s) + gs_edge_scanner_bytes(c->scan);
    *out = c;
    return GS_OK;
}

void gs_columns__close(gs_columns *c)
{
    if (c == NULL)
        return;
    gs_edge_scanner_close(c->scan);
    gs_free(c->wanted);
    gs_free(c);
}

/* ---- a pass -------------------------------------------------------------- */

/* order[0..n): rows from `first` on by their vertices. */
static void sort_rows(gs_batch_arena *a, uint32_t first)
{
    gs_column_rows *const r = &a->rows;

    r->count = a->unique.count - first;
    r->at = 0;
    gs_radix_order(r->order, r->passed, a->unique.vertex + first, r->count);
    for (uint32_t p = 0; p < r->count; p++) {
        r->order[p] += first;
        r->passed[p] = 0;
    }
}

/* Targets [t] of the chunk are row order[p]: those of its edges that were drawn get their sources. */
static void answer_row(gs_batch_arena *a, uint32_t p, const gs_chunk_view *v, uint32_t t, uint32_t operand)
{
    const uint32_t row = a->rows.order[p], passed = a->rows.passed[p], n = v->start[t + 1] - v->start[t];

    for (uint32_t k = a->raw.start[row]; k < a->raw.start[row + 1]; k++) {
        const uint32_t place = a->rows.place[k] - passed;
        if (place >= n) /* of a chunk before or after this one */
            continue;
        const uint64_t at = (uint64_t)v->start[t] + place;
        a->raw.source[k] = operand + gs_index_at(v->index, v->index_bytes, at);
        if (a->raw.weight != NULL)
            a->raw.weight[k] = v->weight != NULL ? v->weight[at] : 1;
    }
    a->rows.passed[p] = passed + n;
}

/* Both the chunk's targets and the rows ascend. */
static void answer_chunk(gs_batch_arena *a, const gs_chunk_view *v, uint32_t target, uint32_t operand)
{
    gs_column_rows *const r = &a->rows;
    const uint32_t *const vertex = a->unique.vertex;

    while (r->at < r->count && vertex[r->order[r->at]] < target)
        r->at++;
    for (uint32_t t = 0, p = r->at; t < v->targets && p < r->count; t++) {
        const uint32_t near = target + gs_index_at(v->target, v->index_bytes, t);
        while (p < r->count && vertex[r->order[p]] < near)
            p++;
        if (p < r->count && vertex[r->order[p]] == near)
            answer_row(a, p, v, t, operand);
    }
}

typedef struct answering {
    const gs_columns *c;
    const gs_batch *batch;
    gs_batch_arena *const *arena;
    uint32_t batches;
} answering;

static gs_status take_chunk(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const answering *const w = context;
    const uint32_t base = (uint32_t)gs_interval_first(w->c->table, target),
                   other = (uint32_t)gs_interval_first(w->c->table, operand);

    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows)
            answer_chunk(w->arena[k], v, base, other);
    return GS_OK;
}

gs_status gs_columns__answer(gs_columns *c, const gs_adjacency *in, const gs_batch *batch, gs_batch_arena *const *arena,
                             uint32_t batches)
{
    const uint64_t parts = in->parts;
    answering w = {c, batch, arena, batches};

    memset(c->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < batches; k++) {
        if (batch[k].overflows)
            continue;
        sort_rows(arena[k], batch[k].expanded);
        for (uint32_t row = batch[k].expanded; row < arena[k]->unique.count; row++)
            if (arena[k]->raw.start[row] < arena[k]->raw.start[row + 1])
                memset(c->wanted + arena[k]->unique.vertex[row] / in->interval_rows * parts, 1, parts);
    }
    return gs_edge_scanner_run(c->scan, c->wanted, take_chunk, &w);
}
