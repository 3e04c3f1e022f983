/* How many bytes the disk has under way, against sums worked out by hand: 1.25 times what it moves in its latency and
 * in the time of what the thread that feeds it is at, at a moment picked at random. */
#include <string.h>

#include "base/size.h"
#include "schedule/simulate.h"
#include "support/moves.h"
#include "support/support.h"

enum { TASKS = 4 };

struct fixture {
    gs_program program;
    gs_stage stage;
    gs_task task[TASKS];
    gs_plan_pass pass[2];
    gs_plan plan;
    gs_cost cost;
    gs_topology topology;
};

/* A disk of 1e10 bytes a second and 1 ms, memory of 1e9 floats a second, checks of 1e9 bytes and links of 1e9. */
static void fixture_make(struct fixture *b)
{
    memset(b, 0, sizeof(*b));
    b->program = (gs_program){.stages = 1, .stage = &b->stage, .passes = 2};
    b->plan = (gs_plan){.task = b->task, .pass = b->pass, .passes = 2};
    b->topology = (gs_topology){.devices = 1, .switches = 1, .at = {{.devices = 1}}};
    b->cost.seconds[GS_WORK_MEMORY][1] = 1e-9;
    b->cost.seconds[GS_WORK_CHECK][1] = 1e-9;
    b->cost.seconds[GS_WORK_TO_DEVICE][1] = 1e-9;
    b->cost.read_bps = 1e10;
    b->cost.latency_seconds = 1e-3;
}

static const gs_task zero = {.kind = GS_TASK_ZERO};

static void add(struct fixture *b, gs_task like, gs_check check, uint64_t bytes)
{
    like.check = check;
    like.bytes = bytes;
    b->task[b->plan.tasks++] = like;
    b->pass[0].tasks++;
}

static uint64_t flight(const struct fixture *b, const gs_cost *cost, uint32_t pass)
{
    const gs_simulation_input in = {&b->plan, &b->program, NULL, 1, cost, &b->topology, pass, NULL};
    return gs_flight_bytes(&in);
}

static uint64_t whole_mib(double bytes) { return ((uint64_t)bytes + 1048575) / 1048576 * 1048576; }

static void test_flight__lasts_until_the_thread_looks_again(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    add(&b, zero, GS_CHECK_NONE, 4 * 1000 * 1000); /* 1 ms */
    assert_int_equal(flight(&b, &b.cost, 0), whole_mib(1.25 * 1e10 * (1e-3 + 1e-3)));
    add(&b, zero, GS_CHECK_NONE, 4 * 3000 * 1000); /* 3 ms: of 4 ms, 3 are of this one */
    assert_int_equal(flight(&b, &b.cost, 0), whole_mib(1.25 * 1e10 * (1e-3 + (1 * 1e-3 + 3 * 3e-3) / 4)));
    assert_int_equal(flight(&b, &b.cost, 1), whole_mib(1.25 * 1e10 * 1e-3)); /* a pass of nothing: the latency alone */
    b.cost.read_bps = 5e9;
    assert_int_equal(flight(&b, &b.cost, 0), whole_mib(1.25 * 5e9 * (1e-3 + (1 * 1e-3 + 3 * 3e-3) / 4)));
}

/* The thread that feeds the disk does not compute there; it verifies, and a place is free when a copy is over. */
static void test_flight__of_devices_with_memory_lasts_a_check_or_a_copy(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    b.plan.devices = 1;
    add(&b, zero, GS_CHECK_NONE, 40 * 1000 * 1000);
    add(&b, (gs_task){READS}, GS_CHECK_BLOCKS, 2 * 1000 * 1000); /* 2 ms */
    assert_int_equal(flight(&b, &b.cost, 0), whole_mib(1.25 * 1e10 * 3e-3));
    add(&b, (gs_task){UPLOADS_TO(0)}, GS_CHECK_NONE, 3 * 1000 * 1000);
    assert_int_equal(flight(&b, &b.cost, 0), whole_mib(1.25 * 1e10 * 4e-3));
    b.topology.at[0].host_bps = 3e9; /* that copy takes 1 ms then */
    assert_int_equal(flight(&b, &b.cost, 0), whole_mib(1.25 * 1e10 * 3e-3));
}

static void test_flight__has_bounds(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    b.cost.latency_seconds = 1e-5;
    assert_int_equal(flight(&b, &b.cost, 0), 4 * 1048576);
    b.cost.latency_seconds = 1;
    assert_int_equal(flight(&b, &b.cost, 0), 64 * 1048576);
    assert_int_equal(flight(&b, NULL, 0), 16 * 1048576);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flight__lasts_until_the_thread_looks_again),
        cmocka_unit_test(test_flight__of_devices_with_memory_lasts_a_check_or_a_copy),
        cmocka_unit_test(test_flight__has_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
