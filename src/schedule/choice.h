/* choice.h - what is free to choose: block sizes, rings, what stays where? Units: bytes and rows. */
#ifndef GS_SCHEDULE_CHOICE_H
#define GS_SCHEDULE_CHOICE_H

#include "schedule/cache.h"
#include "schedule/layout.h"

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

/* Where in RESIDENT everything is that is kept there (liveness.c). */
typedef struct gs_places {
    bool shares;              /* what is never there at the same time may have one place */
    bool sums;                /* sums stand there too */
    uint64_t bytes;
    uint64_t *offset;         /* [files] of what is kept */
    gs_liveness *live;        /* [arrays] */
    uint64_t *sum_offset;     /* [stages * GS_STAGE_SUMS] UINT64_MAX: in the arena */
    uint32_t *sum_array;      /* [stages * GS_STAGE_SUMS] array in whose place it is added up, or GS_NONE */
    gs_allocation *allocation; /* [allocations] by place */
    gs_allocation *unplaced;  /* scratch of as many */
    uint32_t allocations;
} gs_places;

/* The accesses of a pass to units of one memory, in their order, and what is made of them. */
typedef struct gs_cache_list {
    gs_cache_access *access;
    uint32_t accesses, room;
    const gs_cache_plan *plan; /* NULL: none; its owner drops it */
} gs_cache_list;

/* The cache in host memory, of units of the store's files, beside what is kept for good, in `cached_pass`. */
typedef struct gs_host_cache {
    bool tracing;              /* emitting lists accesses */
    gs_cache_list list;
    uint64_t capacity;         /* bytes that its plan may take */
} gs_host_cache;

/* Data that stay in the memories of devices that computations find everything in (keep.c). A unit is an
 * interval of an array or a chunk, numbered as gs_layout_units() says. */
typedef struct gs_device_cache {
    uint32_t devices, passes;  /* 0: there is no cache, and nothing is listed */
    bool tracing;              /* emitting lists accesses */
    bool crowded;              /* a plan was given up for what is listed here */
    gs_cache_parts parts;      /* what is done about units that are needed in part */
    uint64_t short_of;         /* bytes of the epochs' pass that were to stay and found no address */
    gs_cache_list *list;       /* [devices * passes] */
    gs_cache_plan *plan;       /* [devices * passes] of those */
    gs_cache_fixed **fixed;    /* [devices][fixeds] there when an epoch begins, by place: loaded when the run opens, or
                                * once a pass "setup" has made them */
    uint32_t *fixeds;          /* [devices] */
    uint64_t used_bytes;       /* of the device that has most; 0: there is no cache */
    uint64_t used[GS_PLAN_DEVICES];
    bool *own;                 /* [arrays * parts] units of arrays of the run that the device which makes them has as
                                * long as it, or one that takes them from it, needs them: the host never has them */
    bool *alone;               /* [arrays] those all of whose units are such */
    bool *named;               /* [arrays * parts] units that the device which makes them has as long as it needs them,
                                * and of which others need but rows that their edges name: the host gets those */
    double *host_share;        /* [files] of a file's uses, those that go to the host */
    uint64_t load_most;        /* bytes of the host's ring that loading takes */
    gs_arena arrays;
} gs_device_cache;

