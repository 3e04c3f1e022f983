/* A run that leaves the finite numbers ends, says where they ended, and keeps the last weights that were good. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/support.h"

#include "api_graph.h"
#include "base/file.h"

static gs_train_options diverging(double lr, uint32_t epochs)
{
    gs_train_options o = api_options();
    o.optimizer = "sgd";
    o.lr = lr;
    o.epochs = epochs;
    return o;
}

static void assert_says(const char *what)
{
    if (strstr(gs_last_error(), what) == NULL)
        fail_msg("\"%s\" is not in: %s", what, gs_last_error());
}

/* The update of the last epoch is looked at, by the evaluation behind it. */
static void numbers__of_the_last_epoch_are_looked_at(void **state)
{
    gs_train_options o = diverging(1e30, 1);
    (void)state;
    gs_assert_fails(gs_train(api_store, &o, NULL), GS_EDEVICE, "after the last epoch: the loss is ");
    assert_says("first in layer 1, array eval.convs.1.x");
    assert_says("of parameter convs.1.lin.weight");
}

/* An update to infinity, and no epoch behind it. */
static void numbers__of_the_last_update_are_looked_at(void **state)
{
    gs_train_options o = diverging(1e300, 1);
    gs_run *run = NULL;
    gs_tensor_info t;

    (void)state;
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN));
    gs_assert_fails(gs_run_epoch(run, NULL), GS_EDEVICE, "epoch 1: its update left numbers that are not finite in ");
    assert_says("parameter convs.");
    gs_assert_fails(gs_run_epoch(run, NULL), GS_EINVAL, "a pass of it has failed");
    gs_assert_ok(gs_run_tensor(run, 0, &t)); /* the weights are again what they were before it */
    float *const value = test_malloc(t.count * sizeof(*value));
    gs_assert_ok(gs_run_get_tensor(run, 0, value, t.count));
    for (uint64_t i = 0; i < t.count; i++)
        assert_true(isfinite(value[i]));
    test_free(value);
    gs_run_close(run);
}

/* What is kept is, to the bit, what a run of so many epochs leaves. */
static void check_kept(gs_train_options o)
{
    unsigned bad = 0, good = 0;

    o.save = gs_test_path(api_folder, "kept.safetensors");
    gs_assert_fails(gs_train(api_store, &o, NULL), GS_EDEVICE, "lower .lr (now ");
    assert_int_equal(sscanf(gs_last_error(), "epoch %u: ", &bad), 1);
    const char *const after = strstr(gs_last_error(), "has the weights after epoch ");
    if (after == NULL)
        fail_msg("does not say which weights are kept: %s", gs_last_error());
    assert_int_equal(sscanf(after, "has the weights after epoch %u", &good), 1);
    assert_true(good + 1 == bad || good + 2 == bad);
    o.epochs = good;
    o.save = gs_test_path(api_folder, "good.safetensors");
    gs_assert_ok(gs_train(api_store, &o, NULL));
    api_assert_same_file(gs_test_path(api_folder, "kept.safetensors"), o.save);
}

/* Running statistics, which no step changes, are kept beside what is learned. */
static void numbers__the_last_good_weights_are_kept(void **state)
{
    gs_train_options o = diverging(3e3, 60);
    (void)state;
    check_kept(o);
    o.norm = "batch";
    check_kept(o);
}

/* Before the first epoch none were good but those that the run began with. */
static void numbers__first_weights_replace_no_file(void **state)
{
    gs_train_options o = diverging(1e30, 4);
    (void)state;
    o.save = gs_test_path(api_folder, "none.safetensors");
    gs_assert_fails(gs_train(api_store, &o, NULL), GS_EDEVICE, "none.safetensors was not written");
    assert_false(gs_path_exists(o.save));
}

static void fill_tensors(gs_run *run, float value)
{
    gs_tensor_info t;
    for (uint32_t i = 0; i < gs_run_tensors(run); i++) {
        gs_assert_ok(gs_run_tensor(run, i, &t));
        float *const v = test_malloc(t.count * sizeof(*v));
        for (uint64_t k = 0; k < t.count; k++)
            v[k] = value;
        gs_assert_ok(gs_run_set_tensor(run, i, v, t.count));
        test_free(v);
    }
}

/* Weights that came from elsewhere. */
static void numbers__of_a_prediction_are_looked_at(void **state)
{
    gs_train_options o = api_options();
    gs_evaluation e;
    gs_run *run = NULL;

    (void)state;
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_PREDICT));
    fill_tensors(run, 3e38f);
    gs_assert_fails(gs_run_evaluate(run, &e), GS_EDEVICE, "the loss of these weights is ");
    assert_says("first in layer ");
    gs_run_close(run);
}

/* What an operation was given is computed again, sums within rows, too: of one column, the first. */
static void numbers__of_an_operation_are_named(void **state)
{
    gs_train_options o = api_options();
    gs_evaluation e;
    gs_tensor_info t;
    gs_run *run = NULL;

    (void)state;
    o.layers = 1;
    o.model = "layer far(h[in]) -> [out]:\n    param W[out, in], c[out]\n    x = v.h @ W'\n"
              "    return exp(dot(x, c)) * x\n";
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_PREDICT));
    fill_tensors(run, 1.0f);
    for (uint32_t i = 0; i < gs_run_tensors(run); i++) {
        gs_assert_ok(gs_run_tensor(run, i, &t));
        float c[API_CLASSES] = {2000.0f};
        if (t.count == API_CLASSES)
            gs_assert_ok(gs_run_set_tensor(run, i, c, t.count));
    }
    gs_assert_fails(gs_run_evaluate(run, &e), GS_EDEVICE, "the loss of these weights is ");
    assert_says("exp of ");
    gs_run_close(run);
}

static void numbers__not_finite_are_no_tensor(void **state)
{
    gs_train_options o = api_options();
    gs_tensor_info t;
    gs_run *run = NULL;

    (void)state;
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_tensor(run, 0, &t));
    float *const v = test_calloc(t.count, sizeof(*v));
    v[2] = NAN;
    gs_assert_fails(gs_run_set_tensor(run, 0, v, t.count), GS_EINVAL, "values[2]: is not finite; tensor convs.0.");
    test_free(v);
    gs_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers__of_the_last_epoch_are_looked_at),
        cmocka_unit_test(numbers__of_the_last_update_are_looked_at),
        cmocka_unit_test(numbers__the_last_good_weights_are_kept),
        cmocka_unit_test(numbers__first_weights_replace_no_file),
        cmocka_unit_test(numbers__of_a_prediction_are_looked_at),
        cmocka_unit_test(numbers__of_an_operation_are_named),
        cmocka_unit_test(numbers__not_finite_are_no_tensor),
    };
    return cmocka_run_group_tests(tests, api_graph_make, api_graph_remove);
}
