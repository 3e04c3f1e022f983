/* The CUDA device: opening and closing, and its tables of functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"
#include "cuda/code.h"
#include "cuda/cuda_device.h"
#include "cuda/file_reads.h"
#include "cuda/launch.h"
#include "cuda/gpu_links.h"
#include "cuda/gpu_params.h"
#include "cuda/state.h"
#include "cuda/streams.h"
#include "device/device_table.h"

#define LEAST_MAJOR 7 /* warp barriers and shuffles by mask, as kernels/gpu.h uses them */

static uint64_t cuda_last_launch(const void *context) { return ((const gs_cuda *)context)->streams.ticket; }

static gs_device_copied cuda_take_copied(void *context)
{
    gs_cuda *const c = context;
    const gs_device_copied copied = c->streams.copied;
    c->streams.copied = (gs_device_copied){0, 0};
    return copied;
}

static gs_status cuda_poll(void *context, uint64_t launch, bool wait, bool *done)
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
        gs_cuda_left();
        /* a lost GPU answers all calls with errors; what the host holds is freed all the same */
        (void)d->context_set(c->context);
        gs_cuda_give_memory(c);
        gs_cuda_drop_program(c);
        if (c->blas != NULL)
            d->blas_destroy(c->blas);
        if (c->fixed_module != NULL)
            d->module_unload(c->fixed_module);
        gs_cuda_drop_streams(c);
        d->context_release(c->device);
        gs_cuda_left();
    }
    gs_free(c);
}

static const char *cuda_name(const void *context) { return ((const gs_cuda *)context)->name; }

static const char *cuda_unpinned(const void *context)
{
    const gs_cuda *const c = context;
    return c->unpinned[0] != 0 ? c->unpinned : NULL;
}

#define ASKING_MEMORY "asking for its memory"

static gs_status cuda_free_memory(const void *context, uint64_t *bytes)
{
    const gs_cuda *const c = context;
    size_t free_bytes = 0, total = 0;
    gs_status st = gs_cuda_enter(c);

    if (st == GS_OK && (st = gs_cuda_check(c, c->d->memory_info(&free_bytes, &total), ASKING_MEMORY)) == GS_OK)
        *bytes = free_bytes;
    return st;
}

static gs_status find_gpu(gs_cuda *c, unsigned ordinal)
{
    const gs_cuda_driver *const d = c->d;
    char gpu[96] = "";
    char as[32] = ""; /* what kernels are for, where the compiler does not know the GPU */
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

static void cuda_set_budget(void *context, uint64_t bytes)
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

static const gs_device_compute compute = {
    .scratch_bytes = gs_cuda_scratch_bytes,
    .prepare = gs_cuda_prepare,
    .begin_pass = gs_cuda_begin_pass,
    .end_pass = gs_cuda_end_pass,
    .run_vertex = gs_cuda_run_vertex,
    .run_edges = gs_cuda_run_edges,
    .run_edge_program = gs_cuda_run_edge_program,
    .begin_sum = gs_cuda_begin_sum,
    .finish_sum = gs_cuda_finish_sum,
    .run_sequence = gs_cuda_run_sequence,
    .run_sequence_back = gs_cuda_run_sequence_back,
    .finish_statistic = gs_cuda_finish_statistic,
    .add_own = gs_cuda_add_own,
    .copy = gs_cuda_copy,
    .zero = gs_cuda_zero,
};

static const gs_device_ceilings ceilings = {
    .gemm = gs_cuda_measure_gemm,
    .gather = gs_cuda_measure_gather,
    .copy = gs_cuda_measure_copy,
};

static const gs_device_own_memory memory = {
    .free_bytes = cuda_free_memory,
    .set_budget = cuda_set_budget,
    .libraries = gs_cuda_libraries,
    .take = gs_cuda_take_memory,
    .give = gs_cuda_give_memory,
    .unpinned = cuda_unpinned,
    .quiet = gs_cuda_quiet,
    .take_copied = cuda_take_copied,
    .peek = gs_cuda_peek,
    .pick_rows = gs_cuda_pick_rows,
    .begin_group = gs_cuda_begin_group,
    .end_group = gs_cuda_end_group,
    .last_launch = cuda_last_launch,
    .poll = cuda_poll,
    .time_launches = gs_cuda_time_launches,
    .launch_span = gs_cuda_launch_span,
};

static const gs_device_links links = {
    .bus_place = gs_cuda_bus_place,
    .speed = gs_cuda_speed,
    .reach = gs_cuda_reach,
    .open_peer = gs_cuda_open_peer,
    .join = gs_cuda_join,
    .transfer = gs_cuda_transfer,
    .mark_transfers = gs_cuda_mark_transfers,
    .poll_transfers = gs_cuda_poll_transfers,
    .sums_alone = gs_cuda_sums_alone,
    .all_reduce = gs_cuda_all_reduce,
    .fetch_part = gs_cuda_fetch_part,
    .put_part = gs_cuda_put_part,
};

static const gs_device_params params = {
    .keep = gs_cuda_keep_params,
    .gradient_norm = gs_cuda_gradient_norm,
    .step = gs_cuda_step,
    .stepped_well = gs_cuda_stepped_well,
    .fetch = gs_cuda_fetch_params,
    .fetch_previous = gs_cuda_fetch_previous,
    .fetch_state = gs_cuda_fetch_state,
    .put_state = gs_cuda_put_state,
    .leave = gs_cuda_leave_params,
};

static const gs_device_reads reads = {
    .probe = gs_cuda_probe_reads,
    .open = gs_cuda_open_reads,
    .add_file = gs_cuda_add_file,
    .begin = gs_cuda_read_file,
    .poll = gs_cuda_poll_read,
};

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
    gs_status st;

    if ((st = gs_cuda_check(c, c->d->context_retain(&c->context, c->device), "taking the GPU")) != GS_OK ||
        (gs_cuda_left(), st = gs_cuda_enter(c)) != GS_OK || (st = ask_memory(c)) != GS_OK ||
        (st = gs_cuda_make_streams(c)) != GS_OK || (st = make_blas(c)) != GS_OK)
        return st;
    r.made = gs_process_resident_bytes();
    if ((st = gs_cuda_load_fixed(c)) != GS_OK)
        return st;
    r.compiled = gs_process_resident_bytes();
    gs_cuda_note_resident(c->device, &r);
    return GS_OK;
}

static gs_status cuda_open(const gs_device_ops **out, void **context, const gs_device_choice *choice)
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
    c->compute_type = compute_types[choice->matmul];
    if ((st = find_gpu(c, choice->number)) != GS_OK || (st = make_context(c)) != GS_OK) {
        cuda_close(c);
        return st;
    }
    *out = &ops;
    *context = c;
    return GS_OK;
}

const gs_device_kind gs_cuda_kind = {.word = "cuda", .open = cuda_open};
