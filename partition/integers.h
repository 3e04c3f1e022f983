/* integers.h - functions of integers: a hash, a seeded bijection of [0, n), computed, never stored, and stable radix
 * sorts of edges as integers. */
#ifndef GS_PARTITION_INTEGERS_H
#define GS_PARTITION_INTEGERS_H

#include <stdint.h>

/* MurmurHash3's finalizer: a bijection in which every bit of x tells on every bit. */
static inline uint64_t gs_part__mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

/* Bits that tell so many numbers apart. */
static inline uint32_t gs_part__bits(uint64_t count)
{
    return count < 2 ? 0 : 64 - (uint32_t)__builtin_clzll(count - 1);
}

typedef struct gs_permute {
    uint64_t n, mask, multiply[3], inverse[3], add[3];
    uint32_t bits, shift;
} gs_permute;
gs_permute gs_part__permute_make(uint64_t n, uint64_t seed, uint32_t use);
uint64_t gs_part__permute(const gs_permute *p, uint64_t x);
uint64_t gs_part__permute_back(const gs_permute *p, uint64_t y);
/* One step on [0, 2^bits) without the restriction to n. */
uint64_t gs_part__scramble(const gs_permute *p, uint64_t x);

/* Four normal numbers from 128 random bits, by Box and Muller. */
void gs_part__normals(float four[4], const uint32_t bits[4]);

typedef struct gs_part_key16 {
    uint64_t key;
    uint32_t type;
    float weight;
} gs_part_key16;

/* Stable radix sorts by the lowest `bits` of the key; `spare` is as long as
 * `data`. They return where the result is: one of the two. key16: by key's
 * bits above `low`, then type, then key's `low` bits, then weight. */
uint64_t *gs_part__sort8(uint64_t *data, uint64_t *spare, uint64_t n, uint32_t bits);
gs_part_key16 *gs_part__sort16(gs_part_key16 *data, gs_part_key16 *spare, uint64_t n, uint32_t bits,
                               uint32_t low, uint32_t type_bits);

#endif /* GS_PARTITION_INTEGERS_H */
