/* emitter.h - the state of a plan while it is written, shared by the files of emit*.c. From bottom to top:
 *
 *   emit_tasks     the list of tasks, and what each waits for
 *   emit_cache     what is found in a memory, and the run's file
 *   route          over which links a unit comes to memories that lack it
 *   emit_rows      units are delivered to memories, and go back
 *   emit_edges     the edge pass of a block of target intervals
 *   emit_sequence  the same for the derivative of a sequence
 *   emit_vertex    the vertex program of an interval
 *   emit           stages and passes, and an epoch's first reads, made in the one before
 *
 * Once a plan; one thread.
 */
#ifndef GS_SCHEDULE_EMITTER_H
#define GS_SCHEDULE_EMITTER_H

#include "schedule/choice.h"
#include "schedule/ring_sim.h"

#define WAITS 65536u
#define GS_CHUNK_GROUP 16u /* operand intervals whose chunks are read together, at most */
#define NOT_STAGED UINT64_MAX

/* Rows or a chunk that a compute task will use, where they stand, and the read
 * that brings them (GS_NONE: they are resident). */
struct unit {
    gs_place place; /* in no region: nowhere yet */
    uint32_t read;
    uint64_t ring; /* offset of its piece of the ring of the place's memory, or NOT_STAGED */
    uint32_t cached; /* 1 + the unit of the cache that it is, there or not; 0: none */
    bool in_cache;   /* it is there: `place` is in the cache's memory */
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

/* How memories differ, said in one place (emit.c). */
struct facts {
    bool cuts_tail;     /* rows of an interval behind the last that is needed take no room in the ring */
    bool groups_chunks; /* chunks of several operand intervals come by one read */
    bool equal_blocks;  /* the blocks of a round are the devices' equal shares, and not all of one size */
    bool as_in_files;   /* units stand in whole checksum blocks, as in their files */
    bool keeps_made;    /* units that the run makes are kept by accesses, too */
    bool lists_pruned;  /* so are those of stages that leave rows out */
    bool drops_unread;  /* rows that nobody reads are not written */
    bool many_lanes;    /* who takes bytes over from others is of another lane */
};

/* The host's memory, or a device's whose copies are tasks: what passes through its ring, and what stays. */
struct memory {
    uint32_t number;    /* GS_HOST or a device's */
    struct facts is;
    gs_ring_sim ring;
    gs_place ring_at;   /* its first byte */
    struct cell *cell;  /* [units]; NULL: nothing is kept by accesses */
    uint32_t *occupant; /* [occupants] units that are there, by place */
    uint32_t occupants, accesses; /* accesses: of the pass so far */
    struct vacated *vacated; /* [vacancies] of a device: those who take the bytes are of several lanes */
    uint32_t vacancies, vacated_room;
    uint64_t base;      /* of what is kept so */
    gs_cache_list *list; /* of the pass, traced or followed; NULL: none */
    bool tracing;
};

/* What a task will use of a unit, which is numbered as gs_layout_units() says. */
struct want {
    uint32_t unit;
    uint32_t first, rows; /* of an interval */
    const uint64_t *mask; /* of those, granules of the interval that are needed; NULL: all */
    bool by_edges; /* of an interval: each device needs the rows that edges into its block name */
    bool whole;    /* a move would bring all of it */
    bool made;     /* it is not brought, but made */
    bool serves;   /* others want it, and take it from here if it is there */
    bool again;    /* it goes on with the access before */
    bool updated;  /* what is made adds to the one copy that there is, as others will */
};

/* A device, while a stage is emitted: what the block that it holds uses. */
struct seat {
    uint32_t memory;      /* in which it finds what it computes on, and makes rows, */
    uint32_t arena;       /* and in which its sums are */
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

/* Tasks that the one being made waits for, and those that tasks of its lane and stage are behind. */
struct waiting {
    uint32_t *task;           /* [WAITS] */
    uint32_t count;
    uint32_t *joined;         /* lists of tasks, each after its length; number k of JOINED | k */
    uint32_t joins, joined_room;
    uint32_t lane_last[GS_PLAN_LANES];   /* of the pass */
    uint32_t lane_before[GS_PLAN_LANES]; /* when the stage began */
    bool lane_open[GS_PLAN_LANES];       /* it has a task of this stage */
    uint32_t statistics;                 /* the last task of the pass that made some */
};

/* What a device's block needs of an operand interval, in granules. */
struct needed {
    uint32_t stage, operand; /* GS_NONE: of none yet */
    struct block block;
    uint64_t *mask; /* [granules.words] */
};

/* Arrays and rows that the edge pass being made needs at either end of its edges. */
struct ends {
    gs_row_sum rows_of[GS_STAGE_SUMS]; /* of the stage's sums: rows of operands, scale and types, */
    bool sums_rows[GS_STAGE_SUMS];     /* where they are of rows */
    uint32_t operands, targets;             /* arrays whose rows it reads, each once */
    uint32_t *operand_array, *target_array; /* [GS_STAGE_SUMS + most edge regs] */
    struct unit *chunk; /* [parts * GS_CHUNK_GROUP] of the block's targets: for operand intervals [group_first,
                         * group_end) */
    uint32_t group_first, group_end;
    uint32_t *needed;      /* [parts] operand intervals of the blocks of a sequence's derivative */
    struct needed *needed_by; /* [devices] */
    uint64_t *mask_of_all; /* [granules.words] what several devices' do */
    uint64_t *rows;        /* [rows.words] what a block needs, row by row */
};

/* A read of a pass that waits for nothing but its place in the ring; a write to the run's file. */
struct moved {
    uint32_t task, file;
    uint64_t offset, bytes; /* of the ring, or of the file */
};

/* What tasks behind it ask of one that is made. */
struct made {
    uint8_t *lane;       /* [tasks] */
    struct moved *write; /* [writes] of the pass, by task */
    struct moved *early; /* [earlies] the pass's first reads, up to one that waits */
    uint32_t writes, earlies;
    bool late;           /* that one came */
};

/* Where the writes of an interval's rows are looked for: tile by tile, most are behind what is read, or before it. */
struct looked {
    uint64_t begin;  /* reads from here on need no write before made.write[from] */
    uint64_t last;   /* where the last of them began */
    uint32_t from;
    bool mixed;      /* they do not ascend */
};

/* Who writes the run's file where, or the rows that the host keeps. */
struct spilled {
    struct looked *looked;  /* [array * parts + interval] */
    uint32_t (*written)[2]; /* [array * parts + interval]: first and last task of the writes of those rows; of kept
                             * ones, the last stands for all */
    struct owners *owners;  /* [arrays] */
    uint32_t *owner;
    uint8_t *maker;         /* [array * parts + interval] 1 + the device that has made the rows in this pass, and of
                             * ranks, whose hosts have them, in any; NULL: there is one device */
};

/* Entries that there is room for in the plan's lists. */
struct room {
    uint32_t task, dep, reg, run, row_word, resident, ahead, lane, write, early;
};

struct emitter {
    const gs_layout *l;
    gs_choice *c;
    gs_plan *plan;
    uint64_t tables_most; /* bytes of the plan itself with which it is given up, */
    uint64_t tables_enough; /* and from which on it cannot fit */
    bool crammed;         /* so many were there */
    struct {
        uint64_t taken, refused; /* the most bytes of chunks that came together, and the least that did not, as they
                                  * were more than their share */
        uint32_t joined;         /* chunks that came with another one's read */
    } group;
    uint64_t beside;      /* bytes of lists of accesses, and of what is found in memories, while it is made */
    uint64_t packed;      /* of ranks: the most bytes that a message has side by side (exec/messages.c) */
    struct room room;
    struct made made;
    struct {
        uint64_t deps, regs, runs, row_words;
    } counted;            /* where tasks are counted alone: what was listed of them, and is no longer */
    struct memory memory[GS_DEVICE_MEMORIES + GS_PLAN_DEVICES]; /* by number; a device's that has no own is empty */
    struct spilled spill;
    uint32_t devices, device; /* how many seats; whose tasks are being added */
    struct seat *seat;        /* [devices] */
    gs_plan_pass *pass;
    uint32_t last_compute, last_write; /* of the pass */
    uint32_t stage;
    uint64_t stage_edges, stage_rows; /* that it went over so far */
    struct waiting wait;
    struct ends ends;
    struct unit *tile;   /* [most regs] what the tile being made uses */
    bool in_vertex; /* a vertex program is being made, not an edge pass */
    bool first_tile; /* and its interval begins */
    gs_arena scratch;   /* of arrays whose sizes are known before the first task */
};

static inline uint32_t gs_emit__lane(const struct emitter *e, uint32_t task) { return e->made.lane[task]; }

/* Where tasks are being added for. */
static inline struct seat *gs_emit__here(const struct emitter *e) { return &e->seat[e->device]; }

/* Where the device that is here finds rows, and makes them. */
static inline struct memory *gs_emit__memory_here(struct emitter *e)
{
    return &e->memory[gs_emit__here(e)->memory];
}

/* In the arena of the device that is here. */
static inline gs_place gs_emit__in_arena(const struct emitter *e, uint64_t offset)
{
    return (gs_place){GS_REGION_ARENA, gs_emit__here(e)->arena, offset};
}

/* Has a unit been found, or been given a place? */
static inline bool gs_emit__is_there(const struct unit *u) { return u->place.region != GS_REGION_NONE; }

static inline const gs_stage *gs_emit__stage(const struct emitter *e)
{
    return &e->l->program->stage[e->stage];
}

/* -- the list of tasks as it grows: what does the next one wait for? */

gs_status gs_emit__grow(void **array, uint32_t *room, uint32_t need, size_t size);
/* The next task added waits for `task` (GS_NONE: for nothing). */
void gs_emit__wait(struct emitter *e, uint32_t task);
/* One number for both: for gs_ring_release() alone, as only what takes a place understands it. */
uint32_t gs_emit__join(struct emitter *e, const uint32_t *task, uint32_t tasks);
/* Waits from `from` on that are joined become the tasks that they stand for. */
void gs_emit__expand(struct emitter *e, uint32_t from);
/* Makes a set of the waits of the next task of `lane`, ascending, without those that follow from others: of each lane
 * whose tasks end in order, only the last stays. Returns how many are left. */
uint32_t gs_emit__settle_waits(struct emitter *e, uint32_t lane);
/* Appends a task that waits for what was collected, and begins a new collection. */
gs_status gs_emit__task(struct emitter *e, const gs_task *t, uint32_t *index);
/* The same of one that makes `bytes` from `place` on 0; none where there are none. */
gs_status gs_emit__zero(struct emitter *e, gs_place place, uint64_t bytes, uint32_t *task);
/* Number of the first write of the pass (made.write) that is this task or behind it. */
uint32_t gs_emit__writes_from(const struct emitter *e, uint32_t task);
/* No task to come has runs, or rows by themselves, that are listed by now. */
void gs_emit__drop_runs(struct emitter *e);
/* File extent of rows of an array of the store: whole checksum blocks. */
void gs_emit__store_extent(const gs_layout *l, uint32_t array, uint64_t first, uint64_t rows, gs_task *t,
                           uint64_t *skip);
/* Bytes of a task, and of what runs it, without what it waits for. */
static inline uint64_t gs_emit_task_bytes(const gs_layout *l)
{
    return sizeof(gs_task) + 2 * sizeof(uint32_t) + 1 + l->config->task_bytes;
}
/* Bytes of the plan so far, and of what runs it. */
uint64_t gs_emit__table_bytes(const struct emitter *e);
/* Has the plan so far room in the host's budget, beside what making it takes? Room for itself alone it has where
 * nothing is listed. */
bool gs_emit__has_room(struct emitter *e);

/* -- how units come to memories, and go home. */

/* A piece of the memory's ring. */
gs_status gs_emit__take(struct emitter *e, struct memory *m, uint64_t bytes, struct unit *out);
/* The unit's bytes are free again after `task`. */
void gs_emit__release(struct emitter *e, const struct unit *u, uint32_t task);
/* Most bytes of the memory's ring that these rows take; 0 where they are kept. */
uint64_t gs_emit__ring_bytes(const struct emitter *e, const struct memory *m, uint32_t array, uint32_t interval,
                             uint64_t rows);
/* The read, which waits for what was collected, brings `bytes` of what `out` stands for. */
gs_status gs_emit__add_read(struct emitter *e, gs_task *t, uint64_t bytes, struct unit *out);

/* Units come to memories. */

/* Where the host has it, or is to keep it from now on; else nowhere. */
gs_status gs_emit__find_on_host(struct emitter *e, const struct want *w, struct unit *out);
/* The unit comes to all devices that want it: at[d], which is filled, is what device d does; NULL: nothing. */
gs_status gs_emit__deliver(struct emitter *e, const struct want *w, struct unit *const *at);
/* To the device that is here alone. */
gs_status gs_emit__deliver_here(struct emitter *e, const struct want *w, struct unit *out);
/* Rows of an array. `again`: they go on with the rows before. */
gs_status gs_emit__rows_here(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             bool again, struct unit *out);
/* A chunk of the stage's edges, which has some. */
gs_status gs_emit__chunk_here(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out);
/* A whole unit that is somewhere is brought to the device's memory, and let go of where it was. */
gs_status gs_emit__fetch(struct emitter *e, uint64_t bytes, struct unit *u);
/* Does what device `from` has come to this one from there? Else by way of the host. */
bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from);

/* Units that are made, of which `w` says rows. */

/* Where the device that is here makes them: where they are to stay, or in `bytes` of the ring. *fresh: they are to
 * stay, and nothing else of their unit is there. */
gs_status gs_emit__make(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *out, bool *fresh);
/* From the device that has them, where one has, to the host: the kept rows, or a piece of its ring, which `u` becomes.
 * u->read is the task that has made them, and then the one that has sent them. */
gs_status gs_emit__send_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u);
/* They go where they are at home: their device's memory, the host's, or the run's file. u->read: as above. */
gs_status gs_emit__settle_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u);

