/* bench.c - a short training run beside the ceilings of the machine it ran on. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "io/disk_probe.h" /* GS_PROBE_RING_BYTES */
#include "train/limits.h"
#include "train/options.h"
#include "train/run_internal.h"

#define PROBE_BYTES (512 * GS_MIB) /* of the scratch file */
#define PROBE_ROWS 8192u

/* Takes the disk's figures from the record where they are not measured now. */
static void keep_disk(gs_limits *l, const gs_limits *known)
{
    l->found.disk_read_bps = known->found.disk_read_bps;
    l->found.disk_write_bps = known->found.disk_write_bps;
    memcpy(l->found.random_read, known->found.random_read, sizeof(l->found.random_read));
    memcpy(l->found.depth, known->found.depth, sizeof(l->found.depth));
    l->link[GS_LINK_FROM_DISK] = known->link[GS_LINK_FROM_DISK];
}

static void report(gs_limits_report *out, const gs_limits *l)
{
    *out = l->found;
    out->link_bps = l->link[GS_LINK_TO_DEVICE].bps;
    out->link_request_seconds = l->link[GS_LINK_TO_DEVICE].request_seconds;
    out->tf32_flops = l->rounded[0];
    out->bf16_flops = l->rounded[1];
    out->load_bps = l->link[GS_LINK_FROM_DISK].bps;
    out->load_request_seconds = l->link[GS_LINK_FROM_DISK].request_seconds;
}

gs_status gs_measure_device_limits(gs_limits_report *out, const char *dir, const char *device, uint32_t threads)
{
    gs_cost_record record;
    gs_limits l = {0};

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(device, "device"));
    const gs_device_words words = gs_device_words_of(device);
    const bool processors = words == GS_DEVICES_CPU;
    if (!processors && words != GS_DEVICES_GPU && words != GS_DEVICES_GPUS)
        return gs_fail(GS_EINVAL, ".device %s: limits are those of cpu or of cuda", device);
    if (dir != NULL)
        GS_TRY(gs_limits_measure_disk(&l, dir, GS_LIMITS_DISK_BYTES));
    GS_TRY(processors ? gs_limits_measure_device(&l, threads) : gs_limits_measure_gpu(&l, device, dir));
    gs_cost_record_load(&record, l.found.device);
    if (dir == NULL)
        keep_disk(&l, &record.limits);
    record.limits = l;
    (void)gs_cost_record_save(&record, l.found.device); /* a cache: the figures are given out all the same */
    report(out, &l);
    return GS_OK;
}

gs_status gs_measure_limits(gs_limits_report *out, const char *dir, uint32_t threads)
{
    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(dir, "dir"));
    return gs_measure_device_limits(out, dir, "cpu", threads);
}

/* ---- what the model asks of the machine ---------------------------------- */

/* Width of the widest rows that a stage gathers along edges. */
static uint32_t widest_gather(const gs_program *p, const gs_stage *stage)
{
    uint32_t width = 0;
    for (gs_array_use u = {0}; gs_stage_next_use(stage, &u);)
        if (u.role == GS_USE_OPERAND)
            width = GS_MAX(width, u.reg == GS_NONE ? p->array[u.array].width : stage->edge_reg[u.reg].width);
    return width;
}

/* The largest product and the widest gather of the train pass. */
static void find_shapes(gs_bench_report *b, const gs_program *p, const gs_pass *pass)
{
    for (uint32_t s = pass->first_stage; s < pass->first_stage + pass->stages; s++) {
        const gs_stage *const stage = &p->stage[s];
        b->gather_width = GS_MAX(b->gather_width, widest_gather(p, stage));
        for (uint32_t i = 0; i < stage->instrs; i++) {
            const gs_instr *const x = &stage->instr[i];
            if ((x->op != GS_OP_MATMUL_T && x->op != GS_OP_MATMUL) || x->b.kind != GS_FROM_PARAM)
                continue;
            const gs_param *const w = &p->param[x->b.index];
            if ((uint64_t)w->rows * w->cols > (uint64_t)b->gemm_in * b->gemm_out) {
                b->gemm_in = w->cols;
                b->gemm_out = w->rows;
            }
        }
    }
}

