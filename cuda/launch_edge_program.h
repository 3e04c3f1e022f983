/* launch_edge_program.h - launches of edge programs. */
#ifndef GS_CUDA_LAUNCH_EDGE_PROGRAM_H
#define GS_CUDA_LAUNCH_EDGE_PROGRAM_H

#include "device/device.h"

gs_status gs_cuda_run_edge_program(void *context, const gs_edge_program_launch *l);

#endif /* GS_CUDA_LAUNCH_EDGE_PROGRAM_H */
