/* Which devices can be opened, what they say about themselves, and how they measure. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device/device_table.h"
#include "device_fixture.h"

static void test_device__cpu_opens_and_names_itself(void **state)
{
    gs_device *d = NULL;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    assert_memory_equal(gs_device_name(d), "cpu (", 5);
    assert_non_null(strstr(gs_device_name(d), "2 threads)"));
    assert_true(gs_device_unified(d));
    gs_device_close(d);
    gs_assert_ok(gs_device_open(&d, "cpu", 1));
    assert_non_null(strstr(gs_device_name(d), "1 thread)"));
    gs_device_close(d);
    gs_assert_ok(gs_device_open(&d, "cpu", 0));
    gs_device_close(d);
    gs_device_close(NULL);
}

static void test_device__absent_devices_are_refused_by_name(void **state)
{
    gs_device *d = NULL;
    (void)state;
    gs_assert_fails(gs_device_open(&d, "cpu:0", 0), GS_EINVAL, "device cpu:0: must be cpu:1 to cpu:16");
    gs_assert_fails(gs_device_open(&d, "cpu:17", 0), GS_EINVAL, "device cpu:17: must be");
    gs_assert_fails(gs_device_open(&d, "cpu:99999999999999999999", 0), GS_EINVAL, "must be cpu:1 to cpu:16");
    /* no driver, no such GPU, or no CUDA built */
    gs_assert_fails(gs_device_open(&d, "cuda:999", 0), GS_EUNSUPPORTED, "device cuda");
    gs_assert_fails(gs_device_open(&d, "cuda:12345", 0), GS_EINVAL, "cuda:12345");
    gs_assert_fails(gs_device_open(&d, "cuda:999,0", 0), GS_EUNSUPPORTED, "device cuda");
    gs_assert_fails(gs_device_open(&d, "cuda:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", 0), GS_EINVAL, "at most 16 devices");
    gs_assert_fails(gs_device_open(&d, "cpu,cuda:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", 0), GS_EINVAL, "at most 16 devices");
    gs_assert_fails(gs_device_open(&d, "cpu,cpu", 0), GS_EINVAL, "is not known; use");
    assert_null(d);
}

static void nothing(void) {}

/* The bytes of a table, every entry a function. */
static void fill_table(void *table, size_t bytes)
{
    void (*const entry)(void) = nothing;
    for (size_t at = 0; at < bytes; at += sizeof(entry))
        memcpy((char *)table + at, &entry, sizeof(entry));
}

/* Each table that a device has is whole, and those that belong together are together; whichever entry is missing. */
static void test_device__a_table_is_whole_or_not_there(void **state)
{
    gs_device_compute compute;
    gs_device_ceilings ceilings;
    gs_device_own_memory memory;
    gs_device_links links;
    gs_device_params params;
    gs_device_reads reads;
    const struct {
        void *table;
        size_t bytes;
        const char *line;
    } tables[] = {{&compute, sizeof(compute), "its table \"compute\" has an entry without"},
                  {&ceilings, sizeof(ceilings), "its table \"ceilings\" has an entry without"},
                  {&memory, sizeof(memory), "its table \"memory\" has an entry without"},
                  {&links, sizeof(links), "its table \"links\" has an entry without"},
                  {&params, sizeof(params), "its table \"params\" has an entry without"},
                  {&reads, sizeof(reads), "its table \"reads\" has an entry without"}};
    gs_device_ops ops = {.compute = &compute, .ceilings = &ceilings, .memory = &memory, .params = &params,
                         .reads = &reads};
    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(tables); i++)
        fill_table(tables[i].table, tables[i].bytes);
    gs_assert_fails(gs_device__check(&ops, "a"), GS_EUNSUPPORTED, "device a: its table \"links\" is not there");
    ops.links = &links;
    gs_assert_ok(gs_device__check(&ops, "a"));
    ops.ceilings = NULL;
    gs_assert_fails(gs_device__check(&ops, "a"), GS_EUNSUPPORTED, "its table \"ceilings\" is not there");
    ops.ceilings = &ceilings;
    for (size_t i = 0; i < GS_ARRAY_LEN(tables); i++)
        for (size_t at = 0; at < tables[i].bytes; at += sizeof(void (*)(void))) {
            memset((char *)tables[i].table + at, 0, sizeof(void (*)(void)));
            gs_assert_fails(gs_device__check(&ops, "a"), GS_EUNSUPPORTED, tables[i].line);
            fill_table(tables[i].table, tables[i].bytes);
        }
}

