/* link.h - how fast is the link that a copy goes over? */
#ifndef GS_SCHEDULE_LINK_H
#define GS_SCHEDULE_LINK_H

#include "cost/cost.h"
#include "plan/links.h"
#include "topology/topology.h"

/* The costs of a device: `host_cost`, where it is given, for one on host memory among others that are not. `t` may be
 * NULL. */
const gs_cost *gs_cost_on(const gs_cost *cost, const gs_cost *host_cost, const gs_topology *t, uint32_t device);
/* From the host to a device. */
static inline gs_plan_link gs_link_to(uint32_t device) { return (gs_plan_link){GS_HOST, GS_DEVICE_MEMORIES + device}; }
/* The kind of a link at a device, in its costs. */
gs_link_way gs_link_way_of(gs_plan_link link);
/* The speed and request cost of such a link by the device's `cost`, which may be NULL. */
gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, gs_plan_link link);
/* How long any link is busy with what is moved over it. `t` is not asked where neither end is a device's. */
double gs_link_seconds(const gs_topology *t, const gs_cost *cost, const gs_cost *host_cost, const gs_link_load *load);

#endif /* GS_SCHEDULE_LINK_H */
