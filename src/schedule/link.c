/* link.c - how fast is the link that a copy goes over? A topology file says it, or a measurement, or a guess. */
#include "schedule/link.h"

#define USUAL_BPS 10e9 /* without a cost model */
#define USUAL_SECONDS 0.2e-6

const gs_cost *gs_cost_on(const gs_cost *cost, const gs_cost *host_cost, const gs_topology *t, uint32_t device)
{
    return host_cost != NULL && t != NULL && t->on_host[device] ? host_cost : cost;
}

double gs_link_said_bps(const gs_topology *t, gs_link_way way, uint32_t device, uint32_t peer)
{
    return way == GS_LINK_FROM_DISK ? 0
           : way == GS_LINK_BETWEEN ? gs_topology_between(t, peer, device)
                                    : t->at[gs_topology_switch_of(t, device)].host_bps;
}

gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, gs_link_way way, uint32_t device, uint32_t peer)
{
    const double said = gs_link_said_bps(t, way, device, peer);
    gs_link link = cost != NULL ? gs_cost_link(cost, way) : (gs_link){USUAL_BPS, USUAL_SECONDS};

    if (said > 0)
        link.bps = said;
    return link;
}

gs_link_way gs_link_way_of(gs_task_kind kind)
{
    return kind == GS_TASK_UPLOAD    ? GS_LINK_TO_DEVICE
           : kind == GS_TASK_FORWARD ? GS_LINK_BETWEEN
           : kind == GS_TASK_LOAD    ? GS_LINK_FROM_DISK
                                     : GS_LINK_FROM_DEVICE;
}

bool gs_link_has_cost(gs_task_kind kind) { return gs_task_is_copy(kind) || kind == GS_TASK_LOAD; }

double gs_link_seconds(const gs_topology *t, const gs_cost *cost, const gs_link_load *l)
{
    const bool own = gs_link_has_cost(l->kind);
    const gs_link link = own ? gs_link_of(t, cost, gs_link_way_of(l->kind), l->device, l->peer)
                             : (gs_link){l->kind == GS_TASK_READ ? cost->read_bps : cost->write_bps,
                                         cost->request_seconds};
    return (double)l->requests * link.request_seconds + (double)l->bytes / link.bps;
}
