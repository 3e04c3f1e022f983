/* run.c - running the passes of a started session. */
#include "session/session.h"

gs_status gs_session_setup(gs_session *s)
{
    const uint32_t setup = gs_program_pass(s->program, "setup");
    gs_exec_stats once;
    return setup == GS_NONE ? GS_OK : gs_session_run(s, setup, 0, false, &once);
}

static gs_status run(gs_session *s, uint32_t pass, uint32_t epoch, bool again, gs_exec_watch *watch,
                     gs_exec_stats *out)
{
    const bool gradients = pass == s->pass.train;
    const gs_exec_args args = {
        .param = (const float *const *)s->run.params.value,
        .grad = gradients ? s->run.params.grad : NULL,
        .made = s->run.params.value,
        .statistic = s->run.params.statistic,
        .seed = s->config.options->seed,
        .epoch = epoch,
        .loss_scale = s->labels.mass > 0 ? (float)(1.0 / s->labels.mass) : 0.0f,
        .loss_smoothing = (float)s->config.options->label_smoothing,
        .loss_weight = s->labels.weight,
        .again = again,
        .watch = watch,
        .stop = s->config.options->stop,
    };

    if (gradients)
        gs_params_zero_grads(&s->run.params);
    gs_params_zero_sums(&s->run.params);
    return gs_exec_run(s->run.exec, pass, &args, out);
}

gs_status gs_session_run(gs_session *s, uint32_t pass, uint32_t epoch, bool again, gs_exec_stats *out)
{
    return run(s, pass, epoch, again, NULL, out);
}

gs_status gs_session_watch(gs_session *s, uint32_t pass, uint32_t epoch, gs_exec_watch *watch, gs_exec_stats *out)
{
    return run(s, pass, epoch, false, watch, out);
}

gs_status gs_session_logits(void *session, uint64_t first, uint64_t rows, float *dst)
{
    gs_session *const s = session;
    return gs_exec_read_rows(s->run.exec, s->program->logits, first, rows, dst);
}
