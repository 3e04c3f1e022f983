/* emit_spill.h - where in the run's file is an array, and who had those bytes before? */
#ifndef GS_SCHEDULE_EMIT_SPILL_H
#define GS_SCHEDULE_EMIT_SPILL_H

#include "schedule/emitter.h"

gs_status gs_emit__spill_open(struct emitter *e);
void gs_emit__spill_close(struct emitter *e);
/* Where in the run's file the interval of an array is, which is not kept. */
uint64_t gs_emit__spilled_at(const struct emitter *e, uint32_t array, uint32_t interval);
/* The next task waits for the writes of those that had its bytes before. */
void gs_emit__wait_for_owners(struct emitter *e, const gs_task *write);

#endif /* GS_SCHEDULE_EMIT_SPILL_H */