static gs_status measure_device(gs_bench_report *b, const gs_session *s)
{
    const uint64_t vertices = gs_store_get_info(s->store)->vertices;
    gs_device *const d = s->machine.device[s->machine.kind[0]];

    if (b->gemm_in != 0)
        GS_TRY(gs_device_measure_gemm(d, PROBE_ROWS, b->gemm_in, b->gemm_out, &b->gemm_flops_per_second));
    if (b->gather_width != 0) {
        /* A table as large as the graph's, where the budget has room for one. */
        const uint64_t room = s->memory.host / 2 / (b->gather_width * sizeof(float));
        const uint64_t rows = GS_MAX(1, GS_MIN(GS_MIN(vertices, room), UINT32_MAX));
        GS_TRY(gs_device_measure_gather(d, rows, b->gather_width, &b->gather_bps));
    }
    return GS_OK;
}

/* Buffers to measure the disk with: within what the run may hold, too. */
static uint64_t probe_memory(uint64_t host_memory)
{
    return GS_MAX(8 * GS_MIB, GS_MIN(GS_PROBE_RING_BYTES, gs_align_down(host_memory / 4, GS_MIB)));
}

/* Keeps the measured figures, with which later runs are planned. Reads and writes share the way to the disk in an
 * epoch, so writes are no faster there, whatever they do alone. This is a cache: not being able to keep it is no
 * failure. */
static void remember_disk(const gs_bench_report *b, const char *device)
{
    gs_cost_record record;

    gs_cost_record_load(&record, device);
    record.read_bps = b->disk_read_bps;
    record.write_bps = GS_MIN(b->disk_read_bps, b->disk_write_bps);
    (void)gs_cost_record_save(&record, device);
}

/* Everything but the run. The session is closed before the run opens its own, so that nothing is held twice. It makes a
 * plan that nobody runs: budgets that are too small are refused before seconds of measuring, and the run's own plan is
 * made with what was measured. *process_bytes: what the process held before libraries touched anything; *drawing:
 * predicted seconds of drawing a batch. */
static gs_status measure_ceilings(gs_bench_report *b, const char *store, const gs_train_options *options,
                                  uint64_t *process_bytes, double *drawing)
{
    GS_ENDS(gs_session_close_at) gs_session *s = NULL;
    GS_ENDS(gs_run_batches_close_at) gs_run_batches *batches = NULL;

    GS_TRY(gs_run__open_session(&s, store, options, GS_RUN_TRAIN, 0, NULL, (gs_variant){0}, &batches));
    const gs_session *const trained = batches != NULL ? gs_batches_session(gs_run_batches_lead(batches)) : s;
    *process_bytes = s->memory.process;
    b->batches = batches != NULL ? gs_run_batches_count(batches) : 0;
    *drawing = batches != NULL ? gs_run_batches_drawing(batches) : 0;
    find_shapes(b, trained->program, &trained->program->pass[trained->pass.train]);
    GS_TRY(measure_device(b, s));
    GS_TRY(gs_limits_disk(&b->disk_read_bps, &b->disk_write_bps, gs_session_scratch_dir(s), PROBE_BYTES,
                          probe_memory(s->memory.host)));
    for (uint32_t k = 0; k < s->machine.kinds; k++)
        remember_disk(b, gs_device_name(s->machine.device[s->machine.kind[k]]));
    return GS_OK;
}

/* ---- the run ------------------------------------------------------------- */

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const gs_epoch_report *)a)->seconds, y = ((const gs_epoch_report *)b)->seconds;
    return (x > y) - (x < y);
}

/* What the report has of one batch becomes what it is of an epoch's. */
static void add_batches(gs_pass_report *p, double batches, double drawing)
{
    gs_predicted *const x = &p->predicted;

    p->edges = (uint64_t)((double)p->edges * batches);
    p->rows = (uint64_t)((double)p->rows * batches);
    p->edge_bytes = (uint64_t)((double)p->edge_bytes * batches);
    p->dense_flops *= batches;
    p->edge_flops *= batches;
    x->seconds = (x->seconds + drawing) * batches;
    x->edge_seconds *= batches;
    x->vertex_seconds *= batches;
    x->stall_seconds *= batches;
}

