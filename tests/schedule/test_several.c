/* Plans for several devices: whatever the order in which lanes run, each finds its bytes, in arenas within their
 * budget; chains hand on what one of them has; and devices divide the work, each column on one of them. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan_fixture.h"
#include "plan_sim.h"
#include "schedule/route.h"
#include "schedule/simulate.h"
#include "smallest_plan.h"
#include "support/moves.h"
#include "support/support.h"
#include "topologies.h"

/* Devices that are a ring: each with a wire of its own, in pairs, and under one switch. */
static const gs_topology ring_of_four = {.devices = 4, .switches = 4,
                                         .at = {{0, 1, 1e6, 0}, {1, 1, 1e6, 0}, {2, 1, 1e6, 0}, {3, 1, 1e6, 0}},
                                         .across = {true, 1e7, GS_SHARE_ROUND}, ON_HOST},
                         ring_of_pairs = {.devices = 5, .switches = 3,
                                          .at = {{0, 2, 1e9, 2e9}, {2, 2, 1e9, 0}, {4, 1, 1e8, 0}},
                                          .across = {true, 1e8, GS_SHARE_ROUND}, ON_HOST},
                         ring_at_once = {.devices = 3, .switches = 1, .at = {{0, 3, 0, 0}},
                                         .across = {false, 0, GS_SHARE_ROUND}, ON_HOST};
static const gs_topology *const rings[] = {&ring_of_four, &ring_of_pairs, &ring_at_once};

/* One of the devices computes on what is in the host's memory. */
static const gs_topology first_in_place = {.devices = 2, .switches = 2, .at = {{0, 1, 0, 0}, {1, 1, 1e9, 0}},
                                           .in_place = {true}, ON_HOST},
                         last_in_place = {.devices = 4, .switches = 2, .at = {{0, 3, 1e9, 2e9}, {3, 1, 0, 0}},
                                          .in_place = {[3] = true}, ON_HOST};
static const gs_topology *const in_place[] = {&first_in_place, &last_in_place};

static uint32_t plans_ahead; /* of those that were run: which read ahead of the next epoch */

static uint64_t own_edges(const gs_plan *p, const struct fixture *f, uint32_t stage, uint32_t device)
{
    uint64_t edges = 0;
    for (uint32_t i = 0; i < p->pass[0].tasks; i++) {
        const gs_task *const t = &p->task[p->pass[0].first_task + i];
        if (t->kind == GS_TASK_EDGES && t->stage == stage && t->sum == 0 && t->device == device)
            edges += gs_chunk_at(&f->chunks, f->stage[stage].direction, t->target, t->operand)->edges;
    }
    return edges;
}

static void run(const gs_topology *topology, uint64_t vertices, uint32_t parts, uint64_t host, uint64_t device,
                bool chain, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, vertices, parts, seed % 2 == 0, seed);
    fixture_needs(&f, 4, seed);
    gs_schedule_config c = fixture_config(&f, host, device);
    c.topology = topology;
    c.no_chain = !chain;
    c.force_spill = seed % 3 == 0;
    if (seed % 4 == 1)
        fixture_take_needs(&c, &f);
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->devices, topology->devices);
    assert_true(plan->host_bytes <= c.host_memory && plan->device_bytes <= c.device_memory);
    assert_true(plan->region_bytes[GS_REGION_ARENA] + c.device_fixed <= device);
    plan_sim_run(plan, &c, 0, 2, seed);
    plan_sim_run(plan, &c, GS_NONE, 3, seed + 1);
    if (seed % 4 == 0 && topology != &first_in_place && topology != &last_in_place)
        plan_sim_run_parts(plan, &c, NULL, 4, seed + 2);
    plans_ahead += plan->pass[0].aheads > 0; /* the second of the two runs above begins with what the first read */
    assert_int_equal(plan->ring, chain && topology->across.share == GS_SHARE_ROUND);
    assert_true((plan->pass[0].forward_bytes > 0) == (plan->ring || (chain && topology->switches < topology->devices)));
    gs_plan_free(plan);
    fixture_drop(&f);
}

static void test_several__plans_are_safe_in_any_order(void **state)
{
    static const struct {
        uint32_t vertices, parts;
        uint64_t host, device;
    } of[] = {{6000, 8, 64 * GS_MIB, 2 * GS_MIB},
              {6007, 17, 24 * GS_MIB, 1 * GS_MIB},
              {9001, 9, 24 * GS_MIB, 1536 * GS_KIB}};
    uint32_t seed = 1;
    (void)state;
    for (size_t t = 0; t < GS_ARRAY_LEN(all); t++)
        for (int chain = 0; chain < 2; chain++) {
            for (size_t k = 0; k < GS_ARRAY_LEN(of); k++, seed++)
                if (gs_test_takes(t + k, 3))
                    run(all[t], of[k].vertices, of[k].parts, of[k].host, of[k].device, chain, seed);
        }
    for (size_t t = 0; t < GS_ARRAY_LEN(rings); t++)
        for (int chain = 0; chain < 2; chain++) {
            for (size_t k = 1; k < GS_ARRAY_LEN(of); k++, seed++)
                if (gs_test_takes(t + k, 2))
                    run(rings[t], of[k].vertices, of[k].parts, of[k].host, of[k].device, chain, seed);
        }
    for (size_t t = 0; t < GS_ARRAY_LEN(in_place); t++)
        for (size_t k = 0; k < GS_ARRAY_LEN(of); k++, seed++)
            if (gs_test_takes(t + k, 2))
                run(in_place[t], of[k].vertices, of[k].parts, of[k].host, of[k].device, true, seed);
    print_message("%u of %u plans read ahead\n", plans_ahead, seed - 1);
    assert_true(plans_ahead > 0);
}

