/* input_npz.h - a graph in one .npz file as input: shchur's (amazon_*, ms_academic_*), or arrays by the names of ours
 * or of torch_geometric's Data. */
#ifndef GS_PARTITION_INPUT_NPZ_H
#define GS_PARTITION_INPUT_NPZ_H

#include "partition/input_files.h"

gs_status gs_part__npz_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_NPZ_H */
