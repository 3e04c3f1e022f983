/* input_metis.h - METIS graph files as input: a line of neighbours for each vertex. */
#ifndef GS_PARTITION_INPUT_METIS_H
#define GS_PARTITION_INPUT_METIS_H

#include "partition/input_files.h"

gs_status gs_part__metis_read(gs_part_input *in, gs_part_job *job);

#endif /* GS_PARTITION_INPUT_METIS_H */
