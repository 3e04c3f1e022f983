/* The CUDA device: opening, and launches that every program has. */
#include "cuda/cuda_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

#define LEAST_MAJOR 7 /* warp barriers and shuffles by mask, as kernels/gpu.h uses them */

static const char *const fixed_names[GS_CUDA_FIXED_COUNT] = {
    [GS_CUDA_ADD] = "gs_add",
    [GS_CUDA_BEGIN] = "gs_begin",
    [GS_CUDA_FINISH_MOST] = "gs_finish_most",
    [GS_CUDA_FINISH_ATTEND] = "gs_finish_attend",
    [GS_CUDA_FINISH_LSE] = "gs_finish_lse",
    [GS_CUDA_REGROUP] = "gs_regroup_rows",
    [GS_CUDA_ROW_SUMS] = "gs_row_sums",
    [GS_CUDA_MIX_PART] = "gs_mix_parts",
    [GS_CUDA_COLSUM_PART] = "gs_colsum_parts",
    [GS_CUDA_COLSUM_TOTAL] = "gs_colsum_total",
    [GS_CUDA_MOMENTS_PART] = "gs_moments_parts",
    [GS_CUDA_MOMENTS_TOTAL] = "gs_moments_total",
    [GS_CUDA_STATISTIC] = "gs_statistic",
    [GS_CUDA_LOSS] = "gs_loss",
    [GS_CUDA_LOSS_TOTAL] = "gs_loss_total",
    [GS_CUDA_STEP] = "gs_step",
};

/* CUresult after which the context is of no use, by what ended it (cuda.h has their names). */
static bool is_kernel_failure(gs_cu_result r) { return r == 700 || r == 702 || r == 710 || (r >= 714 && r <= 719); }
static bool is_lost(gs_cu_result r) { return r == 46 || r == 214 || r == 220 || r == 226 || r == 709 || r == 999; }

gs_status gs_cuda_check(const gs_cuda *c, gs_cu_result r, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (r == 0)
        return GS_OK;
    if (c->d->error_name(r, &name) != 0 || name == NULL)
        name = "unknown error";
    if (c->d->error_text(r, &text) != 0 || text == NULL)
        text = "";
    if (r == GS_CU_OUT_OF_MEMORY)
        return gs_fail(GS_ENOMEM, "device cuda:%d: %s: the GPU is out of memory (%s); give less .device_memory",
                       c->device, what, name);
    if (is_kernel_failure(r)) /* kernels are not waited for, so others may hear of it first */
        return gs_fail(GS_EDEVICE, "device cuda:%d: a kernel failed, at the latest at %s: %s (%s)", c->device, what,
                       text, name);
    if (is_lost(r))
        return gs_fail(GS_EDEVICE, "device cuda:%d: the GPU is lost, at %s: %s (%s); the kernel's log may say why",
                       c->device, what, text, name);
    return gs_fail(GS_EDEVICE, "device cuda:%d: %s: %s (%s)", c->device, what, text, name);
}

/* What this thread's calls are about; a device that closes leaves nothing behind. */
static _Thread_local gs_cu_handle current;

gs_status gs_cuda_enter(const gs_cuda *c)
{
    if (current == c->context)
        return GS_OK;
    const gs_status st = gs_cuda_check(c, c->d->context_set(c->context), "turning to the GPU");
    current = st == GS_OK ? c->context : NULL;
    return st;
}

void gs_cuda_left(void) { current = NULL; }

static uint64_t cuda_last_launch(const void *context) { return ((const gs_cuda *)context)->ticket; }

static gs_device_copied cuda_take_copied(void *context)
{
    gs_cuda *const c = context;
    const gs_device_copied copied = c->copied_bytes;
    c->copied_bytes = (gs_device_copied){0, 0};
    return copied;
}

static gs_status cuda_poll(void *context, uint64_t launch, bool wait, bool *done)
{
    gs_cuda *const c = context;
    gs_status st = gs_cuda_enter(c);
    while (!wait && c->waited < launch && st == GS_OK) {
        const gs_cu_result r = c->d->event_query(c->finished[(c->waited + 1) % GS_CUDA_FLIGHT]);
        if (r == GS_CU_NOT_READY)
            break;
        st = gs_cuda_check(c, r, "a launch");
        c->waited += st == GS_OK;
    }
    if (wait && st == GS_OK)
        st = gs_cuda_wait(c, launch);
    *done = c->waited >= launch;
    return st;
}

