#include "train/options.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arguments.h"
#include "base/train_task.h"
#include "base/size.h"
#include "device/device.h" /* gs_device_count */
#include "session/model_of.h"
#include "train/checkpoint_pace.h"
#include "train/control.h"
#include "train/optim.h"
#include "train/batch_options.h"

#define MAX_WIDTH (1u << 20)

static const gs_train_options defaults = {
    .size = sizeof(gs_train_options),
    .layers = 2,
    .hidden = 64,
    .heads = 1,
    .activation = "relu",
    .epochs = 100,
    .optimizer = "adam",
    .lr = 0.01,
    .schedule = "none",
    .schedule_by = 0.1,
    .eval_every = 1,
    .device = "cpu",
    .matmul = "fp32",
    .spill_type = "f32",
    .norm = "none",
    .jk = "none",
    .io_timeout = 600,
    .sampler = "none",
    .gather_type = "f32",
    .disk_to_device = "auto",
};

void gs_train_options_sized(gs_train_options *options, size_t size)
{
    gs_options_give(options, size, &defaults, sizeof(defaults));
}

void gs_predict_options_sized(gs_train_options *options, size_t size)
{
    gs_train_options o = defaults;
    o.layers = o.hidden = o.heads = o.bases = 0;
    o.activation = NULL;
    gs_options_give(options, size, &o, sizeof(o));
}

gs_status gs_train_options_read(gs_train_options *out, const gs_train_options *given)
{
    *out = defaults;
    return gs_options_take(out, sizeof(*out), offsetof(gs_train_options, layers), given, "options",
                           "gs_train_options_init");
}

/* Every field that is a string. */
static const size_t strings[] = {
    offsetof(gs_train_options, model),    offsetof(gs_train_options, activation),
    offsetof(gs_train_options, optimizer), offsetof(gs_train_options, device),
    offsetof(gs_train_options, topology), offsetof(gs_train_options, matmul),
    offsetof(gs_train_options, init),     offsetof(gs_train_options, save),
    offsetof(gs_train_options, logits),   offsetof(gs_train_options, metrics),
    offsetof(gs_train_options, trace),    offsetof(gs_train_options, spill),
    offsetof(gs_train_options, spill_type), offsetof(gs_train_options, checkpoint),
    offsetof(gs_train_options, checkpoint_every), offsetof(gs_train_options, resume),
    offsetof(gs_train_options, schedule), offsetof(gs_train_options, keep),
    offsetof(gs_train_options, norm),     offsetof(gs_train_options, jk),
    offsetof(gs_train_options, set),
    offsetof(gs_train_options, task),     offsetof(gs_train_options, class_weights),
    offsetof(gs_train_options, argmax),   offsetof(gs_train_options, config),
    offsetof(gs_train_options, sampler),  offsetof(gs_train_options, fanout),
    offsetof(gs_train_options, gather_type), offsetof(gs_train_options, disk_to_device),
    offsetof(gs_train_options, shuffle),  offsetof(gs_train_options, keep_by),
    offsetof(gs_train_options, command),
};

static const char **string_at(gs_train_options *o, size_t k) { return (const char **)(void *)((char *)o + strings[k]); }

