/* Counters, freeze and failure hook, also from several threads at a time. */
#include "support/support.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"

#define THREADS 4

static void test_alloc__live_returns_to_where_it_was(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();

    (void)state;
    char *a = gs_malloc(1000);
    char *b = gs_calloc(10, 100);
    assert_non_null(a);
    assert_non_null(b);
    assert_true(gs_alloc_live_bytes() >= before + 2000);
    assert_true(gs_alloc_live_bytes() < before + 3000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(b[i], 0);
    memset(a, 7, 1000);
    a = gs_realloc(a, 100000);
    assert_non_null(a);
    assert_int_equal(a[999], 7);
    assert_true(gs_alloc_live_bytes() >= before + 101000);
    a = gs_realloc(a, 10);
    assert_int_equal(a[9], 7);
    assert_true(gs_alloc_live_bytes() < before + 100000);
    gs_free(a);
    gs_free(b);
    gs_free(NULL);
    assert_int_equal(gs_alloc_live_bytes(), before);
}

static void test_alloc__peak_is_the_worst_there_was(void **state)
{
    (void)state;
    void *const big = gs_malloc(50 * GS_MIB);
    const uint64_t peak = gs_alloc_peak_bytes();
    assert_non_null(big);
    assert_true(peak >= gs_alloc_live_bytes());
    gs_free(big);
    void *const small = gs_malloc(GS_MIB);
    assert_int_equal(gs_alloc_peak_bytes(), peak);
    gs_free(small);
}

static void test_alloc__large_blocks_stay_within_what_they_may(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();

    (void)state;
    gs_alloc_keep_large(before + 24 * GS_MIB);
    char *const a = gs_malloc(8 * GS_MIB);
    assert_non_null(a);
    memset(a, 7, 8 * GS_MIB);
    gs_free(a);
    assert_int_equal(gs_alloc_live_bytes(), before); /* it is not live, */
    assert_true(gs_alloc_kept_bytes() >= 8 * GS_MIB);
    char *b = gs_malloc(4 * GS_MIB); /* is too large for this, */
    assert_true(gs_alloc_kept_bytes() >= 8 * GS_MIB);
    b[0] = 5;
    b = gs_realloc(b, 7 * GS_MIB); /* and what grows so far */
    assert_int_equal(b[0], 5);
    assert_true(gs_alloc_room(b) >= 8 * GS_MIB);
    assert_true(gs_alloc_kept_bytes() < 5 * GS_MIB); /* leaves its own */
    char *const zeros = gs_calloc(4, GS_MIB);
    for (size_t at = 0; at < 4 * GS_MIB; at += 499)
        assert_int_equal(zeros[at], 0);
    gs_free(zeros);
    void *const large = gs_malloc(14 * GS_MIB); /* beside which nothing may stay */
    assert_int_equal(gs_alloc_kept_bytes(), 0);
    gs_free(large);
    gs_free(b);
    gs_alloc_keep_large(0);
    assert_int_equal(gs_alloc_kept_bytes(), 0);
    assert_int_equal(gs_alloc_live_bytes(), before);
}

/* Sizes that nobody asks for again would else hold what room there is until the end. */
static void test_alloc__the_oldest_that_stay_make_room(void **state)
{
    enum { OLD = 20 };
    char *old[OLD];

    (void)state;
    gs_alloc_keep_large(gs_alloc_live_bytes() + 64 * GS_MIB);
    for (size_t i = 0; i < OLD; i++)
        assert_non_null(old[i] = gs_malloc(2 * GS_MIB));
    for (size_t i = 0; i < OLD; i++)
        gs_free(old[i]);
    char *const a = gs_malloc(60 * GS_MIB);
    assert_non_null(a);
    const uint64_t room = gs_alloc_room(a);
    gs_free(a); /* stays, and they go */
    assert_true(gs_alloc_kept_bytes() >= room && gs_alloc_kept_bytes() <= 64 * GS_MIB);
    char *const b = gs_malloc(60 * GS_MIB);
    assert_int_equal(gs_alloc_room(b), room);
    assert_true(gs_alloc_kept_bytes() < 5 * GS_MIB);
    gs_free(b);
    gs_alloc_keep_large(0);
}

static void test_alloc__size_zero_may_be_freed(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();

    (void)state;
    void *p[] = {gs_malloc(0), gs_calloc(0, 8), gs_malloc_array(8, 0), gs_realloc(NULL, 0),
                 gs_realloc(gs_malloc(5), 0)};
    for (size_t i = 0; i < GS_ARRAY_LEN(p); i++) {
        assert_non_null(p[i]);
        gs_free(p[i]);
    }
    assert_int_equal(gs_alloc_live_bytes(), before);
}

static void test_alloc__overflow_is_refused(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();

    (void)state;
    assert_null(gs_malloc_array(SIZE_MAX / 2, 3));
    assert_null(gs_calloc(SIZE_MAX / 4 + 1, 4)); /* wraps to 0 */
    assert_null(gs_malloc(SIZE_MAX));
    assert_null(gs_alloc_pages(SIZE_MAX));
    assert_null(gs_alloc_pages(SIZE_MAX / 2));
    char *const kept = gs_strdup("kept");
    assert_null(gs_realloc(kept, SIZE_MAX - 8));
    assert_string_equal(kept, "kept");
    gs_free(kept);
    assert_int_equal(gs_alloc_live_bytes(), before);
}

static void test_alloc__pages_are_aligned_zeroed_and_counted(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 4097, 2 * GS_MIB - 1, 2 * GS_MIB, 5 * GS_MIB + 1};

    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(sizes); i++) {
        const uint64_t before = gs_alloc_live_bytes();
        unsigned char *const p = gs_alloc_pages(sizes[i]);
        assert_non_null(p);
        const uint64_t align = sizes[i] >= 2 * GS_MIB ? 2 * GS_MIB : 4096;
        assert_int_equal((uintptr_t)p % align, 0);
        assert_true(gs_alloc_live_bytes() >= before + GS_MAX(sizes[i], 1));
        assert_true(gs_alloc_live_bytes() < before + sizes[i] + 2 * GS_MIB + 1);
        for (size_t at = 0; at < sizes[i]; at += 997)
            assert_int_equal(p[at], 0);
        if (sizes[i] > 0)
            p[sizes[i] - 1] = p[0] = 1;
        gs_free_pages(p, sizes[i]);
        assert_int_equal(gs_alloc_live_bytes(), before);
    }
    gs_free_pages(NULL, 4096);
}

