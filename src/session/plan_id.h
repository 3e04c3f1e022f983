/* plan_id.h - would two sessions compute the same bits? Their ids and their makers say so (docs/design/results.md).
 *
 * The id is a checksum of all that rounding follows from: the program, and what the plan's tasks do to which rows, in
 * which order, and what stays in memory. Where rows lie in memory, and how many threads there are, are no part of it.
 */
#ifndef GS_SESSION_PLAN_ID_H
#define GS_SESSION_PLAN_ID_H

#include <stdint.h>

#include "base/status.h"

typedef struct gs_session gs_session;

/* GS_ENOMEM. */
gs_status gs_session_plan_id(const gs_session *s, uint64_t *out);

/* Who computes: version, processor and kernels of the device, without the number of threads. */
#define GS_MAKER_BYTES 256
void gs_session_maker(const gs_session *s, char out[GS_MAKER_BYTES]);

#endif /* GS_SESSION_PLAN_ID_H */
