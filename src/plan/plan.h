/* plan.h - one epoch as a static list of tasks. Data only; lanes.h says what may begin when.
 *
 * schedule makes it, exec runs it. Lanes take their tasks in list order:
 * reads, computes (with their vertex programs), writes. A task starts when
 * it is the next of its lane and every task in its `deps` is done. As deps always point to
 * earlier tasks of the list, a plan cannot deadlock.
 *
 * Memory is three regions whose layout the plan fixes: RING (pinned staging:
 * what was read, what is to be written), RESIDENT (whole arrays and chunks
 * that stay in host memory) and ARENA (the device's: sums and registers).
 *
 * Several devices have an arena each, of one layout, and computations find everything there: copies are tasks,
 * with lanes of their own.
 * Units: bytes, rows.
 */
#ifndef GS_PLAN_PLAN_H
#define GS_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gnnstream_reports.h" /* GS_PLAN_DEVICES */
#include "program/program.h"

typedef enum gs_region {
    GS_REGION_NONE,
    GS_REGION_RING,
    GS_REGION_RESIDENT,
    GS_REGION_ARENA,
    GS_REGION_COUNT
} gs_region;

typedef struct gs_place {
    gs_region region;
    uint64_t offset;
} gs_place;

/* Files of a run: one a program array, then one an edge set (those of the store's two directions first). */
#define GS_FILE_EDGES(program, set) ((program)->arrays + (set))

typedef enum gs_task_kind {
    GS_TASK_READ,   /* file [offset, +bytes), or runs of it, -> place */
    GS_TASK_WRITE,  /* place -> file [offset, +bytes) */
    GS_TASK_ZERO,   /* `bytes` at place = 0 */
    GS_TASK_BEGIN,  /* sum of an edge program over `rows` rows: neutral values */
    GS_TASK_FINISH, /* the same sum is complete: from running to final values */
    GS_TASK_SELF,   /* `rows` of operand from `first_row` on added to the sums at `place` */
    GS_TASK_EDGES,  /* chunk (target, operand): the sum of rows `sum` at `place` += operand rows; `sum` GS_NONE: the
                     * stage's edge program and all other sums */
    GS_TASK_COPY,   /* `bytes` from `source` to `place` */
    GS_TASK_UNROLL, /* chunk (target, operand) of an LSTM's derivative: states go on by its edges, forward */
    GS_TASK_BACK,   /* chunk (target, operand): gradients of states go back by its edges, to the operand rows */
    GS_TASK_STATISTICS, /* the stage's statistics are complete: from sums to values */
    GS_TASK_VERTEX, /* the stage's vertex program on `rows` rows from `first_row` */
    GS_TASK_UPLOAD,   /* `bytes`, or runs of them, from `source` on the host to `place` on `device` */
    GS_TASK_FORWARD,  /* the same from `source` on `peer` */
    GS_TASK_DOWNLOAD, /* `bytes` from `source` on `device` to `place` on the host */
    GS_TASK_LOAD,     /* chunk (target, operand): `file` [offset, +bytes) -> `place` on `device`, past the host */
    GS_TASK_KINDS
} gs_task_kind;

/* Memory of one sum: its rows, and for ATTEND the running maximum and norm. */
enum { GS_SUM_ACC, GS_SUM_MAXIMUM, GS_SUM_NORM, GS_SUM_PLACES };

/* Memory of the states of an interval in an LSTM's derivative, [rows, width] each. */
enum { GS_STATE, GS_STATE_CELL, GS_STATE_D, GS_STATE_D_CELL, GS_STATE_PLACES };

/* How a read is verified on arrival. */
typedef enum gs_check { GS_CHECK_NONE, GS_CHECK_CHUNK, GS_CHECK_BLOCKS } gs_check;

/* Lanes of a plan: reads, writes, then each device's own. */
enum { GS_LANE_READ, GS_LANE_WRITE, GS_LANE_DEVICES };
enum { GS_LANE_COMPUTE, GS_LANE_UPLOAD, GS_LANE_FORWARD, GS_LANE_DOWNLOAD, GS_LANE_LOAD, GS_DEVICE_LANES };
#define GS_PLAN_LANES (GS_LANE_DEVICES + GS_PLAN_DEVICES * GS_DEVICE_LANES)

/* A part of what a read stands for, in blocks of GS_BLOCK_BYTES from its offset and from its place alike. */
typedef struct gs_block_run {
    uint32_t first, blocks;
} gs_block_run;

