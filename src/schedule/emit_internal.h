/* emit_internal.h - the emitter's state, shared by the files that it is made of.
 *
 *   emit.c         tasks, waits, units; stages and passes
 *   emit_ahead.c   an epoch's first reads, made in the one before
 *   emit_chunks.c  reads of edge chunks
 *   emit_cache.c   reads that the cache answers
 *   emit_copies.c  several devices: copies to them, between them and back
 *   emit_edges.c   the edge pass of a block of target intervals
 *   emit_sequence.c the same for the derivative of a sequence
 *   emit_spill.c   places in the run's file, and who had them before
 *   emit_vertex.c  the vertex program of an interval
 *
 * Once a plan; one thread.
 */
#ifndef GS_SCHEDULE_EMIT_INTERNAL_H
#define GS_SCHEDULE_EMIT_INTERNAL_H

#include "schedule/schedule_internal.h"

#define WAITS 65536u
#define GS_CHUNK_GROUP 16u /* operand intervals whose chunks are read together, at most */
#define NOT_STAGED UINT64_MAX

/* Rows or a chunk that a compute task will use, where they stand, and the read
 * that brings them (GS_NONE: they are resident). */
struct unit {
    gs_place place;
    uint32_t read;
    uint64_t ring; /* offset of its piece of the ring, or NOT_STAGED */
    uint32_t cached; /* 1 + the unit of the cache that it is, there or not; 0: none */
    bool in_cache;   /* it is there: `place` is in the cache's memory */
    uint32_t on;   /* 1 + the device whose ring that is; 0: the host's */
    uint32_t handed; /* 1 + the task that copies it to the next device; 0: none */
};

struct block {
    uint32_t first, count; /* target intervals */
};

/* A unit of a cache, while a pass is emitted. Places are in RESIDENT, or in the device's arena. */
struct cell {
    uint64_t first_place, place; /* at the beginning of every pass, now; GS_CACHE_NOWHERE: not there */
    uint32_t read, last; /* tasks of this pass: that brought it, that used it last (or a join of some); GS_NONE */
    uint32_t access;     /* the last one, by number */
    uint32_t users;      /* that have not been released */
    uint32_t inside;     /* of those, who use the bytes at `place` */
    bool held;           /* the cache's plan keeps the bytes for the last access; else they may go at any time */
    bool seen;
};

/* Bytes of a device's memory that a unit had until another came, which did not take all of them. */
struct vacated {
    uint64_t at, bytes;
    uint32_t last; /* the unit's last users, as a cell's */
};

/* What is found in one memory while a plan is emitted. */
struct cache {
    uint32_t on;        /* 1 + device; 0: the host's */
    struct cell *cell;  /* [units]; NULL: there is none */
    uint32_t *occupant; /* [occupants] units that are there */
    uint32_t occupants, accesses; /* accesses: of the pass so far */
    struct vacated *vacated; /* [vacancies] of a device: those who take the bytes are of several lanes */
    uint32_t vacancies, vacated_room;
    uint64_t base;      /* of its memory */
    gs_cache_list *list; /* of the pass, traced or followed; NULL: none */
    bool tracing;
};

/* An access to a unit. */
struct access {
    bool whole; /* a read would bring all of it */
    bool made;  /* it is not read, but made */
    bool again; /* it goes on with the one before */
};

/* A device, while a stage is emitted: what the block that it holds uses. */
struct seat {
    gs_ring_sim ring;     /* of devices with copies as tasks: staging behind the arena's sums */
    struct cache cache;   /* and behind that, what stays */
    struct block block;
    uint32_t last;        /* its last task of the edge pass being made */
    struct unit *narrow;  /* [most regs] interval-wide loads of the stage */
    struct unit *operand; /* [operands] of the current operand interval */
    struct unit *target;  /* [targets * parts] of the block's intervals */
};

/* A wait for several tasks of different lanes, where there is room for one. */
#define JOINED 0x80000000u

/* [first, end) of emitter.owner: arrays of the pass that had bytes of an array's place in the run's file before, the
 * last first. */
