/* Parameters that a device keeps for a run, and the optimiser's step on them: against torch's formulas in float64, and
 * bit for bit against the host's. */
#include <math.h>
#include <string.h>

#include "cuda/kernels/args.h" /* gs_loss_part: what a pass brings back */
#include "device_fixture.h"
#include "gpu_devices.h"
#include "host_gpu.h"
#include "train/optim.h"

enum { BIAS, WEIGHT, FIXED, LONG, TENSORS };
#define LONG_WIDTH 5001 /* of several blocks */

/* A step of the host's: what its run does. */
static void take_step(gs_optim *o, gs_params *p)
{
    const gs_update u = gs_optim_next(o, o->clip > 0 ? gs_optim_norm(p) : 0);
    gs_optim_apply(&u, p);
}

/* One row a launch, so that the gradient of a bias is that row, and that of a weight the products of two rows. */
typedef struct step_fixture {
    fixture f;
    uint32_t row[TENSORS], left; /* registers; the weight's: of its columns, and of its rows */
    gs_params host;              /* what the host makes of the same gradients */
    double *w[TENSORS], *m[TENSORS], *v[TENSORS];
} step_fixture;

static uint64_t elements(const step_fixture *b, uint32_t i) { return gs_param_elements(&b->f.param[i]); }

static void step_fixture_init(step_fixture *b, gs_optim o)
{
    fixture *const f = &b->f;
    fixture_init(f, 1);
    add_param(f, 1, 1, 37);
    add_param(f, 2, 5, 7);
    add_param(f, 1, 1, 9);
    add_param(f, 1, 1, LONG_WIDTH);
    f->param[FIXED].fixed = true;
    test_free(f->grad[FIXED]);
    f->grad[FIXED] = NULL;
    for (uint32_t i = 0; i < TENSORS; i++)
        b->row[i] = add_reg(f, GS_F32, f->param[i].cols);
    b->left = add_reg(f, GS_F32, f->param[WEIGHT].rows);
    add_instr(f, GS_OP_COLSUM, BIAS, in_reg(b->row[BIAS]), NO_OPERAND);
    add_instr(f, GS_OP_OUTER, WEIGHT, in_reg(b->left), in_reg(b->row[WEIGHT]));
    add_instr(f, GS_OP_COLSUM, LONG, in_reg(b->row[LONG]), NO_OPERAND);
    gs_assert_ok(gs_params_alloc(&b->host, &f->program, true, gs_optim_states(&o)));
    for (uint32_t i = 0; i < TENSORS; i++) {
        const uint64_t n = elements(b, i);
        memcpy(b->host.value[i], f->weight[i], n * sizeof(float));
        b->w[i] = test_malloc(n * sizeof(double));
        b->m[i] = test_malloc(n * sizeof(double));
        b->v[i] = test_malloc(n * sizeof(double));
        for (uint64_t k = 0; k < n; k++) {
            b->w[i][k] = (double)f->weight[i][k];
            b->m[i][k] = b->v[i][k] = 0;
        }
    }
}

static void step_fixture_free(step_fixture *b)
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        test_free(b->w[i]);
        test_free(b->m[i]);
        test_free(b->v[i]);
    }
    gs_params_free(&b->host);
    fixture_free(&b->f);
}

static void fill_row(step_fixture *b, uint32_t reg, unsigned step)
{
    for (uint32_t i = 0; i < b->f.reg[reg].width; i++)
        ((float *)b->f.memory[reg])[i] =
            (float)(sin(0.7 * (double)(step * 31 + reg * 13 + i * 7)) * pow(10, (double)(i % 5) - 3));
}

/* The step's gradients: in registers for a device, which makes them of those, and what they are, for the host. */
static void make_gradients(step_fixture *b, unsigned step)
{
    const float *const left = b->f.memory[b->left], *const right = b->f.memory[b->row[WEIGHT]];
    for (uint32_t i = 0; i < TENSORS; i++)
        fill_row(b, b->row[i], step);
    fill_row(b, b->left, step);
    memcpy(b->host.grad[BIAS], b->f.memory[b->row[BIAS]], elements(b, BIAS) * sizeof(float));
    memcpy(b->host.grad[LONG], b->f.memory[b->row[LONG]], elements(b, LONG) * sizeof(float));
    for (uint32_t i = 0; i < 5 * 7; i++)
        b->host.grad[WEIGHT][i] = left[i / 7] * right[i % 7];
}

