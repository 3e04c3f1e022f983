/* session_plan.c - a session up to its plan: what it takes of the budgets, its model and program, the plan. */
#include "session/session_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/option_table.h"
#include "base/size.h"
#include "compile/compile.h"
#include "cost/cost.h"
#include "model/model.h"
#include "ranks/ranks.h"
#include "schedule/schedule.h"
#include "session/choose_products.h"
#include "session/edges.h"
#include "session/session.h"
#include "session/tables.h"

/* ---- the two budgets ------------------------------------------------------ */

/* Memory that libraries take after the budgets are drawn up: code pages of oneDNN and OpenMP touched for the first
 * time, kernels generated at run time, threads' stacks, malloc's slack. Measured: below 5 MiB with 2 threads (peak
 * resident less everything that is accounted for). */
#define LIBRARY_ALLOWANCE (11 * GS_MIB)
/* More than the program has resident beside its heap before (measured: 7.2 to 8.1 MiB, as of its files the kernel maps
 * what is around the pages that were touched, if it has them; Python has more). */
#define CODE_BYTES (35 * GS_MIB / 4)
/* Pages of its stack that a thread touches which drives a lane of a device. */
#define THREAD_BYTES (32 * GS_KIB)

#define GPU_SHARE 0.9 /* of its free memory */
#define HOST_SHARE 0.8 /* of free memory, by default */
#define EARLIER_SHARE 0.95 /* at most, for the budgets of the run that this one goes on from */
#define LOGITS_SHARE 32 /* of host memory, for putting logits in order */
#define LOGITS_LEAST (4 * GS_MIB)
#define LOGITS_MOST (256 * GS_MIB)
#define RANKING_TABLES 96 /* bytes a column of logits */

static void note(gs_session *s, const char *name, uint64_t bytes, bool device)
{
    gs_memory_item *const i = &s->memory.item[s->memory.items];

    if (bytes == 0 || s->memory.items == GS_PLAN_ITEMS)
        return;
    snprintf(i->name, sizeof(i->name), "%s", name);
    i->bytes = bytes;
    i->device = device;
    s->memory.items++;
}

/* The same, for what gs_schedule() must be told of. */
static void charge(gs_session *s, const char *name, uint64_t bytes, bool device)
{
    note(s, name, bytes, device);
    *(device ? &s->memory.device_fixed : &s->memory.host_fixed) += bytes;
}

/* Bytes of the heap that planning may have live. Everything else that is resident stays so, and nothing of the run has
 * its memory yet. In a trial, no more than the machine has, whatever the budget. */
static uint64_t live_most(const gs_session *s)
{
    const uint64_t resident = gs_process_resident_bytes(), live = gs_alloc_live_bytes() + gs_alloc_kept_bytes();
    const uint64_t other = (s->config.trial ? s->config.process_bytes : resident - GS_MIN(resident, live)) +
                           LIBRARY_ALLOWANCE;
    const uint64_t most = s->memory.host - GS_MIN(s->memory.host, other);
    const uint64_t has = s->config.trial ? live + gs_machine_free_memory() / 2 : UINT64_MAX;
    return GS_MIN(most, has) + 1; /* 0: any */
}

/* The budget that an earlier run had (0: there was none) where `free` bytes have room for it, or a share of those. */
static uint64_t default_budget(uint64_t free, double share, uint64_t earlier)
{
    const uint64_t most = (uint64_t)(EARLIER_SHARE * (double)free);
    return earlier > 0 && earlier <= most ? earlier : (uint64_t)(share * (double)free);
}

/* Of ranks each has a host of its own. */
static uint32_t devices_of_host(const gs_session *s)
{
    return s->machine.wires.across.network ? 1 : s->machine.devices;
}

/* The budget of each device where the options give none; sets host_parts, too. */
static gs_status device_budget(gs_session *s)
{
    gs_session_memory *const m = &s->memory;
    const uint64_t earlier = s->config.earlier == NULL ? 0 : s->config.earlier->device_memory;
    const uint32_t parts = 2 * devices_of_host(s);
    uint64_t budget = earlier;

    m->device = m->host / parts;
    m->host_parts = parts;
    if (gs_session_has_memories(s)) {
        GS_TRY(gs_session_free_device_memory(s, &budget));
        budget = default_budget(budget, GPU_SHARE, earlier);
        if (earlier == 0 && s->machine.kinds > 1 && m->device <= budget)
            return GS_OK;
    } else if (earlier == 0 || earlier > m->host) {
        return GS_OK;
    }
    m->device = budget;
    m->host_parts = 0;
    return GS_OK;
}

/* Takes the budgets that a topology gives each device. */
static void ask_topology(gs_session *s)
{
    const gs_topology *const t = &s->machine.wires;

    s->memory.device = s->memory.device_most = t->memory[0];
    s->memory.host_parts = 0;
    for (uint32_t d = 1; d < t->devices; d++) {
        s->memory.device = GS_MIN(s->memory.device, t->memory[d]);
        s->memory.device_most = GS_MAX(s->memory.device_most, t->memory[d]);
    }
}

