/* Whole files: read exactly, written all or not at all, trees removed without leaving them. */
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

/* read() of this program: as of a slow file system, where `most` says so. */
static size_t most = SIZE_MAX;
ssize_t read(int fd, void *to, size_t bytes) { return syscall(SYS_read, fd, to, bytes < most ? bytes : most); }

static void test_file__reads_what_it_wrote(void **state)
{
    const char *const path = gs_test_path(*state, "f");
    char got[8] = {0};
    uint64_t bytes = 0;
    int fd = -1;

    gs_test_write_file(path, "0123456789", 10);
    gs_assert_ok(gs_file_open_read(&fd, &bytes, path));
    assert_int_equal(bytes, 10);
    gs_assert_ok(gs_pread_exact(fd, got, 4, 6, path));
    assert_memory_equal(got, "6789", 5);
    gs_assert_ok(gs_pread_exact(fd, got, 0, 10, path));
    close(fd);

    fd = open(path, O_RDWR);
    gs_assert_ok(gs_pwrite_exact(fd, "ab", 2, 12, path));
    gs_assert_ok(gs_pread_exact(fd, got, 4, 10, path));
    assert_memory_equal(got, "\0\0ab", 4);
    close(fd);
}

static void test_file__says_where_it_ends(void **state)
{
    const char *const path = gs_test_path(*state, "short");
    char got[8];
    uint64_t bytes;
    int fd = -1;

    gs_test_write_file(path, "01234", 5);
    gs_assert_ok(gs_file_open_read(&fd, &bytes, path));
    gs_assert_fails(gs_pread_exact(fd, got, 4, 2, path), GS_EFORMAT, "file ends at byte 5, but 4 bytes at 2");
    gs_assert_fails(gs_pread_exact(fd, got, 4, 2, path), GS_EFORMAT, path);
    gs_assert_fails(gs_pread_exact(fd, got, 1, 1000, path), GS_EFORMAT, "file ends at byte 5,");
    gs_assert_fails(gs_pread_exact(fd, got, 8, UINT64_MAX - 3, path), GS_EINVAL, "beyond what a file can hold");
    gs_assert_fails(gs_pread_exact(fd, got, UINT64_MAX, 0, path), GS_EINVAL, "beyond");
    gs_assert_fails(gs_pwrite_exact(fd, got, 1, 0, path), GS_EIO, "write of 1 bytes at 0 failed");
    close(fd);
}

static void test_file__open_refuses_what_is_no_file(void **state)
{
    uint64_t bytes = 3;
    int fd = 7;

    gs_assert_fails(gs_file_open_read(&fd, &bytes, gs_test_path(*state, "absent")), GS_ENOTFOUND, "absent");
    gs_assert_fails(gs_file_open_read(&fd, &bytes, *state), GS_ENOTFOUND, "is a folder");
    const char *const pipe_path = gs_test_path(*state, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    gs_assert_fails(gs_file_open_read(&fd, &bytes, pipe_path), GS_ENOTFOUND, "pipe");
    assert_int_equal(fd, 7);
    assert_int_equal(bytes, 3);
}

static void test_file__read_all_keeps_its_limit(void **state)
{
    const char *const path = gs_test_path(*state, "all");
    static char big[10000];
    char *text = NULL;
    uint64_t bytes = 0;

    memset(big, 'x', sizeof(big));
    gs_test_write_file(path, big, sizeof(big));
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, sizeof(big)));
    assert_int_equal(bytes, sizeof(big));
    assert_memory_equal(text, big, sizeof(big));
    assert_int_equal(text[sizeof(big)], 0);
    gs_free(text);

    text = NULL;
    gs_assert_fails(gs_file_read_all(&text, &bytes, path, sizeof(big) - 1), GS_EFORMAT, "larger than the 9999 bytes");
    assert_null(text);

    gs_test_write_file(path, "", 0);
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 0));
    assert_int_equal(bytes, 0);
    assert_string_equal(text, "");
    gs_free(text);
}

static void test_file__read_all_reads_files_of_unknown_size(void **state)
{
    char *text = NULL;
    uint64_t bytes = 0;

    (void)state;
    gs_assert_ok(gs_file_read_all(&text, &bytes, "/proc/self/status", 1 << 20));
    assert_int_equal(strlen(text), bytes);
    assert_non_null(strstr(text, "VmRSS:"));
    gs_free(text);
    /* Its stat() says 0 and it has more than the first buffer: read by doubling. */
    gs_assert_ok(gs_file_read_all(&text, &bytes, "/proc/self/maps", 1 << 24));
    assert_int_equal(strlen(text), bytes);
    gs_free(text);
    gs_assert_fails(gs_file_read_all(&text, &bytes, "/proc/self/status", 100), GS_EFORMAT, "larger than the 100");
}

