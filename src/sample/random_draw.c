/* random_draw.c - sets of places, exactly as likely as they should be. */
#include "sample/random_draw.h"

#include "base/exponential.h"

static bool is_listed(const uint32_t *place, uint32_t n, uint32_t p)
{
    uint32_t hit = 0;
    for (uint32_t i = 0; i < n; i++)
        hit |= place[i] == p;
    return hit;
}

/* True where p is new. */
static bool set_put(gs_place_set *set, uint32_t p)
{
    uint32_t at = (p * 0x9E3779B1u) & (set->slots - 1);
    while (set->slot[at] != 0) {
        if (set->slot[at] == p + 1)
            return false;
        at = (at + 1) & (set->slots - 1);
    }
    set->slot[at] = p + 1;
    return true;
}

/* Each place's probe may have gone over others, so all go up to the next gap. */
static void set_clear(gs_place_set *set, const uint32_t *place, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t at = (place[i] * 0x9E3779B1u) & (set->slots - 1); set->slot[at] != 0;
             at = (at + 1) & (set->slots - 1))
            set->slot[at] = 0;
}

void gs_draw__distinct(uint32_t *place, uint32_t k, uint32_t n, gs_random_stream *r, gs_place_set *set)
{
    if (k <= GS_DRAW_SCANNED) {
        for (uint32_t i = 0, j = n - k; i < k; i++, j++) {
            const uint32_t p = gs_random_below(r, j + 1);
            place[i] = is_listed(place, i, p) ? j : p;
        }
        return;
    }
    for (uint32_t i = 0, j = n - k; i < k; i++, j++) {
        const uint32_t p = gs_random_below(r, j + 1);
        place[i] = set_put(set, p) ? p : j;
        if (place[i] == j && p != j)
            set_put(set, j);
    }
    set_clear(set, place, k);
}

void gs_draw__repeated(uint32_t *place, uint32_t k, uint32_t n, gs_random_stream *r)
{
    for (uint32_t i = 0; i < k; i++)
        place[i] = gs_random_below(r, n);
}

/* Is what has key a drawn after what has key b? Of equal keys the later place is. */
static bool is_after(double a, uint32_t place_a, double b, uint32_t place_b)
{
    return a > b || (a == b && place_a > place_b);
}

/* Lets place p with `key` sink from the top of a heap of n whose greatest key is first. */
static void heap_sink(double *keys, uint32_t *place, uint32_t n, double key, uint32_t p)
{
    uint32_t at = 0;
    for (uint32_t child = 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && is_after(keys[child + 1], place[child + 1], keys[child], place[child]);
        if (!is_after(keys[child], place[child], key, p))
            break;
        keys[at] = keys[child];
        place[at] = place[child];
        at = child;
    }
    keys[at] = key;
    place[at] = p;
}

static void heap_rise(double *keys, uint32_t *place, uint32_t at, double key, uint32_t p)
{
    for (; at > 0 && is_after(key, p, keys[(at - 1) / 2], place[(at - 1) / 2]); at = (at - 1) / 2) {
        keys[at] = keys[(at - 1) / 2];
        place[at] = place[(at - 1) / 2];
    }
    keys[at] = key;
    place[at] = p;
}

/* The greatest goes behind the others, one after the other. */
static void heap_sort(double *keys, uint32_t *place, uint32_t n)
{
    while (n > 1) {
        const double last = keys[--n];
        const uint32_t last_place = place[n];
        keys[n] = keys[0];
        place[n] = place[0];
        heap_sink(keys, place, n, last, last_place);
    }
}

uint32_t gs_draw__weighted(uint32_t *place, uint32_t k, const float *weight, uint32_t n, const gs_random_stream *r,
                           uint32_t first, gs_place_set *set)
{
    uint32_t taken = 0, word[4], counter[4] = {UINT32_MAX, r->counter[1], r->counter[2], r->counter[3]};
    for (uint32_t p = 0; p < n; p++) {
        const uint32_t of = first + p;
        if (!(weight[p] > 0))
            continue;
        if (counter[0] != of / 2) {
            counter[0] = of / 2;
            gs_philox4x32(word, counter, r->key);
        }
        const double key = gs_exponential_key(word[of % 2 * 2], word[of % 2 * 2 + 1], weight[p]);
        if (taken < k)
            heap_rise(set->key, place, taken++, key, p);
        else if (key < set->key[0])
            heap_sink(set->key, place, k, key, p);
    }
    heap_sort(set->key, place, taken);
    return taken;
}

uint32_t gs_draw__weighted_repeated(uint32_t *place, uint32_t k, const float *weight, uint32_t n, gs_random_stream *r,
                                    gs_place_set *set)
{
    double total = 0, sum = 0;
    uint32_t taken = 0, last = 0;
    for (uint32_t p = 0; p < n; p++)
        total += weight[p] > 0 ? (double)weight[p] : 0;
    if (!(total > 0))
        return 0;
    /* Ascending marks, so that one walk over the weights finds them all. */
    for (uint32_t i = 0; i < k; i++) {
        const double mark = gs_random_unit(r) * total;
        uint32_t at = i;
        for (; at > 0 && set->key[at - 1] > mark; at--)
            set->key[at] = set->key[at - 1];
        set->key[at] = mark;
    }
    for (uint32_t p = 0; p < n && taken < k; p++) {
        if (!(weight[p] > 0))
            continue;
        sum += (double)weight[p];
        last = p;
        while (taken < k && set->key[taken] < sum)
            place[taken++] = p;
    }
    while (taken < k) /* a mark that rounding put behind the sum */
        place[taken++] = last;
    return k;
}

/* ---- an epoch's order -------------------------------------------------- */

/* A Feistel network over the bits of n - 1, walked along until it is below n.
 *
 * Each round changes one half of the bits by a function of the other, which can be undone: so the network is a
 * permutation of the numbers of so many bits, and, walked until it comes back below n (Black and Rogaway, 2002), one of
 * [0, n). Less than two walks on average. */

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
