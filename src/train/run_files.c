/* run_files.c - the result files of a run: begun before the work, renamed when all are whole. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/npy.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "session/fault.h"
#include "train/run_internal.h"

/* ---- logits ----------------------------------------------------- */

static gs_status begin_logits(gs_run *r, gs_outfile *o, uint64_t *offset, const char *path)
{
    return gs_npy_create(o, offset, path, GS_F32, gs_run_vertices(r), r->session->classes);
}

static gs_status write_logits(gs_run *r, gs_outfile *o, uint64_t offset, bool argmax)
{
    gs_logits_job job = gs_run__logits_job(r);

    if (argmax)
        job.form = GS_LOGITS_ARGMAX;
    return gs_logits_write(o, offset, &job);
}

/* What rank 0 could write of rows is what all return. */
static gs_status give_rows(gs_run *r, gs_status st)
{
    return gs_session_explain_logits(r->session, gs_session_give_rows(r->session, st));
}

/* Probabilities and classes are of tasks that have such. */
static gs_status check_forms(const gs_run *r)
{
    const gs_train_options *const o = &r->options;
    const gs_train_task task = r->session->labels.task;

    if (o->softmax && (task == GS_TRAIN_TASK_REGRESS || o->embeddings))
        return gs_fail(GS_EINVAL, ".softmax: %s have no probabilities; leave it out",
                       o->embeddings ? "embeddings" : "numbers that are predicted");
    if (o->argmax != NULL && (task != GS_TRAIN_TASK_CLASSIFY || o->embeddings))
        return gs_fail(GS_EINVAL, ".argmax %s: is of one class a vertex, and these are %s", o->argmax,
                       o->embeddings ? "embeddings"
                       : task == GS_TRAIN_TASK_REGRESS ? "numbers"
                                                  : "several labels; a label is there where its logit is above 0");
    return GS_OK;
}

/* A score for each pair of .edges, or some for each source, or logits, which are not looked at yet. */
static gs_status begin_scores(gs_run *r)
{
    const uint64_t top = GS_MIN(r->options.top, gs_store_get_info(r->session->store)->vertices);
    const uint32_t logits = gs_run_pairs_columns(r->session->store, &r->options);
    GS_ENDS(gs_npy_close) gs_npy pairs = {.fd = -1};

    GS_TRY(gs_npy_open(&pairs, r->options.edges));
    GS_TRY(gs_npy_create(&r->files.scores, &r->files.scores_offset, r->options.scores, GS_F32, pairs.shape[0],
                         logits > 1 ? logits : top));
    if (top > 0)
        GS_TRY(gs_npy_create(&r->files.targets, &r->files.targets_offset, r->options.targets, GS_I64, pairs.shape[0],
                             top));
    return GS_OK;
}

/* ---- the files that the options name ------------------------------------- */

/* The metrics file comes last, as it replaces what was there. */
gs_status gs_run__begin_files(gs_run *r)
{
    const gs_train_options *const o = &r->options;

    GS_TRY(check_forms(r));
    if (o->save != NULL)
        GS_TRY(gs_run__begin_weights(r, &r->files.weights, o->save));
    if (o->logits != NULL)
        GS_TRY(begin_logits(r, &r->files.logits, &r->files.logits_offset, o->logits));
    if (o->argmax != NULL)
        GS_TRY(gs_npy_create(&r->files.argmax, &r->files.argmax_offset, o->argmax, GS_I64, gs_run_vertices(r), 0));
    if (o->scores != NULL && gs_ranks_self() == 0)
        GS_TRY(begin_scores(r));
    if (o->trace != NULL)
        GS_TRY(gs_outfile_begin(&r->files.trace, o->trace));
    return gs_metrics_log_open(&r->files.metrics, o->metrics);
}

/* {"version": ..., "plan": ...}: what a trace stands beside; NULL where memory is short. The caller frees it. */
static char *describe_run(const gs_run *r)
{
    gs_plan_report *const plan = gs_malloc(sizeof(*plan));
    char *text = NULL;
    size_t bytes = 0;
    FILE *const out = plan == NULL ? NULL : open_memstream(&text, &bytes);
    bool whole = out != NULL;

    if (out != NULL) {
        fprintf(out, "{\"version\":\"%s\",\"plan\":", gs_version());
        whole = gs_run_plan(r, plan) == GS_OK && gs_print_plan(out, plan) == GS_OK &&
                fputs("}", out) != EOF;
        whole = fclose(out) == 0 && whole;
    }
    gs_free(plan);
    if (whole)
        return text;
    free(text);
    return NULL;
}

/* The last epoch's training pass, or its batches. The evaluation that follows has other tasks,
 * so their times are still there. */
