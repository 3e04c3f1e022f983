/* label_rows.h - labels that are rows: several truth values a vertex, or numbers. */
#ifndef GS_PARTITION_LABEL_ROWS_H
#define GS_PARTITION_LABEL_ROWS_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"

/* The task that the file's numbers are labels of, found by reading them. */
gs_status gs_part__label_task(gs_train_task *out, const gs_part_file *f, gs_part_job *job);
/* Reads all rows of in->label and refuses what is no label of in->task. *known: 0 for vertices of which a label is
 * known, -1 for the others; [vertices], the caller's; untouched where none is. Sets in->classes, the columns. */
gs_status gs_part__label_rows(int32_t **known, gs_part_input *in, gs_part_job *job);
/* One row of labels as the store has them, of numbers that gs_part__label_rows() has seen. */
void gs_part__label_in_store(void *dst, gs_train_task task, const float *row, uint32_t columns);

#endif /* GS_PARTITION_LABEL_ROWS_H */