typedef struct gs_choice {
    uint64_t arena_bytes;
    uint64_t held_bytes;      /* the arena and the block's rows at the target end */
    uint64_t staging_bytes;   /* of devices with copies as tasks: of each one's staging ring, behind the arena's sums */
    uint64_t spare_bytes;     /* of each of those, what is left for both that ring and what stays */
    uint32_t *deal;           /* [stages * (devices + 1)] of several devices: first target interval of each, and the
                               * end */
    uint64_t ring_bytes;
    uint64_t ring_most;       /* that brings anything */
    uint64_t ring_least;      /* with which chunks that go past the host can be checked before the first pass */
    uint64_t staged_bytes;    /* that the plan emitted last puts into the ring, in the pass that puts the most there */
    uint64_t live_bytes;      /* and the most of it that is there at a time: no smaller ring does, if nothing is kept */
    uint64_t live_staging;    /* the same of devices' staging rings */
    uint32_t joined;          /* reads that it would have more if each chunk came alone */
    uint32_t short_of;        /* the memory whose ring had no room, of a plan that was given up for one */
    uint32_t *block;          /* [stages] target intervals whose sums are held at a time */
    uint32_t *group;          /* [stages] derivatives of sequences: chunks of a group */
    uint32_t *kept_intervals; /* [arrays] first intervals kept in host memory */
    uint64_t *kept_edges;     /* [sets] first bytes of an edge file kept in host memory */
    double *rank;             /* [files] scratch of gs_choice_keep() */
    gs_places places;
    double *operand_uses;     /* [stages] how often a pass reads an operand row, on average */
    uint64_t arena_taken;     /* of arena_bytes, what is taken as ARENA */
    uint64_t keep_bytes;      /* that gs_choice_keep() was given */
    uint32_t *order;          /* [stages * parts] block of columns that the stage takes k-th */
    uint64_t *mask;           /* [granules.words] scratch */
    uint64_t host_most;       /* a plan is given up whose own tables leave no room in so much of the host's memory: the
                               * budget, or more of it, to say what would do */
    struct {
        uint64_t tasks, deps, regs, runs;
    } last;                   /* of the plan emitted last: the next one's lists begin with room for as many */
    bool counts;              /* gs_emit_count() */
    bool crammed;             /* the plan emitted last was given up for its own tables */
    bool chunks_alone;        /* a read for each chunk: the ring has no room for more */
    struct {
        uint64_t arena, tables;
    } least[2];               /* so many bytes of tables, or more, has a plan with that arena or a smaller one, with
                               * chunks together and alone; 0: not known */
    bool made_only;           /* keep arrays of the run and narrow ones, leave the rest to the cache */
    uint32_t cached_pass;     /* "train", or as many as there are passes */
    gs_host_cache host;
    gs_device_cache device;
    gs_arena arrays;          /* of all but the two caches */
} gs_choice;

gs_status gs_choice_make(gs_choice *out, const gs_layout *l);
void gs_choice_drop(gs_choice *c);
/* First target interval of each device in the stage, and the end. */
static inline const uint32_t *gs_choice_deal_of(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    return &c->deal[stage * (l->memory.devices + 1)];
}
/* Sets block[] to the largest that `arena_bytes` allows; false if even one
 * interval of some stage does not fit. */
bool gs_choice_set_arena(gs_choice *c, const gs_layout *l, uint64_t arena_bytes);
/* The smallest arena for which that is true. */
uint64_t gs_layout_least_arena(const gs_layout *l);
/* Bytes of the arena that a stage needs for one target interval; for a sequence's derivative, of the states that it
 * keeps and their gradient. */
uint64_t gs_layout_held_bytes(const gs_layout *l, uint32_t stage);
uint32_t gs_layout_least_slots(uint32_t parts);
/* Bytes of the heap that lists of accesses in use take, with what is made of them, but for those to be made anew. */
uint64_t gs_choice_listed_bytes(const gs_choice *c);
/* How much of a file is kept, from its beginning. */
uint64_t gs_choice_kept_bytes(const gs_choice *c, const gs_layout *l, uint32_t file);
/* Bytes of RESIDENT that a kept file takes: room to read whole checksum blocks. */
uint64_t gs_choice_room(const gs_layout *l, uint64_t kept_bytes);
/* Bytes of a stage's sum for a block, its parts each at a multiple of 64. */
uint64_t gs_choice_sum_bytes(const gs_choice *c, const gs_layout *l, uint32_t stage, uint32_t sum);

#endif /* GS_SCHEDULE_CHOICE_H */
