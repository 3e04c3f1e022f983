/* test_disk_probe.c - the instrument that measures a disk reads and writes what it says. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "io/disk_probe.h"
#include "io_fixture.h"

static uint32_t files_in_dir(void)
{
    uint32_t count = 0;
    DIR *d = opendir(fixture_dir);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static void open_probe(gs_disk_probe *p, uint64_t bytes)
{
    if (gs_disk_probe_open(p, fixture_dir, bytes, GS_IO_AUTO, 0, 0, 64 * GS_MIB) != GS_OK)
        fail_msg("%s", gs_last_error());
}

static void test_disk_probe__file_has_no_name(void **state)
{
    (void)state;
    const uint64_t live = gs_alloc_live_bytes();
    gs_disk_probe p;
    open_probe(&p, GS_MIB);
    assert_int_equal(files_in_dir(), 0);
    gs_disk_probe_close(&p);
    gs_disk_probe_close(&p); /* and is safe to close twice */
    assert_int_equal(gs_alloc_live_bytes(), live);
}

static void test_disk_probe__bad_places_are_named(void **state)
{
    (void)state;
    const uint64_t live = gs_alloc_live_bytes();
    gs_disk_probe p = {.sync_fd = -7};
    assert_int_equal(gs_disk_probe_open(&p, "no/such/folder", GS_MIB, GS_IO_AUTO, 0, 0, 64 * GS_MIB), GS_ENOTFOUND);
    fixture_expect_text("no/such/folder");
    assert_int_equal(gs_disk_probe_open(&p, fixture_dir, GS_MIB + 1, GS_IO_AUTO, 0, 0, 64 * GS_MIB), GS_EINVAL);
    assert_int_equal(gs_disk_probe_open(&p, fixture_dir, 0, GS_IO_AUTO, 0, 0, 64 * GS_MIB), GS_EINVAL);
    assert_int_equal(gs_disk_probe_open(&p, fixture_dir, 1ull << 60, GS_IO_AUTO, 0, 0, 64 * GS_MIB), GS_EIO);
    fixture_expect_text("disk full");
    assert_int_equal(p.sync_fd, -7); /* untouched */
    assert_int_equal(files_in_dir(), 0);
    assert_int_equal(gs_alloc_live_bytes(), live);
}

/* Where pieces go, seen from the fault hook. */
typedef struct trace {
    uint64_t bytes[2];            /* read, written */
    uint8_t blocks[2][4096];      /* how often each 4 KiB block was */
    uint64_t end;
} trace;

static int note_piece(void *context, const gs_io_request *piece, uint64_t *length)
{
    trace *t = context;
    (void)length;
    assert_true(piece->offset + piece->length <= t->end);
    t->bytes[piece->write] += piece->length;
    for (uint64_t i = 0; i < piece->length / 4096; i++) {
        uint8_t *const n = &t->blocks[piece->write][piece->offset / 4096 + i];
        *n = (uint8_t)GS_MIN(*n + 1, 255);
    }
    return 0;
}

static void test_disk_probe__writes_and_checks_every_block_once(void **state)
{
    (void)state;
    const uint64_t bytes = 9 * GS_MIB + 3 * 4096; /* no multiple of a request */
    trace *t = calloc(1, sizeof(*t));
    gs_disk_probe p;
    double bps = 0;
    t->end = bytes;
    open_probe(&p, bytes);
    gs_io_set_fault(p.io, note_piece, t);
    assert_int_equal(gs_disk_probe_write(&p, &bps), GS_OK);
    assert_true(bps > 0);
    assert_int_equal(gs_disk_probe_check(&p), GS_OK);
    assert_int_equal(t->bytes[0], bytes);
    assert_int_equal(t->bytes[1], bytes);
    for (uint64_t i = 0; i < bytes / 4096; i++) {
        assert_int_equal(t->blocks[0][i], 1);
        assert_int_equal(t->blocks[1][i], 1);
    }
    gs_disk_probe_close(&p);
    free(t);
}

