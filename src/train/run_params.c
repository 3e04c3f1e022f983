/* run_params.c - the parameters of a run: who has them, and are they as the host knows them? */
#include <stdio.h>
#include <string.h>

#include "session/tables.h"
#include "train/run_internal.h"

gs_status gs_run__check_open(const gs_run *r)
{
    if (r->state == GS_RUN_IS_OPEN)
        return GS_OK;
    return gs_fail(GS_EINVAL, "run: %s; close it and open another one",
                   r->state == GS_RUN_IS_FAILED    ? "a pass of it has failed"
                   : r->state == GS_RUN_IS_STOPPED ? "it was stopped"
                                                   : "it is finished");
}

gs_status gs_run__stopped(const gs_run *r)
{
    if (r->kind == GS_RUN_PREDICT)
        return gs_fail(GS_EINTERRUPTED, "interrupted; nothing was written");
    if (r->epoch >= r->options.epochs || gs_control_is_over(&r->control, r->epoch))
        return gs_fail(GS_EINTERRUPTED, "interrupted in the last evaluation, after epoch %u of %u", r->epoch,
                       r->options.epochs);
    return gs_fail(GS_EINTERRUPTED, "interrupted in epoch %u of %u", r->epoch + 1, r->options.epochs);
}

gs_status gs_run__place(gs_run *r)
{
    gs_status st;

    if (r->placed)
        return GS_OK;
    if ((st = gs_session_keep_params(r->session)) == GS_OK)
        st = gs_session_setup(r->session);
    r->placed = st == GS_OK;
    return st;
}

bool gs_run__has_learned(const gs_run *r) { return r->epoch > 0 || r->part.batches > 0; }

const char *gs_run__how_far(const gs_run *r, char text[GS_HOW_FAR_BYTES])
{
    const int n = snprintf(text, GS_HOW_FAR_BYTES, "epoch %u", r->epoch);
    if (r->part.batches > 0)
        snprintf(text + n, GS_HOW_FAR_BYTES - (size_t)n, " and %u of %u batches of the next", r->part.batches,
                 r->part.of);
    return text;
}

gs_status gs_run__weights_changed(gs_run *r)
{
    gs_params *const p = &r->session->run.params;

    for (uint32_t k = 0; k < GS_PARAMS_STATES; k++)
        if (p->state[k] != NULL)
            memset(p->state[k], 0, p->elements * sizeof(float));
    r->optim.steps = 0;
    gs_control_forget(&r->control);
    r->part = (gs_epoch_part){0};
    r->placed = r->evaluated = r->has_logits = r->has_previous = false;
    return gs_session_clear_table_state(r->session);
}

gs_status gs_run__fetch(gs_run *r)
{
    gs_status st;

    /* until devices have them, the host's are the ones; after a failed pass theirs are of no use */
    if (r->placed && (st = gs_session_fetch_params(r->session)) != GS_OK)
        return st;
    if (!r->has_previous || gs_params_are_finite(&r->session->run.params))
        return GS_OK;
    return gs_run__refuse_step(r, r->epoch);
}
