/* Opens the libraries of CUDA, once a process. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/machine.h"
#include "base/size.h"
#include "cuda/library.h"

const gs_cuda_driver *gs_cuda_test_driver;

static gs_cuda_driver table;
static void *libcuda, *libnvrtc, *libcublas, *libnccl;
static uint64_t held; /* bytes of the host's memory, by all that were opened; 0: none are */

typedef struct entry {
    const char *symbol;
    size_t offset;
} entry;

#define X(member, symbol, parameters) {symbol, offsetof(gs_cuda_driver, member)},
static const entry cuda_entries[] = {GS_CUDA_DRIVER_MAP(X)};
static const entry nvrtc_entries[] = {GS_CUDA_NVRTC_MAP(X)};
static const entry cublas_entries[] = {GS_CUDA_CUBLAS_MAP(X)};
static const entry nccl_entries[] = {GS_CUDA_NCCL_MAP(X)};
#undef X

static gs_status fill(void *library, const char *name, const entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *const f = dlsym(library, e[i].symbol);
        if (f == NULL)
            return gs_fail(GS_EUNSUPPORTED, "device cuda: %s has no %s: it is older than CUDA %d; use .device cpu",
                           name, e[i].symbol, GS_CUDA_OLDEST);
        memcpy((char *)&table + e[i].offset, &f, sizeof(f));
    }
    return GS_OK;
}

static bool nvrtc_version(void *library, int *major, int *minor)
{
    int (*version)(int *major, int *minor);
    void *const f = dlsym(library, "nvrtcVersion");
    memcpy(&version, &f, sizeof(f));
    return f != NULL && version(major, minor) == 0;
}

/* It has no version without a handle, which a driver that is too old does not give; but properties. */
static bool cublas_version(void *library, int *major, int *minor)
{
    int (*property)(int which, int *value);
    void *const f = dlsym(library, "cublasGetProperty");
    memcpy(&property, &f, sizeof(f));
    return f != NULL && property(GS_CUBLAS_MAJOR, major) == 0 && property(GS_CUBLAS_MINOR, minor) == 0;
}

/* `driver`: its release, or 0. NVRTC asks for its builtins by their bare name, and has no path of its own to them. */
static gs_status open_compiler(int driver)
{
    gs_status st;
    if (libnvrtc == NULL) {
        if ((st = gs_cuda_library_open(&libnvrtc, "libnvrtc", nvrtc_version, driver)) != GS_OK)
            return st;
        gs_cuda_library_open_beside(libnvrtc, "nvrtcVersion", "libnvrtc-builtins.so.*");
    }
    return fill(libnvrtc, "libnvrtc", nvrtc_entries, GS_ARRAY_LEN(nvrtc_entries));
}

gs_status gs_cuda_compiler_open(const gs_cuda_driver **out)
{
    const gs_status st = open_compiler(0);
    if (st == GS_OK)
        *out = &table;
    return st;
}

/* Which most machines do not have, and do not need. */
static void look_for_nccl(void)
{
    if (libnccl != NULL || (libnccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) == NULL)
        return;
    bool whole = true;
    for (size_t i = 0; i < GS_ARRAY_LEN(nccl_entries); i++) {
        void *const f = dlsym(libnccl, nccl_entries[i].symbol);
        whole = whole && f != NULL;
        memcpy((char *)&table + nccl_entries[i].offset, &f, sizeof(f));
    }
    if (!whole)
        table.comm_init = NULL;
}

/* The release that it is of, 0 where it does not say: what is wrong is said by the next call. */
static gs_status open_driver(int *release)
{
    gs_status st;

    if (libcuda == NULL && (libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
        return gs_fail(
            GS_EUNSUPPORTED,
            "device cuda: the driver (libcuda.so.1) was not found: there is no NVIDIA GPU here, or its driver "
            "is not installed; use .device cpu");
    if ((st = fill(libcuda, "libcuda.so.1", cuda_entries, GS_ARRAY_LEN(cuda_entries))) != GS_OK)
        return st;
    if (table.version(release) != 0 || *release < 0)
        *release = 0;
    if (*release > 0 && *release / 1000 < GS_CUDA_OLDEST)
        return gs_fail(GS_EUNSUPPORTED,
                       "device cuda: the driver is of CUDA %d.%d; at least %d.0 is needed: install a newer one, or use "
                       ".device cpu",
                       *release / 1000, *release % 1000 / 10, GS_CUDA_OLDEST);
    return GS_OK;
}

static gs_status open_all(void)
{
    int driver = 0;
    gs_status st;

    if ((st = open_driver(&driver)) != GS_OK || (st = open_compiler(driver)) != GS_OK)
        return st;
    if (libcublas == NULL && (st = gs_cuda_library_open(&libcublas, "libcublas", cublas_version, driver)) != GS_OK)
        return st;
    if ((st = fill(libcublas, "libcublas", cublas_entries, GS_ARRAY_LEN(cublas_entries))) != GS_OK)
        return st;
    look_for_nccl();
    return GS_OK;
}

gs_status gs_cuda_driver_open(const gs_cuda_driver **out)
{
    if (gs_cuda_test_driver != NULL) {
        *out = gs_cuda_test_driver;
        return GS_OK;
    }
    const uint64_t before = gs_process_resident_bytes();
    const gs_status st = open_all();
    if (st != GS_OK)
        return st;
    const uint64_t after = gs_process_resident_bytes();
    if (held == 0)
        held = GS_MAX(after - GS_MIN(after, before), 1);
    *out = &table;
    return GS_OK;
}

uint64_t gs_cuda_libraries_bytes(void) { return gs_cuda_test_driver == NULL ? held : 0; }
