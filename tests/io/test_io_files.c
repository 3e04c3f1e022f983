/* test_io_files.c - opening, sizing and refusing: what is wrong with a file or a
 * request is said before anything moves. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/size.h"
#include "io/io_internal.h"
#include "io_fixture.h"

static const fixture_case plain[] = {
    {.backend = GS_IO_THREADS, .name = "threads"},
    {.backend = GS_IO_AUTO, .name = "auto"},
};

static void test_io_files__missing_file_and_folder_are_named(void **state)
{
    uint32_t index = 77;
    fixture b;
    fixture_open(&b, *state, 1, 1, 0, 4096);
    assert_int_equal(gs_io_add_file(b.io, &index, "no/such/file", GS_IO_READ), GS_ENOTFOUND);
    fixture_expect_text("no/such/file");
    assert_int_equal(gs_io_add_file(b.io, &index, "no/such/file", GS_IO_CREATE), GS_ENOTFOUND);
    assert_int_equal(gs_io_add_file(b.io, &index, b.dir, GS_IO_READ), GS_EINVAL);
    fixture_expect_text(b.dir);
    assert_int_equal(index, 77);
    fixture_close(&b);
}

static void test_io_files__modes_do_what_they_say(void **state)
{
    gs_io_completion done;
    fixture b;
    fixture_open(&b, *state, 1, 1, 0, 2 * 4096);
    fixture_make_file(&b, "f", 2 * 4096, 1);

    const uint32_t reader = fixture_add(&b, "f", GS_IO_READ);
    gs_io_request r = {.file = reader, .write = true, .length = 4096, .memory = b.memory};
    assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    fixture_expect_text("reading only");
    fixture_expect_text(b.path);
    assert_int_equal(gs_io_set_size(b.io, reader, 4096), GS_EINVAL);
    fixture_expect_text("reading only");

    r.file = fixture_add(&b, "f", GS_IO_WRITE); /* keeps what is there */
    fixture_fill(b.memory, 4096, 4096, 1);
    r.offset = 4096;
    assert_int_equal(gs_io_submit(b.io, &r), GS_OK);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
    fixture_expect_file(&b, 2 * 4096, 1);

    fixture_add(&b, "f", GS_IO_CREATE); /* empties it */
    fixture_expect_file(&b, 0, 1);
    fixture_close(&b);
}

static void test_io_files__bad_requests_are_refused(void **state)
{
    fixture b;
    fixture_open(&b, *state, 2, 1, 0, 4 * 4096);
    fixture_make_file(&b, "f", 4 * 4096, 1);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    const gs_io_request good = {.file = file, .length = 4096, .memory = b.memory};
    gs_io_request r;

    r = good, r.length = 0;
    assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    r = good, r.memory = NULL;
    assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    r = good, r.offset = UINT64_MAX - 4095;
    assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    r = good, r.offset = 1ull << 63;
    assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    r = good, r.file = file + 1;
    assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    if (gs_io_is_direct(b.io, file)) {
        r = good, r.offset = 512;
        assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
        fixture_expect_text("not aligned");
        fixture_expect_text(b.path);
        r = good, r.length = 4097;
        assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
        r = good, r.memory = b.memory + 8;
        assert_int_equal(gs_io_submit(b.io, &r), GS_EINVAL);
    }
    assert_int_equal(gs_io_outstanding(b.io), 0);
    fixture_submit(&b, &good);
    fixture_drain(&b);
    fixture_close(&b);
}

static void test_io_files__set_size_reserves_and_cuts(void **state)
{
    struct stat info;
    fixture b;
    fixture_open(&b, *state, 1, 1, 0, 4096);
    const uint32_t file = fixture_add(&b, "f", GS_IO_CREATE);
    assert_int_equal(gs_io_set_size(b.io, file, 3 * GS_MIB), GS_OK);
    assert_int_equal(stat(b.path, &info), 0);
    assert_int_equal(info.st_size, 3 * GS_MIB);
    assert_true((uint64_t)info.st_blocks * 512 >= 3 * GS_MIB); /* not a sparse file */
    assert_int_equal(gs_io_set_size(b.io, file, 8192), GS_OK);
    assert_int_equal(stat(b.path, &info), 0);
    assert_int_equal(info.st_size, 8192);
    assert_int_equal(gs_io_set_size(b.io, file, 0), GS_OK);
    assert_int_equal(stat(b.path, &info), 0);
    assert_int_equal(info.st_size, 0);
    fixture_close(&b);
}

