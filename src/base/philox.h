/* philox.h - Philox4x32-10, the counter-based generator (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC'11). The same counter and key give
 * the same bits on every device, so nothing random is ever stored.
 */
#ifndef GS_BASE_PHILOX_H
#define GS_BASE_PHILOX_H

#include <stdint.h>

#define GS_PHILOX_M0 0xD2511F53u
#define GS_PHILOX_M1 0xCD9E8D57u
#define GS_PHILOX_W0 0x9E3779B9u
#define GS_PHILOX_W1 0xBB67AE85u

static inline void gs_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)GS_PHILOX_M0 * c0, p1 = (uint64_t)GS_PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += GS_PHILOX_W0;
        k1 += GS_PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Purposes a seed is used for: they go into the second key word, so that no
 * two uses of one seed ever share a stream. */
enum gs_random_use {
    GS_RANDOM_DROPOUT = 1, /* counter: input id, element / 4, site, epoch */
    GS_RANDOM_INIT = 2,    /* counter: element / 4 (64 bit), parameter index, 0 */
    GS_RANDOM_GENERATE = 3,
    GS_RANDOM_FEATURES = 4, /* counter: input id, column / 4, 0, 0 */
    GS_RANDOM_PARTITION = 5,
    GS_RANDOM_EDGES = 6, /* gs_random_edge_key() */
    GS_RANDOM_SPLIT = 7, /* counter: input id, 0, 0, 0 */
    GS_RANDOM_ORDER = 8,  /* counter: half of a place, round, epoch, 0 */
    GS_RANDOM_TABLE = 10, /* counter: input id, column / 2, table, 0 */
    GS_RANDOM_PAIRS = 11, /* counter: draw / 4, 2 * group + given end, batch, epoch */
    GS_RANDOM_SAMPLE = 9, /* counter: draw / 4, vertex, batch, epoch */
};

static inline void gs_random_key(uint32_t key[2], uint64_t seed, uint32_t use)
{
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32) ^ (use * 0x9E3779B1u);
}

/* A key for what is drawn for each edge at one site in one epoch, where the counter has no room for them. */
static inline void gs_random_edge_key(uint32_t key[2], uint64_t seed, uint32_t site, uint32_t epoch)
{
    const uint32_t counter[4] = {site, epoch, 0, 0};
    uint32_t first[2], word[4];
    gs_random_key(first, seed, GS_RANDOM_EDGES);
    gs_philox4x32(word, counter, first);
    key[0] = word[0];
    key[1] = word[1];
}

/* 32 random bits to a float in [0, 1) / a double in (0, 1). */
static inline float gs_uniform_f32(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; }
static inline double gs_uniform_open(uint32_t bits) { return ((double)bits + 0.5) * 0x1p-32; }

#endif /* GS_BASE_PHILOX_H */
