/* Which way of products is taken where measurements are disturbed: the shortest, nearly, and soon; and what of a run is
 * measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

#include "base/clock.h"
#include "base/npy.h"
#include "device/device.h"
#include "session/choose_products.h"
#include "session/session.h"

#define TRIALS 4000
#define STAGE_EDGES 120000.0

static double draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 24);
}

/* About normal, of deviation 1: twelve uniform numbers. */
static double draw_normal(uint32_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += draw(state);
    return sum;
}

/* A measurement: a few per cent beside the truth, and one in twenty half as long again, as another program had the
 * cache. */
static double disturbed(uint32_t *state, double seconds)
{
    return seconds * exp(0.03 * draw_normal(state)) * (draw(state) < 0.05 ? 1.5 : 1);
}

static unsigned count_ways(unsigned ways)
{
    return (ways & 1) + (ways >> 1 & 1) + (ways >> 2 & 1);
}

/* One stage. What measuring takes, as the caller of gs_way_trial_add() does it (a way more a round, all of them in the
 * first), goes to *took. Returns the way. */
static uint32_t measure(uint32_t *state, const double rate[GS_COST_WAYS], unsigned ways, double piece, double *took)
{
    gs_way_trial t = {.ways = ways, .stage_edges = STAGE_EDGES};
    double seconds[GS_COST_WAYS] = {0};
    uint32_t best = GS_COST_WAYS;

    for (uint32_t launch = 0; gs_way_trial_goes_on(&t) && launch < 1000; launch++) {
        const double edges = piece * (0.6 + 0.8 * draw(state)), shape = 0.9 + 0.2 * draw(state);
        bool more = true;
        for (uint32_t w = 0; w < GS_COST_WAYS; w++) {
            seconds[w] = disturbed(state, edges * shape * rate[w]);
            if ((t.ways >> w & 1) == 0)
                continue;
            *took += seconds[w] * (launch == 0 || more ? 2 : 1);
            more = false;
        }
        gs_way_trial_add(&t, edges, seconds);
    }
    gs_way_trial_end(&t, seconds);
    for (uint32_t w = 0; w < GS_COST_WAYS; w++) {
        assert_true((seconds[w] > 0) == (ways >> w & 1));
        if (seconds[w] > 0 && (best == GS_COST_WAYS || seconds[w] < seconds[best]))
            best = w;
    }
    return best;
}

/* Launches of a sixteenth of a stage's edges, and of a thousandth; two ways and three. */
static void test_ways__nearly_the_shortest_is_taken_and_soon(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 4; kind++) {
        const unsigned ways = kind % 2 == 0 ? 7 : 5;
        const double piece = STAGE_EDGES / (kind < 2 ? 16 : 1024);
        uint32_t state = 17 + (uint32_t)kind, beyond = 0;
        double excess = 0, most = 0;
        for (int i = 0; i < TRIALS; i++) {
            double rate[GS_COST_WAYS], least = INFINITY, took = 0;
            for (uint32_t w = 0; w < GS_COST_WAYS; w++) {
                rate[w] = 1e-7 * exp(0.7 * draw(&state));
                least = (ways >> w & 1) != 0 ? fmin(least, rate[w]) : least;
            }
            const double taken = rate[measure(&state, rate, ways, piece, &took)] / least;
            beyond += taken > 1.05;
            excess += taken - 1;
            most = fmax(most, took / (STAGE_EDGES * least));
        }
        print_message("%u ways, pieces of 1/%.0f: %u of %d beyond 5 %%, %.4f longer in the mean, at most %.2f epochs\n",
                      count_ways(ways), STAGE_EDGES / piece, beyond, TRIALS, excess / TRIALS, most);
        assert_true(beyond <= TRIALS / 100);
        assert_true(most <= 2); /* 2 % of 100 epochs */
    }
}

