/* session_plan.c - what a run takes beside its plan, and the plan for the rest. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"
#include "schedule/schedule.h"
#include "schedule/simulate.h"
#include "train/session.h"

/* Memory that libraries take after the budgets are drawn up: code pages of
 * oneDNN and OpenMP touched for the first time, kernels generated at run time,
 * threads' stacks, malloc's slack. Measured: below 5 MiB with 2 threads (peak
 * resident less everything that is accounted for). */
#define LIBRARY_ALLOWANCE (12 * GS_MIB)

/* A plan should be the same when it is made again: what the process holds differs by some pages. */
#define PROCESS_STEP (2 * GS_MIB)

/* Of a thread that drives a lane of a device: the pages of its stack that it touches. */
#define THREAD_BYTES (32 * GS_KIB)

#define GPU_SHARE 0.9 /* of its free memory */
#define HOST_SHARE 0.8 /* of free memory, by default */
#define LOGITS_SHARE 32 /* of host memory, for putting logits in order */
#define LOGITS_LEAST (4 * GS_MIB)
#define LOGITS_MOST (256 * GS_MIB)

static void note(gs_session *s, const char *name, uint64_t bytes, bool device)
{
    gs_memory_item *const i = &s->item[s->items];

    if (bytes == 0 || s->items == GS_PLAN_ITEMS)
        return;
    snprintf(i->name, sizeof(i->name), "%s", name);
    i->bytes = bytes;
    i->device = device;
    s->items++;
}

/* The same, for what gs_schedule() must be told of. */
static void charge(gs_session *s, const char *name, uint64_t bytes, bool device)
{
    note(s, name, bytes, device);
    *(device ? &s->device_fixed : &s->host_fixed) += bytes;
}

/* Of the heap, that planning may have live: what else of the process is resident stays so. Nothing of the run has its
 * memory yet. */
static uint64_t live_most(const gs_session *s)
{
    const uint64_t resident = gs_process_resident_bytes(), live = gs_alloc_live_bytes();
    const uint64_t other = resident - GS_MIN(resident, live) + LIBRARY_ALLOWANCE;
    return s->host_memory - GS_MIN(s->host_memory, other) + 1; /* 0: any */
}

static void set_budgets(gs_session *s)
{
    const gs_train_options *const o = s->options;

    s->host_memory = o->host_memory;
    if (s->host_memory == 0)
        s->host_memory = (uint64_t)(HOST_SHARE * (double)gs_machine_free_memory());
    s->device_memory = o->device_memory;
    if (s->device_memory == 0 && gs_device_unified(s->device))
        s->device_memory = s->host_memory / 2 / s->device_count;
    else if (s->device_memory == 0)
        s->device_memory = (uint64_t)(GPU_SHARE * (double)gs_session_free_device_memory(s));
    s->live_most = live_most(s);
}

/* What gs_logits_write() may use: enough for one window where that is little. */
static uint64_t logits_memory(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const uint64_t share = GS_MAX(GS_MIN(s->host_memory / LOGITS_SHARE, LOGITS_MOST), LOGITS_LEAST);
    uint64_t whole;

    if (!gs_mul_u64(&whole, info->vertices, 2 * sizeof(float) * ((uint64_t)info->classes + 1)))
        return share;
    return GS_MIN(whole + GS_SUM_BYTES, share);
}

/* Open store and compiled model are resident already. What a session before this one freed is not to be counted, nor
 * twice what libraries have touched since: that is in their allowance, up to all of it. */
uint64_t gs_session_process_bytes(uint64_t before)
{
    gs_alloc_trim();
    const uint64_t now = gs_align_up(gs_process_resident_bytes(), PROCESS_STEP);
    if (before == 0)
        return now;
    return GS_MAX(before, now - GS_MIN(now, LIBRARY_ALLOWANCE));
}

