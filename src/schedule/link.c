/* link.c - how fast is the link that a copy goes over? A topology file says it, or a measurement, or a guess. */
#include "schedule/link.h"

#define USUAL_BPS 10e9 /* without a cost model */
#define USUAL_SECONDS 0.2e-6

const gs_cost *gs_cost_on(const gs_cost *cost, const gs_cost *host_cost, const gs_topology *t, uint32_t device)
{
    return host_cost != NULL && t != NULL && t->on_host[device] ? host_cost : cost;
}

gs_link_way gs_link_way_of(gs_plan_link link)
{
    return link.from == GS_DISK ? GS_LINK_FROM_DISK
           : link.from == GS_HOST ? GS_LINK_TO_DEVICE
           : link.to == GS_HOST ? GS_LINK_FROM_DEVICE
                                : GS_LINK_BETWEEN;
}

gs_link gs_link_of(const gs_topology *t, const gs_cost *cost, gs_plan_link link)
{
    const double said = gs_link_said_bps(t, link);
    gs_link out = cost != NULL ? gs_cost_link(cost, gs_link_way_of(link)) : (gs_link){USUAL_BPS, USUAL_SECONDS};

    if (said > 0)
        out.bps = said;
    return out;
}

double gs_link_seconds(const gs_topology *t, const gs_cost *cost, const gs_cost *host_cost, const gs_link_load *l)
{
    const gs_link link =
        gs_link_driver(l->link) == GS_DRIVER_IO
            ? (gs_link){l->link.from == GS_DISK ? cost->read_bps : cost->write_bps, cost->request_seconds}
            : gs_link_of(t, gs_cost_on(cost, host_cost, t, gs_link_device(l->link)), l->link);
    return (double)l->requests * link.request_seconds + (double)l->bytes / link.bps;
}
