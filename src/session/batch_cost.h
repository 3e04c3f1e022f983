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

#endif /* GS_SESSION_BATCH_COST_H */
