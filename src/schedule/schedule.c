/* schedule.c - the plan of a run. */
#include "schedule/schedule.h"

#include "schedule/search.h"

gs_status gs_schedule(gs_plan **out, const gs_schedule_config *config)
{
    double cost;
    return gs_schedule_search(out, &cost, config);
}
