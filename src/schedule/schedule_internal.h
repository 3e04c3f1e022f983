/* schedule_internal.h - the parts of the scheduler, for each other and for tests.
 *
 *   layout     what a row, a tile and an interval of everything weighs
 *   choice     what is free to choose: block sizes, ring, what stays resident
 *   liveness   when it is there, and where
 *   runs       which parts of an interval to read
 *   cache      which reads of an epoch leave their data where a later one finds it
 *   ring_sim   where each staged piece stands, and what it must wait for
 *   column_order in which order a stage takes its blocks of columns
 *   deal       which device has which target intervals
 *   emit       layout + choice -> plan
 *   schedule   searches for the choice that moves the fewest bytes
 *
 * Units: bytes and rows.
 */
#ifndef GS_SCHEDULE_SCHEDULE_INTERNAL_H
#define GS_SCHEDULE_SCHEDULE_INTERNAL_H

#include "base/size.h"
#include "schedule/cache.h"
#include "schedule/schedule.h"

/* Vertex arrays of at most this many bytes a row are staged an interval at a
 * time, not a tile: a tile of them would be a small, expensive read. */
#define GS_NARROW_ROW_BYTES 16u
/* Tiles are multiples of this many rows, so that a tile of any array that a run writes (rows are whole words of
 * 4 bytes) starts at a multiple of GS_BLOCK_BYTES within its interval. */
#define GS_TILE_ROWS 1024u
/* A byte written wears the disk, so it counts this share of its time once more, also where
 * that time is hidden behind other work. */
#define GS_WEAR_SHARE 0.25

typedef struct gs_stage_layout {
    uint32_t tile_rows;
    uint64_t scratch_bytes;   /* registers of a tile that live in the arena */
    uint64_t *reg_offset;     /* [regs] in scratch, UINT64_MAX where not there */
} gs_stage_layout;

/* How many rows a launch of a vertex program has. */
typedef enum gs_tiles {
    GS_TILES_SHORT,    /* what they load and store is staged, and stays in a cache */
    GS_TILES_LONG,     /* staged too, for devices whose launches take long to ask for */
    GS_TILES_IN_PLACE, /* nothing is staged */
} gs_tiles;

typedef struct gs_layout {
    const gs_schedule_config *config;
    bool long_tiles;
    bool staged;              /* tiles are short, as what they load and store goes through the ring */
    const gs_program *program;
    const gs_chunk_table *chunks;
    uint32_t parts;
    uint32_t sets;
    gs_edge_set set[GS_EDGE_SETS];
    uint32_t *stage_set;      /* [stages] the edges that a stage's sums go over */
    uint32_t *span;           /* [stages] from an interval's first row to the last that the stage runs for, at most */
    uint64_t *row_bytes;      /* [arrays] */
    uint32_t *stored_by;      /* [arrays] the stage whose vertex program stores it; GS_NONE: of the store, or of an edge
                               * pass */
    uint64_t *spill_interval; /* [arrays] bytes of an interval in a spill file; 0: a store array */
    gs_stage_layout *stage;   /* [stages] */
} gs_layout;

/* How often an epoch runs a pass: "setup" and "predict" happen once a run. */
double gs_pass_weight(const gs_layout *l, uint32_t pass);

/* Is the stage's edge pass the derivative of a sequence? Its memory is states, not sums. */
static inline bool gs_stage_is_back(const gs_stage *s)
{
    return s->sums == 1 && s->sum[0].kind == GS_SUM_LSTM_BACK;
}

/* Columns of a part of a sum's memory; 0 where the sum has no such part. An LSTM's cell stands where an
 * attention's maximum does. */
static inline uint32_t gs_sum_width(const gs_stage *s, uint32_t sum, int part)
{
    const gs_sum *m = &s->sum[sum];
    if (m->kind == GS_SUM_LSTM_BACK)
        return 0;
    if (part == GS_SUM_ACC || (m->kind == GS_SUM_LSTM && part == GS_SUM_MAXIMUM))
        return s->reg[m->reg].width;
    return m->kind == GS_SUM_ATTEND ? s->reg[m->lse].width : 0;
}