/* Rows that no stage runs for are missing at every end. */
static void test_several__runs_of_rows_are_safe(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 6; k++) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        fixture_program(&f, 37, 16);
        f.stage[0].instrs--; /* a mean of all rows needs all of them */
        f.instr[1][0].b.kind = GS_FROM_NONE;
        fixture_chunks(&f, 12000, 6, false, k);
        fixture_needs(&f, 4, k);
        fixture_rows(&f, k);
        gs_schedule_config c = fixture_config(&f, 32 * GS_MIB, 3 * GS_MIB);
        c.topology = all[k % GS_ARRAY_LEN(all)];
        fixture_take_needs(&c, &f);
        c.needs.stage_rows = f.rows;
        c.force_spill = k % 2 == 0;
        gs_assert_ok(gs_schedule(&plan, &c));
        plan_sim_run(plan, &c, 0, 2, k);
        plan_sim_run(plan, &c, 1, 2, k);
        if (k % 2 == 0)
            plan_sim_run_parts(plan, &c, NULL, 4, k);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* Sums of a target that takes rows from `own` on, and behind them some of before `others`. */
static uint32_t takes_own_before(const gs_plan *plan, uint32_t own, uint32_t others)
{
    uint32_t count = 0, stage = GS_NONE;
    bool has[64] = {false};

    for (const gs_task *t = plan->task; t < plan->task + plan->tasks; t++) {
        if (t->kind != GS_TASK_EDGES || t->target < own)
            continue;
        if (t->stage != stage)
            memset(has, 0, sizeof(has));
        stage = t->stage;
        has[t->target] = has[t->target] || t->operand >= own;
        count += has[t->target] && t->operand < others;
    }
    return count;
}

/* Ranks that each have only their own part of the store: what another has it sends, and who wants it does not read it,
 * whatever is kept where. A deal of intervals leaves no rank without. */
