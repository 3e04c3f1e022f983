/* Interrupts, full disks and short memory: one line, and nothing left behind. */
#include "graphs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

static const char *const methods[] = {"fennel", "metis", "lp"};
static volatile int stop;
static int ticks_left;

static void count_down(void *context, const char *what, double done)
{
    (void)context;
    (void)what;
    assert_true(done >= 0 && done <= 1);
    if (ticks_left-- == 0)
        stop = 1;
}

static void input(const char *dir)
{
    edge_list list = random_graph(2000, 30000, 11, false, false);
    write_edges(dir, &list, false, false);
    write_features(dir, 2000, 64);
    edges_free(&list);
}

/* Stops at the n-th report of progress, for n from the first to beyond the last. */
static void test_failures__interrupt_leaves_nothing(void **state)
{
    char *store = strdup(gs_test_path(*state, "store"));
    int interrupted = 0;

    input(*state);
    for (int n = 0; n < 40; n = n < 4 ? n + 1 : n * 2) {
        gs_partition_options o = test_options(methods[n % 3], 6, 4 * GS_MIB);
        o.progress = count_down;
        o.stop = &stop;
        stop = 0;
        ticks_left = n;
        const gs_status st = gs_partition(*state, store, &o, NULL);
        if (st == GS_OK) {
            gs_assert_ok(gs_remove_tree(store));
            continue;
        }
        interrupted++;
        gs_assert_fails(st, GS_EINTERRUPTED, "interrupted");
        assert_gone(store);
    }
    assert_true(interrupted >= 4);
    free(store);
}

static void test_failures__file_size_limit_leaves_nothing(void **state)
{
    const uint64_t limits[] = {4096, 65536, 200000, 400000};
    struct rlimit before;
    char *store = strdup(gs_test_path(*state, "store"));

    input(*state);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < GS_ARRAY_LEN(limits); i++) {
        const struct rlimit small = {limits[i], before.rlim_max};
        gs_partition_options o = test_options("fennel", 6, 4 * GS_MIB);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const gs_status st = gs_partition(*state, store, &o, NULL);
        setrlimit(RLIMIT_FSIZE, &before);
        gs_assert_fails(st, GS_EIO, store);
        assert_gone(store);
    }
    free(store);
}

static void test_failures__folder_that_cannot_be_made(void **state)
{
    gs_partition_options o = test_options("natural", 1, 4 * GS_MIB);
    input(*state);
    gs_assert_fails(gs_partition(*state, gs_test_path(*state, "no/such/place"), &o, NULL), GS_ENOTFOUND,
                    "no/such/place");
    gs_assert_fails(gs_partition(*state, *state, &o, NULL), GS_EEXIST, "");
    assert_true(gs_path_exists(gs_test_path(*state, "edges.npy"))); /* nothing of the user's was removed */
}

/* The n-th allocation fails, for many n: an error, never a crash or a store. */
static void test_failures__short_memory_leaves_nothing(void **state)
{
    char *store = strdup(gs_test_path(*state, "store"));
    int failed = 0;

    input(*state);
    for (uint64_t n = 1; n < 400; n += n < 60 ? 1 : 23) {
        gs_partition_options o = test_options(methods[n % 3], 6, 4 * GS_MIB);
        gs_alloc_fail_nth(n);
        const gs_status st = gs_partition(*state, store, &o, NULL);
        gs_alloc_fail_nth(0);
        if (st == GS_OK) {
            gs_assert_ok(gs_remove_tree(store));
            continue;
        }
        failed++;
        assert_int_equal(st, GS_ENOMEM);
        assert_gone(store);
    }
    assert_true(failed > 40);
    free(store);
}

static void test_failures__heap_is_given_back(void **state)
{
    gs_partition_options o = test_options("metis", 6, 4 * GS_MIB);
    const uint64_t before = gs_alloc_live_bytes();
    input(*state);
    gs_assert_ok(gs_partition(*state, gs_test_path(*state, "store"), &o, NULL));
    assert_int_equal(gs_alloc_live_bytes(), before);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_failures__interrupt_leaves_nothing),
        T(test_failures__file_size_limit_leaves_nothing),
        T(test_failures__folder_that_cannot_be_made),
        T(test_failures__short_memory_leaves_nothing),
        T(test_failures__heap_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
