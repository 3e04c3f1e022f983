/* A GPU opened, its kernels compiled, its ceilings, and how near the kernels come: bench_gpu WHAT [DEVICE [MORE]].
 *
 *   open      what the device is, and what is free of its memory
 *   compile   seconds until the fixed kernels and those of five programs can run: NVRTC's, or the cache's
 *   ceilings  of a table of MORE rows (233000):
 *               pinned  from pinned host memory to the device
 *               copy    device to device, bytes read and written
 *               gather  sums of random rows (32 a target) out of the table, bytes of rows read; beside the copy's
 *                       bytes. More than 1 says that rows came from the cache
 *               gemm    [65536, 256] by [256, 256], as --matmul says
 *   gather    sums of rows of the graph MORE, an edges.npy (bench_gather.h)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/size.h"
#include "bench_common.h"
#include "bench_gather.h"
#include "device/device.h"

static gs_device *open_device(const char *spec, gs_matmul matmul)
{
    gs_device *d = NULL;
    bench_need(gs_device_open_with(&d, &(gs_device_config){.spec = spec, .matmul = matmul}));
    return d;
}

static void say_device(gs_device *d, double seconds)
{
    char place[GS_DEVICE_PLACE_BYTES];
    uint64_t free_bytes;
    bench_need(gs_device_free_memory(d, &free_bytes));
    gs_device_bus_place(d, place);
    printf("%s at %s, %.1f GiB free; opened in %.2f s\n", gs_device_name(d), place,
           (double)free_bytes / (double)GS_GIB, seconds);
    fflush(stdout);
}

#define HOST_BYTES (256 * GS_MIB)
#define PIECE_BYTES (16 * GS_MIB)

/* Bytes a second, by the calls that a run makes. The first round warms. */
static double measure_transfer(gs_device *d)
{
    char *const host = gs_alloc_pages(HOST_BYTES);
    const gs_device_memory m = {.arena_bytes = HOST_BYTES, .host = {{host, host == NULL ? 0 : HOST_BYTES}}};
    void *arena = NULL;
    double best = 1e30;
    bench_need(host == NULL ? gs_fail(GS_ENOMEM, "out of memory for measuring copies") : GS_OK);
    bench_need(gs_device_take_memory(d, &m, &arena));
    bench_need(gs_device_join(&d, 1));
    for (int round = 0; round < 4; round++) {
        const double begin = gs_now();
        uint64_t number = 0;
        bool done = false;
        for (uint64_t at = 0; at < HOST_BYTES; at += PIECE_BYTES)
            bench_need(gs_device_transfer(d, GS_DEVICE_FROM_HOST, NULL, (char *)arena + at, host + at, PIECE_BYTES));
        bench_need(gs_device_mark_transfers(d, GS_DEVICE_FROM_HOST, &number));
        bench_need(gs_device_poll_transfers(d, GS_DEVICE_FROM_HOST, number, true, &done));
        best = GS_MIN(best, gs_now() - begin);
    }
    gs_device_quiet(d);
    gs_device_give_memory(d);
    gs_free_pages(host, HOST_BYTES);
    return (double)HOST_BYTES / best;
}

static double measure_copies(gs_device *d)
{
    double copy = 0;
    const double transfer = measure_transfer(d);
    bench_need(gs_device_measure_copy(d, &copy));
    printf("pinned to device        %10.1f GB/s\n", transfer / 1e9);
    printf("copy                    %10.1f GB/s\n", copy / 1e9);
    fflush(stdout);
    return copy;
}

static void ceilings(const char *spec, uint64_t rows)
{
    static const char *const precision[] = {"fp32", "tf32", "bf16"};
    static const uint32_t widths[] = {16, 64, 256, 602};
    for (size_t i = 0; i < GS_ARRAY_LEN(precision); i++) {
        gs_device *const d = open_device(spec, (gs_matmul)i);
        const double copy = i == 0 ? measure_copies(d) : 0;
        double rate = 0;
        for (size_t k = 0; i == 0 && k < GS_ARRAY_LEN(widths); k++) {
            bench_need(gs_device_measure_gather(d, rows, widths[k], &rate));
            printf("gather width %-4u       %10.1f GB/s   %5.2f of copy\n", widths[k], rate / 1e9, rate / copy);
        }
        bench_need(gs_device_measure_gemm(d, 65536, 256, 256, &rate));
        printf("gemm %-4s               %10.1f TFLOP/s\n", precision[i], rate / 1e12);
        fflush(stdout);
        gs_device_close(d);
    }
}

int main(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "", *const spec = argc > 2 ? argv[2] : "cuda";
    if (strcmp(what, "ceilings") == 0) {
        ceilings(spec, argc > 3 ? strtoull(argv[3], NULL, 10) : 233000);
        return 0;
    }
    if (strcmp(what, "open") != 0 && strcmp(what, "compile") != 0 && (strcmp(what, "gather") != 0 || argc < 4))
        bench_die("bench_gpu open|compile|ceilings|gather [DEVICE [ROWS|edges.npy]]");
    const double begin = gs_now();
    gs_device *const d = open_device(spec, GS_MATMUL_FP32);
    say_device(d, gs_now() - begin);
    if (strcmp(what, "compile") == 0) {
        bench_prepare_gathers(d);
        printf("kernels compiled after %.2f s\n", gs_now() - begin);
    }
    if (strcmp(what, "gather") == 0)
        bench_gather(d, argv[3], measure_copies(d));
    gs_device_close(d);
    return 0;
}
