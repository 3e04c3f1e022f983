#include "host_gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/kernels/args.h"
#include "fibres.h"
#include "host_compiler.h"
#include "host_streams.h"

/* kernels/gpu.h, for the host; the library that is made has the same. */
typedef struct host_lane {
    unsigned lane, block_x, block_y, blocks_x;
    float *shared;
    void (*block_sync)(void);
    void (*group_sync)(unsigned lanes);
    float (*group_exchange)(float value, unsigned by, unsigned lanes);
} host_lane;

#define BLOCKS 64u /* of memory, at a time */
#define FUNCTIONS 16384u

static struct {
    unsigned fail_launch;
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
    float slot[2][GS_BLOCK_LANES]; /* what lanes exchange, in turns: who reads has not yet come to the barrier after this one */
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
    float *const slot = gpu.slot[gpu.passed[lane / lanes * lanes] % 2];
    slot[lane] = value;
    group_sync(lanes);
    return slot[lane ^ by];
}

/* ---- memory ---- */

/* While work runs. */
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

/* In huge pages where it can be: it is locked and unlocked whole, again and again. */
static void *map(size_t bytes)
{
    const size_t huge = 2u << 20;
    char *const at = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    char *const first = (char *)(((uintptr_t)at + huge - 1) / huge * huge);
    if (first > at)
        munmap(at, (size_t)(first - at));
    if (at + huge > first)
        munmap(first + bytes, (size_t)(at + huge - first));
    (void)madvise(first, bytes, MADV_HUGEPAGE);
    return first;
}

static gs_cu_result memory_alloc(gs_cu_memory *p, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    unsigned i = 0;
    while (i < BLOCKS && gpu.memory[i].at != NULL)
        i++;
    if (i == BLOCKS || gpu.taken + whole > gpu.memory_bytes)
        return GS_CU_OUT_OF_MEMORY;
    if ((gpu.memory[i].at = map(whole)) == NULL)
        return GS_CU_OUT_OF_MEMORY;
    memset(gpu.memory[i].at, 0xff, whole); /* NaN: nothing may be taken for cleared */
    mprotect(gpu.memory[i].at, whole, PROT_NONE);
    gpu.memory[i].bytes = whole;
    gpu.taken += whole;
    host_streams_memory(gpu.memory[i].at, whole);
    gpu.counts.allocations++;
    *p = (gs_cu_memory)gpu.memory[i].at;
    return 0;
}

