/* arrays.h - the small vertex arrays: labels, splits, degrees, input ids. */
#ifndef GS_PARTITION_ARRAYS_H
#define GS_PARTITION_ARRAYS_H

#include <stdint.h>

#include "base/dtype.h"
#include "partition/job.h"
#include "store/store_write.h" /* gs_array_info */

/* A small vertex array: makes rows [first, first + count) at `dst`. */
typedef void gs_part_fill(const void *context, void *dst, uint64_t first, uint64_t count);
gs_status gs_part__array_write(gs_part_job *job, gs_array_id id, gs_dtype dtype, uint64_t rows,
                               gs_part_fill *fill, const void *context, gs_array_info *info);

#endif /* GS_PARTITION_ARRAYS_H */
