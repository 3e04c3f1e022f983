/* emit_vertex.h - the vertex program of an interval. */
#ifndef GS_SCHEDULE_EMIT_VERTEX_H
#define GS_SCHEDULE_EMIT_VERTEX_H

#include "schedule/emitter.h"

gs_status gs_emit__interval(struct emitter *e, uint32_t interval, struct block b);
/* After the stage's last interval: rows that it leaves out are 0, where others may have been before. */
gs_status gs_emit__zero_left_out(struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_VERTEX_H */
