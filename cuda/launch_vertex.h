/* launch_vertex.h - vertex programs, and products. */
#ifndef GS_CUDA_LAUNCH_VERTEX_H
#define GS_CUDA_LAUNCH_VERTEX_H

#include "cuda/driver.h"
#include "device/device.h"

typedef struct gs_cuda gs_cuda;

#define GS_CUDA_COLSUM_PARTS 128u
#define GS_CUDA_LOSS_PARTS 512u

gs_status gs_cuda_run_vertex(void *context, const gs_vertex_launch *l);
/* Row-major to[m, n] = A[m, k] B[k, n] + beta * to. `ta`, `tb`: A and B are stored the other way, with rows of lda and
 * ldb. */
gs_status gs_cuda_multiply(gs_cuda *c, bool ta, bool tb, uint32_t m, uint32_t n, uint32_t k, gs_cu_memory a,
                           uint32_t lda, gs_cu_memory b, uint32_t ldb, float beta, gs_cu_memory to);

#endif /* GS_CUDA_LAUNCH_VERTEX_H */
