/* A plan never uses a byte that is not there, never overwrites one that is
 * still needed, never waits in a circle, and never holds more than its budget:
 * shown by running plans of many shapes in random legal orders. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "cache_plan.h"
#include "plan_fixture.h"
#include "plan_sim.h"
#include "schedule/ring_sim.h"
#include "smallest_plan.h"
#include "support/support.h"

/* ---- tests ---- */

static void run_plan(uint64_t vertices, uint32_t parts, uint64_t host, uint64_t device, bool shared, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, vertices, parts, shared, seed);
    const gs_schedule_config c = fixture_config(&f, host, device);
    gs_assert_ok(gs_schedule(&plan, &c));
    fixture_within(plan, &c);
    plan_sim_run(plan, &c, 0, 2, seed);
    plan_sim_run(plan, &c, 1, 2, seed + 1);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* The same tasks, in the same places. */
static void same_plan(const gs_plan *a, const gs_plan *b)
{
    assert_int_equal(a->tasks, b->tasks);
    assert_int_equal(a->host_bytes, b->host_bytes);
    assert_int_equal(a->runs, b->runs);
    for (uint32_t i = 0; i < a->tasks; i++) {
        const gs_task *const x = &a->task[i], *const y = &b->task[i];
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->file, y->file);
        assert_int_equal(x->source.offset, y->source.offset);
        assert_int_equal(x->bytes, y->bytes);
        assert_int_equal(x->place.offset, y->place.offset);
        assert_int_equal(x->first_dep, y->first_dep);
    }
    assert_memory_equal(a->dep, b->dep, a->deps * sizeof(*a->dep));
}

/* What would do is found without a plan of that size, and by counting few. The first of this program's tests, as the
 * heap's peak is the process's. */
static void test_budget__is_named_without_its_plan(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_refusal refused = {0};
    gs_effort effort = {0};
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 60, false, 5);
    gs_schedule_config c = fixture_config(&f, 5 * GS_MIB, 2 * GS_MIB);
    c.refusal = &refused;
    c.effort = &effort;
    assert_int_equal(gs_schedule(&plan, &c), GS_EBUDGET);
    assert_true(refused.host > c.host_memory);
    const uint64_t peak = gs_alloc_peak_bytes() - before;
    c.host_memory = refused.host;
    c.effort = NULL;
    c.any_plan = c.no_sizes = true; /* which is counted, too: the next test measures plans */
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_true(peak < plan->table_bytes);
    assert_true(effort.tasks < 10ull * plan->tasks);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* All that is made has so many tasks together as were said, and a search is not begun again for less than a plan. */
static void test_plan__is_one_of_as_many_as_there_is_time_for(void **state)
{
    struct fixture f = {0};
    gs_plan *plan[3] = {NULL};
    gs_effort effort[3] = {{.most = 1}, {.most = 400000}, {.most = 400000}};
    gs_cost cost;
    (void)state;
    gs_cost_defaults(&cost, 2);
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 30, false, 5);
    gs_schedule_config c = fixture_config(&f, 16 * GS_MIB, 2 * GS_MIB);
    c.cost = &cost;
    for (int k = 0; k < 3; k++) {
        c.effort = &effort[k];
        gs_assert_ok(gs_schedule(&plan[k], &c));
        fixture_within(plan[k], &c);
        assert_true(effort[k].tasks <= effort[k].most + 4ull * plan[k]->tasks);
    }
    assert_true(effort[1].tasks > 4ull * plan[1]->tasks);
    same_plan(plan[1], plan[2]);
    for (int k = 0; k < 3; k++)
        gs_plan_free(plan[k]);
    fixture_drop(&f);
}

/* A plan that was found is made again with the tasks of one, and a count for devices' lists at the most. */
static void test_plan__is_made_again_without_a_search(void **state)
{
    struct fixture f = {0};
    gs_plan *plan[2] = {NULL, NULL};
    gs_effort effort[2] = {{.most = 400000}, {.again = true}};
    gs_cost cost;
    (void)state;
    gs_cost_defaults(&cost, 2);
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 30, false, 5);
    gs_schedule_config c = fixture_config(&f, 16 * GS_MIB, 2 * GS_MIB);
    c.cost = &cost;
    c.no_swap = true;
    for (int k = 0; k < 2; k++) {
        c.effort = &effort[k];
        gs_assert_ok(gs_schedule(&plan[k], &c));
        assert_true(effort[k].found.known);
        effort[1].found = effort[k].found;
    }
    same_plan(plan[0], plan[1]);
    assert_true(effort[0].tasks > 4ull * plan[0]->tasks);
    assert_true(effort[1].tasks < 2ull * plan[1]->tasks);
    for (int k = 0; k < 2; k++)
        gs_plan_free(plan[k]);
    fixture_drop(&f);
}

