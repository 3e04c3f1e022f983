/* schedule.h - lays a program over the chunks and the budgets. */
#ifndef GS_SCHEDULE_SCHEDULE_H
#define GS_SCHEDULE_SCHEDULE_H

#include <stdbool.h>

#include "base/status.h"
#include "cost/cost.h"
#include "plan/plan.h"
#include "program/program.h"
#include "schedule/cache.h"
#include "schedule/counts.h"
#include "schedule/row_sets.h" /* gs_row_runs */
#include "store/chunk_table.h"
#include "topology/topology.h"

/* Of GS_EBUDGET, the one budget that is too small and the bytes that it must have at least; the other is 0. */
typedef struct gs_refusal {
    uint64_t host, device;
    uint64_t have;  /* the budget */
    uint64_t fixed; /* of the host's, for the program itself; 0: not known; */
    uint64_t libraries; /* of that, libraries' of devices */
    uint64_t tables; /* of the plan that the host's is for */
    uint64_t least_tables; /* what those of any plan take, also where nothing else is known; 0: not known */
    uint32_t parts; /* of a finer grid that would do, too; 0: none */
    uint64_t process; /* what was resident before there was a plan; 0: not known */
} gs_refusal;

/* Says it; GS_EBUDGET. */
gs_status gs_refusal_fail(const gs_refusal *r);

/* The edges and the rows that are needed. All 0: all of them. */
typedef struct gs_needs {
    /* What the edges of each chunk need; the set of a direction of the store has its number. `sets` 0: the
     * store's, every row needed. `stage_set` [program->stages]; NULL: the stage's direction. */
    uint32_t sets;
    const gs_edge_set *set;
    const uint32_t *stage_set;
    gs_granules granules;      /* of set[].need */
    gs_granules rows;          /* of set[].rows, each of one row, or of a lot (store.h); no words: they are not known */
    /* [program->stages] the rows that a stage runs for; then its edges have no other targets. NULL: all. */
    const gs_row_runs *stage_rows;
    /* [program->arrays] of an array of the run, the rows that are read and not 0, within those of the stage that stores
     * it; others need not be stored. NULL: all of the stage's. */
    const gs_row_runs *array_rows;
} gs_needs;

/* How the best plan is made again without looking for it. */
typedef struct gs_found {
    bool known;
    bool listed;               /* with caches of devices, */
    gs_cache_parts parts;      /* which do this */
    bool read_needs;           /* it knows which rows each of the store's chunks needs */
    uint32_t tiles;            /* gs_tiles */
    uint64_t arena, ring, keep, staging, capacity;
    double cost;
} gs_found;

/* What planning has done so far, and how much it may do (effort.h). */
typedef struct gs_effort {
    uint64_t tasks; /* of plans that were made, given up or counted */
    uint64_t most;  /* that it may have; 0: as long as epochs take */
    uint32_t last;  /* of the one made last */
    bool chosen;    /* the plan is one of several, not all that there is to choose from */
    bool screens;   /* the plan is compared with other programs': they have a small part of the time each */
    bool cut;       /* an order of columns would have been looked for, or other deals, where it had more time */
    bool again;     /* the plan is the one of `found`, where that is known */
    gs_found found; /* the plan that was made */
    uint64_t question; /* checksum of the program, of which rows and edges it needs, and of how fine these are known */
    gs_counts *counts; /* of plans that were counted, for this question and others; NULL, or `question` 0: none */
} gs_effort;

