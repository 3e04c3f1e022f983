/* session_prepare.c - a session without a plan: store, devices, and the passes of the model. */
#include "base/alloc.h"
#include "base/option_table.h"
#include "compile/compile.h"
#include "model/model.h"
#include "session/model_of.h"
#include "session/session_prepare.h"
#include "session/tables.h"

#define REST_WIDTH 16 /* narrower rows are never rounded: they are little, and kept in memory first */

/* ---- what the store must have -------------------------------------------- */

static gs_status check_store(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const char *const dir = gs_store_dir(s->store);
    const bool training = s->config.purpose == GS_FOR_TRAINING;

    if (info->vertices == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no vertices", dir);
    if (info->classes == 0 && training)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no labels to train on", dir);
    if (info->classes == 0 && s->config.classes == 0)
        return gs_fail(GS_ENOTFOUND,
                       "%s: the store has no labels, and the weights do not say how many classes there are; give "
                       ".classes", dir);
    if (training && info->train == 0)
        return gs_fail(GS_ENOTFOUND, "%s: the store has no training vertices; its input needs a train_idx.npy", dir);
    return GS_OK;
}

/* ---- passes -------------------------------------------------------------- */

static uint32_t fill_leaves(gs_leaf leaf[GS_ARRAY_COUNT], const gs_store *store)
{
    uint32_t n = 0;

    for (int id = 0; id < GS_ARRAY_COUNT; id++) {
        const gs_array_info *const a = gs_store_array(store, (gs_array_id)id);
        if (a->present && id != GS_ARRAY_NAMES) /* which has no rows, and no model reads */
            leaf[n++] = (gs_leaf){gs_array_stem((gs_array_id)id), id, a->dtype, a->width};
    }
    return n;
}

static double edges_per_vertex(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const gs_batch_shape *const b = s->config.batch;
    return b == NULL ? (double)info->edges / (double)info->vertices
                     : (double)b->limits.edges / (double)b->limits.vertices;
}

/* Builds one pass's graph and compiles it. `gradients`: with the derivative. */
static gs_status add_pass(gs_session *s, const gs_model *model, const char *name, bool gradients, bool logits)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    const gs_train_options *const o = s->config.options;
    gs_leaf leaf[GS_ARRAY_COUNT];
    const gs_model_config config = {
        .layers = o->layers,
        .in_width = info->features,
        .hidden = o->hidden,
        .classes = s->classes,
        .heads = o->heads,
        .bases = o->bases,
        .edge_types = info->edge_types,
        .edge_weights = info->weights && !o->ignore_edge_weights,
        .unexpanded = s->config.batch != NULL && s->config.batch->hops > 0,
        .edge_coefficients = s->config.batch != NULL && s->config.batch->coefficients,
        .act = o->activation,
        .dropout = (float)o->dropout,
        .input_dropout = (float)o->input_dropout,
        .training = gradients,
        .self_loops = info->self_loops != 0,
        .embeddings = o->embeddings,
    };
    const gs_compile_options compile = {
        .pass = name,
        .leaf = leaf,
        .leaves = fill_leaves(leaf, s->store),
        .metrics = s->pass.labelled,
        .task = s->labels.task,
        .store_logits = logits,
        .no_move = o->no_move || s->variant.no_move != GS_NOT_TAKEN,
        .recompute = s->variant.recompute != GS_NOT_TAKEN,
        .in_memory = s->config.batch != NULL,
        .rest_width = REST_WIDTH,
        .rest = gs_choice(o, spill_type) == 1 ? GS_BF16 : GS_F32,
        .read = gs_choice(o, gather_type) == 1 ? GS_BF16 : GS_F32,
        .lean = s->variant.lean != GS_NOT_TAKEN,
        .typed = s->variant.typed != GS_NOT_TAKEN,
        .hoist = !o->no_hoist && s->variant.no_hoist == GS_NOT_TAKEN && s->config.purpose == GS_FOR_TRAINING &&
                 s->config.batch == NULL && !s->config.on_batches,
        .no_fuse = o->no_fuse || s->variant.no_fuse != GS_NOT_TAKEN,
        .edges_per_vertex = edges_per_vertex(s),
        .stop = o->stop,
    };
    gs_ir *ir = NULL;
    gs_status st;

    if ((st = gs_model_build(&ir, model, &config)) != GS_OK)
        return st;
    s->classes = gs_ir_node(ir, gs_ir_root(ir))->width;
    st = gs_session_note_tables(s, ir);
    if (st == GS_OK && s->pass.labelled)
        st = gs_ir_add_loss(ir, s->labels.task, gs_store_array(s->store, GS_ARRAY_LABELS)->dtype);
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
static gs_status add_passes(gs_session *s, const gs_model *model)
{
    const bool training = s->config.purpose == GS_FOR_TRAINING, logits = s->config.logits || s->pass.ranked;
    gs_status st = GS_OK;

    s->pass.train_differs = s->config.on_batches;
    if (training && !s->config.on_batches)
        st = add_pass(s, model, "train", true, false);
    if (st == GS_OK && training && !s->config.on_batches)
        s->pass.train_differs = gs_program_train_differs(s->program, gs_program_pass(s->program, "train"));
    if (st == GS_OK && training && s->config.batch == NULL && (s->pass.train_differs || !logits))
        st = add_pass(s, model, "eval", false, false);
    if (st == GS_OK && logits && s->config.batch == NULL)
        st = add_pass(s, model, "predict", false, true);
    if (st == GS_OK && s->variant.split != GS_NOT_TAKEN)
        st = gs_program_split(s->program);
    if (st != GS_OK)
        return st;
    s->pass.train = gs_program_pass(s->program, "train");
    s->pass.eval = gs_program_pass(s->program, "eval");
    s->pass.predict = gs_program_pass(s->program, "predict");
    return gs_program_check(s->program);
}

/* A model that learns rows of vertices may do without. */
static gs_status check_features(const gs_session *s, const gs_model *model)
{
    if (gs_store_get_info(s->store)->features > 0 || gs_model_has_tables(model))
        return GS_OK;
    return gs_fail(GS_ENOTFOUND,
                   "%s: the store has no features; make it with .random_features, or from an input that has some, or "
                   "train a model that learns them (param NAME[vertices, N])",
                   gs_store_dir(s->store));
}

static gs_status compile_model(gs_session *s)
{
    gs_model *model = NULL;
    gs_status st = gs_session_open_model(&model, s->config.options);

    if (st != GS_OK)
        return st;
    if ((st = check_features(s, model)) != GS_OK)
        ; /* said */
    else if ((s->program = gs_program_new()) == NULL)
        st = gs_fail(GS_ENOMEM, "out of memory for the compiled model");
    else
        st = add_passes(s, model);
    gs_model_close(model);
    return st;
}

gs_status gs_session_prepare(gs_session **out, const gs_session_config *config, gs_variant variant)
{
    gs_session *s = gs_calloc(1, sizeof(*s));
    gs_status st;

    if (s == NULL)
        return gs_fail(GS_ENOMEM, "out of memory");
    s->config = *config;
    s->earlier_epochs = config->earlier != NULL ? config->earlier->epochs : 0;
    s->variant = variant;
    s->pass = (gs_session_passes){.train = GS_NONE, .eval = GS_NONE, .predict = GS_NONE,
                                  .gradients = config->purpose == GS_FOR_TRAINING};
    if ((st = gs_store_open(&s->store, config->store)) != GS_OK || (st = check_store(s)) != GS_OK ||
        (st = gs_session_choose_task(s)) != GS_OK)
        goto done;
    if (config->options->on_open != NULL)
        config->options->on_open(config->options->context, "planning", NULL);
    s->pass.labelled = gs_store_array(s->store, GS_ARRAY_LABELS)->present &&
                       gs_store_array(s->store, GS_ARRAY_SPLIT)->present && !config->options->embeddings;
    s->pass.ranked = s->pass.labelled && (s->labels.task == GS_TRAIN_TASK_MULTILABEL || config->ranks);
    if ((st = gs_session_open_devices(s)) != GS_OK)
        goto done;
    if (s->machine.topology != NULL && s->machine.topology->place.said)
        s->variant.split = GS_TAKEN_SHORTER;
    if ((st = compile_model(s)) != GS_OK ||
        (st = gs_session_add_tables(s, gs_session_keeps_best(s))) != GS_OK)
        goto done;
    *out = s;
    s = NULL; /* now the caller's */
done:
    gs_session_close(s);
    return st;
}
