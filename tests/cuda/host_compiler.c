#include "host_compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fibres.h"
#include "host_streams.h"

#define INTERFACE 3 /* what libraries and this program call of each other: one more where that changes, so that kept
                     * libraries are not taken */
#define LOG_MOST 65536u /* bytes of what the compiler says */

/* Where libraries are: one folder for all tests of a build, whatever folder each has for the program's own cache. */
static const char *folder_of_kernels = GS_TEST_KERNELS;
static unsigned made;

void host_compiler_folder(const char *folder)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        abort();
    if (mkdir(GS_TEST_KERNELS, 0700) != 0 && errno != EEXIST) /* the build's folder is not here */
        folder_of_kernels = strdup(folder);
    setenv("GS_CUDA_CACHE", folder, 1);
}

#define HEADERS 4

typedef struct host_program {
    char *source, *log;
    char library[768];
    int headers; /* whose texts and names are the caller's, for as long as the process */
    const char *text[HEADERS], *header[HEADERS];
} host_program;

int host_cuda_release(void)
{
    const char *const release = getenv("GS_HOST_GPU_CUDA");
    return release != NULL ? (int)strtol(release, NULL, 10) : 13000;
}

/* How far kernels are optimised: -O0 compiles in a third of the time and runs in some three times of it. */
static const char *level(void)
{
    const char *const asked = getenv("GS_TEST_KERNEL_LEVEL");
    return asked != NULL ? asked : "-O1";
}

gs_cu_result host_compiler_version(int *major, int *minor)
{
    *major = host_cuda_release() / 1000;
    *minor = (int)(strlen(GS_TEST_HOST_FLAGS) % 1000 + (host_streams_checks() ? 1000 : 0) +
                   (strcmp(level(), "-O0") == 0 ? 2000 : 0) + 4000 * INTERFACE); /* of other flags, others */
    return 0;
}

gs_cu_result host_program_create(gs_cu_handle *program, const char *source, const char *name, int headers,
                                   const char *const *text, const char *const *header)
{
    host_program *const p = calloc(1, sizeof(*p));
    (void)name;
    if (p == NULL || headers > HEADERS || (p->source = strdup(source)) == NULL)
        return 1;
    for (p->headers = 0; p->headers < headers; p->headers++) {
        p->text[p->headers] = text[p->headers];
        p->header[p->headers] = header[p->headers];
    }
    *program = p;
    return 0;
}

gs_cu_result host_program_destroy(gs_cu_handle *program)
{
    host_program *const p = *program;
    free(p->source);
    free(p->log);
    free(p);
    return 0;
}

/* What -fsanitize=thread makes of reads and writes is sent to host_streams_access(), but for what is a kernel's own:
 * stacks, arguments and the block's memory, which are most of all, and what its lanes call. */
static bool write_hooks(const char *path)
{
    static const unsigned sizes[] = {1, 2, 4, 8, 16};
    FILE *const out = fopen(path, "w");
    if (out == NULL)
        return false;
    fprintf(out,
            "#include <stddef.h>\nvoid (*gs_access)(const void *p, size_t bytes, _Bool write);\n"
            "extern const void *gs_gpu;\nconst char *gs_own[3];\n"
            "#define OWN(p) ((size_t)(p) - (size_t)gs_own[0] < %zu || (p) == (void *)&gs_gpu || \\\n"
            "    ((const char *)(p) >= gs_own[1] && (const char *)(p) < gs_own[2]))\n", FIBRES_BYTES);
    fputs("void __tsan_init(void) {}\nvoid __tsan_func_entry(void *p) { (void)p; }\nvoid __tsan_func_exit(void) {}\n",
          out);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (int write = 0; write < 2; write++)
            for (int unaligned = 0; unaligned < 2; unaligned++)
                fprintf(out, "void __tsan_%s%s%u(void *p) { if (!OWN(p)) gs_access(p, %u, %d); }\n",
                        unaligned ? "unaligned_" : "", write ? "write" : "read", sizes[i], sizes[i], write);
    fputs("void __tsan_read_range(void *p, size_t n) { if (!OWN(p)) gs_access(p, n, 0); }\n"
          "void __tsan_write_range(void *p, size_t n) { if (!OWN(p)) gs_access(p, n, 1); }\n"
          "unsigned __tsan_atomic32_fetch_add(unsigned *p, unsigned n, int order);\n"
          "unsigned __tsan_atomic32_fetch_add(unsigned *p, unsigned n, int order) {\n"
          "    (void)order; __tsan_write4(p); return __atomic_fetch_add(p, n, __ATOMIC_RELAXED); }\n", out);
    return fclose(out) == 0;
}

/* They are the same for every program: compiled once, for all processes of this folder. Sets `object`. */
static bool compile_hooks(char *object, size_t most, const host_program *p)
{
    char source[800], made_here[810], command[4096];

    snprintf(object, most, "%s/hooks.%d.o", folder_of_kernels, INTERFACE);
    if (access(object, F_OK) == 0)
        return true;
    snprintf(source, sizeof(source), "%s.hooks.c", p->library);
    snprintf(made_here, sizeof(made_here), "%s.o", source);
    snprintf(command, sizeof(command), "%s -c -fPIC -O2 -o '%s' '%s'", GS_TEST_HOST_CC, made_here, source);
    const bool fine = write_hooks(source) && system(command) == 0 && rename(made_here, object) == 0;
    unlink(source);
    return fine;
}

