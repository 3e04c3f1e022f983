/* session.c - opening: store, device, and the passes of the model. */
#include "train/session.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "compile/compile.h"
#include "model/model.h"
#include "train/optim.h"
#include "train/session_choice.h"

#define REST_WIDTH 16 /* narrower rows are never rounded: they are little, and kept in memory first */

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

gs_status gs_session_prepare(gs_session **out, const gs_opening *o, gs_variant variant)
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

gs_status gs_session_open(gs_session **out, const char *store, const gs_train_options *options, gs_purpose purpose,
                          bool logits)
{
    return gs_session_open_after(out, store, options, purpose, logits, 0);
}

gs_status gs_session_open_after(gs_session **out, const char *store, const gs_train_options *options,
                                gs_purpose purpose, bool logits, uint64_t process_bytes)
{
    const gs_opening opening = {store, options, purpose, logits};
    return gs_session_choose(out, &opening, process_bytes);
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
