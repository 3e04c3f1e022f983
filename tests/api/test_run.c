/* A run, step by step, against the whole runs that the command line's promises are about. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"

#include "api_graph.h"
#include "base/alloc.h"
#include "base/file.h"

#define LOGITS (API_VERTICES * API_CLASSES)
#define MOST_TENSORS 64
#define MOST_NUMBERS 4096

static gs_run *open_run(const gs_train_options *o)
{
    gs_run *run = NULL;
    gs_assert_ok(gs_run_open(&run, api_store, o, GS_RUN_TRAIN));
    return run;
}

static void run_epochs(gs_run *run, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        gs_assert_ok(gs_run_epoch(run, NULL));
}

/* The data of a .npy file of LOGITS floats: they end it. */
static void read_npy(float out[LOGITS], const char *path)
{
    uint64_t bytes;
    char *text;
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    assert_true(bytes > LOGITS * sizeof(float));
    memcpy(out, text + bytes - LOGITS * sizeof(float), LOGITS * sizeof(float));
    gs_free(text);
}

/* The numbers of two .safetensors files, without the headers, which say how many epochs there were. */
static void assert_same_tensors(const char *a, const char *b)
{
    const char *const path[2] = {a, b};
    uint64_t bytes[2], length[2];
    char *text[2];

    for (int k = 0; k < 2; k++) {
        gs_assert_ok(gs_file_read_all(&text[k], &bytes[k], path[k], 1 << 20));
        memcpy(&length[k], text[k], sizeof(length[k]));
        length[k] += sizeof(length[k]);
    }
    assert_true(length[0] < bytes[0]);
    assert_int_equal(bytes[0] - length[0], bytes[1] - length[1]);
    assert_memory_equal(text[0] + length[0], text[1] + length[1], bytes[0] - length[0]);
    gs_free(text[0]);
    gs_free(text[1]);
}

/* With dropout, so that an epoch's number counts. */
static void run__epochs_one_by_one_are_gs_train(void **state)
{
    static float logits[LOGITS], whole[LOGITS];
    gs_train_options o = api_options();
    gs_train_report r, finished;
    gs_evaluation e;

    (void)state;
    o.dropout = 0.3;
    o.save = gs_test_path(api_folder, "whole.safetensors");
    o.logits = gs_test_path(api_folder, "whole.npy");
    gs_assert_ok(gs_train(api_store, &o, &r));
    o.save = o.logits = NULL;
    o.keep_logits = true;
    gs_run *const run = open_run(&o);
    run_epochs(run, o.epochs);
    gs_assert_ok(gs_run_evaluate(run, &e));
    gs_assert_ok(gs_run_logits(run, logits, LOGITS));
    gs_assert_ok(gs_run_save(run, gs_test_path(api_folder, "steps.safetensors")));
    gs_assert_ok(gs_run_write_logits(run, gs_test_path(api_folder, "steps.npy")));
    gs_assert_ok(gs_run_finish(run, &finished));
    gs_run_close(run);

    read_npy(whole, gs_test_path(api_folder, "whole.npy"));
    assert_memory_equal(logits, whole, sizeof(whole));
    api_assert_same_file(gs_test_path(api_folder, "whole.npy"), gs_test_path(api_folder, "steps.npy"));
    api_assert_same_file(gs_test_path(api_folder, "whole.safetensors"), gs_test_path(api_folder, "steps.safetensors"));
    assert_true(e.loss == r.loss && finished.loss == r.loss);
    for (int k = 0; k < 3; k++)
        assert_true(e.accuracy[k] == r.accuracy[k] && finished.accuracy[k] == r.accuracy[k]);
    assert_int_equal(finished.epochs, r.epochs);
    assert_int_equal(finished.parameters, r.parameters);
}

