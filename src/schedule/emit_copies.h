/* emit_copies.h - what devices compute on comes to them, is handed on, and goes back. */
#ifndef GS_SCHEDULE_EMIT_COPIES_H
#define GS_SCHEDULE_EMIT_COPIES_H

#include "schedule/emitter.h"

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
/* A copy of `from` into a new piece of the device's ring, or the place where it is to stay. `like`: bytes, runs.
 * `out` is what looking for it has left, `to` where it was told to be put. */
gs_status gs_emit__copy_here(struct emitter *e, const gs_task *like, const struct unit *from, uint64_t to,
                             struct unit *out);
/* The task brings bytes of `from` to `out`, which has its place. */
gs_status gs_emit__copy_to(struct emitter *e, gs_task *t, const struct unit *from, struct unit *out);
/* The device's piece `from` goes to the host, and is free then. */
gs_status gs_emit__take_back(struct emitter *e, const struct unit *from, gs_place to, uint64_t bytes, uint32_t *task);

#endif /* GS_SCHEDULE_EMIT_COPIES_H */
