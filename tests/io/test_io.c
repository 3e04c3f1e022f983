/* test_io.c - every property of a transfer, over {io_uring, threads} x
 * {direct, buffered} x {no fault, short transfers, interrupted calls}. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/size.h"
#include "io/io_internal.h"
#include "io_fixture.h"

#define PIECE (16 * GS_KIB)
#define FILE_BYTES (1024 * GS_KIB)

/* What offsets, lengths and addresses are multiples of in this case. */
static uint64_t grain(const fixture_case *c) { return c->buffered ? 1 : GS_BLOCK_BYTES; }

/* Random extents read into random places: all of the right bytes, and no other byte touched. */
static void reads_give_the_bytes_of_the_file(void **state)
{
    const fixture_case *const c = *state;
    const uint64_t g = grain(c), part = 128 * GS_KIB, parts = 6;
    uint32_t rng = 7;
    fixture b;
    fixture_open(&b, c, 8, 5, PIECE, part * parts);
    fixture_make_file(&b, "read", FILE_BYTES, 1);
    const uint32_t file = fixture_add(&b, "read", GS_IO_READ);
    const bool direct = gs_io_is_direct(b.io, file);

    for (int round = 0; round < 12; round++) {
        gs_io_request r[6];
        memset(b.memory, 0xA5, b.bytes);
        for (uint64_t i = 0; i < parts; i++) {
            const uint64_t length = (1 + fixture_random(&rng) % (part / g - 2)) * g;
            r[i] = (gs_io_request){.file = file, .length = length, .tag = i,
                                   .offset = fixture_random(&rng) % ((FILE_BYTES - length) / g + 1) * g,
                                   .memory = b.memory + i * part + fixture_random(&rng) % ((part - length) / g) * g};
            fixture_submit(&b, &r[i]);
        }
        fixture_drain(&b);
        for (uint64_t i = 0; i < parts; i++) {
            const uint8_t *const from = b.memory + i * part, *const to = from + part, *const at = r[i].memory;
            fixture_expect(at, r[i].offset, r[i].length, 1);
            for (const uint8_t *p = from; p < at; p++)
                assert_int_equal(*p, 0xA5);
            for (const uint8_t *p = at + r[i].length; p < to; p++)
                assert_int_equal(*p, 0xA5);
        }
    }
    assert_int_equal(gs_io_is_direct(b.io, file), direct); /* what was left of a piece stayed aligned */
    fixture_close(&b);
}