/* Where no plan fits, one of several programs is given up when what it may have is spent. */
static void test_plan__that_is_one_of_several_is_given_up(void **state)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_effort effort[2] = {{.most = 1}, {.most = 0}};
    gs_cost cost;
    (void)state;
    gs_cost_defaults(&cost, 2);
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 60, false, 5);
    gs_schedule_config c = fixture_config(&f, 6 * GS_MIB, 2 * GS_MIB);
    c.cost = &cost;
    c.no_sizes = true;
    for (int k = 0; k < 2; k++) {
        c.effort = &effort[k];
        assert_int_equal(gs_schedule(&plan, &c), GS_EBUDGET);
    }
    assert_true(2 * effort[0].tasks < effort[1].tasks);
    fixture_drop(&f);
}

/* A plan whose tables are most of the budget, made where the heap has room for one such plan, and where it has any. The
 * second of this program's tests, as the heap's peak is the process's. */
static void test_plan__is_held_alone_where_memory_is_short(void **state)
{
    const uint64_t before = gs_alloc_live_bytes();
    struct fixture f = {0};
    gs_plan *plan[2] = {NULL, NULL};
    uint64_t peak[2];
    gs_cost cost;
    (void)state;
    gs_cost_defaults(&cost, 2);
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 60000, 60, false, 5);
    gs_schedule_config c = fixture_config(&f, 24 * GS_MIB, 2 * GS_MIB);
    c.cost = &cost;
    for (int k = 0; k < 2; k++) {
        c.live_most = k == 0 ? 1 : 0;
        gs_assert_ok(gs_schedule(&plan[k], &c));
        peak[k] = gs_alloc_peak_bytes() - before;
    }
    same_plan(plan[0], plan[1]);
    assert_true(peak[0] + plan[0]->table_bytes / 2 < peak[1]);
    gs_plan_free(plan[0]);
    gs_plan_free(plan[1]);
    fixture_drop(&f);
}

static void test_plan__everything_in_memory_moves_nothing(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 5000, 3, false, 7);
    const gs_schedule_config c = fixture_config(&f, 256 * GS_MIB, 128 * GS_MIB);
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t p = 0; p < 2; p++) {
        assert_int_equal(plan->pass[p].read_bytes, 0);
        assert_int_equal(plan->pass[p].written_bytes, 0);
        plan_sim_run(plan, &c, p, 2, 3);
    }
    gs_plan_free(plan);
    fixture_drop(&f);
}

static void test_plan__is_safe_in_any_order(void **state)
{
    (void)state;
    run_plan(6000, 1, 10 * GS_MIB, 4 * GS_MIB, false, 1);
    run_plan(6000, 1, 10 * GS_MIB, 4 * GS_MIB, false, 2); /* one chunk has edges here, as sums begin and end with it */
    run_plan(6000, 2, 6 * GS_MIB, 2 * GS_MIB, false, 2);
    run_plan(6000, 8, 5 * GS_MIB, 2 * GS_MIB, false, 3);
    run_plan(6000, 8, 5 * GS_MIB, 2 * GS_MIB, true, 4);
    run_plan(6007, 17, 5 * GS_MIB, 2 * GS_MIB, false, 5);
    run_plan(9001, 5, 7 * GS_MIB, 3 * GS_MIB, false, 6);
}

static void test_plan__is_safe_with_columns_in_any_order(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        struct fixture f = {0};
        if (!gs_test_takes(k, 3))
            continue;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 6007, 5 + k % 13, k % 2 == 0, k);
        const gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, (3 + k % 3) * GS_MIB);
        gs_plan *plan = shuffled_plan_make(&c, k % 4 * 300 * GS_KIB, k);
        plan_sim_run(plan, &c, 0, 2, k);
        plan_sim_run(plan, &c, 1, 2, k);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* The first columns wait for the disk, the last ones compute: better in turn. */
