/* all_reduce.c - parts that devices have made of the same sums become the sums. */
#include <string.h>

#include "device/device.h"

/* In the order of the devices, so that it is the same every time. */
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

gs_status gs_device_all_reduce(gs_device *const *device, uint32_t devices, void *const *part, uint64_t count, bool f64)
{
    for (uint32_t d = 0; d < devices; d++)
        if (!gs_device_unified(device[d]))
            return gs_fail(GS_EUNSUPPORTED, "device %s: sums of several devices with memory of their own are not there yet",
                           gs_device_name(device[d]));
    for (uint32_t d = 1; d < devices; d++) {
        if (f64)
            add_f64(part[0], part[d], count);
        else
            add_f32(part[0], part[d], count);
    }
    for (uint32_t d = 1; d < devices; d++)
        memcpy(part[d], part[0], count * (f64 ? sizeof(double) : sizeof(float)));
    return GS_OK;
}
