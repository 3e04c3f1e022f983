/* Which weights a run ends with, when it stops, and at which rates it learns, on each kind of device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#include "api_graph.h"

#define MOST_NUMBERS 256
#define EPOCHS 24

/* Fast enough to get worse again. */
static gs_train_options options(void)
{
    gs_train_options o = api_options();

    o.epochs = EPOCHS;
    o.lr = 0.3;
    o.dropout = 0.5;
    o.keep = NULL;
    return o;
}

static gs_run *open_run(const gs_train_options *o)
{
    gs_run *run = NULL;
    gs_assert_ok(gs_run_open(&run, api_store, o, GS_RUN_TRAIN));
    return run;
}

static uint64_t first_tensor(gs_run *run, float out[MOST_NUMBERS])
{
    gs_tensor_info info;
    gs_assert_ok(gs_run_tensor(run, 0, &info));
    assert_true(info.count <= MOST_NUMBERS);
    gs_assert_ok(gs_run_get_tensor(run, 0, out, info.count));
    return info.count;
}

/* Against a look at every epoch behind the first, whose weights have learned nothing: the first with the best result of
 * validation, by the loss and by the accuracy, and its weights bit for bit. */
static void check_best(const char *by)
{
    static float now[EPOCHS + 2][MOST_NUMBERS], kept[MOST_NUMBERS];
    gs_train_options o = options();
    double valid[EPOCHS + 2];
    gs_train_report r;
    gs_epoch_report e;
    gs_evaluation last;
    uint32_t best = 2;
    uint64_t count = 0;

    o.keep_by = by;
    gs_run *const run = open_run(&o);
    for (uint32_t k = 1; k <= EPOCHS; k++) {
        count = first_tensor(run, now[k]);
        gs_assert_ok(gs_run_epoch(run, &e));
        valid[k] = by != NULL ? e.accuracy[1] : -e.figures.valid_loss;
        best = k > 2 && valid[k] > valid[best] ? k : best;
    }
    count = first_tensor(run, now[EPOCHS + 1]);
    gs_assert_ok(gs_run_evaluate(run, &last));
    valid[EPOCHS + 1] = by != NULL ? last.accuracy[1] : -last.figures.valid_loss;
    best = valid[EPOCHS + 1] > valid[best] ? EPOCHS + 1 : best;
    gs_assert_ok(gs_run_finish(run, &r));
    first_tensor(run, kept);
    assert_int_equal(r.kept_epochs, best - 1);
    assert_true((by != NULL ? r.accuracy[1] : -r.figures.valid_loss) == valid[best]);
    assert_memory_equal(kept, now[best], count * sizeof(float));
    gs_run_close(run);
}

static void control__a_run_ends_with_its_best_weights(void **state)
{
    (void)state;
    check_best(NULL);
    check_best("accuracy");
}

static uint32_t epochs_run;
static void count_epoch(void *context, const gs_epoch_report *e)
{
    (void)context;
    epochs_run = e->epoch;
}

/* The epochs that patience leaves out are those that a run without it would have run for nothing. */
static void control__patience_stops(void **state)
{
    gs_train_options o = options();
    double best = -HUGE_VAL;
    uint32_t since = 0, end = 0;
    gs_train_report r;
    gs_epoch_report e;

    (void)state;
    gs_run *const run = open_run(&o);
    for (uint32_t k = 1; k <= EPOCHS && end == 0; k++) {
        gs_assert_ok(gs_run_epoch(run, &e));
        assert_false(e.over);
        since = k == 1 || -e.figures.valid_loss > best ? 0 : since + 1;
        best = k == 1 ? best : fmax(best, -e.figures.valid_loss);
        end = since == 3 ? k : 0;
    }
    gs_run_close(run);
    assert_true(end > 0);
    o.patience = 3;
    o.on_epoch = count_epoch;
    gs_assert_ok(gs_train(api_store, &o, &r));
    assert_int_equal(epochs_run, end);
    assert_int_equal(r.epochs, end);
    assert_int_equal(r.saved_epochs, EPOCHS - end);
}