static gs_cu_result memory_free(gs_cu_memory p)
{
    host_streams_drain(); /* as CUDA's does */
    for (unsigned i = 0; i < BLOCKS; i++)
        if ((gs_cu_memory)gpu.memory[i].at == p && p != 0) {
            host_streams_memory(gpu.memory[i].at, 0);
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

/* Copies are checked when they are asked for, and made when the stream comes to them. */

static void run_copy_in(const host_work *w)
{
    host_streams_host_access(w->from, w->bytes, false);
    host_streams_access(w->to, w->bytes, true);
    memcpy(w->to, w->from, w->bytes);
}

static gs_cu_result copy_in(gs_cu_memory to, const void *from, size_t bytes, gs_cu_handle stream)
{
    need_device(to, bytes, "a copy in");
    gpu.counts.bytes_in += bytes;
    return host_streams_submit(stream, &(host_work){.run = run_copy_in, .what = "copy in", .to = (void *)to, .from = from, .bytes = bytes});
}

static void run_copy_out(const host_work *w)
{
    host_streams_access(w->from, w->bytes, false);
    host_streams_host_access(w->to, w->bytes, true);
    memcpy(w->to, w->from, w->bytes);
}

static gs_cu_result copy_out(void *to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)
{
    need_device(from, bytes, "a copy out");
    gpu.counts.bytes_out += bytes;
    return host_streams_submit(stream, &(host_work){.run = run_copy_out, .what = "copy out", .to = to, .from = (const void *)from, .bytes = bytes});
}

static void run_copy_within(const host_work *w)
{
    host_streams_access(w->from, w->bytes, false);
    host_streams_access(w->to, w->bytes, true);
    memmove(w->to, w->from, w->bytes);
}

static gs_cu_result copy_within(gs_cu_memory to, gs_cu_memory from, size_t bytes, gs_cu_handle stream)
{
    need_device(to, bytes, "a copy");
    need_device(from, bytes, "a copy");
    return host_streams_submit(
        stream, &(host_work){.run = run_copy_within, .what = "copy", .to = (void *)to, .from = (const void *)from, .bytes = bytes});
}

static void run_fill(const host_work *w)
{
    host_streams_access(w->to, w->bytes, true);
    memset(w->to, w->value, w->bytes);
}

static gs_cu_result fill(gs_cu_memory p, unsigned char value, size_t bytes, gs_cu_handle stream)
{
    need_device(p, bytes, "a fill");
    return host_streams_submit(stream, &(host_work){.run = run_fill, .what = "fill", .to = (void *)p, .bytes = bytes, .value = value});
}

static gs_cu_result host_register(void *p, size_t bytes, unsigned flags)
{
    return p == NULL || bytes == 0 || (flags & ~(unsigned)GS_CU_HOST_MAPPED) != 0;
}

/* As where host and device have one space of addresses. */
static gs_cu_result host_pointer(gs_cu_memory *p, void *host, unsigned flags)
{
    *p = (gs_cu_memory)host;
    return host == NULL || flags != 0;
}

static gs_cu_result host_unregister(void *p)
{
    host_streams_drain();
    return p == NULL;
}

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

/* ---- modules ---- */

static gs_cu_result module_load(gs_cu_handle *module, const void *path)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return 1;
    const host_lane **const lane = dlsym(library, "gs_gpu");
    if (lane == NULL)
        return 1;
    *lane = &gpu.lane;
    void (**const access)(const void *p, size_t bytes, bool write) = dlsym(library, "gs_access");
    if (access != NULL)
        *access = host_streams_access;
    *module = library;
    return 0;
}

static gs_cu_result module_unload(gs_cu_handle module)
{
    host_streams_drain();
    return dlclose(module);
}

/* A function, kept for as long as the process: modules are few. */
typedef struct host_function {
    void (*kernel)(const void *args);
    unsigned args_bytes;
    char name[48];
} host_function;

static gs_cu_result module_function(gs_cu_handle *function, gs_cu_handle module, const char *name)
{
    static host_function functions[FUNCTIONS];
    char bytes[64];
    host_function *f = functions;
    snprintf(bytes, sizeof(bytes), "%s_bytes", name);
    void *const kernel = dlsym(module, name);
    const unsigned *const size = dlsym(module, bytes);
    if (kernel == NULL || size == NULL)
        return 1;
    while (f < functions + FUNCTIONS && f->kernel != NULL && (memcmp(&f->kernel, &kernel, sizeof(kernel)) != 0 || strcmp(f->name, name) != 0))
        f++;
    if (f == functions + FUNCTIONS)
        return 1;
    memcpy(&f->kernel, &kernel, sizeof(kernel));
    f->args_bytes = *size;
    snprintf(f->name, sizeof(f->name), "%s", name);
    *function = f;
    return 0;
}

/* ---- launches ---- */

typedef struct host_launch {
    host_function f;
    unsigned grid_x, grid_y, shared_bytes;
    max_align_t args[];
} host_launch;

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

static void run_launch(const host_work *w)
{
    const host_launch *const l = w->more;
    gpu.kernel = l->f.kernel;
    gpu.args = l->args;
    gpu.lane.blocks_x = l->grid_x;
    gpu.lane.shared = malloc(l->shared_bytes); /* so that a sanitizer sees its end */
    for (unsigned y = 0; y < l->grid_y; y++)
        for (unsigned x = 0; x < l->grid_x; x++)
            run_block(x, y);
    free(gpu.lane.shared);
}

static gs_cu_result launch(gs_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                           unsigned block_z, unsigned shared_bytes, gs_cu_handle stream, void **args, void **extra)
{
    const host_function *const f = function;
    if (grid_x == 0 || grid_y == 0 || grid_z != 1 || block_x != GS_BLOCK_LANES || block_y != 1 || block_z != 1 || stream == NULL ||
        extra != NULL || grid_y > 65535 || shared_bytes > 48 * 1024)
        return 1;
    if (gpu.fail_launch > 0 && --gpu.fail_launch == 0)
        return 719;
    host_launch *const l = malloc(sizeof(*l) + f->args_bytes);
    host_work w = {.run = run_launch, .more = l};
    if (l == NULL)
        return GS_CU_OUT_OF_MEMORY;
    *l = (host_launch){.f = *f, .grid_x = grid_x, .grid_y = grid_y, .shared_bytes = shared_bytes};
    memcpy(l->args, args[0], f->args_bytes);
    memcpy(w.what, f->name, sizeof(w.what));
    gpu.counts.launches++;
    return host_streams_submit(stream, &w);
}

/* ---- products ---- */

typedef struct host_blas {
    gs_cu_handle stream;
} host_blas;

static gs_cu_result blas_create(gs_cu_handle *blas) { return (*blas = calloc(1, sizeof(host_blas))) == NULL; }

static gs_cu_result blas_stream(gs_cu_handle blas, gs_cu_handle stream)
{
    if (blas == NULL || stream == NULL)
        return 1;
    ((host_blas *)blas)->stream = stream;
    return 0;
}

static gs_cu_result blas_workspace(gs_cu_handle blas, void *memory, size_t bytes)
{
    need_device((gs_cu_memory)memory, bytes, "a workspace");
    return blas == NULL;
}

typedef struct host_product {
    int ta, tb, m, n, k, lda, ldb, ldc;
    float by, keep;
    const float *a, *b;
    float *to;
} host_product;

static size_t matrix_bytes(int rows, int cols, int ld) { return sizeof(float) * ((size_t)ld * (size_t)(cols - 1) + (size_t)rows); }

/* Column-major, as cuBLAS. */
static void run_product(const host_work *w)
{
    const host_product *const p = w->more;
    const size_t lda = (size_t)p->lda, ldb = (size_t)p->ldb, ldc = (size_t)p->ldc;
    host_streams_access(p->a, matrix_bytes(p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda), false);
    host_streams_access(p->b, matrix_bytes(p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb), false);
    host_streams_access(p->to, matrix_bytes(p->m, p->n, p->ldc), true);
    for (size_t j = 0; j < (size_t)p->n; j++)
        for (size_t i = 0; i < (size_t)p->m; i++) {
            float sum = 0;
            for (size_t q = 0; q < (size_t)p->k; q++)
                sum += (p->ta ? p->a[i * lda + q] : p->a[q * lda + i]) * (p->tb ? p->b[q * ldb + j] : p->b[j * ldb + q]);
            float *const z = &p->to[j * ldc + i];
            *z = p->by * sum + (p->keep == 0 ? 0 : p->keep * *z);
        }
}

static gs_cu_result gemm(gs_cu_handle blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda,
                         const void *b, int b_type, int ldb, const void *beta, void *c, int c_type, int ldc, int compute, int algorithm)
{
    const int type = compute == GS_CUBLAS_COMPUTE_FP32 ? 0 : compute == GS_CUBLAS_COMPUTE_TF32 ? 1 : compute == GS_CUBLAS_COMPUTE_BF16 ? 2 : 3;
    if (type == 3 || blas == NULL || a_type != 0 || b_type != 0 || c_type != 0 || algorithm != -1 || lda < (ta ? k : m) ||
        ldb < (tb ? n : k) || ldc < m)
        return 7;
    gpu.counts.products[type]++;
    need_device((gs_cu_memory)a, matrix_bytes(ta ? k : m, ta ? m : k, lda), "a product");
    need_device((gs_cu_memory)b, matrix_bytes(tb ? n : k, tb ? k : n, ldb), "a product");
    need_device((gs_cu_memory)c, matrix_bytes(m, n, ldc), "a product");
    host_product *const p = malloc(sizeof(*p));
    if (p == NULL)
        return 3;
    *p = (host_product){ta, tb, m, n, k, lda, ldb, ldc, *(const float *)alpha, *(const float *)beta, a, b, c};
    return host_streams_submit(((host_blas *)blas)->stream, &(host_work){.run = run_product, .what = "product", .more = p});
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
    .host_pointer = host_pointer,
    .host_unregister = host_unregister,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .fill = fill,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_wait = host_stream_wait,
    .stream_synchronize = host_stream_synchronize,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_synchronize = host_event_synchronize,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_function = module_function,
    .launch = launch,
    .compiler_version = host_compiler_version,
    .program_create = host_program_create,
    .program_destroy = host_program_destroy,
    .program_compile = host_program_compile,
    .image_bytes = host_image_bytes,
    .image = host_image,
    .log_bytes = host_log_bytes,
    .log = host_program_log,
    .blas_create = blas_create,
    .blas_destroy = drop_handle,
    .blas_stream = blas_stream,
    .blas_workspace = blas_workspace,
    .gemm = gemm,
};

const gs_cuda_driver *host_gpu_driver(const char *folder)
{
    host_compiler_folder(folder);
    if (gpu.memory_bytes == 0)
        gpu.memory_bytes = 1ull << 32;
    host_streams_door(allow);
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
