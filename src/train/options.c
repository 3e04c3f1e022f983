#include "train/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_table.h"
#include "base/size.h"
#include "session/session_plan.h"
#include "train/run_internal.h"

/* ---- batches ------------------------------------------------------------- */

bool gs_train_on_batches(const gs_train_options *o) { return gs_choice(o, sampler) > 0; }

uint32_t gs_batches_per_step_of(const gs_train_options *o)
{
    return gs_train_on_batches(o) ? gs_batch_devices_step(o) : 1; /* of the whole graph, on any number of devices */
}

/* One list, "15,10,5", up to `end` or a ';', where the next begins; NULL: it is malformed. "-": no edge, where lists
 * are of one type of edges each. */
static const char *read_list(uint32_t fanout[GS_SAMPLE_HOPS], uint32_t *hops, const char *at, bool typed)
{
    for (*hops = 0; *hops < GS_SAMPLE_HOPS;) {
        char *end = NULL;
        unsigned long n = GS_FANOUT_NONE;
        if (typed && *at == '-')
            end = (char *)(uintptr_t)at + 1;
        else if (*at < '0' || *at > '9' || (n = strtoul(at, &end, 10)) > INT32_MAX)
            return NULL;
        fanout[(*hops)++] = (uint32_t)n;
        if (*end != ',')
            return *end == '\0' || (typed && *end == ';') ? end : NULL;
        at = end + 1;
    }
    return NULL;
}

/* What a hop draws at most of any type. */
static void note_most(gs_sampler_options *out)
{
    out->by_type = true;
    for (uint32_t h = 0; h < out->hops; h++) {
        out->fanout[h] = 1;
        for (uint32_t t = 0; t < out->types; t++) {
            const uint32_t n = gs_fanout_of(out, h, t);
            if (n == 0 || out->fanout[h] == 0)
                out->fanout[h] = 0;
            else if (n != GS_FANOUT_NONE)
                out->fanout[h] = GS_MAX(out->fanout[h], n);
        }
    }
}

/* "15,10,5"; or such a list for each type of edges, "15,10;5,-". */
static gs_status read_fanout(gs_sampler_options *out, const char *text)
{
    uint32_t lists = 1, list[GS_SAMPLE_HOPS], hops, k = 0;

    for (const char *at = text; *at != '\0'; at++)
        lists += *at == ';';
    for (const char *at = text; at != NULL; k++) {
        if ((at = read_list(list, &hops, at, lists > 1)) == NULL || (k > 0 && hops != out->hops))
            return gs_fail(GS_EINVAL, ".fanout %s: must be up to %u numbers, one a hop, the targets' first: 15,10 (0: "
                           "all in-edges); or such lists of as many hops for each type of edges: 15,10;5,- (-: none)",
                           text, GS_SAMPLE_HOPS);
        out->hops = hops;
        if (lists == 1)
            memcpy(out->fanout, list, hops * sizeof(*list));
        else if ((uint64_t)lists * hops > GS_SAMPLE_TYPE_FANOUTS)
            return gs_fail(GS_EINVAL, ".fanout: %u lists of %u hops; there is room for %u numbers, so use fewer hops, "
                           "or one list for all types", lists, hops, GS_SAMPLE_TYPE_FANOUTS);
        else
            for (uint32_t h = 0; h < hops; h++)
                out->type_fanout[h * lists + k] = list[h];
        at = *at == ';' ? at + 1 : NULL;
    }
    if (lists > 1) {
        out->types = lists;
        note_most(out);
    }
    return GS_OK;
}

/* "neighbor and cluster": the samplers that read this option. */
static void list_readers(char *out, size_t room, uint32_t option)
{
    uint32_t left = 0;
    size_t at = 0;

    for (int k = 0; k < GS_SAMPLER_KINDS; k++)
        left += (gs_sampler_facts_of((gs_sampler_kind)k)->reads & option) != 0;
    for (int k = 0; k < GS_SAMPLER_KINDS; k++)
        if ((gs_sampler_facts_of((gs_sampler_kind)k)->reads & option) != 0 && at < room)
            at += (size_t)snprintf(out + at, room - at, "%s%s", gs_sampler_facts_of((gs_sampler_kind)k)->name,
                                   --left > 1 ? ", " : left == 1 ? " and " : "");
}

