/* labels.h - which task the labels are of; the class and the split of every vertex.
 *
 * Arrays are [vertices] in input order, checked; free with gs_free(). */
#ifndef GS_PARTITION_LABELS_H
#define GS_PARTITION_LABELS_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"

/* -- which vertices are for training, validation and test, drawn from the seed where an input does not say.
 */

/* Three shares, "0.6,0.2,0.2", each 0 or more, together at most 1. GS_EINVAL. */
gs_status gs_part__split_shares(double share[3], const char *text);
/* job->opt->split of the vertices that have a label, or of all where there are no labels, to the vertex. Depends on
 * seed and input ids alone. `split` is the caller's to free. */
gs_status gs_part__split_draw(uint8_t **split, uint64_t count[3], const gs_part_input *in, const int32_t *labels,
                              const gs_part_job *job);

/* -- labels that are rows: several truth values a vertex, or numbers. */

/* Reads all rows of in->label and refuses what is no label of in->task. *known: 0 for vertices of which a label is
 * known, -1 for the others; [vertices], the caller's; untouched where none is. Sets in->classes, the columns. */
gs_status gs_part__label_rows(int32_t **known, gs_part_input *in, gs_part_job *job);
/* One row of labels as the store has them, of numbers that gs_part__label_rows() has seen. */
void gs_part__label_in_store(void *dst, gs_train_task task, const float *row, uint32_t columns);

/* Sets in->task and in->classes. One class a vertex: *labels has them, -1 for none. Else it says which vertices have
 * any label (0; -1: none), and the rows themselves stay in the file. Untouched where nothing is labelled. */
gs_status gs_part__labels_load(int32_t **labels, gs_part_input *in, gs_part_job *job);
gs_status gs_part__splits_load(uint8_t **split, uint64_t count[3], const gs_part_input *in,
                               const int32_t *labels, gs_part_job *job);

#endif /* GS_PARTITION_LABELS_H */