static void test_alloc__pages_go_back_to_the_system(void **state)
{
    const size_t bytes = 64 * GS_MIB;

    (void)state;
    const uint64_t before = gs_process_resident_bytes();
    char *const p = gs_alloc_pages(bytes);
    assert_non_null(p);
    memset(p, 1, bytes);
    assert_true(gs_process_resident_bytes() >= before + bytes * 9 / 10);
    gs_free_pages(p, bytes);
    assert_true(gs_process_resident_bytes() < before + bytes / 2);
    assert_true(gs_process_peak_bytes() >= before + bytes * 9 / 10);
}

static void test_alloc__freeze_counts_what_allocates(void **state)
{
    const uint64_t before = gs_alloc_frozen_count();

    (void)state;
    void *const early = gs_malloc(8);
    gs_alloc_freeze(true);
    gs_free(early); /* giving back is no violation */
    assert_int_equal(gs_alloc_frozen_count(), before);
    void *p = gs_malloc(8);
    p = gs_realloc(p, 80);
    void *const pages = gs_alloc_pages(8);
    gs_alloc_freeze(false);
    assert_non_null(p);
    assert_non_null(pages);
    assert_int_equal(gs_alloc_frozen_count(), before + 3);
    gs_free_pages(pages, 8);
    gs_free(p);
    gs_free(gs_malloc(8));
    assert_int_equal(gs_alloc_frozen_count(), before + 3);
}

static void test_alloc__nth_fails_once(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();
    void *p[4];

    (void)state;
    gs_alloc_fail_nth(3);
    for (int i = 0; i < 4; i++)
        p[i] = gs_malloc(16);
    assert_non_null(p[0]);
    assert_non_null(p[1]);
    assert_null(p[2]);
    assert_non_null(p[3]);

    gs_alloc_fail_nth(1);
    assert_null(gs_realloc(p[0], 1000)); /* and p[0] stays valid */
    gs_alloc_fail_nth(1);
    assert_null(gs_alloc_pages(1));
    gs_alloc_fail_nth(1);
    assert_null(gs_strdup("x"));
    gs_alloc_fail_nth(1);
    assert_null(gs_calloc(1, 1));
    gs_alloc_fail_nth(2);
    gs_alloc_fail_nth(0); /* taken back */
    for (int i = 0; i < 4; i++)
        gs_free(p[i]);
    p[0] = gs_malloc(1);
    p[1] = gs_malloc(1);
    assert_non_null(p[0]);
    assert_non_null(p[1]);
    gs_free(p[0]);
    gs_free(p[1]);
    assert_int_equal(gs_alloc_live_bytes(), before);
}

