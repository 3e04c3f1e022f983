/* store_rows.h - a store's array read front to back, checked as it comes; and which rows have which ids. */
#ifndef GS_SESSION_STORE_ROWS_H
#define GS_SESSION_STORE_ROWS_H

#include <stdint.h>

#include "base/status.h"
#include "store/store.h"

/* One block of checksummed bytes at a time. Zero it before gs_block_reader_open(). */
typedef struct gs_block_reader {
    const gs_array_info *info;
    gs_extent extent;
    char *path;
    void *block; /* GS_SUM_BYTES */
    int fd;
    bool opened;
    uint64_t at, bytes; /* gs_block_reader_more(): the block that came last, from byte `at` of the array on */
} gs_block_reader;

/* GS_EINVAL where the store has no such array; GS_EIO, GS_ENOMEM. */
gs_status gs_block_reader_open(gs_block_reader *r, const gs_store *store, gs_array_id id);
void gs_block_reader_close(gs_block_reader *r);
/* Reads block `index` into r->block, checks it, gives its length. */
gs_status gs_block_reader_next(gs_block_reader *r, uint64_t index, uint64_t *bytes);
/* Front to back of what the store, or the shard, has of it: reads the next block, the first one first. False at its
 * end; where it cannot, as *st says then; and where *st is not GS_OK, for a reader that could not be opened. */
bool gs_block_reader_more(gs_block_reader *r, gs_status *st);

/* Rows of the store, [count], of vertices by their ids in the input, which are below the number of vertices and may be
 * there more than once. order: [count] places of `id` by ids; NULL: ids ascend. Reads all ids once. GS_EFORMAT: the
 * store's are no permutation; GS_EIO, GS_ENOMEM. */
gs_status gs_rows_of_ids(uint32_t *row, const gs_store *store, const uint32_t *id, const uint32_t *order,
                         uint64_t count);
/* The same of ids `first` to first + count - 1. */
gs_status gs_rows_of_range(uint32_t *row, const gs_store *store, uint64_t first, uint64_t count);

#endif /* GS_SESSION_STORE_ROWS_H */
