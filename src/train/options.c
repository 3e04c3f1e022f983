#include "train/options.h"

#include <math.h>
#include <string.h>

#include "model/model.h"
#include "train/optim.h"

#define MAX_LAYERS 1024u
#define MAX_WIDTH (1u << 20)

void gs_generate_options_init(gs_generate_options *options)
{
    *options = (gs_generate_options){.vertices = 100000, .edges = 1000000, .features = 64, .classes = 8};
}

void gs_partition_options_init(gs_partition_options *options)
{
    *options = (gs_partition_options){.feature_type = "f32"};
}

void gs_train_options_init(gs_train_options *options)
{
    *options = (gs_train_options){
        .layers = 2,
        .hidden = 64,
        .heads = 1,
        .activation = "relu",
        .epochs = 100,
        .optimizer = "adam",
        .lr = 0.01,
        .eval_every = 1,
        .device = "cpu",
    };
}

static gs_status check_count(const char *name, uint32_t v, uint32_t most)
{
    if (v >= 1 && v <= most)
        return GS_OK;
    return gs_fail(GS_EINVAL, "%s %u: must be from 1 to %u", name, v, most);
}

static gs_status check_dropout(const char *name, double v)
{
    if (v >= 0 && v < 1) /* false for NaN */
        return GS_OK;
    return gs_fail(GS_EINVAL, "%s %g: must be at least 0 and below 1", name, v);
}

static gs_status check_optimizer(const gs_train_options *o)
{
    gs_optim_kind kind;

    if (o->optimizer == NULL)
        return gs_fail(GS_EINVAL, "--optimizer: none given; use adam or sgd");
    if (!(o->lr > 0) || !isfinite(o->lr))
        return gs_fail(GS_EINVAL, "--lr %g: must be a number above 0", o->lr);
    if (!(o->weight_decay >= 0) || !isfinite(o->weight_decay))
        return gs_fail(GS_EINVAL, "--weight-decay %g: must be a number, at least 0", o->weight_decay);
    return gs_optim_parse(&kind, o->optimizer);
}

/* More heads than one need a model that has some. */
static gs_status check_heads(const gs_train_options *o)
{
    gs_model *m = NULL;
    gs_status st;

    if (o->heads == 1)
        return GS_OK;
    if ((st = gs_model_open(&m, o->model)) != GS_OK)
        return st;
    if (!gs_model_has_heads(m))
        st = gs_fail(GS_EINVAL, "--heads %u: model %s has no attention heads; leave it at 1", o->heads, o->model);
    gs_model_close(m);
    return st;
}

gs_status gs_train_options_check(const gs_train_options *o)
{
    gs_status st;

    if (o->model == NULL || o->model[0] == '\0')
        return gs_fail(GS_EINVAL, "--model: none given; name a built-in model (gcn, gat, ...) or the file of one");
    if ((st = check_count("--layers", o->layers, MAX_LAYERS)) != GS_OK ||
        (st = check_count("--hidden", o->hidden, MAX_WIDTH)) != GS_OK ||
        (st = check_count("--heads", o->heads, MAX_WIDTH)) != GS_OK || (st = check_heads(o)) != GS_OK ||
        (st = check_dropout("--dropout", o->dropout)) != GS_OK ||
        (st = check_dropout("--input-dropout", o->input_dropout)) != GS_OK ||
        (st = check_optimizer(o)) != GS_OK)
        return st;
    if (o->activation == NULL || o->activation[0] == '\0')
        return gs_fail(GS_EINVAL, "--act: none given; use relu");
    if (o->device == NULL || strcmp(o->device, "cpu") != 0)
        return gs_fail(GS_EINVAL, "--device %s: is not available in this version; use cpu",
                       o->device == NULL ? "(none)" : o->device);
    return GS_OK;
}
