/* run_arrays.c - tensors and logits of a run as the caller's arrays. */
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "base/status.h"
#include "session/fault.h"
#include "train/run_internal.h"
#include "train/safetensors.h"

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
    const gs_status st = gs_check_argument(run, "run");

    if (st != GS_OK)
        return st;
    if ((*param = gs_safetensors_param(run->session->program, index)) == GS_NONE)
        return gs_fail(GS_EINVAL, "index %u: the model has %u tensors", index, gs_run_tensors(run));
    return GS_OK;
}

gs_status gs_run_tensor(const gs_run *run, uint32_t index, gs_tensor_info *out)
{
    uint32_t i;
    gs_status st;

    if ((st = check_tensor(&i, run, index)) != GS_OK || (st = gs_check_argument(out, "out")) != GS_OK)
        return st;
    const gs_param *const p = &run->session->program->param[i];
    *out = (gs_tensor_info){.name = p->name, .count = gs_param_elements(p), .learned = !p->fixed};
    out->dimensions = gs_safetensors_shape(out->shape, p);
    return GS_OK;
}

static gs_status check_count(const gs_param *p, uint64_t count)
{
    if (count == gs_param_elements(p))
        return GS_OK;
    return gs_fail(GS_EINVAL, "count %llu: tensor %s has %llu numbers", (unsigned long long)count, p->name,
                   (unsigned long long)gs_param_elements(p));
}

gs_status gs_run_get_tensor(gs_run *run, uint32_t index, float *out, uint64_t count)
{
    uint32_t i;
    gs_status st;

    if ((st = check_tensor(&i, run, index)) != GS_OK || (st = gs_check_argument(out, "out")) != GS_OK ||
        (st = check_count(&run->session->program->param[i], count)) != GS_OK || (st = gs_run__fetch(run)) != GS_OK)
        return st;
    memcpy(out, run->session->run.params.value[i], count * sizeof(float));
    return GS_OK;
}

gs_status gs_run_set_tensor(gs_run *run, uint32_t index, const float *values, uint64_t count)
{
    uint32_t i;
    gs_status st;

    if ((st = check_tensor(&i, run, index)) != GS_OK || (st = gs_check_argument(values, "values")) != GS_OK ||
        (st = check_count(&run->session->program->param[i], count)) != GS_OK ||
        (st = gs_run__check_open(run)) != GS_OK)
        return st;
    for (uint64_t k = 0; k < count; k++)
        if (!isfinite(values[k]))
            return gs_fail(GS_EINVAL, "values[%llu]: is not finite; tensor %s takes finite numbers alone",
                           (unsigned long long)k, run->session->program->param[i].name);
    /* the others are still those of the devices */
    if (run->placed && (st = gs_session_fetch_params(run->session)) != GS_OK)
        return st;
    memcpy(run->session->run.params.value[i], values, count * sizeof(float));
    return gs_run__weights_changed(run);
}

/* ---- logits -------------------------------------------------------------- */

gs_logits_job gs_run__logits_job(gs_run *r)
{
    gs_session *const s = r->session;
    return (gs_logits_job){
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
}

gs_status gs_run__want_logits(gs_run *r)
{
    if (r->session->pass.predict == GS_NONE)
        return gs_fail(GS_EINVAL, "run: was opened without logits; set .keep_logits");
    if (r->has_logits)
        return GS_OK;
    const gs_status st = gs_run__check_open(r);
    return st != GS_OK ? st : gs_run__evaluate(r, NULL);
}

uint32_t gs_run_columns(const gs_run *run) { return run == NULL ? 0 : run->session->classes; }

gs_status gs_run_logits(gs_run *run, float *out, uint64_t count)
{
    gs_status st;

    if ((st = gs_check_argument(run, "run")) != GS_OK || (st = gs_check_argument(out, "out")) != GS_OK)
        return st;
    const gs_store_info *const info = gs_store_get_info(run->session->store);
    const uint32_t classes = run->session->classes;
    const uint64_t want = info->vertices * classes;
    if (count != want)
        return gs_fail(GS_EINVAL, "count %llu: logits are %llu x %u = %llu numbers", (unsigned long long)count,
                       (unsigned long long)info->vertices, classes, (unsigned long long)want);
    if ((st = gs_run__want_logits(run)) != GS_OK)
        return st;
    const gs_logits_job job = gs_run__logits_job(run);
    return gs_session_explain_logits(run->session, gs_logits_place(out, &job));
}
