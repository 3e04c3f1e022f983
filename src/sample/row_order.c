/* row_order.c - edges of a subgraph, from the order in which the columns of the store have them to that of its rows. */
#include <string.h>

#include "sample/sample_internal.h"

static void swap_edges(gs_raw_edges *raw, uint32_t a, uint32_t b)
{
    const uint32_t source = raw->source[a];
    raw->source[a] = raw->source[b];
    raw->source[b] = source;
    if (raw->type != NULL) {
        const uint16_t type = raw->type[a];
        raw->type[a] = raw->type[b];
        raw->type[b] = type;
    }
    if (raw->weight != NULL) {
        const float weight = raw->weight[a];
        raw->weight[a] = raw->weight[b];
        raw->weight[b] = weight;
    }
}

/* In place. */
void gs_sample__order_by_row(gs_batch_arena *a, uint32_t rows)
{
    uint32_t *const start = a->raw.start, *const place = a->rows.place, *const next = a->cursor;

    memset(start, 0, sizeof(*start) * ((size_t)rows + 1));
    for (uint64_t k = 0; k < a->raw.count; k++)
        start[place[k] + 1]++;
    for (uint32_t row = 0; row < rows; row++) {
        start[row + 1] += start[row];
        next[row] = start[row];
    }
    for (uint64_t k = 0; k < a->raw.count; k++)
        place[k] = next[place[k]]++;
    for (uint32_t k = 0; k < a->raw.count; k++)
        while (place[k] != k) {
            const uint32_t to = place[k];
            swap_edges(&a->raw, k, to);
            place[k] = place[to];
            place[to] = to;
        }
}
