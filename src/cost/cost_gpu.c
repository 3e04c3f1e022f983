/* cost_gpu.c - seconds of a piece of work on a GPU that nobody has measured, from its attributes. */
#include <string.h>

#include "cost/cost.h"

/* What of the attributes a run sees, guessed: of memory's rate for rows that are gathered, and for rows read one after
 * the other; of lanes that have work; of products of tall and thin matrices; of pinned copies, whose packets have
 * headers. */
#define GATHERED 0.75
#define STREAMED 0.85
#define BUSY_LANES 0.4
#define PRODUCTS 0.6
#define COPIES 0.85
/* Threads that compute exponentials, of those that multiply: 16 of 64 or 128 a processor. */
#define SPECIAL 6.0
/* Asking for a kernel takes some 3 us; a sum has up to two, a vertex program some more. */
#define KERNEL 3e-6
#define COPY_SECONDS 3e-6

void gs_cost_gpu_defaults(gs_cost *out, const gs_gpu_speed *g)
{
    const double gathered = sizeof(float) / (GATHERED * g->memory_bps),
                 streamed = sizeof(float) / (STREAMED * g->memory_bps), lane = 1 / (BUSY_LANES * g->lane_ops),
                 product = 1 / (PRODUCTS * g->product_flops), link = 1 / (COPIES * g->host_bps),
                 between = g->linked_bps > 0 ? 1 / (COPIES * g->linked_bps) : link;
    const double seconds[GS_WORK_LINKS + GS_LINK_WAYS][GS_WORK_AMOUNTS] = {
        [GS_WORK_MEMORY] = {KERNEL, streamed},
        /* an edge: its index; a target: its sums, read and written, where each has but a few edges of a chunk */
        [GS_WORK_SUM] = {2 * KERNEL, streamed, gathered, 0, 2 * streamed},
        [GS_WORK_EDGES] = {2 * KERNEL, streamed, lane, gathered, SPECIAL * lane, 1.5 * product},
        [GS_WORK_VERTEX] = {3 * KERNEL, lane, product, product, streamed, SPECIAL * lane},
        [GS_WORK_TO_DEVICE] = {COPY_SECONDS, link},
        [GS_WORK_FROM_DEVICE] = {COPY_SECONDS, link},
        [GS_WORK_BETWEEN] = {COPY_SECONDS, between},
    };
    for (int k = 0; k < GS_WORK_LINKS + GS_LINK_WAYS; k++)
        if (k != GS_WORK_CHECK && k != GS_WORK_SUBMIT && k != GS_WORK_FROM_DISK) /* the host's, the disk's */
            memcpy(out->seconds[k], seconds[k], sizeof(seconds[k]));
}