static void test_io_files__full_disk_is_said_before_it_is_filled(void **state)
{
    struct statvfs fs;
    struct stat info;
    fixture b;
    fixture_open(&b, *state, 1, 1, 0, 4096);
    const uint32_t file = fixture_add(&b, "f", GS_IO_CREATE);
    assert_int_equal(gs_io_set_size(b.io, file, 8192), GS_OK);
    assert_int_equal(statvfs(b.dir, &fs), 0);
    const uint64_t too_much = (uint64_t)fs.f_blocks * fs.f_frsize + GS_GIB;
    assert_int_equal(gs_io_set_size(b.io, file, too_much), GS_EIO);
    fixture_expect_text("disk full");
    fixture_expect_text(b.path);
    assert_int_equal(stat(b.path, &info), 0);
    assert_int_equal(info.st_size, 8192); /* as it was */
    assert_int_equal(gs_io_set_size(b.io, file, UINT64_MAX), GS_EINVAL);
    fixture_close(&b);
}

/* More files than the ring's table and the first array hold. */
static void test_io_files__many_files_are_kept_apart(void **state)
{
    enum { FILES = 300 };
    uint32_t index[FILES];
    fixture b;
    fixture_open(&b, *state, 8, 4, 0, FILES * 4096);
    for (uint32_t i = 0; i < FILES; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%u", i);
        fixture_make_file(&b, name, 4096, i);
        index[i] = fixture_add(&b, name, GS_IO_READ);
    }
    for (uint32_t i = 0; i < FILES; i++)
        fixture_submit(&b, &(gs_io_request){.file = index[i], .length = 4096, .memory = b.memory + i * 4096});
    fixture_drain(&b);
    for (uint32_t i = 0; i < FILES; i++)
        fixture_expect(b.memory + i * 4096, 0, 4096, i);
    fixture_close(&b);
}

/* A file system that takes O_DIRECT and then refuses direct transfers, or all of them. */
static int refuse_direct(void *context, const gs_io_request *piece, uint64_t *length)
{
    (void)length;
    return gs_io_is_direct(context, piece->file) ? EINVAL : 0;
}

static int refuse_all(void *context, const gs_io_request *piece, uint64_t *length)
{
    (void)context;
    (void)piece;
    (void)length;
    return EINVAL;
}

static void test_io_files__refused_direct_transfer_goes_on_buffered(void **state)
{
    gs_io_completion done;
    fixture b;
    fixture_open(&b, *state, 1, 4, 4096, 16 * 4096);
    fixture_make_file(&b, "f", 16 * 4096, 3);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    if (!gs_io_is_direct(b.io, file)) {
        fixture_close(&b);
        print_message("no O_DIRECT in the current folder\n");
        skip();
    }
    gs_io_set_fault(b.io, refuse_direct, b.io);
    fixture_submit(&b, &(gs_io_request){.file = file, .length = 16 * 4096, .memory = b.memory});
    fixture_drain(&b);
    fixture_expect(b.memory, 0, 16 * 4096, 3);
    assert_false(gs_io_is_direct(b.io, file));

    /* EINVAL from a buffered transfer is an error like any other. */
    gs_io_set_fault(b.io, refuse_all, NULL);
    assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .length = 4096, .memory = b.memory}), GS_OK);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
    assert_int_equal(done.status, GS_EIO);
    assert_int_equal(done.error, EINVAL);
    fixture_close(&b);
}

/* Pages of a file that are in the page cache. */
static uint64_t cached_pages(const char *path, uint64_t bytes)
{
    unsigned char in[256];
    uint64_t count = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && bytes / 4096 <= sizeof(in));
    void *const map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore(map, bytes, in), 0);
    for (uint64_t i = 0; i < bytes / 4096; i++)
        count += in[i] & 1;
    munmap(map, bytes);
    close(fd);
    return count;
}

static void test_io_files__buffered_reads_leave_the_page_cache(void **state)
{
    const uint64_t bytes = 256 * 4096;
    fixture b;
    fixture_open(&b, *state, 1, 1, 64 * 4096, bytes);
    fixture_make_file(&b, "f", bytes, 3);
    const int fd = open(b.path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fsync(fd), 0); /* dirty pages cannot be dropped */
    close(fd);
    struct statfs fs;
    assert_int_equal(statfs(b.dir, &fs), 0);
    if (fs.f_type == TMPFS_MAGIC) { /* its page cache is the file */
        fixture_close(&b);
        print_message("the current folder is in memory\n");
        skip();
    }
    assert_int_equal(cached_pages(b.path, bytes), 256);
    gs_io__force_buffered(b.io, true);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    fixture_submit(&b, &(gs_io_request){.file = file, .length = bytes, .memory = b.memory});
    fixture_drain(&b);
    fixture_expect(b.memory, 0, bytes, 3);
    assert_int_equal(cached_pages(b.path, bytes), 0);
    fixture_close(&b);
}

static void test_io_files__config_out_of_range_is_refused(void **state)
{
    (void)state;
    gs_io *io = NULL;
    const gs_io_config bad[] = {
        {.depth = GS_IO__MAX_DEPTH + 1},
        {.requests = GS_IO__MAX_REQUESTS + 1},
        {.piece_bytes = GS_GIB + 1},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(bad); i++) {
        assert_int_equal(gs_io_open(&io, &bad[i]), GS_EINVAL);
        assert_null(io);
        fixture_expect_text("are possible");
    }
    gs_io_close(NULL);
}

