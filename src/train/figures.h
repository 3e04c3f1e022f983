/* figures.h - what a task is judged by, from what a pass added up. */
#ifndef GS_TRAIN_FIGURES_H
#define GS_TRAIN_FIGURES_H

#include "exec/exec.h"
#include "gnnstream_reports.h" /* gs_task_figures */
#include "session/learned.h"
#include "train/judge.h"

/* All NaN, of this task. */
void gs_figures_none(gs_task_figures *out, const gs_session_labels *l);
/* All but the two areas; `m` has classes where the task is classify, else columns. */
void gs_figures_of(gs_task_figures *out, const gs_session_labels *l, const gs_metrics *m);
/* What a constant answer has of a figure of validation, the best one to the training labels: the most frequent class,
 * all labels there, the mean number, or, by loss, their shares. `m`: of an evaluation. NaN where there is none. */
double gs_figures_constant(gs_judge by, const gs_session_labels *l, const gs_metrics *m, double smoothing);
/* Mean loss; NaN where nothing was learned from. */
double gs_figures_loss(const gs_session_labels *l, const gs_metrics *m);

#endif /* GS_TRAIN_FIGURES_H */
