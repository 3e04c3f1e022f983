/* copy_in.h - a bound graph comes to a device with memory of its own: its rows and its edges, before a pass. */
#ifndef GS_EXEC_COPY_IN_H
#define GS_EXEC_COPY_IN_H

#include "exec/exec_run.h"

/* Copies what is bound, and waits: nothing of the device is under way. On host memory there is nothing to do. */
gs_status gs_exec__copy_in(gs_exec *e);
/* Behind the launches of a pass, which are done: results of the run come to the host. Waits; likewise. */
gs_status gs_exec__take_results(gs_exec *e);
/* Edges of the bound graph where the device has them. */
void gs_exec__brought_edges(const gs_exec *e, const gs_exec_device *x, gs_edges *edges);
/* Factors of the losses of a vertex task's rows, likewise; NULL: 1. */
const float *gs_exec__loss_factor(const gs_exec *e, const gs_exec_device *x, const gs_task *t);

#endif /* GS_EXEC_COPY_IN_H */
