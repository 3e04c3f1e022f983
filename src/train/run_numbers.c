/* run_numbers.c - a run leaves the finite numbers: it ends, says where, and keeps the last weights that were good.
 *
 * In a good run an epoch's loss is looked at, and the parameters after their update. Where they are not finite the
 * pass is run once more and every array looked at (session/fault.h). The weights before an update stay beside those
 * after it: weights that gave a finite loss are never lost, whichever of the two the next look refuses.
 */
#include <math.h>
#include <stdio.h>

#include "session/fault.h"
#include "train/run_internal.h"

/* ---- keeping what was good ---- */

void gs_run__before_step(gs_run *r)
{
    gs_session_keep_previous(r->session);
    r->has_previous = true;
}

static gs_status finish_weights(gs_run *r)
{
    gs_outfile *const o = &r->files.weights;
    const gs_status st = gs_run__put_weights(r, o, r->good_epoch);
    return st == GS_OK ? gs_outfile_finish(o) : st;
}

/* "; w.safetensors has the weights after epoch 3". */
static void keep_good(gs_run *r, char *text, size_t bytes)
{
    char path[256];

    *text = '\0';
    if (r->files.weights.path == NULL)
        return;
    if (r->session->program->tables > 0) { /* whose rows before an update are not kept */
        snprintf(text, bytes, "; nothing was saved");
        return;
    }
    snprintf(path, sizeof(path), "%s", r->files.weights.path);
    if (r->good_epoch == 0) /* what the run began with is worth no file */
        snprintf(text, bytes, "; %s was not written", path);
    else if (finish_weights(r) == GS_OK)
        snprintf(text, bytes, "; %s has the weights after epoch %u", path, r->good_epoch);
}

/* ---- ending ---- */

/* Looks for the first such number. Arrays of a batch are not looked at: its session has none of a whole graph's. */
static void find_fault(gs_run *r, uint32_t pass, uint32_t epoch, char *where)
{
    if (pass != GS_NONE)
        gs_session_find_fault(r->session, pass, epoch, where);
}

/* `what` has left them, of `pass` in `epoch`. `stepped`: behind an update; else the weights as they are gave it. */
static gs_status end_run(gs_run *r, uint32_t pass, uint32_t epoch, bool stepped, const char *what)
{
    char where[GS_FAULT_TEXT], kept[320];
    gs_status st = GS_OK;

    if (stepped) /* of the weights that the update was made of */
        st = gs_session_back_to_previous(r->session);
    *where = '\0';
    if (st == GS_OK)
        find_fault(r, pass, epoch, where);
    if (!stepped && r->has_previous)
        st = gs_session_back_to_previous(r->session);
    r->evaluated = r->has_logits = false;
    r->state = GS_RUN_IS_FAILED;
    *kept = '\0';
    if (st == GS_OK)
        keep_good(r, kept, sizeof(kept));
    /* the weights that led there are the first ones: no rate has changed them */
    if (r->optim.steps == (stepped ? 1 : 0) && (!stepped || *where != '\0'))
        return gs_fail(GS_EDEVICE,
                       "%s%s%s; no update came before, so .lr is not why: %s needs other features or edge weights, or "
                       "a text that guards what it divides by%s",
                       what, *where != '\0' ? ", first in " : "", where, r->model_name, kept);
    return gs_fail(GS_EDEVICE, "%s%s%s; lower .lr (now %g)%s", what, *where != '\0' ? ", first in " : "", where,
                   r->options.lr, kept);
}

/* The weights that were good are those before the last update. */
static gs_status refuse_loss(gs_run *r, uint32_t pass, uint32_t epoch, double loss, const char *when)
{
    char what[96];

    snprintf(what, sizeof(what), "%s: the loss is %s", when, isnan(loss) ? "not a number" : "infinite");
    r->good_epoch = r->epoch > 0 ? r->epoch - 1 : 0;
    return end_run(r, pass, epoch, false, what);
}

gs_status gs_run__check_pass(gs_run *r, uint32_t epoch, double loss)
{
    char when[32];
    gs_status st;

    if (r->has_previous && gs_session_steps_on_device(r->session) && !gs_session_stepped_well(r->session))
        return (st = gs_session_fetch_params(r->session)) == GS_OK ? gs_run__refuse_step(r, r->epoch) : st;
    if (isfinite(loss))
        return GS_OK;
    snprintf(when, sizeof(when), "epoch %u", epoch);
    return refuse_loss(r, r->session->pass.train, epoch, loss, when);
}

gs_status gs_run__refuse_step(gs_run *r, uint32_t epoch)
{
    const gs_session *const s = r->session;
    const uint32_t bad = gs_params_find_nonfinite(s->run.params.value, s->program);
    char what[160], layer[32];

    r->good_epoch = epoch > 0 ? epoch - 1 : 0;
    if (bad == GS_NONE)
        snprintf(what, sizeof(what), "epoch %u: its update left parameters that are not finite", epoch);
    else
        snprintf(what, sizeof(what), "epoch %u: its update left numbers that are not finite in %sparameter %s", epoch,
                 gs_session_layer_of(s->program->param[bad].name, layer, sizeof(layer)), s->program->param[bad].name);
    return end_run(r, s->pass.train, epoch, true, what);
}

gs_status gs_run__check_step(gs_run *r, uint32_t epoch)
{
    gs_session *const s = r->session;
    gs_status st;

    if (gs_session_steps_on_device(s)) {
        if (epoch < r->options.epochs) /* the next pass brings the answer with it */
            return GS_OK;
        if ((st = gs_session_fetch_params(s)) != GS_OK)
            return st;
    }
    return gs_params_are_finite(&s->run.params) ? GS_OK : gs_run__refuse_step(r, epoch);
}

gs_status gs_run__check_evaluation(gs_run *r, uint32_t pass, double loss, bool counts)
{
    char where[GS_FAULT_TEXT];

    if (!counts || isfinite(loss))
        return GS_OK;
    if (r->has_previous)
        return refuse_loss(r, pass, 0, loss, "after the last epoch");
    r->state = GS_RUN_IS_FAILED;
    gs_session_find_fault(r->session, pass, 0, where);
    return gs_fail(GS_EDEVICE, "the loss of these weights is %s%s%s; other weights or features are needed",
                   isnan(loss) ? "not a number" : "infinite", *where != '\0' ? ", first in " : "", where);
}
