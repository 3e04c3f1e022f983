/* The public interface as a program uses it: from a made graph to logits. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/support.h"

#include "base/alloc.h" /* gs_alloc_fail_nth */
#include "base/file.h"
#include "base/temporary.h"
#include "gnnstream.h"

/* A run's spill folder, or an output in the making. */
static bool has_temporary(const char *dir)
{
    DIR *const d = opendir(dir);
    bool any = false;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        any = any || gs_is_temporary(e->d_name);
    closedir(d);
    return any;
}

#define VERTICES 400u
#define EPOCHS 6u

/* A graph of planted classes and its store in two parts, once for all tests. */
static char *folder;
static const char *store;

static int make_store(void **state)
{
    gs_generate_options g;
    gs_partition_options p;
    gs_partition_report r;
    static char path[512];

    (void)state;
    folder = gs_test_temp_dir();
    snprintf(path, sizeof(path), "%s/store", folder);
    store = path;
    gs_generate_options_init(&g);
    g.vertices = VERTICES;
    g.edges = 3000;
    g.features = 6;
    g.classes = 3;
    gs_assert_ok(gs_generate("sbm", gs_test_path(folder, "graph"), &g));
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "random";
    gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), store, &p, &r));
    assert_int_equal(r.vertices, VERTICES);
    assert_int_equal(r.parts, 2);
    assert_string_equal(r.method, "random");
    return 0;
}

static int remove_store(void **state)
{
    (void)state;
    gs_test_temp_remove(folder);
    return 0;
}

typedef struct watch {
    gs_epoch_report seen[EPOCHS];
    uint32_t count, stop_after; /* 0: never */
    volatile int stop;
} watch;

static void on_epoch(void *context, const gs_epoch_report *e)
{
    watch *const w = context;

    assert_true(w->count < EPOCHS);
    w->seen[w->count++] = *e;
    w->stop = w->count == w->stop_after;
}

static gs_train_options options(watch *w)
{
    gs_train_options o;

    memset(w, 0, sizeof(*w));
    gs_train_options_init(&o);
    o.keep = "last";
    o.model = "gcn";
    o.hidden = 8;
    o.epochs = EPOCHS;
    o.lr = 0.05;
    o.on_epoch = on_epoch;
    o.context = w;
    o.stop = &w->stop;
    return o;
}

static char *text_of(const char *path)
{
    char *text = NULL;
    uint64_t bytes;
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    return text;
}

/* A chunk is verified as a whole. One of 60,000 edges, of at least two bytes each, has no room in 100 KiB. */
static void api__verify_keeps_its_budget(void **state)
{
    gs_generate_options g;
    gs_partition_options p;
    const char *const one = gs_test_path(folder, "one");

    (void)state;
    gs_generate_options_init(&g);
    g.vertices = VERTICES;
    g.edges = 60000;
    g.features = 1;
    gs_assert_ok(gs_generate("rmat", gs_test_path(folder, "dense"), &g));
    gs_partition_options_init(&p);
    p.parts = 1;
    gs_assert_ok(gs_partition(gs_test_path(folder, "dense"), one, &p, NULL));
    gs_assert_fails(gs_verify(one, 1000), GS_EBUDGET, "verifying it takes at least ");
    gs_assert_fails(gs_verify(one, 100 << 10), GS_EBUDGET, "verifying its edges takes at least ");
    gs_assert_ok(gs_verify(one, 1 << 20));
}

static void api__inspect_verify_and_plan(void **state)
{
    gs_store_summary s;
    gs_plan_report plan;
    gs_train_options o;
    uint64_t host = 0, device = 0;
    watch w;

    (void)state;
    gs_assert_ok(gs_inspect(&s, store));
    assert_int_equal(s.vertices, VERTICES);
    assert_int_equal(s.classes, 3);
    assert_string_equal(s.feature_type, "f32");
    gs_assert_ok(gs_verify(store, 0));
    o = options(&w);
    gs_assert_ok(gs_plan_train(&plan, store, &o));
    assert_int_equal(plan.parameters, 6 * 8 + 8 + 8 * 3 + 3);
    assert_int_equal(plan.passes, 3);
    assert_string_equal(plan.pass[0].name, "setup"); /* the features' sums over edges, once */
    assert_string_equal(plan.pass[1].name, "train");
    assert_true(plan.pass[1].dense_flops > plan.pass[2].dense_flops);
    for (uint32_t i = 0; i < plan.items; i++)
        *(plan.item[i].device ? &device : &host) += plan.item[i].bytes;
    /* The items are all there is: their sums are the totals, but for rounding to pages. */
    assert_true(device <= plan.device_bytes && plan.device_bytes - device < 65536);
    assert_true(host + device <= plan.host_bytes + 65536 && plan.host_bytes < host + device + 65536);
    assert_int_equal(w.count, 0);
}