/* -- the edge pass of a stage. */

/* Does this target interval have edges? */
bool gs_emit__target_needed(const struct emitter *e, uint32_t target);
/* The rows that the devices of `needs` need together. Valid until the next such call. */
const uint64_t *gs_emit__needed_by(struct emitter *e, uint32_t operand, const bool *needs);
/* The rows that the device's block needs, one by one; NULL: not known. Valid until the next such call. */
const uint64_t *gs_emit__rows_needed_by(struct emitter *e, uint32_t operand, uint32_t device);
/* Which devices' blocks need the operand interval: [devices]. False: none. */
bool gs_emit__list_needs(const struct emitter *e, uint32_t operand, bool *needs);

gs_place gs_emit__sum_place(const struct emitter *e, uint32_t sum, int part, uint32_t local_interval);
/* Lists in e->operand_array and e->target_array which arrays the stage's edge pass reads at either end, each once. */
void gs_emit__list_ends(struct emitter *e);
/* The listed arrays' rows of an operand interval come to whoever needs them, whose operand units are filled. `beside`:
 * bytes of the host's ring that will be taken besides. */
gs_status gs_emit__load_operands(struct emitter *e, uint32_t operand, const bool *needs, uint64_t beside);
/* Emits the edge pass for the blocks of all seats that have one. */
gs_status gs_emit__edge_pass(struct emitter *e);

