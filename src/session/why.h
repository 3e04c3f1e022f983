/* why.h - what was the last run of the train pass waiting for, stage by stage and link by link? */
#ifndef GS_SESSION_WHY_H
#define GS_SESSION_WHY_H

#include "base/status.h"
#include "gnnstream.h"
#include "session/session.h"

/* Gives `why` a row for each stage and what worked or moved for it, in the order of the program's stages. The session
 * is timed, and ran the pass. `flops`, `gather_bps`: rates that computations cannot be faster than; 0: not known.
 * GS_ENOMEM. */
gs_status gs_session_explain(const gs_session *s, double flops, double gather_bps, gs_why_fn why, void *context);

#endif /* GS_SESSION_WHY_H */
