/* Devices of a step's batches: no other way ends a step sooner, and groups know how many of theirs one device has. */
#include "batch/batch_devices.h"

#include "base/hash.h"
#include "support/support.h"

static uint32_t number_of(uint32_t trial, uint32_t what, uint32_t below)
{
    const uint32_t key[2] = {trial, what};
    return (uint32_t)(gs_hash64(key, sizeof(key)) % below);
}

/* When the last device is done, of so many batches on each. */
static double end_of(const uint32_t *batches, const double *rate, uint32_t devices)
{
    double end = 0;
    for (uint32_t k = 0; k < devices; k++)
        end = batches[k] / rate[k] > end ? batches[k] / rate[k] : end;
    return end;
}

/* The least of all ways to give `left` batches to the devices from `k` on. */
static double best_end(uint32_t *batches, const double *rate, uint32_t devices, uint32_t k, uint32_t left)
{
    double best = 1e30;
    if (k + 1 == devices) {
        batches[k] = left;
        return end_of(batches, rate, devices);
    }
    for (uint32_t n = 0; n <= left; n++) {
        batches[k] = n;
        const double end = best_end(batches, rate, devices, k + 1, left - n);
        best = end < best ? end : best;
    }
    return best;
}

static void test_deal__ends_as_soon_as_any(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 200; trial++) {
        const uint32_t devices = 1 + number_of(trial, 0, 4), step = 1 + number_of(trial, 1, 12);
        double rate[GS_BATCH_DEVICES];
        uint32_t any[GS_BATCH_DEVICES], sum = 0;
        gs_batch_deal d;
        for (uint32_t k = 0; k < devices; k++)
            rate[k] = (1 + number_of(trial, 2 + k, 100)) / 100.0;
        gs_assert_ok(gs_batch_deal_open(&d, devices, step, rate));
        for (uint32_t k = 0; k < devices; k++)
            sum += d.share[k];
        assert_int_equal(sum, step);
        gs_assert_close(end_of(d.share, rate, devices), best_end(any, rate, devices, 0, step), 1e-12);
        gs_batch_deal_close(&d);
    }
}

/* A step that an epoch ends early is a first part of a whole one, and is dealt as well as that. */
static void test_deal__a_short_step_ends_as_soon_as_any(void **state)
{
    static const double rate[] = {1, 0.3, 0.55};
    (void)state;
    gs_batch_deal d;
    gs_assert_ok(gs_batch_deal_open(&d, 3, 12, rate));
    for (uint32_t n = 1; n <= 12; n++) {
        uint32_t own[3] = {0}, any[3];
        for (uint32_t i = 0; i < n; i++)
            own[gs_batch_deal_of(&d, 24 + i)]++;
        gs_assert_close(end_of(own, rate, 3), best_end(any, rate, 3, 0, n), 1e-12);
    }
    gs_batch_deal_close(&d);
}

static void test_deal__devices_that_are_alike_take_turns(void **state)
{
    static const double rate[] = {0.5, 0.5, 0.5};
    (void)state;
    gs_batch_deal d;
    gs_assert_ok(gs_batch_deal_open(&d, 3, 7, rate));
    for (uint32_t i = 0; i < 21; i++)
        assert_int_equal(gs_batch_deal_of(&d, i), i % 7 % 3);
    gs_batch_deal_close(&d);
}

static void test_deal__most_of_a_group_is_that_of_the_worst_one(void **state)
{
    (void)state;
    for (uint32_t trial = 0; trial < 50; trial++) {
        const uint32_t devices = 1 + number_of(trial, 7, 4), step = 1 + number_of(trial, 8, 10),
                       group = 1 + number_of(trial, 9, 8);
        double rate[GS_BATCH_DEVICES];
        gs_batch_deal d;
        for (uint32_t k = 0; k < devices; k++)
            rate[k] = 1 + number_of(trial, 10 + k, 9);
        gs_assert_ok(gs_batch_deal_open(&d, devices, step, rate));
        for (uint32_t k = 0; k < devices; k++) {
            uint32_t worst = 0;
            for (uint32_t first = 0; first < step * group; first++) {
                uint32_t own = 0;
                for (uint32_t i = first; i < first + group; i++)
                    own += gs_batch_deal_of(&d, i) == k;
                worst = own > worst ? own : worst;
            }
            assert_int_equal(gs_batch_deal_most(&d, k, group), worst);
        }
        gs_batch_deal_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deal__ends_as_soon_as_any),
        cmocka_unit_test(test_deal__a_short_step_ends_as_soon_as_any),
        cmocka_unit_test(test_deal__devices_that_are_alike_take_turns),
        cmocka_unit_test(test_deal__most_of_a_group_is_that_of_the_worst_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
