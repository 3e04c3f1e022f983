/* batches.h - a model trained on batches: each is a small store in memory, of one interval.
 *
 * There is no second engine. The train pass is compiled as ever, and planned once for a store of one interval with as
 * many rows and edges as any batch may have, all in host memory, or in that of one GPU. Then each batch is bound to
 * that plan (exec.h, gs_exec_bind()): its rows are picked from the store, its edges are those that the sampler drew.
 * Parameters and gradients are those of the session that evaluates the model on the whole graph. One thread.
 */
#ifndef GS_BATCH_BATCHES_H
#define GS_BATCH_BATCHES_H

#include <stdio.h>

#include "cost/cost.h"
#include "sample/sampler.h"
#include "session/session.h"

typedef struct gs_batches gs_batches;

/* What a batch takes on each lane, seconds; a step of the optimiser is beside. */
typedef struct gs_batch_lanes {
    double pick, send, compute;
    uint32_t slots; /* 2: while one computes, the next is sent and the one behind it picked */
} gs_batch_lanes;

/* Compiles and plans; takes no memory of the run yet. `wire`: of a device on host memory, over which batches are sent
 * as to one with memory of its own, the caller's; NULL: they are where they are picked. `config` as for
 * gs_session_open(), whose `batch` is the shape, of a store that is to be trained on. GS_EUNSUPPORTED: several devices,
 * or what a GPU cannot do; GS_EINVAL, GS_ENOMEM and what preparing a session gives. */
gs_status gs_batches_open(gs_batches **out, const gs_session_config *config, gs_exec_wire *wire);
void gs_batches_close(gs_batches *b); /* NULL is allowed */
GS_ENDS_BY(gs_batches, gs_batches_close)
/* What rows of features have of the host's memory, where `whole` does not keep all. */
typedef struct gs_batch_room {
    bool keeps;      /* those of all vertices stay; else: */
    uint64_t cache;  /* bytes, at most, for those that the next of a group of batches use; 0: none stay */
    uint32_t group;  /* of so many */
    uint32_t side;   /* with a cache: rows of so many of a device's batches are read at once, where they have room */
    uint64_t ring;   /* they are read ahead through so many bytes, GS_BATCH_RING at the least; 0: not ahead */
    uint32_t slots;  /* 2: a batch is picked and sent to a device with memory of its own while the one before it
                      * computes, for which it has room for both; 0, 1: behind it */
} gs_batch_room;
/* What the disk moves while it begins a request, of which a batch has many of a few blocks; so many bytes between rows
 * are read along. 0: it was not measured. */
uint64_t gs_batches_gap(const gs_cost *c);
/* Before gs_batches_bytes() is asked. */
void gs_batches_set_room(gs_batches *b, const gs_batch_room *room);
/* On a device with memory of its own: `rows` rows of features stay in the memory of `devices`, of which this is number
 * `own`; 1: in this one's alone. Likewise. */
void gs_batches_keep_rows(gs_batches *b, uint32_t rows, uint32_t devices, uint32_t own);
/* Behind that: a device that keeps all rows alone draws the sampler's batches itself, where it can and `bytes` of its
 * memory have room for what that takes; NULL: none does. Batches of gs_batches_begin() are seeds_alone then. */
bool gs_batches_draw_by(gs_batches *b, const gs_sampler *s, uint64_t bytes);
uint64_t gs_batches_draw_bytes(const gs_batches *b); /* 0: it does not */
/* Rows of features that have room in so many bytes of a device. */
uint32_t gs_batches_rows_within(const gs_batches *b, uint64_t bytes);
/* Do fewer bytes cross where `rows` stay, of batches that use all rows as often? */
bool gs_batches_gain(const gs_batches *b, uint64_t rows);
/* Of them, those in this device's memory. */
uint32_t gs_batches_kept_rows(const gs_batches *b);
const gs_device *gs_batches_device(const gs_batches *b);
/* Host memory that gs_batches_start() takes, of batches without the rest of the run; and that of a device which has
 * memory of its own, else 0. */