/* The host's budget that nobody gave: the least that a rank has room for, as all plan for the same. */
static gs_status host_budget(gs_session *s)
{
    const gs_session_earlier *const e = s->config.earlier;
    const uint64_t own = default_budget(gs_machine_free_memory() / gs_ranks_on_host(), HOST_SHARE,
                                        e == NULL ? 0 : e->host_memory);
    uint64_t all[GS_RANKS_MOST];

    GS_TRY(gs_ranks_gather(all, &own, sizeof(own)));
    s->memory.host = own;
    for (uint32_t r = 0; r < gs_ranks_count(); r++)
        s->memory.host = GS_MIN(s->memory.host, all[r]);
    return GS_OK;
}

/* Sets the budgets; then accounts for what a run takes beside its plan. GS_EDEVICE: a device that was asked how much of
 * its memory is free does not answer. */
static gs_status set_budgets(gs_session *s)
{
    const gs_train_options *const o = s->config.options;

    if ((s->memory.host = o->host_memory) == 0)
        GS_TRY(host_budget(s));
    if ((s->memory.device = o->device_memory) == 0)
        GS_TRY(device_budget(s));
    s->memory.device_most = s->memory.device;
    if (s->machine.wires.memory[0] > 0)
        ask_topology(s);
    for (uint32_t d = 0; d < s->machine.devices; d++)
        gs_device_set_budget(s->machine.device[d], s->memory.device);
    s->memory.live_most = live_most(s);
    GS_TRY(gs_ranks_share(&s->memory.live_most, sizeof(s->memory.live_most)));
    gs_alloc_keep_large(s->memory.live_most);
    return GS_OK;
}

/* Most bytes of logits that are put in order, or ranked, at a time. */
static uint64_t window_bytes(const gs_session *s)
{
    const uint64_t share = s->memory.least_windows ? 0 : s->memory.host / LOGITS_SHARE;
    return GS_MAX(GS_MIN(share, LOGITS_MOST), LOGITS_LEAST);
}

/* Memory for gs_logits_write(): its share of the budget, or less where one window holds all. */
static uint64_t logits_memory(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const uint64_t share = window_bytes(s);
    uint64_t whole;

    uint64_t columns = s->classes;
    for (uint32_t t = 0; t < s->program->tables; t++)
        columns = GS_MAX(columns, s->program->table[t].width);
    if (!gs_mul_u64(&whole, info->vertices, 2 * sizeof(float) * (columns + 1)))
        return share;
    return GS_MIN(whole + GS_SUM_BYTES, share);
}

/* Memory for gs_rank_logits(): its share of the budget, or less where one sweep over the logits does. */
static uint64_t ranking_memory(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const uint64_t share = window_bytes(s);
    uint64_t whole;

    if (!gs_mul_u64(&whole, info->train + info->valid + info->test, 8 * (uint64_t)s->labels.columns))
        return share;
    return GS_MIN(whole + LOGITS_LEAST, share) + RANKING_TABLES * (uint64_t)s->labels.columns;
}

/* The open store and the compiled model are resident already. Two things do not count: memory that a session before
 * this one has freed, and pages that libraries have touched since, as their allowance has those. Some pages more or
 * less are resident each time, for which no budget is refused: the heap, with more than all else, stands for them. */
uint64_t gs_session_process_bytes(const gs_session *s, uint64_t before)
{
    const uint64_t later = gs_device_libraries_bytes(s->machine.device[s->machine.kind[0]]).later;

    gs_alloc_trim();
    gs_process_drop_idle_code();
    const uint64_t held = GS_MAX(gs_process_resident_bytes(), gs_alloc_live_bytes() + CODE_BYTES);
    const uint64_t now = gs_align_up(held + later, GS_SESSION_PROCESS_STEP);
    if (before == 0)
        return now;
    return GS_MAX(before, now - GS_MIN(now, LIBRARY_ALLOWANCE));
}

/* Scratch of the device that takes most. */
static uint64_t scratch_bytes(const gs_session *s)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < s->machine.kinds; k++)
        most = GS_MAX(most, gs_device_scratch_bytes(s->machine.device[s->machine.kind[k]], s->program));
    return most;
}

/* What devices count of classes (gs_metrics.found). */
static uint64_t found_bytes(const gs_session *s)
{
    return (uint64_t)s->machine.devices * GS_LOSS_SPLITS * GS_LOSS_SUMS * gs_program_loss_classes(s->program) *
           sizeof(uint32_t);
}

