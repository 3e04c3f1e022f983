/* Batches of clusters and of GraphSAINT are subgraphs with all their edges; coefficients make sums unbiased. */
#include "drawn_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

static void open_both(gs_sampler **s, gs_batch_arena **a, const drawn_graph *g, const gs_sampler_options *o)
{
    gs_assert_ok(gs_sampler_open(s, &g->in, o->kind >= GS_SAMPLER_SAINT_NODE ? &g->out : NULL, g->target, g->targets,
                                 o));
    gs_assert_ok(gs_batch_arena_make(a, *s));
}

static void close_both(gs_sampler *s, gs_batch_arena *a)
{
    gs_batch_arena_free(a);
    gs_sampler_close(s);
}

/* All edges of the graph between the batch's rows, no more; targets are all of its rows that are. */
static void check_induced(const drawn_graph *g, const gs_batch *b, bool store_degrees)
{
    bool *in = calloc(g->vertices, sizeof(*in));
    uint64_t edges = 0;
    uint32_t targets = 0;
    for (uint32_t i = 0; i < b->vertices; i++) {
        in[b->vertex[i]] = true;
        targets += b->vertex[i] % 3 == 0;
    }
    assert_int_equal(targets, b->targets);
    for (uint32_t i = 0; i < b->vertices; i++) {
        const uint32_t v = b->vertex[i];
        uint32_t degree = 0, loops = 0;
        for (uint32_t k = g->first[v]; k < g->first[v + 1]; k++) {
            degree += store_degrees || in[g->edge[k].source];
            edges += in[g->edge[k].source];
            loops += g->edge[k].source == v;
        }
        assert_true(b->in_degree[i] == (float)degree && b->loops[i] == (float)loops);
        if (i > 0 && i != b->targets)
            assert_true(v > b->vertex[i - 1]);
    }
    assert_int_equal(edges, b->edges);
    assert_int_equal(b->expanded, b->vertices);
    assert_int_equal(b->hops, 0);
    free(in);
}

static void test_cluster__is_whole_intervals_and_the_edges_within(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 12; c++) {
        const gs_sampler_options o = {.kind = GS_SAMPLER_CLUSTER, .seed = c, .batch_size = 1 + c % 5,
                                      .ordered = c % 2 == 1};
        drawn_graph *g = drawn_graph_make(100 + c, 1200, 7, c % 3 == 0 ? 3 : 0, c % 4 == 0, c);
        uint32_t seen[7] = {0};
        gs_sampler *s;
        gs_batch_arena *a;
        gs_batch b;
        open_both(&s, &a, g, &o);
        gs_alloc_freeze(true);
        for (uint32_t k = 0; k < gs_sampler_batches(s); k++) {
            uint32_t rows[7] = {0}, intervals = 0;
            gs_assert_ok(gs_sampler_draw(&b, s, a, 1, k));
            drawn_graph_check(g, &b, gs_sampler_limits(s), false, g->in.weight != NULL);
            check_induced(g, &b, false);
            for (uint32_t i = 0; i < b.vertices; i++)
                rows[b.vertex[i] / g->in.interval_rows]++;
            for (uint32_t i = 0; i < 7; i++) {
                const uint32_t first = i * g->in.interval_rows, end = GS_MIN(first + g->in.interval_rows, g->vertices);
                assert_true(rows[i] == 0 || rows[i] == end - first);
                seen[i] += rows[i] > 0;
                intervals += rows[i] > 0;
            }
            assert_int_equal(intervals, GS_MIN(o.batch_size, 7 - k * o.batch_size));
        }
        gs_alloc_freeze(false);
        assert_int_equal(gs_alloc_frozen_count(), 0);
        for (uint32_t i = 0; i < 7; i++)
            assert_int_equal(seen[i], 1);
        close_both(s, a);
        drawn_graph_free(g);
    }
}

static const gs_sampler_options saint[] = {
    {.kind = GS_SAMPLER_SAINT_NODE, .batch_size = 40},
    {.kind = GS_SAMPLER_SAINT_EDGE, .batch_size = 20},
    {.kind = GS_SAMPLER_SAINT_WALK, .batch_size = 10, .walk_length = 3},
};

