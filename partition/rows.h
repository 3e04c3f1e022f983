/* rows.h - feature rows to their place in store order. */
#ifndef GS_PARTITION_ROWS_H
#define GS_PARTITION_ROWS_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/store_write.h" /* gs_array_info */

/* Moves or makes the feature rows; fills `info` (its sums are owned by the
 * caller). `memory` bounds its buffers. */
gs_status gs_part__rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                              gs_array_info *info, uint64_t memory);

/* Bytes of `memory` that this and the next take at the least; 0 where nothing is to be done. */
uint64_t gs_part__rows_least(const gs_part_input *in);

/* The same with in->label, whose rows gs_part__label_rows() has seen, as the labels of in->task. */
gs_status gs_part__label_rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                                    gs_array_info *info, uint64_t memory);

#endif /* GS_PARTITION_ROWS_H */
