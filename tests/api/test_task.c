/* What is learned: several labels, numbers, weighted classes, each against its formula in float64 on the run's own
 * logits, on each kind of device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/support.h"

#include "api_graph.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/npy.h"
#include "train/run_internal.h" /* how much memory ranking has */

#define N API_VERTICES
#define MOST 5u /* columns */

static float labels[N][MOST]; /* NaN: not known */
static int64_t classes[N];
static uint8_t split_of[N]; /* 1 train, 2 valid, 3 test */
static uint32_t columns;

/* ---- the store ------------------------------------------------------------ */

static void read_all(void *out, const char *name, uint64_t bytes_a_row, uint64_t *rows)
{
    gs_npy npy = {.fd = -1};
    const char *const path = gs_test_path(api_folder, "graph/%s", name);
    gs_assert_ok(gs_npy_open(&npy, path));
    *rows = npy.shape[0];
    assert_true(*rows <= N && gs_dtype_bytes(npy.dtype) == bytes_a_row);
    gs_assert_ok(gs_npy_read_rows(&npy, out, 0, *rows, path));
    gs_npy_close(&npy);
}

static void read_graph(void)
{
    static const char *const files[] = {"train_idx.npy", "valid_idx.npy", "test_idx.npy"};
    int64_t ids[N];
    uint64_t rows;

    read_all(classes, "labels.npy", 8, &rows);
    for (uint8_t s = 0; s < 3; s++) {
        read_all(ids, files[s], 8, &rows);
        for (uint64_t i = 0; i < rows; i++)
            split_of[ids[i]] = s + 1;
    }
}

/* Labels that follow the class, some of them not; every 13th is not known. */
static void make_labels(bool numbers, uint32_t width)
{
    columns = width;
    for (uint32_t v = 0; v < N; v++)
        for (uint32_t c = 0; c < width; c++) {
            const uint32_t noise = (v * 2654435761u + c * 40503u) >> 16 & 255;
            const bool there = (classes[v] == c % API_CLASSES) != (noise < 40);
            labels[v][c] = numbers ? (float)there * 3 - (float)c + (float)noise / 100 : (float)there;
            if ((v * width + c) % 13 == 5 && width > 1)
                labels[v][c] = NAN;
        }
}

static const char *make_store(const char *name, uint32_t parts)
{
    const char *const path = gs_test_path(api_folder, "graph/labels.npy");
    const char *const store = gs_test_path(api_folder, "%s", name);
    gs_partition_options p;
    gs_outfile o = GS_OUTFILE_NONE;
    uint64_t at;

    gs_assert_ok(gs_npy_create(&o, &at, path, GS_F32, N, columns == 1 ? 0 : columns));
    for (uint32_t v = 0; v < N; v++)
        gs_assert_ok(gs_outfile_write(&o, labels[v], columns * sizeof(float), at + v * columns * sizeof(float)));
    gs_assert_ok(gs_outfile_finish(&o));
    gs_outfile_abandon(&o);
    gs_partition_options_init(&p);
    p.parts = parts;
    p.method = "random";
    p.force = true;
    gs_assert_ok(gs_partition(gs_test_path(api_folder, "graph"), store, &p, NULL));
    return store;
}

/* ---- formulas ------------------------------------------------------------- */

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static double loss_of_labels(const float *z, const float *weight)
{
    double sum = 0, known = 0;
    for (uint32_t v = 0; v < N; v++)
        for (uint32_t c = 0; c < columns && split_of[v] == 1; c++) {
            const double x = (double)z[v * columns + c], y = (double)labels[v][c];
            if (isnan(y))
                continue;
            sum += (weight == NULL ? 1 : (double)weight[c]) * y * softplus(-x) + (1 - y) * softplus(x);
            known++;
        }
    return sum / known;
}

static double loss_of_classes(const float *z, const double *weight, double smoothing)
{
    double sum = 0, mass = 0;
    for (uint32_t v = 0; v < N; v++) {
        const float *const row = z + v * API_CLASSES;
        double total = 0;
        if (split_of[v] != 1)
            continue;
        for (uint32_t c = 0; c < API_CLASSES; c++)
            total += exp((double)row[c]);
        for (uint32_t c = 0; c < API_CLASSES; c++) {
            const double q = smoothing / API_CLASSES + (c == (uint32_t)classes[v] ? 1 - smoothing : 0);
            sum += q * weight[c] * (log(total) - (double)row[c]);
        }
        mass += weight[classes[v]];
    }
    return sum / mass;
}