/* torch.optim.SGD, Adam and AdamW (amsgrad off) behind clip_grad_norm_, in float64. */
static void formula(step_fixture *b, const gs_optim *o)
{
    double norm = 0, scale = 1;
    for (uint32_t i = 0; i < TENSORS; i++)
        for (uint64_t k = 0; i != FIXED && k < elements(b, i); k++)
            norm += (double)b->host.grad[i][k] * (double)b->host.grad[i][k];
    if (o->clip > 0)
        scale = fmin(o->clip / (sqrt(norm) + 1e-6), 1);
    for (uint32_t i = 0; i < TENSORS; i++)
        for (uint64_t k = 0; i != FIXED && k < elements(b, i); k++) {
            double *const w = &b->w[i][k], *const m = &b->m[i][k], *const v = &b->v[i][k];
            const bool shrinks = o->kind == GS_OPTIM_ADAMW;
            const double t = (double)o->steps;
            const double g = scale * (double)b->host.grad[i][k] + (shrinks ? 0 : o->weight_decay * *w);
            *w *= shrinks ? 1 - o->lr * o->weight_decay : 1;
            *m = o->kind == GS_OPTIM_SGD ? o->momentum * *m + g : 0.9 * *m + 0.1 * g;
            *v = 0.999 * *v + 0.001 * g * g;
            *w -= o->lr *
                  (o->kind == GS_OPTIM_SGD ? *m : *m / (1 - pow(0.9, t)) / (sqrt(*v / (1 - pow(0.999, t))) + 1e-8));
        }
}

/* A pass that leaves its gradients there. */
static void run_pass(gs_device *d, step_fixture *b)
{
    const gs_device_pass pass = {.program = &b->f.program, .param = b->f.weight, .grad = b->f.grad};
    gs_assert_ok(gs_device_begin_pass(d, &pass));
    gs_assert_ok(launch_vertex(d, &b->f.launch));
    gs_assert_ok(gs_device_end_pass(d));
}

/* The device's, in memory of the test's own. */
static float **bring(gs_device *d, const step_fixture *b)
{
    float **const got = test_malloc(TENSORS * sizeof(*got));
    for (uint32_t i = 0; i < TENSORS; i++) {
        got[i] = test_malloc(elements(b, i) * sizeof(float));
        memcpy(got[i], b->f.weight[i], elements(b, i) * sizeof(float));
    }
    gs_assert_ok(gs_device_fetch_params(d, got));
    return got;
}

static void free_brought(float **got)
{
    for (uint32_t i = 0; i < TENSORS; i++)
        test_free(got[i]);
    test_free(got);
}

static void check(const step_fixture *b, float *const *got)
{
    for (uint32_t i = 0; i < TENSORS; i++) {
        for (uint64_t k = 0; k < elements(b, i); k++)
            if (fabs((double)got[i][k] - b->w[i][k]) > 2e-5 * (1 + fabs(b->w[i][k])))
                fail_msg("tensor %u, element %llu: %.9g, the formula has %.9g", i, (unsigned long long)k,
                         (double)got[i][k], b->w[i][k]);
#ifndef __FP_FAST_FMAF /* a host that may round products and sums at once has bits of its own */
        assert_memory_equal(got[i], b->host.value[i], elements(b, i) * sizeof(float));
#endif
    }
}

static void keep(gs_device *d, const step_fixture *b, gs_optim o)
{
    gs_assert_ok(gs_device_prepare(d, &b->f.program));
    gs_assert_ok(gs_device_keep_params(d, b->f.weight, gs_optim_states(&o)));
}

