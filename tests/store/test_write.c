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

/* Entries, those that begin with a dot among them. */
static unsigned entries(const char *dir)
{
    DIR *d = opendir(dir);
    unsigned n = 0;
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static gs_staging *begin(const char *dir, bool force)
{
    gs_staging *staging = NULL;
    gs_assert_ok(gs_store_begin(&staging, dir, force));
    return staging;
}

static void refuse(const char *dir, bool force, gs_status status, const char *words)
{
    gs_staging *staging = NULL;
    gs_assert_fails(gs_store_begin(&staging, dir, force), status, words);
    assert_null(staging);
}

static void test_begin__leaves_the_place_as_it_is(void **state)
{
    const kept_path absent = sub(*state, "absent"), empty = sub(*state, "empty");
    gs_assert_ok(gs_mkdir(empty.text));
    gs_staging *const a = begin(absent.text, false), *const e = begin(empty.text, false);
    assert_false(gs_path_exists(absent.text));
    assert_int_equal(entries(empty.text), 0);
    assert_true(gs_path_is_dir(gs_staging_dir(a)));
    assert_int_equal(entries(*state), 5); /* two staging folders, two locks, the empty folder */
    gs_staging_close(a);
    gs_staging_close(e);
    assert_int_equal(entries(*state), 1);
    refuse(gs_test_path(*state, "no/where"), false, GS_ENOTFOUND, "no/where");
}

static void test_begin__refuses_a_file(void **state)
{
    const char *path = gs_test_path(*state, "file");
    gs_test_write_file(path, "x", 1);
    refuse(path, true, GS_EEXIST, path);
    refuse(gs_test_path(*state, "file/"), true, GS_EEXIST, path);
}

static void test_begin__replaces_a_store_only_by_force(void **state)
{
    const kept_path dir = sub(*state, "s");
    tiny_write(dir.text, &tiny_plain);
    refuse(dir.text, false, GS_EEXIST, "holds a store already; use .force");
    gs_staging *const staging = begin(dir.text, true);
    gs_assert_ok(tiny_open_and_verify(dir.text)); /* until the new one is whole */
    gs_staging_close(staging);
    gs_assert_ok(tiny_open_and_verify(dir.text));
}

/* What a killed run of a version that wrote in place has left. */
static void test_begin__replaces_an_unfinished_store_by_force(void **state)
{
    const kept_path dir = sub(*state, "s");
    gs_assert_ok(gs_mkdir(dir.text));
    gs_test_write_file(gs_test_path(dir.text, "store.unfinished"), "", 0);
    gs_test_write_file(gs_test_path(dir.text, "manifest.json.tmp"), "{", 1);
    refuse(dir.text, false, GS_EEXIST, "unfinished");
    gs_staging_close(begin(dir.text, true));
}

static void test_begin__never_removes_what_is_not_a_stores(void **state)
{
    const char *dir = *state;
    const kept_path labels = sub(dir, "labels.bin");
    /* A name that a store has too, in a folder that nothing shows to be a store. */
    gs_test_write_file(labels.text, "mine", 4);
    refuse(dir, false, GS_EEXIST, "not sure");
    refuse(dir, true, GS_EEXIST, "not sure");
    gs_test_write_file(gs_test_path(dir, "manifest.json"), "{\"name\": \"some web app\"}", 24);
    refuse(dir, true, GS_EEXIST, "not sure");
    assert_int_equal(entries(dir), 2);
    /* A store with something else beside it. */
    const kept_path store = sub(dir, "store"), foreign = sub(dir, "store/notes.txt");
    tiny_write(store.text, &tiny_plain);
    gs_test_write_file(foreign.text, "mine", 4);
    refuse(store.text, true, GS_EEXIST, "\"notes.txt\", which is no part of a store");
    assert_true(gs_path_exists(foreign.text));
    gs_assert_ok(tiny_open_and_verify(store.text));
}

static void test_begin__a_second_writer_is_refused(void **state)
{
    const kept_path dir = sub(*state, "s"), link = sub(*state, "link");
    gs_staging *const first = begin(dir.text, false);
    refuse(dir.text, false, GS_EEXIST, "another process is making it");
    refuse(dir.text, true, GS_EEXIST, "another process is making it");
    gs_staging_close(first);
    tiny_write(dir.text, &tiny_plain);
    gs_staging *const second = begin(dir.text, true);
    assert_int_equal(symlink("s", link.text), 0); /* the same folder by another name */
    refuse(link.text, true, GS_EEXIST, "link: another process is making it");
    gs_staging_close(second);
}

/* A killed writer: its staging and its lock file are there, and nobody holds the lock. */
static void test_begin__clears_what_a_killed_writer_left(void **state)
{
    const kept_path dir = sub(*state, "s"), left = sub(*state, "s.unfinished.0123456789abcdef"),
                    lock = sub(*state, ".s.gnnstream-lock"), mine = sub(*state, "s.unfinished.mine");
    gs_assert_ok(gs_mkdir(left.text));
    gs_test_write_file(gs_test_path(left.text, "features.bin"), "half", 4);
    gs_test_write_file(gs_test_path(left.text, ".gnnstream.0123456789abcdef"), "half", 4);
    gs_test_write_file(lock.text, "", 0);
    gs_assert_ok(gs_mkdir(mine.text)); /* no such name */
    gs_staging *const staging = begin(dir.text, false);
    assert_false(gs_path_exists(left.text));
    gs_staging_close(staging);
    assert_int_equal(entries(*state), 1);
    gs_test_write_file(lock.text, "mine", 4);
    refuse(dir.text, false, GS_EEXIST, "is no lock");
    assert_true(gs_path_exists(lock.text));
}

static void test_finish__exchanges_stores(void **state)
{
    const kept_path dir = sub(*state, "s"), foreign = sub(*state, "s/spill.1"), link = sub(*state, "link");
    gs_store_contents c;
    gs_store *old = NULL, *new = NULL;
    uint32_t ids[2] = {0};
    int fd = -1;

    tiny_write(dir.text, &tiny_plain);
    assert_int_equal(symlink("s", link.text), 0);
    gs_assert_ok(gs_store_open(&old, dir.text));
    gs_staging *const staging = tiny_write_over(&c, link.text, &tiny_rich);
    gs_assert_ok(gs_store_check_place(old));
    gs_assert_ok(gs_mkdir(foreign.text)); /* a run makes a folder in the store meanwhile */
    gs_assert_ok(gs_store_finish(staging, &c));
    gs_staging_close(staging);
    tiny_contents_free(&c);
    gs_assert_ok(gs_store_open(&new, dir.text));
    assert_true(gs_store_get_info(new)->weights);
    assert_true(gs_path_exists(foreign.text));
    assert_int_equal(entries(*state), 2);

    /* Whoever has the old one open keeps its ids, and can tell that it was replaced. */
    gs_assert_fails(gs_store_check_place(old), GS_EIO, "was replaced");
    gs_assert_ok(gs_store_check_place(new));
    gs_assert_ok(gs_store_open_array(&fd, old, GS_ARRAY_INPUT_ID));
    gs_assert_ok(gs_pread_exact(fd, ids, sizeof(ids), 0, "old ids"));
    assert_int_equal(ids[0], tiny_input_id(&tiny_plain, 0));
    assert_int_equal(ids[1], tiny_input_id(&tiny_plain, 1));
    close(fd);
    gs_store_close(old);
    gs_store_close(new);
}

/* What others put there meanwhile is not replaced without leave. */
static void test_finish__never_replaces_what_came_later(void **state)
{
    const kept_path dir = sub(*state, "s"), mine = sub(*state, "s/mine");
    gs_store_contents c;
    gs_staging *const staging = tiny_write_files(&c, dir.text, &tiny_plain);
    gs_assert_ok(gs_mkdir(dir.text));
    gs_test_write_file(mine.text, "mine", 4);
    gs_assert_fails(gs_store_finish(staging, &c), GS_EEXIST, "others have put something there");
    gs_staging_close(staging);
    tiny_contents_free(&c);
    assert_int_equal(entries(*state), 1);
    assert_true(gs_path_exists(mine.text));
}

static void test_close__keeps_the_error_that_led_to_it(void **state)
{
    gs_staging *const staging = begin(gs_test_path(*state, "s"), false);
    gs_fail(GS_EIO, "the disk is on fire");
    gs_staging_close(staging);
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
        const kept_path dir = sub(*state, "s");
        gs_store_contents c;
        gs_staging *const staging = tiny_write_files(&c, dir.text, &tiny_plain);
        cases[k].how(&c);
        gs_assert_fails(gs_store_finish(staging, &c), GS_EINVAL, cases[k].text);
        gs_staging_close(staging);
        assert_int_equal(entries(*state), 0);
        tiny_contents_free(&c);
    }
}