static void test_order__is_taken_where_the_simulation_says_so(void **state)
{
    (void)state;
    uint32_t found = 0, plans = 0;
    for (uint32_t k = 0; k < 8; k++) {
        struct fixture f = {0};
        if (!gs_test_takes(k, 3))
            continue;
        plans++;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 9001, 17, false, k);
        for (uint32_t i = 0; i < 2 * 17 * 17; i++)
            f.chunk[i % 2][i / 2].edges *= i / 2 / 17 >= 8 ? 20 : 1;
        const gs_schedule_config c = fixture_config(&f, (4 + k % 2) * GS_MIB, 1 * GS_MIB);
        found += ordered_plan_check(&c, f.chunk, 1e8 * (1 + k), k);
        fixture_drop(&f);
    }
    assert_true(found > 2 || plans < 8);
}

/* The last task before `i` of the pass that is a compute or, for `writes`, a write; GS_NONE for none. */
static uint32_t last_before(const gs_plan *p, const gs_plan_pass *pass, uint32_t i, bool writes)
{
    while (i-- > pass->first_task)
        if (!gs_task_reads(&p->task[i]) && gs_task_writes(&p->task[i]) == writes)
            return i;
    return GS_NONE;
}

static bool waits_for(const gs_plan *p, const gs_task *t, uint32_t task)
{
    for (uint32_t i = 0; i < t->deps; i++)
        if (p->dep[t->first_dep + i] == task)
            return true;
    return task == GS_NONE;
}

static void test_plan__without_pipeline_reads_wait_for_what_is_before_them(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    uint32_t reads = 0;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 9000, 5, false, 11);
    gs_schedule_config c = fixture_config(&f, 6 * GS_MIB, 2 * GS_MIB);
    c.no_pipeline = true;
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t p = 0; p < 2; p++) {
        const gs_plan_pass *const pass = &plan->pass[p];
        for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
            if (!gs_task_reads(&plan->task[i]))
                continue;
            assert_true(waits_for(plan, &plan->task[i], last_before(plan, pass, i, false)));
            assert_true(waits_for(plan, &plan->task[i], last_before(plan, pass, i, true)));
            reads++;
        }
        plan_sim_run(plan, &c, p, 2, 5);
    }
    assert_true(reads > 20);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* At exactly the budget that a refusal names, the plan exists and is safe. */
static void test_budget__smallest_named_works(void **state)
{
    (void)state;
    for (uint32_t parts = 1; parts <= 9; parts += 4) {
        struct fixture f = {0};
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 20000, parts, false, parts);
        gs_schedule_config c = fixture_config(&f, 512 * GS_MIB, 100 * GS_KIB);
        gs_plan *const plan = plan_smallest(&c);
        fixture_within(plan, &c);
        plan_sim_run(plan, &c, 0, 1, 9);
        plan_sim_run(plan, &c, 1, 1, 9);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* More memory never moves more bytes. */
static void test_plan__more_memory_moves_fewer_bytes(void **state)
{
    (void)state;
    struct fixture f = {0};
    uint64_t before = UINT64_MAX;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 20000, 8, false, 11);
    for (uint64_t host = 6 * GS_MIB; host <= 24 * GS_MIB; host += 2 * GS_MIB) {
        gs_plan *plan = NULL;
        const gs_schedule_config c = fixture_config(&f, host, 2 * GS_MIB);
        gs_assert_ok(gs_schedule(&plan, &c));
        const uint64_t moved = plan->pass[0].read_bytes + plan->pass[0].written_bytes +
                               plan->pass[1].read_bytes + plan->pass[1].written_bytes;
        assert_true(moved <= before);
        before = moved;
        gs_plan_free(plan);
    }
    assert_int_equal(before, 0);
    fixture_drop(&f);
}

/* What is read into the cache is there when it is used and not overwritten before, an epoch begins with what the one
 * before has left, and other passes between two epochs change nothing of it. */
static void test_plan__cache_is_safe_in_any_order(void **state)
{
    uint32_t brought = 0, left = 0;
    (void)state;
    for (uint32_t k = 0; k < 8; k++) {
        struct fixture f = {0};
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 6000, 4 + k % 5, k % 3 == 0, k);
        fixture_needs(&f, 4, k);
        gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 1 * GS_MIB);
        if (k % 4 == 3)
            fixture_take_needs(&c, &f);
        gs_plan *plan = cache_plan_make(&c, (k + 1) * 200 * GS_KIB, k % 2 == 0);
        for (uint32_t i = 0; i < plan->tasks; i++)
            brought += gs_task_reads(&plan->task[i]) && plan->task[i].place.region == GS_REGION_RESIDENT;
        for (uint32_t i = 0; i < plan->residents; i++)
            left += plan->resident[i].first != 0;
        plan_sim_run(plan, &c, 0, 3, k);
        plan_sim_run(plan, &c, GS_NONE, 4, k + 1);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
    assert_true(brought > 20 && left > 20);
}

