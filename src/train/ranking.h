/* ranking.h - how well do logits order the vertices of each label? Areas under curves, exact, in bounded memory. */
#ifndef GS_TRAIN_RANKING_H
#define GS_TRAIN_RANKING_H

#include <stdint.h>

#include "base/status.h"
#include "session/session.h"

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

#endif /* GS_TRAIN_RANKING_H */
