/* emit_rows.h - how units come to memories, and go home. */
#ifndef GS_SCHEDULE_EMIT_ROWS_H
#define GS_SCHEDULE_EMIT_ROWS_H

#include "schedule/emitter.h"

/* A piece of the memory's ring. */
gs_status gs_emit__take(struct emitter *e, struct memory *m, uint64_t bytes, struct unit *out);
/* The unit's bytes are free again after `task`. */
void gs_emit__release(struct emitter *e, const struct unit *u, uint32_t task);
/* Most bytes of the memory's ring that these rows take; 0 where they are kept. */
uint64_t gs_emit__ring_bytes(const struct emitter *e, const struct memory *m, uint32_t array, uint32_t interval,
                             uint64_t rows);
/* The read, which waits for what was collected, brings `bytes` of what `out` stands for. */
gs_status gs_emit__add_read(struct emitter *e, gs_task *t, uint64_t bytes, struct unit *out);

/* Units come to memories. */

/* Where the host has it, or is to keep it from now on; else nowhere. */
gs_status gs_emit__find_on_host(struct emitter *e, const struct want *w, struct unit *out);
/* The unit comes to all devices that want it: at[d], which is filled, is what device d does; NULL: nothing. */
gs_status gs_emit__deliver(struct emitter *e, const struct want *w, struct unit *const *at);
/* To the device that is here alone. */
gs_status gs_emit__deliver_here(struct emitter *e, const struct want *w, struct unit *out);
/* Rows of an array. `again`: they go on with the rows before. */
gs_status gs_emit__rows_here(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             bool again, struct unit *out);
/* A chunk of the stage's edges, which has some. */
gs_status gs_emit__chunk_here(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out);
/* A whole unit that is somewhere is brought to the device's memory, and let go of where it was. */
gs_status gs_emit__fetch(struct emitter *e, uint64_t bytes, struct unit *u);
/* Does what device `from` has come to this one from there? Else by way of the host. */
bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from);

/* Units that are made, of which `w` says rows. */

/* Where the device that is here makes them: where they are to stay, or in `bytes` of the ring. *fresh: they are to
 * stay, and nothing else of their unit is there. */
gs_status gs_emit__make(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *out, bool *fresh);
/* From the device that has them, where one has, to the host: the kept rows, or a piece of its ring, which `u` becomes.
 * u->read is the task that has made them, and then the one that has sent them. */
gs_status gs_emit__send_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u);
/* They go where they are at home: their device's memory, the host's, or the run's file. u->read: as above. */
gs_status gs_emit__settle_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u);

#endif /* GS_SCHEDULE_EMIT_ROWS_H */
