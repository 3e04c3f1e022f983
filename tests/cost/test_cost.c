/* Coefficients come back from observations made of them, what is known of a machine comes back from its
 * file, and a file that is not one is as good as none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/outfile.h"
#include "cost/cost.h"

static char folder[64];

static double random_in(uint32_t *state, double least, double most)
{
    *state = *state * 1664525u + 1013904223u;
    return least + (most - least) * (double)(*state >> 8) / (double)(1u << 24);
}

/* What two threads cost where these ceilings were measured, and nothing else. */
static void take_limits(gs_cost *c, const gs_limits *l)
{
    gs_cost_record r;
    memset(&r, 0, sizeof(r));
    r.limits = *l;
    gs_cost_from_record(c, &r, 2, NULL);
}

/* `tasks` sums of rows whose seconds are exactly what `truth` says. */
static void observe(gs_fit *f, const double truth[GS_WORK_AMOUNTS], uint32_t tasks, uint32_t seed)
{
    for (uint32_t i = 0; i < tasks; i++) {
        const double edges = random_in(&seed, 1e3, 1e6), width = random_in(&seed, 4, 300);
        const gs_work w = {
            GS_WORK_SUM,
            {1, edges, edges * width, random_in(&seed, 10, 6e4) * width, random_in(&seed, 10, 6e4) * width}};
        double seconds = 0;
        for (int a = 0; a < GS_WORK_AMOUNTS; a++)
            seconds += truth[a] * w.amount[a];
        gs_fit_add(f, &w, seconds, seconds, 1);
    }
}

static void assert_in(double v, double least, double most)
{
    if (!(v >= least && v <= most))
        fail_msg("%g is not between %g and %g", v, least, most);
}

static void test_fit__finds_what_the_observations_were_made_of(void **state)
{
    (void)state;
    const double truth[GS_WORK_AMOUNTS] = {2e-5, 3e-9, 0.25e-9, 0, 0.5e-9, 0};
    gs_fit f = {0};
    gs_cost c;
    uint32_t seed = 99;
    gs_cost_defaults(&c, 2);
    observe(&f, truth, 500, 7);
    gs_fit_solve(&f, &c);
    assert_int_equal(c.source[GS_WORK_SUM], GS_COST_FITTED);
    assert_int_equal(c.source[GS_WORK_VERTEX], GS_COST_DEFAULT);
    for (int k = 0; k < 20; k++) { /* on tasks that it has not seen */
        const double edges = random_in(&seed, 1e4, 2e6), width = random_in(&seed, 8, 256);
        const gs_work w = {GS_WORK_SUM, {1, edges, edges * width, 3e4 * width, 4e4 * width}};
        double want = 0;
        for (int a = 0; a < GS_WORK_AMOUNTS; a++)
            want += truth[a] * w.amount[a];
        assert_true(fabs(gs_cost_seconds(&c, &w) - want) < 0.02 * want);
    }
}

static void test_fit__no_coefficient_is_negative(void **state)
{
    (void)state;
    const double truth[GS_WORK_AMOUNTS] = {5e-3, 4e-9, -0.01e-9, 0, 0, 0};
    gs_fit f = {0};
    gs_cost c;
    gs_cost_defaults(&c, 1);
    observe(&f, truth, 300, 3);
    gs_fit_solve(&f, &c);
    for (int a = 0; a < GS_WORK_AMOUNTS; a++)
        assert_true(c.seconds[GS_WORK_SUM][a] >= 0);
    assert_true(c.seconds[GS_WORK_SUM][1] > 0);
}

static void test_fit__few_tasks_change_nothing(void **state)
{
    (void)state;
    const double truth[GS_WORK_AMOUNTS] = {1, 1, 1, 1, 1, 1};
    gs_fit f = {0};
    gs_cost c, before;
    gs_cost_defaults(&c, 1);
    before = c;
    observe(&f, truth, GS_FIT_TASKS - 1, 3);
    gs_fit_solve(&f, &c);
    assert_memory_equal(&c, &before, sizeof(c));
}

