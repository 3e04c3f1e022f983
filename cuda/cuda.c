/* The CUDA device: opening and closing, and its tables of functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/philox.h"
#include "base/size.h"
#include "cuda/code.h"
#include "cuda/cuda_device.h"
#include "cuda/file_reads.h"
#include "cuda/gpu_links.h"
#include "cuda/gpu_params.h"
#include "cuda/launch.h"
#include "cuda/state.h"
#include "cuda/streams.h"
#include "device/device_table.h"

/* ---- ceilings, each a short run between two waits ---- */

#define SECONDS 0.05 /* of a run, at least */
#define COPY_BYTES (256 * GS_MIB)
#define GATHER_EDGES (1u << 22)

/* Calls body() in rounds until they take long enough; seconds of one call. */
static gs_status time_calls(gs_cuda *c, gs_status (*body)(gs_cuda *c, void *context), void *context, double *seconds)
{
    GS_TRY(body(c, context)); /* the first one warms */
    GS_TRY(gs_cuda_synchronize(c));
    for (uint32_t calls = 1;; calls *= 2) {
        const double begin = gs_now();
        for (uint32_t i = 0; i < calls; i++)
            GS_TRY(body(c, context));
        GS_TRY(gs_cuda_synchronize(c));
        *seconds = (gs_now() - begin) / calls;
        if (*seconds * calls >= SECONDS || calls >= 1u << 20)
            return GS_OK;
    }
}

static gs_status take(gs_cuda *c, gs_cu_memory *p, uint64_t bytes)
{
    GS_TRY(gs_cuda_enter(c));
    return gs_cuda_check(c, c->d->memory_alloc(p, bytes), "memory to measure in");
}

typedef struct product {
    uint32_t rows, in, out;
    gs_cu_memory a, w, to;
} product;

static gs_status multiply_once(gs_cuda *c, void *context)
{
    const product *const p = context;
    const float one = 1.0f, zero = 0.0f;
    return c->d->gemm(c->blas, GS_CUBLAS_T, GS_CUBLAS_N, (int)p->out, (int)p->rows, (int)p->in, &one,
                      (const void *)p->w, GS_CUBLAS_F32, (int)p->in, (const void *)p->a, GS_CUBLAS_F32, (int)p->in,
                      &zero, (void *)p->to, GS_CUBLAS_F32, (int)p->out, c->compute_type,
                      GS_CUBLAS_DEFAULT_ALGORITHM) == 0
               ? GS_OK
               : gs_fail(GS_EDEVICE, "device cuda: cuBLAS could not multiply");
}

gs_status gs_cuda_measure_gemm(void *context, uint32_t rows, uint32_t in, uint32_t out, double *flops_per_second)
{
    gs_cuda *const c = context;
    product p = {.rows = rows, .in = in, .out = out};
    const uint64_t a = (uint64_t)rows * in * sizeof(float), w = (uint64_t)out * in * sizeof(float);
    const uint64_t bytes = gs_align_up(a, 256) + gs_align_up(w, 256) + (uint64_t)rows * out * sizeof(float);
    double seconds = 0;

    GS_TRY(take(c, &p.a, bytes));
    p.w = p.a + gs_align_up(a, 256);
    p.to = p.w + gs_align_up(w, 256);
    /* 0x3f3f3f3f is 0.747: zeros would run faster than numbers do */
    gs_status st = gs_cuda_check(c, c->d->fill(p.a, 0x3f, bytes, c->streams.compute), "filling memory");
    if (st == GS_OK)
        st = time_calls(c, multiply_once, &p, &seconds);
    c->d->memory_free(p.a);
    if (st == GS_OK)
        *flops_per_second = 2.0 * rows * in * out / seconds;
    return st;
}

typedef struct copy {
    gs_cu_memory from, to;
} copy;

static gs_status copy_once(gs_cuda *c, void *context)
{
    const copy *const k = context;
    return gs_cuda_check(c, c->d->copy_within(k->to, k->from, COPY_BYTES, c->streams.compute), "copying");
}

gs_status gs_cuda_measure_copy(void *context, double *bytes_per_second)
{
    gs_cuda *const c = context;
    copy k = {0, 0};
    double seconds = 0;

    GS_TRY(take(c, &k.from, 2 * COPY_BYTES));
    k.to = k.from + COPY_BYTES;
    const gs_status st = time_calls(c, copy_once, &k, &seconds);
    c->d->memory_free(k.from);
    if (st == GS_OK)
        *bytes_per_second = 2.0 * (double)COPY_BYTES / seconds; /* read and written */
    return st;
}

