/* model_of.c - options to the text that runs. */
#include "session/model_of.h"

#include "base/option_table.h"

gs_status gs_session_open_model(gs_model **out, const gs_train_options *o)
{
    const gs_model_changes changes = {
        .norm = o->norm,
        .jk = o->jk,
        .residual = o->residual,
        .act_first = o->act_first,
        .layers = o->layers,
        .hidden = o->hidden,
        .set = o->set,
    };
    return gs_model_open_changed(out, o->model, &changes);
}

bool gs_session_model_changed(const gs_train_options *o)
{
    return o->residual || o->act_first || o->set != NULL || gs_choice(o, norm) != 0 || gs_choice(o, jk) != 0;
}
