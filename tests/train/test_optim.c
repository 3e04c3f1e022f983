/* SGD and Adam against PyTorch's definitions, written out in double precision
 * from the algorithms of torch.optim.SGD and torch.optim.Adam. */
#include <math.h>
#include <string.h>

#include "support/support.h"

#include "tiny_program.h"
#include "train/optim.h"

#define STEPS 60

/* A step of the host's: what its run does. */
static void take_step(gs_optim *o, gs_params *p)
{
    const gs_update u = gs_optim_next(o, o->clip > 0 ? gs_optim_norm(p) : 0);
    gs_optim_apply(&u, p);
}

/* Gradients of any size and sign, the same for both sides. */
static float gradient(unsigned step, uint64_t i)
{
    return (float)(sin(0.7 * (double)(step * 31 + i * 7)) * pow(10, (double)(i % 5) - 3));
}

static void fill(gs_params *p, double *w)
{
    for (uint32_t k = 0; k < tiny_program.params; k++)
        for (uint64_t i = 0; i < gs_param_elements(&tiny_param[k]); i++)
            p->value[k][i] = (float)cos((double)(k * 100 + i));
    for (uint64_t i = 0; i < p->elements; i++)
        w[i] = p->values[i];
}

static bool is_gap(const gs_params *p, uint64_t i)
{
    for (uint32_t k = 0; k < p->count; k++) {
        const uint64_t first = (uint64_t)(p->value[k] - p->values);
        if (i >= first && i < first + gs_param_elements(&tiny_param[k]))
            return false;
    }
    return true;
}

/* torch.optim.SGD with momentum 0: g = g + weight_decay * w; w = w - lr * g. */
static void sgd_step(double *w, double g, double lr, double decay) { *w -= lr * (g + decay * *w); }

/* torch.optim.Adam, amsgrad off. */
static void adam_step(double *w, double *m, double *v, double g, double lr, double decay, unsigned t)
{
    g += decay * *w;
    *m = 0.9 * *m + 0.1 * g;
    *v = 0.999 * *v + 0.001 * g * g;
    const double m_hat = *m / (1 - pow(0.9, t)), v_hat = *v / (1 - pow(0.999, t));
    *w -= lr * m_hat / (sqrt(v_hat) + 1e-8);
}

static void run(gs_optim_kind kind, double lr, double decay)
{
    double w[96], m[96] = {0}, v[96] = {0};
    gs_optim o = {.kind = kind, .lr = lr, .weight_decay = decay};
    gs_params p;

    gs_assert_ok(gs_params_alloc(&p, &tiny_program, true, gs_optim_states(&o)));
    assert_int_equal(p.elements, 96);
    fill(&p, w);
    for (unsigned step = 1; step <= STEPS; step++) {
        for (uint64_t i = 0; i < p.elements; i++)
            p.grads[i] = is_gap(&p, i) ? 0 : gradient(step, i);
        take_step(&o, &p);
        for (uint64_t i = 0; i < p.elements; i++) {
            const double g = is_gap(&p, i) ? 0 : gradient(step, i);
            if (kind == GS_OPTIM_SGD)
                sgd_step(&w[i], g, lr, decay);
            else
                adam_step(&w[i], &m[i], &v[i], g, lr, decay, step);
            assert_true(p.grads[i] == (float)g); /* the gradient is left as it was */
        }
    }
    for (uint64_t i = 0; i < p.elements; i++) {
        if (is_gap(&p, i))
            assert_true(p.values[i] == 0);
        else if (fabs(p.values[i] - w[i]) > 2e-5 * (1 + fabs(w[i])))
            fail_msg("element %d: %.9g, expected %.9g", (int)i, p.values[i], w[i]);
    }
    assert_int_equal(o.steps, STEPS);
    gs_params_free(&p);
}

