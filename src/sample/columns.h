/* columns.h - lists that stay in the store: one pass over the columns that a group of batches needs.
 *
 * Columns come in the order of the file, and the chunks of a column in the order of its operands; so the list of a
 * vertex, as gs_adjacency has it, goes by in order, in pieces. All batches of a group meet a chunk together, each in an
 * arena of its own. Of this room and its tests.
 * Threads: one at a time.
 */
#ifndef GS_SAMPLE_COLUMNS_H
#define GS_SAMPLE_COLUMNS_H

#include "sample/sample_internal.h"
#include "store/edge_scan.h"

typedef struct gs_columns {
    gs_edge_scanner *scan;
    const gs_chunk_table *table; /* the store's, which outlives this */
    uint8_t *wanted;             /* [parts * parts] chunks of the pass at hand */
    bool weights;                /* edges have them */
    uint64_t bytes;              /* of memory */
} gs_columns;

/* With a window of 8 MiB, or of the largest chunk, whatever the budget. GS_EIO, GS_ENOMEM. */
gs_status gs_columns__open(gs_columns **out, const gs_store *s, gs_direction d);
void gs_columns__close(gs_columns *c); /* NULL is allowed */

/* The batches of a pass. Those that overflow are left out. */
typedef struct gs_column_pass {
    const gs_sampler *s;
    gs_columns *columns;
    gs_batch *batch;              /* [batches] */
    gs_batch_arena *const *arena; /* [batches] */
    uint32_t batches, threads;
} gs_column_pass;

/* Rows of each batch that are not expanded, in order of their vertices, for a pass; all chunks of columns that have one
 * are wanted; with `named`, of those that have one of which an edge was named. */
void gs_columns__sort_rows(const gs_column_pass *w, bool named);

/* Row a->rows.order[p] of the batch is target t of the chunk, whose operands begin at row `operand` of the graph. */
typedef void gs_column_visit(const gs_sampler *s, gs_batch *b, gs_batch_arena *a, uint32_t p, const gs_chunk_view *v,
                             uint32_t t, uint32_t operand);
/* The wanted chunks go by, and each meets the sorted rows of each batch. `batch_wants` (NULL: all do) is asked whether
 * a batch has use of a chunk. Blocks for the disk. GS_EFORMAT: a damaged chunk; GS_EIO, GS_EINTERRUPTED. */
typedef bool gs_column_want(const gs_batch_arena *a, uint32_t target, uint32_t operand);
gs_status gs_columns__meet(const gs_column_pass *w, gs_column_want *batch_wants, gs_column_visit *visit);

/* query[which] of each arena is answered. Blocks for the disk; errors as above. */
gs_status gs_columns__ask(const gs_column_pass *w, uint32_t which);

#endif /* GS_SAMPLE_COLUMNS_H */
