/* launch_small.h - launches that every program has. */
#ifndef GS_CUDA_LAUNCH_SMALL_H
#define GS_CUDA_LAUNCH_SMALL_H

#include "device/device.h"

gs_status gs_cuda_add_own(void *context, const gs_own_launch *l);
gs_status gs_cuda_copy(void *context, void *to, const void *from, uint64_t bytes);
gs_status gs_cuda_pick_rows(void *context, const gs_pick_launch *l);
gs_status gs_cuda_zero(void *context, void *memory, uint64_t bytes);
gs_status gs_cuda_begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                            uint32_t heads);
gs_status gs_cuda_finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                             uint32_t width, uint32_t heads);

#endif /* GS_CUDA_LAUNCH_SMALL_H */