/* Pairs in order, ties half; and the precision at each positive with all of at least its score. */
static void areas(double *auc, double *precision, const float *z, uint32_t c, uint8_t split)
{
    double pairs = 0, ordered = 0, there = 0, sum = 0;
    for (uint32_t i = 0; i < N; i++) {
        double at_least = 0, found = 0;
        if (split_of[i] != split || isnan(labels[i][c]) || labels[i][c] == 0)
            continue;
        there++;
        for (uint32_t k = 0; k < N; k++) {
            if (split_of[k] != split || isnan(labels[k][c]))
                continue;
            const float a = z[i * columns + c], b = z[k * columns + c];
            at_least += b >= a;
            found += b >= a && labels[k][c] == 1;
            pairs += labels[k][c] == 0;
            ordered += labels[k][c] == 0 ? (a > b) + (a == b) / 2.0 : 0;
        }
        sum += found / at_least;
    }
    *auc = ordered / pairs;
    *precision = sum / there;
}

static void check_label_figures(const gs_task_figures *f, const float *z, bool ranked)
{
    for (uint8_t s = 1; s <= 3; s++) {
        double all[3] = {0}, macro = 0, auc = 0, precision = 0;
        for (uint32_t c = 0; c < columns; c++) {
            double n[3] = {0}, a, p;
            for (uint32_t v = 0; v < N; v++) {
                const bool known = split_of[v] == s && !isnan(labels[v][c]), found = z[v * columns + c] > 0;
                n[0] += known && found && labels[v][c] == 1;
                n[1] += known && found && labels[v][c] == 0;
                n[2] += known && !found && labels[v][c] == 1;
            }
            for (int k = 0; k < 3; k++)
                all[k] += n[k];
            macro += 2 * n[0] / fmax(2 * n[0] + n[1] + n[2], 1) / columns;
            areas(&a, &p, z, c, s);
            auc += a / columns;
            precision += p / columns;
        }
        gs_assert_close(f->micro_f1[s - 1], 2 * all[0] / (2 * all[0] + all[1] + all[2]), 1e-12);
        gs_assert_close(f->macro_f1[s - 1], macro, 1e-12);
        assert_true(isnan(f->mse[s - 1]) && isnan(f->r2[s - 1]));
        if (!ranked)
            continue;
        gs_assert_close(f->roc_auc[s - 1], auc, 1e-12);
        gs_assert_close(f->average_precision[s - 1], precision, 1e-12);
    }
}

static void check_number_figures(const gs_task_figures *f, const float *z)
{
    for (uint8_t s = 1; s <= 3; s++) {
        double mse = 0, mae = 0, r2 = 0;
        for (uint32_t c = 0; c < columns; c++) {
            double n = 0, mean = 0, squared = 0, absolute = 0, spread = 0;
            for (uint32_t v = 0; v < N; v++)
                if (split_of[v] == s && !isnan(labels[v][c])) {
                    const double off = (double)z[v * columns + c] - (double)labels[v][c];
                    n++;
                    mean += (double)labels[v][c];
                    squared += off * off;
                    absolute += fabs(off);
                }
            for (uint32_t v = 0; v < N; v++)
                if (split_of[v] == s && !isnan(labels[v][c]))
                    spread += pow((double)labels[v][c] - mean / n, 2);
            mse += squared / n / columns;
            mae += absolute / n / columns;
            r2 += (1 - squared / spread) / columns;
        }
        gs_assert_close(f->mse[s - 1], mse, 1e-10);
        gs_assert_close(f->mae[s - 1], mae, 1e-10);
        gs_assert_close(f->r2[s - 1], r2, 1e-8);
        assert_true(isnan(f->micro_f1[s - 1]) && isnan(f->roc_auc[s - 1]));
    }
}

/* The last line of the file of metrics says the same, to the ten digits that it has. */
static void check_metrics(const char *path, const char *figure, const double want[3])
{
    static const char *const split[] = {"train", "valid", "test"};
    char *text, *last = NULL;
    uint64_t bytes;

    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        last = line;
    for (int s = 0; s < 3; s++) {
        char key[64];
        double got;
        snprintf(key, sizeof(key), "\"%s_%s\": ", split[s], figure);
        const char *const at = last == NULL ? NULL : strstr(last, key);
        if (at == NULL || sscanf(at + strlen(key), "%lf", &got) != 1)
            fail_msg("%s: no %s", path, key);
        else
            gs_assert_close(got, want[s], 1e-9);
    }
    gs_free(text);
}

/* ---- the gradient --------------------------------------------------------- */

