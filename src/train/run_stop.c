/* run_stop.c - a run that .stop has ended: what it has learned by then is not lost.
 *
 * A step is all or nothing, so the weights are those after the last whole epoch, of a run on batches those after the
 * last batch, or the best ones before. */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "train/run_internal.h"

/* No pass has to say which are better: of those after the last epoch nothing is known. *best: they are not the last
 * ones. */
static gs_status choose_weights(gs_run *r, bool *best)
{
    const gs_control *const c = &r->control;

    r->report.kept_epochs = r->epoch;
    *best = c->keeps_best && c->state.best_epoch != 0 &&
            (c->state.best_epoch <= r->epoch || r->part.batches > 0);
    if (!*best)
        return GS_OK;
    r->report.kept_epochs = c->state.best_epoch - 1;
    r->evaluated = r->has_logits = r->has_previous = r->whole = false;
    return gs_session_back_to_best(r->session);
}

/* The line about the pass again, and what there is of the run: `left`, which may be empty. */
static gs_status say(gs_run *r, const char *left)
{
    const char *const folder = r->saver.folder.path;
    const gs_checkpoint_report *const c = &r->saver.report;
    char hint[1500], state[400] = "", far[GS_HOW_FAR_BYTES];

    if (folder != NULL && gs_run__has_learned(r) && c->epoch == r->epoch && c->batches == r->part.batches)
        snprintf(state, sizeof(state), "%s has its state after %s", folder, gs_run__how_far(r, far));
    snprintf(hint, sizeof(hint), "%s%s%s", state, state[0] != '\0' && left[0] != '\0' ? "; " : "", left);
    (void)gs_run__stopped(r);
    return hint[0] != '\0' ? gs_fail_hint(GS_EINTERRUPTED, hint) : GS_EINTERRUPTED;
}

static gs_status say_what_was_written(gs_run *r, bool best)
{
    const gs_train_options *const o = &r->options;
    char left[1024], far[GS_HOW_FAR_BYTES];
    const char *const named[] = {o->save, o->logits, o->argmax};
    size_t n = 0;

    for (size_t k = 0; k < GS_ARRAY_LEN(named) && n < sizeof(left); k++)
        if (named[k] != NULL)
            n += (size_t)snprintf(left + n, sizeof(left) - n, "%s%s", n > 0 ? " and " : "wrote ", named[k]);
    if (n < sizeof(left) && best)
        snprintf(left + n, sizeof(left) - n, " of the best weights, after epoch %u", r->report.kept_epochs);
    else if (n < sizeof(left))
        snprintf(left + n, sizeof(left) - n, " of the last weights, after %s", gs_run__how_far(r, far));
    return say(r, left);
}

gs_status gs_run__finish_stopped(gs_run *r, gs_train_report *report)
{
    const gs_train_options *const o = &r->options;
    bool best = false;
    gs_status st;

    if (r->kind == GS_RUN_PREDICT || (o->save == NULL && o->logits == NULL && o->argmax == NULL))
        return say(r, "");
    if (!gs_run__has_learned(r))
        return say(r, "no epoch was done, so no weights or logits were written");
    r->options.stop = NULL; /* it was heard */
    r->state = GS_RUN_IS_OPEN;
    if ((st = gs_run__fetch(r)) != GS_OK || (st = choose_weights(r, &best)) != GS_OK ||
        ((o->logits != NULL || o->argmax != NULL) && !r->has_logits && (st = gs_run__evaluate(r, NULL)) != GS_OK))
        return st;
    r->state = GS_RUN_IS_FINISHED;
    gs_outfile_abandon(&r->files.trace); /* of a whole epoch, which is not there */
    if ((st = gs_run__write_files(r)) != GS_OK)
        return st;
    if (report != NULL)
        *report = r->report;
    return say_what_was_written(r, best);
}
