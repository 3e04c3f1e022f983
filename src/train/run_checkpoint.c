/* run_checkpoint.c - checkpoints of a run: going on from one, and writing them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/option_table.h"
#include "ranks/ranks.h"
#include "session/session_plan.h"
#include "train/run_internal.h"

/* ---- going on ------------------------------------------------------------ */

#define DAMAGE_BYTES 400 /* of what is said of a damaged one */

/* ---- finding ------------------------------------------------------------- */

/* The checkpoint in `dir`, if every byte of it is as it was written. */
static gs_status read_checkpoint(gs_checkpoint *c, const char *dir)
{
    GS_FREED char *const path = gs_path_join(dir, GS_CHECKPOINT_JSON);
    GS_FREED char *text = NULL;
    uint64_t bytes;

    GS_NEED(path != NULL, "%s: out of memory", dir);
    gs_checkpoint_list_options(c);
    GS_TRY(gs_file_read_all(&text, &bytes, path, GS_CHECKPOINT_JSON_MOST));
    GS_TRY(gs_checkpoint_parse(c, text, bytes, path));
    for (uint32_t k = 0; k < c->sections; k++)
        GS_TRY(gs_section_check(&c->section[k], dir));
    return GS_OK;
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
        GS_NEED((*dir = gs_checkpoint_dir(path, number)) != NULL, "%s: out of memory", path);
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
    char damage[DAMAGE_BYTES];
    GS_FREED char *dir = NULL;
    GS_FREED gs_checkpoint *c = NULL;

    GS_TRY(gs_check_argument(out, "out"));
    GS_TRY(gs_check_argument(folder, "folder"));
    GS_NEED((c = gs_calloc(1, sizeof(*c))) != NULL, "%s: out of memory", folder);
    GS_TRY(find_whole(c, &dir, folder, damage));
    snprintf(out, capacity, "%s", strlen(c->command) < capacity ? c->command : "");
    return GS_OK;
}

/* ---- is it this run's? --------------------------------------------------- */

static gs_status match_model(const gs_run *r)
{
    GS_ENDS(gs_model_close_at) gs_model *m = NULL;

    GS_TRY(gs_session_open_model(&m, &r->options));
    if (gs_model_text_id(m) == r->saver.from->model_id)
        return GS_OK;
    return gs_fail(GS_EINVAL, ".model %s: the checkpoint %s is of a model with another text, as .norm, .jk, .residual "
                   "and .set make it, too; give that, or train anew", r->options.model, r->saver.from_dir);
}

