/* Plans in which chunks come to a device straight from the disk: each finds its bytes whatever the order in which lanes
 * run, nothing of a chunk passes through the host, and the way is taken where it is predicted to be shorter. */
#include "base/size.h"
#include "plan/links.h"
#include "plan_fixture.h"
#include "plan_sim.h"
#include "schedule/simulate.h"
#include "support/moves.h"
#include "support/support.h"
#include "topologies.h"

/* Chunks that one way or the other come to the device in a pass, bytes. */
static uint64_t chunk_bytes(const gs_plan *p, uint32_t pass, const char *word)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->pass[pass].tasks; i++) {
        const gs_task *const t = &p->task[p->pass[pass].first_task + i];
        if (is_task(t, "load")) /* the host reads it once before the first pass */
            assert_true(p->region_bytes[GS_REGION_RING] >= t->bytes && t->bytes == t->chunk_bytes);
        bytes += is_task(t, word) ? t->chunk_bytes : 0;
    }
    return bytes;
}

/* Of loads the plan's sums, the links and the tasks say the same. */
static void check_sums(const gs_plan *p)
{
    gs_link_load load[GS_PLAN_LINKS];
    for (uint32_t pass = 0; pass < p->passes; pass++) {
        gs_plan_load_links(load, p, pass);
        assert_int_equal(p->pass[pass].loaded_bytes, chunk_bytes(p, pass, "load"));
        for (uint32_t l = 0; l < gs_plan_links(p); l++) {
            if (gs_link_driver(load[l].link) == GS_DRIVER_DIRECT)
                assert_int_equal(load[l].bytes, p->pass[pass].loaded_bytes);
            if (gs_link_lane(load[l].link) == GS_LANE_READ)
                assert_int_equal(load[l].bytes, p->pass[pass].read_bytes - p->pass[pass].loaded_bytes);
        }
    }
}

static void test_loads__plans_are_safe_in_any_order(void **state)
{
    static const struct {
        uint32_t vertices, parts;
        uint64_t host, device;
    } of[] = {{6000, 8, 64 * GS_MIB, 2 * GS_MIB},
              {6007, 17, 24 * GS_MIB, 1 * GS_MIB},
              {9001, 9, 12 * GS_MIB, 1536 * GS_KIB},
              {9001, 9, 64 * GS_MIB, 64 * GS_MIB}};
    uint64_t loaded = 0, uploaded = 0;
    (void)state;
    for (uint32_t seed = 0; seed < 12; seed++) {
        struct fixture f = {0};
        gs_plan *plan = NULL;
        fixture_program(&f, 37, 16);
        fixture_chunks(&f, of[seed % 4].vertices, of[seed % 4].parts, seed % 2 == 0, seed);
        fixture_needs(&f, 4, seed);
        gs_schedule_config c = fixture_config(&f, of[seed % 4].host, of[seed % 4].device);
        c.topology = seed % 2 == 0 ? &one : &one_gpu;
        c.loads = true;
        c.force_spill = seed % 3 == 0;
        c.no_pipeline = seed == 7;
        if (seed % 4 == 1)
            fixture_take_needs(&c, &f);
        gs_assert_ok(gs_schedule(&plan, &c));
        assert_true(plan->host_bytes <= c.host_memory && plan->device_bytes <= c.device_memory);
        check_sums(plan);
        plan_sim_run(plan, &c, 0, 2, seed);
        plan_sim_run(plan, &c, GS_NONE, 3, seed + 1);
        loaded += plan->pass[0].loaded_bytes;
        uploaded += chunk_bytes(plan, 0, "upload");
        if (c.force_spill)
            assert_int_equal(chunk_bytes(plan, 0, "upload"), 0); /* the host keeps none */
        gs_plan_free(plan);
        fixture_drop(&f);
    }
    assert_true(loaded > 0 && uploaded > 0); /* what the host keeps comes from there */
}

/* Seconds of an epoch, and how many of its bytes come past the host, where the disk reads at 1 GB/s and loads at
 * `bps`. */
static double plan_at(const struct fixture *f, bool loads, bool may_load, double bps, uint64_t *loaded)
{
    gs_plan *plan = NULL;
    gs_predicted x;
    gs_cost cost;
    gs_cost_defaults(&cost, 1);
    cost.read_bps = 1e9;
    cost.seconds[GS_WORK_FROM_DISK][0] = cost.request_seconds;
    cost.seconds[GS_WORK_FROM_DISK][1] = 1 / bps;
    for (int k = 0; k < GS_WORK_CHECK; k++) /* the disk is what an epoch waits for */
        for (int a = 0; a < GS_WORK_AMOUNTS; a++)
            cost.seconds[k][a] *= 1e-3;
    gs_schedule_config c = fixture_config(f, 64 * GS_MIB, 2 * GS_MIB);
    c.topology = &one_gpu;
    c.cost = &cost;
    c.force_spill = true;
    c.loads = loads;
    c.may_load = may_load;
    gs_assert_ok(gs_schedule(&plan, &c));
    check_sums(plan);
    gs_assert_ok(gs_simulate(&x, &(gs_simulation_input){plan, &f->p, f->set, 8, &cost, &one_gpu, 0, NULL}));
    *loaded = plan->pass[0].loaded_bytes;
    assert_int_equal(plan->loads, *loaded > 0);
    gs_plan_free(plan);
    return x.seconds;
}

static void test_loads__the_shorter_way_is_taken(void **state)
{
    struct fixture f = {0};
    uint64_t loaded;
    (void)state;
    fixture_program(&f, 37, 16);
    fixture_chunks(&f, 6000, 8, false, 3);
    for (uint32_t i = 0; i < 8 * 8; i++) /* edges are most of what the disk moves */
        f.chunk[0][i] = f.chunk[1][i] = (gs_chunk){.edges = 1000, .targets = 1, .operands = 1,
                                                   .offset = 131072ull * i, .length = 131072};
    const double host = plan_at(&f, false, false, 3e9, &loaded);
    assert_int_equal(loaded, 0);
    const double fast = plan_at(&f, true, false, 3e9, &loaded);
    assert_true(loaded > 0 && fast < 0.8 * host);
    assert_true(plan_at(&f, false, true, 3e9, &loaded) == fast && loaded > 0);
    assert_true(plan_at(&f, true, false, 3e8, &loaded) > 1.5 * host);
    assert_true(plan_at(&f, false, true, 3e8, &loaded) == host && loaded == 0);
    fixture_drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads__plans_are_safe_in_any_order),
        cmocka_unit_test(test_loads__the_shorter_way_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