static void test_fit__newer_runs_outweigh_older_ones(void **state)
{
    (void)state;
    const double slow[GS_WORK_AMOUNTS] = {0, 8e-9, 0, 0, 0, 0}, fast[GS_WORK_AMOUNTS] = {0, 2e-9, 0, 0, 0, 0};
    gs_fit all = {0};
    gs_cost c;
    for (uint32_t run = 0; run < 12; run++) {
        gs_fit one = {0};
        observe(&one, run == 0 ? slow : fast, 200, run);
        gs_fit_add_newer(&all, 0.5, &one);
    }
    gs_cost_defaults(&c, 1);
    gs_fit_solve(&all, &c);
    const gs_work w = {GS_WORK_SUM, {1, 1e6, 1e8, 3e6, 3e6}};
    assert_true(fabs(gs_cost_seconds(&c, &w) - 2e-3) < 0.1e-3);
}

/* Transfers that take 30 % of a processor: a computation of 7 ms takes 10 while they go on. */
static void test_cost__transfers_beside_make_a_task_longer(void **state)
{
    (void)state;
    const gs_work w = {GS_WORK_MEMORY, {0, 7e6}};
    gs_cost c;
    gs_cost_defaults(&c, 1);
    c.seconds[GS_WORK_MEMORY][1] = 1e-9;
    c.seconds[GS_WORK_MEMORY][gs_work_beside(GS_WORK_MEMORY)] = 0.1e-9;
    assert_true(fabs(gs_cost_seconds_beside(&c, &w, 1, 3e9) - 10e-3) < 1e-9);
    assert_true(fabs(gs_cost_seconds_beside(&c, &w, 0, 3e9) - 7e-3) < 1e-9);
    assert_true(fabs(gs_cost_seconds_beside(&c, &w, -1, 3e9) - 7e-3) < 1e-9);
    assert_true(fabs(gs_cost_seconds_beside(&c, &w, 5e-3, 3e9) - 8.5e-3) < 1e-9); /* they end before it */
    const gs_work check = {GS_WORK_CHECK, {1, 1e6}};
    assert_true(gs_cost_seconds_beside(&c, &check, 1, 3e9) == gs_cost_seconds(&c, &check));
}

/* The same small task a thousand times, and one that is large and was disturbed: its error counts as much as the sum of
 * theirs. */
static void test_fit__one_large_task_does_not_outweigh_all_others(void **state)
{
    (void)state;
    const gs_work small = {GS_WORK_MEMORY, {0, 1e4}}, large = {GS_WORK_MEMORY, {0, 1e6}};
    gs_fit f = {0};
    gs_cost c;
    gs_cost_defaults(&c, 1);
    for (int i = 0; i < 1000; i++)
        gs_fit_add(&f, &small, 1e-5, 1e-5, 1);
    gs_fit_add(&f, &large, 3e-3, 1e-3, 1);
    gs_fit_solve(&f, &c);
    /* 11e-3 seconds expected, 13e-3 seen */
    assert_true(fabs(gs_cost_seconds(&c, &large) - 1e-3 * 13 / 11) < 2e-5);
}

/* The same epochs three times on a machine that others used, GCN of 128 columns, as its record had them. A program of
 * another shape, 512 columns to 16, took 0.6 times as long a row as the products of 128 columns to 128 on that machine,
 * by the least quarter of its tasks' seconds. */