typedef struct gs_task {
    gs_task_kind kind;
    gs_check check;      /* READ */
    uint32_t stage;      /* of the program */
    uint32_t first_dep, deps; /* plan->dep[first_dep .. +deps): task indices */
    uint32_t file;       /* READ, WRITE; EDGES, LOAD, UPLOAD of a chunk: of the chunk */
    uint32_t sum;        /* ZERO, SELF, BEGIN, FINISH: which of the stage's sums; EDGES: likewise, or GS_NONE */
    uint32_t target, operand; /* SELF: operand alone; EDGES, UNROLL, BACK; READ with CHECK_CHUNK: intervals, of
                               * the first of the target's chunks that it brings */
    union {
        uint32_t rows;   /* VERTEX, SELF, BEGIN, FINISH; EDGES: of the target interval, those that are there */
        uint32_t runs;   /* READ, UPLOAD, FORWARD: of plan->run; 0: all of [offset, +bytes) */
    };
    /* plan->reg[first_reg ..): VERTEX: a place a register; BEGIN, FINISH: the sum's
     * GS_SUM_PLACES; EDGES, SELF of a scaled sum: one, the operand rows' scale; EDGES of no sum: a place an edge
     * register, then GS_SUM_PLACES a sum; UNROLL, BACK: GS_STATE_PLACES. */
    union {
        uint32_t first_reg;
        uint32_t first_run; /* READ, UPLOAD, FORWARD */
    };
    uint16_t device;     /* whose arena it is, and who computes; READ, WRITE: 0 */
    uint16_t peer;       /* FORWARD */
    uint64_t first_row;  /* VERTEX, SELF: in store order */
    uint64_t offset, bytes; /* READ, WRITE, LOAD: file extent; ZERO, COPY, UPLOAD...: bytes, the last run's end too */
    gs_place place;      /* READ, WRITE: memory; ZERO, SELF, EDGES: the sums; COPY: to; BACK: operand rows' gradient */
    gs_place source;     /* SELF, EDGES, UNROLL, BACK: operand rows; COPY: from */
    gs_place chunk;      /* EDGES, UNROLL, BACK */
    uint64_t chunk_bytes; /* likewise; LOAD; UPLOAD: nonzero where it is chunk (target, operand) of `file` */
} gs_task;

/* A read of the pass, one of its first, that may begin while the pass's run before is still under way: when `deps` of
 * that run are done. Its place in the ring is nobody's then. */
typedef struct gs_ahead {
    uint32_t task, first_dep, deps; /* plan->dep[first_dep .. +deps) */
} gs_ahead;

/* An array or a direction's edges kept in a memory in whole or in its first part, or an interval or chunk of them. */
typedef struct gs_resident {
    uint32_t file;
    uint32_t memory;     /* 0: the host's; 1 + device */
    uint64_t first;      /* byte of the file (of an array of the run: as if all of its rows were there): 0, or of a unit
                          * of a cache, which is loaded as a pass expects it */
    uint64_t bytes;      /* from `first` on (arrays on the host: whole rows of whole intervals, or what their checksums
                          * cover) */
    uint64_t offset;     /* in RESIDENT, or in the device's arena */
    bool load;           /* read once when the run opens (the store's); else the run writes it */
    uint32_t made_by;    /* on a device: the stage that makes it, after whose pass it is loaded; GS_NONE: at once */
    uint32_t target, operand; /* of a chunk on a device */
} gs_resident;

typedef struct gs_plan_pass {
    uint32_t first_task, tasks;
    uint32_t first_ahead, aheads; /* plan->ahead: the pass's first reads, in the order of their lane */
    uint64_t read_bytes, written_bytes, read_requests; /* of the disk, loads too */
    uint64_t loaded_bytes; /* of read_bytes: those that come to devices past the host */
    uint64_t skipped_bytes; /* of operand intervals, that no edge needs and no read brings */
    uint64_t cached_bytes; /* uses of rows and chunks that are kept, so not read */
    uint64_t device_cached_bytes; /* the same of what devices keep, so not copied to them */
    uint64_t edges, rows;  /* that edge passes go over, and vertex programs, stage by stage */
    uint64_t edge_bytes;   /* operand rows gathered by edge passes */
    double dense_flops, edge_flops;
    uint64_t upload_bytes, forward_bytes, download_bytes; /* of several devices */
    uint32_t blocks;       /* most blocks that a stage's columns are cut in: the P that counts */
    gs_order_report order; /* by simulation */
} gs_plan_pass;

/* Factors of the devices' speeds, by which a stage's columns are dealt: of those like some device, and of others. */
typedef struct gs_plan_part {
    double like, others;
} gs_plan_part;

/* A way to deal the columns of stages to devices that are not alike. */
typedef struct gs_plan_deal {
    uint32_t like;               /* the device whose like are told from others */
    gs_plan_part edges, vertices; /* of stages with an edge pass, and of others */
    bool by_stage;               /* from the best way before on, each stage has what is best for it */
    double seconds;              /* predicted, of an epoch with its share of evaluations */
} gs_plan_deal;

