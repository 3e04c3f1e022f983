#include "host_gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/kernels/args.h"
#include "fibres.h"

/* kernels/gpu.h, for the host; the library that is made has the same. */
typedef struct host_lane {
    unsigned lane, block_x, block_y, blocks_x;
    float *shared;
    void (*block_sync)(void);
    void (*group_sync)(unsigned lanes);
    float (*group_exchange)(float value, unsigned by, unsigned lanes);
} host_lane;

#define BLOCKS 64u /* of memory, at a time */
#define LOG_MOST 65536u /* bytes of what the compiler says */

static struct {
    char folder[512];
    unsigned fail_launch, made;
    uint64_t memory_bytes, taken;
    host_gpu_counts counts;
    struct {
        void *at;
        size_t bytes;
    } memory[BLOCKS];
    host_lane lane;
    /* the launch that runs */
    void (*kernel)(const void *args); /* every lane calls it */
    const void *args;
    /* barriers: how many lanes came, and how often all had come; groups by their first lane, then the block's */
    unsigned arrived[GS_BLOCK_LANES + 1], passed[GS_BLOCK_LANES + 1];
    float slot[GS_BLOCK_LANES];
} gpu;

/* ---- barriers ---- */

static void barrier(unsigned which, unsigned members)
{
    const unsigned mine = gpu.passed[which];
    if (++gpu.arrived[which] == members) {
        gpu.arrived[which] = 0;
        gpu.passed[which]++;
    }
    for (unsigned turns = 0; gpu.passed[which] == mine; turns++) {
        const unsigned lane = fibres_current();
        if (turns > 100000) {
            fprintf(stderr, "host GPU: lane %u waits at a barrier that not all of %u lanes reach\n", lane, members);
            abort();
        }
        fibres_yield();
        gpu.lane.lane = lane;
    }
}

static void block_sync(void) { barrier(GS_BLOCK_LANES, GS_BLOCK_LANES); }

static void group_sync(unsigned lanes)
{
    if (lanes > 1)
        barrier(fibres_current() / lanes * lanes, lanes);
}

static float group_exchange(float value, unsigned by, unsigned lanes)
{
    const unsigned lane = fibres_current();
    if (by >= lanes) {
        fprintf(stderr, "host GPU: lane %u exchanges with one outside its group of %u\n", lane, lanes);
        abort();
    }
    gpu.slot[lane] = value;
    group_sync(lanes);
    const float got = gpu.slot[lane ^ by];
    group_sync(lanes);
    return got;
}

/* ---- memory ---- */

static void allow(bool yes)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if (gpu.memory[i].at != NULL)
            mprotect(gpu.memory[i].at, gpu.memory[i].bytes, yes ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static bool is_device(gs_cu_memory p, size_t bytes)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        const gs_cu_memory at = (gs_cu_memory)gpu.memory[i].at;
        if (at != 0 && p >= at && p + bytes <= at + gpu.memory[i].bytes)
            return true;
    }
    return false;
}

static void need_device(gs_cu_memory p, size_t bytes, const char *what)
{
    if (is_device(p, bytes))
        return;
    fprintf(stderr, "host GPU: %s: %zu bytes at %p are not the device's\n", what, bytes, (void *)p);
    abort();
}

static gs_cu_result memory_alloc(gs_cu_memory *p, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    unsigned i = 0;
    while (i < BLOCKS && gpu.memory[i].at != NULL)
        i++;
    if (i == BLOCKS || gpu.taken + whole > gpu.memory_bytes)
        return GS_CU_OUT_OF_MEMORY;
    gpu.memory[i].at = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (gpu.memory[i].at == MAP_FAILED) {
        gpu.memory[i].at = NULL;
        return GS_CU_OUT_OF_MEMORY;
    }
    memset(gpu.memory[i].at, 0xff, whole); /* NaN: nothing may be taken for cleared */
    mprotect(gpu.memory[i].at, whole, PROT_NONE);
    gpu.memory[i].bytes = whole;
    gpu.taken += whole;
    gpu.counts.allocations++;
    *p = (gs_cu_memory)gpu.memory[i].at;
    return 0;
}