/* The file is written in extents of random size and random order, then read by stdio and back by io. */
static void writes_arrive_and_read_back(void **state)
{
    const fixture_case *const c = *state;
    const uint64_t g = grain(c);
    uint64_t start[128];
    uint32_t rng = 99, extents = 0;
    fixture b;
    fixture_open(&b, c, 4, 3, PIECE, FILE_BYTES);
    const uint32_t file = fixture_add(&b, "write", GS_IO_CREATE);
    const bool direct = gs_io_is_direct(b.io, file);
    assert_int_equal(gs_io_set_size(b.io, file, FILE_BYTES), GS_OK);
    fixture_fill(b.memory, 0, FILE_BYTES, 2);

    for (uint64_t at = 0; at < FILE_BYTES; at += (1 + fixture_random(&rng) % (64 * GS_KIB / g)) * g)
        start[extents++] = at;
    start[extents] = FILE_BYTES;
    uint32_t order[128];
    for (uint32_t i = 0; i < extents; i++)
        order[i] = i;
    for (uint32_t i = extents - 1; i > 0; i--) { /* Fisher-Yates */
        const uint32_t j = fixture_random(&rng) % (i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (uint32_t i = 0; i < extents; i++) {
        const uint64_t from = start[order[i]];
        fixture_submit(&b, &(gs_io_request){.file = file, .write = true, .offset = from,
                                            .length = start[order[i] + 1] - from, .memory = b.memory + from});
    }
    fixture_drain(&b);
    fixture_expect_file(&b, FILE_BYTES, 2);

    memset(b.memory, 0, FILE_BYTES);
    fixture_submit(&b, &(gs_io_request){.file = file, .length = FILE_BYTES, .memory = b.memory});
    fixture_drain(&b);
    fixture_expect(b.memory, 0, FILE_BYTES, 2);
    assert_int_equal(gs_io_is_direct(b.io, file), direct);
    fixture_close(&b);
}

/* A file in three that take stripes in turn: each has its own, a read across them has all, and one that fails is named.
 * The last stripe is not whole, and no piece ends where a stripe does. */
static void stripes_go_to_files_in_turn(void **state)
{
    enum { FILES = 3, STRIPES = 5 };
    const uint64_t stripe = GS_IO_STRIPE_BYTES, bytes = STRIPES * stripe - 8 * GS_BLOCK_BYTES;
    char path[FILES][320];
    gs_io_completion done;
    uint32_t ignored;
    fixture b;
    fixture_open(&b, *state, 4, 3, 96 * GS_KIB, STRIPES * stripe);
    const uint32_t file = fixture_add(&b, "striped", GS_IO_CREATE);
    snprintf(path[0], sizeof(path[0]), "%s", b.path);
    for (int k = 1; k < FILES; k++) {
        snprintf(path[k], sizeof(path[k]), "%s.%d", b.path, k);
        assert_int_equal(gs_io_add_stripe(b.io, file, path[k]), GS_OK);
    }
    assert_int_equal(gs_io_set_size(b.io, file, bytes), GS_OK);
    fixture_fill(b.memory, 0, bytes, 3);
    fixture_submit(&b, &(gs_io_request){.file = file, .write = true, .length = bytes, .memory = b.memory});
    fixture_drain(&b);
    memset(b.memory, 0, bytes);
    fixture_submit(&b, &(gs_io_request){.file = file, .offset = GS_BLOCK_BYTES, .length = bytes - GS_BLOCK_BYTES,
                                        .memory = b.memory + GS_BLOCK_BYTES});
    fixture_drain(&b);
    fixture_expect(b.memory + GS_BLOCK_BYTES, GS_BLOCK_BYTES, bytes - GS_BLOCK_BYTES, 3);
    for (uint64_t k = 0; k < STRIPES; k++) { /* by itself, as a file of its own */
        assert_int_equal(gs_io_add_file(b.io, &ignored, path[k % FILES], GS_IO_READ), GS_OK);
        const uint64_t there = GS_MIN(stripe, bytes - k * stripe);
        fixture_submit(&b, &(gs_io_request){.file = ignored, .offset = k / FILES * stripe, .length = there,
                                            .memory = b.memory});
        fixture_drain(&b);
        fixture_expect(b.memory, k * stripe, there, 3);
    }
    assert_int_equal(gs_io_stripe_bytes(bytes, FILES), 2 * stripe);
    assert_int_equal(truncate(path[1], 0), 0);
    const gs_io_request r = {.file = file, .length = bytes, .memory = b.memory};
    assert_int_equal(gs_io_submit(b.io, &r), GS_OK);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
    assert_int_equal(gs_io_explain(b.io, &r, &done), GS_EFORMAT);
    fixture_expect_text(path[1]);
    fixture_close(&b);
}

/* Each of many requests completes once, whatever the queue's depth. */
static void many_outstanding_complete_once_each(void **state)
{
    enum { COUNT = 200 };
    const fixture_case *const c = *state;
    const uint32_t depths[] = {1, 7, 64};
    for (size_t d = 0; d < GS_ARRAY_LEN(depths); d++) {
        uint8_t seen[COUNT] = {0};
        uint32_t left = COUNT;
        fixture b;
        fixture_open(&b, c, COUNT, depths[d], PIECE, COUNT * GS_BLOCK_BYTES);
        fixture_make_file(&b, "many", FILE_BYTES, 3);
        const uint32_t file = fixture_add(&b, "many", GS_IO_READ);
        for (uint64_t i = 0; i < COUNT; i++)
            assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .offset = i * 4096, .length = 4096,
                                                                 .memory = b.memory + i * 4096, .tag = i}),
                             GS_OK);
        assert_int_equal(gs_io_outstanding(b.io), COUNT);
        while (left > 0) {
            gs_io_completion done[3];
            const uint32_t n = gs_io_reap(b.io, done, 3, true);
            assert_in_range(n, 1, 3);
            for (uint32_t i = 0; i < n; i++) {
                assert_int_equal(done[i].status, GS_OK);
                assert_int_equal(seen[done[i].tag]++, 0);
            }
            left -= n;
            assert_int_equal(gs_io_outstanding(b.io), left);
        }
        fixture_expect(b.memory, 0, b.bytes, 3);
        fixture_close(&b);
    }
}

