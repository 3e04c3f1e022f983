/* pair_source.h - which pairs are there, bucket by bucket?
 *
 * Pairs are the links of a split of the store (docs/format.md), or the graph's own edges where it has none for
 * training. A bucket is of those from one interval to another; it is read whole, checked as it comes. One thread.
 */
#ifndef GS_PAIRS_PAIR_SOURCE_H
#define GS_PAIRS_PAIR_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "session/store_rows.h"
#include "store/store.h"

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
/* The pairs of a bucket into pair[first[b + 1] - first[b]], in the order of the store, and the bits of their labels to
 * `label`, of as many; NULL: they are not wanted. */
gs_status gs_pair_source_read(gs_pair_source *s, uint64_t bucket, gs_pair *pair, uint32_t *label);

/* Pair number `k` of links, in the order of the store; `k` is below s->pairs. Of a split beside training alone. */
gs_status gs_pair_source_at(gs_pair_source *s, uint64_t k, gs_pair *out);

/* Calls with all pairs, `count` at a time, in the order of buckets; what is not GS_OK ends it. `room`: for the largest
 * bucket. */
typedef gs_status gs_pair_fn(void *context, const gs_pair *pair, uint64_t count);
gs_status gs_pair_source_each(gs_pair_source *s, gs_pair *room, gs_pair_fn *fn, void *context);

#endif /* GS_PAIRS_PAIR_SOURCE_H */
