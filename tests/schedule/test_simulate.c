/* The simulator's clock against timelines worked out by hand: reads overlap with computes that do not wait for
 * them, and only with those; the disk moves one thing after the other. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "schedule/simulate.h"
#include "support/moves.h"
#include "support/support.h"

enum { TASKS = 16 };

struct fixture {
    gs_program program;
    gs_stage stage;
    gs_task task[TASKS];
    uint32_t dep[64];
    gs_plan_pass pass;
    gs_plan plan;
    gs_cost cost;
    gs_topology topology; /* of a plan with copies as tasks */
    gs_edge_set set;      /* of EDGES */
};

/* Memory runs at 1e9 floats a second, the disk at 1e8 bytes, and nothing else takes any time. */
static void fixture_make(struct fixture *b)
{
    memset(b, 0, sizeof(*b));
    b->program = (gs_program){.stages = 1, .stage = &b->stage};
    b->plan = (gs_plan){.task = b->task, .dep = b->dep, .pass = &b->pass, .passes = 1};
    b->cost.seconds[GS_WORK_MEMORY][1] = 1e-9;
    b->cost.read_bps = b->cost.write_bps = 1e8;
    b->topology = gs_topology_host;
}

/* One device behind a wire, whose memory is a part of the host's. */
static const gs_topology wire = {.devices = 1, .switches = 1, .at = {{0, 1, 1e8, 0}}, .on_host = {true}};

static const gs_task reads = {READS}, writes = {WRITES}, uploads = {UPLOADS_TO(0)}, downloads = {DOWNLOADS_FROM(0)},
                     loads = {LOADS_TO(0)}, zero = {.kind = GS_TASK_ZERO}, edges = {.kind = GS_TASK_EDGES};

/* Waits for tasks `a` and `b`, GS_NONE for nothing. */
static uint32_t add(struct fixture *b, gs_task like, double milliseconds, uint32_t first, uint32_t second)
{
    gs_task *const t = &b->task[b->plan.tasks];
    const double rate = like.kind == GS_TASK_ZERO ? 4e9 : 1e8; /* bytes a second */
    *t = like;
    t->bytes = (uint64_t)(milliseconds * 1e-3 * rate + 0.5);
    t->first_dep = b->plan.deps;
    if (first != GS_NONE)
        b->dep[b->plan.deps++] = first;
    if (second != GS_NONE)
        b->dep[b->plan.deps++] = second;
    t->deps = b->plan.deps - t->first_dep;
    b->pass.tasks = ++b->plan.tasks;
    return b->plan.tasks - 1;
}

static gs_predicted run(const struct fixture *b)
{
    gs_predicted x;
    const gs_simulation_input in = {&b->plan, &b->program, &b->set, 3, &b->cost, &b->topology, 0, NULL};
    assert_int_equal(gs_simulate(&x, &in), GS_OK);
    return x;
}

static void assert_ms(double seconds, double milliseconds)
{
    assert_true(fabs(seconds - milliseconds * 1e-3) < 1e-6);
}

static void test_simulate__reads_run_ahead_of_computes(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    const uint32_t r0 = add(&b, reads, 10, GS_NONE, GS_NONE);
    add(&b, zero, 20, r0, GS_NONE);
    const uint32_t r1 = add(&b, reads, 10, GS_NONE, GS_NONE);
    add(&b, zero, 20, r1, GS_NONE);
    const gs_predicted x = run(&b);
    assert_ms(x.seconds, 50);
    assert_ms(x.stall_seconds, 10);
    assert_ms(x.read_seconds, 20);
    assert_ms(x.vertex_seconds, 40);
    assert_string_equal(x.bottleneck, "vertex programs");
}