static void test_several__ranks_send_rows_of_the_store(void **state)
{
    uint32_t kept = 0, cached = 0, sent = 0, in_turn = 0;
    (void)state;

    for (uint32_t k = 0; k < 12; k++) {
        struct fixture f = {0};
        gs_plan *plan = NULL, *part = NULL;
        gs_topology topology;
        uint32_t first[GS_PLAN_DEVICES + 1];
        const uint32_t ranks = 2 + k % 3, parts = k % 5 == 4 ? ranks : 7 + k % 4;
        gs_topology_of_network(&topology, ranks, 1e9, 2e-5, 1e-4);
        memset(topology.on_host, true, sizeof(topology.on_host));
        fixture_program(&f, k % 2 == 0 ? 37 : 64, 16);
        fixture_chunks(&f, 6000 + 7 * k, parts, k % 4 == 3, k);
        fixture_needs(&f, 4, k);
        gs_chunk_deal(&f.chunks, ranks, first);
        assert_true(first[0] == 0 && first[ranks] == parts);
        for (uint32_t r = 0; r < ranks; r++)
            assert_true(first[r] < first[r + 1]);
        gs_schedule_config c = fixture_config(&f, k % 3 == 0 ? 3 * GS_MIB : 24 * GS_MIB,
                                              k % 3 == 1 ? 8 * GS_MIB : 3 * GS_MIB);
        c.topology = &topology;
        c.owners = first;
        c.no_chain = true;
        c.force_spill = k % 4 == 2;
        if (k % 2 == 1)
            fixture_take_needs(&c, &f);
        if (k % 3 == 0)
            plan = plan_smallest(&c);
        else
            gs_assert_ok(gs_schedule(&plan, &c));
        for (const gs_task *t = plan->task; t < plan->task + plan->tasks; t++)
            if (t->kind == GS_TASK_VERTEX || t->kind == GS_TASK_EDGES) {
                const uint32_t of = t->kind == GS_TASK_EDGES ? t->target
                                                             : (uint32_t)(t->first_row / f.chunks.interval_rows);
                assert_true(of >= first[t->device] && of < first[t->device + 1]);
            }
        in_turn += takes_own_before(plan, first[ranks - 1], first[1]);
        const gs_part_rows dealt = {first, 1u << 0 | 1u << 3}; /* features and degrees; splits are everywhere */
        plan_sim_run_parts(plan, &c, NULL, 3, k);
        plan_sim_run_parts(plan, &c, &dealt, 3, k + 1);
        gs_assert_ok(gs_plan_take_part(&part, plan, c.program, parts, f.chunks.interval_rows, &dealt, ranks - 1));
        for (const gs_resident *r = part->resident; r < part->resident + part->residents; r++) {
            kept += r->memory == GS_HOST && r->load && r->file < c.program->arrays;
            cached += r->memory != GS_HOST && r->load && r->file < c.program->arrays && r->made_by == GS_NONE;
        }
        sent += part->pass[0].sent_bytes > 0;
        gs_plan_free(part);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
    print_message("%u arrays kept by hosts, %u units by devices, %u parts send\n", kept, cached, sent);
    assert_true(kept > 0 && cached > 0 && sent > 0);
    assert_true(in_turn > 0); /* else a rank would have its own rows when all of the first one's have come */
}

/* Rows that are copied by themselves are all that are there: whoever has a link to the host of its own gets those that
 * its edges name, in fewer bytes than in blocks, and in as many as there are, with the tables that this takes. What a
 * device has made, and keeps, goes to the host likewise, where that of others was all. */
static void test_several__rows_by_themselves_are_safe(void **state)
{
    (void)state;
    uint32_t fewer = 0;
    for (uint32_t k = 0; k < 2 * GS_ARRAY_LEN(all); k++) {
        struct fixture f = {0};
        uint64_t by_rows = 0, bytes[2], home[2];
        if (!gs_test_takes(k, 2))
            continue;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 6000, 8, k % 3 == 0, k);
        fixture_needs(&f, 3, k);
        gs_schedule_config c = fixture_config(&f, 32 * GS_MIB, (k % 4 == 2 ? 4 : 1) * GS_MIB);
        c.topology = all[k % GS_ARRAY_LEN(all)];
        c.no_chain = k >= GS_ARRAY_LEN(all);
        c.force_spill = k % 4 == 0;
        for (int rows = 0; rows < 2; rows++) {
            gs_plan *plan = NULL;
            if (rows == 1)
                fixture_take_rows(&f, &c, 6, k);
            else
                fixture_take_needs(&c, &f);
            gs_assert_ok(gs_schedule(&plan, &c));
            bytes[rows] = plan->pass[0].upload_bytes;
            home[rows] = plan->pass[0].download_bytes;
            for (uint32_t i = 0; i < plan->tasks; i++)
                by_rows += gs_task_moves_rows(&plan->task[i]);
            assert_true((plan->row_words > 0) == (by_rows > 0) && (rows == 1 || by_rows == 0));
            assert_true(plan->host_bytes <= c.host_memory);
            for (uint32_t pass = 0; pass < 2 * (uint32_t)rows; pass++)
                plan_sim_run(plan, &c, pass, 2, k);
            gs_plan_free(plan);
        }
        if (c.no_chain || c.topology->switches == c.topology->devices)
            assert_true(by_rows > 0 && bytes[1] < bytes[0]);
        assert_true(home[1] <= home[0]);
        fewer += home[1] < home[0];
        fixture_drop(&f);
    }
    assert_true(fewer > 0);
}

static void test_several__smallest_budgets_named_work(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        struct fixture f = {0};
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 20000, 1 + 3 * k, false, k);
        gs_schedule_config c = fixture_config(&f, 512 * GS_MIB, 100 * GS_KIB);
        c.topology = all[k + 1];
        gs_plan *const plan = plan_smallest(&c);
        assert_true(plan->host_bytes <= c.host_memory && plan->device_bytes <= c.device_memory);
        plan_sim_run(plan, &c, 0, 1, 9);
        plan_sim_run(plan, &c, 1, 1, 9);
        if (k == 3)
            plan_sim_run_parts(plan, &c, NULL, 3, 9);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* Where devices' memory is a part of the host's, one figure is named, of the host. The device that it gives is enough,
 * and so is less of the host where the device's is named too: devices stage as little as they must. */
static void test_several__a_part_of_the_host_is_named_by_the_host(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 5; k += 2) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        gs_refusal refused = {0};
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 20000, 1 + 3 * k, false, k);
        gs_schedule_config c = fixture_config(&f, 64 * GS_KIB, 0);
        c.topology = all[k];
        c.host_parts = 2 * all[k]->devices;
        c.device_memory = c.host_memory / c.host_parts;
        c.refusal = &refused;
        gs_assert_fails(gs_schedule(&plan, &c), GS_EBUDGET, ".host_memory 64.0 KiB is too small");
        assert_true(refused.host > 0 && refused.device == 0);
        c.host_memory = refused.host;
        c.device_memory = c.host_memory / c.host_parts;
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_true(plan->host_bytes <= c.host_memory && plan->device_bytes <= c.device_memory);
        gs_plan_free(plan);
        /* a device's budget that is larger than need be asks no more of the host */
        const uint64_t least = refused.host;
        c.host_parts = 0;
        c.device_memory = 512 * GS_MIB;
        c.host_memory = 64 * GS_KIB;
        gs_assert_fails(gs_schedule(&plan, &c), GS_EBUDGET, ".host_memory 64.0 KiB is too small");
        assert_true(refused.host <= least);
        c.host_memory = refused.host;
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_true(plan->host_bytes <= c.host_memory);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* Where the host has no room for all that devices could stage beside the tables, that is seen once, and they stage
 * less: few plans are counted before there is one. */