/* What the cache keeps no longer is not used, though its bytes may still be there. */
static void test_plan__a_hold_that_has_ended_is_over(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 6000, 5, false, 3);
    const gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 1 * GS_MIB);
    gs_plan *const plan = ended_hold_plan_make(&c);
    for (uint32_t seed = 1; seed < 12; seed++)
        plan_sim_run(plan, &c, 1, 2, seed);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* Only where the same pass runs twice in a row is anything read ahead. */
static void test_plan__nothing_is_read_ahead_of_another_pass(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 20000, 8, false, 11);
        gs_schedule_config c = fixture_config(&f, 8 * GS_MIB, 2 * GS_MIB);
        c.never_again = alone != 0;
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_true(alone ? plan->aheads == 0 : plan->pass[0].aheads > 0);
        plan_sim_run(plan, &c, 0, 3, 5);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* Of what was written, a read waits for the writes of what it reads, and for all of those: tiles are read one by
 * one. Gives how many reads are of a part of an interval's rows. */
static uint32_t check_waits_for_writes(const gs_plan *p, const gs_plan_pass *pass)
{
    const uint32_t end = pass->first_task + pass->tasks;
    uint32_t parts = 0;
    for (uint32_t r = pass->first_task; r < end; r++) {
        const gs_task *const read = &p->task[r];
        uint64_t waited = 0, written = 0;
        if (!gs_task_reads(read) || read->check != GS_CHECK_NONE)
            continue;
        for (uint32_t i = 0; i < read->deps; i++)
            waited += gs_task_writes(&p->task[p->dep[read->first_dep + i]]) &&
                      p->task[p->dep[read->first_dep + i]].file == read->file;
        for (uint32_t w = pass->first_task; w < r; w++) {
            const gs_task *const t = &p->task[w];
            written += gs_task_writes(t) && t->file == read->file &&
                       t->place.offset < read->source.offset + read->bytes &&
                       read->source.offset < t->place.offset + t->bytes;
        }
        assert_int_equal(waited, written);
        parts += waited == 1;
    }
    return parts;
}

static void test_plan__reads_wait_for_the_writes_of_what_they_read(void **state)
{
    struct fixture f = {0};
    gs_plan *plan = NULL;
    static const gs_topology one = {.devices = 1, .switches = 1, .at = {{0, 1, 0, 0}}};
    uint32_t parts = 0;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 200000, 3, false, 7); /* intervals of several tiles */
    gs_schedule_config c = fixture_config(&f, 256 * GS_MIB, 64 * GS_MIB);
    c.force_spill = true;
    c.topology = &one;
    gs_assert_ok(gs_schedule(&plan, &c));
    for (uint32_t i = 0; i < plan->passes; i++)
        parts += check_waits_for_writes(plan, &plan->pass[i]);
    assert_true(parts > 0);
    gs_plan_free(plan);
    fixture_drop(&f);
}

static void test_plan__forced_spill_keeps_nothing(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 5000, 3, false, 7);
    gs_schedule_config c = fixture_config(&f, 256 * GS_MIB, 128 * GS_MIB);
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->residents, 0);
    assert_true(plan->pass[0].written_bytes >= 5000ull * 4 * (16 + 19 + 7));
    /* A ring for what goes through it, not for what the host has. */
    assert_in_range(plan->region_bytes[GS_REGION_RING], GS_MIB, 16 * GS_MIB);
    plan_sim_run(plan, &c, 0, 2, 3);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* Rows behind the last that is needed take no room. */
static void check_ends(const gs_plan *p)
{
    for (uint32_t i = 0; i < p->tasks; i++) {
        const gs_task *const t = &p->task[i];
        if (gs_task_reads(t) && t->runs > 0) {
            const gs_block_run last = p->run[t->first_run + t->runs - 1];
            assert_int_equal((last.first + (uint64_t)last.blocks) * GS_BLOCK_BYTES, t->bytes);
        }
    }
}

/* Runs of rows: what chunks use is read, in fewer bytes than whole intervals take, and on
 * a disk that takes long for each request in fewer requests. */
