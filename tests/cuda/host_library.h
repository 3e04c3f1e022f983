/* host_library.h - host_gpu.h as a library that a program opens in place of libcuda, libnvrtc, libcublas and libnccl.
 *
 * A folder with the library under those names, in LD_LIBRARY_PATH, makes "cuda" of any program the GPU that is the
 * host: what dlopen() finds, which functions are called and what they answer is tested that way, on the programs as
 * they are.
 *
 *   GS_HOST_GPU        folder for compiled kernels; default one under /tmp of this user
 *   GS_HOST_GPU_CUDA   release of the driver and of what is beside it, as cuDriverGetVersion() has it; default 13000
 *   GS_HOST_GPU_FAULT  "memory:N": the N-th allocation finds none left; "kernel:N": the N-th kernel fails while it
 *                      runs, which every later call answers; "lost:N": the N-th call and every later one finds no GPU
 *                      any more; "asked:N": so do the N-th that asks for its free memory and every later call;
 *                      "hang:N": the N-th call never returns, whatever signal but SIGKILL comes; "crash:N": it ends
 *                      the program by SIGSEGV; "peer:N": the N-th copy between GPUs is refused; "pin": no host memory
 *                      can be pinned; "none": there is no GPU. "KIND:N@G": only calls about GPU number G count and
 *                      fail
 *   GS_HOST_GPU_LOG    file that a line of counts is added to when the GPU is given back
 */
#ifndef GS_TESTS_CUDA_HOST_LIBRARY_H
#define GS_TESTS_CUDA_HOST_LIBRARY_H

#include "cuda/driver.h"

enum host_part { HOST_DRIVER, HOST_COMPILER, HOST_BLAS, HOST_NCCL };

const gs_cuda_driver *host_gpu_table(void);
/* What this call answers instead of doing something; 0: it does. */
gs_cu_result host_gpu_before(enum host_part part, const char *symbol);

#endif /* GS_TESTS_CUDA_HOST_LIBRARY_H */
