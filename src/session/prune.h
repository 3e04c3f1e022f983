/* prune.h - which rows must each stage run for, and which edges does it need? Only what the loss can see. */
#ifndef GS_SESSION_PRUNE_H
#define GS_SESSION_PRUNE_H

#include "base/status.h"
#include "schedule/schedule.h"

typedef struct gs_session gs_session;

/* Finds the rows that each stage must run for, and the edges that they
 * need, as further sets; fills config->needs.stage_rows and array_rows. Changes nothing where all rows are needed,
 * --no-prune is given or nothing can be written. */
gs_status gs_session_prune(gs_session *s, gs_schedule_config *config);
/* Writes the pruned edges into the spill folder, and the checksums into the chunk tables. */
gs_status gs_session_write_pruned(gs_session *s);
void gs_session_drop_pruned(gs_session *s);
/* The rows that stages run for, when the plan is made. */
void gs_session_drop_runs(gs_session *s);

#endif /* GS_SESSION_PRUNE_H */
