/* link.h - how fast is the link that a copy goes over? */
#ifndef GS_SCHEDULE_LINK_H
#define GS_SCHEDULE_LINK_H

#include "cost/cost.h"
#include "plan/links.h"
#include "topology/topology.h"

/* The costs of a device: `host_cost`, where it is given, for one on host memory among others that are not. `t` may be
 * NULL. */
const gs_cost *gs_cost_on(const gs_cost *cost, const gs_cost *host_cost, const gs_topology *t, uint32_t device);
/* The link's speed as the topology says it; 0: it says none. `peer`: with GS_LINK_BETWEEN, the device's source. */
double gs_link_said_bps(const gs_topology *t, gs_link_way way, uint32_t device, uint32_t peer);
/* Speed and request cost of the device's link to or from the host, or from a peer. `cost` may be NULL. */
gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, gs_link_way way, uint32_t device, uint32_t peer);
/* How long a link is busy with what is moved over it: the disk's with a READ or WRITE (`t` is not asked then), the
 * device's with an UPLOAD, FORWARD, DOWNLOAD or LOAD. */
double gs_link_seconds(const gs_topology *t, const gs_cost *cost, const gs_link_load *load);
/* The link that an UPLOAD, FORWARD, DOWNLOAD or LOAD goes over, which has a speed of its own in a device's costs; READs
 * and WRITEs have the disk's. */
gs_link_way gs_link_way_of(gs_task_kind kind);
bool gs_link_has_cost(gs_task_kind kind);

#endif /* GS_SCHEDULE_LINK_H */