static uint64_t process_bytes_planned(void)
{
    gs_plan_report plan;
    watch w;
    gs_train_options o = options(&w);

    gs_assert_ok(gs_plan_train(&plan, store, &o));
    for (uint32_t i = 0; i < plan.items; i++)
        if (strncmp(plan.item[i].name, "process", 7) == 0)
            return plan.item[i].bytes;
    fail_msg("the plan says nothing of the process");
    return 0;
}

/* What was freed before is not counted again as the process's own, also where malloc keeps it. */
static void api__a_plan_does_not_count_freed_memory(void **state)
{
    enum { BLOCKS = 40000, BYTES = 1024 };
    static char *block[BLOCKS];
    const uint64_t before = process_bytes_planned();

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its malloc keeps what is freed, to find uses of it */
#endif
    for (int i = 0; i < BLOCKS; i++) {
        assert_non_null(block[i] = malloc(BYTES));
        memset(block[i], 1, BYTES);
    }
    for (int i = 0; i < BLOCKS - 1; i++) /* the last keeps the heap's end where it is */
        free(block[i]);
    assert_true(process_bytes_planned() < before + (uint64_t)BLOCKS * BYTES / 2);
    free(block[BLOCKS - 1]);
}

/* Alpha of a natural order in two parts, counted in the file of edges: sources by half of the destination. */
static void api__inspect_counts_distinct_sources(void **state)
{
    const char *const natural = gs_test_path(folder, "natural");
    static bool needs[2][VERTICES];
    gs_partition_options p;
    gs_store_summary s;
    uint64_t bytes, count = 0;
    int64_t pair[2];
    char *edges;

    (void)state;
    gs_partition_options_init(&p);
    p.parts = 2;
    p.method = "natural";
    gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), natural, &p, NULL));
    gs_assert_ok(gs_inspect(&s, gs_test_path(folder, "natural")));
    gs_assert_ok(gs_file_read_all(&edges, &bytes, gs_test_path(folder, "graph/edges.npy"), 1 << 20));
    for (uint64_t at = bytes - s.edges * sizeof(pair); at < bytes; at += sizeof(pair)) {
        memcpy(pair, edges + at, sizeof(pair));
        needs[pair[1] >= VERTICES / 2][pair[0]] = true;
    }
    for (int half = 0; half < 2; half++)
        for (uint32_t v = 0; v < VERTICES; v++)
            count += needs[half][v];
    gs_free(edges);
    gs_assert_close(s.sources_per_vertex, (double)count / VERTICES, 1e-12);
}

static void api__reports_and_metrics_say_the_same(void **state)
{
    const char *const metrics = gs_test_path(folder, "m.jsonl");
    gs_train_report r;
    gs_train_options o;
    watch w;
    char *text, *line;

    (void)state;
    o = options(&w);
    o.metrics = metrics;
    gs_assert_ok(gs_train(store, &o, &r));
    assert_int_equal(w.count, EPOCHS);
    assert_int_equal(r.epochs, EPOCHS);
    text = text_of(metrics);
    line = text;
    for (uint32_t i = 0; i < EPOCHS; i++) {
        char want[64];
        assert_int_equal(w.seen[i].epoch, i + 1);
        snprintf(want, sizeof(want), "{\"epoch\": %u, \"loss\": %.10g,", i + 1, w.seen[i].loss);
        assert_int_equal(strncmp(line, want, strlen(want)), 0);
        line = strchr(line, '\n') + 1;
    }
    gs_free(text);
    /* An untrained network of 3 classes has a loss near log 3; the final one is
     * of weights that one more update has improved. */
    assert_true(w.seen[0].loss > 0.8 && w.seen[0].loss < 1.6);
    assert_true(r.loss < w.seen[EPOCHS - 1].loss && w.seen[EPOCHS - 1].loss < w.seen[0].loss);
    for (int k = 0; k < 3; k++)
        assert_true(r.accuracy[k] >= 0 && r.accuracy[k] <= 1);
    assert_true(r.peak_host_bytes > 0 && r.peak_device_bytes > 0 && r.seconds > 0);
    assert_int_equal(r.parameters, 6 * 8 + 8 + 8 * 3 + 3);
}

