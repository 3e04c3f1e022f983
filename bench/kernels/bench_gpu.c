/* Ceilings of a GPU and how near the kernels come: bench_gpu [DEVICE [TABLE_ROWS | GRAPH/edges.npy]]. With a graph: its
 * sums of rows alone (bench_gather.h).
 *
 *   pinned  from pinned host memory to the device
 *   copy    device to device, bytes read and written
 *   gather  sums of random rows (32 a target) out of a table of TABLE_ROWS rows, bytes of rows read; beside the copy's
 *           bytes. More than 1 says that rows came from the cache
 *   gemm    [65536, 256] by [256, 256], as --matmul says
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "bench_common.h"
#include "bench_gather.h"
#include "device/device.h"

static void gathers(gs_device *d, uint64_t rows, double copy)
{
    static const uint32_t widths[] = {16, 64, 256, 602};
    for (size_t i = 0; i < GS_ARRAY_LEN(widths); i++) {
        double bps = 0;
        bench_need(gs_device_measure_gather(d, rows, widths[i], &bps));
        printf("gather width %-4u       %10.1f GB/s   %5.2f of copy\n", widths[i], bps / 1e9, bps / copy);
    }
}

int main(int argc, char **argv)
{
    static const char *const precision[] = {"fp32", "tf32", "bf16"};
    const char *const spec = argc > 1 ? argv[1] : "cuda";
    if (argc > 2 && strchr(argv[2], '/') != NULL) {
        gs_device *d = NULL;
        double copy = 0, transfer = 0;
        bench_need(gs_device_open(&d, spec, 0));
        bench_need(gs_device_measure_copy(d, &copy));
        bench_need(gs_device_measure_transfer(d, &transfer));
        printf("pinned to device        %10.1f GB/s\n", transfer / 1e9);
        bench_gather(d, argv[2], copy);
        gs_device_close(d);
        return 0;
    }
    const uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 233000;
    for (size_t i = 0; i < GS_ARRAY_LEN(precision); i++) {
        gs_device *d = NULL;
        double copy = 0, flops = 0, transfer = 0;
        bench_need(gs_device_open_with(&d, &(gs_device_config){.spec = spec, .matmul = precision[i]}));
        if (i == 0) {
            printf("%s\n", gs_device_name(d));
            bench_need(gs_device_measure_copy(d, &copy));
            bench_need(gs_device_measure_transfer(d, &transfer));
            printf("pinned to device        %10.1f GB/s\n", transfer / 1e9);
            printf("copy                    %10.1f GB/s\n", copy / 1e9);
            gathers(d, rows, copy);
        }
        bench_need(gs_device_measure_gemm(d, 65536, 256, 256, &flops));
        printf("gemm %-4s               %10.1f TFLOP/s\n", precision[i], flops / 1e12);
        gs_device_close(d);
    }
    return 0;
}
