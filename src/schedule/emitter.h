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
    bool again;    /* it goes on with the access before */
    bool updated;  /* what is made adds to the one copy that there is, as others will */
};

/* A device, while a stage is emitted: what the block that it holds uses. */
struct seat {
    uint32_t memory;      /* on which it computes */
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

/* Arrays and rows that the edge pass being made needs at either end of its edges. */
struct ends {
    uint32_t operands, targets;             /* arrays whose rows it reads, each once */
    uint32_t *operand_array, *target_array; /* [GS_STAGE_SUMS + most edge regs] */
    struct unit *chunk; /* [parts * GS_CHUNK_GROUP] of the block's targets: for operand intervals [group_first,
                         * group_end) */
    uint32_t group_first, group_end;
    uint32_t *needed;      /* [parts] operand intervals of the blocks of a sequence's derivative */
    uint64_t *mask;        /* [granules.words] what a block needs of the operand interval */
    uint64_t *mask_of_all; /* [granules.words] what several devices' do */
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

/* Who writes the run's file where, or the rows that the host keeps. */
struct spilled {
    uint32_t (*written)[2]; /* [array * parts + interval]: first and last task of the writes of those rows; of kept
                             * ones, the last stands for all */
    struct owners *owners;  /* [arrays] */
    uint32_t *owner;
};

/* Entries that there is room for in the plan's lists. */
struct room {
    uint32_t task, dep, reg, run, resident, ahead, lane, write, early;
};

struct emitter {
    const gs_layout *l;
    gs_choice *c;
    gs_plan *plan;
    uint64_t tables_most; /* bytes of the plan itself with which it cannot fit */
    uint64_t beside;      /* bytes of lists of accesses, and of what is found in memories, while it is made */
    struct room room;
    struct made made;
    struct {
        uint64_t deps, regs, runs;
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
};

static inline uint32_t gs_emit__lane(const struct emitter *e, uint32_t task) { return e->made.lane[task]; }

/* Where tasks are being added for. */
static inline struct seat *gs_emit__here(const struct emitter *e) { return &e->seat[e->device]; }

/* On which the device that is here computes. */
static inline struct memory *gs_emit__memory_here(struct emitter *e)
{
    return &e->memory[gs_emit__here(e)->memory];
}

/* In the arena of the device that is here. */
static inline gs_place gs_emit__in_arena(const struct emitter *e, uint64_t offset)
{
    return (gs_place){GS_REGION_ARENA, gs_emit__here(e)->memory, offset};
}

/* Has a unit been found, or been given a place? */
static inline bool gs_emit__is_there(const struct unit *u) { return u->place.region != GS_REGION_NONE; }

static inline const gs_stage *gs_emit__stage(const struct emitter *e)
{
    return &e->l->program->stage[e->stage];
}

#endif /* GS_SCHEDULE_EMITTER_H */
