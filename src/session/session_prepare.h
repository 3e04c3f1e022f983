/* session_prepare.h - a session with everything but a plan. */
#ifndef GS_SESSION_SESSION_PREPARE_H
#define GS_SESSION_SESSION_PREPARE_H

#include "session/session.h"

/* Store, devices, and the model compiled so. Errors as gs_session_open(), but for GS_EBUDGET. */
gs_status gs_session_prepare(gs_session **out, const gs_session_config *config, gs_variant variant);

#endif /* GS_SESSION_SESSION_PREPARE_H */
