/* What a run computes does not depend on the memory it has; what is damaged on
 * disk is named; nothing is allocated while a pass runs. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "exec/exec_run.h"
#include "support/support.h"
#include "tiny_run.h"

#define SMALL_HOST (420 * GS_KIB)
#define SMALL_DEVICE (100 * GS_KIB)

static struct tiny tiny;

static gs_status run(gs_exec *e, gs_exec_stats *stats)
{
    const gs_exec_args args = {.loss_scale = 1};
    return gs_exec_run(e, 0, &args, stats);
}

/* Read in one go, or in two. */
static void expect_result(gs_exec *e, uint32_t first)
{
    static float got[TINY_ROWS * TINY_WIDTH];
    memset(got, 0, sizeof(got));
    gs_assert_ok(gs_exec_read_rows(e, TINY_OUT, 0, first, got));
    if (first < TINY_ROWS)
        gs_assert_ok(gs_exec_read_rows(e, TINY_OUT, first, TINY_ROWS - first, got + first * TINY_WIDTH));
    assert_memory_equal(got, tiny.want, sizeof(got));
}

static void check_result(uint64_t host, uint64_t device, gs_io_backend io)
{
    gs_exec *e = NULL;
    gs_exec_stats stats;
    gs_assert_ok(tiny_open(&e, &tiny, host, device, io));
    for (int epoch = 0; epoch < 3; epoch++) {
        const uint64_t before = gs_alloc_frozen_count();
        gs_assert_ok(run(e, &stats));
        assert_int_equal(gs_alloc_frozen_count(), before);
        assert_int_equal(stats.read_bytes, tiny.plan->pass[0].read_bytes);
        assert_int_equal(stats.written_bytes, tiny.plan->pass[0].written_bytes);
        expect_result(e, 1700);
    }
    gs_exec_close(e);
}

static void test_run__same_result_in_any_memory(void **state)
{
    (void)state;
    tiny_make(&tiny);
    check_result(64 * GS_MIB, 32 * GS_MIB, GS_IO_AUTO);
    assert_int_equal(tiny.plan->pass[0].read_bytes, 0);
    check_result(SMALL_HOST, SMALL_DEVICE, GS_IO_AUTO);
    assert_true(tiny.plan->pass[0].written_bytes > 0);
    check_result(SMALL_HOST, SMALL_DEVICE, GS_IO_THREADS);
    tiny_drop(&tiny);
}

/* The ring may be shorter than the rows of an interval, and the first row asked for may begin within a block. */
static void test_run__rows_come_through_a_ring_shorter_than_they_are(void **state)
{
    gs_exec *e = NULL;
    gs_exec_stats stats;
    (void)state;
    tiny_make(&tiny);
    gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, GS_IO_AUTO));
    gs_assert_ok(run(e, &stats));
    assert_true(tiny.plan->spill.bytes[TINY_OUT] > 0);
    const uint64_t ring = e->region_bytes[GS_REGION_RING];
    memset(e->region[GS_REGION_RING], 0xff, ring); /* nothing of the run is right there by chance */
    e->region_bytes[GS_REGION_RING] = 2 * GS_BLOCK_BYTES;
    expect_result(e, TINY_ROWS - 300); /* the last interval is on disk: row 700 of it begins within a block */
    e->region_bytes[GS_REGION_RING] = ring;
    gs_exec_close(e);
    tiny_drop(&tiny);
}

static uint64_t writes_of(const gs_plan *p)
{
    uint64_t writes = 0;
    for (uint32_t i = 0; i < p->pass[0].tasks; i++)
        writes += gs_task_writes(&p->task[p->pass[0].first_task + i]);
    return writes;
}

