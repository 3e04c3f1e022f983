/* Makes "cuda" of the program that this is linked into the GPU of gpu_devices.h, before main(). */
#include "gpu_devices.h"

#include <stdio.h>
#include <stdlib.h>

#include "host_disk.h"
#include "host_gpu.h"
#include "host_streams.h"
#include "io/io_internal.h" /* gs_io__observer */

/* $GS_TEST_FAIL_LAUNCH: which launch of a kernel fails. */
static void __attribute__((constructor)) begin(void)
{
    const char *const fail = getenv("GS_TEST_FAIL_LAUNCH");
    if (fail != NULL)
        host_gpu_fail_launch((unsigned)strtoul(fail, NULL, 10));
    if (host_streams_checks())
        gs_io__observer = host_disk_request;
    choose_gpu();
}

/* $GS_HOST_GPU_COUNTS: a file that says in the end how many bytes were copied between GPUs and registered
 * memory, and other. */
static void __attribute__((destructor)) end(void)
{
    const char *const path = getenv("GS_HOST_GPU_COUNTS");
    FILE *const out = path == NULL ? NULL : fopen(path, "w");
    const host_gpu_counts c = host_gpu_take_counts();
    if (out == NULL)
        return;
    fprintf(out, "{\"in\": %llu, \"out\": %llu, \"other_in\": %llu, \"other_out\": %llu}\n",
            (unsigned long long)c.pinned_in, (unsigned long long)c.pinned_out,
            (unsigned long long)(c.bytes_in - c.pinned_in), (unsigned long long)(c.bytes_out - c.pinned_out));
    fclose(out);
}
