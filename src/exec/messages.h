/* messages.h - what ranks send each other in a pass, and add up behind it. */
#ifndef GS_EXEC_MESSAGES_H
#define GS_EXEC_MESSAGES_H

#include <pthread.h>

#include "exec/exec.h"
#include "ranks/ranks.h"

struct gs_exec_lane;

/* Messages that a lane may have under way. */
#define GS_EXEC_MESSAGES 32u

/* Of a lane of sends or receives: made when the run opens, and begun in each pass. */
typedef struct gs_exec_messages {
    pthread_mutex_t lock;     /* of who sees to them: the lane's thread, or one that computes */
    gs_ranks_message *of;     /* [made] */
    uint32_t *task;           /* [made] ascending */
    uint32_t made;
    uint32_t first, next;     /* of the pass being run: the oldest under way, and the one that comes next */
    uint8_t *packed;          /* [GS_PLAN_PACKED][packed_bytes] what is packed, in turn */
    uint64_t packed_bytes;    /* of the largest such message */
    uint8_t **packed_at;      /* [made] where one is; else NULL */
    uint32_t packs, packs_under_way; /* of those made, and of those under way */
} gs_exec_messages;

/* Of a part of a plan: those of its two lanes. The regions are there, and stay. */
gs_status gs_exec__take_messages(gs_exec *e);
void gs_exec__give_messages(gs_exec *e);
/* A pass begins. */
void gs_exec__enter_messages(struct gs_exec_lane *l);
/* What the lane waits for. */
typedef struct gs_exec_attended {
    bool some;        /* messages have begun or ended */
    bool over;        /* the pass has no more */
    bool under_way;   /* some are */
    uint32_t missing; /* a task before the next one begins, where nothing else keeps it from that; GS_NONE */
} gs_exec_attended;
/* Begins those that may begin, and ends those that are over, in their order. By any thread. */
gs_status gs_exec__attend_messages(struct gs_exec_lane *l, gs_exec_attended *out);

/* Behind a pass, of all ranks: what devices of one rank have in common by then. Nothing where there is one. */
gs_status gs_exec__sum_ranks(gs_exec *e);

#endif /* GS_EXEC_MESSAGES_H */