static void test_disk_probe__damage_is_found(void **state)
{
    (void)state;
    gs_io_completion done;
    gs_disk_probe p;
    double bps;
    open_probe(&p, 5 * GS_MIB);
    assert_int_equal(gs_disk_probe_write(&p, &bps), GS_OK);
    memset(p.ring, 0, 4096);
    assert_int_equal(gs_io_submit(p.io, &(gs_io_request){.file = p.file, .write = true, .offset = 4 * GS_MIB + 8192,
                                                         .length = 4096, .memory = p.ring}), GS_OK);
    assert_int_equal(gs_io_reap(p.io, &done, 1, true), 1);
    assert_int_equal(gs_disk_probe_check(&p), GS_EIO);
    fixture_expect_text("4202496"); /* 4 MiB + 8 KiB */
    gs_disk_probe_close(&p);
}

static int always_broken(void *context, const gs_io_request *piece, uint64_t *length)
{
    (void)context;
    (void)piece;
    (void)length;
    return 5; /* EIO */
}

static void test_disk_probe__failing_disk_is_reported(void **state)
{
    (void)state;
    gs_disk_probe p;
    double bps = -1;
    open_probe(&p, 5 * GS_MIB);
    gs_io_set_fault(p.io, always_broken, NULL);
    assert_int_equal(gs_disk_probe_write(&p, &bps), GS_EIO);
    assert_int_equal(gs_disk_probe_check(&p), GS_EIO);
    assert_int_equal(gs_disk_probe_read(&p, true, 4096, 0.1, &bps), GS_EIO);
    assert_true(bps < 0);
    assert_int_equal(gs_io_outstanding(p.io), 0);
    gs_disk_probe_close(&p);
}

/* Random places spread over the file, and the rate is that of the bytes moved. */
static void test_disk_probe__rate_is_bytes_over_time(void **state)
{
    (void)state;
    const uint64_t bytes = 4 * GS_MIB, runs[] = {4096, 65536, GS_MIB};
    gs_disk_probe p;
    double bps;
    open_probe(&p, bytes);
    assert_int_equal(gs_disk_probe_write(&p, &bps), GS_OK);
    for (size_t i = 0; i < GS_ARRAY_LEN(runs); i++)
        for (int random = 0; random < 2; random++) {
            gs_io_counters before, after;
            trace *t = calloc(1, sizeof(*t));
            t->end = bytes;
            gs_io_set_fault(p.io, note_piece, t);
            gs_io_get_counters(p.io, &before);
            const double start = gs_now();
            assert_int_equal(gs_disk_probe_read(&p, random, runs[i], 0.2, &bps), GS_OK);
            const double seconds = gs_now() - start;
            gs_io_get_counters(p.io, &after);
            const double mean = (double)(after.read_bytes - before.read_bytes) / seconds;
            /* The disk is shared; a wrong unit or count would be off by far more. */
            if (!(seconds > 0.15 && bps > mean / 10 && bps < mean * 10))
                fail_msg("%.0f bytes a second, but %.0f on average of %.2f s", bps, mean, seconds);
            uint32_t seen = 0;
            for (uint64_t k = 0; k < bytes / 4096; k++)
                seen += t->blocks[0][k] > 0;
            /* After 4 files' worth some places out of many, or out of four, may still be missing. */
            const uint32_t enough = runs[i] < GS_MIB ? 800 : 512;
            assert_in_range(seen, t->bytes[0] > 4 * bytes ? enough : 1, 1024);
            free(t);
        }
    gs_disk_probe_close(&p);
}

/* A file smaller than a request. */
static void test_disk_probe__small_file_is_read_whole(void **state)
{
    (void)state;
    gs_disk_probe p;
    double bps;
    open_probe(&p, 8192);
    assert_int_equal(gs_disk_probe_write(&p, &bps), GS_OK);
    assert_int_equal(gs_disk_probe_check(&p), GS_OK);
    assert_int_equal(gs_disk_probe_read(&p, false, 0, 0.05, &bps), GS_OK);
    assert_int_equal(gs_disk_probe_read(&p, true, GS_MIB, 0.05, &bps), GS_OK);
    gs_disk_probe_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disk_probe__file_has_no_name),
        cmocka_unit_test(test_disk_probe__bad_places_are_named),
        cmocka_unit_test(test_disk_probe__writes_and_checks_every_block_once),
        cmocka_unit_test(test_disk_probe__damage_is_found),
        cmocka_unit_test(test_disk_probe__failing_disk_is_reported),
        cmocka_unit_test(test_disk_probe__rate_is_bytes_over_time),
        cmocka_unit_test(test_disk_probe__small_file_is_read_whole),
    };
    return cmocka_run_group_tests_name("io/disk_probe", tests, fixture_dir_make, fixture_dir_remove);
}
