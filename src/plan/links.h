/* links.h - what does a pass move over each link between two memories?
 *
 * A sum over the pass's tasks, for any number of devices. Bytes; requests are what the far end is told of one by one:
 * transfers of the disk, runs of a copy. What is loaded before the first pass is none of a pass.
 */
#ifndef GS_PLAN_LINKS_H
#define GS_PLAN_LINKS_H

#include "plan/plan.h"
#include "topology/topology.h"

/* Wires serve one move after the other: the disk; each switch's to its devices, and to the host; each device's from its
 * peers. */
enum {
    GS_WIRE_DISK,
    GS_WIRE_SWITCHES,
    GS_WIRE_PEERS = GS_WIRE_SWITCHES + 2 * GS_TOPOLOGY_DEVICES,
    GS_WIRES = GS_WIRE_PEERS + GS_TOPOLOGY_DEVICES
};

/* The link that the bytes of a MOVE take: between ranks it is the network. */
static inline gs_plan_link gs_task_way(const gs_task *t)
{
    const gs_plan_link link = gs_task_link(t);
    const bool far = link.from == GS_HOST && gs_is_device_memory(link.to) && t->chunk_bytes == 0 && t->operand > 0;
    return far ? (gs_plan_link){GS_DEVICE_MEMORIES + t->operand - 1, link.to} : link;
}

/* The wire that the link takes. From the disk to a device it is the disk's, and the one from the host is taken, too.
 * `t` is not asked where neither end is a device's. */
uint32_t gs_link_wire(const gs_topology *t, gs_plan_link link);
/* The speed of a device's link as the topology says it; 0: it says none. */
double gs_link_said_bps(const gs_topology *t, gs_plan_link link);

typedef struct gs_link_load {
    gs_plan_link link; /* of those from peers to a device, the last that was used */
    uint64_t bytes, requests;
    uint64_t picked; /* of the bytes, those of rows that are moved by themselves */
} gs_link_load;

/* The disk's two, then four of each device whose copies are tasks: from the host, from peers, to the host, from the
 * disk. */
uint32_t gs_plan_links(const gs_plan *plan);
/* out[gs_plan_links()], in that order, those that nothing goes over too. */
void gs_plan_load_links(gs_link_load *out, const gs_plan *plan, uint32_t pass);

#endif /* GS_PLAN_LINKS_H */
