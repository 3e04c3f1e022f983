#include "train/optim.h"

#include <math.h>
#include <string.h>

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8

gs_status gs_optim_parse(gs_optim_kind *out, const char *name)
{
    if (strcmp(name, "adam") == 0)
        *out = GS_OPTIM_ADAM;
    else if (strcmp(name, "sgd") == 0)
        *out = GS_OPTIM_SGD;
    else
        return gs_fail(GS_EINVAL, ".optimizer %s: is none of adam, sgd", name);
    return GS_OK;
}

uint32_t gs_optim_states(gs_optim_kind kind) { return kind == GS_OPTIM_ADAM ? 2 : 0; }

/* Scalars in double as Python has them, tensors in float32 as torch has them:
 * exp_avg.lerp_(grad, 1 - beta1); exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
 * param.addcdiv_(exp_avg, exp_avg_sq.sqrt() / sqrt(1 - beta2^t) + eps, -lr / (1 - beta1^t)). */
gs_update gs_optim_next(gs_optim *o)
{
    gs_update u = {.rate = (float)o->lr, .decay = (float)o->weight_decay};
    o->steps++;
    if (o->kind == GS_OPTIM_SGD)
        return u;
    const double t = (double)o->steps;
    u.adam = true;
    u.rate = (float)(o->lr / (1.0 - pow(BETA1, t)));
    u.root = (float)sqrt(1.0 - pow(BETA2, t));
    u.add1 = (float)(1.0 - BETA1);
    u.keep2 = (float)BETA2;
    u.add2 = (float)(1.0 - BETA2);
    u.epsilon = (float)EPSILON;
    return u;
}

static void sgd(const gs_update u, gs_params *params)
{
    float *const restrict p = params->values;
    const float *const restrict grad = params->grads;

#pragma omp simd
    for (uint64_t i = 0; i < params->elements - params->fixed_elements; i++)
        p[i] -= u.rate * (grad[i] + u.decay * p[i]);
}

static void adam(const gs_update u, gs_params *params)
{
    float *const restrict p = params->values, *const restrict m = params->state[0];
    float *const restrict v = params->state[1];
    const float *const restrict grad = params->grads;

#pragma omp simd
    for (uint64_t i = 0; i < params->elements - params->fixed_elements; i++) {
        const float g = grad[i] + u.decay * p[i];
        m[i] += u.add1 * (g - m[i]);
        v[i] = v[i] * u.keep2 + u.add2 * g * g;
        p[i] -= u.rate * (m[i] / (sqrtf(v[i]) / u.root + u.epsilon));
    }
}

void gs_optim_step(gs_optim *o, gs_params *params)
{
    const gs_update u = gs_optim_next(o);
    if (u.adam)
        adam(u, params);
    else
        sgd(u, params);
}
