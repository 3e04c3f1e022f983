/* input_npy.h - a folder of .npy files as input. */
#ifndef GS_PARTITION_INPUT_NPY_H
#define GS_PARTITION_INPUT_NPY_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"

gs_status gs_part__npy_folder(gs_part_input *in, gs_part_job *job);
/* Of another format, when its files are open: do they fit together? `vertices`, `features`: that are stated, or 0. */
gs_status gs_part__files_check(gs_part_input *in, uint64_t vertices, uint64_t features);

#endif /* GS_PARTITION_INPUT_NPY_H */
