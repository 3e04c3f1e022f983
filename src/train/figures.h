/* figures.h - what a task is judged by, from what a pass added up. */
#ifndef GS_TRAIN_FIGURES_H
#define GS_TRAIN_FIGURES_H

#include "base/status.h"
#include "gnnstream_reports.h" /* gs_task_figures */
#include "session/learned.h"
#include "session/session.h"
#include "train/control.h"

/* All NaN, of this task. */
void gs_figures_none(gs_task_figures *out, const gs_session_labels *l);
/* All but the two areas; `m` has classes where the task is classify, else columns. */
void gs_figures_of(gs_task_figures *out, const gs_session_labels *l, const gs_metrics *m);
/* What a constant answer has of a figure of validation, the best one to the training labels: the most frequent class,
 * all labels there, the mean number, or, by loss, their shares. `m`: of an evaluation. NaN where there is none. */
double gs_figures_constant(gs_judge by, const gs_session_labels *l, const gs_metrics *m, double smoothing);
/* Mean loss; NaN where nothing was learned from. */
double gs_figures_loss(const gs_session_labels *l, const gs_metrics *m);

/* How well do logits order the vertices of each label? Areas under curves, exact, in bounded memory. */

/* Macro averages over the labels, as scikit-learn's roc_auc_score and average_precision_score; of train, valid, test;
 * of classes each against the rest, by its probability. A label that all or none of a split's vertices have has no area
 * under the ROC curve and is left out of its mean; an average precision of no positives is 0. NaN: nothing to average.
 */
typedef struct gs_ranks {
    double roc_auc[GS_LOSS_SPLITS], average_precision[GS_LOSS_SPLITS];
} gs_ranks;

/* Ranks the logits that the pass "predict" stored last. Uses at most s->memory.ranking; reads labels and logits as
 * often as it takes. GS_EIO, GS_EFORMAT, GS_ENOMEM, GS_EINTERRUPTED. */
gs_status gs_rank_logits(gs_ranks *out, gs_session *s);

#endif /* GS_TRAIN_FIGURES_H */
