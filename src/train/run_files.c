/* run_files.c - the result files of a run: begun before the work, renamed when all are whole. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/given.h"
#include "base/size.h"
#include "session/fault.h"
#include "train/logits.h"
#include "train/run_internal.h"
#include "train/safetensors.h"

/* Names that would overwrite each other are a mistake worth stopping for. */
gs_status gs_run__check_files(const gs_train_options *o)
{
    const struct {
        const char *option, *path;
    } out[] = {{".save", o->save}, {".logits", o->logits}, {".metrics", o->metrics}, {".trace", o->trace}};

    for (size_t i = 0; i < GS_ARRAY_LEN(out); i++)
        for (size_t k = 0; k < i; k++)
            if (out[i].path != NULL && out[k].path != NULL && strcmp(out[i].path, out[k].path) == 0)
                return gs_fail(GS_EINVAL, "%s and %s both name %s", out[k].option, out[i].option, out[i].path);
    return GS_OK;
}

/* ---- weights, logits ----------------------------------------------------- */

/* Takes its room on the disk now. */
static gs_status begin_weights(gs_run *r, gs_outfile *o, const char *path)
{
    const gs_session *const s = r->session;
    const gs_status st = gs_outfile_begin(o, path);

    return st != GS_OK ? st : gs_safetensors_reserve(o->fd, o->temporary, s->program, s->run.params.value);
}

static gs_status write_weights(gs_run *r, const gs_outfile *o)
{
    const gs_session *const s = r->session;
    return gs_safetensors_write(o->fd, o->temporary, s->program, s->run.params.value);
}

static gs_status begin_logits(gs_run *r, gs_outfile *o, uint64_t *offset, const char *path)
{
    const gs_store_info *const info = gs_store_get_info(r->session->store);
    return gs_logits_begin(o, offset, path, info->vertices, info->classes);
}

static gs_status write_logits(gs_run *r, const gs_outfile *o, uint64_t offset)
{
    const gs_logits_job job = gs_run__logits_job(r);
    return gs_session_explain_logits(r->session, gs_logits_write(o, offset, &job));
}

/* ---- the files that the options name ------------------------------------- */

/* The metrics file comes last, as it replaces what was there. */
gs_status gs_run__begin_files(gs_run *r)
{
    const gs_train_options *const o = &r->options;
    gs_status st = GS_OK;

    if (o->save != NULL)
        st = begin_weights(r, &r->weights, o->save);
    if (st == GS_OK && o->logits != NULL)
        st = begin_logits(r, &r->logits, &r->logits_offset, o->logits);
    if (st == GS_OK && o->trace != NULL)
        st = gs_outfile_begin(&r->trace, o->trace);
    if (st == GS_OK)
        st = gs_metrics_log_open(&r->metrics, o->metrics);
    return st;
}

/* The last epoch's training pass. The evaluation that follows has other tasks,
 * so their times are still there. */
static gs_status write_trace(gs_run *r)
{
    FILE *const out = fdopen(dup(r->trace.fd), "w");
    gs_status st;

    if (out == NULL)
        return gs_fail_errno(errno, "%s: cannot be written", r->trace.temporary);
    st = gs_exec_write_trace(r->session->run.exec, r->session->pass.train, out);
    if (fclose(out) != 0 && st == GS_OK)
        st = gs_fail_errno(errno, "%s: cannot be written", r->trace.temporary);
    return st;
}

gs_status gs_run__write_files(gs_run *r)
{
    gs_outfile *const file[] = {&r->trace, &r->logits, &r->weights};
    gs_status st = GS_OK;

    if (r->logits.path != NULL)
        st = write_logits(r, &r->logits, r->logits_offset);
    if (st == GS_OK && r->weights.path != NULL)
        st = write_weights(r, &r->weights);
    if (st == GS_OK && r->trace.path != NULL)
        st = write_trace(r);
    for (size_t i = 0; i < GS_ARRAY_LEN(file) && st == GS_OK; i++) /* renamed only when all are whole */
        if (file[i]->path != NULL)
            st = gs_outfile_finish(file[i]);
    return st;
}

void gs_run__abandon_files(gs_run *r)
{
    gs_outfile_abandon(&r->weights);
    gs_outfile_abandon(&r->logits);
    gs_outfile_abandon(&r->trace);
}

/* ---- the public calls: a file at any time -------------------------------- */

gs_status gs_run_save(gs_run *run, const char *path)
{
    gs_outfile o = GS_OUTFILE_NONE;
    gs_status st;

    if ((st = gs_check_given(run, "run")) != GS_OK || (st = gs_check_given(path, "path")) != GS_OK ||
        (st = gs_run__bring(run)) != GS_OK)
        return st;
    if ((st = begin_weights(run, &o, path)) == GS_OK && (st = write_weights(run, &o)) == GS_OK)
        st = gs_outfile_finish(&o);
    gs_outfile_abandon(&o);
    return st;
}

gs_status gs_run_load(gs_run *run, const char *path)
{
    gs_session *s;
    gs_status st;

    if ((st = gs_check_given(run, "run")) != GS_OK || (st = gs_check_given(path, "path")) != GS_OK ||
        (st = gs_run__check_open(run)) != GS_OK)
        return st;
    s = run->session;
    if ((st = gs_safetensors_load(s->run.params.value, s->program, path)) == GS_OK)
        gs_run__weights_changed(run);
    return st;
}

gs_status gs_run_write_logits(gs_run *run, const char *path)
{
    gs_outfile o = GS_OUTFILE_NONE;
    uint64_t offset;
    gs_status st;

    if ((st = gs_check_given(run, "run")) != GS_OK || (st = gs_check_given(path, "path")) != GS_OK ||
        (st = gs_run__want_logits(run)) != GS_OK)
        return st;
    if ((st = begin_logits(run, &o, &offset, path)) == GS_OK && (st = write_logits(run, &o, offset)) == GS_OK)
        st = gs_outfile_finish(&o);
    gs_outfile_abandon(&o);
    return st;
}
