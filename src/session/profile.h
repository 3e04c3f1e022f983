/* profile.h - how fast is this machine, by epochs that were timed? */
#ifndef GS_SESSION_PROFILE_H
#define GS_SESSION_PROFILE_H

#include <stdint.h>

#include "base/machine.h"
#include "base/status.h"
#include "cost/cost.h" /* gs_fit */
#include "exec/exec.h"
#include "gnnstream_reports.h" /* gs_epoch_report */

typedef struct gs_session gs_session;

/* Seconds of the last epochs' tasks, epoch by epoch. */
#define GS_PROFILE_EPOCHS 15u
typedef struct gs_profile {
    uint32_t epochs; /* observed; epoch k is at k % GS_PROFILE_EPOCHS */
    double seconds[GS_PROFILE_EPOCHS], computing[GS_PROFILE_EPOCHS];
    gs_fit fit[GS_PROFILE_EPOCHS], host_fit[GS_PROFILE_EPOCHS]; /* as gs_session_machine has costs */
    double draw_seconds, draw_amount; /* of batches, of all epochs: as gs_cost_record has them */
    gs_machine_load began; /* when the first epoch could begin; of what others have had since, plans are told */
} gs_profile;

/* Before the first epoch. */
void gs_profile_begin(gs_profile *p);
/* The times of the last run of the train pass. The session is timed. */
void gs_session_observe(const gs_session *s, const gs_exec_stats *x, gs_profile *p);
/* The times of an epoch on batches, of its batches' tasks together. */
void gs_profile_add_batches(gs_profile *p, const gs_epoch_report *e, const gs_fit *fit);
/* Adds the median epoch to what is known of this machine. GS_EIO, GS_ENOTFOUND, GS_ENOMEM. */
gs_status gs_session_remember(const gs_session *s, const gs_profile *p);
/* The same of epochs on batches, on this device. */
gs_status gs_profile_remember_batches(const gs_profile *p, const gs_device *device);

#endif /* GS_SESSION_PROFILE_H */
