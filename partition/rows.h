/* rows.h - what goes to the store beside edges: features, labels and splits of vertices, pairs of them. */
#ifndef GS_PARTITION_ROWS_H
#define GS_PARTITION_ROWS_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/store.h"

/* -- feature rows to their place in store order. */

/* Moves or makes the feature rows; fills `info` (its sums are owned by the
 * caller). `memory` bounds its buffers. With `shard` it is a meeting of ranks, each of which reads its share of the
 * rows and writes what its shard has; the checksums are those of all. */
gs_status gs_part__rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                              const gs_store_shard *shard, gs_array_info *info, uint64_t memory);

/* Bytes of `memory` that this and the next take at the least; 0 where nothing is to be done. */
uint64_t gs_part__rows_least(const gs_part_input *in);

/* The same with in->label, whose rows gs_part__labels_load() has seen, as the labels of in->task. */
gs_status gs_part__label_rows_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o,
                                    gs_array_info *info, uint64_t memory);

/* -- which task the labels are of; the class and the split of every vertex.
 *
 * Arrays are [vertices] in input order, checked; free with gs_free(). Splits are drawn from the seed where an input
 * does not say them. */

/* Three shares, "0.6,0.2,0.2", each 0 or more, together at most 1. GS_EINVAL. */
gs_status gs_part__split_shares(double share[3], const char *text);
/* job->opt->split of the vertices that have a label, or of all where there are no labels, to the vertex. Depends on
 * seed and input ids alone. `split` is the caller's to free. */
gs_status gs_part__split_draw(uint8_t **split, uint64_t count[3], const gs_part_input *in, const int32_t *labels,
                              const gs_part_job *job);

/* -- labels that are rows: several truth values a vertex, or numbers. */

/* One row of labels as the store has them, of numbers that gs_part__labels_load() has seen. */
void gs_part__label_in_store(void *dst, gs_train_task task, const float *row, uint32_t columns);

/* Sets in->task and in->classes. One class a vertex: *labels has them, -1 for none. Else it says which vertices have
 * any label (0; -1: none), and the rows themselves stay in the file. Untouched where nothing is labelled. */
gs_status gs_part__labels_load(int32_t **labels, gs_part_input *in, gs_part_job *job);
gs_status gs_part__splits_load(uint8_t **split, uint64_t count[3], const gs_part_input *in,
                               const int32_t *labels, gs_part_job *job);

/* -- pairs that losses on edges are of, to their place in the store: by bucket, checked. */

/* Writes the arrays of links that the input has; info[GS_LINK_SPLITS], whose sums the caller owns, and to *store how
 * many there are of each, and what labels they have. store->edge_types are the graph's. `memory` bounds its buffers.
 * GS_EFORMAT: a pair of no vertices, a type that no edge has, or no label; GS_EBUDGET: a bucket does not fit. */
gs_status gs_part__links_write(gs_part_job *job, const gs_part_input *in, const gs_part_order *o, gs_array_info *info,
                               gs_store_info *store, uint64_t memory);

#endif /* GS_PARTITION_ROWS_H */
