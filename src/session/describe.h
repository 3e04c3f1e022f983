/* describe.h - what would a plan do to memory and disk, in words and numbers for people?
 * And: would two sessions compute the same bits?
 */
#ifndef GS_SESSION_DESCRIBE_H
#define GS_SESSION_DESCRIBE_H

#include <stdint.h>

#include "base/status.h"
#include "gnnstream.h"
#include "gnnstream_reports.h" /* gs_pass_report, gs_plan_report */
#include "session/session.h"

typedef struct gs_session gs_session;

/* A pass of the program, and the whole plan. GS_ENOMEM. */
gs_status gs_session_describe_pass(const gs_session *s, gs_pass_report *out, uint32_t pass);
gs_status gs_session_describe(const gs_session *s, gs_plan_report *out);
/* Predicted, of the pass that the run is for. */
double gs_session_epoch_seconds(const gs_session *s);
/* Predicted, of all passes of the run: "setup", the epochs and the evaluations. */
double gs_session_run_seconds(const gs_session *s);

/* Would two sessions compute the same bits? Their ids and their makers say so (docs/design/results.md).
 *
 * The id is a checksum of all that rounding follows from: the program, and what the plan's tasks do to which rows, in
 * which order, and what stays in memory. Where rows lie in memory, and how many threads there are, are no part of it.
 */

typedef struct gs_session gs_session;

/* A program as text, of so many bytes, to be freed with free(); NULL: memory is short. */
char *gs_session_program_text(const gs_program *p, size_t *bytes);
/* GS_ENOMEM. */
gs_status gs_session_plan_id(const gs_session *s, uint64_t *out);

/* Who computes: version, processor and kernels of the device, without the number of threads. */
#define GS_MAKER_BYTES 256
void gs_session_maker(const gs_session *s, char out[GS_MAKER_BYTES]);

/* -- what was the last run of the train pass waiting for, stage by stage and link by link? */

/* Gives `why` a row for each stage and what worked or moved for it, in the order of the program's stages. The session
 * is timed, and ran the pass. `flops`, `gather_bps`: rates that computations cannot be faster than; 0: not known.
 * GS_ENOMEM. */
gs_status gs_session_explain(const gs_session *s, double flops, double gather_bps, gs_why_fn why, void *context);

#endif /* GS_SESSION_DESCRIBE_H */
