/* Runs of needed rows, against the same question asked of every unit of the extent by itself. */
#include <string.h>

#include "schedule/runs.h"
#include "support/support.h"

enum { UNITS = 512, MASK_WORDS = 16, ROOM = UNITS + 1 };

static uint32_t rng = 1;
static uint32_t below(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(rng >> 4) * n >> 28);
}

/* Marks the units that needed rows touch. */
static void mark_units(bool *needed, const gs_run_extent *x, const uint64_t *mask, uint32_t granule)
{
    for (uint32_t r = 0; r < x->rows; r++)
        if (mask[r / granule / 64] >> (r / granule % 64) & 1)
            /* all sizes are multiples */
            for (uint64_t b = x->skip + r * x->row; b < x->skip + (r + 1) * x->row; b += 64)
                needed[b / x->unit] = true;
}

/* Seconds when gaps of up to `gap` units are read through, from the marks alone. */
static double seconds_with(const bool *needed, uint64_t units, const gs_run_extent *x, const gs_schedule_config *c,
                           uint64_t gap)
{
    double seconds = 0;
    uint64_t last = UINT64_MAX;
    for (uint64_t u = 0; u < units; u++) {
        if (!needed[u])
            continue;
        const uint64_t from = last != UINT64_MAX && u - last - 1 <= gap ? last + 1 : u;
        seconds +=
            last == UINT64_MAX || from == u ? (last != UINT64_MAX && u == last + 1 ? 0 : c->disk_request_seconds) : 0;
        seconds += (double)(GS_MIN((u + 1) * x->unit, x->bytes) - from * x->unit) / c->disk_bps;
        last = u;
    }
    return seconds;
}

static void check_one(void)
{
    static gs_block_run run[ROOM];
    static const uint64_t unit_of[] = {GS_BLOCK_BYTES, 4 * GS_BLOCK_BYTES};
    const uint32_t granule = 16u << below(3);
    bool needed[UNITS + 1] = {false}, read[UNITS + 1] = {false};
    uint64_t mask[MASK_WORDS] = {0};
    gs_run_extent x = {
        .unit = unit_of[below(2)], .row = 64u << below(4), .rows = 1 + below(MASK_WORDS * 64 * granule - 1)};
    x.rows = GS_MIN(x.rows, 100 * (uint32_t)(x.unit / x.row));
    x.skip = below((uint32_t)x.unit) / 64 * 64;
    x.bytes = gs_align_up(x.skip + x.rows * x.row, GS_BLOCK_BYTES);
    const uint32_t granules = (uint32_t)gs_div_up(x.rows, granule), stretches = below(40);
    for (uint32_t k = 0; k < stretches; k++)
        for (uint32_t g = below(granules), n = 1 + below(1 + below(20)); n > 0 && g < granules; n--, g++)
            mask[g / 64] |= 1ull << (g % 64);
    const gs_schedule_config c = {.needs = {.granules = {.rows = granule, .words = MASK_WORDS}}, .disk_bps = 1e9,
                                  .disk_request_seconds = 1e-6 * (double)(1 + below(60))};
    const gs_layout l = {.config = &c};
    const uint64_t units = gs_div_up(x.bytes, x.unit);
    uint32_t runs;
    const uint64_t bytes = gs_runs_choose(run, ROOM, &runs, &l, &x, mask);
    double seconds = c.disk_request_seconds + (double)x.bytes / c.disk_bps, best = seconds;
    uint64_t sum = 0, end = 0;

    mark_units(needed, &x, mask, granule);
    if (runs > 0)
        seconds = (double)bytes / c.disk_bps + runs * c.disk_request_seconds;
    for (uint32_t r = 0; r < runs; r++) {
        assert_true(run[r].blocks > 0 && (r == 0 || run[r].first * GS_BLOCK_BYTES > end));
        end = (run[r].first + (uint64_t)run[r].blocks) * GS_BLOCK_BYTES;
        assert_true(end <= x.bytes);
        sum += run[r].blocks * GS_BLOCK_BYTES;
        for (uint64_t u = run[r].first * GS_BLOCK_BYTES / x.unit; u * x.unit < end; u++)
            read[u] = true;
    }
    if (stretches == 0) {
        assert_int_equal(bytes, 0);
        return;
    }
    assert_int_equal(bytes, runs > 0 ? sum : x.bytes);
    for (uint64_t u = 0; u < units && runs > 0; u++)
        assert_true(read[u] || !needed[u]);
    for (uint64_t gap = 0; gap < units; gap++)
        best = GS_MIN(best, seconds_with(needed, units, &x, &c, gap));
    /* Nothing is better, but that the whole interval is taken where runs save less than 2 %. */
    assert_true(seconds * 0.98 <= best * (1 + 1e-9) && seconds >= best * (1 - 1e-9));
}

static void test_runs__are_the_best_and_hold_all_rows(void **state)
{
    (void)state;
    for (int k = 0; k < 4000; k++)
        check_one();
}

static void test_runs__gaps_are_read_where_a_request_costs_more(void **state)
{
    (void)state;
    gs_schedule_config c = {.needs = {.granules = {16, 1}}, .disk_bps = 4096e3, .disk_request_seconds = 1e-3};
    const gs_layout l = {.config = &c};
    const gs_run_extent x = {.bytes = 8 * 4096, .row = 256, .rows = 128, .unit = 4096};
    uint64_t mask = 1 | 1 << 4;
    gs_block_run run[9];
    uint32_t runs = 0;
    /* A block takes 1 ms and so does a request: 2 blocks in 2 requests take 4 ms, 5 in one take 6. */
    assert_int_equal(gs_runs_choose(run, 9, &runs, &l, &x, &mask), 2 * 4096);
    assert_int_equal(runs, 2);
    assert_int_equal(run[0].first, 0);
    assert_int_equal(run[0].blocks, 1);
    assert_int_equal(run[1].first, 4);
    assert_int_equal(run[1].blocks, 1);
    c.disk_request_seconds = 4e-3; /* 10 ms against 9 */
    assert_int_equal(gs_runs_choose(run, 9, &runs, &l, &x, &mask), 5 * 4096);
    assert_int_equal(runs, 1);
    assert_int_equal(run[0].blocks, 5);
    mask = 1 | 1 << 7;
    c.disk_request_seconds = 9e-3; /* 20 ms against 17 for everything */
    assert_int_equal(gs_runs_choose(run, 9, &runs, &l, &x, &mask), 8 * 4096);
    assert_int_equal(runs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs__gaps_are_read_where_a_request_costs_more),
        cmocka_unit_test(test_runs__are_the_best_and_hold_all_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
