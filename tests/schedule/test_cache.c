/* The cache's plan against what it must be: possible, never worse than least-recently-used, and the best
 * there is where that can be found by trying everything. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "schedule/cache.h"
#include "support/support.h"

enum { MOST = 4096 };

static uint32_t rng;
static uint32_t below(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(rng >> 4) * n >> 28);
}

/* What each byte of the cache holds, epoch after epoch; the first begins with what stays over the end. */
static void check_plan(const gs_cache_plan *p, const gs_cache_access *a, uint32_t n, uint64_t capacity, bool across)
{
    uint32_t *there = malloc((capacity + 1) * sizeof(*there)); /* units of size 1 here; 0: nothing */
    uint64_t read = 0;

    memset(there, 0, (capacity + 1) * sizeof(*there));
    assert_true(p->used_bytes <= capacity);
    for (uint32_t k = 0; k < n; k++) { /* in order: the last access that stays is what the epoch ends with */
        bool again = false;
        for (uint32_t i = k + 1; i < n; i++)
            again = again || a[i].unit == a[k].unit;
        if (p->stays[k] && !again)
            assert_true(across);
        for (uint64_t b = 0; p->stays[k] && !again && b < a[k].bytes; b++)
            there[p->place[k] + b] = a[k].unit + 1;
    }
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        read = 0;
        for (uint32_t k = 0; k < n; k++) {
            const uint64_t at = p->place[k];
            if (at == GS_CACHE_NOWHERE) {
                assert_false(p->hit[k] || p->stays[k]);
                read += a[k].cost;
                continue;
            }
            assert_true(at + a[k].bytes <= capacity);
            assert_true(p->hit[k] || a[k].whole);
            for (uint64_t b = 0; b < a[k].bytes; b++) {
                if (p->hit[k])
                    assert_int_equal(there[at + b], a[k].unit + 1);
                there[at + b] = a[k].unit + 1;
            }
            read += p->hit[k] ? 0 : a[k].cost;
        }
        assert_int_equal(read, p->read_bytes);
        if (!across)
            memset(there, 0, (capacity + 1) * sizeof(*there));
    }
    free(there);
}

/* Bytes that least-recently-used reads in an epoch, after others like it. */
static uint64_t lru(const gs_cache_access *a, uint32_t n, uint32_t units, uint64_t capacity, uint32_t epochs)
{
    uint64_t *seen = calloc(units, sizeof(*seen)), now = 1, used = 0, read = 0;
    bool *in = calloc(units, sizeof(*in));
    uint64_t *bytes = calloc(units, sizeof(*bytes));

    for (uint32_t e = 0; e < epochs; e++) {
        read = 0;
        for (uint32_t k = 0; k < n; k++, now++) {
            const uint32_t u = a[k].unit;
            seen[u] = now;
            bytes[u] = a[k].bytes;
            if (in[u])
                continue;
            read += a[k].cost;
            if (!a[k].whole || a[k].bytes > capacity)
                continue;
            while (used + a[k].bytes > capacity) {
                uint32_t oldest = UINT32_MAX;
                for (uint32_t i = 0; i < units; i++)
                    if (in[i] && (oldest == UINT32_MAX || seen[i] < seen[oldest]))
                        oldest = i;
                in[oldest] = false;
                used -= bytes[oldest];
            }
            in[u] = true;
            used += a[k].bytes;
        }
    }
    free(seen);
    free(in);
    free(bytes);
    return read;
}

/* The least that any sequence of decisions reads: by the set of units there (all of size 1), with `start` there
 * at the beginning and `end` at the end. */
static uint64_t least(const gs_cache_access *a, uint32_t n, uint32_t units, uint32_t capacity, uint32_t start,
                      uint32_t end)
{
    enum { SETS = 64 };
    uint64_t cost[SETS], then[SETS];

    for (uint32_t s = 0; s < SETS; s++)
        cost[s] = s == start ? 0 : UINT64_MAX / 2;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t bit = 1u << a[k].unit;
        for (uint32_t s = 0; s < SETS; s++)
            then[s] = UINT64_MAX / 2;
        for (uint32_t s = 0; s < 1u << units; s++) {
            const uint64_t c = cost[s] + (s & bit ? 0 : a[k].cost);
            const uint32_t may = s | (a[k].whole ? bit : 0);
            for (uint32_t t = may;; t = (t - 1) & may) { /* any part of what is there may stay */
                if ((uint32_t)__builtin_popcount(t) <= capacity)
                    then[t] = GS_MIN(then[t], c);
                if (t == 0)
                    break;
            }
        }
        memcpy(cost, then, sizeof(cost));
    }
    return cost[end];
}

