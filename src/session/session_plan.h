/* session_plan.h - the plan of a prepared session. */
#ifndef GS_SESSION_SESSION_PLAN_H
#define GS_SESSION_SESSION_PLAN_H

#include <stdint.h>

#include "base/status.h"
#include "cost/cost.h"
#include "schedule/schedule.h" /* gs_effort */

typedef struct gs_session gs_session;

/* Accounts for what the plan does not know, and makes it, into `plan`. GS_EBUDGET, with what would do in
 * memory.refused; GS_EINVAL, GS_EIO, GS_EFORMAT, GS_ENOMEM. Blocks while it reads the edge files. `effort`: how much
 * it may compare, and has. */
gs_status gs_session_plan(gs_session *s, gs_effort *effort);
/* Epochs that the plan is for: as many as are asked for, or were when the run that is gone on from began. */
uint32_t gs_session_epochs(const gs_session *s);
/* Evaluations of such a run, with that of the final weights. */
uint32_t gs_session_evaluations(const gs_session *s);
/* What is known of the speed of one of its devices. */
void gs_session_recall_cost(const gs_session *s, gs_cost *out, uint32_t device);
/* The same for batches, of the session's only device. */
void gs_session_recall_batch_cost(const gs_session *s, gs_cost *out);

#endif /* GS_SESSION_SESSION_PLAN_H */
