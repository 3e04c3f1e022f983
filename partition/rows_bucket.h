/* rows_bucket.h - rows to buckets on disk, then bucket by bucket to their place. */
#ifndef GS_PARTITION_ROWS_BUCKET_H
#define GS_PARTITION_ROWS_BUCKET_H

#include <stdint.h>

#include "partition/rows_pool.h"

/* How many rows a pass over the input can take with buckets of `bucket_rows` positions; 0: none. */
uint64_t gs_rows__bucket_pass(const gs_rows *r, uint64_t bucket_rows);
/* Passes over [low, high) begin and end: between the two, rows go to buckets. */
gs_status gs_rows__buckets_begin(gs_rows *r, uint64_t bucket_rows);
gs_status gs_rows__buckets_place(gs_rows *r);
void gs_rows__buckets_free(gs_rows *r);

#endif /* GS_PARTITION_ROWS_BUCKET_H */
