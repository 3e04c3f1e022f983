/* edge_batch.h - one piece of the edge list as plain arrays. */
#ifndef GS_PARTITION_EDGE_BATCH_H
#define GS_PARTITION_EDGE_BATCH_H

#include <stdint.h>

#include "partition/input_files.h"

/* Owned by the caller. */
typedef struct gs_part_batch {
    uint32_t *src, *dst, *type;
    float *weight;
    void *raw; /* as in the file */
    uint64_t cap, count, first;
    gs_spill_cursor at; /* text only */
} gs_part_batch;

gs_status gs_part__batch_make(gs_part_batch *b, const gs_part_input *in, uint64_t edges);
void gs_part__batch_free(gs_part_batch *b);

#endif /* GS_PARTITION_EDGE_BATCH_H */
