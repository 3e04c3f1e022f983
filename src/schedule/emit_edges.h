/* emit_edges.h - the edge pass of a stage, and its vertex program. */
#ifndef GS_SCHEDULE_EMIT_EDGES_H
#define GS_SCHEDULE_EMIT_EDGES_H

#include "schedule/emitter.h"

/* Does this target interval have edges? */
bool gs_emit__target_needed(const struct emitter *e, uint32_t target);
/* The rows that the devices of `needs` need together. Valid until the next such call. */
const uint64_t *gs_emit__needed_by(struct emitter *e, uint32_t operand, const bool *needs);
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

/* The derivative of a sequence (emit_sequence.c). */

/* Emits its edge pass for the blocks of all seats that have one. */
gs_status gs_emit__back_pass(struct emitter *e);
/* After the last block: rows that no edge has reached are 0. */
gs_status gs_emit__back_finish(struct emitter *e);

/* The vertex program of an interval (emit_vertex.c). */

gs_status gs_emit__interval(struct emitter *e, uint32_t interval, struct block b);
/* After the stage's last interval: rows that it leaves out are 0, where others may have been before. */
gs_status gs_emit__zero_left_out(struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_EDGES_H */
