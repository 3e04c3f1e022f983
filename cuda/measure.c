/* Ceilings of a GPU, each a short run between two waits. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/philox.h"
#include "base/size.h"
#include "cuda/code.h"
#include "cuda/cuda_device.h"
#include "cuda/streams.h"

#define SECONDS 0.05 /* of a run, at least */
#define COPY_BYTES (256 * GS_MIB)
#define GATHER_EDGES (1u << 22)

/* Calls body() in rounds until they take long enough; seconds of one call. */
static gs_status time_calls(gs_cuda *c, gs_status (*body)(gs_cuda *c, void *context), void *context, double *seconds)
{
    gs_status st = body(c, context); /* the first one warms */
    if (st == GS_OK)
        st = gs_cuda_synchronize(c);
    for (uint32_t calls = 1; st == GS_OK; calls *= 2) {
        const double begin = gs_now();
        for (uint32_t i = 0; i < calls && st == GS_OK; i++)
            st = body(c, context);
        if (st == GS_OK)
            st = gs_cuda_synchronize(c);
        *seconds = (gs_now() - begin) / calls;
        if (*seconds * calls >= SECONDS || calls >= 1u << 20)
            break;
    }
    return st;
}

static gs_status take(gs_cuda *c, gs_cu_memory *p, uint64_t bytes)
{
    const gs_status st = gs_cuda_enter(c);
    return st != GS_OK ? st : gs_cuda_check(c, c->d->memory_alloc(p, bytes), "memory to measure in");
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
    gs_status st = take(c, &p.a, bytes);
    if (st != GS_OK)
        return st;
    p.w = p.a + gs_align_up(a, 256);
    p.to = p.w + gs_align_up(w, 256);
    /* 0x3f3f3f3f is 0.747: zeros would run faster than numbers do */
    if ((st = gs_cuda_check(c, c->d->fill(p.a, 0x3f, bytes, c->streams.compute), "filling memory")) == GS_OK)
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
    gs_status st = take(c, &k.from, 2 * COPY_BYTES);
    if (st != GS_OK)
        return st;
    k.to = k.from + COPY_BYTES;
    st = time_calls(c, copy_once, &k, &seconds);
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

/* Random indices, then starts: targets of DEGREE edges each. */
static gs_status fill_chunk(gs_cuda *c, const gs_edge_chunk *chunk, uint64_t table_rows)
{
    const gs_cu_memory index = (gs_cu_memory)chunk->index, start = (gs_cu_memory)chunk->start,
                       target = (gs_cu_memory)chunk->target;
    const uint32_t targets = GATHER_EDGES / DEGREE;
    uint32_t *const host = gs_malloc_array(GATHER_EDGES, sizeof(*host));
    gs_status st;
    if (host == NULL)
        return gs_fail(GS_ENOMEM, "device cuda: out of memory to measure sums");
    for (uint32_t i = 0; i < GATHER_EDGES; i += 4) {
        uint32_t word[4];
        gs_philox4x32(word, (const uint32_t[4]){i, 0, 0, 0}, (const uint32_t[2]){1, 2});
        for (uint32_t k = 0; k < 4; k++)
            host[i + k] = (uint32_t)(((uint64_t)word[k] * table_rows) >> 32);
    }
    st = gs_cuda_check(c, c->d->copy_in(index, host, GATHER_EDGES * 4ull, c->streams.compute), "copying");
    if (st == GS_OK)
        st = gs_cuda_synchronize(c);
    for (uint32_t t = 0; t <= targets; t++)
        host[t] = t * DEGREE;
    if (st == GS_OK)
        st = gs_cuda_check(c, c->d->copy_in(start, host, (targets + 1) * 4ull, c->streams.compute), "copying");
    if (st == GS_OK)
        st = gs_cuda_synchronize(c);
    for (uint32_t t = 0; t < targets; t++)
        host[t] = t;
    if (st == GS_OK)
        st = gs_cuda_check(c, c->d->copy_in(target, host, targets * 4ull, c->streams.compute), "copying");
    if (st == GS_OK)
        st = gs_cuda_synchronize(c);
    gs_free(host);
    return st;
}

static gs_status make_gather(gs_cuda *c, gather *g, gs_cu_handle *module, uint32_t width)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = open_memstream(&text, &bytes);
    gs_status st;
    if (out == NULL)
        return gs_fail(GS_ENOMEM, "device cuda: out of memory for kernels");
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
