/* batch_rows.h - a store's rows, picked for a batch.
 *
 * Narrow arrays (labels, input ids, ...) are in host memory. So are features where the evaluation keeps them there;
 * else rows are read from the file, those that lie together in one request, and a cache keeps those that batches of the
 * group at hand, which are known, use next. One thread.
 */
#ifndef GS_SESSION_BATCH_ROWS_H
#define GS_SESSION_BATCH_ROWS_H

#include "base/status.h"
#include "io/io.h"
#include "sample/residency.h"
#include "store/store.h"

/* Shape of the rows' cache. Zero: none. */
typedef struct gs_row_cache_shape {
    uint32_t slots, rows_per_item, group; /* group: batches of one, at most */
    uint64_t item_bytes;
} gs_row_cache_shape;

/* Bytes of the file, from `begin` on. */
typedef struct gs_batch_run {
    uint64_t begin, bytes;
} gs_batch_run;

typedef struct gs_batch_rows {
    const gs_store *store;
    uint8_t *array[GS_ARRAY_COUNT]; /* all rows, or NULL */
    const uint8_t *features;        /* the same, of another owner, or NULL */
    /* Rows of features that are read: */
    gs_io *io;
    uint32_t file;
    gs_row_cache_shape cache;
    gs_residency *plan;  /* NULL: no cache */
    uint8_t *slot;       /* [cache.slots][cache.item_bytes] */
    uint32_t *keep;      /* [most] of what is read, the slot of a place's item, or GS_RESIDENCY_NONE; with a cache */
    uint32_t *order;     /* [most] places of a batch by their row of the store */
    uint32_t *scratch;   /* [most] */
    uint8_t *bounce;     /* [GS_BATCH_WINDOW] */
    gs_batch_run *run;   /* of the requests under way, as they lie in the bounce buffer */
    uint32_t *sums;      /* [blocks of the file] what each is known by */
    uint32_t most;
    bool apart;          /* rows are not those that the plan has next */
    uint64_t read_bytes, gap_bytes; /* so far; of them, between rows that were wanted */
} gs_batch_rows;

/* Bytes that reading rows of features takes, for batches of `most` rows, without a cache. */
uint64_t gs_batch_rows_reading(const gs_store *s, uint32_t most);
/* The cache of at most `bytes`, all that it takes included, for groups of `group` batches of `most` rows. */
gs_row_cache_shape gs_row_cache_shape_of(const gs_store *s, uint64_t bytes, uint32_t group, uint32_t most);
uint64_t gs_row_cache_bytes(const gs_store *s, const gs_row_cache_shape *c, uint32_t most);
/* Reads the arrays of `wanted` (bits of gs_array_id), checked as they come. `features`: where all rows of these are,
 * the caller's; NULL, and not wanted: they are read as they are needed, and once now, so that what comes later can be
 * checked by blocks of the disk. `most`: rows of them that a batch has; 0: none are picked. GS_EIO, GS_EFORMAT,
 * GS_ENOMEM; blocks. Release with gs_batch_rows_close() in any case. */
gs_status gs_batch_rows_open(gs_batch_rows *r, const gs_store *s, uint32_t wanted, const void *features, uint32_t most,
                             const gs_row_cache_shape *cache);
/* These batches come next, each once and in this order; with a cache. */
void gs_batch_rows_begin(gs_batch_rows *r, const gs_batch *batch, uint32_t batches);
/* The next of them is passed over, as it has no rows: nothing is picked for it but by gs_batch_rows_apart(). */
void gs_batch_rows_pass(gs_batch_rows *r);
/* From here on rows are picked that are of none of these batches (true), or of the next of them again. */
void gs_batch_rows_apart(gs_batch_rows *r, bool apart);
void gs_batch_rows_close(gs_batch_rows *r);

/* dst[i] = row row[i] of the array. GS_EIO; GS_EFORMAT: a block is not what it was when all were checked. */
gs_status gs_batch_rows_pick(gs_batch_rows *r, gs_array_id id, const uint32_t *row, uint32_t rows, void *dst);

#endif /* GS_SESSION_BATCH_ROWS_H */
