/* chunk_merge.c - doubled edges of a chunk that stays in memory become one.
 *
 * Edges of a target are sorted by operand row, so equal ones stand together. R-MAT graphs have half of
 * theirs twice or more; a sum reads the row of such an edge once and adds it with a factor.
 */
#include <string.h>

#include "base/size.h"
#include "store/store_internal.h"

#define COUNT_MOST 255u /* a byte; more of the same edge go on as another one */

/* Do edges k - 1 and k of a target merge, when k - 1 is `count` edges already? */
static bool merges(const gs_chunk_view *v, uint64_t k, uint32_t count)
{
    return count < COUNT_MOST &&
           gs_index_at(v->index, v->index_bytes, k) == gs_index_at(v->index, v->index_bytes, k - 1);
}

static uint64_t merged_edges(const gs_chunk_view *v)
{
    uint64_t edges = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        uint32_t count = 0;
        for (uint64_t k = v->start[t]; k < v->start[t + 1]; k++) {
            count = count > 0 && merges(v, k, count) ? count + 1 : 1;
            edges += count == 1;
        }
    }
    return edges;
}

/* Moves the first edge of each run of equal ones to the front; what is read lies never before what is written. */
static void compact(const gs_chunk_view *v, uint8_t *index, uint32_t *start, uint8_t *counts)
{
    uint64_t to = 0, k = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint64_t end = v->start[t + 1];
        start[t] = (uint32_t)to;
        while (k < end) {
            const uint32_t row = gs_index_at(v->index, v->index_bytes, k);
            uint32_t count = 1;
            for (k++; k < end && count < COUNT_MOST && gs_index_at(v->index, v->index_bytes, k) == row; k++)
                count++;
            if (v->index_bytes == 2)
                memcpy(index + to * 2, &(uint16_t){(uint16_t)row}, 2);
            else
                memcpy(index + to * 4, &row, 4);
            counts[to++] = (uint8_t)count;
        }
    }
    start[v->targets] = (uint32_t)to;
}

bool gs_chunk_merge(const gs_chunk_view *v, void *data, uint8_t *scratch)
{
    const uint64_t edges = merged_edges(v);
    uint8_t *const index = (uint8_t *)data + ((const uint8_t *)v->index - (const uint8_t *)data);
    uint32_t *const start = (void *)((uint8_t *)data + ((const uint8_t *)v->start - (const uint8_t *)data));

    if (edges > v->edges / 4 * 3 || edges * (v->index_bytes + 1) > v->edges * v->index_bytes)
        return false;
    compact(v, index, start, scratch);
    memcpy(index + edges * v->index_bytes, scratch, edges);
    return true;
}

void gs_chunk_merged_view(gs_chunk_view *out, const void *data, const gs_chunk_expect *expect)
{
    gs_chunk_view_place(out, data, expect, 0, false);
    out->edges = out->start[out->targets];
    out->count = (const uint8_t *)out->index + out->edges * out->index_bytes;
}
