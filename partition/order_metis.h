/* order_metis.h - intervals by METIS, for graphs that fit its memory. */
#ifndef GS_PARTITION_ORDER_METIS_H
#define GS_PARTITION_ORDER_METIS_H

#include <stddef.h>
#include <stdint.h>

#include "partition/blocks.h"
#include "partition/grid.h"
#include "partition/job.h"

/* Interval of every vertex by METIS; `part` is [N]. */
gs_status gs_part__metis(uint32_t *part, const gs_part_grid *grid, gs_part_job *job, const gs_part_blocks *b);
/* "" or why METIS cannot be used. */
void gs_part__metis_fits(char *why, size_t cap, const gs_part_job *job, const gs_part_blocks *b,
                         const gs_part_grid *grid);

#endif /* GS_PARTITION_ORDER_METIS_H */
