/* pass.h - what a pass brings to the device and takes back. */
#ifndef GS_CUDA_PASS_H
#define GS_CUDA_PASS_H

#include "cuda/driver.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

gs_status gs_cuda_begin_pass(void *context, const gs_device_pass *pass);
gs_status gs_cuda_end_pass(void *context);
gs_status gs_cuda_finish_statistic(void *context, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                   uint64_t rows);
/* Where gradients (or sums of a statistic) of the pass are that come back to `host`; 0: nowhere. */
gs_cu_memory gs_cuda_part(const gs_cuda *c, const void *host);

#endif /* GS_CUDA_PASS_H */
