/* links.h - what does a pass move over each link between two memories?
 *
 * A sum over the pass's tasks, for any number of devices. Bytes; requests are what the far end is told of one by one:
 * transfers of the disk, runs of a copy. What is loaded before the first pass is none of a pass.
 */
#ifndef GS_PLAN_LINKS_H
#define GS_PLAN_LINKS_H

#include "plan/plan.h"

typedef struct gs_link_load {
    gs_plan_link link; /* of those from peers to a device, the last that was used */
    uint64_t bytes, requests;
} gs_link_load;

/* The disk's two, then four of each device whose copies are tasks: from the host, from peers, to the host, from the
 * disk. */
uint32_t gs_plan_links(const gs_plan *plan);
/* out[gs_plan_links()], in that order, those that nothing goes over too. */
void gs_plan_load_links(gs_link_load *out, const gs_plan *plan, uint32_t pass);

#endif /* GS_PLAN_LINKS_H */