static void test_several__what_has_no_room_is_counted_once(void **state)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_effort effort = {.most = 200000};
    gs_cost cost;
    (void)state;
    gs_cost_defaults(&cost, 2);
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 60, false, 5);
    gs_schedule_config c = fixture_config(&f, 16 * GS_MIB, 4 * GS_MIB);
    c.topology = &four;
    c.cost = &cost;
    c.effort = &effort;
    c.no_swap = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_true(plan->host_bytes <= c.host_memory);
    assert_true(effort.tasks < 7ull * plan->tasks);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* What was counted for a budget that is too small is known to whoever asks for one that does, and to whoever tries
 * that; their answers are the same. */
static void test_several__what_was_counted_is_known(void **state)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_counts counts = {0};
    uint64_t tasks[2][3], host[2];
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 60, false, 5);
    for (int k = 0; k < 2; k++) {
        gs_refusal refused = {0};
        gs_effort effort = {.counts = k == 0 ? NULL : &counts, .question = 1};
        gs_schedule_config c = fixture_config(&f, 12 * GS_MIB, 4 * GS_MIB);
        c.topology = &four;
        c.effort = &effort;
        c.refusal = &refused;
        c.any_plan = c.no_sizes = true;
        assert_int_equal(gs_schedule(&plan, &c), GS_EBUDGET);
        tasks[k][0] = effort.tasks;
        c.no_sizes = false;
        assert_int_equal(gs_schedule(&plan, &c), GS_EBUDGET);
        tasks[k][1] = effort.tasks - tasks[k][0];
        host[k] = c.host_memory = refused.host;
        c.no_sizes = true;
        gs_assert_ok(gs_schedule(&plan, &c));
        tasks[k][2] = effort.tasks - tasks[k][1] - tasks[k][0];
        gs_plan_free(plan);
        plan = NULL;
    }
    assert_true(tasks[1][0] < tasks[0][0]);
    assert_true(4 * tasks[1][1] < 3 * tasks[0][1]);
    assert_true(3 * tasks[1][2] < tasks[0][2]);
    assert_int_equal(host[0], host[1]);
    fixture_drop(&f);
}

/* Bytes that stage 1's edge passes bring of operand rows. */
static uint64_t operand_bytes(const gs_plan *p, const char *word, uint32_t rows)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->pass[0].tasks; i++) {
        const gs_task *const t = &p->task[p->pass[0].first_task + i];
        if (is_task(t, word) && t->stage == 1 && t->bytes == rows * 16ull * sizeof(float))
            bytes += gs_task_bytes(p, t);
    }
    return bytes;
}

/* What the host sends of an operand interval falls by the length of the chain, exactly where every chunk has edges. */
static void test_several__a_chain_takes_a_vertex_chunk_once(void **state)
{
    static const struct {
        const gs_topology *topology;
        uint32_t length;
    } chains[] = {{&two, 2}, {&four, 4}, {&pairs, 2}, {&one, 1}};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(chains); k++) {
        uint64_t up[2], on[2];
        struct fixture f = {0};
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 16000, 16, false, 3);
        for (uint32_t i = 0; i < 16 * 16; i++)
            f.chunk[0][i] = f.chunk[1][i] =
                (gs_chunk){.edges = 100, .targets = 1, .operands = 1, .offset = 4096ull * i, .length = 4096};
        for (int chain = 0; chain < 2; chain++) {
            gs_plan *plan = NULL;
            gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 1 * GS_MIB);
            c.topology = chains[k].topology;
            c.no_chain = chain == 0;
            gs_assert_ok(gs_schedule(&plan, &c));
            up[chain] = operand_bytes(plan, "upload", 1000);
            on[chain] = operand_bytes(plan, "forward", 1000);
            plan_sim_run(plan, &c, 0, 1, 3);
            gs_plan_free(plan);
        }
        assert_int_equal(up[0], up[1] * chains[k].length);
        assert_int_equal(on[0], 0);
        assert_int_equal(up[1] + on[1], up[0]);
        fixture_drop(&f);
    }
}