static void test_file__read_all_goes_on_where_a_read_stops(void **state)
{
    const char *const path = gs_test_path(*state, "f");
    char *text = NULL;
    uint64_t bytes = 0;

    gs_test_write_file(path, "0123456789", 10);
    most = 3;
    const gs_status st = gs_file_read_all(&text, &bytes, path, 100);
    most = SIZE_MAX;
    gs_assert_ok(st);
    assert_int_equal(bytes, 10);
    assert_string_equal(text, "0123456789");
    gs_free(text);
}

static void test_file__no_memory_is_said(void **state)
{
    const char *const path = gs_test_path(*state, "f");
    char *text = NULL;
    uint64_t bytes;

    gs_test_write_file(path, "abc", 3);
    gs_alloc_fail_nth(1);
    gs_assert_fails(gs_file_read_all(&text, &bytes, path, 100), GS_ENOMEM, path);
    gs_alloc_fail_nth(1);
    assert_null(gs_path_join("a", "b"));
    gs_alloc_fail_nth(0);
}

static void test_file__paths_join(void **state)
{
    static const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *const path = gs_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        gs_free(path);
    }
}

static void test_file__mkdir_takes_what_is_there(void **state)
{
    const char *const dir = gs_test_path(*state, "d"), *const file = gs_test_path(*state, "f");

    gs_assert_ok(gs_mkdir(dir));
    gs_assert_ok(gs_mkdir(dir));
    assert_true(gs_path_is_dir(dir));
    gs_test_write_file(file, "", 0);
    assert_true(gs_path_exists(file));
    assert_false(gs_path_is_dir(file));
    gs_assert_fails(gs_mkdir(file), GS_EEXIST, "is a file where a folder is needed");
    gs_assert_fails(gs_mkdir(gs_test_path(*state, "x/y")), GS_ENOTFOUND, "x/y");
}

static void test_file__remove_tree_stays_inside(void **state)
{
    const char *const tree = gs_test_path(*state, "tree"), *const outside = gs_test_path(*state, "outside");

    gs_assert_ok(gs_mkdir(outside));
    gs_test_write_file(gs_test_path(*state, "outside/keep"), "k", 1);
    gs_assert_ok(gs_mkdir(tree));
    for (int i = 0; i < 100; i++)
        gs_test_write_file(gs_test_path(*state, "tree/f%d", i), "x", 1);
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "tree/deep")));
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "tree/deep/er")));
    gs_test_write_file(gs_test_path(*state, "tree/deep/er/f"), "x", 1);
    assert_int_equal(symlink(outside, gs_test_path(*state, "tree/deep/link")), 0);

    gs_assert_ok(gs_remove_tree(tree));
    assert_false(gs_path_exists(tree));
    gs_test_file_is(gs_test_path(*state, "outside/keep"), "k");
    gs_assert_ok(gs_remove_tree(tree)); /* a missing one is fine */
}

static void test_file__remove_tree_refuses_what_is_no_folder(void **state)
{
    const char *const file = gs_test_path(*state, "file"), *const link = gs_test_path(*state, "link");
    const char *const dir = gs_test_path(*state, "dir");

    gs_test_write_file(file, "x", 1);
    gs_assert_fails(gs_remove_tree(file), GS_EINVAL, "is not a folder");
    gs_assert_ok(gs_mkdir(dir));
    assert_int_equal(symlink(dir, link), 0);
    gs_assert_fails(gs_remove_tree(link), GS_EINVAL, "is not a folder");
    assert_true(gs_path_exists(file) && gs_path_is_dir(dir));
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_file__reads_what_it_wrote),
        WITH_FOLDER(test_file__says_where_it_ends),
        WITH_FOLDER(test_file__open_refuses_what_is_no_file),
        WITH_FOLDER(test_file__read_all_keeps_its_limit),
        cmocka_unit_test(test_file__read_all_reads_files_of_unknown_size),
        WITH_FOLDER(test_file__read_all_goes_on_where_a_read_stops),
        WITH_FOLDER(test_file__no_memory_is_said),
        cmocka_unit_test(test_file__paths_join),
        WITH_FOLDER(test_file__mkdir_takes_what_is_there),
        WITH_FOLDER(test_file__remove_tree_stays_inside),
        WITH_FOLDER(test_file__remove_tree_refuses_what_is_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
