/* A row of a product has the same bits whatever rows stand beside it, in products of every number of rows, of oneDNN's
 * and of the device's own kernels. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/bf16.h"
#include "device/cpu/gemm.h"
#include "device/cpu/steps.h"
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

/* As a step of a stage makes it; of rounded numbers where there are `pairs`. */
static bool product(uint32_t m, uint32_t n, uint32_t k, const float *a, const float *b, const uint32_t *pairs,
                    float beta, float *c)
{
    const gs_cpu_kernels *kernels;
    gs_assert_ok(gs_cpu_kernels_find(&kernels));
    const gs_cpu_step s = {.op = GS_OP_MATMUL, .width = n, .a_width = k, .dst = c, .a.p = a, .adds = beta != 0,
                           .weight = {.at = b, .rows = k, .cols = n, .pairs = pairs,
                                      .bf16 = gs_cpu__bf16_find(kernels)}};

    return gs_cpu__product_rows(kernels, &s, 0, m);
}

static void is_product(uint32_t n, uint32_t k, const float *a, const float *b, float beta, const float *given,
                       const float *got)
{
    for (uint32_t r = 0; r < MOST; r++)
        for (uint32_t c = 0; c < n; c++) {
            double sum = (double)beta * (double)given[(size_t)r * n + c], size = 1;
            for (uint32_t i = 0; i < k; i++) {
                const double x = (double)a[(size_t)r * k + i] * (double)b[(size_t)i * n + c];
                sum += x;
                size += fabs(x);
            }
            assert_true(fabs(sum - (double)got[(size_t)r * n + c]) <= 1e-6 * size);
        }
}

static float *rounded(const float *from, size_t n)
{
    float *const p = malloc(n * sizeof(*p));
    for (size_t i = 0; i < n; i++)
        p[i] = gs_f32_from_bf16(gs_bf16_from_f32(from[i]));
    return p;
}

/* Products of numbers rounded to bf16: also from any row of the matrix on, where the columns before it are 0. */
static void check_pairs(uint32_t n, uint32_t k, float *a, const float *b, float beta, const float *given)
{
    const gs_cpu_kernels *kernels;
    gs_assert_ok(gs_cpu_kernels_find(&kernels));
    const gs_cpu_bf16 *const bf16 = gs_cpu__bf16_find(kernels);
    if (bf16 == NULL)
        return;
    float *const near_a = rounded(a, (size_t)MOST * k), *const near_b = rounded(b, (size_t)n * k);
    float *const want = malloc((size_t)MOST * n * sizeof(float)), *const got = malloc((size_t)MOST * n * sizeof(float));
    uint32_t *const pairs = malloc((size_t)n * k * sizeof(*pairs)); /* as much as the matrix has, where k is 1 */

    memcpy(pairs, b, (size_t)n * k * sizeof(*pairs));
    bf16->pair_rows(pairs, (const float *)(const void *)pairs, k, n);
    memcpy(want, given, (size_t)MOST * n * sizeof(float));
    assert_true(product(MOST, n, k, a, b, pairs, beta, want));
    is_product(n, k, near_a, near_b, beta, given, want);
    for (uint32_t m = 1; m < MOST; m += m < 60 ? 1 : 31) {
        const size_t from = (size_t)(MOST - m) / 2;
        memcpy(got, given + from * n, (size_t)m * n * sizeof(float));
        assert_true(product(m, n, k, a + from * k, b, pairs, beta, got));
        assert_memory_equal(got, want + from * n, (size_t)m * n * sizeof(float));
    }
    for (uint32_t first = 1; first < k && first <= 2; first++) {
        for (uint32_t r = 0; r < MOST; r++) {
            memset(a + (size_t)r * k, 0, first * sizeof(*a));
            memcpy(near_a + (size_t)r * (k - first), a + (size_t)r * k + first, (k - first) * sizeof(*a));
        }
        memcpy(want, given, (size_t)MOST * n * sizeof(float));
        assert_true(product(MOST, n, k, a, b, pairs, beta, want));
        memcpy(got, given, (size_t)MOST * n * sizeof(float));
        bf16->rows_by(MOST, n, k - first, near_a, pairs, first, beta != 0, got);
        assert_memory_equal(got, want, (size_t)MOST * n * sizeof(float));
    }
    free(near_a);
    free(near_b);
    free(want);
    free(got);
    free(pairs);
}

static void check(uint32_t n, uint32_t k, float beta)
{
    float *const a = numbers((size_t)MOST * k, 1), *const b = numbers((size_t)n * k, 2);
    float *const given = numbers((size_t)MOST * n, 3), *const want = malloc((size_t)MOST * n * sizeof(float));
    float *const got = malloc((size_t)MOST * n * sizeof(float)), *const made = malloc((size_t)MOST * n * sizeof(float));

    memcpy(want, given, (size_t)MOST * n * sizeof(float));
    assert_true(gs_cpu__steady_rows(MOST, n, k, a, k, b, n, beta, want, n));
    memcpy(made, given, (size_t)MOST * n * sizeof(float));
    assert_true(product(MOST, n, k, a, b, NULL, beta, made));
    is_product(n, k, a, b, beta, given, made);
    for (uint32_t m = 1; m < MOST; m += m < 160 ? 1 : 7) {
        const size_t from = (size_t)(MOST - m) / 2;
        memcpy(got, given + from * n, (size_t)m * n * sizeof(float));
        assert_true(gs_cpu__steady_rows(m, n, k, a + from * k, k, b, n, beta, got, n));
        assert_memory_equal(got, want + from * n, (size_t)m * n * sizeof(float));
        memcpy(got, given + from * n, (size_t)m * n * sizeof(float));
        assert_true(product(m, n, k, a + from * k, b, NULL, beta, got));
        assert_memory_equal(got, made + from * n, (size_t)m * n * sizeof(float));
    }
    check_pairs(n, k, a, b, beta, given);
    free(made);
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
