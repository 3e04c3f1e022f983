/* labels.h - which task the labels are of; the class and the split of every vertex.
 *
 * Arrays are [vertices] in input order, checked; free with gs_free(). */
#ifndef GS_PARTITION_LABELS_H
#define GS_PARTITION_LABELS_H

#include <stdint.h>

#include "partition/input_files.h"

/* Sets in->task and in->classes. One class a vertex: *labels has them, -1 for none. Else it says which vertices have
 * any label (0; -1: none), and the rows themselves stay in the file. Untouched where nothing is labelled. */
gs_status gs_part__labels_load(int32_t **labels, gs_part_input *in, gs_part_job *job);
gs_status gs_part__splits_load(uint8_t **split, uint64_t count[3], const gs_part_input *in,
                               const int32_t *labels, gs_part_job *job);

#endif /* GS_PARTITION_LABELS_H */
