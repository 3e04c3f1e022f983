/* hash.h - the checksum of the store: XXH3, 64 bits, seed 0 (libxxhash). */
#ifndef GS_BASE_HASH_H
#define GS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t gs_hash64(const void *data, size_t bytes);
/* The same function with another seed: for tables in memory, not for files. */
uint64_t gs_hash64_seeded(const void *data, size_t bytes, uint64_t seed);

/* The same of bytes that come in pieces. */
typedef struct gs_hash_stream gs_hash_stream;

gs_hash_stream *gs_hash_begin(void); /* NULL when memory is short */
void gs_hash_add(gs_hash_stream *h, const void *data, size_t bytes);
uint64_t gs_hash_so_far(const gs_hash_stream *h); /* more may follow */
void gs_hash_end(gs_hash_stream *h);              /* NULL is allowed */

#endif /* GS_BASE_HASH_H */