struct owners {
    uint32_t first, end;
};

struct emitter {
    const gs_layout *l;
    gs_choice *c;
    gs_plan *plan;
    uint64_t tables_most; /* bytes of the plan itself with which it cannot fit */
    uint32_t task_room, dep_room, reg_room, run_room, resident_room, ahead_room;
    gs_ring_sim ring;
    /* [array * parts + interval]: first and last task of the writes of those rows */
    uint32_t (*written)[2];
    uint64_t *mask;  /* [granules.words] what the block needs of the operand interval */
    struct owners *owners;  /* [arrays] */
    uint32_t *owner;
    uint32_t *waits; /* of the task being made */
    uint32_t wait_count;
    uint32_t stage;
    uint64_t stage_edges, stage_rows; /* that it went over so far */
    uint32_t last_compute, last_write; /* of the pass */
    uint32_t devices, device; /* how many seats; whose tasks are being added */
    struct seat *seat;        /* [devices] */
    bool copies;              /* are tasks: computations find everything in the arenas */
    uint32_t lane_last[GS_PLAN_LANES];   /* of the pass */
    uint32_t lane_before[GS_PLAN_LANES]; /* when the stage began */
    bool lane_open[GS_PLAN_LANES];       /* a task of this stage waits for those */
    uint32_t *joined;         /* lists of tasks, each after its length; number k of JOINED | k */
    uint32_t joins, joined_room;
    uint64_t *mask_of_all;    /* [granules.words] of several devices */
    gs_plan_pass *pass;
    struct unit *tile;   /* [most regs] what the tile being made uses */
    /* Of the edge pass being made: the arrays whose rows it reads at either end,
     * each once, and where the rows stand. */
    uint32_t operands, targets;
    uint32_t *operand_array, *target_array; /* [GS_STAGE_SUMS + most edge regs] */
    struct unit *chunk; /* [parts * GS_CHUNK_GROUP] of the block's targets: for operand intervals [group_first,
                         * group_end) */
    uint32_t group_first, group_end;
    struct cache cache; /* of the host's memory */
    bool in_vertex; /* a vertex program is being made, not an edge pass */
    bool first_tile; /* and its interval begins */
    uint32_t *needed;                       /* [parts] operand intervals of the blocks of a sequence's derivative */
};

/* Where tasks are being added for. */
static inline struct seat *gs_emit__here(const struct emitter *e) { return &e->seat[e->device]; }

static inline const gs_stage *gs_emit__stage(const struct emitter *e)
{
    return &e->l->program->stage[e->stage];
}

gs_status gs_emit__grow(void **array, uint32_t *room, uint32_t need, size_t size);
/* The next task added waits for `task` (GS_NONE: for nothing). */
void gs_emit__wait(struct emitter *e, uint32_t task);
/* Of what the next task of `lane` waits for, keeps only the last of each lane whose tasks end in order; how many are
 * left. */
uint32_t gs_emit__settle_waits(struct emitter *e, uint32_t lane);
/* emit_ahead.c: behind the pass's last task, which of its first reads its next run may make already. */
gs_status gs_emit__ahead(struct emitter *e);
/* Appends a task that waits for what was collected, and begins a new collection. */
gs_status gs_emit__task(struct emitter *e, const gs_task *t, uint32_t *index);
gs_status gs_emit__take_ring(struct emitter *e, uint64_t bytes, struct unit *out);
/* The unit's bytes are free again after `task`. */
void gs_emit__release(struct emitter *e, const struct unit *u, uint32_t task);
/* Most bytes of the ring that these rows take; 0 where they are kept. */
uint64_t gs_emit__staged_bytes(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows);
gs_status gs_emit__spill_open(struct emitter *e);
void gs_emit__spill_close(struct emitter *e);
/* Where in the run's file the interval of an array is, which is not kept. */
uint64_t gs_emit__spilled_at(const struct emitter *e, uint32_t array, uint32_t interval);
/* The next task waits for the writes of those that had its bytes before. */
void gs_emit__wait_for_owners(struct emitter *e, const gs_task *write);
/* Rows (within one interval) of an array: where they are kept, or a read. */
gs_status gs_emit__load_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             struct unit *out);
/* The masked rows of a whole interval, each at its place in it; what lies between may be missing. */
gs_status gs_emit__load_needed(struct emitter *e, uint32_t array, uint32_t interval, const uint64_t *mask,
                               struct unit *out);