static void test_device__one_of_several_has_its_share_of_the_threads(void **state)
{
    static const struct {
        const char *spec, *name;
        uint32_t count;
    } share[] = {
        {"cpu:1", "6 threads)", 1}, {"cpu:2", "3 threads)", 2}, {"cpu:4", "1 thread)", 4}, {"cpu:16", "1 thread)", 16}};
    (void)state;
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]); i++) {
        gs_device *d = NULL;
        gs_assert_ok(gs_device_open(&d, share[i].spec, 6));
        assert_non_null(strstr(gs_device_name(d), share[i].name));
        assert_int_equal(gs_device_count(share[i].spec), share[i].count);
        gs_device_close(d);
    }
    assert_int_equal(gs_device_count("cpu"), 0);
    assert_int_equal(gs_device_count("cuda:3"), 0);
    assert_int_equal(gs_device_count("cuda:0,"), 0);
    assert_int_equal(gs_device_count("cuda:0,1"), 2);
    assert_int_equal(gs_device_count("cuda:0,0,0"), 3);
    assert_int_equal(gs_device_count("cpu,cuda"), 2);
    assert_int_equal(gs_device_count("cpu,cuda:0,0"), 3);
    assert_string_equal(gs_device_gpus_beside("cpu,cuda:0,0"), "cuda:0,0");
    static const char *const others[] = {"cpu,cpu", "cpu,cuda:", "cuda:0,cpu", "cpu:2,cuda:0", "cpu,cuda:0,", "cuda:0"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_null(gs_device_gpus_beside(others[i]));
}

/* In the order of the devices: another one would round to another sum. */
static void test_device__all_reduce_adds_in_order_and_tells_all(void **state)
{
    static const float f[3] = {1, 1e8f, -1e8f};
    static const double g[3] = {1, 1e17, -1e17};
    float a[3][2];
    double b[3][2];
    gs_device *d[3] = {NULL, NULL, NULL};
    (void)state;
    for (int k = 0; k < 3; k++) {
        gs_assert_ok(gs_device_open(&d[k], "cpu:3", 3));
        a[k][0] = f[k];
        a[k][1] = (float)k;
        b[k][0] = g[2 - k];
        b[k][1] = k;
    }
    gs_assert_ok(gs_device_all_reduce(d, 3, (void *[]){a[0], a[1], a[2]}, 2, false));
    gs_assert_ok(gs_device_all_reduce(d, 3, (void *[]){b[0], b[1], b[2]}, 2, true));
    for (int k = 0; k < 3; k++) {
        assert_true(a[k][0] == 0 && a[k][1] == 3); /* (1 + 1e8) - 1e8 */
        assert_true(b[k][0] == 1 && b[k][1] == 3); /* (-1e17 + 1e17) + 1 */
        gs_device_close(d[k]);
    }
}

static void test_device__nonsense_is_invalid(void **state)
{
    static const char *const specs[] = {"",     "gpu",   "CPU",     "cpu:",    "cpu:x",   "cpu:1,2",
                                        "cpu4", "cuda:", "cuda:0,", "cuda:,1", "cuda:0;1"};
    gs_device *d = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
        gs_assert_fails(gs_device_open(&d, specs[i], 0), GS_EINVAL, "is not known; use \"cpu\"");
}

