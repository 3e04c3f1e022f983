/* Files that a GPU reads past the host: what comes is the file's bytes, whatever the number and order of requests and
 * however short they come back; what fails, or is other than was meant, is told once, of the read that it is about.
 * Always on the GPU that is the host's, as its cuFile is (host_files.h). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "gpu_devices.h"
#include "support/support.h"
#include "train/limits.h"

#define FILE_BYTES (3 * GS_MIB + 5 * GS_BLOCK_BYTES)

struct fixture {
    gs_device *device;
    char path[64];
    uint8_t *bytes; /* of the file */
    uint8_t *arena; /* of the device, as large */
    uint32_t file;
};

static void open_fixture(struct fixture *f)
{
    void *arena = NULL;
    int fd;
    memset(f, 0, sizeof(*f));
    snprintf(f->path, sizeof(f->path), "gs_reads.XXXXXX");
    assert_true((fd = mkstemp(f->path)) >= 0);
    assert_non_null(f->bytes = gs_malloc(FILE_BYTES));
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        f->bytes[i] = (uint8_t)((i * 2654435761u) >> 13 ^ i >> 12);
    assert_int_equal(write(fd, f->bytes, FILE_BYTES), FILE_BYTES);
    close(fd);
    f->device = open_gpu();
    gs_assert_ok(gs_device_take_memory(f->device, &(gs_device_memory){.arena_bytes = FILE_BYTES, .aligned = true},
                                       &arena));
    f->arena = arena;
    gs_assert_ok(gs_device_open_reads(f->device, arena, FILE_BYTES));
    gs_assert_ok(gs_device_add_file(f->device, f->path, &f->file));
}

static void close_fixture(struct fixture *f)
{
    unsetenv("GS_HOST_CUFILE");
    gs_device_give_memory(f->device);
    gs_device_close(f->device);
    gs_free(f->bytes);
    unlink(f->path);
}

/* Blocks [first, + blocks) of the file to the same place of the arena. */
static gs_device_read read_of(const struct fixture *f, uint64_t first, uint64_t blocks)
{
    const uint64_t at = first * GS_BLOCK_BYTES, bytes = blocks * GS_BLOCK_BYTES;
    return (gs_device_read){.file = f->file, .offset = at, .bytes = bytes, .to = f->arena + at,
                            .mark = gs_fingerprint64(f->bytes + at, bytes)};
}

static void assert_came(const struct fixture *f, uint64_t first, uint64_t blocks)
{
    const uint64_t at = first * GS_BLOCK_BYTES, bytes = blocks * GS_BLOCK_BYTES;
    uint8_t *const got = gs_malloc(bytes);
    gs_assert_ok(gs_device_peek(f->device, got, f->arena + at, bytes));
    assert_memory_equal(got, f->bytes + at, bytes);
    gs_free(got);
}

static void read_all(const char *fault)
{
    /* more than may be under way; one of several requests */
    static const uint64_t blocks[] = {1, 1, 2, 300, 1, 7, 64, 1, 1, 16, 350, 2, 1};
    uint64_t number[GS_ARRAY_LEN(blocks)], at = 0;
    struct fixture f;
    open_fixture(&f);
    if (fault != NULL)
        setenv("GS_HOST_CUFILE", fault, 1);
    for (size_t i = 0; i < GS_ARRAY_LEN(blocks); at += blocks[i++]) {
        const gs_device_read r = read_of(&f, at, blocks[i]);
        gs_assert_ok(gs_device_begin_read(f.device, &r, &number[i]));
    }
    for (size_t i = GS_ARRAY_LEN(blocks); i-- > 0;) {
        bool done = false;
        gs_assert_ok(gs_device_poll_read(f.device, number[i], false, &done));
        if (!done) /* that GPU does what is waited for */
            gs_assert_ok(gs_device_poll_read(f.device, number[i], true, &done));
        assert_true(done);
    }
    at = 0;
    for (size_t i = 0; i < GS_ARRAY_LEN(blocks); at += blocks[i++])
        assert_came(&f, at, blocks[i]);
    close_fixture(&f);
}

static void test_reads__bring_the_bytes_of_the_file(void **state)
{
    (void)state;
    read_all(NULL);
    read_all("memory"); /* is not mapped: cuFile's own buffers */
}

static void test_reads__that_come_short_go_on(void **state)
{
    (void)state;
    read_all("short");
}

/* The read in the middle fails; those around it are what they are. */
static void fail_one(const char *fault, gs_status status, const char *text)
{
    gs_device_read r;
    uint64_t number[3];
    bool done = false;
    struct fixture f;
    open_fixture(&f);
    for (int i = 0; i < 3; i++) {
        r = read_of(&f, 40u * (uint64_t)i, 40);
        if (fault == NULL && i == 1)
            r.mark++;
        if (i == 1 && fault != NULL)
            setenv("GS_HOST_CUFILE", fault, 1);
        gs_assert_ok(gs_device_begin_read(f.device, &r, &number[i]));
        const gs_status st = gs_device_poll_read(f.device, number[i], true, &done);
        if (i == 1)
            gs_assert_fails(st, status, text);
        else
            gs_assert_ok(st);
        assert_true(done);
        unsetenv("GS_HOST_CUFILE");
    }
    assert_came(&f, 0, 40);
    assert_came(&f, 80, 40);
    close_fixture(&f);
}