/* Beside the source, where its includes find them; other processes may do the same. */
static bool write_headers(const host_program *p)
{
    for (int i = 0; i < p->headers; i++) {
        char to[800], path[800];
        snprintf(path, sizeof(path), "%s/%s", folder_of_kernels, p->header[i]);
        snprintf(to, sizeof(to), "%s.%s", p->library, p->header[i]);
        FILE *const out = fopen(to, "w");
        if (out == NULL || fputs(p->text[i], out) < 0 || fclose(out) != 0 || rename(to, path) != 0)
            return false;
    }
    return true;
}

/* $GS_HOST_GPU_BUILTINS: the name of a library without which nothing compiles, as NVRTC asks the loader for its own. */
static bool has_builtins(void)
{
    const char *const name = getenv("GS_HOST_GPU_BUILTINS");
    return name == NULL || dlopen(name, RTLD_NOW | RTLD_LOCAL) != NULL;
}

static uint64_t mixed_text(uint64_t hash, const char *text) /* FNV-1a; its 0, too, so that texts do not run together */
{
    const char *c = text;
    do
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    while (*c++ != '\0');
    return hash;
}

/* Programs whose texts, headers and flags are the same have one library, whichever test, process or release of CUDA
 * asks for it; of those that compile it at a time the last one's stays. Returns true where it is there. */
static bool find_library(char *path, size_t most, const host_program *p, const char *flags)
{
    uint64_t hash = mixed_text(14695981039346656037u, __VERSION__);
    hash = mixed_text(hash, flags) + INTERFACE + (host_streams_checks() ? 1000u : 0);
    for (int i = 0; i < p->headers; i++)
        hash = mixed_text(mixed_text(hash, p->header[i]), p->text[i]);
    snprintf(path, most, "%s/%016llx.%zu.so", folder_of_kernels, (unsigned long long)mixed_text(hash, p->source),
             strlen(p->source));
    return access(path, R_OK) == 0;
}

static bool take_library(host_program *p, const char *path)
{
    if (rename(p->library, path) != 0)
        return false;
    snprintf(p->library, sizeof(p->library), "%s", path);
    return true;
}

gs_cu_result host_program_compile(gs_cu_handle program, int options, const char *const *option)
{
    host_program *const p = program;
    char source[800], log[800], hooks[600], flags[512], command[8192], shared[700];
    (void)options, (void)option;

    snprintf(p->library, sizeof(p->library), "%s/kernels.%ld.%u.so", folder_of_kernels, (long)getpid(), made++);
    snprintf(source, sizeof(source), "%s.c", p->library);
    snprintf(log, sizeof(log), "%s.log", p->library);
    snprintf(flags, sizeof(flags), "%s -std=gnu17 -fPIC %s %s", GS_TEST_HOST_CC, level(), GS_TEST_HOST_FLAGS);
    if (!has_builtins()) {
        p->log = strdup("nvrtc: error: failed to open its builtins");
        return 1;
    }
    if (find_library(shared, sizeof(shared), p, flags)) {
        snprintf(p->library, sizeof(p->library), "%s", shared);
        return 0;
    }
    FILE *const out = fopen(source, "w");
    if (out == NULL || fputs(p->source, out) < 0 || fclose(out) != 0 || !write_headers(p))
        return 1;
    if (host_streams_checks()) {
        if (!compile_hooks(hooks, sizeof(hooks), p))
            return 1;
        snprintf(command, sizeof(command),
                 "%s -fsanitize=thread -shared -nostdlib -Wl,-Bsymbolic -Wall -Werror -Wno-unused "
                 "-Wno-maybe-uninitialized -o '%s' '%s' '%s' >'%s' 2>&1",
                 flags, p->library, source, hooks, log);
    } else {
        snprintf(command, sizeof(command),
                 "%s -shared -nostdlib -Wall -Werror -Wno-unused -Wno-maybe-uninitialized -o '%s' '%s' >'%s' 2>&1",
                 /* without libraries, which the program has: looking them through takes as long */
                 flags, p->library, source, log);
    }
    const bool fine = system(command) == 0;
    if (fine && take_library(p, shared)) {
        if (getenv("GS_TEST_KEEP_KERNELS") == NULL) /* so there are no lines of it to know, and no -g */
            unlink(source);
        unlink(log);
        return 0;
    }
    FILE *const in = fopen(log, "r");
    if (in != NULL && (p->log = calloc(1, LOG_MOST + 1)) != NULL && fread(p->log, 1, LOG_MOST, in) > 0)
        fprintf(stderr, "%s", p->log); /* the whole, for who debugs a kernel */
    if (in != NULL)
        fclose(in);
    return 1;
}

/* Up to its GPU's, which GS_HOST_GPU_CAPABILITY may make newer (host_memory.c). */
gs_cu_result host_architecture_count(int *count)
{
    *count = 2;
    return 0;
}

gs_cu_result host_architectures(int *architecture)
{
    architecture[0] = 80;
    architecture[1] = 90;
    return 0;
}

/* The image is the library's path. */
gs_cu_result host_image_bytes(gs_cu_handle program, size_t *bytes)
{
    *bytes = strlen(((host_program *)program)->library) + 1;
    return 0;
}

gs_cu_result host_image(gs_cu_handle program, char *to)
{
    strcpy(to, ((host_program *)program)->library);
    return 0;
}

gs_cu_result host_log_bytes(gs_cu_handle program, size_t *bytes)
{
    const host_program *const p = program;
    *bytes = p->log == NULL ? 0 : strlen(p->log) + 1;
    return 0;
}

gs_cu_result host_program_log(gs_cu_handle program, char *to)
{
    strcpy(to, ((host_program *)program)->log);
    return 0;
}
