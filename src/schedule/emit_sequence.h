/* emit_sequence.h - the edge pass that is the derivative of a sequence. */
#ifndef GS_SCHEDULE_EMIT_SEQUENCE_H
#define GS_SCHEDULE_EMIT_SEQUENCE_H

#include "schedule/emitter.h"

/* Emits the derivative's edge pass for the blocks of all seats that have one. */
gs_status gs_emit__back_pass(struct emitter *e);
/* After the last block: rows that no edge has reached are 0. */
gs_status gs_emit__back_finish(struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_SEQUENCE_H */