static void test_simulate__a_read_that_waits_for_a_compute_does_not(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    const uint32_t r0 = add(&b, reads, 10, GS_NONE, GS_NONE);
    const uint32_t c0 = add(&b, zero, 20, r0, GS_NONE);
    const uint32_t r1 = add(&b, reads, 10, c0, GS_NONE);
    add(&b, zero, 20, r1, GS_NONE);
    const gs_predicted x = run(&b);
    assert_ms(x.seconds, 60);
    assert_ms(x.stall_seconds, 20);
    assert_string_equal(x.bottleneck, "waiting"); /* the device is busy two thirds of the time */
}

static void test_simulate__writes_and_reads_share_the_disk(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    const uint32_t r0 = add(&b, reads, 30, GS_NONE, GS_NONE);
    const uint32_t c0 = add(&b, zero, 1, r0, GS_NONE);
    const uint32_t w0 = add(&b, writes, 40, c0, GS_NONE);
    const uint32_t r1 = add(&b, reads, 30, w0, GS_NONE); /* reads again what was written */
    const uint32_t r2 = add(&b, reads, 5, GS_NONE, GS_NONE); /* behind it in its lane */
    add(&b, zero, 2, r1, r2);
    const gs_predicted x = run(&b);
    assert_ms(x.seconds, 30 + 1 + 40 + 30 + 5 + 2);
    assert_ms(x.write_seconds, 40);
    assert_string_equal(x.bottleneck, "reading");
}

static void test_simulate__small_requests_cost_their_number(void **state)
{
    (void)state;
    struct fixture b;
    gs_block_run run_of[3] = {{0, 1}, {10, 1}, {20, 1}};
    fixture_make(&b);
    b.cost.request_seconds = 2e-3;
    const uint32_t r0 = add(&b, reads, 10, GS_NONE, GS_NONE);
    b.task[r0].runs = 3;
    b.plan.run = run_of;
    add(&b, zero, 1, r0, GS_NONE);
    const gs_predicted x = run(&b);
    assert_int_equal(gs_task_bytes(&b.plan, &b.task[r0]), 3 * GS_BLOCK_BYTES);
    assert_ms(x.seconds, 3 * (2 + 4096 / 1e8 * 1e3) + 1); /* each on top of its bytes */
}

/* An epoch among others: its first read is made while the one before computes what comes last, if that takes long
 * enough. */
static void check_epochs(double last_compute, double epoch, double stall)
{
    struct fixture b;
    gs_ahead ahead[1];
    fixture_make(&b);
    const uint32_t r0 = add(&b, reads, 10, GS_NONE, GS_NONE);
    const uint32_t c0 = add(&b, zero, 20, r0, GS_NONE);
    const uint32_t r1 = add(&b, reads, 10, GS_NONE, GS_NONE);
    add(&b, zero, last_compute, r1, GS_NONE);
    ahead[0] = (gs_ahead){.task = r0, .first_dep = b.plan.deps, .deps = 1};
    b.dep[b.plan.deps++] = c0;
    b.plan.ahead = ahead;
    b.plan.aheads = b.pass.aheads = 1;
    assert_ms(run(&b).seconds, epoch);
    assert_ms(run(&b).stall_seconds, stall);
    assert_ms(run(&b).read_seconds, 20);
}

static void test_simulate__first_reads_are_made_in_the_run_before(void **state)
{
    (void)state;
    check_epochs(12, 20 + 12, 0);
    check_epochs(4, 6 + 20 + 4, 6);
}

/* One device with copies as tasks: its lanes have threads of their own, so copies run beside computes; and its epochs,
 * too, begin with what was read ahead. */
