/* host_gpu.h - GPUs that are none: kernels run on the host, one lane after the other.
 *
 * A driver's table (cuda/driver.h) whose compiler is the host's, whose kernels are functions of a shared library that
 * it makes, and whose memory is the process's, readable and writable only while the driver works on it: a
 * host function that follows a device's address stops the program. Streams and events are those of host_streams.h, GPUs
 * and their memory those of host_memory.h. Threads may call as they do CUDA; they do so one after the other. Not for
 * speed.
 */
#ifndef GS_TESTS_CUDA_HOST_GPU_H
#define GS_TESTS_CUDA_HOST_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"

/* Kernels compiled for the host are kept in `folder`. The table lives until the program ends; asked for
 * again, it is the same, filled anew. */
const gs_cuda_driver *host_gpu_driver(const char *folder);
/* The n-th launch of a kernel from now fails (1: the next); 0: none. */
void host_gpu_fail_launch(unsigned n);
/* Since the last call: kernels launched, allocations, bytes copied to devices, back and between them, sums that NCCL
 * was asked for, and products asked for in fp32, tf32 and bf16. */
typedef struct host_gpu_counts {
    uint64_t launches, allocations, bytes_in, bytes_out, bytes_between, sums, products[3];
    uint64_t pinned_in, pinned_out; /* of bytes_in and bytes_out, from and to registered host memory */
} host_gpu_counts;
host_gpu_counts host_gpu_take_counts(void);
/* Whether tables that are asked for from now on have NCCL; at first they have not. */
void host_gpu_have_nccl(bool have);

#endif /* GS_TESTS_CUDA_HOST_GPU_H */
