/* batch_rows.h - a store's rows, picked for a batch.
 *
 * Narrow arrays (labels, input ids, ...) are in host memory. So are features where the evaluation keeps them there;
 * else rows are read from the file, those that lie together in one request. One thread.
 */
#ifndef GS_SESSION_BATCH_ROWS_H
#define GS_SESSION_BATCH_ROWS_H

#include "base/status.h"
#include "io/io.h"
#include "store/store.h"

typedef struct gs_batch_rows {
    const gs_store *store;
    uint8_t *array[GS_ARRAY_COUNT]; /* all rows, or NULL */
    const uint8_t *features;        /* the same, of another owner, or NULL */
    /* Rows of features that are read: */
    gs_io *io;
    uint32_t file;
    uint32_t *order;     /* [most] places of a batch by their row of the store */
    uint32_t *scratch;   /* [most] */
    uint8_t *bounce;     /* [GS_BATCH_WINDOW] */
    uint32_t most;
    uint64_t read_bytes; /* so far */
} gs_batch_rows;

/* Bytes that reading rows of features takes, for batches of `most` rows. */
uint64_t gs_batch_rows_reading(uint32_t most);
/* Reads the arrays of `wanted` (bits of gs_array_id), checked as they come. `features`: where all rows of these are,
 * the caller's; NULL: they are read as they are needed. GS_EIO, GS_EFORMAT, GS_ENOMEM; blocks. Release with
 * gs_batch_rows_close() in any case. */
gs_status gs_batch_rows_open(gs_batch_rows *r, const gs_store *s, uint32_t wanted, const void *features,
                             uint32_t most);
void gs_batch_rows_close(gs_batch_rows *r);

/* dst[i] = row row[i] of the array. Rows that are read are not checked against the store's checksums, which are of more
 * bytes than a row. GS_EIO. */
gs_status gs_batch_rows_pick(gs_batch_rows *r, gs_array_id id, const uint32_t *row, uint32_t rows, void *dst);

#endif /* GS_SESSION_BATCH_ROWS_H */
