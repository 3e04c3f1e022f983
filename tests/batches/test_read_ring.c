/* Runs come out of a ring as they lie in the file, in the order in which they were asked for, whatever their length. */
#include "support/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "batch/batch_rows.h"

enum { BLOCKS = 1024, RING = 32, RUNS = 4000 };

static uint32_t rng = 5;

static uint32_t draw(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (rng >> 8) % n;
}

/* Each word of a block is its number. */
static const char *make_file(const char *folder)
{
    static uint64_t block[GS_BLOCK_BYTES / 8];
    const char *const path = gs_test_path(folder, "file");
    FILE *const f = fopen(path, "wb");

    assert_non_null(f);
    for (uint64_t k = 0; k < BLOCKS; k++) {
        for (size_t i = 0; i < GS_BLOCK_BYTES / 8; i++)
            block[i] = k;
        assert_int_equal(fwrite(block, 1, sizeof(block), f), sizeof(block));
    }
    assert_int_equal(fclose(f), 0);
    return path;
}

static void expect_front(gs_read_ring *r, uint32_t mark, uint64_t begin, uint64_t blocks)
{
    const gs_read_run *run;
    const uint8_t *bytes;

    gs_assert_ok(gs_read_ring_front(r, &run, &bytes));
    assert_int_equal(run->mark, mark);
    assert_int_equal(run->begin, begin * GS_BLOCK_BYTES);
    assert_int_equal(run->blocks, blocks);
    for (uint64_t k = 0; k < blocks; k++) {
        uint64_t word[2];
        memcpy(word, bytes + k * GS_BLOCK_BYTES, 8);
        memcpy(word + 1, bytes + (k + 1) * GS_BLOCK_BYTES - 8, 8);
        assert_int_equal(word[0], begin + k);
        assert_int_equal(word[1], begin + k);
    }
    gs_read_ring_pop(r);
}

/* Random lengths up to all of the ring; it is filled and emptied by random amounts. `runs`: that have room. */
static void check_order(const char *path, uint32_t runs, uint64_t most)
{
    static uint64_t begin[RUNS], blocks[RUNS];
    uint32_t put = 0, taken = 0;
    gs_read_ring r;

    gs_assert_ok(gs_read_ring_open(&r, path, RING * GS_BLOCK_BYTES, runs));
    for (uint32_t k = 0; k < RUNS; k++) {
        blocks[k] = 1 + draw(draw(4) ? 3 : (uint32_t)most);
        begin[k] = draw(BLOCKS - RING);
    }
    while (taken < RUNS) {
        for (uint32_t n = draw(40); n > 0 && put < RUNS; n--) {
            const bool room = gs_read_ring_put(&r, begin[put] * GS_BLOCK_BYTES, blocks[put] * GS_BLOCK_BYTES, put);
            assert_true(room || put > taken);
            assert_true(put - taken < runs || !room);
            put += room;
        }
        for (uint32_t n = draw(40); n > 0 && taken < put; n--, taken++)
            expect_front(&r, taken, begin[taken], blocks[taken]);
        if (draw(300) == 0) { /* what is in it is forgotten */
            gs_read_ring_drain(&r);
            taken = put;
        }
    }
    gs_read_ring_close(&r);
}

static void test_read_ring__runs_come_in_order(void **state)
{
    char *folder = gs_test_temp_dir();
    const char *const path = make_file(folder);

    (void)state;
    check_order(path, UINT32_MAX, RING / 2);
    check_order(path, UINT32_MAX, RING);
    check_order(path, 3, RING);
    gs_test_temp_remove(folder);
}

/* A failure is that of its run: those before it come. */
static void test_read_ring__a_failure_is_of_its_run(void **state)
{
    char *folder = gs_test_temp_dir();
    const gs_read_run *run;
    const uint8_t *bytes;
    gs_read_ring r;

    (void)state;
    gs_assert_ok(gs_read_ring_open(&r, make_file(folder), RING * GS_BLOCK_BYTES, UINT32_MAX));
    assert_true(gs_read_ring_put(&r, 9 * GS_BLOCK_BYTES, 2 * GS_BLOCK_BYTES, 5));
    assert_true(gs_read_ring_put(&r, BLOCKS * GS_BLOCK_BYTES, GS_BLOCK_BYTES, 6));
    gs_sleep(0.05); /* both have come */
    expect_front(&r, 5, 9, 2);
    assert_int_equal(gs_read_ring_front(&r, &run, &bytes), GS_EFORMAT);
    gs_read_ring_drain(&r);
    assert_true(gs_read_ring_put(&r, 7 * GS_BLOCK_BYTES, GS_BLOCK_BYTES, 1));
    expect_front(&r, 1, 7, 1);
    gs_read_ring_close(&r);
    gs_assert_fails(gs_read_ring_open(&r, gs_test_path(folder, "nothing"), RING * GS_BLOCK_BYTES, 3), GS_ENOTFOUND,
                    "nothing");
    gs_read_ring_close(&r);
    gs_test_temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_ring__runs_come_in_order),
        cmocka_unit_test(test_read_ring__a_failure_is_of_its_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
