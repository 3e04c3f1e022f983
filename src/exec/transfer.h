/* transfer.h - reads, writes and copies of the plan. */
#ifndef GS_EXEC_TRANSFER_H
#define GS_EXEC_TRANSFER_H

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
/* Waits for all copies of the device that went this way. */
gs_status gs_exec__wait_copied(gs_device *d, gs_device_way way);
/* Which of the device's ways the lane's copies go. */
gs_device_way gs_exec__way_of(const struct gs_exec_lane *l);

/* Reads and writes of a pass, and the first reads of its next run. For the driving thread alone. */

typedef struct gs_exec_transfers {
    pthread_t driver;         /* of the pass being run: it alone calls the functions below */
    uint32_t *runs_left;      /* [tasks] of a read in flight: parts that have not arrived */
    struct {
        uint32_t task, part;  /* parts before this one were handed over; task GS_NONE: all of what has begun */
    } rest[GS_LANE_DEVICES];  /* of the lane's last transfer */
    gs_exec_stats ahead;      /* counts of what is read for the next run; time is spent in the run that spends it */
} gs_exec_transfers;

/* The part of a task's transfer that a completion's tag names. */
gs_io_request gs_exec__request(const gs_exec *e, uint64_t tag);
/* Hands over what is left of a transfer's parts. GS_EAGAIN: io has no room for more now. */
gs_status gs_exec__submit(gs_exec *e, uint32_t task, uint32_t *part);
/* Hands over what may start, takes in what has come; `wait` (where something is under way): at least one. */
gs_status gs_exec__pump(gs_exec *e, bool wait);
/* Tasks that the next transfers wait for, lane by lane, and last that of what is read ahead; GS_NONE: nothing, or there
 * is none. True where a transfer may be handed over. */
bool gs_exec__may_transfer(const gs_exec *e, uint32_t missing[GS_LANE_DEVICES + 1]);
/* No task of the pass is done and nothing is counted, but what was read ahead of it. */
void gs_exec__enter_pass(gs_exec *e, uint32_t pass);
/* Waits for all that is under way; its bytes are nobody's. */
void gs_exec__forget_ahead(gs_exec *e);

#endif /* GS_EXEC_TRANSFER_H */