/* The read, which waits for what was collected, brings `bytes` of what `out` stands for. */
gs_status gs_emit__add_read(struct emitter *e, gs_task *t, uint64_t bytes, struct unit *out);

/* emit_chunks.c */
/* A chunk of the stage's edges, which has some. */
gs_status gs_emit__load_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out);
/* Chunks [first, first + count) of a target, in as few reads as they take. They must be released in their order. */
gs_status gs_emit__load_chunks(struct emitter *e, uint32_t target, uint32_t first, uint32_t count, struct unit *out);
/* The block should take its chunks from operand intervals [operand, the result) together, *bytes in all. */
uint32_t gs_emit__group_end(const struct emitter *e, struct block b, uint32_t operand, uint64_t *bytes);

/* File extent of rows of an array of the store: whole checksum blocks. */
void gs_emit__store_extent(const gs_layout *l, uint32_t array, uint64_t first, uint64_t rows, gs_task *t,
                           uint64_t *skip);

/* emit_copies.c */
gs_status gs_emit__copies_open(struct emitter *e);
void gs_emit__copies_close(struct emitter *e);
/* A pass, a stage begins. */
void gs_emit__pass_begin(struct emitter *e);
void gs_emit__stage_begin(struct emitter *e);
/* Adds to the collected waits what the lane's first task of a stage waits for. */
void gs_emit__enter_stage(struct emitter *e, uint32_t lane);
/* One number for both: for gs_ring_release() alone, as only what takes a place understands it. */
uint32_t gs_emit__join(struct emitter *e, const uint32_t *task, uint32_t tasks);
/* Waits from `from` on that are joined become the tasks that they stand for. */
void gs_emit__expand(struct emitter *e, uint32_t from);
/* The ring that pieces of this device stand in for long: its own, or the host's where it computes there. */
gs_ring_sim *gs_emit__ring_here(struct emitter *e);
/* Most bytes of that ring that these rows take. */
uint64_t gs_emit__bytes_here(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows);
/* A piece of the device's staging ring. */
gs_status gs_emit__take_here(struct emitter *e, uint64_t bytes, struct unit *out);
/* A whole unit that is on the host is brought to the device, and let go of on the host. Does nothing where the device
 * computes on host memory. */
gs_status gs_emit__bring(struct emitter *e, uint64_t bytes, struct unit *u);
/* Rows of an array where the device that is here computes on them. `again`: they go on with the rows before. */
gs_status gs_emit__rows_here(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             bool again, struct unit *out);
/* The same for a chunk, which `t` names. With others of a group it is on the host already, in `u`. */
gs_status gs_emit__chunk_here(struct emitter *e, const gs_task *t, struct unit *u);
/* Does what device `from` has come to this one from there? Else by way of the host. */
bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from);
/* A whole unit on such a device is handed on to this one, and let go of there. */
gs_status gs_emit__hand_on(struct emitter *e, uint64_t bytes, struct unit *u);
/* Rows of the operand array `index` come to the devices that need them, whose operand units are filled: from where they
 * stay, from the device before along a chain, or from the host. `needs`: [devices]. */
gs_status gs_emit__share(struct emitter *e, uint32_t index, uint32_t operand, const bool *needs);
/* The device's piece `from` goes to the host, and is free then. */
gs_status gs_emit__take_back(struct emitter *e, const struct unit *from, gs_place to, uint64_t bytes, uint32_t *task);

