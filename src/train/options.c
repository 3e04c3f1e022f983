#include "train/options.h"

#include <math.h>
#include <string.h>

#include "device/device.h" /* gs_device_count */
#include "model/model.h"
#include "train/optim.h"

#define MAX_LAYERS 1024u
#define MAX_WIDTH (1u << 20)

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
        .matmul = "fp32",
        .spill_type = "f32",
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

/* More heads than one, and bases, need a model that has some. */
static gs_status check_widths(const gs_train_options *o)
{
    gs_model *m = NULL;
    gs_status st;

    if (o->heads == 1 && o->bases == 0)
        return GS_OK;
    if ((st = gs_model_open(&m, o->model)) != GS_OK)
        return st;
    if (o->heads != 1 && !gs_model_has_heads(m))
        st = gs_fail(GS_EINVAL, "--heads %u: model %s has no attention heads; leave it at 1", o->heads, o->model);
    else if (o->bases != 0 && !gs_model_has_bases(m))
        st = gs_fail(GS_EINVAL, "--bases %u: model %s has no bases; leave it out", o->bases, o->model);
    gs_model_close(m);
    return st;
}

static bool is_device(const char *device)
{
    if (device == NULL || strncmp(device, "cuda", 4) != 0 || gs_device_count(device) > 0)
        return device != NULL && (strcmp(device, "cpu") == 0 ||
                                  (gs_device_count(device) >= 1 && gs_device_count(device) <= GS_DEVICE_COUNT_MOST));
    const char *const number = device + 5;
    return device[4] == '\0' ||
           (device[4] == ':' && number[0] != '\0' && strspn(number, "0123456789") == strlen(number));
}

gs_status gs_train_options_check(const gs_train_options *o)
{
    gs_status st;

    if (o->model == NULL || o->model[0] == '\0')
        return gs_fail(GS_EINVAL, "--model: none given; name a built-in model (gcn, gat, ...) or the file of one");
    if ((st = check_count("--layers", o->layers, MAX_LAYERS)) != GS_OK ||
        (st = check_count("--hidden", o->hidden, MAX_WIDTH)) != GS_OK ||
        (st = check_count("--heads", o->heads, MAX_WIDTH)) != GS_OK ||
        (o->bases != 0 && (st = check_count("--bases", o->bases, MAX_WIDTH)) != GS_OK) ||
        (st = check_widths(o)) != GS_OK || (st = check_dropout("--dropout", o->dropout)) != GS_OK ||
        (st = check_dropout("--input-dropout", o->input_dropout)) != GS_OK || (st = check_optimizer(o)) != GS_OK)
        return st;
    if (o->activation == NULL || o->activation[0] == '\0')
        return gs_fail(GS_EINVAL, "--act: none given; use relu");
    if (!is_device(o->device))
        return gs_fail(GS_EINVAL,
                       "--device %s: must be cpu, cpu:N for up to 16 that share the processors, cuda, or cuda:N for "
                       "GPU number N (cuda:A,B,... for up to 16)",
                       o->device == NULL ? "(none)" : o->device);
    if (o->matmul == NULL ||
        (strcmp(o->matmul, "fp32") != 0 && strcmp(o->matmul, "tf32") != 0 && strcmp(o->matmul, "bf16") != 0))
        return gs_fail(GS_EINVAL, "--matmul %s: must be one of fp32|tf32|bf16",
                       o->matmul == NULL ? "(none)" : o->matmul);
    if (o->spill_type == NULL || (strcmp(o->spill_type, "f32") != 0 && strcmp(o->spill_type, "bf16") != 0))
        return gs_fail(GS_EINVAL, "--spill-type %s: must be one of f32|bf16",
                       o->spill_type == NULL ? "(none)" : o->spill_type);
    return GS_OK;
}
