/* messages.h - what ranks send each other in a pass, and add up behind it. */
#ifndef GS_EXEC_MESSAGES_H
#define GS_EXEC_MESSAGES_H

#include "exec/exec.h"
#include "ranks/ranks.h"

struct gs_exec_lane;

/* Messages that a lane may have under way. */
#define GS_EXEC_MESSAGES 32u

/* Of a lane of sends or receives: made when the run opens, and begun in each pass. */
typedef struct gs_exec_messages {
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
static inline uint32_t gs_exec__messages_under_way(const gs_exec_messages *m) { return m->next - m->first; }
/* Is there room for the lane's next, which there is? */
bool gs_exec__may_begin_message(const struct gs_exec_lane *l);
/* Begins it. There is room. */
gs_status gs_exec__begin_message(struct gs_exec_lane *l, uint32_t task);
/* Ends those that are over, in their order. *some: there was one. */
gs_status gs_exec__end_messages(struct gs_exec_lane *l, bool *some);

/* Behind a pass, of all ranks: what devices of one rank have in common by then. Nothing where there is one. */
gs_status gs_exec__sum_ranks(gs_exec *e);

#endif /* GS_EXEC_MESSAGES_H */
