#include "cuda/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda/folders.h"

#define PLAIN 0 /* release of a name without one */

typedef struct search {
    const char *stem;
    gs_cuda_library_version *version;
    int most;       /* release that the driver takes */
    glob_t folders; /* where the loader does not look */
    void *found;
    char newer[PATH_MAX]; /* the first that is too new, "" for none, and what it is */
    int newer_major, newer_minor;
} search;

/* True where it fits. */
static bool try_library(search *s, const char *folder, int release)
{
    char name[sizeof(s->newer)];
    int major = release, minor = 0;
    const int n = release == PLAIN ? snprintf(name, sizeof(name), "%s%s.so", folder, s->stem)
                                   : snprintf(name, sizeof(name), "%s%s.so.%d", folder, s->stem, release);
    void *const library = n < (int)sizeof(name) ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL)
        return false;
    (void)s->version(library, &major, &minor);
    if (major <= s->most) {
        s->found = library;
        return true;
    }
    /* It stays open: NVRTC does not give back what it took when it is closed. */
    if (s->newer[0] == '\0') {
        strcpy(s->newer, name);
        s->newer_major = major;
        s->newer_minor = minor;
    }
    return false;
}

/* STEM.so.RELEASE: where the loader looks, then in the other folders. */
static bool try_release(search *s, int release)
{
    bool found = try_library(s, "", release);
    for (size_t f = 0; f < s->folders.gl_pathc && !found; f++)
        found = try_library(s, s->folders.gl_pathv[f], release);
    return found;
}

/* What the driver takes, newest first, then one whose name says no release; the newer ones to be told of. */
static void look_for(search *s, int first)
{
    gs_cuda_folders(&s->folders);
    for (int release = first; release >= GS_CUDA_OLDEST && s->found == NULL; release--)
        try_release(s, release);
    if (s->found == NULL)
        try_release(s, PLAIN);
    for (int release = GS_CUDA_NEWEST; release > first && s->found == NULL; release--)
        try_release(s, release);
    globfree(&s->folders);
}

gs_status gs_cuda_library_open(void **out, const char *stem, gs_cuda_library_version *version, int driver)
{
    search s = {.stem = stem, .version = version, .most = driver > 0 ? driver / 1000 : INT_MAX};

    look_for(&s, driver > 0 ? s.most : GS_CUDA_NEWEST);
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
                   "device cuda: %s was not found: install the CUDA toolkit's runtime libraries, or those of pip "
                   "(nvidia-cuda-nvrtc, nvidia-cublas); use .device cpu",
                   stem);
}

void gs_cuda_library_open_beside(void *library, const char *symbol, const char *pattern)
{
    glob_t found;
    gs_cuda_beside(&found, dlsym(library, symbol), pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
}