/* Runs that know of each other give what runs alone do, read as much, and can be followed by something else. */
static void test_run__reads_ahead_of_the_next_one(void **state)
{
    (void)state;
    const gs_io_backend io[] = {GS_IO_AUTO, GS_IO_THREADS};
    tiny_make(&tiny);
    for (uint32_t k = 0; k < 2; k++) {
        gs_exec *e = NULL;
        gs_exec_stats stats;
        gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, io[k]));
        assert_true(tiny.plan->pass[0].aheads > 0);
        for (int epoch = 0; epoch < 12; epoch++) {
            const gs_exec_args args = {.loss_scale = 1, .again = epoch % 4 != 3};
            const uint64_t before = gs_alloc_frozen_count();
            gs_assert_ok(gs_exec_run(e, 0, &args, &stats));
            assert_int_equal(gs_alloc_frozen_count(), before);
            assert_int_equal(stats.read_bytes, tiny.plan->pass[0].read_bytes);
            assert_int_equal(stats.requests, tiny.plan->pass[0].read_requests + writes_of(tiny.plan));
            if (args.again && epoch < 10) /* rows are read by way of the ring, so what came ahead of its run is lost */
                continue;
            expect_result(e, TINY_ROWS);
        }
        gs_exec_close(e);
    }
    tiny_drop(&tiny);
}

static gs_exec *open_copying(uint32_t devices)
{
    gs_exec *e = NULL;
    tiny_make(&tiny);
    tiny.copying = devices;
    gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, GS_IO_AUTO));
    return e;
}

/* The same with copies as tasks: each lane of a device has a thread, also where the device is the only one. */
static void test_run__same_result_with_copies_as_tasks(void **state)
{
    (void)state;
    for (uint32_t devices = 1; devices <= TINY_DEVICES; devices++) {
        gs_exec_stats stats;
        gs_exec *const e = open_copying(devices);
        const gs_plan_pass *const pass = &tiny.plan->pass[0];
        assert_int_equal(tiny.plan->devices, devices);
        assert_true(pass->upload_bytes > 0 && pass->download_bytes > 0 && pass->read_bytes > 0);
        for (int epoch = 0; epoch < 3; epoch++) {
            gs_assert_ok(run(e, &stats));
            assert_int_equal(stats.read_bytes, pass->read_bytes);
            assert_int_equal(stats.copied_in_bytes, pass->upload_bytes);
            assert_int_equal(stats.forwarded_bytes, pass->forward_bytes);
            assert_int_equal(stats.copied_out_bytes, pass->download_bytes);
            assert_null(gs_lanes_fault(&e->lanes));
            expect_result(e, TINY_ROWS);
        }
        gs_exec_close(e);
        tiny_drop(&tiny);
    }
}

static void test_run__threads_of_lanes_read_ahead_too(void **state)
{
    (void)state;
    for (uint32_t devices = 1; devices <= TINY_DEVICES; devices++) {
        gs_exec_stats stats;
        gs_exec *const e = open_copying(devices);
        assert_true(tiny.plan->pass[0].aheads > 0);
        for (int epoch = 0; epoch < 6; epoch++) {
            const gs_exec_args args = {.loss_scale = 1, .again = epoch % 3 != 2};
            gs_assert_ok(gs_exec_run(e, 0, &args, &stats));
            assert_int_equal(stats.read_bytes, tiny.plan->pass[0].read_bytes);
            assert_int_equal(e->lanes.ahead > 0, args.again);
            if (args.again)
                continue;
            expect_result(e, TINY_ROWS);
        }
        gs_exec_close(e);
        tiny_drop(&tiny);
    }
}

/* A throttled wire is free when the pass begins, however late its thread is, which computing ones may hold up. */
static void test_run__wires_begin_with_the_pass(void **state)
{
    (void)state;
    gs_exec *e = NULL;
    gs_exec_stats stats;
    uint32_t task = 0;
    tiny_make(&tiny);
    tiny.copying = 1;
    gs_assert_ok(tiny_open(&e, &tiny, 64 * GS_MIB, SMALL_DEVICE, GS_IO_AUTO));
    e->wires.topology.at[0].host_bps = 1e9;
    gs_assert_ok(run(e, &stats)); /* in which what stays in memory comes */
    gs_assert_ok(run(e, &stats));
    while (tiny.plan->task[task].kind != GS_TASK_MOVE || tiny.plan->task[task].source.memory != GS_HOST)
        task++;
    assert_int_equal(tiny.plan->task[task].deps, 0);
    assert_true(e->span[task][0] == stats.entered);
    gs_exec_close(e);
    tiny_drop(&tiny);
}

