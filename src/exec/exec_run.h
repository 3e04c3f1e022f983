/* exec_run.h - the state of a run: its parts, and what the sources that own them do.
 *
 * plan/lanes.h draws the states of a task. What moves one along here: transfer.c hands reads and writes to io and takes
 * in what has come; lane.c begins what a device does and notes its end.
 */
#ifndef GS_EXEC_EXEC_RUN_H
#define GS_EXEC_EXEC_RUN_H

#include <pthread.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "exec/load.h"
#include "plan/lanes.h"
#include "plan/links.h"
#include "store/chunk_view.h"

/* -- reads, writes and copies of the plan. */

struct gs_exec_lane;

typedef struct gs_exec_wires {
    gs_topology topology;
    pthread_mutex_t lock;     /* guards the clocks */
    double busy[GS_WIRES];    /* until when */
} gs_exec_wires;

void gs_exec__take_wires(gs_exec_wires *w, const gs_topology *topology);
void gs_exec__give_wires(gs_exec_wires *w);
/* A copy, which could begin at `ready` and ends no sooner than its wire allows; on a device with memory of its own it
 * is only begun. */
gs_status gs_exec__copy(struct gs_exec_lane *l, const gs_task *t, double ready, double span[2]);
/* Is the device slower than the processors? Then a computation of it took `span`, and this thread `computed` seconds of
 * a processor in it: waits, and moves both ends, until it took what it would on a device of the topology's speed. */
bool gs_exec__is_paced(const struct gs_exec_lane *l);
void gs_exec__pace(struct gs_exec_lane *l, double span[2], double computed);
/* Waits for all copies of the device that went this way. */
gs_status gs_exec__wait_copied(gs_device *d, gs_device_way way);
/* Which of its device's ways the lane's copies go; or LAUNCHES. */
gs_device_way gs_exec__way_of(uint32_t lane);

/* Reads and writes of a pass, and the first reads of its next run. For the driving thread alone. */

typedef struct gs_exec_transfers {
    pthread_t driver;         /* of the pass being run: it alone calls the functions below */
    uint32_t *runs_left;      /* [tasks] of a read in flight: parts that have not arrived; of what a device was told:
                               * the lower bits of its number there */
    struct {
        uint32_t task, part;  /* parts before this one were handed over; task GS_NONE: all of what has begun */
    } rest[GS_LANE_DEVICES];  /* of the lane's last transfer */
    gs_exec_stats ahead;      /* counts of what is read for the next run; time is spent in the run that spends it */
} gs_exec_transfers;

/* The part of a task's transfer that a completion's tag names. */
gs_io_request gs_exec__request(const gs_exec *e, uint64_t tag);
/* Hands over what is left of a transfer's parts. GS_EAGAIN: io has no room for more now. */
gs_status gs_exec__submit(gs_exec *e, uint32_t task, uint32_t *part);
/* Hands over what may start, takes in what has come; `wait` (where something is under way): at least one. */
gs_status gs_exec__pump(gs_exec *e, bool wait);
/* Tasks that the next transfers wait for, lane by lane, and last that of what is read ahead; GS_NONE: nothing, or there
 * is none. True where a transfer may be handed over. */
bool gs_exec__may_transfer(const gs_exec *e, uint32_t missing[GS_LANE_DEVICES + 1]);
/* No task of the pass is done and nothing is counted, but what was read ahead of it. */
void gs_exec__enter_pass(gs_exec *e, uint32_t pass);
/* Waits for all that is under way; its bytes are nobody's. */
void gs_exec__forget_ahead(gs_exec *e);

/* -- what a run knows of chunks of edges, and how their bytes become views that a device takes. */

struct gs_exec_device;

typedef enum gs_chunk_state {
    GS_CHUNK_UNSEEN,
    GS_CHUNK_CHECKED, /* in depth */
    GS_CHUNK_MERGED,  /* and its doubled edges are one each */
    GS_CHUNK_JOINED,  /* its place has the edges of several chunks of its column, its own first */
    GS_CHUNK_ELSEWHERE, /* its edges are among those of such a one: nothing is left to do */
} gs_chunk_state;

