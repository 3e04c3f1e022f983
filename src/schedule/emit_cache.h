/* emit_cache.h - what a memory keeps while a plan is made: cells of its arena, accesses of its cache, and the run's
 * files.
 */
#ifndef GS_SCHEDULE_EMIT_CACHE_H
#define GS_SCHEDULE_EMIT_CACHE_H

#include "schedule/emitter.h"

uint32_t gs_emit__array_unit(const struct emitter *e, uint32_t array, uint32_t interval);
uint32_t gs_emit__chunk_unit(const struct emitter *e, uint32_t target, uint32_t operand);

/* What is found in a memory, and what is put there to be found. */

gs_status gs_emit__cache_open(struct emitter *e);
void gs_emit__cache_close(struct emitter *e);
/* A pass begins. */
void gs_emit__cache_begin(struct emitter *e);
/* *there: `out` says where; rows from 0 begin an access, later ones go on with it. `whole`: a
 * read would bring all of it. */
gs_status gs_emit__cached_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                               bool whole, struct unit *out, bool *there);
gs_status gs_emit__cached_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out, bool *there);
/* An access of this device. *there: `out` says where its first byte is. *to: it is to be put there, by
 * gs_emit__settle_here() and a task that brings or makes it; GS_CACHE_NOWHERE: it does not stay. */
gs_status gs_emit__find_here(struct emitter *e, uint32_t unit, const struct access *how, struct unit *out, bool *there,
                             uint64_t *to);
/* `out`: the unit at `to`, whose last users the next task waits for. */
gs_status gs_emit__settle_here(struct emitter *e, uint32_t unit, uint64_t to, struct unit *out);
/* `task` has brought `bytes` of what was looked for, or has made it. */
void gs_emit__came_here(struct emitter *e, const struct unit *u, uint32_t task, uint64_t bytes);
/* The unit's access was a read of what the pass reads now beyond `read_before`. */
void gs_emit__cache_cost(struct emitter *e, uint32_t unit, uint64_t read_before);
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
