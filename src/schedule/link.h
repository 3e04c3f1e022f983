/* link.h - how fast is the link that a copy goes over? */
#ifndef GS_SCHEDULE_LINK_H
#define GS_SCHEDULE_LINK_H

#include "cost/cost.h"
#include "plan/plan.h"
#include "topology/topology.h"

/* What the topology says of the link's speed; 0: nothing. */
double gs_link_said_bps(const gs_topology *t, uint32_t device, gs_link_way way);
/* Of the device's links to and from the host, and the one from its neighbour. `cost` may be NULL. */
gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, uint32_t device, gs_link_way way);
/* How long a link is busy with what tasks of this kind move over it: the disk's with a READ or WRITE (`t` is not asked
 * then), the device's with an UPLOAD, FORWARD or DOWNLOAD. */
double gs_link_seconds(const gs_topology *t, const gs_cost *cost, gs_task_kind kind, uint32_t device, uint64_t bytes,
                       uint64_t requests);
/* What an UPLOAD, FORWARD or DOWNLOAD goes over. */
gs_link_way gs_link_way_of(gs_task_kind copy);

#endif /* GS_SCHEDULE_LINK_H */