static uint32_t sleeps;

int __real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    __atomic_fetch_add(&sleeps, 1, __ATOMIC_RELAXED);
    return __real_clock_nanosleep(clock, flags, until, left);
}

static uint32_t sleeps_of_run(gs_exec *e)
{
    gs_exec_stats stats;
    sleeps = 0;
    gs_assert_ok(run(e, &stats));
    return sleeps;
}

/* A device that pretends to be slow keeps its processor while it waits: behind a sleep, computations take longer. A
 * wire that pretends to be does sleep, by which is seen that sleeps are. */
static void test_run__a_slow_device_does_not_sleep(void **state)
{
    (void)state;
    gs_exec *e = NULL;
    tiny_make(&tiny);
    tiny.copying = 1;
    gs_assert_ok(tiny_open(&e, &tiny, 64 * GS_MIB, SMALL_DEVICE, GS_IO_AUTO));
    e->wires.topology.at[0].host_bps = 1e7;
    assert_true(sleeps_of_run(e) > 0);
    e->wires.topology.at[0].host_bps = 0;
    e->wires.topology.speed[0] = 0.02;
    assert_int_equal(sleeps_of_run(e), 0);
    expect_result(e, TINY_ROWS);
    gs_exec_close(e);
    tiny_drop(&tiny);
}

static void flip(const char *path, uint64_t at)
{
    uint8_t b;
    const int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &b, 1, (off_t)at), 1);
    b ^= 0x10;
    assert_int_equal(pwrite(fd, &b, 1, (off_t)at), 1);
    close(fd);
}

/* Streamed and resident data are checked alike: the run fails on opening or in its first pass. */
static void expect_damage(uint64_t host, uint64_t device, const char *text)
{
    gs_exec *e = NULL;
    gs_exec_stats stats;
    gs_status st = tiny_open(&e, &tiny, host, device, GS_IO_AUTO);
    if (st == GS_OK)
        st = run(e, &stats);
    assert_int_equal(st, GS_EFORMAT);
    if (strstr(gs_last_error(), text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, gs_last_error());
    gs_exec_close(e);
}

static void expect_damage_everywhere(const char *text)
{
    expect_damage(64 * GS_MIB, 32 * GS_MIB, text);
    expect_damage(SMALL_HOST, SMALL_DEVICE, text);
}

/* The same bytes, nothing else, and nothing that is under way or allocated is left. */
static void test_replay__moves_what_a_run_moves(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its transfers come over one another by intent: nobody looks at what they moved */
#endif
    const gs_io_backend io[] = {GS_IO_AUTO, GS_IO_THREADS};
    tiny_make(&tiny);
    for (uint32_t k = 0; k < 2; k++) {
        gs_exec *e = NULL;
        gs_exec_stats stats;
        gs_io_counters before, after;
        gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, io[k]));
        /* reads of a next run are under way when it begins */
        const gs_exec_args args = {.loss_scale = 1, .again = true};
        gs_assert_ok(gs_exec_run(e, 0, &args, &stats));
        for (int time = 0; time < 2; time++) {
            double seconds = -1;
            while (gs_io_outstanding(e->files.io) > 0)
                gs_exec__forget_ahead(e);
            gs_io_get_counters(e->files.io, &before);
            gs_assert_ok(gs_exec_replay(e, 0, NULL, &seconds));
            gs_io_get_counters(e->files.io, &after);
            assert_true(seconds > 0);
            assert_int_equal(after.read_bytes - before.read_bytes, stats.read_bytes);
            assert_int_equal(after.written_bytes - before.written_bytes, stats.written_bytes);
            assert_int_equal(gs_io_outstanding(e->files.io), 0);
        }
        gs_exec_close(e);
    }
    tiny_drop(&tiny);
}

