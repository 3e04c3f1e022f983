/* run_pairs_internal.h - what decoders and rows are, for those that train on pairs and those that score them. */
#ifndef GS_TRAIN_RUN_PAIRS_INTERNAL_H
#define GS_TRAIN_RUN_PAIRS_INTERNAL_H

#include "gnnstream.h"
#include "pairs/label_step.h"
#include "pairs/pair_rank.h"
#include "session/session.h"

/* Of scores. */
gs_pair_rank_options gs_run_pairs__rank_options(const gs_store *store, const gs_train_options *o);
/* Of labels, but for the sizes of batches. */
gs_label_step_options gs_run_pairs__label_options(const gs_store *store, const gs_train_options *o);
/* What the decoder has among a session's parameters, or their gradients. */
gs_decoder_values gs_run_pairs__values(const gs_session *s, float *const *of);
/* Rows that pairs are judged by. */
gs_pair_rows gs_run_pairs__rows(gs_session *s);

#endif /* GS_TRAIN_RUN_PAIRS_INTERNAL_H */
