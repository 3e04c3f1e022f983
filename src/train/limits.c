#include "train/limits.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "device/device.h" /* gs_device_measure_* */

/* Tall and thin, as a tile of vertices times a layer's weights is. */
static const uint32_t gemm_shape[GS_LIMITS_GEMMS][3] = {{8192, 256, 64}, {8192, 64, 256}, {8192, 128, 128}};
static const uint32_t gather_width[GS_LIMITS_GATHERS] = {16, 64, 256};
#define GATHER_TABLE_BYTES (64 * GS_MIB) /* beyond any cache that a core has to itself */

gs_status gs_limits_measure_device(gs_limits *out, unsigned threads)
{
    gs_limits l = *out;
    gs_device *d = NULL;
    gs_status st;

    if ((st = gs_device_open(&d, "cpu", threads)) != GS_OK)
        return st;
    snprintf(l.device_name, sizeof(l.device_name), "%s", gs_device_name(d));
    st = gs_device_measure_copy(d, &l.copy_bps);
    for (uint32_t i = 0; i < GS_LIMITS_GEMMS && st == GS_OK; i++) {
        const uint32_t *const s = gemm_shape[i];
        l.gemm[i].rows = s[0];
        l.gemm[i].in = s[1];
        l.gemm[i].out = s[2];
        st = gs_device_measure_gemm(d, s[0], s[1], s[2], &l.gemm[i].flops);
    }
    for (uint32_t i = 0; i < GS_LIMITS_GATHERS && st == GS_OK; i++) {
        const uint32_t width = gather_width[i];
        l.gather[i].width = width;
        st = gs_device_measure_gather(d, GATHER_TABLE_BYTES / (width * sizeof(float)), width, &l.gather[i].bps);
    }
    gs_device_close(d);
    if (st == GS_OK)
        *out = l;
    return st;
}

gs_status gs_limits_measure(gs_limits *out, const char *dir, unsigned threads)
{
    gs_limits l;
    gs_status st;

    memset(&l, 0, sizeof(l));
    if ((st = gs_limits_measure_disk(&l, dir, GS_LIMITS_DISK_BYTES)) == GS_OK &&
        (st = gs_limits_measure_device(&l, threads)) == GS_OK)
        *out = l;
    return st;
}