static gs_status write_trace(gs_run *r)
{
    const gs_outfile *const to = &r->files.trace;
    GS_CLOSED int fd = dup(to->fd);
    FILE *const out = fd < 0 ? NULL : fdopen(fd, "w");

    if (out == NULL)
        return gs_fail_errno(errno, "%s: cannot write", to->path);
    fd = -1; /* fclose() ends it */
    char *const other = describe_run(r);
    gs_status st = GS_ENOMEM;
    if (other == NULL)
        gs_fail(st, "%s: out of memory", to->path);
    else if (r->batches != NULL)
        st = gs_run_batches_write_trace(r->batches, other, out, to->path);
    else
        st = gs_exec_write_trace(r->session->run.exec, r->session->pass.train, other, out, to->path);
    free(other);
    return fclose(out) != 0 && st == GS_OK ? gs_fail_errno(errno, "%s: cannot write", to->path) : st;
}

gs_status gs_run__write_files(gs_run *r)
{
    gs_run_files *const f = &r->files;
    gs_outfile *const file[] = {&f->trace, &f->argmax, &f->logits, &f->scores, &f->targets, &f->weights};
    gs_status st = GS_OK;

    if (r->options.edges != NULL) /* all ranks score; later they give rank 0 what it asks for */
        GS_TRY(gs_run_pairs_score(r));
    if (f->logits.path != NULL)
        st = write_logits(r, &f->logits, f->logits_offset, false);
    if (st == GS_OK && f->argmax.path != NULL)
        st = write_logits(r, &f->argmax, f->argmax_offset, true);
    if (st == GS_OK && f->weights.path != NULL)
        st = gs_run__put_weights(r, &f->weights, r->report.kept_epochs);
    st = give_rows(r, st);
    if (st == GS_OK && f->trace.path != NULL)
        st = write_trace(r);
    for (size_t i = 0; i < GS_ARRAY_LEN(file) && st == GS_OK; i++) /* renamed only when all are whole */
        if (file[i]->path != NULL)
            st = gs_outfile_finish(file[i]);
    return st;
}

void gs_run__abandon_files(gs_run *r)
{
    gs_outfile_abandon(&r->files.weights);
    gs_outfile_abandon(&r->files.logits);
    gs_outfile_abandon(&r->files.argmax);
    gs_outfile_abandon(&r->files.scores);
    gs_outfile_abandon(&r->files.targets);
    gs_outfile_abandon(&r->files.trace);
}

/* ---- the public calls: a file at any time -------------------------------- */

static gs_status check_path(const gs_run *r, const char *path, gs_file_kind kind)
{
    GS_TRY(gs_check_argument(r, "run"));
    GS_TRY(gs_check_argument(path, "path"));
    return gs_outputs_check_one(&r->options, r->kind, gs_store_dir(r->session->store), path, kind);
}

gs_status gs_run_save(gs_run *run, const char *path)
{
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;

    GS_TRY(check_path(run, path, GS_FILE_KIND_SAFETENSORS));
    GS_TRY(gs_run__fetch(run));
    if (gs_run__tables_are_shared(run) && gs_ranks_self() > 0)
        return gs_run__give_tables(run, GS_OK);
    gs_status st = gs_run__begin_weights(run, &o, path);
    if (st == GS_OK)
        st = gs_run__put_weights(run, &o, run->epoch);
    GS_TRY(gs_run__give_tables(run, st));
    return gs_outfile_finish(&o);
}

gs_status gs_run_load(gs_run *run, const char *path)
{
    gs_session *s;

    GS_TRY(gs_check_argument(run, "run"));
    GS_TRY(gs_check_argument(path, "path"));
    GS_TRY(gs_run__check_open(run));
    s = run->session;
    const gs_safetensors_tables tables = gs_run__tables(run, GS_RUN_ROWS);
    GS_TRY(gs_safetensors_load(s->run.params.value, s->program, &tables, path));
    return gs_run__weights_changed(run);
}

gs_status gs_run_write_logits(gs_run *run, const char *path)
{
    GS_ENDS(gs_outfile_abandon) gs_outfile o = GS_OUTFILE_NONE;
    uint64_t offset;

    GS_TRY(check_path(run, path, GS_FILE_KIND_NPY));
    GS_TRY(gs_run__want_logits(run));
    if (gs_ranks_self() > 0)
        return give_rows(run, GS_OK);
    gs_status st = begin_logits(run, &o, &offset, path);
    if (st == GS_OK)
        st = write_logits(run, &o, offset, false);
    GS_TRY(give_rows(run, st));
    return gs_outfile_finish(&o);
}
