/* plan_sim.h - runs a plan against pretend files, memory and a pretend device.
 *
 * Lanes advance in a random but legal order, and transfers that are in flight
 * scribble over their memory until they complete. Every byte of an array or
 * chunk is a function of where it belongs, so whoever reads a byte can tell
 * whether it is the right one. The first wrong byte fails the test.
 */
#ifndef GS_TESTS_PLAN_SIM_H
#define GS_TESTS_PLAN_SIM_H

#include "plan/part.h"
#include "plan/plan.h"
#include "schedule/schedule.h"

/* Runs pass `pass` `runs` times; GS_NONE: one pass after the other. Fails the cmocka test on the first violation. */
void plan_sim_run(const gs_plan *plan, const gs_schedule_config *config, uint32_t pass, uint32_t runs,
                  uint32_t seed);

/* Takes the parts of the plan, of several devices, and runs all of them beside each other, one pass after the other.
 * `dealt`: as gs_plan_take_part() has it. */
void plan_sim_run_parts(const gs_plan *plan, const gs_schedule_config *config, const gs_part_rows *dealt,
                        uint32_t runs, uint32_t seed);

#endif /* GS_TESTS_PLAN_SIM_H */