/* Accuracy counted from the logits and the labels of the input is what the evaluation says. */
static void run__logits_give_the_accuracies(void **state)
{
    static float logits[LOGITS];
    const char *const split[3] = {"train", "valid", "test"};
    gs_train_options o = api_options();
    gs_evaluation e;
    uint64_t bytes;
    char *labels;

    (void)state;
    o.keep_logits = true;
    gs_run *const run = open_run(&o);
    run_epochs(run, 4);
    gs_assert_ok(gs_run_evaluate(run, &e));
    gs_assert_ok(gs_run_logits(run, logits, LOGITS));
    gs_run_close(run);
    gs_assert_ok(gs_file_read_all(&labels, &bytes, gs_test_path(api_folder, "graph/labels.npy"), 1 << 20));
    for (int k = 0; k < 3; k++) {
        uint64_t size, right = 0, count = 0;
        char *ids;
        gs_assert_ok(gs_file_read_all(&ids, &size, gs_test_path(api_folder, "graph/%s_idx.npy", split[k]), 1 << 20));
        for (uint64_t at = 128; at < size; at += sizeof(int64_t)) { /* behind NumPy's header */
            int64_t id, label;
            uint32_t best = 0;
            memcpy(&id, ids + at, sizeof(id));
            memcpy(&label, labels + bytes - API_VERTICES * sizeof(label) + (uint64_t)id * sizeof(label), sizeof(label));
            for (uint32_t c = 1; c < API_CLASSES; c++)
                best = logits[(uint64_t)id * API_CLASSES + c] > logits[(uint64_t)id * API_CLASSES + best] ? c : best;
            right += best == (uint64_t)label;
            count++;
        }
        gs_free(ids);
        gs_assert_close(e.accuracy[k], (double)right / (double)count, 1e-12);
    }
    gs_free(labels);
}

/* ---- tensors --------------------------------------------------------------- */

static uint32_t get_all(gs_run *run, float values[MOST_TENSORS][MOST_NUMBERS])
{
    const uint32_t n = gs_run_tensors(run);
    gs_tensor_info t;
    assert_true(n > 0 && n <= MOST_TENSORS);
    for (uint32_t i = 0; i < n; i++) {
        gs_assert_ok(gs_run_tensor(run, i, &t));
        assert_true(t.count <= MOST_NUMBERS);
        gs_assert_ok(gs_run_get_tensor(run, i, values[i], t.count));
    }
    return n;
}

static void set_all(gs_run *run, float values[MOST_TENSORS][MOST_NUMBERS])
{
    gs_tensor_info t;
    for (uint32_t i = 0; i < gs_run_tensors(run); i++) {
        gs_assert_ok(gs_run_tensor(run, i, &t));
        gs_assert_ok(gs_run_set_tensor(run, i, values[i], t.count));
    }
}

static void run__tensors_have_the_files_names_and_shapes(void **state)
{
    gs_train_options o = api_options();
    gs_run *const run = open_run(&o);
    gs_tensor_info t;

    (void)state;
    assert_int_equal(gs_run_tensors(run), 4);
    gs_assert_ok(gs_run_tensor(run, 0, &t));
    assert_int_equal(t.dimensions, 2);
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t numbers = 1;
        gs_assert_ok(gs_run_tensor(run, i, &t));
        for (uint32_t d = 0; d < t.dimensions; d++)
            numbers *= t.shape[d];
        assert_int_equal(numbers, t.count);
        assert_true(t.learned);
        if (strcmp(t.name, "convs.0.lin.weight") == 0)
            assert_true(t.shape[0] == 8 && t.shape[1] == 6);
    }
    gs_assert_fails(gs_run_tensor(run, 4, &t), GS_EINVAL, "index 4: the model has 4 tensors");
    gs_assert_fails(gs_run_get_tensor(run, 0, (float[1]){0}, 1), GS_EINVAL, "count 1: tensor");
    gs_run_close(run);
}

/* All there is to a model are its tensors: the logits of a run are another's that was given them. GIN has running
 * means, running variances and counters besides what is learned. */
static void run__tensors_carry_a_model_to_another_run(void **state)
{
    static float values[MOST_TENSORS][MOST_NUMBERS], logits[2][LOGITS];
    static const char *const models[] = {"gcn", "gin", "gat"};

    (void)state;
    for (int m = 0; m < 3; m++) {
        gs_train_options o = api_options();
        o.model = models[m];
        o.keep_logits = true;
        gs_run *const from = open_run(&o);
        run_epochs(from, 3);
        get_all(from, values);
        gs_assert_ok(gs_run_logits(from, logits[0], LOGITS));
        gs_run_close(from);
        o.seed = 77;
        gs_run *const to = open_run(&o);
        gs_assert_ok(gs_run_logits(to, logits[1], LOGITS));
        assert_memory_not_equal(logits[0], logits[1], sizeof(logits[0]));
        set_all(to, values);
        gs_assert_ok(gs_run_logits(to, logits[1], LOGITS));
        assert_memory_equal(logits[0], logits[1], sizeof(logits[0]));
        gs_run_close(to);
    }
}

