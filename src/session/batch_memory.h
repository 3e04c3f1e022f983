/* batch_memory.h - how much of a plan's memory do batches touch?
 *
 * The plan has room for all rows of the largest batch in every array and sum. Most are of the first hops alone, and
 * what is behind these is never touched, so it is not resident.
 */
#ifndef GS_SESSION_BATCH_MEMORY_H
#define GS_SESSION_BATCH_MEMORY_H

#include "plan/plan.h"
#include "session/batch_hops.h"

/* Bytes of the plan's resident data that become resident. rows_of[k]: most rows of the first k hops,
 * [needs->levels + 1]. `left`: an array of the store that no batch brings rows of, or GS_NONE. GS_ENOMEM. */
gs_status gs_batch_memory(uint64_t *out, const gs_program *p, const gs_plan *plan, const gs_hop_needs *needs,
                          const uint32_t *rows_of, uint32_t left);

#endif /* GS_SESSION_BATCH_MEMORY_H */