/* ---- small launches ---- */

static gs_status cuda_add_own(void *context, const gs_own_launch *l)
{
    gs_cuda *const c = context;
    gs_add_args a = {.acc = l->acc, .src = l->own, .count = l->rows * l->width, .scale = l->scale, .width = l->width,
                     .how = l->dtype == GS_BF16  ? GS_ADD_BF16
                            : l->dtype == GS_F16 ? GS_ADD_F16
                                                 : GS_ADD_F32};
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_ADD], gs_cuda_blocks(a.count), 1, 0, &a, "gs_add");
    return gs_cuda_end(c, st);
}

static gs_status cuda_copy(void *context, void *to, const void *from, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_check(c, c->d->copy_within((gs_cu_memory)to, (gs_cu_memory)from, bytes, c->compute), "copying");
    return gs_cuda_end(c, st);
}

static gs_status cuda_zero(void *context, void *memory, uint64_t bytes)
{
    gs_cuda *const c = context;
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_check(c, c->d->fill((gs_cu_memory)memory, 0, bytes, c->compute), "clearing memory");
    return gs_cuda_end(c, st);
}

static float neutral_of(gs_sum_kind kind)
{
    return kind == GS_SUM_MAX ? -INFINITY : kind == GS_SUM_MIN ? INFINITY : 0.0f;
}

/* What kernels are told of a sum's memory. */
static gs_frame_args frame_of(gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows, uint32_t width,
                              uint32_t heads)
{
    const bool attends = kind == GS_SUM_ATTEND;
    return (gs_frame_args){.acc = sum->acc,
                           .maximum = attends ? sum->maximum : NULL,
                           .norm = attends ? sum->norm : NULL,
                           .count = (uint64_t)rows * width,
                           .heads_count = attends ? (uint64_t)rows * heads : 0,
                           .each = attends ? width / heads : 1,
                           .neutral = neutral_of(kind)};
}

static gs_status cuda_begin_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                                uint32_t width, uint32_t heads)
{
    gs_cuda *const c = context;
    gs_frame_args a = frame_of(kind, sum, rows, width, heads);
    gs_status st = gs_cuda_begin(c);
    if (st == GS_OK)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_BEGIN], gs_cuda_blocks(a.count), 1, 0, &a, "gs_begin");
    return gs_cuda_end(c, st);
}

static gs_status cuda_finish_sum(void *context, gs_sum_kind kind, const gs_accumulator *sum, uint32_t rows,
                                 uint32_t width, uint32_t heads)
{
    gs_cuda *const c = context;
    gs_frame_args a = frame_of(kind, sum, rows, width, heads);
    gs_status st;

    if (kind != GS_SUM_MAX && kind != GS_SUM_MIN && kind != GS_SUM_ATTEND)
        return GS_OK;
    st = gs_cuda_begin(c);
    if (st == GS_OK && kind != GS_SUM_ATTEND)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_FINISH_MOST], gs_cuda_blocks(a.count), 1, 0, &a, "gs_finish_most");
    if (st == GS_OK && kind == GS_SUM_ATTEND)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_FINISH_ATTEND], gs_cuda_blocks(a.count), 1, 0, &a, "gs_finish_attend");
    if (st == GS_OK && kind == GS_SUM_ATTEND)
        st = gs_cuda_launch(c, c->fixed[GS_CUDA_FINISH_LSE], gs_cuda_blocks(a.heads_count), 1, 0, &a, "gs_finish_lse");
    return gs_cuda_end(c, st);
}

/* ---- opening ---- */

