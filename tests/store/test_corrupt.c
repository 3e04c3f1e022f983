/* Damage: any byte of any file, any length, any missing file is an error that names the file. */
#include "tiny_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

static const char *const names[] = {
    "manifest.json", "chunks.bin", "sums.bin",      "edges.dest.bin", "edges.source.bin", "features.bin",
    "labels.bin",    "split.bin",  "in_degree.bin", "out_degree.bin", "loops.bin",        "input_id.bin",
};

/* Tables are read when a store opens, the rest when it is verified. */
static bool is_table(const char *name)
{
    return strcmp(name, "manifest.json") == 0 || strcmp(name, "chunks.bin") == 0 ||
           strcmp(name, "sums.bin") == 0;
}

static void must_fail(gs_status st, const char *name, size_t at)
{
    if (st == GS_OK)
        fail_msg("%s: a change of byte %zu was not noticed", name, at);
    if (st != GS_EFORMAT)
        fail_msg("%s: byte %zu: %s", name, at, gs_last_error());
    if (strstr(gs_last_error(), name) == NULL)
        fail_msg("byte %zu of %s: the message \"%s\" does not name the file", at, name, gs_last_error());
}

/* All bytes of tables and of the first part of each block; of the rest, which is
 * padding in these small stores, one in 257. */
static size_t next_byte(const char *name, size_t k)
{
    const size_t last = gs_align_down(k, GS_BLOCK_BYTES) + GS_BLOCK_BYTES - 1;
    return is_table(name) || k - (last - (GS_BLOCK_BYTES - 1)) < 100 || k == last ? k + 1
                                                                                  : GS_MIN(k + 257, last);
}

/* Changes bytes in turn, in place; a different bit each time. */
static void flip_each_byte(const char *dir, const char *name, const gs_store *whole)
{
    size_t bytes;
    unsigned char *data = tiny_read(dir, name, &bytes);
    const int fd = open(gs_test_path(dir, "%s", name), O_WRONLY);
    assert_true(fd >= 0);
    for (size_t k = 0; k < bytes; k = next_byte(name, k)) {
        const unsigned char changed = data[k] ^ (unsigned char)(1u << (k % 8));
        gs_store *s = NULL;
        assert_int_equal(pwrite(fd, &changed, 1, (off_t)k), 1);
        must_fail(is_table(name) ? gs_store_open(&s, dir) : gs_store_verify(whole, GS_MIB), name, k);
        assert_null(s);
        assert_int_equal(pwrite(fd, &data[k], 1, (off_t)k), 1);
    }
    close(fd);
    free(data);
}

static void flip_all(const char *dir, const tiny_graph *g)
{
    gs_store *s = NULL;
    tiny_write(dir, g);
    gs_assert_ok(gs_store_open(&s, dir));
    for (size_t k = 0; k < GS_ARRAY_LEN(names); k++)
        if (access(gs_test_path(dir, "%s", names[k]), F_OK) == 0)
            flip_each_byte(dir, names[k], s);
    gs_assert_ok(gs_store_verify(s, GS_MIB)); /* all is as it was */
    gs_store_close(s);
    gs_assert_ok(tiny_open_and_verify(dir));
}

static void test_store__every_changed_byte_is_found(void **state)
{
    flip_all(*state, &tiny_plain);
}

static void test_store__wrong_length_is_found_when_opening(void **state)
{
    const char *dir = *state;
    tiny_write(dir, &tiny_plain);
    for (size_t k = 0; k < GS_ARRAY_LEN(names); k++) {
        size_t bytes;
        unsigned char *data = tiny_read(dir, names[k], &bytes);
        data = realloc(data, bytes + 1);
        data[bytes] = 0;
        for (size_t cut = 0; cut <= bytes + 1; cut += GS_MAX((bytes + 1 - cut) / 12, 1u)) {
            gs_store *s = NULL;
            if (cut == bytes)
                continue;
            tiny_replace(dir, names[k], data, cut);
            must_fail(gs_store_open(&s, dir), names[k], cut);
        }
        tiny_replace(dir, names[k], data, bytes);
        free(data);
    }
    gs_assert_ok(tiny_open_and_verify(dir));
}

static void test_store__missing_file_is_found_when_opening(void **state)
{
    const char *dir = *state;
    tiny_write(dir, &tiny_plain);
    for (size_t k = 1; k < GS_ARRAY_LEN(names); k++) {
        const char *path = gs_test_path(dir, "%s", names[k]), *away = gs_test_path(dir, "away");
        gs_store *s = NULL;
        assert_int_equal(rename(path, away), 0);
        gs_assert_fails(gs_store_open(&s, dir), GS_EFORMAT, names[k]);
        gs_assert_fails(gs_store_open(&s, dir), GS_EFORMAT, "missing");
        assert_int_equal(rename(away, path), 0);
    }
}

static void test_store__folder_in_place_of_a_file_is_an_error(void **state)
{
    const char *dir = *state;
    gs_store *s = NULL;
    tiny_write(dir, &tiny_plain);
    assert_int_equal(unlink(gs_test_path(dir, "labels.bin")), 0);
    assert_int_equal(mkdir(gs_test_path(dir, "labels.bin"), 0777), 0);
    gs_assert_fails(gs_store_open(&s, dir), GS_EFORMAT, "labels.bin");
}

/* A file that shrinks between open and verify. */
static void test_verify__file_cut_after_opening_is_an_error(void **state)
{
    const char *dir = *state;
    gs_store *s = NULL;
    tiny_write(dir, &tiny_plain);
    gs_assert_ok(gs_store_open(&s, dir));
    assert_int_equal(truncate(gs_test_path(dir, "edges.source.bin"), 4096), 0);
    gs_assert_fails(gs_store_verify(s, GS_MIB), GS_EFORMAT, "edges.source.bin");
    gs_store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_store__every_changed_byte_is_found),
        TEST(test_store__wrong_length_is_found_when_opening),
        TEST(test_store__missing_file_is_found_when_opening),
        TEST(test_store__folder_in_place_of_a_file_is_an_error),
        TEST(test_verify__file_cut_after_opening_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