static void test_replay__stops_and_names_a_short_file(void **state)
{
    (void)state;
    gs_exec *e = NULL;
    gs_exec_stats stats;
    double seconds = -1;
    tiny_make(&tiny);
    gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, GS_IO_AUTO));
    gs_assert_ok(run(e, &stats));
    const volatile int stop = 1;
    assert_int_equal(gs_exec_replay(e, 0, &stop, &seconds), GS_EINTERRUPTED);
    assert_int_equal(gs_io_outstanding(e->files.io), 0);
    assert_int_equal(truncate(tiny.path[TINY_FEATURES], GS_BLOCK_BYTES), 0);
    assert_int_equal(gs_exec_replay(e, 0, NULL, &seconds), GS_EFORMAT);
    assert_non_null(strstr(gs_last_error(), tiny.path[TINY_FEATURES]));
    assert_non_null(strstr(gs_last_error(), "file ends inside a read of ")); /* as in a run: how much, and where */
    assert_true(seconds < 0);
    gs_exec_close(e);
    tiny_drop(&tiny);
}

static void test_run__names_flipped_bytes(void **state)
{
    (void)state;
    tiny_make(&tiny);
    flip(tiny.path[TINY_FEATURES], 70001);
    expect_damage_everywhere("features.bin: bytes 65536 to 96000 do not match");
    tiny_drop(&tiny);
    tiny_make(&tiny);
    flip(tiny.path[TINY_ARRAYS], tiny.chunk[0][TINY_PARTS + 2].offset + 777);
    expect_damage_everywhere("dest.bin: chunk (1, 2) does not match");
    tiny_drop(&tiny);
    tiny_make(&tiny);
    flip(tiny.path[TINY_ARRAYS + 1], tiny.chunk[1][3].offset + 40);
    expect_damage_everywhere("source.bin: chunk (1, 0) does not match");
    tiny_drop(&tiny);
}

static void test_run__refuses_forged_indices(void **state)
{
    (void)state;
    tiny_make(&tiny);
    tiny_forge_index(&tiny, 1, 1);
    expect_damage_everywhere("dest.bin: chunk (1, 1)");
    tiny_drop(&tiny);
}

/* The chunk table may say which degree is the largest. A device cuts hubs by it, so it is looked at beforehand. */
static void test_run__refuses_a_false_largest_degree(void **state)
{
    (void)state;
    tiny_make(&tiny);
    tiny.exec_chunk[0][TINY_PARTS + 1].largest++;
    expect_damage_everywhere("dest.bin: chunk (1, 1): its largest target has ");
    tiny_drop(&tiny);
}

static void test_run__names_a_short_file(void **state)
{
    (void)state;
    tiny_make(&tiny);
    assert_int_equal(truncate(tiny.path[TINY_FEATURES], 65536), 0);
    expect_damage_everywhere("features.bin");
    tiny_drop(&tiny);
}

static void test_run__stops_when_asked(void **state)
{
    (void)state;
    gs_exec *e = NULL;
    gs_exec_stats stats;
    const volatile int stop = 1;
    const gs_exec_args args = {.loss_scale = 1, .stop = &stop};
    tiny_make(&tiny);
    gs_assert_ok(tiny_open(&e, &tiny, SMALL_HOST, SMALL_DEVICE, GS_IO_AUTO));
    assert_int_equal(gs_exec_run(e, 0, &args, &stats), GS_EINTERRUPTED);
    gs_assert_ok(run(e, &stats)); /* and can go on afterwards */
    gs_exec_close(e);
    tiny_drop(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run__same_result_in_any_memory),
        cmocka_unit_test(test_run__rows_come_through_a_ring_shorter_than_they_are),
        cmocka_unit_test(test_run__reads_ahead_of_the_next_one),
        cmocka_unit_test(test_run__same_result_with_copies_as_tasks),
        cmocka_unit_test(test_run__threads_of_lanes_read_ahead_too),
        cmocka_unit_test(test_run__wires_begin_with_the_pass),
        cmocka_unit_test(test_run__a_slow_device_does_not_sleep),
        cmocka_unit_test(test_replay__moves_what_a_run_moves),
        cmocka_unit_test(test_replay__stops_and_names_a_short_file),
        cmocka_unit_test(test_run__names_flipped_bytes),
        cmocka_unit_test(test_run__refuses_forged_indices),
        cmocka_unit_test(test_run__refuses_a_false_largest_degree),
        cmocka_unit_test(test_run__names_a_short_file),
        cmocka_unit_test(test_run__stops_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