/* The loss of an epoch is of the weights before its update, so a run of one
 * epoch more, started from saved weights, begins with the loss the first one ended with. */
static void api__losses_are_before_the_update(void **state)
{
    const char *const saved = gs_test_path(folder, "w.safetensors");
    gs_train_report first, second;
    gs_train_options o;
    watch w;

    (void)state;
    o = options(&w);
    o.save = saved;
    gs_assert_ok(gs_train(store, &o, &first));
    o = options(&w);
    o.init = saved;
    o.epochs = 1;
    gs_assert_ok(gs_train(store, &o, &second));
    gs_assert_close(w.seen[0].loss, first.loss, 1e-6);
    for (int k = 0; k < 3; k++)
        gs_assert_close(w.seen[0].accuracy[k], first.accuracy[k], 0);
}

/* Stopped after three epochs of six: what is written is what three epochs alone give. */
static void api__stop_between_epochs_writes_what_was_learned(void **state)
{
    const char *const metrics = gs_test_path(folder, "stopped.jsonl");
    const char *const name[2] = {"stopped", "shorter"};
    char *logits[2] = {NULL}, *text;
    uint64_t bytes[2];
    int lines = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const out = gs_test_path(folder, "%s.npy", name[i]);
        watch w;
        gs_train_options o = options(&w);
        gs_train_report r = {0};

        o.save = gs_test_path(folder, "%s.safetensors", name[i]);
        o.logits = out;
        o.metrics = i == 0 ? metrics : NULL;
        o.no_cache = true;
        o.epochs = i == 0 ? EPOCHS : 3;
        w.stop_after = i == 0 ? 3 : 0;
        if (i == 0)
            gs_assert_fails(gs_train(store, &o, &r), GS_EINTERRUPTED, "interrupted in epoch 4 of 6");
        else
            gs_assert_ok(gs_train(store, &o, &r));
        assert_int_equal(r.epochs, 3);
        assert_int_equal(r.kept_epochs, 3);
        assert_true(gs_path_exists(o.save));
        gs_assert_ok(gs_file_read_all(&logits[i], &bytes[i], out, 1 << 20));
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(logits[0], logits[1], bytes[0]);
    text = text_of(metrics);
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 3);
    assert_false(has_temporary(gs_test_path(folder, "store")));
    for (int i = 0; i < 2; i++)
        gs_free(logits[i]);
    gs_free(text);
}

static void api__weights_depend_on_the_seed_alone(void **state)
{
    static const uint64_t seed[3] = {4, 4, 5};
    unsigned char *bytes[3];
    uint64_t length[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *const saved = gs_test_path(folder, "seed%d.safetensors", i);
        gs_train_options o;
        watch w;
        char *text = NULL;

        o = options(&w);
        o.seed = seed[i];
        o.dropout = 0.5;
        o.threads = 1;
        o.save = saved;
        gs_assert_ok(gs_train(store, &o, NULL));
        gs_assert_ok(gs_file_read_all(&text, &length[i], saved, 1 << 20));
        bytes[i] = (unsigned char *)text;
    }
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(bytes[0], bytes[1], length[0]);
    assert_int_equal(length[0], length[2]);
    assert_memory_not_equal(bytes[0], bytes[2], length[0]);
    for (int i = 0; i < 3; i++)
        gs_free(bytes[i]);
}

/* Whichever allocation fails, the answer is a line and GS_ENOMEM, nothing is
 * left, and the next run works. (Under the leak checker, nothing leaks either.) */