typedef struct gs_exec_chunks {
    /* set at open */
    const gs_exec_chunk *const *chunk; /* [sets] */
    uint32_t sets, parts, interval_rows, index_bytes, edge_types;
    gs_edge_data data;     /* of each edge */
    gs_dtype feature_type; /* of its features */
    uint64_t vertices;
    /* lasting; lanes that look at the same chunk may each say that it is checked; merged and joined it is before they
     * begin */
    uint8_t *seen;            /* [sets * parts * parts] a gs_chunk_state of this run */
} gs_exec_chunks;

uint32_t gs_exec__interval_rows(const gs_exec *e, uint32_t interval);
/* The chunk of a compute task, as its device sees it. Where the host sees it too, its indices are checked when they are
 * first used. */
gs_status gs_exec__view_chunk(gs_exec *e, const struct gs_exec_device *x, const gs_task *t, gs_chunk_view *view);
/* Edges of a compute task's chunk. */
uint64_t gs_exec__chunk_edges(const gs_exec *e, const gs_task *t);
/* State of a compute task's chunk. */
gs_chunk_state gs_exec__chunk_state(const gs_exec *e, const gs_task *t);
void gs_exec__set_chunk_state(gs_exec *e, const gs_task *t, gs_chunk_state state);
/* Before a chunk goes to a device's memory: what is on the host is what the chunk table says. */
gs_status gs_exec__check_upload(gs_exec *e, const gs_task *t);
/* The same of a chunk at `data` that is to stay on a device. */
gs_status gs_exec__check_loaded(gs_exec *e, const gs_resident *r, const void *data);
/* exec_merge.c: merges doubled edges of chunks in host memory that nothing but sums of rows reads, and joins the chunks
 * of a column. Before the first pass. */
gs_status gs_exec__merge_chunks(gs_exec *e);

/* -- what each device has of a sum over all of them: gradients, sums of statistics, figures of the loss. */

/* Numbers that every rank counts, beside those of columns and classes. */
#define GS_EXEC_NUMBERS 16u

/* Shares of gradients and counts of all devices but the first, whose share is the caller's; `column` has all. */
typedef struct gs_exec_shares {
    double *column;           /* [devices][columns], or NULL */
    uint64_t columns;         /* GS_LOSS_SPLITS * GS_LOSS_SUMS * columns of the logits */
    uint32_t *found;          /* [devices][founds], or NULL: gs_metrics.found */
    uint64_t founds;          /* GS_LOSS_SPLITS * GS_LOSS_SUMS * classes */
    float **grad;             /* [(devices - 1) * params], or NULL */
    double **statistic;       /* likewise */
    float *grad_floats;       /* as gs_program_place_params() lays them out, one device's behind the other's */
    double *statistic_doubles;
    uint64_t grad_count, statistic_count; /* of all of them */
    uint64_t learned;         /* floats of a device's gradients */
    uint32_t first;           /* parameter that they begin with */
    double *numbers;          /* [number_count] of several ranks: what each has counted (messages.c); else NULL */
    uint64_t number_count;
} gs_exec_shares;

gs_status gs_exec__take_shares(gs_exec *e, bool gradients);
/* Adds up a statistic of the devices' rows, before it is finished. */
gs_status gs_exec__reduce_statistic(gs_exec *e, uint32_t param);

/* -- what has not come back for long: says where the pass stands, and in the end gives the run up.
 *
 * Memory that is given up is never freed: the kernel, or a device, may still write there.
 */