/* Every column is one device's, and they have about the same edges. */
static void test_several__columns_are_dealt_by_cost(void **state)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    uint64_t most = 0, sum = 0;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 32000, 32, false, 5);
    for (uint32_t i = 0; i < 32 * 32; i++) /* of edges, the first columns have by far the most */
        f.chunk[0][i] = (gs_chunk){.edges = i < 8 * 32 ? 5000 : 500, .targets = 1, .operands = 1,
                                   .offset = 20480ull * i,
                                   .length = i < 8 * 32 ? 20480 : 4096};
    gs_schedule_config c = fixture_config(&f, 128 * GS_MIB, 1 * GS_MIB);
    c.topology = &four;
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t d = 0; d < 4; d++) {
        most = GS_MAX(most, own_edges(plan, &f, 1, d));
        sum += own_edges(plan, &f, 1, d);
    }
    assert_int_equal(sum, 8 * 32 * 5000 + 24 * 32 * 500);
    assert_true(most * 4 < sum * 1.35); /* an even share of the columns would be 3.1 */
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* A device has as much of the columns as it is fast; and nothing where what it does would only hold others up. */
static void test_several__slow_devices_have_less(void **state)
{
    static const gs_topology by_speed = {.devices = 3, .switches = 1, .at = {{0, 3, 0, 0}}, .speed = {1, 0.5, 0.25},
                                         ON_HOST},
                             by_wire = {.devices = 2, .switches = 2, .at = {{0, 1, 1e9, 0}, {1, 1, 1e5, 0}}, ON_HOST};
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_cost cost;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 14000, 14, false, 5);
    for (uint32_t i = 0; i < 14 * 14; i++)
        f.chunk[0][i] = (gs_chunk){.edges = 1000, .targets = 1, .operands = 1, .offset = 8192ull * i, .length = 8192};
    gs_schedule_config c = fixture_config(&f, 128 * GS_MIB, 1 * GS_MIB);
    c.topology = &by_speed;
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t d = 0; d < 3; d++) /* of 14 columns 8, 4 and 2 */
        assert_int_equal(own_edges(plan, &f, 1, d), (8 >> d) * 14 * 1000);
    gs_plan_free(plan);
    gs_cost_defaults(&cost, 1);
    c.cost = &cost;
    c.topology = &by_wire;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(own_edges(plan, &f, 1, 0), 14 * 14 * 1000);
    assert_int_equal(own_edges(plan, &f, 1, 1), 0);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* A device on host memory among others that are not: columns are dealt by what each kind takes, and its memory is a
 * part of the host's budget. */
static void test_several__devices_of_two_kinds_are_planned_by_what_each_takes(void **state)
{
    static const gs_topology kinds = {.devices = 2, .switches = 2, .at = {{0, 1, 0, 0}, {1, 1, 0, 0}},
                                      .on_host = {true}},
                             alike = {.devices = 2, .switches = 2, .at = {{0, 1, 0, 0}, {1, 1, 0, 0}}};
    static const double even[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; /* of up to 8 stages */
    struct fixture f = {0};
    gs_cost cost, slow;
    gs_plan *plan[2] = {NULL, NULL};
    gs_predicted x[2];
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 16000, 16, false, 5);
    for (uint32_t i = 0; i < 16 * 16; i++)
        f.chunk[0][i] = (gs_chunk){.edges = 1000, .targets = 1, .operands = 1, .offset = 8192ull * i, .length = 8192};
    gs_cost_defaults(&cost, 1);
    slow = cost;
    for (int k = 0; k < GS_WORK_KINDS; k++)
        for (int a = 0; a < GS_WORK_AMOUNTS; a++)
            slow.seconds[k][a] *= 3;
    gs_schedule_config c = fixture_config(&f, 128 * GS_MIB, 1 * GS_MIB);
    c.device_fixed = 12345;
    c.cost = &cost;
    c.share = even;
    c.topology = &alike;
    gs_assert_ok(gs_schedule(&plan[0], &c));
    assert_int_equal(own_edges(plan[0], &f, 1, 0), 8 * 16 * 1000);
    c.topology = &kinds;
    c.host_cost = &slow;
    gs_assert_ok(gs_schedule(&plan[1], &c));
    assert_int_equal(own_edges(plan[1], &f, 1, 0), 4 * 16 * 1000); /* of 16 columns 4, as the other takes a third */
    assert_int_equal(own_edges(plan[1], &f, 1, 1), 12 * 16 * 1000);
    const uint64_t on_host = plan[1]->table_bytes + plan[1]->region_bytes[GS_REGION_RING] +
                             plan[1]->region_bytes[GS_REGION_RESIDENT] + plan[1]->region_bytes[GS_REGION_ARENA];
    assert_int_equal(plan[1]->host_bytes, c.host_fixed + c.device_fixed + on_host);
    for (int k = 0; k < 2; k++) { /* one kind takes three times as long: its time speaks for all, or the other's */
        const gs_simulation_input input = {plan[1], &f.p, f.set, 16, &cost, &kinds, 0, k == 0 ? &slow : &cost};
        gs_assert_ok(gs_simulate(&x[k], &input));
    }
    assert_true(x[0].seconds > x[1].seconds);
    gs_plan_free(plan[0]);
    gs_plan_free(plan[1]);
    fixture_drop(&f);
}

