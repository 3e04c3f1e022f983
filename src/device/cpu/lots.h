/* lots.h - partial sums of the rows of a vertex launch: how many lots have some of their own, and how large. */
#ifndef GS_DEVICE_CPU_LOTS_H
#define GS_DEVICE_CPU_LOTS_H

#include "device/cpu/cpu.h"

#define GS_CPU_LOTS_LEAST 16u /* where there are as many strips */

/* Lots that a run with `floats` partial sums each may have. */
uint32_t gs_cpu__most_lots(uint64_t floats);
/* Is the gradient small enough, beside so many rows, for each lot to have one of its own? */
bool gs_cpu__outer_is_small(uint32_t out, uint32_t in, uint32_t rows);
/* Floats of a lot's partial sums for an operator into a parameter [rows, cols]: of COLSUM also those of the part that
 * it is busy with, of statistics two doubles a column, of losses what they add up of columns. Even, so that doubles
 * are aligned. */
static inline uint64_t gs_cpu__lot_floats(gs_op op, uint32_t rows, uint32_t cols)
{
    const uint64_t n = (uint64_t)rows * cols;
    if (gs_op_has_column_sums(op))
        return 2 * n * GS_LOSS_SPLITS * GS_LOSS_SUMS;
    return op == GS_OP_COLSUM ? 2 * n : gs_op_is_outer(op) ? n + n % 2 : 4 * n;
}
/* Does it have partial sums? */
static inline bool gs_cpu__has_partial(gs_op op) { return gs_op_into_param(op) || gs_op_has_column_sums(op); }
/* Floats that a launch may need for partial sums of `floats` a lot. */
uint64_t gs_cpu__partial_floats(uint64_t floats);

#endif /* GS_DEVICE_CPU_LOTS_H */
