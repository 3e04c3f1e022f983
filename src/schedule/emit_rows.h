/* emit_rows.h - how rows come to a device, and go home. */
#ifndef GS_SCHEDULE_EMIT_ROWS_H
#define GS_SCHEDULE_EMIT_ROWS_H

#include "schedule/emitter.h"

/* A piece of the memory's ring. */
gs_status gs_emit__take(struct emitter *e, struct memory *m, uint64_t bytes, struct unit *out);
/* Of the host's. */
gs_status gs_emit__take_ring(struct emitter *e, uint64_t bytes, struct unit *out);
/* The unit's bytes are free again after `task`. */
void gs_emit__release(struct emitter *e, const struct unit *u, uint32_t task);
/* Most bytes of the ring that these rows take; 0 where they are kept. */
uint64_t gs_emit__staged_bytes(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows);
/* Where rows from `from` on of a kept interval are. */
gs_place gs_emit__kept_place(const struct emitter *e, uint32_t array, uint32_t interval, uint32_t from);
/* Rows (within one interval) of an array: where they are kept, or a read. */
gs_status gs_emit__load_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             struct unit *out);
/* The masked rows of a whole interval, each at its place in it; what lies between may be missing. */
gs_status gs_emit__load_needed(struct emitter *e, uint32_t array, uint32_t interval, const uint64_t *mask,
                               struct unit *out);
/* The read, which waits for what was collected, brings `bytes` of what `out` stands for. */
gs_status gs_emit__add_read(struct emitter *e, gs_task *t, uint64_t bytes, struct unit *out);

/* What devices compute on comes to them, is handed on, and goes back. */

gs_status gs_emit__copies_open(struct emitter *e);
void gs_emit__copies_close(struct emitter *e);
/* A pass, a stage begins. */
void gs_emit__pass_begin(struct emitter *e);
void gs_emit__stage_begin(struct emitter *e);
/* Most bytes of the ring of the device's memory, or the host's where it computes there, that these rows take. */
uint64_t gs_emit__bytes_here(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows);
/* A whole unit that is in another memory is brought to the device, and let go of there. Does nothing where the device
 * computes on host memory. */
gs_status gs_emit__fetch(struct emitter *e, uint64_t bytes, struct unit *u);
/* Rows of an array where the device that is here computes on them. `again`: they go on with the rows before. */
gs_status gs_emit__rows_here(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             bool again, struct unit *out);
/* The same for a chunk, which `t` names. With others of a group it is on the host already, in `u`. */
gs_status gs_emit__chunk_here(struct emitter *e, const gs_task *t, struct unit *u);
/* Does what device `from` has come to this one from there? Else by way of the host. */
bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from);
/* The device's piece `from` goes to the host, and is free then. */
gs_status gs_emit__take_back(struct emitter *e, const struct unit *from, gs_place to, uint64_t bytes, uint32_t *task);

/* Rows at the operand end come to the devices that need them. */

/* Rows of the operand array `index` come to the devices that need them, whose operand units are filled: from where they
 * stay, from another device, or from the host. `needs`: [devices]. */
gs_status gs_emit__share(struct emitter *e, uint32_t index, uint32_t operand, const bool *needs);

#endif /* GS_SCHEDULE_EMIT_ROWS_H */
