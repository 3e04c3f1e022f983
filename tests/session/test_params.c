/* Where parameters are, and what they start as. */
#include <math.h>
#include <string.h>

#include "support/support.h"

#include "base/philox.h"
#include "session/params.h"
#include "train/tiny_program.h"

static void params__tensors_are_aligned_and_apart(void **state)
{
    gs_params p;

    (void)state;
    gs_assert_ok(gs_params_alloc(&p, &tiny_program, true, 2));
    /* 35, 5, 15 and 11 floats, each rounded up to 16: 48 + 16 + 16 + 16 */
    assert_int_equal(p.elements, 96);
    assert_int_equal(gs_params_elements(&tiny_program), 96);
    assert_int_equal(gs_params_learned(&tiny_program), 66);
    for (uint32_t i = 0; i < p.count; i++) {
        assert_int_equal((uintptr_t)p.value[i] % 64, 0);
        assert_ptr_equal(p.grad[i] - p.grads, p.value[i] - p.values);
    }
    assert_ptr_equal(p.value[1], p.value[0] + 48);
    assert_ptr_equal(p.value[2], p.value[1] + 16);
    for (uint64_t i = 0; i < p.elements; i++)
        assert_true(p.values[i] == 0 && p.grads[i] == 0 && p.state[0][i] == 0 && p.state[1][i] == 0);
    gs_params_free(&p);
    gs_params_free(&p); /* twice is allowed */
}

/* Learned ones first, 20 + 5 floats rounded up to 16 each, whatever the order of the tensors. */
static void params__learned_ones_are_one_run(void **state)
{
    gs_param param[] = {
        {.name = "f", .dims = 1, .rows = 1, .cols = 3, .fixed = true},
        {.name = "w", .dims = 2, .rows = 4, .cols = 5},
        {.name = "g", .dims = 1, .rows = 1, .cols = 17, .fixed = true},
        {.name = "b", .dims = 1, .rows = 1, .cols = 5},
    };
    const gs_program program = {.params = 4, .param = param};
    uint64_t at[4], all;

    (void)state;
    assert_int_equal(gs_program_place_params(&program, at, &all), 48);
    assert_int_equal(all, 96);
    assert_true(at[1] == 0 && at[3] == 32 && at[0] == 48 && at[2] == 64);
}

/* torch.nn.BatchNorm1d: running = 0.9 running + 0.1 batch, of the variance with n / (n - 1). */
static void params__running_means_follow_statistics(void **state)
{
    gs_param param[] = {
        {.name = "m", .dims = 1, .rows = 1, .cols = 2, .fixed = true, .initial = {GS_INITIAL_FILL, 0},
         .running = GS_NONE},
        {.name = "v", .dims = 1, .rows = 1, .cols = 2, .fixed = true, .initial = {GS_INITIAL_FILL, 1},
         .running = GS_NONE},
        {.name = "n", .dims = 1, .rows = 1, .cols = 1, .fixed = true, .initial = {GS_INITIAL_FILL, 0},
         .counter = true},
        {.name = "train.mean", .dims = 1, .rows = 1, .cols = 2, .fixed = true, .statistic = GS_STATISTIC_MEAN,
         .running = 0},
        {.name = "train.var", .dims = 1, .rows = 1, .cols = 2, .fixed = true, .statistic = GS_STATISTIC_VARIANCE,
         .running = 1},
        {.name = "train.other", .dims = 1, .rows = 1, .cols = 3, .fixed = true, .statistic = GS_STATISTIC_MEAN,
         .running = GS_NONE},
    };
    const gs_program program = {.params = 6, .param = param};
    gs_params p;

    (void)state;
    assert_int_equal(gs_params_sums(&program), 14);
    gs_assert_ok(gs_params_alloc(&p, &program, true, 1));
    assert_null(p.statistic[0]);
    assert_ptr_equal(p.statistic[4], p.statistic[3] + 4);
    gs_params_init(&p, &program, 1);
    assert_true(p.value[0][0] == 0 && p.value[1][1] == 1);
    p.statistic[5][5] = 3;
    gs_params_zero_sums(&p);
    assert_true(p.statistic[5][5] == 0);
    for (int pass = 0; pass < 2; pass++) {
        p.value[3][0] = 10;
        p.value[3][1] = -20;
        p.value[4][0] = 4;
        p.value[4][1] = 8;
        gs_params_follow(&p, &program, 5);
    }
    gs_assert_close(p.value[0][0], 1.9, 1e-6); /* 0.9 * 1 + 0.1 * 10 */
    gs_assert_close(p.value[0][1], -3.8, 1e-6);
    gs_assert_close(p.value[1][0], 0.81 + 0.19 * 5, 1e-6); /* 4 * 5 / 4 */
    gs_assert_close(p.value[1][1], 0.81 + 0.19 * 10, 1e-6);
    assert_true(p.value[2][0] == 2);
    gs_params_free(&p);
}

static void params__without_gradients_there_are_none(void **state)
{
    gs_params p;

    (void)state;
    gs_assert_ok(gs_params_alloc(&p, &tiny_program, false, 0));
    assert_null(p.grads);
    assert_null(p.state[0]);
    assert_null(p.grad[3]);
    gs_params_free(&p);
}

static void params__impossible_sizes_are_no_memory(void **state)
{
    gs_param huge = {.name = "w", .dims = 2, .rows = UINT32_MAX, .cols = UINT32_MAX};
    const gs_program program = {.params = 1, .param = &huge};
    gs_params p;

    (void)state;
    gs_assert_fails(gs_params_alloc(&p, &program, true, 2), GS_ENOMEM, "parameters");
}

