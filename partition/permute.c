/* permute.c - a seeded bijection of [0, n): odd multiplications, additions and
 * xor-shifts modulo 2^bits, each invertible; values beyond n walk on (Black
 * and Rogaway, "Ciphers with arbitrary finite domains", 2002: cycle walking). */
#include "partition/permute.h"

#include "base/philox.h"

#define ROUNDS 3

/* Newton's iteration: each step doubles the number of right low bits. */
static uint64_t inverse_of(uint64_t odd)
{
    uint64_t x = odd;
    for (int i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

gs_permute gs_part__permute_make(uint64_t n, uint64_t seed, uint32_t use)
{
    gs_permute p = {.n = n, .bits = 1};
    uint32_t key[2];

    while (p.bits < 63 && n > 1ull << p.bits)
        p.bits++;
    p.mask = (1ull << p.bits) - 1;
    p.shift = (p.bits + 1) / 2; /* at least half: then x ^= x >> shift is its own inverse */
    gs_random_key(key, seed, use);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        uint32_t bits[4];
        const uint32_t counter[4] = {r, 0x7065726d, 0, 0}; /* "perm": no other use of the key has it */
        gs_philox4x32(bits, counter, key);
        p.multiply[r] = ((uint64_t)bits[0] << 32 | bits[1]) | 1;
        p.inverse[r] = inverse_of(p.multiply[r]);
        p.add[r] = (uint64_t)bits[2] << 32 | bits[3];
    }
    return p;
}

uint64_t gs_part__scramble(const gs_permute *p, uint64_t x)
{
    for (uint32_t r = 0; r < ROUNDS; r++) {
        x = (x * p->multiply[r] + p->add[r]) & p->mask;
        x ^= x >> p->shift;
    }
    return x;
}

static uint64_t unscramble(const gs_permute *p, uint64_t y)
{
    for (uint32_t r = ROUNDS; r-- > 0;) {
        y ^= y >> p->shift;
        y = (y - p->add[r]) * p->inverse[r] & p->mask;
    }
    return y;
}

uint64_t gs_part__permute(const gs_permute *p, uint64_t x)
{
    do
        x = gs_part__scramble(p, x);
    while (x >= p->n);
    return x;
}

uint64_t gs_part__permute_back(const gs_permute *p, uint64_t y)
{
    do
        y = unscramble(p, y);
    while (y >= p->n);
    return y;
}