/* A piece size that is no multiple of a block is rounded up. */
/* What came is not read again: only a direct transfer must go on at the start of a block. */
static void test_io_files__a_piece_goes_on_where_it_stopped(void **state)
{
    static const struct {
        bool direct;
        int64_t came;
        uint64_t kept;
    } cases[] = {{false, 100, 100}, {false, 4196, 4196}, {true, 4196, 4096}, {true, 8192, 8192}};
    char memory[1];
    fixture b;

    fixture_open(&b, *state, 1, 1, 0, 4096);
    fixture_make_file(&b, "f", 3 * 4096, 1);
    char path[512];
    snprintf(path, sizeof(path), "%s/f", b.dir);
    gs_io__file file = {.path = path, .fd = open(path, O_RDONLY)};
    assert_true(file.fd >= 0);
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        gs_io__piece p = {.fd = file.fd, .direct = cases[i].direct, .bytes = 3 * 4096, .needed = 3 * 4096,
                          .left = 3 * 4096, .memory = memory, .length = 3 * 4096, .counts = 3 * 4096,
                          .result = cases[i].came};
        uint64_t moved = 0;
        gs_status st = GS_OK;
        int error = 0;
        assert_int_equal(gs_io__judge(&p, &file, &moved, &st, &error), GS_IO__AGAIN);
        assert_int_equal(moved, cases[i].kept);
        assert_int_equal(p.offset, cases[i].kept);
        assert_int_equal(p.left, 3 * 4096 - cases[i].kept);
    }
    close(file.fd);
    fixture_close(&b);
}

static void test_io_files__odd_piece_size_keeps_alignment(void **state)
{
    gs_io_counters n;
    fixture b;
    fixture_open(&b, *state, 1, 2, 5000, 16 * 4096);
    fixture_make_file(&b, "f", 16 * 4096, 3);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    fixture_submit(&b, &(gs_io_request){.file = file, .length = 16 * 4096, .memory = b.memory});
    fixture_drain(&b);
    fixture_expect(b.memory, 0, 16 * 4096, 3);
    gs_io_get_counters(b.io, &n);
    assert_int_equal(n.pieces, 8);
    fixture_close(&b);
}

/* Every other time interrupted, else one block: slow, but it moves. */
static int crawl(void *context, const gs_io_request *piece, uint64_t *length)
{
    uint32_t *const calls = context;
    if ((*calls)++ % 2 == 0)
        return EAGAIN;
    *length = GS_MIN(piece->length, 4096u);
    return 0;
}

static void test_io_files__slow_progress_is_not_given_up(void **state)
{
    const uint64_t blocks = 1500; /* more than a piece may be tried in vain */
    uint32_t calls = 0;
    fixture b;
    fixture_open(&b, *state, 1, 1, 8 * GS_MIB, blocks * 4096);
    fixture_make_file(&b, "f", blocks * 4096, 3);
    gs_io__force_buffered(b.io, true);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    gs_io_set_fault(b.io, crawl, &calls);
    fixture_submit(&b, &(gs_io_request){.file = file, .length = blocks * 4096, .memory = b.memory});
    fixture_drain(&b);
    assert_int_equal(calls, 2 * blocks);
    fixture_expect(b.memory, 0, blocks * 4096, 3);
    fixture_close(&b);
}

int main(void)
{
#define BOTH(f)                                                                                                     \
    {.name = #f " (threads)", .test_func = f, .initial_state = (void *)(uintptr_t)&plain[0]},                       \
    {.name = #f " (auto)", .test_func = f, .initial_state = (void *)(uintptr_t)&plain[1]}
    const struct CMUnitTest tests[] = {
        BOTH(test_io_files__missing_file_and_folder_are_named),
        BOTH(test_io_files__modes_do_what_they_say),
        BOTH(test_io_files__bad_requests_are_refused),
        BOTH(test_io_files__set_size_reserves_and_cuts),
        BOTH(test_io_files__full_disk_is_said_before_it_is_filled),
        BOTH(test_io_files__many_files_are_kept_apart),
        BOTH(test_io_files__refused_direct_transfer_goes_on_buffered),
        BOTH(test_io_files__buffered_reads_leave_the_page_cache),
        BOTH(test_io_files__slow_progress_is_not_given_up),
        {.name = "a piece goes on where it stopped", .test_func = test_io_files__a_piece_goes_on_where_it_stopped,
         .initial_state = (void *)(uintptr_t)&plain[0]},
        BOTH(test_io_files__odd_piece_size_keeps_alignment),
        cmocka_unit_test(test_io_files__config_out_of_range_is_refused),
    };
    return cmocka_run_group_tests_name("io/io_files", tests, NULL, NULL);
}
