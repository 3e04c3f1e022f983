/* input_ogb.h - the folders of the Open Graph Benchmark (ogbn-*) as input: raw tables, packed, and split folders. */
#ifndef GS_PARTITION_INPUT_OGB_H
#define GS_PARTITION_INPUT_OGB_H

#include <stdbool.h>

#include "partition/input_files.h"

/* Whether the folder has raw/edge.csv or raw/edge.csv.gz. */
bool gs_part__ogb_looks(const char *path);
gs_status gs_part__ogb_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_OGB_H */
