/* Checkpoints: a run that goes on from one has the bits of a run that was never interrupted, no other run goes on from
 * it, and what is damaged is passed over. */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"

#include "api_graph.h"
#include "base/clock.h"
#include "base/file.h"
#include "train/run_internal.h" /* when one was written last */

#define EPOCHS 6u
#define HALF 3u
/* By so much what the process holds besides its plan may be more the next time; sanitizers keep what was given back. */
#ifdef __SANITIZE_ADDRESS__
#define PROCESS_VARIES (64u << 20)
#else
#define PROCESS_VARIES (8u << 20)
#endif

/* On the CPU all, on other devices those that their memory has a part in. */
static bool few_cases(void) { return getenv("GS_TEST_DEVICE") != NULL && !gs_test_all(); }

static const char *fresh_folder(void)
{
    static unsigned made;
    return gs_test_path(api_folder, "checkpoints-%u", made++);
}

static gs_run *open_run(const gs_train_options *o)
{
    gs_run *run = NULL;
    gs_assert_ok(gs_run_open(&run, api_store, o, GS_RUN_TRAIN));
    return run;
}

static void run_epochs(gs_run *run, gs_epoch_report *e, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        gs_assert_ok(gs_run_epoch(run, &e[k]));
}

static gs_checkpoint_report report_of(const gs_run *run)
{
    gs_checkpoint_report c;
    gs_assert_ok(gs_run_checkpoints(run, &c));
    return c;
}

static void assert_same_epochs(const gs_epoch_report *a, const gs_epoch_report *b, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        assert_int_equal(a[k].epoch, b[k].epoch);
        assert_memory_equal(&a[k].loss, &b[k].loss, sizeof(a[k].loss));
        for (int i = 0; i < 3; i++)
            assert_true(a[k].accuracy[i] == b[k].accuracy[i] ||
                        (isnan(a[k].accuracy[i]) && isnan(b[k].accuracy[i])));
    }
}

/* ---- the same bits --------------------------------------------------------- */

/* Trains HALF epochs, goes on from there in another run, and compares with a run of all epochs. */
static void go_on(gs_train_options o)
{
    gs_epoch_report whole[EPOCHS], parts[EPOCHS];
    const char *const files[2] = {gs_test_path(api_folder, "whole.st"), gs_test_path(api_folder, "parts.st")};
    const char *const folder = fresh_folder();

    o.epochs = EPOCHS;
    gs_run *run = open_run(&o);
    run_epochs(run, whole, EPOCHS);
    gs_assert_ok(gs_run_save(run, files[0]));
    gs_run_close(run);

    o.checkpoint = folder;
    o.checkpoint_every = "1000";
    run = open_run(&o);
    run_epochs(run, parts, HALF);
    gs_assert_ok(gs_run_checkpoint(run));
    assert_int_equal(report_of(run).epoch, HALF);
    gs_run_close(run); /* as if it were killed: nothing more is written */

    o.resume = folder;
    o.checkpoint = NULL;
    run = open_run(&o);
    assert_string_equal(report_of(run).note, "");
    assert_int_equal(report_of(run).resumed, HALF);
    run_epochs(run, parts + HALF, EPOCHS - HALF);
    gs_assert_ok(gs_run_save(run, files[1]));
    gs_run_close(run);
    assert_same_epochs(parts, whole, EPOCHS);
    api_assert_same_file(files[0], files[1]);
    gs_assert_ok(gs_remove_tree(folder));
}

static void checkpoint__goes_on_with_the_same_bits(void **state)
{
    /* gin has running means and variances, and counters; sgd has no state; dropout is drawn by epoch */
    static const struct {
        const char *model, *optimizer;
        double dropout, weight_decay;
        uint32_t eval_every;
        bool no_cache;
    } runs[] = {
        {"gcn", "adam", 0.4, 0, 1, false}, {"gcn", "adam", 0, 0.01, 1, true}, {"gin", "adam", 0.3, 0, 2, false},
        {"gin", "sgd", 0.3, 0, 0, true},   {"sage", "adam", 0.5, 0, 4, true}, {"gat", "adam", 0.2, 0, 3, false},
        {"rgcn", "sgd", 0, 0.1, 1, false},
    };

    (void)state;
    for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
        gs_train_options o = api_options();
        if (!gs_test_takes(k, 3)) /* of each optimiser, kept and not */
            continue;
        o.model = runs[k].model;
        o.optimizer = runs[k].optimizer;
        o.dropout = runs[k].dropout;
        o.input_dropout = runs[k].dropout / 2;
        o.weight_decay = runs[k].weight_decay;
        o.eval_every = runs[k].eval_every;
        o.no_cache = runs[k].no_cache;
        go_on(o);
    }
}