static void full_table_says_again(void **state)
{
    fixture b;
    fixture_open(&b, *state, 4, 2, PIECE, 5 * GS_BLOCK_BYTES);
    fixture_make_file(&b, "full", 64 * GS_KIB, 4);
    const uint32_t file = fixture_add(&b, "full", GS_IO_READ);
    gs_io_request r = {.file = file, .length = 4096, .memory = b.memory};
    for (uint64_t i = 0; i < 4; i++) {
        r.memory = b.memory + i * 4096;
        assert_int_equal(gs_io_submit(b.io, &r), GS_OK);
    }
    r.memory = b.memory + 4 * 4096;
    memset(r.memory, 0x5A, 4096);
    assert_int_equal(gs_io_submit(b.io, &r), GS_EAGAIN);
    assert_int_equal(gs_io_outstanding(b.io), 4);

    gs_io_completion one;
    assert_int_equal(gs_io_reap(b.io, &one, 1, true), 1);
    assert_int_equal(b.memory[4 * 4096], 0x5A); /* the refused one was not taken */
    assert_int_equal(gs_io_submit(b.io, &r), GS_OK);
    assert_int_equal(gs_io_submit(b.io, &r), GS_EAGAIN);
    fixture_drain(&b);
    fixture_expect(b.memory + 4 * 4096, 0, 4096, 4);
    fixture_close(&b);
}

static void reap_without_requests_gives_nothing(void **state)
{
    gs_io_completion done;
    fixture b;
    fixture_open(&b, *state, 2, 2, PIECE, GS_BLOCK_BYTES);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 0);
    assert_int_equal(gs_io_reap(b.io, &done, 1, false), 0);
    fixture_make_file(&b, "f", 4096, 1);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .length = 4096, .memory = b.memory}), GS_OK);
    assert_int_equal(gs_io_reap(b.io, NULL, 0, true), 0); /* nothing asked for, nothing waited for */
    while (gs_io_reap(b.io, &done, 1, false) == 0) {
    }
    assert_int_equal(done.status, GS_OK);
    fixture_close(&b);
}

/* A file of 5 blocks and a bit: a read that needs more is malformed data,
 * wherever the end falls in its pieces; its neighbours are not disturbed. */
static void end_of_file_inside_is_malformed(void **state)
{
    const uint64_t size = 5 * 4096 + 1000;
    const struct {
        uint64_t offset, length;
        gs_status status;
    } reads[] = {
        {0, 5 * 4096, GS_OK},       {0, 6 * 4096, GS_EFORMAT},    {5 * 4096, 4096, GS_EFORMAT},
        {0, 64 * 4096, GS_EFORMAT}, {16 * 4096, 4096, GS_EFORMAT}, {4 * 4096, 4096, GS_OK},
    };
    const uint64_t part = 64 * 4096;
    fixture b;
    fixture_open(&b, *state, 8, 4, 8192, GS_ARRAY_LEN(reads) * part);
    fixture_make_file(&b, "short", size, 5);
    const uint32_t file = fixture_add(&b, "short", GS_IO_READ);
    gs_io_request r[GS_ARRAY_LEN(reads)];
    for (size_t i = 0; i < GS_ARRAY_LEN(reads); i++) {
        r[i] = (gs_io_request){.file = file, .offset = reads[i].offset, .length = reads[i].length,
                               .memory = b.memory + i * part, .tag = i};
        assert_int_equal(gs_io_submit(b.io, &r[i]), GS_OK);
    }
    for (size_t n = 0; n < GS_ARRAY_LEN(reads); n++) {
        gs_io_completion done;
        assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
        const gs_io_request *const q = &r[done.tag];
        assert_int_equal(done.status, reads[done.tag].status);
        assert_int_equal(gs_io_explain(b.io, q, &done), done.status);
        if (done.status == GS_OK) {
            fixture_expect(q->memory, q->offset, q->length, 5);
        } else {
            char where[64];
            snprintf(where, sizeof(where), "read of %llu bytes at %llu", (unsigned long long)q->length,
                     (unsigned long long)q->offset);
            fixture_expect_text(where);
            fixture_expect_text(b.path);
            fixture_expect_text("file ends");
        }
    }
    fixture_close(&b);
}

/* The same file: a read of whole blocks that needs no more than the file has gets what there is, wherever the end falls
 * in its pieces, and leaves memory beyond it alone; one that needs a byte more is malformed. */