static void charge_fixed(gs_session *s)
{
    const gs_device_libraries libraries = gs_device_libraries_bytes(s->machine.device[s->machine.kind[0]]);
    const uint64_t one = gs_params_elements(s->program) * sizeof(float);
    const uint64_t state = s->pass.gradients ? one * s->config.states : 0;
    const uint64_t gradients = (s->pass.gradients ? one : 0) + gs_params_sums(s->program) * sizeof(double);
    const uint64_t previous = s->pass.gradients ? one : 0; /* parameters before the last step */
    const bool steps = gs_session_steps_on_device(s);
    const uint64_t scratch = scratch_bytes(s);
    const bool direct = s->machine.direct.possible;
    const uint32_t lanes = GS_DEVICE_LANES - (direct ? 0 : 1); /* loads have a thread where there are any */
    const uint32_t devices = devices_of_host(s);

    s->memory.libraries = GS_MIN(libraries.held + libraries.later, s->memory.process);
    charge(s, "process, store tables", s->memory.process - s->memory.libraries + found_bytes(s), false);
    charge(s, "batches", s->config.beside_bytes, false);
    charge(s, "rows of learned tables", gs_session_sweep_bytes(s), false);
    charge(s, "best parameters", gs_session_keeps_best(s) ? one : 0, false);
    /* one line, the GPU's with the allowance */
    charge(s, s->memory.libraries > 0 ? "libraries of the GPU" : "libraries (allowance)",
           s->memory.libraries + LIBRARY_ALLOWANCE, false);
    s->memory.ranking = s->pass.ranked ? ranking_memory(s) : 0;
    charge(s, "labels, their ranking", gs_session_label_bytes(s) + s->memory.ranking, false);
    if (s->config.logits || s->program->tables > 0) /* or rows of tables, in a file of weights */
        charge(s, "logits in input order", s->memory.logits = logits_memory(s), false);
    if (gs_session_has_memories(s)) { /* each has all; the host has the gradients of each, too */
        charge(s, "batches (device)", s->config.beside_device_bytes, true);
        charge(s, "parameters", one, true);
        charge(s, "gradients", one + gs_params_sums(s->program) * sizeof(double), true);
        charge(s, "optimizer state", steps ? state + previous + GS_BLOCK_BYTES : 0, true);
        charge(s, "kernel scratch", scratch, true);
        charge(s, "parameters, optimizer", one + previous + (steps ? 0 : state), false);
        charge(s, "gradients (host)", devices * (gradients + GS_BLOCK_BYTES), false);
        charge(s, "devices' threads", devices * lanes * THREAD_BYTES, false);
        charge(s, "reads past the host", direct ? GS_DEVICE_READS_BYTES : 0, false);
        charge(s, "marks of what is read", direct ? 2 * GS_BLOCK_BYTES : 0, true);
        uint32_t gpus = 0;
        for (uint32_t d = 0; d < devices; d++)
            gpus += !s->machine.wires.on_host[d];
        charge(s, "copies between GPUs", gpus > 1 ? gpus * GS_DEVICE_BETWEEN_BYTES : 0, false);
        return;
    }
    /* the devices share parameters; gradients of their own they have behind the first */
    if (!s->machine.wires.alone) {
        charge(s, "parameters, optimizer", one + previous + state, false);
        charge(s, "gradients", gradients + GS_BLOCK_BYTES, true);
        charge(s, "kernel scratch", scratch, true);
        charge(s, "devices' threads", devices * lanes * THREAD_BYTES, false);
        return;
    }
    charge(s, "parameters", one + previous, true);
    charge(s, "gradients", gradients, true);
    charge(s, "optimizer state", state, true);
    charge(s, "kernel scratch", scratch, true);
}

/* Chunk tables of the sets that the run uses, and what is kept of them by those who run it. */
static void charge_sets(gs_session *s)
{
    const uint64_t parts = gs_store_chunks(s->store)->parts;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < s->edges.sets; k++) {
        bytes += gs_session_uses_set(s, k) ? parts * parts * (sizeof(gs_exec_chunk) + 1) : 0;
        bytes += k >= 2 ? parts * parts * sizeof(gs_chunk) : 0;
    }
    if (s->machine.direct.possible)
        bytes += s->edges.sets * parts * parts * GS_EXEC_MARK_BYTES;
    charge(s, "chunk tables", s->memory.sets = bytes, false);
}

/* The plan's own regions, for people. */
/* Numbers of vertices are packed where the budgets leave room for that beside the plan. */
static void take_packed(gs_session *s)
{
    gs_plan *const plan = s->plan;
    const uint64_t before = scratch_bytes(s), parts = devices_of_host(s);

    s->program->packed_rows = gs_store_chunks(s->store)->interval_rows;
    const uint64_t bytes = scratch_bytes(s) - before;
    if (plan->device_bytes + bytes > s->memory.device ||
        plan->host_bytes + parts * bytes + GS_SESSION_PROCESS_STEP > s->memory.host) {
        s->program->packed_rows = 0;
        return;
    }
    charge(s, "packed numbers", bytes, true);
    plan->device_bytes += bytes;
    plan->host_bytes += parts * bytes;
}

static void note_plan(gs_session *s)
{
    take_packed(s);
    note(s, "plan", s->plan->table_bytes, false);
    note(s, "staging ring", s->plan->region_bytes[GS_REGION_RING], false);
    note(s, "resident data", s->plan->region_bytes[GS_REGION_RESIDENT], false);
    note(s, "sums and registers", s->plan->region_bytes[GS_REGION_ARENA], true);
}