/* Weights that are loaded or set in the middle of a run go on as a run that starts from them does. */
static void run__loaded_weights_start_the_optimiser_anew(void **state)
{
    static float values[MOST_TENSORS][MOST_NUMBERS];
    const char *const saved = gs_test_path(api_folder, "middle.safetensors");

    (void)state;
    for (int by_file = 0; by_file < 2; by_file++) {
        gs_train_options o = api_options();
        gs_run *const run = open_run(&o);
        run_epochs(run, 3);
        gs_assert_ok(gs_run_save(run, saved));
        get_all(run, values);
        run_epochs(run, 1);
        if (by_file)
            gs_assert_ok(gs_run_load(run, saved));
        else
            set_all(run, values);
        run_epochs(run, 2);
        gs_assert_ok(gs_run_save(run, gs_test_path(api_folder, "on.safetensors")));
        gs_run_close(run);

        o.init = saved;
        gs_run *const fresh = open_run(&o);
        run_epochs(fresh, 2);
        gs_assert_ok(gs_run_save(fresh, gs_test_path(api_folder, "fresh.safetensors")));
        gs_run_close(fresh);
        assert_same_tensors(gs_test_path(api_folder, "on.safetensors"), gs_test_path(api_folder, "fresh.safetensors"));
    }
}

/* One tensor is set: the others stay as they are trained, also where a device has them. */
static void run__setting_one_tensor_keeps_the_others(void **state)
{
    static float values[MOST_NUMBERS], before[LOGITS], after[LOGITS];
    gs_train_options o = api_options();
    gs_tensor_info t;

    (void)state;
    o.keep_logits = true;
    gs_run *const run = open_run(&o);
    run_epochs(run, 3);
    gs_assert_ok(gs_run_logits(run, before, LOGITS));
    gs_assert_ok(gs_run_tensor(run, 1, &t));
    gs_assert_ok(gs_run_get_tensor(run, 1, values, t.count));
    gs_assert_ok(gs_run_set_tensor(run, 1, values, t.count));
    gs_assert_ok(gs_run_logits(run, after, LOGITS));
    assert_memory_equal(before, after, sizeof(before));
    gs_run_close(run);
}

/* GIN's eps is not learned, so what it weighs is computed once: again when it is set. */
static void run__what_is_computed_once_follows_its_tensors(void **state)
{
    static float first[LOGITS], set[LOGITS], loaded[LOGITS];
    const char *const saved = gs_test_path(api_folder, "eps.safetensors");
    gs_train_options o = api_options();
    gs_tensor_info t = {.count = 0};
    uint32_t i = 0;

    (void)state;
    o.model = "gin";
    o.keep_logits = true;
    gs_run *run = open_run(&o);
    do
        gs_assert_ok(gs_run_tensor(run, i, &t));
    while (strstr(t.name, "eps") == NULL && ++i < gs_run_tensors(run));
    assert_true(strstr(t.name, "eps") != NULL && !t.learned && t.count == 1);
    gs_assert_ok(gs_run_logits(run, first, LOGITS));
    gs_assert_ok(gs_run_set_tensor(run, i, (float[1]){0.75f}, 1));
    gs_assert_ok(gs_run_logits(run, set, LOGITS));
    gs_assert_ok(gs_run_save(run, saved));
    gs_run_close(run);
    o.init = saved;
    run = open_run(&o);
    gs_assert_ok(gs_run_logits(run, loaded, LOGITS));
    gs_run_close(run);
    assert_memory_not_equal(first, set, sizeof(set));
    assert_memory_equal(set, loaded, sizeof(set));
}

/* What was evaluated before an epoch is not given out after it. */
static void run__results_are_of_the_weights_as_they_are(void **state)
{
    static float before[LOGITS], after[LOGITS], whole[LOGITS];
    const char *const npy = gs_test_path(api_folder, "as_they_are.npy");
    gs_train_options o = api_options();
    gs_train_report report, want;
    gs_evaluation e;

    (void)state;
    o.epochs = 2;
    o.logits = npy;
    gs_assert_ok(gs_train(api_store, &o, &want));
    read_npy(whole, npy);
    o.logits = NULL;
    o.keep_logits = true;
    gs_run *const run = open_run(&o);
    run_epochs(run, 1);
    gs_assert_ok(gs_run_evaluate(run, &e));
    gs_assert_ok(gs_run_logits(run, before, LOGITS));
    run_epochs(run, 1);
    gs_assert_ok(gs_run_logits(run, after, LOGITS));
    assert_memory_not_equal(before, after, sizeof(before));
    assert_memory_equal(after, whole, sizeof(after));
    gs_run_close(run);

    gs_run *const finished = open_run(&o);
    run_epochs(finished, 1);
    gs_assert_ok(gs_run_evaluate(finished, &e));
    run_epochs(finished, 1);
    gs_assert_ok(gs_run_finish(finished, &report));
    assert_true(report.loss == want.loss && report.loss != e.loss);
    gs_run_close(finished);
}

