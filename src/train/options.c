#include "train/options.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/option_table.h"
#include "base/status.h"
#include "device/device.h" /* gs_device_count */
#include "session/model_of.h"
#include "train/batch_options.h"
#include "train/checkpoint_pace.h"
#include "train/control.h"
#include "train/optim.h"

void gs_train_options_sized(gs_train_options *options, size_t size)
{
    gs_options_give(options, size, &gs_option_defaults, sizeof(gs_option_defaults));
}

void gs_predict_options_sized(gs_train_options *options, size_t size)
{
    gs_train_options o = gs_option_defaults;

    for GS_OPTION_EACH (x) /* counts and texts, which are 0 and NULL */
        if (x->changes == GS_OPTION_SHAPES)
            memset((char *)&o + x->field, 0, gs_option_is_text(x) ? sizeof(const char *) : sizeof(uint32_t));
    gs_options_give(options, size, &o, sizeof(o));
}

gs_status gs_train_options_read(gs_train_options *out, const gs_train_options *given)
{
    *out = gs_option_defaults;
    return gs_options_take(out, sizeof(*out), offsetof(gs_train_options, layers), given, "options",
                           "gs_train_options_init");
}

gs_status gs_train_options_own(gs_train_options *out, char **texts, const gs_train_options *given)
{
    gs_train_options o;
    size_t bytes = 1, at = 0;
    gs_status st;

    if ((st = gs_train_options_read(&o, given)) != GS_OK || (st = gs_train_options_check(&o)) != GS_OK)
        return st;
    for GS_OPTION_EACH (x)
        bytes += gs_option_is_text(x) && gs_option_text(x, &o) != NULL ? strlen(gs_option_text(x, &o)) + 1 : 0;
    if ((*texts = gs_malloc(bytes)) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory for the options");
    for GS_OPTION_EACH (x) {
        const char *const text = gs_option_is_text(x) ? gs_option_text(x, &o) : NULL;
        if (text == NULL)
            continue;
        *(const char **)(void *)((char *)&o + x->field) = memcpy(*texts + at, text, strlen(text) + 1);
        at += strlen(text) + 1;
    }
    *out = o;
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
    if (strncmp(device, "cuda", 4) != 0 || gs_device_count(device) > 0)
        return strcmp(device, "cpu") == 0 ||
               (gs_device_count(device) >= 1 && gs_device_count(device) <= GS_DEVICE_COUNT_MOST);
    const char *const number = device + 5;
    return device[4] == '\0' ||
           (device[4] == ':' && number[0] != '\0' && strspn(number, "0123456789") == strlen(number));
}

/* Refuses a word that looks like devices and names none that can be. */
static gs_status check_device(const char *device)
{
    const char *const second = strchr(device, ',');

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
                   "N (cuda:A,B,... for up to 16), or cpu and GPUs (cpu,cuda:N)", device);
}

/* What goes with what; each by itself is in its range. */
static gs_status check_learning(const gs_train_options *o)
{
    const int schedule = gs_choice(o, schedule);

    if (o->momentum != 0 && gs_choice(o, optimizer) != GS_OPTIM_SGD)
        return gs_fail(GS_EINVAL, ".momentum %g: is of sgd; %s has moments of its own", o->momentum, o->optimizer);
    if (o->schedule_every != 0 && schedule != GS_RATES_STEP && schedule != GS_RATES_PLATEAU)
        return gs_fail(GS_EINVAL, ".schedule_every %u: is of the schedules step and plateau", o->schedule_every);
    return GS_OK;
}

gs_status gs_train_options_check(const gs_train_options *o)
{
    gs_checkpoint_pace pace;
    gs_status st;

    if (o->model == NULL || o->model[0] == '\0')
        return gs_fail(GS_EINVAL, ".model: none given; name a built-in model (gcn, gat, ...) or the file of one");
    if ((st = gs_options_check_ranges(o)) != GS_OK || (st = check_widths(o)) != GS_OK ||
        (st = check_learning(o)) != GS_OK || (st = check_device(o->device)) != GS_OK)
        return st;
    if (o->checkpoint_every != NULL && o->checkpoint == NULL && o->resume == NULL)
        return gs_fail(GS_EINVAL, ".checkpoint_every %s: of which checkpoints? Give .checkpoint a folder",
                       o->checkpoint_every);
    if ((st = gs_checkpoint_pace_parse(&pace, o->checkpoint_every)) != GS_OK)
        return st;
    return gs_batch_options_check(o);
}
