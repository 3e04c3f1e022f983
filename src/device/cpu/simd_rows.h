/* simd_rows.h - rows of numbers that lie anywhere, one an edge.
 *
 * Included by kernel files only, as simd.h says.
 */
#ifndef GS_DEVICE_CPU_SIMD_ROWS_H
#define GS_DEVICE_CPU_SIMD_ROWS_H

#include "device/cpu/edge_plan.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd.h"
#include "device/cpu/simd_operand.h"

/* A vector of the row at x, from column `at` on. */
#define GS_OF_LANES_JOIN(lanes) gs_v##lanes##_load_bf16
#define GS_OF_LANES(lanes) GS_OF_LANES_JOIN(lanes)
GS_INLINE gs_vf gs_load_row(const float *x, size_t at, const bool half)
{
    return half ? GS_OF_LANES(GS_LANES)((const uint16_t *)(const void *)x + at) : gs_load(x + at);
}

GS_INLINE const float *gs_row(const gs_cpu_rows *r, size_t e) { return r->p + (size_t)r->at[e] * r->stride; }

/* The numbers 0, 1, 2, ...: rows that lie one after the other. */
GS_INLINE gs_cpu_rows gs_rows_in_order(const float *p, uint32_t width)
{
    return (gs_cpu_rows){.p = p, .at = GS_KERNEL(row_numbers), .stride = width};
}

GS_INLINE float *gs_slot(const gs_cpu_edge_frame *f, uint32_t slot)
{
    return f->work->scratch + f->plan->slot[slot].offset * f->plan->tile;
}

GS_INLINE size_t gs_row_floats(const gs_cpu_edge_value *v) { return v->half ? v->width / 2 : v->width; }

GS_INLINE gs_cpu_rows gs_value_rows(const gs_cpu_edge_frame *f, const gs_cpu_edge_value *v)
{
    switch (v->form) {
    case GS_CPU_EDGE_SLOT:
        return gs_rows_in_order(gs_slot(f, v->slot), v->width);
    case GS_CPU_EDGE_OPERAND:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->operand, .stride = gs_row_floats(v), .half = v->half};
    case GS_CPU_EDGE_TARGET:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->target, .stride = gs_row_floats(v), .half = v->half};
    case GS_CPU_EDGE_OPERAND_TYPE:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->operand_type, .stride = v->width};
    case GS_CPU_EDGE_TARGET_TYPE:
        return (gs_cpu_rows){.p = v->p, .at = f->tile->target_type, .stride = v->width};
    case GS_CPU_EDGE_WEIGHT:
        return gs_rows_in_order(v->p + f->tile->edge, 1);
    default:
        return (gs_cpu_rows){.p = v->p, .at = GS_KERNEL(row_numbers), .stride = 0};
    }
}

#endif /* GS_DEVICE_CPU_SIMD_ROWS_H */