static void follow(gs_optim on_device)
{
    gs_optim on_host = on_device;
    gs_device *const d = open_gpu();
    step_fixture b;
    step_fixture_init(&b, on_device);
    assert_true(gs_device_steps(d));
    keep(d, &b, on_device);
    for (unsigned step = 1; step <= 30; step++) {
        make_gradients(&b, step);
        run_pass(d, &b);
        double norm = 0;
        if (on_device.clip > 0) {
            gs_assert_ok(gs_device_gradient_norm(d, &norm));
            gs_assert_close(norm, gs_optim_norm(&b.host), 1e-12);
        }
        const gs_update u = gs_optim_next(&on_device, norm);
        gs_assert_ok(gs_device_step(d, &u));
        take_step(&on_host, &b.host);
        formula(&b, &on_host);
    }
    float **const got = bring(d, &b);
    check(&b, got);
    free_brought(got);
    gs_device_close(d);
    step_fixture_free(&b);
}

static void test_cuda_step__sgd_is_torch_s_and_the_host_s(void **state)
{
    (void)state;
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.1});
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.05, .weight_decay = 0.3});
}

static void test_cuda_step__adam_is_torch_s_and_the_host_s(void **state)
{
    (void)state;
    follow((gs_optim){.kind = GS_OPTIM_ADAM, .lr = 0.01});
    follow((gs_optim){.kind = GS_OPTIM_ADAM, .lr = 0.003, .weight_decay = 0.5});
}

static void test_cuda_step__adamw_momentum_and_clipping_are_torch_s_and_the_host_s(void **state)
{
    (void)state;
    follow((gs_optim){.kind = GS_OPTIM_ADAMW, .lr = 0.003, .weight_decay = 0.5, .clip = 1});
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .clip = 2});
    follow((gs_optim){.kind = GS_OPTIM_SGD, .lr = 0.01, .momentum = 0.5});
}

/* Of a pass without kept parameters: the learned ones and their gradients go in, and gradients come back. With them:
 * neither; what is fixed goes in, and the totals of the loss come back with a word on the weights. */
static void test_cuda_step__nothing_of_them_crosses(void **state)
{
    gs_device *const d = open_gpu();
    uint64_t learned = 0;
    step_fixture b;
    (void)state;
    step_fixture_init(&b, (gs_optim){.kind = GS_OPTIM_ADAM});
    make_gradients(&b, 1);
    for (uint32_t i = 0; i < TENSORS; i++)
        learned += i == FIXED ? 0 : elements(&b, i) * sizeof(float);
    gs_assert_ok(gs_device_prepare(d, &b.f.program));
    (void)gs_device_take_copied(d);
    run_pass(d, &b);
    const gs_device_copied crossing = gs_device_take_copied(d);
    gs_assert_ok(gs_device_keep_params(d, b.f.weight, 2));
    assert_int_equal(gs_device_take_copied(d).in, learned);
    run_pass(d, &b);
    const gs_device_copied kept = gs_device_take_copied(d);
    assert_int_equal(crossing.in - kept.in, 2 * learned);
    const size_t finite = sizeof(uint32_t); /* whether all weights are */
    assert_int_equal(crossing.out + finite - kept.out, learned);
    assert_int_equal(kept.out, sizeof(gs_loss_part) + finite);
    gs_device_close(d);
    step_fixture_free(&b);
}

