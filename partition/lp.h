/* lp.h - intervals by label propagation, for graphs of any size. */
#ifndef GS_PARTITION_LP_H
#define GS_PARTITION_LP_H

#include <stdint.h>

#include "partition/blocks.h"
#include "partition/grid.h"
#include "partition/job.h"

/* Interval of every vertex; `part` is [N]. */
gs_status gs_part__lp(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);

#endif /* GS_PARTITION_LP_H */
