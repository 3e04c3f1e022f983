#include "host_gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels/args.h"
#include "fibres.h"
#include "host_compiler.h"
#include "host_memory.h"
#include "host_nccl.h"
#include "host_products.h"
#include "host_streams.h"

/* kernels/gpu.h, for the host; the library that is made has the same. */
typedef struct host_lane {
    unsigned lane, block_x, block_y, blocks_x;
    float *shared;
    void (*block_sync)(void);
    void (*group_sync)(unsigned lanes);
    float (*group_exchange)(float value, unsigned by, unsigned lanes);
    void (*group_share)(unsigned *to, const unsigned *own, unsigned count, unsigned lanes);
    unsigned (*warp_votes)(int yes);
    void (*warp_multiply)(float c[4], const float a[4], const float b[2]);
} host_lane;

#define FUNCTIONS 16384u
#define MODULES 256u /* at a time */
#define SHARED_MOST (48u * 1024) /* bytes, a block */
#define SHARED_NUMBERS 16u /* most that a lane gives its group at once */

static struct {
    unsigned fail_launch;
    host_lane lane;
    /* the launch that runs */
    void (*kernel)(const void *args); /* every lane calls it */
    const void *args;
    /* barriers: how many lanes came, and how often all had come; groups by their first lane, then the block's */
    unsigned arrived[GS_BLOCK_LANES + 1], passed[GS_BLOCK_LANES + 1];
    float slot[2][GS_BLOCK_LANES]; /* what lanes exchange, in turns: who reads has not yet come to the barrier after
                                    * this one */
    unsigned number[2][GS_BLOCK_LANES][SHARED_NUMBERS]; /* the same, of numbers of edges */
    host_tile tile[2][GS_BLOCK_LANES / 32]; /* the same, of the products of warps */
} gpu;

/* ---- barriers ---- */

static void barrier(unsigned which, unsigned members)
{
    const unsigned mine = gpu.passed[which];
    if (++gpu.arrived[which] == members) {
        gpu.arrived[which] = 0;
        gpu.passed[which]++;
        return;
    }
    const bool fine = fibres_wait(&gpu.passed[which], mine);
    gpu.lane.lane = fibres_current();
    if (!fine) {
        fprintf(stderr, "host GPU: lane %u waits at a barrier that not all of %u lanes reach\n", gpu.lane.lane,
                members);
        abort();
    }
}

static void block_sync(void) { barrier(GS_BLOCK_LANES, GS_BLOCK_LANES); }

static void group_sync(unsigned lanes)
{
    if (lanes > 1)
        barrier(gpu.lane.lane / lanes * lanes, lanes);
}

static float group_exchange(float value, unsigned by, unsigned lanes)
{
    const unsigned lane = gpu.lane.lane;
    if (by >= lanes) {
        fprintf(stderr, "host GPU: lane %u exchanges with one outside its group of %u\n", lane, lanes);
        abort();
    }
    float *const slot = gpu.slot[gpu.passed[lane / lanes * lanes] % 2];
    slot[lane] = value;
    group_sync(lanes);
    return slot[lane ^ by];
}

/* One barrier for all shuffles of a batch: fibres are slow to switch. */
static void group_share(unsigned *to, const unsigned *own, unsigned count, unsigned lanes)
{
    const unsigned lane = gpu.lane.lane, first = lane / lanes * lanes, each = (count + lanes - 1) / lanes;
    if (each > SHARED_NUMBERS) {
        fprintf(stderr, "host GPU: lane %u shares %u numbers at once\n", lane, each);
        abort();
    }
    unsigned(*const slot)[SHARED_NUMBERS] = gpu.number[gpu.passed[first] % 2];
    memcpy(slot[lane], own, each * sizeof(*own));
    group_sync(lanes);
    for (unsigned b = 0; b < count; b++)
        to[b] = slot[first + b % lanes][b / lanes];
}

