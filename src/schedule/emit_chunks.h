/* emit_chunks.h - chunks of edges come to the host. */
#ifndef GS_SCHEDULE_EMIT_CHUNKS_H
#define GS_SCHEDULE_EMIT_CHUNKS_H

#include "schedule/emitter.h"

/* A chunk of the stage's edges, which has some. */
gs_status gs_emit__load_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out);
/* Is it in host memory for good? */
bool gs_emit__chunk_stays(const struct emitter *e, uint32_t target, uint32_t operand);
/* Chunks [first, first + count) of a target, in as few reads as they take. They must be released in their order. */
gs_status gs_emit__load_chunks(struct emitter *e, uint32_t target, uint32_t first, uint32_t count, struct unit *out);
/* The block should take its chunks from operand intervals [operand, the result) together, *bytes in all. */
uint32_t gs_emit__group_end(const struct emitter *e, struct block b, uint32_t operand, uint64_t *bytes);

#endif /* GS_SCHEDULE_EMIT_CHUNKS_H */