static void run_selective(uint64_t vertices, uint32_t parts, bool shared, uint32_t sparse, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *whole = NULL, *some = NULL, *few = NULL;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, vertices, parts, shared, seed);
    fixture_needs(&f, sparse, seed);
    gs_schedule_config c = fixture_config(&f, 64 * GS_MIB, 4 * GS_MIB);
    c.force_spill = true;
    gs_assert_ok(gs_schedule(&whole, &c));
    fixture_take_needs(&c, &f);
    gs_assert_ok(gs_schedule(&some, &c));
    plan_sim_run(some, &c, 0, 2, seed);
    plan_sim_run(some, &c, 1, 2, seed);
    c.disk_bps = 1e9;
    c.disk_request_seconds = 20e-6;
    gs_assert_ok(gs_schedule(&few, &c));
    plan_sim_run(few, &c, 0, 2, seed);
    for (uint32_t p = 0; p < 2; p++) {
        assert_true(some->pass[p].read_bytes + some->pass[p].skipped_bytes == whole->pass[p].read_bytes);
        assert_true(some->pass[p].read_bytes <= whole->pass[p].read_bytes);
        assert_true(few->pass[p].read_requests <= some->pass[p].read_requests);
    }
    assert_true(some->pass[0].skipped_bytes > 0);
    check_ends(some);
    gs_plan_free(whole);
    gs_plan_free(some);
    gs_plan_free(few);
    fixture_drop(&f);
}

static void test_plan__reads_runs_of_needed_rows(void **state)
{
    (void)state;
    if (gs_test_takes(1, 2))
        run_selective(60000, 12, false, 200, 21);
    if (gs_test_takes(1, 2))
        run_selective(60000, 12, true, 1000, 22);
    run_selective(40007, 17, false, 60, 23);
}

/* Stages that run for some rows: sums hold no others, tiles run for no others, files of the run get
 * no others, and what is read is still all that is used. */
static void run_pruned(uint64_t vertices, uint32_t parts, bool shared, uint64_t host, bool spill, uint32_t seed)
{
    struct fixture f = {0};
    gs_plan *all = NULL, *some = NULL, *held = NULL;
    fixture_program(&f, 37, 16);
    f.stage[0].instrs--; /* no statistic: it would want all rows */
    f.instr[1][0].b = (gs_operand){0};
    fixture_chunks(&f, vertices, parts, shared, seed);
    fixture_needs(&f, 40, seed);
    gs_schedule_config c = fixture_config(&f, host, 4 * GS_MIB);
    c.force_spill = spill;
    gs_assert_ok(gs_schedule(&all, &c));
    fixture_rows(&f, seed);
    fixture_take_needs(&c, &f);
    c.needs.stage_rows = f.rows;
    gs_assert_ok(gs_schedule(&some, &c));
    fixture_within(some, &c);
    c.needs.array_rows = f.held;
    gs_assert_ok(gs_schedule(&held, &c));
    plan_sim_run(held, &c, 0, 2, seed);
    assert_true(spill ? held->pass[0].written_bytes < some->pass[0].written_bytes
                      : held->pass[0].written_bytes <= some->pass[0].written_bytes);
    assert_true(held->pass[0].read_bytes <= some->pass[0].read_bytes);
    gs_plan_free(held);
    c.needs.array_rows = NULL;
    for (uint32_t p = 0; p < 2; p++) {
        plan_sim_run(some, &c, p, 2, seed);
        assert_true(some->pass[p].rows < all->pass[p].rows);
        assert_true(some->pass[p].edges < all->pass[p].edges);
        assert_true(some->pass[p].read_bytes <= all->pass[p].read_bytes);
        assert_true(some->pass[p].blocks <= all->pass[p].blocks);
    }
    gs_plan_free(all);
    gs_plan_free(some);
    fixture_drop(&f);
}

static void test_plan__runs_for_needed_rows_alone(void **state)
{
    (void)state;
    if (gs_test_takes(1, 2))
        run_pruned(60000, 12, false, 64 * GS_MIB, true, 31);
    run_pruned(60000, 12, true, 64 * GS_MIB, false, 32);
    run_pruned(40007, 17, false, 12 * GS_MIB, false, 33);
}

static const gs_topology one_gpu = {.devices = 1, .switches = 1, .at = {{.devices = 1}}};

