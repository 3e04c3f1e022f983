/* The pieces that everything else stands on: sorts, bijection, division, numbers in a text. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/size.h"
#include "partition/integers.h"
#include "partition/order.h"
#include "partition/text_lines.h"

static uint64_t random_at(uint64_t i)
{
    const uint32_t counter[4] = {(uint32_t)i, 1, 2, 3}, key[2] = {4, 5};
    uint32_t r[4];
    gs_philox4x32(r, counter, key);
    return (uint64_t)r[0] << 32 | r[1];
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void test_sort8__sorts_by_any_number_of_bits(void **state)
{
    static const uint64_t counts[] = {0, 1, 2, 47, 48, 49, 1000, 5000};
    static const uint32_t widths[] = {1, 7, 11, 12, 30, 33, 64};
    (void)state;
    for (size_t w = 0; w < GS_ARRAY_LEN(widths); w++) {
        for (size_t k = 0; k < GS_ARRAY_LEN(counts); k++) {
            const uint64_t n = counts[k];
            uint64_t *a = malloc((n + 1) * 8), *b = malloc((n + 1) * 8), *want = malloc((n + 1) * 8);
            for (uint64_t i = 0; i < n; i++)
                a[i] = want[i] = random_at(i) >> (64 - widths[w]);
            qsort(want, n, 8, by_value);
            assert_memory_equal(gs_part__sort8(a, b, n, widths[w]), want, n * 8);
            free(a);
            free(b);
            free(want);
        }
    }
}

static bool in_order(const gs_part_key16 *a, const gs_part_key16 *b, uint32_t low)
{
    const uint64_t high_a = a->key >> low, high_b = b->key >> low;
    const uint64_t low_a = a->key - (high_a << low), low_b = b->key - (high_b << low);
    if (high_a != high_b)
        return high_a < high_b;
    if (a->type != b->type)
        return a->type < b->type;
    if (low_a != low_b)
        return low_a < low_b;
    return memcmp(&a->weight, &b->weight, 4) == 0 || a->weight < b->weight; /* weights here are not negative */
}

static void test_sort16__type_stands_between_target_and_operand(void **state)
{
    enum { COUNT = 4000, LOW = 5 };
    gs_part_key16 *a = malloc(COUNT * sizeof(*a)), *b = malloc(COUNT * sizeof(*b));
    uint64_t sum = 0, after = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (gs_part_key16){random_at((uint64_t)i) >> 52, (uint32_t)random_at((uint64_t)i) % 3,
                               (float)(random_at((uint64_t)i) % 7)};
        sum += a[i].key * 31 + a[i].type * 7 + (uint64_t)a[i].weight;
    }
    const gs_part_key16 *sorted = gs_part__sort16(a, b, COUNT, 12, LOW, 16);
    for (int i = 0; i < COUNT; i++) {
        assert_true(i == 0 || in_order(&sorted[i - 1], &sorted[i], LOW));
        after += sorted[i].key * 31 + sorted[i].type * 7 + (uint64_t)sorted[i].weight;
    }
    assert_int_equal(sum, after);
    free(a);
    free(b);
}

static void test_permute__is_a_bijection_with_an_inverse(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 5, 64, 100, 1023, 1025, 4097};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(sizes); k++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            const gs_permute p = gs_part__permute_make(sizes[k], seed, 3);
            uint8_t *seen = calloc(sizes[k], 1);
            for (uint64_t x = 0; x < sizes[k]; x++) {
                const uint64_t y = gs_part__permute(&p, x);
                assert_true(y < sizes[k] && seen[y]++ == 0);
                assert_int_equal(gs_part__permute_back(&p, y), x);
            }
            free(seen);
        }
    }
    /* Large: the inverse, and that neighbours are torn apart. */
    const gs_permute p = gs_part__permute_make(4000000007ull, 9, 3);
    uint64_t far = 0, before = 0;
    for (uint64_t x = 0; x < 1000; x++) {
        const uint64_t y = gs_part__permute(&p, x);
        assert_int_equal(gs_part__permute_back(&p, y), x);
        far += (y > before ? y - before : before - y) > 10000000;
        before = y;
    }
    assert_true(far > 950);
}