typedef struct gs_schedule_config {
    const gs_program *program;
    const gs_chunk_table *chunks;
    uint64_t array_sum_bytes;  /* a store array's reads are whole checksum blocks of this size */
    uint64_t host_memory;      /* budget */
    uint64_t device_memory;    /* budget, of each device */
    uint32_t host_parts;       /* device_memory is one of so many parts of host_memory, as none was given: a refusal is
                                * of that; 0: it was given, or depends on nothing else */
    const gs_topology *topology; /* the devices, and which of them everything is copied to */
    const double *share;       /* [stages * topology's devices] in proportion to which a stage's columns are dealt;
                                * NULL: as fast as they are, or otherwise where that is predicted to be shorter */
    const uint32_t *owners;    /* [topology's devices + 1] the first target interval of each device, in all stages
                                * (gs_chunk_deal()); NULL: dealt stage by stage */
    uint32_t dealt_arrays;     /* a bit for each of the store's arrays: owners have their own rows of it alone, and send
                                * them to the others */
    bool ring;                 /* one of all devices in place of a chain for each switch; else, and where the topology
                                * says neither, the one of the two that is predicted to be shorter */
    bool no_chain;             /* each takes from the host what it needs */
    bool loads, may_load;      /* chunks that are read for the one device come to it past the host; `may_load`: where
                                * that is predicted to be shorter */
    bool frames_apart;         /* sums begin and finish in tasks of their own, as on GPUs, not in their edges' */
    uint64_t host_libraries;   /* of host_fixed, what the libraries of devices take: a refusal names it */
    uint64_t host_varies;      /* by so much host_fixed may be more when the same is asked again: a refusal names
                                * enough */
    uint64_t host_fixed;       /* taken already: process, store tables, run's own state */
    uint64_t device_fixed;     /* parameters, gradients, optimiser, kernels' scratch */
    uint64_t live_most;        /* of the heap (base/alloc.h), while plans are compared: where that is short, the best
                                * one so far is not held beside the next, but made again. 0: any */
    const volatile int *stop;  /* becomes nonzero: give up with GS_EINTERRUPTED; may be NULL */
    uint64_t task_bytes;       /* what the run keeps for each task beside the plan (a trace) */
    const gs_cost *cost;       /* plans are compared by predicted seconds; NULL: by bytes moved */
    const gs_cost *host_cost;  /* of what devices do of which the topology says that their memory is the host's; NULL:
                                * `cost`'s, which has the disk's in any case */
    bool no_swap;              /* columns in store order (measurements) */
    bool keeps_first;          /* where few plans are made, the first one keeps data in devices' memories, in place of
                                * a longer staging ring */
    bool no_pipeline;          /* a read waits for the computes and writes before it (measurements) */
    bool never_again;          /* another pass runs between any two runs of "train": nothing is read ahead */
    uint32_t epochs;           /* runs of the pass "train"; 0: 100. Passes "setup" and "predict" run once. */
    uint32_t evaluations;      /* runs of the pass "eval" meanwhile; 0: as many */
    uint64_t unstaged_bytes;   /* of a tile's own registers, where rows are used where they are; 0: 8 MiB */
    bool force_spill;          /* keep nothing resident (tests, measurements) */
    gs_needs needs;
    /* The disk, for the choice between a whole interval and runs of its rows; 0: a usual SSD's. */
    double disk_bps, disk_request_seconds;
    gs_refusal *refusal;       /* NULL: not asked for */
    bool no_sizes;             /* a refusal need not say what would do */
    uint64_t host_known;       /* nor that it is as much of the host's memory as another way needs, or more; 0: none */
    bool any_plan;             /* the first that fits will do, and is only counted, */
    bool listed;               /* or is to be run; */
    bool counted;              /* nor is one with everything in memory listed */
    double tables_part;        /* tables of a like program, of the least that they might have; below 1: not known. A
                                * plan is looked for where this one's, in proportion, are within the budget, or for
                                * sizes. */
    gs_effort *effort;         /* plans are compared while it lasts; NULL: without an end */
} gs_schedule_config;

/* Most edge sets of a run: two of the store, and pruned ones, which stages have of their own. */
#define GS_EDGE_SETS 64u

/* GS_EBUDGET: a line that says which budget is too small, and the smallest that
 * works. The caller frees *out with gs_plan_free(). Touches no disk, no device. */
gs_status gs_schedule(gs_plan **out, const gs_schedule_config *config);

#endif /* GS_SCHEDULE_SCHEDULE_H */
