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
    if (d->ops != peer->ops || d->ops->reach == NULL)
        return (gs_device_reach){.reaches = false};
    return d->ops->reach(d->context, peer->context);
}

gs_status gs_device_open_peer(gs_device *d, const gs_device *peer, bool *open)
{
    *open = d == peer;
    if (d == peer || d->ops != peer->ops || d->ops->open_peer == NULL)
        return GS_OK;
    return d->ops->open_peer(d->context, peer->context, open);
}

bool gs_devices_have_memory(gs_device *const *device, uint32_t devices)
{
    bool any = false;
    for (uint32_t d = 0; d < devices; d++)
        any = any || !gs_device_unified(device[d]);
    return any;
}

/* Of those that have memory of their own; answers how many they are, and *one is one of them. */
static uint32_t list_contexts(void **context, const gs_device **one, gs_device *const *device, uint32_t devices)
{
    uint32_t own = 0;
    for (uint32_t d = 0; d < devices; d++)
        if (!gs_device_unified(device[d])) {
            *one = device[d];
            context[own++] = device[d]->context;
        }
    return own;
}

gs_status gs_device_join(gs_device *const *device, uint32_t devices, bool ring)
{
    void *context[GS_DEVICE_COUNT_MOST];
    const gs_device *one = NULL;
    if (devices > GS_DEVICE_COUNT_MOST)
        return gs_fail(GS_EINVAL, "%u devices; at most %u can run together", devices, GS_DEVICE_COUNT_MOST);
    const uint32_t own = list_contexts(context, &one, device, devices);
    return own == 0 ? GS_OK : one->ops->join(context, own, ring);
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

/* part[0] += part[1] + ..., in the order of the devices, so that it is the same every time. */
static void add_f32(float *sum, const float *part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

static void add_f64(double *sum, const double *part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

static void add_parts(void *const *part, uint32_t devices, uint64_t count, bool f64)
{
    for (uint32_t d = 1; d < devices; d++) {
        if (f64)
            add_f64(part[0], part[d], count);
        else
            add_f32(part[0], part[d], count);
    }
}

/* On the host, where those of devices with memory of their own come and go. */
static gs_status reduce_by_host(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    const uint64_t bytes = count * (f64 ? sizeof(double) : sizeof(float));
    gs_status st = GS_OK;

    for (uint32_t d = 0; d < devices && st == GS_OK; d++)
        if (!gs_device_unified(device[d]))
            st = device[d]->ops->fetch_part(device[d]->context, part[d], bytes);
    if (st == GS_OK)
        add_parts(part, devices, count, f64);
    for (uint32_t d = 0; d < devices && st == GS_OK; d++) {
        if (d > 0)
            memcpy(part[d], part[0], bytes);
        if (!gs_device_unified(device[d]))
            st = device[d]->ops->put_part(device[d]->context, part[d], bytes);
    }
    return st;
}

gs_status gs_device_all_reduce(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    void *context[GS_DEVICE_COUNT_MOST];
    const gs_device *one = NULL;
    if (devices == 1)
        return GS_OK;
    if (list_contexts(context, &one, device, devices) < devices || !one->ops->sums_alone(one->context))
        return reduce_by_host(device, devices, part, count, f64);
    return one->ops->all_reduce(context, devices, part, count, f64);
}