static void test_fastdiv__equals_division(void **state)
{
    static const uint32_t divisors[] = {1,     2,     3,       7,          641,        32258,
                                        65535, 65536, 1000003, 0x7fffffff, 0x80000001, UINT32_MAX};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(divisors); k++) {
        const uint32_t d = divisors[k];
        const gs_fastdiv f = gs_fastdiv_make(d);
        const uint32_t edges[] = {0, 1, d - 1, d, d + 1, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX / d * d,
                                  UINT32_MAX / d * d - 1};
        for (size_t i = 0; i < GS_ARRAY_LEN(edges); i++)
            assert_int_equal(gs_fastdiv_of(f, edges[i]), edges[i] / d);
        for (uint64_t i = 0; i < 2000; i++) {
            const uint32_t n = (uint32_t)random_at(i);
            assert_int_equal(gs_fastdiv_of(f, n), n / d);
        }
    }
}

/* -- numbers in a text ---------------------------------------------------------------- */

static void test_text__digits_are_a_number_wherever_they_end(void **state)
{
    static const char ends[] = ",\n \t\r-.:;/e\"\xff"; /* ':' and '/' stand beside the digits */
    char text[64];
    (void)state;

    for (int digits = 0; digits <= 19; digits++) {
        for (size_t e = 0; e < sizeof(ends); e++) { /* the 0 too */
            uint64_t v = 0;
            memset(text, '7', sizeof(text)); /* behind the end are digits again */
            for (int i = 0; i < digits; i++)
                text[i] = (char)('0' + random_at((uint64_t)(digits * 100 + i)) % 10);
            text[digits] = ends[e];
            assert_int_equal(gs_text_digits(text, &v) - text, digits);
            text[digits] = '\0';
            assert_int_equal(v, strtoull(text, NULL, 10));
        }
    }
}

static void check_real(const char *text)
{
    char padded[80], *want_end;
    const char *after, *after32;
    const double want = strtod(text, &want_end);
    const float want32 = strtof(text, NULL);

    snprintf(padded, sizeof(padded), "%s\n%16s", text, "");
    const double got = gs_text_real(padded, &after);
    const float got32 = gs_text_real32(padded, &after32);
    if (after - padded != want_end - text || after32 != after || memcmp(&got, &want, 8) != 0 ||
        memcmp(&got32, &want32, 4) != 0)
        fail_msg("'%s': %.17g, %.9g; the C library: %.17g, %.9g", text, got, (double)got32, want, (double)want32);
}

/* Against the C library. 16777217 and the like lie half way between two floats; 8388609.4999999991 is nearest to a
 * double that does, and so is rounded wrongly by way of it. */
static void test_text__fractions_are_the_nearest_numbers(void **state)
{
    static const char *const texts[] = {
        "0", "-0", "1.", ".5", "-.25e1", "0.1", "1e5", "1e", "1e+", "2E-3", "1e22", "1e23", "1e-22", "1e-30", "1e400",
        "-1e-400", "1e-40", "3.4028236e38", "123456789012345", "1234567890123456", "0.000000000000001", "0x1p3", "inf",
        "nan", "-", "+1.5", "e5", ".", "1.5.5", "16777217", "16777219", "8388609.5", "8388609.4999999991",
        "0.50000002980232239", "00000000000000000000.5", "4.35", "1e1000000000000000000000"};
    char text[64];
    (void)state;

    for (size_t i = 0; i < GS_ARRAY_LEN(texts); i++)
        check_real(texts[i]);
    for (uint64_t i = 0; i < 20000; i++) {
        const uint64_t r = random_at(i);
        const double v = (double)(int64_t)r / (double)(1ull << (r >> 8) % 63);
        snprintf(text, sizeof(text), "%.*f", (int)(r % 12), v);
        check_real(text);
        snprintf(text, sizeof(text), "%.*g", (int)(r % 19), v);
        check_real(text);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_sort8__sorts_by_any_number_of_bits),
        T(test_sort16__type_stands_between_target_and_operand),
        T(test_permute__is_a_bijection_with_an_inverse),
        T(test_fastdiv__equals_division),
        T(test_text__digits_are_a_number_wherever_they_end),
        T(test_text__fractions_are_the_nearest_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
