/* links.h - what does a pass move over each link between two memories?
 *
 * A sum over the pass's tasks, for any number of devices. Bytes; requests are what the far end is told of one by one:
 * transfers of the disk, runs of a copy. What is loaded before the first pass is none of a pass.
 */
#ifndef GS_PLAN_LINKS_H
#define GS_PLAN_LINKS_H

#include "plan/plan.h"

/* One way. Which it is, the task that goes over it says: READ from the disk to the host, WRITE back, UPLOAD from the
 * host to `device`, FORWARD to it from `peer`, which is before it in its chain or ring, DOWNLOAD to the host, LOAD from
 * the disk to `device`. */
typedef struct gs_link_load {
    gs_task_kind kind;
    uint32_t device; /* READ, WRITE: 0 */
    uint64_t bytes, requests;
    uint32_t peer;   /* FORWARD: whom the device takes from, last */
} gs_link_load;

/* The disk's two, then four of each device whose copies are tasks. */
uint32_t gs_plan_links(const gs_plan *plan);
/* out[gs_plan_links()], in that order, those that nothing goes over too. */
void gs_plan_load_links(gs_link_load *out, const gs_plan *plan, uint32_t pass);

#endif /* GS_PLAN_LINKS_H */
