/* lane.h - lanes of tasks, and their threads. */
#ifndef GS_EXEC_LANE_H
#define GS_EXEC_LANE_H

#include <pthread.h>

#include "exec/exec_run.h"

/* Launches that a lane may have under way on a device with memory of its own, each of a task or of several that were
 * begun at once: one runs, one's bytes are copied, one waits. */
#define GS_EXEC_FLIGHT 3u
/* And chunks that come to one from the disk; the device has room for one more, which is begun before the oldest is
 * waited for. */
#define GS_EXEC_LOADS (GS_DEVICE_READS - 1)

typedef struct gs_exec_lane {
    /* set at open */
    gs_exec *e;
    uint32_t lane, device, kind; /* lane of the plan; GS_LANE_COMPUTE, ... */
    bool defers;              /* the device has memory of its own: what it begins may not be done when it says so */
    /* of the pass being run */
    pthread_t owner;          /* the thread that drives it, which alone calls the functions below */
    double last;              /* when its last task ended */
    struct {
        uint32_t at, count;   /* tasks lanes.task[at .. +count) */
        uint64_t number;      /* the device's, of the last launch, of the copies or of the load */
        uint64_t first;       /* launch */
    } flight[GS_EXEC_LOADS]; /* begun on a device with memory of its own, oldest first */
    uint32_t flights;
    double busy_seconds, wait_seconds;
    double owes;              /* of a slow device: seconds still to be waited; below 0, waited too much */
    uint64_t bytes;           /* copied */
} gs_exec_lane;

/* All of the plan's devices, with nothing under way. */
gs_status gs_exec__take_lanes(gs_exec *e);
/* A run of a pass begins, driven by this thread. */
void gs_exec__enter_lane(gs_exec_lane *l);
/* Begins the lane's next task, which is ready, and where the device has memory of its own those that may begin with it.
 * Such a device may still have them under way after that; else it is done. */
gs_status gs_exec__run_next(gs_exec_lane *l);
/* Takes in what was under way and is done, oldest first; `wait`: at least the oldest. */
gs_status gs_exec__retire(gs_exec_lane *l, bool wait);

/* For tests: called when a lane's task begins, by the thread that runs it. NULL: nobody is told. */
extern void (*gs_exec__beginning)(const gs_exec *e, uint32_t task);

/* launch.c: runs one compute task on the device. */
gs_status gs_exec__launch(gs_exec *e, gs_exec_device *x, const gs_task *t);

/* The threads of devices whose copies are tasks: one for each lane. */

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

#endif /* GS_EXEC_LANE_H */
