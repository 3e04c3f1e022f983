/* run_resume.c - a run goes on from a checkpoint: finds it, sees that it is of this run, takes its state. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/option_table.h"
#include "base/size.h"
#include "base/status.h"
#include "session/model_of.h"
#include "session/plan_id.h"
#include "train/checkpoint_options.h"
#include "train/run_internal.h"
#include "train/safetensors.h"
#include "train/sections.h"

#define DAMAGE_BYTES 400 /* of what is said of a damaged one */

/* ---- finding ------------------------------------------------------------- */

/* The checkpoint in `dir`, if every byte of it is as it was written. */
static gs_status read_checkpoint(gs_checkpoint *c, const char *dir)
{
    char *const path = gs_path_join(dir, GS_CHECKPOINT_JSON);
    char *text = NULL;
    uint64_t bytes;
    gs_status st;

    if (path == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", dir);
    gs_checkpoint_list_options(c);
    if ((st = gs_file_read_all(&text, &bytes, path, GS_CHECKPOINT_JSON_MOST)) == GS_OK)
        st = gs_checkpoint_parse(c, text, bytes, path);
    for (uint32_t k = 0; st == GS_OK && k < c->sections; k++)
        st = gs_section_check(&c->section[k], dir);
    gs_free(text);
    gs_free(path);
    return st;
}

/* Is it the fault of the one that was read, so that another one may do? */
static bool is_damage(gs_status st) { return st == GS_EFORMAT || st == GS_ENOTFOUND || st == GS_EIO; }

static void note(gs_run *r, const char *text)
{
    char *const to = r->saver.report.note;
    const size_t length = strlen(to), room = sizeof(r->saver.report.note) - length;
    snprintf(to + length, room, "%s%s", length > 0 ? "; " : "", text);
}

/* The newest whole one in `path`: into *c, and its folder into *dir, to be freed with gs_free(). `damage`: of one that
 * was passed over, or "". */
static gs_status find_whole(gs_checkpoint *c, char **dir, const char *path, char damage[DAMAGE_BYTES])
{
    uint64_t before = UINT64_MAX;
    uint32_t number = 0;
    gs_status st;

    damage[0] = '\0';
    while ((st = gs_checkpoint_before(path, before, &number)) == GS_OK && number > 0) {
        if ((*dir = gs_checkpoint_dir(path, number)) == NULL)
            return gs_fail(GS_ENOMEM, "%s: out of memory", path);
        *c = (gs_checkpoint){0};
        if ((st = read_checkpoint(c, *dir)) == GS_OK && gs_checkpoint_number(c->epoch, c->part.batches) != number)
            st = gs_fail(GS_EFORMAT, "%s: is of epoch %u", *dir, c->epoch);
        if (st == GS_OK || !is_damage(st))
            return st;
        if (damage[0] == '\0')
            snprintf(damage, DAMAGE_BYTES, "%s", gs_last_error());
        gs_free(*dir);
        *dir = NULL;
        before = number;
    }
    if (st != GS_OK)
        return st;
    return damage[0] != '\0'
               ? gs_fail(GS_EFORMAT, ".resume %s: no checkpoint there is whole: %s", path, damage)
               : gs_fail(GS_ENOTFOUND, ".resume %s: there is no checkpoint; train without it", path);
}

/* Into r->saver.from and .from_dir. */
static gs_status find_ours(gs_run *r, const char *path)
{
    char damage[DAMAGE_BYTES], text[DAMAGE_BYTES + 48];
    const gs_status st = find_whole(r->saver.from, &r->saver.from_dir, path, damage);

    if (st == GS_OK && damage[0] != '\0') {
        snprintf(text, sizeof(text), "a damaged checkpoint was passed over (%s)", damage);
        note(r, text);
    }
    return st;
}

gs_status gs_checkpoint_command(char *out, size_t capacity, const char *folder)
{
    char damage[DAMAGE_BYTES], *dir = NULL;
    gs_checkpoint *c = NULL;
    gs_status st;

    if ((st = gs_check_argument(out, "out")) != GS_OK || (st = gs_check_argument(folder, "folder")) != GS_OK)
        return st;
    if ((c = gs_calloc(1, sizeof(*c))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", folder);
    if ((st = find_whole(c, &dir, folder, damage)) == GS_OK)
        snprintf(out, capacity, "%s", strlen(c->command) < capacity ? c->command : "");
    gs_free(dir);
    gs_free(c);
    return st;
}

/* ---- is it this run's? --------------------------------------------------- */

static gs_status match_model(const gs_run *r)
{
    gs_model *m = NULL;
    gs_status st = gs_session_open_model(&m, &r->options);

    if (st == GS_OK && gs_model_text_id(m) != r->saver.from->model_id)
        st = gs_fail(GS_EINVAL, ".model %s: the checkpoint %s is of a model with another text, as .norm, .jk, "
                     ".residual and .set make it, too; give that, or train anew",
                     r->options.model, r->saver.from_dir);
    gs_model_close(m);
    return st;
}

/* The run is judged as before, where the options leave it open: figures of two kinds do not compare. */
static void judge_as_before(gs_run *r, gs_train_task labels)
{
    static const gs_judge before[] = {
        [GS_TRAIN_TASK_CLASSIFY] = GS_BY_ACCURACY,
        [GS_TRAIN_TASK_MULTILABEL] = GS_BY_MICRO_F1,
        [GS_TRAIN_TASK_REGRESS] = GS_BY_MSE,
    };
    gs_control_state *const c = &r->saver.from->control;
    gs_checkpoint_option *const by = gs_checkpoint_find_option(r->saver.from, "keep_by");
    const gs_train_task task = r->options.task == NULL ? labels : (gs_train_task)gs_choice(&r->options, task);
    gs_judge judge;

    if (strcmp(by->text, GS_KEPT_BEFORE) == 0) {
        if (c->best_epoch == 0) /* nothing was judged yet */
            snprintf(by->text, sizeof(by->text), "%s", r->options.keep_by != NULL ? r->options.keep_by : "");
        else
            snprintf(by->text, sizeof(by->text), "%s", gs_judge_name(before[task]));
        if (c->best_epoch == 1) { /* weights before any update, which counted then */
            c->best_epoch = 0;
            c->best = NAN;
        }
    }
    if (r->options.keep_by == NULL && by->text[0] != '\0' && gs_judge_find(&judge, by->text, task) == GS_OK)
        r->options.keep_by = gs_judge_name(judge);
}

/* Before the session opens: planning takes its time. */
static gs_status match_store(gs_run *r, const char *store)
{
    gs_store *s = NULL;
    gs_status st = gs_store_open(&s, store);

    if (st == GS_OK && gs_store_get_info(s)->id != r->saver.from->store_id)
        st = gs_fail(GS_EINVAL,
                     "%s: the checkpoint %s is of another store (%016llx; this is %016llx); give that, or train anew",
                     store, r->saver.from_dir, (unsigned long long)r->saver.from->store_id,
                     (unsigned long long)gs_store_get_info(s)->id);
    if (st == GS_OK)
        judge_as_before(r, gs_store_get_info(s)->labels);
    gs_store_close(s);
    return st;
}

gs_status gs_run__find_checkpoint(gs_run *r, const char *store)
{
    gs_status st;

    if (r->kind != GS_RUN_TRAIN || r->options.resume == NULL)
        return GS_OK;
    if ((r->saver.from = gs_calloc(1, sizeof(*r->saver.from))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory");
    if ((st = find_ours(r, r->options.resume)) != GS_OK || (st = match_store(r, store)) != GS_OK ||
        (st = match_model(r)) != GS_OK)
        return st;
    return gs_checkpoint_match_options(r->saver.from, &r->options, r->saver.from_dir);
}

/* ---- taking its state ---------------------------------------------------- */

static gs_status load_section(gs_run *r, const char *name, float *const *value, gs_run_rows rows)
{
    const gs_safetensors_tables tables = gs_run__tables(r, rows);
    char *path;
    gs_status st;

    if (gs_checkpoint_find_section(r->saver.from, name) == NULL)
        return gs_fail(GS_EFORMAT, "%s: has no section \"%s\"", r->saver.from_dir, name);
    if ((path = gs_section_path(r->saver.from_dir, name)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", r->saver.from_dir);
    st = gs_safetensors_load_state(value, r->session->program, &tables, path);
    gs_free(path);
    return st;
}

gs_status gs_run__resume_params(gs_run *r)
{
    const gs_checkpoint *const c = r->saver.from;

    r->epoch = c->epoch;
    r->part = c->part;
    r->optim.steps = c->steps;
    r->report.epochs = c->epoch;
    r->report.seconds = c->seconds;
    r->report.read_bytes = c->read_bytes;
    r->report.written_bytes = c->written_bytes;
    r->saver.report.resumed = r->saver.report.epoch = c->epoch;
    r->saver.report.resumed_batches = r->saver.report.batches = c->part.batches;
    if (gs_store_get_info(r->session->store)->id != c->store_id)
        return gs_fail(GS_EINVAL, "%s: became another store while the run was opened", gs_store_dir(r->session->store));
    return load_section(r, GS_SECTION_MODEL, r->session->run.params.value, GS_RUN_ROWS);
}

static gs_status load_states(gs_run *r)
{
    gs_session *const s = r->session;
    float **const state = gs_calloc(s->program->params, sizeof(*state));
    gs_status st = state != NULL ? GS_OK : gs_fail(GS_ENOMEM, "out of memory");

    for (uint32_t k = 0; st == GS_OK && k < s->config.states; k++)
        if ((st = gs_session_state(s, k, false, state)) == GS_OK &&
            (st = load_section(r, gs_section_of_state(k), state, GS_RUN_ROWS_STATE + k)) == GS_OK)
            st = gs_session_put_state(s, k, state);
    gs_free(state);
    return st;
}

/* The same plan, made of the same program by the same code on the same processor, gives the same bits. */
static void compare_plans(gs_run *r)
{
    const gs_checkpoint *const c = r->saver.from;
    char maker[GS_MAKER_BYTES];

    gs_session_maker(r->session, maker);
    if (strcmp(maker, c->maker) != 0)
        note(r, "another machine, device or version computes than before: results agree with those of a run that was "
                "not interrupted up to rounding, not to the bit");
    else if (r->saver.plan_id != c->plan_id)
        note(r, "the plan is another than before, as options of the machine or its free memory are: results agree with "
                "those of a run that was not interrupted up to rounding, not to the bit");
}

gs_status gs_run__resume_state(gs_run *r)
{
    gs_status st;

    if (r->saver.from == NULL)
        return GS_OK;
    r->control.state = r->saver.from->control;
    st = load_states(r);
    if (st == GS_OK && r->control.keeps_best && r->control.state.best_epoch > 0)
        st = load_section(r, GS_SECTION_BEST, r->session->run.params.best_value, GS_RUN_ROWS_BEST);
    r->saver.report.over = !r->part.begun && gs_control_is_over(&r->control, r->epoch);
    if (st == GS_OK)
        compare_plans(r);
    gs_free(r->saver.from);
    gs_free(r->saver.from_dir);
    r->saver.from = NULL;
    r->saver.from_dir = NULL;
    return st;
}