/* Sorts the epochs. */
static void set_figures(gs_bench_report *b, gs_epoch_report *epoch, uint32_t epochs, double drawing)
{
    const gs_epoch_report *median;
    double reading, products;

    if (b->batches > 0)
        add_batches(&b->train.plan, b->batches, drawing);
    qsort(epoch, epochs, sizeof(*epoch), by_seconds);
    median = &epoch[epochs / 2];
    b->seconds = median->seconds;
    b->compute_seconds = median->compute_seconds;
    b->edge_seconds = median->edge_seconds;
    b->stall_seconds = median->stall_seconds;
    b->read_bytes = median->read_bytes;
    b->written_bytes = median->written_bytes;
    reading = b->disk_read_bps > 0 ? (double)b->read_bytes / b->disk_read_bps : 0;
    products = b->gemm_flops_per_second > 0 ? b->train.plan.dense_flops / b->gemm_flops_per_second : 0;
    b->floor_seconds = GS_MAX(reading, products);
    b->fraction = b->seconds > 0 ? b->floor_seconds / b->seconds : 0;
}

/* Who is told what an epoch waited for; `row` NULL: nobody. */
typedef struct listener {
    gs_why_fn row;
    void *context;
} listener;

static gs_status train(gs_bench_report *b, gs_epoch_report *epoch, const char *store, const gs_train_options *o,
                       uint64_t process_bytes, const listener *why)
{
    GS_ENDS(gs_run_close_at) gs_run *run = NULL;

    GS_TRY(gs_run__open_after(&run, store, o, GS_RUN_TRAIN, process_bytes));
    for (uint32_t k = 0; k < o->epochs; k++) {
        GS_TRY(gs_run_epoch(run, &epoch[k]));
        if (o->on_epoch != NULL)
            o->on_epoch(o->context, &epoch[k]);
    }
    if (why->row != NULL)
        GS_TRY(gs_session_explain(run->session, b->gemm_flops_per_second, b->gather_bps, why->row, why->context));
    return gs_run_finish(run, &b->train);
}

static gs_status bench(gs_bench_report *out, const char *store, const gs_train_options *options, const listener *why)
{
    gs_train_options own;
    gs_bench_report b = {0};
    uint64_t process_bytes = 0;
    double drawing = 0;
    GS_FREED gs_epoch_report *epoch = NULL;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(store, "store"));
    GS_TRY(gs_train_options_read(&own, options));
    if (own.epochs == 0)
        return gs_fail(GS_EINVAL, ".epochs 0: there is nothing to measure; give at least 1");
    GS_TRY(gs_train_options_check(&own));
    if (why->row != NULL && (gs_train_on_batches(&own) || gs_train_is_of_pairs(&own)))
        return gs_fail(GS_EUNSUPPORTED, "stages and links are those of epochs over the whole graph; a trace shows what "
                       "batches wait for");
    if ((epoch = gs_calloc(own.epochs, sizeof(*epoch))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the figures of %u epochs", own.epochs);
    own.profile = true;
    own.checkpoint = own.checkpoint_every = own.resume = NULL;
    GS_TRY(measure_ceilings(&b, store, &own, &process_bytes, &drawing));
    GS_TRY(train(&b, epoch, store, &own, process_bytes, why));
    set_figures(&b, epoch, own.epochs, drawing);
    *out = b;
    return GS_OK;
}

gs_status gs_bench_train(gs_bench_report *out, const char *store, const gs_train_options *options)
{
    return bench(out, store, options, &(listener){0});
}

gs_status gs_bench_train_why(gs_bench_report *out, const char *store, const gs_train_options *options, gs_why_fn why,
                             void *context)
{
    GS_TRY(why != NULL ? GS_OK : gs_fail(GS_EINVAL, "why: must not be NULL"));
    return bench(out, store, options, &(listener){why, context});
}
