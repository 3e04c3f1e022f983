/* A row of a product has the same bits whatever rows stand beside it, in products of every number of rows. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/gemm.h"
#include "support/support.h"

#define MOST 304 /* more than four blocks of oneDNN's */

static float *numbers(size_t n, uint32_t seed)
{
    float *const p = malloc(n * sizeof(*p));

    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)(seed >> 8) / (float)(1u << 23) - 1;
    }
    return p;
}

static void check(uint32_t n, uint32_t k, float beta)
{
    float *const a = numbers((size_t)MOST * k, 1), *const b = numbers((size_t)n * k, 2);
    float *const given = numbers((size_t)MOST * n, 3), *const want = malloc((size_t)MOST * n * sizeof(float));
    float *const got = malloc((size_t)MOST * n * sizeof(float));

    memcpy(want, given, (size_t)MOST * n * sizeof(float));
    assert_true(gs_cpu__steady_rows(MOST, n, k, a, k, b, n, beta, want, n));
    for (uint32_t m = 1; m < MOST; m += m < 160 ? 1 : 7) {
        const size_t from = (size_t)(MOST - m) / 2;
        memcpy(got, given + from * n, (size_t)m * n * sizeof(float));
        assert_true(gs_cpu__steady_rows(m, n, k, a + from * k, k, b, n, beta, got, n));
        assert_memory_equal(got, want + from * n, (size_t)m * n * sizeof(float));
    }
    free(a);
    free(b);
    free(given);
    free(want);
    free(got);
}

static void test_steady_rows__have_the_bits_of_no_neighbour(void **state)
{
    static const uint32_t widths[] = {1, 4, 7, 16, 28, 64, 200};

    const size_t count = sizeof(widths) / sizeof(widths[0]);

    (void)state;
    omp_set_num_threads(1); /* as in the parallel regions where the device multiplies */
    for (size_t n = 0; n < count; n++)
        for (size_t k = 0; k < count; k++) {
            check(widths[n], widths[k], 0);
            check(widths[n], widths[k], 1);
        }
    check(1030, 64, 0);
    check(64, 1030, 0);
}

static void test_transpose__turns_over(void **state)
{
    const float from[6] = {1, 2, 3, 4, 5, 6}, want[6] = {1, 4, 2, 5, 3, 6};
    float to[6];

    (void)state;
    gs_cpu__transpose(to, from, 2, 3);
    assert_memory_equal(to, want, sizeof(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady_rows__have_the_bits_of_no_neighbour),
        cmocka_unit_test(test_transpose__turns_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
