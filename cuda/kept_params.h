/* kept_params.h - parameters that stay on the device for a run, and the optimiser's step. */
#ifndef GS_CUDA_KEPT_PARAMS_H
#define GS_CUDA_KEPT_PARAMS_H

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
/* The word that a step sets. */
gs_cu_memory gs_cuda_step_fault(const gs_cuda *c);
/* Gives back what the run kept. */
void gs_cuda_drop_params(gs_cuda *c);

#endif /* GS_CUDA_KEPT_PARAMS_H */
