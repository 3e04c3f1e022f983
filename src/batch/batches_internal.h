/* batches_internal.h - what a training on batches holds; batch_cost.c says how long a batch takes, and how much memory,
 * batch_slot.c brings it to where a pass finds it. */
#ifndef GS_BATCH_BATCHES_INTERNAL_H
#define GS_BATCH_BATCHES_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/status.h"
#include "batch/batch_rows.h"
#include "batch/batch_tables.h"
#include "batch/batches.h"
#include "cost/cost.h"
#include "exec/exec.h"
#include "gnnstream_reports.h" /* gs_predicted */
#include "program/program.h"
#include "sample/sampler.h"
#include "session/session.h"

/* -- the rows and the edges of a batch that each stage goes over. */

/* Hops are counted from the first: 0 is no row, 1 the rows of the loss, `levels` all rows. */
typedef struct gs_hop_needs {
    uint32_t levels;
    bool layered;           /* rows of the last hop have no in-edges, others none from beyond the hop behind theirs */
    uint32_t *rows;         /* [stages] that the stage runs for */
    uint32_t *targets;      /* [stages] whose sums are needed: within `rows` */
    uint32_t *operands;     /* [stages] edges from other rows add nothing */
    uint32_t *zeroed;       /* [arrays] that are read: what no stage makes of them is 0 */
    gs_stage *rest;         /* [stages] what is computed of the rows behind `whole`: program/program.h */
    uint32_t *whole;        /* [stages] rows that the whole stage runs for: `rows`, where it has no rest */
    uint32_t stages;
    gs_arena arrays;
} gs_hop_needs;

/* How much is left out. */
typedef enum gs_hop_cut {
    GS_CUT_NOTHING,
    GS_CUT_ROWS, /* rows that a stage need not compute */
    GS_CUT_RESTS /* and, in rows that are known to be 0 in part, what comes of that */
} gs_hop_cut;

/* Arrays of the first hop's rows alone: results that a loss outside of the program reads, and its derivative by them,
 * which is 0 in all others. GS_NONE: there is none. */
typedef struct gs_hop_ends {
    uint32_t rows, upstream;
} gs_hop_ends;

/* Finds the needs of all passes of `p`, whose loss is of the first hop. `hops`: as in gs_batch. `p` must outlive *out.
 * GS_ENOMEM. Release with gs_hop_needs_drop(). */
gs_status gs_hop_needs_find(gs_hop_needs *out, const gs_program *p, gs_hop_ends ends, uint32_t hops, gs_hop_cut cut);
void gs_hop_needs_drop(gs_hop_needs *n);
/* The same, with up to three of the next hop: a rest begins where rows of any type are aligned to 4 bytes. */
static inline uint32_t gs_hop_aligned(uint32_t rows, uint32_t vertices)
{
    return (uint32_t)GS_MIN(gs_align_up(rows, 4), vertices);
}

/* The edges of a batch, as each stage goes over them.
 *
 * A stage that sums for the first hops takes the first part of the batch's chunk. A stage of the backward pass whose
 * operands are of the first hops alone needs edges by source without all others: these are sorted anew, into memory
 * that was taken before the run. One thread.
 */

/* Edges by source whose destinations are in the first hops. */
typedef struct gs_batch_flip {
    uint32_t operands;     /* hops */
    uint64_t rows, edges;  /* room */
    uint32_t targets;      /* of the batch at hand */
    uint32_t taken;        /* edges of it */
    void *target, *index, *type;
    uint32_t *start;
    float *weight;
    char *feature;
} gs_batch_flip;

#define GS_BATCH_FLIPS GS_SAMPLE_HOPS
#define GS_BATCH_SETS 3u /* at a time: a batch is computed on, one is sent and one is picked */

typedef struct gs_batch_edges {
    gs_hop_needs needs;
    const gs_program *program;
    gs_dtype feature_type; /* of edges; set by who opens it */
    gs_batch_flip flip[GS_BATCH_FLIPS];
    uint32_t flips;
    uint64_t bytes;        /* of all of them */
    /* of the batch at hand: [stages], and zeroed [arrays] */
    gs_edges *edges;
    uint32_t *rows, *whole, *zeroed;
    gs_binding binding;    /* of these three */
    struct {
        gs_edges *edges;
        uint32_t *rows;    /* and `whole` and `zeroed` behind them */
    } set[GS_BATCH_SETS];  /* those four are of one of these */
    gs_arena arrays;       /* of sets and flips */
} gs_batch_edges;

