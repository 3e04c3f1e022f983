/* permute.h - a seeded bijection of [0, n), computed, never stored; a hash of 64 bits. */
#ifndef GS_PARTITION_PERMUTE_H
#define GS_PARTITION_PERMUTE_H

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

typedef struct gs_permute {
    uint64_t n, mask, multiply[3], inverse[3], add[3];
    uint32_t bits, shift;
} gs_permute;
gs_permute gs_part__permute_make(uint64_t n, uint64_t seed, uint32_t use);
uint64_t gs_part__permute(const gs_permute *p, uint64_t x);
uint64_t gs_part__permute_back(const gs_permute *p, uint64_t y);
/* One step on [0, 2^bits) without the restriction to n. */
uint64_t gs_part__scramble(const gs_permute *p, uint64_t x);

#endif /* GS_PARTITION_PERMUTE_H */
