/* session_update.c - the optimiser's step, where the parameters are: in the devices' memory, or here. */
#include "train/session.h"

bool gs_session_steps_on_device(const gs_session *s) { return s->gradients && gs_device_steps(s->device); }

gs_status gs_session_keep_params(gs_session *s)
{
    gs_status st = GS_OK;
    for (uint32_t d = 0; gs_session_steps_on_device(s) && d < s->device_count && st == GS_OK; d++)
        st = gs_device_keep_params(s->devices[d], (const float *const *)s->params.value, s->states);
    return st;
}

/* The gradients are the same bits on all devices (gs_device_all_reduce), and so is what each makes of its own copy. */
gs_status gs_session_update(gs_session *s, gs_optim *o)
{
    gs_status st = GS_OK;
    if (!gs_session_steps_on_device(s)) {
        gs_optim_step(o, &s->params);
        return GS_OK;
    }
    const gs_update u = gs_optim_next(o);
    for (uint32_t d = 0; d < s->device_count && st == GS_OK; d++)
        st = gs_device_step(s->devices[d], &u);
    return st;
}

gs_status gs_session_bring_params(gs_session *s)
{
    return gs_session_steps_on_device(s) ? gs_device_bring_params(s->device, s->params.value) : GS_OK;
}
