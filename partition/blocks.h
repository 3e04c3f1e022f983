/* blocks.h - edges on disk, bucketed by their larger endpoint. */
#ifndef GS_PARTITION_BLOCKS_H
#define GS_PARTITION_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/external_sort.h"
#include "partition/input_files.h"

typedef struct gs_part_blocks {
    gs_external_sort *edges_by_end;
    uint32_t count, shift; /* block of an edge: max(src, dst) >> shift */
    uint32_t words;        /* of a record: src, dst, [type], [weight bits, or with features the edge's number] */
    uint64_t vertices, edges, self_loops, cap; /* cap: most records in memory at once */
    uint32_t edge_types;
    bool symmetric; /* equal to its own transpose, payload included */
} gs_part_blocks;

gs_status gs_part__blocks_make(gs_part_blocks *b, gs_part_job *job, gs_part_input *in);
void gs_part__blocks_free(gs_part_blocks *b);

/* All edges whose larger endpoint lies in [first, first + vertices), in no
 * particular order, `count` records at `records`, which are the visitor's to
 * free with gs_free(). Blocks come in ascending order of vertices, none left out. */
typedef gs_status gs_part_visit(void *context, uint64_t first, uint64_t vertices, uint32_t *records,
                                uint64_t count);
gs_status gs_part__blocks_each(const gs_part_blocks *b, gs_part_job *job, gs_part_visit *visit, void *context);

#endif /* GS_PARTITION_BLOCKS_H */
