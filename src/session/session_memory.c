/* session_memory.c - the two budgets, and what a run takes of them beside its plan. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/machine.h"
#include "base/size.h"
#include "session/session.h"
#include "session/tables.h"

/* Memory that libraries take after the budgets are drawn up: code pages of
 * oneDNN and OpenMP touched for the first time, kernels generated at run time,
 * threads' stacks, malloc's slack. Measured: below 5 MiB with 2 threads (peak
 * resident less everything that is accounted for). */
#define LIBRARY_ALLOWANCE (12 * GS_MIB)

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
 * its memory yet. */
static uint64_t live_most(const gs_session *s)
{
    const uint64_t resident = gs_process_resident_bytes(), live = gs_alloc_live_bytes();
    const uint64_t other = (s->config.trial ? s->config.process_bytes : resident - GS_MIN(resident, live)) +
                           LIBRARY_ALLOWANCE;
    return s->memory.host - GS_MIN(s->memory.host, other) + 1; /* 0: any */
}

/* The budget that an earlier run had (0: there was none) where `free` bytes have room for it, or a share of those. */
static uint64_t default_budget(uint64_t free, double share, uint64_t earlier)
{
    const uint64_t most = (uint64_t)(EARLIER_SHARE * (double)free);
    return earlier > 0 && earlier <= most ? earlier : (uint64_t)(share * (double)free);
}

/* The budget of each device where the options give none; sets host_parts, too. */
static gs_status device_budget(gs_session *s)
{
    gs_session_memory *const m = &s->memory;
    const uint64_t earlier = s->config.earlier == NULL ? 0 : s->config.earlier->device_memory;
    const uint32_t parts = 2 * s->machine.devices;
    uint64_t free_bytes = UINT64_MAX;
    gs_status st = GS_OK;

    m->device = m->host / parts;
    m->host_parts = parts;
    if (gs_session_has_memories(s)) {
        if ((st = gs_session_free_device_memory(s, &free_bytes)) != GS_OK)
            return st;
        free_bytes = default_budget(free_bytes, GPU_SHARE, earlier);
        if (earlier == 0 && s->machine.on_host != GS_NONE && m->device <= free_bytes)
            return GS_OK;
    } else if (earlier == 0 || earlier > m->host) {
        return GS_OK;
    }
    m->device = gs_session_has_memories(s) ? free_bytes : earlier;
    m->host_parts = 0;
    return GS_OK;
}

/* Takes the budgets that a topology gives each device. */
static void ask_topology(gs_session *s)
{
    const gs_topology *const t = s->machine.topology;

    s->memory.device = s->memory.device_most = t->memory[0];
    s->memory.host_parts = 0;
    for (uint32_t d = 1; d < t->devices; d++) {
        s->memory.device = GS_MIN(s->memory.device, t->memory[d]);
        s->memory.device_most = GS_MAX(s->memory.device_most, t->memory[d]);
    }
}

gs_status gs_session_set_budgets(gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const gs_session_earlier *const e = s->config.earlier;
    gs_status st = GS_OK;

    s->memory.host = o->host_memory;
    if (s->memory.host == 0)
        s->memory.host = default_budget(gs_machine_free_memory(), HOST_SHARE, e == NULL ? 0 : e->host_memory);
    if ((s->memory.device = o->device_memory) == 0)
        st = device_budget(s);
    s->memory.device_most = s->memory.device;
    if (s->machine.topology != NULL && s->machine.topology->memory[0] > 0)
        ask_topology(s);
    for (uint32_t d = 0; d < s->machine.devices; d++)
        gs_device_set_budget(s->machine.device[d], s->memory.device);
    s->memory.live_most = live_most(s);
    return st;
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
 * this one has freed, and pages that libraries have touched since, as their allowance has those. */
uint64_t gs_session_process_bytes(const gs_session *s, uint64_t before)
{
    const uint64_t later = gs_device_libraries_bytes(s->machine.device[s->machine.lead]).later;

    gs_alloc_trim();
    gs_process_drop_idle_code();
    const uint64_t now = gs_align_up(gs_process_resident_bytes() + later, GS_SESSION_PROCESS_STEP);
    if (before == 0)
        return now;
    return GS_MAX(before, now - GS_MIN(now, LIBRARY_ALLOWANCE));
}

/* Scratch of the device that takes most. */
static uint64_t scratch_bytes(const gs_session *s)
{
    uint64_t most = gs_device_scratch_bytes(s->machine.device[s->machine.lead], s->program);
    if (s->machine.on_host != GS_NONE)
        most = GS_MAX(most, gs_device_scratch_bytes(s->machine.device[s->machine.on_host], s->program));
    return most;
}

/* What devices count of classes (gs_metrics.found). */
static uint64_t found_bytes(const gs_session *s)
{
    return (uint64_t)s->machine.devices * GS_LOSS_SPLITS * GS_LOSS_SUMS * gs_program_loss_classes(s->program) *
           sizeof(uint32_t);
}

void gs_session_charge_fixed(gs_session *s)
{
    const gs_device_libraries libraries = gs_device_libraries_bytes(s->machine.device[s->machine.lead]);
    const uint64_t one = gs_params_elements(s->program) * sizeof(float);
    const uint64_t state = s->pass.gradients ? one * s->config.states : 0;
    const uint64_t gradients = (s->pass.gradients ? one : 0) + gs_params_sums(s->program) * sizeof(double);
    const uint64_t previous = s->pass.gradients ? one : 0; /* parameters before the last step */
    const bool steps = gs_session_steps_on_device(s);
    const uint64_t scratch = scratch_bytes(s);
    const bool direct = s->machine.direct.possible;
    const uint32_t lanes = GS_DEVICE_LANES - (direct ? 0 : 1); /* loads have a thread where there are any */

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
        charge(s, "gradients (host)", s->machine.devices * (gradients + GS_BLOCK_BYTES), false);
        charge(s, "devices' threads", s->machine.devices * lanes * THREAD_BYTES, false);
        charge(s, "reads past the host", direct ? GS_DEVICE_READS_BYTES : 0, false);
        charge(s, "marks of what is read", direct ? 2 * GS_BLOCK_BYTES : 0, true);
        const uint32_t takers = s->machine.devices - (s->machine.wires.across.joined ? 0 : 1); /* in a ring, all */
        charge(s, "copies between GPUs", takers * GS_DEVICE_BETWEEN_BYTES, false);
        return;
    }
    /* the devices share parameters; gradients of their own they have behind the first */
    if (s->machine.topology != NULL) {
        charge(s, "parameters, optimizer", one + previous + state, false);
        charge(s, "gradients", gradients + GS_BLOCK_BYTES, true);
        charge(s, "kernel scratch", scratch, true);
        charge(s, "devices' threads", s->machine.devices * lanes * THREAD_BYTES, false);
        return;
    }
    charge(s, "parameters", one + previous, true);
    charge(s, "gradients", gradients, true);
    charge(s, "optimizer state", state, true);
    charge(s, "kernel scratch", scratch, true);
}

/* Chunk tables of the sets that the run uses, and what is kept of them by those who run it. */
void gs_session_charge_sets(gs_session *s)
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

void gs_session_note_plan(gs_session *s)
{
    note(s, "plan", s->plan->table_bytes, false);
    note(s, "staging ring", s->plan->region_bytes[GS_REGION_RING], false);
    note(s, "resident data", s->plan->region_bytes[GS_REGION_RESIDENT], false);
    note(s, "sums and registers", s->plan->region_bytes[GS_REGION_ARENA], true);
}
