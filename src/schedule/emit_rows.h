/* emit_rows.h - rows of arrays come to the host. */
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

#endif /* GS_SCHEDULE_EMIT_ROWS_H */
