/* measure.h - ceilings of a GPU. */
#ifndef GS_CUDA_MEASURE_H
#define GS_CUDA_MEASURE_H

#include <stdint.h>

#include "base/status.h"

gs_status gs_cuda_measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
gs_status gs_cuda_measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second);
gs_status gs_cuda_measure_copy(void *context, double *bytes_per_second);

#endif /* GS_CUDA_MEASURE_H */
