/* In what order does a launch take its targets? By falling degree, where that keeps lanes busy.
 *
 * A warp goes on until the longest of its targets is done, and a block's registers are free when its longest warp is,
 * so targets of very unlike degrees side by side leave most of what a GPU holds idle (bench/kernels/idle_lanes.c counts
 * it). An order costs 4 bytes a target and is made once, on the host, when a chunk that is mirrored is first launched:
 * chunks that come by copies are waited for longer than they are computed on. A target still goes over its edges as
 * they are stored, and pieces of hubs are cut as without an order, so results are the same bits.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "cuda/cuda_internal.h"

#define DEGREES 4096u /* that are told apart; more edges are hubs' or few targets' */
#define BATCH 4u      /* edges a step, of most kernels */

/* ---- the order ---- */

static uint32_t class_of(const uint32_t *start, uint32_t t)
{
    return DEGREES - 1 - GS_MIN(start[t + 1] - start[t], DEGREES - 1);
}

void gs_cuda_sort_targets(uint32_t *order, const uint32_t *start, uint32_t targets)
{
    uint32_t at[DEGREES + 1] = {0};
    for (uint32_t t = 0; t < targets; t++)
        at[class_of(start, t) + 1]++;
    for (uint32_t k = 0; k < DEGREES; k++)
        at[k + 1] += at[k];
    for (uint32_t t = 0; t < targets; t++)
        order[at[class_of(start, t)]++] = t;
}

uint64_t gs_cuda_held_steps(const uint32_t *order, const uint32_t *start, uint32_t targets, uint32_t groups,
                            uint32_t piece_edges)
{
    uint64_t held = 0;
    for (uint32_t first = 0; first < targets; first += groups) {
        uint32_t most = 0;
        for (uint32_t i = first; i < GS_MIN(first + groups, targets); i++) {
            const uint32_t t = order == NULL ? i : order[i];
            const uint32_t edges = start[t + 1] - start[t];
            most = edges > piece_edges ? most : GS_MAX(most, edges);
        }
        held += (uint64_t)gs_div_up(most, BATCH) * groups;
    }
    return held;
}

/* An order makes reads of targets' own numbers and rows irregular, so it must save a quarter. */
static bool pays(const uint32_t *order, const uint32_t *start, uint32_t targets, uint32_t groups, uint32_t piece_edges)
{
    return 4 * gs_cuda_held_steps(order, start, targets, groups, piece_edges) <=
           3 * gs_cuda_held_steps(NULL, start, targets, groups, piece_edges);
}

/* ---- those that are kept ---- */

gs_status gs_cuda_take_orders(gs_cuda *c, const gs_device_orders *want, uint64_t offset)
{
    gs_cuda_orders *const o = &c->memory.orders;
    *o = (gs_cuda_orders){.offset = offset, .room = want->targets * sizeof(uint32_t), .most = want->most};
    if (want->chunks == 0 || want->targets == 0)
        return GS_OK;
    for (o->slots = 2; o->slots < 2 * (uint64_t)want->chunks && o->slots < 1u << 31; o->slots *= 2)
        ;
    o->slot = gs_calloc(o->slots, sizeof(*o->slot));
    o->sorted = gs_malloc_array(want->most, sizeof(*o->sorted));
    return o->slot != NULL && o->sorted != NULL
               ? GS_OK
               : gs_fail(GS_ENOMEM, "device cuda: out of memory for orders of targets");
}

void gs_cuda_give_orders(gs_cuda *c)
{
    gs_free(c->memory.orders.slot);
    gs_free(c->memory.orders.sorted);
    c->memory.orders = (gs_cuda_orders){.slots = 0};
}

/* Its slot, or the free one that it would have. */
static gs_cuda_order *slot_of(const gs_cuda_orders *o, const void *target)
{
    uint64_t i = ((uint64_t)(uintptr_t)target >> 4) * 0x9E3779B97F4A7C15ull >> 32;
    while (o->slot[i & (o->slots - 1)].target != NULL && o->slot[i & (o->slots - 1)].target != target)
        i++;
    return &o->slot[i & (o->slots - 1)];
}

static bool is_mirrored(const gs_cuda *c, const void *host)
{
    const gs_cuda_memory *const m = &c->memory;
    for (uint32_t i = 0; i < m->mirrors; i++)
        if ((uintptr_t)host - (uintptr_t)m->mirror[i].memory < m->mirror[i].bytes)
            return true;
    return false;
}

static gs_status make_order(gs_cuda *c, gs_cuda_order *made, const uint32_t *start, uint32_t targets, uint32_t groups,
                            uint32_t piece_edges)
{
    gs_cuda_orders *const o = &c->memory.orders;
    const uint64_t bytes = targets * sizeof(uint32_t);
    gs_status st;

    gs_cuda_sort_targets(o->sorted, start, targets);
    o->used += bytes;
    if (!pays(o->sorted, start, targets, groups, piece_edges))
        return GS_OK;
    const gs_cu_memory at = c->memory.base + o->offset + o->used - bytes;
    if ((st = gs_cuda_copy_in(c, at, o->sorted, bytes, c->in, "copying an order of targets")) == GS_OK)
        /* the next one is sorted in the same place */
        st = gs_cuda_check(c, c->d->stream_synchronize(c->in), "copying an order of targets");
    made->at = st == GS_OK ? at : 0;
    return st;
}

gs_status gs_cuda_order_of(gs_cuda *c, const gs_u32 **order, const void *target, const uint32_t *start,
                           uint32_t targets, uint32_t groups, uint32_t piece_edges)
{
    gs_cuda_orders *const o = &c->memory.orders;
    gs_status st = GS_OK;

    *order = NULL;
    if (o->slot == NULL || !is_mirrored(c, target))
        return GS_OK;
    gs_cuda_order *const found = slot_of(o, target);
    if (found->target == NULL) {
        if (targets > o->most || o->used + targets * sizeof(uint32_t) > o->room) /* of more chunks than were told of */
            return GS_OK;
        *found = (gs_cuda_order){.target = target, .targets = targets};
        st = make_order(c, found, start, targets, groups, piece_edges);
    }
    if (found->targets == targets) /* then it is right whatever the degrees have become: each target is taken once */
        *order = (const gs_u32 *)found->at;
    return st;
}
