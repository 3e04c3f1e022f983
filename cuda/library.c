#include "cuda/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* STEM.so.13, .12, .11, STEM.so: each where the loader looks, then where toolkits put themselves. */
static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"};
#define PLAIN 0 /* release of a name without one */

typedef struct search {
    const char *stem;
    gs_cuda_library_version *version;
    int most;       /* release that the driver takes */
    void *found;
    char newer[96]; /* the first that is too new, "" for none, and what it is */
    int newer_major, newer_minor;
} search;

/* True where it fits. */
static bool try_library(search *s, const char *folder, int release)
{
    char name[sizeof(s->newer)];
    int major = release, minor = 0;

    if (release == PLAIN)
        snprintf(name, sizeof(name), "%s%s.so", folder, s->stem);
    else
        snprintf(name, sizeof(name), "%s%s.so.%d", folder, s->stem, release);
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
    (void)s->version(library, &major, &minor);
    if (major <= s->most) {
        s->found = library;
        return true;
    }
    /* It stays open: NVRTC does not give back what it took when it is closed. */
    if (s->newer[0] == '\0') {
        memcpy(s->newer, name, sizeof(name));
        s->newer_major = major;
        s->newer_minor = minor;
    }
    return false;
}

static bool try_release(search *s, int release)
{
    for (size_t f = 0; f < GS_ARRAY_LEN(folders); f++)
        if (try_library(s, folders[f], release))
            return true;
    return false;
}

gs_status gs_cuda_library_open(void **out, const char *stem, gs_cuda_library_version *version, int driver)
{
    search s = {.stem = stem, .version = version, .most = driver > 0 ? driver / 1000 : INT_MAX};
    const int first = driver > 0 ? s.most : GS_CUDA_NEWEST;

    for (int release = first; release >= GS_CUDA_OLDEST && s.found == NULL; release--)
        try_release(&s, release);
    if (s.found == NULL)
        try_release(&s, PLAIN);
    for (int release = GS_CUDA_NEWEST; release > first && s.found == NULL; release--) /* to be told of */
        try_release(&s, release);
    if (s.found != NULL) {
        *out = s.found;
        return GS_OK;
    }
    if (s.newer[0] != '\0')
        return gs_fail(GS_EUNSUPPORTED,
                       "device cuda: %s is of CUDA %d.%d, and the driver here takes CUDA %d.%d at most: install a "
                       "newer driver, or %s of "
                       "CUDA %d (with its folder in LD_LIBRARY_PATH); or use .device cpu",
                       s.newer, s.newer_major, s.newer_minor, driver / 1000, driver % 1000 / 10, stem, s.most);
    return gs_fail(GS_EUNSUPPORTED,
                   "device cuda: %s was not found: install the CUDA toolkit's runtime libraries; use .device cpu",
                   stem);
}
