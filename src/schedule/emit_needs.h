/* emit_needs.h - which intervals, and which rows of them, do the blocks that devices hold need? */
#ifndef GS_SCHEDULE_EMIT_NEEDS_H
#define GS_SCHEDULE_EMIT_NEEDS_H

#include "schedule/emitter.h"

/* Does this target interval have edges? */
bool gs_emit__target_needed(const struct emitter *e, uint32_t target);
/* Granules of the operand interval that the device's block needs; NULL: all. In e->mask. */
const uint64_t *gs_emit__needed_rows(struct emitter *e, struct block b, uint32_t operand);
/* The rows that the devices of `needs` need together. Valid until the next such call. */
const uint64_t *gs_emit__needed_by(struct emitter *e, uint32_t operand, const bool *needs);
/* Rows of the interval up to the last that is needed: more take no room in the ring. `mask` NULL: all. */
uint32_t gs_emit__needed_end(const struct emitter *e, uint32_t operand, const uint64_t *mask);
/* Which devices' blocks need the operand interval: [devices]. False: none. */
bool gs_emit__list_needs(const struct emitter *e, uint32_t operand, bool *needs);
/* The sum's rows of operands, scale and types. */
gs_row_sum gs_emit__rows_of(const struct emitter *e, uint32_t sum);
/* True where the operand interval's own rows of a sum's array are added to the block's sums. */
bool gs_emit__adds_own(const struct emitter *e, struct block b, uint32_t operand, uint32_t sum);
/* Who reads the array's rows, of those that need the interval; false: nobody. */
bool gs_emit__list_readers(const struct emitter *e, uint32_t operand, uint32_t array, const bool *needs, bool *reads);

#endif /* GS_SCHEDULE_EMIT_NEEDS_H */