/* Beyond the budget of all, what a device has more holds data that stays: less is copied to it, and plans are safe. */
static void test_several__a_device_may_have_more_memory(void **state)
{
    static const gs_topology same = {.devices = 2, .switches = 2, .at = {{0, 1, 0, 0}, {1, 1, 0, 0}},
                                     .memory = {GS_MIB, GS_MIB}, ON_HOST},
                             more = {.devices = 2, .switches = 2, .at = {{0, 1, 0, 0}, {1, 1, 0, 0}},
                                     .memory = {GS_MIB, 4 * GS_MIB}, ON_HOST};
    static const gs_topology *const budgets[] = {&same, &more};
    static const double even[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; /* of up to 8 stages */
    (void)state;
    for (uint32_t seed = 1; seed <= 2; seed++) {
        struct fixture f = {0};
        gs_plan *plan[2] = {NULL, NULL};
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 9001, 9, seed % 2 == 0, seed);
        gs_schedule_config c = fixture_config(&f, 32 * GS_MIB, GS_MIB);
        c.share = even;
        for (int k = 0; k < 2; k++) {
            c.topology = budgets[k];
            gs_assert_ok(gs_schedule(&plan[k], &c));
            uint64_t host = c.host_fixed + plan[k]->table_bytes + plan[k]->region_bytes[GS_REGION_RING] +
                            plan[k]->region_bytes[GS_REGION_RESIDENT];
            for (uint32_t d = 0; d < 2; d++) {
                assert_true(c.device_fixed + plan[k]->arena_bytes[d] <= c.topology->memory[d]);
                host += c.device_fixed + plan[k]->arena_bytes[d];
            }
            assert_int_equal(plan[k]->host_bytes, host);
            assert_true(host <= c.host_memory);
            plan_sim_run(plan[k], &c, 0, 2, seed);
            plan_sim_run(plan[k], &c, GS_NONE, 3, seed + 1);
        }
        assert_true(plan[1]->arena_bytes[1] > GS_MIB);
        assert_int_equal(plan[1]->device_bytes, c.device_fixed + plan[1]->arena_bytes[1]);
        assert_true(plan[1]->pass[0].upload_bytes < plan[0]->pass[0].upload_bytes);
        gs_plan_free(plan[0]);
        gs_plan_free(plan[1]);
        fixture_drop(&f);
    }
}

/* Small units stand at the other end of a device's memory where that is planned to be faster, and not where it is not;
 * and all find their bytes there. */
static void test_several__small_units_stand_apart_where_that_is_faster(void **state)
{
    static const gs_topology wires = {.devices = 2, .switches = 2, .at = {{0, 1, 3e7, 0}, {1, 1, 3e7, 0}}, ON_HOST};
    static const struct {
        uint64_t memory;
        gs_cache_parts parts;
    } of[] = {{1906 * GS_KIB, GS_PARTS_WHOLE}, {2977 * GS_KIB, GS_PARTS_BY_SIZE}};
    struct fixture f = {0};
    gs_cost cost;
    (void)state;
    fixture_program(&f, 37, 32);
    fixture_chunks(&f, 16000, 16, false, 1);
    gs_cost_defaults(&cost, 1);
    for (size_t k = 0; k < GS_ARRAY_LEN(of); k++) {
        gs_effort effort = {.most = UINT64_MAX};
        gs_plan *plan = NULL;
        gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, of[k].memory);
        c.topology = &wires;
        c.cost = &cost;
        c.effort = &effort;
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_true(effort.found.listed);
        assert_int_equal(effort.found.parts, of[k].parts);
        plan_sim_run(plan, &c, 0, 2, 3);
        gs_plan_free(plan);
    }
    fixture_drop(&f);
}

/* The plan that is the best in store order is not where another one has a better order. */
static void test_several__the_second_plan_is_taken_where_its_order_is_better(void **state)
{
    static const gs_topology wires = {.devices = 2, .switches = 2, .at = {{0, 1, 4e8, 0}, {1, 1, 4e8, 0}}, ON_HOST};
    const uint32_t parts = 12;
    double seconds[2];
    gs_effort effort[2] = {{.most = UINT64_MAX}, {.most = UINT64_MAX}};
    struct fixture f = {0};
    gs_cost cost;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 9001, parts, false, 6);
    for (uint32_t i = 0; i < 2 * parts * parts; i++)
        f.chunk[i % 2][i / 2].edges *= i / 2 / parts >= 8 ? 20 : 1;
    gs_cost_defaults(&cost, 1);
    for (int k = 0; k < 2; k++) {
        gs_plan *plan = NULL;
        gs_predicted x;
        const gs_edge_set set[2] = {{.chunk = f.chunk[0]}, {.chunk = f.chunk[1]}};
        gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 1300 * GS_KIB);
        c.topology = &wires;
        c.cost = &cost;
        c.effort = &effort[k];
        c.no_swap = k == 0;
        gs_assert_ok(gs_schedule(&plan, &c));
        const gs_simulation_input input = {plan, c.program, set, parts, &cost, &wires, 0, NULL};
        gs_assert_ok(gs_simulate(&x, &input));
        seconds[k] = x.seconds;
        plan_sim_run(plan, &c, 0, 2, 3);
        gs_plan_free(plan);
    }
    assert_true(effort[1].found.arena != effort[0].found.arena);
    assert_true(seconds[1] < 0.98 * seconds[0]);
    fixture_drop(&f);
}