/* A step of SGD at rate 1 is the gradient; differences of the loss say what it should be. */
static void check_gradient(const char *store, gs_train_options o)
{
    static float before[64], after[64];
    gs_run *run = NULL;
    gs_tensor_info info;
    gs_evaluation up, down;
    double most = 0;

    o.optimizer = "sgd";
    o.lr = 1;
    o.layers = 1;
    gs_assert_ok(gs_run_open(&run, store, &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_tensor(run, gs_run_tensors(run) - 1, &info));
    assert_true(info.count <= 64);
    gs_assert_ok(gs_run_get_tensor(run, gs_run_tensors(run) - 1, before, info.count));
    gs_assert_ok(gs_run_epoch(run, NULL));
    gs_assert_ok(gs_run_get_tensor(run, gs_run_tensors(run) - 1, after, info.count));
    gs_run_close(run);
    gs_assert_ok(gs_run_open(&run, store, &o, GS_RUN_TRAIN));
    for (uint32_t k = 0; k < info.count; k++)
        most = fmax(most, fabs((double)before[k] - (double)after[k]));
    for (uint32_t k = 0; k < info.count; k += 1 + (uint32_t)info.count / 4) {
        const float kept = before[k];
        before[k] = kept + 0.01f;
        gs_assert_ok(gs_run_set_tensor(run, gs_run_tensors(run) - 1, before, info.count));
        gs_assert_ok(gs_run_evaluate(run, &up));
        before[k] = kept - 0.01f;
        gs_assert_ok(gs_run_set_tensor(run, gs_run_tensors(run) - 1, before, info.count));
        gs_assert_ok(gs_run_evaluate(run, &down));
        before[k] = kept;
        const double slope = (up.loss - down.loss) / 0.02, got = (double)kept - (double)after[k];
        if (!(fabs(slope - got) <= 2e-3 * most))
            fail_msg("%s: weight %u: got %.9g, differences say %.9g of %.9g", info.name, k, got, slope, most);
    }
    gs_run_close(run);
}

/* ---- tests ---------------------------------------------------------------- */

static float logits[N * MOST];

static gs_run *open_run(const char *store, const gs_train_options *o)
{
    gs_run *run = NULL;
    gs_assert_ok(gs_run_open(&run, store, o, GS_RUN_TRAIN));
    return run;
}

/* Nothing kept in memory, and nothing pruned: the same losses and figures. */
static void check_streams(const char *store, gs_train_options o)
{
    gs_train_report kept, streamed, whole;

    o.epochs = 3;
    gs_assert_ok(gs_train(store, &o, &kept));
    o.no_cache = true;
    gs_assert_ok(gs_train(store, &o, &streamed));
    o.no_prune = true;
    gs_assert_ok(gs_train(store, &o, &whole));
    assert_true(streamed.read_bytes > kept.read_bytes);
    for (int k = 0; k < 2; k++) {
        const gs_train_report *const r = k == 0 ? &streamed : &whole;
        gs_assert_close(r->loss, kept.loss, 1e-5);
        for (int s = 0; s < 3; s++)
            if (isnan(kept.figures.mse[s]))
                gs_assert_close(r->figures.roc_auc[s], kept.figures.roc_auc[s], 1e-3);
            else
                gs_assert_close(r->figures.mse[s], kept.figures.mse[s], 1e-5);
    }
}

static void task__several_labels(void **state)
{
    gs_train_options o = api_options();
    gs_epoch_report e;
    gs_evaluation now;

    (void)state;
    make_labels(false, MOST);
    o.keep_logits = true;
    for (uint32_t parts = 1; parts <= 3; parts += 2) {
        const char *const store = make_store("labels", parts);
        gs_run *const run = open_run(store, &o);
        for (int k = 0; k < 3; k++) {
            run->session->memory.ranking = k == 0 ? 8u << 20 : 1; /* then scores are taken one by one */
            gs_assert_ok(gs_run_evaluate(run, &now));
            gs_assert_ok(gs_run_logits(run, logits, N * columns));
            gs_assert_close(now.loss, loss_of_labels(logits, NULL), 1e-6);
            check_label_figures(&now.figures, logits, true);
            assert_true(isnan(now.accuracy[0]));
            assert_string_equal(now.figures.task, "multilabel");
            gs_assert_ok(gs_run_epoch(run, &e));
            gs_assert_close(e.loss, now.loss, 1e-5);
            check_label_figures(&e.figures, logits, false);
            assert_true(isnan(e.figures.roc_auc[0]));
        }
        gs_run_close(run);
        check_gradient(store, o);
        if (parts > 1)
            check_streams(store, o);
    }
}

/* Nothing is said of a split of which no label is known, whatever is known of the others. */
static void task__a_split_without_labels_has_no_figures(void **state)
{
    gs_train_options o = api_options();
    gs_evaluation now;

    (void)state;
    make_labels(false, MOST);
    for (uint32_t v = 0; v < N; v++)
        for (uint32_t c = 0; c < MOST && split_of[v] == 3; c++)
            labels[v][c] = NAN;
    gs_run *const run = open_run(make_store("labels", 2), &o);
    gs_assert_ok(gs_run_evaluate(run, &now));
    assert_true(now.figures.micro_f1[0] >= 0 && now.figures.micro_f1[1] >= 0);
    assert_true(isnan(now.figures.micro_f1[2]) && isnan(now.figures.macro_f1[2]));
    gs_run_close(run);
}

static void task__weights_of_labels(void **state)
{
    static const float weight[MOST] = {1, 2.5f, 0, 0.5f, 4};
    gs_train_options o = api_options();
    gs_evaluation now;

    (void)state;
    make_labels(false, MOST);
    const char *const store = make_store("labels", 2);
    o.keep_logits = true;
    o.class_weights = "1,2.5,0,0.5,4";
    gs_run *run = open_run(store, &o);
    gs_assert_ok(gs_run_evaluate(run, &now));
    gs_assert_ok(gs_run_logits(run, logits, N * columns));
    gs_assert_close(now.loss, loss_of_labels(logits, weight), 1e-6);
    gs_run_close(run);
    check_gradient(store, o);

    float balanced[MOST];
    for (uint32_t c = 0; c < MOST; c++) {
        double there = 0, known = 0;
        for (uint32_t v = 0; v < N; v++)
            if (split_of[v] == 1 && !isnan(labels[v][c])) {
                known++;
                there += (double)labels[v][c];
            }
        balanced[c] = (float)((known - there) / there);
    }
    o.class_weights = "balanced";
    run = open_run(store, &o);
    gs_assert_ok(gs_run_evaluate(run, &now));
    gs_assert_ok(gs_run_logits(run, logits, N * columns));
    gs_assert_close(now.loss, loss_of_labels(logits, balanced), 1e-6);
    gs_run_close(run);
}

static void task__numbers(void **state)
{
    gs_train_options o = api_options();
    gs_train_report report;
    gs_epoch_report e;
    gs_evaluation now;

    (void)state;
    o.keep_logits = true;
    o.metrics = gs_test_path(api_folder, "metrics.jsonl");
    for (uint32_t width = 1; width <= 2; width++) {
        make_labels(true, width);
        const char *const store = make_store("numbers", 1 + width);
        gs_run *const run = open_run(store, &o);
        double least = INFINITY;
        for (int k = 0; k < 3; k++) {
            gs_assert_ok(gs_run_evaluate(run, &now));
            gs_assert_ok(gs_run_logits(run, logits, N * width));
            check_number_figures(&now.figures, logits);
            if (width == 1) /* all are known, so the loss is their mean */
                gs_assert_close(now.loss, now.figures.mse[0], 1e-9);
            gs_assert_ok(gs_run_epoch(run, &e));
            gs_assert_close(e.figures.mse[1], now.figures.mse[1], 1e-5);
        }
        check_metrics(o.metrics, "mae", e.figures.mae);
        gs_run_close(run);
        check_gradient(store, o);
        check_streams(store, o);
        o.keep = "best"; /* the least error of validation, at a rate that overshoots */
        o.lr = 0.5;
        gs_run *const best = open_run(store, &o);
        for (uint32_t k = 0; k < 12; k++) {
            gs_assert_ok(gs_run_epoch(best, &e));
            least = fmin(least, e.figures.mse[1]);
        }
        gs_assert_ok(gs_run_evaluate(best, &now));
        least = fmin(least, now.figures.mse[1]);
        gs_assert_ok(gs_run_finish(best, &report));
        gs_assert_close(report.figures.mse[1], least, 1e-6);
        gs_run_close(best);
        o.keep = "last";
        o.lr = 0.05;
    }
}

static double huber(double d) { return fabs(d) <= 1 ? d * d / 2 : fabs(d) - 0.5; }

/* Each mean of what is known, and its slope; how a run is judged does not depend on it. */
static void task__losses_of_numbers(void **state)
{
    static const struct {
        const char *name;
        double (*of)(double d);
    } losses[] = {{"huber", huber}};
    gs_train_options o = api_options();
    gs_evaluation now;

    (void)state;
    o.keep_logits = true;
    make_labels(true, 2);
    const char *const store = make_store("numbers", 2);
    for (size_t k = 0; k < sizeof(losses) / sizeof(losses[0]); k++) {
        double sum = 0, known = 0;
        o.loss = losses[k].name;
        gs_run *const run = open_run(store, &o);
        gs_assert_ok(gs_run_evaluate(run, &now));
        gs_assert_ok(gs_run_logits(run, logits, N * columns));
        for (uint32_t i = 0; i < N * columns; i++)
            if (split_of[i / columns] == 1 && !isnan(labels[i / columns][i % columns])) {
                sum += losses[k].of((double)logits[i] - (double)labels[i / columns][i % columns]);
                known++;
            }
        gs_assert_close(now.loss, sum / known, 1e-6);
        check_number_figures(&now.figures, logits);
        gs_run_close(run);
        check_gradient(store, o);
    }
}

static void task__weights_of_classes_and_smoothing(void **state)
{
    double weight[API_CLASSES] = {1, 3, 0.25}, count[API_CLASSES] = {0}, n = 0;
    gs_train_options o = api_options();
    gs_evaluation now;

    (void)state;
    o.keep_logits = true;
    for (uint32_t v = 0; v < N; v++)
        if (split_of[v] == 1) {
            count[classes[v]]++;
            n++;
        }
    for (int k = 0; k < 4; k++) {
        o.class_weights = k == 1 ? "1,3,0.25" : k == 3 ? "balanced" : NULL;
        o.label_smoothing = k > 0 ? 0.2 : 0;
        for (int c = 0; c < (int)API_CLASSES; c++)
            weight[c] = k == 1 ? (double[]){1, 3, 0.25}[c] : k == 3 ? (double)(float)(n / (API_CLASSES * count[c])) : 1;
        gs_run *const run = open_run(api_store, &o);
        gs_assert_ok(gs_run_evaluate(run, &now));
        run->report.loss = -1; /* a pass would say anew what it is */
        gs_assert_ok(gs_run_logits(run, logits, N * API_CLASSES));
        assert_true(run->report.loss == -1);
        gs_assert_close(now.loss, loss_of_classes(logits, weight, o.label_smoothing), 1e-6);
        assert_true(now.accuracy[0] > 0);
        gs_run_close(run);
        if (k > 0)
            check_gradient(api_store, o);
    }
}

static void task__contradictions(void **state)
{
    gs_train_options o = api_options();
    gs_run *run = NULL;
    gs_evaluation now;

    (void)state;
    o.task = "multilabel";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, "are for classify");
    o.task = "rank";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, ".task rank");
    o.task = NULL;
    o.loss = "huber";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL,
                    ".loss huber: is of the task regress, and these labels are for classify");
    o.loss = NULL;
    o.task = "regress"; /* of the number that a class has */
    o.keep_logits = true;
    gs_assert_ok(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN));
    columns = 1;
    for (uint32_t v = 0; v < N; v++)
        labels[v][0] = (float)classes[v];
    gs_assert_ok(gs_run_evaluate(run, &now));
    gs_assert_ok(gs_run_logits(run, logits, N));
    check_number_figures(&now.figures, logits);
    gs_run_close(run);
    o.class_weights = "1,2,3";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, "numbers have no classes");
    o.task = NULL;
    o.class_weights = "1,2";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, "another number of weights");
    o.class_weights = "heavy";
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, "no list");
    o.class_weights = NULL;
    o.label_smoothing = 1;
    gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, ".label_smoothing 1");
    make_labels(true, 2);
    const char *const store = make_store("numbers", 2);
    o.label_smoothing = 0.1;
    gs_assert_fails(gs_run_open(&run, store, &o, GS_RUN_TRAIN), GS_EINVAL, "these labels are for regress");
    o.label_smoothing = 0;
    o.task = "classify";
    gs_assert_fails(gs_run_open(&run, store, &o, GS_RUN_TRAIN), GS_EINVAL, "partition with .task classify");
}

static int make(void **state)
{
    const int failed = api_graph_make(state);
    read_graph();
    (void)remove(gs_test_path(api_folder, "graph/meta.json")); /* which speaks of other labels */
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(task__several_labels),
        cmocka_unit_test(task__a_split_without_labels_has_no_figures),
        cmocka_unit_test(task__weights_of_labels),
        cmocka_unit_test(task__numbers),
        cmocka_unit_test(task__losses_of_numbers),
        cmocka_unit_test(task__weights_of_classes_and_smoothing),
        cmocka_unit_test(task__contradictions),
    };
    return cmocka_run_group_tests(tests, make, api_graph_remove);
}
