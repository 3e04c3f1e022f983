/* gpu_host.c - the matrices on the GPU that is none (tests/cuda/host_gpu.h). */
#include "cuda/gpu_devices.h"
#include "cuda/host_disk.h"
#include "cuda/host_gpu.h"
#include "cuda/host_streams.h"
#include "io/io_internal.h" /* gs_io__observer */
#include "matrix.h"

static void __attribute__((constructor)) begin(void)
{
    if (host_streams_checks())
        gs_io__observer = host_disk_request;
    choose_gpu();
}

void gpu_have_nccl(bool have)
{
    host_gpu_have_nccl(have);
    choose_gpu();
}
