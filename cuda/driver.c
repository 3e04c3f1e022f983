/* Opens the libraries of CUDA, once a process. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

#define OLDEST 11
#define NEWEST 13 /* releases whose libraries are looked for by their own name */

const gs_cuda_driver *gs_cuda_test_driver;

static gs_cuda_driver table;
static void *libcuda, *libnvrtc, *libcublas, *libnccl;

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

/* STEM.so.13, .12, .11, STEM.so; where the loader looks, then where toolkits put themselves. */
static void *open_library(const char *stem)
{
    static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
    char name[96];
    for (size_t f = 0; f < GS_ARRAY_LEN(folders); f++)
        for (int release = NEWEST; release >= OLDEST - 1; release--) {
            void *library;
            if (release >= OLDEST)
                snprintf(name, sizeof(name), "%s%s.so.%d", folders[f], stem, release);
            else
                snprintf(name, sizeof(name), "%s%s.so", folders[f], stem);
            if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) != NULL)
                return library;
        }
    return NULL;
}

static gs_status fill(void *library, const char *name, const entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *const f = dlsym(library, e[i].symbol);
        if (f == NULL)
            return gs_fail(GS_EUNSUPPORTED, "device cuda: %s has no %s: it is older than CUDA %d; use --device cpu", name,
                           e[i].symbol, OLDEST);
        memcpy((char *)&table + e[i].offset, &f, sizeof(f));
    }
    return GS_OK;
}

static gs_status missing(const char *what, const char *why)
{
    return gs_fail(GS_EUNSUPPORTED, "device cuda: %s was not found: %s; use --device cpu", what, why);
}

static gs_status open_compiler(void)
{
    if (libnvrtc == NULL && (libnvrtc = open_library("libnvrtc")) == NULL)
        return missing("libnvrtc", "install the CUDA toolkit's runtime libraries");
    return fill(libnvrtc, "libnvrtc", nvrtc_entries, GS_ARRAY_LEN(nvrtc_entries));
}

gs_status gs_cuda_compiler_open(const gs_cuda_driver **out)
{
    const gs_status st = open_compiler();
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

gs_status gs_cuda_driver_open(const gs_cuda_driver **out)
{
    gs_status st;

    if (gs_cuda_test_driver != NULL) {
        *out = gs_cuda_test_driver;
        return GS_OK;
    }
    if (libcuda == NULL && (libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
        return missing("the driver (libcuda.so.1)", "there is no NVIDIA GPU here, or its driver is not installed");
    if ((st = fill(libcuda, "libcuda.so.1", cuda_entries, GS_ARRAY_LEN(cuda_entries))) != GS_OK ||
        (st = open_compiler()) != GS_OK)
        return st;
    if (libcublas == NULL && (libcublas = open_library("libcublas")) == NULL)
        return missing("libcublas", "install the CUDA toolkit's runtime libraries");
    if ((st = fill(libcublas, "libcublas", cublas_entries, GS_ARRAY_LEN(cublas_entries))) != GS_OK)
        return st;
    look_for_nccl();
    *out = &table;
    return GS_OK;
}
