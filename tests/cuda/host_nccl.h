/* host_nccl.h - NCCL's part of host_gpu.h: a sum over GPUs is work in the stream of the first, which the others'
 * streams are waited for and wait for. Takes every GPU once, as NCCL does. */
#ifndef GS_TESTS_CUDA_HOST_NCCL_H
#define GS_TESTS_CUDA_HOST_NCCL_H

#include "cuda/driver.h"

void host_nccl_fill(gs_cuda_driver *table);

#endif /* GS_TESTS_CUDA_HOST_NCCL_H */
