/* input_npy.h - a folder of .npy files as input. */
#ifndef GS_PARTITION_INPUT_NPY_H
#define GS_PARTITION_INPUT_NPY_H

#include <stdint.h>

#include "partition/input_files.h"
#include "partition/job.h"

gs_status gs_part__npy_folder(gs_part_input *in, gs_part_job *job);
/* Checks that the open files of another format fit together. `vertices`, `features`: as stated, or 0. */
gs_status gs_part__files_check(gs_part_input *in, uint64_t vertices, uint64_t features);

#endif /* GS_PARTITION_INPUT_NPY_H */
