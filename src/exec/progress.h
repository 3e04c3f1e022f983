/* progress.h - how far has a pass come? gs_exec_progress, for any thread that asks. */
#ifndef GS_EXEC_PROGRESS_H
#define GS_EXEC_PROGRESS_H

#include "exec/exec.h"

/* A run of the pass begins, before the lanes enter it. */
void gs_exec__enter_progress(gs_exec *e, uint32_t pass);
/* A task of it is done. Any thread. */
void gs_exec__count(gs_exec *e, uint32_t task);

#endif /* GS_EXEC_PROGRESS_H */
