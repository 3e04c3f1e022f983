/* kernels_isa.h - the kernels of the instruction set that this file is being
 * compiled for; meanings stand in kernels.h. Only kernels_*.c include it. */
#ifndef GS_DEVICE_CPU_KERNELS_ISA_H
#define GS_DEVICE_CPU_KERNELS_ISA_H

#include "device/cpu/kernels.h"
#include "device/cpu/simd.h"

/* CALL(n), n a constant: the vectors that cover so many columns, 1 to 8. */
#define GS_BY_VECTORS(columns, CALL)                    \
    switch (((columns) + GS_LANES - 1) / GS_LANES) {    \
    case 1: CALL(1); break;                             \
    case 2: CALL(2); break;                             \
    case 3: CALL(3); break;                             \
    case 4: CALL(4); break;                             \
    case 5: CALL(5); break;                             \
    case 6: CALL(6); break;                             \
    case 7: CALL(7); break;                             \
    case 8: CALL(8); break;                             \
    default: break;                                     \
    }

void GS_KERNEL(binary)(gs_op op, float *dst, gs_cpu_operand a, gs_cpu_operand b, uint32_t rows, uint32_t width);
void GS_KERNEL(ternary)(gs_op op, float *dst, const gs_cpu_operand *operand, uint32_t rows, uint32_t width);
void GS_KERNEL(unary)(gs_op op, float *dst, const float *a, size_t n, float alpha);
void GS_KERNEL(rowsum)(float *dst, const float *a, uint32_t rows, uint32_t width);
void GS_KERNEL(rowmax)(float *dst, const float *a, uint32_t rows, uint32_t width);
void GS_KERNEL(colsum)(float *acc, const float *a, uint32_t rows, uint32_t width);
void GS_KERNEL(moments)(double *sums, bool squares, const float *a, uint32_t rows, uint32_t width);
extern const uint32_t GS_KERNEL(row_numbers)[GS_CPU_TILE_EDGES];
void GS_KERNEL(fold)(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t rows, uint32_t groups,
                     uint32_t each);
void GS_KERNEL(expand)(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t groups, uint32_t each);
/* dst[rows, width] = rows of bfloat16. */
void GS_KERNEL(widen)(float *dst, const gs_cpu_rows *a, uint32_t rows, uint32_t width);
void GS_KERNEL(mix)(float *dst, const float *a, const gs_cpu_mix *m, uint32_t rows);
void GS_KERNEL(mix_outer)(float *sum, const float *a, const float *b, uint32_t rows, uint32_t m, uint32_t n,
                          uint32_t each);
void GS_KERNEL(cast)(float *dst, const void *src, gs_dtype from, size_t n);
void GS_KERNEL(round)(uint16_t *dst, const float *src, size_t n);
void GS_KERNEL(dropout)(const gs_cpu_dropout *d, float *dst, const float *src, const uint32_t *id, uint32_t rows,
                        uint32_t width);
void GS_KERNEL(mask)(const gs_cpu_dropout *d, float *dst, const gs_cpu_draws *w, uint32_t rows, uint32_t width);
void GS_KERNEL(xent)(const gs_cpu_loss *x, gs_metrics *m);
void GS_KERNEL(bce)(const gs_cpu_loss *x, gs_metrics *m);
void GS_KERNEL(mse)(const gs_cpu_loss *x, gs_metrics *m);
void GS_KERNEL(edges)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns);
void GS_KERNEL(add_own)(const gs_own_launch *l, uint64_t first, uint64_t end);
void GS_KERNEL(typed)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns);
void GS_KERNEL(edge_program)(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work);
void GS_KERNEL(edge_rows)(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work); /* a plan with `only_rows` */
void GS_KERNEL(edge_sum)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s);    /* a step of kind SUM */
void GS_KERNEL(edge_sum_type)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s); /* SUM_TYPE */
void GS_KERNEL(edge_by_type)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s); /* BY_TYPE */
void GS_KERNEL(outer)(float *sum, const float *a, uint32_t a_stride, const float *b, uint32_t rows, uint32_t in,
                      uint32_t out);
void GS_KERNEL(edge_attend)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s); /* ATTEND */
void GS_KERNEL(edge_mask)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s);   /* MASK */
void GS_KERNEL(finish_attend)(const gs_accumulator *sum, uint32_t rows, uint32_t width, uint32_t heads);
void GS_KERNEL(lstm_step)(float *gate, const float *before, float *cell, float *state, uint32_t rows, uint32_t width);
void GS_KERNEL(lstm_back)(float *gate, const float *before, const float *cell, const float *d_state, float *d_cell,
                          uint32_t rows, uint32_t width);
void GS_KERNEL(add)(float *acc, const float *src, size_t n);
void GS_KERNEL(add_rows)(float *acc, const float *src, uint64_t stride, uint32_t rows, size_t n);
float GS_KERNEL(gather)(const float *table, const uint32_t *index, size_t n, uint32_t width, uint32_t ahead);

extern const gs_cpu_kernels GS_KERNEL(kernels);

#endif /* GS_DEVICE_CPU_KERNELS_ISA_H */