/* Where wires are slow and all else is not, an epoch takes what goes over the busiest wire; a chain halves that. */
static void test_several__slow_wires_are_what_is_predicted(void **state)
{
    static const gs_topology slow[2] = {{.devices = 1, .switches = 1, .at = {{0, 1, 1e6, 0}}, ON_HOST},
                                        {.devices = 4, .switches = 2, .at = {{0, 2, 1e6, 1e7}, {2, 2, 1e6, 1e7}},
                                         ON_HOST}};
    struct fixture f = {0};
    gs_cost cost;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 16000, 16, false, 3);
    gs_cost_defaults(&cost, 1);
    for (int k = 0; k < 2; k++) {
        uint64_t to_switch[2] = {0, 0};
        gs_plan *plan = NULL;
        gs_predicted x;
        gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 1 * GS_MIB);
        c.topology = &slow[k];
        c.cost = &cost;
        gs_assert_ok(gs_schedule(&plan, &c));
        for (uint32_t i = 0; i < plan->pass[0].tasks; i++) {
            const gs_task *const t = &plan->task[plan->pass[0].first_task + i];
            to_switch[gs_topology_switch_of(&slow[k], t->device)] +=
                is_task(t, "upload") ? gs_task_bytes(plan, t) : 0;
        }
        assert_int_equal(to_switch[0] + to_switch[1], plan->pass[0].upload_bytes);
        const gs_simulation_input input = {plan, &f.p, f.set, 16, &cost, &slow[k], 0, NULL};
        gs_assert_ok(gs_simulate(&x, &input));
        const double least = (double)GS_MAX(to_switch[0], to_switch[1]) / 1e6;
        assert_true(x.seconds >= least && x.seconds < 1.25 * least); /* stages end, and begin, with less than that */
        assert_string_equal(x.bottleneck, "copies to devices");
        gs_plan_free(plan);
    }
    fixture_drop(&f);
}

/* Of an edge pass in which every chunk has edges: in a ring each device gets a part of the rows from the host, each
 * once, and all others from a neighbour; by chains of one device each gets all from the host. Which of the two is
 * planned is what wires between devices make faster: by the busiest wire's bytes the ring takes the longer of a quarter
 * of the rows from the host and three quarters from a neighbour. */
static void test_several__a_ring_is_taken_where_it_is_faster(void **state)
{
    static const double across[] = {1e7, 5e5}; /* the wires to the host: 1e6 */
    struct fixture f = {0};
    gs_cost cost;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 16000, 16, false, 3);
    gs_cost_defaults(&cost, 1);
    for (uint32_t i = 0; i < 16 * 16; i++)
        f.chunk[0][i] = f.chunk[1][i] =
            (gs_chunk){.edges = 100, .targets = 1, .operands = 1, .offset = 4096ull * i, .length = 4096};
    for (size_t k = 0; k < GS_ARRAY_LEN(across) && gs_test_takes(k, 2); k++) {
        gs_topology t = ring_of_four;
        uint64_t up[3], on[3];
        double seconds[3];
        bool ring[3];
        t.across.bps = across[k];
        for (gs_topology_share share = GS_SHARE_FASTER; share <= GS_SHARE_ROUND; share++) {
            gs_plan *plan = NULL;
            gs_predicted x;
            gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 1 * GS_MIB);
            t.across.share = share;
            c.topology = &t;
            c.cost = &cost;
            gs_assert_ok(gs_schedule(&plan, &c));
            gs_assert_ok(gs_simulate(&x, &(gs_simulation_input){plan, &f.p, f.set, 16, &cost, &t, 0, NULL}));
            seconds[share] = x.seconds;
            ring[share] = plan->ring;
            up[share] = operand_bytes(plan, "upload", 1000);
            on[share] = operand_bytes(plan, "forward", 1000);
            if (gs_test_takes(share, 3)) /* the faster one is one of the others */
                plan_sim_run(plan, &c, 0, 2, 3);
            gs_plan_free(plan);
        }
        assert_true(!ring[GS_SHARE_CHAINS] && ring[GS_SHARE_ROUND]);
        assert_int_equal(on[GS_SHARE_CHAINS], 0);
        assert_int_equal(up[GS_SHARE_CHAINS], 4 * up[GS_SHARE_ROUND]);
        assert_int_equal(on[GS_SHARE_ROUND], 3 * up[GS_SHARE_ROUND]);
        assert_int_equal(ring[GS_SHARE_FASTER], k == 0);
        assert_int_equal(seconds[GS_SHARE_ROUND] < seconds[GS_SHARE_CHAINS], k == 0);
        assert_true(seconds[GS_SHARE_FASTER] == seconds[k == 0 ? GS_SHARE_ROUND : GS_SHARE_CHAINS]);
    }
    fixture_drop(&f);
}

/* Devices that all have room for what they make hand it on, from whichever has made it, and the host has none of it.
 * With less room, without chains, and where devices reach each other by the host alone, some or all of it goes there
 * and comes back. Whichever way, all find their bytes. */