static unsigned warp_votes(int yes)
{
    const unsigned first = gpu.lane.lane / 32 * 32;
    float *const slot = gpu.slot[gpu.passed[first] % 2];
    unsigned votes = 0;
    slot[gpu.lane.lane] = yes ? 1.0f : 0.0f;
    group_sync(32);
    for (unsigned i = 0; i < 32; i++)
        votes |= slot[first + i] != 0 ? 1u << i : 0;
    return votes;
}

/* A tensor core: the lane that comes last computes for the whole warp. */
static void warp_multiply(float c[4], const float a[4], const float b[2])
{
    const unsigned lane = gpu.lane.lane, first = lane / 32 * 32;
    host_tile *const tile = &gpu.tile[gpu.passed[first] % 2][lane / 32];
    host_tile_put(tile, lane % 32, c, a, b);
    if (gpu.arrived[first] + 1 == 32)
        host_tile_multiply(tile);
    group_sync(32);
    host_tile_take(c, tile, lane % 32);
}

/* ---- modules ---- */

typedef struct host_module {
    void *library;
    const host_lane **lane; /* its one variable */
    int device;
} host_module;

/* A function, kept while there is room, so that one is known that is gone. */
typedef struct host_function {
    void (*kernel)(const void *args);
    const host_module *module;
    unsigned args_bytes;
    int device;
    bool gone; /* with its module */
    char name[48];
} host_function;

static host_module modules[MODULES]; /* a GPU that is lost takes none back */
static host_function functions[FUNCTIONS];

static gs_cu_result module_load(gs_cu_handle *module, const void *path)
{
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    host_module *m = modules;
    if (library == NULL) { /* the driver would read on behind what it is given */
        fprintf(stderr, "host GPU: an image that is none: %.100s\n", (const char *)path);
        abort();
    }
    while (m < modules + MODULES && m->library != NULL)
        m++;
    if (m == modules + MODULES || host_current_device() < 0)
        return 1;
    const host_lane **const lane = dlsym(library, "gs_gpu");
    if (lane == NULL)
        return 1;
    *lane = &gpu.lane;
    void (**const access)(const void *p, size_t bytes, bool write) = dlsym(library, "gs_access");
    const char **const own = dlsym(library, "gs_own");
    if (access != NULL && own != NULL) {
        *access = host_streams_access;
        own[0] = fibres_stacks();
        own[1] = (const char *)&gpu.lane;
        own[2] = (const char *)(&gpu.lane + 1);
    }
    *m = (host_module){library, lane, host_current_device()};
    *module = m;
    return 0;
}

static gs_cu_result module_unload(gs_cu_handle module)
{
    host_module *const m = module;
    host_streams_drain();
    for (host_function *f = functions; f < functions + FUNCTIONS && f->kernel != NULL; f++)
        f->gone |= f->module == m;
    const int r = dlclose(m->library);
    m->library = NULL;
    m->lane = NULL;
    return r;
}

static gs_cu_result module_function(gs_cu_handle *function, gs_cu_handle module, const char *name)
{
    char bytes[64];
    const host_module *const m = module;
    host_function *f = functions;
    snprintf(bytes, sizeof(bytes), "%s_bytes", name);
    void *const kernel = dlsym(m->library, name);
    const unsigned *const size = dlsym(m->library, bytes);
    if (kernel == NULL || size == NULL)
        return 1;
    while (f < functions + FUNCTIONS && f->kernel != NULL &&
           (memcmp(&f->kernel, &kernel, sizeof(kernel)) != 0 || f->module != m || f->device != m->device ||
            strcmp(f->name, name) != 0))
        f++;
    if (f == functions + FUNCTIONS) /* those of a module that is gone */
        for (f = functions; f < functions + FUNCTIONS && !f->gone; f++)
            ;
    if (f == functions + FUNCTIONS)
        return 1;
    memcpy(&f->kernel, &kernel, sizeof(kernel));
    f->module = m;
    f->gone = false;
    f->args_bytes = *size;
    f->device = m->device;
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
    gpu.lane.blocks_x = l->grid_x;
    if (host_streams_checks()) { /* they know what is there for a kernel's own */
        gpu.lane.shared = (float *)(void *)fibres_room();
        gpu.args = memcpy(fibres_room() + SHARED_MOST, l->args, l->f.args_bytes);
    } else {
        gpu.lane.shared = malloc(l->shared_bytes); /* so that a sanitizer sees its end */
        gpu.args = l->args;
    }
    for (unsigned y = 0; y < l->grid_y; y++)
        for (unsigned x = 0; x < l->grid_x; x++)
            run_block(x, y);
    if (!host_streams_checks())
        free(gpu.lane.shared);
}