typedef struct gs_exec_patience {
    /* set at open */
    double say, end;          /* gs_exec_config */
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

/* -- who waits for which task, where each lane of a device has a thread. */

/* A thread that may wait: of a lane, or the driving one. */
typedef struct gs_exec_waiter {
    pthread_cond_t wake;
    uint32_t missing[GS_LANE_DEVICES + 1]; /* tasks that it waits for, each enough to wake it; else GS_NONE */
} gs_exec_waiter;

typedef struct gs_exec_waiters {
    pthread_mutex_t lock;     /* guards `missing`, and what its users say */
    gs_exec_waiter *waiter;   /* [count] */
    uint32_t count;           /* 0: one thread runs all, and nobody waits */
} gs_exec_waiters;

gs_status gs_exec__take_waiters(gs_exec_waiters *w, uint32_t count);
void gs_exec__give_waiters(gs_exec_waiters *w); /* all zero is allowed */
/* Under the lock: it waits for nothing. */
void gs_exec__waits_no_more(gs_exec_waiter *w);
/* Under the lock. */
void gs_exec__wake_all(gs_exec_waiters *w);
/* The task is done, and who waits for it is woken. */
void gs_exec__finish(gs_exec *e, uint32_t task);
/* Its device was told the task, under this number, and puts behind it what is to come behind it: so who waits for that
 * alone is woken. */
void gs_exec__tell(gs_exec *e, uint32_t task, uint64_t number);

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
    uint8_t *resident; /* of a run to whose device graphs are sent: behind the arena; else NULL */
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
    uint8_t *place, *sent, *kept, *draw; /* the last one of who draws graphs */
    uint64_t row_bytes;
    uint32_t room;            /* rows that `sent` has room for */
} gs_exec_spread_memory;

struct gs_exec {
    /* set at open */
    const gs_program *program;
    const gs_plan *plan;
    uint8_t *region[GS_REGION_COUNT]; /* ARENA: see `on` */
    uint64_t region_bytes[GS_REGION_COUNT];
    gs_arena arrays;          /* what its parts have from opening to closing */
    gs_exec_device *on;       /* [devices] */
    uint32_t devices;
    gs_exec_files files;
    gs_exec_chunks chunks;
    const gs_exec_graph *graph; /* bound; else NULL */
    bool bound;               /* opened for that */
    uint64_t piece_bytes;     /* of such a graph's pieces, at most */
    uint32_t slots, slot;     /* how many; that of `graph` */
    bool defers;              /* a device has memory of its own: what it begins may not be done when it says so */
    bool outside;             /* arrays of the program have no place on a device with memory of its own */
    gs_exec_wire *wire;       /* of such graphs to a device on host memory; NULL: there is none */
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


/* What is at `offset` of RESIDENT where a bound graph has rows outside (bound.c). */
void *gs_exec__outside_at(const gs_exec *e, uint64_t offset);

/* Memory of the host: RING or RESIDENT. */
static inline void *gs_exec__host(const gs_exec *e, gs_place p)
{
    return p.region == GS_REGION_RESIDENT && e->graph != NULL && e->graph->outsides > 0
               ? gs_exec__outside_at(e, p.offset)
               : e->region[p.region] + p.offset;
}

/* Where a bound graph of the device's second slot has what is at `offset` of RESIDENT (bound.c). */
void *gs_exec__second_at(const gs_exec *e, const gs_exec_device *x, uint64_t offset);

/* Where it is on a device with memory of its own that has no place for arrays that are outside, or the caller's rows of
 * one of these; bytes of RESIDENT that such a device leaves out (bound.c). */
void *gs_exec__there_at(const gs_exec *e, const gs_exec_device *x, uint64_t offset);
uint64_t gs_exec__left_out(const gs_exec *e);

/* As a device sees it; NONE is NULL. */
static inline void *gs_exec__at(const gs_exec *e, const gs_exec_device *x, gs_place p)
{
    if (p.region == GS_REGION_ARENA)
        return x->arena + p.offset;
    if (p.region == GS_REGION_RESIDENT && x->resident != NULL)
        return e->outside    ? gs_exec__there_at(e, x, p.offset)
               : e->slot > 0 ? gs_exec__second_at(e, x, p.offset)
                             : x->resident + p.offset;
    return p.region == GS_REGION_NONE ? NULL : gs_exec__host(e, p);
}

#endif /* GS_EXEC_EXEC_RUN_H */