static void *allocate_a_lot(void *failed)
{
    for (int i = 0; i < 20000; i++) {
        void *const p = gs_malloc((size_t)(i % 500));
        if (p == NULL)
            __atomic_fetch_add((int *)failed, 1, __ATOMIC_RELAXED);
        gs_free(p);
    }
    return NULL;
}

static void test_alloc__threads_keep_one_account(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();
    pthread_t thread[THREADS];
    int failed = 0;

    (void)state;
    gs_alloc_fail_nth(10000);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, allocate_a_lot, &failed), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(failed, 1); /* exactly one of 80,000 was the 10,000th */
    assert_int_equal(gs_alloc_live_bytes(), before);
}

/* Room for 16, then 32: without memory for that the array stays as it was, and so it goes on. */
static void test_grow__keeps_items_and_doubles(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();
    uint64_t *item = NULL;
    uint32_t room = 0;

    (void)state;
    for (uint32_t n = 0; n < 100; n++) {
        if (n == 16) {
            gs_alloc_fail_nth(1);
            assert_false(gs_grow(&item, n, &room, sizeof(*item)));
            assert_int_equal(room, 16);
        }
        assert_true(gs_grow(&item, n, &room, sizeof(*item)));
        assert_true(room > n);
        item[n] = 7 * n;
    }
    assert_int_equal(room, 128);
    for (uint32_t n = 0; n < 100; n++)
        assert_int_equal(item[n], 7 * n);
    assert_true(gs_grow_by(&item, 100, 28, &room, sizeof(*item)) && room == 128);
    assert_true(gs_grow_by(&item, 100, 29, &room, sizeof(*item)) && room == 256);
    assert_true(gs_grow_by(&item, 100, 1000, &room, sizeof(*item)) && room == 1100);
    assert_int_equal(item[99], 7 * 99);
    assert_false(gs_grow_by(&item, 100, UINT32_MAX, &room, sizeof(*item)));
    assert_int_equal(room, 1100);
    gs_free(item);
    room = UINT32_MAX;
    item = NULL;
    assert_false(gs_grow(&item, UINT32_MAX, &room, sizeof(*item)));
    assert_null(item);
    assert_int_equal(gs_alloc_live_bytes(), before);
}

/* Arrays of many sizes lie apart, aligned, zeroed, and go back together; one that is refused is remembered. */
static void test_arena__takes_one_by_one_and_gives_back_together(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();
    unsigned char *part[40];
    gs_arena a = {0};
    uint64_t sum = 0;

    (void)state;
    for (size_t k = 0; k < 40; k++) {
        const size_t bytes = k * k * k; /* up to 59,319: some in a piece with others, some in one of their own */
        assert_non_null(part[k] = gs_arena_take(&a, bytes, 1));
        assert_int_equal((uintptr_t)part[k] % 16, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(part[k][i], 0);
        memset(part[k], (int)k, bytes);
        sum += bytes;
    }
    for (size_t k = 0; k < 40; k++)
        for (size_t i = 0; i < k * k * k; i++)
            assert_int_equal(part[k][i], k);
    assert_true(gs_alloc_live_bytes() - before >= sum);
    assert_false(a.is_short);
    assert_null(gs_arena_take(&a, SIZE_MAX / 4, 8));
    assert_true(a.is_short);
    gs_arena_free(&a);
    assert_int_equal(gs_alloc_live_bytes(), before);
    gs_alloc_fail_nth(1);
    assert_null(gs_arena_take(&a, 1, 1));
    assert_true(a.is_short);
    assert_non_null(gs_arena_take(&a, 1, 1));
    assert_true(a.is_short);
    gs_arena_free(&a);
    assert_false(a.is_short);
    assert_int_equal(gs_alloc_live_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc__live_returns_to_where_it_was),
        cmocka_unit_test(test_alloc__peak_is_the_worst_there_was),
        cmocka_unit_test(test_alloc__large_blocks_stay_within_what_they_may),
        cmocka_unit_test(test_alloc__the_oldest_that_stay_make_room),
        cmocka_unit_test(test_alloc__size_zero_may_be_freed),
        cmocka_unit_test(test_alloc__overflow_is_refused),
        cmocka_unit_test(test_alloc__pages_are_aligned_zeroed_and_counted),
        cmocka_unit_test(test_alloc__pages_go_back_to_the_system),
        cmocka_unit_test(test_alloc__freeze_counts_what_allocates),
        cmocka_unit_test(test_alloc__nth_fails_once),
        cmocka_unit_test(test_alloc__threads_keep_one_account),
        cmocka_unit_test(test_grow__keeps_items_and_doubles),
        cmocka_unit_test(test_arena__takes_one_by_one_and_gives_back_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