static void test_fit__noise_does_not_share_the_time_out(void **state)
{
    static const double square[6][6] = {
        {2314746, 2.649764e+11, 9.549293e+12, 6.429938e+12, 1.809165e+11, 4.918348e+09},
        {2.649764e+11, 1.181204e+17, 4.682753e+18, 3.150682e+18, 7.652233e+16, 2.623119e+15},
        {9.549293e+12, 4.682753e+18, 3.052154e+20, 2.444165e+19, 3.471542e+18, 0},
        {6.429938e+12, 3.150682e+18, 2.444165e+19, 2.199749e+20, 1.629046e+18, 0},
        {1.809165e+11, 7.652233e+16, 3.471542e+18, 1.629046e+18, 5.130734e+16, 1.403778e+15},
        {4.918348e+09, 2.623119e+15, 0, 0, 1.403778e+15, 6.557797e+14}};
    static const double product[3][6] = {
        {1402.355, 6.790446e+08, 3.282476e+10, 1.419207e+10, 4.6035e+08, 6922579},
        {961.3216, 4.803859e+08, 2.18812e+10, 9.879973e+09, 3.21511e+08, 1.018144e+07},
        {1670.469, 7.779491e+08, 3.141357e+10, 2.290603e+10, 5.034298e+08, 8936579}};
    const gs_work seen = {GS_WORK_VERTEX, {1, 129e3, 32.768e6, 0, 260e3, 1e3}},
                  other = {GS_WORK_VERTEX, {1, 5e3, 16.384e6, 0, 530e3, 1e3}};
    (void)state;
    for (int run = 0; run < 3; run++) {
        gs_fit f = {.tasks = {[GS_WORK_VERTEX] = 480}};
        gs_cost c;
        gs_cost_defaults(&c, 1);
        for (int i = 0; i < 6; i++) {
            memcpy(f.square[GS_WORK_VERTEX][i], square[i], sizeof(square[i]));
            f.product[GS_WORK_VERTEX][i] = product[run][i];
        }
        gs_fit_solve(&f, &c);
        assert_in(gs_cost_seconds(&c, &other) / gs_cost_seconds(&c, &seen), 0.51, 0.69);
    }
}

/* A machine whose sums take 2 ns an edge and 0.25 ns a number: what `bench limits` saw of it, a million edges of each
 * shape, is what the model has for these. */
static void test_cost__measured_sums_come_back(void **state)
{
    static const uint32_t degrees[] = {4, 32, 256}, widths[] = {16, 64, 256};
    gs_limits l;
    gs_cost c;
    (void)state;

    memset(&l, 0, sizeof(l));
    for (int i = 0; i < GS_LIMIT_EDGES; i++) {
        l.found.edges[i].degree = degrees[i / 3];
        l.found.edges[i].width = widths[i % 3];
        l.found.edges[i].edges_per_second = 1 / (2e-9 + 0.25e-9 * widths[i % 3]);
    }
    take_limits(&c, &l);
    assert_int_equal(c.source[GS_WORK_SUM], GS_COST_CEILING);
    for (int i = 0; i < GS_LIMIT_EDGES; i++) {
        const double width = widths[i % 3], targets = fmin(1e6 / degrees[i / 3], 65536),
                     edges = targets * degrees[i / 3];
        const gs_work w = {GS_WORK_SUM, {1, edges, edges * width, 65536 * (1 - exp(-edges / 65536)) * width,
                                         targets * width}};
        const double seconds = edges * (2e-9 + 0.25e-9 * width);
        assert_in(gs_cost_seconds(&c, &w) / seconds, 0.9, 1.1);
    }
}

