/* exec_internal.h - the state of a run, shared by the files of this room.
 *
 * plan/lanes.h draws the states of a task. What moves one along here: transfer.c hands reads and writes to io and takes
 * in what has come; lane.c begins what a device does and notes its end.
 *
 * Fields are grouped by who changes them and when.
 */
#ifndef GS_EXEC_EXEC_INTERNAL_H
#define GS_EXEC_EXEC_INTERNAL_H

#include "exec/exec.h"
#include "plan/lanes.h"

struct gs_exec_several;
typedef struct gs_exec_lane gs_exec_lane;

typedef enum gs_chunk_state {
    GS_CHUNK_UNSEEN,
    GS_CHUNK_CHECKED, /* in depth */
    GS_CHUNK_MERGED,  /* and its doubled edges are one each (launch.c) */
} gs_chunk_state;

/* A device of the run: what its launches need, and what they add up. */
typedef struct gs_exec_device {
    gs_device *device;
    uint8_t *arena;           /* an address of the device where that has memory of its own */
    bool hidden;              /* which the host does not read, and all that launches use is in: one of several GPUs */
    void **reg;               /* [most registers of a stage] of the launch being made */
    const float **edge_rows;  /* [most edge registers of a stage] likewise */
    /* of the pass being run */
    float *const *grad;       /* [program->params], or NULL */
    double *const *statistic; /* [program->params] */
    gs_metrics metrics;
    double edge_seconds;
} gs_exec_device;

/* What each device has of a sum over all of them: parameters' gradients, sums of statistics. The first device's are the
 * caller's. */
typedef struct gs_exec_shares {
    float **grad;             /* [(devices - 1) * params], or NULL */
    double **statistic;       /* likewise */
    float *grad_floats;
    double *statistic_doubles;
    uint64_t grad_count, statistic_count; /* of all of them */
} gs_exec_shares;

struct gs_exec {
    /* set at open */
    const gs_program *program;
    const gs_plan *plan;
    gs_exec_device *on;       /* [devices] */
    uint32_t devices;
    gs_exec_lane *lane;       /* [lanes - GS_LANE_DEVICES] of all devices: lane.h */
    gs_exec_shares shares;
    struct gs_exec_several *several; /* a thread for each of those lanes; NULL: the driving thread has the only one */
    gs_exec_file *file;       /* [arrays + sets], copied */
    uint32_t *io_file;        /* [arrays + sets], GS_NONE where not open */
    uint32_t files, sets, parts, interval_rows, index_bytes, type_bytes, edge_types;
    bool weights;
    uint64_t vertices;
    const gs_exec_chunk *const *chunk; /* [sets] */
    bool verify;
    gs_io *io;
    uint8_t *region[GS_REGION_COUNT]; /* ARENA: see `on` */
    uint64_t region_bytes[GS_REGION_COUNT];

    /* lasting; no two threads write the same byte at a time, as a chunk goes to one device */
    uint8_t *chunk_seen;      /* [sets * parts * parts] a gs_chunk_state of this run */

    /* of the pass being run, by the thread that runs the task */
    gs_lanes lanes;
    double (*span)[2];        /* [tasks] when a task began and ended, gs_now(); NULL: no trace */

    /* of the pass being run, by the driving thread */
    uint32_t *runs_left;      /* [tasks] of a read in flight: parts that have not arrived */
    struct {
        uint32_t task, part;  /* parts before this one were handed over; task GS_NONE: all of what has begun */
    } rest[GS_LANE_DEVICES];  /* of the lane's last transfer */
    gs_exec_stats ahead_stats; /* counts of what is read for the next run; time is spent in the run that spends it */
    const gs_exec_args *args;
    gs_exec_stats stats;
};

/* Memory of the host: RING or RESIDENT. */
static inline void *gs_exec__host(const gs_exec *e, gs_place p) { return e->region[p.region] + p.offset; }

/* As a device sees it; NONE is NULL. */
static inline void *gs_exec__at(const gs_exec *e, const gs_exec_device *x, gs_place p)
{
    if (p.region == GS_REGION_ARENA)
        return x->arena + p.offset;
    return p.region == GS_REGION_NONE ? NULL : gs_exec__host(e, p);
}

/* The task is done, and who waits for it is woken. */
void gs_exec__finish(gs_exec *e, uint32_t task);

/* transfer.c: reads and writes, those for the next run too. */

/* The part of a task's transfer that a completion's tag names. */
gs_io_request gs_exec__request(const gs_exec *e, uint64_t tag);
/* Hands over what is left of a transfer's parts. GS_EAGAIN: io has no room for more now. */
gs_status gs_exec__submit(gs_exec *e, uint32_t task, uint32_t *part);
/* Hands over what may start, takes in what has come; `wait` (where something is under way): at least one. */
gs_status gs_exec__pump(gs_exec *e, bool wait);
/* What the next transfer waits for, lane by lane and last what is read ahead; GS_NONE: nothing, or there is none.
 * True where one may be handed over. */
bool gs_exec__may_transfer(const gs_exec *e, uint32_t missing[GS_LANE_DEVICES + 1]);
/* No task of the pass is done and nothing is counted, but what was read ahead of it. */
void gs_exec__enter_pass(gs_exec *e, uint32_t pass);
/* Waits for all that is under way; its bytes are nobody's. */
void gs_exec__forget_ahead(gs_exec *e);

/* shares.c: what devices but the first have of gradients and statistics. */
gs_status gs_exec__take_shares(gs_exec *e, bool gradients);
void gs_exec__give_shares(gs_exec *e);
/* Each device's share in the pass, all zero. */
void gs_exec__enter_shares(gs_exec *e);
/* Parameters' gradients: each device has those of its rows. */
gs_status gs_exec__reduce_gradients(gs_exec *e);
/* Adds up a statistic of the devices' rows, before it is finished. */
gs_status gs_exec__reduce_statistic(gs_exec *e, uint32_t param);

/* several.c: a thread for each lane of the devices of a plan that has copies as tasks. */
gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c);
void gs_exec__several_close(gs_exec *e); /* where they are open */
/* Runs the pass that was entered, drives io meanwhile. */
gs_status gs_exec__several_run(gs_exec *e);
/* Wakes who waits for the task. */
void gs_exec__several_notify(gs_exec *e, uint32_t task);

/* check.c: what arrived is what was written. Text names file and chunk or bytes. */
gs_status gs_exec__check_blocks(const gs_exec *e, uint32_t file, uint64_t offset, const uint8_t *data, uint64_t bytes);
/* `bytes` of a target's chunks, side by side from this operand interval on. */
gs_status gs_exec__check_chunks(const gs_exec *e, uint32_t set, uint32_t target, uint32_t operand,
                                const uint8_t *data, uint64_t bytes);

/* launch.c: merges doubled edges of chunks in host memory that nothing but sums of rows reads. Before the first
 * pass. */
gs_status gs_exec__merge_chunks(gs_exec *e);
/* launch.c: before a chunk goes where the host cannot read it: what is on the host is what the chunk table says. */
gs_status gs_exec__check_upload(gs_exec *e, const gs_task *t);
/* launch.c: runs one compute task on the device. */
gs_status gs_exec__launch(gs_exec *e, gs_exec_device *x, const gs_task *t);

#endif /* GS_EXEC_EXEC_INTERNAL_H */