/* An evaluation in between throws away what was read ahead for the next epoch, and nothing else. */
static void run__evaluations_change_nothing(void **state)
{
    gs_train_options o = api_options();
    gs_evaluation before, after;
    gs_epoch_report e;

    (void)state;
    o.no_cache = true;
    o.save = gs_test_path(api_folder, "straight.safetensors");
    gs_assert_ok(gs_train(api_store, &o, NULL));
    o.save = NULL;
    gs_run *const run = open_run(&o);
    for (uint32_t k = 0; k < o.epochs; k++) {
        gs_assert_ok(gs_run_evaluate(run, &before));
        gs_assert_ok(gs_run_evaluate(run, &after));
        assert_true(before.loss == after.loss);
        gs_assert_ok(gs_run_epoch(run, &e));
        gs_assert_close(e.loss, before.loss, 1e-6); /* of the same weights */
        for (int i = 0; i < 3; i++)
            assert_true(e.accuracy[i] == before.accuracy[i]);
    }
    gs_assert_ok(gs_run_save(run, gs_test_path(api_folder, "looked.safetensors")));
    gs_run_close(run);
    api_assert_same_file(gs_test_path(api_folder, "straight.safetensors"),
                         gs_test_path(api_folder, "looked.safetensors"));
}

/* Whichever allocation fails, the answer is GS_ENOMEM with a line, and the run can be closed. */
static void run__any_allocation_may_fail(void **state)
{
    static float logits[LOGITS], numbers[MOST_NUMBERS];
    const char *const saved = gs_test_path(api_folder, "nomem.safetensors");
    int fine = 0; /* in a row: a failure that is made up for does not end the search */

    (void)state;
    for (uint64_t n = 1; fine < 3; n += 1 + n / 12) {
        gs_train_options o = api_options();
        gs_tensor_info t;
        gs_run *run = NULL;
        o.keep_logits = o.no_cache = true;
        gs_alloc_fail_nth(n);
        gs_status st = gs_run_open(&run, api_store, &o, GS_RUN_TRAIN);
        if (st == GS_OK && (st = gs_run_epoch(run, NULL)) == GS_OK &&
            (st = gs_run_logits(run, logits, LOGITS)) == GS_OK && (st = gs_run_tensor(run, 0, &t)) == GS_OK &&
            (st = gs_run_get_tensor(run, 0, numbers, t.count)) == GS_OK)
            st = gs_run_save(run, saved);
        gs_alloc_fail_nth(0);
        if (st != GS_OK && (st != GS_ENOMEM || *gs_last_error() == '\0'))
            fail_msg("allocation %d: %s, \"%s\"", (int)n, gs_status_text(st), gs_last_error());
        gs_run_close(run);
        assert_true(gs_path_exists(saved) == (st == GS_OK));
        unlink(saved);
        fine = st == GS_OK ? fine + 1 : 0;
    }
}

/* ---- states ---------------------------------------------------------------- */

static void run__strings_of_options_are_copied(void **state)
{
    char model[] = "gcn", device[] = "cpu", save[600];
    gs_train_options o = api_options();

    (void)state;
    snprintf(save, sizeof(save), "%s/copied.safetensors", api_folder);
    o.model = model;
    o.device = device;
    o.save = save;
    gs_run *const run = open_run(&o);
    memset(model, 'x', 3);
    memset(device, 'x', 3);
    memset(save, 'x', strlen(save));
    run_epochs(run, 1);
    gs_assert_ok(gs_run_finish(run, NULL));
    gs_run_close(run);
    assert_true(gs_path_exists(gs_test_path(api_folder, "copied.safetensors")));
}