static gs_cu_result launch(gs_cu_handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, gs_cu_handle stream, void **args,
                           void **extra)
{
    const host_function *const f = function;
    if (grid_x == 0 || grid_y == 0 || grid_z != 1 || block_x != GS_BLOCK_LANES || block_y != 1 || block_z != 1 ||
        stream == NULL || extra != NULL || grid_y > 65535 || shared_bytes > SHARED_MOST)
        return 1;
    if (f->gone || f->device != host_stream_device(stream) || f->device != host_current_device())
        return HOST_INVALID_HANDLE;
    if (gpu.fail_launch > 0 && --gpu.fail_launch == 0)
        return 719;
    host_launch *const l = malloc(sizeof(*l) + f->args_bytes);
    host_work w = {.run = run_launch, .more = l};
    if (l == NULL)
        return GS_CU_OUT_OF_MEMORY;
    *l = (host_launch){.f = *f, .grid_x = grid_x, .grid_y = grid_y, .shared_bytes = shared_bytes};
    memcpy(l->args, args[0], f->args_bytes);
    memcpy(w.what, f->name, sizeof(w.what));
    host_counts.launches++;
    return host_streams_submit(stream, &w);
}

/* ---- products ---- */

typedef struct host_blas {
    gs_cu_handle stream;
    void *workspace; /* NULL: its own */
    size_t workspace_bytes;
} host_blas;

static gs_cu_result blas_property(int which, int *value)
{
    *value = which == GS_CUBLAS_MAJOR ? host_cuda_release() / 1000 : host_cuda_release() % 1000 / 10;
    return 0;
}

static gs_cu_result blas_destroy(gs_cu_handle blas)
{
    free(blas);
    return blas == NULL;
}

static gs_cu_result blas_create(gs_cu_handle *blas)
{
    return host_current_device() < 0 || (*blas = calloc(1, sizeof(host_blas))) == NULL;
}

static gs_cu_result blas_stream(gs_cu_handle blas, gs_cu_handle stream)
{
    if (blas == NULL || stream == NULL)
        return 1;
    *(host_blas *)blas = (host_blas){.stream = stream}; /* its workspace is its own again, as cuBLAS has it */
    return 0;
}

static gs_cu_result blas_workspace(gs_cu_handle blas, void *memory, size_t bytes)
{
    if (blas == NULL || (uintptr_t)memory % 256 != 0)
        return 7;
    host_need_device((gs_cu_memory)memory, bytes, host_current_device(), "a workspace");
    ((host_blas *)blas)->workspace = memory;
    ((host_blas *)blas)->workspace_bytes = bytes;
    return 0;
}

static size_t matrix_bytes(int rows, int cols, int ld)
{
    return sizeof(float) * ((size_t)ld * (size_t)(cols - 1) + (size_t)rows);
}

static void run_product(const host_work *w)
{
    const host_product *const p = w->more;
    host_streams_access(p->a, matrix_bytes(p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda), false);
    host_streams_access(p->b, matrix_bytes(p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb), false);
    host_streams_access(p->to, matrix_bytes(p->m, p->n, p->ldc), true);
    host_product_run(p);
}