static gs_cu_result memory_free(gs_cu_memory p)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        if ((gs_cu_memory)gpu.memory[i].at == p && p != 0) {
            munmap(gpu.memory[i].at, gpu.memory[i].bytes);
            gpu.taken -= gpu.memory[i].bytes;
            gpu.memory[i].at = NULL;
            return 0;
        }
    return 1;
}

static gs_cu_result memory_info(size_t *free_bytes, size_t *total)
{
    *free_bytes = gpu.memory_bytes - gpu.taken;
    *total = gpu.memory_bytes;
    return 0;
}

static gs_cu_result copy_in(gs_cu_memory to, const void *from, size_t bytes, gs_cu_handle stream)
{
    (void)stream;
    need_device(to, bytes, "a copy in");
    allow(true);
    memcpy((void *)to, from, bytes);
    allow(false);
    gpu.counts.bytes_in += bytes;
    return 0;
}

static gs_cu_result copy_out(void *to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)
{
    (void)stream;
    need_device(from, bytes, "a copy out");
    allow(true);
    memcpy(to, (const void *)from, bytes);
    allow(false);
    gpu.counts.bytes_out += bytes;
    return 0;
}

static gs_cu_result copy_within(gs_cu_memory to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)
{
    (void)stream;
    need_device(to, bytes, "a copy");
    need_device(from, bytes, "a copy");
    allow(true);
    memmove((void *)to, (const void *)from, bytes);
    allow(false);
    return 0;
}

static gs_cu_result fill(gs_cu_memory p, unsigned char value, size_t bytes, gs_cu_handle stream)
{
    (void)stream;
    need_device(p, bytes, "a fill");
    allow(true);
    memset((void *)p, value, bytes);
    allow(false);
    return 0;
}

static gs_cu_result host_register(void *p, size_t bytes, unsigned flags)
{
    return p == NULL || bytes == 0 || flags != 0;
}

static gs_cu_result host_unregister(void *p) { return p == NULL; }

/* ---- devices, streams, events: numbers that are there ---- */

static gs_cu_result init(unsigned flags) { return (gs_cu_result)flags; }
static gs_cu_result version(int *v) { return *v = 13000, 0; }
static gs_cu_result device_count(int *n) { return *n = 1, 0; }
static gs_cu_result device_get(int *device, int ordinal) { return *device = ordinal, 0; }

static const struct {
    gs_cu_result r;
    const char *name, *text;
} errors[] = {
    {GS_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static gs_cu_result error_name(gs_cu_result r, const char **name)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].r == r)
            return *name = errors[i].name, 0;
    return 1;
}

static gs_cu_result error_text(gs_cu_result r, const char **text)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].r == r)
            return *text = errors[i].text, 0;
    return 1;
}

static gs_cu_result device_name(char *name, int bytes, int device)
{
    (void)device;
    snprintf(name, (size_t)bytes, "host");
    return 0;
}

static gs_cu_result device_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == GS_CU_MAJOR ? 9 : attribute == GS_CU_PROCESSORS ? 1 : 0;
    return 0;
}

static gs_cu_result make_handle(gs_cu_handle *h)
{
    return (*h = malloc(1)) == NULL;
}

static gs_cu_result drop_handle(gs_cu_handle h)
{
    free(h);
    return h == NULL;
}

static gs_cu_result context_retain(gs_cu_handle *context, int device)
{
    static char only;
    (void)device;
    *context = &only;
    return 0;
}

static gs_cu_result context_release(int device) { return (void)device, 0; }
static gs_cu_result use_handle(gs_cu_handle h) { return h == NULL; }
static gs_cu_result make_flagged(gs_cu_handle *h, unsigned flags) { return (void)flags, make_handle(h); }
static gs_cu_result stream_wait(gs_cu_handle s, gs_cu_handle e, unsigned flags) { return s == NULL || e == NULL || flags != 0; }
static gs_cu_result event_record(gs_cu_handle e, gs_cu_handle s) { return s == NULL || e == NULL; }

/* ---- compiling ---- */

typedef struct host_program {
    char *source, *log;
    char library[768];
} host_program;

static gs_cu_result compiler_version(int *major, int *minor)
{
    *major = 1;
    *minor = (int)(strlen(GS_TEST_HOST_FLAGS) % 1000); /* libraries of other flags are others */
    return 0;
}

