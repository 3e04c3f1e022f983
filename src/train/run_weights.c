/* run_weights.c - the weights of a run as a file that says how they came about. */
#include <string.h>

#include "base/alloc.h"
#include "session/model_of.h"
#include "train/provenance.h"
#include "train/run_internal.h"

/* As it is now: nobody knows what becomes of the model's file. */
gs_status gs_run__identify_model(gs_run *r)
{
    gs_model *m = NULL;
    gs_status st = gs_session_open_model(&m, &r->options);

    if (st != GS_OK)
        return st;
    const char *const name = gs_model_name(m), *const slash = strrchr(name, '/');
    r->model_name = gs_strdup(slash != NULL ? slash + 1 : name);
    r->model_text = gs_strdup(gs_model_text(m));
    r->saver.model_id = gs_model_text_id(m);
    gs_model_close(m);
    return r->model_name != NULL && r->model_text != NULL ? GS_OK : gs_fail(GS_ENOMEM, "out of memory for the model");
}

gs_status gs_run__begin_weights(gs_run *r, gs_outfile *o, const char *path)
{
    gs_status st = gs_outfile_begin(o, path);

    const gs_safetensors_tables tables = gs_run__tables(r, GS_RUN_ROWS);

    if (st == GS_OK && (st = gs_safetensors_reserve(o, r->session->program, r->session->run.params.value,
                                                           &tables)) != GS_OK)
        gs_outfile_abandon(o);
    return st;
}

gs_status gs_run__describe_weights(const gs_run *r, uint32_t epochs, gs_safetensors_note **note, uint32_t *notes)
{
    const gs_session *const s = r->session;
    gs_train_options o = r->options;
    const gs_provenance_source from = {.options = &o, .model = r->model_name, .text = r->model_text,
                                       .store = s->store, .classes = s->classes, .epochs = epochs,
                                       .no_move = o.no_move || s->variant.no_move != GS_NOT_TAKEN,
                                       .no_fuse = o.no_fuse || s->variant.no_fuse != GS_NOT_TAKEN};

    o.keep_by = r->control.valid ? gs_judge_name(r->control.judge) : NULL;
    return gs_provenance_notes(note, notes, &from);
}

gs_status gs_run__put_weights(gs_run *r, gs_outfile *o, uint32_t epochs)
{
    const gs_session *const s = r->session;
    const gs_safetensors_tables tables = gs_run__tables(r, GS_RUN_ROWS);
    gs_safetensors_note *note = NULL;
    uint32_t notes;
    gs_status st = gs_run__describe_weights(r, epochs, &note, &notes);

    if (st == GS_OK)
        st = gs_safetensors_write(o, s->program, s->run.params.value, &tables, note, notes);
    gs_free(note);
    return st;
}