/* A cosine behind a warm-up, in what is reported; and every optimiser learns at it. */
static void control__rates_are_the_schedule_s(void **state)
{
    static const char *const optimizers[] = {"adam", "adamw", "sgd"};
    gs_train_options o = options();
    gs_epoch_report e;

    (void)state;
    o.schedule = "cosine";
    o.warmup = 4;
    o.clip_norm = 1;
    o.weight_decay = 0.01;
    for (size_t k = 0; k < 3; k++) {
        o.optimizer = optimizers[k];
        o.momentum = k == 2 ? 0.9 : 0;
        gs_run *const run = open_run(&o);
        double first = 0;
        for (uint32_t epoch = 1; epoch <= EPOCHS; epoch++) {
            gs_assert_ok(gs_run_epoch(run, &e));
            first = epoch == 1 ? e.loss : first;
            gs_assert_close(e.lr, epoch <= 4 ? 0.3 * epoch / 4 : 0.15 * (1 + cos(acos(-1) * (epoch - 5) / 20)), 1e-12);
        }
        assert_true(e.loss < first);
        gs_run_close(run);
    }
}

/* Half of a run and, from its checkpoint, the rest: what is kept, the rates and the stop are those of a whole one. */
static void control__goes_on_from_a_checkpoint(void **state)
{
    static float whole[MOST_NUMBERS], rest[MOST_NUMBERS];
    static const char *const schedules[] = {"plateau", "cosine"};
    gs_train_report r[2];
    gs_epoch_report e;

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        gs_train_options o = options();
        double last = 0;
        o.schedule = schedules[k];
        o.schedule_every = k == 0 ? 2 : 0;
        o.optimizer = k == 0 ? "sgd" : "adamw";
        o.momentum = k == 0 ? 0.9 : 0;
        gs_run *run = open_run(&o);
        for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
            gs_assert_ok(gs_run_epoch(run, &e));
        last = e.lr;
        gs_assert_ok(gs_run_finish(run, &r[0]));
        const uint64_t count = first_tensor(run, whole);
        gs_run_close(run);
        o.checkpoint = gs_test_path(api_folder, "half.%s", schedules[k]);
        run = open_run(&o);
        for (uint32_t epoch = 0; epoch < EPOCHS - 3; epoch++)
            gs_assert_ok(gs_run_epoch(run, &e));
        gs_assert_ok(gs_run_checkpoint(run));
        gs_run_close(run);
        o.resume = o.checkpoint;
        o.checkpoint = NULL;
        run = open_run(&o);
        for (uint32_t epoch = 0; epoch < 3; epoch++)
            gs_assert_ok(gs_run_epoch(run, &e));
        assert_true(e.lr == last);
        gs_assert_ok(gs_run_finish(run, &r[1]));
        first_tensor(run, rest);
        assert_int_equal(r[1].kept_epochs, r[0].kept_epochs);
        assert_memory_equal(rest, whole, count * sizeof(float));
        gs_run_close(run);
    }
}

static void control__refusals(void **state)
{
    gs_train_options o = options();
    gs_run *run = NULL;

    (void)state;
    o.eval_every = 0;
    o.keep = "best";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, ".keep best needs");
    o = options();
    o.momentum = 0.5;
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, ".momentum 0.5: is of sgd");
    o.momentum = 0;
    o.clip_norm = -1;
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, ".clip_norm -1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control__a_run_ends_with_its_best_weights),
        cmocka_unit_test(control__patience_stops),
        cmocka_unit_test(control__rates_are_the_schedule_s),
        cmocka_unit_test(control__goes_on_from_a_checkpoint),
        cmocka_unit_test(control__refusals),
    };
    return cmocka_run_group_tests(tests, api_graph_make, api_graph_remove);
}
