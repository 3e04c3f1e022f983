/* patience.h - what has not come back for long: says where the pass stands, and in the end gives the run up.
 *
 * Memory that is given up is never freed: the kernel, or a device, may still write there.
 */
#ifndef GS_EXEC_PATIENCE_H
#define GS_EXEC_PATIENCE_H

#include "exec/exec.h"

typedef struct gs_exec_patience {
    /* set at open */
    double say, end;          /* gs_exec_config */
    bool launches;            /* are given up too: devices have memory of their own */
    double look;              /* how often who waits looks; 0: never */
    /* of the pass being run, by the driving thread */
    double quiet;             /* seconds that lanes have done nothing, with no transfer under way */
    uint32_t tasks;           /* that were done then */
    bool said;                /* of this silence */
    bool gave_up;
    char why[512];
    struct gs_exec *next;     /* of the runs that were given up */
} gs_exec_patience;

/* Before io is opened. */
void gs_exec__take_patience(gs_exec *e, const gs_exec_config *c);
/* Waits for at least one completion, where something is outstanding. GS_EIO: nothing has come for too long. */
gs_status gs_exec__reap(gs_exec *e, gs_io_completion *out, uint32_t most, uint32_t *count);
/* The driving thread has waited for lanes for so long. GS_EDEVICE: they have done nothing for too long. */
gs_status gs_exec__watch_lanes(gs_exec *e, double waited);
/* True where the run was given up: it is kept as it is, and not to be closed. */
bool gs_exec__keep(gs_exec *e);

#endif /* GS_EXEC_PATIENCE_H */
