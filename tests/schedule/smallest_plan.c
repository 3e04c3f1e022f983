#include "smallest_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "support/support.h"

static uint64_t named_budget(const gs_schedule_config *config, const char *complaint)
{
    gs_plan *plan = NULL;
    unsigned long long mib = 0;

    gs_assert_fails(gs_schedule(&plan, config), GS_EBUDGET, complaint);
    assert_int_equal(sscanf(strstr(gs_last_error(), "at least"), "at least %lluM", &mib), 1);
    return mib * GS_MIB;
}

gs_plan *plan_smallest(gs_schedule_config *config)
{
    gs_plan *plan = NULL;

    config->host_memory = 512 * GS_MIB;
    config->device_memory = 100 * GS_KIB;
    config->device_memory = named_budget(config, ".device_memory 100.0 KiB is too small");
    config->host_memory = 2 * GS_MIB;
    config->host_memory = named_budget(config, ".host_memory 2.0 MiB is too small");
    gs_assert_ok(gs_schedule(&plan, config));
    return plan;
}
