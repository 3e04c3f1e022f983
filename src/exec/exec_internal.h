/* exec_internal.h - the state of a run, shared by the files of this room.
 *
 * A task is in one of these states; drive.c moves it along:
 *
 *   reads, writes   waiting -> (deps done, io has room) -> in flight -> done
 *   computes        waiting -> (deps done, its turn)    -> launched -> done
 *
 * Fields are grouped by who changes them and when.
 */
#ifndef GS_EXEC_EXEC_INTERNAL_H
#define GS_EXEC_EXEC_INTERNAL_H

#include "exec/exec.h"

struct gs_exec_several;

typedef enum gs_chunk_state {
    GS_CHUNK_UNSEEN,
    GS_CHUNK_CHECKED, /* in depth */
    GS_CHUNK_MERGED,  /* and its doubled edges are one each (launch.c) */
} gs_chunk_state;

/* Launches that a device with memory of its own may have under way: one runs, one's bytes are copied, one waits. */
#define GS_EXEC_FLIGHT 3u

/* Of one device's plan, as gs_task_lane() numbers them. */
enum lane { LANE_READ = GS_LANE_READ, LANE_WRITE = GS_LANE_WRITE, LANE_COMPUTE = GS_LANE_DEVICES, LANE_COUNT };

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

struct gs_exec {
    /* set at open */
    const gs_program *program;
    const gs_plan *plan;
    gs_exec_device *on;       /* [devices] */
    uint32_t devices, lanes;
    struct gs_exec_several *several; /* their threads; NULL: one device, fed by the driving thread */
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
    uint32_t *lane_task;      /* task indices, pass by pass, lane by lane */
    uint32_t *lane_first;     /* [passes * lanes + 1] into lane_task */

    /* lasting; no two threads write the same byte at a time, as a chunk goes to one device */
    uint8_t *chunk_seen;      /* [sets * parts * parts] a gs_chunk_state of this run */

    /* of the pass being run, by the thread that runs the task */
    double (*span)[2];        /* [tasks] when a task began and ended, gs_now(); NULL: no trace */
    uint8_t *done;            /* [tasks] */
    uint32_t *runs_left;      /* [tasks] of a read in flight: parts that have not arrived */
    uint32_t next_run;        /* of the read lane's next task: parts already handed over */
    struct {
        uint32_t task;
        uint64_t launch;
    } flight[GS_EXEC_FLIGHT]; /* compute tasks that were launched, oldest first */
    uint32_t flights;
    uint32_t next[LANE_COUNT], end[LANE_COUNT]; /* into lane_task */

    /* of the run after it, where that is of the same pass: ahead.c */
    struct {
        uint32_t pass;
        uint32_t begun;       /* reads of the pass's list, the last one perhaps in part */
        uint32_t part;        /* of that one: parts handed over; 0: all */
        uint32_t flying;      /* parts that have not arrived */
        gs_exec_stats stats;  /* counts alone: time is spent in the run that spends it */
    } ahead;
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

/* A device computes, copies or the driving thread transfers: whoever is told sees what the task has made. */
static inline bool gs_exec__is_done(const gs_exec *e, uint32_t task)
{
    return __atomic_load_n(&e->done[task], __ATOMIC_ACQUIRE) != 0;
}
void gs_exec__set_done(gs_exec *e, uint32_t task);
/* GS_NONE where all are done. */
uint32_t gs_exec__missing_dep(const gs_exec *e, const gs_task *t);

/* ahead.c: what is read in one run for the next. */
gs_status gs_exec__feed_ahead(gs_exec *e);
/* Is the transfer under way for the next run? */
bool gs_exec__is_ahead(const gs_exec *e, uint32_t task);
/* No task of the pass is done and nothing is counted, but what was read ahead of it. */
void gs_exec__enter_pass(gs_exec *e, uint32_t pass);
/* Waits for all that is under way; its bytes are nobody's. */
void gs_exec__forget_ahead(gs_exec *e);
/* drive.c: the part of a task's transfer that a completion's tag names. */
gs_io_request gs_exec__request(const gs_exec *e, uint64_t tag);
/* drive.c: hands over what is left of a transfer's parts. GS_EAGAIN: io has no room for more now. */
gs_status gs_exec__submit(gs_exec *e, uint32_t task, uint32_t *part);
/* drive.c: hands over what may start, takes in what has come; `wait` (where something is under way): at least one. */
gs_status gs_exec__pump(gs_exec *e, bool wait);

/* several.c: the devices of a plan that has copies as tasks. Each lane of theirs is a thread. */
gs_status gs_exec__several_open(gs_exec *e, const gs_exec_config *c);
void gs_exec__several_close(gs_exec *e); /* where they are open */
/* Runs the pass, drives io meanwhile; adds up what the devices have. */
gs_status gs_exec__several_run(gs_exec *e, uint32_t pass);
/* Wakes who waits for the task. */
void gs_exec__several_notify(gs_exec *e, uint32_t task);
/* Adds up a statistic of the devices' rows, before it is finished. */
gs_status gs_exec__several_statistic(gs_exec *e, uint32_t param);

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
