/* Sums by edge type: SPLIT adds a row to the columns of its edge's type, PICK takes from each row the
 * columns of its edge's type.
 *
 * PICK is a sum over rows of an array of [rows * types, width]; SPLIT adds to one over a target's
 * runs of edges of one type, so that edges sorted by type keep their sums in registers.
 */
#include "base/index_width.h"
#include "device/cpu/kernels_isa.h"

#define MAX_TILE 8
#define AHEAD 16 /* edges */
#define LINE 64

typedef struct typed_walk {
    const gs_edge_launch *l;
    const float *operand; /* first column of the slice */
    size_t stride;        /* floats from one row of the operand to the next */
    uint32_t width, columns;
    uint32_t last;        /* last edge that may be prefetched */
} typed_walk;

GS_INLINE uint32_t type_of(const typed_walk *w, uint32_t k)
{
    return gs_type_at(w->l->edges.type, w->l->edges.type_bytes, k);
}

GS_INLINE const float *row_of(const typed_walk *w, uint32_t k)
{
    const float *const row = w->operand + gs_index_at(w->l->edges.index, w->l->edges.index_bytes, k) * w->stride;
    return w->l->pick ? row + (size_t)type_of(w, k) * w->width : row;
}

GS_INLINE void prefetch_ahead(const typed_walk *w, uint32_t k)
{
    const char *const row = (const char *)row_of(w, w->last - k > AHEAD ? k + AHEAD : w->last);
    for (uint32_t b = 0; b < w->columns * sizeof(float); b += LINE)
        __builtin_prefetch(row + b);
    __builtin_prefetch(row + w->columns * sizeof(float) - 1);
}

/* acc += rows of edges [k, end), columns [c, c + n * GS_LANES). */
GS_INLINE void add_vectors(float *acc, const typed_walk *w, uint32_t k, uint32_t end, uint32_t c, const uint32_t n)
{
    gs_vf sum[MAX_TILE];
    for (uint32_t v = 0; v < n; v++)
        sum[v] = gs_load(acc + c + v * GS_LANES);
    for (; k < end; k++) {
        const float *const row = row_of(w, k) + c;
        if (c == 0)
            prefetch_ahead(w, k);
        for (uint32_t v = 0; v < n; v++)
            sum[v] += gs_load(row + v * GS_LANES);
    }
    for (uint32_t v = 0; v < n; v++)
        gs_store(acc + c + v * GS_LANES, sum[v]);
}

/* The last `rest` columns, in a vector that ends where the row does: what stands before them gets 0 added. */
static void add_rest(float *acc, const typed_walk *w, uint32_t k, uint32_t end, uint32_t rest)
{
    const gs_vi wanted = gs_lane_numbers() >= (int32_t)(GS_LANES - rest);
    gs_vf sum = gs_load(acc);
    for (; k < end; k++)
        sum += (gs_vf)((gs_vi)gs_load(row_of(w, k) + w->columns - GS_LANES) & wanted);
    gs_store(acc, sum);
}

/* Rows of less than a vector. */
static void add_narrow(float *acc, const typed_walk *w, uint32_t k, uint32_t end)
{
    for (; k < end; k++) {
        const float *const row = row_of(w, k);
        prefetch_ahead(w, k);
        for (uint32_t c = 0; c < w->columns; c++)
            acc[c] += row[c];
    }
}

static void add_rows(float *acc, const typed_walk *w, uint32_t k, uint32_t end)
{
    uint32_t c = 0;
    for (; c + MAX_TILE * GS_LANES <= w->columns; c += MAX_TILE * GS_LANES)
        add_vectors(acc, w, k, end, c, MAX_TILE);
    if (c + 4 * GS_LANES <= w->columns) {
        add_vectors(acc, w, k, end, c, 4);
        c += 4 * GS_LANES;
    }
    for (; c + GS_LANES <= w->columns; c += GS_LANES)
        add_vectors(acc, w, k, end, c, 1);
    if (c == w->columns)
        return;
    if (w->columns < GS_LANES)
        add_narrow(acc, w, k, end);
    else
        add_rest(acc + w->columns - GS_LANES, w, k, end, w->columns - c);
}

void GS_KERNEL(typed)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns)
{
    const gs_edges *const e = &l->edges;
    if (first == end || e->start[first] == e->start[end])
        return;
    const typed_walk w = {.l = l,
                          .operand = (const float *)l->operand + column,
                          .stride = (size_t)l->width * (l->pick ? l->types : 1),
                          .width = l->width,
                          .columns = columns,
                          .last = e->start[end] - 1};
    const size_t acc_stride = (size_t)l->width * (l->pick ? 1 : l->types);

    for (uint32_t t = first; t < end; t++) {
        float *const acc = l->acc + gs_index_at(e->target, e->index_bytes, t) * acc_stride + column;
        const uint32_t stop = e->start[t + 1];
        for (uint32_t k = e->start[t], next; k < stop; k = next) {
            if (l->pick) {
                add_rows(acc, &w, k, next = stop);
                continue;
            }
            const uint32_t type = type_of(&w, k);
            for (next = k + 1; next < stop && type_of(&w, next) == type; next++)
                continue;
            add_rows(acc + (size_t)type * l->width, &w, k, next);
        }
    }
}
