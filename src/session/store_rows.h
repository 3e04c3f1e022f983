/* store_rows.h - a store's array read front to back, checked as it comes. */
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
} gs_block_reader;

/* GS_EINVAL where the store has no such array; GS_EIO, GS_ENOMEM. */
gs_status gs_block_reader_open(gs_block_reader *r, const gs_store *store, gs_array_id id);
void gs_block_reader_close(gs_block_reader *r);
/* Reads block `index` into r->block, checks it, gives its length. */
gs_status gs_block_reader_next(gs_block_reader *r, uint64_t index, uint64_t *bytes);

#endif /* GS_SESSION_STORE_ROWS_H */
