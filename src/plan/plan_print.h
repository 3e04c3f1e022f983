/* plan_print.h - a plan as text, for people and for comparing two versions of the planner.
 *
 * One line a task, in the order of the list, then what stays in memory, what is read ahead, and totals. Indices into
 * the plan's own lists are resolved, so two plans that do the same have the same text.
 */
#ifndef GS_PLAN_PLAN_PRINT_H
#define GS_PLAN_PLAN_PRINT_H

#include <stdio.h>

#include "plan/plan.h"

/* Writes `plan`, which is of `program`, to `out`. Whether all could be written is for the caller to ask of `out`. */
void gs_plan_print(const gs_plan *plan, const gs_program *program, FILE *out);

#endif /* GS_PLAN_PLAN_PRINT_H */
