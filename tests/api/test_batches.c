/* Training on batches through the public interface. With all in-edges and one batch an epoch is that of the whole
 * graph; numbers do not depend on threads; what does not go with batches is refused in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#include "api_graph.h"

#define EPOCHS 3u

static const char *eight; /* the same graph in eight parts */

static int make(void **state)
{
    gs_partition_options p;
    const int failed = api_graph_make(state);
    gs_partition_options_init(&p);
    p.parts = 8;
    p.method = "random";
    gs_assert_ok(gs_partition(gs_test_path(api_folder, "graph"), eight = gs_test_path(api_folder, "eight"), &p, NULL));
    return failed;
}

/* Losses of the first epochs, and the weights after them as a file. */
static void train(double loss[EPOCHS], const char *store, const gs_train_options *options, const char *weights)
{
    gs_run *run = NULL;
    gs_assert_ok(gs_run_open(&run, store, options, GS_RUN_TRAIN));
    for (uint32_t k = 0; k < EPOCHS; k++) {
        gs_epoch_report e;
        gs_assert_ok(gs_run_epoch(run, &e));
        loss[k] = e.loss;
    }
    if (weights != NULL)
        gs_assert_ok(gs_run_save(run, weights));
    gs_run_close(run);
}

static gs_train_options batches_of(uint32_t size, const char *fanout)
{
    gs_train_options o = api_options();
    o.epochs = EPOCHS;
    o.eval_every = 0;
    o.sampler = "neighbor";
    o.batch_size = size;
    o.fanout = fanout;
    return o;
}

/* As many hops as steps of the model over edges; then the last hop's rows are the only ones without all in-edges, and
 * none of their results is asked for. */
static void test_batches__one_of_all_edges_is_an_epoch_of_the_whole_graph(void **state)
{
    static const struct {
        const char *model, *fanout;
    } cases[] = {{"gcn", "0,0"},     {"sage", "0,0"},      {"sage_max", "0,0"},          {"gat", "0,0"},
                 {"gatv2", "0,0"},   {"gin", "0,0"},       {"appnp", "0,0,0,0,0,0,0,0,0,0"}, {"commnet", "0,0"},
                 {"ggcn", "0,0"},    {"ggnn", "0,0,0,0,0,0,0,0"}, {"sage", "0,0,0"}};
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        for (int dropout = 0; dropout < 2; dropout++) {
            double whole[EPOCHS], batch[EPOCHS];
            gs_train_options o = batches_of(API_VERTICES, cases[k].fanout);
            o.model = cases[k].model;
            o.dropout = dropout ? 0.3 : 0;
            o.lr = 0.01;
            o.class_weights = k % 2 == 1 ? "1,3,0.25" : NULL;
            train(batch, dropout ? eight : api_store, &o, NULL);
            o.sampler = "none";
            o.fanout = NULL;
            o.batch_size = 0;
            train(whole, dropout ? eight : api_store, &o, NULL);
            for (uint32_t i = 0; i < EPOCHS; i++)
                gs_assert_close(batch[i], whole[i], 2e-5);
        }
}

/* Several steps an epoch; edges drawn, left out, drawn twice; statistics of a batch. */
static void test_batches__threads_change_no_bit(void **state)
{
    static const char *const models[] = {"sage", "gat", "gcn"};
    (void)state;
    for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
        double loss[2][EPOCHS];
        const char *const path[2] = {gs_test_path(api_folder, "one.safetensors"),
                               gs_test_path(api_folder, "two.safetensors")};
        for (uint32_t t = 0; t < 2; t++) {
            gs_train_options o = batches_of(17, "4,3");
            o.model = models[k];
            o.dropout = 0.2;
            o.norm = k == 2 ? "batch" : "none";
            o.replace = k == 1;
            o.threads = t + 1;
            train(loss[t], eight, &o, path[t]);
            assert_true(loss[t][EPOCHS - 1] < loss[t][0]);
        }
        assert_memory_equal(loss[0], loss[1], sizeof(loss[0]));
        api_assert_same_file(path[0], path[1]);
    }
}

