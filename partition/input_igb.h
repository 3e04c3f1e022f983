/* input_igb.h - the folders of the Illinois Graph Benchmark as input: papers, the citations between them. */
#ifndef GS_PARTITION_INPUT_IGB_H
#define GS_PARTITION_INPUT_IGB_H

#include <stdbool.h>

#include "partition/input_files.h"

/* Whether the folder, or processed/ in it, has paper__cites__paper/edge_index.npy. */
bool gs_part__igb_looks(const char *path);
gs_status gs_part__igb_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_IGB_H */
