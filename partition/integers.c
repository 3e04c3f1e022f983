/* integers.c - a seeded bijection of [0, n), and radix sorts of edges. */
#include "partition/integers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "base/size.h"

/* ---- bijections: odd multiplications, additions and xor-shifts modulo 2^bits, each invertible; values beyond n walk
 * on (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002: cycle walking). */

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
    gs_permute p = {.n = n, .bits = GS_MIN(GS_MAX(gs_part__bits(n), 1), 63)};
    uint32_t key[2];

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

void gs_part__normals(float four[4], const uint32_t bits[4])
{
    for (int k = 0; k < 4; k += 2) {
        const float radius = sqrtf(-2 * logf((float)gs_uniform_open(bits[k] | 0x80)));
        const float angle = 6.28318530717958647692f * gs_uniform_f32(bits[k + 1]);
        four[k] = radius * cosf(angle);
        four[k + 1] = radius * sinf(angle);
    }
}

/* ---- least-significant-digit radix sorts.
 *
 * 11-bit digits: 2048 counters (16 KiB) and as many write streams stay in the first- and second-level caches, and a
 * chunk's 30 to 40 bits take 3 or 4 passes. */

#define DIGIT_BITS 11u
#define DIGITS (1u << DIGIT_BITS)
#define SMALL 48u /* below this many, insertion sort is faster */

/* Counts to places; true when one digit holds everything, so no pass is needed. */
static bool to_places(uint64_t places[DIGITS], uint64_t n)
{
    uint64_t at = 0;
    for (uint32_t d = 0; d < DIGITS; d++) {
        const uint64_t count = places[d];
        if (count == n)
            return true;
        places[d] = at;
        at += count;
    }
    return false;
}

static void insertion8(uint64_t *a, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t v = a[i];
        uint64_t j = i;
        for (; j > 0 && a[j - 1] > v; j--)
            a[j] = a[j - 1];
        a[j] = v;
    }
}

/* Digits as even as the bits allow, none wider than DIGIT_BITS. */
static uint32_t digit_width(uint32_t bits)
{
    const uint32_t passes = (uint32_t)gs_div_up(bits, DIGIT_BITS);
    return passes == 0 ? 1 : (uint32_t)gs_div_up(bits, passes);
}

uint64_t *gs_part__sort8(uint64_t *data, uint64_t *spare, uint64_t n, uint32_t bits)
{
    const uint32_t width = digit_width(bits);
    uint64_t places[DIGITS];

    if (n < SMALL) {
        insertion8(data, n);
        return data;
    }
    for (uint32_t shift = 0; shift < bits; shift += width) {
        const uint64_t mask = (1ull << GS_MIN(width, bits - shift)) - 1;
        memset(places, 0, sizeof(places));
        for (uint64_t i = 0; i < n; i++)
            places[data[i] >> shift & mask]++;
        if (to_places(places, n))
            continue;
        for (uint64_t i = 0; i < n; i++)
            spare[places[data[i] >> shift & mask]++] = data[i];
        uint64_t *const t = data;
        data = spare;
        spare = t;
    }
    return data;
}

typedef uint32_t digit_of(const gs_part_key16 *k, uint32_t shift, uint64_t mask);

static uint32_t key_digit(const gs_part_key16 *k, uint32_t shift, uint64_t mask)
{
    return (uint32_t)(k->key >> shift & mask);
}

static uint32_t type_digit(const gs_part_key16 *k, uint32_t shift, uint64_t mask)
{
    return (uint32_t)(k->type >> shift & mask);
}

/* One stable pass over bits [shift, shift + width) of what `digit` reads. */
static inline __attribute__((always_inline)) void pass16(gs_part_key16 **data, gs_part_key16 **spare, uint64_t n,
                                                         digit_of *digit, uint32_t shift, uint32_t width)
{
    const uint64_t mask = (1ull << width) - 1;
    uint64_t places[DIGITS] = {0};

    for (uint64_t i = 0; i < n; i++)
        places[digit(&(*data)[i], shift, mask)]++;
    if (to_places(places, n))
        return;
    for (uint64_t i = 0; i < n; i++)
        (*spare)[places[digit(&(*data)[i], shift, mask)]++] = (*data)[i];
    gs_part_key16 *const t = *data;
    *data = *spare;
    *spare = t;
}

static int by_weight_bits(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, &((const gs_part_key16 *)a)->weight, 4);
    memcpy(&y, &((const gs_part_key16 *)b)->weight, 4);
    return (x > y) - (x < y);
}

/* Edges that are equal but for their weight get an order of their own, so
 * that sums do not depend on the order of reading. */
static void order_weights(gs_part_key16 *a, uint64_t n)
{
    for (uint64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && a[end].key == a[i].key && a[end].type == a[i].type; end++)
            ;
        if (end - i > 1)
            qsort(a + i, end - i, sizeof(*a), by_weight_bits);
    }
}

gs_part_key16 *gs_part__sort16(gs_part_key16 *data, gs_part_key16 *spare, uint64_t n, uint32_t bits,
                               uint32_t low, uint32_t type_bits)
{
    const uint32_t width = DIGIT_BITS;

    for (uint32_t shift = 0; shift < low; shift += width)
        pass16(&data, &spare, n, key_digit, shift, GS_MIN(width, low - shift));
    for (uint32_t shift = 0; shift < type_bits; shift += width)
        pass16(&data, &spare, n, type_digit, shift, GS_MIN(width, type_bits - shift));
    for (uint32_t shift = low; shift < bits; shift += width)
        pass16(&data, &spare, n, key_digit, shift, GS_MIN(width, bits - shift));
    order_weights(data, n);
    return data;
}