static void test_saint__is_a_subgraph_with_all_its_edges(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 12; c++) {
        drawn_graph *g = drawn_graph_make(150, 900, 2, c % 2 == 0 ? 3 : 0, c % 4 == 0, c);
        gs_sampler_options o = saint[c % 3];
        gs_sampler *s;
        gs_batch_arena *a;
        gs_batch b;
        o.batches = 5;
        o.coverage = c / 6 * 3;
        open_both(&s, &a, g, &o);
        assert_int_equal(gs_sampler_batches(s), 5);
        for (uint32_t k = 0; k < 5; k++) {
            gs_assert_ok(gs_sampler_draw(&b, s, a, 1, k));
            assert_true(b.vertices > 1);
            drawn_graph_check(g, &b, gs_sampler_limits(s), false, g->in.weight != NULL && o.coverage == 0);
            check_induced(g, &b, true);
            assert_int_equal(b.loss_weight != NULL, o.coverage > 0);
        }
        close_both(s, a);
        drawn_graph_free(g);
    }
}

/* How likely a vertex is to be in a batch, by the definition of each sampler. */
static double chance_of(const drawn_graph *g, const gs_sampler_options *o, uint32_t v)
{
    if (o->kind == GS_SAMPLER_SAINT_NODE)
        return 1 - pow(1 - (double)g->out_degree[v] / g->edges, o->batch_size);
    double all = 0, own = 0; /* edges that end or begin at v, of all */
    for (uint32_t k = 0; k < g->edges; k++) {
        const drawn_edge *e = &g->edge[k];
        const double p = 1.0 / (g->first[e->dest + 1] - g->first[e->dest]) + 1.0 / g->out_degree[e->source];
        all += p;
        own += e->source == v || e->dest == v ? p : 0;
    }
    return 1 - pow(1 - own / all, o->batch_size);
}

static void test_saint__vertices_are_as_likely_as_defined(void **state)
{
    enum { BATCHES = 20000, N = 60 };
    drawn_graph *g = drawn_graph_make(N, 300, 2, 0, false, 4);
    (void)state;
    for (uint32_t c = 0; c < 2; c++) {
        gs_sampler_options o = saint[c];
        uint32_t count[N] = {0};
        gs_sampler *s;
        gs_batch_arena *a;
        gs_batch b;
        double x = 0;
        o.batch_size = 8;
        o.batches = BATCHES;
        open_both(&s, &a, g, &o);
        for (uint32_t k = 0; k < BATCHES; k++) {
            gs_assert_ok(gs_sampler_draw(&b, s, a, 1, k));
            for (uint32_t i = 0; i < b.vertices; i++)
                count[b.vertex[i]]++;
        }
        for (uint32_t v = 0; v < N; v++) {
            const double p = chance_of(g, &o, v), d = count[v] - BATCHES * p;
            assert_true(p > 0 || count[v] == 0);
            x += p > 0 && p < 1 ? d * d / (BATCHES * p * (1 - p)) : 0;
        }
        if (!(x < N + 5 * sqrt(2.0 * N) && x > N - 5 * sqrt(2.0 * N)))
            fail_msg("sampler %u: chi-square of %g over %u vertices", c, x, N);
        close_both(s, a);
    }
    drawn_graph_free(g);
}

/* A walk of one step goes along a random out-edge, and stays where there is none. */
static void test_walk__steps_are_along_edges_and_uniform(void **state)
{
    enum { BATCHES = 40000 };
    static const drawn_edge edge[] = {{.source = 0, .dest = 1}, {.source = 0, .dest = 2}, {.source = 0, .dest = 2},
                                      {.source = 1, .dest = 3}};
    drawn_graph *g = drawn_graph_of(edge, 4, 4, 1, 0, false);
    const gs_sampler_options o = {.kind = GS_SAMPLER_SAINT_WALK, .batch_size = 1, .walk_length = 1,
                                  .batches = BATCHES};
    uint32_t count[16] = {0};
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    double x = 0;
    (void)state;
    open_both(&s, &a, g, &o);
    for (uint32_t k = 0; k < BATCHES; k++) {
        uint32_t set = 0;
        gs_assert_ok(gs_sampler_draw(&b, s, a, 0, k));
        for (uint32_t i = 0; i < b.vertices; i++)
            set |= 1u << b.vertex[i];
        count[set]++;
    }
    /* From 0 to 1 or twice as often to 2; from 1 to 3; 2 and 3 stay. */
    static const struct { uint32_t set; double p; } law[] = {{3, 1 / 12.}, {5, 2 / 12.}, {10, 3 / 12.}, {4, 3 / 12.},
                                                             {8, 3 / 12.}};
    for (uint32_t k = 0; k < GS_ARRAY_LEN(law); k++) {
        const double want = BATCHES * law[k].p, d = count[law[k].set] - want;
        x += d * d / want;
    }
    assert_true(x < 4 + 5 * sqrt(8));
    close_both(s, a);
    drawn_graph_free(g);
}

