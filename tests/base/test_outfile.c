/* Outputs: whole or not at all, under no name that another could know, and never over what they must not replace. */
#include "support/support.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/outfile.h"

/* Each claim about files holds also where a file system has none without a name. */
static void each_way(void (*body)(const char *dir), const char *dir)
{
    for (int named = 0; named < 2; named++) {
        const char *const own = gs_test_path(dir, "way%d", named);
        gs_assert_ok(gs_mkdir(own));
        gs_outfile__all_named = named == 1;
        body(own);
        gs_outfile__all_named = false;
    }
}

static void appears_at_the_end(const char *dir)
{
    const char *const path = gs_test_path(dir, "out");
    gs_outfile o = GS_OUTFILE_NONE;

    gs_test_write_file(path, "old", 3);
    gs_assert_ok(gs_outfile_begin(&o, path));
    gs_assert_ok(gs_outfile_reserve(&o, 4));
    gs_assert_ok(gs_outfile_write(&o, "w!", 2, 2)); /* a file takes it in any order */
    gs_assert_ok(gs_outfile_write(&o, "ne", 2, 0));
    assert_int_equal(gs_test_entries(dir), gs_outfile__all_named ? 2 : 1);
    gs_outfile_abandon(&o);
    assert_int_equal(gs_test_entries(dir), 1);
    gs_test_file_is(path, "old");
    gs_outfile_abandon(&o);

    gs_assert_ok(gs_outfile_begin(&o, path));
    gs_assert_ok(gs_outfile_write(&o, "new!", 4, 0));
    gs_assert_ok(gs_outfile_finish(&o));
    gs_outfile_abandon(&o); /* nothing is left to abandon */
    gs_test_file_is(path, "new!");
    assert_int_equal(gs_test_entries(dir), 1);
}

static void test_outfile__appears_at_the_end(void **state) { each_way(appears_at_the_end, *state); }

static void shown(const char *dir)
{
    const char *const path = gs_test_path(dir, "log"), *const other = gs_test_path(dir, "other");
    gs_outfile o = GS_OUTFILE_NONE;

    gs_test_write_file(path, "old", 3);
    assert_int_equal(link(path, other), 0);
    gs_assert_ok(gs_outfile_begin(&o, path));
    gs_assert_ok(gs_outfile_show(&o));
    gs_test_file_is(path, "");
    gs_test_file_is(other, "old"); /* another name of what was there keeps it */
    gs_assert_ok(gs_outfile_write(&o, "line\n", 5, 0));
    gs_test_file_is(path, "line\n");
    gs_outfile_abandon(&o);
    gs_test_file_is(path, "line\n");
    assert_int_equal(gs_test_entries(dir), 2);
}

static void test_outfile__may_be_watched(void **state) { each_way(shown, *state); }

/* The old temporary name, PATH.tmp, may be anything: another file, a link. */
static void planted(const char *dir)
{
    const char *const path = gs_test_path(dir, "out"), *const beside = gs_test_path(dir, "out.tmp"),
                      *const victim = gs_test_path(dir, "victim");

    gs_test_write_file(victim, "mine", 4);
    assert_int_equal(symlink(victim, beside), 0);
    gs_assert_ok(gs_file_write_atomic(path, "x", 1));
    gs_test_file_is(victim, "mine");
    unlink(beside);
    gs_test_write_file(beside, "logits", 6);
    gs_assert_ok(gs_file_write_atomic(path, "weights", 7));
    gs_test_file_is(beside, "logits");
    gs_test_file_is(path, "weights");
}

static void test_outfile__touches_nothing_beside_it(void **state) { each_way(planted, *state); }

/* Two at once with one name: the file is one's or the other's, whole. */
static void two_at_once(const char *dir)
{
    const char *const path = gs_test_path(dir, "out");
    gs_outfile a = GS_OUTFILE_NONE, b = GS_OUTFILE_NONE;

    gs_assert_ok(gs_outfile_begin(&a, path));
    gs_assert_ok(gs_outfile_begin(&b, path));
    gs_assert_ok(gs_outfile_write(&a, "aaaaaaaa", 8, 0));
    gs_assert_ok(gs_outfile_write(&b, "bb", 2, 0));
    gs_assert_ok(gs_outfile_finish(&a));
    gs_test_file_is(path, "aaaaaaaa");
    gs_assert_ok(gs_outfile_finish(&b));
    gs_test_file_is(path, "bb");
    assert_int_equal(gs_test_entries(dir), 1);
}

static void test_outfile__two_at_once_do_not_mix(void **state) { each_way(two_at_once, *state); }

