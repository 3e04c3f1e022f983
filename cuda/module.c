#include "cuda/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/outfile.h"
#include "base/size.h"

#define IMAGE_MOST (256 * GS_MIB)
#define STANDARD "--std=c++17"
#define VECTORS "--extra-device-vectorization"

static gs_status no_memory(void) { return gs_fail(GS_ENOMEM, "device cuda: out of memory for kernels"); }

static char *whole_text(const char *text)
{
    char *const whole = gs_malloc(strlen(gs_cuda_common_text) + strlen(text) + 1);
    if (whole != NULL)
        strcat(strcpy(whole, gs_cuda_common_text), text);
    return whole;
}

/* The compiler's first error, on one line. */
static gs_status complain(const gs_cuda_driver *d, gs_cu_handle program)
{
    size_t bytes = 0;
    char *log = NULL;
    gs_status st;

    if (d->log_bytes(program, &bytes) == 0 && bytes > 0 && (log = gs_calloc(bytes + 1, 1)) != NULL)
        d->log(program, log);
    const char *error = log == NULL ? NULL : strstr(log, "error");
    while (error != NULL && error > log && error[-1] != '\n')
        error--;
    st = gs_fail(GS_EDEVICE, "device cuda: the kernels of this model do not compile: %.*s",
                 error == NULL ? 20 : (int)strcspn(error, "\n"), error == NULL ? "the compiler failed" : error);
    gs_free(log);
    return st;
}

/* An intermediate text ends with its 0. */
static gs_status take_image(char **image, size_t *bytes, const gs_cuda_driver *d, gs_cu_handle program,
                            bool intermediate)
{
    size_t n = 0;
    char *p = NULL;
    if ((intermediate ? d->intermediate_bytes : d->image_bytes)(program, &n) != 0 || n == 0)
        return complain(d, program);
    if ((p = gs_malloc(n)) == NULL)
        return no_memory();
    if ((intermediate ? d->intermediate : d->image)(program, p) != 0) {
        gs_free(p);
        return complain(d, program);
    }
    *image = p;
    *bytes = n;
    return GS_OK;
}

gs_cuda_target gs_cuda_target_of(const gs_cuda_driver *d, int major, int minor)
{
    gs_cuda_target t = {.architecture = major * 10 + minor};
    int count = 0, newest = 0;
    int *known = NULL;
    if (d->architecture_count(&count) == 0 && count > 0 && (known = gs_calloc((size_t)count, sizeof(*known))) != NULL &&
        d->architectures(known) == 0)
        for (int i = 0; i < count; i++)
            newest = known[i] <= t.architecture ? GS_MAX(newest, known[i]) : newest;
    gs_free(known);
    if (newest == 0) /* the compiler says what it lacks */
        return t;
    t.intermediate = newest / 10 != major;
    t.architecture = newest;
    return t;
}

gs_status gs_cuda_compile(char **image, size_t *bytes, const gs_cuda_driver *d, int major, int minor, const char *text)
{
    static const char *const header[] = {gs_cuda_walk_text}, *const header_name[] = {"walk.inc"};
    char architecture[64];
    const char *const options[] = {architecture, STANDARD, VECTORS};
    char *const whole = whole_text(text);
    gs_cu_handle program = NULL;
    gs_status st;

    if (whole == NULL)
        return no_memory();
    const gs_cuda_target target = gs_cuda_target_of(d, major, minor);
    snprintf(architecture, sizeof(architecture), "--gpu-architecture=%s_%d", target.intermediate ? "compute" : "sm",
             target.architecture);
    if (d->program_create(&program, whole, "gnnstream.cu", 1, header, header_name) != 0)
        st = no_memory();
    else if (d->program_compile(program, (int)GS_ARRAY_LEN(options), options) != 0)
        st = complain(d, program);
    else
        st = take_image(image, bytes, d, program, target.intermediate);
    if (program != NULL)
        d->program_destroy(&program);
    gs_free(whole);
    return st;
}

/* ---- the files ---- */

