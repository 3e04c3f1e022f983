/* exec_run.h - the state of a run: each part of it is described beside the source that owns it.
 *
 * plan/lanes.h draws the states of a task. What moves one along here: transfer.c hands reads and writes to io and takes
 * in what has come; lane.c begins what a device does and notes its end.
 */
#ifndef GS_EXEC_EXEC_RUN_H
#define GS_EXEC_EXEC_RUN_H

#include "exec/transfer.h"
#include "exec/exec_chunks.h"
#include "exec/patience.h"
#include "exec/shares.h"
#include "exec/load.h"
#include "exec/waiters.h"
#include "plan/lanes.h"

struct gs_exec_lane;
struct gs_exec_several;

/* Its files. */
typedef struct gs_exec_files {
    gs_io *io;
    gs_exec_file *file;       /* [count] arrays, then edge sets; copied */
    uint32_t *io_file;        /* [count] GS_NONE where not open */
    uint32_t count;
    bool verify;
} gs_exec_files;

/* A device of the run: what its launches need, and what they add up. */
typedef struct gs_exec_device {
    gs_device *device;
    uint8_t *arena;           /* an address of the device where that has memory of its own */
    uint64_t arena_bytes;
    uint8_t *pages;           /* the arena where it is the host's, else NULL */
    uint8_t *resident; /* of a run that is bound, on such a device: behind the arena; else NULL */
    uint8_t *pieces[GS_EXEC_SLOTS], *second; /* likewise: edges of each slot, and rows of the second one */
    void **reg;               /* [most registers of a stage] of the launch being made */
    const float **edge_rows;  /* [most edge registers of a stage] likewise */
    /* of the pass being run */
    float *const *grad;       /* [program->params], or NULL */
    double *const *statistic; /* [program->params] */
    gs_metrics metrics;
    double edge_seconds;
} gs_exec_device;

/* Of a run that is bound: addresses of the device (bound.h), NULL where it keeps no rows. */
typedef struct gs_exec_spread_memory {
    uint8_t *place, *sent, *kept;
    uint64_t row_bytes;
    uint32_t room;            /* rows that `sent` has room for */
} gs_exec_spread_memory;

struct gs_exec {
    /* set at open */
    const gs_program *program;
    const gs_plan *plan;
    uint8_t *region[GS_REGION_COUNT]; /* ARENA: see `on` */
    uint64_t region_bytes[GS_REGION_COUNT];
    gs_exec_device *on;       /* [devices] */
    uint32_t devices;
    gs_exec_files files;
    gs_exec_chunks chunks;
    const gs_exec_graph *graph; /* bound; else NULL */
    bool bound;               /* opened for that */
    uint64_t piece_bytes;     /* of such a graph's pieces, at most */
    uint32_t slots, slot;     /* how many; that of `graph` */
    gs_exec_spread_memory spread;
    struct gs_exec_lane *lane; /* [lanes - GS_LANE_DEVICES] of all devices: lane.h */
    gs_exec_wires wires;      /* of copies as tasks */
    gs_exec_direct direct;
    gs_exec_waiters waiters;
    struct gs_exec_several *several; /* a thread for each of those lanes; NULL: the driving thread has the only one */

    /* of the pass being run, by the thread that runs the task */
    gs_lanes lanes;
    double (*span)[2];        /* [tasks] when a task began and ended, gs_now(); NULL: no trace */
    double (*kernels)[2];     /* [tasks] the same of what it launched, by the device's clock; 0: not known. NULL: no
                               * trace, or devices that compute on host memory */

    gs_exec_progress progress; /* of it, by whoever finishes a task; read by any thread: relaxed atomics, which order
                                * nothing */

    /* of the pass being run, by the driving thread */
    gs_exec_shares shares;
    gs_exec_transfers transfers;
    gs_exec_patience patience;
    const gs_exec_args *args;
    gs_exec_stats stats;
};

/* Is what arrived from files what was written (check.c)? */

/* Text of failures names file and chunk or bytes. */
gs_status gs_exec__check_blocks(const gs_exec *e, uint32_t file, uint64_t offset, const uint8_t *data, uint64_t bytes);
/* `bytes` of a target's chunks, side by side from this operand interval on. */
gs_status gs_exec__check_chunks(const gs_exec *e, uint32_t set, uint32_t target, uint32_t operand,
                                const uint8_t *data, uint64_t bytes);

/* Memory of the host: RING or RESIDENT. */
static inline void *gs_exec__host(const gs_exec *e, gs_place p) { return e->region[p.region] + p.offset; }

/* Where a bound graph of the device's second slot has what is at `offset` of RESIDENT (bound.c). */
void *gs_exec__second_at(const gs_exec *e, const gs_exec_device *x, uint64_t offset);

/* As a device sees it; NONE is NULL. */
static inline void *gs_exec__at(const gs_exec *e, const gs_exec_device *x, gs_place p)
{
    if (p.region == GS_REGION_ARENA)
        return x->arena + p.offset;
    if (p.region == GS_REGION_RESIDENT && x->resident != NULL)
        return e->slot > 0 ? gs_exec__second_at(e, x, p.offset) : x->resident + p.offset;
    return p.region == GS_REGION_NONE ? NULL : gs_exec__host(e, p);
}

#endif /* GS_EXEC_EXEC_RUN_H */
