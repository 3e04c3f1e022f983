/* describe.h - what would a plan do to memory and disk, in words and numbers for people? */
#ifndef GS_SESSION_DESCRIBE_H
#define GS_SESSION_DESCRIBE_H

#include <stdint.h>

#include "base/status.h"
#include "gnnstream_reports.h" /* gs_pass_report, gs_plan_report */

typedef struct gs_session gs_session;

/* A pass of the program, and the whole plan. GS_ENOMEM. */
gs_status gs_session_describe_pass(const gs_session *s, gs_pass_report *out, uint32_t pass);
gs_status gs_session_describe(const gs_session *s, gs_plan_report *out);
/* Predicted, of the pass that the run is for. */
double gs_session_epoch_seconds(const gs_session *s);
/* Predicted, of all passes of the run: "setup", the epochs and the evaluations. */
double gs_session_run_seconds(const gs_session *s);

#endif /* GS_SESSION_DESCRIBE_H */
