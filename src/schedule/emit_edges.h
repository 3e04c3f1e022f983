/* emit_edges.h - the edge pass of a stage. */
#ifndef GS_SCHEDULE_EMIT_EDGES_H
#define GS_SCHEDULE_EMIT_EDGES_H

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

/* The edge pass of a block of target intervals. */

gs_place gs_emit__sum_place(const struct emitter *e, uint32_t sum, int part, uint32_t local_interval);
/* Lists in e->operand_array and e->target_array which arrays the stage's edge pass reads at either end, each once. */
void gs_emit__list_ends(struct emitter *e);
/* The listed arrays' rows of an operand interval come to whoever needs them, whose operand units are filled. `beside`:
 * bytes of the host's ring that will be taken besides. */
gs_status gs_emit__load_operands(struct emitter *e, uint32_t operand, const bool *needs, uint64_t beside);
/* Emits the edge pass for the blocks of all seats that have one. */
gs_status gs_emit__edge_pass(struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_EDGES_H */
