/* Of what does not come back, stderr is told where the pass stands; then the run ends with one line, and what the disk
 * may still write to stays. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "exec/exec_run.h"
#include "exec/lane.h"
#include "io/io_internal.h"
#include "support/support.h"
#include "tiny_run.h"

#ifdef __SANITIZE_ADDRESS__
/* A run that was given up keeps what a disk may still write to, for good. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

#define SMALL_HOST (420 * GS_KIB)
#define SMALL_DEVICE (100 * GS_KIB)

static struct tiny tiny;
static char said[1 << 16];

static bool withhold_writes(const gs_io_request *r) { return r->write; }
static bool withhold_reads(const gs_io_request *r) { return !r->write; }

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in:\n%s", part, text);
}

/* The first task that a lane begins takes so long. */
static double takes;
static int begun;
static void linger(const gs_exec *e, uint32_t task)
{
    (void)e;
    (void)task;
    if (__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED) == 0)
        gs_sleep(takes);
}

/* One pass with stderr in `said`. */
static gs_status run(gs_exec *e)
{
    const gs_exec_args args = {.loss_scale = 1};
    const int own = dup(STDERR_FILENO), words = memfd_create("words", 0);
    gs_exec_stats stats;

    assert_true(own >= 0 && words >= 0);
    dup2(words, STDERR_FILENO);
    const gs_status st = gs_exec_run(e, 0, &args, &stats);
    dup2(own, STDERR_FILENO);
    const ssize_t n = pread(words, said, sizeof(said) - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    close(own);
    close(words);
    return st;
}

static void gives_up(gs_io_backend io, bool (*withheld)(const gs_io_request *r), const char *what)
{
    gs_exec *e = NULL;

    tiny_make(&tiny);
    tiny.say_after = 0.05;
    tiny.end_after = 0.2;
    gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, io));
    gs_io__withheld = withheld;
    const double begin = gs_now();
    assert_int_equal(run(e), GS_EIO);
    assert_true(gs_now() - begin >= 0.2 && gs_now() - begin < 10);
    assert_true(gs_exec_gave_up(e));
    assert_contains(gs_last_error(), what);
    assert_contains(gs_last_error(), "has not come back for");
    assert_contains(said, "pass train, ");
    assert_contains(said, "  reads: ");
    assert_contains(said, "  device 0, computing: ");
    if (withheld == withhold_reads)
        assert_contains(said, ", which waits for task ");
    gs_exec_close(e);
    gs_io__withheld = NULL;
    gs_test_temp_remove(tiny.dir); /* the plan and the devices belong to the run for good */
    tiny.plan = NULL;
}

static void test_patience__ends_where_a_read_or_write_does_not_come_back(void **state)
{
    (void)state;
    gives_up(GS_IO_AUTO, withhold_reads, "read of");
    gives_up(GS_IO_THREADS, withhold_reads, "read of");
    gives_up(GS_IO_AUTO, withhold_writes, "write of");
}

/* A run on two devices whose copies are tasks, with a first task that takes so long. */
static gs_exec *lingering(double seconds)
{
    gs_exec *e = NULL;

    tiny_make(&tiny);
    tiny.copying = 2;
    tiny.say_after = 0.05;
    tiny.end_after = 0.2;
    gs_assert_ok(tiny_open(&e, &tiny, 64 * GS_MIB, 32 * GS_MIB, GS_IO_AUTO));
    takes = seconds;
    begun = 0;
    gs_exec__beginning = linger;
    return e;
}

static void test_patience__says_but_does_not_end_a_slow_computation(void **state)
{
    (void)state;
    gs_exec *const e = lingering(0.5);

    gs_assert_ok(run(e));
    gs_exec__beginning = NULL;
    assert_contains(said, "nothing has come back for");
    assert_contains(said, "1 under way, first task ");
    gs_assert_ok(run(e));
    assert_string_equal(said, "");
    gs_exec_close(e);
    tiny_drop(&tiny);
}

/* The last test: the thread of that lane never comes back. */
static void test_patience__ends_where_a_launch_does_not_come_back(void **state)
{
    (void)state;
    gs_exec *const e = lingering(1e6);

    e->defers = true;
    assert_int_equal(run(e), GS_EDEVICE);
    assert_contains(gs_last_error(), "has not come back for");
    gs_exec_close(e);
    gs_test_temp_remove(tiny.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patience__ends_where_a_read_or_write_does_not_come_back),
        cmocka_unit_test(test_patience__says_but_does_not_end_a_slow_computation),
        cmocka_unit_test(test_patience__ends_where_a_launch_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
