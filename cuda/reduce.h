/* reduce.h - sums over the devices of a run. */
#ifndef GS_CUDA_REDUCE_H
#define GS_CUDA_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

gs_status gs_cuda_all_reduce(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64);

#endif /* GS_CUDA_REDUCE_H */
