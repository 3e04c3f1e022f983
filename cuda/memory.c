/* The memory of a run: an arena on the device, and the host's memory that is copied from and to, pinned. */
#include "cuda/memory.h"

#include "base/size.h"
#include "cuda/chain.h"
#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/file_reads.h"
#include "cuda/streams.h"

static gs_status pin(gs_cuda *c, const gs_device_range *r)
{
    gs_cuda_memory *const m = &c->memory;
    bool pinned = false;
    if (r->bytes == 0)
        return GS_OK;
    const gs_status st = gs_cuda_pin(c, r->memory, r->bytes, GS_CU_HOST_PORTABLE, &pinned);
    if (pinned)
        m->pinned[m->registered++] = r->memory;
    return st;
}

void gs_cuda_give_memory(void *context)
{
    gs_cuda *const c = context;
    gs_cuda_memory *const m = &c->memory;
    gs_cuda_quiet(c);
    gs_cuda_close_reads(c);
    gs_cuda_leave(c);
    for (uint32_t i = 0; i < m->registered; i++)
        c->d->host_unregister(m->pinned[i]);
    if (m->arena != 0)
        c->d->memory_free(m->arena);
    *m = (gs_cuda_memory){.arena = 0};
    c->unpinned[0] = 0;
}

gs_status gs_cuda_take_memory(void *context, const gs_device_memory *want, void **arena)
{
    gs_cuda *const c = context;
    gs_cuda_memory *const m = &c->memory;
    gs_status st;

    gs_cuda_give_memory(c);
    const uint64_t bytes = GS_MAX(want->arena_bytes, 1) + (want->aligned ? GS_BLOCK_BYTES : 0);
    st = gs_cuda_check(c, c->d->memory_alloc(&m->arena, bytes), "taking .device_memory");
    for (size_t i = 0; i < GS_ARRAY_LEN(want->host) && st == GS_OK; i++)
        st = pin(c, &want->host[i]);
    if (st == GS_OK)
        *arena = (void *)(want->aligned ? gs_align_up(m->arena, GS_BLOCK_BYTES) : m->arena);
    else
        gs_cuda_give_memory(c);
    return st;
}