/* Subgraphs in place of neighbours: they learn, too. */
static void test_batches__of_subgraphs_learn(void **state)
{
    static const char *const samplers[] = {"cluster", "saint-node", "saint-edge", "saint-walk"};
    (void)state;
    for (size_t k = 0; k < sizeof(samplers) / sizeof(samplers[0]); k++) {
        double loss[EPOCHS];
        gs_train_options o = batches_of(k == 0 ? 2 : 60, NULL);
        o.model = "sage";
        o.lr = 0.02;
        o.sampler = samplers[k];
        train(loss, eight, &o, NULL);
        assert_true(loss[EPOCHS - 1] < loss[0]);
    }
}

/* Features that the run keeps are not read for a batch. In a budget in which they do not stay they are read row by row,
 * and nothing else changes. */
static void test_batches__read_features_are_those_in_memory(void **state)
{
    double loss[2][EPOCHS];
    gs_epoch_report e;
    gs_run *run = NULL;
    (void)state;
    gs_train_options o = batches_of(17, "4,3");
    o.model = "sage";
    for (uint32_t read = 0; read < 2; read++) {
        o.no_cache = read == 1;
        gs_assert_ok(gs_run_open(&run, eight, &o, GS_RUN_TRAIN));
        for (uint32_t k = 0; k < EPOCHS; k++) {
            gs_assert_ok(gs_run_epoch(run, &e));
            loss[read][k] = e.loss;
            assert_int_equal(e.read_bytes > 0, read);
        }
        gs_run_close(run);
    }
    assert_memory_equal(loss[0], loss[1], sizeof(loss[0]));
}

