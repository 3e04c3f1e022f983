/* draws.h - the batches of a store: lists of its edges, in memory or in the store, a sampler over them, and the group
 * of batches that was drawn last.
 *
 * Who trains on batches and who hands them out draw them here. One thread.
 */
#ifndef GS_TRAIN_DRAWS_H
#define GS_TRAIN_DRAWS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "batch/batch_devices.h" /* GS_BATCH_GROUP */
#include "gnnstream.h"
#include "sample/sampler.h"
#include "schedule/schedule.h" /* gs_refusal */
#include "store/store.h"

/* A group of batches, [first, first + held) of an epoch; held 0: none. */
typedef struct gs_draws_group {
    uint32_t epoch, first, held;
    gs_batch batch[GS_BATCH_GROUP];
    gs_batch_arena *arena[GS_BATCH_GROUP]; /* that they are in */
    uint32_t *seeds;        /* seeds_alone: their targets */
    double began, ended;    /* gs_now(): its drawing */
    gs_failure failure;       /* of its drawing */
    bool drew;                /* ahead, and it was not taken yet (atomic) */
} gs_draws_group;

typedef struct gs_draws {
    gs_store *store;
    gs_adjacency *in, *out; /* out: of walks in a graph that is not symmetric; else NULL */
    uint32_t *target;       /* [targets] rows that losses are of, ascending */
    uint32_t targets, threads;
    gs_sampler_options options;
    gs_sampler *sampler;
    gs_batch_limits limits; /* of its batches */
    uint32_t most_group;    /* batches of a group that have room in the share of memory that is for them, at least 1 */
    /* The caller's, before gs_draws_start(): */
    uint32_t group;         /* batches that are drawn at a time, at most */
    bool seeds_alone;       /* a device draws: of batches the targets are taken */
    const gs_batch_deal *deal; /* NULL: all batches are drawn; else device `own`'s, where others need not be */
    uint32_t own;
    bool ahead;             /* while a group is in use, a thread draws the one that follows */
    uint32_t last_epoch;    /* the last one to whose first group this goes on from the epoch before it; any time */
    gs_draws_group drawn[2];
    gs_batch_arena *spare;  /* seeds_alone: for the parts of a batch */
    uint32_t now;           /* which of them is in use; the other is drawn ahead */
    pthread_t thread;       /* draws ahead */
    bool has_thread;
    /* Under the lock: groups that the thread was asked for so far, one behind the other, and which of `drawn` the last
     * two of these are; those that it drew; it is to end. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t asked, made, queue[2];
    bool ends;
    double seconds, amount; /* of drawing what was taken so far: and rows and edges of it */
    double waited;          /* so far, for what was drawn ahead and not there when it was wanted */
} gs_draws;

/* What is drawn. */
typedef struct gs_draws_request {
    const char *store;
    const gs_train_options *options; /* what speaks of batches; .seed, .threads, .host_memory, .stop */
    bool stream;         /* lists of edges stay in the store, whether they have room or not */
    bool all_there;      /* no batch may overflow: limits are what one can have */
    bool trial;          /* of one rank alone, which others may not make: GS_ENOMEM of shards */
    uint32_t *target;    /* [targets] ascending rows of the store that losses are of, *d's from now on; NULL: those of
                          * `split`, or of GS_SPLIT_NONE all */
    uint32_t targets;
    gs_split split;
    /* Opens what says the seeds of batches, in the place of targets; it outlives *d. NULL: nothing does. */
    gs_status (*open_seeds)(void *context, const gs_seed_source **out, const gs_store *store);
    void *context;
    gs_refusal *refused; /* of GS_EBUDGET: what might do, where this is known; may be NULL */
} gs_draws_request;