#define GS_PLAN_DEALS 16u

/* Ways that were tried, and which of them a plan's is. None: devices are alike. */
typedef struct gs_plan_deals {
    gs_plan_deal deal[GS_PLAN_DEALS];
    uint32_t count, taken;
} gs_plan_deals;

/* [program->arrays] of the run's file, where an array of the run has these bytes, of its intervals that are not kept;
 * 0: none. Arrays that are never there at the same time may have the same. */
typedef struct gs_plan_spill {
    uint64_t *first, *bytes;
    uint64_t total; /* size of the file */
} gs_plan_spill;

typedef struct gs_plan {
    uint32_t tasks, deps, regs, runs, residents, passes, aheads;
    uint32_t devices;          /* with copies as tasks; 0: one, without */
    bool ring;                 /* of devices of all switches, each with a part of an interval's rows from the host; else
                                * a chain for each switch */
    bool loads;                /* chunks that are read for a device come to it past the host */
    gs_plan_deals deals;
    gs_task *task;
    uint32_t *dep;
    gs_place *reg;
    gs_block_run *run;
    gs_ahead *ahead;
    gs_resident *resident;
    gs_plan_pass *pass;        /* as program->pass */
    gs_plan_spill spill;
    uint64_t region_bytes[GS_REGION_COUNT]; /* ARENA: of the device that has most */
    uint64_t arena_bytes[GS_PLAN_DEVICES];
    uint64_t flight_bytes;     /* most that the disk has under way (schedule/flight.h) */
    uint64_t lasting_bytes;    /* the first part of RESIDENT, where nothing but the run's own arrays ever changes */
    uint64_t host_bytes;       /* everything on the host, the caller's fixed part included */
    uint64_t device_bytes;     /* of the device that has most */
    uint64_t table_bytes;      /* of this plan itself (part of host_bytes) */
} gs_plan;

/* May a device be given both at once? They are of chunks of one operand interval in one edge pass, and add to other
 * rows or to another sum. `b` comes behind `a`. */
static inline bool gs_tasks_go_together(const gs_task *a, const gs_task *b)
{
    return a->kind == GS_TASK_EDGES && b->kind == GS_TASK_EDGES && a->stage == b->stage && a->operand == b->operand &&
           (a->target < b->target || (a->target == b->target && a->sum < b->sum));
}

/* An edge pass's task for one sum of rows; else it is for the stage's edge program. */
static inline bool gs_task_sums_rows(const gs_task *t) { return t->kind == GS_TASK_EDGES && t->sum != GS_NONE; }

/* Between two memories, neither of which is the disk. */
static inline bool gs_task_is_copy(gs_task_kind k)
{
    return k == GS_TASK_UPLOAD || k == GS_TASK_FORWARD || k == GS_TASK_DOWNLOAD;
}

/* Between the disk and a memory. */
static inline bool gs_task_is_transfer(gs_task_kind k)
{
    return k == GS_TASK_READ || k == GS_TASK_WRITE || k == GS_TASK_LOAD;
}

/* In a plan for one device COMPUTE is the only lane of its own. */
static inline uint32_t gs_task_lane(const gs_task *t)
{
    const uint32_t first = GS_LANE_DEVICES + t->device * (uint32_t)GS_DEVICE_LANES;
    if (t->kind == GS_TASK_READ || t->kind == GS_TASK_WRITE)
        return t->kind == GS_TASK_READ ? GS_LANE_READ : GS_LANE_WRITE;
    return first + (uint32_t)(t->kind == GS_TASK_UPLOAD     ? GS_LANE_UPLOAD
                              : t->kind == GS_TASK_FORWARD  ? GS_LANE_FORWARD
                              : t->kind == GS_TASK_DOWNLOAD ? GS_LANE_DOWNLOAD
                              : t->kind == GS_TASK_LOAD     ? GS_LANE_LOAD
                                                            : GS_LANE_COMPUTE);
}

/* Lanes of every pass. */
static inline uint32_t gs_plan_lanes(const gs_plan *p)
{
    return GS_LANE_DEVICES + (p->devices > 0 ? p->devices * (uint32_t)GS_DEVICE_LANES : 1);
}

void gs_plan_free(gs_plan *p); /* NULL is allowed */

/* Bytes that a READ, WRITE, LOAD, UPLOAD, FORWARD or DOWNLOAD moves. */
uint64_t gs_task_bytes(const gs_plan *plan, const gs_task *t);
/* Requests of a READ, WRITE or LOAD; runs of an UPLOAD, FORWARD or DOWNLOAD. */
uint32_t gs_task_requests(const gs_task *t);

#endif /* GS_PLAN_PLAN_H */