static uint64_t least_across(const gs_cache_access *a, uint32_t n, uint32_t units, uint32_t capacity)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t s = 0; s < 1u << units; s++)
        if ((uint32_t)__builtin_popcount(s) <= capacity)
            best = GS_MIN(best, least(a, n, units, capacity, s, s));
    return best;
}

static uint64_t planned(const gs_cache_access *a, uint32_t n, uint32_t units, uint64_t capacity, bool across)
{
    gs_cache_plan p;
    gs_assert_ok(gs_cache_plan_make(&p, &(gs_cache_input){.access = a, .accesses = n, .units = units,
                                                       .capacity = capacity, .across = across}));
    check_plan(&p, a, n, capacity, across);
    const uint64_t read = p.read_bytes;
    gs_cache_plan_drop(&p);
    return read;
}

/* Equal sizes and costs, few units: as good as anything can be. */
static void test_cache__is_the_best_there_is(void **state)
{
    uint64_t sum = 0, best = 0;
    (void)state;
    rng = 1;
    for (int i = 0; i < 300; i++) {
        const uint32_t units = 2 + below(5), n = 1 + below(14), capacity = below(units + 1);
        gs_cache_access a[16];
        for (uint32_t k = 0; k < n; k++)
            a[k] = (gs_cache_access){.unit = below(units), .whole = true, .bytes = 1, .cost = 1};
        assert_int_equal(planned(a, n, units, capacity, false), least(a, n, units, capacity, 0, 0));
        const uint64_t got = planned(a, n, units, capacity, true), want = least_across(a, n, units, capacity);
        assert_true(got >= want);
        sum += got;
        best += want;
    }

    assert_true((double)sum <= 1.02 * (double)best);
}

static uint32_t scan(gs_cache_access *a, uint32_t n, uint32_t first, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; i++)
        a[n++] = (gs_cache_access){.unit = first + i, .whole = true, .bytes = bytes, .cost = bytes};
    return n;
}

/* An epoch like one of training: features, edges twice, edges of the other direction twice, features again. */
static void test_cache__never_reads_more_than_lru(void **state)
{
    gs_cache_access a[MOST];
    uint32_t n = 0;
    (void)state;
    n = scan(a, n, 0, 20, 9);
    n = scan(a, n, 20, 100, 2);
    n = scan(a, n, 20, 100, 2);
    n = scan(a, n, 120, 100, 2);
    n = scan(a, n, 120, 100, 2);
    n = scan(a, n, 0, 20, 9);
    const uint64_t set = 20 * 9 + 200 * 2;
    for (uint64_t capacity = 0; capacity <= set; capacity += 10) {
        const uint64_t ours = planned(a, n, 220, capacity, true), other = lru(a, n, 220, capacity, 4);
        assert_true(ours <= other);
        if (capacity == set / 2)
            assert_true((double)ours <= 0.85 * (double)other);
    }
    assert_int_equal(planned(a, n, 220, set, true), 0);
}

/* Random sizes and orders, accesses that cannot bring a unit in: possible, and near LRU's at worst. */
static void test_cache__holds_with_any_sizes(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed < 60; seed++) {
        gs_cache_access a[400];
        uint64_t size[40], total = 0;
        rng = seed;
        const uint32_t units = 1 + below(40), n = 1 + below(400);
        for (uint32_t u = 0; u < units; u++)
            total += size[u] = 1 + below(9);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t u = below(units);
            const bool whole = below(4) != 0;
            a[k] = (gs_cache_access){.unit = u, .whole = whole, .bytes = size[u],
                                     .cost = whole ? size[u] : 1 + below((uint32_t)size[u])};
        }
        for (uint64_t capacity = 0; capacity <= total; capacity += 1 + total / 7) {
            planned(a, n, units, capacity, false);
            planned(a, n, units, capacity, true);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache__is_the_best_there_is),
        cmocka_unit_test(test_cache__never_reads_more_than_lru),
        cmocka_unit_test(test_cache__holds_with_any_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
