/* What a pass moves over each link, of a plan made by hand: two devices, two passes, whole pieces and runs. */
#include <string.h>

#include "base/size.h"
#include "plan/links.h"
#include "support/moves.h"
#include "support/support.h"

#define BLOCK GS_BLOCK_BYTES

static gs_task task[] = {
    {READS, .bytes = 8 * BLOCK},
    {READS, .bytes = 8 * BLOCK, .runs = 2, .first_run = 0}, /* 1 + 2 blocks */
    {.kind = GS_TASK_ZERO, .bytes = 1000},
    {UPLOADS_TO(1), .bytes = 8 * BLOCK - 100, .runs = 2, .first_run = 2}, /* ends early */
    {UPLOADS_TO(0), .bytes = 700},
    {UPLOADS_TO(0), .bytes = 90 * 64, .row_bytes = 64, .moved_rows = 7}, /* of 90 rows */
    {FORWARDS(0, 1), .bytes = 600},
    {.kind = GS_TASK_VERTEX, .device = 1, .rows = 10},
    {DOWNLOADS_FROM(1), .bytes = 500},
    {WRITES, .bytes = 2 * BLOCK},
    {WRITES, .bytes = BLOCK},
    /* the other pass */
    {READS, .bytes = BLOCK},
    {DOWNLOADS_FROM(0), .bytes = 40},
    {DOWNLOADS_FROM(0), .bytes = 2},
    {LOADS_TO(1), .bytes = 3 * BLOCK, .chunk_bytes = 3 * BLOCK},
    {LOADS_TO(1), .bytes = BLOCK, .chunk_bytes = BLOCK},
};
static gs_block_run run[] = {{0, 1}, {4, 2}, {1, 1}, {6, 2}};
static gs_plan_pass pass[] = {{.first_task = 0, .tasks = 11}, {.first_task = 11, .tasks = 5}};
static const gs_plan plan = {.tasks = GS_ARRAY_LEN(task), .devices = 2, .passes = 2, .runs = 4, .task = task,
                             .run = run, .pass = pass};

/* Links that are not named have nothing, and what is behind the last one stays as it was. */
static void expect(uint32_t which, const gs_link_load *want, uint32_t wanted)
{
    gs_link_load got[GS_PLAN_LINKS], guard;
    uint64_t bytes = 0, all = 0;

    memset(&guard, 0xa5, sizeof(guard));
    for (uint32_t l = 0; l < GS_PLAN_LINKS; l++)
        got[l] = guard;
    gs_plan_load_links(got, &plan, which);
    for (uint32_t l = gs_plan_links(&plan); l < GS_PLAN_LINKS; l++)
        assert_memory_equal(&got[l], &guard, sizeof(guard));
    for (uint32_t w = 0; w < wanted; w++) {
        uint32_t l = 0;
        while (l < gs_plan_links(&plan) && (got[l].link.from != want[w].link.from || got[l].link.to != want[w].link.to))
            l++;
        assert_true(l < gs_plan_links(&plan));
        assert_int_equal(got[l].bytes, want[w].bytes);
        assert_int_equal(got[l].requests, want[w].requests);
        assert_int_equal(got[l].picked, want[w].picked);
        bytes += want[w].bytes;
    }
    for (uint32_t l = 0; l < gs_plan_links(&plan); l++)
        all += got[l].bytes;
    assert_int_equal(all, bytes);
}

static void test_links__add_up_what_goes_over_each(void **state)
{
    (void)state;
    const uint32_t a = GS_DEVICE_MEMORIES, b = GS_DEVICE_MEMORIES + 1;
    const gs_link_load first[] = {
        {{GS_DISK, GS_HOST}, 11 * BLOCK, 3, 0}, {{GS_HOST, GS_DISK}, 3 * BLOCK, 2, 0},
        {{GS_HOST, a}, 700 + 448, 2, 448},      {{GS_HOST, b}, 3 * BLOCK - 100, 2, 0},
        {{a, b}, 600, 1, 0},                    {{b, GS_HOST}, 500, 1, 0}};
    const gs_link_load second[] = {
        {{GS_DISK, GS_HOST}, BLOCK, 1, 0}, {{a, GS_HOST}, 42, 2, 0}, {{GS_DISK, b}, 4 * BLOCK, 2, 0}};

    assert_int_equal(gs_plan_links(&plan), 10);
    expect(0, first, GS_ARRAY_LEN(first));
    expect(1, second, GS_ARRAY_LEN(second));
}

static void test_links__of_a_device_on_host_memory_are_the_disks(void **state)
{
    (void)state;
    gs_link_load got[GS_PLAN_LINKS];
    gs_plan_pass one = {.first_task = 0, .tasks = 3};
    gs_plan on_host = {.tasks = 3, .passes = 1, .runs = 4, .task = task, .run = run, .pass = &one};

    assert_int_equal(gs_plan_links(&on_host), 2);
    gs_plan_load_links(got, &on_host, 0);
    assert_int_equal(got[0].bytes, 11 * BLOCK);
    assert_true(got[1].link.from == GS_HOST && got[1].link.to == GS_DISK);
    assert_int_equal(got[1].bytes + got[1].requests, 0);
}

/* Two switches, of two devices and of one: who waits for whom? */
static void test_links__of_a_switch_share_a_wire_each_way(void **state)
{
    (void)state;
    const gs_topology t = {.devices = 3, .switches = 2, .at = {{0, 2, 5e9, 7e9}, {2, 1, 6e9, 0}},
                           .across = {.bps = 3e9}};
    enum { A = GS_DEVICE_MEMORIES, B, C };
    const gs_plan_link to_a = {GS_HOST, A}, to_b = {GS_HOST, B}, to_c = {GS_HOST, C}, from_b = {B, GS_HOST};
    const gs_plan_link a_to_b = {A, B}, b_to_c = {B, C}, a_to_c = {A, C}, read_a = {GS_DISK, A};
    const uint32_t disk = gs_link_wire(&t, (gs_plan_link){GS_DISK, GS_HOST});

    assert_int_equal(gs_link_wire(&t, (gs_plan_link){GS_HOST, GS_DISK}), disk);
    assert_int_equal(gs_link_wire(&t, read_a), disk);
    assert_int_equal(gs_link_wire(&t, to_a), gs_link_wire(&t, to_b));
    assert_int_equal(gs_link_wire(&t, b_to_c), gs_link_wire(&t, a_to_c));
    const uint32_t wire[] = {disk, gs_link_wire(&t, to_a), gs_link_wire(&t, to_c), gs_link_wire(&t, from_b),
                             gs_link_wire(&t, a_to_b), gs_link_wire(&t, b_to_c)};
    for (size_t i = 0; i < GS_ARRAY_LEN(wire); i++)
        for (size_t k = 0; k < i; k++)
            assert_true(wire[i] != wire[k] && wire[i] < GS_WIRES);
    assert_true(gs_link_said_bps(&t, to_b) == 5e9 && gs_link_said_bps(&t, to_c) == 6e9);
    assert_true(gs_link_said_bps(&t, a_to_b) == 7e9 && gs_link_said_bps(&t, b_to_c) == 3e9);
    assert_true(gs_link_said_bps(&t, read_a) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links__add_up_what_goes_over_each),
        cmocka_unit_test(test_links__of_a_device_on_host_memory_are_the_disks),
        cmocka_unit_test(test_links__of_a_switch_share_a_wire_each_way),
    };
    return cmocka_run_group_tests_name("plan/links", tests, NULL, NULL);
}
