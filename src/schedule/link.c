/* link.c - how fast is the link that a copy goes over? A topology file says it, or a measurement, or a guess. */
#include "schedule/link.h"

#define USUAL_BPS 10e9 /* without a cost model */
#define USUAL_SECONDS 0.2e-6

double gs_link_said_bps(const gs_topology *t, uint32_t device, gs_link_way way)
{
    const gs_topology_switch *const at = &t->at[gs_topology_switch_of(t, device)];
    return way == GS_LINK_BETWEEN ? at->peer_bps : at->host_bps;
}

gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, uint32_t device, gs_link_way way)
{
    const double said = gs_link_said_bps(t, device, way);
    gs_link link = cost != NULL ? gs_cost_link(cost, way) : (gs_link){USUAL_BPS, USUAL_SECONDS};

    if (said > 0)
        link.bps = said;
    return link;
}

gs_link_way gs_link_way_of(gs_task_kind copy)
{
    return copy == GS_TASK_UPLOAD    ? GS_LINK_TO_DEVICE
           : copy == GS_TASK_FORWARD ? GS_LINK_BETWEEN
                                     : GS_LINK_FROM_DEVICE;
}

double gs_link_seconds(const gs_topology *t, const gs_cost *cost, gs_task_kind kind, uint32_t device, uint64_t bytes,
                       uint64_t requests)
{
    const bool copy = gs_task_is_copy(kind);
    const gs_link link = copy ? gs_link_of(t, cost, device, gs_link_way_of(kind))
                              : (gs_link){kind == GS_TASK_READ ? cost->read_bps : cost->write_bps,
                                          cost->request_seconds};
    return (double)requests * link.request_seconds + (double)bytes / link.bps;
}