static gs_cu_result program_create(gs_cu_handle *program, const char *source, const char *name, int headers,
                                   const char *const *text, const char *const *header)
{
    host_program *const p = calloc(1, sizeof(*p));
    (void)name, (void)headers, (void)text, (void)header;
    if (p == NULL || (p->source = strdup(source)) == NULL)
        return 1;
    *program = p;
    return 0;
}

static gs_cu_result program_destroy(gs_cu_handle *program)
{
    host_program *const p = *program;
    free(p->source);
    free(p->log);
    free(p);
    return 0;
}

static gs_cu_result program_compile(gs_cu_handle program, int options, const char *const *option)
{
    host_program *const p = program;
    char source[800], log[800], command[4096];
    (void)options, (void)option;

    snprintf(p->library, sizeof(p->library), "%s/kernels.%ld.%u.so", gpu.folder, (long)getpid(), gpu.made++);
    snprintf(source, sizeof(source), "%s.c", p->library);
    snprintf(log, sizeof(log), "%s.log", p->library);
    FILE *const out = fopen(source, "w");
    if (out == NULL || fputs(p->source, out) < 0 || fclose(out) != 0)
        return 1;
    snprintf(command, sizeof(command), "%s -std=gnu17 -shared -fPIC %s -Wall -Werror -Wno-unused -o '%s' '%s' -lm >'%s' 2>&1",
             GS_TEST_HOST_CC, GS_TEST_HOST_FLAGS, p->library, source, log);
    if (system(command) == 0) {
        if (getenv("GS_TEST_KEEP_KERNELS") == NULL)
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

/* The image is the library's path. */
static gs_cu_result image_bytes(gs_cu_handle program, size_t *bytes)
{
    *bytes = strlen(((host_program *)program)->library) + 1;
    return 0;
}

static gs_cu_result image(gs_cu_handle program, char *to)
{
    strcpy(to, ((host_program *)program)->library);
    return 0;
}

static gs_cu_result log_bytes(gs_cu_handle program, size_t *bytes)
{
    const host_program *const p = program;
    *bytes = p->log == NULL ? 0 : strlen(p->log) + 1;
    return 0;
}

static gs_cu_result program_log(gs_cu_handle program, char *to)
{
    strcpy(to, ((host_program *)program)->log);
    return 0;
}

static gs_cu_result module_load(gs_cu_handle *module, const void *path)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return 1;
    const host_lane **const lane = dlsym(library, "gs_gpu");
    if (lane == NULL)
        return 1;
    *lane = &gpu.lane;
    *module = library;
    return 0;
}

static gs_cu_result module_unload(gs_cu_handle module) { return dlclose(module); }

static gs_cu_result module_function(gs_cu_handle *function, gs_cu_handle module, const char *name)
{
    return (*function = dlsym(module, name)) == NULL;
}

/* ---- launches ---- */

static void run_lane(unsigned lane)
{
    gpu.lane.lane = lane;
    gpu.kernel(gpu.args);
}

static void run_block(unsigned x, unsigned y)
{
    gpu.lane.block_x = x;
    gpu.lane.block_y = y;
    memset(gpu.arrived, 0, sizeof(gpu.arrived));
    fibres_run(GS_BLOCK_LANES, run_lane);
}

static gs_cu_result launch(gs_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                           unsigned block_z, unsigned shared_bytes, gs_cu_handle stream, void **args, void **extra)
{
    if (grid_x == 0 || grid_y == 0 || grid_z != 1 || block_x != GS_BLOCK_LANES || block_y != 1 || block_z != 1 || stream == NULL ||
        extra != NULL || grid_y > 65535 || shared_bytes > 48 * 1024)
        return 1;
    if (gpu.fail_launch > 0 && --gpu.fail_launch == 0)
        return 719;
    memcpy(&gpu.kernel, &function, sizeof(gpu.kernel));
    gpu.args = args[0];
    gpu.lane.blocks_x = grid_x;
    gpu.lane.shared = malloc(shared_bytes); /* so that a sanitizer sees its end */
    allow(true);
    for (unsigned y = 0; y < grid_y; y++)
        for (unsigned x = 0; x < grid_x; x++)
            run_block(x, y);
    allow(false);
    free(gpu.lane.shared);
    gpu.counts.launches++;
    return 0;
}

/* ---- products ---- */

static gs_cu_result blas_stream(gs_cu_handle blas, gs_cu_handle stream) { return blas == NULL || stream == NULL; }

static gs_cu_result blas_workspace(gs_cu_handle blas, void *memory, size_t bytes)
{
    need_device((gs_cu_memory)memory, bytes, "a workspace");
    return blas == NULL;
}

/* Column-major, as cuBLAS. */
static gs_cu_result gemm(gs_cu_handle blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda,
                         const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute, int algorithm)
{
    const float *const x = a, *const y = b, by = *(const float *)alpha, keep = *(const float *)beta;
    float *const to = c;
    const int type = compute == GS_CUBLAS_COMPUTE_FP32 ? 0 : compute == GS_CUBLAS_COMPUTE_TF32 ? 1 : compute == GS_CUBLAS_COMPUTE_BF16 ? 2 : 3;
    if (type == 3 || blas == NULL || a_type != 0 || b_type != 0 || c_type != 0 || algorithm != -1 ||
        lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m)
        return 7;
    gpu.counts.products[type]++;
    need_device((gs_cu_memory)a, sizeof(float) * ((size_t)lda * (size_t)((ta ? m : k) - 1) + (size_t)(ta ? k : m)), "a product");
    need_device((gs_cu_memory)b, sizeof(float) * ((size_t)ldb * (size_t)((tb ? k : n) - 1) + (size_t)(tb ? n : k)), "a product");
    need_device((gs_cu_memory)c, sizeof(float) * ((size_t)ldc * (size_t)(n - 1) + (size_t)m), "a product");
    allow(true);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            float sum = 0;
            for (int q = 0; q < k; q++)
                sum += (ta ? x[(size_t)i * (size_t)lda + (size_t)q] : x[(size_t)q * (size_t)lda + (size_t)i]) *
                       (tb ? y[(size_t)q * (size_t)ldb + (size_t)j] : y[(size_t)j * (size_t)ldb + (size_t)q]);
            float *const z = &to[(size_t)j * (size_t)ldc + (size_t)i];
            *z = by * sum + (keep == 0 ? 0 : keep * *z);
        }
    allow(false);
    return 0;
}

