/* Sets of places are as likely as they should be. Statistics have fixed seeds; a bound is five standard deviations. */
#include "support/support.h"

#include <math.h>
#include <string.h>

#include "base/exponential.h"
#include "base/size.h"
#include "sample/random_draw.h"

#define DRAWS 1000000u

static const uint32_t key[2] = {0x1234, 0x5678};

/* Counts against what is expected of them. */
static void check_counts(const uint64_t *count, const double *expected, uint32_t n)
{
    double x = 0;
    for (uint32_t i = 0; i < n; i++)
        x += ((double)count[i] - expected[i]) * ((double)count[i] - expected[i]) / expected[i];
    const double freedom = n - 1.0, most = freedom + 5 * sqrt(2 * freedom);
    if (!(x <= most))
        fail_msg("chi-square of %g over %u cells; %g is the most", x, n, most);
}

static void check_even(const uint64_t *count, uint32_t n, double total)
{
    double expected[4096];
    assert_true(n <= GS_ARRAY_LEN(expected));
    for (uint32_t i = 0; i < n; i++)
        expected[i] = total / n;
    check_counts(count, expected, n);
}

static void test_distinct__all_sets_are_equally_likely(void **state)
{
    uint64_t count[128] = {0}, sets[35];
    uint32_t slot[64] = {0}, place[3], n = 0;
    gs_place_set set = {.slot = slot, .slots = 64};
    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        gs_random_stream r = gs_random_stream_of(key, i, 2, 3);
        gs_draw__distinct(place, 3, 7, &r, &set);
        assert_true(place[0] != place[1] && place[0] != place[2] && place[1] != place[2]);
        count[1u << place[0] | 1u << place[1] | 1u << place[2]]++;
    }
    for (uint32_t m = 0; m < 128; m++)
        if (count[m] > 0) {
            assert_true(n < 35);
            sets[n++] = count[m];
        }
    assert_int_equal(n, 35);
    check_even(sets, 35, DRAWS);
}

/* More places than are scanned: pairs of places are as often together as they should be. */
static void test_distinct__large_sets_are_uniform(void **state)
{
    enum { N = 60, K = 40, SETS = 30000 };
    uint64_t pair[N * (N - 1) / 2] = {0};
    uint32_t slot[128] = {0}, place[K];
    gs_place_set set = {.slot = slot, .slots = 128};
    double x = 0;
    (void)state;
    assert_true(K > GS_DRAW_SCANNED && gs_place_slots(K) <= 128);
    for (uint32_t i = 0; i < SETS; i++) {
        bool in[N] = {false};
        gs_random_stream r = gs_random_stream_of(key, i, 0, 0);
        gs_draw__distinct(place, K, N, &r, &set);
        for (uint32_t k = 0; k < K; k++) {
            assert_false(in[place[k]]);
            in[place[k]] = true;
        }
        for (uint32_t a = 0, p = 0; a < N; a++)
            for (uint32_t b = a + 1; b < N; b++, p++)
                pair[p] += in[a] && in[b];
    }
    for (uint32_t k = 0; k < 128; k++)
        assert_int_equal(slot[k], 0);
    /* Each pair is binomial, but pairs of one place come together: the mean of their squared deviations is 1 with a
     * standard deviation of 0.15 (59 directions with a variance of 24, 1710 with one of 0.2). */
    const double p = (double)K * (K - 1) / ((double)N * (N - 1)), var = SETS * p * (1 - p);
    for (uint32_t i = 0; i < GS_ARRAY_LEN(pair); i++)
        x += ((double)pair[i] - SETS * p) * ((double)pair[i] - SETS * p) / var / GS_ARRAY_LEN(pair);
    if (!(x > 0.25 && x < 1.75))
        fail_msg("pairs deviate by %g of what they should", x);
}

static void test_repeated__each_draw_is_uniform(void **state)
{
    uint64_t count[11 * 11] = {0};
    uint32_t place[2];
    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        gs_random_stream r = gs_random_stream_of(key, i, 1, 0);
        gs_draw__repeated(place, 2, 11, &r);
        count[place[0] * 11 + place[1]]++;
    }
    check_even(count, 121, DRAWS);
}