/* A way that takes twice as long is measured once. */
static void test_ways__who_is_far_behind_leaves_at_once(void **unused)
{
    (void)unused;
    gs_way_trial t = {.ways = 7, .stage_edges = 16};
    double seconds[GS_COST_WAYS];

    gs_way_trial_add(&t, 1, (double[]){2, 1.03, 1});
    assert_int_equal(t.ways, 6);
    gs_way_trial_add(&t, 1, (double[]){0, 1.03, 1});
    assert_true(gs_way_trial_goes_on(&t));
    gs_way_trial_end(&t, seconds);
    assert_float_equal(seconds[0], 2, 1e-9);
    assert_float_equal(seconds[1], 1.03, 1e-9);
    assert_float_equal(seconds[2], 1, 1e-9);
}

/* Less edges than half a piece are all that there are. */
static void test_ways__a_round_that_never_ended_counts_alone(void **unused)
{
    (void)unused;
    gs_way_trial t = {.ways = 5, .stage_edges = 1000};
    double seconds[GS_COST_WAYS];

    gs_way_trial_end(&t, seconds);
    assert_true(seconds[0] == 0 && seconds[1] == 0 && seconds[2] == 0);
    gs_way_trial_add(&t, 10, (double[]){30, 0, 20});
    gs_way_trial_end(&t, seconds);
    assert_float_equal(seconds[0], 3, 1e-9);
    assert_true(seconds[1] == 0);
    assert_float_equal(seconds[2], 2, 1e-9);
}

/* ---- what a run measures, by a clock that a test sets ---- */

#define STAGES 16u
#define EDGES 8000u
#define COLD 1.0 /* seconds more of a way's first launch, and of the first one on some edges an edge of these */

static struct {
    bool on;
    double rate[GS_COST_WAYS]; /* seconds an edge */
    double now, edges[STAGES]; /* that ways ran on, by stage */
    unsigned warm;             /* ways that have run */
    const uint32_t *start;     /* edges of the launch before */
} trial;

typedef gs_status rehearse_fn(void *context, gs_device *device, const gs_edge_program_launch *l);
double __wrap_gs_processor_now(void);
gs_status __real_gs_session_rehearse(gs_session *s, uint32_t pass, rehearse_fn *fn, void *context);
gs_status __wrap_gs_session_rehearse(gs_session *s, uint32_t pass, rehearse_fn *fn, void *context);
gs_status __real_gs_device_run_edge_program(gs_device *d, const gs_edge_program_launch *l);
gs_status __wrap_gs_device_run_edge_program(gs_device *d, const gs_edge_program_launch *l);

double __wrap_gs_processor_now(void) { return trial.now; }

gs_status __wrap_gs_session_rehearse(gs_session *s, uint32_t pass, rehearse_fn *fn, void *context)
{
    trial.on = true;
    const gs_status st = __real_gs_session_rehearse(s, pass, fn, context);
    trial.on = false;
    return st;
}

gs_status __wrap_gs_device_run_edge_program(gs_device *d, const gs_edge_program_launch *l)
{
    const uint32_t way = (uint32_t)l->stage->products, stage = (uint32_t)(l->stage - l->program->stage);
    const double edges = l->edges.start[l->edges.targets] - l->edges.start[0];

    if (trial.on) {
        assert_true(way < GS_COST_WAYS && stage < STAGES);
        trial.now += edges * trial.rate[way] + ((trial.warm >> way & 1) == 0 ? COLD : 0);
        trial.now += l->edges.start != trial.start ? COLD * edges : 0;
        trial.edges[stage] += edges;
        trial.warm |= 1u << way;
        trial.start = l->edges.start;
    }
    return __real_gs_device_run_edge_program(d, l);
}

static void write_numbers(const char *path, uint32_t rows, uint32_t cols, const int64_t *number)
{
    gs_outfile o;
    uint64_t offset;

    gs_assert_ok(gs_npy_create(&o, &offset, path, GS_I64, rows, cols));
    gs_assert_ok(gs_outfile_write(&o, number, (uint64_t)rows * GS_MAX(cols, 1) * sizeof(*number), offset));
    gs_assert_ok(gs_outfile_finish(&o));
}