/* Whatever else is asked for, in float64 from torch's formulas: clip_grad_norm_, then the optimiser. */
static void follow(gs_optim o)
{
    double w[96], m[96] = {0}, v[96] = {0};
    gs_params p;

    gs_assert_ok(gs_params_alloc(&p, &tiny_program, true, gs_optim_states(&o)));
    fill(&p, w);
    for (unsigned step = 1; step <= STEPS; step++) {
        double norm = 0, scale = 1;
        for (uint64_t i = 0; i < p.elements; i++) {
            p.grads[i] = is_gap(&p, i) ? 0 : gradient(step, i);
            norm += (double)p.grads[i] * p.grads[i];
        }
        if (o.clip > 0)
            scale = fmin(o.clip / (sqrt(norm) + 1e-6), 1);
        gs_assert_close(gs_optim_norm(&p), sqrt(norm), 1e-12);
        take_step(&o, &p);
        for (uint64_t i = 0; i < p.elements; i++) {
            const double g = is_gap(&p, i) ? 0 : scale * gradient(step, i);
            if (o.kind == GS_OPTIM_ADAMW)
                w[i] *= 1 - o.lr * o.weight_decay;
            if (o.kind == GS_OPTIM_SGD) {
                m[i] = o.momentum * m[i] + g + o.weight_decay * w[i];
                w[i] -= o.lr * m[i];
            } else {
                adam_step(&w[i], &m[i], &v[i], g, o.lr, o.kind == GS_OPTIM_ADAMW ? 0 : o.weight_decay, step);
            }
        }
    }
    for (uint64_t i = 0; i < p.elements; i++)
        if (fabs(p.values[i] - w[i]) > 2e-5 * (1 + fabs(w[i])))
            fail_msg("element %d: %.9g, expected %.9g", (int)i, p.values[i], w[i]);
    gs_params_free(&p);
}

static void optim__adamw_momentum_and_clipping_are_torch_s(void **state)
{
    (void)state;
    follow((gs_optim){.kind = GS_OPTIM_ADAMW, .lr = 0.003, .weight_decay = 0.5});
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.01, .momentum = 0.9});
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .clip = 2});
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.1, .clip = 0.5});
    follow((gs_optim){.kind = GS_OPTIM_ADAM, .lr = 0.01, .clip = 1e9});
    follow((gs_optim){.kind = GS_OPTIM_ADAMW, .lr = 0.01, .weight_decay = 0.01, .clip = 1});
}

static void optim__sgd_is_torch_sgd(void **state)
{
    (void)state;
    run(GS_OPTIM_SGD, 0.1, 0);
    run(GS_OPTIM_SGD, 0.05, 0.3);
}

static void optim__adam_is_torch_adam(void **state)
{
    (void)state;
    run(GS_OPTIM_ADAM, 0.01, 0);
    run(GS_OPTIM_ADAM, 0.003, 0.5);
}

/* The first step of Adam is -lr * sign(g), whatever the gradient's size:
 * a bias correction that is missing or off by one step shows here. */
static void optim__first_step_of_adam_is_lr(void **state)
{
    gs_optim o = {.kind = GS_OPTIM_ADAM, .lr = 0.125};
    gs_params p;

    (void)state;
    gs_assert_ok(gs_params_alloc(&p, &tiny_program, true, 2));
    p.grad[0][0] = 3e-3f;
    p.grad[0][1] = -4e4f;
    take_step(&o, &p);
    gs_assert_close(p.value[0][0], -0.125, 1e-5);
    gs_assert_close(p.value[0][1], 0.125, 1e-5);
    assert_true(p.value[0][2] == 0);
    gs_params_free(&p);
}

static void optim__names(void **state)
{
    static const struct {
        const char *name;
        gs_optim_kind kind;
    } names[] = {{"sgd", GS_OPTIM_SGD}, {"adam", GS_OPTIM_ADAM}, {"adamw", GS_OPTIM_ADAMW}};
    gs_train_options options;

    (void)state;
    gs_train_options_init(&options);
    for (size_t k = 0; k < 3; k++) {
        options.optimizer = names[k].name;
        assert_int_equal(gs_optim_open(&options).kind, names[k].kind);
    }
    assert_int_equal(gs_optim_states(&(gs_optim){.kind = GS_OPTIM_SGD}), 0);
    assert_int_equal(gs_optim_states(&(gs_optim){.kind = GS_OPTIM_SGD, .momentum = 0.9}), 1);
    assert_int_equal(gs_optim_states(&(gs_optim){.kind = GS_OPTIM_ADAM}), 2);
    assert_int_equal(gs_optim_states(&(gs_optim){.kind = GS_OPTIM_ADAMW}), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optim__sgd_is_torch_sgd),
        cmocka_unit_test(optim__adam_is_torch_adam),
        cmocka_unit_test(optim__adamw_momentum_and_clipping_are_torch_s),
        cmocka_unit_test(optim__first_step_of_adam_is_lr),
        cmocka_unit_test(optim__names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
