/* emit_tasks.h - the list of tasks as it grows: what does the next one wait for? */
#ifndef GS_SCHEDULE_EMIT_TASKS_H
#define GS_SCHEDULE_EMIT_TASKS_H

#include "schedule/emitter.h"

gs_status gs_emit__grow(void **array, uint32_t *room, uint32_t need, size_t size);
/* The next task added waits for `task` (GS_NONE: for nothing). */
void gs_emit__wait(struct emitter *e, uint32_t task);
/* One number for both: for gs_ring_release() alone, as only what takes a place understands it. */
uint32_t gs_emit__join(struct emitter *e, const uint32_t *task, uint32_t tasks);
/* Waits from `from` on that are joined become the tasks that they stand for. */
void gs_emit__expand(struct emitter *e, uint32_t from);
/* Makes a set of the waits of the next task of `lane`, ascending, without those that follow from others: of each lane
 * whose tasks end in order, only the last stays. Returns how many are left. */
uint32_t gs_emit__settle_waits(struct emitter *e, uint32_t lane);
/* Appends a task that waits for what was collected, and begins a new collection. */
gs_status gs_emit__task(struct emitter *e, const gs_task *t, uint32_t *index);
/* Number of the first write of the pass (made.write) that is this task or behind it. */
uint32_t gs_emit__writes_from(const struct emitter *e, uint32_t task);
/* No task to come has runs that are listed by now. */
void gs_emit__drop_runs(struct emitter *e);
/* File extent of rows of an array of the store: whole checksum blocks. */
void gs_emit__store_extent(const gs_layout *l, uint32_t array, uint64_t first, uint64_t rows, gs_task *t,
                           uint64_t *skip);
/* Bytes of the plan so far, and of what runs it. */
uint64_t gs_emit__table_bytes(const struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_TASKS_H */