/* Budgets of its own, and those that are not given: what is free is another amount each time. */
static void checkpoint__goes_on_within_small_budgets(void **state)
{
    gs_train_options o = api_options();
    gs_plan_report p;

    (void)state;
    o.dropout = 0.3;
    o.hidden = 32;
    o.layers = 3;
    gs_assert_ok(gs_plan_train(&p, api_store, &o));
    o.host_memory = p.host_bytes + PROCESS_VARIES;
    go_on(o);
}

/* Weights that were set are a state, too: the optimiser begins anew there. */
static void checkpoint__has_weights_that_were_set(void **state)
{
    gs_train_options o = api_options();
    gs_epoch_report e[EPOCHS], again[EPOCHS];
    const char *const weights = gs_test_path(api_folder, "set.st");

    (void)state;
    o.checkpoint = fresh_folder();
    gs_run *run = open_run(&o);
    run_epochs(run, e, 1);
    gs_assert_ok(gs_run_save(run, weights));
    run_epochs(run, e, 1);
    gs_assert_ok(gs_run_load(run, weights));
    gs_assert_ok(gs_run_checkpoint(run));
    run_epochs(run, e, 3);
    gs_run_close(run);
    o.resume = o.checkpoint;
    run = open_run(&o);
    run_epochs(run, again, 3);
    assert_same_epochs(again, e, 3);
    gs_run_close(run);
}

/* ---- when, and how many ---------------------------------------------------- */

static bool is_there(const char *folder, uint32_t epoch)
{
    return gs_path_exists(gs_test_path(folder, "epoch-%010u/checkpoint.json", epoch));
}

/* Bytes of the checkpoint's sections, as the folder has them. */
static uint64_t section_bytes(const char *folder, uint32_t epoch)
{
    static const char *const end = ".safetensors";
    const char *const path = gs_test_path(folder, "epoch-%010u", epoch);
    DIR *const dir = opendir(path);
    uint64_t bytes = 0;
    struct stat s;

    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strlen(e->d_name) > strlen(end) && strcmp(e->d_name + strlen(e->d_name) - strlen(end), end) == 0) {
            assert_int_equal(stat(gs_test_path(path, "%s", e->d_name), &s), 0);
            bytes += (uint64_t)s.st_size;
        }
    closedir(dir);
    return bytes;
}

/* Of a run that has gone on for long, and has written one just now: the last epoch has another, whenever it ends. */
static void checkpoint__the_last_epoch_has_one(void **state)
{
    gs_train_options o = api_options();
    gs_epoch_report e[HALF];

    (void)state;
    o.epochs = HALF;
    o.checkpoint = fresh_folder();
    const double began = gs_now();
    gs_run *const run = open_run(&o);
    run->saver.pace.began = began - 1e6;
    run->saver.pace.last = began;
    for (uint32_t k = 0; k < HALF; k++) {
        assert_int_equal(report_of(run).written, 0);
        run_epochs(run, &e[k], 1);
    }
    const gs_checkpoint_report c = report_of(run);
    assert_int_equal(c.written, 1);
    assert_int_equal(c.epoch, HALF);
    assert_int_equal(c.bytes, section_bytes(o.checkpoint, HALF));
    assert_true(c.seconds > 0 && c.seconds < gs_now() - began);
    gs_run_close(run);
}

static void checkpoint__keeps_the_last_two(void **state)
{
    gs_train_options o = api_options();
    gs_epoch_report e[EPOCHS];

    (void)state;
    o.checkpoint = fresh_folder();
    o.checkpoint_every = "2";
    gs_run *const run = open_run(&o);
    for (uint32_t k = 1; k <= EPOCHS; k++) {
        run_epochs(run, e, 1);
        for (uint32_t i = 1; i <= k; i++)
            assert_int_equal(is_there(o.checkpoint, i), i % 2 == 0 && i + 3 >= k);
    }
    const gs_checkpoint_report c = report_of(run);
    assert_int_equal(c.written, 3);
    assert_int_equal(c.epoch, 6);
    assert_true(c.bytes > 0 && c.seconds > 0 && c.failed == 0);
    assert_string_equal(c.folder, o.checkpoint);
    gs_run_close(run);
}

