/* reduce.h - sums over the devices of a run. */
#ifndef GS_CUDA_REDUCE_H
#define GS_CUDA_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

/* By NCCL? */
bool gs_cuda_sums_alone(const void *context);
gs_status gs_cuda_all_reduce(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64);
gs_status gs_cuda_fetch_part(void *context, void *part, uint64_t bytes);
gs_status gs_cuda_put_part(void *context, const void *part, uint64_t bytes);

#endif /* GS_CUDA_REDUCE_H */
