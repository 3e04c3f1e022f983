/* Opens cuFile's library and driver, once a process. */
#include "cuda/file_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/size.h"

#define LIBRARY "libcufile.so.0"

const gs_cufile *gs_cuda_test_files;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gs_cufile table;
static void *library;
static bool started;

typedef struct entry {
    const char *symbol;
    size_t offset;
} entry;

#define X(type, member, symbol, parameters) {symbol, offsetof(gs_cufile, member)},
static const entry entries[] = {GS_CUFILE_MAP(X)};
static const entry newer[] = {GS_CUFILE_NEWER_MAP(X)};
#undef X

const char *gs_cufile_text(int error)
{
    switch (error) {
    case GS_CUFILE_DRIVER_NOT_INITIALIZED:
        return "the driver nvidia-fs is not loaded";
    case GS_CUFILE_PLATFORM_NOT_SUPPORTED:
        return "it does not support this machine";
    case GS_CUFILE_IO_NOT_SUPPORTED:
        return "it does not support the file's file system";
    case GS_CUFILE_DEVICE_NOT_SUPPORTED:
        return "it does not support this GPU";
    case GS_CUFILE_CUDA_ERROR:
        return "a call of CUDA's driver failed";
    case GS_CUFILE_PERMISSION_DENIED:
        return "permission denied";
    case GS_CUFILE_IO_DISABLED:
        return "its configuration turns it off for this file";
    default:
        return "see its log, cufile.log";
    }
}

static bool fill(const entry *e, size_t n)
{
    bool whole = true;
    for (size_t i = 0; i < n; i++) {
        void *const f = dlsym(library, e[i].symbol);
        whole = whole && f != NULL;
        memcpy((char *)&table + e[i].offset, &f, sizeof(f));
    }
    return whole;
}

static gs_status open_library(const gs_cufile **out)
{
    *out = gs_cuda_test_files;
    if (*out != NULL)
        return GS_OK;
    if (library == NULL && (library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)) == NULL)
        return gs_fail(GS_EUNSUPPORTED, "cuFile's library (" LIBRARY ") was not found: GPUDirect Storage is not "
                       "installed here");
    if (!fill(entries, GS_ARRAY_LEN(entries)))
        return gs_fail(GS_EUNSUPPORTED, LIBRARY " has no batches of requests: it is older than CUDA 12");
    (void)fill(newer, GS_ARRAY_LEN(newer));
    *out = &table;
    return GS_OK;
}

static gs_status open_driver(const gs_cufile *f)
{
    if (f->set_bool != NULL) /* what it answers where it cannot is not asked: it then is slower, and right */
        (void)f->set_bool(GS_CUFILE_ALLOW_COMPAT_MODE, false);
    const gs_cufile_error r = f->driver_open();
    return r.error == 0 ? GS_OK : gs_fail(GS_EUNSUPPORTED, "cuFile does not start: %s (its error %d)",
                                          gs_cufile_text(r.error), r.error);
}

gs_status gs_cufile_open(const gs_cufile **out)
{
    pthread_mutex_lock(&lock);
    gs_status st = open_library(out);
    if (st == GS_OK && !started)
        st = open_driver(*out);
    started = started || st == GS_OK;
    pthread_mutex_unlock(&lock);
    return st;
}