static void checkpoint__is_written_when_a_run_is_stopped(void **state)
{
    gs_train_options o = api_options();
    gs_epoch_report e[EPOCHS];
    volatile int stop = 0;

    (void)state;
    o.checkpoint = fresh_folder();
    o.stop = &stop;
    gs_run *run = open_run(&o);
    stop = 1;
    gs_assert_fails(gs_run_epoch(run, e), GS_EINTERRUPTED, "no epoch was done, so there is nothing to go on from");
    gs_run_close(run);
    stop = 0;
    run = open_run(&o);
    run_epochs(run, e, 2);
    stop = 1;
    gs_assert_fails(gs_run_epoch(run, e), GS_EINTERRUPTED, "has its state after epoch 2");
    assert_true(is_there(o.checkpoint, 2));
    gs_run_close(run);
    stop = 0;
    o.resume = o.checkpoint;
    run = open_run(&o);
    run_epochs(run, e, 1);
    assert_int_equal(e[0].epoch, 3);
    stop = 1; /* before the last evaluation */
    gs_assert_fails(gs_run_finish(run, NULL), GS_EINTERRUPTED, "has its state after epoch 3");
    gs_run_close(run);
    assert_true(is_there(o.checkpoint, 3));
}

static void checkpoint__folder_is_of_one_run(void **state)
{
    gs_train_options o = api_options();
    gs_epoch_report e[1];
    gs_run *other = NULL;

    (void)state;
    o.checkpoint = fresh_folder();
    gs_run *const run = open_run(&o);
    gs_assert_fails(gs_run_open(&other, api_store, &o, GS_RUN_TRAIN), GS_EEXIST, "another run writes");
    gs_assert_fails(gs_run_checkpoint(run), GS_EINVAL, "no epoch is done");
    run_epochs(run, e, 1);
    gs_assert_ok(gs_run_checkpoint(run));
    gs_run_close(run);
    gs_assert_fails(gs_run_open(&other, api_store, &o, GS_RUN_TRAIN), GS_EEXIST, "go on from it with .resume");
    o.resume = gs_test_path(api_folder, "nothing");
    gs_assert_fails(gs_run_open(&other, api_store, &o, GS_RUN_TRAIN), GS_ENOTFOUND, "nothing");
    gs_assert_ok(gs_mkdir(o.resume));
    gs_assert_fails(gs_run_open(&other, api_store, &o, GS_RUN_TRAIN), GS_ENOTFOUND, "there is no checkpoint");
    o.checkpoint = o.resume = NULL;
    o.checkpoint_every = "3";
    gs_assert_fails(gs_run_open(&other, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, "Give .checkpoint a folder");
    o.checkpoint_every = NULL;
    gs_run *const without = open_run(&o);
    gs_assert_fails(gs_run_checkpoint(without), GS_EINVAL, "set .checkpoint");
    gs_run_close(without);
}

/* ---- metrics --------------------------------------------------------------- */

/* Numbers of its lines that training makes, without times and sizes of memory: what stands before "seconds". */
static uint32_t read_metrics(char line[EPOCHS + 1][160], const char *path)
{
    char text[1024];
    uint32_t n = 0;
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(text, sizeof(text), f) != NULL) {
        char *const end = strstr(text, ", \"seconds\"");
        assert_true(n < EPOCHS + 1 && end != NULL && end - text < 160 && text[strlen(text) - 1] == '\n');
        *end = '\0';
        memcpy(line[n++], text, (size_t)(end - text) + 1);
    }
    fclose(f);
    return n;
}

static void assert_same_metrics(const char *a, const char *b)
{
    char line[2][EPOCHS + 1][160];
    const uint32_t n = read_metrics(line[0], a);
    assert_int_equal(n, read_metrics(line[1], b));
    for (uint32_t k = 0; k < n; k++)
        assert_string_equal(line[0][k], line[1][k]);
}

/* Lines of epochs that came after the checkpoint are made again, none is there twice; so too where the file is another,
 * or was not asked for before. */
