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
    .binary = GS_KERNEL(binary),
    .ternary = GS_KERNEL(ternary),
    .unary = GS_KERNEL(unary),
    .rowsum = GS_KERNEL(rowsum),
    .rowmax = GS_KERNEL(rowmax),
    .colsum = GS_KERNEL(colsum),
    .moments = GS_KERNEL(moments),
    .fold = GS_KERNEL(fold),
    .expand = GS_KERNEL(expand),
    .mix = GS_KERNEL(mix),
    .mix_outer = GS_KERNEL(mix_outer),
    .cast = GS_KERNEL(cast),
    .round = GS_KERNEL(round),
    .dropout = GS_KERNEL(dropout),
    .mask = GS_KERNEL(mask),
    .xent = GS_KERNEL(xent),
    .bce = GS_KERNEL(bce),
    .mse = GS_KERNEL(mse),
    .edges = GS_KERNEL(edges),
    .typed = GS_KERNEL(typed),
    .edge_program = GS_KERNEL(edge_program),
    .outer = GS_KERNEL(outer),
    .finish_attend = GS_KERNEL(finish_attend),
    .lstm_step = GS_KERNEL(lstm_step),
    .lstm_back = GS_KERNEL(lstm_back),
    .add = GS_KERNEL(add),
    .add_own = GS_KERNEL(add_own),
    .add_rows = GS_KERNEL(add_rows),
    .gather = GS_KERNEL(gather),
};