gs_status gs_train_options_own(gs_train_options *out, char **texts, const gs_train_options *given)
{
    gs_train_options o;
    size_t bytes = 1, at = 0;
    gs_status st;

    if ((st = gs_train_options_read(&o, given)) != GS_OK || (st = gs_train_options_check(&o)) != GS_OK)
        return st;
    for (size_t k = 0; k < GS_ARRAY_LEN(strings); k++)
        bytes += *string_at(&o, k) == NULL ? 0 : strlen(*string_at(&o, k)) + 1;
    if ((*texts = gs_malloc(bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the options");
    for (size_t k = 0; k < GS_ARRAY_LEN(strings); k++) {
        const char **const text = string_at(&o, k);
        if (*text == NULL)
            continue;
        const size_t length = strlen(*text) + 1;
        *text = memcpy(*texts + at, *text, length);
        at += length;
    }
    *out = o;
    return GS_OK;
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
    gs_status st;

    if (o->optimizer == NULL)
        return gs_fail(GS_EINVAL, ".optimizer: none given; use adam, adamw or sgd");
    if (!(o->lr > 0) || !isfinite(o->lr))
        return gs_fail(GS_EINVAL, ".lr %g: must be a number above 0", o->lr);
    if (!(o->weight_decay >= 0) || !isfinite(o->weight_decay))
        return gs_fail(GS_EINVAL, ".weight_decay %g: must be a number, at least 0", o->weight_decay);
    if ((st = gs_optim_parse(&kind, o->optimizer)) != GS_OK)
        return st;
    if (!(o->momentum >= 0 && o->momentum < 1))
        return gs_fail(GS_EINVAL, ".momentum %g: must be at least 0 and below 1", o->momentum);
    if (o->momentum != 0 && kind != GS_OPTIM_SGD)
        return gs_fail(GS_EINVAL, ".momentum %g: is of sgd; %s has moments of its own", o->momentum, o->optimizer);
    if (!(o->clip_norm >= 0) || !isfinite(o->clip_norm))
        return gs_fail(GS_EINVAL, ".clip_norm %g: must be a number above 0, or 0 for none", o->clip_norm);
    return GS_OK;
}

/* More heads than one, and bases, need a model that has some; so do constants, and what stands around layers. */
static gs_status check_widths(const gs_train_options *o)
{
    gs_model *m = NULL;
    gs_status st;

    if (o->heads == 1 && o->bases == 0 && !gs_session_model_changed(o))
        return GS_OK;
    if ((st = gs_session_open_model(&m, o)) != GS_OK)
        return st;
    if (o->heads != 1 && !gs_model_has_heads(m))
        st = gs_fail(GS_EINVAL, ".heads %u: model %s has no attention heads; leave it at 1", o->heads, o->model);
    else if (o->bases != 0 && !gs_model_has_bases(m))
        st = gs_fail(GS_EINVAL, ".bases %u: model %s has no bases; leave it out", o->bases, o->model);
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

/* Refuses a word that looks like devices and names none that can be. */
static gs_status check_device(const char *device)
{
    const char *const second = device == NULL ? NULL : strchr(device, ',');

    if (is_device(device))
        return GS_OK;
    if (second != NULL && strstr(device, "cuda") != NULL && strstr(device, "cpu") != NULL)
        return gs_fail(GS_EINVAL,
                       ".device %s: the processors beside GPUs are one device, and the first: use cpu,cuda:N or "
                       "cpu,cuda:A,B,...", device);
    if (second != NULL && (strstr(second, "cpu") != NULL || strstr(second, "cuda") != NULL))
        return gs_fail(GS_EINVAL, ".device %s: several of a kind are named once: use cpu:N for N parts of the "
                       "processors, cuda:A,B,... for GPUs", device);
    return gs_fail(GS_EINVAL,
                   ".device %s: must be cpu, cpu:N for up to 16 that share the processors, cuda, cuda:N for GPU number "
                   "N (cuda:A,B,... for up to 16), or cpu and GPUs (cpu,cuda:N)",
                   device == NULL ? "(none)" : device);
}

/* Of numbers that are stored between stages. */
static gs_status check_type(const char *field, const char *type)
{
    if (type == NULL || (strcmp(type, "f32") != 0 && strcmp(type, "bf16") != 0))
        return gs_fail(GS_EINVAL, "%s %s: must be one of f32|bf16", field, type == NULL ? "(none)" : type);
    return GS_OK;
}

gs_status gs_train_options_check(const gs_train_options *o)
{
    gs_checkpoint_pace pace;
    gs_train_task task;
    gs_status st;

    if (o->model == NULL || o->model[0] == '\0')
        return gs_fail(GS_EINVAL, ".model: none given; name a built-in model (gcn, gat, ...) or the file of one");
    if ((st = check_count(".layers", o->layers, GS_MODEL_MOST_LAYERS)) != GS_OK ||
        (st = check_count(".hidden", o->hidden, MAX_WIDTH)) != GS_OK ||
        (st = check_count(".heads", o->heads, MAX_WIDTH)) != GS_OK ||
        (o->bases != 0 && (st = check_count(".bases", o->bases, MAX_WIDTH)) != GS_OK) ||
        (st = check_widths(o)) != GS_OK || (st = check_dropout(".dropout", o->dropout)) != GS_OK ||
        (st = check_dropout(".input_dropout", o->input_dropout)) != GS_OK || (st = check_optimizer(o)) != GS_OK ||
        (st = gs_control_check(o)) != GS_OK)
        return st;
    if (o->activation == NULL || o->activation[0] == '\0')
        return gs_fail(GS_EINVAL, ".activation: none given; use relu");
    if ((st = check_device(o->device)) != GS_OK)
        return st;
    if (o->matmul == NULL ||
        (strcmp(o->matmul, "fp32") != 0 && strcmp(o->matmul, "tf32") != 0 && strcmp(o->matmul, "bf16") != 0))
        return gs_fail(GS_EINVAL, ".matmul %s: must be one of fp32|tf32|bf16",
                       o->matmul == NULL ? "(none)" : o->matmul);
    if (o->disk_to_device == NULL || (strcmp(o->disk_to_device, "auto") != 0 &&
                                      strcmp(o->disk_to_device, "yes") != 0 && strcmp(o->disk_to_device, "no") != 0))
        return gs_fail(GS_EINVAL, ".disk_to_device %s: must be one of auto|yes|no",
                       o->disk_to_device == NULL ? "(none)" : o->disk_to_device);
    if (!(o->io_timeout >= 0) || !isfinite(o->io_timeout))
        return gs_fail(GS_EINVAL, ".io_timeout %g: must be seconds, or 0 for never", o->io_timeout);
    if (o->checkpoint_every != NULL && o->checkpoint == NULL && o->resume == NULL)
        return gs_fail(GS_EINVAL, ".checkpoint_every %s: of which checkpoints? Give .checkpoint a folder",
                       o->checkpoint_every);
    if ((st = gs_checkpoint_pace_parse(&pace, o->checkpoint_every)) != GS_OK)
        return st;
    if (o->task != NULL && !gs_train_task_parse(&task, o->task))
        return gs_fail(GS_EINVAL, ".task %s: must be one of classify|multilabel|regress", o->task);
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return gs_fail(GS_EINVAL, ".label_smoothing %g: must be at least 0 and below 1", o->label_smoothing);
    if ((st = check_type(".spill_type", o->spill_type)) != GS_OK ||
        (st = check_type(".gather_type", o->gather_type)) != GS_OK)
        return st;
    return gs_batch_options_check(o);
}
