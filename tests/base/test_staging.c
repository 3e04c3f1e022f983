/* A staging has a name of its own, takes its place at once, and a killed one's folder goes with the next. */
#include "support/support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/temporary.h"
#include "base/file.h"

#define DIGITS 16 /* as temporary.h has them */

static bool owns(const char *name) { return strcmp(name, "ours") == 0; }

static gs_status may_replace(const char *place, bool force)
{
    return force ? GS_OK : gs_fail(GS_EEXIST, "%s: is there", place);
}

static const gs_staging_kind KIND = {.owns = owns, .may_replace = may_replace};

/* Begins a staging of `place`, says where it is in `dir`, and leaves it as a killed process does. */
static void leave_draft(const char *place, char *dir, size_t room)
{
    int said[2];
    ssize_t n;

    assert_int_equal(pipe(said), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        gs_staging *d = NULL;
        if (gs_staging_begin(&d, place, &KIND, false) != GS_OK)
            _exit(1);
        gs_test_write_file(gs_test_path(gs_staging_dir(d), "ours"), "x", 1);
        n = write(said[1], gs_staging_dir(d), strlen(gs_staging_dir(d)) + 1);
        _exit(n < 0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true((n = read(said[0], dir, room)) > 0 && dir[n - 1] == '\0');
    close(said[0]);
    close(said[1]);
}

static void test_staging__a_killed_ones_folder_goes_with_the_next(void **state)
{
    const char *const place = gs_test_path(*state, "place");
    /* names that are almost a staging's of this place */
    static const char *const others[] = {"place.unfinished.0123456789abcde", "place.unfinished.0123456789abcdef0",
                                         "place.unfinished.0123456789abcdeg", "palce.unfinished.0123456789abcdef"};
    char left[512];
    gs_staging *d = NULL;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        gs_assert_ok(gs_mkdir(gs_test_path(*state, "%s", others[i])));
    leave_draft(place, left, sizeof(left));
    assert_true(gs_path_is_dir(left));
    const size_t before = strlen(place) + strlen(".unfinished.");
    assert_memory_equal(left, place, strlen(place));
    assert_int_equal(strlen(left), before + DIGITS);
    assert_int_equal(strspn(left + before, "0123456789abcdef"), DIGITS);

    gs_assert_ok(gs_staging_begin(&d, place, &KIND, false));
    assert_string_not_equal(gs_staging_dir(d), left);
    assert_false(gs_path_exists(left));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_true(gs_path_is_dir(gs_test_path(*state, "%s", others[i])));
    gs_staging_close(d);
    assert_int_equal(gs_test_entries(*state), sizeof(others) / sizeof(others[0]));
}

static void test_staging__it_takes_its_place_and_leaves_what_is_of_others(void **state)
{
    const char *const place = gs_test_path(*state, "store");
    gs_staging *d = NULL, *second = NULL;

    for (int round = 0; round < 2; round++) {
        gs_assert_ok(gs_staging_begin(&d, place, &KIND, round > 0));
        gs_assert_fails(gs_staging_begin(&second, place, &KIND, true), GS_EEXIST, "another process");
        gs_test_write_file(gs_test_path(gs_staging_dir(d), "ours"), "xy", (size_t)round + 1);
        gs_assert_ok(gs_staging_publish(d));
        gs_staging_close(d);
        d = NULL;
        assert_int_equal(gs_test_entries(place), round + 1);
        if (round == 0)
            gs_test_write_file(gs_test_path(place, "theirs"), "z", 1);
    }
    assert_true(gs_path_exists(gs_test_path(place, "theirs")));
    gs_assert_fails(gs_staging_begin(&d, place, &KIND, false), GS_EEXIST, "is there");
    assert_null(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_staging__a_killed_ones_folder_goes_with_the_next, gs_test_temp_setup,
                                        gs_test_temp_teardown),
        cmocka_unit_test_setup_teardown(test_staging__it_takes_its_place_and_leaves_what_is_of_others,
                                        gs_test_temp_setup, gs_test_temp_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
