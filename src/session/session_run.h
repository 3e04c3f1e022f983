/* session_run.h - what a started run holds: memory, parameters, files. */
#ifndef GS_SESSION_SESSION_RUN_H
#define GS_SESSION_SESSION_RUN_H

#include <stdint.h>

#include "base/status.h"
#include "base/temporary.h"
#include "exec/exec.h"
#include "schedule/schedule.h" /* GS_EDGE_SETS */
#include "session/params.h"

typedef struct gs_session gs_session;

/* Memory and files of a started run. */
typedef struct gs_session_run_state {
    gs_exec *exec;
    gs_params params;
    gs_exec_chunk *chunk[GS_EDGE_SETS]; /* what exec knows of each; NULL where no stage uses it */
    char **path;                        /* [arrays + sets] of the run's files; exec speaks of them */
    gs_scratch spill;                   /* the run's own folder, or none */
    void *sweep;                        /* gs_session_sweep_bytes() of staging, where the program has tables */
    uint64_t swept[2];                  /* bytes that sweeps have read and written */
} gs_session_run_state;

/* Takes parameters (zeroed) and all memory of the plan, makes the spill files. */
gs_status gs_session_start(gs_session *s);

/* Bytes that the run has on the disk while it runs. */
uint64_t gs_session_spill_bytes(const gs_session *s);
/* Folder for scratch files: the spill folder where there is one, or its place. */
const char *gs_session_scratch_dir(const gs_session *s);

#endif /* GS_SESSION_SESSION_RUN_H */