static void read_may_end_with_the_file(void **state)
{
    const uint64_t size = 5 * 4096 + 1000, part = 64 * 4096;
    const struct {
        uint64_t offset, length, needed;
        gs_status status;
    } reads[] = {
        {0, 6 * 4096, size, GS_OK},        {0, 6 * 4096, size + 1, GS_EFORMAT}, {5 * 4096, 4096, 1000, GS_OK},
        {5 * 4096, 4096, 1001, GS_EFORMAT}, {0, 64 * 4096, size, GS_OK},        {0, 64 * 4096, 1, GS_OK},
        {4 * 4096, 64 * 4096, 5097, GS_EFORMAT},
    };
    fixture b;
    fixture_open(&b, *state, 8, 4, 8192, GS_ARRAY_LEN(reads) * part);
    fixture_make_file(&b, "tail", size, 6);
    const uint32_t file = fixture_add(&b, "tail", GS_IO_READ);
    memset(b.memory, 0xa5, b.bytes);
    for (size_t i = 0; i < GS_ARRAY_LEN(reads); i++)
        assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .offset = reads[i].offset,
                                                             .length = reads[i].length, .needed = reads[i].needed,
                                                             .memory = b.memory + i * part, .tag = i}), GS_OK);
    for (size_t n = 0; n < GS_ARRAY_LEN(reads); n++) {
        gs_io_completion done;
        assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
        const uint64_t i = done.tag, there = size - reads[i].offset;
        assert_int_equal(done.status, reads[i].status);
        if (done.status != GS_OK)
            continue;
        fixture_expect(b.memory + i * part, reads[i].offset, there, 6);
        for (uint64_t at = gs_align_up(there, 4096); at < part; at++) /* a block's own rest is the file system's */
            assert_int_equal(b.memory[i * part + at], 0xa5);
    }
    fixture_close(&b);
}

/* Wraps the case's own fault: the piece that holds `bad` fails with EIO. */
typedef struct bad_block {
    uint64_t bad;
    int error;
    uint64_t pieces_past; /* pieces that went out beyond it */
} bad_block;

static int fail_at(void *context, const gs_io_request *piece, uint64_t *length)
{
    bad_block *f = context;
    (void)length;
    if (piece->offset > f->bad)
        f->pieces_past++;
    return piece->offset <= f->bad && f->bad < piece->offset + piece->length ? f->error : 0;
}

static void failed_piece_fails_its_request_only(void **state)
{
    gs_io_completion done;
    fixture b;
    for (uint64_t k = 0; k < 8; k++) {
        fixture_open(&b, *state, 4, 2, 4096, 3 * 8 * 4096);
        fixture_make_file(&b, "bad", 16 * 4096, 6);
        const uint32_t file = fixture_add(&b, "bad", GS_IO_WRITE);
        bad_block bad = {.bad = k * 4096 + 5, .error = EIO};
        gs_io_set_fault(b.io, fail_at, &bad);
        const gs_io_request r[3] = {
            {.file = file, .offset = 8 * 4096, .length = 8 * 4096, .memory = b.memory, .tag = 0},
            {.file = file, .length = 8 * 4096, .memory = b.memory + 8 * 4096, .tag = 1},
            {.file = file, .offset = 8 * 4096, .length = 8 * 4096, .memory = b.memory + 16 * 4096, .tag = 2}};
        for (int i = 0; i < 3; i++)
            assert_int_equal(gs_io_submit(b.io, &r[i]), GS_OK);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
            assert_int_equal(done.status, done.tag == 1 ? GS_EIO : GS_OK);
            assert_int_equal(done.error, done.tag == 1 ? EIO : 0);
            if (done.tag == 1) {
                assert_int_equal(gs_io_explain(b.io, &r[1], &done), GS_EIO);
                fixture_expect_text(b.path);
                fixture_expect_text("read of 32768 bytes at 0 failed: Input/output error");
            }
        }
        fixture_expect(r[0].memory, r[0].offset, r[0].length, 6);
        fixture_expect(r[2].memory, r[2].offset, r[2].length, 6);

        /* A write that fails says so too; afterwards the same request works. */
        gs_io_request w = {.file = file, .write = true, .length = 8 * 4096, .memory = b.memory};
        assert_int_equal(gs_io_submit(b.io, &w), GS_OK);
        assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
        assert_int_equal(done.status, GS_EIO);
        gs_io_explain(b.io, &w, &done);
        fixture_expect_text("write of 32768 bytes at 0 failed");
        gs_io_set_fault(b.io, NULL, NULL);
        fixture_submit(&b, &r[1]);
        fixture_drain(&b);
        fixture_close(&b);
    }
}

