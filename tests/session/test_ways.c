/* Which way of products is taken where measurements are disturbed: the shortest, nearly, and soon. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "session/choose_products.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways__nearly_the_shortest_is_taken_and_soon),
        cmocka_unit_test(test_ways__who_is_far_behind_leaves_at_once),
        cmocka_unit_test(test_ways__a_round_that_never_ended_counts_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
