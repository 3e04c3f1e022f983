/* How columns are dealt to devices that are not alike: stages may have shares of their own, plans with them are safe in
 * any order, and where a stage's rows are is where it is computed if links are slow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "plan_fixture.h"
#include "plan_sim.h"
#include "schedule/simulate.h"
#include "support/support.h"

/* Rows of a stage that a device makes. */
static uint64_t own_rows(const gs_plan *p, uint32_t stage, uint32_t device)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < p->tasks; i++)
        if (p->task[i].kind == GS_TASK_VERTEX && p->task[i].stage == stage && p->task[i].device == device)
            rows += p->task[i].rows;
    return rows;
}

/* With shares that differ from stage to stage each device computes its own, and whatever the order in which lanes run,
 * everybody finds the bytes that others made. */
static void test_deals__stages_have_shares_of_their_own(void **state)
{
    static const gs_topology two = {.devices = 2, .switches = 2, .at = {{0, 1, 0, 0}, {1, 1, 0, 0}},
                                    .on_host = {true, true}},
                             three = {.devices = 3, .switches = 2, .at = {{0, 2, 1e9, 2e9}, {2, 1, 0, 0}},
                                      .on_host = {true, true, true}};
    static const gs_topology *const topologies[] = {&two, &three};
    static const double of_two[] = {1, 0, 0, 1, 1, 1, 0, 1, 1, 0},
                        of_three[] = {0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1};
    static const double *const shares[] = {of_two, of_three};
    (void)state;
    for (uint32_t seed = 1; seed <= 3; seed++) {
        const uint32_t k = seed % 2, devices = topologies[k]->devices;
        struct fixture f = {0};
        gs_plan *plan = NULL;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, 9001, 9, seed % 2 == 0, seed);
        gs_schedule_config c = fixture_config(&f, 32 * GS_MIB, GS_MIB << seed % 3);
        c.topology = topologies[k];
        c.share = shares[k];
        c.force_spill = seed % 3 == 0;
        gs_assert_ok(gs_schedule(&plan, &c));
        for (uint32_t s = 0; s < 5; s++)
            for (uint32_t d = 0; d < devices; d++)
                assert_int_equal(own_rows(plan, s, d) > 0, c.share[s * devices + d] > 0);
        plan_sim_run(plan, &c, 0, 3, seed);
        plan_sim_run(plan, &c, GS_NONE, 3, seed + 1);
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* A device on its own, 512 columns of features in a memory that holds them all, behind a fast wire; the other computes
 * eight times as fast, with a memory for a few of them, behind a slow wire. Sums of 16 columns are the fast one's. */
static void test_deals__rows_are_transformed_where_they_are(void **state)
{
    gs_topology t = {.devices = 2, .switches = 2, .at = {{0, 1, 2e7, 0}, {1, 1, 0, 0}}, .speed = {1, 0.125},
                     .on_host = {true, true}, .memory = {4 * GS_MIB, 64 * GS_MIB}};
    struct fixture f = {0};
    gs_plan *plan = NULL, *whole = NULL;
    gs_cost cost;
    double shortest = INFINITY;
    (void)state;
    fixture_program(&f, 512, 16);
    f.p.passes = 1;
    f.p.stages = 3;
    f.stage[1].name[0] = '1'; /* stages of one name have the same shares */
    f.stage[2].name[0] = '2';
    f.reg[2][3] = (gs_reg){GS_REG_LOAD, GS_F32, 1, DEGREE}; /* no features but in stage 0 */
    fixture_chunks(&f, 16000, 16, false, 5);
    for (uint32_t i = 0; i < 16 * 16; i++)
        f.chunk[0][i] = f.chunk[1][i] =
            (gs_chunk){.edges = 20000, .targets = 900, .operands = 900, .offset = 4096ull * i, .length = 4096};
    for (int d = 0; d < 2; d++)
        f.set[d].chunk = f.chunks.chunk[d];
    gs_cost_defaults(&cost, 1);
    gs_schedule_config c = fixture_config(&f, 256 * GS_MIB, 4 * GS_MIB);
    c.topology = &t;
    c.cost = &cost;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_true(plan->deals.count > 0 && plan->deals.taken < plan->deals.count);
    assert_int_equal(own_rows(plan, 0, 0), 0); /* features are the other's */
    assert_true(own_rows(plan, 1, 0) > 8000 && own_rows(plan, 2, 0) > 8000); /* of 16000 */
    for (uint32_t i = 0; i < plan->deals.count; i++)
        shortest = plan->deals.deal[i].seconds < shortest ? plan->deals.deal[i].seconds : shortest;
    assert_true(plan->deals.deal[plan->deals.taken].seconds == shortest);
    /* all stages alike, by speed: features cross the slow wire */
    t.place = (gs_topology_place){true, {1, 0.125}, {1, 0.125}};
    gs_assert_ok(gs_schedule(&whole, &c));
    assert_int_equal(whole->deals.count, 0);
    assert_true(own_rows(whole, 0, 0) > 8000);
    assert_true(plan->pass[0].upload_bytes < whole->pass[0].upload_bytes / 2);
    gs_plan_free(plan);
    gs_plan_free(whole);
    /* said otherwise, it is otherwise */
    t.place = (gs_topology_place){true, {0, 1}, {1, 0}};
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(own_rows(plan, 0, 1) + own_rows(plan, 1, 0) + own_rows(plan, 2, 0), 0);
    plan_sim_run(plan, &c, 0, 3, 7);
    gs_plan_free(plan);
    fixture_drop(&f);
}

/* The tasks of planning for two devices, each chunk of which needs all rows. *deals: the ways that were tried. */
static uint64_t plan_for_two(gs_plan_deals *deals, uint32_t seed, bool rows_known)
{
    static const gs_topology t = {.devices = 2, .switches = 1, .at = {{0, 2, 3e8, 1.2e10}}, .speed = {0.5, 1}};
    gs_effort effort = {.screens = true, .most = seed * 10000};
    struct fixture f = {0};
    gs_plan *plan = NULL;
    gs_cost cost;

    gs_cost_defaults(&cost, 1);
    fixture_program(&f, 64, 16);
    fixture_chunks(&f, 16000, 8, false, seed);
    fixture_needs(&f, 1, seed);
    gs_schedule_config c = fixture_config(&f, 256 * GS_MIB, 4 * GS_MIB);
    fixture_take_needs(&c, &f);
    if (rows_known)
        fixture_take_rows(&f, &c, 1, seed);
    c.topology = &t;
    c.cost = &cost;
    c.effort = &effort;
    gs_assert_ok(gs_schedule(&plan, &c));
    *deals = plan->deals;
    gs_plan_free(plan);
    fixture_drop(&f);
    return effort.tasks;
}

/* What is known of single rows is a reason to compare ways in which rows do not go from device to device. As many ways
 * to deal columns are looked at then, and planning takes little longer where those others are far from the best. */
static void test_deals__rows_that_are_known_hide_no_deal(void **state)
{
    (void)state;
    for (uint32_t seed = 11; seed <= 14; seed++) {
        gs_plan_deals plain, known;
        const uint64_t most = 3 * plan_for_two(&plain, seed, false) / 2;
        assert_true(plan_for_two(&known, seed, true) < most);
        assert_true(plain.count > 5);
        assert_int_equal(known.count, plain.count);
        for (uint32_t k = 0; k < plain.count; k++)
            assert_true(fabs(known.deal[k].seconds / plain.deal[k].seconds - 1) < 1e-9);
    }
}

/* Devices that compute at once may be in each other's way; where they wait for wires of which the topology says how
 * fast they are, they are not: then several are taken though they save less than an eighth. */
static void test_deals__several_wait_for_wires_together(void **state)
{
    static const struct {
        double bps, speed;
        bool several;
    } cases[] = {{3e8, 0.125, true}, {1e11, 0.25, false}};
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(cases); k++) {
        const gs_topology t = {.devices = 2, .switches = 1, .at = {{0, 2, cases[k].bps, 1.2e10}},
                               .speed = {cases[k].speed, 1}};
        double least = INFINITY, alone = 0;
        gs_effort effort = {.screens = true};
        struct fixture f = {0};
        gs_plan *plan = NULL;
        gs_cost cost;
        gs_cost_defaults(&cost, 1);
        fixture_program(&f, 64, 16);
        fixture_chunks(&f, 16000, 8, false, 3);
        gs_schedule_config c = fixture_config(&f, 256 * GS_MIB, 4 * GS_MIB);
        c.topology = &t;
        c.cost = &cost;
        c.effort = &effort;
        gs_assert_ok(gs_schedule(&plan, &c));
        for (uint32_t i = 0; i < plan->deals.count; i++) {
            const gs_plan_deal *const d = &plan->deals.deal[i];
            least = fmin(least, d->seconds);
            alone = d->edges.others == 0 && d->vertices.others == 0 ? d->seconds : alone;
        }
        assert_true(least < 0.98 * alone && least > 0.875 * alone);
        assert_true(plan->deals.deal[plan->deals.taken].seconds == (cases[k].several ? least : alone));
        gs_plan_free(plan);
        fixture_drop(&f);
    }
}

/* Sums that attend by the same scores have one exponential an edge, and those by others one each. */
static void test_deals__scores_have_one_exponential(void **state)
{
    struct fixture f = {0};
    gs_work w[3] = {{0}};
    (void)state;
    fixture_program(&f, 37, 16);
    gs_edge_program_work(&w[0], &f.p, &f.stage[4], 100);
    f.stage[4].sum[1] = (gs_sum){.kind = GS_SUM_ATTEND, .reg = 2, .lse = 1, .value = 3, .score = 1};
    gs_edge_program_work(&w[1], &f.p, &f.stage[4], 100);
    f.stage[4].sum[1].score = 3;
    gs_edge_program_work(&w[2], &f.p, &f.stage[4], 100);
    assert_true(w[0].amount[4] == 100 && w[1].amount[4] == 100 && w[2].amount[4] == 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deals__stages_have_shares_of_their_own),
        cmocka_unit_test(test_deals__rows_are_transformed_where_they_are),
        cmocka_unit_test(test_deals__rows_that_are_known_hide_no_deal),
        cmocka_unit_test(test_deals__scores_have_one_exponential),
        cmocka_unit_test(test_deals__several_wait_for_wires_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