static void test_simulate__lanes_of_one_device_run_beside_each_other(void **state)
{
    (void)state;
    struct fixture b;
    gs_ahead ahead[1];
    fixture_make(&b);
    b.plan.devices = 1;
    b.topology = wire;
    const uint32_t r0 = add(&b, reads, 10, GS_NONE, GS_NONE);
    const uint32_t u0 = add(&b, uploads, 10, r0, GS_NONE);
    add(&b, zero, 20, u0, GS_NONE);
    const uint32_t r1 = add(&b, reads, 10, GS_NONE, GS_NONE);
    const uint32_t u1 = add(&b, uploads, 10, r1, GS_NONE);
    const uint32_t c1 = add(&b, zero, 20, u1, GS_NONE);
    add(&b, downloads, 5, c1, GS_NONE);
    assert_ms(run(&b).seconds, 10 + 10 + 20 + 20 + 5);
    assert_ms(run(&b).stall_seconds, 25);
    ahead[0] = (gs_ahead){.task = r0, .first_dep = b.plan.deps, .deps = 1};
    b.dep[b.plan.deps++] = u0;
    b.plan.ahead = ahead;
    b.plan.aheads = b.pass.aheads = 1;
    assert_ms(run(&b).seconds, 10 + 20 + 20 + 5);
    assert_ms(run(&b).read_seconds, 20);
}

/* Loads share the disk with reads and the wire with copies from the host, and begin as soon as the disk is free. */
static void test_simulate__loads_share_the_disk_and_the_wire(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    b.plan.devices = 1;
    b.topology = wire;
    b.cost.seconds[GS_WORK_FROM_DISK][1] = b.cost.seconds[GS_WORK_FROM_DISK][0] = 0;
    b.cost.seconds[GS_WORK_FROM_DISK][1] = 0.5 / b.cost.read_bps; /* twice as fast as reads */
    add(&b, reads, 10, GS_NONE, GS_NONE);
    const uint32_t l0 = add(&b, loads, 8, GS_NONE, GS_NONE);
    const uint32_t l1 = add(&b, loads, 8, GS_NONE, GS_NONE);
    add(&b, zero, 20, l0, GS_NONE);
    add(&b, zero, 20, l1, GS_NONE);
    /* the disk has the read's 10 ms, then 4 and 4; the wire 8 and 8 from the start */
    assert_ms(run(&b).seconds, 10 + 4 + 20 + 20);
    assert_ms(run(&b).read_seconds, 10 + 4 + 4);
    b.topology.at[0].host_bps = 1e7; /* ten times as slow: 80 ms each, on the wire */
    assert_ms(run(&b).seconds, 80 + 80 + 20);
}

/* A slow device's computations take longer, its copies do not. */
static void test_simulate__computations_are_as_slow_as_their_device(void **state)
{
    (void)state;
    struct fixture b;
    fixture_make(&b);
    b.plan.devices = 1;
    b.topology = wire;
    b.topology.speed[0] = 0.25;
    const uint32_t u = add(&b, uploads, 10, GS_NONE, GS_NONE);
    add(&b, zero, 20, u, GS_NONE);
    assert_ms(run(&b).seconds, 10 + 4 * 20);
    assert_ms(run(&b).edge_seconds + run(&b).vertex_seconds, 80);
}

/* A chunk's edges take 3 ms, a launch 2. Of three chunks of one operand interval the second is there when the first is
 * launched, the third comes while they are computed. */
static void test_simulate__chunks_that_are_there_share_a_launch(void **state)
{
    (void)state;
    struct fixture b;
    gs_chunk chunk[9] = {{.edges = 0}};
    fixture_make(&b);
    for (uint32_t i = 0; i < 9; i++)
        chunk[i].edges = 1000;
    b.set.chunk = chunk;
    b.plan.devices = 1;
    b.topology = wire;
    b.cost.seconds[GS_WORK_EDGES][0] = 2e-3;
    b.cost.seconds[GS_WORK_EDGES][1] = 3e-6;
    const uint32_t u0 = add(&b, uploads, 10, GS_NONE, GS_NONE);
    const uint32_t u1 = add(&b, uploads, 2, GS_NONE, GS_NONE);
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t e = add(&b, edges, 0, i == 0 ? u0 : i == 2 ? u1 : GS_NONE, GS_NONE);
        b.task[e].target = i % 3;
        b.task[e].operand = i / 3;
        b.task[e].sum = GS_NONE;
    }
    assert_ms(run(&b).seconds, 10 + 4 * (2 + 3));
    b.topology.on_host[0] = false;
    assert_ms(run(&b).seconds, 10 + (2 + 3 + 3) + (2 + 3) + (2 + 3));
}

