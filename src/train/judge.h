/* judge.h - which figure of validation says which weights are better, and what would a constant answer have of it?
 *
 * A task's own (docs/api.md says why): the loss of classes and of several labels, the squared error of numbers.
 */
#ifndef GS_TRAIN_JUDGE_H
#define GS_TRAIN_JUDGE_H

#include <stdbool.h>

#include "base/status.h"
#include "gnnstream_reports.h" /* gs_task_figures */
#include "session/learned.h"

/* In the order of the words of .keep_by. */
typedef enum gs_judge {
    GS_BY_LOSS,
    GS_BY_ACCURACY,
    GS_BY_BALANCED, /* the mean of the classes' accuracies */
    GS_BY_F1,       /* macro */
    GS_BY_MICRO_F1,
    GS_BY_AUC,
    GS_BY_AP,
    GS_BY_MSE,
    GS_BY_MAE,
    GS_BY_R2,
    GS_JUDGES
} gs_judge;

const char *gs_judge_name(gs_judge j);
/* NULL: the task's own. GS_EINVAL: there is none of that name, or the task has none such. */
gs_status gs_judge_find(gs_judge *out, const char *name, gs_train_task task);
/* Does it need the logits of a whole split in order? `name` may be NULL, or of none. */
bool gs_judge_ranks(const char *name);
/* The judge of validation that is shown; NaN where it was not evaluated. */
double gs_judge_figure(gs_judge j, const gs_task_figures *f, const double accuracy[3]);
/* The same where more is better. */
double gs_judge_worth(gs_judge j, double figure);

#endif /* GS_TRAIN_JUDGE_H */
