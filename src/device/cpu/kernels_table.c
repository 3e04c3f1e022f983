/* The table of one instruction set. */
#include "device/cpu/kernels_isa.h"

#if GS_LANES == 16
#define ISA_TITLE "AVX-512"
#elif GS_LANES == 8
#define ISA_TITLE "AVX2"
#else
#define ISA_TITLE "generic"
#endif

const gs_cpu_kernels GS_KERNEL(kernels) = {
    .name = ISA_TITLE,
    .lanes = GS_LANES,
    .row_numbers = GS_KERNEL(row_numbers),
#define X(kernel) .kernel = GS_KERNEL(kernel),
    GS_CPU_KERNELS(X)
#undef X
#define X(id, name, task, is) .loss[GS_LOSS_##id] = GS_KERNEL(name),
    GS_LOSS_MAP(X)
#undef X
};
