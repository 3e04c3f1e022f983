/* emit.h - a plan of a choice. */
#ifndef GS_SCHEDULE_EMIT_H
#define GS_SCHEDULE_EMIT_H

#include "schedule/choice.h"
#include "schedule/emitter.h"

/* Layout and choice become a plan. Units: bytes and rows. */

/* GS_ENOFIT: the ring is too small. */
gs_status gs_emit(gs_plan **out, const gs_layout *l, gs_choice *c);
/* The same plan without its lists: how many tasks there are, and what it takes. Making it takes some 2 bytes a task,
 * where lists take 200. */
gs_status gs_emit_count(gs_plan **out, const gs_layout *l, gs_choice *c);

#endif /* GS_SCHEDULE_EMIT_H */