/* Copies of one run and of many, at 5 GB/s and 2 microseconds a run; one way was seen, one measured, one neither. */
static void test_cost__links_are_fitted_else_measured_else_guessed(void **state)
{
    (void)state;
    gs_cost_record r;
    gs_cost c, guess;
    uint32_t seed = 4;
    memset(&r, 0, sizeof(r));
    gs_cost_defaults(&guess, 2);
    r.limits.link[GS_LINK_TO_DEVICE] = r.limits.link[GS_LINK_FROM_DEVICE] = (gs_link){8e9, 1e-6};
    for (int i = 0; i < 50; i++) {
        const double runs = 1 + floor(random_in(&seed, 0, 40)), bytes = runs * random_in(&seed, 4e3, 1e5);
        const double seconds = runs * 2e-6 + bytes / 5e9;
        gs_fit_add(&r.fit, &(gs_work){GS_WORK_TO_DEVICE, {runs, bytes}}, seconds, seconds, 1);
    }
    gs_cost_from_record(&c, &r, 2, NULL);
    const gs_link fitted = gs_cost_link(&c, GS_LINK_TO_DEVICE), measured = gs_cost_link(&c, GS_LINK_FROM_DEVICE),
                  guessed = gs_cost_link(&c, GS_LINK_BETWEEN), before = gs_cost_link(&guess, GS_LINK_BETWEEN);
    assert_true(fabs(fitted.bps / 5e9 - 1) < 0.01 && fabs(fitted.request_seconds / 2e-6 - 1) < 0.01);
    assert_true(fabs(measured.bps / 8e9 - 1) < 1e-9 && measured.request_seconds == 1e-6);
    assert_true(guessed.bps == before.bps && guessed.request_seconds == before.request_seconds);
    assert_int_equal(c.source[GS_WORK_TO_DEVICE], GS_COST_FITTED);
    assert_int_equal(c.source[GS_WORK_FROM_DEVICE], GS_COST_CEILING);
    assert_int_equal(c.source[GS_WORK_BETWEEN], GS_COST_DEFAULT);
    /* rows by themselves: what a byte takes beside a copy's eighth of a nanosecond; nothing where they are no slower */
    assert_true(c.pick_seconds == guess.pick_seconds);
    r.limits.found.pick_bps = 2e9;
    gs_cost_from_record(&c, &r, 2, NULL);
    assert_true(fabs(c.pick_seconds / 0.375e-9 - 1) < 1e-9);
    r.limits.found.pick_bps = 9e9;
    gs_cost_from_record(&c, &r, 2, NULL);
    assert_true(c.pick_seconds == 0);
}

/* What no run has seen of the disk is a guess; what one has seen counts. */
static void test_cost__the_disk_is_seen_or_guessed(void **state)
{
    (void)state;
    gs_cost_record r;
    gs_cost c, guess;
    memset(&r, 0, sizeof(r));
    gs_cost_defaults(&guess, 2);
    gs_cost_from_record(&c, &r, 2, NULL);
    assert_true(guess.read_bps > 0 && c.read_bps == guess.read_bps && c.write_bps == guess.write_bps);
    assert_int_equal(c.disk_source, guess.disk_source);
    r.read_bps = 3e9;
    gs_cost_from_record(&c, &r, 2, NULL);
    assert_true(c.read_bps == 3e9 && c.write_bps == guess.write_bps);
    assert_int_equal(c.disk_source, GS_COST_FITTED);
}

/* An H200 that nobody has measured, by its sheet: 4.8 TB/s, 132 processors of 128 lanes at 1.98 GHz, PCIe 5. */
static void test_cost__a_gpu_is_no_cpu(void **state)
{
    (void)state;
    const gs_gpu_speed h200 = {4.8e12, 132 * 128 * 1.98e9, 2 * 132 * 128 * 1.98e9, 63e9, 0, 0};
    gs_cost_record r;
    gs_cost gpu, cpu;
    memset(&r, 0, sizeof(r));
    gs_cost_from_record(&gpu, &r, 16, &h200);
    gs_cost_from_record(&cpu, &r, 16, NULL);
    /* Reddit's edges at 64 columns: a row and an index each, and the sums of 233 thousand targets. */
    const double edges = 114e6, vertices = 233e3, least = (edges * 260 + vertices * 512) / 4.8e12;
    const gs_work sum = {GS_WORK_SUM, {1, edges, edges * 64, vertices * 64, vertices * 64}};
    assert_in(gs_cost_seconds(&gpu, &sum) / least, 1.0, 1.5);
    assert_true(gs_cost_seconds(&cpu, &sum) > 5 * gs_cost_seconds(&gpu, &sum));
    /* [233K, 602] by [602, 64]: operations take longer than bytes. */
    const double flops = 2 * vertices * 602 * 64;
    const gs_work product = {GS_WORK_VERTEX, {1, 0, flops, 0, vertices * 666}};
    assert_in(gs_cost_seconds(&gpu, &product) / (flops / 67e12), 1.2, 3.5);
    assert_in(gs_cost_link(&gpu, GS_LINK_TO_DEVICE).bps, 45e9, 60e9);
    /* What is the host's stays. */
    const gs_work check = {GS_WORK_CHECK, {1, 1e9}};
    assert_true(gs_cost_seconds(&gpu, &check) == gs_cost_seconds(&cpu, &check));
    assert_int_equal(gpu.source[GS_WORK_SUM], GS_COST_DEFAULT);
    /* What was measured counts more: a launch, and products as they are rounded. */
    const gs_work launch = {GS_WORK_MEMORY, {1}}, million = {GS_WORK_VERTEX, {0, 0, 1e6}};
    gs_gpu_speed rounds = h200;
    rounds.rounding = 1;
    r.limits.found.launch_seconds = 7e-6;
    r.limits.found.copy_bps = 2e12;
    r.limits.found.gemm[0].flops = 50e12;
    r.limits.rounded[0] = 300e12;
    gs_cost_from_record(&gpu, &r, 16, &h200);
    gs_cost_from_record(&cpu, &r, 16, &rounds);
    assert_true(gs_cost_seconds(&gpu, &launch) == 7e-6);
    assert_in(gs_cost_seconds(&gpu, &million), 0.999e6 / 50e12, 1.001e6 / 50e12);
    assert_in(gs_cost_seconds(&cpu, &million), 0.999e6 / 300e12, 1.001e6 / 300e12);
}