/* A GPU of much memory takes an interval at a time, and keeps all that it uses: nothing is copied in an epoch. */
static void test_plan__a_large_gpu_takes_long_tiles(void **state)
{
    static const uint64_t device[] = {700 * GS_MIB, 64 * 1024 * GS_MIB};
    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(device); i++) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        uint32_t tiles[5] = {0};
        fixture_program(&f, 602, 300);
        fixture_chunks(&f, 130000, 2, false, 7);
        gs_schedule_config c = fixture_config(&f, 64 * 1024 * GS_MIB, device[i]);
        c.topology = &one_gpu;
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_true(plan->device_bytes <= c.device_memory);
        assert_int_equal(plan->pass[0].read_bytes, 0);
        assert_true(i == 0 ? plan->pass[0].upload_bytes > 0 : plan->pass[0].upload_bytes == 0);
        for (uint32_t t = 0; t < plan->tasks; t++)
            if (plan->task[t].kind == GS_TASK_VERTEX)
                tiles[plan->task[t].stage]++;
        for (uint32_t s = 0; s < 3; s++) /* the widest rows first */
            assert_true(i == 0 ? tiles[s] >= (s == 1 ? 4u : 8u) : tiles[s] <= 4);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* With the budget that a refusal names, one GPU has a plan. */
static void test_budget__a_gpu_has_what_is_named(void **state)
{
    (void)state;
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_refusal refused = {0};
    fixture_program(&f, 1000, 16);
    fixture_chunks(&f, 400000, 1, false, 7);
    gs_schedule_config c = fixture_config(&f, 64 * 1024 * GS_MIB, 1024 * GS_MIB);
    c.topology = &one_gpu;
    c.refusal = &refused;
    gs_assert_fails(gs_schedule(&plan, &c), GS_EBUDGET, ".device_memory 1.0 GiB is too small");
    assert_true(refused.device > 1024 * GS_MIB);
    c.device_memory = refused.device;
    gs_assert_ok(gs_schedule(&plan, &c));
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* Rows 0-15 and 64-79 of 256 B each: two blocks of 4 KiB with a gap of three between. */
static void test_ring__waits_for_what_it_overwrites(void **state)
{
    (void)state;
    gs_ring_sim r;
    uint64_t a, b, c;
    uint32_t waits[8], n = 0;
    gs_ring_init(&r, 3 * GS_BLOCK_BYTES);
    gs_assert_ok(gs_ring_take(&r, 1, &a, waits, 8, &n));
    gs_assert_ok(gs_ring_take(&r, GS_BLOCK_BYTES, &b, waits, 8, &n));
    assert_int_equal(n, 0);
    assert_int_equal(gs_ring_take(&r, 2 * GS_BLOCK_BYTES, &c, waits, 8, &n), GS_ENOFIT);
    gs_ring_release(&r, b, 42);
    gs_assert_ok(gs_ring_take(&r, 2 * GS_BLOCK_BYTES, &c, waits, 8, &n)); /* steps over a, which is live */
    assert_int_equal(c, GS_BLOCK_BYTES);
    assert_int_equal(n, 1);
    assert_int_equal(waits[0], 42);
    gs_ring_drop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget__is_named_without_its_plan),
        cmocka_unit_test(test_plan__is_held_alone_where_memory_is_short),
        cmocka_unit_test(test_plan__is_one_of_as_many_as_there_is_time_for),
        cmocka_unit_test(test_plan__is_made_again_without_a_search),
        cmocka_unit_test(test_plan__that_is_one_of_several_is_given_up),
        cmocka_unit_test(test_ring__waits_for_what_it_overwrites),
        cmocka_unit_test(test_plan__everything_in_memory_moves_nothing),
        cmocka_unit_test(test_plan__is_safe_in_any_order),
        cmocka_unit_test(test_plan__without_pipeline_reads_wait_for_what_is_before_them),
        cmocka_unit_test(test_budget__smallest_named_works),
        cmocka_unit_test(test_plan__more_memory_moves_fewer_bytes),
        cmocka_unit_test(test_plan__cache_is_safe_in_any_order),
        cmocka_unit_test(test_plan__a_hold_that_has_ended_is_over),
        cmocka_unit_test(test_plan__nothing_is_read_ahead_of_another_pass),
        cmocka_unit_test(test_plan__reads_wait_for_the_writes_of_what_they_read),
        cmocka_unit_test(test_plan__forced_spill_keeps_nothing),
        cmocka_unit_test(test_plan__a_large_gpu_takes_long_tiles),
        cmocka_unit_test(test_budget__a_gpu_has_what_is_named),
        cmocka_unit_test(test_plan__reads_runs_of_needed_rows),
        cmocka_unit_test(test_plan__runs_for_needed_rows_alone),
        cmocka_unit_test(test_plan__is_safe_with_columns_in_any_order),
        cmocka_unit_test(test_order__is_taken_where_the_simulation_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
