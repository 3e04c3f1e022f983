/* isa.h - which kernels this CPU may run. */
#ifndef GS_DEVICE_CPU_ISA_H
#define GS_DEVICE_CPU_ISA_H

#include "device/cpu/kernels.h"

/* The best kernels that this CPU and GS_ISA (generic, avx2, avx512) allow. `note` says, for
 * the device's name, when GS_ISA asked for other ones ("" else). GS_EINVAL for an unknown GS_ISA. */
gs_status gs_cpu__kernels(const gs_cpu_kernels **out, const char **note);

/* Set by a test: opened devices use these. */
extern const gs_cpu_kernels *gs_cpu__test_kernels;

#endif /* GS_DEVICE_CPU_ISA_H */
