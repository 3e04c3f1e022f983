/* session_step.c - parameters that devices hold for the run, and the optimiser's step there. */
#include <string.h>

#include "session/session.h"
#include "session/tables.h"

/* A model may have no parameters beside tables, and then no memory of theirs. */
static void copy_values(float *to, const float *from, uint64_t elements)
{
    if (elements > 0)
        memcpy(to, from, elements * sizeof(float));
}

bool gs_session_steps_on_device(const gs_session *s)
{
    bool all = s->pass.gradients && s->config.batch == NULL && !s->config.on_batches; /* two sessions share them */
    for (uint32_t d = 0; d < s->machine.devices; d++)
        all = all && gs_device_steps(s->machine.device[d]);
    return all;
}

gs_status gs_session_keep_params(gs_session *s)
{
    gs_status st = GS_OK;
    for (uint32_t d = 0; gs_session_steps_on_device(s) && d < s->machine.devices && st == GS_OK; d++)
        st = gs_device_keep_params(s->machine.device[d], (const float *const *)s->run.params.value, s->config.states);
    return st;
}

/* Asks the first device, as all have the same bits. */
gs_status gs_session_gradient_norm(const gs_session *s, double *out)
{
    return gs_device_gradient_norm(s->machine.device[0], out);
}

/* The gradients are the same bits on all devices (gs_device_all_reduce), and so is what each makes of its own copy. */
gs_status gs_session_step(gs_session *s, const gs_update *u)
{
    gs_status st = GS_OK;
    for (uint32_t d = 0; d < s->machine.devices && st == GS_OK; d++)
        st = gs_device_step(s->machine.device[d], u);
    return st;
}

gs_status gs_session_fetch_params(gs_session *s)
{
    return gs_session_steps_on_device(s) ? gs_device_fetch_params(s->machine.device[0], s->run.params.value) : GS_OK;
}

uint64_t gs_session_validates(const gs_session *s)
{
    const bool evaluated = s->pass.gradients && (!s->pass.train_differs || s->config.eval_every != 0);
    return evaluated ? gs_store_get_info(s->store)->valid : 0;
}

bool gs_session_keeps_best(const gs_session *s) { return s->config.keep_best && gs_session_validates(s) > 0; }

gs_status gs_session_keep_best(gs_session *s)
{
    gs_params *const p = &s->run.params;
    const gs_status st = gs_session_copy_tables(s, true);
    if (st != GS_OK)
        return st;
    copy_values(p->best, p->values, p->elements);
    return gs_session_steps_on_device(s) ? gs_device_fetch_params(s->machine.device[0], p->best_value) : GS_OK;
}

gs_status gs_session_back_to_best(gs_session *s)
{
    gs_params *const p = &s->run.params;
    const gs_status st = gs_session_copy_tables(s, false);
    if (st != GS_OK)
        return st;
    copy_values(p->values, p->best, p->elements);
    return gs_session_keep_params(s);
}

/* Devices that step themselves keep the learned ones; what is not learned follows on the host. */
void gs_session_keep_previous(gs_session *s)
{
    gs_params *const p = &s->run.params;
    const uint64_t first = gs_session_steps_on_device(s) ? p->elements - p->fixed_elements : 0;
    copy_values(p->previous + first, p->values + first, p->elements - first);
}

gs_status gs_session_back_to_previous(gs_session *s)
{
    gs_params *const p = &s->run.params;
    const uint64_t first = gs_session_steps_on_device(s) ? p->elements - p->fixed_elements : 0;
    gs_status st = GS_OK;

    if (gs_session_steps_on_device(s))
        st = gs_device_fetch_previous(s->machine.device[0], p->value);
    copy_values(p->values + first, p->previous + first, p->elements - first);
    return st == GS_OK ? gs_session_keep_params(s) : st;
}

bool gs_session_stepped_well(const gs_session *s)
{
    if (gs_session_steps_on_device(s))
        return gs_device_stepped_well(s->machine.device[0]);
    return gs_params_are_finite(&s->run.params);
}

/* Gradients of devices that step themselves never come to the host, so there is room for one run. */
gs_status gs_session_state(gs_session *s, uint32_t run, bool bring, float **state)
{
    const bool on_device = gs_session_steps_on_device(s);
    const gs_params *const p = &s->run.params;

    for (uint32_t i = 0; i < p->count; i++) {
        const uint64_t at = (uint64_t)(p->value[i] - p->values);
        state[i] = s->program->param[i].fixed ? NULL : (on_device ? p->grads : p->state[run]) + at;
    }
    return on_device && bring ? gs_device_fetch_state(s->machine.device[0], run, state) : GS_OK;
}

gs_status gs_session_put_state(gs_session *s, uint32_t run, float *const *state)
{
    gs_status st = GS_OK;
    for (uint32_t d = 0; gs_session_steps_on_device(s) && d < s->machine.devices && st == GS_OK; d++)
        st = gs_device_put_state(s->machine.device[d], run, (const float *const *)state);
    return st;
}
