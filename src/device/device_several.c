/* device_several.c - what is asked of devices that run one plan together. On host memory a copy is made when it is
 * asked for. */
#include <string.h>

#include "device/device.h"
#include "device/device_table.h"

void gs_device_bus_place(const gs_device *d, char place[GS_DEVICE_PLACE_BYTES])
{
    place[0] = '\0';
    if (d->ops->bus_place != NULL)
        d->ops->bus_place(d->context, place);
}

gs_device_reach gs_device_reaches(const gs_device *d, const gs_device *peer)
{
    return d->ops->reach != NULL ? d->ops->reach(d->context, peer->context) : (gs_device_reach){.reaches = false};
}

static void list_contexts(void **context, gs_device *const *device, uint32_t devices)
{
    for (uint32_t d = 0; d < devices; d++)
        context[d] = device[d]->context;
}

gs_status gs_device_join(gs_device *const *device, uint32_t devices, bool ring)
{
    void *context[GS_DEVICE_COUNT_MOST];
    if (devices > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "%u devices; at most %u can run together", devices, GS_DEVICE_COUNT_MOST);
    if (gs_device_unified(device[0]))
        return GS_OK;
    list_contexts(context, device, devices);
    return device[0]->ops->join(context, devices, ring);
}

gs_status gs_device_transfer(gs_device *d, gs_device_way way, const gs_device *peer, void *to, const void *from,
                             uint64_t bytes)
{
    if (bytes == 0)
        return GS_OK;
    if (!gs_device_unified(d))
        return d->ops->transfer(d->context, way, peer == NULL ? NULL : peer->context, to, from, bytes);
    memcpy(to, from, bytes);
    return GS_OK;
}

gs_status gs_device_mark_transfers(gs_device *d, gs_device_way way, uint64_t *number)
{
    *number = 0;
    return gs_device_unified(d) ? GS_OK : d->ops->mark_transfers(d->context, way, number);
}

gs_status gs_device_poll_transfers(gs_device *d, gs_device_way way, uint64_t number, bool wait, bool *done)
{
    *done = true;
    return gs_device_unified(d) ? GS_OK : d->ops->poll_transfers(d->context, way, number, wait, done);
}

gs_status gs_device_all_reduce(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    void *context[GS_DEVICE_COUNT_MOST];
    if (devices == 1)
        return GS_OK;
    if (!gs_device_unified(device[0])) {
        list_contexts(context, device, devices);
        return device[0]->ops->all_reduce(context, devices, part, count, f64);
    }
    gs_device__add_parts(part, devices, count, f64);
    for (uint32_t d = 1; d < devices; d++)
        memcpy(part[d], part[0], count * (f64 ? sizeof(double) : sizeof(float)));
    return GS_OK;
}