/* Refuses options that are given though this sampler has no use for them. */
static gs_status check_in_vain(const gs_train_options *o, gs_sampler_kind kind)
{
    const struct {
        const char *name;
        bool given;
        uint32_t option;
    } options[] = {
        {".fanout", o->fanout != NULL, GS_SAMPLER_READS_FANOUT},
        {".replace", o->replace, GS_SAMPLER_READS_FANOUT},
        {".weighted", o->weighted, GS_SAMPLER_READS_FANOUT},
        {".by_type", o->by_type, GS_SAMPLER_READS_FANOUT},
        {".walk_length", o->walk_length != 0, GS_SAMPLER_READS_WALK_LENGTH},
        {".shuffle", o->shuffle != NULL, GS_SAMPLER_READS_SHUFFLE},
        {".coverage", o->coverage != 0, GS_SAMPLER_READS_COVERAGE},
    };
    char readers[128];

    for (uint32_t k = 0; k < GS_ARRAY_LEN(options); k++)
        if (options[k].given && (gs_sampler_facts_of(kind)->reads & options[k].option) == 0) {
            list_readers(readers, sizeof(readers), options[k].option);
            return gs_fail(GS_EINVAL, "%s: is of .sampler %s; leave it out with %s", options[k].name, readers,
                           o->sampler);
        }
    return GS_OK;
}

gs_status gs_batch_options_read(gs_sampler_options *out, const gs_train_options *o)
{
    const gs_sampler_kind kind = (gs_sampler_kind)(gs_choice(o, sampler) - 1); /* the first word is none */

    assert(strcmp(gs_sampler_facts_of(kind)->name, o->sampler) == 0); /* the words are in the order of the kinds */
    GS_TRY(check_in_vain(o, kind));
    *out = (gs_sampler_options){.kind = kind, .seed = o->seed, .batch_size = gs_count(o, batch_size),
                                .replace = o->replace, .weighted = o->weighted, .by_type = o->by_type,
                                .walk_length = gs_count(o, walk_length),
                                .coverage = o->coverage, .coefficients_alone = true,
                                .stop = o->stop};
    if ((gs_sampler_facts_of(out->kind)->reads & GS_SAMPLER_READS_FANOUT) == 0)
        return GS_OK;
    if (o->fanout == NULL)
        return gs_fail(GS_EINVAL, ".fanout: none given; .sampler %s needs how many in-edges each hop draws: 15,10 (0: "
                       "all)", o->sampler);
    return read_fanout(out, o->fanout);
}

/* Refuses options of batches that are given without any. */
static gs_status check_none(const gs_train_options *o)
{
    static const size_t of_batches[] = {
#define FIELD(name, ...) offsetof(gs_train_options, name),
        GS_SAMPLER_OPTION_MAP(FIELD)
#undef FIELD
    };

    for (size_t k = 0; k < GS_ARRAY_LEN(of_batches); k++) {
        const gs_option *const x = gs_option_at(of_batches[k]);
        const bool of_pairs = gs_train_is_of_pairs(o) && of_batches[k] == offsetof(gs_train_options, batch_size);
        if (!of_pairs && !gs_option_is_unset(x, o))
            return gs_fail(GS_EINVAL, ".%s: is of batches; use it with .sampler, or leave it out", x->name);
    }
    return GS_OK;
}

/* Refuses options of pairs that are given without any. */
static gs_status check_pairs(const gs_train_options *o)
{
    static const size_t of_pairs[] = {
#define FIELD(name, ...) offsetof(gs_train_options, name),
        GS_PAIR_OPTION_MAP(FIELD)
#undef FIELD
    };

    if ((o->edges != NULL) != (o->scores != NULL))
        return gs_fail(GS_EINVAL, "%s: needs %s beside it", o->edges != NULL ? ".edges" : ".scores",
                       o->edges != NULL ? ".scores" : ".edges");
    if ((o->top > 0) != (o->targets != NULL))
        return gs_fail(GS_EINVAL, "%s: needs %s beside it", o->top > 0 ? ".top" : ".targets",
                       o->top > 0 ? ".targets" : ".top");
    if (o->top > 0 && o->edges == NULL)
        return gs_fail(GS_EINVAL, ".top %u: of which sources? Give .edges a file of them", o->top);
    const bool labels = gs_run_pairs_have_labels(o);
    if (labels && o->top > 0)
        return gs_fail(GS_EINVAL, ".top %u: is of weights of .task link; leave it out", o->top);
    if (gs_train_is_of_pairs(o) && !labels)
        return gs_run_pairs_check(o);
    if (o->edges != NULL && !labels)
        return gs_fail(GS_EINVAL, ".edges: is of weights of .task link, edge-classify or edge-regress; leave it out");
    for (size_t k = 0; k < GS_ARRAY_LEN(of_pairs); k++) {
        const gs_option *const x = gs_option_at(of_pairs[k]);
        const bool of_labels = of_pairs[k] == offsetof(gs_train_options, decoder) ||
                               of_pairs[k] == offsetof(gs_train_options, seeds);
        if (!gs_option_is_unset(x, o) && !(labels && of_labels))
            return gs_fail(GS_EINVAL, ".%s: is of .task link; use it with that, or leave it out", x->name);
    }
    return labels ? gs_run_pairs_check(o) : GS_OK;
}

