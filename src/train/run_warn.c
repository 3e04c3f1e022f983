/* run_warn.c - lines about what a run does otherwise than it may be thought to. */
#include <stdarg.h>
#include <string.h>

#include "base/option_table.h"
#include "session/session_plan.h"
#include "train/run_internal.h"

static void warn(const gs_train_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void warn(const gs_train_options *o, const char *fmt, ...)
{
    char line[GS_ERROR_BYTES + 80];
    va_list args;

    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    o->warn(o->context, line);
}

static const char *model_of(const gs_train_options *o)
{
    return strchr(o->model, '\n') != NULL ? "the model" : o->model;
}

/* Warns of parameters that are learned in vain. */
static void warn_of_parameters(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const gs_program *const p = s->program;

    for (uint32_t i = 0; i < p->params; i++)
        if (!p->param[i].fixed && !p->param[i].learns)
            warn(o, "%s: the result does not depend on parameter %s, which stays as it starts", model_of(o),
                 p->param[i].name);
}

static bool looks_at(const gs_session *s, gs_edge_reg_kind kind)
{
    bool found = false;
    for (uint32_t i = 0; i < s->program->stages; i++)
        found = found || gs_stage_has(&s->program->stage[i], kind);
    return found;
}

static void warn_of_weights(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;

    if (gs_store_get_info(s->store)->weights && !o->ignore_edge_weights && !looks_at(s, GS_EDGE_WEIGHT))
        warn(o, "%s: does not look at the edge weights of %s: each edge counts 1; .ignore_edge_weights says that it "
             "may", model_of(o), gs_store_dir(s->store));
}

static void warn_of_edge_features(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;

    if (gs_store_get_info(s->store)->edge_features != 0 && !looks_at(s, GS_EDGE_FEATURES))
        warn(o, "%s: does not look at the edge features of %s; a text with e.x does", model_of(o),
             gs_store_dir(s->store));
}

/* Memory that copies are slower from: once, though every device may say so. */
static void warn_of_memory(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const char *line = NULL;

    for (uint32_t d = 0; d < s->machine.devices && line == NULL; d++)
        line = gs_device_unpinned(s->machine.device[d]);
    if (line != NULL)
        o->warn(o->context, line);
}

/* Does the text have the word, outside comments? */
static bool has_word(const char *text, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    const size_t length = strlen(word);

    while (*text != '\0') {
        const size_t n = strspn(text, letters);
        if (n == length && strncmp(text, word, length) == 0)
            return true;
        text += n > 0 ? n : *text == '#' ? strcspn(text, "\n") : 1;
    }
    return false;
}

#define IN_VAIN ": the network of %s has no use for it, and is what it is without"

/* Options that have other values than usual, and stand in no place of a network that a text has itself. */
static void warn_of_options(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const bool around = o->residual || gs_choice(o, norm) != 0 || gs_choice(o, jk) != 0;
    gs_train_options usual;
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;

    gs_train_options_init(&usual);
    if (around || gs_session_open_model(&m, o) != GS_OK)
        return;
    const bool own = gs_model_has_network(m);
    const char *const text = gs_model_text(m);
    if (own && o->layers != usual.layers)
        warn(o, ".layers %u" IN_VAIN, o->layers, model_of(o));
    if (o->hidden != usual.hidden && !gs_train_is_of_pairs(o) && (own ? !has_word(text, "hidden") : o->layers == 1))
        warn(o, ".hidden %u" IN_VAIN, o->hidden, model_of(o));
    if (own && strcmp(o->activation, usual.activation) != 0 && !has_word(text, "act") && !has_word(text, "norm_act"))
        warn(o, ".activation %s" IN_VAIN, o->activation, model_of(o));
    if (own && o->dropout != 0 && !has_word(text, "dropout"))
        warn(o, ".dropout %g" IN_VAIN, o->dropout, model_of(o));
}

/* Products of runs or pairs that were asked for, where no stage makes any. */
static void warn_of_products(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;

    for (uint32_t k = 0; k < s->program->stages; k++)
        if (s->program->stage[k].products != GS_PRODUCTS_OF_EDGES)
            return;
    if (o->products != NULL && (strcmp(o->products, "pairs") == 0 || strcmp(o->products, "runs") == 0))
        warn(o, ".products %s: no product by edge type is made so: the model has none, or they run on a GPU or on "
             "batches, or the budget has no room", o->products);
}

void gs_run__warn(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;

    if (o->warn == NULL)
        return;
    warn_of_products(s);
    if (s->config.purpose == GS_FOR_TRAINING) {
        warn_of_parameters(s);
        warn_of_options(s);
    }
    warn_of_weights(s);
    warn_of_edge_features(s);
    warn_of_memory(s);
    if (gs_choice(o, matmul) != 0 && strstr(o->device, "cuda") == NULL && !gs_device_rounds(s->machine.device[0]))
        warn(o, ".matmul %s: %s; processors multiply as without it", o->matmul,
             gs_choice(o, matmul) == GS_MATMUL_BF16 ? "needs AVX512-BF16, or a GPU" : "is of GPUs");
    if (s->machine.direct.why[0] != '\0') /* what was asked for is not there */
        warn(o, ".disk_to_device yes: %s; edges come by way of the host", s->machine.direct.why);
}

void gs_run__warn_of_unread(const gs_train_options *o)
{
    if (o->warn != NULL && o->resume != NULL)
        warn(o, ".resume %s: is not read for a plan, which is of all epochs", o->resume);
    if (o->warn != NULL && o->init != NULL)
        warn(o, ".init %s: is not read for a plan, which is the same for any weights", o->init);
}

#define FEW_EPOCHS 10u /* of a run that is tried out: nobody expects much */

void gs_run__warn_of_kept(const gs_run *r)
{
    const gs_control *const c = &r->control;
    const gs_train_options *const o = &r->options;
    const gs_train_task task = r->session->labels.task;
    const double figure = gs_judge_figure(c->judge, &r->report.figures, r->report.accuracy);

    if (o->warn == NULL || r->kind != GS_RUN_TRAIN || r->epoch < FEW_EPOCHS ||
        !(gs_judge_worth(c->judge, figure) < gs_judge_worth(c->judge, r->constant)))
        return;
    warn(o, "the weights that were kept, after %u epochs, are worse than a constant answer: %s of validation is %.4g, "
             "and %s has %.4g; train for longer, with another .lr, model or features",
             r->report.kept_epochs, gs_judge_name(c->judge), figure,
             c->judge == GS_BY_LOSS                  ? "one of the training labels' shares"
             : c->judge == GS_BY_AUC || c->judge == GS_BY_AP ? "the same score for all"
             : task == GS_TRAIN_TASK_CLASSIFY          ? "the class that most training vertices have"
             : task == GS_TRAIN_TASK_MULTILABEL        ? "all labels for all"
                                                  : "the training vertices' mean",
             r->constant);
}