static void checkpoint__metrics_go_on(void **state)
{
    const char *const whole = gs_test_path(api_folder, "whole.jsonl"), *const parts =
        gs_test_path(api_folder, "parts.jsonl"), *const other = gs_test_path(api_folder, "other.jsonl");
    gs_train_options o = api_options();
    gs_epoch_report e[EPOCHS];
    gs_run *refused = NULL;

    (void)state;
    o.dropout = 0.2;
    o.metrics = whole;
    gs_assert_ok(gs_train(api_store, &o, NULL));
    o.metrics = parts;
    o.checkpoint = fresh_folder();
    gs_run *run = open_run(&o);
    run_epochs(run, e, 2);
    gs_assert_ok(gs_run_checkpoint(run));
    run_epochs(run, e, 2);
    gs_run_close(run);
    o.resume = o.checkpoint;
    gs_assert_ok(gs_train(api_store, &o, NULL));
    assert_same_metrics(whole, parts);
    assert_same_metrics(whole, gs_test_path(o.checkpoint, "metrics.jsonl"));
    o.metrics = other;
    gs_assert_ok(gs_train(api_store, &o, NULL));
    assert_same_metrics(whole, other);
    o.checkpoint = fresh_folder(); /* elsewhere from here on */
    gs_assert_ok(gs_train(api_store, &o, NULL));
    assert_same_metrics(whole, gs_test_path(o.checkpoint, "metrics.jsonl"));
    o.checkpoint = NULL;
    o.metrics = gs_test_path(o.resume, "metrics.jsonl");
    gs_assert_fails(gs_run_open(&refused, api_store, &o, GS_RUN_TRAIN), GS_EINVAL, "is for checkpoints alone");
    assert_same_metrics(whole, o.metrics);
}

/* ---- refusals -------------------------------------------------------------- */

static gs_train_options with_checkpoint(void)
{
    gs_train_options o = api_options();
    gs_epoch_report e[2];

    o.model = "gat";
    o.heads = 2;
    o.dropout = 0.1;
    o.checkpoint = fresh_folder();
    gs_run *const run = open_run(&o);
    run_epochs(run, e, 1);
    gs_assert_ok(gs_run_checkpoint(run));
    run_epochs(run, e, 1);
    gs_assert_ok(gs_run_checkpoint(run));
    gs_run_close(run);
    o.resume = o.checkpoint;
    return o;
}

static void refused(const gs_train_options *o, const char *part)
{
    gs_run *run = NULL;
    gs_assert_fails(gs_run_open(&run, api_store, o, GS_RUN_TRAIN), GS_EINVAL, part);
}

static void checkpoint__refuses_what_changes_numbers(void **state)
{
    const gs_train_options o = with_checkpoint();
    gs_train_options x;
    gs_run *run = NULL;
    gs_partition_options p;

    (void)state;
#define REFUSED(field, value, part) (x = o, x.field = (value), refused(&x, part))
    REFUSED(model, "gatv2", ".model gatv2: the checkpoint");
    REFUSED(layers, 3, ".layers 3: the checkpoint");
    REFUSED(hidden, 16, "is of a run with 8");
    REFUSED(heads, 4, ".heads 4");
    REFUSED(activation, "elu", ".activation elu: the checkpoint");
    REFUSED(dropout, 0.25, ".dropout 0.25");
    REFUSED(input_dropout, 0.25, ".input_dropout 0.25");
    REFUSED(optimizer, "sgd", "is of a run with adam");
    REFUSED(lr, 0.5, ".lr 0.5");
    REFUSED(weight_decay, 0.5, ".weight_decay 0.5");
    REFUSED(seed, UINT64_MAX, ".seed 18446744073709551615");
    REFUSED(eval_every, 7, ".eval_every 7");
    REFUSED(matmul, "tf32", ".matmul tf32");
    REFUSED(spill_type, "bf16", ".spill_type bf16");
    REFUSED(gather_type, "bf16", ".gather_type bf16");
    REFUSED(init, "w.safetensors", ".init: the checkpoint");
#undef REFUSED
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "random";
    p.seed = 99;
    gs_assert_ok(gs_partition(gs_test_path(api_folder, "graph"), gs_test_path(api_folder, "store99"), &p, NULL));
    gs_assert_fails(gs_run_open(&run, gs_test_path(api_folder, "store99"), &o, GS_RUN_TRAIN), GS_EINVAL,
                    "is of another store");
}

