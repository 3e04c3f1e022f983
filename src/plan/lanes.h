/* lanes.h - the lane machine: which task of a pass may begin next, and what has become of each.
 *
 * Executor, simulator and tests drive the same machine. It has no thread, no clock and no I/O: its driver asks for the
 * next task of a lane, and says when that task begins and when it is over. A task is in one of these states:
 *
 *     WAITING ----- gs_lanes_ready(): next of its lane, all that it waits for is done -----> (READY)
 *     (READY) ----- gs_lanes_begin() ---------> UNDER_WAY
 *     UNDER_WAY --- gs_lanes_tell() ----------> TOLD         of a device that keeps the order of what it is told
 *     UNDER_WAY, TOLD -- gs_lanes_finish() ---> DONE
 *     DONE -------- gs_lanes_begin_ahead() ---> AHEAD        one of the pass's first reads, begun for its next run
 *     AHEAD ------- gs_lanes_finish() --------> FETCHED
 *     all --------- gs_lanes_enter() ---------> WAITING      but AHEAD -> UNDER_WAY and FETCHED -> DONE where the same
 *                                                            pass runs again
 *
 * READY is not stored: it is asked for. For the run itself, a task is over in DONE, AHEAD and FETCHED alike. What a
 * device was TOLD need not be over for tasks of the same device in lanes that follow: these it puts behind it.
 *
 * Threads: a lane belongs to one thread, which alone begins and finishes its tasks; reads, writes and all that is read
 * ahead belong to the same one. Any thread may ask whether a task is done: gs_lanes_finish() releases what the task
 * made, gs_lanes_is_done() acquires it; so it is with gs_lanes_tell(), and what the driver notes before. Entering a
 * pass and gs_lanes_fault() need all lanes at rest.
 */
#ifndef GS_PLAN_LANES_H
#define GS_PLAN_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"

typedef enum gs_task_state { GS_WAITING, GS_UNDER_WAY, GS_TOLD, GS_DONE, GS_AHEAD, GS_FETCHED } gs_task_state;

/* One lane in the pass being run; indices into gs_lanes.task. */
typedef struct gs_lane {
    uint32_t first, next, end; /* tasks before `next` have begun */
    uint32_t under_way;        /* of this run: what is read ahead is not counted */
} gs_lane;

typedef struct gs_lanes {
    const gs_plan *plan;
    uint32_t lanes;            /* reads, writes, then those of each device */
    uint32_t *task;            /* [plan->tasks] indices of tasks, pass by pass, lane by lane, in list order */
    uint32_t *first;           /* [passes * lanes + 1] into `task` */
    uint8_t *state;            /* [plan->tasks] a gs_task_state */
    bool follows[GS_PLAN_LANES]; /* by whoever opened them; false: its tasks wait until others are over */
    /* of the pass being run */
    uint32_t pass;             /* GS_NONE before the first */
    uint32_t ahead;            /* reads that have begun for its next run: so many of the pass's list */
    gs_lane lane[GS_PLAN_LANES];
} gs_lanes;

/* The plan must outlive the lanes. GS_ENOMEM. */
gs_status gs_lanes_open(gs_lanes *l, const gs_plan *plan);
void gs_lanes_close(gs_lanes *l); /* all zero is allowed */

/* A run of the pass begins, with what was read ahead of it if the run before was of the same pass. */
void gs_lanes_enter(gs_lanes *l, uint32_t pass);
/* Gives up what was read ahead, none of which is under way any more: the next run begins with nothing. */
void gs_lanes_forget_ahead(gs_lanes *l);

/* The lane's first task that has not begun, or GS_NONE. */
static inline uint32_t gs_lanes_next(const gs_lanes *l, uint32_t lane)
{
    return l->lane[lane].next < l->lane[lane].end ? l->task[l->lane[lane].next] : GS_NONE;
}

static inline bool gs_lanes_is_done(const gs_lanes *l, uint32_t task)
{
    return __atomic_load_n(&l->state[task], __ATOMIC_ACQUIRE) >= GS_DONE; /* pairs with gs_lanes_finish() */
}

/* The first of these that is not done, or GS_NONE. */
uint32_t gs_lanes_missing(const gs_lanes *l, uint32_t first_dep, uint32_t deps);
/* A task that this one waits for, or GS_NONE. Not one that was told where this one follows. */
uint32_t gs_lanes_missing_dep(const gs_lanes *l, uint32_t task);
/* The lane's next task if it may begin, or GS_NONE. */
uint32_t gs_lanes_ready(const gs_lanes *l, uint32_t lane);
/* How many of the lane's next tasks may begin at once: 0; 1; or chunks of one operand interval that are all ready. Of
 * those that come by copies of this pass it is half: while these are worked on, their places are not free for the next
 * ones, which come meanwhile to the other half's. */
uint32_t gs_lanes_ready_together(const gs_lanes *l, uint32_t lane);
/* The lane's next task, which is ready, begins. */
void gs_lanes_begin(gs_lanes *l, uint32_t lane);
/* The task, which is under way, is where its device orders what comes behind it: see `follows`. */
void gs_lanes_tell(gs_lanes *l, uint32_t task);
/* The task is over. It was under way, for this run or the next. */
void gs_lanes_finish(gs_lanes *l, uint32_t task);
/* True where all tasks of the lane are done. */
static inline bool gs_lanes_are_over(const gs_lanes *l, uint32_t lane)
{
    return l->lane[lane].next == l->lane[lane].end && l->lane[lane].under_way == 0;
}

/* Reads of the next run of this pass, begun in this one: the next of them, or NULL where all have begun. None begins
 * before all of this run's own reads have. */
const gs_ahead *gs_lanes_next_ahead(const gs_lanes *l);
/* Its task if it may begin, or GS_NONE. */
uint32_t gs_lanes_ready_ahead(const gs_lanes *l);
void gs_lanes_begin_ahead(gs_lanes *l);
/* True where the task is under way, or done, for the next run. */
static inline bool gs_lanes_is_ahead(const gs_lanes *l, uint32_t task) { return l->state[task] >= GS_AHEAD; }

/* A sentence about what contradicts the rules above, or NULL. Looks at every task of the pass; a debug build asserts it
 * when a pass is entered. */
const char *gs_lanes_fault(const gs_lanes *l);

#endif /* GS_PLAN_LANES_H */
