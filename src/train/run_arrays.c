/* run_arrays.c - the numbers of a run: who has them, as arrays, as files, and are they finite? */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "ranks/ranks.h"
#include "session/fault.h"
#include "session/session_plan.h"
#include "train/provenance.h"
#include "train/run_internal.h"

/* ---- who has the parameters ---------------------------------------------- */

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
    /* ranks wait for each other in a pass: none begins it where another has failed before, and who fails ends all */
    if ((st = gs_ranks_agree(gs_session_keep_params(r->session))) == GS_OK)
        st = gs_run__end_all(gs_session_setup(r->session));
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

/* ---- tensors ------------------------------------------------------------- */

uint32_t gs_run_tensors(const gs_run *run)
{
    uint32_t n = 0;
    while (run != NULL && gs_safetensors_param(run->session->program, n) != GS_NONE)
        n++;
    return n;
}

static gs_status check_tensor(uint32_t *param, const gs_run *run, uint32_t index)
{
    GS_TRY(gs_check_argument(run, "run"));
    if ((*param = gs_safetensors_param(run->session->program, index)) == GS_NONE)
        return gs_fail(GS_EINVAL, "index %u: the model has %u tensors", index, gs_run_tensors(run));
    return GS_OK;
}

gs_status gs_run_tensor(const gs_run *run, uint32_t index, gs_tensor_info *out)
{
    uint32_t i;

    GS_TRY(check_tensor(&i, run, index));
    GS_TRY(gs_check_argument(out, "out"));
    const gs_param *const p = &run->session->program->param[i];
    *out = (gs_tensor_info){.name = p->name, .count = gs_param_elements(p), .learned = !p->fixed};
    out->dimensions = gs_safetensors_shape(out->shape, p);
    return GS_OK;
}

static gs_status check_count(const gs_param *p, uint64_t count)
{
    if (count == gs_param_elements(p))
        return GS_OK;
    return gs_fail(GS_EINVAL, "count %lu: tensor %s has %lu numbers", count, p->name, gs_param_elements(p));
}

gs_status gs_run_get_tensor(gs_run *run, uint32_t index, float *out, uint64_t count)
{
    uint32_t i;

    GS_TRY(check_tensor(&i, run, index));
    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(check_count(&run->session->program->param[i], count));
    GS_TRY(gs_run__fetch(run));
    memcpy(out, run->session->run.params.value[i], count * sizeof(float));
    return GS_OK;
}

gs_status gs_run_set_tensor(gs_run *run, uint32_t index, const float *values, uint64_t count)
{
    uint32_t i;

    GS_TRY(check_tensor(&i, run, index));
    GS_TRY(gs_check_argument(values, "values"));
    GS_TRY(check_count(&run->session->program->param[i], count));
    GS_TRY(gs_run__check_open(run));
    for (uint64_t k = 0; k < count; k++)
        if (!isfinite(values[k]))
            return gs_fail(GS_EINVAL, "values[%lu]: is not finite; tensor %s takes finite numbers alone", k,
                           run->session->program->param[i].name);
    /* the others are still those of the devices */
    if (run->placed)
        GS_TRY(gs_session_fetch_params(run->session));
    memcpy(run->session->run.params.value[i], values, count * sizeof(float));
    return gs_run__weights_changed(run);
}

/* ---- logits -------------------------------------------------------------- */

gs_logits_job gs_run__logits_job(gs_run *r)
{
    gs_session *const s = r->session;
    gs_logits_job job = {
        .store = s->store,
        .classes = s->classes,
        .form = !r->options.softmax                        ? GS_LOGITS_AS_THEY_ARE
                : s->labels.task == GS_TRAIN_TASK_MULTILABEL ? GS_LOGITS_SIGMOID
                                                        : GS_LOGITS_SOFTMAX,
        .memory = s->memory.logits,
        .scratch_dir = gs_session_scratch_dir(s),
        .source = gs_session_logits,
        .context = s,
        .stop = r->options.stop,
    };
    if (!r->options.embeddings)
        gs_logits_range(&job.first, &job.rows, s->store);
    return job;
}

uint64_t gs_run_vertices(const gs_run *run)
{
    uint64_t first, rows;

    if (run == NULL)
        return 0;
    gs_logits_range(&first, &rows, run->session->store);
    return run->options.embeddings ? gs_store_get_info(run->session->store)->vertices : rows;
}

gs_status gs_run__want_logits(gs_run *r)
{
    if (r->session->pass.predict == GS_NONE)
        return gs_fail(GS_EINVAL, "run: was opened without logits; set .keep_logits");
    if (r->has_logits)
        return GS_OK;
    GS_TRY(gs_run__check_open(r));
    return gs_run__evaluate(r, NULL);
}

uint32_t gs_run_columns(const gs_run *run) { return run == NULL ? 0 : run->session->classes; }

gs_status gs_run_logits(gs_run *run, float *out, uint64_t count)
{
    GS_TRY(gs_check_argument(run, "run"));
    GS_TRY(gs_check_argument(out, "out"));
    const uint64_t rows = gs_run_vertices(run);
    const uint32_t classes = run->session->classes;
    const uint64_t want = rows * classes;
    if (count != want)
        return gs_fail(GS_EINVAL, "count %lu: logits are %lu x %u = %lu numbers", count, rows, classes, want);
    GS_TRY(gs_run__want_logits(run));
    const gs_logits_job job = gs_run__logits_job(run);
    const gs_status st = gs_ranks_self() == 0 ? gs_logits_place(out, &job) : GS_OK;
    GS_TRY(gs_session_explain_logits(run->session, gs_session_give_rows(run->session, st)));
    return gs_ranks_share(out, want * sizeof(*out));
}

/* ---- weights as a file --------------------------------------------------- */