/* ---- the table ---- */

static const gs_cuda_driver driver = {
    .init = init,
    .version = version,
    .error_name = error_name,
    .error_text = error_text,
    .device_count = device_count,
    .device_get = device_get,
    .device_name = device_name,
    .device_attribute = device_attribute,
    .context_retain = context_retain,
    .context_release = context_release,
    .context_set = use_handle,
    .memory_info = memory_info,
    .memory_alloc = memory_alloc,
    .memory_free = memory_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .fill = fill,
    .stream_create = make_flagged,
    .stream_destroy = drop_handle,
    .stream_wait = stream_wait,
    .stream_synchronize = use_handle,
    .event_create = make_flagged,
    .event_destroy = drop_handle,
    .event_record = event_record,
    .event_query = use_handle,
    .event_synchronize = use_handle,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_function = module_function,
    .launch = launch,
    .compiler_version = compiler_version,
    .program_create = program_create,
    .program_destroy = program_destroy,
    .program_compile = program_compile,
    .image_bytes = image_bytes,
    .image = image,
    .log_bytes = log_bytes,
    .log = program_log,
    .blas_create = make_handle,
    .blas_destroy = drop_handle,
    .blas_stream = blas_stream,
    .blas_workspace = blas_workspace,
    .gemm = gemm,
};

const gs_cuda_driver *host_gpu_driver(const char *folder)
{
    snprintf(gpu.folder, sizeof(gpu.folder), "%s", folder);
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        abort();
    setenv("GS_CUDA_CACHE", folder, 1);
    if (gpu.memory_bytes == 0)
        gpu.memory_bytes = 1ull << 32;
    gpu.lane.block_sync = block_sync;
    gpu.lane.group_sync = group_sync;
    gpu.lane.group_exchange = group_exchange;
    return &driver;
}

void host_gpu_fail_launch(unsigned n) { gpu.fail_launch = n; }
void host_gpu_set_memory(uint64_t bytes) { gpu.memory_bytes = bytes; }

host_gpu_counts host_gpu_take_counts(void)
{
    const host_gpu_counts counts = gpu.counts;
    memset(&gpu.counts, 0, sizeof(gpu.counts));
    return counts;
}
