/* choose.h - which of a model's programs is run?
 *
 * A model is compiled in several ways. Each way has a session of its own until one is chosen; of those that are not,
 * figures are kept. One thread.
 */
#ifndef GS_SESSION_CHOOSE_H
#define GS_SESSION_CHOOSE_H

#include "session/session.h"

/* session_prepare.c: a session with everything but a plan. */
gs_status gs_session_prepare(gs_session **out, const gs_session_config *config, gs_variant variant);

/* A session with the plan that is to be run. While it is looked for, the process keeps the host's budget. Errors as
 * gs_session_open(). */
gs_status gs_session_choose(gs_session **out, const gs_session_config *config);

#endif /* GS_SESSION_CHOOSE_H */
