/* copy.h - copies between the host and devices, and the wires that they go over. */
#ifndef GS_EXEC_COPY_H
#define GS_EXEC_COPY_H

#include <pthread.h>

#include "exec/exec.h"
#include "plan/links.h"

struct gs_exec_lane;

typedef struct gs_exec_wires {
    gs_topology topology;
    pthread_mutex_t lock;     /* guards the clocks */
    double busy[GS_WIRES];    /* until when */
} gs_exec_wires;

void gs_exec__take_wires(gs_exec_wires *w, const gs_topology *topology);
void gs_exec__give_wires(gs_exec_wires *w);
/* A copy, which could begin at `ready` and ends no sooner than its wire allows; on a device with memory of its own it
 * is only begun. */
gs_status gs_exec__copy(struct gs_exec_lane *l, const gs_task *t, double ready, double span[2]);
/* A computation of the device took `span`: waits, and moves the end, until it took what it would on a device of the
 * topology's speed. */
void gs_exec__pace(struct gs_exec_lane *l, double span[2]);
/* Which of the device's ways the lane's copies go. */
gs_device_way gs_exec__way_of(const struct gs_exec_lane *l);

#endif /* GS_EXEC_COPY_H */
