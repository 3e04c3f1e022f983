#include "cache_plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "plan_sim.h"
#include "schedule/column_order.h"
#include "schedule/emitter.h"
#include "schedule/keep.h"
#include "schedule/simulate.h"
#include "support/support.h"

/* The pass's accesses, all that the store has being left to the cache; returns the bytes that it reads without one. */
static uint64_t trace(gs_layout *l, gs_choice *c, const gs_schedule_config *config, uint32_t pass, bool keep)
{
    gs_plan *plan = NULL;

    gs_assert_ok(gs_layout_make(l, config, GS_TILES_SHORT));
    gs_assert_ok(gs_choice_make(c, l));
    assert_true(gs_choice_set_arena(c, l, config->device_memory));
    c->made_only = true;
    c->cached_pass = pass;
    gs_choice_keep(c, l, keep ? 512 * GS_KIB : 0);
    c->ring_bytes = UINT64_MAX / 4;
    c->host.tracing = true;
    gs_assert_ok(gs_emit(&plan, l, c));
    c->host.tracing = false;
    c->ring_bytes = 2 * GS_MIB;
    const uint64_t read = plan->pass[pass].read_bytes;
    gs_plan_free(plan);
    return read;
}

gs_plan *cache_plan_make(const gs_schedule_config *config, uint64_t capacity, bool keep)
{
    gs_layout l;
    gs_choice c;
    gs_cache_plan cache;
    gs_plan *plan = NULL;
    const uint64_t without = trace(&l, &c, config, 0, keep);

    gs_cache_list *const list = &c.host.list;
    gs_assert_ok(gs_cache_plan_make(&cache, &(gs_cache_input){.access = list->access, .accesses = list->accesses,
                                                           .units = 1u << 16, .capacity = capacity, .across = true}));
    list->plan = &cache;
    gs_assert_ok(gs_emit(&plan, &l, &c));
    assert_true(plan->pass[0].read_bytes <= without);
    gs_cache_plan_drop(&cache);
    gs_choice_drop(&c);
    gs_layout_drop(&l);
    return plan;
}

/* The first use of a unit that goes on while another one is read, where an access before that use read the unit as
 * well. *before, *meanwhile: that access, and the other unit's. False: there is none. */
static bool find_overlap(const gs_choice *c, uint32_t *before, uint32_t *meanwhile)
{
    const gs_cache_list *const list = &c->host.list;
    const gs_cache_access *const a = list->access;
    for (uint32_t k = 1; k < list->accesses; k++)
        for (uint32_t m = k + 1; m < list->accesses && m <= a[k].until; m++)
            for (uint32_t b = 0; b < k; b++) {
                if (a[b].unit != a[k].unit || !a[b].whole || !a[m].whole)
                    continue;
                *before = b;
                *meanwhile = m;
                return true;
            }
    return false;
}

gs_plan *ended_hold_plan_make(const gs_schedule_config *config)
{
    gs_layout l;
    gs_choice c;
    gs_plan *plan = NULL;
    uint32_t before = 0, meanwhile = 0;

    (void)trace(&l, &c, config, 1, false);
    assert_true(find_overlap(&c, &before, &meanwhile));
    gs_cache_list *const list = &c.host.list;
    uint64_t *const place = malloc(list->accesses * sizeof(*place));
    bool *const hit = calloc(list->accesses, sizeof(*hit));
    for (uint32_t k = 0; k < list->accesses; k++)
        place[k] = k == before || k == meanwhile ? 0 : GS_CACHE_NOWHERE;
    list->plan = &(gs_cache_plan){.accesses = list->accesses,
                                  .place = place,
                                  .hit = hit,
                                  .used_bytes = GS_MAX(list->access[before].bytes, list->access[meanwhile].bytes)};
    gs_assert_ok(gs_emit(&plan, &l, &c));
    free(place);
    free(hit);
    gs_choice_drop(&c);
    gs_layout_drop(&l);
    return plan;
}

gs_plan *shuffled_plan_make(const gs_schedule_config *config, uint64_t keep, uint32_t seed)
{
    gs_layout l;
    gs_choice c;
    gs_plan *plan = NULL;

    gs_assert_ok(gs_layout_make(&l, config, GS_TILES_SHORT));
    gs_assert_ok(gs_choice_make(&c, &l));
    assert_true(gs_choice_set_arena(&c, &l, config->device_memory / 2));
    gs_choice_keep(&c, &l, keep);
    for (uint32_t s = 0; s < l.program->stages; s++)
        for (uint32_t k = gs_choice_blocks(&c, &l, s); k > 1; k--) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t *const a = &c.order[s * l.parts + k - 1], *const b = &c.order[s * l.parts + (seed >> 8) % k],
                            x = *a;
            *a = *b;
            *b = x;
        }
    c.ring_bytes = 2 * GS_MIB;
    gs_assert_ok(gs_emit(&plan, &l, &c));
    gs_choice_drop(&c);
    gs_layout_drop(&l);
    return plan;
}

bool ordered_plan_check(const gs_schedule_config *config, gs_chunk *const chunk[2], double bps, uint32_t seed)
{
    gs_schedule_config c = *config;
    const gs_edge_set set[2] = {{.chunk = chunk[0]}, {.chunk = chunk[1]}};
    gs_plan *plan = NULL;
    gs_predicted x;
    gs_cost cost;

    gs_cost_defaults(&cost, 1);
    cost.read_bps = cost.write_bps = bps;
    c.cost = &cost;
    gs_assert_ok(gs_schedule(&plan, &c));
    const gs_plan_pass pass = plan->pass[0];
    assert_true(pass.order.tried > 2 && pass.order.best_seconds <= pass.order.store_seconds);
    assert_int_equal(pass.order.taken, pass.order.best_seconds < 0.98 * pass.order.store_seconds);
    const gs_simulation_input input = {plan, c.program, set, c.chunks->parts, &cost, c.topology, 0, NULL};
    gs_assert_ok(gs_simulate(&x, &input));
    assert_true(fabs(x.seconds - (pass.order.taken ? pass.order.best_seconds : pass.order.store_seconds)) < 1e-9);
    plan_sim_run(plan, &c, 0, 2, seed);
    plan_sim_run(plan, &c, 1, 1, seed);
    gs_plan_free(plan);
    c.no_swap = true;
    gs_assert_ok(gs_schedule(&plan, &c));
    assert_int_equal(plan->pass[0].order.tried, 0);
    gs_plan_free(plan);
    return pass.order.best_seconds < pass.order.store_seconds;
}
