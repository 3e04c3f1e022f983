/* The table of one instruction set. */
#include "device/cpu_kernels_isa.h"

#if GS_LANES == 16
#define ISA_TITLE "AVX-512"
#elif GS_LANES == 8
#define ISA_TITLE "AVX2"
#else
#define ISA_TITLE "generic"
#endif

const gs_cpu_kernels GS_KERNEL(kernels) = {
    .name = ISA_TITLE,
    .binary = GS_KERNEL(binary),
    .unary = GS_KERNEL(unary),
    .rowsum = GS_KERNEL(rowsum),
    .colsum = GS_KERNEL(colsum),
    .cast = GS_KERNEL(cast),
    .dropout = GS_KERNEL(dropout),
    .xent = GS_KERNEL(xent),
    .edges = GS_KERNEL(edges),
    .add = GS_KERNEL(add),
    .gather = GS_KERNEL(gather),
};
