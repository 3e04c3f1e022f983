/* Rows picked from the memories of devices and from what the host has sent: each byte is the one that its row has. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "device_fixture.h"
#include "gpu_devices.h"

enum { KEPT = 41, SENT = 30, PICKED = 301, DEVICES = 2, MOST_BYTES = 1028 };

/* Of a device: what it keeps, then what the host sends, the places and the rows that are picked. */
typedef struct places {
    uint8_t *kept, *sent, *place, *to;
} places;

static uint8_t byte_of(uint32_t row, uint32_t at) { return (uint8_t)random_below(row * 2048 + at, 17, 256); }

static void fill(uint8_t *to, uint32_t first, uint32_t step, uint32_t rows, uint32_t row_bytes)
{
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t k = 0; k < row_bytes; k++)
            to[r * row_bytes + k] = byte_of(first + r * step, k);
}

static void wait_copied(gs_device *d)
{
    uint64_t number;
    bool done = false;
    gs_assert_ok(gs_device_mark_transfers(d, GS_DEVICE_FROM_HOST, &number));
    gs_assert_ok(gs_device_poll_transfers(d, GS_DEVICE_FROM_HOST, number, true, &done));
    assert_true(done);
}

static void bring(gs_device *d, void *to, const void *from, uint64_t bytes)
{
    gs_assert_ok(gs_device_transfer(d, GS_DEVICE_FROM_HOST, NULL, to, from, bytes));
    wait_copied(d);
}

static places take(gs_device *d)
{
    static const uint64_t kept = (uint64_t)KEPT * MOST_BYTES, sent = (uint64_t)SENT * MOST_BYTES;
    const uint64_t at[] = {0, gs_align_up(kept, 256), gs_align_up(kept, 256) + gs_align_up(sent, 256)};
    const uint64_t to = at[2] + gs_align_up(PICKED * sizeof(uint32_t), 256);
    const gs_device_memory m = {.arena_bytes = to + (uint64_t)PICKED * MOST_BYTES};
    void *arena = NULL;
    gs_assert_ok(gs_device_take_memory(d, &m, &arena));
    gs_assert_ok(gs_device_join(&d, 1));
    uint8_t *const p = arena;
    return (places){p + at[0], p + at[1], p + at[2], p + to};
}

/* Rows 0 .. KEPT - 1 are dealt to the devices in turn; the next ones are sent, less the first two. */
static void check(gs_device *const *d, const places *p, uint32_t devices, uint32_t row_bytes)
{
    static uint8_t host[(uint64_t)PICKED * MOST_BYTES];
    static uint32_t place[PICKED];
    gs_pick_launch l = {.sent = p[0].sent, .place = (const uint32_t *)(const void *)p[0].place, .to = p[0].to,
                        .devices = devices, .rows_kept = KEPT, .first_sent = 2, .rows = PICKED,
                        .row_bytes = row_bytes};
    for (uint32_t k = 0; k < devices; k++) {
        const uint32_t rows = (KEPT + devices - 1 - k) / devices;
        fill(host, k, devices, rows, row_bytes);
        bring(d[k], p[k].kept, host, (uint64_t)rows * row_bytes);
        l.kept[k] = p[k].kept;
    }
    fill(host, KEPT + 2, 1, SENT, row_bytes);
    bring(d[0], p[0].sent, host, (uint64_t)SENT * row_bytes);
    for (uint32_t i = 0; i < PICKED; i++) {
        place[i] = random_below(i, 18, KEPT + SENT);
        place[i] += place[i] >= KEPT ? 2 : 0;
    }
    bring(d[0], p[0].place, place, sizeof(place));
    gs_assert_ok(gs_device_pick_rows(d[0], &l));
    wait_copied(d[0]);
    gs_assert_ok(gs_device_peek(d[0], host, p[0].to, (uint64_t)PICKED * row_bytes));
    for (uint32_t i = 0; i < PICKED; i++)
        for (uint32_t k = 0; k < row_bytes; k++)
            if (host[(uint64_t)i * row_bytes + k] != byte_of(place[i], k))
                fail_msg("%u devices, rows of %u bytes: byte %u of row %u, which is row %u", devices, row_bytes, k, i,
                         place[i]);
}

static void test_cuda_pick__rows_come_from_the_host_and_from_every_device(void **state)
{
    static const uint32_t row_bytes[] = {2, 4, 6, 16, 20, 24, 48, 130, 512, 600, MOST_BYTES};
    static const char *const spec[] = {"cuda:0", "cuda:1"};
    gs_device *d[DEVICES];
    places p[DEVICES];
    const uint32_t devices = real_gpu() ? 1 : DEVICES; /* there may be one */
    bool open = false;
    (void)state;
    setenv("GS_HOST_GPUS", "2", 1);
    choose_gpu();
    for (uint32_t k = 0; k < devices; k++) {
        gs_assert_ok(gs_device_open(&d[k], spec[k], 1));
        p[k] = take(d[k]);
    }
    for (uint32_t k = 1; k < devices; k++) {
        gs_assert_ok(gs_device_open_peer(d[0], d[k], &open));
        assert_true(open);
    }
    for (size_t i = 0; i < GS_ARRAY_LEN(row_bytes); i++)
        for (uint32_t n = 1; n <= devices; n++)
            check(d, p, n, row_bytes[i]);
    for (uint32_t k = 0; k < devices; k++)
        gs_device_quiet(d[k]);
    for (uint32_t k = 0; k < devices; k++) {
        gs_device_give_memory(d[k]);
        gs_device_close(d[k]);
    }
}