static void run__a_finished_run_has_no_more_passes(void **state)
{
    static float logits[LOGITS];
    gs_train_options o = api_options();
    gs_evaluation e;

    (void)state;
    gs_run *const run = open_run(&o);
    gs_assert_fails(gs_run_logits(run, logits, LOGITS), GS_EINVAL, "set .keep_logits");
    gs_assert_fails(gs_run_logits(run, logits, LOGITS - 1), GS_EINVAL, "400 x 3 = 1200 numbers");
    run_epochs(run, 7); /* more than .epochs */
    gs_assert_ok(gs_run_finish(run, NULL));
    gs_assert_fails(gs_run_epoch(run, NULL), GS_EINVAL, "it is finished");
    gs_assert_fails(gs_run_evaluate(run, &e), GS_EINVAL, "it is finished");
    gs_assert_fails(gs_run_finish(run, NULL), GS_EINVAL, "it is finished");
    gs_assert_ok(gs_run_save(run, gs_test_path(api_folder, "after.safetensors")));
    gs_run_close(run);
}

static void run__a_stopped_run_is_closed_or_finished(void **state)
{
    static float before[LOGITS], after[LOGITS];
    const char *const saved = gs_test_path(api_folder, "stopped.safetensors");
    const char *const npy = gs_test_path(api_folder, "stopped.npy");
    volatile int stop = 0;
    gs_train_options o = api_options();

    (void)state;
    o.stop = &stop;
    o.save = saved;
    o.logits = npy;
    o.keep = "last";
    for (int finished = 0; finished < 2; finished++) {
        gs_run *const run = open_run(&o);
        run_epochs(run, 2);
        gs_assert_ok(gs_run_logits(run, before, LOGITS));
        stop = 1;
        gs_assert_fails(gs_run_epoch(run, NULL), GS_EINTERRUPTED, "interrupted in epoch 3 of 6");
        gs_assert_fails(gs_run_epoch(run, NULL), GS_EINVAL, "it was stopped");
        if (finished) {
            gs_assert_fails(gs_run_finish(run, NULL), GS_EINTERRUPTED, "interrupted in epoch 3 of 6; wrote ");
            gs_assert_fails(gs_run_finish(run, NULL), GS_EINVAL, "it is finished");
        }
        stop = 0;
        gs_run_close(run);
        assert_int_equal(gs_path_exists(saved), finished);
        assert_int_equal(gs_path_exists(npy), finished);
    }
    o.save = o.logits = NULL;
    o.keep_logits = true;
    o.init = saved;
    gs_run *const again = open_run(&o);
    gs_assert_ok(gs_run_logits(again, after, LOGITS));
    gs_run_close(again);
    assert_memory_equal(before, after, sizeof(before));
}

static void run__prediction_has_no_epochs(void **state)
{
    static float logits[LOGITS], whole[LOGITS];
    const char *const weights = gs_test_path(api_folder, "p.safetensors");
    const char *const npy = gs_test_path(api_folder, "p.npy");
    gs_train_options o = api_options();
    gs_run *run = open_run(&o);

    (void)state;
    run_epochs(run, 2);
    gs_assert_ok(gs_run_save(run, weights));
    gs_run_close(run);
    gs_assert_ok(gs_predict(api_store, &o, weights, npy, NULL));
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_PREDICT));
    gs_assert_ok(gs_run_load(run, weights));
    gs_assert_ok(gs_run_logits(run, logits, LOGITS));
    gs_assert_fails(gs_run_epoch(run, NULL), GS_EINVAL, "GS_RUN_PREDICT");
    gs_run_close(run);
    read_npy(whole, npy);
    assert_memory_equal(logits, whole, sizeof(whole));
}

/* ---- progress -------------------------------------------------------------- */

typedef struct watcher {
    const gs_run *run;
    atomic_bool over;
    uint32_t seen, wrong; /* looks at a pass under way; at what cannot be */
} watcher;

static void *watch(void *context)
{
    watcher *const w = context;
    gs_progress p;

    while (!atomic_load(&w->over)) {
        usleep(20); /* the processor is the run's */
        if (gs_run_progress(w->run, &p) != GS_OK)
            w->wrong++;
        w->seen += p.tasks_done > 0 && p.tasks_done < p.tasks;
        w->wrong += p.epoch > 40 || p.tasks_done > 1u << 20;
    }
    return NULL;
}

