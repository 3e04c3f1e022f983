/* run_pairs.h - a run of pairs of vertices (.task "link").
 *
 * Rows of vertices are a table, which batches of pairs learn step by step; or what the last of a model's layers gives:
 * then an epoch's batches leave the gradient of these rows, and one step is made of all. The session has the rows, and
 * the decoder's rows of types as a parameter beside the model's.
 */
#ifndef GS_TRAIN_RUN_PAIRS_H
#define GS_TRAIN_RUN_PAIRS_H

#include "batch/batches.h"
#include "gnnstream.h"
#include "pairs/pair_batch.h"
#include "pairs/pair_step.h"
#include "pairs/pair_rank.h"
#include "program/program.h"
#include "session/session.h"

typedef struct gs_run gs_run;
typedef struct gs_run_pairs gs_run_pairs;

/* What of the options does not go with pairs. GS_EINVAL, GS_EUNSUPPORTED name the field. */
gs_status gs_run_pairs_check(const gs_train_options *o);
/* Are labels of edges learned? */
bool gs_run_pairs_have_labels(const gs_train_options *o);
/* Are they the seeds of batches of neighbours? */
bool gs_run_pairs_are_seeds(const gs_train_options *o);
/* Is the model without layers: "embedding", by that name or as weights have it? */
gs_status gs_run_pairs_are_rows_alone(bool *out, const gs_train_options *o);
/* The decoder's parameters for a store: how many there are. */
#define GS_PAIR_PARAMS 5u /* at most */
uint32_t gs_run_pairs_params(gs_param out[GS_PAIR_PARAMS], const gs_store *store, const gs_train_options *o);
/* Takes all memory. `store` stays open as long. GS_ENOTFOUND, GS_EINVAL, GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks while it
 * reads where pairs are. */
gs_status gs_run_pairs_open(gs_run_pairs **out, const gs_store *store, const gs_train_options *o, bool rows_alone);
void gs_run_pairs_close(gs_run_pairs *p); /* NULL is allowed */
GS_ENDS_BY(gs_run_pairs, gs_run_pairs_close)
uint64_t gs_run_pairs_bytes(const gs_run_pairs *p);
/* Of seeds: they, whose order no one else asks for while batches are drawn of them; and the loss of these batches. */
gs_seed_source gs_run_pairs_seeds(gs_run_pairs *p);
gs_batch_loss gs_run_pairs_loss(gs_run_pairs *p, uint32_t device); /* by the number of the device that trains them */
/* Logits of a pair with a label, of a run or as .edges will have them; 0: pairs have scores. */
uint32_t gs_run_pairs_columns(const gs_store *store, const gs_train_options *o);

/* Of a prediction with .edges: host memory that scoring them takes. Errors as gs_run_pairs_open(). */
gs_status gs_run_pairs_score_bytes(uint64_t *out, const gs_store *store, const gs_train_options *o);
/* Scores .edges by the weights as they are, gives the logits or numbers of their labels, or finds the .top best targets
 * of these sources, into the run's files. GS_EFORMAT: what is in the file is no pair. */
gs_status gs_run_pairs_score(gs_run *r);

/* Any thread: how many of an epoch's batches are done. False: none are at work, or `p` is NULL. */
bool gs_run_pairs_progress(const gs_run_pairs *p, gs_progress *out);
/* Is an epoch a step for each batch of pairs? NULL: there are none. */
bool gs_run_pairs_step_by_batch(const gs_run_pairs *p);
/* The batches of epoch e->epoch from r->part.batches on, as gs_run_batches_epoch() has it. */
gs_status gs_run_pairs_epoch(gs_run *r, gs_epoch_report *e);
/* Of a session that was planned for ranks, and pairs behind layers: bytes that batches of the first epoch move between
 * ranks, rows, their gradients and those of the decoder; else 0. GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks while it reads
 * pairs. */
gs_status gs_run_pairs_sent(uint64_t *out, gs_session *s);
/* Of layers: e->loss of all pairs, and the gradients of all that is learned. Adds to `e` what it took but for the pass
 * "train", which is in `x`. GS_EINTERRUPTED, GS_EIO; GS_EDEVICE: the loss is not finite. */
gs_status gs_run_pairs_differentiate(gs_run *r, gs_epoch_report *e, gs_exec_stats *x);
/* Figures of validation and test pairs; of labels those of training, too, and *loss, their mean loss, else NaN. Layers
 * leave their rows, as r->has_logits says. */
gs_status gs_run_pairs_evaluate(gs_run *r, uint32_t epoch, gs_task_figures *out, double accuracy[3], double *loss,
                                gs_exec_stats *x);

/* -- what decoders and rows are, for those that train on pairs and those that score them. */

/* Of scores. */
gs_pair_rank_options gs_run_pairs__rank_options(const gs_store *store, const gs_train_options *o);
/* Of labels, but for the sizes of batches. */
gs_label_step_options gs_run_pairs__label_options(const gs_store *store, const gs_train_options *o);
/* What the decoder has among a session's parameters, or their gradients. */
gs_decoder_values gs_run_pairs__values(const gs_session *s, float *const *of);
/* Rows that pairs are judged by. */
gs_pair_rows gs_run_pairs__rows(gs_run *r);

#endif /* GS_TRAIN_RUN_PAIRS_H */
