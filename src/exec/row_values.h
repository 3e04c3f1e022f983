/* row_values.h - which operation of a vertex program makes the first number of a row that is not finite?
 *
 * A row is computed once more, in float64 and one number after the other, from what its stage loads and its sums. Only
 * for runs that are looked at (watch.h). */
#ifndef GS_EXEC_ROW_VALUES_H
#define GS_EXEC_ROW_VALUES_H

#include "exec/exec_run.h"

/* Of the task's row `row`, in its tile: into fault->op, .operands and .operand, where an operation has finite operands
 * and a result that is not; left as they are where none is found, or what comes before it is not computed here. `room`:
 * memory for `floats`. Blocks. */
void gs_exec__explain_row(gs_exec *e, gs_exec_device *x, const gs_task *t, uint32_t row, float *room, uint64_t floats,
                          gs_exec_fault *fault);

#endif /* GS_EXEC_ROW_VALUES_H */