/* The law of drawing one after the other: P(i, then j) = w_i / W * w_j / (W - w_i). */
static void test_weighted__sets_have_their_exact_law(void **state)
{
    static const float weight[6] = {1, 0, 2, 0.5f, 4, 0};
    const double all = 7.5;
    uint64_t count[64] = {0}, in_order[6][6] = {0}, seen[6], ordered[12];
    double key_of[6], expected[6], expected_in_order[12];
    uint32_t place[6], n = 0, pairs = 0;
    gs_place_set set = {.key = key_of};
    (void)state;
    for (uint32_t i = 0; i < DRAWS / 4; i++) {
        gs_random_stream r = gs_random_stream_of(key, i, 1, 0);
        assert_int_equal(gs_draw__weighted(place, 2, weight, 6, &r, 0, &set), 2);
        count[1u << place[0] | 1u << place[1]]++;
        in_order[place[0]][place[1]]++;
    }
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t j = 0; j < 6; j++)
            if (i != j && weight[i] > 0 && weight[j] > 0) {
                const double a = (double)weight[i], b = (double)weight[j];
                expected_in_order[pairs] = DRAWS / 4 * (a / all * b / (all - a));
                ordered[pairs++] = in_order[i][j];
            }
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t j = i + 1; j < 6; j++) {
            const double a = (double)weight[i], b = (double)weight[j];
            if (a * b == 0) {
                assert_int_equal(count[1u << i | 1u << j], 0);
                continue;
            }
            expected[n] = DRAWS / 4 * (a / all * b / (all - a) + b / all * a / (all - b));
            seen[n++] = count[1u << i | 1u << j];
        }
    check_counts(seen, expected, n);
    check_counts(ordered, expected_in_order, pairs);
    gs_random_stream r = gs_random_stream_of(key, 0, 1, 0);
    assert_int_equal(gs_draw__weighted(place, 5, weight, 6, &r, 0, &set), 4); /* no more have weight */
}

/* Of many keys the least, by the formula in the longest floats there are; their bits are what IEEE arithmetic gives,
 * operation by operation, as Python's floats have it. A list that is drawn from in two parts has the keys of one. */
static void test_weighted__keys_are_those_of_the_formula(void **state)
{
    static const struct {
        uint32_t high, low;
        float weight;
        double key;
    } of[] = {{0, 0, 1, 0x1.25e4f7b2737fap+5}, {0xffffffff, 0xffffffff, 1, 0x1p-53},
              {0x80000000, 0, 1, 0x1.62e42fefa39edp-1},
              {0xb504f333, 0xf9de6484, 3, 0x1.d9303fea2f7e7p-4}, {0x12345678, 0x9abcdef0, 0.1f, 0x1.a6f63c9ec92f4p+4}};
    (void)state;
    for (uint32_t i = 0; i < GS_ARRAY_LEN(of); i++)
        assert_true(gs_exponential_key(of[i].high, of[i].low, of[i].weight) == of[i].key);
    for (uint32_t i = 0; i < 20000; i++) {
        gs_random_stream r = gs_random_stream_of(key, i, 3, 0);
        const uint32_t high = gs_random_next(&r) >> (i % 2 == 0 ? i % 32 : 0), low = gs_random_next(&r);
        const uint32_t up = i % 4 == 1 ? ~(high >> i % 32) : high;
        const long double n = (long double)(((uint64_t)up << 32 | low) >> 12) + 0.5L, w = 0.01f * (float)(1 + i % 977);
        const long double exact = -logl(n * 0x1p-52L) / w;
        const double got = gs_exponential_key(up, low, (float)w);
        if (!(fabsl((long double)got - exact) <= exact * 0x1p-51L))
            fail_msg("%08x %08x: %.17g, %.20Lg is right", up, low, got, exact);
    }
}

