/* plan.h - one epoch as a static list of tasks. Data only; lanes.h says what may begin when.
 *
 * schedule makes it, exec runs it. A task either computes in one memory or moves bytes from one memory to another; how,
 * and in which lane, follows from the two. Lanes take their tasks in list order: reads, computes (with their vertex
 * programs), writes. A task starts when it is the next of its lane and every task in its `deps` is done. As deps always
 * point to earlier tasks of the list, a plan cannot deadlock.
 *
 * Memory of the host and of devices is three regions whose layout the plan fixes: RING (pinned staging: what was read,
 * what is to be written), RESIDENT (whole arrays and chunks that stay in host memory) and ARENA (the device's: sums and
 * registers).
 *
 * Several devices have an arena each, of one layout, and computations find everything there: copies are tasks,
 * with lanes of their own.
 * Units: bytes, rows.
 */
#ifndef GS_PLAN_PLAN_H
#define GS_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gnnstream_reports.h" /* GS_PLAN_DEVICES */
#include "program/program.h"

typedef enum gs_region {
    GS_REGION_NONE,
    GS_REGION_RING,
    GS_REGION_RESIDENT,
    GS_REGION_ARENA,
    GS_REGION_COUNT
} gs_region;

/* Memories: the disk, the host's, and one of each device whose copies are tasks, in their order. A device without such
 * copies computes on the host's. */
enum { GS_DISK, GS_HOST, GS_DEVICE_MEMORIES };

/* Of a rank's part of a plan (plan/part.h): what another rank has, its host's memory or its device's. */
#define GS_RANK_MEMORIES (GS_DEVICE_MEMORIES + GS_PLAN_DEVICES)

static inline bool gs_is_device_memory(uint32_t memory)
{
    return memory >= GS_DEVICE_MEMORIES && memory < GS_RANK_MEMORIES;
}

typedef struct gs_place {
    gs_region region; /* NONE on the disk */
    uint32_t memory;
    uint64_t offset;  /* in the region; on the disk, in the file that the task names */
} gs_place;

static inline gs_place gs_place_on_disk(uint64_t offset) { return (gs_place){GS_REGION_NONE, GS_DISK, offset}; }
static inline gs_place gs_place_behind(gs_place p, uint64_t bytes)
{
    return (gs_place){p.region, p.memory, p.offset + bytes};
}
static inline gs_place gs_place_on_host(gs_region r, uint64_t offset) { return (gs_place){r, GS_HOST, offset}; }

/* Files of a run: one a program array, then one an edge set (those of the store's two directions first). */
#define GS_FILE_EDGES(program, set) ((program)->arrays + (set))

