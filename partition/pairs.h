/* pairs.h - pairs that losses on edges are of, to their place in the store: by bucket, checked. */
#ifndef GS_PARTITION_PAIRS_H
#define GS_PARTITION_PAIRS_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/store.h"

/* Writes the arrays of links that the input has; info[GS_LINK_SPLITS], whose sums the caller owns, and to *store how
 * many there are of each, and what labels they have. store->edge_types are the graph's. `memory` bounds its buffers.
 * GS_EFORMAT: a pair of no vertices, a type that no edge has, or no label; GS_EBUDGET: a bucket does not fit. */
gs_status gs_part__links_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o, gs_array_info *info,
                               gs_store_info *store, uint64_t memory);

#endif /* GS_PARTITION_PAIRS_H */
