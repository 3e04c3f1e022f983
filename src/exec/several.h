/* several.h - the threads of devices whose copies are tasks: one for each lane. */
#ifndef GS_EXEC_SEVERAL_H
#define GS_EXEC_SEVERAL_H

#include "exec/lane.h"

/* Takes the tasks of one lane. Its waiter is that of its number; the driving thread's comes behind all of them. */
typedef struct gs_exec_thread {
    gs_exec *e;
    gs_exec_lane *lane;
    gs_exec_waiter *waiter;
    pthread_t thread;
    bool started;             /* the thread is there */
} gs_exec_thread;

struct gs_exec_several {
    const gs_tree *tree;      /* and its nodes: see gs_exec_config; while threads start */
    const uint32_t *node;
    gs_exec_thread *thread;   /* [threads] one a lane */
    uint32_t threads;
    /* under the waiters' lock */
    uint64_t passes;          /* begun so far: a new one wakes the threads */
    uint32_t running;         /* threads that have not ended theirs */
    bool quit;
    gs_status failed;
    char why[GS_ERROR_BYTES];
};

gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c);
void gs_exec__several_close(gs_exec *e); /* where they are open */
/* Runs the pass that was entered, drives io meanwhile. */
gs_status gs_exec__several_run(gs_exec *e);

#endif /* GS_EXEC_SEVERAL_H */
