/* random_draw.h - random numbers of one vertex of one batch, and sets of places drawn with them.
 *
 * A stream is a counter: equal keys give equal numbers wherever and whenever they are drawn.
 * Threads: a stream and a set belong to one.
 */
#ifndef GS_SAMPLE_RANDOM_DRAW_H
#define GS_SAMPLE_RANDOM_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/philox.h"

typedef struct gs_random_stream {
    uint32_t key[2], counter[4], word[4];
    uint32_t left; /* words of this block that are not used */
} gs_random_stream;

static inline gs_random_stream gs_random_stream_of(const uint32_t key[2], uint32_t vertex, uint32_t batch,
                                                   uint32_t epoch)
{
    return (gs_random_stream){.key = {key[0], key[1]}, .counter = {0, vertex, batch, epoch}};
}

static inline uint32_t gs_random_next(gs_random_stream *r)
{
    if (r->left == 0) {
        gs_philox4x32(r->word, r->counter, r->key);
        r->counter[0]++;
        r->left = 4;
    }
    return r->word[4 - r->left--];
}

/* Uniform in [0, n), exactly (Lemire, "Fast random integer generation in an interval", 2019). n > 0. */
static inline uint32_t gs_random_below(gs_random_stream *r, uint32_t n)
{
    uint64_t product = (uint64_t)gs_random_next(r) * n;
    if ((uint32_t)product < n) {
        const uint32_t least = -n % n;
        while ((uint32_t)product < least)
            product = (uint64_t)gs_random_next(r) * n;
    }
    return (uint32_t)(product >> 32);
}
static inline uint64_t gs_random_below64(gs_random_stream *r, uint64_t n)
{
    if (n <= UINT32_MAX)
        return gs_random_below(r, (uint32_t)n);
    const uint64_t least = -n % n;
    for (;;) {
        const uint64_t high = gs_random_next(r), word = high << 32 | gs_random_next(r);
        const __uint128_t product = (__uint128_t)word * n;
        if ((uint64_t)product >= least)
            return (uint64_t)(product >> 64);
    }
}
/* In (0, 1), of 53 bits. */
static inline double gs_random_unit(gs_random_stream *r)
{
    const uint64_t high = gs_random_next(r), word = high << 32 | gs_random_next(r);
    return ((double)(word >> 11) + 0.5) * 0x1p-53;
}

/* Scratch of gs_draw__*: for at most `most` places. */
typedef struct gs_place_set {
    uint32_t *slot;   /* [slots] a place + 1, or 0; all 0 between calls */
    uint32_t slots;   /* a power of two, at least 2 * most */
    double *key;      /* [most] */
} gs_place_set;

#define GS_DRAW_SCANNED 32u /* up to here a set is a list that is scanned */

static inline uint32_t gs_place_slots(uint32_t most)
{
    uint32_t n = 64;
    while (n < 2 * (uint64_t)most && n < 1u << 31)
        n *= 2;
    return n;
}

/* k of n places, each set of k equally likely (Floyd): place[k], in no particular order. 0 < k < n. */
void gs_draw__distinct(uint32_t *place, uint32_t k, uint32_t n, gs_random_stream *r, gs_place_set *set);
/* k of n places, each draw on its own. */
void gs_draw__repeated(uint32_t *place, uint32_t k, uint32_t n, gs_random_stream *r);
/* Up to k of n places with weights, one after the other, each as likely as its weight among those that are left
 * (Efraimidis and Spirakis, 2006: the k least of exponential keys), in the order in which they were drawn; places
 * without weight never. Place p has two words of the stream for itself, those from 2 * (first + p) on, whatever stands
 * before it: whoever draws can look at places in any order. How many. */
uint32_t gs_draw__weighted(uint32_t *place, uint32_t k, const float *weight, uint32_t n, const gs_random_stream *r,
                           uint32_t first, gs_place_set *set);
/* k places, each draw on its own, each place as likely as its weight; 0 where all are 0. */
uint32_t gs_draw__weighted_repeated(uint32_t *place, uint32_t k, const float *weight, uint32_t n, gs_random_stream *r,
                                    gs_place_set *set);

/* ---- an epoch's order -------------------------------------------------- */

/* An epoch's order: which of n things comes at place i? A permutation that is computed, not stored. */

#define GS_ORDER_ROUNDS 8u

typedef struct gs_order {
    uint32_t n;
    uint32_t low_bits, high_bits;      /* of the two halves of a place */
    uint32_t key[GS_ORDER_ROUNDS];     /* of each round */
} gs_order;

gs_order gs_order_of(uint64_t seed, uint32_t epoch, uint32_t n);
/* i < n; another i gives another thing. */
uint32_t gs_order_at(const gs_order *o, uint32_t i);

#endif /* GS_SAMPLE_RANDOM_DRAW_H */
