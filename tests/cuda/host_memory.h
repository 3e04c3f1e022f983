/* host_memory.h - the GPUs of host_gpu.h as places: contexts, memory, and copies between them.
 *
 *   $GS_HOST_GPUS       how many there are, default 1
 *   $GS_HOST_GPU_PEERS  "none": no GPU reaches another's memory; default: all do, over PCIe; "linked": all do,
 *                       over links of their own
 *   $GS_HOST_GPU_MEMORY  bytes that each has, default 4 GiB
 *   $GS_HOST_GPU_HAS_ALL  set: GPU 0 has all memory that no GPU has, so a library without a GPU's memory plays one with
 *                         (tests/python/pretended_gpu.py)
 *   $GS_HOST_GPU_RESIDENT  bytes of the host's memory that its driver holds from the first context on, default 0
 *   $GS_HOST_GPU_PROCESSORS  that each has, default 1: there is one, but launches are cut, and scratch is measured, by
 *                            the number
 *   $GS_HOST_GPU_SPEED  "unknown": clocks and widths are; default: those of an H200, for that many processors
 *   $GS_HOST_GPU_BUS    where each is plugged in, "0000:17:00.0,0000:65:00.0"; default 0000:10:00.0, 0000:11:00.0, ...
 *
 * Each has memory of its own, which kernels touch that run on it, or on a GPU that was let reach it. What is asked of a
 * GPU must be asked by a thread whose context is that GPU's; a copy from GPU to GPU that was not allowed first ends the
 * program.
 */
#ifndef GS_TESTS_CUDA_HOST_MEMORY_H
#define GS_TESTS_CUDA_HOST_MEMORY_H

#include "host_gpu.h"

#define HOST_GPUS 8 /* most */
enum { HOST_INVALID_CONTEXT = 201, HOST_INVALID_HANDLE = 400 };

extern host_gpu_counts host_counts;

/* The thread's; -1: none. */
int host_current_device(void);
/* Ends the program where these bytes are not that GPU's. */
void host_need_device(gs_cu_memory p, size_t bytes, int device, const char *what);
/* Ends the program where a copy begins in registered memory and ends outside, which CUDA refuses. */
void host_need_whole(const void *p, size_t bytes);
/* Pinned, all of it, so that kernels reach it. */
bool host_is_mapped(const void *p, size_t bytes);
/* The GPUs, one bit each, whose memory kernels of this one touch: itself, and those that it was let reach. */
unsigned host_memory_reach(int device);
/* These GPUs' memory (one bit each) can be read and written from now on, the others' cannot. */
void host_memory_open(unsigned which);
/* Its part of the table. */
void host_memory_fill(gs_cuda_driver *table);

/* The same table for many threads, one call at a time. Made from cuda/driver.h. */
const gs_cuda_driver *host_gpu_locked(const gs_cuda_driver *table);
/* Nobody calls the table in between. */
void host_gpu_lock(void);
void host_gpu_unlock(void);

#endif /* GS_TESTS_CUDA_HOST_MEMORY_H */
