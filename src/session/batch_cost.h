/* batch_cost.h - how long does a batch take? */
#ifndef GS_SESSION_BATCH_COST_H
#define GS_SESSION_BATCH_COST_H

#include "cost/cost.h"
#include "gnnstream.h" /* gs_predicted */
#include "session/batch_edges.h"
#include "session/session.h"

/* Seconds of pass `train` of a plan of one interval that is bound to a batch whose edges are in `e`: its tasks one
 * after the other, each cut to the batch's rows and edges; before them its rows of `picked` floats are picked, and
 * `copied` bytes are copied to the device. Waits for a disk are not counted. */
void gs_batch_predict(gs_predicted *out, const gs_session *s, const gs_batch_edges *e, const gs_batch *batch,
                      uint64_t picked, uint64_t copied);
/* What the picking alone takes of that. */
double gs_batch_picking(const gs_session *s, uint64_t picked);

/* Adds what the tasks of such a pass took that ran just now, timed. */
void gs_batch_observe(gs_fit *fit, const gs_session *s, const gs_batch_edges *e, const gs_batch *batch);
/* Operations, edges, rows and gathered bytes of the pass, in place of those of the largest batch that `out` has. */
void gs_batch_amounts(gs_pass_report *out, const gs_session *s, const gs_batch_edges *e);

#endif /* GS_SESSION_BATCH_COST_H */