static void test_weighted__parts_of_a_list_have_its_keys(void **state)
{
    float weight[70];
    double key_of[70];
    uint32_t all[70], part[70];
    gs_place_set set = {.key = key_of};
    gs_random_stream r = gs_random_stream_of(key, 5, 1, 0);
    (void)state;
    for (uint32_t i = 0; i < 70; i++)
        weight[i] = 1 + (float)(i % 7);
    assert_int_equal(gs_draw__weighted(all, 70, weight, 70, &r, 0, &set), 70);
    for (uint32_t first = 0; first <= 69; first += 23) {
        const uint32_t n = 70 - first;
        assert_int_equal(gs_draw__weighted(part, 70, &weight[first], n, &r, first, &set), n);
        for (uint32_t i = 0, p = 0; i < 70; i++)
            if (all[i] >= first)
                assert_int_equal(all[i] - first, part[p++]);
    }
}

static void test_weighted_repeated__draws_have_their_exact_law(void **state)
{
    static const float weight[5] = {1, 0, 2, 0.5f, 4};
    uint64_t count[4] = {0};
    double key_of[8], expected[4];
    uint32_t place[8];
    gs_place_set set = {.key = key_of};
    (void)state;
    for (uint32_t i = 0; i < DRAWS / 8; i++) {
        gs_random_stream r = gs_random_stream_of(key, i, 1, 0);
        assert_int_equal(gs_draw__weighted_repeated(place, 8, weight, 5, &r, &set), 8);
        for (uint32_t k = 0; k < 8; k++) {
            assert_int_not_equal(place[k], 1);
            count[place[k] - (place[k] > 0)]++;
        }
    }
    for (uint32_t i = 0; i < 4; i++)
        expected[i] = DRAWS * (double)weight[i + (i > 0)] / 7.5;
    check_counts(count, expected, 4);
    gs_random_stream r = gs_random_stream_of(key, 0, 1, 0);
    assert_int_equal(gs_draw__weighted_repeated(place, 8, &weight[1], 1, &r, &set), 0);
}

/* 3 * 2^30 is where a product of 32 bits alone would draw every third number twice as often. */
static void test_below__is_exact_for_large_bounds(void **state)
{
    uint64_t count[48] = {0}, wide[48] = {0};
    gs_random_stream r = gs_random_stream_of(key, 7, 7, 7);
    (void)state;
    for (uint32_t i = 0; i < DRAWS; i++) {
        count[gs_random_below(&r, 3u << 30) % 48]++;
        wide[gs_random_below64(&r, 3ull << 60) >> 56]++;
    }
    check_even(count, 48, DRAWS);
    check_even(wide, 48, DRAWS);
}

static void test_order__is_a_permutation_that_epochs_change(void **state)
{
    static bool seen[70000];
    static const uint32_t sizes[] = {1, 2, 3, 5, 64, 1000, 65536, 70000};
    uint64_t place[12 * 11] = {0};
    (void)state;
    for (uint32_t s = 0; s < GS_ARRAY_LEN(sizes); s++) {
        const gs_order o = gs_order_of(99, s, sizes[s]);
        memset(seen, 0, sizeof(seen));
        for (uint32_t i = 0; i < sizes[s]; i++) {
            const uint32_t at = gs_order_at(&o, i);
            assert_true(at < sizes[s] && !seen[at]);
            seen[at] = true;
        }
    }
    /* Which two things come first. */
    for (uint32_t epoch = 0; epoch < DRAWS / 10; epoch++) {
        const gs_order o = gs_order_of(5, epoch, 12);
        const uint32_t a = gs_order_at(&o, 0), b = gs_order_at(&o, 1);
        place[a * 11 + b - (b > a)]++;
    }
    check_even(place, 12 * 11, DRAWS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distinct__all_sets_are_equally_likely),
        cmocka_unit_test(test_distinct__large_sets_are_uniform),
        cmocka_unit_test(test_repeated__each_draw_is_uniform),
        cmocka_unit_test(test_weighted__keys_are_those_of_the_formula),
        cmocka_unit_test(test_weighted__parts_of_a_list_have_its_keys),
        cmocka_unit_test(test_weighted__sets_have_their_exact_law),
        cmocka_unit_test(test_weighted_repeated__draws_have_their_exact_law),
        cmocka_unit_test(test_below__is_exact_for_large_bounds),
        cmocka_unit_test(test_order__is_a_permutation_that_epochs_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
