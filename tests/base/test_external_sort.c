/* Records beyond memory: every bucket gives back its own, whole or split. */
#include "support/support.h"

#include <string.h>
#include <unistd.h>

#include "base/external_sort.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/size.h"

enum { BUCKETS = 5, RECORDS = 3001 };

static uint64_t random_at(uint64_t i)
{
    const uint32_t counter[4] = {(uint32_t)i, 1, 2, 3}, key[2] = {4, 5};
    uint32_t r[4];
    gs_philox4x32(r, counter, key);
    return (uint64_t)r[0] << 32 | r[1];
}

/* Two writers put records that know their bucket; each is there once, and neither `each` nor what `records` says has a
 * say in that. */
static void check_gives_back(const char *dir, uint64_t memory, uint64_t each, uint64_t records)
{
    const gs_sort_spec spec = {.dir = dir, .name = "tmp.test", .buckets = BUCKETS, .writers = 2, .words = 2,
                               .memory = memory, .each = each, .records = records};
    gs_external_sort *s = NULL;
    uint32_t record[2 * 37];
    uint64_t sums[BUCKETS] = {0}, counts[BUCKETS] = {0}, most = 0;

    gs_assert_ok(gs_sort_make(&s, &spec));
    for (uint32_t i = 0; i < RECORDS; i++) {
        const uint32_t bucket = (uint32_t)(random_at(i) % (BUCKETS - 1)); /* the last stays empty */
        uint32_t *to = gs_sort_put(s, i % 2, bucket);
        assert_non_null(to);
        to[0] = i;
        to[1] = bucket;
        sums[bucket] += i;
        counts[bucket]++;
        most = GS_MAX(most, counts[bucket]);
    }
    gs_assert_ok(gs_sort_finish(s));
    assert_int_equal(gs_sort_most_records(s), most);
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        gs_sort_cursor at = gs_sort_first(s, bucket);
        uint64_t got = 1, count = 0, sum = 0;
        assert_int_equal(gs_sort_records(s, bucket), counts[bucket]);
        while (got != 0) {
            gs_assert_ok(gs_sort_read(s, &at, record, 37, &got)); /* across segments */
            for (uint64_t i = 0; i < got; i++) {
                assert_int_equal(record[2 * i + 1], bucket);
                sum += record[2 * i];
            }
            count += got;
        }
        assert_int_equal(count, counts[bucket]);
        assert_int_equal(sum, sums[bucket]);
    }
    gs_sort_free(s);
    assert_int_equal(rmdir(dir), 0); /* it is empty: the file had no name */
    gs_assert_ok(gs_mkdir(dir));
}

static void test_external_sort__gives_back_every_record_of_a_bucket(void **state)
{
    check_gives_back(*state, 1, 0, 0); /* buffers are as short as they come */
    check_gives_back(*state, 1, RECORDS, 0);
    check_gives_back(*state, GS_MIB, 0, RECORDS);
    check_gives_back(*state, GS_MIB, 0, RECORDS / 10); /* there are more than were said */
}

/* Buffers of few records are no larger than these, whatever memory there is: what is touched of each is a page. */
static void test_external_sort__few_records_have_small_buffers(void **state)
{
    gs_sort_spec spec = {.dir = *state, .name = "tmp.test", .buckets = 100, .writers = 2, .words = 4,
                         .memory = 64 * GS_MIB};
    gs_external_sort *s = NULL;
    uint64_t taken[2];

    for (int known = 0; known < 2; known++) {
        const uint64_t before = gs_alloc_live_bytes();
        spec.records = known ? 60000 : 0;
        gs_assert_ok(gs_sort_make(&s, &spec));
        taken[known] = gs_alloc_live_bytes() - before;
        gs_sort_free(s);
    }
    assert_true(taken[0] > 40 * GS_MIB);
    assert_true(taken[1] > 60000 * 16 && taken[1] < 4 * GS_MIB);
}

/* -- buckets that do not fit ------------------------------------------------------------ */

typedef struct seen {
    uint64_t next, parts, records; /* next: the least key that may come */
    uint64_t too_many;             /* of this key */
    uint32_t count[RECORDS];       /* of each key */
} seen;

static uint64_t key_of(void *context, const uint32_t *record)
{
    (void)context;
    return record[0];
}

static gs_status go_on(void *context)
{
    (void)context;
    return GS_OK;
}

