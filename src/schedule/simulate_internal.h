/* simulate_internal.h - what the two simulators share. */
#ifndef GS_SCHEDULE_SIMULATE_INTERNAL_H
#define GS_SCHEDULE_SIMULATE_INTERNAL_H

#include "schedule/simulate.h"

/* For plans of several devices. */
gs_status gs_simulate_several(gs_simulation *out, const gs_simulation_input *in);
/* The resource that is busy longest, where it is busy nearly all the time. */
const char *gs_simulation_bottleneck(const gs_simulation *x);

#endif /* GS_SCHEDULE_SIMULATE_INTERNAL_H */
