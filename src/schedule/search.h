/* search.h - which choice of memory takes the least time? */
#ifndef GS_SCHEDULE_SEARCH_H
#define GS_SCHEDULE_SEARCH_H

#include "schedule/schedule.h"

/* As gs_schedule(), with columns dealt in the proportion that `config` says. *cost: predicted seconds of an epoch with
 * the wear of what it writes, by which plans of one program are compared; bytes moved where there is no cost model. */
gs_status gs_schedule_search(gs_plan **out, double *cost, const gs_schedule_config *config);

#endif /* GS_SCHEDULE_SEARCH_H */