static void charge_fixed(gs_session *s, bool logits)
{
    const uint64_t one = gs_params_elements(s->program) * sizeof(float), state = s->gradients ? one * s->states : 0;
    const bool steps = gs_session_steps_on_device(s);

    charge(s, "process, store tables", s->process_bytes, false);
    charge(s, "libraries (allowance)", LIBRARY_ALLOWANCE, false);
    if (logits)
        charge(s, "logits in input order", s->logits_memory = logits_memory(s), false);
    /* each has all; the host has the gradients of each, too */
    if (s->topology != NULL && !gs_device_unified(s->device)) {
        const uint64_t gradients = s->gradients ? one + gs_params_sums(s->program) * sizeof(double) : 0;
        charge(s, "parameters", one, true);
        charge(s, "gradients", one + gs_params_sums(s->program) * sizeof(double), true);
        charge(s, "optimizer state", steps ? state : 0, true);
        charge(s, "kernel scratch", gs_device_scratch_bytes(s->device, s->program), true);
        charge(s, "parameters, optimizer", one + (steps ? 0 : state), false);
        charge(s, "gradients (host)", s->device_count * (gradients + GS_BLOCK_BYTES), false);
        charge(s, "devices' threads", s->device_count * GS_DEVICE_LANES * THREAD_BYTES, false);
        charge(s, "copies between GPUs", (s->device_count - 1) * GS_DEVICE_BETWEEN_BYTES, false);
        return;
    }
    if (s->topology != NULL) { /* the devices share parameters; gradients of their own they have behind the first */
        charge(s, "parameters, optimizer", one + state, false);
        charge(s, "gradients", (s->gradients ? one + gs_params_sums(s->program) * sizeof(double) : 0) + GS_BLOCK_BYTES,
               true);
        charge(s, "kernel scratch", gs_device_scratch_bytes(s->device, s->program), true);
        charge(s, "devices' threads", s->device_count * GS_DEVICE_LANES * THREAD_BYTES, false);
        return;
    }
    charge(s, "parameters", one, true);
    if (s->gradients) {
        charge(s, "gradients", one + gs_params_sums(s->program) * sizeof(double), true);
        charge(s, "optimizer state", gs_device_unified(s->device) || steps ? state : 0, true);
    }
    if (!gs_device_unified(s->device)) { /* the host has its own, to begin and to end with */
        charge(s, "parameters (host)", one * (s->gradients ? 2 : 1) + (steps ? 0 : state), false);
        charge(s, "copies of host data", s->staging_bytes = gs_session_staging(s), true);
    }
    charge(s, "kernel scratch", gs_device_scratch_bytes(s->device, s->program), true);
}

static bool reads_anything(const gs_plan *p)
{
    for (uint32_t i = 0; i < p->passes; i++)
        if (p->pass[i].read_bytes > 0)
            return true;
    return false;
}

static void drop_plan(gs_session *s)
{
    gs_plan_free(s->plan);
    s->plan = NULL;
}

/* A plan that knows which rows each chunk needs takes the place of one that does not. Where its table of runs has no
 * room, the first plan stays; or is made again, where there was no room for both while it was tried. */
static gs_status plan_selective(gs_session *s, gs_schedule_config *config)
{
    const uint64_t tables = s->plan->table_bytes;
    const bool no_swap = config->no_swap;
    gs_plan *plan = NULL;
    gs_status st;

    if (gs_alloc_live_bytes() + tables + tables / 2 > s->live_most)
        drop_plan(s);
    if ((st = gs_session_read_needs(s, config->granules)) != GS_OK)
        return st;
    config->no_swap = s->options->no_swap;
    config->no_sizes = true;
    st = gs_schedule(&plan, config);
    if (st == GS_OK) {
        drop_plan(s);
        s->plan = plan;
        return GS_OK;
    }
    if (st != GS_EBUDGET || s->plan != NULL)
        return st == GS_EBUDGET ? GS_OK : st;
    gs_session_drop_read_needs(s); /* the first plan knew those of the edges that are left */
    config->no_swap = no_swap;
    config->no_sizes = false;
    return gs_schedule(&s->plan, config);
}

/* Chunk tables of the sets that the run uses, and what is kept of them by those who run it. */
static void charge_sets(gs_session *s)
{
    const uint64_t parts = gs_store_chunks(s->store)->parts;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < s->sets; k++) {
        bytes += gs_session_uses_set(s, k) ? parts * parts * (sizeof(gs_exec_chunk) + 1) : 0;
        bytes += k >= 2 ? parts * parts * sizeof(gs_chunk) : 0;
    }
    if (!gs_device_unified(s->device) && s->topology == NULL)
        bytes += gs_session_order_bytes(s);
    charge(s, "chunk tables", bytes, false);
}