/* ---- the model, and the program ------------------------------------------- */

/* Options to the text that runs. */
gs_status gs_session_open_model(gs_model **out, const gs_train_options *o)
{
    const gs_status st = gs_options_check_ranges(o); /* a layer's options have not been looked at */
    const gs_model_changes changes = {
        .norm = (gs_norm_kind)gs_choice(o, norm),
        .jk = (gs_jk_kind)gs_choice(o, jk),
        .residual = o->residual,
        .act_first = o->act_first,
        .layers = o->layers,
        .hidden = o->hidden,
        .set = o->set,
    };
    return st != GS_OK ? st : gs_model_open_changed(out, o->model, &changes);
}

bool gs_session_model_changed(const gs_train_options *o)
{
    return o->residual || o->act_first || o->set != NULL || gs_choice(o, norm) != 0 || gs_choice(o, jk) != 0;
}

#define REST_WIDTH 16 /* narrower rows are never rounded: they are little, and kept in memory first */

/* ---- what the store must have -------------------------------------------- */

static gs_status check_store(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const char *const dir = gs_store_dir(s->store);
    const bool training = s->config.purpose == GS_FOR_TRAINING;

    if (info->vertices == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no vertices", dir);
    if (gs_train_is_of_pairs(s->config.options))
        return GS_OK;
    if (info->classes == 0 && training)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no labels to train on", dir);
    if (info->classes == 0 && s->config.classes == 0)
        return gs_fail(GS_ENOTFOUND,
                       "%s: the store has no labels, and the weights do not say how many classes there are; give "
                       ".classes", dir);
    if (training && info->train == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no training vertices; its input needs a train_idx.npy (in "
                       "Python, train=)", dir);
    return GS_OK;
}

/* ---- passes -------------------------------------------------------------- */

/* Are layers trained by what a loss of pairs says of their last rows? */
static bool learns_pairs(const gs_session *s)
{
    return s->config.purpose == GS_FOR_TRAINING && gs_train_is_of_pairs(s->config.options) && !s->config.on_batches;
}

static uint32_t fill_leaves(gs_leaf leaf[GS_ARRAY_COUNT + 1], const gs_session *s)
{
    uint32_t n = 0;

    for (int id = 0; id < GS_ARRAY_COUNT; id++) {
        const gs_array_info *const a = gs_store_array(s->store, (gs_array_id)id);
        if (a->present && gs_array_is_of_vertices((gs_array_id)id)) /* others no model reads */
            leaf[n++] = (gs_leaf){gs_array_stem((gs_array_id)id), id, a->dtype, a->width};
    }
    if (learns_pairs(s))
        leaf[n++] = (gs_leaf){GS_IR_UPSTREAM, -1, GS_F32, s->classes};
    return n;
}

static double edges_per_vertex(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const gs_batch_shape *const b = s->config.batch;
    return b == NULL ? (double)info->edges / (double)info->vertices
                     : (double)b->limits.edges / (double)b->limits.vertices;
}

typedef enum pass_kind {
    EVALUATION,
    TRAINING,        /* drops out, and has statistics of all vertices */
    WITH_GRADIENTS,  /* and the derivative behind it */
} pass_kind;

/* One pass's graph; with its loss and derivative, where it has any, to see whether that can be done. */
static gs_status build_pass(gs_ir **out, gs_session *s, const gs_model *model, const gs_model_config *config,
                            bool gradients)
{
    GS_ENDS(gs_ir_free_at) gs_ir *ir = NULL;

    GS_TRY(gs_model_build(&ir, model, config));
    s->classes = gs_ir_node(ir, gs_ir_root(ir))->width;
    GS_TRY(gs_session_note_tables(s, ir));
    if (s->pass.labelled)
        GS_TRY(gs_ir_add_loss(ir, s->labels.loss, gs_store_array(s->store, GS_ARRAY_LABELS)->dtype));
    if (gradients)
        GS_TRY(gs_ir_differentiate(ir));
    *out = GS_HANDED_OVER(ir);
    return GS_OK;
}

/* Builds one pass's graph and compiles it. */
static gs_status add_pass(gs_session *s, const gs_model *model, const char *name, pass_kind kind, bool logits)
{
    const bool gradients = kind == WITH_GRADIENTS, given = gradients && learns_pairs(s);
    const gs_store_info *const info = gs_store_get_info(s->store);
    const gs_train_options *const o = s->config.options;
    gs_leaf leaf[GS_ARRAY_COUNT + 1];
    const gs_model_config config = {
        .layers = o->layers,
        .in_width = info->features,
        .hidden = o->hidden,
        .classes = s->classes,
        .heads = o->heads,
        .bases = o->bases,
        .edge_types = info->edge_types,
        .edge_weights = info->weights && !o->ignore_edge_weights, .edge_features = info->edge_features,
        .edge_coefficients = s->config.batch != NULL && s->config.batch->coefficients,
        .act = o->activation,
        .dropout = (float)o->dropout,
        .input_dropout = (float)o->input_dropout,
        .training = kind != EVALUATION,
        .self_loops = info->self_loops != 0,
        .embeddings = o->embeddings,
        .types = info->types,
        .named = info->named,
        .vertices = info->vertices,
    };
    const gs_compile_options compile = {
        .pass = name,
        .leaf = leaf,
        .leaves = fill_leaves(leaf, s),
        .metrics = s->pass.labelled,
        .loss = s->labels.loss,
        .store_logits = logits,
        .given = given,
        .no_move = o->no_move || s->variant.no_move != GS_NOT_TAKEN,
        .recompute = s->variant.recompute != GS_NOT_TAKEN,
        .in_memory = s->config.batch != NULL || s->variant.keep != GS_NOT_TAKEN,
        .rest_width = REST_WIDTH,
        .rest = gs_choice(o, spill_type) == 1 ? GS_BF16 : GS_F32,
        .read = gs_choice(o, gather_type) == 1 ? GS_BF16 : GS_F32,
        .lean = s->variant.lean != GS_NOT_TAKEN, .typed = s->variant.typed != GS_NOT_TAKEN,
        .holders = !gs_session_has_memories(s) && info->vertices <= GS_HELD_VERTICES, /* GPUs make all products */
        .hoist = !o->no_hoist && s->variant.no_hoist == GS_NOT_TAKEN && s->config.purpose == GS_FOR_TRAINING &&
                 s->config.batch == NULL && !s->config.on_batches,
        .no_fuse = o->no_fuse || s->variant.no_fuse != GS_NOT_TAKEN,
        .edges_per_vertex = edges_per_vertex(s),
        .cuts = s->edges.scans == NULL ? NULL : &s->edges.scans->cuts,
        .stop = o->stop,
    };
    gs_ir *ir = NULL;
    const gs_status st = build_pass(&ir, s, model, &config, gradients && !given);

    return st == GS_OK ? gs_compile(s->program, ir, &compile) : st; /* takes the graph */
}

/* Rows come from a pass of their own before "train", as pairs are scored before there is a derivative; "train" computes
 * again what its derivative needs. Where nothing is random, these rows are also the ones that are judged. */
static gs_status add_pair_passes(gs_session *s, const gs_model *model)
{
    GS_TRY(add_pass(s, model, "train", WITH_GRADIENTS, false));
    s->pass.train_differs = true; /* its rows are not judged */
    const bool differs = gs_program_train_differs(s->program, gs_program_pass(s->program, "train"));
    GS_TRY(add_pass(s, model, "forward", differs ? TRAINING : EVALUATION, true));
    s->pass.forward = gs_program_pass(s->program, "forward");
    s->pairs.rows = s->program->logits;
    s->program->array[s->pairs.rows].result = true;
    return differs && s->config.batch == NULL ? add_pass(s, model, "predict", EVALUATION, true) : GS_OK;
}

/* Which arrays have the rows of a run of pairs. */
static void find_pairs(gs_session *s)
{
    const gs_program *const p = s->program;

    if (s->config.rows_alone)
        s->pairs.rows = s->pairs.judged = p->table[0].array;
    else if (gs_train_is_of_pairs(s->config.options))
        s->pairs.judged = p->logits;
    for (uint32_t a = 0; a < p->arrays && learns_pairs(s); a++)
        if (strcmp(p->array[a].name, GS_IR_UPSTREAM) == 0)
            s->pairs.upstream = a;
    if (s->pass.predict == GS_NONE)
        s->pass.predict = s->pass.forward;
}

static gs_status add_pair_params(gs_session *s)
{
    for (uint32_t k = 0; k < s->config.pair_params; k++)
        GS_TRY(gs_program_add_param(s->program, &s->config.pairs[k]));
    return GS_OK;
}

/* Without dropout and batch statistics the train pass computes what an evaluation would, so one more
 * pass is needed only for the final weights: the one that stores the logits will do. */
static gs_status add_passes(gs_session *s, const gs_model *model)
{
    const bool training = s->config.purpose == GS_FOR_TRAINING, logits = s->config.logits || s->pass.ranked;
    const bool pairs = learns_pairs(s);

    s->pass.train_differs = s->config.on_batches;
    if (pairs)
        GS_TRY(add_pair_passes(s, model));
    else if (training && !s->config.on_batches)
        GS_TRY(add_pass(s, model, "train", WITH_GRADIENTS, false));
    if (training && !s->config.on_batches && !pairs)
        s->pass.train_differs = gs_program_train_differs(s->program, gs_program_pass(s->program, "train"));
    if (training && s->config.batch == NULL && (s->pass.train_differs || !logits) &&
        !gs_train_task_is_of_pairs(s->labels.task)) /* whose figures come of rows, not of a pass */
        GS_TRY(add_pass(s, model, "eval", EVALUATION, false));
    if (logits && s->config.batch == NULL && !pairs)
        GS_TRY(add_pass(s, model, "predict", EVALUATION, true));
    GS_TRY(gs_session_cut_stages(s));
    s->pass.train = gs_program_pass(s->program, "train");
    s->pass.eval = gs_program_pass(s->program, "eval");
    s->pass.predict = gs_program_pass(s->program, "predict");
    find_pairs(s);
    return gs_program_check(s->program);
}

/* A model that learns rows of vertices may do without. */
static gs_status check_features(const gs_session *s, const gs_model *model)
{
    if (gs_model_learns_rows(model, gs_store_get_info(s->store)->features) ||
        gs_store_get_info(s->store)->features > 0)
        return GS_OK;
    return gs_fail(GS_ENOTFOUND,
                   "%s: the store has no features; make it with .random_features, or from an input that has some, or "
                   "train a model that learns them (param NAME[vertices, N]) or does without (rgcn)",
                   gs_store_dir(s->store));
}

static gs_status compile_model(gs_session *s)
{
    GS_ENDS(gs_model_close_at) gs_model *model = NULL;

    GS_TRY(gs_session_open_model(&model, s->config.options));
    GS_TRY(check_features(s, model));
    GS_NEED((s->program = gs_program_new()) != NULL, "out of memory for the compiled model");
    return add_passes(s, model);
}

gs_status gs_session_prepare(gs_session **out, const gs_session_config *config, gs_scans *scans, gs_variant variant)
{
    gs_store *const store = scans == NULL ? NULL : scans->store;
    GS_ENDS(gs_session_close_at) gs_session *s = gs_calloc(1, sizeof(*s));

    GS_NEED(s != NULL, "out of memory");
    s->edges.scans = scans;
    s->config = *config;
    s->earlier_epochs = config->earlier != NULL ? config->earlier->epochs : 0;
    s->variant = variant;
    s->pass = (gs_session_passes){.train = GS_NONE, .eval = GS_NONE, .predict = GS_NONE,
                                  .forward = GS_NONE,
                                  .gradients = config->purpose == GS_FOR_TRAINING};
    s->pairs = (gs_session_pairs){GS_NONE, GS_NONE, GS_NONE};
    if (store != NULL || config->shape != NULL)
        s->store = gs_store_share(store != NULL ? store : config->shape);
    else
        GS_TRY(gs_session_open_store(&s->store, config->store));
    GS_TRY(gs_session_list_spill(s));
    GS_TRY(check_store(s));
    GS_TRY(gs_session_choose_task(s));
    if (config->options->on_open != NULL)
        config->options->on_open(config->options->context, "planning", NULL);
    s->pass.labelled = gs_store_array(s->store, GS_ARRAY_LABELS)->present &&
                       gs_store_array(s->store, GS_ARRAY_SPLIT)->present && !config->options->embeddings &&
                       !gs_train_task_is_of_pairs(s->labels.task);
    s->pass.ranked = s->pass.labelled && (s->labels.task == GS_TRAIN_TASK_MULTILABEL || config->ranks);
    GS_TRY(gs_session_open_devices(s));
    GS_TRY(compile_model(s));
    GS_TRY(add_pair_params(s));
    GS_TRY(gs_session_add_tables(s, gs_session_keeps_best(s)));
    *out = GS_HANDED_OVER(s);
    return GS_OK;
}

/* ---- the plan ------------------------------------------------------------- */

/* The rows, edges and costs that gs_schedule() is given, and the plan that it makes of them. */

static bool moves_anything(const gs_plan *p)
{
    for (uint32_t i = 0; i < p->passes; i++)
        if (p->pass[i].read_bytes > 0 || p->pass[i].upload_bytes > 0)
            return true;
    return false;
}

static void drop_plan(gs_session *s)
{
    gs_plan_free(s->plan);
    s->plan = NULL;
}

/* The best plan in place of one that was counted, which does where none of those that are compared fits. */
static gs_status plan_whole(gs_session *s, gs_schedule_config *config, uint64_t tasks)
{
    drop_plan(s);
    config->any_plan = false;
    config->no_sizes = true;
    const gs_status st = gs_schedule(&s->plan, config);
    if (st != GS_EBUDGET)
        return st;
    config->effort->tasks = tasks;
    config->any_plan = config->listed = true;
    config->no_sizes = !s->memory.sizes;
    return gs_schedule(&s->plan, config);
}

/* Replaces a plan by one that knows which rows each chunk needs; where its table of runs has no room, without one. */
static gs_status plan_selective(gs_session *s, gs_schedule_config *config)
{
    const uint64_t tables = s->plan->table_bytes;
    const bool no_swap = config->no_swap;
    const uint64_t before = config->effort->tasks;
    gs_plan *plan = NULL;
    gs_status st;

    if (gs_alloc_live_bytes() + tables + tables / 2 > s->memory.live_most)
        drop_plan(s);
    GS_TRY(gs_session_read_needs(s, &config->needs));
    config->no_swap = s->config.options->no_swap;
    config->no_sizes = true;
    config->any_plan = false;
    st = gs_schedule(&plan, config);
    if (st == GS_OK) {
        drop_plan(s);
        s->plan = plan;
        config->effort->found.read_needs = true;
        return GS_OK;
    }
    if (st != GS_EBUDGET)
        return st;
    config->effort->tasks = before;
    gs_session_drop_read_needs(s); /* the first plan knew those of pruned edges */
    config->no_swap = no_swap;
    return plan_whole(s, config, before);
}

/* Of a plan that was made to see whether there is one: the best one, if it is another. */
static gs_status plan_better(gs_session *s, gs_schedule_config *config)
{
    if (s->config.trial) /* there is one */
        return GS_OK;
    if (config->needs.granules.words > 0 && moves_anything(s->plan))
        return plan_selective(s, config);
    if (!config->any_plan || !config->effort->chosen)
        return GS_OK;
    return plan_whole(s, config, config->effort->tasks);
}

/* Chooses how products by edge type are made, and takes what scratch that needs. */
static gs_status charge_products(gs_session *s)
{
    const uint64_t before = scratch_bytes(s);
    const gs_status st = gs_session_choose_products(s);

    s->memory.run_scratch = st == GS_OK ? scratch_bytes(s) - before : 0;
    charge(s, "products of edges", s->memory.run_scratch, true);
    return st;
}

/* With less of that scratch, the last that was charged, if there is any: without pairs, or without runs, too. */
static bool do_with_less(gs_session *s)
{
    const uint64_t had = s->memory.run_scratch, others = had > 0 ? scratch_bytes(s) - had : 0;

    if (had == 0)
        return false;
    if (!gs_session_leave_pairs(s))
        gs_session_leave_ways(s);
    s->memory.device_fixed -= had;
    s->memory.items--;
    s->memory.run_scratch = scratch_bytes(s) - others;
    charge(s, "products of edges", s->memory.run_scratch, true);
    return true;
}

/* A plan; where none fits otherwise, one with products of runs, or edge by edge. */
static gs_status schedule(gs_session *s, gs_schedule_config *config)
{
    gs_status st = gs_schedule(&s->plan, config);

    while (st == GS_EBUDGET && do_with_less(s)) {
        config->device_fixed = s->memory.device_fixed;
        st = gs_schedule(&s->plan, config);
    }
    return st;
}

/* The plan that was found before, of the same program. GS_EBUDGET: there is no room for it now. */
static gs_status make_again(gs_session *s, gs_schedule_config *config)
{
    const bool reads = config->effort->found.read_needs;

    if (reads)
        GS_TRY(gs_session_read_needs(s, &config->needs));
    config->no_swap = reads ? s->config.options->no_swap : config->no_swap;
    config->any_plan = false;
    const gs_status st = schedule(s, config);
    config->effort->found.read_needs = reads;
    return st;
}

/* The question is of a program and its edges, which follow from it, from how many sets there are and how fine rows are
 * told apart. */
static void note_edges(gs_effort *effort, const gs_session *s)
{
    const uint32_t of[2] = {s->edges.sets, s->edges.rows.granules.rows};

    if (effort->question != 0)
        effort->question = gs_hash64_seeded(of, sizeof(of), effort->question);
}

/* Behind a failure there is none: one that was counted alone has no tasks. */
static gs_status make_plan(gs_session *s, gs_schedule_config *config)
{
    note_edges(config->effort, s);
    if (config->effort->again && config->effort->found.known)
        return make_again(s, config);
    gs_status st = schedule(s, config);

    if (st == GS_OK)
        st = plan_better(s, config);
    if (st != GS_OK)
        drop_plan(s);
    return st;
}

/* Where the train pass's own accuracies are the model's, the pass "eval" is for the final weights alone. */
static bool evaluates_separately(const gs_session *s) { return s->pass.gradients && s->pass.train_differs; }

uint32_t gs_session_epochs(const gs_session *s)
{
    return GS_MAX(s->earlier_epochs > 0 ? s->earlier_epochs : s->config.options->epochs, 1u);
}

uint32_t gs_session_evaluations(const gs_session *s)
{
    const uint32_t every = s->config.eval_every;
    return 1 + (evaluates_separately(s) && every > 0 ? gs_session_epochs(s) / every : 0);
}

/* Cost of a run of rows in a copy between devices on host memory: one more call of memcpy. */
#define COPY_RUN_SECONDS 0.2e-6

/* What is known of the speed of one of its devices. */
static void recall_cost(const gs_session *s, gs_cost *out, uint32_t device)
{
    const gs_device *const d = s->machine.device[device];
    gs_cost_record record;
    gs_cost_record_load(&record, gs_device_name(d));
    gs_session_cost_of(s, out, &record, device);
    for (int w = 0; w < GS_LINK_WAYS && gs_device_unified(d); w++)
        if (out->source[GS_WORK_LINKS + w] == GS_COST_DEFAULT)
            out->seconds[GS_WORK_LINKS + w][0] = COPY_RUN_SECONDS;
}

void gs_session_recall_batch_cost(const gs_session *s, gs_cost *out)
{
    gs_cost_record record;
    recall_cost(s, out, 0);
    gs_cost_record_load(&record, gs_device_name(s->machine.device[0]));
    gs_cost_take_batches(out, &record);
}

static gs_status recall_machine(gs_session *s)
{
    if (s->config.earlier != NULL) {
        s->machine.cost = s->config.earlier->cost;
        s->machine.host_cost = s->config.earlier->host_cost;
        return GS_OK;
    }
    for (uint32_t k = 0; k < s->machine.kinds; k++)
        recall_cost(s, k == 0 ? &s->machine.cost : &s->machine.host_cost, s->machine.kind[k]);
    return gs_ranks_share(&s->machine.cost, sizeof(s->machine.cost)); /* who plans alike has one machine in mind */
}

/* A budget less by so small a part is not looked for. */
#define NEXT_TO_NOTHING 64u

/* Is there no plan, whatever edges and rows it needs, or none that is of interest? */
static bool is_beyond(const gs_session *s)
{
    const gs_session_memory *const m = &s->memory;
    const uint64_t least = m->host_fixed + m->least;
    return (!m->sizes && least > m->host) || (m->known > 0 && least + m->known / NEXT_TO_NOTHING >= m->known);
}

/* Which edges and rows the program needs, and what memory that takes beside a plan. */
static gs_status find_needs(gs_session *s, gs_schedule_config *config)
{
    gs_session_find_direct(s);
    charge_fixed(s);
    if (is_beyond(s))
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    GS_TRY(gs_session_list_edges(s));
    if (!s->config.options->no_selective)
        config->needs.granules = gs_session_granules(s);
    if (config->needs.granules.words > 0)
        config->needs.rows = gs_session_rows(s);
    GS_TRY(gs_session_prune(s, config));
    charge_sets(s);
    gs_session_find_direct_scratch(s);
    return charge_products(s);
}

gs_status gs_session_plan(gs_session *s, gs_effort *effort)
{
    gs_schedule_config config = {0};

    if (gs_params_elements(s->program) > UINT64_MAX / 64)
        return gs_fail(GS_EINVAL, "the model's parameters are beyond what memory can hold; check .hidden");
    GS_TRY(set_budgets(s));
    GS_TRY(recall_machine(s));
    GS_TRY(find_needs(s, &config));
    config = (gs_schedule_config){
        .program = s->program,
        .chunks = gs_store_chunks(s->store),
        .array_sum_bytes = GS_SUM_BYTES,
        .host_memory = s->memory.host,
        .device_memory = s->memory.device,
        .host_parts = s->memory.host_parts,
        .topology = &s->machine.wires, .owners = gs_session_owners(s), .dealt_arrays = gs_session_dealt_arrays(s),
        .no_chain = s->config.options->no_chain || s->machine.wires.across.network, /* each has a host of its own */
        .loads = s->machine.direct.possible && gs_choice(s->config.options, disk_to_device) == GS_DIRECT_YES,
        .may_load = s->machine.direct.possible,
        .frames_apart = gs_session_has_memories(s),
        .host_fixed = s->memory.host_fixed,
        .host_libraries = s->memory.libraries,
        .host_varies = s->config.trial ? 0 : GS_SESSION_PROCESS_STEP, /* which trials have in what they find */
        .device_fixed = s->memory.device_fixed,
        .live_most = s->memory.live_most,
        .stop = s->config.options->stop,
        .task_bytes = GS_EXEC_TRACE_TASK_BYTES * (!s->machine.wires.alone + s->config.timed) +
                      (s->machine.direct.possible ? GS_EXEC_LOAD_TASK_BYTES : 0) +
                      (gs_ranks_count() > 1 || s->config.cluster != NULL ? GS_EXEC_MESSAGE_TASK_BYTES : 0),
        .cost = &s->machine.cost,
        .host_cost = gs_session_host_cost(s),
        /* the selective plan is the one to be ordered */
        .no_swap = s->config.options->no_swap || config.needs.granules.words > 0,
        .no_pipeline = s->config.options->no_pipeline,
        .never_again = s->config.eval_every == 1 && evaluates_separately(s),
        .epochs = s->pass.gradients ? gs_session_epochs(s) : 1,
        .evaluations = gs_session_evaluations(s),
        .disk_bps = s->machine.cost.read_bps,
        .disk_request_seconds = s->machine.cost.request_seconds,
        .force_spill = s->config.options->no_cache,
        .needs = {.sets = s->edges.sets, .set = s->edges.set, .stage_set = s->edges.stage_set,
                  .stage_rows = s->edges.stage_rows, .array_rows = s->edges.array_rows,
                  .granules = config.needs.granules, .rows = config.needs.rows},
        .refusal = &s->memory.refused,
        .no_sizes = !s->memory.sizes,
        .host_known = s->memory.known,
        .tables_part = s->memory.tables_part,
        .any_plan = s->config.trial || config.needs.granules.words > 0,
        .counted = s->config.trial,
        .effort = effort,
    };
    GS_TRY(make_plan(s, &config));
    gs_session_drop_needs(s);
    gs_session_drop_runs(s);
    note_plan(s);
    return GS_OK;
}