/* The folder, made where it is not there; NULL where there can be none. */
static char *cache_folder(void)
{
    const char *const own = getenv("GS_CUDA_CACHE"), *const cache = getenv("XDG_CACHE_HOME"),
                      *const home = getenv("HOME");
    static const char *const below[] = {".cache", "gnnstream", "cuda"};
    char *path;

    if (own != NULL && own[0] != '\0')
        return gs_mkdir(own) == GS_OK ? gs_strdup(own) : NULL;
    const bool xdg = cache != NULL && cache[0] == '/';
    if (!xdg && (home == NULL || home[0] != '/'))
        return NULL;
    path = gs_strdup(xdg ? cache : home);
    for (size_t i = xdg ? 1 : 0; i < GS_ARRAY_LEN(below) && path != NULL; i++) {
        char *const next = gs_path_join(path, below[i]);
        gs_free(path);
        path = next;
        if (path != NULL && gs_mkdir(path) != GS_OK) {
            gs_free(path);
            path = NULL;
        }
    }
    return path;
}

static char *cache_file(const gs_cuda_driver *d, int major, int minor, const char *text)
{
    char name[96];
    int release = 0, update = 0;
    char *const folder = cache_folder();
    if (folder == NULL)
        return NULL;
    d->compiler_version(&release, &update);
    snprintf(name, sizeof(name), "%016llx%016llx-sm%d%d-%d.%d.cubin",
             (unsigned long long)(gs_hash64(gs_cuda_common_text, strlen(gs_cuda_common_text)) ^
                                  gs_hash64(gs_cuda_walk_text, strlen(gs_cuda_walk_text)) ^
                                  gs_hash64(STANDARD VECTORS, strlen(STANDARD VECTORS))),
             (unsigned long long)gs_hash64(text, strlen(text)), major, minor, release, update);
    char *const path = gs_path_join(folder, name);
    gs_free(folder);
    return path;
}

/* Behind the image in its file. The driver is told no length: of a file that was cut short it would read on. */
typedef struct trailer {
    uint64_t bytes, hash;
} trailer;

static bool read_image(char **image, const char *path)
{
    uint64_t bytes = 0;
    trailer t;

    if (!gs_path_exists(path) || gs_file_read_all(image, &bytes, path, IMAGE_MOST) != GS_OK)
        return false;
    if (bytes > sizeof(t)) {
        memcpy(&t, *image + bytes - sizeof(t), sizeof(t));
        if (t.bytes == bytes - sizeof(t) && t.hash == gs_hash64(*image, t.bytes))
            return true;
    }
    gs_free(*image);
    *image = NULL;
    return false;
}

/* A full disk only costs the next run a compilation. Of runs that begin together, the last one's stays, whole. */
static void keep_image(const char *path, const char *image, uint64_t bytes)
{
    const trailer t = {bytes, gs_hash64(image, bytes)};
    char *const whole = gs_malloc(bytes + sizeof(t));
    if (whole == NULL)
        return;
    memcpy(whole, image, bytes);
    memcpy(whole + bytes, &t, sizeof(t));
    (void)gs_file_write_atomic(path, whole, bytes + sizeof(t));
    gs_free(whole);
}

gs_status gs_cuda_module(gs_cu_handle *module, const gs_cuda_driver *d, int major, int minor, const char *text)
{
    char *const path = cache_file(d, major, minor, text);
    char *image = NULL;
    size_t bytes = 0;
    gs_status st = GS_OK;

    /* The image that is kept may be damaged, or of another driver: then it is made again. */
    if (path != NULL && read_image(&image, path) && d->module_load(module, image) == 0)
        goto done;
    gs_free(image);
    image = NULL;
    if ((st = gs_cuda_compile(&image, &bytes, d, major, minor, text)) != GS_OK)
        goto done;
    const gs_cu_result r = d->module_load(module, image);
    const char *name = NULL;
    if (r != 0)
        st = gs_fail(
            GS_EDEVICE,
            "device cuda: the GPU's driver does not take the kernels of this model (%s); is it older than the toolkit?",
            d->error_name(r, &name) == 0 && name != NULL ? name : "unknown error");
    else if (path != NULL)
        keep_image(path, image, bytes);
done:
    gs_free(image);
    gs_free(path);
    return st;
}
