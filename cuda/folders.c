#include "cuda/folders.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"

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

void gs_cuda_folders(glob_t *out)
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

void gs_cuda_beside(glob_t *out, const void *symbol, const char *pattern)
{
    char folder[PATH_MAX];
    *out = (glob_t){.gl_pathc = 0};
    if (folder_of(folder, symbol))
        add(out, "%s%s", folder, pattern);
}