/* Gradients are added up over devices, and each steps its own copy. */
static void test_cuda_step__of_several_devices_all_copies_have_the_same_bits(void **state)
{
    gs_optim on_devices = {.kind = GS_OPTIM_ADAM, .lr = 0.01, .weight_decay = 0.1}, on_host = on_devices;
    gs_device *d[2];
    void *part[2];
    float **got[2];
    step_fixture b[2];
    (void)state;
    choose_gpu();
    for (uint32_t i = 0; i < 2; i++) {
        gs_assert_ok(gs_device_open_with(&d[i], &(gs_device_config){.spec = "cuda:0,0", .threads = 1, .index = i}));
        step_fixture_init(&b[i], on_devices);
        keep(d[i], &b[i], on_devices);
    }
    for (unsigned step = 1; step <= 5; step++) {
        for (uint32_t i = 0; i < 2; i++) {
            make_gradients(&b[i], 100 * i + step);
            gs_assert_ok(gs_device_begin_pass(
                d[i], &(gs_device_pass){.program = &b[i].f.program, .param = b[i].f.weight, .grad = b[i].f.grad}));
            gs_assert_ok(launch_vertex(d[i], &b[i].f.launch));
        }
        for (uint32_t t = 0; t < TENSORS; t++) {
            if (t == FIXED)
                continue;
            for (uint32_t i = 0; i < 2; i++)
                part[i] = b[i].f.grad[t];
            gs_assert_ok(gs_device_all_reduce(d, 2, part, elements(&b[0], t), false));
            for (uint64_t k = 0; k < elements(&b[0], t); k++)
                b[0].host.grad[t][k] += b[1].host.grad[t][k];
        }
        const gs_update u = gs_optim_next(&on_devices, 0);
        for (uint32_t i = 0; i < 2; i++) {
            gs_assert_ok(gs_device_end_pass(d[i]));
            gs_assert_ok(gs_device_step(d[i], &u));
        }
        take_step(&on_host, &b[0].host);
        formula(&b[0], &on_host);
    }
    for (uint32_t i = 0; i < 2; i++)
        check(&b[0], got[i] = bring(d[i], &b[0]));
    for (uint32_t t = 0; t < TENSORS; t++)
        assert_memory_equal(got[0][t], got[1][t], elements(&b[0], t) * sizeof(float));
    for (uint32_t i = 0; i < 2; i++) {
        free_brought(got[i]);
        gs_device_close(d[i]);
        step_fixture_free(&b[i]);
    }
}

/* What fails says so; a device that is closed then has given all back, which the host's GPU checks. */
static void test_cuda_step__refusals_and_failures(void **state)
{
    const gs_update adam = {.rule = GS_UPDATE_ADAM, .states = 2, .rate = 1, .root = 1, .epsilon = 1, .scale = 1,
                            .shrink = 1},
                    sgd = {.rate = 1, .scale = 1, .shrink = 1};
    gs_device *const d = open_gpu();
    gs_device *cpu = NULL;
    step_fixture b;
    (void)state;
    step_fixture_init(&b, (gs_optim){.kind = GS_OPTIM_ADAM});
    gs_assert_ok(gs_device_open(&cpu, "cpu", 1));
    assert_false(gs_device_steps(cpu));
    gs_assert_fails(gs_device_step(cpu, &sgd), GS_EUNSUPPORTED, "no parameters are kept");
    gs_device_close(cpu);
    gs_assert_ok(gs_device_prepare(d, &b.f.program));
    gs_assert_fails(gs_device_step(d, &sgd), GS_EINVAL, "not there");
    gs_assert_fails(gs_device_fetch_params(d, b.host.value), GS_EINVAL, "not there");
    gs_assert_ok(gs_device_keep_params(d, b.f.weight, 2));
    gs_assert_fails(gs_device_step(d, &sgd), GS_EINVAL, "another optimiser");
    gs_assert_ok(gs_device_step(d, &adam));
    gs_assert_ok(gs_device_keep_params(d, b.f.weight, 0)); /* another run's */
    gs_assert_ok(gs_device_step(d, &sgd));
    if (!real_gpu()) {
        host_gpu_fail_launch(1);
        gs_assert_fails(gs_device_step(d, &sgd), GS_EDEVICE, "kernel gs_step");
    }
    gs_device_close(d);
    step_fixture_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_step__sgd_is_torch_s_and_the_host_s),
        cmocka_unit_test(test_cuda_step__adam_is_torch_s_and_the_host_s),
        cmocka_unit_test(test_cuda_step__adamw_momentum_and_clipping_are_torch_s_and_the_host_s),
        cmocka_unit_test(test_cuda_step__nothing_of_them_crosses),
        cmocka_unit_test(test_cuda_step__of_several_devices_all_copies_have_the_same_bits),
        cmocka_unit_test(test_cuda_step__refusals_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
