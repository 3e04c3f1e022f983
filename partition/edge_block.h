/* edge_block.h - one piece of the edge list as plain arrays. */
#ifndef GS_PARTITION_EDGE_BLOCK_H
#define GS_PARTITION_EDGE_BLOCK_H

#include <stdint.h>

#include "partition/input_files.h"

/* Owned by the caller. */
typedef struct gs_part_edge_block {
    uint32_t *src, *dst, *type;
    float *weight;
    void *raw; /* as in the file */
    uint64_t cap, count, first;
    gs_sort_cursor at; /* text only */
} gs_part_edge_block;

gs_status gs_part__edge_block_make(gs_part_edge_block *b, const gs_part_input *in, uint64_t edges);
void gs_part__edge_block_free(gs_part_edge_block *b);

#endif /* GS_PARTITION_EDGE_BLOCK_H */