static void test_finish__refuses_missing_and_short_files(void **state)
{
    gs_store_contents c;
    gs_staging *const staging = tiny_write_files(&c, gs_test_path(*state, "s"), &tiny_plain);
    const char *const dir = gs_staging_dir(staging);
    assert_int_equal(truncate(gs_test_path(dir, "features.bin"), 60), 0); /* the padding left out */
    gs_assert_fails(gs_store_finish(staging, &c), GS_EINVAL, "features.bin: has 60 bytes instead of 4096");
    assert_int_equal(truncate(gs_test_path(dir, "features.bin"), 4096), 0);
    assert_int_equal(unlink(gs_test_path(dir, "split.bin")), 0);
    gs_assert_fails(gs_store_finish(staging, &c), GS_EINVAL, "split.bin: missing");
    assert_int_equal(unlink(gs_test_path(dir, "edges.source.bin")), 0);
    gs_assert_fails(gs_store_finish(staging, &c), GS_ENOTFOUND, "edges.source.bin");
    assert_false(gs_path_exists(gs_test_path(dir, "manifest.json")));
    gs_staging_close(staging);
    tiny_contents_free(&c);
}

static void test_finish__out_of_memory_leaves_no_manifest(void **state)
{
    const kept_path dir = sub(*state, "s");
    gs_store_contents c;
    gs_status st = GS_ENOMEM;
    uint64_t n = 0;
    gs_staging *const staging = tiny_write_files(&c, dir.text, &tiny_plain);
    while (st != GS_OK && ++n < 1000) {
        const uint64_t live = gs_alloc_live_bytes();
        gs_alloc_fail_nth(n);
        st = gs_store_finish(staging, &c);
        gs_alloc_fail_nth(0);
        assert_true(st == GS_OK || st == GS_ENOMEM);
        assert_int_equal(gs_alloc_live_bytes(), live);
    }
    assert_in_range(n, 20, 200);
    gs_staging_close(staging);
    gs_assert_ok(tiny_open_and_verify(dir.text));
    tiny_contents_free(&c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_begin__leaves_the_place_as_it_is),
        TEST(test_begin__refuses_a_file),
        TEST(test_begin__replaces_a_store_only_by_force),
        TEST(test_begin__replaces_an_unfinished_store_by_force),
        TEST(test_begin__never_removes_what_is_not_a_stores),
        TEST(test_begin__a_second_writer_is_refused),
        TEST(test_begin__clears_what_a_killed_writer_left),
        TEST(test_finish__exchanges_stores),
        TEST(test_finish__never_replaces_what_came_later),
        TEST(test_close__keeps_the_error_that_led_to_it),
        TEST(test_finish__refuses_what_a_reader_would),
        TEST(test_finish__refuses_missing_and_short_files),
        TEST(test_finish__out_of_memory_leaves_no_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