static void test_several__rows_stay_among_devices(void **state)
{
    static const gs_topology joined = {.devices = 4, .switches = 2, .at = {{0, 2, 1e9, 2e9}, {2, 2, 1e9, 2e9}},
                                       .across = {true, 1e9, GS_SHARE_CHAINS}, ON_HOST};
    static const struct {
        const gs_topology *topology;
        uint64_t device;
        bool no_chain, stay;
    } of[] = {{&two, 8 * GS_MIB, false, true},    {&four, 8 * GS_MIB, false, true}, {&joined, 8 * GS_MIB, false, true},
              {&pairs, 8 * GS_MIB, false, false}, {&four, 1 * GS_MIB, false, false}, {&four, 8 * GS_MIB, true, false}};
    (void)state;
    for (uint32_t k = 0; k < GS_ARRAY_LEN(of); k++) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        uint64_t made = 0;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 6000, 8, k % 2 == 0, k);
        fixture_needs(&f, 3, k);
        gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, of[k].device);
        c.topology = of[k].topology;
        c.no_chain = of[k].no_chain;
        gs_assert_ok(gs_schedule(&plan, &c));
        for (uint32_t i = 0; i < plan->pass[0].tasks; i++) {
            const gs_task *const t = &plan->task[plan->pass[0].first_task + i];
            made += is_task(t, "upload") || is_task(t, "download") ? gs_task_bytes(plan, t) : 0;
        }
        assert_int_equal(made == 0, of[k].stay);
        assert_int_equal(plan->pass[0].forward_bytes > 0, !of[k].no_chain);
        assert_true(plan->region_bytes[GS_REGION_ARENA] + c.device_fixed <= of[k].device);
        plan_sim_run(plan, &c, 0, 2, k);
        plan_sim_run(plan, &c, GS_NONE, 3, k + 1);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* Whatever memories want a unit and have it: each move's source has the part that goes over, each memory gets each part
 * once, and in the end all that want it have all of it. Round a ring it comes in as many parts as memories lack it,
 * where none has it and several do; else whole. */
static void test_several__routes_bring_all_parts_to_all(void **state)
{
    uint32_t seed = 1;
    (void)state;
    for (uint32_t k = 0; k < 4000; k++) {
        const gs_topology *const t = k % 2 ? all[k / 2 % GS_ARRAY_LEN(all)] : rings[k / 2 % GS_ARRAY_LEN(rings)];
        bool wants[GS_PLAN_DEVICES] = {0}, has[GS_PLAN_DEVICES] = {0};
        uint32_t parts[GS_DEVICE_MEMORIES + GS_PLAN_DEVICES] = {0}; /* a bit each */
        uint32_t have = 0, lacks = 0;
        gs_hops route;
        for (uint32_t d = 0; d < t->devices; d++) {
            seed = seed * 1664525u + 1013904223u;
            wants[d] = seed >> 12 & 1;
            has[d] = wants[d] && k % 3 > 0 && (seed >> 13 & 1);
            have += has[d];
            lacks += wants[d] && !has[d];
        }
        const gs_route by = (gs_route)(seed >> 20 & 3);
        gs_route_hops(&route, t, by, seed >> 24, wants, has);
        assert_int_equal(route.parts, by == GS_ROUTE_ROUND && have == 0 && lacks > 1 ? lacks : 1);
        const uint32_t whole = (1u << route.parts) - 1;
        parts[GS_HOST] = whole;
        for (uint32_t d = 0; d < t->devices; d++)
            parts[GS_DEVICE_MEMORIES + d] = has[d] ? whole : 0;
        for (uint32_t i = 0; i < route.hops; i++) {
            const gs_hop *const hop = &route.hop[i];
            assert_true(parts[hop->from] >> hop->part & 1);
            assert_false(parts[hop->to] >> hop->part & 1);
            parts[hop->to] |= 1u << hop->part;
        }
        for (uint32_t d = 0; d < t->devices; d++)
            assert_int_equal(parts[GS_DEVICE_MEMORIES + d], wants[d] ? whole : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several__plans_are_safe_in_any_order),
        cmocka_unit_test(test_several__runs_of_rows_are_safe),
        cmocka_unit_test(test_several__ranks_send_rows_of_the_store),
        cmocka_unit_test(test_several__rows_by_themselves_are_safe),
        cmocka_unit_test(test_several__rows_stay_among_devices),
        cmocka_unit_test(test_several__routes_bring_all_parts_to_all),
        cmocka_unit_test(test_several__smallest_budgets_named_work),
        cmocka_unit_test(test_several__a_part_of_the_host_is_named_by_the_host),
        cmocka_unit_test(test_several__what_has_no_room_is_counted_once),
        cmocka_unit_test(test_several__what_was_counted_is_known),
        cmocka_unit_test(test_several__a_chain_takes_a_vertex_chunk_once),
        cmocka_unit_test(test_several__columns_are_dealt_by_cost),
        cmocka_unit_test(test_several__slow_devices_have_less),
        cmocka_unit_test(test_several__devices_of_two_kinds_are_planned_by_what_each_takes),
        cmocka_unit_test(test_several__a_device_may_have_more_memory),
        cmocka_unit_test(test_several__small_units_stand_apart_where_that_is_faster),
        cmocka_unit_test(test_several__the_second_plan_is_taken_where_its_order_is_better),
        cmocka_unit_test(test_several__slow_wires_are_what_is_predicted),
        cmocka_unit_test(test_several__a_ring_is_taken_where_it_is_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