/* Here: the process may write no more than 4 KiB a file. */
static void failed_write(const char *dir)
{
    const char *const path = gs_test_path(dir, "kept");
    static const char big[10000];
    struct rlimit old, low;

    gs_assert_ok(gs_file_write_atomic(path, "kept", 4));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &low);
    const gs_status st = gs_file_write_atomic(path, big, sizeof(big));
    setrlimit(RLIMIT_FSIZE, &old);
    gs_assert_fails(st, GS_EIO, "kept: write of");
    gs_test_file_is(path, "kept");
    assert_int_equal(gs_test_entries(dir), 1);
}

static void test_outfile__a_failed_write_changes_nothing(void **state) { each_way(failed_write, *state); }

static void test_outfile__refuses_what_is_no_file(void **state)
{
    const char *const dir = *state, *const link = gs_test_path(dir, "link"), *const file = gs_test_path(dir, "file");
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    char here[PATH_MAX];
    gs_outfile o = GS_OUTFILE_NONE;

    gs_test_write_file(file, "mine", 4);
    assert_int_equal(symlink(file, link), 0);
    assert_int_equal(symlink("nowhere", gs_test_path(dir, "dangling")), 0);
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(dir), 0);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    assert_int_equal(chdir(here), 0);

    gs_assert_fails(gs_outfile_begin(&o, dir), GS_EEXIST, "is a folder");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(dir, "no/such")), GS_ENOTFOUND, "no/such");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(dir, "new/")), GS_EEXIST, "is a folder");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(dir, "..")), GS_EEXIST, "is a folder");
    gs_assert_fails(gs_outfile_begin(&o, ""), GS_EINVAL, "names no file");
    gs_assert_fails(gs_outfile_begin(&o, link), GS_EEXIST, "is a link");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(dir, "dangling")), GS_EEXIST, "is a link");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(dir, "socket")), GS_EEXIST, "is a socket");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(dir, "file/x")), GS_ENOTFOUND, "file/x");
    if (access("/dev/random", W_OK) == 0)
        gs_assert_fails(gs_outfile_begin(&o, "/dev/random"), GS_EEXIST, "is a device");
    assert_null(o.path);
    gs_test_file_is(file, "mine");
    assert_int_equal(gs_test_entries(dir), 4);
}

static void *read_pipe(void *context)
{
    char **const args = context;
    const int fd = open(args[0], O_RDONLY);
    for (ssize_t n, done = 0; (n = read(fd, args[1] + done, (size_t)(100 - done))) > 0;)
        done += n;
    close(fd);
    return NULL;
}

static void test_outfile__a_pipe_is_written_to_in_order(void **state)
{
    const char *const path = gs_test_path(*state, "pipe");
    char got[101] = "";
    char *args[2] = {(char *)(uintptr_t)path, got};
    gs_outfile o = GS_OUTFILE_NONE;
    pthread_t reader;
    struct stat sb;

    assert_int_equal(mkfifo(path, 0600), 0);
    const double began = gs_now();
    gs_assert_fails(gs_outfile_begin(&o, path), GS_EIO, "nobody reads");
    assert_true(gs_now() - began < 60);
    assert_int_equal(pthread_create(&reader, NULL, read_pipe, args), 0); /* may come later than the writer */
    gs_assert_ok(gs_outfile_begin(&o, path));
    assert_true(gs_outfile_is_stream(&o));
    gs_assert_ok(gs_outfile_reserve(&o, 1 << 20));
    gs_assert_ok(gs_outfile_write(&o, "one ", 4, 0));
    gs_assert_fails(gs_outfile_write(&o, "x", 1, 10), GS_EUNSUPPORTED, "out of order");
    gs_assert_ok(gs_outfile_show(&o));
    gs_assert_ok(gs_outfile_write(&o, "two", 3, 4));
    gs_assert_ok(gs_outfile_finish(&o));
    pthread_join(reader, NULL);
    assert_string_equal(got, "one two");
    assert_int_equal(lstat(path, &sb), 0);
    assert_true(S_ISFIFO(sb.st_mode));
}

static void test_outfile__a_pipe_whose_reader_went_is_said(void **state)
{
    const char *const path = gs_test_path(*state, "pipe");
    gs_outfile o = GS_OUTFILE_NONE;

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    gs_assert_ok(gs_outfile_begin(&o, path));
    close(reader);
    gs_assert_fails(gs_outfile_write(&o, "x", 1, 0), GS_EIO, "pipe: cannot write: Broken pipe");
    gs_outfile_abandon(&o);
}

