/* store_write.h - write side of a store: the tables and, last, the manifest.
 *
 * partition/ fills edge and array files itself (chunk bytes by
 * gs_chunk_layout()); this header names them and makes the whole visible at
 * once. Until gs_store_finish() has returned GS_OK the directory holds no
 * manifest and is not a store.
 */
#ifndef GS_STORE_STORE_WRITE_H
#define GS_STORE_STORE_WRITE_H

#include <stdbool.h>

#include "base/status.h"
#include "store/store.h"

/* Makes `dir`, or takes an empty one. An existing store is GS_EEXIST unless `force`, which
 * removes its manifest first and then the files a store has; a
 * folder with anything else in it is GS_EEXIST even then (nothing of a user's is deleted). */
gs_status gs_store_begin(const char *dir, bool force);

/* Removes the files a store has (and the folder, if it is then empty): after a failure. Does
 * nothing in a folder that gs_store_begin() did not begin or gs_store_finish() finished, and
 * leaves gs_last_error() as it is. */
void gs_store_abandon(const char *dir);

typedef struct gs_store_contents {
    gs_store_info info;                   /* total_bytes and feature_id are computed here */
    gs_chunk_table chunks;
    gs_array_info array[GS_ARRAY_COUNT];
} gs_store_contents;

/* Writes chunks.bin and sums.bin, syncs every file of the store and the folder, then writes
 * manifest.json atomically. Blocks. Every number is checked as a reader would: GS_EINVAL says
 * which is wrong, and no manifest is written. `bytes` and `row_bytes` of arrays may be 0; `offset` of empty
 * chunks is not looked at. */
gs_status gs_store_finish(const char *dir, const gs_store_contents *contents);

/* Name of the edge file of a direction within a store: "edges.dest.bin". */
const char *gs_store_edges_name(gs_direction d);

#endif /* GS_STORE_STORE_WRITE_H */