/* Of the machine, and how long: taken, with a word where another plan rounds otherwise. */
static void checkpoint__takes_what_does_not(void **state)
{
    gs_train_options o = with_checkpoint();

    (void)state;
    o.epochs = 3;
    o.threads = 2;
    o.save = gs_test_path(api_folder, "longer.st");
    o.no_verify = true;
    gs_run *run = open_run(&o);
    gs_run_close(run);
    o.no_cache = o.no_prune = true;
    run = open_run(&o);
    assert_non_null(strstr(report_of(run).note, "up to rounding, not to the bit"));
    gs_run_close(run);
}

/* ---- damage ---------------------------------------------------------------- */

static void turn_over(const char *path, uint64_t at)
{
    unsigned char byte;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= 16;
    assert_true(pwrite(fd, &byte, 1, (off_t)at) == 1);
    close(fd);
}

static void checkpoint__passes_over_damage(void **state)
{
    static const char *const files[] = {"checkpoint.json", "model.safetensors", "exp_avg.safetensors",
                                        "exp_avg_sq.safetensors"};
    gs_run *run = NULL;
    gs_epoch_report e[1];

    (void)state;
    for (size_t f = 0; f < 4; f++) {
        gs_train_options o = with_checkpoint();
        struct stat s;
        const char *const path = gs_test_path(o.resume, "epoch-0000000002/%s", files[f]);
        assert_int_equal(stat(path, &s), 0);
        if (f % 2 == 0)
            turn_over(path, (uint64_t)s.st_size / 2);
        else
            assert_int_equal(truncate(path, s.st_size - 3), 0);
        run = open_run(&o);
        assert_int_equal(report_of(run).resumed, 1);
        assert_non_null(strstr(report_of(run).note, "a damaged checkpoint was passed over"));
        assert_non_null(strstr(report_of(run).note, files[f]));
        run_epochs(run, e, 1);
        gs_assert_ok(gs_run_checkpoint(run)); /* takes the damaged one's place */
        gs_run_close(run);
        run = open_run(&o);
        assert_int_equal(report_of(run).resumed, 2);
        assert_string_equal(report_of(run).note, "");
        gs_run_close(run);
        gs_assert_ok(gs_remove_tree(gs_test_path(o.resume, "epoch-0000000001")));
        assert_int_equal(unlink(path), 0);
        gs_assert_fails(gs_run_open(&run, api_store, &o, GS_RUN_TRAIN), GS_EFORMAT, "no checkpoint there is whole");
        gs_assert_ok(gs_remove_tree(o.resume));
    }
}

/* What a killed run was writing is no checkpoint, and goes away. */
static void checkpoint__clears_what_was_half_written(void **state)
{
    gs_train_options o = with_checkpoint();
    const char *const half = gs_test_path(o.resume, ".making-0123456789abcdef");

    (void)state;
    gs_assert_ok(gs_mkdir(half));
    gs_test_write_file(gs_test_path(half, "model.safetensors"), "half", 4);
    gs_run_close(open_run(&o));
    assert_false(gs_path_exists(half));
}

/* Of a device is what it holds, in a run that goes on or stops; files are the same for each. */
int main(void)
{
    const struct CMUnitTest of_runs[] = {
        cmocka_unit_test(checkpoint__goes_on_with_the_same_bits),
        cmocka_unit_test(checkpoint__goes_on_within_small_budgets),
        cmocka_unit_test(checkpoint__has_weights_that_were_set),
        cmocka_unit_test(checkpoint__is_written_when_a_run_is_stopped),
        cmocka_unit_test(checkpoint__takes_what_does_not),
    };
    const struct CMUnitTest of_files[] = {
        cmocka_unit_test(checkpoint__the_last_epoch_has_one),
        cmocka_unit_test(checkpoint__keeps_the_last_two),
        cmocka_unit_test(checkpoint__folder_is_of_one_run),
        cmocka_unit_test(checkpoint__metrics_go_on),
        cmocka_unit_test(checkpoint__refuses_what_changes_numbers),
        cmocka_unit_test(checkpoint__passes_over_damage),
        cmocka_unit_test(checkpoint__clears_what_was_half_written),
    };
    const int failed = cmocka_run_group_tests(of_runs, api_graph_make, api_graph_remove);

    if (!few_cases())
        return failed + cmocka_run_group_tests(of_files, api_graph_make, api_graph_remove);
    return failed;
}
