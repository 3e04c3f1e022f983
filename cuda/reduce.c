/* Sums over the devices of a run. */
#include "cuda/reduce.h"

#include "cuda/context.h"
#include "cuda/cuda_device.h"
#include "cuda/pass.h"
#include "cuda/streams.h"
#include "device/device_table.h" /* gs_device__add_parts */

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

/* By way of the host, whose part is where each device's gradients come back to. */
static gs_status reduce_by_host(void *const *context, uint32_t devices, void *const *part, const gs_cu_memory *at,
                                uint64_t count, bool f64)
{
    const uint64_t bytes = count * (f64 ? sizeof(double) : sizeof(float));
    gs_status st = GS_OK;

    for (uint32_t d = 0; d < devices && st == GS_OK; d++) {
        gs_cuda *const c = context[d];
        if ((st = gs_cuda_enter(c)) == GS_OK &&
            (st = gs_cuda_copy_out(c, part[d], at[d], bytes, c->streams.compute, "copying gradients")) == GS_OK)
            st = gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "copying gradients");
    }
    if (st == GS_OK)
        gs_device__add_parts(part, devices, count, f64);
    for (uint32_t d = 0; d < devices && st == GS_OK; d++) {
        gs_cuda *const c = context[d];
        if ((st = gs_cuda_enter(c)) == GS_OK &&
            (st = gs_cuda_copy_in(c, at[d], part[0], bytes, c->streams.compute, "copying gradients")) == GS_OK)
            st = gs_cuda_check(c, c->d->stream_synchronize(c->streams.compute), "copying gradients");
    }
    return st;
}

gs_status gs_cuda_all_reduce(void *const *context, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    gs_cu_memory at[GS_DEVICE_COUNT_MOST];
    for (uint32_t d = 0; d < devices; d++)
        if ((at[d] = gs_cuda_part(context[d], part[d])) == 0)
            return gs_fail(GS_EINVAL, "device cuda: a sum over devices of what is no part of their passes");
    if (((const gs_cuda *)context[0])->chain.comm != NULL)
        return reduce_by_nccl(context, devices, at, count, f64);
    return reduce_by_host(context, devices, part, at, count, f64);
}
