/* pair_batch.h - which pairs are a batch, and which wrong ones are they compared with?
 *
 * A batch is of one bucket, so its rows are of two intervals at most. An epoch takes buckets in an order of its own,
 * and a bucket's pairs likewise. Pairs of a batch go in groups of as many as there are `negatives`; a group shares
 * these: as many wrong destinations for its sources, as many wrong sources for its destinations. They are drawn by
 * counter from seed, epoch, number of the batch and group, so nothing of them is stored, and no budget and no thread
 * changes them. One thread.
 */
#ifndef GS_PAIRS_PAIR_BATCH_H
#define GS_PAIRS_PAIR_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/status.h"
#include "pairs/decoder.h"
#include "sample/random_draw.h"
#include "sample/sampler.h"
#include "sample/unique.h"
#include "session/store_rows.h"
#include "store/store.h"

/* -- which pairs are there, bucket by bucket?
 *
 * Pairs are the links of a split of the store (docs/format.md), or the graph's own edges where it has none for
 * training. A bucket is of those from one interval to another; it is read whole, checked as it comes. One thread.
 */

typedef struct gs_pair {
    uint32_t source, destination, type; /* rows of the store; 0 without types */
} gs_pair;

typedef struct gs_pair_source {
    const gs_store *store;
    gs_array_id array; /* of links; GS_ARRAY_COUNT: the edges of the graph */
    uint64_t *first;   /* [parts * parts + 1] of each bucket, source * parts + destination */
    uint64_t pairs, largest; /* in all; of the largest bucket */
    gs_block_reader reader;  /* of links */
    uint64_t block, in_block; /* whose bytes are in memory, and how many; UINT64_MAX: none is */
    int fd;            /* of edges */
    char *path;
    uint8_t *chunk;    /* [chunk_bytes] room for the largest one */
    uint64_t chunk_bytes;
} gs_pair_source;

/* Are the pairs of this split (0 train, 1 valid, 2 test) there? The graph's edges stand for those of training. */
bool gs_pair_source_is_there(const gs_store *store, uint32_t split);
/* Finds where buckets begin; blocks while it reads the links once. GS_EIO, GS_EFORMAT, GS_ENOMEM. Release with
 * gs_pair_source_close() in any case. */
gs_status gs_pair_source_open(gs_pair_source *s, const gs_store *store, uint32_t split);
void gs_pair_source_close(gs_pair_source *s);
/* Bytes that it holds. */
uint64_t gs_pair_source_bytes(const gs_pair_source *s);
/* Ranks that have shards read edges together: all call gs_pair_source_read() at a time, each for a bucket of its own or
 * GS_NO_BUCKET, and get it from the rank that has its chunk. */
bool gs_pair_source_is_shared(const gs_pair_source *s);
#define GS_NO_BUCKET UINT64_MAX
/* The pairs of a bucket into pair[first[b + 1] - first[b]], in the order of the store, and the bits of their labels to
 * `label`, of as many; NULL: they are not wanted. */
gs_status gs_pair_source_read(gs_pair_source *s, uint64_t bucket, gs_pair *pair, uint32_t *label);

/* Pair number `k` of links, in the order of the store; `k` is below s->pairs. Of a split beside training alone. */
gs_status gs_pair_source_at(gs_pair_source *s, uint64_t k, gs_pair *out);

/* Calls with all pairs, `count` at a time, in the order of buckets; what is not GS_OK ends it. `room`: for the largest
 * bucket. */
typedef gs_status gs_pair_fn(void *context, const gs_pair *pair, uint64_t count);
gs_status gs_pair_source_each(gs_pair_source *s, gs_pair *room, gs_pair_fn *fn, void *context);

/* In the order of the words of .negatives_by. */
typedef enum gs_negatives_by {
    GS_NEGATIVES_UNIFORM, /* vertices of the bucket's interval */
    GS_NEGATIVES_DEGREE,  /* as often as they are that end of the bucket's pairs */
    GS_NEGATIVES_BATCH    /* of the batch's pairs */
} gs_negatives_by;

