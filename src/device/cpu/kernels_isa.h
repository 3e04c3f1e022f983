/* kernels_isa.h - the kernels of the instruction set that this file is being
 * compiled for; meanings stand in kernels.h. Only kernels_*.c include it. */
#ifndef GS_DEVICE_CPU_KERNELS_ISA_H
#define GS_DEVICE_CPU_KERNELS_ISA_H

#include "device/cpu/kernels.h"
#include "device/cpu/simd.h"

/* Vectors of a row that are in registers at once: half of AVX2's registers, whose other half is for rows on their way.
 * Each number of them is code of its own, which is most of what takes long to compile: with GS_FEW_VECTORS, for checks
 * of what is one text for all of them (meson.build), there are fewer, and wider rows are in more blocks. */
#ifdef GS_FEW_VECTORS
#define GS_MOST_VECTORS 3
#define GS_BY_MORE_VECTORS(CALL)
#else
#define GS_MOST_VECTORS 8
#define GS_BY_MORE_VECTORS(CALL) \
    case 4: CALL(4); break;      \
    case 5: CALL(5); break;      \
    case 6: CALL(6); break;      \
    case 7: CALL(7); break;      \
    case 8: CALL(8); break;
#endif

/* CALL(n), n a constant: the vectors that cover so many columns, 1 to GS_MOST_VECTORS. */
#define GS_BY_VECTORS(columns, CALL)                    \
    switch (((columns) + GS_LANES - 1) / GS_LANES) {    \
    case 1: CALL(1); break;                             \
    case 2: CALL(2); break;                             \
    case 3: CALL(3); break;                             \
    GS_BY_MORE_VECTORS(CALL)                            \
    default: break;                                     \
    }

/* Those of the table, as it has them. */
#define X(name) __typeof__(*((gs_cpu_kernels *)0)->name) GS_KERNEL(name);
GS_CPU_KERNELS(X)
#undef X
#define X(id, name, task, is) void GS_KERNEL(name)(const gs_cpu_loss *x, gs_metrics *m);
GS_LOSS_MAP(X)
#undef X

/* What they call in other files. */
extern const uint32_t GS_KERNEL(row_numbers)[GS_CPU_TILE_EDGES];
/* dst[rows, width] = rows of bfloat16. */
void GS_KERNEL(widen)(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t width);
void GS_KERNEL(edge_rows)(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work); /* a plan with `only_rows` */
void GS_KERNEL(edge_sum)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s);    /* a step of kind SUM */
void GS_KERNEL(edge_sums)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s);   /* that and its links */
void GS_KERNEL(edge_dots)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s);   /* FOLD with a sum as its link */
void GS_KERNEL(edge_sum_type)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s); /* SUM_TYPE */
void GS_KERNEL(edge_by_type)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s); /* BY_TYPE */
void GS_KERNEL(edge_attend)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s); /* ATTEND */
void GS_KERNEL(edge_mask)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s);   /* MASK */

extern const gs_cpu_kernels GS_KERNEL(kernels);

#endif /* GS_DEVICE_CPU_KERNELS_ISA_H */
