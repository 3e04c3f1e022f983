/* store_internal.h - what the files of this room, and its tests, share.
 *
 * The manifest as plain values, the names and sizes of a store's files, and
 * the check of one chunk table entry: the same rules guard writing and reading.
 */
#ifndef GS_STORE_STORE_INTERNAL_H
#define GS_STORE_STORE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "store/chunk_view.h"
#include "store/store.h"

/* Files are little-endian and their arrays are used in place. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a big-endian machine would need byte swaps here");

#define GS_MANIFEST_NAME      "manifest.json"
#define GS_MANIFEST_LIMIT     65536u /* bytes; a real one has about 1500 */
#define GS_MANIFEST_FORMAT    "gnnstream store"
#define GS_SHARD_FILE         "shard.json"
#define GS_SHARD_LIMIT        16384u /* bytes; a real one has about 1000 */
#define GS_SHARD_FORMAT       "gnnstream shard"
#define GS_CHUNK_RECORD_BYTES 48u

/* Limits of the format: far above what is useful, low enough that no size
 * computed from them can pass 2^63. */
#define GS_MAX_COUNT      (1ull << 53)  /* integers that JSON numbers hold exactly */
#define GS_MAX_VERTICES   0xFFFFFFFFull /* input ids are u32 */
#define GS_MAX_PARTS      65536u
#define GS_MAX_FEATURES   (1u << 24)
#define GS_MAX_EDGE_TYPES 65536u
#define GS_MAX_EDGE_FEATURE_BYTES (1u << 20) /* of an edge */
#define GS_TYPE_NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

/* End of every message about bytes that cannot be right. */
#define GS_STORE_DAMAGED "; the store is damaged: copy it again or partition its input again"

typedef struct gs_manifest {
    uint32_t version;   /* of the format: 1 to GS_STORE_VERSION */
    gs_store_info info; /* total_bytes is 0 here */
    bool shared;
    gs_edge_data data;      /* of each edge */
    uint64_t edge_bytes[2]; /* sizes of the edge files; [1] is 0 where shared */
    uint64_t chunks_checksum, sums_checksum;
    struct gs_manifest_array {
        bool present;
        gs_dtype dtype;
        uint32_t width;
    } array[GS_ARRAY_COUNT];
} gs_manifest;

/* manifest.c: text to values and back. `path` is for messages; info.types and info.named are the caller's to
 * free. Parsing checks the text's own checksum, then that every key is there once and in its range, then
 * gs_manifest__check(). */
gs_status gs_manifest__parse(gs_manifest *out, const char *text, uint64_t bytes, const char *path);
/* Checks the numbers against each other (no files). GS_EFORMAT. */
gs_status gs_manifest__check(const gs_manifest *m, const char *path);
/* A new checksummed text; free with gs_free(). */
gs_status gs_manifest__format(char **text, uint64_t *bytes, const gs_manifest *m);

/* manifest.c: likewise of shard.json. `extent`: [GS_STORE_FILES], of each of the store's files but the manifest and the
 * tables, the bytes that are there. */
gs_status gs_shard__parse(gs_store_shard *out, gs_extent *extent, const gs_manifest *m, const char *text,
                          uint64_t bytes, const char *path);
gs_status gs_shard__format(char **text, uint64_t *bytes, const gs_store_shard *x, const gs_extent *extent,
                           const gs_manifest *m);

/* store.c: the names and sizes of the files. k counts manifest, chunks, sums, the two
 * edge files, then the arrays. */
enum {
    GS_FILE_MANIFEST,
    GS_FILE_CHUNKS,
    GS_FILE_SUMS,
    GS_FILE_DEST,
    GS_FILE_SOURCE,
    GS_FILE_ARRAY0,
    GS_STORE_FILES = GS_FILE_ARRAY0 + GS_ARRAY_COUNT
};
#define GS_FILE_NAME_BYTES 32u
const char *gs_store__file_name(char buf[GS_FILE_NAME_BYTES], unsigned k);
/* Does this store have file k, and how many bytes must it have? (Not for the manifest.) */
bool gs_store__file_expected(const gs_manifest *m, unsigned k, uint64_t *bytes);
/* Compares every file's real size with the expected one, or with that of a shard's `extent`, where it is not NULL;
 * *total is their sum, manifest excluded. */
