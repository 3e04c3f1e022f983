/* cache_plan.h - a plan with a cache of a given size, whatever else would be better. */
#ifndef GS_TESTS_CACHE_PLAN_H
#define GS_TESTS_CACHE_PLAN_H

#include "plan/plan.h"
#include "schedule/schedule.h"

/* `keep`: 512 KiB for arrays of the run beside it. Fails the cmocka test where the pass "train" reads more than
 * without the cache. The caller frees it. */
gs_plan *cache_plan_make(const gs_schedule_config *config, uint64_t capacity, bool keep);

#endif /* GS_TESTS_CACHE_PLAN_H */