/* What an open descriptor has already is kept: /dev/stdout of a program whose output goes to a file. */
static void test_outfile__an_open_descriptor_is_appended_to(void **state)
{
    const char *const path = gs_test_path(*state, "out");
    gs_outfile o = GS_OUTFILE_NONE;
    const int fd = open(path, O_CREAT | O_WRONLY, 0600), old = dup(1);

    assert_int_equal(write(fd, "before ", 7), 7);
    assert_int_equal(dup2(fd, 1), 1);
    const gs_status st = gs_outfile_begin(&o, "/dev/stdout");
    assert_int_equal(dup2(old, 1), 1);
    close(old);
    gs_assert_ok(st);
    gs_assert_ok(gs_outfile_write(&o, "mine", 4, 0));
    gs_assert_ok(gs_outfile_finish(&o));
    assert_int_equal(write(fd, " after", 6), 6);
    gs_assert_ok(gs_outfile_begin(&o, gs_test_path("/proc/self/fd", "%d", fd)));
    gs_assert_ok(gs_outfile_write(&o, "!", 1, 0));
    gs_assert_ok(gs_outfile_finish(&o));
    close(fd);
    gs_test_file_is(path, "before mine after!");
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path("/dev/fd", "%d", fd)), GS_EIO, "cannot write to it");
    const int reading = open(path, O_RDONLY);
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path("/dev/fd", "%d", reading)), GS_EIO, "not open for writing");
    close(reading);
}

static void test_outfile__null_and_full_are_what_they_are(void **state)
{
    struct stat sb;
    gs_outfile o = GS_OUTFILE_NONE;

    (void)state;
    if (access("/dev/full", W_OK) != 0 || access("/dev/null", W_OK) != 0)
        skip();
    gs_assert_ok(gs_file_write_atomic("/dev/null", "x", 1));
    assert_int_equal(stat("/dev/null", &sb), 0);
    assert_true(S_ISCHR(sb.st_mode));
    gs_assert_ok(gs_outfile_begin(&o, "/dev/full"));
    gs_assert_fails(gs_outfile_write(&o, "x", 1, 0), GS_EIO, "/dev/full: cannot write: No space left");
    gs_outfile_abandon(&o);
}

static void test_outfile__names_at_every_length(void **state)
{
    char name[NAME_MAX + 2], here[PATH_MAX];
    gs_outfile o = GS_OUTFILE_NONE;

    memset(name, 'n', sizeof(name));
    name[NAME_MAX] = '\0'; /* the longest that there may be; PATH.tmp was longer */
    gs_assert_ok(gs_file_write_atomic(gs_test_path(*state, "%s", name), "x", 1));
    gs_outfile__all_named = true;
    gs_assert_ok(gs_file_write_atomic(gs_test_path(*state, "%s", name), "y", 1));
    gs_outfile__all_named = false;
    gs_test_file_is(gs_test_path(*state, "%s", name), "y");
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    gs_assert_fails(gs_outfile_begin(&o, gs_test_path(*state, "%s", name)), GS_EIO, "File name too long");
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir(*state), 0);
    const gs_status st = gs_file_write_atomic("here", "x", 1);
    assert_int_equal(chdir(here), 0);
    gs_assert_ok(st);
    assert_true(gs_path_exists(gs_test_path(*state, "here")));
}

/* A folder that one may write to, but not list: for others than the superuser, that is most that there is to it. */
static void test_outfile__goes_to_a_folder_that_cannot_be_listed(void **state)
{
    const char *const dir = gs_test_path(*state, "drop");

    assert_int_equal(mkdir(dir, 0300), 0);
    gs_assert_ok(gs_file_write_atomic(gs_test_path(dir, "x"), "x", 1));
    gs_outfile__all_named = true;
    gs_assert_ok(gs_file_write_atomic(gs_test_path(dir, "y"), "y", 1));
    gs_outfile__all_named = false;
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(gs_test_entries(dir), 2);
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_outfile__appears_at_the_end),
        WITH_FOLDER(test_outfile__may_be_watched),
        WITH_FOLDER(test_outfile__touches_nothing_beside_it),
        WITH_FOLDER(test_outfile__two_at_once_do_not_mix),
        WITH_FOLDER(test_outfile__a_failed_write_changes_nothing),
        WITH_FOLDER(test_outfile__refuses_what_is_no_file),
        WITH_FOLDER(test_outfile__a_pipe_is_written_to_in_order),
        WITH_FOLDER(test_outfile__a_pipe_whose_reader_went_is_said),
        WITH_FOLDER(test_outfile__an_open_descriptor_is_appended_to),
        cmocka_unit_test(test_outfile__null_and_full_are_what_they_are),
        WITH_FOLDER(test_outfile__names_at_every_length),
        WITH_FOLDER(test_outfile__goes_to_a_folder_that_cannot_be_listed),
    };
    return cmocka_run_group_tests_name("outfile", tests, NULL, NULL);
}