gs_status gs_store__check_files(const gs_manifest *m, const gs_extent *extent, const char *dir, uint64_t *total);
/* The bytes of file k that a shard has. */
gs_extent gs_store__part_of(const gs_manifest *m, const gs_chunk_table *t, const gs_store_shard *x, unsigned k);
/* Size of "dir/name"; GS_ENOTFOUND where there is no such regular file. */
gs_status gs_store__file_size(uint64_t *bytes, const char *dir, const char *name);

/* store.c: one without a file, which takes `chunks` of both directions. */
gs_status gs_store__of_table(gs_store **out, const char *name, const gs_manifest *m, gs_chunk *chunks, double fuller);
double gs_store__fuller(const gs_store *s); /* of a shape, else 0 */

uint64_t gs_manifest__array_bytes(const gs_manifest *m,
                                  gs_array_id id);       /* rows only, no padding; 0: absent */
uint64_t gs_manifest__sum_count(const gs_manifest *m);   /* checksums in sums.bin */
uint64_t gs_manifest__chunk_count(const gs_manifest *m); /* records in chunks.bin */
const char *gs_chunk__direction_name(gs_direction d); /* "by destination" */

/* Walks a chunk table in file order. Zero it before each direction. */
typedef struct gs_table_walk {
    uint64_t end; /* bytes of the edge file so far */
    uint64_t edges;
} gs_table_walk;
/* Checks record k = target * P + operand of direction d; records come in order. */
gs_status gs_store__check_chunk(const gs_manifest *m, gs_direction d, uint64_t k, const gs_chunk *c,
                                gs_table_walk *walk, const char *path);
/* After the last record of a direction. */
gs_status gs_store__check_walk(const gs_manifest *m, gs_direction d, const gs_table_walk *walk,
                               const char *path);
/* Both directions' counts agree chunk by chunk. `chunk[1]` may be chunk[0] (shared). */
gs_status gs_store__check_twins(const gs_manifest *m, const gs_chunk *const chunk[2], const char *path);
void gs_store__record_load(gs_chunk *c, const void *record, uint32_t version);
void gs_store__record_save(void *record, const gs_chunk *c);

/* chunk_view.c */
static inline uint32_t gs_chunk__type(const gs_chunk_view *v, uint64_t k)
{
    return gs_type_at(v->type, v->type_bytes, k);
}
/* The bytes between and after the sections of a checked view. */
bool gs_chunk__padding_is_zero(const gs_chunk_view *v, const void *data, uint64_t length);

/* edge_scan.c: a file read once, front to back, in large pieces. */
typedef struct gs_window {
    char *path;
    int fd;
    unsigned char *buffer;
    uint64_t capacity, file_bytes;
    uint64_t first, valid; /* the buffer holds [first, first + valid) of the file */
    uint64_t read_bytes;   /* since it was opened */
    uint64_t base;         /* of the store's file, where this one begins */
    bool drops;            /* what was read leaves the page cache, ... */
    bool past_cache;       /* ... or never comes there */
} gs_window;
#define GS_WINDOW_NONE                                                                                       \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }
/* Takes `path` (freed by close), of a file that begins with byte `base` of the store's. `capacity` is a multiple of
 * GS_BLOCK_BYTES. A file of at most `room` bytes may stay in the page cache. */
gs_status gs_window__open(gs_window *w, char *path, uint64_t base, uint64_t capacity, uint64_t room);
/* *data: `bytes` bytes at `offset` of the store's file (a multiple of GS_BLOCK_BYTES), valid until the next call.
 * bytes <= capacity. What is not there yet is read as far as `end` of the file at most, where that is more. */
gs_status gs_window__get(gs_window *w, const void **data, uint64_t offset, uint64_t bytes, uint64_t end);
static inline bool gs_window__holds(const gs_window *w, uint64_t offset, uint64_t bytes)
{
    return offset >= w->first && offset + bytes <= w->first + w->valid;
}
void gs_window__close(gs_window *w);

#endif /* GS_STORE_STORE_INTERNAL_H */