/* One chunk, whose edges come from few sources: each way may be the shortest. */
static const char *typed_store(const char *folder)
{
    enum { VERTICES = 1024, SOURCES = 60, TYPES = 12 };
    static int64_t edge[EDGES][2], type[EDGES];
    const char *const graph = gs_test_path(folder, "graph"), *const store = gs_test_path(folder, "store");
    gs_generate_options g;
    gs_partition_options p;
    uint32_t state = 5;

    gs_generate_options_init(&g);
    g.vertices = VERTICES, g.edges = EDGES, g.features = 8, g.classes = 3;
    gs_assert_ok(gs_generate("rmat", graph, &g));
    for (uint32_t e = 0; e < EDGES; e++) {
        edge[e][0] = (int64_t)(draw(&state) * SOURCES);
        edge[e][1] = SOURCES + (int64_t)(draw(&state) * (VERTICES - SOURCES));
        type[e] = (int64_t)(draw(&state) * TYPES);
    }
    assert_int_equal(remove(gs_test_path(graph, "edges.npy")), 0);
    write_numbers(gs_test_path(graph, "edges.npy"), EDGES, 2, edge[0]);
    write_numbers(gs_test_path(graph, "edge_types.npy"), EDGES, 0, type);
    gs_partition_options_init(&p);
    p.parts = 1;
    p.method = "natural";
    gs_assert_ok(gs_partition(graph, store, &p, NULL));
    return store;
}

/* Ways as near to each other as these stay on trial to its end. */
static void measure_run(gs_plan_report *plan, const char *store, const double rate[GS_COST_WAYS])
{
    gs_train_options o;
    gs_run *run = NULL;

    memset(&trial, 0, sizeof(trial));
    memcpy(trial.rate, rate, sizeof(trial.rate));
    gs_train_options_init(&o);
    o.model = "rgcn", o.layers = 2, o.hidden = 32, o.epochs = 100, o.threads = 1, o.no_hoist = true;
    gs_assert_ok(gs_run_open(&run, store, &o, GS_RUN_TRAIN));
    gs_assert_ok(gs_run_epoch(run, NULL));
    gs_run_close(run);
    gs_assert_ok(gs_plan_train(plan, store, &o));
}

/* What makes a way's first launch dear, and the first one on some edges, is in none of the ratios, and a launch of all
 * edges of a stage is cut: the trial takes about as many edges as an epoch has. Products of edges are taken where they
 * are hardly longer. */
static void test_ways__a_run_measures_what_is_warm_on_parts_of_its_edges(void **unused)
{
    static const double rates[2][GS_COST_WAYS] = {{1.02e-6, 1e-6, 1.01e-6}, {1.04e-6, 1e-6, 1.01e-6}};
    char *const folder = gs_test_temp_dir();
    const char *const store = typed_store(folder);
    static gs_plan_report plan;

    (void)unused;
    for (int i = 0; i < 2; i++) {
        uint32_t of_all = 0;
        setenv("XDG_CACHE_HOME", gs_test_path(folder, "cache%d", i), 1);
        measure_run(&plan, store, rates[i]);
        for (uint32_t k = 0; k < plan.product_stages; k++) {
            const gs_product_report *const r = &plan.product_stage[k];
            if (!r->measured)
                continue;
            assert_true(r->run_seconds > 0 || r->pair_seconds > 0);
            if (r->run_seconds > 0)
                gs_assert_close(r->run_seconds / r->edge_seconds, rates[i][1] / rates[i][0], 1e-7);
            if (r->pair_seconds > 0)
                gs_assert_close(r->pair_seconds / r->edge_seconds, rates[i][2] / rates[i][0], 1e-7);
            assert_int_equal(r->by_runs, i == 1 && r->run_seconds > 0);
            assert_int_equal(r->by_pairs, i == 1 && r->run_seconds == 0);
            of_all++;
        }
        assert_true(of_all >= 2);
        for (uint32_t k = 0; k < STAGES; k++)
            assert_true(trial.edges[k] <= 1.5 * EDGES);
    }
    unsetenv("XDG_CACHE_HOME");
    gs_test_temp_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways__nearly_the_shortest_is_taken_and_soon),
        cmocka_unit_test(test_ways__who_is_far_behind_leaves_at_once),
        cmocka_unit_test(test_ways__a_round_that_never_ended_counts_alone),
        cmocka_unit_test(test_ways__a_run_measures_what_is_warm_on_parts_of_its_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
