/* lane.h - one lane of a device: what it does, and what it has under way there.
 *
 * Each is driven by one thread: the driving one where a device has nothing but computations, one of its own where its
 * copies are tasks too (several.c).
 */
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

#endif /* GS_EXEC_LANE_H */
