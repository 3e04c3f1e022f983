/* run_warn.c - lines about what a run does otherwise than it may be thought to. */
#include <stdio.h>
#include <string.h>

#include "train/run_internal.h"

static const char *model_of(const gs_train_options *o)
{
    return strchr(o->model, '\n') != NULL ? "the model" : o->model;
}

/* What is learned in vain. */
static void warn_of_parameters(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const gs_program *const p = s->program;
    char line[512];

    for (uint32_t i = 0; i < p->params; i++) {
        if (p->param[i].fixed || p->param[i].learns)
            continue;
        snprintf(line, sizeof(line), "%s: the result does not depend on parameter %s, which stays as it starts",
                 model_of(o), p->param[i].name);
        o->warn(o->context, line);
    }
}

static void warn_of_weights(const gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    char line[512];

    if (!gs_store_get_info(s->store)->weights || o->ignore_edge_weights)
        return;
    for (uint32_t i = 0; i < s->program->stages; i++)
        if (gs_stage_has_weights(&s->program->stage[i]))
            return;
    snprintf(line, sizeof(line),
             "%s: does not look at the edge weights of %s: each edge counts 1; .ignore_edge_weights says that it may",
             model_of(o), gs_store_dir(s->store));
    o->warn(o->context, line);
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

void gs_run__warn(const gs_session *s)
{
    if (s->config.options->warn == NULL)
        return;
    if (s->config.purpose == GS_FOR_TRAINING)
        warn_of_parameters(s);
    warn_of_weights(s);
    warn_of_memory(s);
}