static gs_status refuse(void *context, uint64_t key, uint64_t records)
{
    seen *const w = context;
    w->too_many = key;
    return gs_fail(GS_EBUDGET, "key %u: %u records", (unsigned)key, (unsigned)records);
}

static gs_status look(void *context, const gs_sort_part *p)
{
    seen *const w = context;
    gs_sort_cursor at = gs_sort_first(p->sort, p->bucket);
    uint32_t record[40];
    uint64_t got;

    assert_true(p->records <= 40);
    assert_int_equal(p->first, w->next);
    gs_assert_ok(gs_sort_read(p->sort, &at, record, 40, &got));
    assert_int_equal(got, p->records);
    for (uint64_t i = 0; i < got; i++) {
        assert_true(record[i] >= p->first && record[i] < p->first + p->keys);
        w->count[record[i]]++;
    }
    w->next = p->first + p->keys;
    w->records += got;
    w->parts++;
    return GS_OK;
}

/* One bucket of all keys, each as often as its number modulo 3 says, but `often`. */
static gs_status visit_keys(seen *w, const char *dir, uint32_t often)
{
    const gs_sort_spec spec = {.dir = dir, .name = "tmp.test", .buckets = 1, .writers = 1, .words = 1, .memory = 4096};
    const gs_sort_visitor v = {.most = 40, .memory = 4096, .context = w, .visit = look, .key = key_of, .check = go_on,
                               .too_many = refuse};
    gs_external_sort *s = NULL;

    memset(w, 0, sizeof(*w));
    gs_assert_ok(gs_sort_make(&s, &spec));
    for (uint32_t i = 0; i < RECORDS; i++) {
        const uint32_t key = (uint32_t)((uint64_t)i * 1009 % RECORDS); /* 3001 is prime: each once */
        for (uint32_t k = 0; k < (key == often ? 41 : key % 3); k++)
            gs_assert_ok(gs_sort_append(s, 0, 0, &key, 1));
    }
    gs_assert_ok(gs_sort_finish(s));
    const gs_status st = gs_sort_visit(s, 0, 0, RECORDS, &v);
    gs_sort_free(s);
    return st;
}

static void test_external_sort__splits_a_bucket_until_its_parts_fit(void **state)
{
    static seen w;

    gs_assert_ok(visit_keys(&w, *state, RECORDS));
    assert_int_equal(w.next, RECORDS);
    assert_int_equal(w.records, RECORDS - 1); /* 0 + 1 + 2 for each three keys, and keys 0 to 2999 */
    assert_true(w.parts > RECORDS / 40);
    for (uint32_t k = 0; k < RECORDS; k++)
        assert_int_equal(w.count[k], k % 3);
}

static void test_external_sort__refuses_a_key_that_no_split_makes_fit(void **state)
{
    static seen w;

    assert_int_equal(visit_keys(&w, *state, 1500), GS_EBUDGET);
    assert_int_equal(w.too_many, 1500);
    assert_true(w.next <= 1500); /* all before it came, none behind it */
}

/* Two threads that split a bucket each opened, for a moment, the same file: no sort may take a file that is there. */
static void test_external_sort__never_takes_a_file_that_is_there(void **state)
{
    const gs_sort_spec spec = {.dir = *state, .name = "tmp.same", .buckets = 1, .writers = 1, .words = 1, .memory = 1};
    enum { FILES = 64 };
    gs_external_sort *s = NULL;

    gs_test_write_file(gs_test_path(*state, "tmp.same"), "x", 1);
    for (int i = 0; i < FILES; i++)
        gs_test_write_file(gs_test_path(*state, "tmp.same.%d", i), "x", 1);
    gs_assert_ok(gs_sort_make(&s, &spec));
    gs_sort_free(s);
    assert_true(gs_path_exists(gs_test_path(*state, "tmp.same")));
    for (int i = 0; i < FILES; i++)
        assert_true(gs_path_exists(gs_test_path(*state, "tmp.same.%d", i)));
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_external_sort__gives_back_every_record_of_a_bucket),
        T(test_external_sort__few_records_have_small_buffers),
        T(test_external_sort__splits_a_bucket_until_its_parts_fit),
        T(test_external_sort__refuses_a_key_that_no_split_makes_fit),
        T(test_external_sort__never_takes_a_file_that_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
