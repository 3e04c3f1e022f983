/* lane.h - lanes of tasks, and their threads. */
#ifndef GS_EXEC_LANE_H
#define GS_EXEC_LANE_H

#include <pthread.h>

#include "exec/exec_run.h"

/* Launches that a lane may have under way on a device with memory of its own, each of a task or of several that were
 * begun at once: one runs, one waits for its turn, and one for what it follows. With more the next ones would be chunks
 * by themselves that could have been one launch. */
#define GS_EXEC_FLIGHT 3u
/* And copies; the device has a number for one more, which is begun before the oldest is waited for. */
#define GS_EXEC_COPIES (GS_DEVICE_MARKS - 1)
/* And chunks that come to one from the disk; the device has room for one more, which is begun before the oldest is
 * waited for. */
#define GS_EXEC_LOADS (GS_DEVICE_READS - 1)

/* What a lane has begun on such a device: tasks lanes.task[at .. +count). */
typedef struct gs_exec_flight {
    uint32_t at, count;
    uint64_t number;          /* the device's, of the last launch, of the copies or of the load */
    uint64_t first;           /* launch, where they are timed */
} gs_exec_flight;

typedef struct gs_exec_lane {
    /* set at open */
    gs_exec *e;
    uint32_t lane, device, kind; /* lane of the plan; GS_LANE_COMPUTE, ..., behind these messages' */
    bool defers;              /* the device has memory of its own: what it begins may not be done when it says so */
    gs_exec_waiter *waiter;   /* of its thread; NULL: one thread runs all */
    /* of the pass being run */
    pthread_t owner;          /* the thread that drives it */
    double last;              /* when its last task ended */
    gs_exec_flight flight[GS_EXEC_LOADS]; /* oldest first */
    uint32_t flights;
    double busy_seconds, wait_seconds;
    uint64_t handed_over;      /* tasks that began as the lane's thread saw that another one's was over */
    double owes;              /* of a slow device: seconds still to be waited; below 0, waited too much */
    uint64_t bytes;           /* copied, or sent, or received */
    struct gs_exec_messages *messages; /* of a lane of these; else NULL */
} gs_exec_lane;

/* All of the plan's devices, with nothing under way. */
gs_status gs_exec__take_lanes(gs_exec *e);
/* Runs the pass that was entered: this thread feeds io and the only lane. */
gs_status gs_exec__run_alone(gs_exec *e);

/* For tests: called when a lane's task begins, by the thread that runs it. NULL: nobody is told. */
extern void (*gs_exec__beginning)(const gs_exec *e, uint32_t task);

/* launch.c: runs one compute task on the device. */
gs_status gs_exec__launch(gs_exec *e, gs_exec_device *x, const gs_task *t);

/* The threads of devices whose copies are tasks: one for each lane. */

/* Takes the tasks of one lane. Its waiter is that of its number; the driving thread's comes behind all of them. */
typedef struct gs_exec_thread {
    gs_exec_lane *lane;
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
    gs_failure failure;
};

/* Starts them, where there is more than one lane. GS_EINVAL: a graph is to be bound. */
gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c);
void gs_exec__several_close(gs_exec *e); /* where they are open */
/* Runs the pass that was entered, drives io meanwhile. */
gs_status gs_exec__several_run(gs_exec *e);

#endif /* GS_EXEC_LANE_H */