enum { TABLE = 301 };

/* Rows of the host by themselves: those whose bits are set are there, and the others, where a kernel fetches them, as
 * they were. Where the host's memory is not pinned, all come. */
static void check_sent(gs_device *d, const gs_device_memory *m, uint8_t *arena, uint32_t row_bytes)
{
    static uint8_t got[TABLE * MOST_BYTES], before[TABLE * MOST_BYTES];
    const gs_rows_launch l = {.to = arena, .from = m->host[0].memory, .bits = m->host[2].memory, .rows = TABLE,
                              .row_bytes = row_bytes};
    const bool pinned = gs_device_unpinned(d) == NULL;
    memset(before, 0xEE, sizeof(before));
    fill(m->host[0].memory, 0, 1, TABLE, row_bytes);
    bring(d, arena, before, sizeof(before));
    gs_assert_ok(gs_device_send_rows(d, &l));
    wait_copied(d);
    gs_assert_ok(gs_device_peek(d, got, arena, (uint64_t)TABLE * row_bytes));
    for (uint32_t r = 0; r < TABLE; r++)
        for (uint32_t k = 0; k < row_bytes; k++) {
            const bool sent = !pinned || (l.bits[r / 64] >> (r % 64) & 1) != 0;
            if (got[r * row_bytes + k] != (sent ? byte_of(r, k) : 0xEE))
                fail_msg("rows of %u bytes: byte %u of row %u, %s", row_bytes, k, r, sent ? "sent" : "not sent");
        }
}

static void test_cuda_pick__rows_of_the_host_come_by_themselves(void **state)
{
    static const uint32_t row_bytes[] = {1, 2, 6, 7, 16, 20, 48, 130, 256, 600, MOST_BYTES};
    gs_device *d;
    void *arena = NULL;
    (void)state;
    choose_gpu();
    gs_assert_ok(gs_device_open(&d, "cuda", 1));
    uint64_t *const bits = gs_alloc_pages(GS_BLOCK_BYTES);
    for (uint32_t r = 0; r < TABLE; r++)
        bits[r / 64] |= (uint64_t)(random_below(r, 19, 3) == 0 || r == TABLE - 1) << (r % 64);
    const gs_device_memory m = {.arena_bytes = (uint64_t)TABLE * MOST_BYTES,
                                .host = {{gs_alloc_pages((uint64_t)TABLE * MOST_BYTES), (uint64_t)TABLE * MOST_BYTES},
                                         {NULL, 0}, {bits, GS_BLOCK_BYTES}}};
    gs_assert_ok(gs_device_take_memory(d, &m, &arena));
    gs_assert_ok(gs_device_join(&d, 1));
    for (size_t i = 0; i < GS_ARRAY_LEN(row_bytes); i++)
        check_sent(d, &m, arena, row_bytes[i]);
    gs_device_quiet(d);
    gs_device_give_memory(d);
    gs_device_close(d);
    gs_free_pages(m.host[0].memory, m.host[0].bytes);
    gs_free_pages(bits, GS_BLOCK_BYTES);
}

/* Nothing has changed where GPUs do not reach each other; one device twice is itself. */
static void test_cuda_pick__gpus_that_do_not_reach_each_other_say_so(void **state)
{
    gs_device *d[3];
    bool open = true;
    (void)state;
    if (real_gpu())
        skip();
    setenv("GS_HOST_GPUS", "2", 1);
    setenv("GS_HOST_GPU_PEERS", "none", 1);
    choose_gpu();
    for (uint32_t k = 0; k < 3; k++)
        gs_assert_ok(gs_device_open(&d[k], k == 1 ? "cuda:1" : "cuda:0", 1));
    gs_assert_ok(gs_device_open_peer(d[0], d[1], &open));
    assert_false(open);
    gs_assert_ok(gs_device_open_peer(d[0], d[2], &open));
    assert_true(open);
    unsetenv("GS_HOST_GPU_PEERS");
    for (uint32_t k = 0; k < 3; k++)
        gs_device_close(d[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_pick__rows_come_from_the_host_and_from_every_device),
        cmocka_unit_test(test_cuda_pick__rows_of_the_host_come_by_themselves),
        cmocka_unit_test(test_cuda_pick__gpus_that_do_not_reach_each_other_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
