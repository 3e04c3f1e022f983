/* input_csv.h - edge lists of columns (CSV, TSV) as input: which column is what, by the names in the header. */
#ifndef GS_PARTITION_INPUT_CSV_H
#define GS_PARTITION_INPUT_CSV_H

#include <stdbool.h>

#include "partition/input_files.h"

/* Whether the first line of a text that is no comment is that of such a file. */
bool gs_part__csv_looks(const char *line);
gs_status gs_part__csv_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_CSV_H */
