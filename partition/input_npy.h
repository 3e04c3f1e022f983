/* input_npy.h - a folder of .npy files as input. */
#ifndef GS_PARTITION_INPUT_NPY_H
#define GS_PARTITION_INPUT_NPY_H

#include "partition/edge_batch.h"

gs_status gs_part__npy_folder(gs_part_input *in, gs_part_job *job);
/* Edges [first, first + count), checked. */
gs_status gs_part__npy_edges(const gs_part_input *in, gs_part_batch *b, uint64_t first, uint64_t count);
/* Of another format, when its files are open: do they fit together? `vertices`: that are stated, or 0. */
gs_status gs_part__files_check(gs_part_input *in, uint64_t vertices);

#endif /* GS_PARTITION_INPUT_NPY_H */
