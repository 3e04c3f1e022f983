#ifndef GS_TESTS_SMALLEST_PLAN_H
#define GS_TESTS_SMALLEST_PLAN_H

#include "schedule/schedule.h"

/* The plan at exactly the budgets that refusals name for a program that needs both; they are left in `config`. Fails
 * the test where there is none. The caller frees it. */
gs_plan *plan_smallest(gs_schedule_config *config);

#endif /* GS_TESTS_SMALLEST_PLAN_H */