/* After the first failure nothing more of a request goes out (here 1000 pieces would). */
static void failed_request_sends_no_more_pieces(void **state)
{
    gs_io_completion done;
    fixture b;
    fixture_open(&b, *state, 4, 2, 4096, FILE_BYTES);
    fixture_make_file(&b, "bad", FILE_BYTES, 6);
    const uint32_t file = fixture_add(&b, "bad", GS_IO_READ);
    bad_block bad = {.bad = 0, .error = EIO};
    gs_io_set_fault(b.io, fail_at, &bad);
    assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .length = FILE_BYTES, .memory = b.memory}),
                     GS_OK);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
    assert_int_equal(done.status, GS_EIO);
    assert_in_range(bad.pieces_past, 0, 2);
    fixture_close(&b);
}

/* An interruption that never ends is an error at last, not a hang. */
static void endless_interruption_is_given_up(void **state)
{
    gs_io_completion done;
    fixture b;
    fixture_open(&b, *state, 1, 1, 4096, 4096);
    fixture_make_file(&b, "f", 4096, 6);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    bad_block bad = {.bad = 0, .error = EAGAIN};
    gs_io_set_fault(b.io, fail_at, &bad);
    assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .length = 4096, .memory = b.memory}), GS_OK);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
    assert_int_equal(done.status, GS_EIO);
    assert_int_equal(done.error, EAGAIN);
    fixture_close(&b);
}

/* As a file system that takes the flag for direct transfers and then refuses them. */
static int refuse_direct(void *context, const gs_io_request *piece, uint64_t *length)
{
    fixture *const b = context;
    (void)length;
    return gs_io_is_direct(b->io, piece->file) ? EINVAL : 0;
}

/* Several pieces are under way when the first is refused. What is no refusal of direct transfers is an error. */
static void refused_direct_transfers_go_through_the_page_cache(void **state)
{
    const uint64_t bytes = 8 * 4096;
    fixture b;
    fixture_open(&b, *state, 4, 4, 4096, 2 * bytes);
    fixture_make_file(&b, "f", bytes, 7);
    const uint32_t file = fixture_add(&b, "f", GS_IO_WRITE);
    gs_io_completion done;

    gs_io_set_fault(b.io, refuse_direct, &b);
    for (uint64_t i = 0; i < 2; i++)
        fixture_submit(&b, &(gs_io_request){.file = file, .length = bytes, .memory = b.memory + i * bytes});
    fixture_drain(&b);
    assert_false(gs_io_is_direct(b.io, file));
    fixture_expect(b.memory, 0, bytes, 7);
    fixture_expect(b.memory + bytes, 0, bytes, 7);
    fixture_fill(b.memory, 0, bytes, 8);
    fixture_submit(&b, &(gs_io_request){.file = file, .write = true, .length = bytes, .memory = b.memory});
    fixture_drain(&b);
    fixture_expect_file(&b, bytes, 8);
    bad_block bad = {.bad = 0, .error = EINVAL};
    gs_io_set_fault(b.io, fail_at, &bad);
    const gs_io_request r = {.file = file, .length = bytes, .memory = b.memory};
    assert_int_equal(gs_io_submit(b.io, &r), GS_OK);
    assert_int_equal(gs_io_reap(b.io, &done, 1, true), 1);
    assert_int_equal(done.status, GS_EIO);
    assert_int_equal(done.error, EINVAL);
    fixture_close(&b);
}

static void close_finishes_what_is_outstanding(void **state)
{
    fixture b;
    fixture_open(&b, *state, 32, 2, 4096, 16 * PIECE);
    const uint32_t file = fixture_add(&b, "late", GS_IO_CREATE);
    fixture_fill(b.memory, 0, b.bytes, 8);
    for (uint64_t at = 0; at < b.bytes; at += PIECE)
        assert_int_equal(gs_io_submit(b.io, &(gs_io_request){.file = file, .write = true, .offset = at,
                                                             .length = PIECE, .memory = b.memory + at}),
                         GS_OK);
    gs_io_close(b.io);
    b.io = NULL;
    fixture_expect_file(&b, b.bytes, 8);
    fixture_close(&b);
}