/* Takes `needs`. edges_of[k]: most edges into rows of the first k hops, [needs.levels + 1]. GS_ENOMEM; release with
 * gs_batch_edges_close() in any case. */
gs_status gs_batch_edges_open(gs_batch_edges *e, gs_hop_needs *needs, const gs_program *p,
                              const gs_batch_limits *limits, const uint64_t *edges_of);
void gs_batch_edges_close(gs_batch_edges *e);
/* From now on batches are filled into set `set`, below GS_BATCH_SETS: what was filled into the others stays. First
 * it is 0. */
void gs_batch_edges_use(gs_batch_edges *e, uint32_t set);
/* Fills edges, which are of the batch's bytes, and the binding. */
void gs_batch_edges_fill(gs_batch_edges *e, const gs_batch *b);
/* The binding alone, of a batch that has hop[k] rows in its first k hops, [needs.levels + 1]. */
void gs_batch_edges_bind(gs_batch_edges *e, const uint32_t *hop);
/* Memory that these edges are in, and the factors of the losses: how many pieces. */
#define GS_BATCH_PIECES (3 + 6 * GS_BATCH_FLIPS)
uint32_t gs_batch_edges_pieces(const gs_batch_edges *e, const gs_batch *b, gs_exec_piece piece[GS_BATCH_PIECES]);
/* Bytes of any batch's pieces, each in whole blocks, at most; `factors` of losses. */
uint64_t gs_batch_edges_piece_bytes(const gs_batch_edges *e, const gs_batch_limits *limits, uint32_t factors);

/* Rows of features that devices keep, of those that are trained together. */
typedef struct gs_batches_kept {
    uint32_t rows;           /* of all devices, numbered together; 0: there are none */
    uint32_t devices, own;   /* that they are dealt to, and this one's number among them */
    gs_batch_spread which;   /* of the first device */
    const gs_batch_spread *of; /* of each device: the first's */
    gs_batch_places places[GS_EXEC_SLOTS]; /* of the batch for this slot, and what is sent by them: */
    gs_exec_spread run[GS_EXEC_SLOTS];
    gs_batch *group;         /* with a cache: of the batches of a group, what no device keeps, in: */
    uint32_t *lists;         /* [cache.group][limits.vertices] */
} gs_batches_kept;

/* Batches that the device draws. */
#define GS_BATCH_DRAW_PICKS 4u /* features, labels, input ids, types */
typedef struct gs_batch_draw {
    bool on;
    gs_plain_draws law;
    uint64_t bytes;          /* of memory of the device */
    gs_draw_launch launch[GS_EXEC_SLOTS];
    gs_pick_launch pick[GS_EXEC_SLOTS][GS_BATCH_DRAW_PICKS]; /* rows of a batch, of all that the device has */
    uint32_t picks;
} gs_batch_draw;

/* A batch that was picked, and sent. */
typedef struct gs_batch_slot {
    gs_batch batch;
    uint32_t place;          /* the device's slot, and what of the host's memory is sent there */
    gs_exec_graph graph;
    gs_exec_piece piece[GS_BATCH_PIECES];
    double mass;
    double began, picked, sending, arrived; /* moments of gs_now() */
    double waited;           /* seconds of the first part, for the disk */
    uint64_t read_bytes;
    gs_exec_sent sent;
    gs_failure failure;      /* of what a thread did */
} gs_batch_slot;

/* Lanes of batches, where a device has two slots: a thread picks them and one sends them, in their order, each as far
 * ahead as there is room. Batch number n of those that went this way is in slot[n % GS_BATCH_SETS] and has place
 * n % GS_EXEC_SLOTS: it is picked once number n - 2 was sent from there, and sent once the pass of that one is over. */
typedef struct gs_batch_slots {
    gs_batch_slot slot[GS_BATCH_SETS];
    uint32_t count;          /* slots of the device */
    float **part;            /* [params] where a run of floats has each; where there are two */
    pthread_t thread[2];     /* picks; sends */
    uint32_t threads;        /* of these, that were started; 0: batches are filled when they are taken */
    pthread_mutex_t lock;
    pthread_cond_t change;   /* of what it guards: */
    struct {
        const gs_batch *batch; /* [batches] in their order */
        uint32_t batches;
    } group[2];              /* at hand, of which `next` is picked next; and behind it */
    uint32_t next;
    uint64_t begun, picked, sent, taken, passed; /* batches so far; none is above the one before it */
    bool sends;              /* now */
    bool hold;               /* nothing more is begun */
    bool failed, quit;
    uint64_t parts;          /* while a batch goes in parts: the number that these have */
} gs_batch_slots;