/* Seconds that fall with bytes fit no speed: bytes take no time then, and a copy still has a speed that is a number. */
static void test_cost__a_link_has_a_speed_whatever_was_seen(void **state)
{
    (void)state;
    gs_fit f = {0};
    gs_cost c;
    gs_cost_defaults(&c, 2);
    for (int i = 1; i < 20; i++)
        gs_fit_add(&f, &(gs_work){GS_WORK_BETWEEN, {1, 1e6 * i}}, 1.0 / i, 1, 1);
    gs_fit_solve(&f, &c);
    const gs_link link = gs_cost_link(&c, GS_LINK_BETWEEN);
    assert_true(link.bps > 1e11 && link.bps < 1e13);
    assert_true(link.request_seconds > 0);
}

static void test_cost__ceilings_replace_guesses(void **state)
{
    (void)state;
    gs_limits l;
    gs_cost c;
    memset(&l, 0, sizeof(l));
    take_limits(&c, &l);
    assert_int_equal(c.disk_source, GS_COST_DEFAULT);
    l.found.disk_read_bps = 4e9;
    l.found.disk_write_bps = 1e9;
    l.found.random_read[0].bytes = 4096;
    l.found.random_read[0].bps = 4096 / 20e-6; /* 20 microseconds each, of which 1.024 at full speed */
    l.found.depth[0] = 1;
    l.found.random_read[0].at_depth[0] = 4096 / 250e-6;
    take_limits(&c, &l);
    assert_int_equal(c.disk_source, GS_COST_CEILING);
    assert_true(fabs(c.latency_seconds - (250e-6 - 4096 / 4e9)) < 1e-9);
    assert_true(fabs(c.request_seconds - (20e-6 - 4096 / 4e9)) < 1e-9);
    assert_true(c.read_bps == 4e9 && c.write_bps == 1e9);
    l.found.random_read[1].bytes = 65536;
    l.found.random_read[1].bps = 65536 / 18e-6; /* of which 16.384 at full speed: what is long begins sooner */
    take_limits(&c, &l);
    assert_true(fabs(c.request_seconds - (18e-6 - 65536 / 4e9)) < 1e-9);
    assert_true(fabs(c.block_seconds - (20e-6 - 4096 / 4e9)) < 1e-9);
    gs_cost_slow_disk(&c, 2);
    assert_true(fabs(c.block_seconds - 2 * (20e-6 - 4096 / 4e9)) < 1e-9);
}