static void test_reads__that_fail_say_so(void **state)
{
    (void)state;
    fail_one("error", GS_EIO, "Input/output error");
    fail_one("end", GS_EIO, "the file ends before byte");
    fail_one("lost", GS_EIO, "cuFile lost its requests");
    fail_one("bits", GS_EFORMAT, "not the bytes that matched their checksum");
    fail_one(NULL, GS_EFORMAT, "not the bytes that matched their checksum");
}

/* Behind the file's end, too. What nobody waits for when memory is given back is waited for there. */
static void test_reads__are_waited_for_in_the_end(void **state)
{
    struct fixture f;
    uint64_t number;
    (void)state;
    open_fixture(&f);
    gs_device_read r = read_of(&f, 0, 8);
    r.offset = FILE_BYTES;
    gs_assert_ok(gs_device_begin_read(f.device, &r, &number));
    for (uint64_t i = 1; i < 6; i++) {
        r = read_of(&f, 8 * i, 8);
        gs_assert_ok(gs_device_begin_read(f.device, &r, &number));
    }
    close_fixture(&f);
}

static void test_reads__a_device_that_cannot_says_why(void **state)
{
    gs_device *cpu = NULL, *const gpu = open_gpu();
    (void)state;
    gs_assert_ok(gs_device_open(&cpu, "cpu", 1));
    gs_assert_fails(gs_device_probe_reads(cpu, "/"), GS_EUNSUPPORTED, "no memory of its own");
    gs_assert_fails(gs_device_probe_reads(gpu, "gs_no_such_file"), GS_ENOTFOUND, "gs_no_such_file: cannot open");
    setenv("GS_HOST_CUFILE", "file", 1);
    gs_assert_fails(gs_device_probe_reads(gpu, "/proc/self/exe"), GS_EUNSUPPORTED, "does not support the file's file");
    unsetenv("GS_HOST_CUFILE");
    gs_assert_ok(gs_device_probe_reads(gpu, "/proc/self/exe"));
    gs_device_close(gpu);
    gs_device_close(cpu);
}

/* Where it is there, of what a run would see; else there is no figure, and nothing fails. */
static void test_reads__their_speed_is_measured(void **state)
{
    gs_device *const d = open_gpu();
    gs_limits l = {.link[GS_LINK_FROM_DISK] = {7, 7}};
    const uint64_t live = gs_alloc_live_bytes();
    (void)state;
    gs_assert_ok(gs_limits_measure_loads(&l, d, ".", 8 * GS_MIB));
    const gs_link found = l.link[GS_LINK_FROM_DISK];
    assert_true(found.bps > 1e6 && found.bps < 1e12 && found.request_seconds >= 0 && found.request_seconds < 0.1);
    setenv("GS_HOST_CUFILE", "bits", 1);
    gs_assert_fails(gs_limits_measure_loads(&l, d, ".", 8 * GS_MIB), GS_EFORMAT, "not the bytes");
    setenv("GS_HOST_CUFILE", "batch", 1);
    gs_assert_ok(gs_limits_measure_loads(&l, d, ".", 8 * GS_MIB));
    assert_true(l.link[GS_LINK_FROM_DISK].bps == 0 && l.link[GS_LINK_FROM_DISK].request_seconds == 0);
    unsetenv("GS_HOST_CUFILE");
    gs_assert_fails(gs_limits_measure_loads(&l, d, "gs_no_such_folder", 8 * GS_MIB), GS_ENOTFOUND, "gs_no_such_folder");
    assert_int_equal(gs_alloc_live_bytes(), live);
    gs_device_close(d);
}

/* One bit more or less, words that change places, other lengths. */
static void test_reads__a_mark_tells_bytes_apart(void **state)
{
    uint64_t word[512], seen[4 + 64];
    size_t n = 0;
    (void)state;
    for (uint64_t i = 0; i < 512; i++)
        word[i] = i / 2;
    seen[n++] = gs_fingerprint64(word, sizeof(word));
    seen[n++] = gs_fingerprint64(word, sizeof(word) - 8);
    for (int bit = 0; bit < 64; bit++) {
        word[77] ^= 1ull << bit;
        seen[n++] = gs_fingerprint64(word, sizeof(word));
        word[77] ^= 1ull << bit;
    }
    word[10] = 6;
    word[12] = 5;
    seen[n++] = gs_fingerprint64(word, sizeof(word));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads__bring_the_bytes_of_the_file),
        cmocka_unit_test(test_reads__that_come_short_go_on),
        cmocka_unit_test(test_reads__that_fail_say_so),
        cmocka_unit_test(test_reads__are_waited_for_in_the_end),
        cmocka_unit_test(test_reads__a_device_that_cannot_says_why),
        cmocka_unit_test(test_reads__their_speed_is_measured),
        cmocka_unit_test(test_reads__a_mark_tells_bytes_apart),
    };
    return real_gpu() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
