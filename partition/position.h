/* position.h - from the interval of every vertex to its row in it. */
#ifndef GS_PARTITION_POSITION_H
#define GS_PARTITION_POSITION_H

#include <stdint.h>

#include "partition/job.h"
#include "partition/vertex_order.h"

/* part (and need) to position and input_id. */
gs_status gs_part__positions(gs_part_order *o, gs_part_job *job);
/* Edges of the largest chunk, exactly where it has more than `cap`. */
gs_status gs_part__largest_chunk(uint64_t *edges, const gs_part_order *o, uint64_t cap);

#endif /* GS_PARTITION_POSITION_H */
