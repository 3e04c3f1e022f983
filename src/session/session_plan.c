/* session_plan.c - the rows, edges and costs that gs_schedule() is given, and the plan that it makes of them. */
#include "base/alloc.h"
#include "base/option_table.h"
#include "base/size.h"
#include "cost/cost_file.h"
#include "schedule/schedule.h"
#include "session/prune.h"
#include "session/session.h"
#include "session/session_plan.h"

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

/* Replaces a plan by one that knows which rows each chunk needs. Where that one's table of runs has no room, one
 * without is made. */
static gs_status plan_selective(gs_session *s, gs_schedule_config *config)
{
    const uint64_t tables = s->plan->table_bytes;
    const bool no_swap = config->no_swap;
    const uint64_t before = config->effort->tasks;
    gs_plan *plan = NULL;
    gs_status st;

    if (gs_alloc_live_bytes() + tables + tables / 2 > s->memory.live_most)
        drop_plan(s);
    if ((st = gs_session_read_needs(s, config->needs.granules)) != GS_OK)
        return st;
    config->no_swap = s->config.options->no_swap;
    config->no_sizes = true;
    config->any_plan = false;
    st = gs_schedule(&plan, config);
    if (st == GS_OK) {
        drop_plan(s);
        s->plan = plan;
        return GS_OK;
    }
    if (st != GS_EBUDGET)
        return st;
    drop_plan(s); /* it was any that fits */
    config->effort->tasks = before;
    gs_session_drop_read_needs(s); /* the first plan knew those of pruned edges */
    config->no_swap = no_swap;
    config->no_sizes = !s->memory.sizes;
    return gs_schedule(&s->plan, config);
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
    drop_plan(s);
    config->any_plan = false;
    return gs_schedule(&s->plan, config);
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

void gs_session_recall_cost(const gs_session *s, gs_cost *out, uint32_t device)
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
    gs_session_recall_cost(s, out, 0);
    gs_cost_record_load(&record, gs_device_name(s->machine.device[0]));
    gs_cost_take_batches(out, &record);
}

static void recall_machine(gs_session *s)
{
    if (s->config.earlier != NULL) {
        s->machine.cost = s->config.earlier->cost;
        s->machine.host_cost = s->config.earlier->host_cost;
        return;
    }
    gs_session_recall_cost(s, &s->machine.cost, s->machine.lead);
    if (s->machine.on_host != GS_NONE)
        gs_session_recall_cost(s, &s->machine.host_cost, s->machine.on_host);
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
    gs_status st;

    gs_session_find_direct(s);
    gs_session_charge_fixed(s);
    if (is_beyond(s))
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    if ((st = gs_session_list_edges(s)) != GS_OK)
        return st;
    if (!s->config.options->no_selective)
        config->needs.granules = gs_session_granules(s);
    if ((st = gs_session_prune(s, config)) != GS_OK)
        return st;
    gs_session_charge_sets(s);
    gs_session_find_direct_scratch(s);
    return GS_OK;
}

gs_status gs_session_plan(gs_session *s, gs_effort *effort)
{
    gs_schedule_config config = {0};
    gs_status st;

    if (gs_params_elements(s->program) > UINT64_MAX / 64)
        return gs_fail(GS_EINVAL, "the model's parameters are beyond what memory can hold; check .hidden");
    if ((st = gs_session_set_budgets(s)) != GS_OK)
        return st;
    recall_machine(s);
    if ((st = find_needs(s, &config)) != GS_OK)
        return st;
    config = (gs_schedule_config){
        .program = s->program,
        .chunks = gs_store_chunks(s->store),
        .array_sum_bytes = GS_SUM_BYTES,
        .host_memory = s->memory.host,
        .device_memory = s->memory.device,
        .host_parts = s->memory.host_parts,
        .topology = s->machine.topology,
        .no_chain = s->config.options->no_chain,
        .loads = s->machine.direct.possible && gs_choice(s->config.options, disk_to_device) == GS_DIRECT_YES,
        .may_load = s->machine.direct.possible,
        .unified = !gs_session_has_memories(s),
        .host_fixed = s->memory.host_fixed,
        .host_libraries = s->memory.libraries,
        .host_varies = GS_SESSION_PROCESS_STEP,
        .device_fixed = s->memory.device_fixed,
        .live_most = s->memory.live_most,
        .stop = s->config.options->stop,
        .task_bytes = GS_EXEC_TRACE_TASK_BYTES * (s->machine.topology != NULL ? 1 + s->config.timed : s->config.timed) +
                      (s->machine.direct.possible ? GS_EXEC_LOAD_TASK_BYTES : 0),
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
                  .granules = config.needs.granules},
        .refusal = &s->memory.refused,
        .no_sizes = !s->memory.sizes,
        .host_known = s->memory.known,
        .any_plan = s->config.trial || config.needs.granules.words > 0,
        .effort = effort,
    };
    if ((st = gs_schedule(&s->plan, &config)) != GS_OK ||
        (st = plan_better(s, &config)) != GS_OK)
        return st;
    gs_session_drop_needs(s);
    gs_session_drop_runs(s);
    gs_session_note_plan(s);
    return GS_OK;
}
