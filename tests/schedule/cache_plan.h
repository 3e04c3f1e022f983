/* cache_plan.h - plans with a cache of a given size or in a given order, whatever else would be better. */
#ifndef GS_TESTS_CACHE_PLAN_H
#define GS_TESTS_CACHE_PLAN_H

#include "plan/plan.h"
#include "schedule/schedule.h"

/* `keep`: 512 KiB for arrays of the run beside it. Fails the cmocka test where the pass "train" reads more than
 * without the cache. The caller frees it. */
gs_plan *cache_plan_make(const gs_schedule_config *config, uint64_t capacity, bool keep);
/* Its cache, for the pass "eval", keeps a unit for one access, and reads another to the same place while the unit's
 * next use goes on. */
gs_plan *ended_hold_plan_make(const gs_schedule_config *config);

/* A plan whose stages take their blocks of columns in random orders, with `keep` bytes for what stays. */
gs_plan *shuffled_plan_make(const gs_schedule_config *config, uint64_t keep, uint32_t seed);

/* Plans with a disk of this bandwidth: what is said of the order of columns is what the simulation says, an order is
 * taken where it saves 2 %, and the plan is safe. Returns whether a better one was found. `chunk`: of both
 * directions. */
bool ordered_plan_check(const gs_schedule_config *config, gs_chunk *const chunk[2], double bps, uint32_t seed);

#endif /* GS_TESTS_CACHE_PLAN_H */