typedef struct gather {
    gs_cu_handle function;
    gs_edge_kernel k;
    gs_edge_args a;
} gather;

static gs_status gather_once(gs_cuda *c, void *context)
{
    gather *const g = context;
    return gs_cuda_launch(c, g->function, gs_div_up(g->a.chunk[0].targets, GS_BLOCK_LANES / g->k.lanes), g->k.slices,
                          0, &g->a, g->k.name);
}

#define DEGREE 32u

/* From `host`, which may change then. */
static gs_status bring(gs_cuda *c, const void *to, const uint32_t *host, uint64_t numbers)
{
    GS_TRY(gs_cuda_check(c, c->d->copy_in((gs_cu_memory)to, host, numbers * sizeof(*host), c->streams.compute),
                         "copying"));
    return gs_cuda_synchronize(c);
}

/* Random indices, then starts: targets of DEGREE edges each. */
static gs_status fill_chunk(gs_cuda *c, const gs_edge_chunk *chunk, uint64_t table_rows)
{
    const uint32_t targets = GATHER_EDGES / DEGREE;
    GS_FREED uint32_t *const host = gs_malloc_array(GATHER_EDGES, sizeof(*host));
    GS_NEED(host != NULL, "device cuda: out of memory to measure sums");
    for (uint32_t i = 0; i < GATHER_EDGES; i += 4) {
        uint32_t word[4];
        gs_philox4x32(word, (const uint32_t[4]){i, 0, 0, 0}, (const uint32_t[2]){1, 2});
        for (uint32_t k = 0; k < 4; k++)
            host[i + k] = (uint32_t)(((uint64_t)word[k] * table_rows) >> 32);
    }
    GS_TRY(bring(c, chunk->index, host, GATHER_EDGES));
    for (uint32_t t = 0; t <= targets; t++)
        host[t] = t * DEGREE;
    GS_TRY(bring(c, chunk->start, host, targets + 1));
    for (uint32_t t = 0; t < targets; t++)
        host[t] = t;
    return bring(c, chunk->target, host, targets);
}

static gs_status make_gather(gs_cuda *c, gather *g, gs_cu_handle *module, uint32_t width)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);
    gs_status st;
    GS_NEED(out != NULL, "device cuda: out of memory for kernels");
    gs_generate_rows(out, &g->k, &(gs_row_sums){.width = width, .types = 1});
    fclose(out);
    if ((st = gs_cuda_enter(c)) == GS_OK && (st = gs_cuda_load(c, module, text)) == GS_OK)
        st = gs_cuda_check(c, c->d->module_function(&g->function, *module, g->k.name), g->k.name);
    free(text); /* open_memstream's */
    return st;
}

gs_status gs_cuda_measure_gather(void *context, uint64_t table_rows, uint32_t width, double *bytes_per_second)
{
    gs_cuda *const c = context;
    gather g = {.function = NULL};
    gs_cu_handle module = NULL;
    gs_cu_memory at = 0;
    const uint32_t targets = GATHER_EDGES / DEGREE;
    const uint64_t table = gs_align_up(table_rows * width * sizeof(float), 256),
                   acc = gs_align_up(4ull * targets * width, 256);
    const uint64_t index = 4ull * GATHER_EDGES, start = gs_align_up(4ull * (targets + 1), 256);
    double seconds = 0;
    gs_status st = make_gather(c, &g, &module, width);

    if (st == GS_OK)
        st = take(c, &at, table + acc + index + 2 * start);
    if (st != GS_OK)
        goto done;
    g.a = (gs_edge_args){.chunk = {{.targets = targets, .edges = GATHER_EDGES, .piece_edges = GATHER_EDGES}},
                         .all = {.index_bytes = 4}, .chunks = 1, .owns = g.k.owns};
    gs_edge_chunk *const chunk = &g.a.chunk[0];
    g.a.all.in[0] = (const float *)at;
    g.a.own[0] = (float *)(at + table);
    chunk->index = (const void *)(at + table + acc);
    chunk->start = (const gs_u32 *)(at + table + acc + index);
    chunk->target = (const void *)(at + table + acc + index + start);
    if ((st = gs_cuda_check(c, c->d->fill(at, 0, table + acc, c->streams.compute), "filling memory")) == GS_OK &&
        (st = fill_chunk(c, chunk, table_rows)) == GS_OK)
        st = time_calls(c, gather_once, &g, &seconds);
    if (st == GS_OK)
        *bytes_per_second = (double)GATHER_EDGES * width * sizeof(float) / seconds;
done:
    if (at != 0)
        c->d->memory_free(at);
    if (module != NULL)
        c->d->module_unload(module);
    return st;
}