/* Where the train pass's own accuracies are the model's, the pass "eval" is for the final weights alone. */
static double evals_left_out(const gs_session *s)
{
    const uint32_t every = s->options->eval_every;
    return s->train == GS_NONE ? 0 : !s->apart || every == 0 ? 1 : 1 - 1.0 / every;
}

static uint32_t threads_of_device(const gs_session *s)
{
    const uint32_t threads = s->options->threads != 0 ? s->options->threads : gs_machine_cpus();
    return GS_MAX(threads / s->device_count, 1);
}

static void recall_machine(gs_session *s)
{
    gs_cost_record record;
    gs_cost_record_load(&record, gs_device_name(s->device));
    gs_cost_from_record(&s->cost, &record, threads_of_device(s));
}

gs_status gs_session_plan(gs_session *s, bool logits)
{
    gs_schedule_config config = {0};
    gs_status st;

    if (gs_params_elements(s->program) > UINT64_MAX / 64)
        return gs_fail(GS_EINVAL, "the model's parameters are beyond what memory can hold; check --hidden");
    set_budgets(s);
    charge_fixed(s, logits);
    s->profile = s->options->profile || s->options->trace != NULL;
    recall_machine(s);
    if ((st = gs_session_list_edges(s)) != GS_OK)
        return st;
    if (!s->options->no_selective)
        config.granules = gs_session_granules(s);
    if ((st = gs_session_prune(s, &config)) != GS_OK)
        return st;
    charge_sets(s);
    config = (gs_schedule_config){
        .program = s->program,
        .chunks = gs_store_chunks(s->store),
        .array_sum_bytes = GS_SUM_BYTES,
        .host_memory = s->host_memory,
        .device_memory = s->device_memory,
        .topology = s->topology,
        .no_chain = s->options->no_chain,
        .unified = gs_device_unified(s->device),
        .host_fixed = s->host_fixed, .host_varies = PROCESS_STEP, .device_fixed = s->device_fixed,
        .live_most = s->live_most,
        .task_bytes = s->profile || s->topology != NULL ? GS_EXEC_TRACE_TASK_BYTES : 0,
        .cost = &s->cost,
        .no_swap = s->options->no_swap || config.granules.words > 0, /* the selective plan is the one to be ordered */
        .no_pipeline = s->options->no_pipeline,
        .never_again = gs_session_evaluates(s, 1), /* if in the first epoch, then in all */
        .evals_left_out = evals_left_out(s),
        .disk_bps = s->cost.read_bps,
        .disk_request_seconds = s->cost.request_seconds,
        .force_spill = s->options->no_cache,
        .sets = s->sets,
        .set = s->set,
        .stage_set = s->stage_set,
        .stage_rows = s->stage_rows,
        .array_rows = s->array_rows,
        .granules = config.granules,
        .refusal = &s->refused,
    };
    if ((st = gs_schedule(&s->plan, &config)) != GS_OK)
        return st;
    if (config.granules.words > 0 && reads_anything(s->plan) && (st = plan_selective(s, &config)) != GS_OK)
        return st;
    gs_session_drop_needs(s);
    gs_session_drop_runs(s);
    if (!config.unified && s->topology == NULL)
        gs_session_use_spare(s);
    note(s, "plan", s->plan->table_bytes, false);
    note(s, "staging ring", s->plan->region_bytes[GS_REGION_RING], false);
    note(s, "resident data", s->plan->region_bytes[GS_REGION_RESIDENT], false);
    note(s, "sums and registers", s->plan->region_bytes[GS_REGION_ARENA], true);
    return GS_OK;
}

