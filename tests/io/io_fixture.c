#include "io_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "io/io_internal.h"

uint32_t fixture_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

uint8_t fixture_byte(uint64_t offset, uint32_t salt)
{
    const uint64_t v = (offset / 8 + 1) * 0x9E3779B97F4A7C15ull + salt * 0xD1B54A32D192ED03ull;
    return (uint8_t)((v ^ (v >> 29)) >> (offset % 8 * 8));
}

void fixture_fill(uint8_t *dst, uint64_t offset, uint64_t bytes, uint32_t salt)
{
    for (uint64_t i = 0; i < bytes; i++)
        dst[i] = fixture_byte(offset + i, salt);
}

void fixture_expect(const uint8_t *got, uint64_t offset, uint64_t bytes, uint32_t salt)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (got[i] != fixture_byte(offset + i, salt))
            fail_msg("byte %llu is 0x%02x, expected 0x%02x", (unsigned long long)(offset + i), got[i],
                     fixture_byte(offset + i, salt));
}

/* Half of the pieces are cut to a random length, aligned or not; or
 * half are interrupted, in both ways that a system call can be. */
static int inject(void *context, const gs_io_request *piece, uint64_t *length)
{
    fixture *b = context;
    const uint32_t r = fixture_random(&b->rng);

    assert_true(piece->length > 0 && *length == piece->length);
    if (r % 2 == 0)
        return 0;
    if (b->c->fault == FIXTURE_INTERRUPT)
        return r % 4 == 1 ? EINTR : EAGAIN;
    *length = 1 + fixture_random(&b->rng) % piece->length;
    return 0;
}

char fixture_dir[64];

int fixture_dir_make(void **state)
{
    (void)state;
    snprintf(fixture_dir, sizeof(fixture_dir), "io-test-XXXXXX");
    return mkdtemp(fixture_dir) == NULL;
}

int fixture_dir_remove(void **state)
{
    (void)state;
    return rmdir(fixture_dir);
}

void fixture_open(fixture *b, const fixture_case *c, uint32_t requests, uint32_t depth, uint64_t piece_bytes,
                  uint64_t bytes)
{
    memset(b, 0, sizeof(*b));
    b->c = c;
    b->rng = 12345;
    b->bytes = bytes;
    b->live = gs_alloc_live_bytes();
    b->memory = gs_alloc_pages(bytes);
    assert_non_null(b->memory);
    const struct gs_io_buffer area = {.base = b->memory, .bytes = bytes};
    const gs_io_config config = {.backend = c->backend, .requests = requests, .depth = depth,
                                 .piece_bytes = piece_bytes, .buffers = &area, .buffer_count = 1};
    if (gs_io_open(&b->io, &config) != GS_OK)
        fail_msg("gs_io_open: %s", gs_last_error());
    gs_io__force_buffered(b->io, c->buffered);
    if (c->fault != FIXTURE_NONE)
        gs_io_set_fault(b->io, inject, b);
    snprintf(b->dir, sizeof(b->dir), "io-test-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
}

void fixture_close(fixture *b)
{
    gs_io_close(b->io);
    gs_free_pages(b->memory, b->bytes);
    assert_int_equal(gs_remove_tree(b->dir), GS_OK);
    assert_int_equal(gs_alloc_live_bytes(), b->live); /* nothing leaked */
}

uint32_t fixture_add(fixture *b, const char *name, gs_io_mode mode)
{
    uint32_t index = UINT32_MAX;
    snprintf(b->path, sizeof(b->path), "%s/%s", b->dir, name);
    if (gs_io_add_file(b->io, &index, b->path, mode) != GS_OK)
        fail_msg("gs_io_add_file: %s", gs_last_error());
    if (b->c->buffered)
        assert_false(gs_io_is_direct(b->io, index));
    return index;
}

void fixture_make_file(fixture *b, const char *name, uint64_t bytes, uint32_t salt)
{
    uint8_t *const data = malloc(bytes + 1);
    assert_non_null(data);
    fixture_fill(data, 0, bytes, salt);
    snprintf(b->path, sizeof(b->path), "%s/%s", b->dir, name);
    FILE *f = fopen(b->path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    free(data);
}

void fixture_expect_file(const fixture *b, uint64_t bytes, uint32_t salt)
{
    uint8_t *const data = malloc(bytes + 1);
    assert_non_null(data);
    FILE *f = fopen(b->path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(data, 1, bytes + 1, f), bytes);
    fclose(f);
    fixture_expect(data, 0, bytes, salt);
    free(data);
}

static void reap_good(fixture *b)
{
    gs_io_completion done[8];
    const uint32_t n = gs_io_reap(b->io, done, GS_ARRAY_LEN(done), true);
    assert_true(n > 0);
    for (uint32_t i = 0; i < n; i++)
        if (done[i].status != GS_OK)
            fail_msg("request %llu: %s, errno %d", (unsigned long long)done[i].tag, gs_status_text(done[i].status),
                     done[i].error);
}

void fixture_submit(fixture *b, const gs_io_request *r)
{
    gs_status st;
    while ((st = gs_io_submit(b->io, r)) == GS_EAGAIN)
        reap_good(b);
    if (st != GS_OK)
        fail_msg("gs_io_submit: %s", gs_last_error());
}

void fixture_drain(fixture *b)
{
    while (gs_io_outstanding(b->io) > 0)
        reap_good(b);
}

void fixture_expect_text(const char *part)
{
    if (strstr(gs_last_error(), part) == NULL)
        fail_msg("no '%s' in '%s'", part, gs_last_error());
}
