/* emit_ahead.h - which of a pass's first reads may its run before make already? */
#ifndef GS_SCHEDULE_EMIT_AHEAD_H
#define GS_SCHEDULE_EMIT_AHEAD_H

#include "schedule/emitter.h"

/* emit_ahead.c: behind the pass's last task, which of its first reads its next run may make already. */
gs_status gs_emit__ahead(struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_AHEAD_H */