static void cuda_close(void *context)
{
    gs_cuda *const c = context;
    const gs_cuda_driver *const d = c->d;

    if (c->context != NULL) {
        current = NULL;
        /* a lost GPU answers all calls with errors; what the host holds is freed all the same */
        (void)d->context_set(c->context);
        gs_cuda_give_memory(c);
        gs_cuda_drop_program(c);
        if (c->blas != NULL)
            d->blas_destroy(c->blas);
        if (c->fixed_module != NULL)
            d->module_unload(c->fixed_module);
        for (uint32_t i = 0; i < GS_CUDA_FLIGHT; i++)
            if (c->finished[i] != NULL)
                d->event_destroy(c->finished[i]);
        gs_cu_handle *const stream[] = {&c->in, &c->compute, &c->out};
        for (size_t k = 0; k < GS_ARRAY_LEN(stream); k++)
            if (*stream[k] != NULL)
                d->stream_destroy(*stream[k]);
        d->context_release(c->device);
        current = NULL;
    }
    gs_free(c);
}

static const char *cuda_name(const void *context) { return ((const gs_cuda *)context)->name; }

static bool cuda_unified(const void *context)
{
    (void)context;
    return false;
}

static uint64_t cuda_free_memory(const void *context)
{
    const gs_cuda *const c = context;
    size_t free_bytes = 0, total = 0;
    return gs_cuda_enter(c) == GS_OK && c->d->memory_info(&free_bytes, &total) == 0 ? free_bytes : 0;
}

static gs_status find_gpu(gs_cuda *c, unsigned ordinal)
{
    const gs_cuda_driver *const d = c->d;
    char gpu[96] = "";
    int count = 0;
    gs_status st;

    const gs_cu_result r = d->init(0);
    if (r == GS_CU_NO_DEVICE || (r == 0 && d->device_count(&count) == 0 && count == 0))
        return gs_fail(GS_EUNSUPPORTED, "device cuda: there is no GPU that the driver can use; use .device cpu");
    if ((st = gs_cuda_check(c, r, "starting the driver")) != GS_OK ||
        (st = gs_cuda_check(c, d->device_count(&count), "counting the GPUs")) != GS_OK)
        return st;
    if (ordinal >= (unsigned)count)
        return gs_fail(GS_EUNSUPPORTED, "device cuda:%u: there are %d GPUs, from cuda:0 on", ordinal, count);
    if ((st = gs_cuda_check(c, d->device_get(&c->device, (int)ordinal), "finding the GPU")) != GS_OK)
        return st;
    d->device_attribute(&c->major, GS_CU_MAJOR, c->device);
    d->device_attribute(&c->minor, GS_CU_MINOR, c->device);
    d->device_attribute(&c->processors, GS_CU_PROCESSORS, c->device);
    d->device_name(gpu, (int)sizeof(gpu), c->device);
    if (c->major < LEAST_MAJOR)
        return gs_fail(GS_EUNSUPPORTED, "device cuda:%u: %s has compute capability %d.%d; at least %d.0 is needed",
                       ordinal, gpu, c->major, c->minor, LEAST_MAJOR);
    snprintf(c->name, sizeof(c->name), "cuda:%u (%s, sm_%d%d)", ordinal, gpu, c->major, c->minor);
    return GS_OK;
}

static gs_status make_streams(gs_cuda *c)
{
    const gs_cuda_driver *const d = c->d;
    gs_cu_handle *const stream[] = {&c->in, &c->compute, &c->out};
    gs_status st = GS_OK;
    for (size_t i = 0; i < GS_ARRAY_LEN(stream) && st == GS_OK; i++)
        st = gs_cuda_check(c, d->stream_create(stream[i], GS_CU_STREAM_NON_BLOCKING), "making a stream");
    for (uint32_t i = 0; i < GS_CUDA_FLIGHT && st == GS_OK; i++)
        st = gs_cuda_check(c, d->event_create(&c->finished[i], GS_CU_EVENT_DISABLE_TIMING), "making an event");
    if (st != GS_OK)
        return st;
    gs_cu_result r = d->blas_create(&c->blas);
    r = r != 0 ? r : d->blas_stream(c->blas, c->compute);
    if (r != 0)
        st = (st = gs_cuda_synchronize(c)) != GS_OK
                 ? st
                 : gs_fail(GS_EDEVICE, "device cuda: cuBLAS does not start on this GPU (its status %d)", r);
    return st;
}

gs_status gs_cuda_load(gs_cuda *c, gs_cu_handle *module, const char *text)
{
    const gs_status st = gs_cuda_module(module, c->d, c->major, c->minor, text);
    /* it may have failed of what was before */
    const gs_status before = st == GS_EDEVICE ? gs_cuda_synchronize(c) : GS_OK;
    return before != GS_OK ? before : st;
}

