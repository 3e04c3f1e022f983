/* input_graphbolt.h - folders of DGL's GraphBolt (OnDiskDataset) as input: metadata.yaml says which file is what. */
#ifndef GS_PARTITION_INPUT_GRAPHBOLT_H
#define GS_PARTITION_INPUT_GRAPHBOLT_H

#include <stdbool.h>

#include "partition/input_files.h"

/* Whether the folder has metadata.yaml. */
bool gs_part__graphbolt_looks(const char *path);
gs_status gs_part__graphbolt_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_GRAPHBOLT_H */
