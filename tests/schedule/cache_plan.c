#include "cache_plan.h"

#include "base/size.h"
#include "schedule/schedule_internal.h"
#include "support/support.h"

gs_plan *cache_plan_make(const gs_schedule_config *config, uint64_t capacity, bool keep)
{
    gs_layout l;
    gs_choice c;
    gs_cache_plan cache;
    gs_plan *plan = NULL;

    gs_assert_ok(gs_layout_make(&l, config, true));
    gs_assert_ok(gs_choice_make(&c, &l));
    assert_true(gs_choice_set_arena(&c, &l, config->device_memory));
    c.made_only = true;
    gs_choice_keep(&c, &l, keep ? 512 * GS_KIB : 0);
    c.ring_bytes = UINT64_MAX / 4;
    c.tracing = true;
    gs_assert_ok(gs_emit(&plan, &l, &c));
    const uint64_t without = plan->pass[0].read_bytes;
    gs_plan_free(plan);
    c.tracing = false;
    gs_assert_ok(gs_cache_plan_make(&cache, c.access, c.accesses, 1u << 16, capacity, true));
    c.cache = &cache;
    c.ring_bytes = 2 * GS_MIB;
    gs_assert_ok(gs_emit(&plan, &l, &c));
    assert_true(plan->pass[0].read_bytes <= without);
    gs_cache_plan_drop(&cache);
    gs_choice_drop(&c);
    gs_layout_drop(&l);
    return plan;
}
