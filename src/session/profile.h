/* profile.h - how fast is this machine, by epochs that were timed? */
#ifndef GS_SESSION_PROFILE_H
#define GS_SESSION_PROFILE_H

#include <stdint.h>

#include "base/status.h"
#include "cost/cost.h" /* gs_fit */
#include "exec/exec.h"

typedef struct gs_session gs_session;

/* Seconds of the last epochs' tasks, epoch by epoch. */
#define GS_PROFILE_EPOCHS 15u
typedef struct gs_profile {
    uint32_t epochs; /* observed; epoch k is at k % GS_PROFILE_EPOCHS */
    double seconds[GS_PROFILE_EPOCHS], computing[GS_PROFILE_EPOCHS];
    gs_fit fit[GS_PROFILE_EPOCHS], host_fit[GS_PROFILE_EPOCHS]; /* as gs_session_machine has costs */
} gs_profile;

/* The times of the last run of the train pass. The session is timed. */
void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_profile *p);
/* Adds the median epoch to what is known of this machine. GS_EIO, GS_ENOTFOUND, GS_ENOMEM. */
gs_status gs_session_remember(const gs_session *s, const gs_profile *p);

#endif /* GS_SESSION_PROFILE_H */
