/* run_pairs.h - a run of pairs of vertices (.task "link"): an epoch is a step for each batch of pairs.
 *
 * The session has the learned rows of vertices, and the decoder's rows of types as a parameter beside the model's.
 */
#ifndef GS_TRAIN_RUN_PAIRS_H
#define GS_TRAIN_RUN_PAIRS_H

#include "base/outfile.h"
#include "gnnstream.h"
#include "program/program.h"
#include "session/session.h"

typedef struct gs_run gs_run;
typedef struct gs_run_pairs gs_run_pairs;

/* What of the options does not go with pairs. GS_EINVAL, GS_EUNSUPPORTED name the field. */
gs_status gs_run_pairs_check(const gs_train_options *o);
/* The decoder's parameter for a store; false: it has none. */
bool gs_run_pairs_param(gs_param *out, const gs_store *store, const gs_train_options *o);
/* Takes all memory. `store` stays open as long. GS_ENOTFOUND, GS_EINVAL, GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks while it
 * reads where pairs are. */
gs_status gs_run_pairs_open(gs_run_pairs **out, const gs_store *store, const gs_train_options *o);
void gs_run_pairs_close(gs_run_pairs *p); /* NULL is allowed */
uint64_t gs_run_pairs_bytes(const gs_run_pairs *p);

/* Of a prediction with .edges: host memory that scoring them takes. Errors as gs_run_pairs_open(). */
gs_status gs_run_pairs_score_bytes(uint64_t *out, const gs_store *store, const gs_train_options *o);
/* Scores .edges by the weights as they are, into `to` from `offset` on. GS_EFORMAT: what is in the file is no pair. */
gs_status gs_run_pairs_score(gs_run *r, gs_outfile *to, uint64_t offset);

/* The batches of epoch e->epoch from r->part.batches on, as gs_run_batches_epoch() has it. */
gs_status gs_run_pairs_epoch(gs_run *r, gs_epoch_report *e);
/* Figures of validation and test pairs. */
gs_status gs_run_pairs_evaluate(gs_run *r, gs_task_figures *out);

#endif /* GS_TRAIN_RUN_PAIRS_H */
