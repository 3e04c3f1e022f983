/* part_waits.h - what tasks of a part wait for, while it is made. */
#ifndef GS_PLAN_PART_WAITS_H
#define GS_PLAN_PART_WAITS_H

#include "plan/plan.h"

/* Places in each lane of the part: all before this one. */
typedef struct gs_reach {
    uint32_t before[GS_PART_LANES];
} gs_reach;

typedef struct gs_part_waits {
    const gs_plan *whole;
    gs_plan *part;
    uint32_t task_room, dep_room;
    uint32_t *first;      /* [whole->tasks + 1] the part's first task of each, which has those up to the next one's */
    gs_reach *done;       /* [tasks of the longest pass] what is done when the task is, by number in its pass */
    /* Of a lane of the whole so far: what its tasks waited for; and where these end in order, what is done when the
     * last is. */
    gs_reach begun[GS_PLAN_LANES], ended[GS_PLAN_LANES];
    gs_reach known[GS_PART_LANES]; /* what the part's tasks so far have waited for */
    uint32_t *at[GS_PART_LANES];  /* tasks of the part, by place in the lane */
    uint32_t count[GS_PART_LANES], room[GS_PART_LANES];
    uint32_t pass_first;  /* of the whole */
} gs_part_waits;

gs_status gs_part_waits_open(gs_part_waits *w, const gs_plan *whole, gs_plan *part);
void gs_part_waits_close(gs_part_waits *w); /* all zero is allowed */
void gs_part_waits_enter(gs_part_waits *w, uint32_t pass);
/* Task `i` of the whole is next: what is done before it begins, which gs_part_waits_add() is given. */
gs_reach gs_part_waits_begin(gs_part_waits *w, uint32_t i);
/* Appends a task that stands for task `i`. */
gs_status gs_part_waits_add(gs_part_waits *w, uint32_t i, const gs_task *t, const gs_reach *before);
/* All that stand for it are there, or none does. */
void gs_part_waits_end(gs_part_waits *w, uint32_t i, const gs_reach *before);

#endif /* GS_PLAN_PART_WAITS_H */
