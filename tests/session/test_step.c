/* test_step.c - copies of the parameters before a step and of the best ones: each reaches its own floats and no other,
 * whether the host has the parameters or a device, which then has those that are learned. */
#include <string.h>

#include "support/support.h"

#include "device/device_table.h"
#include "session/session.h"

enum { LEARNED = 32, FIXED = 16, ALL = LEARNED + FIXED, RUN = 3 * ALL }; /* what lies behind a run is its guard */
static const float values_guard = -1, previous_guard = -2, best_guard = -3;
#define FROM_DEVICE 70.0f /* parameters of the device; its previous ones are 10 less */

typedef struct fixture {
    float values[RUN], previous[RUN], best[RUN];
    float *value[2], *best_value[2]; /* a learned tensor, and one that is not */
    uint32_t kept; /* times that the device was given parameters */
    struct gs_device device;
    gs_device_params params;
    gs_program program;
    gs_session s;
} fixture;

static void bring(float *const *param, float number)
{
    for (uint32_t i = 0; i < LEARNED; i++)
        param[0][i] = number;
}

static gs_status step(void *context, const gs_update *u) { (void)context, (void)u; return GS_OK; }
static gs_status fetch_params(void *context, float *const *param)
{
    (void)context;
    bring(param, FROM_DEVICE);
    return GS_OK;
}
static gs_status fetch_previous(void *context, float *const *param)
{
    (void)context;
    bring(param, FROM_DEVICE - 10);
    return GS_OK;
}
static gs_status keep_params(void *context, const float *const *param, uint32_t states)
{
    (void)param, (void)states;
    ((fixture *)context)->kept++;
    return GS_OK;
}

static void fill(float *run, float number, float guard)
{
    for (uint32_t i = 0; i < RUN; i++)
        run[i] = i < ALL ? number : guard;
}

static void open_fixture(fixture *f, bool on_device)
{
    memset(f, 0, sizeof(*f));
    f->params = (gs_device_params){
        .step = step, .fetch_params = fetch_params, .fetch_previous = fetch_previous, .keep_params = keep_params};
    f->device = (gs_device){.ops.params = on_device ? &f->params : &gs_device__host_params, .context = f};
    f->value[0] = f->values, f->value[1] = f->values + LEARNED;
    f->best_value[0] = f->best, f->best_value[1] = f->best + LEARNED;
    f->s.program = &f->program; /* without tables */
    f->s.machine.devices = 1;
    f->s.machine.device[0] = &f->device;
    f->s.pass.gradients = true;
    f->s.run.params = (gs_params){.count = 2, .elements = ALL, .fixed_elements = FIXED, .values = f->values,
                                  .previous = f->previous, .best = f->best, .value = f->value,
                                  .best_value = f->best_value};
    fill(f->values, 1, values_guard);
    fill(f->previous, 2, previous_guard);
    fill(f->best, 3, best_guard);
}

static void check_run(const float *run, float learned, float fixed, float guard)
{
    for (uint32_t i = 0; i < RUN; i++) {
        const float want = i < LEARNED ? learned : i < ALL ? fixed : guard;
        if (run[i] != want)
            fail_msg("element %u is %g, not %g", i, (double)run[i], (double)want);
    }
}

static void check(const fixture *f, const float want[6])
{
    check_run(f->values, want[0], want[1], values_guard);
    check_run(f->previous, want[2], want[3], previous_guard);
    check_run(f->best, want[4], want[5], best_guard);
}

static void test_step__copies_on_the_host(void **state)
{
    fixture f;
    (void)state;
    open_fixture(&f, false);
    gs_session_keep_previous(&f.s);
    check(&f, (float[]){1, 1, 1, 1, 3, 3});
    fill(f.values, 4, values_guard);
    gs_assert_ok(gs_session_keep_best(&f.s));
    check(&f, (float[]){4, 4, 1, 1, 4, 4});
    gs_assert_ok(gs_session_back_to_previous(&f.s));
    check(&f, (float[]){1, 1, 1, 1, 4, 4});
    gs_assert_ok(gs_session_back_to_best(&f.s));
    check(&f, (float[]){4, 4, 1, 1, 4, 4});
    assert_int_equal(f.kept, 0);
}

static void test_step__copies_of_a_device(void **state)
{
    fixture f;
    (void)state;
    open_fixture(&f, true);
    gs_session_keep_previous(&f.s); /* of what is not learned alone: the device keeps the rest */
    check(&f, (float[]){1, 1, 2, 1, 3, 3});
    fill(f.values, 4, values_guard);
    gs_assert_ok(gs_session_keep_best(&f.s));
    check(&f, (float[]){4, 4, 2, 1, FROM_DEVICE, 4});
    gs_assert_ok(gs_session_back_to_previous(&f.s));
    check(&f, (float[]){FROM_DEVICE - 10, 1, 2, 1, FROM_DEVICE, 4});
    gs_assert_ok(gs_session_back_to_best(&f.s));
    check(&f, (float[]){FROM_DEVICE, 4, 2, 1, FROM_DEVICE, 4});
    assert_int_equal(f.kept, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step__copies_on_the_host),
        cmocka_unit_test(test_step__copies_of_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
