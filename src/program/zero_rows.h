/* zero_rows.h - what is left of a stage's vertex program in rows where some of what it reads is 0?
 *
 * The rows that a batch reached last have no in-edges, and gradients flow to few of their arrays: most of what a stage
 * computes there is a sum with 0 or a product by it. What is left is a shorter list of instructions on the same
 * registers, so it runs where the plan has laid these. Its results are those of the whole list, but for the sign of a
 * 0, and for what 0 times an infinity is.
 *
 * Made once a run. Any thread.
 */
#ifndef GS_PROGRAM_ZERO_ROWS_H
#define GS_PROGRAM_ZERO_ROWS_H

#include "program/program.h"

/* What is known of a stage's registers in those rows: [regs] each. */
typedef struct gs_zero_rows {
    const bool *zero;   /* LOAD, SUM: it is 0 */
    const bool *unread; /* TEMP that is stored: nobody reads these rows of its array */
} gs_zero_rows;

/* *out becomes the stage with the instructions that are left, on registers of the same numbers; those that are neither
 * read nor stored any more are scratch. Its edge pass is that of `s`, which must outlive it. `s` has an instruction.
 * read [regs]: what these instructions read. Release *out with gs_stage_drop_rest(). *shorter: anything was left out;
 * if not, *out is untouched. GS_ENOMEM. */
gs_status gs_stage_rest(gs_stage *out, bool *read, bool *shorter, const gs_stage *s, const gs_zero_rows *known);
/* A stage of zeros is allowed. */
void gs_stage_drop_rest(gs_stage *left);

#endif /* GS_PROGRAM_ZERO_ROWS_H */