/* Two epochs, and one more of another run from their checkpoint: the same bits as three. */
static void test_batches__a_run_goes_on(void **state)
{
    double loss[EPOCHS];
    gs_epoch_report e;
    gs_run *run = NULL;
    (void)state;
    gs_train_options o = batches_of(17, "4,3");
    o.model = "sage";
    o.dropout = 0.2;
    o.batches_per_step = 3;
    train(loss, eight, &o, gs_test_path(api_folder, "whole.safetensors"));
    o.checkpoint = gs_test_path(api_folder, "checkpoints");
    o.checkpoint_every = "2";
    gs_assert_ok(gs_run_open(&run, eight, &o, GS_RUN_TRAIN));
    for (uint32_t k = 0; k < EPOCHS - 1; k++)
        gs_assert_ok(gs_run_epoch(run, &e));
    gs_run_close(run);
    o.resume = o.checkpoint;
    o.batch_size = 18;
    gs_assert_fails(gs_run_open(&run, eight, &o, GS_RUN_TRAIN), GS_EINVAL, ".batch_size 18");
    o.batch_size = 17;
    gs_assert_ok(gs_run_open(&run, eight, &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_epoch(run, &e));
    assert_int_equal(e.epoch, EPOCHS);
    assert_true(e.loss == loss[EPOCHS - 1]);
    gs_assert_ok(gs_run_save(run, gs_test_path(api_folder, "on.safetensors")));
    gs_run_close(run);
    api_assert_same_file(gs_test_path(api_folder, "whole.safetensors"), gs_test_path(api_folder, "on.safetensors"));
}

/* With all in-edges gradients of batches add up to those of the whole graph, and two batches have the targets of one
 * that is twice as large. */
static void test_batches__of_one_step_are_one_batch(void **state)
{
    static const char *const models[] = {"gcn", "sage", "gat"};
    (void)state;
    for (size_t k = 0; k < sizeof(models) / sizeof(models[0]); k++) {
        double whole[EPOCHS], steps[EPOCHS];
        gs_train_options o = batches_of(17, "0,0");
        o.model = models[k];
        o.lr = 0.01;
        o.batches_per_step = API_VERTICES; /* more than there are */
        train(steps, eight, &o, NULL);
        o.sampler = "none";
        o.fanout = NULL;
        o.batch_size = o.batches_per_step = 0;
        train(whole, eight, &o, NULL);
        for (uint32_t i = 0; i < EPOCHS; i++)
            gs_assert_close(steps[i], whole[i], 2e-5);
        o = batches_of(34, "0,0");
        o.model = models[k];
        train(whole, eight, &o, NULL);
        o.batch_size = 17;
        o.batches_per_step = 2;
        train(steps, eight, &o, NULL);
        for (uint32_t i = 0; i < EPOCHS; i++)
            gs_assert_close(steps[i], whole[i], 2e-5);
    }
}

/* The same steps as on one device: what is added up in another order differs by rounding alone, and twice the same run
 * by nothing. Batches of 17 of these training vertices leave devices without one in an epoch's last step. */
static void test_batches__on_several_devices_are_those_on_one(void **state)
{
    static const char *const samplers[] = {"neighbor", "neighbor", "neighbor", "cluster", "saint-walk"};
    static const char *const devices[] = {"cpu:2", "cpu:3", "cpu:2", "cpu:2", "cpu:2"};
    static const uint32_t a_step[] = {2, 6, 2, 2, 4};
    (void)state;
    for (size_t k = 0; k < sizeof(samplers) / sizeof(samplers[0]); k++) {
        double one[EPOCHS], several[2][EPOCHS];
        gs_train_options o = batches_of(k < 3 ? 17 : k == 3 ? 1 : 60, k < 3 ? "4,3" : NULL);
        o.sampler = samplers[k];
        o.model = "sage";
        o.dropout = 0.2;
        o.norm = k == 1 ? "batch" : "none";
        o.no_cache = k == 2;
        o.batches_per_step = a_step[k];
        train(one, eight, &o, NULL);
        o.device = devices[k];
        o.batches_per_step = a_step[k] > 2 ? a_step[k] : 0; /* one each where nothing is said */
        const char *const path[2] = {gs_test_path(api_folder, "first.safetensors"),
                                     gs_test_path(api_folder, "again.safetensors")};
        for (int again = 0; again < 2; again++)
            train(several[again], eight, &o, path[again]);
        api_assert_same_file(path[0], path[1]);
        assert_memory_equal(several[0], several[1], sizeof(several[0]));
        for (uint32_t i = 0; i < EPOCHS; i++)
            gs_assert_close(several[0][i], one[i], 1e-4);
    }
}

/* Devices that are not alike have other shares of a step; groups of other sizes change no bit of what is added up, and
 * batches without room neither. */
static void test_batches__on_unlike_devices_are_those_on_one(void **state)
{
    static const char unlike[] = "{\"switches\": [{\"devices\": 2, \"speeds\": [0.5, 1]}]}";
    const char *const topology = gs_test_path(api_folder, "unlike.json");
    (void)state;
    gs_test_write_file(topology, unlike, sizeof(unlike) - 1);
    for (int norm = 0; norm < 2; norm++) {
        double one[EPOCHS], several[2][EPOCHS];
        const char *const path[2] = {gs_test_path(api_folder, "first.safetensors"),
                                     gs_test_path(api_folder, "again.safetensors")};
        gs_train_options o = batches_of(13, "4,3");
        gs_plan_report plan;
        o.model = "sage";
        o.norm = norm ? "batch" : "none";
        o.batches_per_step = 5;
        o.threads = 2;
        train(one, eight, &o, NULL);
        o.device = "cpu:2";
        o.topology = topology;
        gs_assert_ok(gs_plan_train(&plan, eight, &o));
        assert_int_equal(plan.batch_share[0], 2);
        assert_int_equal(plan.batch_share[1], 3);
        gs_assert_close(plan.step_seconds, 4 * plan.pass[plan.passes - 1].predicted.seconds, 1e-9);
        for (int read = 0; read < 2; read++) {
            o.no_cache = read;
            train(several[read], eight, &o, path[read]);
        }
        api_assert_same_file(path[0], path[1]);
        for (uint32_t i = 0; i < EPOCHS; i++)
            gs_assert_close(several[0][i], one[i], 1e-4);
    }
}

/* How fast devices were taken to be is in a checkpoint: another topology file changes no bit of a run that goes on. */
static void test_batches__a_run_on_unlike_devices_goes_on(void **state)
{
    static const char speeds[2][64] = {"{\"switches\": [{\"devices\": 2, \"speeds\": [1, 0.5]}]}",
                                       "{\"switches\": [{\"devices\": 2, \"speeds\": [0.25, 1]}]}"};
    const char *const path[2] = {gs_test_path(api_folder, "first.json"), gs_test_path(api_folder, "second.json")};
    double loss[EPOCHS];
    gs_run *run = NULL;
    gs_epoch_report e;
    gs_plan_report plan;
    (void)state;
    for (int k = 0; k < 2; k++)
        gs_test_write_file(path[k], speeds[k], strlen(speeds[k]));
    gs_train_options o = batches_of(13, "4,3");
    o.device = "cpu:2";
    o.batches_per_step = 3;
    o.topology = path[0];
    train(loss, eight, &o, gs_test_path(api_folder, "whole.safetensors"));
    o.checkpoint = gs_test_path(api_folder, "unlike");
    o.checkpoint_every = "1";
    gs_assert_ok(gs_run_open(&run, eight, &o, GS_RUN_TRAIN));
    for (uint32_t k = 0; k < EPOCHS - 1; k++)
        gs_assert_ok(gs_run_epoch(run, &e));
    gs_run_close(run);
    o.resume = o.checkpoint;
    o.topology = path[1];
    gs_assert_ok(gs_run_open(&run, eight, &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_plan(run, &plan));
    assert_int_equal(plan.batch_share[0], 2);
    gs_assert_ok(gs_run_epoch(run, &e));
    gs_assert_ok(gs_run_save(run, gs_test_path(api_folder, "on.safetensors")));
    gs_run_close(run);
    assert_true(e.loss == loss[EPOCHS - 1]);
    api_assert_same_file(gs_test_path(api_folder, "whole.safetensors"), gs_test_path(api_folder, "on.safetensors"));
}

enum { LONG = 24 };

/* The losses of LONG epochs, and of each the bytes that were read. */
static void train_long(double loss[LONG], uint64_t bytes[LONG], const gs_train_options *o)
{
    gs_run *run = NULL;
    gs_assert_ok(gs_run_open(&run, eight, o, GS_RUN_TRAIN));
    for (uint32_t k = 0; k < LONG; k++) {
        gs_epoch_report e;
        gs_assert_ok(gs_run_epoch(run, &e));
        loss[k] = e.loss;
        bytes[k] = e.read_bytes;
    }
    gs_run_close(run);
}

/* Until the elbow of its losses an adaptive run is one that never shuffles, to the bit; then it is not. In the store's
 * order all batches of an epoch are those of the one before, as far as what they read shows. */
static void test_batches__are_shuffled_from_the_elbow_on(void **state)
{
    static const char *const samplers[] = {"neighbor", "cluster"}, *const shuffles[] = {"never", "adaptive", "always"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        double loss[3][LONG], largest = 0;
        uint64_t bytes[3][LONG];
        uint32_t elbow = 0;
        gs_train_options o = batches_of(k == 0 ? 17 : 2, k == 0 ? "0,0" : NULL);
        o.sampler = samplers[k];
        o.model = "gcn";
        o.lr = 0.3; /* there soon */
        o.epochs = LONG;
        o.no_cache = true;
        for (int s = 0; s < 3; s++) {
            o.shuffle = shuffles[s];
            train_long(loss[s], bytes[s], &o);
        }
        for (uint32_t e = 1; e < LONG && elbow == 0; e++) {
            const double drop = loss[0][e - 1] - loss[0][e];
            elbow = drop <= largest / 10 ? e + 1 : 0;
            largest = drop > largest ? drop : largest;
        }
        assert_true(elbow > 0 && elbow < LONG); /* epochs count from 1 */
        assert_memory_equal(loss[1], loss[0], elbow * sizeof(double));
        assert_true(loss[1][elbow] != loss[0][elbow] && loss[2][0] != loss[0][0]);
        for (uint32_t e = 1; e < LONG; e++)
            assert_int_equal(bytes[0][e], bytes[0][0]);
    }
}

static void expect_refusal(const gs_train_options *o, gs_status status, const char *words)
{
    gs_run *run = NULL;
    gs_assert_fails(gs_run_open(&run, api_store, o, GS_RUN_TRAIN), status, words);
    assert_null(run);
}

static void test_batches__what_does_not_go_with_them_is_refused(void **state)
{
    (void)state;
    gs_train_options o = batches_of(10, NULL);
    expect_refusal(&o, GS_EINVAL, ".fanout: none given");
    o.fanout = "3,x";
    expect_refusal(&o, GS_EINVAL, ".fanout 3,x");
    o.fanout = "3,-1";
    expect_refusal(&o, GS_EINVAL, ".fanout 3,-1");
    o.fanout = "3,2";
    o.shuffle = "now";
    expect_refusal(&o, GS_EINVAL, ".shuffle now: must be one of always|never|adaptive");
    o.shuffle = NULL;
    o.sampler = "some";
    expect_refusal(&o, GS_EINVAL, ".sampler some");
    o.sampler = "none";
    expect_refusal(&o, GS_EINVAL, ".batch_size: is of batches");
    o.batch_size = 0;
    expect_refusal(&o, GS_EINVAL, ".fanout: is of batches");
    o.fanout = NULL;
    o.shuffle = "never";
    expect_refusal(&o, GS_EINVAL, ".shuffle: is of batches");
    o.shuffle = NULL;
    o.walk_length = 2;
    expect_refusal(&o, GS_EINVAL, ".walk_length: is of batches");
    o.walk_length = 0;
    o.batches_per_step = 2;
    expect_refusal(&o, GS_EINVAL, ".batches_per_step: is of batches");
    o.batches_per_step = 0;
    o.walk_length = 2;
    o.sampler = "neighbor";
    o.fanout = "3,2";
    expect_refusal(&o, GS_EINVAL, ".walk_length: is of .sampler saint-walk; leave it out with neighbor");
    o.sampler = "cluster";
    expect_refusal(&o, GS_EINVAL, ".fanout: is of .sampler neighbor");
    o.sampler = "neighbor";
    o.walk_length = 0;
    o.coverage = 5;
    expect_refusal(&o, GS_EINVAL, ".coverage: is of .sampler saint-node, saint-edge and saint-walk; leave it out");
    o.coverage = 0;
    o.device = "cpu:9";
    expect_refusal(&o, GS_EUNSUPPORTED, ".device cpu:9: batches are trained on 8 devices at most");
    o.device = "cpu:2";
    o.batches_per_step = 1;
    expect_refusal(&o, GS_EINVAL, ".batches_per_step 1: .device cpu:2 has 2 devices");
    o.batches_per_step = 0;
    o.device = "cpu";
    o.host_memory = 20u << 20;
    expect_refusal(&o, GS_EBUDGET, "host_memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches__one_of_all_edges_is_an_epoch_of_the_whole_graph),
        cmocka_unit_test(test_batches__threads_change_no_bit),
        cmocka_unit_test(test_batches__of_subgraphs_learn),
        cmocka_unit_test(test_batches__read_features_are_those_in_memory),
        cmocka_unit_test(test_batches__a_run_goes_on),
        cmocka_unit_test(test_batches__of_one_step_are_one_batch),
        cmocka_unit_test(test_batches__on_several_devices_are_those_on_one),
        cmocka_unit_test(test_batches__on_unlike_devices_are_those_on_one),
        cmocka_unit_test(test_batches__a_run_on_unlike_devices_goes_on),
        cmocka_unit_test(test_batches__are_shuffled_from_the_elbow_on),
        cmocka_unit_test(test_batches__what_does_not_go_with_them_is_refused),
    };
    return cmocka_run_group_tests(tests, make, api_graph_remove);
}
