/* unique.h - append-unique: the distinct vertices of a batch, each with the next local row, by a hash table.
 *
 * Open addressing, vertex and row side by side in 64 bits, at most half full. What was put is taken out again in as
 * many steps, so that a small batch in a large table costs little.
 * Threads: a table belongs to one.
 */
#ifndef GS_SAMPLE_UNIQUE_H
#define GS_SAMPLE_UNIQUE_H

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

#define GS_UNIQUE_NONE UINT32_MAX

typedef struct gs_unique {
    uint64_t *slot;     /* [1 << bits] vertex << 32 | row + 1; 0: free */
    uint32_t *slot_of;  /* [most] where row i is */
    uint32_t *vertex;   /* [most] of each row */
    uint32_t bits, count, most;
} gs_unique;

static inline uint32_t gs_unique_bits(uint32_t most)
{
    uint32_t bits = 6;
    while (1ull << bits < 2 * (uint64_t)most)
        bits++;
    return bits;
}

/* A table for `most` vertices, of the arena, which may be short then. */
static inline void gs_unique_take(gs_unique *u, gs_arena *a, uint32_t most)
{
    *u = (gs_unique){.most = most, .bits = gs_unique_bits(most)};
    u->slot = gs_arena_take(a, (size_t)1 << u->bits, sizeof(*u->slot));
    u->slot_of = gs_arena_take(a, most, sizeof(*u->slot_of));
    u->vertex = gs_arena_take(a, most, sizeof(*u->vertex));
}

static inline uint32_t gs_unique_home(const gs_unique *u, uint32_t vertex)
{
    return (uint32_t)((vertex * 0x9E3779B97F4A7C15ull) >> (64 - u->bits));
}

static inline void gs_unique_prefetch(const gs_unique *u, uint32_t vertex)
{
    __builtin_prefetch(&u->slot[gs_unique_home(u, vertex)], 1);
}

/* The vertex' row: a new one where it has none yet; GS_UNIQUE_NONE where there is no more room. */
static inline uint32_t gs_unique_put(gs_unique *u, uint32_t vertex)
{
    const uint32_t mask = (uint32_t)((1ull << u->bits) - 1);
    uint32_t at = gs_unique_home(u, vertex);

    while (u->slot[at] != 0) {
        if (u->slot[at] >> 32 == vertex)
            return (uint32_t)u->slot[at] - 1;
        at = (at + 1) & mask;
    }
    if (u->count == u->most)
        return GS_UNIQUE_NONE;
    u->slot[at] = (uint64_t)vertex << 32 | (u->count + 1);
    u->slot_of[u->count] = at;
    u->vertex[u->count] = vertex;
    return u->count++;
}

/* The vertex' row, or GS_UNIQUE_NONE. */
static inline uint32_t gs_unique_find(const gs_unique *u, uint32_t vertex)
{
    const uint32_t mask = (uint32_t)((1ull << u->bits) - 1);
    for (uint32_t at = gs_unique_home(u, vertex); u->slot[at] != 0; at = (at + 1) & mask)
        if (u->slot[at] >> 32 == vertex)
            return (uint32_t)u->slot[at] - 1;
    return GS_UNIQUE_NONE;
}

static inline void gs_unique_clear(gs_unique *u)
{
    if ((uint64_t)u->count * 16 > 1ull << u->bits)
        memset(u->slot, 0, sizeof(u->slot[0]) << u->bits);
    else
        for (uint32_t i = 0; i < u->count; i++)
            u->slot[u->slot_of[i]] = 0;
    u->count = 0;
}

#endif /* GS_SAMPLE_UNIQUE_H */
