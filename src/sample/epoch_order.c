/* epoch_order.c - a Feistel network over the bits of n - 1, walked along until it is below n.
 *
 * Each round changes one half of the bits by a function of the other, which can be undone: so the network is a
 * permutation of the numbers of so many bits, and, walked until it comes back below n (Black and Rogaway, 2002), one of
 * [0, n). Less than two walks on average. */
#include "sample/epoch_order.h"

#include "base/philox.h"

static uint32_t bits_of(uint32_t n)
{
    uint32_t bits = 2;
    while (bits < 32 && (n - 1) >> bits != 0)
        bits++;
    return bits;
}

gs_order gs_order_of(uint64_t seed, uint32_t epoch, uint32_t n)
{
    const uint32_t bits = bits_of(n);
    gs_order o = {.n = n, .low_bits = bits / 2, .high_bits = bits - bits / 2};
    uint32_t key[2];

    gs_random_key(key, seed, GS_RANDOM_ORDER);
    for (uint32_t k = 0; k < GS_ORDER_ROUNDS; k += 4) {
        const uint32_t counter[4] = {k, epoch, n, 0};
        gs_philox4x32(&o.key[k], counter, key);
    }
    return o;
}

/* All bits of a word from all bits of another (the finaliser of MurmurHash3). */
static uint32_t mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

static uint32_t network(const gs_order *o, uint32_t x)
{
    const uint32_t low_mask = (1u << o->low_bits) - 1, high_mask = (1u << o->high_bits) - 1;
    uint32_t low = x & low_mask, high = x >> o->low_bits;

    for (uint32_t r = 0; r < GS_ORDER_ROUNDS; r += 2) {
        high ^= mix(low + o->key[r]) & high_mask;
        low ^= mix(high + o->key[r + 1]) & low_mask;
    }
    return high << o->low_bits | low;
}

uint32_t gs_order_at(const gs_order *o, uint32_t i)
{
    uint32_t x = network(o, i);
    while (x >= o->n)
        x = network(o, x);
    return x;
}