/* GS_EINVAL names the field: what speaks of batches, and what does not go with them. */
static gs_status check_batches(const gs_train_options *o)
{
    gs_sampler_options ignored;
    uint32_t devices;

    if (!gs_train_on_batches(o))
        return check_none(o);
    GS_TRY(gs_batch_options_read(&ignored, o));
    GS_TRY(gs_batch_devices_count(&devices, o));
    if (gs_batches_per_step_of(o) < devices)
        return gs_fail(GS_EINVAL, ".batches_per_step %u: .device %s has %u devices, to which the batches of a step are "
                       "dealt; use %u or more", o->batches_per_step, o->device, devices, devices);
    if (o->profile && devices > 1)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: batches are timed on one device; use that", o->device);
    return GS_OK;
}

/* ---- all of them --------------------------------------------------------- */

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

    GS_TRY(gs_train_options_read(&o, given));
    GS_TRY(gs_train_options_check(&o));
    if (gs_run_pairs_have_labels(&o) && o.decoder == NULL)
        o.decoder = "mlp"; /* not what is usual for scores: weights and checkpoints are to say it */
    for GS_OPTION_EACH (x)
        bytes += gs_option_is_text(x) && gs_option_text(x, &o) != NULL ? strlen(gs_option_text(x, &o)) + 1 : 0;
    GS_NEED((*texts = gs_malloc(bytes)) != NULL, "out of memory for the options");
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
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;

    if (o->heads == 1 && o->bases == 0 && !gs_session_model_changed(o))
        return GS_OK;
    GS_TRY(gs_session_open_model(&m, o));
    if (o->heads != 1 && !gs_model_has_heads(m))
        return gs_fail(GS_EINVAL, ".heads %u: model %s has no attention heads; leave it at 1", o->heads, o->model);
    else if (o->bases != 0 && !gs_model_has_bases(m))
        return gs_fail(GS_EINVAL, ".bases %u: model %s has no bases; leave it out", o->bases, o->model);
    return GS_OK;
}

static bool is_device(const char *device)
{
    const gs_device_words words = gs_device_words_of(device);
    const uint32_t count = gs_device_count(device);

    return words == GS_DEVICES_CPU || words == GS_DEVICES_GPU || (count >= 1 && count <= GS_DEVICE_COUNT_MOST);
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

    if (o->momentum != 0 && !gs_optim_takes_momentum((gs_optim_kind)gs_choice(o, optimizer)))
        return gs_fail(GS_EINVAL, ".momentum %g: is of sgd; %s has moments of its own", o->momentum, o->optimizer);
    if (o->schedule_every != 0 && schedule != GS_RATES_STEP && schedule != GS_RATES_PLATEAU)
        return gs_fail(GS_EINVAL, ".schedule_every %u: is of the schedules step and plateau", o->schedule_every);
    return GS_OK;
}

gs_status gs_train_options_check(const gs_train_options *o)
{
    gs_checkpoint_pace pace;

    if (o->model == NULL || o->model[0] == '\0')
        return gs_fail(GS_EINVAL, ".model: none given; name a built-in model (gcn, gat, ...) or the file of one");
    GS_TRY(gs_options_check_ranges(o));
    GS_TRY(check_widths(o));
    GS_TRY(check_learning(o));
    GS_TRY(check_pairs(o));
    GS_TRY(check_device(o->device));
    if (o->checkpoint_every != NULL && o->checkpoint == NULL && o->resume == NULL)
        return gs_fail(GS_EINVAL, ".checkpoint_every %s: of which checkpoints? Give .checkpoint a folder",
                       o->checkpoint_every);
    GS_TRY(gs_checkpoint_pace_parse(&pace, o->checkpoint_every));
    return check_batches(o);
}