/* Over many batches, with batches drawn beforehand: the mean of the weighted sums of losses is the mean loss, and the
 * mean of a vertex' weighted sum over in-edges, in batches that have it, is its whole sum. */
static void test_saint__weighted_sums_are_unbiased(void **state)
{
    enum { BATCHES = 4000, N = 50 };
    drawn_graph *g = drawn_graph_make(N, 500, 2, 0, false, 9);
    (void)state;
    for (uint32_t c = 0; c < GS_ARRAY_LEN(saint); c++) {
        gs_sampler_options o = saint[c];
        double whole = 0, sum = 0, squares = 0, in_sum[N] = {0}, in_squares[N] = {0}, in_whole[N] = {0};
        uint32_t times[N] = {0}, row;
        gs_sampler *s;
        gs_batch_arena *a;
        gs_batch b;
        o.batch_size = o.kind == GS_SAMPLER_SAINT_WALK ? 10 : 15;
        o.batches = BATCHES;
        o.coverage = BATCHES;
        open_both(&s, &a, g, &o);
        for (uint32_t v = 0; v < N; v++)
            assert_true(g->out_degree[v] > 0); /* each can be drawn */
        for (uint32_t i = 0; i < g->targets; i++)
            whole += (1.0 + g->target[i] % 5) / g->targets;
        for (uint32_t k = 0; k < g->edges; k++)
            in_whole[g->edge[k].dest] += 1 + g->edge[k].source % 4;
        for (uint32_t k = 0; k < BATCHES; k++) {
            double loss = 0, in[N] = {0};
            gs_assert_ok(gs_sampler_draw(&b, s, a, 0, k));
            for (uint32_t i = 0; i < b.targets; i++)
                loss += (double)b.loss_weight[i] * (1.0 + b.vertex[i] % 5);
            for (uint64_t e = 0; e < b.edges; e++) {
                const drawn_edge edge = drawn_batch_edge(&b, e, &row);
                in[edge.dest] += (double)edge.weight * (1 + edge.source % 4);
            }
            for (uint32_t i = 0; i < b.vertices; i++) {
                const uint32_t v = b.vertex[i];
                in_sum[v] += in[v];
                in_squares[v] += in[v] * in[v];
                times[v]++;
            }
            sum += loss;
            squares += loss * loss;
        }
        /* Coefficients are estimates from as many vertices, so their error counts as much again: 6 is 4. */
        const double mean = sum / BATCHES, error = sqrt((squares / BATCHES - mean * mean) / BATCHES);
        if (!(fabs(mean - whole) < 6 * error))
            fail_msg("sampler %u: a mean loss of %g instead of %g; standard error %g", c, mean, whole, error);
        for (uint32_t v = 0; v < N; v++) {
            if (times[v] < 100)
                continue;
            const double m = in_sum[v] / times[v], e = sqrt((in_squares[v] / times[v] - m * m) / times[v]);
            if (!(fabs(m - in_whole[v]) <= 6 * e + 1e-6 * m))
                fail_msg("sampler %u, vertex %u: a mean sum of %g instead of %g; standard error %g", c, v, m,
                         in_whole[v], e);
        }
        close_both(s, a);
    }
    drawn_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cluster__is_whole_intervals_and_the_edges_within),
        cmocka_unit_test(test_saint__is_a_subgraph_with_all_its_edges),
        cmocka_unit_test(test_saint__vertices_are_as_likely_as_defined),
        cmocka_unit_test(test_walk__steps_are_along_edges_and_uniform),
        cmocka_unit_test(test_saint__weighted_sums_are_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
