/* gpu_params.h - parameters that stay on the device for a run, and those of a pass. */
#ifndef GS_CUDA_GPU_PARAMS_H
#define GS_CUDA_GPU_PARAMS_H

#include "cuda/driver.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

/* Gives back what the run kept. */
void gs_cuda_drop_params(gs_cuda *c);

/* Where gradients (or sums of a statistic) of the pass are that come back to `host`; 0: nowhere. */
gs_cu_memory gs_cuda_part(const gs_cuda *c, const void *host);

#endif /* GS_CUDA_GPU_PARAMS_H */