static void api__any_allocation_may_fail(void **state)
{
    const char *const saved = gs_test_path(folder, "nomem.safetensors");
    const char *const logits = gs_test_path(folder, "nomem.npy");
    int fine = 0; /* in a row: a failure that is made up for does not end the search */

    (void)state;
    for (uint64_t n = 1; fine < 3; n += 1 + n / 12) {
        gs_train_options o;
        watch w;

        o = options(&w);
        o.epochs = 1;
        o.save = saved;
        o.logits = logits;
        o.no_cache = true;
        gs_alloc_fail_nth(n);
        const gs_status st = gs_train(store, &o, NULL);
        gs_alloc_fail_nth(0);
        if (st != GS_OK && st != GS_ENOMEM)
            fail_msg("allocation %d: status %d, %s", (int)n, (int)st, gs_last_error());
        assert_true(st == GS_OK || *gs_last_error() != '\0');
        assert_true(gs_path_exists(saved) == (st == GS_OK));
        assert_true(gs_path_exists(logits) == (st == GS_OK));
        assert_false(has_temporary(gs_test_path(folder, "store")));
        fine = st == GS_OK ? fine + 1 : 0;
        unlink(saved);
        unlink(logits);
    }
}

/* Another store takes the place of the one that a run reads: the run ends on the old one, to the byte. */
static void replace_store(void *context, const gs_epoch_report *e)
{
    gs_partition_options p;

    on_epoch(context, e);
    if (e->epoch != 2)
        return;
    gs_partition_options_init(&p);
    p.parts = 3;
    p.method = "natural";
    p.seed = 9;
    p.force = true;
    gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), gs_test_path(folder, "replaced"), &p, NULL));
}

static void api__a_run_ends_on_the_store_that_it_began_with(void **state)
{
    const char *const replaced = gs_test_path(folder, "replaced");
    gs_store_summary now;
    gs_partition_options p;

    (void)state;
    for (int cache = 0; cache < 2; cache++) {
        char *bytes[2][2];
        uint64_t length[2][2];

        gs_partition_options_init(&p);
        p.parts = 2;
        p.method = "random";
        p.force = true;
        gs_assert_ok(gs_partition(gs_test_path(folder, "graph"), replaced, &p, NULL));
        for (int k = 0; k < 2; k++) {
            const char *const logits = gs_test_path(folder, "kept%d.npy", k);
            const char *const saved = gs_test_path(folder, "kept%d.safetensors", k);
            gs_train_options o;
            watch w;

            o = options(&w);
            o.on_epoch = k == 0 ? on_epoch : replace_store;
            o.no_cache = cache == 0;
            o.spill = gs_test_path(folder, "elsewhere");
            o.logits = logits;
            o.save = saved;
            o.threads = 1;
            gs_assert_ok(gs_train(replaced, &o, NULL));
            gs_assert_ok(gs_file_read_all(&bytes[k][0], &length[k][0], logits, 1 << 20));
            gs_assert_ok(gs_file_read_all(&bytes[k][1], &length[k][1], saved, 1 << 20));
        }
        gs_assert_ok(gs_inspect(&now, replaced));
        assert_int_equal(now.parts, 3);
        for (int f = 0; f < 2; f++) {
            assert_int_equal(length[0][f], length[1][f]);
            assert_memory_equal(bytes[0][f], bytes[1][f], length[0][f]);
            gs_free(bytes[0][f]);
            gs_free(bytes[1][f]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(api__verify_keeps_its_budget),
        cmocka_unit_test(api__inspect_verify_and_plan),
        cmocka_unit_test(api__a_plan_does_not_count_freed_memory),
        cmocka_unit_test(api__inspect_counts_distinct_sources),
        cmocka_unit_test(api__reports_and_metrics_say_the_same),
        cmocka_unit_test(api__losses_are_before_the_update),
        cmocka_unit_test(api__stop_between_epochs_writes_what_was_learned),
        cmocka_unit_test(api__weights_depend_on_the_seed_alone),
        cmocka_unit_test(api__a_run_ends_on_the_store_that_it_began_with),
        cmocka_unit_test(api__any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_store, remove_store);
}
