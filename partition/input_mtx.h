/* input_mtx.h - MatrixMarket files as input: parsed into a temporary file of edges. */
#ifndef GS_PARTITION_INPUT_MTX_H
#define GS_PARTITION_INPUT_MTX_H

#include "partition/input_files.h"

gs_status gs_part__mtx_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_MTX_H */