/* Of a narrow product and a wide one the wide one says what operations take, as a narrow one's floats cost besides. */
static void test_cost__products_are_those_of_the_fastest_shape(void **state)
{
    (void)state;
    gs_limits l;
    gs_cost c, guess;
    memset(&l, 0, sizeof(l));
    l.found.gemm[0].flops = 250e9;
    l.found.gemm[1].flops = 500e9;
    l.found.copy_bps = 20e9; /* 5e9 floats copied a second, each read and written */
    gs_cost_defaults(&guess, 2);
    c = guess;
    take_limits(&c, &l);
    assert_int_equal(c.source[GS_WORK_VERTEX], GS_COST_CEILING);
    const double flops = gs_cost_seconds(&c, &(gs_work){GS_WORK_VERTEX, {0, 0, 1e12}});
    assert_true(fabs(flops - 2) < 1e-9);
    assert_true(fabs(gs_cost_seconds(&c, &(gs_work){GS_WORK_VERTEX, {0, 0, 0, 1e12}}) - flops) < 1e-9);
    assert_true(fabs(gs_cost_seconds(&c, &(gs_work){GS_WORK_VERTEX, {0, 0, 0, 0, 1e10}}) - 1) < 1e-9);
    assert_true(fabs(gs_cost_seconds(&c, &(gs_work){GS_WORK_MEMORY, {0, 1e10}}) - 1) < 1e-9);
    /* Nothing is known of products without both. */
    l.found.copy_bps = 0;
    c = guess;
    take_limits(&c, &l);
    assert_memory_equal(&c, &guess, sizeof(c));
}

/* ---- the file ------------------------------------------------------------- */

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "%s", "/tmp/gs-cost-XXXXXX");
    return mkdtemp(folder) == NULL || setenv("XDG_CACHE_HOME", folder, 1) != 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return gs_remove_tree(folder) != GS_OK;
}

static gs_cost_record some_record(void)
{
    const double truth[GS_WORK_AMOUNTS] = {1e-5, 2e-9, 1e-10, 0, 0, 0};
    gs_cost_record r;
    memset(&r, 0, sizeof(r));
    observe(&r.fit, truth, 40, 5);
    r.read_bps = 3e9;
    r.write_bps = 1.25e9;
    gs_cost_record_others(&r, 0.6, 0.5);
    gs_cost_record_others(&r, 0.15, 0.5); /* 0.3 + 0.15 of weights 1.5 */
    gs_cost_record_slower(&r, 1.25, 0.5);
    gs_cost_record_slower(&r, 0.8, 0.5); /* log 0.8 - log 0.8 / 2 of weights 1.5 */
    observe(&r.batch_fit, (const double[GS_WORK_AMOUNTS]){1e-6, 1e-9, 1e-11, 0, 0, 0}, 40, 7);
    r.draw_seconds = 0.5;
    r.draw_amount = 1e7;
    r.limits.found.disk_read_bps = 3.5e9;
    r.limits.found.disk_write_bps = 2e9;
    r.limits.found.copy_bps = 1e10;
    r.limits.link[GS_LINK_BETWEEN] = (gs_link){5e9, 1e-6};
    r.limits.found.pick_bps = 3e9;
    gs_fit_add(&r.fit, &(gs_work){GS_WORK_FROM_DEVICE, {3, 5e6}}, 1e-3, 1e-3, 7);
    for (uint32_t i = 0; i < GS_LIMIT_SIZES; i++) {
        r.limits.found.random_read[i].bytes = 4096ull << (2 * i);
        r.limits.found.random_read[i].bps = 1e8 * (i + 1);
    }
    r.limits.found.gemm[1].rows = 8192;
    r.limits.found.gemm[1].flops = 2e11;
    r.limits.found.edges[8].degree = 128;
    r.limits.found.edges[8].edges_per_second = 5e8;
    gs_cost_record_add_stage(&r, &(gs_cost_stage){562949953421311.0, {9e-8, 0, 1.25e-7}});
    gs_cost_record_add_stage(&r, &(gs_cost_stage){17, {1e-8, 2e-8, 3e-8}});
    return r;
}

