/* several.h - the threads of devices whose copies are tasks: one for each lane. */
#ifndef GS_EXEC_SEVERAL_H
#define GS_EXEC_SEVERAL_H

#include <pthread.h>

#include "exec/lane.h"

/* Takes the tasks of one lane. */
typedef struct gs_exec_thread {
    struct gs_exec_several *of;
    gs_exec_lane *lane;
    pthread_t thread;
    pthread_cond_t wake;
    bool started;             /* the thread is there */
    uint32_t missing;         /* task that it waits for, or GS_NONE; under the lock */
} gs_exec_thread;

struct gs_exec_several {
    gs_topology topology;
    const gs_tree *tree;      /* and its nodes: see gs_exec_config; while threads start */
    const uint32_t *node;
    gs_exec_thread *thread;   /* [threads] one a lane */
    uint32_t threads;
    pthread_mutex_t lock;     /* guards all that follows, and what threads wait for */
    pthread_cond_t driver;    /* wakes the thread that drives */
    uint32_t driver_missing[GS_LANE_DEVICES + 1]; /* tasks that it waits for: gs_exec__may_transfer() */
    uint64_t passes;          /* begun so far: a new one wakes the threads */
    uint32_t running;         /* threads that have not ended theirs */
    bool quit;
    gs_status failed;
    char why[512];
    double wire[GS_TOPOLOGY_DEVICES][2]; /* of each switch: busy until, to its devices and to the host */
    double peer[GS_TOPOLOGY_DEVICES];    /* of each device, from the one before */
};

gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c);
void gs_exec__several_close(gs_exec *e); /* where they are open */
/* Runs the pass that was entered, drives io meanwhile. */
gs_status gs_exec__several_run(gs_exec *e);
/* Wakes who waits for the task. */
void gs_exec__several_notify(gs_exec *e, uint32_t task);

#endif /* GS_EXEC_SEVERAL_H */
