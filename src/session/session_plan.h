/* session_plan.h - the plan of a prepared session. */
#ifndef GS_SESSION_SESSION_PLAN_H
#define GS_SESSION_SESSION_PLAN_H

#include "base/status.h"

typedef struct gs_session gs_session;

/* Accounts for what the plan does not know, and makes it, into `plan`. GS_EBUDGET, with what would do in
 * memory.refused; GS_EINVAL, GS_EIO, GS_EFORMAT, GS_ENOMEM. Blocks while it reads the edge files. */
gs_status gs_session_plan(gs_session *s);

#endif /* GS_SESSION_SESSION_PLAN_H */