static char *only_file(void)
{
    char command[128], *path = gs_calloc(1, 512);
    snprintf(command, sizeof(command), "ls %s/gnnstream/*.json", folder);
    FILE *const p = popen(command, "r");
    assert_non_null(fgets(path, 512, p));
    pclose(p);
    path[strcspn(path, "\n")] = '\0';
    return path;
}

static void test_record__comes_back(void **state)
{
    (void)state;
    const gs_cost_record r = some_record();
    gs_cost_record back;
    gs_cost_record_load(&back, "a device");
    assert_true(back.read_bps == 0); /* none yet */
    assert_int_equal(gs_cost_record_save(&r, "a device"), GS_OK);
    gs_cost_record_load(&back, "a device");
    assert_memory_equal(&back.limits, &r.limits, sizeof(r.limits));
    assert_true(back.read_bps == r.read_bps && back.write_bps == r.write_bps);
    gs_cost c;
    gs_cost_from_record(&c, &back, 1, NULL);
    assert_true(fabs(c.read_bps / (3e9 / cbrt(0.8)) - 1) < 1e-9 && fabs(c.write_bps / (1.25e9 / cbrt(0.8)) - 1) < 1e-9);
    assert_true(fabs(c.others - 0.3) < 1e-12);
    for (int k = 0; k < GS_WORK_KINDS; k++) {
        assert_true(back.fit.tasks[k] == r.fit.tasks[k]);
        for (int i = 0; i < GS_WORK_AMOUNTS; i++) /* 15 digits */
            assert_true(fabs(back.fit.product[k][i] - r.fit.product[k][i]) <= 1e-14 * r.fit.product[k][i] &&
                        fabs(back.fit.square[k][i][i] - r.fit.square[k][i][i]) <= 1e-14 * r.fit.square[k][i][i]);
    }
    assert_int_equal(back.stages, 2);
    const gs_cost_stage *const stage = gs_cost_record_stage(&back, 562949953421311.0);
    assert_non_null(stage); /* to the last digit */
    assert_true(stage->seconds[0] == 9e-8 && stage->seconds[1] == 0 && stage->seconds[2] == 1.25e-7);
    assert_true(gs_cost_record_stage(&back, 17)->seconds[1] == 2e-8 && gs_cost_record_stage(&back, 18) == NULL);
    const double whole = c.seconds[GS_WORK_SUM][0];
    gs_cost_take_batches(&c, &back);
    assert_true(fabs(c.draw_seconds - 5e-8) < 1e-15);
    assert_true(fabs(c.seconds[GS_WORK_SUM][1] - 1e-9) < 2e-11); /* batches' own, not 2e-9 */
    assert_true(c.seconds[GS_WORK_SUM][0] < whole);
    gs_cost_record_load(&back, "another device");
    assert_true(back.read_bps == 0);
}

static void test_record__the_stage_measured_first_gives_way(void **state)
{
    (void)state;
    gs_cost_record r = {0};

    for (uint32_t k = 1; k <= GS_COST_STAGES; k++)
        gs_cost_record_add_stage(&r, &(gs_cost_stage){k, {k}});
    gs_cost_record_add_stage(&r, &(gs_cost_stage){1, {0.5}}); /* again: now the last one */
    assert_int_equal(r.stages, GS_COST_STAGES);
    gs_cost_record_add_stage(&r, &(gs_cost_stage){1000, {7}});
    assert_int_equal(r.stages, GS_COST_STAGES);
    assert_null(gs_cost_record_stage(&r, 2));
    assert_true(gs_cost_record_stage(&r, 1)->seconds[0] == 0.5 && gs_cost_record_stage(&r, 3)->seconds[0] == 3 &&
                gs_cost_record_stage(&r, 1000)->seconds[0] == 7);
}

/* Replaces `old` in the file's text by `fresh` and loads it. */
static double load_forged(const char *text, const char *path, const char *old, const char *fresh)
{
    gs_cost_record r;
    const char *const at = strstr(text, old);
    char forged[16384];
    assert_non_null(at);
    snprintf(forged, sizeof(forged), "%.*s%s%s", (int)(at - text), text, fresh, at + strlen(old));
    assert_int_equal(gs_file_write_atomic(path, forged, strlen(forged)), GS_OK);
    gs_cost_record_load(&r, "a device");
    return r.read_bps;
}

