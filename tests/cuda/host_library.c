#include "host_library.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host_memory.h"
#include "host_streams.h"

enum { PEER_UNSUPPORTED = 217, LAUNCH_FAILED = 719, NOT_PERMITTED = 800, UNKNOWN = 999, BLAS_EXECUTION_FAILED = 13 };

static struct {
    const gs_cuda_driver *table;
    const char *kind;         /* of the fault; "" for none */
    unsigned long n, calls, launches, allocations, peers, asked;
    int at;                   /* the GPU that it is about; -1: any */
    gs_cu_result sticky;      /* what every call answers from now on */
} library;

static void open_library(void)
{
    const char *const folder = getenv("GS_HOST_GPU");
    static char kind[16], path[256];
    const char *const fault = getenv("GS_HOST_GPU_FAULT");

    library.at = -1;
    host_gpu_have_nccl(true);
    if (folder == NULL)
        snprintf(path, sizeof(path), "/tmp/gs_host_gpu.%ld", (long)getuid());
    if (fault != NULL)
        sscanf(fault, "%15[a-z]:%lu@%d", kind, &library.n, &library.at);
    library.kind = kind;
    library.table = host_gpu_driver(folder != NULL ? folder : path);
}

const gs_cuda_driver *host_gpu_table(void)
{
    if (library.table == NULL)
        open_library();
    return library.table;
}

static int fault_is(const char *kind) { return strcmp(library.kind, kind) == 0; }

static void write_log(void)
{
    const char *const path = getenv("GS_HOST_GPU_LOG");
    FILE *const out = path == NULL ? NULL : fopen(path, "a");
    const host_gpu_counts c = host_gpu_take_counts();
    if (out == NULL)
        return;
    fprintf(out,
            "launches %llu allocations %llu bytes_in %llu bytes_out %llu bytes_between %llu sums %llu products fp32 "
            "%llu tf32 %llu bf16 %llu\n",
            (unsigned long long)c.launches, (unsigned long long)c.allocations, (unsigned long long)c.bytes_in,
            (unsigned long long)c.bytes_out, (unsigned long long)c.bytes_between, (unsigned long long)c.sums,
            (unsigned long long)c.products[0], (unsigned long long)c.products[1], (unsigned long long)c.products[2]);
    fclose(out);
}

static int concerned(void) { return library.at < 0 || host_current_device() == library.at; }

static gs_cu_result answer(enum host_part part)
{
    return library.sticky == 0 || !concerned()      ? 0
           : part == HOST_BLAS || part == HOST_NCCL ? BLAS_EXECUTION_FAILED
                                                    : library.sticky;
}

/* Events and handles can be given back whatever has become of the GPU. */
static int always_works(enum host_part part, const char *symbol)
{
    return part == HOST_COMPILER || strncmp(symbol, "cuGetError", 10) == 0 ||
           strncmp(symbol, "cuEventDestroy", 14) == 0 || strncmp(symbol, "cublasDestroy", 13) == 0;
}

static void lose(gs_cu_result r)
{
    library.sticky = r;
    host_streams_lose(library.at);
}

static void break_down(void)
{
    if (fault_is("crash"))
        raise(SIGSEGV);
    if (fault_is("hang")) {
        signal(SIGTERM, SIG_IGN); /* a driver that waits for its GPU hears none */
        for (;;)
            pause();
    }
    lose(UNKNOWN);
}

static gs_cu_result before_call(enum host_part part, const char *symbol)
{
    (void)host_gpu_table();
    /* it asks nothing of the GPU before */
    if (always_works(part, symbol) || (library.at >= 0 && strcmp(symbol, "cuCtxSetCurrent") == 0))
        return 0;
    if (strcmp(symbol, "cuDevicePrimaryCtxRelease_v2") == 0)
        write_log();
    if (fault_is("none") && strcmp(symbol, "cuInit") == 0)
        return GS_CU_NO_DEVICE;
    if ((fault_is("lost") || fault_is("hang") || fault_is("crash")) && concerned() && ++library.calls == library.n)
        break_down();
    if (fault_is("asked") && concerned() && strcmp(symbol, "cuMemGetInfo_v2") == 0 && ++library.asked == library.n)
        lose(UNKNOWN);
    const gs_cu_result before = answer(part);
    if (fault_is("kernel") && concerned() && strcmp(symbol, "cuLaunchKernel") == 0 && ++library.launches == library.n)
        lose(LAUNCH_FAILED); /* seen by what comes after */
    if (before == 0 && fault_is("peer") && strcmp(symbol, "cuMemcpyPeerAsync") == 0 && ++library.peers == library.n)
        return PEER_UNSUPPORTED;
    if (before == 0 && fault_is("pin") && strcmp(symbol, "cuMemHostRegister_v2") == 0)
        return library.n > 0 ? (gs_cu_result)library.n : NOT_PERMITTED;
    if (before == 0 && fault_is("memory") && concerned() && strcmp(symbol, "cuMemAlloc_v2") == 0 &&
        ++library.allocations == library.n)
        return GS_CU_OUT_OF_MEMORY;
    return before;
}

gs_cu_result host_gpu_before(enum host_part part, const char *symbol)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    const gs_cu_result r = before_call(part, symbol);
    pthread_mutex_unlock(&lock);
    return r;
}
