#include "base/hash.h"

#define XXH_STATIC_LINKING_ONLY /* the size of a state */
#include <xxhash.h>

#include "base/alloc.h"

uint64_t gs_hash64(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }

uint64_t gs_hash64_seeded(const void *data, size_t bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, bytes, seed);
}

/* Aligned to 64 bytes, which the allocator does not promise. */
struct gs_hash_stream {
    char room[sizeof(XXH3_state_t) + 64];
};

static XXH3_state_t *state_of(const gs_hash_stream *h)
{
    const uintptr_t at = ((uintptr_t)h->room + 63) & ~(uintptr_t)63;
    return (XXH3_state_t *)at;
}

gs_hash_stream *gs_hash_begin(void)
{
    gs_hash_stream *const h = gs_calloc(1, sizeof(*h));

    if (h != NULL)
        XXH3_64bits_reset(state_of(h));
    return h;
}

void gs_hash_add(gs_hash_stream *h, const void *data, size_t bytes) { XXH3_64bits_update(state_of(h), data, bytes); }

uint64_t gs_hash_so_far(const gs_hash_stream *h) { return XXH3_64bits_digest(state_of(h)); }

void gs_hash_end(gs_hash_stream *h) { gs_free(h); }