static inline const gs_chunk *gs_layout_chunk(const gs_layout *l, uint32_t stage, uint32_t target, uint32_t operand)
{
    return &l->set[l->stage_set[stage]].chunk[(uint64_t)target * l->parts + operand];
}

/* Rows from the interval's first to the last that the stage runs for; 0: it runs for none. */
uint32_t gs_layout_rows(const gs_layout *l, uint32_t stage, uint32_t interval);
/* True where the stage does not run for all rows. */
bool gs_layout_prunes(const gs_layout *l, uint32_t stage);
/* Runs of rows of an interval that the stage runs for. */
uint32_t gs_layout_runs(const gs_layout *l, uint32_t stage, uint32_t interval);
gs_row_run gs_layout_run(const gs_layout *l, uint32_t stage, uint32_t interval, uint32_t k);

/* True where any of the rows is read and not 0. */
bool gs_layout_holds(const gs_layout *l, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows);
/* The next run, from number *k (at first 0) on, of rows that the stage runs for and the array holds: where it is 0
 * adding it to a sum changes nothing. False: there is none. */
bool gs_layout_own_run(const gs_layout *l, uint32_t stage, uint32_t array, uint32_t interval, uint32_t *k,
                       gs_row_run *out);

gs_status gs_layout_make(gs_layout *out, const gs_schedule_config *config, gs_tiles tiles);
void gs_layout_drop(gs_layout *l);

/* The derivative of a sequence goes over the chunks of a column from the last to the first and needs the states at the
 * start of each. They are kept at the start of every group of `group` chunks, and inside one group at a time. */
static inline uint32_t gs_state_slots(uint32_t parts, uint32_t group)
{
    return (uint32_t)gs_div_up(parts, group) + group - 1;
}

/* State and cell of one target interval. */
static inline uint64_t gs_state_bytes(const gs_layout *l, const gs_stage *s)
{
    return gs_align_up(8ull * l->program->param[s->sum[0].weight].cols * l->chunks->interval_rows, 64);
}

/* When something is in memory: the first and the last point in time of a program (liveness.c). */
typedef struct gs_liveness {
    uint32_t first, last;
} gs_liveness;

/* Bytes of RESIDENT that a file or a sum has while it is live. */
typedef struct gs_allocation {
    uint32_t what; /* file, or behind them stage * GS_STAGE_SUMS + sum */
    uint64_t offset, bytes;
    gs_liveness live;
} gs_allocation;

/* The accesses of a pass to units of one memory, in their order, and what is made of them. */
typedef struct gs_cache_list {
    gs_cache_access *access;
    uint32_t accesses, room;
    const gs_cache_plan *plan; /* NULL: none; its owner drops it */
} gs_cache_list;

/* What stays in the memories of devices that computations find everything in (device_cache.c). A unit is an interval of
 * an array or a chunk, numbered as gs_layout_units() says. */
typedef struct gs_device_cache {
    uint32_t devices, passes;  /* 0: there is no cache, and nothing is listed */
    bool tracing;              /* emitting lists accesses */
    bool whole;                /* a unit that is needed in part is brought whole where it is to stay */
    gs_cache_list *list;       /* [devices * passes] */
    gs_cache_plan *plan;       /* [devices * passes] of those */
    gs_cache_fixed **fixed;    /* [devices][fixeds] there when an epoch begins, by place: loaded when the run opens, or
                                * once a pass "setup" has made them */
    uint32_t *fixeds;          /* [devices] */
    uint64_t used_bytes;       /* of each device; 0: there is no cache */
    bool *own;                 /* [arrays * parts] units of arrays of the run that their device alone ever needs */
    bool *alone;               /* [arrays] those all of whose units are such */
    double *host_share;        /* [files] of a file's uses, those that go to the host */
    uint64_t load_most;        /* bytes of the host's ring that loading takes */
} gs_device_cache;