#define LEAST_MAJOR 7 /* warp barriers and shuffles by mask, as kernels/gpu.h uses them */

uint64_t gs_cuda_last_launch(const void *context) { return ((const gs_cuda *)context)->streams.ticket; }

gs_device_copied gs_cuda_take_copied(void *context)
{
    gs_cuda *const c = context;
    const gs_device_copied copied = c->streams.copied;
    c->streams.copied = (gs_device_copied){0, 0};
    return copied;
}

gs_status gs_cuda_poll(void *context, uint64_t launch, bool wait, bool *done)
{
    gs_cuda *const c = context;
    gs_status st = gs_cuda_enter(c);
    while (!wait && c->streams.waited < launch && st == GS_OK) {
        const gs_cu_result r = c->d->event_query(c->streams.finished[(c->streams.waited + 1) % GS_CUDA_FLIGHT]);
        if (r == GS_CU_NOT_READY)
            break;
        if ((st = gs_cuda_check(c, r, "a launch")) == GS_OK)
            gs_cuda_note_done(c);
    }
    if (wait && st == GS_OK)
        st = gs_cuda_wait(c, launch);
    *done = c->streams.waited >= launch;
    return st;
}

/* ---- opening ---- */

static void cuda_close(void *context)
{
    gs_cuda *const c = context;
    const gs_cuda_driver *const d = c->d;

    if (c->context != NULL) {
        /* a lost GPU answers all calls with errors; what the host holds is freed all the same */
        gs_cuda_come_last(c);
        gs_cuda_give_memory(c, NULL, 0);
        gs_cuda_drop_program(c);
        if (c->blas != NULL)
            d->blas_destroy(c->blas);
        if (c->fixed_module != NULL)
            d->module_unload(c->fixed_module);
        gs_cuda_drop_streams(c);
        d->context_release(c->device);
        gs_cuda_aside(c);
    }
    gs_free(c);
}

static const char *cuda_name(const void *context) { return ((const gs_cuda *)context)->name; }

const char *gs_cuda_unpinned(const void *context)
{
    const gs_cuda *const c = context;
    return c->unpinned[0] != 0 ? c->unpinned : NULL;
}

#define ASKING_MEMORY "asking for its memory"

gs_status gs_cuda_free_memory(const void *context, uint64_t *bytes)
{
    const gs_cuda *const c = context;
    size_t free_bytes = 0, total = 0;

    GS_TRY(gs_cuda_enter(c));
    GS_TRY(gs_cuda_check(c, c->d->memory_info(&free_bytes, &total), ASKING_MEMORY));
    *bytes = free_bytes;
    return GS_OK;
}

static gs_status find_gpu(gs_cuda *c, unsigned ordinal)
{
    const gs_cuda_driver *const d = c->d;
    char gpu[96] = "";
    char as[32] = ""; /* what kernels are for, where the compiler does not know the GPU */
    int count = 0;

    const gs_cu_result r = d->init(0);
    if (r == GS_CU_NO_DEVICE || (r == 0 && d->device_count(&count) == 0 && count == 0))
        return gs_fail(GS_EUNSUPPORTED, "device cuda: there is no GPU that the driver can use; use .device cpu");
    GS_TRY(gs_cuda_check(c, r, "starting the driver"));
    GS_TRY(gs_cuda_check(c, d->device_count(&count), "counting the GPUs"));
    if (ordinal >= (unsigned)count)
        return gs_fail(GS_EUNSUPPORTED, "device cuda:%u: there are %d GPUs, from cuda:0 on", ordinal, count);
    GS_TRY(gs_cuda_check(c, d->device_get(&c->device, (int)ordinal), "finding the GPU"));
    d->device_attribute(&c->major, GS_CU_MAJOR, c->device);
    d->device_attribute(&c->minor, GS_CU_MINOR, c->device);
    d->device_attribute(&c->processors, GS_CU_PROCESSORS, c->device);
    d->device_name(gpu, (int)sizeof(gpu), c->device);
    if (c->major < LEAST_MAJOR)
        return gs_fail(GS_EUNSUPPORTED, "device cuda:%u: %s has compute capability %d.%d; at least %d.0 is needed",
                       ordinal, gpu, c->major, c->minor, LEAST_MAJOR);
    const gs_cuda_target target = gs_cuda_target_of(d, c->major, c->minor);
    if (target.architecture != c->major * 10 + c->minor)
        snprintf(as, sizeof(as), " as %s_%d", target.intermediate ? "compute" : "sm", target.architecture);
    snprintf(c->name, sizeof(c->name), "cuda:%u (%s, sm_%d%d%s)", ordinal, gpu, c->major, c->minor, as);
    return GS_OK;
}

