/* emit_cache.h - what a memory keeps while a plan is made: cells of its arena, accesses of its cache, and the run's
 * files.
 */
#ifndef GS_SCHEDULE_EMIT_CACHE_H
#define GS_SCHEDULE_EMIT_CACHE_H

#include "schedule/emitter.h"

/* Units, numbered as gs_layout_units() says. */

uint32_t gs_emit__array_unit(const struct emitter *e, uint32_t array, uint32_t interval);
/* Of the stage's edges. */
uint32_t gs_emit__chunk_unit(const struct emitter *e, uint32_t target, uint32_t operand);
bool gs_emit__is_chunk(const struct emitter *e, uint32_t unit);
/* Of an interval, and bytes of one; 0: it is a chunk. */
uint64_t gs_emit__row_bytes(const struct emitter *e, uint32_t unit);
uint32_t gs_emit__unit_rows(const struct emitter *e, uint32_t unit);
/* *t: the read of rows [first, first + rows) of an interval that is not kept, or of a chunk. *skip: bytes before the
 * first row. */
void gs_emit__read_of(gs_task *t, const struct emitter *e, uint32_t unit, uint32_t first, uint32_t rows,
                      uint64_t *skip);
void gs_emit__whole_unit(gs_task *t, const struct emitter *e, uint32_t unit, uint64_t *skip);
/* Bytes of that. */
uint64_t gs_emit__whole_bytes(const struct emitter *e, uint32_t unit, uint64_t *skip);
/* Is it in host memory for good? */
bool gs_emit__is_kept(const struct emitter *e, uint32_t unit);
/* Where it is then; of an interval, rows from `first` on. */
gs_place gs_emit__kept_place(const struct emitter *e, uint32_t unit, uint32_t first);

/* What is found in a memory, and what is put there to be found. */

gs_status gs_emit__cache_open(struct emitter *e);
void gs_emit__cache_close(struct emitter *e);
/* A pass begins. */
void gs_emit__cache_begin(struct emitter *e);
/* An access, where the memory lists or follows them: `out` says where the first row that is wanted is, or it is
 * nowhere. *to: where it is to be put by gs_emit__settle() and a task that brings or makes all of it;
 * GS_CACHE_NOWHERE: it does not stay. */
gs_status gs_emit__look(struct emitter *e, struct memory *k, const struct want *w, struct unit *out, uint64_t *to);
/* One number for both tasks: the last task of each lane that either stands for. Lanes of devices end in order. */
uint32_t gs_emit__later(struct emitter *e, uint32_t a, uint32_t b);
/* `out`: the unit at `to`, whose last users the next task waits for. */
gs_status gs_emit__settle(struct emitter *e, struct memory *k, uint32_t unit, uint64_t to, struct unit *out);
/* `task` has brought `bytes` of what was looked for to where it is now, or has made it. */
void gs_emit__came(struct emitter *e, const struct unit *u, uint32_t task, uint64_t bytes);
/* Ends the use of a unit that was looked for, found or not. */
void gs_emit__cache_release(struct emitter *e, const struct unit *u, uint32_t task);

/* Where in the run's file is an array, and who had those bytes before? */

gs_status gs_emit__spill_open(struct emitter *e);
void gs_emit__spill_close(struct emitter *e);
/* Where in the run's file the interval of an array is, which is not kept. */
uint64_t gs_emit__spilled_at(const struct emitter *e, uint32_t array, uint32_t interval);
/* The next task waits for the writes of those that had its bytes before. */
void gs_emit__wait_for_owners(struct emitter *e, const gs_task *write);

#endif /* GS_SCHEDULE_EMIT_CACHE_H */