typedef struct gs_choice {
    uint64_t arena_bytes;
    uint64_t held_bytes;      /* the arena and the block's rows at the target end */
    uint64_t staging_bytes;   /* of devices with copies as tasks: of each one's staging ring, behind the arena's sums */
    uint64_t spare_bytes;     /* of each of those, what is left for both that ring and what stays */
    uint32_t *deal;           /* [stages * (devices + 1)] of several devices: first target interval of each, and the
                               * end */
    uint64_t ring_bytes;
    uint32_t *block;          /* [stages] target intervals whose sums are held at a time */
    uint32_t *group;          /* [stages] derivatives of sequences: chunks of a group */
    uint32_t *kept_intervals; /* [arrays] first intervals kept in host memory */
    uint64_t *kept_edges;     /* [sets] first bytes of an edge file kept in host memory */
    double *rank;             /* [files] scratch of gs_choice_keep() */
    double *operand_uses;     /* [stages] how often a pass reads an operand row, on average */
    uint64_t resident_bytes;
    bool shares;              /* what is never there at the same time may have one place */
    bool sums_resident;       /* sums stand in RESIDENT, among those */
    uint64_t arena_taken;     /* of arena_bytes, what is taken as ARENA */
    uint64_t *offset;         /* [files] in RESIDENT, of what is kept */
    uint64_t *sum_offset;     /* [stages * GS_STAGE_SUMS] in RESIDENT; UINT64_MAX: in the arena */
    uint32_t *sum_array;      /* [stages * GS_STAGE_SUMS] array in whose place it is added up, or GS_NONE */
    gs_allocation *allocation; /* [allocations] by place */
    gs_allocation *unplaced;  /* scratch of as many */
    uint32_t allocations;
    uint64_t keep_bytes;      /* that gs_choice_keep() was given */
    uint32_t *order;          /* [stages * parts] block of columns that the stage takes k-th */
    uint64_t *mask;           /* [granules.words] scratch */
    bool any_tables;          /* also plans whose own tables are beyond the host's budget, to say what would do */
    /* What is left of host memory for units of the store's files, beside what is kept for good. */
    bool chunks_alone;        /* a read for each chunk: the ring has no room for more */
    bool made_only;           /* keep arrays of the run and narrow ones, leave the rest to the cache */
    bool tracing;             /* emitting lists the accesses of `cached_pass` */
    uint32_t cached_pass;
    gs_cache_list host;       /* of that pass */
    uint64_t cache_bytes;     /* that its plan may take */
    gs_device_cache device;
} gs_choice;

gs_status gs_choice_make(gs_choice *out, const gs_layout *l);
void gs_choice_drop(gs_choice *c);

/* ---- refuse.c ---- */

/* Of the host's memory, what devices take that compute on it. */
uint64_t gs_choice_devices_bytes(const gs_choice *c, const gs_layout *l);
/* GS_EBUDGET: says which budget is too small, and the smallest one that works. */
gs_status gs_choice_refuse(gs_choice *c, const gs_layout *l);

/* ---- device_cache.c ---- */

/* Units of a memory: intervals of arrays, then chunks of sets. */
uint32_t gs_layout_units(const gs_layout *l);
/* Bytes of a unit in a device's memory. */
uint64_t gs_layout_unit_bytes(const gs_layout *l, uint32_t unit);
/* May copies of it stay? Not of rows that an edge pass adds to. */
bool gs_layout_unit_stays(const gs_layout *l, uint32_t unit);
/* Begins anew: nothing is listed, nothing stays. */
gs_status gs_device_cache_begin(gs_choice *c, const gs_layout *l);
/* What stays of the listed accesses within `capacity` bytes of each device. */
gs_status gs_device_cache_plan(gs_choice *c, const gs_layout *l, uint64_t capacity);
/* Nothing stays; accesses stay listed. */
void gs_device_cache_drop_plan(gs_choice *c, const gs_layout *l);
void gs_device_cache_drop(gs_choice *c);