static void test_record__nothing_in_it_is_trusted(void **state)
{
    (void)state;
    const gs_cost_record r = some_record();
    static const char *const forgery[][2] = {
        {"\"version\":\t5", "\"version\":\t1"},
        {"\"epoch_read_bps\":\t3000000000", "\"epoch_read_bps\":\t-1"},
        {"\"epoch_read_bps\":\t3000000000", "\"epoch_read_bps\":\t1e99"},
        {"\"epoch_read_bps\":\t3000000000", "\"epoch_read_bps\":\t\"3\""},
        {"\"epoch_read_bps\"", "\"epoch_reed_bps\""},
        {"\"square\":\t[", "\"square\":\t[1, "},
        {"\"tasks\":\t[0", "\"tasks\":\t[null"},
        {"\"link_product\"", "\"linked_product\""},
        {"\"links\":\t[", "\"links\":\t[-1, "},
        {"\"limits\":\t{", "\"limits\":\t{}, \"more\":\t{"},
        {"\"machine\":\t\"", "\"machine\":\t\"x"},
        {"\"stages\":\t[", "\"stages\":\t[1, "},
        {"\"stages\":\t[17", "\"stages\":\t[-17"},
        {"{", "["},
    };
    char *path, *text;
    uint64_t bytes;
    assert_int_equal(gs_cost_record_save(&r, "a device"), GS_OK);
    path = only_file();
    assert_int_equal(gs_file_read_all(&text, &bytes, path, 1 << 20), GS_OK);
    assert_true(load_forged(text, path, "\"version\"", "\"version\"") == 3e9); /* the tool itself changes nothing */
    for (size_t i = 0; i < sizeof(forgery) / sizeof(forgery[0]); i++)
        assert_true(load_forged(text, path, forgery[i][0], forgery[i][1]) == 0);
    /* of before there were links */
    assert_true(load_forged(text, path, "\"link_tasks\"", "\"unknown\"") == 3e9);
    /* and before rows by themselves were measured */
    assert_true(load_forged(text, path, "\"pick_bps\"", "\"unknown\"") == 3e9);
    for (uint64_t cut = 0; cut < bytes - 2; cut += 41) { /* the last bytes are "}" and nothing */
        gs_cost_record back;
        assert_int_equal(gs_file_write_atomic(path, text, cut), GS_OK);
        gs_cost_record_load(&back, "a device");
        assert_true(back.read_bps == 0);
    }
    gs_free(text);
    gs_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cost__measured_sums_come_back),
        cmocka_unit_test(test_fit__finds_what_the_observations_were_made_of),
        cmocka_unit_test(test_fit__no_coefficient_is_negative),
        cmocka_unit_test(test_fit__few_tasks_change_nothing),
        cmocka_unit_test(test_fit__newer_runs_outweigh_older_ones),
        cmocka_unit_test(test_cost__transfers_beside_make_a_task_longer),
        cmocka_unit_test(test_fit__one_large_task_does_not_outweigh_all_others),
        cmocka_unit_test(test_fit__noise_does_not_share_the_time_out),
        cmocka_unit_test(test_cost__links_are_fitted_else_measured_else_guessed),
        cmocka_unit_test(test_cost__the_disk_is_seen_or_guessed),
        cmocka_unit_test(test_cost__a_gpu_is_no_cpu),
        cmocka_unit_test(test_cost__a_link_has_a_speed_whatever_was_seen),
        cmocka_unit_test(test_cost__ceilings_replace_guesses),
        cmocka_unit_test(test_cost__products_are_those_of_the_fastest_shape),
        cmocka_unit_test_setup_teardown(test_record__comes_back, make_folder, remove_folder),
        cmocka_unit_test(test_record__the_stage_measured_first_gives_way),
        cmocka_unit_test_setup_teardown(test_record__nothing_in_it_is_trusted, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("cost/cost", tests, NULL, NULL);
}
