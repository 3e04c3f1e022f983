/* session_plan.h - a session with everything but a plan, and the plan of it. */
#ifndef GS_SESSION_SESSION_PLAN_H
#define GS_SESSION_SESSION_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "cost/cost.h"
#include "gnnstream.h"
#include "model/model.h"
#include "schedule/schedule.h" /* gs_effort */
#include "session/session.h"

typedef struct gs_session gs_session;

/* Accounts for what the plan does not know, and makes it, into `plan`. GS_EBUDGET, with what would do in
 * memory.refused; GS_EINVAL, GS_EIO, GS_EFORMAT, GS_ENOMEM. Blocks while it reads the edge files. `effort`: how much
 * it may compare, and has. */
gs_status gs_session_plan(gs_session *s, gs_effort *effort);
/* Epochs that the plan is for: as many as are asked for, or were when the run that is gone on from began. */
uint32_t gs_session_epochs(const gs_session *s);
/* Evaluations of such a run, with that of the final weights. */
uint32_t gs_session_evaluations(const gs_session *s);
/* The same for batches, of the session's only device. */
void gs_session_recall_batch_cost(const gs_session *s, gs_cost *out);

/* A session with everything but a plan. */

/* Store, devices, and the model compiled so. `scans`: what is known of others, in whose store it shares where that is
 * open; NULL: nothing. Errors as gs_session_open(), but for GS_EBUDGET. */
gs_status gs_session_prepare(gs_session **out, const gs_session_config *config, gs_scans *scans, gs_variant variant);

/* The model that options ask for, as it runs.
 *
 * The only place where options become a text: what is trained, checked, printed and written into files is what this
 * opens, with .norm, .jk, .residual, .act_first and .set in the text itself (model/model.h, gs_model_text()).
 */

/* The caller closes *out with gs_model_close(). Errors as gs_model_open_changed(); .layers and .hidden are checked by
 * then. */
gs_status gs_session_open_model(gs_model **out, const gs_train_options *o);

/* Is anything else asked of the text than what it says: around its layers, or of its constants? */
bool gs_session_model_changed(const gs_train_options *o);

#endif /* GS_SESSION_SESSION_PLAN_H */
