/* ceilings.h - ceilings of the processors and their memory. */
#ifndef GS_DEVICE_CPU_CEILINGS_H
#define GS_DEVICE_CPU_CEILINGS_H

#include "device/device_table.h"

gs_status gs_cpu__measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second);
gs_status gs_cpu__measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second);
gs_status gs_cpu__measure_copy(void *context, double *bytes_per_second);

#endif /* GS_DEVICE_CPU_CEILINGS_H */
