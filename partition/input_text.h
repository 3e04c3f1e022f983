/* input_text.h - SNAP edge lists and MatrixMarket files as input: parsed into a temporary file of edges. */
#ifndef GS_PARTITION_INPUT_TEXT_H
#define GS_PARTITION_INPUT_TEXT_H

#include "partition/input_files.h"

gs_status gs_part__snap_read(gs_part_input *in, gs_part_job *job);
gs_status gs_part__mtx_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_TEXT_H */
