/* hash.h - the checksum of the store: XXH3, 64 bits, seed 0 (libxxhash). */
#ifndef GS_BASE_HASH_H
#define GS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t gs_hash64(const void *data, size_t bytes);

#endif /* GS_BASE_HASH_H */
