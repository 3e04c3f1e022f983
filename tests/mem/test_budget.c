/* test_budget.c - a budget takes what fits, refuses what does not, and says why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/size.h"
#include "mem/budget.h"

static void test_budget__takes_up_to_its_limit(void **state)
{
    (void)state;
    gs_budget b;
    gs_budget_init(&b, "host memory", 100);
    assert_int_equal(gs_budget_take(&b, "ring", 60), GS_OK);
    assert_int_equal(gs_budget_take(&b, "params", 40), GS_OK);
    assert_int_equal(gs_budget_left(&b), 0);
    assert_int_equal(b.used, 100);
    assert_int_equal(gs_budget_take(&b, "ring", 0), GS_OK);
    assert_int_equal(gs_budget_take(&b, "ring", 1), GS_EBUDGET);
}

static void test_budget__same_name_adds_up(void **state)
{
    (void)state;
    char one[] = "ring"; /* names are compared by text, not by address */
    gs_budget b;
    gs_budget_init(&b, "host memory", 1000);
    assert_int_equal(gs_budget_take(&b, "ring", 100), GS_OK);
    assert_int_equal(gs_budget_take(&b, "plan", 1), GS_OK);
    assert_int_equal(gs_budget_take(&b, one, 200), GS_OK);
    assert_int_equal(b.items, 2);
    assert_int_equal(b.item[0].bytes, 300);
    assert_int_equal(b.item[1].bytes, 1);
}

static void test_budget__refusal_changes_nothing_and_lists_items(void **state)
{
    (void)state;
    gs_budget b, before;
    gs_budget_init(&b, "device memory", 256 * GS_MIB);
    assert_int_equal(gs_budget_take(&b, "params", GS_MIB), GS_OK);
    assert_int_equal(gs_budget_take(&b, "ring", 64 * GS_MIB), GS_OK);
    before = b;
    assert_int_equal(gs_budget_take(&b, "sums", 192 * GS_MIB), GS_EBUDGET);
    assert_memory_equal(&b, &before, sizeof(b));

    const char *const text = gs_last_error();
    const char *const expected[] = {"device memory", "sums", "192.0 MiB", "191.0 MiB", "256.0 MiB",
                                    "params 1.0 MiB", "ring 64.0 MiB"};
    for (size_t i = 0; i < GS_ARRAY_LEN(expected); i++)
        if (strstr(text, expected[i]) == NULL)
            fail_msg("no '%s' in '%s'", expected[i], text);
}

static void test_budget__sum_past_64_bits_is_refused(void **state)
{
    (void)state;
    gs_budget b;
    gs_budget_init(&b, "host memory", UINT64_MAX);
    assert_int_equal(gs_budget_take(&b, "a", UINT64_MAX - 1), GS_OK);
    assert_int_equal(gs_budget_take(&b, "b", 2), GS_EBUDGET);
    assert_int_equal(gs_budget_take(&b, "a", UINT64_MAX), GS_EBUDGET);
    assert_int_equal(b.used, UINT64_MAX - 1);
    assert_int_equal(gs_budget_take(&b, "b", 1), GS_OK);
}

static void test_budget__too_many_items_are_refused(void **state)
{
    (void)state;
    static char name[GS_BUDGET_ITEMS + 1][8];
    gs_budget b;
    gs_budget_init(&b, "host memory", 1000);
    for (uint32_t i = 0; i <= GS_BUDGET_ITEMS; i++)
        snprintf(name[i], sizeof(name[i]), "i%u", i);
    for (uint32_t i = 0; i < GS_BUDGET_ITEMS; i++)
        assert_int_equal(gs_budget_take(&b, name[i], 1), GS_OK);
    assert_int_equal(gs_budget_take(&b, name[GS_BUDGET_ITEMS], 1), GS_EINVAL);
    assert_non_null(strstr(gs_last_error(), name[GS_BUDGET_ITEMS]));
    assert_int_equal(b.used, GS_BUDGET_ITEMS);
    /* A known name still finds its place. */
    assert_int_equal(gs_budget_take(&b, "i31", 5), GS_OK);
    assert_int_equal(b.item[31].bytes, 6);
}

static void test_budget__describe_lists_in_order(void **state)
{
    (void)state;
    char text[256];
    gs_budget b;
    gs_budget_init(&b, "host memory", 256 * GS_MIB);
    assert_string_equal(gs_budget_describe(&b, text, sizeof(text)), "host memory 256.0 MiB");
    gs_budget_take(&b, "params", GS_MIB);
    gs_budget_take(&b, "ring", 64 * GS_MIB);
    assert_string_equal(gs_budget_describe(&b, text, sizeof(text)),
                        "host memory 256.0 MiB: params 1.0 MiB, ring 64.0 MiB");
}

static void test_budget__describe_stays_in_its_buffer(void **state)
{
    (void)state;
    const char *const whole = "host memory 256.0 MiB: params 1.0 MiB, ring 64.0 MiB";
    gs_budget b;
    gs_budget_init(&b, "host memory", 256 * GS_MIB);
    gs_budget_take(&b, "params", GS_MIB);
    gs_budget_take(&b, "ring", 64 * GS_MIB);
    for (size_t cap = 1; cap < 64; cap++) {
        char text[65];
        memset(text, '#', sizeof(text));
        gs_budget_describe(&b, text, cap);
        const size_t length = strlen(whole) < cap ? strlen(whole) : cap - 1;
        assert_memory_equal(text, whole, length);
        assert_int_equal(text[length], '\0');
        assert_int_equal(text[cap], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget__takes_up_to_its_limit),
        cmocka_unit_test(test_budget__same_name_adds_up),
        cmocka_unit_test(test_budget__refusal_changes_nothing_and_lists_items),
        cmocka_unit_test(test_budget__sum_past_64_bits_is_refused),
        cmocka_unit_test(test_budget__too_many_items_are_refused),
        cmocka_unit_test(test_budget__describe_lists_in_order),
        cmocka_unit_test(test_budget__describe_stays_in_its_buffer),
    };
    return cmocka_run_group_tests_name("mem/budget", tests, NULL, NULL);
}
