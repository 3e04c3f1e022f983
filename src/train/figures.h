/* figures.h - what a task is judged by, from what a pass added up. */
#ifndef GS_TRAIN_FIGURES_H
#define GS_TRAIN_FIGURES_H

#include "exec/exec.h"
#include "gnnstream.h" /* gs_task_figures */
#include "session/learned.h"

/* All NaN, of this task. */
void gs_figures_none(gs_task_figures *out, const gs_session_labels *l);
/* All but the two areas; `m` has columns where the task is not classify. */
void gs_figures_of(gs_task_figures *out, const gs_session_labels *l, const gs_metrics *m);
/* Mean loss; NaN where nothing was learned from. */
double gs_figures_loss(const gs_session_labels *l, const gs_metrics *m);
/* The figure of validation by which epochs are compared; more is better. */
double gs_figures_judge(const gs_task_figures *f, const double accuracy[3]);

#endif /* GS_TRAIN_FIGURES_H */
