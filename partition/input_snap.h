/* input_snap.h - SNAP edge lists as input: parsed into a temporary file of edges. */
#ifndef GS_PARTITION_INPUT_SNAP_H
#define GS_PARTITION_INPUT_SNAP_H

#include "partition/input_files.h"

gs_status gs_part__snap_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_SNAP_H */