/* The run is judged as before, where the options leave it open: figures of two kinds do not compare. */
static void judge_as_before(gs_run *r, gs_train_task labels)
{
    static const gs_judge before[] = {
        [GS_TRAIN_TASK_CLASSIFY] = GS_BY_ACCURACY,
        [GS_TRAIN_TASK_MULTILABEL] = GS_BY_MICRO_F1,
        [GS_TRAIN_TASK_REGRESS] = GS_BY_MSE,
        [GS_TRAIN_TASK_LINK] = GS_BY_MRR, /* which was none before, */
        [GS_TRAIN_TASK_EDGE_CLASSIFY] = GS_BY_LOSS, /* nor were these */
        [GS_TRAIN_TASK_EDGE_REGRESS] = GS_BY_MSE,
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
    GS_ENDS(gs_store_close_at) gs_store *s = NULL;

    GS_TRY(gs_session_open_store(&s, store));
    if (gs_store_get_info(s)->id != r->saver.from->store_id)
        return gs_fail(GS_EINVAL, "%s: the checkpoint %s is of another store (%016lx; this is %016lx); give that, or "
                       "train anew", store, r->saver.from_dir, r->saver.from->store_id, gs_store_get_info(s)->id);
    judge_as_before(r, gs_store_get_info(s)->labels);
    return GS_OK;
}

gs_status gs_run__find_checkpoint(gs_run *r, const char *store)
{
    if (r->kind != GS_RUN_TRAIN || r->options.resume == NULL)
        return GS_OK;
    GS_NEED((r->saver.from = gs_calloc(1, sizeof(*r->saver.from))) != NULL, "out of memory");
    GS_TRY(find_ours(r, r->options.resume));
    GS_TRY(match_store(r, store));
    GS_TRY(match_model(r));
    return gs_checkpoint_match_options(r->saver.from, &r->options, r->saver.from_dir);
}

/* ---- taking its state ---------------------------------------------------- */

static gs_status load_section(gs_run *r, const char *name, float *const *value, gs_run_rows rows)
{
    const gs_safetensors_tables tables = gs_run__tables(r, rows);

    if (gs_checkpoint_find_section(r->saver.from, name) == NULL)
        return gs_fail(GS_EFORMAT, "%s: has no section \"%s\"", r->saver.from_dir, name);
    GS_FREED char *const path = gs_section_path(r->saver.from_dir, name);
    GS_NEED(path != NULL, "%s: out of memory", r->saver.from_dir);
    return gs_safetensors_load_state(value, r->session->program, &tables, path);
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
    GS_FREED float **const state = gs_calloc(s->program->params, sizeof(*state));

    GS_TRY(state != NULL ? GS_OK : gs_fail(GS_ENOMEM, "out of memory"));
    for (uint32_t k = 0; k < s->config.states; k++) {
        GS_TRY(gs_session_state(s, k, false, state));
        GS_TRY(load_section(r, gs_section_of_state(k), state, GS_RUN_ROWS_STATE + k));
        GS_TRY(gs_session_put_state(s, k, state));
    }
    return GS_OK;
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
    if (r->saver.from == NULL)
        return GS_OK;
    r->control.state = r->saver.from->control;
    GS_TRY(load_states(r));
    if (r->control.keeps_best && r->control.state.best_epoch > 0)
        GS_TRY(load_section(r, GS_SECTION_BEST, r->session->run.params.best_value, GS_RUN_ROWS_BEST));
    r->saver.report.over = !r->part.begun && gs_control_is_over(&r->control, r->epoch);
    compare_plans(r);
    gs_free(r->saver.from);
    gs_free(r->saver.from_dir);
    r->saver.from = NULL;
    r->saver.from_dir = NULL;
    return GS_OK;
}

/* ---- writing ------------------------------------------------------------- */

/* A run's state as a checkpoint: when one is due, when a pass was stopped, and when it is asked for.
 *
 * A step is all or nothing: the parameters change when a pass over the graph is over, so whenever a pass ends early,
 * they and the optimiser's state are those after the last whole epoch, or, of a run on batches, after the last step. */

/* ---- beginning and ending ------------------------------------------------ */

/* The lines that are kept, and those of .metrics, are two files. */
static gs_status check_metrics(const gs_run *r)
{
    const char *const metrics = r->options.metrics;
    GS_FREED char *kept = NULL;

    if (metrics == NULL)
        return GS_OK;
    if ((kept = gs_path_join(r->saver.folder.path, GS_KEPT_LINES_NAME)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: out of memory", r->saver.folder.path);
    if (gs_path_is_same(metrics, kept))
        return gs_fail(GS_EINVAL, ".metrics %s: is where the checkpoints keep theirs; name another file", metrics);
    return GS_OK;
}

gs_status gs_run__begin_checkpoints(gs_run *r)
{
    const gs_train_options *const o = &r->options;
    const char *const path = o->checkpoint != NULL ? o->checkpoint : o->resume;
    uint32_t epoch = 0;

    if (r->kind != GS_RUN_TRAIN || path == NULL || gs_ranks_self() > 0)
        return GS_OK;
    GS_TRY(gs_checkpoint_pace_parse(&r->saver.pace, o->checkpoint_every));
    GS_TRY(gs_checkpoint_folder_open(&r->saver.folder, path));
    r->saver.report.folder = r->saver.folder.path;
    GS_TRY(check_metrics(r));
    if (o->resume != NULL && gs_path_is_same(o->resume, path))
        return GS_OK;
    GS_TRY(gs_checkpoint_before(path, UINT64_MAX, &epoch));
    return epoch == 0 ? GS_OK : gs_fail(GS_EEXIST, ".checkpoint %s: has a checkpoint of another run, after epoch %u; "
                                        "go on from it with .resume, or name another folder", path, epoch);
}

/* Bytes of a checkpoint, about. */
static uint64_t bytes_of(const gs_run *r)
{
    const gs_session *const s = r->session;
    const uint64_t runs = 1 + s->config.states + (gs_session_keeps_best(s) ? 1 : 0);
    uint64_t elements = s->run.params.elements;
    for (uint32_t t = 0; t < s->program->tables; t++)
        elements += gs_store_get_info(s->store)->vertices * s->program->table[t].width;
    return runs * elements * sizeof(float);
}

gs_status gs_run__begin_lines(gs_run *r)
{
    gs_run_saver *const s = &r->saver;
    const gs_train_options *const o = &r->options;
    bool whole = true;

    if (s->folder.path == NULL)
        return GS_OK;
    gs_checkpoint_pace_begin(&s->pace, gs_now(), bytes_of(r));
    GS_TRY(gs_session_plan_id(r->session, &s->plan_id));
    GS_TRY(s->from == NULL ? gs_kept_lines_begin(&s->lines, s->folder.path)
                           : gs_kept_lines_continue(&s->lines, s->folder.path, o->resume, s->from->lines_bytes,
                                                    s->from->lines_checksum, &whole));
    GS_TRY(check_metrics(r)); /* now that it is there for sure */
    if (!whole)
        note(r, "the metrics of epochs before this one are damaged");
    return GS_OK;
}

void gs_run__end_checkpoints(gs_run *r)
{
    gs_kept_lines_close(&r->saver.lines);
    gs_checkpoint_folder_close(&r->saver.folder);
    gs_free(r->saver.from);
    gs_free(r->saver.from_dir);
}

/* ---- one checkpoint ------------------------------------------------------ */

static void describe(const gs_run *r, gs_checkpoint *c)
{
    const gs_session *const s = r->session;

    *c = (gs_checkpoint){
        .epoch = r->epoch,
        .part = r->part,
        .steps = r->optim.steps,
        .control = r->control.state,
        .store_id = gs_store_get_info(s->store)->id,
        .model_id = r->saver.model_id,
        .seconds = r->report.seconds,
        .read_bytes = r->report.read_bytes,
        .written_bytes = r->report.written_bytes,
        .lines_bytes = r->saver.lines.bytes,
        .lines_checksum = gs_hash_so_far(r->saver.lines.hash),
        .host_memory = s->memory.host,
        .device_memory = s->memory.device,
        .process_bytes = s->memory.process,
        .epochs = gs_session_epochs(s),
        .cost = s->machine.cost,
        .host_cost = s->machine.host_cost,
        .plan_id = r->saver.plan_id,
    };
    gs_checkpoint_take_options(c, &r->options);
    if (r->control.valid) {
        gs_checkpoint_option *const by = gs_checkpoint_find_option(c, "keep_by");
        snprintf(by->text, sizeof(by->text), "%s", gs_judge_name(r->control.judge));
    }
    snprintf(c->device, sizeof(c->device), "%s", r->options.device);
    if (strcmp(s->machine.spec, r->options.device) != 0)
        snprintf(c->taken, sizeof(c->taken), "%s", s->machine.spec);
    if (r->batches != NULL)
        c->batch_rates = gs_run_batches_rates(r->batches, c->batch_rate);
    gs_session_maker(s, c->maker);
    if (r->options.command != NULL && strlen(r->options.command) < sizeof(c->command))
        strcpy(c->command, r->options.command);
}

/* Weights `value`, which had `epochs` updates, with what gs_run_save() says of them. */
static gs_status write_weights(gs_run *r, gs_checkpoint *c, const char *dir, const char *name, float *const *value,
                               gs_run_rows rows, uint32_t epochs)
{
    const gs_safetensors_tables tables = gs_run__tables(r, rows);
    GS_FREED gs_safetensors_note *note = NULL;
    uint32_t notes;

    GS_TRY(gs_run__describe_weights(r, epochs, &note, &notes));
    return gs_section_write(c, dir, name, r->session->program, value, &tables, &(gs_section_notes){note, notes});
}

/* The model, then run after run of the optimiser's state, which may come through the same memory. */
static gs_status write_sections(gs_run *r, gs_checkpoint *c, const char *dir)
{
    gs_session *const s = r->session;
    GS_FREED float **const state = gs_calloc(s->program->params, sizeof(*state));

    GS_TRY(state != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: out of memory", dir));
    GS_TRY(write_weights(r, c, dir, GS_SECTION_MODEL, s->run.params.value, GS_RUN_ROWS, r->epoch));
    if (r->control.keeps_best && r->control.state.best_epoch > 0)
        GS_TRY(write_weights(r, c, dir, GS_SECTION_BEST, s->run.params.best_value, GS_RUN_ROWS_BEST,
                             r->control.state.best_epoch - 1));
    for (uint32_t k = 0; k < s->config.states; k++) {
        const gs_safetensors_tables tables = gs_run__tables(r, GS_RUN_ROWS_STATE + k);
        GS_TRY(gs_session_state(s, k, true, state));
        GS_TRY(gs_section_write(c, dir, gs_section_of_state(k), s->program, state, &tables, NULL));
    }
    return GS_OK;
}

static gs_status write_text(const gs_checkpoint *c, const char *dir)
{
    GS_FREED char *const path = gs_path_join(dir, GS_CHECKPOINT_JSON);
    GS_FREED char *text = NULL;
    uint64_t bytes = 0;

    GS_TRY(path != NULL ? gs_checkpoint_format(&text, &bytes, c) : gs_fail(GS_ENOMEM, "%s: out of memory", dir));
    GS_CLOSED const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return gs_fail_errno(errno, "%s: cannot create", path);
    GS_TRY(gs_pwrite_exact(fd, text, bytes, 0, path));
    return fsync(fd) == 0 ? GS_OK : gs_fail_errno(errno, "%s: cannot write", path);
}

/* The one that is kept beside the new one of this number: that of this run, as a newer one in the folder may be
 * damaged. */
static uint32_t previous_of(const gs_run *r, uint32_t number)
{
    const gs_checkpoint_report *const c = &r->saver.report;
    const uint32_t last = gs_checkpoint_number(c->epoch, c->batches);
    uint32_t epoch = 0;

    if (last > 0 && last < number)
        return last;
    return gs_checkpoint_before(r->saver.folder.path, number, &epoch) == GS_OK ? epoch : 0;
}

static gs_status write_checkpoint(gs_run *r)
{
    gs_run_saver *const s = &r->saver;
    GS_FREED gs_checkpoint *const c = gs_calloc(1, sizeof(*c));
    const uint32_t number = gs_checkpoint_number(r->epoch, r->part.batches);
    GS_FREED char *dir = NULL;
    gs_status st;

    GS_NEED(c != NULL, "%s: out of memory", s->folder.path);
    describe(r, c);
    if ((st = gs_checkpoint_begin(&dir, s->folder.path)) == GS_OK) {
        if ((st = gs_kept_lines_sync(&s->lines)) == GS_OK && (st = write_sections(r, c, dir)) == GS_OK &&
            (st = write_text(c, dir)) == GS_OK)
            st = gs_checkpoint_finish(&s->folder, dir, number, previous_of(r, number));
        if (st != GS_OK)
            gs_checkpoint_abandon(dir);
    }
    for (uint32_t k = 0; st == GS_OK && k < c->sections; k++)
        s->report.bytes = (k == 0 ? 0 : s->report.bytes) + c->section[k].bytes;
    return st;
}

/* GS_EDEVICE: the weights are not finite. */
static gs_status save(gs_run *r)
{
    const double began = gs_now();
    gs_run_saver *const s = &r->saver;
    gs_status st;

    if (!r->placed && (st = gs_run__check_open(r)) != GS_OK)
        return st;
    if ((st = gs_run__place(r)) != GS_OK || (st = gs_run__fetch(r)) != GS_OK) {
        r->whole = r->whole && st != GS_EDEVICE;
        return st;
    }
    st = write_checkpoint(r);
    const double ended = gs_now();
    gs_checkpoint_took(&s->pace, began, ended);
    s->report.seconds += ended - began;
    if (st != GS_OK) {
        s->report.failed++;
        snprintf(s->report.error, sizeof(s->report.error), "%s", gs_last_error());
        return st;
    }
    s->report.epoch = r->epoch;
    s->report.batches = r->part.batches;
    s->report.written++;
    return GS_OK;
}

bool gs_run__checkpoint_is_due(const gs_run *r)
{
    const bool within = r->part.begun;
    const bool last = !within && (r->epoch == r->options.epochs || gs_control_is_over(&r->control, r->epoch));

    return r->saver.folder.path != NULL && (!within || r->saver.pace.epochs == 0) &&
           gs_checkpoint_is_due(&r->saver.pace, r->epoch, gs_now(), last);
}

gs_status gs_run__checkpoint_if_due(gs_run *r)
{
    const bool lost = gs_run__checkpoint_is_due(r) && save(r) == GS_EDEVICE;
    return gs_run__give_tables(r, lost ? GS_EDEVICE : GS_OK);
}

static gs_status keep_state(gs_run *r, gs_status st)
{
    char hint[600], far[GS_HOW_FAR_BYTES];

    /* what left the finite numbers would do so again from there, and the last checkpoints are better; the weights may
     * be those of an epoch before */
    r->whole = r->whole && st != GS_EDEVICE;
    if (gs_exec_gave_up(r->session->run.exec)) /* a disk or device that does not answer would not answer here either */
        return st;
    if (r->saver.folder.path == NULL || !r->whole)
        return st;
    char error[1200];
    snprintf(error, sizeof(error), "%s", gs_last_error());
    const gs_checkpoint_report *const c = &r->saver.report;
    if (!gs_run__has_learned(r))
        snprintf(hint, sizeof(hint), "no epoch was done, so there is nothing to go on from");
    else if ((c->epoch == r->epoch && c->batches == r->part.batches) || save(r) == GS_OK)
        snprintf(hint, sizeof(hint), "%s has its state after %s", r->saver.folder.path, gs_run__how_far(r, far));
    else
        snprintf(hint, sizeof(hint), "no checkpoint could be written: %s", gs_last_error());
    (void)gs_fail(st, "%s", error);
    return gs_fail_hint(st, hint);
}

/* Ranks that have tables together end together only where they were asked to. */
gs_status gs_run__checkpoint_failed(gs_run *r, gs_status st)
{
    if (!gs_run__tables_are_shared(r))
        return keep_state(r, st);
    if (st != GS_EINTERRUPTED)
        return st;
    st = keep_state(r, st);
    const gs_status given = gs_run__give_tables(r, GS_OK);
    return given == GS_OK ? st : given;
}

/* ---- the public calls ---------------------------------------------------- */

gs_status gs_run_checkpoint(gs_run *run)
{
    GS_TRY(gs_check_argument(run, "run"));
    if (gs_run__tables_are_shared(run) && gs_ranks_self() > 0)
        return gs_run__give_tables(run, GS_OK);
    if (run->saver.folder.path == NULL)
        return gs_fail(GS_EINVAL, "run: was opened without a folder for checkpoints; set .checkpoint");
    if (!gs_run__has_learned(run))
        return gs_fail(GS_EINVAL, "run: no epoch is done, so there is nothing to go on from");
    if (!run->whole && run->state == GS_RUN_IS_FINISHED)
        return gs_fail(GS_EINVAL, "run: is finished, and has the weights of an epoch before; write it before that");
    if (!run->whole)
        return gs_fail(GS_EINVAL, "run: failed in the midst of a step; go on from the checkpoint before");
    return gs_run__give_tables(run, save(run));
}

gs_status gs_run_checkpoints(const gs_run *run, gs_checkpoint_report *out)
{
    GS_TRY(gs_check_argument(run, "run"));
    GS_TRY(gs_check_argument(out, "out"));
    *out = run->saver.report;
    return GS_OK;
}
