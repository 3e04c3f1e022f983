/* Adds up on host memory what several devices computed. Devices call this, so nothing here asks a device. */
#include "device/device_table.h"

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

void gs_device__add_parts(void *const *part, uint32_t devices, uint64_t count, bool f64)
{
    for (uint32_t d = 1; d < devices; d++) {
        if (f64)
            add_f64(part[0], part[d], count);
        else
            add_f32(part[0], part[d], count);
    }
}
