/* Addresses by first fit against their definition: the lowest at which a unit meets none that was placed before it and
 * is there at any access at which it is there itself; by size, of those of less than half the largest one's bytes the
 * highest. */
#include <stdlib.h>

#include "base/size.h"
#include "schedule/cache.h"
#include "support/support.h"

enum { MOST = 64 };

static uint32_t rng;
static uint32_t below(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(rng >> 4) * n >> 28);
}

static bool there_at(const gs_cache_stay *x, uint32_t access)
{
    if (x->from == x->to)
        return true;
    return x->to > x->from ? access >= x->from && access <= x->until : access >= x->from || access <= x->until;
}

static bool meet(const gs_cache_stay *x, const gs_cache_stay *y, uint32_t accesses)
{
    for (uint32_t k = 0; k < accesses; k++)
        if (there_at(x, k) && there_at(y, k))
            return true;
    return false;
}

static bool overlap(uint64_t at, uint64_t bytes, uint64_t other_at, uint64_t other_bytes)
{
    return at < other_at + other_bytes && other_at < at + bytes;
}

static uint64_t address(const gs_cache_stay *stay, uint32_t i, uint32_t accesses, uint64_t capacity,
                        const gs_cache_fixed *fixed, uint32_t fixeds, bool highest)
{
    for (uint64_t far = 0; far + stay[i].bytes <= capacity; far++) {
        const uint64_t at = highest ? capacity - stay[i].bytes - far : far;
        bool free = true;
        for (uint32_t k = 0; k < fixeds; k++)
            free = free && !overlap(at, stay[i].bytes, fixed[k].place, fixed[k].bytes);
        for (uint32_t k = 0; k < i && free; k++)
            free = stay[k].at == GS_CACHE_NOWHERE || !overlap(at, stay[i].bytes, stay[k].at, stay[k].bytes) ||
                   !meet(&stay[i], &stay[k], accesses);
        if (free)
            return at;
    }
    return GS_CACHE_NOWHERE;
}

static int order_of(const gs_cache_stay *x) { return x->from == x->to ? 0 : x->to < x->from ? 1 : 2; }

static void test_first_fit__is_the_first_free_address(void **state)
{
    uint32_t kinds[3] = {0}, nowhere = 0, high = 0;
    (void)state;
    for (rng = 1; kinds[0] + kinds[1] + kinds[2] < 40000;) {
        gs_cache_stay stay[MOST];
        const uint32_t accesses = 2 + below(MOST - 1), over = below(4);
        const uint64_t capacity = below(40);
        const gs_cache_fixed fixed[] = {{0, 3, 2}, {UINT32_MAX, 9, 1}};
        const uint32_t fixeds = capacity > 10 ? below(3) : 0;
        const bool by_size = below(2);
        uint64_t largest = 0;
        uint32_t count = 0;
        for (uint32_t k = 0; k < accesses; k++) { /* at most one begins with an access, as in an epoch */
            const bool wraps = below(4) < over && k > 0;
            const uint32_t to = below(16) == 0 || (!wraps && k + 1 == accesses) ? k
                                : wraps                                       ? below(k)
                                                                              : k + 1 + below(accesses - k - 1);
            if (below(3) > 0)
                stay[count++] = (gs_cache_stay){.bytes = 1 + below(6), .from = k, .to = to,
                                                .until = to + (below(2) ? below(accesses - to) : 0)};
        }
        gs_assert_ok(gs_first_fit(stay, count, accesses, capacity, fixed, fixeds, by_size));
        for (uint32_t i = 0; i < count; i++)
            largest = GS_MAX(largest, stay[i].bytes);
        for (uint32_t i = 0; i < count; i++) {
            const bool highest = by_size && 2 * stay[i].bytes < largest;
            if (i > 0)
                assert_true(order_of(&stay[i - 1]) < order_of(&stay[i]) ||
                            (order_of(&stay[i - 1]) == order_of(&stay[i]) && stay[i - 1].from < stay[i].from));
            assert_int_equal(stay[i].at, address(stay, i, accesses, capacity, fixed, fixeds, highest));
            high += highest;
            kinds[order_of(&stay[i])]++;
            nowhere += stay[i].at == GS_CACHE_NOWHERE;
        }
    }
    assert_true(kinds[0] > 1000 && kinds[1] > 1000 && kinds[2] > 1000 && nowhere > 1000 && high > 1000);
}

/* Each stays until so many others have come, and the place that it leaves is the only one: looking at all that are
 * there, for each that comes, would take minutes. */
static void test_first_fit__takes_no_time_for_what_is_there(void **state)
{
    enum { STAYS = 300000, LONG = 150000 };
    gs_cache_stay *const stay = malloc(STAYS * sizeof(*stay));
    (void)state;
    for (uint32_t i = 0; i < STAYS; i++)
        stay[i] = (gs_cache_stay){.bytes = 4096, .from = i, .to = i + LONG, .until = i + LONG};
    gs_assert_ok(gs_first_fit(stay, STAYS, STAYS + LONG, (LONG + 1) * 4096ull, NULL, 0, false));
    for (uint32_t i = 0; i < STAYS; i++)
        assert_int_equal(stay[i].at, i % (LONG + 1) * 4096ull);
    free(stay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_fit__is_the_first_free_address),
        cmocka_unit_test(test_first_fit__takes_no_time_for_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