/* emit_cache.c */
gs_status gs_emit__cache_open(struct emitter *e);
void gs_emit__cache_close(struct emitter *e);
/* A pass begins. */
void gs_emit__cache_begin(struct emitter *e);
uint32_t gs_emit__array_unit(const struct emitter *e, uint32_t array, uint32_t interval);
uint32_t gs_emit__chunk_unit(const struct emitter *e, uint32_t target, uint32_t operand);
/* *there: `out` says where; rows from 0 begin an access, later ones go on with it. `whole`: a
 * read would bring all of it. */
gs_status gs_emit__cached_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                               bool whole, struct unit *out, bool *there);
gs_status gs_emit__cached_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out, bool *there);
/* An access of this device. *there: `out` says where its first byte is. *to: it is to be put there, by
 * gs_emit__settle_here() and a task that brings or makes it; GS_CACHE_NOWHERE: it does not stay. */
gs_status gs_emit__find_here(struct emitter *e, uint32_t unit, const struct access *how, struct unit *out, bool *there,
                             uint64_t *to);
/* `out`: the unit at `to`, whose last users the next task waits for. */
gs_status gs_emit__settle_here(struct emitter *e, uint32_t unit, uint64_t to, struct unit *out);
/* `task` has brought `bytes` of what was looked for, or has made it. */
void gs_emit__came_here(struct emitter *e, const struct unit *u, uint32_t task, uint64_t bytes);
/* The unit's access was a read of what the pass reads now beyond `read_before`. */
void gs_emit__cache_cost(struct emitter *e, uint32_t unit, uint64_t read_before);
/* What was looked for, found or not, is in use no more. */
void gs_emit__cache_release(struct emitter *e, const struct unit *u, uint32_t task);

/* emit_edges.c */
gs_place gs_emit__sum_place(const struct emitter *e, uint32_t sum, int part, uint32_t local_interval);
/* Does this operand interval have edges into the block, or is it in it and its own rows are added? */
bool gs_emit__operand_needed(const struct emitter *e, struct block b, uint32_t operand);
/* Does this target interval have edges? */
bool gs_emit__target_needed(const struct emitter *e, uint32_t target);
/* Granules of the operand interval that the device's block needs; NULL: all. In e->mask. */
const uint64_t *gs_emit__needed_rows(struct emitter *e, struct block b, uint32_t operand);
/* What the devices of `needs` need together. Valid until the next such call. */
const uint64_t *gs_emit__needed_by(struct emitter *e, uint32_t operand, const bool *needs);
/* Of the interval, rows up to the last that is needed: more takes no room in the ring. `mask` NULL: all. */
uint32_t gs_emit__needed_end(const struct emitter *e, uint32_t operand, const uint64_t *mask);
/* Lists in e->operand_array and e->target_array which arrays the stage's edge pass reads at either end, each once. */
void gs_emit__list_ends(struct emitter *e);
/* Which devices' blocks need the operand interval: [devices]. False: none. */
bool gs_emit__list_needs(const struct emitter *e, uint32_t operand, bool *needs);
/* The listed arrays' rows of an operand interval come to whoever needs them, whose operand units are filled. `beside`:
 * bytes of the host's ring that will be taken besides. */
gs_status gs_emit__load_operands(struct emitter *e, uint32_t operand, const bool *needs, uint64_t beside);
/* Of the blocks of all seats that have one. */
gs_status gs_emit__edge_pass(struct emitter *e);

/* emit_sequence.c */
/* Of the blocks of all seats that have one. */
gs_status gs_emit__back_pass(struct emitter *e);
/* After the last block: rows that no edge has reached are 0. */
gs_status gs_emit__back_finish(struct emitter *e);

/* emit_vertex.c */
/* Where rows from `from` on of a kept interval are. */
gs_place gs_emit__kept_place(const struct emitter *e, uint32_t array, uint32_t interval, uint32_t from);
gs_status gs_emit__interval(struct emitter *e, uint32_t interval, struct block b);
/* After the stage's last interval: rows that it leaves out are 0, where others may have been before. */
gs_status gs_emit__zero_left_out(struct emitter *e);

#endif /* GS_SCHEDULE_EMIT_INTERNAL_H */
