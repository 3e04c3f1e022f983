/* What is left of memory and processors, on pictures of /proc and of cgroups
 * as kernels and containers show them. */
#include "support/support.h"

#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/size.h"

/* Writes `text` to "dir/name", making the folders on the way. */
static void put(const char *dir, const char *name, const char *text)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        gs_assert_ok(gs_mkdir(path));
    }
    gs_test_write_file(path, text, strlen(text));
}

/* A mount of `type` with `root` shown at dir/`point`. */
static void put_mount(const char *dir, const char *root, const char *point, const char *type, const char *options)
{
    char text[4096];

    snprintf(text, sizeof(text),
             "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
             "a damaged line\n"
             "35 31 0:32 %s %s/%s rw,relatime shared:9 - %s cgroup %s\n",
             root, dir, point, type, options);
    put(dir, "self/mountinfo", text);
}

static void put_meminfo(const char *dir, unsigned mib)
{
    char text[200];
    snprintf(text, sizeof(text), "MemTotal:  99999999 kB\nMemFree:  1 kB\nMemAvailable:   %u kB\n", mib * 1024);
    put(dir, "meminfo", text);
}

static void test_machine__without_cgroups_memory_is_what_is_available(void **state)
{
    put_meminfo(*state, 100);
    assert_int_equal(gs_machine__free_memory(*state), 100 * GS_MIB);
}

