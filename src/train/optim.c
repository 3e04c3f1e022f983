#include "train/optim.h"

#include <math.h>

#include "base/option_table.h"

#define BETA1 0.9
#define BETA2 0.999
#define EPSILON 1e-8
#define CLIP_EPSILON 1e-6 /* clip_grad_norm_'s */

/* What optimisers differ by. The formulas of steps are those of device/update.h. */
static const struct {
    gs_update_rule rule; /* without momentum */
    bool shrinks;        /* weight decay shrinks the weights by lr times it; else it is added to the gradient */
    bool momentum;       /* takes .momentum */
} optimizer[] = {
    [GS_OPTIM_ADAM] = {.rule = GS_UPDATE_ADAM},
    [GS_OPTIM_ADAMW] = {.rule = GS_UPDATE_ADAM, .shrinks = true},
    [GS_OPTIM_SGD] = {.rule = GS_UPDATE_SGD, .momentum = true},
};

static const unsigned states[] = {
#define X(rule, count) [GS_UPDATE_##rule] = count,
    GS_UPDATE_MAP(X)
#undef X
};

bool gs_optim_takes_momentum(gs_optim_kind kind) { return optimizer[kind].momentum; }

gs_optim gs_optim_open(const gs_train_options *options)
{
    return (gs_optim){.kind = (gs_optim_kind)gs_choice(options, optimizer), .lr = options->lr,
                      .weight_decay = options->weight_decay, .momentum = options->momentum,
                      .clip = options->clip_norm};
}

static gs_update_rule rule_of(const gs_optim *o)
{
    return o->momentum != 0 ? GS_UPDATE_MOMENTUM : optimizer[o->kind].rule;
}

uint32_t gs_optim_states(const gs_optim *o) { return states[rule_of(o)]; }

/* Scalars in double as Python has them, tensors in float32 as torch has them:
 * param.mul_(1 - lr * weight_decay);                                            AdamW's
 * exp_avg.lerp_(grad, 1 - beta1); exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
 * param.addcdiv_(exp_avg, exp_avg_sq.sqrt() / sqrt(1 - beta2^t) + eps, -lr / (1 - beta1^t)).
 * torch's SGD starts with the first gradient as its momentum, which is what a momentum of 0 gives. */
gs_update gs_optim_next(gs_optim *o, double norm)
{
    const bool shrinks = optimizer[o->kind].shrinks;
    gs_update u = {.rule = rule_of(o), .states = gs_optim_states(o), .rate = (float)o->lr, .scale = 1,
                   .decay = shrinks ? 0 : (float)o->weight_decay, .momentum = (float)o->momentum};

    u.shrink = shrinks ? (float)(1.0 - o->lr * o->weight_decay) : 1;
    if (o->clip > 0)
        u.scale = (float)fmin(o->clip / (norm + CLIP_EPSILON), 1);
    o->steps++;
    if (u.rule != GS_UPDATE_ADAM)
        return u;
    const double t = (double)o->steps;
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

/* `count` is the rule's number of states. */
static inline __attribute__((always_inline)) void apply(const gs_update u, const gs_optim_rows r, gs_update_rule rule,
                                                        unsigned count)
{
    float *const restrict p = r.value, *const restrict m = r.state[0], *const restrict v = r.state[1];
    const float *const restrict grad = r.grad;

#pragma omp simd
    for (uint64_t i = 0; i < r.count; i++) {
        float first = count > 0 ? m[i] : 0, second = count > 1 ? v[i] : 0;
        p[i] = gs_update_number(&u, rule, p[i], grad[i], &first, &second);
        if (count > 0)
            m[i] = first;
        if (count > 1)
            v[i] = second;
    }
}

/* A loop for each. */
void gs_optim_apply_to(const gs_update *u, const gs_optim_rows *r)
{
    switch (u->rule) {
#define X(rule, count)                             \
    case GS_UPDATE_##rule:                         \
        apply(*u, *r, GS_UPDATE_##rule, count);    \
        break;
        GS_UPDATE_MAP(X)
#undef X
    }
}

void gs_optim_apply(const gs_update *u, gs_params *params)
{
    const gs_optim_rows all = {.count = params->elements - params->fixed_elements, .value = params->values,
                               .grad = params->grads, .state = {params->state[0], params->state[1]}};
    gs_optim_apply_to(u, &all);
}