/* Loads the lists, or what reading them in the store needs, and opens the sampler; .group is 1. Release *d with
 * gs_draws_close() in any case. Blocks while edges are read. GS_ENOTFOUND, GS_EINVAL, GS_EUNSUPPORTED: what options ask
 * of a store that has not got it, named; GS_EBUDGET; errors as gs_store_open(), gs_adjacency_load(),
 * gs_adjacency_stream(), gs_sampler_open(). */
gs_status gs_draws_open(gs_draws *d, const gs_draws_request *request);
void gs_draws_close(gs_draws *d);
/* Lists are in memory, or might be, and would do in the store, with less of it. */
bool gs_draws_may_stream(const gs_draws *d);
/* Memory: of the lists; and of arenas for a group, which gs_draws_start() takes. GS_ENOMEM. */
uint64_t gs_draws_list_bytes(const gs_draws *d);
uint64_t gs_draws_group_bytes(const gs_draws *d);
gs_status gs_draws_start(gs_draws *d);
/* The batch of this number, which stands until a group is drawn anew: *drew, where it was not in memory. Of samplers
 * whose batches have parts (gs_sampler_draw_part()) it may overflow. */
gs_status gs_draws_take(const gs_batch **out, bool *drew, gs_draws *d, uint32_t epoch, uint32_t number);
static inline const gs_draws_group *gs_draws_now(const gs_draws *d) { return &d->drawn[d->now]; }
/* The group that was drawn ahead, all of which is there now; or NULL. Does not wait. */
const gs_draws_group *gs_draws_next(const gs_draws *d);
/* Most edges into the rows of the first k hops, 1 the targets: of each hop, what its fanouts draw for the rows that the
 * one before can have reached. */
void gs_draws_bound_edges(const gs_draws *d, uint64_t edges_of[GS_SAMPLE_HOPS + 2]);
/* For the parts of a batch of the group in use, which overflows. */
gs_batch_arena *gs_draws_part_arena(const gs_draws *d, const gs_batch *whole);
/* The batch of this number, of the group in use, has no room on the device that drew it. */
void gs_draws_overflow(gs_draws *d, uint32_t number);
/* Nothing is drawn ahead from here on until a batch is taken: for who draws by .sampler. Waits. */
void gs_draws_wait(gs_draws *d);
/* Batches are of targets in the order of the store, or shuffled; those that were drawn in another order are in memory
 * no more. Waits likewise. */
void gs_draws_order(gs_draws *d, bool ordered);
/* Batches may have twice as much from now on, and so a group has half as many: none is in memory. GS_EBUDGET: the group
 * has one already, or a batch can have no more. */
gs_status gs_draws_widen(gs_draws *d);
/* Bytes of edges that were read from the store for them, so far. */
uint64_t gs_draws_read(const gs_draws *d);

/* -- how many batches are drawn before the first of them is trained?
 *
 * A run sees as far ahead as its group: the cache keeps the rows that the group uses soonest, and edges that stay in
 * the store are read once a hop for the whole group. But each batch of a group takes memory that the cache lacks.
 * Pure functions; nothing is allocated.
 */

#define GS_GROUP_FORESEEN 64u /* most batches of a group whose reads are predicted */

/* Items that a batch reads, in the mean over an epoch, when `slots` of `items` stay and groups have `group` batches,
 * 1 to GS_GROUP_FORESEEN. Each batch uses `uses` items, all as likely, so a graph whose batches share more than chance
 * reads less. This follows the plan of residency.h in expectation: an item stays if the group uses it again and no item
 * that is used sooner needs its slot; items without a known use get the slots that are left. */
double gs_group_misses(double uses, double items, double slots, uint32_t group);

/* What reading `misses` of `items` takes, in one pass over the file and each as likely, where gaps of up to `gap` bytes
 * are read along, as batch_rows.c does, at the disk's cost. */
typedef struct gs_group_read {
    double bytes, requests, seconds;
} gs_group_read;

gs_group_read gs_group_read_of(double misses, double items, uint64_t item_bytes, uint64_t gap, const gs_cost *c);

#endif /* GS_TRAIN_DRAWS_H */