/* ---- deal.c ---- */

/* 1 where there is no topology. */
uint32_t gs_layout_devices(const gs_layout *l);
/* Fills c->deal: runs of target intervals of about equal predicted seconds, stage by stage. */
void gs_choice_deal(gs_choice *c, const gs_layout *l);
/* Intervals that the device with most of them has in the stage. */
uint32_t gs_choice_longest(const gs_choice *c, const gs_layout *l, uint32_t stage);

/* Sets block[] to the largest that `arena_bytes` allows; false if even one
 * interval of some stage does not fit. */
bool gs_choice_set_arena(gs_choice *c, const gs_layout *l, uint64_t arena_bytes);
/* The smallest arena for which that is true. */
uint64_t gs_layout_least_arena(const gs_layout *l);
/* Of it, what a stage needs for one target interval. States that a sequence's derivative keeps, and their gradient. */
uint64_t gs_layout_held_bytes(const gs_layout *l, uint32_t stage);
uint32_t gs_layout_least_slots(uint32_t parts);

/* ---- regrid.c ---- */

/* The fewest parts of a finer store of the same graph that should do with both budgets; 0: none. This one's needs a
 * staging ring (several devices), a ring and tables of so many bytes at the least. */
uint32_t gs_regrid_parts(const gs_layout *l, uint64_t staging, uint64_t ring, uint64_t tables);
/* Fills kept_*[] greedily, most bytes saved an epoch for each byte held first, within
 * `bytes`. Returns true where everything that is ever read or written is kept. */
bool gs_choice_keep(gs_choice *c, const gs_layout *l, uint64_t bytes);
/* How much of a file is kept, from its beginning. */
uint64_t gs_choice_kept_bytes(const gs_choice *c, const gs_layout *l, uint32_t file);
/* Bytes of RESIDENT that a kept file takes: room to read whole checksum blocks. */
uint64_t gs_choice_room(const gs_layout *l, uint64_t kept_bytes);

/* Bytes of a stage's sum for a block, its parts each at a multiple of 64. */
uint64_t gs_choice_sum_bytes(const gs_choice *c, const gs_layout *l, uint32_t stage, uint32_t sum);

/* ---- liveness.c ---- */

/* Nothing has a place. */
void gs_liveness_begin(gs_choice *c, const gs_layout *l);
/* How many of `bytes` a file can have below `limit`. */
uint64_t gs_liveness_room(const gs_choice *c, const gs_layout *l, uint32_t file, uint64_t bytes, uint64_t limit);
/* The file gets the lowest place with so many. */
void gs_liveness_settle(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t bytes);
/* Places everything that is kept anew, in little memory: what is always there first, then the largest. */
void gs_liveness_pack(gs_choice *c, const gs_layout *l);
/* Is anything else ever where the array's kept rows are? */
bool gs_liveness_is_shared(const gs_choice *c, const gs_layout *l, uint32_t array);

/* Where in the run's file each array has what is not kept of it, and how much that is; returns the file's size. */
uint64_t gs_liveness_spill(uint64_t *first, uint64_t *bytes, const gs_choice *c, const gs_layout *l);

/* ---- runs.c ---- */

/* Marks in mask[granules.words] the granules of operand interval `operand` that edges of `stage` into
 * target intervals [first, first + count) need. False where it cannot be told: all of them. */
bool gs_runs_need(uint64_t *mask, const gs_layout *l, uint32_t stage, uint32_t first, uint32_t count, uint32_t operand);

/* An interval's rows as they stand in an extent of a file: row r at byte `skip` + r * `row`. */
typedef struct gs_run_extent {
    uint64_t bytes, skip, row;
    uint32_t rows;
    uint64_t unit; /* of what can be read: a block, or what one checksum covers */
    double bps, request_seconds; /* 0: the disk's */
} gs_run_extent;