gs_status gs_session_describe_pass(const gs_session *s, gs_pass_report *out, uint32_t pass)
{
    const gs_plan_pass *const planned = &s->plan->pass[pass];
    const uint32_t parts = gs_store_chunks(s->store)->parts;
    gs_simulation x;
    const gs_status st =
        gs_simulate(&x, &(gs_simulation_input){s->plan, s->program, s->set, parts, &s->cost, s->topology, pass});

    if (st != GS_OK)
        return st;
    *out = (gs_pass_report){
        .blocks = planned->blocks,
        .tasks = planned->tasks,
        .read_bytes = planned->read_bytes,
        .read_requests = planned->read_requests,
        .edges = planned->edges,
        .rows = planned->rows,
        .skipped_bytes = planned->skipped_bytes,
        .written_bytes = planned->written_bytes,
        .cached_bytes = planned->cached_bytes,
        .edge_bytes = planned->edge_bytes,
        .upload_bytes = planned->upload_bytes,
        .forward_bytes = planned->forward_bytes,
        .download_bytes = planned->download_bytes,
        .dense_flops = planned->dense_flops,
        .edge_flops = planned->edge_flops,
        .seconds = x.seconds,
        .read_seconds = x.read_seconds,
        .write_seconds = x.write_seconds,
        .edge_seconds = x.edge_seconds,
        .vertex_seconds = x.vertex_seconds,
        .check_seconds = x.check_seconds,
        .stall_seconds = x.stall_seconds,
        .orders_tried = planned->orders_tried,
        .store_order_seconds = planned->store_order_seconds,
        .best_order_seconds = planned->best_order_seconds,
        .reordered = planned->reordered,
        .recomputes = s->recompute,
        .lean = s->lean,
        .batches = s->batch,
    };
    snprintf(out->name, sizeof(out->name), "%s", s->program->pass[pass].name);
    snprintf(out->bottleneck, sizeof(out->bottleneck), "%s", x.bottleneck);
    return GS_OK;
}

/* Files in the order of GS_FILE_EDGES; the last entry takes what there is no room for. */
static gs_file_report *file_report(const gs_session *s, gs_plan_report *out, uint32_t file)
{
    static const char *const edges[] = {"edges by destination", "edges by source", "edges of a stage"};
    const uint32_t at = GS_MIN(file, GS_PLAN_FILES - 1), arrays = s->program->arrays;
    gs_file_report *const f = &out->file[at];
    const char *const name = file >= arrays ? edges[GS_MIN(file - arrays, 2)] : s->program->array[file].name;

    out->files = GS_MAX(out->files, at + 1);
    snprintf(f->name, sizeof(f->name), "%s", at < file ? "others" : name);
    return f;
}

/* What the training pass moves, file by file. */
static void describe_files(const gs_session *s, gs_plan_report *out)
{
    const gs_plan_pass *const pass = &s->plan->pass[s->train];

    for (uint32_t f = 0; f < s->program->arrays + s->sets; f++)
        (void)file_report(s, out, f);
    for (uint32_t i = pass->first_task; i < pass->first_task + pass->tasks; i++) {
        const gs_task *const t = &s->plan->task[i];
        if (t->kind == GS_TASK_READ)
            file_report(s, out, t->file)->read_bytes += gs_task_bytes(s->plan, t);
        else if (t->kind == GS_TASK_WRITE)
            file_report(s, out, t->file)->written_bytes += t->bytes;
    }
    for (uint32_t i = 0; i < s->plan->residents; i++)
        file_report(s, out, s->plan->resident[i].file)->kept_bytes += s->plan->resident[i].bytes;
}

static const char *least_known(const gs_cost *c)
{
    gs_cost_source worst = c->disk_source;
    for (int k = 0; k < GS_WORK_KINDS; k++)
        if (k != GS_WORK_EDGES) /* most models have none */
            worst = GS_MIN(worst, c->source[k]);
    return gs_cost_source_name(worst);
}

gs_status gs_session_describe(const gs_session *s, gs_plan_report *out)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    gs_status st;

    *out = (gs_plan_report){
        .vertices = info->vertices,
        .edges = info->edges,
        .parameters = gs_params_learned(s->program),
        .host_memory = s->host_memory,
        .device_memory = s->device_memory,
        .host_bytes = s->plan->host_bytes,
        .device_bytes = s->plan->device_bytes,
        .devices = s->device_count,
        .unified = gs_device_unified(s->device),
        .passes = GS_MIN(s->program->passes, GS_PLAN_PASSES),
        .items = s->items,
    };
    out->spill_bytes = gs_session_spill_bytes(s);
    for (uint32_t p = 0; p < out->passes; p++)
        if ((st = gs_session_describe_pass(s, &out->pass[p], p)) != GS_OK)
            return st;
    describe_files(s, out);
    snprintf(out->basis, sizeof(out->basis), "%s", least_known(&s->cost));
    memcpy(out->item, s->item, sizeof(out->item));
    return GS_OK;
}