static gs_status ask_memory(gs_cuda *c)
{
    size_t free_bytes = 0, total = 0;
    const gs_status st = gs_cuda_check(c, c->d->memory_info(&free_bytes, &total), ASKING_MEMORY);
    c->total_bytes = c->budget_bytes = total;
    return st;
}

void gs_cuda_set_budget(void *context, uint64_t bytes)
{
    gs_cuda *const c = context;
    c->budget_bytes = bytes == 0 ? c->total_bytes : GS_MIN(bytes, c->total_bytes);
}

static gs_status make_blas(gs_cuda *c)
{
    gs_status st;
    gs_cu_result r = c->d->blas_create(&c->blas);
    r = r != 0 ? r : c->d->blas_stream(c->blas, c->streams.compute);
    if (r == 0)
        return GS_OK;
    return (st = gs_cuda_synchronize(c)) != GS_OK
               ? st
               : gs_fail(GS_EDEVICE, "device cuda: cuBLAS does not start on this GPU (its status %d)", r);
}

static const int compute_types[] = {[GS_MATMUL_FP32] = GS_CUBLAS_COMPUTE_FP32,
                                    [GS_MATMUL_TF32] = GS_CUBLAS_COMPUTE_TF32,
                                    [GS_MATMUL_BF16] = GS_CUBLAS_COMPUTE_BF16};

#define X(type, name, ...) .name = gs_cuda_##name,
static const gs_device_compute compute = {GS_DEVICE_OF_COMPUTE(X)};
static const gs_device_ceilings ceilings = {GS_DEVICE_OF_CEILINGS(X)};
static const gs_device_own_memory memory = {GS_DEVICE_OF_MEMORY(X)};
static const gs_device_links links = {GS_DEVICE_OF_LINKS(X)};
static const gs_device_params params = {GS_DEVICE_OF_PARAMS(X)};
static const gs_device_reads reads = {GS_DEVICE_OF_READS(X)};
#undef X

static const gs_device_ops ops = {
    .close = cuda_close,
    .name = cuda_name,
    .compute = &compute,
    .ceilings = &ceilings,
    .memory = &memory,
    .links = &links,
    .params = &params,
    .reads = &reads,
};

/* Takes the GPU that was found, and loads what every program needs there. */
static gs_status make_context(gs_cuda *c)
{
    gs_cuda_resident r = {.before = gs_process_resident_bytes()};

    GS_TRY(gs_cuda_check(c, c->d->context_retain(&c->context, c->device), "taking the GPU"));
    GS_TRY(gs_cuda_come(c));
    GS_TRY(ask_memory(c));
    GS_TRY(gs_cuda_make_streams(c));
    GS_TRY(make_blas(c));
    r.made = gs_process_resident_bytes();
    GS_TRY(gs_cuda_load_fixed(c));
    r.compiled = gs_process_resident_bytes();
    gs_cuda_note_resident(c->device, &r);
    return GS_OK;
}

static gs_status cuda_open(const gs_device_ops **out, void **context, const gs_device_choice *choice)
{
    const gs_cuda_driver *driver = NULL;
    gs_cuda *c;
    gs_status st;

    GS_TRY(gs_cuda_driver_open(&driver));
    GS_NEED((c = gs_calloc(1, sizeof(*c))) != NULL, "device cuda: out of memory");
    c->d = driver;
    const char *const portion = getenv("GS_CUDA_PORTION_EDGES");
    if (portion != NULL)
        c->portion_edges = (uint32_t)strtoul(portion, NULL, 10);
    c->compute_type = compute_types[choice->matmul];
    if ((st = find_gpu(c, choice->number)) != GS_OK || (st = make_context(c)) != GS_OK) {
        if (c->context != NULL)
            gs_cuda_aside(c);
        cuda_close(c);
        return st;
    }
    *out = &ops;
    *context = c;
    return GS_OK;
}

const gs_device_kind gs_cuda_kind = {.word = "cuda", .open = cuda_open};