/* Chooses the runs to read so that the masked rows come in the least time: gaps are read through where a request costs
 * more. Fills run[] (of `room`, which is enough when it is extent.bytes / unit + 1) and returns the bytes of all;
 * *runs is 0 where the whole extent in one read is best. */
uint64_t gs_runs_choose(gs_block_run *run, uint32_t room, uint32_t *runs, const gs_layout *l,
                        const gs_run_extent *extent, const uint64_t *mask);

/* GS_EAGAIN: the ring is too small. */
gs_status gs_emit(gs_plan **out, const gs_layout *l, gs_choice *c);

/* ---- column_order.c ---- */

/* Blocks of columns of a stage: rounds, in each of which a device has one. */
uint32_t gs_choice_blocks(const gs_choice *c, const gs_layout *l, uint32_t stage);
/* Every stage takes its blocks in store order. */
void gs_order_reset(gs_choice *c, const gs_layout *l);
/* The plan again, in the order that `c` says. GS_EAGAIN: it does not fit. */
typedef gs_status gs_order_make(gs_plan **out, void *context);
/* Looks for an order of blocks with which one run of `pass` takes less time; *plan is in store order, and is replaced
 * where one is worth it. Says in *plan what was found. `alone`: there is no room for *plan beside another one, so it is
 * freed and made again. On failure *plan may be NULL, or as it was. */
gs_status gs_order_search(gs_plan **plan, const gs_layout *l, gs_choice *c, uint32_t pass, bool alone,
                          gs_order_make *make, void *context);

/* The ring, simulated while tasks are emitted. A piece is live from its
 * allocation until gs_ring_release() names the task after which its bytes are free. */
typedef struct gs_ring_piece {
    uint64_t offset, bytes;
    uint32_t release; /* task, or GS_NONE while live */
} gs_ring_piece;

typedef struct gs_ring_sim {
    uint64_t bytes, head;
    bool lasting_at_end; /* where the last lasting pieces went */
    gs_ring_piece *piece; /* sorted by offset, disjoint */
    uint32_t pieces, room;
} gs_ring_sim;

void gs_ring_init(gs_ring_sim *r, uint64_t bytes);
void gs_ring_drop(gs_ring_sim *r);
/* Forgets all pieces: nothing that was placed is waited for any more. */
void gs_ring_reset(gs_ring_sim *r);
/* What follows, `bytes` in all, will be live together: it is kept in one stretch,
 * so that it does not leave the ring in pieces too small for each other. */
void gs_ring_group(gs_ring_sim *r, uint64_t bytes);
/* Between the two, `bytes` in all are taken that outlive many pieces taken after them. They stand at the
 * ring's ends in turn, so that they leave the middle in one piece and need not wait for those before
 * them; begin gives what end wants. */
uint64_t gs_ring_lasting_begin(gs_ring_sim *r, uint64_t bytes);
void gs_ring_lasting_end(gs_ring_sim *r, uint64_t head);
/* Next fit, skipping what is live. Appends to `waits` (of `room` entries) the tasks
 * that must be done before the place may be written. GS_EAGAIN: no place; GS_ENOMEM. */
gs_status gs_ring_take(gs_ring_sim *r, uint64_t bytes, uint64_t *offset, uint32_t *waits, uint32_t room,
                       uint32_t *wait_count);
/* `offset` is what gs_ring_take() gave; a second release is ignored. */
void gs_ring_release(gs_ring_sim *r, uint64_t offset, uint32_t task);
/* Appends to `waits` the tasks after which [offset, +bytes) is free. False where a part of it is live, or there is no
 * room. */
bool gs_ring_users(const gs_ring_sim *r, uint64_t offset, uint64_t bytes, uint32_t *waits, uint32_t room,
                   uint32_t *wait_count);

#endif /* GS_SCHEDULE_SCHEDULE_INTERNAL_H */