static gs_cu_result gemm(gs_cu_handle blas, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
                         int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c, int c_type,
                         int ldc, int compute, int algorithm)
{
    const int type = compute == GS_CUBLAS_COMPUTE_FP32   ? 0
                     : compute == GS_CUBLAS_COMPUTE_TF32 ? 1
                     : compute == GS_CUBLAS_COMPUTE_BF16 ? 2
                                                         : 3;
    if (type == 3 || blas == NULL || a_type != 0 || b_type != 0 || c_type != 0 || algorithm != -1 ||
        lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m)
        return 7;
    const int at = host_stream_device(((host_blas *)blas)->stream);
    if (at != host_current_device())
        return 13;
    const host_blas *const h = blas;
    if (h->workspace != NULL) /* it may write there */
        host_need_device((gs_cu_memory)h->workspace, h->workspace_bytes, at, "the workspace of a product");
    host_counts.products[type]++;
    host_need_device((gs_cu_memory)a, matrix_bytes(ta ? k : m, ta ? m : k, lda), at, "a product");
    host_need_device((gs_cu_memory)b, matrix_bytes(tb ? n : k, tb ? k : n, ldb), at, "a product");
    host_need_device((gs_cu_memory)c, matrix_bytes(m, n, ldc), at, "a product");
    host_product *const p = malloc(sizeof(*p));
    if (p == NULL)
        return 3;
    *p = (host_product){ta, tb, m, n, k, lda, ldb, ldc, *(const float *)alpha, *(const float *)beta, a, b, c};
    return host_streams_submit(((host_blas *)blas)->stream,
                               &(host_work){.run = run_product, .what = "product", .more = p});
}

/* One after the other. */
static gs_cu_result gemm_batched(gs_cu_handle blas, int ta, int tb, int m, int n, int k, const void *alpha,
                                 const void *a, int a_type, int lda, long long a_stride, const void *b, int b_type,
                                 int ldb, long long b_stride, const void *beta, void *c, int c_type, int ldc,
                                 long long c_stride, int batches, int compute, int algorithm)
{
    gs_cu_result r = batches < 1 ? 7 : 0;
    for (int i = 0; i < batches && r == 0; i++)
        r = gemm(blas, ta, tb, m, n, k, alpha, (const float *)a + i * a_stride, a_type, lda,
                 (const float *)b + i * b_stride, b_type, ldb, beta, (float *)c + i * c_stride, c_type, ldc, compute,
                 algorithm);
    return r;
}

/* ---- the table ---- */

/* Who is first changes nothing here: streams are as late as they may be. */
static gs_cu_result stream_create_first(gs_cu_handle *stream, unsigned flags, int priority)
{
    return priority < 0 ? host_stream_create(stream, flags) : 1;
}

static gs_cuda_driver driver = {
    .stream_create = host_stream_create,
    .stream_create_first = stream_create_first,
    .stream_destroy = host_stream_destroy,
    .stream_wait = host_stream_wait,
    .stream_synchronize = host_stream_synchronize,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_query = host_event_query,
    .event_synchronize = host_event_synchronize,
    .event_elapsed = host_event_elapsed,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_function = module_function,
    .launch = launch,
    .compiler_version = host_compiler_version,
    .program_create = host_program_create,
    .program_destroy = host_program_destroy,
    .program_compile = host_program_compile,
    .image_bytes = host_image_bytes,
    .intermediate_bytes = host_image_bytes,
    .intermediate = host_image,
    .architecture_count = host_architecture_count,
    .architectures = host_architectures,
    .image = host_image,
    .log_bytes = host_log_bytes,
    .log = host_program_log,
    .blas_property = blas_property,
    .blas_create = blas_create,
    .blas_destroy = blas_destroy,
    .blas_stream = blas_stream,
    .blas_workspace = blas_workspace,
    .gemm = gemm,
    .gemm_batched = gemm_batched,
};

static bool with_nccl;

const gs_cuda_driver *host_gpu_driver(const char *folder)
{
    gs_cuda_driver whole = driver;
    host_compiler_folder(folder);
    host_memory_fill(&whole);
    if (with_nccl)
        host_nccl_fill(&whole);
    gpu.lane.block_sync = block_sync;
    gpu.lane.group_sync = group_sync;
    gpu.lane.group_exchange = group_exchange;
    gpu.lane.group_share = group_share;
    gpu.lane.warp_votes = warp_votes;
    gpu.lane.warp_multiply = warp_multiply;
    return host_gpu_locked(&whole);
}

void host_gpu_fail_launch(unsigned n) { gpu.fail_launch = n; }
void host_gpu_have_nccl(bool have) { with_nccl = have; }
