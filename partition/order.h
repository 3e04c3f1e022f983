/* order.h - makes the order: one pass over the blocks, which also buckets the edges by chunk. */
#ifndef GS_PARTITION_ORDER_H
#define GS_PARTITION_ORDER_H

#include <stddef.h>

#include "partition/blocks.h"
#include "partition/job.h"
#include "partition/vertex_order.h"

gs_status gs_part__order_make(gs_part_order *o, gs_part_job *job, const gs_part_blocks *b, uint32_t parts,
                              const char *method, char *note, size_t note_cap);
void gs_part__order_free(gs_part_order *o);

#endif /* GS_PARTITION_ORDER_H */
