/* gpu_params.h - parameters that stay on the device for a run, and those of a pass. */
#ifndef GS_CUDA_GPU_PARAMS_H
#define GS_CUDA_GPU_PARAMS_H

#include "cuda/driver.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

gs_status gs_cuda_keep_params(void *context, const float *const *param, uint32_t states);
gs_status gs_cuda_gradient_norm(void *context, double *out);
gs_status gs_cuda_step(void *context, const gs_update *u);
gs_status gs_cuda_fetch_params(void *context, float *const *param);
gs_status gs_cuda_fetch_state(void *context, uint32_t run, float *const *state);
gs_status gs_cuda_put_state(void *context, uint32_t run, const float *const *state);
gs_status gs_cuda_fetch_previous(void *context, float *const *param);
bool gs_cuda_stepped_well(const void *context);
void gs_cuda_leave_params(void *context);
/* Gives back what the run kept. */
void gs_cuda_drop_params(gs_cuda *c);

gs_status gs_cuda_begin_pass(void *context, const gs_device_pass *pass);
gs_status gs_cuda_end_pass(void *context);
gs_status gs_cuda_finish_statistic(void *context, gs_statistic kind, float *dst, const double *sums, uint32_t cols,
                                   uint64_t rows);
/* Where gradients (or sums of a statistic) of the pass are that come back to `host`; 0: nowhere. */
gs_cu_memory gs_cuda_part(const gs_cuda *c, const void *host);

#endif /* GS_CUDA_GPU_PARAMS_H */