/* -- the derivative of a sequence. */

/* Emits its edge pass for the blocks of all seats that have one. */
gs_status gs_emit__back_pass(struct emitter *e);
/* Bytes of chunks that a block may take together, as a share of the host's budget. */
uint64_t gs_emit__group_share(const gs_layout *l);
/* After the last block: rows that no edge has reached are 0. */
gs_status gs_emit__back_finish(struct emitter *e);

/* -- the vertex program of an interval. */

gs_status gs_emit__interval(struct emitter *e, uint32_t interval, struct block b);
/* After the stage's last interval: rows that it leaves out are 0, where others may have been before. */
gs_status gs_emit__zero_left_out(struct emitter *e);

/* -- layout and choice become a plan. Units: bytes and rows. */

/* GS_ENOFIT: the ring is too small. */
gs_status gs_emit(gs_plan **out, const gs_layout *l, gs_choice *c);
/* The same plan without its lists: how many tasks there are, and what it takes. Making it takes some 2 bytes a task,
 * where lists take 200. */
gs_status gs_emit_count(gs_plan **out, const gs_layout *l, gs_choice *c);
/* And only bytes of its tables, where they are all that is asked: those of a plan that was counted before are known. */
gs_status gs_emit_tables(uint64_t *tables, const gs_layout *l, gs_choice *c);

#endif /* GS_SCHEDULE_EMITTER_H */
