/* Sums over the devices of a run. */
#include "cuda/reduce.h"

#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/pass.h"
#include "cuda/streams.h"
#include "device/device.h"

static gs_status reduce_by_nccl(void *const *context, uint32_t devices, const gs_cu_memory *at, uint64_t count,
                                bool f64)
{
    const gs_cuda *const first = context[0];
    int r = first->d->group_start();
    for (uint32_t d = 0; d < devices && r == 0; d++) {
        const gs_cuda *const c = context[d];
        r = first->d->all_reduce((const void *)at[d], (void *)at[d], count, f64 ? GS_NCCL_F64 : GS_NCCL_F32,
                                 GS_NCCL_SUM, c->chain.comm, c->streams.compute);
    }
    const int ended = first->d->group_end();
    gs_cuda_left();
    return r == 0 && ended == 0
               ? GS_OK
               : gs_fail(GS_EDEVICE, "device cuda: NCCL could not add up what %u GPUs have (its error %d)", devices,
                         r != 0 ? r : ended);
}

bool gs_cuda_sums_alone(const void *context) { return ((const gs_cuda *)context)->chain.comm != NULL; }

static gs_status find_part(gs_cu_memory *at, const gs_cuda *c, const void *part)
{
    *at = gs_cuda_part(c, part);
    return *at != 0 ? GS_OK : gs_fail(GS_EINVAL, "device cuda: a sum over devices of what is no part of their passes");
}

gs_status gs_cuda_all_reduce(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    gs_cu_memory at[GS_DEVICE_COUNT_MOST];
    gs_status st = GS_OK;
    for (uint32_t d = 0; d < devices && st == GS_OK; d++)
        st = find_part(&at[d], context[d], part[d]);
    return st == GS_OK ? reduce_by_nccl(context, devices, at, count, f64) : st;
}

gs_status gs_cuda_fetch_part(void *context, void *part, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_cu_memory at;
    gs_status st = find_part(&at, c, part);

    if (st == GS_OK && (st = gs_cuda_enter(c)) == GS_OK &&
        (st = gs_cuda_copy_out(c, part, at, bytes, c->streams.compute, "copying gradients")) == GS_OK)
        st = gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "copying gradients");
    return st;
}

gs_status gs_cuda_put_part(void *context, const void *part, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_cu_memory at;
    gs_status st = find_part(&at, c, part);

    if (st == GS_OK && (st = gs_cuda_enter(c)) == GS_OK &&
        (st = gs_cuda_copy_in(c, at, part, bytes, c->streams.compute, "copying gradients")) == GS_OK)
        st = gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "copying gradients");
    return st;
}
