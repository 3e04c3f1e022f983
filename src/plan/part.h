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

/* Rows that one rank alone has, though no pass makes them: it sends them to others, like those that it made. Those of
 * learned tables are so. */
typedef struct gs_part_rows {
    const uint32_t *first; /* [ranks + 1] the first interval of each rank */
    uint32_t arrays;       /* a bit for each gs_array_id: rows of the store that are so; of others each rank has all */
} gs_part_rows;

/* The part of rank `rank` of `whole`, whose devices are as many as there are ranks; each makes the same of it. `rows`
 * NULL: each reads the store's rows for itself, and there are no tables. To be freed with gs_plan_free(). GS_ENOMEM;
 * GS_EUNSUPPORTED: the plan moves what ranks do not send. */
gs_status gs_plan_take_part(gs_plan **out, const gs_plan *whole, const gs_program *program, uint32_t parts,
                            uint32_t interval_rows, const gs_part_rows *rows, uint32_t rank);

#endif /* GS_PLAN_PART_H */
