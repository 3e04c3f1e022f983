/* exchange.h - what the ranks of a partition that makes shards tell and send each other.
 *
 * Each rank reads its share of the edges and of the rows of features; who gets them is known once the order is made.
 * All calls are meetings (ranks/ranks.h), of the thread that began the job; one rank alone has nothing to do in them.
 * Units: records of `words` u32; bytes. */
#ifndef GS_PARTITION_EXCHANGE_H
#define GS_PARTITION_EXCHANGE_H

#include <stdint.h>

#include "base/external_sort.h"
#include "partition/job.h"
#include "partition/order.h"
#include "store/store.h" /* gs_store_shard */

/* -- records to other ranks, as many as there are, a buffer for each at a time. */

typedef struct gs_part_post gs_part_post;
/* Takes what has come: records side by side. */
typedef gs_status gs_part_take(void *context, const uint32_t *records, uint64_t count);

/* `memory` bounds the buffers, of a record for each rank at the least. */
gs_status gs_part__post_make(gs_part_post **out, uint32_t words, uint64_t memory, gs_part_take *take, void *context);
void gs_part__post_free(gs_part_post *p); /* NULL is allowed */
/* Where to put one record for the rank; NULL on failure, of which gs_part__post_failure() is the status. */
uint32_t *gs_part__post_put(gs_part_post *p, uint32_t rank);
gs_status gs_part__post_failure(const gs_part_post *p);
/* All have put all: delivers the rest. */
gs_status gs_part__post_end(gs_part_post *p);

/* -- edges. */

/* Whose an edge is, and in which of the sort's buckets. */
typedef struct gs_part_route {
    uint32_t (*owner)(const void *context, const uint32_t *record);
    uint32_t (*bucket)(const void *context, const uint32_t *record);
    const void *context;
} gs_part_route;
/* Takes the place of *sort, which is finished and of one rank's share: all records that are this rank's. */
gs_status gs_part__exchange_sort(gs_external_sort **sort, gs_part_job *job, const gs_part_route *route);

/* Counts all ranks' edges by chunk: *count [parts * parts] is the caller's, on failure too; *largest of them. */
gs_status gs_part__count_chunks(uint64_t **count, uint64_t *largest, const gs_part_order *o, gs_part_job *job);
/* Deals the intervals by these counts (gs_chunk_deal()) to shard->ranks, and gives each rank the edges of its own, in
 * both directions. */
gs_status gs_part__deal(gs_store_shard *shard, const uint64_t *count, gs_part_order *o, gs_part_job *job);

/* -- tables, of which each rank has made its own rows. */

/* x[intervals][bytes]: each rank gives the others those of its own intervals, `bytes` each; the last may be cut short
 * by `all` bytes. */
gs_status gs_part__share_intervals(const gs_store_shard *shard, void *x, uint64_t bytes, uint64_t all);

#endif /* GS_PARTITION_EXCHANGE_H */
