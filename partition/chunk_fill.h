/* chunk_fill.h - the arrays of one chunk, from its sorted edges. */
#ifndef GS_PARTITION_CHUNK_FILL_H
#define GS_PARTITION_CHUNK_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/grid.h"
#include "partition/sort.h"
#include "store/chunk_view.h"

/* Sorted edges of one chunk: keys of target row and operand row, of g->local_bits each, with payload or without. */
typedef struct gs_part_run {
    const void *keys; /* [edges] u64 or gs_part_key16 */
    uint64_t edges;
    uint32_t targets, operands; /* distinct ones, by gs_part__run_count() */
    uint64_t largest;           /* edges of the target that has the most, by the same */
    bool payload;
} gs_part_run;

static inline uint64_t gs_part__key_at(const void *keys, uint64_t i, bool payload)
{
    return payload ? ((const gs_part_key16 *)keys)[i].key : ((const uint64_t *)keys)[i];
}

/* Counts the distinct rows, and sets in `seen` the bit of each operand row. */
void gs_part__run_count(gs_part_run *r, uint64_t *seen, const gs_part_grid *g);

/* Fills the arrays of `view`, which point into the caller's own zeroed buffer, and clears `seen`, which has a bit for
 * each of `operand_rows`. Adds the edges of each target row to `degree`, as other threads may at the same time. */
void gs_part__run_fill(const gs_chunk_view *view, const gs_part_run *r, const gs_part_grid *g, uint32_t operand_rows,
                       uint32_t *degree, uint64_t *seen);

#endif /* GS_PARTITION_CHUNK_FILL_H */
