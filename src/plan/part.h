/* part.h - of a plan of several devices, the part that one rank runs, which has device number `rank` and a host of its
 * own.
 *
 * A rank runs the tasks of its device, and what moves to it and from it. A rank's host has the rows that its device
 * made; what the store has, each reads for itself. So a copy to a device from the host is one within the rank where the
 * bytes are of the store or its own, else a message from the rank that made them; bytes of both kinds make it several
 * tasks. What waits for a task of another rank waits for what of its own that one waited for: what a rank runs keeps
 * the order that it has in the whole. docs/design/ranks.md says why that is enough.
 */
#ifndef GS_PLAN_PART_H
#define GS_PLAN_PART_H

#include "plan/plan.h"

/* The part of rank `rank` of `whole`, whose devices are as many as there are ranks; each makes the same of it. To be
 * freed with gs_plan_free(). GS_ENOMEM; GS_EUNSUPPORTED: the plan moves what ranks do not send. */
gs_status gs_plan_take_part(gs_plan **out, const gs_plan *whole, const gs_program *program, uint32_t parts,
                            uint32_t interval_rows, uint32_t rank);

#endif /* GS_PLAN_PART_H */
