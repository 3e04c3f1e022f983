/* session.c - opening: store, device, and the passes of the model. */
#include "train/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "compile/compile.h"
#include "model/model.h"
#include "train/optim.h"

#define REST_WIDTH 16 /* narrower rows are never rounded: they are little, and kept in memory first */
/* Another program must save this much of the predicted epoch; */
#define RECOMPUTE_WORTH 0.95
/* or this much of the memory, for an epoch that is predicted to be no longer than so (edge programs take less than is
 * predicted until they were measured). */
#define LEAN_BYTES 0.75
#define LEAN_SECONDS 1.9
/* What is computed once is wide from so many times the features' columns on. */
#define WIDE 2

/* ---- what the store must have -------------------------------------------- */

static gs_status check_store(const gs_session *s, gs_purpose purpose)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const char *const dir = gs_store_dir(s->store);

    if (info->vertices == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no vertices", dir);
    if (info->features == 0)
        return gs_fail(GS_ENOTFOUND,
                       "%s: the store has no features; make it with --random-features, or from an input that has some",
                       dir);
    if (info->classes == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no labels, so the number of classes is not known", dir);
    if (purpose == GS_FOR_TRAINING && info->train == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no training vertices; its input needs a train_idx.npy", dir);
    return GS_OK;
}

/* ---- passes -------------------------------------------------------------- */

static uint32_t fill_leaves(gs_leaf leaf[GS_ARRAY_COUNT], const gs_store *store)
{
    uint32_t n = 0;

    for (int id = 0; id < GS_ARRAY_COUNT; id++) {
        const gs_array_info *const a = gs_store_array(store, (gs_array_id)id);
        if (a->present)
            leaf[n++] = (gs_leaf){gs_array_stem((gs_array_id)id), id, a->dtype, a->width};
    }
    return n;
}

/* Builds one pass's graph and compiles it. `gradients`: with the derivative. */
static gs_status add_pass(gs_session *s, const gs_model *model, gs_purpose purpose, const char *name, bool gradients,
                          bool logits)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const gs_train_options *const o = s->options;
    gs_leaf leaf[GS_ARRAY_COUNT];
    const gs_model_config config = {
        .layers = o->layers,
        .in_width = info->features,
        .hidden = o->hidden,
        .classes = info->classes,
        .heads = o->heads,
        .bases = o->bases,
        .edge_types = info->edge_types,
        .edge_weights = info->weights,
        .act = o->activation,
        .dropout = (float)o->dropout,
        .input_dropout = (float)o->input_dropout,
        .training = gradients,
        .self_loops = info->self_loops != 0,
    };
    const gs_compile_options compile = {
        .pass = name,
        .leaf = leaf,
        .leaves = fill_leaves(leaf, s->store),
        .metrics = s->labelled,
        .store_logits = logits,
        .no_move = o->no_move,
        .recompute = s->recompute != GS_NOT_TAKEN,
        .rest_width = REST_WIDTH,
        .rest = strcmp(o->spill_type, "bf16") == 0 ? GS_BF16 : GS_F32,
        .lean = s->lean != GS_NOT_TAKEN,
        .batch = s->batch != GS_NOT_TAKEN,
        .hoist = !o->no_hoist && purpose == GS_FOR_TRAINING,
        .no_fuse = o->no_fuse,
        .edges_per_vertex = (double)info->edges / (double)info->vertices,
    };
    gs_ir *ir = NULL;
    gs_status st;

    if ((st = gs_model_build(&ir, model, &config)) != GS_OK)
        return st;
    if (s->labelled)
        st = gs_ir_add_loss(ir);
    if (st == GS_OK && gradients)
        st = gs_ir_differentiate(ir);
    if (st != GS_OK) {
        gs_ir_free(ir);
        return st;
    }
    return gs_compile(s->program, ir, &compile); /* takes the graph */
}

/* Without dropout and batch statistics the train pass computes what an evaluation would, so one more
 * pass is needed only for the final weights: the one that stores the logits will do. */
static gs_status add_passes(gs_session *s, const gs_model *model, gs_purpose purpose, bool logits)
{
    const bool training = purpose == GS_FOR_TRAINING;
    gs_status st = GS_OK;

    if (training)
        st = add_pass(s, model, purpose, "train", true, false);
    if (st == GS_OK && training)
        s->apart = gs_program_trains_apart(s->program, gs_program_pass(s->program, "train"));
    if (st == GS_OK && training && (s->apart || !logits))
        st = add_pass(s, model, purpose, "eval", false, false);
    if (st == GS_OK && logits)
        st = add_pass(s, model, purpose, "predict", false, true);
    if (st != GS_OK)
        return st;
    s->train = gs_program_pass(s->program, "train");
    s->eval = gs_program_pass(s->program, "eval");
    s->predict = gs_program_pass(s->program, "predict");
    return gs_program_check(s->program);
}

static gs_status compile_model(gs_session *s, gs_purpose purpose, bool logits)
{
    gs_model *model = NULL;
    gs_status st = gs_model_open(&model, s->options->model);

    if (st != GS_OK)
        return st;
    if ((s->program = gs_program_new()) == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory for the compiled model");
    else
        st = add_passes(s, model, purpose, logits);
    gs_model_close(model);
    return st;
}

/* ---- open, close --------------------------------------------------------- */

/* How a model is compiled (compile.h), and why so. */
typedef struct gs_variant {
    gs_taken recompute, lean, batch;
} gs_variant;

/* What a session is opened for. */
typedef struct gs_opening {
    const char *store;
    const gs_train_options *options;
    gs_purpose purpose;
    bool logits;
} gs_opening;

/* Everything but the plan. */
static gs_status prepare(gs_session **out, const gs_opening *o, gs_variant variant)
{
    gs_session *s = gs_calloc(1, sizeof(*s));
    gs_optim_kind kind;
    gs_status st;

    if (s == NULL)
        return gs_fail(GS_ENOMEM, "out of memory");
    s->options = o->options;
    s->recompute = variant.recompute;
    s->lean = variant.lean;
    s->batch = variant.batch;
    s->train = s->eval = s->predict = GS_NONE;
    s->gradients = o->purpose == GS_FOR_TRAINING;
    if (s->gradients) {
        if ((st = gs_optim_parse(&kind, o->options->optimizer)) != GS_OK)
            goto done;
        s->states = gs_optim_states(kind);
    }
    if ((st = gs_store_open(&s->store, o->store)) != GS_OK || (st = check_store(s, o->purpose)) != GS_OK)
        goto done;
    s->labelled =
        gs_store_array(s->store, GS_ARRAY_LABELS)->present && gs_store_array(s->store, GS_ARRAY_SPLIT)->present;
    if ((st = gs_session_open_devices(s)) != GS_OK || (st = compile_model(s, o->purpose, o->logits)) != GS_OK)
        goto done;
    *out = s;
    s = NULL; /* now the caller's */
done:
    gs_session_close(s);
    return st;
}

static gs_status program_text(char **out, const gs_program *p)
{
    size_t bytes;
    FILE *const f = open_memstream(out, &bytes);
    if (f == NULL)
        return gs_fail(GS_ENOMEM, "out of memory");
    gs_program_print(p, f);
    return fclose(f) == 0 ? GS_OK : gs_fail(GS_ENOMEM, "out of memory");
}

static bool same_program(const gs_program *a, const gs_program *b)
{
    char *text[2] = {NULL, NULL};
    const bool known = program_text(&text[0], a) == GS_OK && program_text(&text[1], b) == GS_OK;
    const bool same = !known || strcmp(text[0], text[1]) == 0;
    free(text[0]); /* of open_memstream() */
    free(text[1]);
    return same;
}

/* Of the pass that the run is for. */
static double epoch_seconds(const gs_session *s)
{
    gs_pass_report r;
    return gs_session_describe_pass(s, &r, s->train != GS_NONE ? s->train : s->predict) == GS_OK ? r.seconds : 0;
}

/* A session like `s` that is compiled so, without a plan; NULL where that gives the same program. */
static gs_session *prepare_another(const gs_session *s, const gs_opening *o, gs_variant variant)
{
    gs_session *other = NULL;
    if (prepare(&other, o, variant) != GS_OK)
        return NULL;
    other->process_bytes = s->process_bytes; /* one of the two stays */
    other->scans = s->scans;
    if (!same_program(s->program, other->program))
        return other;
    gs_session_close(other);
    return NULL;
}

static void swap(gs_session **a, gs_session **b)
{
    gs_session *const was = *a;
    *a = *b;
    *b = was;
}

/* Puts a session that is compiled so in the place of *s, if `is_better`. */
static void try_another(gs_session **s, const gs_opening *o, gs_variant variant,
                        bool (*is_better)(gs_session *other, const gs_session *s))
{
    gs_session *other = prepare_another(*s, o, variant);
    if (other != NULL && gs_session_plan(other, o->logits) == GS_OK && is_better(other, *s))
        swap(s, &other);
    gs_session_close(other);
}

static bool is_shorter(gs_session *other, const gs_session *s)
{
    return epoch_seconds(other) < RECOMPUTE_WORTH * epoch_seconds(s);
}

/* Also says so, where it is not shorter. */
static bool is_leaner(gs_session *other, const gs_session *s)
{
    if (is_shorter(other, s))
        return true;
    other->lean = GS_TAKEN_LEANER;
    return (double)other->plan->host_bytes <= LEAN_BYTES * (double)s->plan->host_bytes &&
           epoch_seconds(other) <= LEAN_SECONDS * epoch_seconds(s);
}

/* Columns that the pass "setup" leaves to others. */
static uint64_t standing_columns(const gs_program *p)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    uint64_t columns = 0;
    for (uint32_t k = 0; setup != GS_NONE && k < p->pass[setup].stages; k++) {
        const gs_stage *const stage = &p->stage[p->pass[setup].first_stage + k];
        for (uint32_t r = 0; r < stage->regs; r++)
            columns += stage->reg[r].kind == GS_REG_TEMP && stage->reg[r].array != GS_NONE ? stage->reg[r].width : 0;
    }
    return columns;
}

/* Sums by type that are computed once stand in memory all the time, wider than the features. Products in front of the
 * sums, epoch by epoch, take less and may take about as long. */
static void lean_where_worth(gs_session **s, const gs_opening *o)
{
    if ((*s)->train != GS_NONE && gs_device_unified((*s)->device) &&
        standing_columns((*s)->program) > (uint64_t)WIDE * gs_store_get_info((*s)->store)->features)
        try_another(s, o, (gs_variant){.lean = GS_TAKEN_SHORTER}, is_leaner);
}

/* Sums by type, and products of all types, are rows of V * T numbers; products in batches of edges are 2 * E * in * out
 * operations, which are fewer than theirs where types outnumber the mean degree. The cost model decides, and the
 * budgets. */
static bool may_batch(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    return !s->options->no_batch && (double)info->edge_types * (double)info->vertices > (double)info->edges;
}

static void batch_where_shorter(gs_session **s, const gs_opening *o)
{
    if (!(*s)->batch && may_batch(*s) && ((*s)->train != GS_NONE || (*s)->predict != GS_NONE))
        try_another(s, o, (gs_variant){.batch = GS_TAKEN_SHORTER}, is_shorter);
}

/* An epoch that goes to the disk may be shorter with a program that makes values again instead of storing them: the
 * cost model decides. Of two programs alike, and of an epoch in memory, there is nothing to decide. */
static void recompute_where_shorter(gs_session **s, const gs_opening *o)
{
    const gs_plan_pass *const pass = (*s)->train == GS_NONE ? NULL : &(*s)->plan->pass[(*s)->train];
    if (pass != NULL && pass->read_bytes + pass->written_bytes > 0 && gs_device_unified((*s)->device))
        try_another(s, o, (gs_variant){.recompute = GS_TAKEN_SHORTER, .lean = (*s)->lean, .batch = (*s)->batch},
                    is_shorter);
}

static bool is_refused(const gs_session *s) { return s->refused.host != 0 || s->refused.device != 0; }

/* Of two that are refused: where it is for host memory, the device's is enough. */
static bool asks_less(const gs_session *other, const gs_session *s)
{
    const gs_refusal *const a = &other->refused, *const b = &s->refused;
    if (!is_refused(other) || (a->host != 0) != (b->host != 0))
        return a->host != 0;
    return a->host + a->device < b->host + b->device;
}

/* The first program has no plan within the budgets: another one may have. Else the error is of the one that needs
 * least, which takes the place of *s. */
static gs_status fit_another(gs_session **s, const gs_opening *o)
{
    static const gs_variant variants[] = {
        {.recompute = GS_TAKEN_TO_FIT},
        {.lean = GS_TAKEN_TO_FIT},
        {.recompute = GS_TAKEN_TO_FIT, .lean = GS_TAKEN_TO_FIT},
        {.batch = GS_TAKEN_TO_FIT},
        {.recompute = GS_TAKEN_TO_FIT, .batch = GS_TAKEN_TO_FIT},
    };
    char text[512];

    snprintf(text, sizeof(text), "%s", gs_last_error());
    for (uint32_t k = 0; k < sizeof(variants) / sizeof(variants[0]); k++) {
        if (variants[k].batch ? !may_batch(*s) : !(*s)->gradients)
            continue;
        gs_session *other = prepare_another(*s, o, variants[k]);
        const gs_status st = other == NULL ? GS_EBUDGET : gs_session_plan(other, o->logits);
        const bool fits = st == GS_OK, less = st == GS_EBUDGET && other != NULL && asks_less(other, *s);
        if (less)
            snprintf(text, sizeof(text), "%s", gs_last_error());
        if (fits || less)
            swap(s, &other);
        gs_session_close(other);
        if (fits)
            return GS_OK;
    }
    return gs_fail(GS_EBUDGET, "%s", text);
}

/* The last error names a budget that was not asked for. */
static gs_status explain_default(const gs_session *s)
{
    return gs_fail_hint(GS_EBUDGET, !gs_device_unified(s->device)
                                        ? "it is 90 % of what is free on the device unless given"
                                    : s->device_count > 1
                                        ? "unless given it is what half of --host-memory gives each device"
                                        : "unless given it is half of --host-memory");
}

gs_status gs_session_open(gs_session **out, const char *store, const gs_train_options *options, gs_purpose purpose,
                          bool logits)
{
    return gs_session_open_after(out, store, options, purpose, logits, 0);
}

gs_status gs_session_open_after(gs_session **out, const char *store, const gs_train_options *options,
                                gs_purpose purpose, bool logits, uint64_t process_bytes)
{
    const gs_opening opening = {store, options, purpose, logits};
    gs_session *s = NULL;
    gs_scans scans = {0};
    gs_status st = prepare(&s, &opening, (gs_variant){0});

    if (st == GS_OK) {
        s->scans = &scans;
        s->process_bytes = gs_session_process_bytes(process_bytes);
        st = gs_session_plan(s, logits);
        if (st == GS_EBUDGET && is_refused(s))
            st = fit_another(&s, &opening);
        if (st == GS_EBUDGET && s->refused.device != 0 && options->device_memory == 0)
            st = explain_default(s);
    }
    if (st == GS_OK) {
        lean_where_worth(&s, &opening);
        batch_where_shorter(&s, &opening);
        recompute_where_shorter(&s, &opening);
        s->scans = NULL;
        *out = s;
        s = NULL; /* now the caller's */
    }
    gs_session_close(s);
    gs_scans_drop(&scans);
    return st;
}

void gs_session_close(gs_session *s)
{
    if (s == NULL)
        return;
    gs_exec_close(s->exec);
    if (s->spill != NULL)
        (void)gs_remove_tree(s->spill);
    gs_free(s->spill);
    for (uint32_t f = 0; s->path != NULL && f < s->program->arrays + s->sets; f++)
        gs_free(s->path[f]);
    gs_free(s->path);
    for (uint32_t k = 0; k < s->sets; k++)
        gs_free(s->chunk[k]);
    gs_session_drop_needs(s);
    gs_session_drop_left(s);
    gs_free(s->stage_set);
    gs_params_free(&s->params);
    gs_plan_free(s->plan);
    gs_program_free(s->program);
    for (uint32_t d = 0; d < s->device_count; d++)
        gs_device_close(s->devices[d]);
    gs_tree_close(s->tree);
    gs_store_close(s->store);
    gs_free(s);
}
