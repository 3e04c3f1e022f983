/* Makes "cuda" of the program that this is linked into the GPU of gpu_devices.h, before main(). */
#include "gpu_devices.h"

#include <stdlib.h>

#include "host_disk.h"
#include "host_gpu.h"
#include "host_streams.h"
#include "io/io_internal.h" /* gs_io__observer */

/* $GS_TEST_FAIL_LAUNCH: which launch of a kernel fails. $GS_TEST_GPU_MEMORY: bytes that each GPU has. */
static void __attribute__((constructor)) begin(void)
{
    const char *const fail = getenv("GS_TEST_FAIL_LAUNCH"), *const memory = getenv("GS_TEST_GPU_MEMORY");
    if (fail != NULL)
        host_gpu_fail_launch((unsigned)strtoul(fail, NULL, 10));
    if (memory != NULL)
        host_gpu_set_memory(strtoull(memory, NULL, 10));
    if (host_streams_checks())
        gs_io__observer = host_disk_request;
    choose_gpu();
}