/* Seconds of an epoch are added up in the order of its tasks, those of edges and of vertices each by themselves. */
static void test_simulate__who_only_computes_waits_for_nothing(void **state)
{
    (void)state;
    struct fixture b;
    gs_chunk chunk[1] = {{.edges = 1}};
    fixture_make(&b);
    b.set.chunk = chunk;
    b.plan.devices = 1;
    b.topology = wire;
    b.cost.seconds[GS_WORK_EDGES][0] = 0.7e-3;
    for (uint32_t i = 0; i < TASKS; i++) {
        const uint32_t t = add(&b, i % 3 == 0 ? edges : zero, 0.2 * i, GS_NONE, GS_NONE);
        b.task[t].sum = i % 3 == 0 ? GS_NONE : 0;
        assert_true(run(&b).stall_seconds >= 0);
        assert_ms(run(&b).stall_seconds, 0);
    }
}

/* Two ranks: a message of 10 ms takes 0.26 of the thread at each end, and copies take its time, too; a pass ends with
 * three meetings. */
static void test_simulate__a_rank_has_one_thread_and_meets_others(void **state)
{
    (void)state;
    struct fixture b;
    gs_task message = {UPLOADS_TO(1)}, there = zero;
    fixture_make(&b);
    b.plan.devices = 2;
    gs_topology_of_network(&b.topology, 2, 1e8, 1e-3, 2e-3);
    b.topology.on_host[0] = b.topology.on_host[1] = true;
    message.operand = 1; /* the first one's rows */
    message.device = there.device = 1;
    const uint32_t c0 = add(&b, zero, 20, GS_NONE, GS_NONE);
    const uint32_t m0 = add(&b, message, 10, c0, GS_NONE);
    add(&b, there, 5, m0, GS_NONE);
    assert_ms(run(&b).seconds, 20 + 0.26 + 10 + 1 + 0.26 + 5 + 3 * 2);
    assert_ms(run(&b).stall_seconds, 0.26 + 10 + 1 + 5 + 3 * 2);
    b.topology.across.meeting = 0;
    add(&b, zero, 30, GS_NONE, GS_NONE);
    assert_ms(run(&b).seconds, 20 + 0.26 + 30);
    b.topology.at[0].host_bps = 1e8;
    add(&b, downloads, 7, GS_NONE, GS_NONE);
    add(&b, zero, 1, GS_NONE, GS_NONE);
    assert_ms(run(&b).seconds, 20 + 0.26 + 30 + 7 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulate__reads_run_ahead_of_computes),
        cmocka_unit_test(test_simulate__a_read_that_waits_for_a_compute_does_not),
        cmocka_unit_test(test_simulate__writes_and_reads_share_the_disk),
        cmocka_unit_test(test_simulate__small_requests_cost_their_number),
        cmocka_unit_test(test_simulate__first_reads_are_made_in_the_run_before),
        cmocka_unit_test(test_simulate__lanes_of_one_device_run_beside_each_other),
        cmocka_unit_test(test_simulate__loads_share_the_disk_and_the_wire),
        cmocka_unit_test(test_simulate__computations_are_as_slow_as_their_device),
        cmocka_unit_test(test_simulate__chunks_that_are_there_share_a_launch),
        cmocka_unit_test(test_simulate__who_only_computes_waits_for_nothing),
        cmocka_unit_test(test_simulate__a_rank_has_one_thread_and_meets_others),
    };
    return cmocka_run_group_tests_name("schedule/simulate", tests, NULL, NULL);
}
