#include "train/optim.h"

#include <math.h>

#include "base/option_table.h"

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8
#define CLIP_EPSILON 1e-6 /* clip_grad_norm_'s */

/* What optimisers differ by. The formulas of steps are those of gs_update (device.h). */
static const struct {
    bool adam;     /* steps by two moments; else by the gradient, or its momentum */
    bool shrinks;  /* weight decay shrinks the weights by lr times it; else it is added to the gradient */
    bool momentum; /* takes .momentum */
} optimizer[] = {
    [GS_OPTIM_ADAM] = {.adam = true},
    [GS_OPTIM_ADAMW] = {.adam = true, .shrinks = true},
    [GS_OPTIM_SGD] = {.momentum = true},
};

bool gs_optim_takes_momentum(gs_optim_kind kind) { return optimizer[kind].momentum; }

gs_optim gs_optim_open(const gs_train_options *options)
{
    return (gs_optim){.kind = (gs_optim_kind)gs_choice(options, optimizer), .lr = options->lr,
                      .weight_decay = options->weight_decay, .momentum = options->momentum,
                      .clip = options->clip_norm};
}

uint32_t gs_optim_states(const gs_optim *o) { return optimizer[o->kind].adam ? 2 : o->momentum != 0 ? 1 : 0; }

/* Scalars in double as Python has them, tensors in float32 as torch has them:
 * param.mul_(1 - lr * weight_decay);                                            AdamW's
 * exp_avg.lerp_(grad, 1 - beta1); exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
 * param.addcdiv_(exp_avg, exp_avg_sq.sqrt() / sqrt(1 - beta2^t) + eps, -lr / (1 - beta1^t)).
 * torch's SGD starts with the first gradient as its momentum, which is what a momentum of 0 gives. */
gs_update gs_optim_next(gs_optim *o, double norm)
{
    const bool shrinks = optimizer[o->kind].shrinks;
    gs_update u = {.rate = (float)o->lr, .decay = shrinks ? 0 : (float)o->weight_decay, .scale = 1};

    u.shrink = shrinks ? (float)(1.0 - o->lr * o->weight_decay) : 1;
    if (o->clip > 0)
        u.scale = (float)fmin(o->clip / (norm + CLIP_EPSILON), 1);
    o->steps++;
    if (!optimizer[o->kind].adam) {
        u.momentum = (float)o->momentum;
        return u;
    }
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

double gs_optim_norm(const gs_params *params)
{
    double sum = 0;

    for (uint64_t i = 0; i < params->elements - params->fixed_elements; i++)
        sum += (double)params->grads[i] * (double)params->grads[i];
    return sqrt(sum);
}

static void sgd(const gs_update u, const gs_optim_rows r)
{
    float *const restrict p = r.value;
    const float *const restrict grad = r.grad;

#pragma omp simd
    for (uint64_t i = 0; i < r.count; i++)
        p[i] = u.shrink * p[i] - u.rate * (u.scale * grad[i] + u.decay * p[i]);
}

static void momentum(const gs_update u, const gs_optim_rows r)
{
    float *const restrict p = r.value, *const restrict m = r.state[0];
    const float *const restrict grad = r.grad;

#pragma omp simd
    for (uint64_t i = 0; i < r.count; i++) {
        m[i] = u.momentum * m[i] + (u.scale * grad[i] + u.decay * p[i]);
        p[i] = u.shrink * p[i] - u.rate * m[i];
    }
}

static void adam(const gs_update u, const gs_optim_rows r)
{
    float *const restrict p = r.value, *const restrict m = r.state[0], *const restrict v = r.state[1];
    const float *const restrict grad = r.grad;

#pragma omp simd
    for (uint64_t i = 0; i < r.count; i++) {
        const float g = u.scale * grad[i] + u.decay * p[i];
        m[i] += u.add1 * (g - m[i]);
        v[i] = v[i] * u.keep2 + u.add2 * g * g;
        p[i] = u.shrink * p[i] - u.rate * (m[i] / (sqrtf(v[i]) / u.root + u.epsilon));
    }
}

void gs_optim_apply_to(const gs_update *u, const gs_optim_rows *r)
{
    if (u->adam)
        adam(*u, *r);
    else if (u->momentum != 0)
        momentum(*u, *r);
    else
        sgd(*u, *r);
}

void gs_optim_apply(const gs_update *u, gs_params *params)
{
    const gs_optim_rows all = {.count = params->elements - params->fixed_elements, .value = params->values,
                               .grad = params->grads, .state = {params->state[0], params->state[1]}};
    gs_optim_apply_to(u, &all);
}
