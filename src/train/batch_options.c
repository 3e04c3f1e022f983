#include "train/batch_options.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_table.h"
#include "base/size.h"
#include "batch/batch_devices.h"

bool gs_train_on_batches(const gs_train_options *o) { return gs_choice(o, sampler) > 0; }

uint32_t gs_batches_per_step_of(const gs_train_options *o)
{
    return gs_train_on_batches(o) ? gs_batch_devices_step(o) : 1; /* of the whole graph, on any number of devices */
}

/* "15,10,5". */
static gs_status read_fanout(gs_sampler_options *out, const char *text)
{
    const char *at = text;

    for (out->hops = 0; at != NULL; out->hops++) {
        char *end;
        const unsigned long n = strtoul(at, &end, 10);
        if (end == at || *at == '-' || n > INT32_MAX || (*end != ',' && *end != '\0') || out->hops == GS_SAMPLE_HOPS)
            return gs_fail(GS_EINVAL, ".fanout %s: must be up to %u numbers, one a hop, the targets' first: 15,10 (0: "
                           "all in-edges)", text, GS_SAMPLE_HOPS);
        out->fanout[out->hops] = (uint32_t)n;
        at = *end == ',' ? end + 1 : NULL;
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
    gs_status st;

    assert(strcmp(gs_sampler_facts_of(kind)->name, o->sampler) == 0); /* the words are in the order of the kinds */
    if ((st = check_in_vain(o, kind)) != GS_OK)
        return st;
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
        if (!gs_option_is_unset(x, o))
            return gs_fail(GS_EINVAL, ".%s: is of batches; use it with .sampler, or leave it out", x->name);
    }
    return GS_OK;
}

gs_status gs_batch_options_check(const gs_train_options *o)
{
    gs_sampler_options ignored;
    uint32_t devices;
    gs_status st;

    if (!gs_train_on_batches(o))
        return check_none(o);
    if ((st = gs_batch_options_read(&ignored, o)) != GS_OK)
        return st;
    if ((st = gs_batch_devices_count(&devices, o)) != GS_OK)
        return st;
    if (gs_batches_per_step_of(o) < devices)
        return gs_fail(GS_EINVAL, ".batches_per_step %u: .device %s has %u devices, to which the batches of a step are "
                       "dealt; use %u or more", o->batches_per_step, o->device, devices, devices);
    if (o->trace != NULL)
        return gs_fail(GS_EUNSUPPORTED, ".trace: is of passes over the whole graph; leave it out, or use .sampler "
                       "none");
    if (o->profile && devices > 1)
        return gs_fail(GS_EUNSUPPORTED, ".device %s: batches are timed on one device; use that", o->device);
    return GS_OK;
}