/* Element i of tensor k by the header of philox.h: counter (i / 4, k, 0), word i % 4. */
static double by_hand(uint64_t seed, uint32_t tensor, uint32_t i, double bound)
{
    uint32_t key[2], word[4];
    const uint32_t counter[4] = {i / 4, 0, tensor, 0};

    gs_random_key(key, seed, GS_RANDOM_INIT);
    gs_philox4x32(word, counter, key);
    return bound * (2.0 * ((word[i % 4] >> 8) / 16777216.0) - 1.0);
}

static void params__init_is_glorot_by_seed_and_index(void **state)
{
    gs_params p;

    (void)state;
    gs_assert_ok(gs_params_alloc(&p, &tiny_program, false, 0));
    memset(p.values, 0xff, p.elements * sizeof(float));
    gs_params_init(&p, &tiny_program, 1234567890123ull);
    for (uint32_t i = 0; i < 35; i++)
        assert_true(p.value[0][i] == (float)by_hand(1234567890123ull, 0, i, sqrt(6.0 / (5 + 7))));
    for (uint32_t i = 0; i < 5; i++)
        assert_true(p.value[1][i] == 0);
    for (uint32_t i = 0; i < 15; i++)
        assert_true(p.value[2][i] == (float)by_hand(1234567890123ull, 2, i, sqrt(6.0 / (3 + 5))));
    for (uint32_t i = 0; i < 11; i++)
        assert_true(p.value[3][i] == (float)by_hand(1234567890123ull, 3, i, sqrt(6.0 / (1 + 11))));
    gs_params_free(&p);
}

/* Uniform on (-a, a): mean 0, variance a^2 / 3, fourth moment a^4 / 5. Bounds are 5
 * standard errors; n = 200,000. */
static void params__init_has_the_moments_of_a_uniform(void **state)
{
    gs_param big = {.name = "w", .dims = 2, .rows = 400, .cols = 500};
    const gs_program program = {.params = 1, .param = &big};
    const double a = sqrt(6.0 / 900), n = 200000;
    double sum = 0, square = 0, fourth = 0, neighbours = 0;
    gs_params p;

    (void)state;
    gs_assert_ok(gs_params_alloc(&p, &program, false, 0));
    gs_params_init(&p, &program, 7);
    for (uint32_t i = 0; i < 200000; i++) {
        const double v = p.value[0][i] / a;
        assert_true(v >= -1 && v < 1);
        sum += v;
        square += v * v;
        fourth += v * v * v * v;
        neighbours += i == 0 ? 0 : v * p.value[0][i - 1] / a;
    }
    assert_true(fabs(sum / n) < 5 * sqrt(1.0 / 3 / n));
    assert_true(fabs(square / n - 1.0 / 3) < 5 * sqrt((1.0 / 5 - 1.0 / 9) / n));
    assert_true(fabs(fourth / n - 1.0 / 5) < 5 * sqrt((1.0 / 9 - 1.0 / 25) / n));
    assert_true(fabs(neighbours / n) < 5 * (1.0 / 3) / sqrt(n));
    gs_params_free(&p);
}

static void params__other_seeds_and_tensors_start_otherwise(void **state)
{
    gs_param two[] = {{.name = "a", .dims = 2, .rows = 8, .cols = 8}, {.name = "b", .dims = 2, .rows = 8, .cols = 8}};
    const gs_program program = {.params = 2, .param = two};
    gs_params a, b;

    (void)state;
    gs_assert_ok(gs_params_alloc(&a, &program, false, 0));
    gs_assert_ok(gs_params_alloc(&b, &program, false, 0));
    gs_params_init(&a, &program, 1);
    gs_params_init(&b, &program, 1);
    assert_memory_equal(a.values, b.values, a.elements * sizeof(float));
    assert_memory_not_equal(a.value[0], a.value[1], 64 * sizeof(float));
    gs_params_init(&b, &program, 2);
    assert_memory_not_equal(a.value[0], b.value[0], 64 * sizeof(float));
    /* the high half of a seed counts too */
    gs_params_init(&b, &program, 1 + (1ull << 32));
    assert_memory_not_equal(a.value[0], b.value[0], 64 * sizeof(float));
    gs_params_free(&a);
    gs_params_free(&b);
}

static void params__a_number_that_is_not_finite_is_found(void **state)
{
    gs_params p;

    (void)state;
    gs_assert_ok(gs_params_alloc(&p, &tiny_program, false, 0));
    assert_int_equal(gs_params_find_nonfinite(p.value, &tiny_program), GS_NONE);
    p.value[3][10] = -INFINITY;
    assert_int_equal(gs_params_find_nonfinite(p.value, &tiny_program), 3);
    p.value[2][14] = NAN;
    assert_int_equal(gs_params_find_nonfinite(p.value, &tiny_program), 2);
    gs_params_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(params__tensors_are_aligned_and_apart),
        cmocka_unit_test(params__learned_ones_are_one_run),
        cmocka_unit_test(params__running_means_follow_statistics),
        cmocka_unit_test(params__without_gradients_there_are_none),
        cmocka_unit_test(params__impossible_sizes_are_no_memory),
        cmocka_unit_test(params__init_is_glorot_by_seed_and_index),
        cmocka_unit_test(params__init_has_the_moments_of_a_uniform),
        cmocka_unit_test(params__other_seeds_and_tensors_start_otherwise),
        cmocka_unit_test(params__a_number_that_is_not_finite_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
