/* Scores of rows with each other, and their gradients, against formulas in float64, for each instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/cpu/kernels.h"
#include "support/support.h"

#define QUERIES 7u
#define OTHERS 41u
#define WIDTH 33u
#define STRIDE 48u /* whole vectors of any instruction set */

static float query[QUERIES * WIDTH], other[OTHERS * WIDTH], weight[WIDTH], by[QUERIES * STRIDE];

static void fill(float *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)(seed >> 8) / (float)(1u << 23) - 1;
    }
}

static double similarity(gs_cpu_similarity s, const float *q, const float *o, uint32_t width)
{
    double sum = 0;
    for (uint32_t i = 0; i < width; i++) {
        const double a = (double)q[i], b = (double)o[i];
        sum += s == GS_CPU_DOT ? a * b : s == GS_CPU_DISTANCE ? (a - b) * (a - b) : (double)weight[i] * fmax(a + b, 0);
    }
    return s == GS_CPU_DISTANCE ? -sqrt(sum) : sum;
}

/* Of so many others from `from` on; score[QUERIES * STRIDE]. */
static void score(const gs_cpu_kernels *k, gs_cpu_similarity s, float *to, uint32_t from, uint32_t others,
                  uint32_t width)
{
    float panel[STRIDE * WIDTH];
    const gs_cpu_pairs p = {.score = to, .stride = STRIDE, .query = query, .panel = panel, .queries = QUERIES,
                            .vectors = (others + k->lanes - 1) / k->lanes, .width = width, .similarity = s,
                            .weight = weight};

    k->pair_pack(panel, other + from * width, others, width);
    k->pair_scores(&p);
}

/* A score has the bits that it has beside no other row. */
static void check_scores(const gs_cpu_kernels *k, gs_cpu_similarity s, uint32_t width)
{
    float all[QUERIES * STRIDE], one[QUERIES * STRIDE];

    score(k, s, all, 0, OTHERS, width);
    for (uint32_t o = 0; o < OTHERS; o++) {
        score(k, s, one, o, 1, width);
        for (uint32_t q = 0; q < QUERIES; q++) {
            const double want = similarity(s, query + q * width, other + o * width, width);
            assert_true(fabs((double)all[q * STRIDE + o] - want) < 1e-5);
            assert_memory_equal(&all[q * STRIDE + o], &one[q * STRIDE], sizeof(float));
        }
    }
}

static void check_mix(const gs_cpu_kernels *k, uint32_t width)
{
    const gs_cpu_pair_mix to_queries = {.coefficient = by, .other = other, .by_row = STRIDE, .by_other = 1,
                                        .rows = QUERIES, .others = OTHERS, .width = width},
                          to_others = {.coefficient = by, .other = query, .by_row = 1, .by_other = STRIDE,
                                       .rows = OTHERS, .others = QUERIES, .width = width};
    float of_query[QUERIES * WIDTH], of_other[OTHERS * WIDTH];
    double want_other[OTHERS * WIDTH];

    for (uint32_t i = 0; i < OTHERS * width; i++)
        want_other[i] = (double)(of_other[i] = 1);
    memcpy(of_query, query, sizeof(query)); /* what is there is added to */
    k->pair_mix(of_query, &to_queries);
    k->pair_mix(of_other, &to_others);
    for (uint32_t q = 0; q < QUERIES; q++)
        for (uint32_t i = 0; i < width; i++) {
            double want = (double)query[q * width + i];
            for (uint32_t o = 0; o < OTHERS; o++) {
                want += (double)by[q * STRIDE + o] * (double)other[o * width + i];
                want_other[o * width + i] += (double)by[q * STRIDE + o] * (double)query[q * width + i];
            }
            assert_true(fabs((double)of_query[q * width + i] - want) < 1e-5);
        }
    for (uint32_t i = 0; i < OTHERS * width; i++)
        assert_true(fabs((double)of_other[i] - want_other[i]) < 1e-5);
}

static void check_relu(const gs_cpu_kernels *k, uint32_t width)
{
    float d_query[QUERIES * WIDTH] = {0}, d_other[OTHERS * WIDTH] = {0}, d_weight[WIDTH] = {0};
    double want_query[QUERIES * WIDTH] = {0}, want_other[OTHERS * WIDTH] = {0}, want_weight[WIDTH] = {0};
    const gs_cpu_pair_relu p = {.coefficient = by, .query = query, .other = other, .weight = weight, .stride = STRIDE,
                                .d_query = d_query, .d_other = d_other, .d_weight = d_weight, .queries = QUERIES,
                                .others = OTHERS, .width = width};

    k->pair_relu(&p);
    for (uint32_t q = 0; q < QUERIES; q++)
        for (uint32_t o = 0; o < OTHERS; o++)
            for (uint32_t i = 0; i < width; i++) {
                const double sum = (double)query[q * width + i] + (double)other[o * width + i],
                             c = sum > 0 ? (double)by[q * STRIDE + o] : 0;
                want_query[q * width + i] += c * (double)weight[i];
                want_other[o * width + i] += c * (double)weight[i];
                want_weight[i] += c * sum;
            }
    for (uint32_t i = 0; i < OTHERS * width; i++) {
        assert_true(i >= QUERIES * width || fabs((double)d_query[i] - want_query[i]) < 1e-5);
        assert_true(fabs((double)d_other[i] - want_other[i]) < 1e-5);
        assert_true(i >= width || fabs((double)d_weight[i] - want_weight[i]) < 5e-5);
    }
}

static void test_pairs__are_those_of_the_formulas(void **state)
{
    static const char *const sets[] = {"generic", "avx2", "avx512"};
    static const uint32_t widths[] = {1, 6, 16, WIDTH};

    (void)state;
    fill(query, GS_ARRAY_LEN(query), 1);
    fill(other, GS_ARRAY_LEN(other), 2);
    fill(weight, GS_ARRAY_LEN(weight), 3);
    fill(by, GS_ARRAY_LEN(by), 4);
    for (size_t i = 0; i < GS_ARRAY_LEN(sets); i++) {
        const gs_cpu_kernels *k = NULL;
        setenv("GS_ISA", sets[i], 1);
        gs_assert_ok(gs_cpu_kernels_find(&k));
        for (size_t w = 0; w < GS_ARRAY_LEN(widths); w++) {
            for (int s = GS_CPU_DOT; s <= GS_CPU_RELU; s++)
                check_scores(k, (gs_cpu_similarity)s, widths[w]);
            check_mix(k, widths[w]);
            check_relu(k, widths[w]);
        }
    }
    unsetenv("GS_ISA");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pairs__are_those_of_the_formulas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
