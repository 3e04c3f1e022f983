/* edge_filter.h - the edges of a chunk whose ends are in given sets of rows, as a smaller chunk.
 *
 * The pruned chunk keeps the order, types and weights of its edges, so sums over it are as before. Two steps, as a
 * chunk's size must be known before its place: count, then fill.
 * Threads: a filter belongs to one thread.
 */
#ifndef GS_STORE_EDGE_FILTER_H
#define GS_STORE_EDGE_FILTER_H

#include <stdint.h>

#include "base/status.h"
#include "store/chunk_table.h"
#include "store/chunk_view.h"

typedef struct gs_edge_filter {
    gs_granules granules;     /* of the sets */
    const uint64_t *targets;  /* [parts][granules.words] rows at the target end that stay; NULL: all */
    const uint64_t *operands; /* the same at the operand end */
    uint64_t *seen;           /* [seen_words] scratch: a bit a row of an interval; all 0 between calls */
    uint64_t seen_words;
} gs_edge_filter;

static inline uint64_t gs_edge_filter_words(const gs_chunk_table *t) { return (t->interval_rows + 63) / 64; }

/* What a checked chunk becomes: *out gets edges, targets, operands and the largest degree (0 for none). `need`, where
 * not NULL, gets the granules of operand rows that are named, in bits of `coarse` rows. */
void gs_edge_filter_count(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                          gs_chunk *out, uint64_t *need, gs_granules coarse);

/* Fills a chunk laid out for the counts above (gs_chunk_layout()). */
void gs_edge_filter_fill(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                         gs_chunk_view *out);

#endif /* GS_STORE_EDGE_FILTER_H */
