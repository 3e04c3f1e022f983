/* watch.h - what is seen of a pass while it runs. */
#ifndef GS_EXEC_WATCH_H
#define GS_EXEC_WATCH_H

#include <pthread.h>

#include "exec/exec.h"
#include "exec/exec_run.h"

/* A run of the pass begins, before the lanes enter it. */
void gs_exec__enter_progress(gs_exec *e, uint32_t pass);
/* A task of it is done. Any thread. */
void gs_exec__count(gs_exec *e, uint32_t task);

/* Where in a pass does the first number appear that is not finite?
 *
 * A pass that is run again to be looked at: before each tile of a vertex program its sums and the rows that it loads
 * are looked at, behind it the rows that it stores. Runs that nobody watches do nothing of it.
 */

#define GS_WATCH_PIECE_BYTES (256u << 10)

struct gs_exec_watch {
    pthread_mutex_t lock;  /* guards the two below: each device has a thread of its own */
    gs_exec_fault first;
    bool explains;         /* `first` is known, and what made it is looked for */
    uint8_t piece[GS_WATCH_PIECE_BYTES]; /* of what is looked at: rows as they lie in a memory */
    float number[GS_WATCH_PIECE_BYTES / 2]; /* the same as float32; two bytes each at the least */
};

/* Around the launch of a tile: `stored` is behind it. The device is waited for. */
gs_status gs_exec__watch_vertex(gs_exec *e, gs_exec_device *x, const gs_task *t, bool stored);

#endif /* GS_EXEC_WATCH_H */