static void counters_add_up(void **state)
{
    const fixture_case *const c = *state;
    gs_io_counters n;
    fixture b;
    fixture_open(&b, c, 4, 4, 8192, 87 * 4096);
    fixture_make_file(&b, "count", 64 * 4096, 9);
    const uint32_t file = fixture_add(&b, "count", GS_IO_WRITE);
    gs_io_get_counters(b.io, &n);
    assert_int_equal(n.requests + n.pieces + n.read_bytes + n.written_bytes + n.retries, 0);
    const uint64_t blocks[] = {1, 2, 3, 64, 17};
    uint8_t *at = b.memory;
    for (size_t i = 0; i < GS_ARRAY_LEN(blocks); at += blocks[i] * 4096, i++)
        fixture_submit(&b, &(gs_io_request){.file = file, .length = blocks[i] * 4096, .memory = at});
    fixture_drain(&b);
    fixture_submit(&b, &(gs_io_request){.file = file, .write = true, .length = 5 * 4096, .memory = b.memory});
    fixture_drain(&b);
    gs_io_get_counters(b.io, &n);
    assert_int_equal(n.requests, 6);
    assert_int_equal(n.read_bytes, 87 * 4096);
    assert_int_equal(n.written_bytes, 5 * 4096);
    assert_int_equal(n.pieces, 1 + 1 + 2 + 32 + 9 + 3);
    if (c->fault == FIXTURE_NONE)
        assert_int_equal(n.retries, 0);
    else
        assert_in_range(n.retries, 10, 100000);
    fixture_close(&b);
}

/* The order in which pieces first go out, and that depth bounds them, seen from the hook. */
typedef struct order_log {
    uint64_t tag[64], offset[64];
    uint32_t count;
} order_log;

static int log_piece(void *context, const gs_io_request *piece, uint64_t *length)
{
    order_log *l = context;
    (void)length;
    assert_true(l->count < 64);
    l->tag[l->count] = piece->tag;
    l->offset[l->count++] = piece->offset;
    return 0;
}

static void pieces_go_out_in_order_of_submission(void **state)
{
    order_log log = {.count = 0};
    fixture b;
    fixture_open(&b, *state, 8, 3, 4096, 64 * 4096);
    fixture_make_file(&b, "order", 64 * 4096, 9);
    const uint32_t file = fixture_add(&b, "order", GS_IO_READ);
    gs_io_set_fault(b.io, log_piece, &log);
    const uint64_t first[] = {40, 0, 20}, blocks[] = {5, 1, 4};
    for (uint64_t i = 0; i < 3; i++)
        fixture_submit(&b, &(gs_io_request){.file = file, .offset = first[i] * 4096, .length = blocks[i] * 4096,
                                            .memory = b.memory + first[i] * 4096, .tag = i});
    gs_io_reap(b.io, NULL, 0, false);
    assert_int_equal(log.count, 3); /* depth */
    fixture_drain(&b);
    assert_int_equal(log.count, 10);
    uint32_t k = 0;
    for (uint64_t i = 0; i < 3; i++)
        for (uint64_t j = 0; j < blocks[i]; j++, k++) {
            assert_int_equal(log.tag[k], i);
            assert_int_equal(log.offset[k], (first[i] + j) * 4096);
        }
    fixture_close(&b);
}

/* Requests into registered memory, outside of it, and across its edge. */
static void memory_may_lie_anywhere(void **state)
{
    const fixture_case *const c = *state;
    const uint64_t bytes = 64 * 4096;
    fixture b;
    fixture_open(&b, c, 8, 4, 8 * 4096, 4096);
    fixture_make_file(&b, "where", bytes, 10);
    uint8_t *const area = gs_alloc_pages(3 * bytes);
    assert_non_null(area);
    /* Two of three parts registered, by a gs_io of their own. */
    const struct gs_io_buffer part[2] = {{area + 2 * bytes, bytes}, {area, bytes}};
    const gs_io_config config = {.backend = c->backend, .piece_bytes = 8 * 4096, .buffers = part, .buffer_count = 2};
    gs_io_close(b.io);
    assert_int_equal(gs_io_open(&b.io, &config), GS_OK);
    gs_io__force_buffered(b.io, c->buffered);
    const uint32_t file = fixture_add(&b, "where", GS_IO_READ);
    const uint64_t at[] = {0, bytes, 2 * bytes, bytes - 4 * 4096, 2 * bytes - 60 * 4096, 4096};
    for (size_t i = 0; i < GS_ARRAY_LEN(at); i++) {
        memset(area, 0, 3 * bytes);
        fixture_submit(&b, &(gs_io_request){.file = file, .length = bytes, .memory = area + at[i]});
        fixture_drain(&b);
        fixture_expect(area + at[i], 0, bytes, 10);
    }
    gs_io_close(b.io);
    b.io = NULL;
    gs_free_pages(area, 3 * bytes);
    fixture_close(&b);
}