uint64_t gs_batches_bytes(const gs_batches *b);
uint64_t gs_batches_device_bytes(const gs_batches *b);
/* Of that device, what a second slot takes. */
uint64_t gs_batches_slot_bytes(const gs_batches *b);
/* Is there memory to which batches are sent? */
bool gs_batches_sends(const gs_batches *b);
/* From now on predictions are of this batch, with what is copied to the device; until then of the largest one. At what
 * is known of the speed of the device. */
void gs_batches_take_typical(gs_batches *b, const gs_batch *batch);
double gs_batches_seconds(const gs_batches *b);
gs_batch_lanes gs_batches_lanes(const gs_batches *b);
/* Batches whose rows are read at once; 1: each one's by itself. */
uint32_t gs_batches_side(const gs_batches *b);
/* Seconds of drawing it, by one thread; 0: not known. */
double gs_batches_drawing(const gs_batches *b);
/* What the tasks of the passes since the last call took, of one that is opened timed. */
gs_fit gs_batches_take_fit(gs_batches *b);
const gs_session *gs_batches_session(const gs_batches *b);
/* The pass that trains a batch: bytes, tasks and blocks of the largest, operations and seconds of a typical one where
 * one is known. */
gs_status gs_batches_describe(const gs_batches *b, gs_pass_report *out);

/* Takes memory; parameters become those of `whole`, which has started and outlives this. Features are read from its
 * memory where it keeps them. Blocks while it reads arrays. GS_ENOMEM, GS_EIO, GS_EFORMAT. `first`: trains the same
 * parameters at the same time, was started and outlives this: gradients are this one's own, until gs_batches_collect();
 * features that `first` has in memory are read there. NULL: nothing does. `keeper`, likewise, knows which rows stay in
 * devices' memory; NULL: this one finds out. */
gs_status gs_batches_start(gs_batches *b, gs_session *whole, gs_batches *first, const gs_batches *keeper);
/* All that keep rows together have started, [devices]: they find each other's. GS_EDEVICE. */
gs_status gs_batches_meet(gs_batches *b, gs_batches *const *all);
/* Adds this one's own gradients to those of `whole`. */
void gs_batches_collect(const gs_batches *b);

/* A loss that is no part of the program. Of a batch whose rows, those of its targets, the pass "forward" has made: says
 * what it is of, its sum, and its derivative by each row, [targets, width] as rows are: of the sum over the mass where
 * `mean`, else of the sum; gradients of parameters of its own are added to those of the session. */
typedef struct gs_batch_loss {
    void *context;
    gs_status (*of_rows)(void *context, gs_session *s, const gs_batch *batch, const float *rows, float *upstream,
                         bool mean, double *loss, double *mass);
} gs_batch_loss;
/* Before the first pass, where pairs are trained on. */
void gs_batches_set_loss(gs_batches *b, gs_batch_loss loss);

/* Between batches, before something else runs for long: what a pass works in is no memory until the next batch. */
void gs_batches_pause(gs_batches *b);

/* A group was drawn: these batches are run next, each once and in this order. One that is passed over has no rows. */
void gs_batches_begin(gs_batches *b, const gs_batch *batch, uint32_t batches);
/* May another group be queued while batches of this one are still to be run, behind these? One at a time. */
bool gs_batches_can_follow(const gs_batches *b);
/* The next batch of the group is passed over. */
void gs_batches_pass_over(gs_batches *b);
/* A batch's pass, and what it came to. */
typedef struct gs_batch_pass {
    const gs_batch *batch; /* NULL: the next batch of the device's group is passed over */
    gs_batch drawn;        /* which this becomes where the device drew it */
    uint32_t device;
    uint32_t key;          /* of dropout, as an epoch is */
    bool overflows;        /* the device drew it, and has no room: there was no pass */
    double mass;           /* what the mean of the loss is over */
    gs_exec_stats stats;
    /* Moments of gs_now(): its rows and edges begin to be put together, and are; they begin to be sent to where the
     * pass finds them, and are there, all of which may be while passes before run; its pass begins; all is over. */
    double began, picked, sending, sent, started, ended;
    double pick_seconds;   /* of the first of these, without waits for the disk */
} gs_batch_pass;

