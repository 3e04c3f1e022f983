/* CUDA's libraries: where they are, which of several releases, and their functions, opened once a process. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/size.h"
#include "base/status.h"

#define GS_CUDA_OLDEST 11 /* release, of libraries and of the driver */
#define GS_CUDA_NEWEST 13 /* that is looked for by its own name, and whatever the driver's is */

/* Asks an open library for its version; false: it does not say. */
typedef bool gs_cuda_library_version(void *library, int *major, int *minor);

/* ---- folders ----
 *
 * Where may CUDA's libraries be, where the loader does not look?
 */

/* Below a folder for packages: of CUDA 13 one for all libraries, before that one for each. */
#define WHEELS "nvidia/*/lib"

static void add(glob_t *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(glob_t *to, const char *format, ...)
{
    char pattern[PATH_MAX];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(pattern, sizeof(pattern), format, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof(pattern))
        (void)glob(pattern, GLOB_MARK | (to->gl_pathv != NULL ? GLOB_APPEND : 0), NULL, to);
}

/* Of what is installed below `prefix`: bin, lib. */
static void add_python(glob_t *to, const char *prefix)
{
    add(to, "%s/lib/python3*/site-packages/" WHEELS, prefix);
    add(to, "%s/lib/python3*/dist-packages/" WHEELS, prefix);
}

/* Folder of the file that has `symbol`, with a slash at its end. */
static bool folder_of(char folder[PATH_MAX], const void *symbol)
{
    Dl_info info;
    if (symbol == NULL || dladdr(symbol, &info) == 0 || info.dli_fname == NULL)
        return false;
    const char *const slash = strrchr(info.dli_fname, '/');
    return slash != NULL &&
           snprintf(folder, PATH_MAX, "%.*s", (int)(slash + 1 - info.dli_fname), info.dli_fname) < PATH_MAX;
}

/* Where this code is a part of a package: those beside it. */
static void add_own_packages(glob_t *to)
{
    static const char here;
    char folder[PATH_MAX];
    const char *packages = folder_of(folder, &here) ? strstr(folder, "-packages/") : NULL;
    if (packages != NULL)
        add(to, "%.*s" WHEELS, (int)(packages + strlen("-packages/") - folder), folder);
}

/* Of the first python3 in $PATH, and of the one that it is a link to: an environment's packages and the system's. */
static void add_path_python(glob_t *to)
{
    const char *at = getenv("PATH");
    char program[PATH_MAX], real[PATH_MAX];

    while (at != NULL && *at != '\0') {
        const int n = (int)strcspn(at, ":");
        const bool fits = snprintf(program, sizeof(program), "%.*s/python3", n, at) < PATH_MAX;
        if (n > 0 && fits && access(program, X_OK) == 0) {
            const bool known = realpath(program, real) != NULL;
            *strrchr(program, '/') = '\0';
            add(to, "%s/../lib/python3*/site-packages/" WHEELS, program);
            if (known) {
                *strrchr(real, '/') = '\0';
                add(to, "%s/../lib/python3*/site-packages/" WHEELS, real);
            }
            return;
        }
        at += (size_t)n + (at[n] == ':');
    }
}

/* Folders that are there, each with a slash at its end: toolkits', then those of Python's packages as pip installs them
 * (nvidia/cu13/lib, nvidia/cublas/lib): beside this program's own package, of the environments that are active, of the
 * python3 in $PATH, the user's and the system's. The caller gives them back with globfree(). */
static void find_folders(glob_t *out)
{
    static const char *const environment[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    const char *const home = getenv("HOME");

    *out = (glob_t){.gl_pathc = 0};
    add(out, "/usr/local/cuda/lib64");
    add(out, "/usr/local/cuda/lib");
    add_own_packages(out);
    for (size_t i = 0; i < GS_ARRAY_LEN(environment); i++) {
        const char *const prefix = getenv(environment[i]);
        if (prefix == NULL || prefix[0] != '/')
            continue;
        add_python(out, prefix);
        if (strcmp(environment[i], "CONDA_PREFIX") == 0)
            add(out, "%s/lib", prefix);
    }
    add_path_python(out);
    if (home != NULL && home[0] == '/')
        add(out, "%s/.local/lib/python3*/site-packages/" WHEELS, home);
    add_python(out, "/usr/local");
    add(out, "/usr/lib/python3/dist-packages/" WHEELS);
}

/* Files of this pattern beside the one that has `symbol`, which a library's function is. Likewise. */
static void beside(glob_t *out, const void *symbol, const char *pattern)
{
    char folder[PATH_MAX];
    *out = (glob_t){.gl_pathc = 0};
    if (folder_of(folder, symbol))
        add(out, "%s%s", folder, pattern);
}

/* ---- releases ----
 *
 * Which of the CUDA libraries that are installed here fits the driver?
 *
 * A machine may have several releases of a library: a toolkit's, and those that Python packages brought. What a
 * compiler of CUDA 13 makes does not load on a driver of CUDA 12, and a cuBLAS of 13 does not start there; the other
 * way round all is well, and within a release too (CUDA's "minor version compatibility", which holds for images, and
 * images are what is made).
 */

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
    find_folders(&s->folders);
    for (int release = first; release >= GS_CUDA_OLDEST && s->found == NULL; release--)
        try_release(s, release);
    if (s->found == NULL)
        try_release(s, PLAIN);
    for (int release = GS_CUDA_NEWEST; release > first && s->found == NULL; release--)
        try_release(s, release);
    globfree(&s->folders);
}

/* Opens the newest STEM.so whose release the driver takes (`driver` as cuDriverGetVersion() has it, 1000 * major + 10 *
 * minor; 0: not known, any will do). *out is dlopen()'s. GS_EUNSUPPORTED: there is none, or only newer ones; the line
 * names one, and what to do. */
static gs_status library_open(void **out, const char *stem, gs_cuda_library_version *version, int driver)
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

/* Opens what a library will ask the loader for by name, from the library's own folder, where the loader may not look:
 * files of this pattern beside the file that has the library's `symbol`. They stay open; where there are none, the
 * library says so itself. */
static void library_open_beside(void *library, const char *symbol, const char *pattern)
{
    glob_t found;
    beside(&found, dlsym(library, symbol), pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        (void)dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
}

/* ---- functions ---- */

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
    if (libnvrtc == NULL) {
        GS_TRY(library_open(&libnvrtc, "libnvrtc", nvrtc_version, driver));
        library_open_beside(libnvrtc, "nvrtcVersion", "libnvrtc-builtins.so.*");
    }
    return fill(libnvrtc, "libnvrtc", nvrtc_entries, GS_ARRAY_LEN(nvrtc_entries));
}

gs_status gs_cuda_compiler_open(const gs_cuda_driver **out)
{
    GS_TRY(open_compiler(0));
    *out = &table;
    return GS_OK;
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
    if (libcuda == NULL && (libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) == NULL)
        return gs_fail(
            GS_EUNSUPPORTED,
            "device cuda: the driver (libcuda.so.1) was not found: there is no NVIDIA GPU here, or its driver "
            "is not installed; use .device cpu");
    GS_TRY(fill(libcuda, "libcuda.so.1", cuda_entries, GS_ARRAY_LEN(cuda_entries)));
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

    GS_TRY(open_driver(&driver));
    GS_TRY(open_compiler(driver));
    if (libcublas == NULL)
        GS_TRY(library_open(&libcublas, "libcublas", cublas_version, driver));
    GS_TRY(fill(libcublas, "libcublas", cublas_entries, GS_ARRAY_LEN(cublas_entries)));
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

    GS_TRY(open_all());
    const uint64_t after = gs_process_resident_bytes();
    if (held == 0)
        held = GS_MAX(after - GS_MIN(after, before), 1);
    *out = &table;
    return GS_OK;
}

uint64_t gs_cuda_libraries_bytes(void) { return gs_cuda_test_driver == NULL ? held : 0; }