static void nothing_is_allocated_after_opening(void **state)
{
    fixture b;
    fixture_open(&b, *state, 16, 4, 4096, 64 * 8 * 4096);
    fixture_make_file(&b, "f", 8 * 4096, 11);
    const uint32_t file = fixture_add(&b, "f", GS_IO_READ);
    const uint64_t before = gs_alloc_frozen_count();
    gs_alloc_freeze(true);
    for (uint64_t i = 0; i < 64; i++)
        fixture_submit(&b, &(gs_io_request){.file = file, .length = 8 * 4096, .memory = b.memory + i * 8 * 4096});
    fixture_drain(&b);
    gs_alloc_freeze(false);
    assert_int_equal(gs_alloc_frozen_count() - before, 0);
    fixture_close(&b);
}

/* --- the table of bodies times cases --- */

static const struct {
    const char *name;
    CMUnitTestFunction run;
    bool own_fault; /* sets the hook itself, so the case's is of no use */
} bodies[] = {
#define BODY(name, own) {#name, name, own}
    BODY(reads_give_the_bytes_of_the_file, false),
    BODY(writes_arrive_and_read_back, false),
    BODY(stripes_go_to_files_in_turn, false),
    BODY(many_outstanding_complete_once_each, false),
    BODY(full_table_says_again, false),
    BODY(reap_without_requests_gives_nothing, false),
    BODY(end_of_file_inside_is_malformed, false),
    BODY(read_may_end_with_the_file, false),
    BODY(failed_piece_fails_its_request_only, true),
    BODY(failed_request_sends_no_more_pieces, true),
    BODY(endless_interruption_is_given_up, true),
    BODY(refused_direct_transfers_go_through_the_page_cache, true),
    BODY(close_finishes_what_is_outstanding, false),
    BODY(counters_add_up, false),
    BODY(pieces_go_out_in_order_of_submission, true),
    BODY(memory_may_lie_anywhere, true),
    BODY(nothing_is_allocated_after_opening, false),
#undef BODY
};

#define CASES (2 * 2 * FIXTURE_FAULTS)

static uint32_t make_cases(fixture_case *c, bool uring)
{
    static const char *const fault[] = {"plain", "short", "interrupted"};
    uint32_t n = 0;
    for (int threads = uring ? 0 : 1; threads < 2; threads++)
        for (int buffered = 0; buffered < 2; buffered++)
            for (int f = 0; f < FIXTURE_FAULTS; f++) {
                c[n] = (fixture_case){
                    .backend = threads ? GS_IO_THREADS : GS_IO_URING, .buffered = buffered, .fault = f};
                snprintf(c[n].name, sizeof(c[n].name), "%s, %s, %s", threads ? "threads" : "io_uring",
                         buffered ? "buffered" : "direct", fault[f]);
                n++;
            }
    return n;
}

int main(void)
{
    static fixture_case cases[CASES];
    static struct CMUnitTest tests[CASES * GS_ARRAY_LEN(bodies)];
    static char names[CASES * GS_ARRAY_LEN(bodies)][128];
    gs_io *io = NULL;
    size_t count = 0;

    const bool uring = gs_io_open(&io, &(gs_io_config){.backend = GS_IO_URING}) == GS_OK;
    gs_io_close(io);
    if (!uring)
        print_message("io_uring is not tested: %s\n", gs_last_error());
    const uint32_t n = make_cases(cases, uring);
    for (uint32_t i = 0; i < n; i++)
        for (size_t k = 0; k < GS_ARRAY_LEN(bodies); k++) {
            if (bodies[k].own_fault && cases[i].fault != FIXTURE_NONE)
                continue;
            snprintf(names[count], sizeof(names[count]), "test_io__%s (%s)", bodies[k].name, cases[i].name);
            tests[count] = (struct CMUnitTest){.name = names[count], .test_func = bodies[k].run,
                                               .initial_state = &cases[i]};
            count++;
        }
    return _cmocka_run_group_tests("io/io", tests, count, NULL, NULL);
}