/* Forward, loss over the targets, backward: gradients are left in whole->run.params, statistics are followed. */
gs_status gs_batches_run(gs_batches *b, gs_batch_pass *p);

/* May the device step by itself, between gs_batches_keep_params() and the fetching? One with memory of its own and two
 * slots, which has the optimiser's state, too. */
bool gs_batches_can_step(const gs_batches *b);
/* From now on it has the parameters that are learned and the optimiser's state: passes of gs_batches_run() leave
 * their gradients there for gs_device_step(). GS_ENOMEM, GS_EDEVICE. */
gs_status gs_batches_keep_params(gs_batches *b);
/* They come back to those of `whole`; `stepped`: with the values before the last step. Waits. GS_EDEVICE. */
gs_status gs_batches_fetch_params(gs_batches *b, bool stepped);

/* Begins a step of several passes: gradients become 0. */
void gs_batches_clear(gs_batches *b);
/* A pass of such a step, as gs_batches_run(), but that the gradient of its sum of losses is added to those before it,
 * and statistics are not followed. */
gs_status gs_batches_add(gs_batches *b, gs_batch_pass *p);
/* Floats of a pass's statistics; 0: the model has none. */
uint32_t gs_batches_statistics(const gs_batches *b);
/* The last pass's statistics, [gs_batches_statistics()]. */
void gs_batches_copy_statistics(const gs_batches *b, float *out);
/* Running statistics follow those of a pass of `batch`, which were copied; NULL: the last pass's. */
void gs_batches_follow(gs_batches *b, const gs_batch *batch, const float *statistics);
/* Ends the step: the gradients are those of the mean over `mass`, the sum of the passes' masses. */
void gs_batches_divide(gs_batches *b, double mass);
/* The batch that is next in the group overflows, and is run in parts: until gs_batches_end_parts(). */
void gs_batches_begin_parts(gs_batches *b);
/* A part of it: its gradient is added to those before it, its statistics are followed. */
gs_status gs_batches_run_part(gs_batches *b, gs_batch_pass *p);
/* The key of part number `part` of a batch whose key is `key`: parts have other rows under the same numbers. */
static inline uint32_t gs_batch_part_key(uint32_t key, uint32_t part) { return key ^ part << 20; }
void gs_batches_end_parts(gs_batches *b);

/* -- spans of an epoch's batches, kept in a ring, and written as Chrome trace events. */

/* RETURN: results come back from a device with memory of its own. */
typedef enum gs_batch_part {
    GS_BATCH_DRAW,
    GS_BATCH_STEP,
    GS_BATCH_PICK,
    GS_BATCH_SEND,
    GS_BATCH_COMPUTE,
    GS_BATCH_RETURN,
    GS_BATCH_TRACED_PARTS
} gs_batch_part;

typedef struct gs_batch_span {
    double begin, end; /* gs_now() */
    uint32_t batch;    /* DRAW: the first of a group; STEP: of the step */
    uint32_t vertices;
    uint64_t edges;
    uint16_t part, device;
} gs_batch_span;

typedef struct gs_batch_trace {
    gs_batch_span *span; /* [most] a ring; NULL: nothing is traced */
    uint32_t most;
    uint64_t spans;      /* of the epoch so far; the last `most` are there */
} gs_batch_trace;

/* Memory of a trace of epochs of so many batches. */
uint64_t gs_batch_trace_bytes(uint32_t batches);
/* GS_ENOMEM. Release with gs_batch_trace_close() in any case. */
gs_status gs_batch_trace_open(gs_batch_trace *t, uint32_t batches);
void gs_batch_trace_close(gs_batch_trace *t);
void gs_batch_trace_add(gs_batch_trace *t, gs_batch_span span);
/* PICK, SEND, COMPUTE and RETURN of a pass that is over; on host memory nothing is sent. */
void gs_batch_trace_add_pass(gs_batch_trace *t, const gs_batch_pass *p);
/* As gs_exec_write_trace(): a track for drawing, one for the optimiser, three of each device. */
gs_status gs_batch_trace_write(const gs_batch_trace *t, uint32_t devices, const char *other, FILE *out,
                               const char *path);

#endif /* GS_BATCH_BATCHES_H */