typedef struct gs_pair_batch_options {
    uint64_t seed;
    uint32_t batch_size, negatives;
    bool asks[2];          /* [gs_pair_end] whether that end is given, and the other one asked for */
    gs_negatives_by by;
    const volatile int *stop;
    uint32_t split;        /* whose pairs they are: 0 train, 1 valid, 2 test */
    bool labels;           /* pairs have labels, which are wanted */
} gs_pair_batch_options;

/* A slot is a place of a vertex in the batch: of pair p source p and destination pairs + p; behind those the
 * negatives of each end that is given, group by group. Vertices are there once, as rows, in the order in which slots
 * name them. */
typedef struct gs_pair_batch {
    uint32_t epoch, number, pairs, groups, negatives;
    const gs_pair *pair;        /* [pairs] */
    const uint32_t *label;      /* [pairs] the bits of their labels; NULL without .labels */
    uint32_t slots, rows;
    const uint32_t *row;        /* [slots] */
    const uint32_t *vertex;     /* [rows] of the store */
    uint32_t wrong[2];          /* [gs_pair_end] slot of the first negative beside given ends of this kind */
} gs_pair_batch;

/* Pairs of group g. */
static inline uint32_t gs_pair_group_pairs(const gs_pair_batch *b, uint32_t group)
{
    const uint32_t left = b->pairs - group * b->negatives;
    return left < b->negatives ? left : b->negatives;
}

typedef struct gs_pair_batches {
    gs_pair_batch_options options;
    gs_pair_source source;
    uint32_t batches;         /* of an epoch */
    uint32_t most_pairs, most_slots, most_rows;
    uint32_t key[2];          /* of what is drawn */
    uint32_t filled;          /* buckets that have pairs, */
    uint32_t *bucket;         /* [filled] */
    gs_pair *all, *pair;      /* of the bucket at hand, in the store's order; [most_pairs] of the batch */
    uint32_t *all_labels, *label; /* theirs, with .labels */
    uint32_t *row;            /* [most_slots] */
    gs_unique unique;
    gs_order order;           /* of the epoch's buckets, */
    gs_order within;          /* of the pairs of the one at hand */
    uint32_t at;              /* place in `order` of the next bucket */
    uint32_t epoch, number;   /* of the next batch, */
    bool sought;              /* once there was a gs_pair_batches_seek() */
    uint64_t done, held;      /* pairs of the bucket at hand that were taken; that it has */
    uint32_t held_bucket;
    gs_arena arrays;          /* of a batch, and of the bucket at hand */
} gs_pair_batches;

/* GS_EINVAL: there is nothing to train on, or no other vertex to compare with; GS_ENOMEM, GS_EIO, GS_EFORMAT. Blocks
 * while it reads where buckets begin. Release with gs_pair_batches_close() in any case. */
gs_status gs_pair_batches_open(gs_pair_batches *b, const gs_store *store, const gs_pair_batch_options *options);
void gs_pair_batches_close(gs_pair_batches *b);
uint64_t gs_pair_batches_bytes(const gs_pair_batches *b);
/* The next batch will be this one, from 0. */
gs_status gs_pair_batches_seek(gs_pair_batches *b, uint32_t epoch, uint32_t number);
/* It stands until the next call. */
gs_status gs_pair_batches_next(gs_pair_batches *b, gs_pair_batch *out);
/* This rank wants none, while others make their next one. */
gs_status gs_pair_batches_pass(gs_pair_batches *b);

/* Its batches as seeds of a sampler's: targets are a batch's rows, in their order, and edges that are its pairs are
 * left out, in a symmetric store either way. gs_batch.seeds is the gs_pair_batch. `b` stays the caller's, who draws
 * nothing else of it meanwhile, and outlives the sampler. */
gs_seed_source gs_pair_batches_seeds(gs_pair_batches *b);

#endif /* GS_PAIRS_PAIR_BATCH_H */
