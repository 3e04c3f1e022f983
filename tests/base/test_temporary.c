/* Names that cannot collide, and what a killed process leaves: gone with the next, never while it is in use. */
#include "support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temporary.h"

static void test_temporary__names_are_known_again_and_differ(void **state)
{
    char a[GS_TEMPORARY_BYTES], b[GS_TEMPORARY_BYTES];

    (void)state;
    gs_temporary_name(a, "spill");
    gs_temporary_name(b, "spill");
    assert_string_not_equal(a, b);
    assert_true(gs_is_temporary(a));
    assert_true(gs_is_temporary(".gnnstream.0123456789abcdef"));
    assert_false(gs_is_temporary("spill.1234"));
    assert_false(gs_is_temporary("spill.0123456789abcdeg"));
    assert_false(gs_is_temporary("spill.0123456789abcdef0"));
    assert_false(gs_is_temporary("xspill.0123456789abcdef"));
    assert_false(gs_is_temporary(""));
}

static void test_temporary__a_folder_goes_with_its_parent(void **state)
{
    const char *const parent = gs_test_path(*state, "nope");
    gs_scratch a = {0}, b = {0};

    gs_assert_ok(gs_scratch_make(&a, parent));
    gs_assert_ok(gs_scratch_make(&b, parent));
    assert_string_not_equal(a.path, b.path);
    gs_test_write_file(gs_test_path(a.path, "arrays.bin"), "x", 1);
    gs_scratch_remove(&a); /* b is in the folder that a made */
    assert_int_equal(gs_test_entries(parent), 1);
    assert_true(gs_path_is_dir(b.path));
    gs_scratch_remove(&b);
    gs_scratch_remove(&b);
    assert_int_equal(gs_test_entries(parent), 0); /* b found it there: it stays */
    gs_assert_ok(gs_scratch_make(&a, gs_test_path(*state, "nope2")));
    gs_scratch_remove(&a);
    assert_false(gs_path_exists(gs_test_path(*state, "nope2")));
    gs_assert_fails(gs_scratch_make(&a, gs_test_path(*state, "no/where")), GS_ENOTFOUND, "no/where");
    gs_test_write_file(gs_test_path(*state, "file"), "x", 1);
    gs_assert_fails(gs_scratch_make(&a, gs_test_path(*state, "file")), GS_EEXIST, "file");
    assert_null(a.path);
}

/* A process that makes a scratch folder and an unfinished file in `dir`, and waits for its end. */
static pid_t start_owner(const char *dir)
{
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        gs_scratch s = {0};
        char name[GS_TEMPORARY_BYTES];
        int fd, folder = open(dir, O_PATH | O_DIRECTORY);
        if (gs_scratch_make(&s, dir) != GS_OK || gs_temporary_file(&fd, name, folder, dir) != GS_OK ||
            close(open(gs_test_path(s.path, "edges2.bin"), O_CREAT | O_WRONLY, 0600)) != 0 ||
            write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void test_temporary__what_is_in_use_stays_what_a_kill_left_goes(void **state)
{
    const char *const dir = *state;
    char alive[GS_TEMPORARY_BYTES];
    const pid_t pid = start_owner(dir);
    int status;

    gs_temporary_sweep(dir, alive);
    assert_true(gs_is_temporary(alive));
    assert_int_equal(gs_test_entries(dir), 2);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(gs_test_entries(dir), 2);
    gs_temporary_sweep(dir, alive);
    assert_string_equal(alive, "");
    assert_int_equal(gs_test_entries(dir), 0);
}

/* Names alone are no proof: what is in there and is not ours stays. */
static void test_temporary__a_sweep_takes_only_leftovers(void **state)
{
    const char *const dir = *state;
    char alive[GS_TEMPORARY_BYTES];

    gs_assert_ok(gs_mkdir(gs_test_path(dir, "spill.00000000000000aa"))); /* emptied by a sweep that was killed */
    gs_assert_ok(gs_mkdir(gs_test_path(dir, "spill.00000000000000bb")));
    gs_test_write_file(gs_test_path(dir, "spill.00000000000000bb/mine"), "x", 1);
    gs_assert_ok(gs_mkdir(gs_test_path(dir, "spill.77")));
    gs_assert_ok(gs_mkdir(gs_test_path(dir, "outside")));
    gs_test_write_file(gs_test_path(dir, "outside/owner"), "x", 1);
    assert_int_equal(symlink("outside", gs_test_path(dir, "spill.00000000000000cc")), 0);
    assert_int_equal(symlink("outside/owner", gs_test_path(dir, ".gnnstream.00000000000000dd")), 0);
    gs_temporary_sweep(dir, alive);
    assert_string_equal(alive, "");
    assert_false(gs_path_exists(gs_test_path(dir, "spill.00000000000000aa")));
    assert_true(gs_path_exists(gs_test_path(dir, "spill.00000000000000bb/mine")));
    assert_true(gs_path_exists(gs_test_path(dir, "spill.77")));
    assert_true(gs_path_exists(gs_test_path(dir, "outside/owner")));
    gs_temporary_sweep(gs_test_path(dir, "absent"), alive);
    assert_string_equal(alive, "");
}

/* Makers and sweepers at once: nobody's folder is taken from under it. */
static void test_temporary__many_at_once_lose_nothing(void **state)
{
    enum { PROCESSES = 6, ROUNDS = 100 };
    const char *const dir = gs_test_path(*state, "shared");
    pid_t pid[PROCESSES];

    for (int p = 0; p < PROCESSES; p++) {
        if ((pid[p] = fork()) != 0)
            continue;
        for (int k = 0; k < ROUNDS; k++) {
            gs_scratch s = {0};
            if (gs_scratch_make(&s, dir) != GS_OK)
                _exit(1);
            const int fd = open(gs_test_path(s.path, "arrays.bin"), O_CREAT | O_EXCL | O_RDWR, 0600);
            if (fd < 0 || close(fd) != 0 || !gs_path_exists(gs_test_path(s.path, "owner")))
                _exit(2);
            gs_scratch_remove(&s);
        }
        _exit(0);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        assert_int_equal(waitpid(pid[p], &status, 0), pid[p]);
        assert_int_equal(status, 0);
    }
    assert_true(!gs_path_exists(dir) || gs_test_entries(dir) == 0);
}

static void test_temporary__an_unnamed_file_has_no_name(void **state)
{
    int fd = -1;

    gs_assert_ok(gs_unnamed_file(&fd, *state));
    assert_int_equal(gs_test_entries(*state), 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    gs_assert_fails(gs_unnamed_file(&fd, gs_test_path(*state, "absent")), GS_ENOTFOUND, "absent");
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_temporary__names_are_known_again_and_differ),
        WITH_FOLDER(test_temporary__a_folder_goes_with_its_parent),
        WITH_FOLDER(test_temporary__what_is_in_use_stays_what_a_kill_left_goes),
        WITH_FOLDER(test_temporary__a_sweep_takes_only_leftovers),
        WITH_FOLDER(test_temporary__many_at_once_lose_nothing),
        WITH_FOLDER(test_temporary__an_unnamed_file_has_no_name),
    };
    return cmocka_run_group_tests_name("temporary", tests, NULL, NULL);
}