static void test_machine__v2_takes_the_tightest_ancestor(void **state)
{
    put_meminfo(*state, 1000);
    put_mount(*state, "/", "cg", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/outer/inner\n");
    put(*state, "cg/outer/inner/memory.max", "max\n");
    put(*state, "cg/outer/inner/memory.current", "1048576\n");
    assert_int_equal(gs_machine__free_memory(*state), 1000 * GS_MIB);

    put(*state, "cg/outer/memory.max", "314572800\n"); /* 300 MiB */
    put(*state, "cg/outer/memory.current", "104857600\n");
    assert_int_equal(gs_machine__free_memory(*state), 200 * GS_MIB);

    put(*state, "cg/outer/inner/memory.max", "52428800\n"); /* 50 MiB, 1 used */
    assert_int_equal(gs_machine__free_memory(*state), 49 * GS_MIB);

    put(*state, "cg/outer/inner/memory.high", "10485760\n"); /* throttles at 10 MiB */
    assert_int_equal(gs_machine__free_memory(*state), 9 * GS_MIB);
}

static void test_machine__file_cache_counts_as_free(void **state)
{
    put_meminfo(*state, 1000);
    put_mount(*state, "/", "cg", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/job\n");
    put(*state, "cg/job/memory.max", "104857600\n");
    put(*state, "cg/job/memory.current", "94371840\n");      /* 90 MiB, of which */
    put(*state, "cg/job/memory.stat",
        "anon 1\ninactive_anon 7\nactive_anon 7\n"
        "inactive_file 52428800\nactive_file 20971520\n");   /* 70 are file cache */
    assert_int_equal(gs_machine__free_memory(*state), 80 * GS_MIB);

    put(*state, "cg/job/memory.stat", "inactive_file 99999999999\n"); /* more than there is */
    assert_int_equal(gs_machine__free_memory(*state), 100 * GS_MIB);
}

static void test_machine__v1_reads_its_own_files(void **state)
{
    put_meminfo(*state, 1000);
    put_mount(*state, "/", "memory", "cgroup", "rw,memory");
    put(*state, "self/cgroup", "9:name=systemd:/x\n5:cpuset:/y\n4:cpu,memory:/job\n0::/z\n");
    put(*state, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(*state, "memory/memory.usage_in_bytes", "999999999999\n");
    assert_int_equal(gs_machine__free_memory(*state), 1000 * GS_MIB);

    put(*state, "memory/job/memory.limit_in_bytes", "209715200\n"); /* 200 MiB */
    put(*state, "memory/job/memory.usage_in_bytes", "104857600\n");
    put(*state, "memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 20971520\ntotal_active_file 0\n");
    assert_int_equal(gs_machine__free_memory(*state), 120 * GS_MIB);

    /* a limit above what the mount shows */
    put(*state, "memory/job/memory.stat", "hierarchical_memory_limit 115343360\ntotal_inactive_file 20971520\n");
    assert_int_equal(gs_machine__free_memory(*state), 30 * GS_MIB);
}

static void test_machine__container_sees_its_group_at_the_mount(void **state)
{
    put_meminfo(*state, 1000);
    put(*state, "cg/memory.max", "67108864\n");
    put(*state, "cg/memory.current", "33554432\n");

    put_mount(*state, "/docker/abc", "cg", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/docker/abc\n");
    assert_int_equal(gs_machine__free_memory(*state), 32 * GS_MIB);

    put(*state, "self/cgroup", "0::/docker/abc/sub\n");
    put(*state, "cg/sub/memory.max", "1048576\n");
    put(*state, "cg/sub/memory.current", "0\n");
    assert_int_equal(gs_machine__free_memory(*state), 1 * GS_MIB);

    put(*state, "self/cgroup", "0::/docker/abcd\n"); /* not below the root: only begins like it */
    assert_int_equal(gs_machine__free_memory(*state), 32 * GS_MIB);

    put(*state, "self/cgroup", "0::/../../elsewhere\n");
    put_mount(*state, "/", "cg", "cgroup2", "rw");
    assert_int_equal(gs_machine__free_memory(*state), 1000 * GS_MIB); /* not to be followed out of the mount */
}

static void test_machine__mount_points_with_blanks(void **state)
{
    put_meminfo(*state, 1000);
    put_mount(*state, "/", "a\\040b", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/\n");
    put(*state, "a b/memory.max", "67108864\n");
    put(*state, "a b/memory.current", "0\n");
    assert_int_equal(gs_machine__free_memory(*state), 64 * GS_MIB);
}

static void test_machine__memory_is_never_zero(void **state)
{
    put_meminfo(*state, 0);
    assert_int_equal(gs_machine__free_memory(*state), 4096);
    put_mount(*state, "/", "cg", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/\n");
    put(*state, "cg/memory.max", "1000\n");
    put(*state, "cg/memory.current", "5000\n"); /* over its limit */
    assert_int_equal(gs_machine__free_memory(*state), 4096);
    assert_true(gs_machine__free_memory(gs_test_path(*state, "nothing-here")) >= 4096);
}

static void test_machine__quota_limits_processors(void **state)
{
    assert_int_equal(gs_machine__quota_cpus(*state, 16), 16);

    put_mount(*state, "/", "cg", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/a/b\n");
    put(*state, "cg/a/cpu.max", "max 100000\n");
    assert_int_equal(gs_machine__quota_cpus(*state, 16), 16);
    put(*state, "cg/a/cpu.max", "250000 100000\n"); /* 2.5 */
    assert_int_equal(gs_machine__quota_cpus(*state, 16), 3);
    assert_int_equal(gs_machine__quota_cpus(*state, 2), 2);
    put(*state, "cg/a/b/cpu.max", "50000 100000\n");
    assert_int_equal(gs_machine__quota_cpus(*state, 16), 1);

    put_mount(*state, "/", "cpu", "cgroup", "rw,cpuacct,cpu");
    put(*state, "self/cgroup", "3:cpuacct,cpu:/job\n");
    put(*state, "cpu/job/cpu.cfs_period_us", "100000\n");
    put(*state, "cpu/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(gs_machine__quota_cpus(*state, 16), 16);
    put(*state, "cpu/job/cpu.cfs_quota_us", "400000\n");
    assert_int_equal(gs_machine__quota_cpus(*state, 16), 4);
}

static void test_machine__real_numbers_are_plausible(void **state)
{
    cpu_set_t set;

    (void)state;
    assert_true(gs_machine_free_memory() > 16 * GS_MIB);
    assert_true(gs_process_resident_bytes() > 100 * GS_KIB);
    assert_true(gs_process_peak_bytes() >= gs_process_resident_bytes() / 2);
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    assert_in_range(gs_machine_cpus(), 1, CPU_COUNT(&set));

    /* affinity counts: on one processor there is one */
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(gs_machine_cpus(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void test_machine__keeps_no_memory(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();

    put_meminfo(*state, 1000);
    put_mount(*state, "/", "cg", "cgroup2", "rw");
    put(*state, "self/cgroup", "0::/job\n");
    put(*state, "cg/job/memory.max", "104857600\n");
    gs_machine__free_memory(*state);
    gs_machine_free_memory();
    gs_machine_cpus();
    assert_int_equal(gs_alloc_live_bytes(), before);

    /* the figures an epoch asks for allocate nothing */
    gs_alloc_freeze(true);
    const uint64_t violations = gs_alloc_frozen_count();
    gs_process_resident_bytes();
    gs_process_peak_bytes();
    gs_alloc_freeze(false);
    assert_int_equal(gs_alloc_frozen_count(), violations);
}

/* The runtime of C++ is loaded for oneDNN: its code is touched, given back, and used again. */
static void test_machine__idle_code_is_given_back_and_comes_again(void **state)
{
    char *(*demangle)(const char *, char *, size_t *, int *);
    int status = -1;

    (void)state;
    void *const library = dlopen("libstdc++.so.6", RTLD_NOW);
    assert_non_null(library);
    *(void **)&demangle = dlsym(library, "__cxa_demangle");
    assert_non_null(demangle);
    const uint64_t resident = gs_process_resident_bytes();
    gs_process_drop_idle_code();
    assert_true(gs_process_resident_bytes() + 256 * GS_KIB < resident);
    char *const name = demangle("_ZN3foo3barEi", NULL, NULL, &status);
    assert_int_equal(status, 0);
    assert_string_equal(name, "foo::bar(int)");
    free(name);
    dlclose(library);
}

/* By hand: of 10 seconds of processors 2 were idle and 5 this process's. */
static void test_machine__others_have_what_is_neither_idle_nor_own(void **state)
{
    (void)state;
    const gs_machine_load from = {100, 40, 3}, to = {110, 42, 8}, soon = {100.25, 40, 3}, unknown = {0, 0, 3};
    const gs_machine_load late = {110, 42, 20};
    assert_true(fabs(gs_machine_others(&from, &to) - 0.3) < 1e-12);
    assert_true(gs_machine_others(&from, &soon) == 0);    /* too short to tell */
    assert_true(gs_machine_others(&unknown, &to) == 0);
    assert_true(gs_machine_others(&from, &late) == 0);    /* own time is counted finer than all */
}

/* A child that does nothing but count is another one's work. */
static void test_machine__load_of_another_process_is_seen(void **state)
{
    (void)state;
    gs_machine_load from, to;
    gs_machine_load_now(&from);
    if (from.all == 0)
        skip();
    const pid_t child = fork();
    for (volatile uint64_t n = 0; child == 0; n++) /* until it is ended */
        ;
    const double began = gs_now();
    do {
        usleep(10000);
        gs_machine_load_now(&to);
    } while (gs_machine_others(&from, &to) == 0 && gs_now() < began + 20);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(gs_machine_others(&from, &to) > 0);
    assert_true(to.all - from.all <= 1.5 * (gs_now() - began + 0.1) * (double)sysconf(_SC_NPROCESSORS_CONF));
}

static double processor_seconds_of_check(unsigned threads)
{
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    gs_assert_ok(gs_threads_check(threads));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    return (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Threads that were had are not started once more; more of them are. */
static void test_machine__threads_are_tried_once(void **state)
{
    (void)state;
    const double first = processor_seconds_of_check(100), again = processor_seconds_of_check(100);
    const double fewer = processor_seconds_of_check(99), more = processor_seconds_of_check(200);
    assert_true(again < first / 8 && fewer < first / 8);
    assert_true(more > 8 * again);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_machine__without_cgroups_memory_is_what_is_available),
        WITH_FOLDER(test_machine__v2_takes_the_tightest_ancestor),
        WITH_FOLDER(test_machine__file_cache_counts_as_free),
        WITH_FOLDER(test_machine__v1_reads_its_own_files),
        WITH_FOLDER(test_machine__container_sees_its_group_at_the_mount),
        WITH_FOLDER(test_machine__mount_points_with_blanks),
        WITH_FOLDER(test_machine__memory_is_never_zero),
        WITH_FOLDER(test_machine__quota_limits_processors),
        cmocka_unit_test(test_machine__real_numbers_are_plausible),
        cmocka_unit_test(test_machine__idle_code_is_given_back_and_comes_again),
        cmocka_unit_test(test_machine__others_have_what_is_neither_idle_nor_own),
        cmocka_unit_test(test_machine__threads_are_tried_once),
        cmocka_unit_test(test_machine__load_of_another_process_is_seen),
        WITH_FOLDER(test_machine__keeps_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
