/* columns.c - rows and queries, sorted, meet the columns of the store, which go by once. */
#include "sample/sample_internal.h"

#include <string.h>

#include "base/alloc.h"
#include "base/dtype.h"
#include "base/size.h"

static uint64_t own_bytes(const gs_store *s)
{
    const uint64_t parts = gs_store_chunks(s)->parts;
    return sizeof(gs_columns) + parts * parts;
}

gs_status gs_columns__open(gs_columns **out, const gs_store *s, gs_direction d)
{
    const uint64_t parts = gs_store_chunks(s)->parts;
    gs_columns *c = gs_calloc(1, sizeof(*c));
    gs_status st = GS_ENOMEM;

    if (c == NULL || (c->wanted = gs_malloc_array(parts, parts)) == NULL)
        st = gs_fail(st, "%s: no memory to read its edges", gs_store_dir(s));
    else
        st = gs_edge_scanner_open(&c->scan, s, d, UINT64_MAX);
    if (st != GS_OK) {
        gs_columns__close(c);
        return st;
    }
    c->table = gs_store_chunks(s);
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

/* The first target of the chunk from t on that is at least `row`; v->targets where there is none. */
static uint32_t find_target(const gs_chunk_view *v, uint32_t t, uint32_t row)
{
    uint32_t low = t, step = 1, high;

    while ((uint64_t)low + step <= v->targets && gs_index_at(v->target, v->index_bytes, low + step - 1) < row) {
        low += step;
        step *= 2;
    }
    high = (uint32_t)GS_MIN((uint64_t)low + step - 1, v->targets);
    GS_BISECT(low, high, gs_index_at(v->target, v->index_bytes, middle) < row);
    return low;
}

/* All chunks of the vertex' column. */
static void want_column(gs_columns *c, uint32_t vertex)
{
    const uint64_t parts = c->table->parts;
    uint8_t *const column = c->wanted + vertex / c->table->interval_rows * parts;
    if (column[0] == 0)
        memset(column, 1, parts);
}

/* ---- rows and queries ---------------------------------------------------- */

/* order[0..n): rows from `first` on by their vertices. */
static void sort_rows(gs_batch_arena *a, uint32_t first)
{
    gs_column_rows *const r = &a->rows;

    r->count = a->unique.count - first;
    gs_radix_order(r->order, r->passed, a->unique.vertex + first, r->count);
    for (uint32_t p = 0; p < r->count; p++)
        r->order[p] += first;
}

void gs_columns__sort_rows(const gs_sample_pass *w, bool named)
{
    const uint64_t parts = w->columns->table->parts;

    memset(w->columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        const gs_batch_arena *const a = w->arena[k];
        if (w->batch[k].overflows)
            continue;
        sort_rows(w->arena[k], w->batch[k].expanded);
        for (uint32_t row = w->batch[k].expanded; row < a->unique.count; row++)
            if (!named || a->raw.start[row] < a->raw.start[row + 1])
                want_column(w->columns, a->unique.vertex[row]);
    }
}

/* Both the chunk's targets and the rows ascend. */
static void meet_chunk(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, const gs_chunk_view *v, uint32_t target,
                       uint32_t operand, gs_column_visit *visit)
{
    gs_column_rows *const r = &a->rows;
    const uint32_t *const vertex = a->unique.vertex;

    while (r->at < r->count && vertex[r->order[r->at]] < target)
        r->at++;
    for (uint32_t t = 0, p = r->at; p < r->count && !b->overflows; p++) {
        const uint32_t row = vertex[r->order[p]] - target;
        if ((t = find_target(v, t, row)) == v->targets)
            break;
        if (gs_index_at(v->target, v->index_bytes, t) == row)
            visit(s, b, a, p, v, t, operand);
    }
}

/* Those of one vertex are together, and what has gone by of its list is counted at the first of them. */
static void answer_chunk(gs_list_query *q, const gs_chunk_view *v, uint32_t target, uint32_t operand)
{
    while (q->at < q->count && q->near[q->order[q->at]] < target)
        q->at++;
    for (uint32_t t = 0, p = q->at, end; p < q->count; p = end) {
        const uint32_t near = q->near[q->order[p]], row = near - target;
        for (end = p + 1; end < q->count && q->near[q->order[end]] == near;)
            end++;
        if ((t = find_target(v, t, row)) == v->targets)
            break;
        if (gs_index_at(v->target, v->index_bytes, t) != row)
            continue;
        const uint32_t n = v->start[t + 1] - v->start[t];
        for (uint32_t i = p; i < end; i++) {
            const uint64_t place = q->place[q->order[i]] - q->passed[p];
            if (place < n) /* else of a chunk before or after this one */
                q->far[q->order[i]] = operand + gs_index_at(v->index, v->index_bytes, v->start[t] + place);
        }
        q->passed[p] += n;
    }
}

/* What goes by: rows are visited, or queries are answered. */
typedef struct meeting {
    const gs_sample_pass *w;
    gs_column_want *wants;
    gs_column_visit *visit; /* NULL: queries number `which` */
    uint32_t which;
} meeting;

static gs_status meet(void *context, uint32_t target, uint32_t operand, const gs_chunk_view *v)
{
    const meeting *const m = context;
    const gs_sample_pass *const w = m->w;
    const uint32_t base = (uint32_t)gs_interval_first(w->columns->table, target),
                   other = (uint32_t)gs_interval_first(w->columns->table, operand);

    for (uint32_t k = 0; k < w->batches; k++)
        if (!w->batch[k].overflows && (m->wants == NULL || m->wants(w->arena[k], target, operand))) {
            if (m->visit != NULL)
                meet_chunk(w->s, &w->batch[k], w->arena[k], v, base, other, m->visit);
            else
                answer_chunk(&w->arena[k]->query[m->which], v, base, other);
        }
    return gs_sample__check_stop(w->s);
}

gs_status gs_columns__meet(const gs_sample_pass *w, gs_column_want *batch_wants, gs_column_visit *visit)
{
    meeting m = {.w = w, .wants = batch_wants, .visit = visit};

    for (uint32_t k = 0; k < w->batches; k++) {
        gs_column_rows *const r = &w->arena[k]->rows;
        r->at = 0;
        if (!w->batch[k].overflows)
            memset(r->passed, 0, r->count * sizeof(*r->passed));
    }
    return gs_edge_scanner_run(w->columns->scan, w->columns->wanted, meet, &m);
}

gs_status gs_columns__ask(const gs_sample_pass *w, uint32_t which)
{
    const uint64_t parts = w->columns->table->parts;
    meeting m = {.w = w, .which = which};

    memset(w->columns->wanted, 0, parts * parts);
    for (uint32_t k = 0; k < w->batches; k++) {
        gs_list_query *const q = &w->arena[k]->query[which];
        if (w->batch[k].overflows)
            continue;
        gs_radix_order(q->order, q->spare, q->near, q->count);
        q->at = 0;
        memset(q->passed, 0, q->count * sizeof(*q->passed));
        for (uint32_t i = 0; i < q->count; i++)
            want_column(w->columns, q->near[i]);
    }
    return gs_edge_scanner_run(w->columns->scan, w->columns->wanted, meet, &m);
}