typedef enum gs_task_kind {
    GS_TASK_MOVE,   /* `bytes`, or runs of them, from `source` to `place`, in another memory */
    GS_TASK_ZERO,   /* `bytes` at place = 0 */
    GS_TASK_BEGIN,  /* sum of an edge program over `rows` rows: neutral values */
    GS_TASK_FINISH, /* the same sum is complete: from running to final values */
    GS_TASK_SELF,   /* `rows` of operand from `first_row` on added to the sums at `place` */
    GS_TASK_EDGES,  /* chunk (target, operand): the sum of rows `sum` at `place` += operand rows; `sum` GS_NONE: the
                     * stage's edge program and all other sums */
    GS_TASK_COPY,   /* `bytes` from `source` to `place`, in the same memory */
    GS_TASK_UNROLL, /* chunk (target, operand) of an LSTM's derivative: states go on by its edges, forward */
    GS_TASK_BACK,   /* chunk (target, operand): gradients of states go back by its edges, to the operand rows */
    GS_TASK_STATISTICS, /* the stage's statistics are complete: from sums to values */
    GS_TASK_VERTEX, /* the stage's vertex program on `rows` rows from `first_row` */
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
/* A part has one device, and these behind its lanes. Their tasks begin and end in order. */
enum { GS_LANE_SEND = GS_LANE_DEVICES + GS_DEVICE_LANES, GS_LANE_RECEIVE, GS_PART_LANES };

/* A part of what a move stands for, in blocks of GS_BLOCK_BYTES from its source and from its place alike. */
typedef struct gs_block_run {
    uint32_t first, blocks;
} gs_block_run;

typedef struct gs_task {
    uint8_t kind;        /* gs_task_kind */
    union {
        uint8_t check;   /* gs_check; MOVE from the disk to the host */
        uint8_t whole;   /* EDGES of no sum: the stage's sums begin before these edges and finish behind them */
    };
    uint16_t device;     /* who computes, or whose lane moves; 0 where neither end is a device's */
    uint32_t stage;      /* of the program */
    uint32_t first_dep, deps; /* plan->dep[first_dep .. +deps): task indices */
    uint32_t file;       /* MOVE from or to the disk; EDGES, MOVE of a chunk: of the chunk */
    union {
        uint32_t sum;    /* ZERO, SELF, BEGIN, FINISH: which of the stage's sums; EDGES: likewise, or GS_NONE */
        uint32_t row_bytes; /* MOVE of rows by themselves: of each; else 0 */
    };
    uint32_t target, operand; /* SELF: operand alone; EDGES, UNROLL, BACK; MOVE of a chunk: intervals; with
                               * CHECK_CHUNK, of the first of the target's chunks that it brings. `operand` of a MOVE
                               * of rows from the host to a device of another rank than made them: 1 + that device;
                               * `target` of a MOVE of the store's rows for ranks: their interval */
    union {
        uint32_t rows;   /* VERTEX, SELF, BEGIN, FINISH; EDGES: of the target interval, those that are there */
        uint32_t runs;   /* MOVE: of plan->run; 0: all of `bytes` */
    };
    /* plan->reg[first_reg ..): VERTEX: a place a register; BEGIN, FINISH: the sum's
     * GS_SUM_PLACES; EDGES, SELF of a scaled sum: one, the operand rows' scale; EDGES of no sum: a place an edge
     * register, then GS_SUM_PLACES a sum; UNROLL, BACK: GS_STATE_PLACES. */
    union {
        uint32_t first_reg;
        uint32_t first_run; /* MOVE */
        uint32_t first_word; /* MOVE of rows by themselves: of plan->row_bits, a bit for each row of `bytes` */
    };
    union {
        uint64_t first_row;  /* VERTEX, SELF: in store order */
        uint64_t moved_rows; /* MOVE of rows by themselves: how many bits are set */
    };
    uint64_t bytes;      /* ZERO, COPY, MOVE; the last run's end too */
    gs_place place;      /* MOVE, COPY: to; ZERO, SELF, EDGES: the sums; BACK: operand rows' gradient */
    gs_place source;     /* MOVE, COPY: from; SELF, EDGES, UNROLL, BACK: operand rows */
    gs_place chunk;      /* EDGES, UNROLL, BACK */
    uint64_t chunk_bytes; /* likewise; MOVE to a device: nonzero where it is chunk (target, operand) of `file` */
} gs_task;

/* A read of the pass, one of its first, that may begin while the pass's run before is still under way: when `deps` of
 * that run are done. Its place in the ring is nobody's then. */
typedef struct gs_ahead {
    uint32_t task, first_dep, deps; /* plan->dep[first_dep .. +deps) */
} gs_ahead;

/* An array or a direction's edges kept in a memory in whole or in its first part, or an interval or chunk of them. */
typedef struct gs_resident {
    uint32_t file;
    uint32_t memory;     /* GS_HOST or a device's */
    uint64_t first;      /* byte of the file (of an array of the run: as if all of its rows were there): 0, or of a unit
                          * of a cache, which is loaded as a pass expects it */
    uint64_t bytes;      /* from `first` on (arrays on the host: whole rows of whole intervals, or what their checksums
                          * cover) */
    uint64_t offset;     /* in RESIDENT, or in the device's arena */
    bool load;           /* read once when the run opens (the store's); else the run writes it */
    uint8_t rank;        /* of a part, and made by a stage: who has its rows; then `memory` may be another rank's. In
                          * what was padding, as a plan's bytes count in its budget */
    uint32_t made_by;    /* on a device: the stage that makes it, after whose pass it is loaded; GS_NONE: at once */
    uint32_t target, operand; /* of a chunk on a device; of rows of a cache for ranks: `target` is their interval */
} gs_resident;

_Static_assert(sizeof(gs_resident) == 48, "its size counts in budgets");

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
    double products;        /* gs_stage_products() of its edges */
    uint64_t product_edges; /* of stages that make some */
    uint64_t upload_bytes, forward_bytes, download_bytes; /* of several devices */
    uint32_t blocks;       /* most blocks that a stage's columns are cut in: the P that counts */
    gs_order_report order; /* by simulation */
    uint64_t sent_bytes, received_bytes; /* of a part, to and from other ranks */
    gs_predicted predicted; /* once it was played, as whoever compares, describes or orders plans asks for it again: */
    uint64_t predicted_by;  /* a checksum of the costs with which; 0: it was not */
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
    uint32_t tasks, deps, regs, runs, residents, passes, aheads, row_words;
    uint32_t devices;          /* with copies as tasks; 0: one, without */
    bool ring;                 /* of devices of all switches, each with a part of an interval's rows from the host; else
                                * a chain for each switch */
    bool loads;                /* chunks that are read for a device come to it past the host */
    gs_plan_deals deals;
    gs_task *task;
    uint32_t *dep;
    gs_place *reg;
    gs_block_run *run;
    uint64_t *row_bits;        /* [row_words] rows that are moved by themselves */
    gs_ahead *ahead;
    gs_resident *resident;
    gs_plan_pass *pass;        /* as program->pass */
    gs_plan_spill spill;
    uint64_t region_bytes[GS_REGION_COUNT]; /* ARENA: of the device that has most */
    uint64_t arena_bytes[GS_PLAN_DEVICES];
    uint64_t flight_bytes;     /* most that the disk has under way (schedule/simulate.h) */
    uint64_t lasting_bytes;    /* the first part of RESIDENT, where nothing but the run's own arrays ever changes */
    uint64_t host_bytes;       /* everything on the host, the caller's fixed part included */
    uint64_t device_bytes;     /* of the device that has most */
    uint64_t table_bytes;      /* of this plan itself (part of host_bytes) */
    uint32_t ranks, rank;      /* of a part: of how many, and whose it is; 0: the whole plan */
    uint64_t own_rows[2];      /* of a part: from the first vertex of the rank to the one behind the last */
    uint8_t *maker;            /* [stages * parts] of a part: the rank whose rows those of an interval are, that a stage
                                * makes; else NULL */
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

/* A computation over the edges of a chunk. */
static inline bool gs_task_goes_over_edges(const gs_task *t)
{
    return t->kind == GS_TASK_EDGES || t->kind == GS_TASK_UNROLL || t->kind == GS_TASK_BACK;
}

/* One way between two memories. */
typedef struct gs_plan_link {
    uint32_t from, to;
} gs_plan_link;

/* What takes bytes over a link: requests to the disk; a device, which copies from or to the host, or from a peer, or
 * reads the disk past the host; messages between ranks. */
typedef enum gs_driver {
    GS_DRIVER_NONE,
    GS_DRIVER_IO,
    GS_DRIVER_ENGINE,
    GS_DRIVER_PEER,
    GS_DRIVER_DIRECT,
    GS_DRIVER_RANKS
} gs_driver;

static inline gs_driver gs_link_driver(gs_plan_link k)
{
    if (k.from >= GS_RANK_MEMORIES || k.to >= GS_RANK_MEMORIES)
        return GS_DRIVER_RANKS;
    if (!gs_is_device_memory(k.from) && !gs_is_device_memory(k.to))
        return GS_DRIVER_IO;
    if (gs_is_device_memory(k.from) && gs_is_device_memory(k.to))
        return GS_DRIVER_PEER;
    return k.from == GS_DISK ? GS_DRIVER_DIRECT : GS_DRIVER_ENGINE;
}

/* The device that works at it, which is the one that bytes come to where there are two. */
static inline uint32_t gs_link_device(gs_plan_link k)
{
    return gs_is_device_memory(k.to)     ? k.to - GS_DEVICE_MEMORIES
           : gs_is_device_memory(k.from) ? k.from - GS_DEVICE_MEMORIES
                                         : 0;
}

static inline uint32_t gs_link_lane(gs_plan_link k)
{
    const uint32_t first = GS_LANE_DEVICES + gs_link_device(k) * (uint32_t)GS_DEVICE_LANES;
    switch (gs_link_driver(k)) {
    case GS_DRIVER_ENGINE:
        return first + (k.from == GS_HOST ? GS_LANE_UPLOAD : GS_LANE_DOWNLOAD);
    case GS_DRIVER_PEER:
        return first + GS_LANE_FORWARD;
    case GS_DRIVER_DIRECT:
        return first + GS_LANE_LOAD;
    case GS_DRIVER_RANKS:
        return k.to >= GS_RANK_MEMORIES ? GS_LANE_SEND : GS_LANE_RECEIVE;
    default:
        return k.from == GS_DISK ? GS_LANE_READ : GS_LANE_WRITE;
    }
}

/* Of a MOVE. */
static inline gs_plan_link gs_task_link(const gs_task *t) { return (gs_plan_link){t->source.memory, t->place.memory}; }

/* NONE: the task computes. */
static inline gs_driver gs_task_driver(const gs_task *t)
{
    return t->kind == GS_TASK_MOVE ? gs_link_driver(gs_task_link(t)) : GS_DRIVER_NONE;
}

/* Between two memories, neither of which is the disk. */
static inline bool gs_task_is_copy(const gs_task *t)
{
    return t->kind == GS_TASK_MOVE && t->source.memory != GS_DISK && t->place.memory != GS_DISK;
}

/* Between the disk and a memory. */
static inline bool gs_task_is_transfer(const gs_task *t) { return t->kind == GS_TASK_MOVE && !gs_task_is_copy(t); }

/* From the disk to any memory. */
static inline bool gs_task_reads(const gs_task *t) { return t->kind == GS_TASK_MOVE && t->source.memory == GS_DISK; }

/* To the disk. */
static inline bool gs_task_writes(const gs_task *t) { return t->kind == GS_TASK_MOVE && t->place.memory == GS_DISK; }

/* The end of a transfer that is on the disk, and the other. */
static inline const gs_place *gs_task_on_disk(const gs_task *t) { return gs_task_writes(t) ? &t->place : &t->source; }
static inline const gs_place *gs_task_off_disk(const gs_task *t) { return gs_task_writes(t) ? &t->source : &t->place; }

/* In a plan for one device COMPUTE is the only lane of its own. */
static inline uint32_t gs_lane_of(const gs_task *t, uint32_t device)
{
    return t->kind == GS_TASK_MOVE ? gs_link_lane(gs_task_link(t))
                                   : GS_LANE_DEVICES + device * (uint32_t)GS_DEVICE_LANES + (uint32_t)GS_LANE_COMPUTE;
}
static inline uint32_t gs_task_lane(const gs_task *t) { return gs_lane_of(t, t->device); }

/* Lanes of every pass. */
static inline uint32_t gs_plan_lanes(const gs_plan *p)
{
    if (p->ranks > 0)
        return GS_PART_LANES;
    return GS_LANE_DEVICES + (p->devices > 0 ? p->devices * (uint32_t)GS_DEVICE_LANES : 1);
}

/* Rows that go by themselves from rank to rank are packed: as many messages of each of the two lanes may be under way,
 * for which table_bytes has room. */
#define GS_PLAN_PACKED 4u

/* A MOVE from the host to a device of those rows alone that are needed: to the same places of the interval, one by one.
 * What lies between them stays as it is. */
static inline bool gs_task_moves_rows(const gs_task *t) { return t->kind == GS_TASK_MOVE && t->row_bytes > 0; }

/* Of row_bits, that such a MOVE has. */
static inline uint64_t gs_task_row_words(const gs_task *t) { return (t->bytes / t->row_bytes + 63) / 64; }

/* Rows of such a MOVE that lie side by side: *x becomes the next stretch behind it; {0} is before the first. False:
 * there is none. */
typedef struct gs_row_stretch {
    uint64_t first, rows;
} gs_row_stretch;

bool gs_task_next_rows(const gs_plan *plan, const gs_task *t, gs_row_stretch *x);

void gs_plan_free(gs_plan *p); /* NULL is allowed */

/* Bytes that a MOVE moves. */
uint64_t gs_task_bytes(const gs_plan *plan, const gs_task *t);
/* Requests to the disk, or runs that are copied one by one. */
uint32_t gs_task_requests(const gs_task *t);
/* How many of plan->reg belong to the task: see `first_reg`. */
uint32_t gs_task_registers(const gs_task *t, const gs_program *p);
/* For people: the kind, of moves "read", "write", "upload", "forward", "download", "load", "send" or "receive". */
const char *gs_task_word(const gs_task *t);

/* -- a plan as text, for people and for comparing two versions of the planner.
 *
 * One line a task, in the order of the list, then what stays in memory, what is read ahead, and totals. Indices into
 * the plan's own lists are resolved, so two plans that do the same have the same text.
 */

/* Writes `plan`, which is of `program`, to `out`. Whether all could be written is for the caller to ask of `out`. */
void gs_plan_print(const gs_plan *plan, const gs_program *program, FILE *out);

#endif /* GS_PLAN_PLAN_H */
