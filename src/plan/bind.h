/* bind.h - a plan of many rows meets a graph of fewer: what of each task is there?
 *
 * A batch is bound to a plan of one interval, which has room for the largest: its rows are the first ones of every
 * array, and each stage runs for the first of these. The executor, predictions and the account of memory cut tasks here
 * alike. Pure; any thread.
 */
#ifndef GS_PLAN_BIND_H
#define GS_PLAN_BIND_H

#include "plan/plan.h"

typedef struct gs_binding {
    uint32_t vertices;      /* rows that are there: the first so many of those planned, 1 at least */
    const uint32_t *rows;   /* [stages] for how many, the first ones, a stage runs; NULL: for all that are there */
    const uint32_t *whole;  /* [stages] for how many of these all of the stage is computed, */
    const gs_stage *rest;   /* [stages] and what is computed of the others, on the same registers; NULL: all of it. On
                             * host memory alone */
    const uint32_t *zeroed; /* [arrays] up to which row one becomes 0 behind its stage's `rows`; NULL: none */
} gs_binding;

/* Cuts the task to those of its stage's rows that are there. False: there are none. */
bool gs_task_bind(gs_task *t, const gs_binding *b, const gs_program *p);
/* Rows of a vertex task that is cut, the first ones, for which all of its stage is computed. */
uint32_t gs_task_whole_rows(const gs_task *t, const gs_binding *b);
/* With a stage's first tile, rows behind its own become 0 as far as others read them: bytes [*begin, *end) from the
 * place of register `reg`. False: none. */
bool gs_task_zeroes(uint64_t *begin, uint64_t *end, const gs_task *t, const gs_binding *b, const gs_program *p,
                    uint32_t reg);

#endif /* GS_PLAN_BIND_H */
