/* messages.h - what ranks send each other in a pass, and add up behind it. */
#ifndef GS_EXEC_MESSAGES_H
#define GS_EXEC_MESSAGES_H

#include "exec/exec.h"
#include "ranks/ranks.h"

struct gs_exec_lane;

/* Messages that a lane may have under way. */
#define GS_EXEC_MESSAGES 32u

/* Of a lane of sends or receives. */
typedef struct gs_exec_messages {
    gs_ranks_message of[GS_EXEC_MESSAGES]; /* from `first` on, oldest first, round */
    uint32_t task[GS_EXEC_MESSAGES];
    uint32_t first, count;
    gs_ranks_piece *piece;    /* [most runs of a message] of the one that is begun */
} gs_exec_messages;

/* Of a part of a plan: memory of its two lanes. */
gs_status gs_exec__take_messages(gs_exec *e);
void gs_exec__give_messages(gs_exec *e);
/* Begins the task, which is the lane's next. There is room. */
gs_status gs_exec__begin_message(struct gs_exec_lane *l, uint32_t task);
/* Ends those that are over, in their order. *some: there was one. */
gs_status gs_exec__end_messages(struct gs_exec_lane *l, bool *some);

/* Behind a pass, of all ranks: what devices of one rank have in common by then. Nothing where there is one. */
gs_status gs_exec__sum_ranks(gs_exec *e);

/* Rows of an array that the last pass has stored come to all ranks, which all call it. */
gs_status gs_exec__read_rows_of_ranks(gs_exec *e, uint32_t array, uint64_t first, uint64_t rows, float *dst);

#endif /* GS_EXEC_MESSAGES_H */
