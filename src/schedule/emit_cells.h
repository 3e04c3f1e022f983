/* emit_cells.h - where units stand in a memory, and who used them last.
 *
 * A unit is an interval's rows of an array, or a chunk of edges. Units in a memory are disjoint; one that comes makes
 * those leave whose bytes it takes, and its task waits for their last users.
 */
#ifndef GS_SCHEDULE_EMIT_CELLS_H
#define GS_SCHEDULE_EMIT_CELLS_H

#include "schedule/emitter.h"

uint32_t gs_emit__array_unit(const struct emitter *e, uint32_t array, uint32_t interval);
uint32_t gs_emit__chunk_unit(const struct emitter *e, uint32_t target, uint32_t operand);
/* The read that brings a unit as a whole; *skip: bytes before an interval's first row. */
gs_task gs_emit__whole_unit(const struct emitter *e, uint32_t unit, uint64_t *skip);
/* Bytes that the unit takes in this memory. */
uint64_t gs_emit__unit_bytes(const struct emitter *e, const struct memory *k, uint32_t unit);

/* A cell for each unit, none of which is there. gs_emit__cells_close() frees them, also after GS_ENOMEM. */
gs_status gs_emit__cells_open(struct emitter *e, struct memory *k, uint32_t units);
void gs_emit__cells_close(struct memory *k);

/* The unit is at `place` from now on. The next task, which puts it there, waits until the place is free. GS_EAGAIN:
 * what stands there is still in use. */
gs_status gs_emit__settle(struct emitter *e, struct memory *k, uint32_t unit, uint64_t place);
/* One number for both tasks: the last task of each lane that either stands for. Lanes of devices end in order. */
uint32_t gs_emit__later(struct emitter *e, uint32_t a, uint32_t b);

#endif /* GS_SCHEDULE_EMIT_CELLS_H */
