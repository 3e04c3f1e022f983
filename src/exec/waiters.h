/* waiters.h - who waits for which task, where each lane of a device has a thread. */
#ifndef GS_EXEC_WAITERS_H
#define GS_EXEC_WAITERS_H

#include <pthread.h>

#include "exec/exec.h"

/* A thread that may wait: of a lane, or the driving one. */
typedef struct gs_exec_waiter {
    pthread_cond_t wake;
    uint32_t missing[GS_LANE_DEVICES + 1]; /* tasks that it waits for, each enough to wake it; else GS_NONE */
} gs_exec_waiter;

typedef struct gs_exec_waiters {
    pthread_mutex_t lock;     /* guards `missing`, and what its users say */
    gs_exec_waiter *waiter;   /* [count] */
    uint32_t count;           /* 0: one thread runs all, and nobody waits */
} gs_exec_waiters;

gs_status gs_exec__take_waiters(gs_exec_waiters *w, uint32_t count);
void gs_exec__give_waiters(gs_exec_waiters *w); /* all zero is allowed */
/* Under the lock: it waits for nothing. */
void gs_exec__waits_no_more(gs_exec_waiter *w);
/* Under the lock. */
void gs_exec__wake_all(gs_exec_waiters *w);
/* The task is done, and who waits for it is woken. */
void gs_exec__finish(gs_exec *e, uint32_t task);

#endif /* GS_EXEC_WAITERS_H */