static void run__progress_counts_to_what_is_planned(void **state)
{
    gs_train_options o = api_options();
    watcher w = {0};
    pthread_t thread;
    gs_progress p;
    gs_plan_report plan;

    (void)state;
    o.no_cache = true;
    o.epochs = 40;
    gs_run *const run = open_run(&o);
    gs_assert_ok(gs_run_plan(run, &plan));
    w.run = run;
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    for (uint32_t k = 1; k <= o.epochs; k++) {
        gs_assert_ok(gs_run_epoch(run, NULL));
        gs_assert_ok(gs_run_progress(run, &p));
        assert_string_equal(p.pass, "train");
        assert_int_equal(p.epoch, k);
        assert_int_equal(p.epochs, 40);
        assert_int_equal(p.tasks_done, p.tasks);
        assert_int_equal(p.bytes_done, p.bytes);
        for (uint32_t i = 0; i < plan.passes; i++)
            if (strcmp(plan.pass[i].name, "train") == 0)
                assert_true(p.tasks == plan.pass[i].tasks &&
                            p.bytes == plan.pass[i].read_bytes + plan.pass[i].written_bytes && p.bytes > 0);
    }
    atomic_store(&w.over, true);
    pthread_join(thread, NULL);
    assert_int_equal(w.wrong, 0);
    gs_run_close(run);
}

/* ---- opening ---------------------------------------------------------------- */

/* Compiling and planning hear it. */
static void run__opening_stops_when_asked(void **state)
{
    static const volatile int stop = 1;
    gs_train_options o = api_options();
    gs_plan_report plan;
    gs_run *run = NULL;

    (void)state;
    o.stop = &stop;
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINTERRUPTED, "interrupted");
    assert_null(run);
    gs_assert_fails(gs_plan_train(&plan, api_store, &o), GS_EINTERRUPTED, "interrupted");
}

/* What .on_open was told, one after the other without repetitions, and the run that it has. */
typedef struct opening {
    char said[160];
    const char *last;
    const gs_run *run;
} opening;

static void hear(void *context, const char *what, const gs_run *run)
{
    opening *const o = context;
    gs_progress p;

    if (o->last == NULL || strcmp(o->last, what) != 0)
        snprintf(o->said + strlen(o->said), sizeof(o->said) - strlen(o->said), "%s;", what);
    o->last = what;
    o->run = run;
    if (run != NULL)
        gs_assert_ok(gs_run_progress(run, &p));
}

static void run__opening_says_what_it_is_at(void **state)
{
    static const char steps[] = "opening the store;planning;preparing the run;starting the run;";
    gs_train_options o = api_options();
    opening heard = {{0}, NULL, NULL};
    gs_run *other = NULL;

    (void)state;
    o.on_open = hear;
    o.context = &heard;
    gs_run *const run = open_run(&o);
    assert_string_equal(heard.said, steps);
    assert_ptr_equal(heard.run, run);
    gs_run_close(run);
    heard = (opening){{0}, NULL, NULL};
    o.init = "none.safetensors"; /* which is opened last */
    gs_assert_fails(gs_run_open(&other, api_store, &o, GS_RUN_TRAIN), GS_ENOTFOUND, "none.safetensors");
    assert_memory_equal(heard.said, steps, sizeof(steps) - 1);
    assert_null(heard.run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__opening_stops_when_asked),
        cmocka_unit_test(run__epochs_one_by_one_are_gs_train),
        cmocka_unit_test(run__logits_give_the_accuracies),
        cmocka_unit_test(run__tensors_have_the_files_names_and_shapes),
        cmocka_unit_test(run__tensors_carry_a_model_to_another_run),
        cmocka_unit_test(run__loaded_weights_start_the_optimiser_anew),
        cmocka_unit_test(run__setting_one_tensor_keeps_the_others),
        cmocka_unit_test(run__what_is_computed_once_follows_its_tensors),
        cmocka_unit_test(run__results_are_of_the_weights_as_they_are),
        cmocka_unit_test(run__evaluations_change_nothing),
        cmocka_unit_test(run__any_allocation_may_fail),
        cmocka_unit_test(run__strings_of_options_are_copied),
        cmocka_unit_test(run__a_finished_run_has_no_more_passes),
        cmocka_unit_test(run__a_stopped_run_is_closed_or_finished),
        cmocka_unit_test(run__prediction_has_no_epochs),
        cmocka_unit_test(run__progress_counts_to_what_is_planned),
        cmocka_unit_test(run__opening_says_what_it_is_at),
    };
    return cmocka_run_group_tests(tests, api_graph_make, api_graph_remove);
}
