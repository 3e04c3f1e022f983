/* links.c - adds up the tasks of a pass, link by link. */
#include "plan/links.h"

uint32_t gs_link_wire(const gs_topology *t, gs_plan_link link)
{
    const uint32_t device = gs_link_device(link);

    if (link.from == GS_DISK || link.to == GS_DISK)
        return GS_WIRE_DISK;
    if (gs_link_driver(link) == GS_DRIVER_PEER)
        return GS_WIRE_PEERS + device;
    return GS_WIRE_SWITCHES + 2 * gs_topology_switch_of(t, device) + (link.to == GS_HOST ? 1 : 0);
}

double gs_link_said_bps(const gs_topology *t, gs_plan_link link)
{
    switch (gs_link_driver(link)) {
    case GS_DRIVER_ENGINE:
        return t->at[gs_topology_switch_of(t, gs_link_device(link))].host_bps;
    case GS_DRIVER_PEER:
        return gs_topology_between(t, link.from - GS_DEVICE_MEMORIES, link.to - GS_DEVICE_MEMORIES);
    default:
        return 0;
    }
}

/* Links of each device have the order of their lanes. */
enum { DEVICE_LINKS = GS_DEVICE_LANES - GS_LANE_UPLOAD };

_Static_assert(GS_LANE_DEVICES + DEVICE_LINKS * GS_PLAN_DEVICES == GS_PLAN_LINKS, "a report has room for all links");

uint32_t gs_plan_links(const gs_plan *plan) { return GS_LANE_DEVICES + DEVICE_LINKS * plan->devices; }

static uint32_t number_of(gs_plan_link k)
{
    const uint32_t lane = gs_link_lane(k);
    return lane < GS_LANE_DEVICES ? lane : lane - (gs_link_device(k) + 1) * GS_LANE_UPLOAD;
}

void gs_plan_load_links(gs_link_load *out, const gs_plan *plan, uint32_t pass)
{
    const gs_task *const first = plan->task + plan->pass[pass].first_task;

    out[GS_LANE_READ] = (gs_link_load){.link = {GS_DISK, GS_HOST}};
    out[GS_LANE_WRITE] = (gs_link_load){.link = {GS_HOST, GS_DISK}};
    for (uint32_t m = GS_DEVICE_MEMORIES; m < GS_DEVICE_MEMORIES + plan->devices; m++) {
        const gs_plan_link of[] = {{GS_HOST, m}, {GS_DEVICE_MEMORIES, m}, {m, GS_HOST}, {GS_DISK, m}};
        for (uint32_t k = 0; k < DEVICE_LINKS; k++)
            out[number_of(of[k])] = (gs_link_load){.link = of[k]};
    }
    for (const gs_task *t = first; t < first + plan->pass[pass].tasks; t++) {
        if (t->kind != GS_TASK_MOVE)
            continue;
        gs_link_load *const load = &out[number_of(gs_task_way(t))];
        load->link = gs_task_way(t);
        load->bytes += gs_task_bytes(plan, t);
        load->requests += gs_task_requests(t);
        load->picked += gs_task_moves_rows(t) ? gs_task_bytes(plan, t) : 0;
    }
}