static void test_device__isa_is_lowered_never_raised(void **state)
{
    gs_device *d = NULL;
    (void)state;
    setenv("GS_ISA", "generic", 1);
    gs_assert_ok(gs_device_open(&d, "cpu", 1));
    assert_string_equal(gs_device_name(d), "cpu (generic as GS_ISA says, 1 thread)");
    gs_device_close(d);

    d = NULL;
    setenv("GS_ISA", "sse9", 1);
    gs_assert_fails(gs_device_open(&d, "cpu", 1), GS_EINVAL,
                    "GS_ISA=sse9: not an instruction set; use generic, avx2 or avx512");
    assert_null(d);

    setenv("GS_ISA", "avx512", 1);
    gs_assert_ok(gs_device_open(&d, "cpu", 1));
    const bool has = strstr(gs_device_name(d), "AVX-512 as GS_ISA says") != NULL;
    assert_true(has || strstr(gs_device_name(d), ", the best below GS_ISA here") != NULL);
    gs_device_close(d);
    unsetenv("GS_ISA");
}

static void test_device__out_of_memory_is_said(void **state)
{
    gs_device *d = NULL;
    (void)state;
    for (unsigned n = 1; n <= 2; n++) {
        const uint64_t before = gs_alloc_live_bytes();
        gs_alloc_fail_nth(n);
        gs_assert_fails(gs_device_open(&d, "cpu", 1), GS_ENOMEM, "out of memory");
        gs_alloc_fail_nth(0);
        assert_int_equal(gs_alloc_live_bytes(), before);
    }
}

static void test_device__measures_are_plausible(void **state)
{
    gs_device *d = NULL;
    double rate = 0;
    (void)state;
    gs_assert_ok(gs_device_open(&d, "cpu", 2));
    const uint64_t before = gs_alloc_live_bytes();
    gs_assert_ok(gs_device_measure_gemm(d, 512, 64, 64, &rate));
    assert_true(rate > 1e7 && rate < 1e15);
    for (uint32_t width = 1, k = 0; width <= 300; width = width * 3 + 1, k++) {
        if (!gs_test_takes(k, 4)) /* of a number, and of more than vectors */
            continue;
        rate = 0;
        gs_assert_ok(gs_device_measure_gather(d, 1000, width, &rate));
        assert_true(rate > 1e6 && rate < 1e14);
    }
    rate = 0;
    gs_assert_ok(gs_device_measure_copy(d, &rate));
    assert_true(rate > 1e7 && rate < 1e14);
    assert_int_equal(gs_alloc_live_bytes(), before);

    rate = -1;
    gs_assert_fails(gs_device_measure_gemm(d, 0, 64, 64, &rate), GS_EINVAL, "every size must be at least 1");
    gs_assert_fails(gs_device_measure_gather(d, 0, 64, &rate), GS_EINVAL, "0 rows");
    gs_assert_fails(gs_device_measure_gather(d, 10, 0, &rate), GS_EINVAL, "0 floats");
    for (unsigned n = 1; n <= 2; n++) {
        gs_alloc_fail_nth(n);
        gs_assert_fails(gs_device_measure_gather(d, 1000, 8, &rate), GS_ENOMEM, "out of memory");
        gs_alloc_fail_nth(n);
        gs_assert_fails(gs_device_measure_gemm(d, 10, 10, 10, &rate), GS_ENOMEM, "out of memory");
        gs_alloc_fail_nth(n);
        gs_assert_fails(gs_device_measure_copy(d, &rate), GS_ENOMEM, "out of memory");
    }
    gs_alloc_fail_nth(0);
    assert_true(rate == -1);
    assert_int_equal(gs_alloc_live_bytes(), before);
    gs_device_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device__cpu_opens_and_names_itself),
        cmocka_unit_test(test_device__absent_devices_are_refused_by_name),
        cmocka_unit_test(test_device__a_table_is_whole_or_not_there),
        cmocka_unit_test(test_device__one_of_several_has_its_share_of_the_threads),
        cmocka_unit_test(test_device__all_reduce_adds_in_order_and_tells_all),
        cmocka_unit_test(test_device__nonsense_is_invalid),
        cmocka_unit_test(test_device__isa_is_lowered_never_raised),
        cmocka_unit_test(test_device__out_of_memory_is_said),
        cmocka_unit_test(test_device__measures_are_plausible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
