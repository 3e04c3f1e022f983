/* store_write.h - write side of a store: the tables and, last, the manifest.
 *
 * partition/ fills edge and array files itself (chunk bytes by
 * gs_chunk_layout()); this header names them and makes the whole visible at
 * once.
 */
#ifndef GS_STORE_STORE_WRITE_H
#define GS_STORE_STORE_WRITE_H

#include <stdbool.h>

#include "base/temporary.h"
#include "base/status.h"
#include "store/store.h"

/* True where the folder has a store's manifest, be it whole or not. */
bool gs_store_is_at(const char *dir);

/* GS_EEXIST: `dir`, which may be there or not, is within a store's folder, which holds its own files alone. */
gs_status gs_store_check_outside(const char *dir);

/* A staging folder of the store `dir`, whose files go to gs_staging_dir(). A store that is there is GS_EEXIST unless
 * `force`, and stays until gs_store_finish(); a folder with anything else in it is GS_EEXIST even then (nothing of a
 * user's is deleted), and so is one within a store. The caller ends it by gs_staging_close(), finished or not. */
gs_status gs_store_begin(gs_staging **out, const char *dir, bool force);

typedef struct gs_store_contents {
    gs_store_info info;                   /* total_bytes and feature_id are computed here */
    gs_chunk_table chunks;
    gs_array_info array[GS_ARRAY_COUNT];
    const gs_store_shard *shard;          /* the folder has this part of the files alone, whose numbers and checksums
                                           * are those of the whole; .store_id is computed here. NULL: the whole */
} gs_store_contents;

/* Writes chunks.bin and sums.bin, syncs every file of the store, writes manifest.json, and puts the staging folder into
 * its place; that of a shard the caller publishes, once all shards are whole. Blocks. Every number is checked as a
 * reader would: GS_EINVAL says which is wrong, and no manifest is written. `bytes` and `row_bytes` of arrays may be 0;
 * `offset` of empty chunks is not looked at, but of a shard. */
gs_status gs_store_finish(gs_staging *staging, const gs_store_contents *contents);

/* May the folder `out` get shards of so many ranks? *there: it exists. GS_EEXIST, GS_EIO. */
gs_status gs_store_check_shards(const char *out, uint32_t ranks, bool force, bool *there);

typedef struct gs_shard_job {
    uint32_t ranks;
    bool force;                /* shards that are there are replaced */
    gs_progress_fn progress;   /* may be NULL */
    void *context;
    const volatile int *stop;  /* may be NULL */
} gs_shard_job;

/* Makes the shards of a whole store, in folders 0, 1, ... of `out`, which is made where it is missing: each has about
 * one part in `ranks` of the edges and rows. Every byte is checked as it is copied. All take their places when the last
 * is complete; on failure none does. Blocks.
 *   GS_EINVAL   more ranks than intervals, or than GS_SHARDS_MOST
 *   GS_EEXIST   `out` holds something else, or shards and not `force`
 *   GS_EFORMAT, GS_EIO, GS_ENOMEM, GS_EINTERRUPTED */
gs_status gs_store_write_shards(const gs_store *s, const char *out, const gs_shard_job *job);

/* -- an array's file, written front to back by one thread, in pieces of GS_SUM_BYTES with a checksum each. */

typedef struct gs_array_writer {
    gs_extent here; /* of a shard: the array's bytes that its file has */
    char *path;
    int fd;
    char *piece;    /* [GS_SUM_BYTES] the last one so far, not yet in the file */
    uint64_t fill, written;
    uint64_t *sums; /* [written / GS_SUM_BYTES, rounded up] */
    uint32_t sums_room;
} gs_array_writer;
#define GS_ARRAY_WRITER_NONE {.here = {0, UINT64_MAX}, .fd = -1}

/* GS_EIO, GS_ENOMEM. Free after a failure, too. */
gs_status gs_array_begin(gs_array_writer *w, const char *dir, gs_array_id id);
gs_status gs_array_put(gs_array_writer *w, const void *bytes, uint64_t count);
/* All is put, rows of `width` elements: *info is of the array, and its sums are the caller's. */
gs_status gs_array_end(gs_array_writer *w, gs_array_info *info, gs_dtype dtype, uint32_t width);
void gs_array_writer_free(gs_array_writer *w);

/* Name of the edge file of a direction within a store: "edges.dest.bin". */
const char *gs_store_edges_name(gs_direction d);

#endif /* GS_STORE_STORE_WRITE_H */