static gs_status load_fixed(gs_cuda *c)
{
    gs_status st = gs_cuda_load(c, &c->fixed_module, gs_cuda_fixed_text);
    for (int i = 0; i < GS_CUDA_FIXED_COUNT && st == GS_OK; i++)
        st = gs_cuda_check(c, c->d->module_function(&c->fixed[i], c->fixed_module, fixed_names[i]), fixed_names[i]);
    return st;
}

static gs_status set_matmul(gs_cuda *c, const char *matmul)
{
    if (matmul == NULL || strcmp(matmul, "fp32") == 0)
        c->compute_type = GS_CUBLAS_COMPUTE_FP32;
    else if (strcmp(matmul, "tf32") == 0)
        c->compute_type = GS_CUBLAS_COMPUTE_TF32;
    else if (strcmp(matmul, "bf16") == 0)
        c->compute_type = GS_CUBLAS_COMPUTE_BF16;
    else
        return gs_fail(GS_EINVAL, ".matmul %s: use fp32, tf32 or bf16", matmul);
    return GS_OK;
}

static const gs_device_ops cuda_ops = {
    .close = cuda_close,
    .name = cuda_name,
    .unified = cuda_unified,
    .scratch_bytes = gs_cuda_scratch_bytes,
    .prepare = gs_cuda_prepare,
    .run_vertex = gs_cuda_run_vertex,
    .run_edges = gs_cuda_run_edges,
    .run_edge_program = gs_cuda_run_edge_program,
    .run_sequence = gs_cuda_run_sequence,
    .run_sequence_back = gs_cuda_run_sequence_back,
    .copy = cuda_copy,
    .begin_sum = cuda_begin_sum,
    .finish_sum = cuda_finish_sum,
    .finish_statistic = gs_cuda_finish_statistic,
    .add_own = cuda_add_own,
    .zero = cuda_zero,
    .measure_gemm = gs_cuda_measure_gemm,
    .measure_gather = gs_cuda_measure_gather,
    .measure_copy = gs_cuda_measure_copy,
    .free_memory = cuda_free_memory,
    .take_memory = gs_cuda_take_memory,
    .give_memory = gs_cuda_give_memory,
    .quiet = gs_cuda_quiet,
    .begin_pass = gs_cuda_begin_pass,
    .end_pass = gs_cuda_end_pass,
    .last_launch = cuda_last_launch,
    .poll = cuda_poll,
    .take_copied = cuda_take_copied,
    .keep_params = gs_cuda_keep_params,
    .step = gs_cuda_step,
    .bring_params = gs_cuda_bring_params,
    .measure_transfer = gs_cuda_measure_transfer,
    .bus_place = gs_cuda_bus_place,
    .join = gs_cuda_join,
    .transfer = gs_cuda_transfer,
    .mark_transfers = gs_cuda_mark_transfers,
    .poll_transfers = gs_cuda_poll_transfers,
    .all_reduce = gs_cuda_all_reduce,
};

gs_status gs_cuda_open(const gs_device_ops **ops, void **context, unsigned ordinal, const char *matmul)
{
    const gs_cuda_driver *driver = NULL;
    gs_cuda *c;
    gs_status st = gs_cuda_driver_open(&driver);

    if (st != GS_OK)
        return st;
    if ((c = gs_calloc(1, sizeof(*c))) == NULL)
        return gs_fail(GS_ENOMEM, "device cuda: out of memory");
    c->d = driver;
    const char *const portion = getenv("GS_CUDA_PORTION_EDGES");
    if (portion != NULL)
        c->portion_edges = (uint32_t)strtoul(portion, NULL, 10);
    if ((st = set_matmul(c, matmul)) != GS_OK || (st = find_gpu(c, ordinal)) != GS_OK ||
        (st = gs_cuda_check(c, driver->context_retain(&c->context, c->device), "taking the GPU")) != GS_OK ||
        (current = NULL, st = gs_cuda_enter(c)) != GS_OK ||
        (st = make_streams(c)) != GS_OK || (st = load_fixed(c)) != GS_OK) {
        cuda_close(c);
        return st;
    }
    *ops = &cuda_ops;
    *context = c;
    return GS_OK;
}
