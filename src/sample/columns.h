/* columns.h - in-edges that stay in the store: one pass over the columns that a hop of a group of batches needs.
 *
 * Columns come in the order of the file, and the chunks of a column in the order of its operands; so the list of a
 * vertex, as gs_adjacency has it, goes by in order, in pieces. Of this room and its tests.
 * Threads: one at a time.
 */
#ifndef GS_SAMPLE_COLUMNS_H
#define GS_SAMPLE_COLUMNS_H

#include "sample/sampler.h"
#include "store/edge_scan.h"

typedef struct gs_columns {
    gs_edge_scanner *scan;
    const gs_chunk_table *table; /* the store's, which outlives this */
    uint8_t *wanted;             /* [parts * parts] chunks of the pass at hand */
    bool weights;                /* edges have them */
    uint64_t bytes;              /* of memory */
} gs_columns;

/* With a window of 8 MiB, or of the largest chunk, whatever the budget. GS_EIO, GS_ENOMEM. */
gs_status gs_columns__open(gs_columns **out, const gs_store *s);
void gs_columns__close(gs_columns *c); /* NULL is allowed */

/* In each arena, edges of the rows from batch[k].expanded on are named by their places in the rows' lists; they get
 * their sources, as rows of the graph, and their weights. Not of batches that overflow. Blocks for the disk.
 * GS_EFORMAT: a damaged chunk; GS_EIO. */
gs_status gs_columns__answer(gs_columns *c, const gs_adjacency *in, const gs_batch *batch, gs_batch_arena *const *arena,
                             uint32_t batches);

#endif /* GS_SAMPLE_COLUMNS_H */