/* As it is now: nobody knows what becomes of the model's file. */
gs_status gs_run__identify_model(gs_run *r)
{
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;

    GS_TRY(gs_session_open_model(&m, &r->options));
    r->model_name = gs_strdup(gs_path_name(gs_model_name(m)));
    r->model_text = gs_strdup(gs_model_text(m));
    r->saver.model_id = gs_model_text_id(m);
    GS_NEED(r->model_name != NULL && r->model_text != NULL, "out of memory for the model");
    return GS_OK;
}

gs_status gs_run__begin_weights(gs_run *r, gs_outfile *o, const char *path)
{
    const gs_safetensors_tables tables = gs_run__tables(r, GS_RUN_ROWS);

    GS_TRY(gs_outfile_begin(o, path));
    return gs_safetensors_reserve(o, r->session->program, r->session->run.params.value, &tables);
}

gs_status gs_run__describe_weights(const gs_run *r, uint32_t epochs, gs_safetensors_note **note, uint32_t *notes)
{
    const gs_session *const s = r->session;
    gs_train_options o = r->options;
    const uint32_t columns = gs_run_pairs_columns(s->store, &o); /* of labels of edges */
    const gs_provenance_source from = {.options = &o, .model = r->model_name, .text = r->model_text,
                                       .store = s->store, .epochs = epochs,
                                       .classes = columns > 0 ? columns : s->classes,
                                       .no_move = o.no_move || s->variant.no_move != GS_NOT_TAKEN,
                                       .no_fuse = o.no_fuse || s->variant.no_fuse != GS_NOT_TAKEN};

    o.keep_by = r->control.valid ? gs_judge_name(r->control.judge) : NULL;
    return gs_provenance_notes(note, notes, &from);
}

gs_status gs_run__put_weights(gs_run *r, gs_outfile *o, uint32_t epochs)
{
    const gs_session *const s = r->session;
    const gs_safetensors_tables tables = gs_run__tables(r, GS_RUN_ROWS);
    GS_FREED gs_safetensors_note *note = NULL;
    uint32_t notes;

    GS_TRY(gs_run__describe_weights(r, epochs, &note, &notes));
    return gs_safetensors_write(o, s->program, s->run.params.value, &tables, note, notes);
}

/* ---- numbers that are not finite ----------------------------------------- */

/* A run leaves the finite numbers: it ends, says where, and keeps the last weights that were good.
 *
 * In a good run an epoch's loss is looked at, and the parameters after their update. Where they are not finite the
 * pass is run once more and every array looked at (session/fault.h). The weights before an update stay beside those
 * after it: weights that gave a finite loss are never lost, whichever of the two the next look refuses.
 */

/* ---- keeping what was good ---- */

void gs_run__before_step(gs_run *r)
{
    gs_session_keep_previous(r->session);
    r->has_previous = true;
}

/* "; w.safetensors has the weights after epoch 3". */
static void keep_good(gs_run *r, char *text, size_t bytes)
{
    gs_outfile *const o = &r->files.weights;
    char path[256];

    *text = '\0';
    if (o->path == NULL)
        return;
    if (r->session->program->tables > 0) { /* whose rows before an update are not kept */
        snprintf(text, bytes, "; nothing was saved");
        return;
    }
    snprintf(path, sizeof(path), "%s", o->path);
    if (r->good_epoch == 0) /* what the run began with is worth no file */
        snprintf(text, bytes, "; %s was not written", path);
    else if (gs_run__put_weights(r, o, r->good_epoch) == GS_OK && gs_outfile_finish(o) == GS_OK)
        snprintf(text, bytes, "; %s has the weights after epoch %u", path, r->good_epoch);
}

/* ---- ending ---- */

/* `what` has left them, of `pass` in `epoch`. `stepped`: behind an update; else the weights as they are gave it. */
static gs_status end_run(gs_run *r, uint32_t pass, uint32_t epoch, bool stepped, const char *what)
{
    char where[GS_FAULT_TEXT], kept[320];
    gs_status st = GS_OK;

    if (stepped) /* of the weights that the update was made of */
        st = gs_session_back_to_previous(r->session);
    *where = '\0';
    if (st == GS_OK && pass != GS_NONE) /* of a batch: its session has no arrays of a whole graph's */
        gs_session_find_fault(r->session, pass, epoch, where);
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

static gs_status refuse_step(gs_run *r, uint32_t epoch)
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

gs_status gs_run__fetch(gs_run *r)
{
    /* until devices have them, the host's are the ones; after a failed pass theirs are of no use */
    if (r->placed)
        GS_TRY(gs_session_fetch_params(r->session));
    if (!r->has_previous || gs_params_are_finite(&r->session->run.params))
        return GS_OK;
    return refuse_step(r, r->epoch);
}

gs_status gs_run__check_pass(gs_run *r, uint32_t epoch, double loss)
{
    char when[32];

    /* devices that step themselves know it of the steps before the last pass */
    if (r->has_previous && gs_session_steps_on_device(r->session) &&
        !gs_device_stepped_well(r->session->machine.device[0])) {
        GS_TRY(gs_session_fetch_params(r->session));
        return refuse_step(r, r->epoch);
    }
    if (isfinite(loss))
        return GS_OK;
    snprintf(when, sizeof(when), "epoch %u", epoch);
    return refuse_loss(r, r->session->pass.train, epoch, loss, when);
}

gs_status gs_run__check_step(gs_run *r, uint32_t epoch)
{
    gs_session *const s = r->session;

    if (gs_session_steps_on_device(s)) {
        if (epoch < r->options.epochs) /* the next pass brings the answer with it */
            return GS_OK;
        GS_TRY(gs_session_fetch_params(s));
    }
    return gs_params_are_finite(&s->run.params) ? GS_OK : refuse_step(r, epoch);
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