struct gs_batches {
    gs_batch_shape shape;
    gs_session *session;     /* of the train pass */
    gs_session *whole;       /* whose parameters are trained; from gs_batches_start() on */
    bool beside;             /* another's gradients are those of `whole`; this one's are its own */
    gs_chunk chunk[2];
    gs_chunk_table table;
    gs_batch_edges edges;
    gs_batch_rows rows;
    gs_batch_named named;
    gs_batch_tables tables;
    bool keeps;              /* features of all vertices, where `whole` does not */
    gs_row_cache_shape cache;
    uint64_t ring;           /* of reads that go ahead; 0: they do not */
    gs_batches_kept kept;
    gs_batch_draw draw;
    gs_predicted predicted;  /* of a batch */
    double picking, drawing; /* seconds: its rows of features, in `predicted`; itself, which is not */
    gs_pass_report amounts;  /* of a typical one, where one is known; else of the largest */
    gs_fit *fit;             /* of passes that are timed; NULL: none is */
    gs_batch_loss loss;      /* of pairs */
    gs_batch_slots slots;
    uint64_t device_bytes;   /* of memory that batches are sent to: the device's own, or behind: */
    gs_exec_wire *wire;      /* to a part of the host's. 0 and NULL: they are where they are picked */
    uint64_t bytes;          /* without what features take */
    uint64_t copies, names;  /* what these take where a batch's rows are copied, or named; equal where that cannot be */
};

/* Behind gs_exec_open(): the device gets the edges and rows that it draws from, where it is to draw. GS_EDEVICE. */
gs_status gs_batch_draw_open(gs_batches *b);
/* Draws the slot's batch, of which the targets are known, into its place; or it overflows. Rows are there when
 * gs_exec_send() has picked them. */
gs_status gs_batch_draw_fill(gs_batches *b, gs_batch_slot *slot);

/* Slots of batches. One thread calls. */

/* When rows, edges and the run are there: starts the threads, where slots.count is 2. GS_ENOMEM. */
gs_status gs_batch_slots_open(gs_batches *b);
void gs_batch_slots_close(gs_batch_slots *s);
/* Threads do nothing from here on until a batch is taken, or gs_batch_slots_queue(). Waits. */
void gs_batch_slots_quiet(gs_batch_slots *s);
/* These batches come next, as gs_batches_begin() has it: behind those before, or in their place. */
void gs_batch_slots_queue(gs_batch_slots *s, const gs_batch *batch, uint32_t batches, bool behind);
/* The slot that has this batch, which is filled now if it was not ahead. *stalled: seconds that a pass waited for its
 * rows. Errors as gs_batch_rows_pick(), gs_exec_send(). */
gs_status gs_batch_slots_take(gs_batch_slot **out, double *stalled, gs_batches *b, const gs_batch *batch);
/* The pass of the batch that was taken last is over: another may be sent there. */
void gs_batch_slots_release(gs_batches *b);
/* The next batch of the group is none that a thread fills, and is over; quiet before. */
void gs_batch_slots_skip(gs_batch_slots *s);

/* How long does a batch take? */

/* Seconds of the passes of a plan of one interval that is bound to a batch whose edges are in `e`: its tasks one
 * after the other, each cut to the batch's rows and edges; before them its rows of `picked` floats are picked, and
 * `copied` bytes go to the device, `bps` a second (0: as its link does). Waits for a disk are not counted. */
void gs_batch_predict(gs_predicted *out, const gs_session *s, const gs_batch_edges *e, uint64_t picked,
                      uint64_t copied, double bps);
/* What the picking alone takes of that. */
double gs_batch_picking(const gs_session *s, uint64_t picked);

/* Adds what the tasks of such passes took that ran just now, timed. */
void gs_batch_observe(gs_fit *fit, const gs_session *s, const gs_batch_edges *e);
/* Operations, edges, rows and gathered bytes of the passes, in place of those of the largest batch that `out` has. */
void gs_batch_amounts(gs_pass_report *out, const gs_session *s, const gs_batch_edges *e);

/* The plan has room for all rows of the largest batch in every array and sum. Most are of the first hops alone, and
 * what is behind these is never touched, so it is not resident.
 *
 * Bytes of the plan's resident data that become resident with what is bound. `left`: an array of the store that no
 * batch brings rows of, or GS_NONE. GS_ENOMEM. */
gs_status gs_batch_memory(uint64_t *out, const gs_program *p, const gs_plan *plan, const gs_binding *most,
                          uint32_t left);

#endif /* GS_BATCH_BATCHES_INTERNAL_H */
