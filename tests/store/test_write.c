/* The life of a store's folder: nothing of a user's is removed, a store appears whole or not at all. */
#include "tiny_store.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

/* "dir/name" that stays: gs_test_path()'s buffers come round again while a store is written. */
typedef struct kept_path {
    char text[512];
} kept_path;
static kept_path sub(const char *dir, const char *name)
{
    kept_path p;
    snprintf(p.text, sizeof(p.text), "%s/%s", dir, name);
    return p;
}

static unsigned entries(const char *dir)
{
    DIR *d = opendir(dir);
    unsigned n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void test_begin__makes_a_folder_or_takes_an_empty_one(void **state)
{
    const char *made = gs_test_path(*state, "made");
    gs_assert_ok(gs_store_begin(*state, false));
    gs_assert_ok(gs_store_begin(made, false));
    assert_true(gs_path_is_dir(made));
    gs_assert_fails(gs_store_begin(gs_test_path(*state, "no/where"), false), GS_ENOTFOUND, "no/where");
}

static void test_begin__refuses_a_file(void **state)
{
    const char *path = gs_test_path(*state, "file");
    gs_test_write_file(path, "x", 1);
    gs_assert_fails(gs_store_begin(path, true), GS_EEXIST, path);
}

static void test_begin__replaces_a_store_only_by_force(void **state)
{
    const char *dir = *state;
    gs_store *s = NULL;
    tiny_write(dir, &tiny_plain);
    gs_assert_fails(gs_store_begin(dir, false), GS_EEXIST, "holds a store already; use .force");
    gs_assert_ok(tiny_open_and_verify(dir));
    gs_assert_ok(gs_store_begin(dir, true));
    assert_int_equal(entries(dir), 1); /* the marker */
    gs_assert_fails(gs_store_open(&s, dir), GS_ENOTFOUND, "no store here");
    gs_assert_fails(gs_store_begin(dir, false), GS_EEXIST, "holds an unfinished store already; use .force");
    gs_assert_ok(gs_store_begin(dir, true));
}

/* What a killed run leaves can be replaced. */
static void test_begin__replaces_an_unfinished_store_by_force(void **state)
{
    gs_store_contents c;
    tiny_write_files(&c, *state, &tiny_plain);
    tiny_contents_free(&c);
    gs_test_write_file(gs_test_path(*state, "manifest.json.tmp"), "{", 1);
    gs_assert_fails(gs_store_begin(*state, false), GS_EEXIST, "unfinished");
    gs_assert_ok(gs_store_begin(*state, true));
    assert_int_equal(entries(*state), 1);
}

static void test_begin__never_removes_what_is_not_a_stores(void **state)
{
    const char *dir = *state;
    const kept_path labels = sub(dir, "labels.bin");
    /* A name that a store has too, in a folder that nothing shows to be a store. */
    gs_test_write_file(labels.text, "mine", 4);
    gs_assert_fails(gs_store_begin(dir, false), GS_EEXIST, "not sure");
    gs_assert_fails(gs_store_begin(dir, true), GS_EEXIST, "not sure");
    gs_store_abandon(dir);
    assert_true(gs_path_exists(labels.text));
    gs_test_write_file(gs_test_path(dir, "manifest.json"), "{\"name\": \"some web app\"}", 24);
    gs_assert_fails(gs_store_begin(dir, true), GS_EEXIST, "not sure");
    assert_int_equal(entries(dir), 2);
    /* A store with something else beside it. */
    const kept_path store = sub(dir, "store"), foreign = sub(dir, "store/notes.txt");
    tiny_write(store.text, &tiny_plain);
    gs_test_write_file(foreign.text, "mine", 4);
    gs_assert_fails(gs_store_begin(store.text, true), GS_EEXIST,
                    "\"notes.txt\", which is no part of a store");
    assert_true(gs_path_exists(foreign.text));
    gs_assert_ok(tiny_open_and_verify(store.text));
}

static void test_abandon__removes_what_was_begun_and_nothing_else(void **state)
{
    const kept_path begun = sub(*state, "begun"), done = sub(*state, "done"), mixed = sub(*state, "mixed");
    gs_store_contents c;
    tiny_write_files(&c, begun.text, &tiny_plain);
    gs_store_abandon(begun.text);
    assert_false(gs_path_exists(begun.text));
    tiny_contents_free(&c);

    tiny_write(done.text, &tiny_plain);
    gs_store_abandon(done.text);
    gs_assert_ok(tiny_open_and_verify(done.text));

    tiny_write_files(&c, mixed.text, &tiny_plain);
    gs_test_write_file(gs_test_path(mixed.text, "notes.txt"), "mine", 4);
    gs_store_abandon(mixed.text);
    assert_int_equal(entries(mixed.text), 1);
    tiny_contents_free(&c);
    gs_store_abandon(gs_test_path(*state, "nowhere"));
}

static void test_abandon__keeps_the_error_that_led_to_it(void **state)
{
    gs_assert_ok(gs_store_begin(gs_test_path(*state, "s"), false));
    gs_fail(GS_EIO, "the disk is on fire");
    gs_store_abandon(gs_test_path(*state, "s"));
    assert_string_equal(gs_last_error(), "the disk is on fire");
}

/* A change that makes the contents wrong, and what is said about it. */
typedef void (*spoil)(gs_store_contents *c);
static void spoil_parts(gs_store_contents *c)
{
    c->info.parts = 1;
}
static void spoil_interval(gs_store_contents *c)
{
    c->chunks.interval_rows = 4;
}
static void spoil_edges(gs_store_contents *c)
{
    c->info.edges++;
}
static void spoil_train(gs_store_contents *c)
{
    c->info.train = 6;
}
static void spoil_array(gs_store_contents *c)
{
    c->array[GS_ARRAY_LABELS].present = false;
}
static void spoil_bytes(gs_store_contents *c)
{
    c->array[GS_ARRAY_LABELS].bytes++;
}
static void spoil_dtype(gs_store_contents *c)
{
    c->array[GS_ARRAY_LABELS].dtype = GS_F32;
}
static void spoil_chunk(gs_store_contents *c)
{
    ((gs_chunk *)(uintptr_t)c->chunks.chunk[1])[1].targets++;
}
static void spoil_offset(gs_store_contents *c)
{
    ((gs_chunk *)(uintptr_t)c->chunks.chunk[0])[1].offset += 4096;
}
static void spoil_method(gs_store_contents *c)
{
    memset(c->info.method, 'x', sizeof(c->info.method));
}

static void test_finish__refuses_what_a_reader_would(void **state)
{
    static const struct {
        spoil how;
        const char *text;
    } cases[] = {
        {spoil_parts, "do not cut"},
        {spoil_interval, "the chunk table and the store's numbers disagree"},
        {spoil_edges, "have 9 edges, the manifest 10"},
        {spoil_train, "more than \"vertices\""},
        {spoil_array, "the array of labels disagree"},
        {spoil_bytes, "labels.bin: said to have 21 bytes of rows instead of 20"},
        {spoil_dtype, "another element type"},
        {spoil_chunk, "chunk (0, 1)"},
        {spoil_offset, "chunk (0, 1) by destination does not start where"},
        {spoil_method, "\"method\" is too long"},
    };
    for (size_t k = 0; k < GS_ARRAY_LEN(cases); k++) {
        const char *dir = *state;
        gs_store_contents c;
        tiny_write_files(&c, dir, &tiny_plain);
        cases[k].how(&c);
        gs_assert_fails(gs_store_finish(dir, &c), GS_EINVAL, cases[k].text);
        assert_false(gs_path_exists(gs_test_path(dir, "manifest.json")));
        gs_store_abandon(dir);
        assert_false(gs_path_exists(dir));
        tiny_contents_free(&c);
        gs_assert_ok(gs_mkdir(dir));
    }
}

static void test_finish__refuses_missing_and_short_files(void **state)
{
    const char *dir = *state;
    gs_store_contents c;
    tiny_write_files(&c, dir, &tiny_plain);
    assert_int_equal(truncate(gs_test_path(dir, "features.bin"), 60), 0); /* the padding left out */
    gs_assert_fails(gs_store_finish(dir, &c), GS_EINVAL, "features.bin: has 60 bytes instead of 4096");
    assert_int_equal(truncate(gs_test_path(dir, "features.bin"), 4096), 0);
    assert_int_equal(unlink(gs_test_path(dir, "split.bin")), 0);
    gs_assert_fails(gs_store_finish(dir, &c), GS_EINVAL, "split.bin: missing");
    assert_int_equal(unlink(gs_test_path(dir, "edges.source.bin")), 0);
    gs_assert_fails(gs_store_finish(dir, &c), GS_ENOTFOUND, "edges.source.bin");
    assert_false(gs_path_exists(gs_test_path(dir, "manifest.json")));
    tiny_contents_free(&c);
}

static void test_finish__out_of_memory_leaves_no_manifest(void **state)
{
    const char *dir = *state;
    gs_store_contents c;
    gs_status st = GS_ENOMEM;
    uint64_t n = 0;
    tiny_write_files(&c, dir, &tiny_plain);
    while (st != GS_OK && ++n < 1000) {
        const uint64_t live = gs_alloc_live_bytes();
        gs_alloc_fail_nth(n);
        st = gs_store_finish(dir, &c);
        gs_alloc_fail_nth(0);
        assert_true(st == GS_OK || st == GS_ENOMEM);
        assert_int_equal(gs_alloc_live_bytes(), live);
    }
    assert_in_range(n, 20, 200);
    gs_assert_ok(tiny_open_and_verify(dir));
    tiny_contents_free(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_begin__makes_a_folder_or_takes_an_empty_one),
        TEST(test_begin__refuses_a_file),
        TEST(test_begin__replaces_a_store_only_by_force),
        TEST(test_begin__replaces_an_unfinished_store_by_force),
        TEST(test_begin__never_removes_what_is_not_a_stores),
        TEST(test_abandon__removes_what_was_begun_and_nothing_else),
        TEST(test_abandon__keeps_the_error_that_led_to_it),
        TEST(test_finish__refuses_what_a_reader_would),
        TEST(test_finish__refuses_missing_and_short_files),
        TEST(test_finish__out_of_memory_leaves_no_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
