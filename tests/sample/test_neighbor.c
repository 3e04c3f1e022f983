/* Batches of neighbours are parts of the graph, with the counts that their options say. */
#include "drawn_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* In-edges of vertex v: of type `type` (all: UINT32_MAX), with weight only where `weighted`. */
static uint32_t count_in(const drawn_graph *g, uint32_t v, uint32_t type, bool weighted)
{
    uint32_t n = 0;
    for (uint32_t k = g->first[v]; k < g->first[v + 1]; k++)
        n += (type == UINT32_MAX || g->edge[k].type == type) && (!weighted || g->edge[k].weight > 0);
    return n;
}

static uint32_t drawn_of(const gs_sampler_options *o, uint32_t fanout, uint32_t n)
{
    if (fanout == GS_FANOUT_NONE)
        return 0;
    return fanout == 0 ? n : o->replace ? (n > 0 ? fanout : 0) : MIN(n, fanout);
}

static uint32_t expected_in(const drawn_graph *g, const gs_sampler_options *o, uint32_t hop, uint32_t v)
{
    uint32_t sum = 0, fanout = o->fanout[hop];
    if (!o->by_type)
        return drawn_of(o, fanout, count_in(g, v, UINT32_MAX, o->weighted && fanout != 0));
    for (uint32_t t = 0; t < g->in.edge_types; t++) {
        if (o->types > 0)
            fanout = o->type_fanout[hop * o->types + t];
        sum += drawn_of(o, fanout, count_in(g, v, t, o->weighted && fanout != 0));
    }
    return sum;
}

/* Every row has as many edges as its hop's fanout says, and a hop holds what the one before named. */
static void check_hops(const drawn_graph *g, const gs_sampler_options *o, const gs_batch *b)
{
    uint32_t *in = calloc(b->vertices, sizeof(*in)), *named = malloc(b->vertices * sizeof(*named));
    uint32_t row, hop = 0;

    memset(named, 0xff, b->vertices * sizeof(*named));
    assert_int_equal(b->hop_end[0], b->targets);
    assert_int_equal(b->hop_end[b->hops], b->vertices);
    assert_int_equal(b->expanded, b->hop_end[b->hops - 1]);
    for (uint64_t k = 0; k < b->edges; k++) {
        const drawn_edge e = drawn_batch_edge(b, k, &row);
        in[row]++;
        assert_true(row < b->expanded);
        for (uint32_t i = 0; i < b->vertices; i++)
            if (b->vertex[i] == e.source)
                named[i] = MIN(named[i], row);
    }
    for (uint32_t i = 0; i < b->vertices; i++) {
        while (i >= b->hop_end[hop])
            hop++;
        const uint32_t want = expected_in(g, o, MIN(hop, b->hops - 1), b->vertex[i]);
        if (i < b->expanded)
            assert_int_equal(in[i], want);
        if (i < b->expanded || !o->weighted)
            assert_true(b->in_degree[i] == (float)want);
        if (hop > 0) /* first named by a row of the hop before */
            assert_true(named[i] < b->hop_end[hop - 1] && (hop == 1 || named[i] >= b->hop_end[hop - 2]));
    }
    free(in);
    free(named);
}

static void check_loops(const gs_batch *b)
{
    float *loops = calloc(b->vertices, sizeof(*loops));
    uint32_t row;
    for (uint64_t k = 0; k < b->edges; k++) {
        const drawn_edge e = drawn_batch_edge(b, k, &row);
        loops[row] += e.source == e.dest;
    }
    for (uint32_t i = 0; i < b->expanded; i++)
        assert_true(loops[i] == b->loops[i]);
    free(loops);
}

static void draw_all(const drawn_graph *g, const gs_sampler_options *o)
{
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    uint32_t seen = 0;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, o));
    gs_assert_ok(gs_batch_arena_make(&a, s));
    gs_alloc_freeze(true);
    for (uint32_t k = 0; k < gs_sampler_batches(s); k++) {
        gs_assert_ok(gs_sampler_draw(&b, s, a, 4, k));
        drawn_graph_check(g, &b, gs_sampler_limits(s), o->replace, g->in.weight != NULL);
        check_hops(g, o, &b);
        check_loops(&b);
        seen += b.targets;
    }
    gs_alloc_freeze(false);
    assert_int_equal(gs_alloc_frozen_count(), 0);
    assert_int_equal(seen, g->targets);
    gs_batch_arena_free(a);
    gs_sampler_close(s);
}

static void test_batch__is_a_part_of_the_graph_with_its_fanouts(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 64; c++) {
        gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = c, .batch_size = 5 + c % 3 * 20, .hops = 1 + c % 3,
                                .fanout = {c % 4 == 3 ? 0 : 3, c % 7, 40}, .replace = (c & 4) != 0,
                                .weighted = (c & 8) != 0, .by_type = (c & 16) != 0, .ordered = (c & 32) != 0};
        drawn_graph *g = drawn_graph_make(150 + c, 1500, 3, o.by_type || c % 5 == 0 ? 4 : 0, o.weighted || c % 3 == 0,
                                          c);
        if (gs_test_takes(c, 4))
            draw_all(g, &o);
        drawn_graph_free(g);
    }
}

/* Of each type of edges its own, with all, none and numbers among them. */
static void test_batch__types_have_fanouts_of_their_own(void **state)
{
    static const uint32_t number[] = {0, 1, 2, 5, GS_FANOUT_NONE};
    (void)state;
    for (uint32_t c = 0; c < 48; c++) {
        gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = c, .batch_size = 5 + c % 3 * 20, .hops = 1 + c % 3,
                                .by_type = true, .types = 4, .replace = (c & 4) != 0, .weighted = (c & 8) != 0};
        for (uint32_t h = 0; h < o.hops; h++)
            for (uint32_t t = 0; t < o.types; t++) {
                const uint32_t n = number[(c + h * 3 + t * t) % GS_ARRAY_LEN(number)];
                o.type_fanout[h * o.types + t] = n;
                o.fanout[h] = h == 0 && t == 0 && n == 0 ? 0 : 5;
            }
        drawn_graph *g = drawn_graph_make(150 + c, 1500, 3, 4, o.weighted || c % 3 == 0, c);
        if (gs_test_takes(c, 4))
            draw_all(g, &o);
        drawn_graph_free(g);
    }
}

static void test_batch__wide_rows_are_a_part_too(void **state)
{
    const gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = 1, .batch_size = 50, .hops = 2,
                                  .fanout = {10, 10}};
    drawn_graph *g = drawn_graph_make(70000, 90000, 3, 2, true, 1);
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    (void)state;
    gs_sampler_options all = o;
    all.fanout[0] = all.fanout[1] = 0;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &all));
    assert_int_equal(gs_batch_index_bytes(gs_sampler_limits(s)), 4);
    gs_assert_ok(gs_batch_arena_make(&a, s));
    gs_assert_ok(gs_sampler_draw(&b, s, a, 0, 0));
    drawn_graph_check(g, &b, gs_sampler_limits(s), false, true);
    gs_batch_arena_free(a);
    gs_sampler_close(s);
    drawn_graph_free(g);
}

/* One batch of all targets, all in-edges: all that reaches the targets, as often as it is there. */
static void test_batch__without_fanouts_is_the_whole_neighbourhood(void **state)
{
    drawn_graph *g = drawn_graph_make(200, 900, 2, 0, false, 3);
    const gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .batch_size = g->targets, .hops = 2};
    bool reached[200] = {false}, next[200];
    uint64_t edges = 0;
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    (void)state;
    for (uint32_t i = 0; i < g->targets; i++)
        reached[g->target[i]] = true;
    memcpy(next, reached, sizeof(next));
    for (uint32_t k = 0; k < g->edges; k++)
        if (reached[g->edge[k].dest])
            next[g->edge[k].source] = true;
    for (uint32_t k = 0; k < g->edges; k++)
        edges += next[g->edge[k].dest];
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
    gs_assert_ok(gs_batch_arena_make(&a, s));
    gs_assert_ok(gs_sampler_draw(&b, s, a, 0, 0));
    assert_int_equal(gs_sampler_batches(s), 1);
    assert_int_equal(b.edges, edges);
    for (uint32_t i = 0; i < b.vertices; i++) {
        assert_true(b.in_degree[i] == (float)(g->first[b.vertex[i] + 1] - g->first[b.vertex[i]]));
        uint32_t loops = 0;
        for (uint32_t k = g->first[b.vertex[i]]; k < g->first[b.vertex[i] + 1]; k++)
            loops += g->edge[k].source == b.vertex[i];
        assert_true(b.loops[i] == (float)loops);
    }
    gs_batch_arena_free(a);
    gs_sampler_close(s);
    drawn_graph_free(g);
}

/* A hub of 40 in-edges, of which one is there five times: places, not neighbours, are equally likely. */
static void test_draws__of_a_hub_are_uniform_over_edges(void **state)
{
    enum { DEGREE = 40, EPOCHS = 20000, FANOUT = 7 };
    drawn_edge edge[DEGREE];
    uint64_t count[64] = {0};
    const gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 1, .hops = 1, .fanout = {FANOUT}};
    uint32_t row;
    double x = 0;
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    (void)state;
    for (uint32_t k = 0; k < DEGREE; k++)
        edge[k] = (drawn_edge){.source = k < 5 ? 1 : k, .dest = 0};
    drawn_graph *g = drawn_graph_of(edge, DEGREE, 64, 1, 0, false);
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, 1, &o));
    gs_assert_ok(gs_batch_arena_make(&a, s));
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        gs_assert_ok(gs_sampler_draw(&b, s, a, epoch, 0));
        assert_int_equal(b.edges, FANOUT);
        for (uint64_t k = 0; k < FANOUT; k++)
            count[drawn_batch_edge(&b, k, &row).source]++;
    }
    for (uint32_t v = 1; v < DEGREE; v++) {
        const double want = (v == 1 ? 5.0 : v < 5 ? 0.0 : 1.0) * FANOUT * EPOCHS / DEGREE;
        if (want == 0)
            assert_int_equal(count[v], 0);
        else
            x += ((double)count[v] - want) * ((double)count[v] - want) / want;
    }
    assert_true(x < 35 + 5 * 8.4); /* 36 cells, a standard deviation of 8.4; less, as draws are without replacement */
    gs_batch_arena_free(a);
    gs_sampler_close(s);
    drawn_graph_free(g);
}

static uint64_t sum_bytes(const gs_batch *b)
{
    uint64_t h = 1469598103934665603ull;
    const void *part[] = {b->vertex, b->in_degree, b->loops, b->bytes[0], b->bytes[1], b->hop_end};
    const uint64_t bytes[] = {b->vertices * 4ull, b->vertices * 4ull, b->vertices * 4ull, b->chunk[0].length,
                              b->chunk[1].length, sizeof(b->hop_end)};
    for (uint32_t p = 0; p < GS_ARRAY_LEN(part); p++)
        for (uint64_t k = 0; k < bytes[p]; k++)
            h = (h ^ ((const unsigned char *)part[p])[k]) * 1099511628211ull;
    return h;
}

static void test_group__has_the_same_bytes_for_every_number_of_threads(void **state)
{
    enum { GROUP = 9 };
    static const uint32_t threads[] = {1, 2, 7};
    drawn_graph *g = drawn_graph_make(300, 6000, 4, 3, true, 8);
    const gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = 3, .batch_size = 10, .hops = 2,
                                  .fanout = {5, 40}, .by_type = true};
    gs_batch_arena *a[GROUP];
    gs_batch b[GROUP];
    uint64_t want[GROUP] = {0};
    gs_sampler *s;
    (void)state;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
    for (uint32_t k = 0; k < GROUP; k++)
        gs_assert_ok(gs_batch_arena_make(&a[k], s));
    for (uint32_t t = 0; t < GS_ARRAY_LEN(threads); t++) {
        gs_assert_ok(gs_sampler_draw_group(b, s, a, GROUP, 2, 1, threads[t], NULL));
        for (uint32_t k = 0; k < GROUP; k++) {
            assert_int_equal(b[k].number, 1 + k);
            if (t == 0)
                want[k] = sum_bytes(&b[k]);
            assert_true(sum_bytes(&b[k]) == want[k]);
        }
        gs_assert_ok(gs_sampler_draw(&b[0], s, a[t], 3, t)); /* another epoch leaves nothing behind */
        assert_true(sum_bytes(&b[0]) != want[0]);
    }
    bool wanted[GROUP]; /* the same, of some of them */
    for (uint32_t k = 0; k < GROUP; k++)
        wanted[k] = k % 3 == 1;
    gs_assert_ok(gs_sampler_draw_group(b, s, a, GROUP, 2, 1, 2, wanted));
    for (uint32_t k = 0; k < GROUP; k++) {
        assert_int_equal(b[k].targets, gs_sampler_targets(s, 1 + k));
        assert_true(wanted[k] ? sum_bytes(&b[k]) == want[k] : b[k].vertices == 0);
    }
    for (uint32_t k = 0; k < GROUP; k++)
        gs_batch_arena_free(a[k]);
    gs_sampler_close(s);
    drawn_graph_free(g);
}

/* A bound is kept or refused, and the arena is as good as before then. */
static void test_limits__are_kept_or_refused(void **state)
{
    drawn_graph *g = drawn_graph_make(300, 6000, 4, 0, false, 8);
    gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 10, .hops = 2, .fanout = {10, 10}};
    gs_batch_limits whole;
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    (void)state;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
    whole = *gs_sampler_limits(s);
    assert_true(whole.vertices <= 300 && whole.edges == 10 * 10 + 100 * 10);
    gs_sampler_close(s);
    o.arena_bytes = whole.arena_bytes * 2 / 3;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
    assert_true(gs_sampler_limits(s)->arena_bytes <= o.arena_bytes && gs_sampler_limits(s)->edges > whole.edges / 3);
    gs_sampler_close(s);
    o.arena_bytes = 1000;
    gs_assert_fails(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o), GS_EBUDGET, "at least");
    o.arena_bytes = 0;
    for (int rows = 0; rows < 2; rows++) {
        o.most_vertices = rows ? 30 : 0;
        o.most_edges = rows ? 0 : 60;
        gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
        gs_assert_ok(gs_batch_arena_make(&a, s));
        gs_assert_fails(gs_sampler_draw(&b, s, a, 0, 0), GS_EBUDGET, rows ? "more than 30 vertices" : "or 60 edges");
        gs_assert_fails(gs_sampler_draw_group(&b, s, &a, 1, 0, 1, 2, NULL), GS_EBUDGET, "batch 1 of epoch 0");
        gs_batch_arena_free(a);
        gs_sampler_close(s);
    }
    drawn_graph_free(g);
}

static void test_fit__narrows_limits_to_what_batches_have(void **state)
{
    drawn_graph *g = drawn_graph_make(9000, 30000, 4, 0, false, 8);
    gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 100, .hops = 3, .fanout = {10, 10, 10}};
    uint64_t most_vertices = 0, most_edges = 0;
    gs_sampler *s;
    gs_batch_arena *a;
    gs_batch b;
    (void)state;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
    assert_int_equal(gs_sampler_limits(s)->edges, 30000);
    gs_sampler_close(s);
    gs_assert_ok(gs_sampler_fit(&o, &g->in, NULL, g->target, g->targets, 30));
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
    gs_assert_ok(gs_batch_arena_make(&a, s));
    for (uint32_t k = 0; k < 2 * gs_sampler_batches(s); k++) { /* and batches that were not tried fit, too */
        gs_assert_ok(gs_sampler_draw(&b, s, a, k % 2, k / 2));
        if (k % 2 == 0) {
            most_vertices = GS_MAX(most_vertices, b.vertices);
            most_edges = GS_MAX(most_edges, b.edges);
        }
    }
    assert_int_equal(gs_sampler_batches(s), 30);
    assert_int_equal(o.most_vertices, most_vertices + (most_vertices + 3) / 4);
    assert_int_equal(o.most_edges, most_edges + (most_edges + 3) / 4);
    gs_batch_arena_free(a);
    gs_sampler_close(s);
    drawn_graph_free(g);
}

/* Fanouts above all in-degrees draw what fanout 0 takes, and need no more memory than one of the greatest. */
static void test_limits__of_a_fanout_above_all_degrees_are_those_of_the_longest_list(void **state)
{
    drawn_graph *g = drawn_graph_make(300, 1500, 4, 0, false, 8);
    gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 20, .hops = 2};
    uint64_t bytes[2] = {0};
    uint32_t longest = 0;
    gs_sampler *s;
    (void)state;
    for (uint32_t v = 0; v < 300; v++)
        longest = GS_MAX(longest, (uint32_t)gs_adjacency_degree(&g->in, v));
    for (int k = 0; k < 2; k++) {
        o.fanout[0] = o.fanout[1] = k == 0 ? longest : 1000000000;
        o.most_vertices = 300;
        o.most_edges = 1500;
        gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &o));
        bytes[k] = gs_sampler_limits(s)->arena_bytes;
        gs_sampler_close(s);
    }
    assert_in_range(bytes[1], bytes[0], bytes[0] + 64 * GS_KIB); /* batches may be larger by their bound of edges */
    drawn_graph_free(g);
}

static void test_open__refuses_what_makes_no_sense(void **state)
{
    drawn_graph *g = drawn_graph_make(30, 60, 2, 0, false, 1);
    gs_sampler *s;
    (void)state;
#define REFUSED(text, ...) \
    gs_assert_fails(gs_sampler_open(&s, &g->in, NULL, g->target, g->targets, &(gs_sampler_options){__VA_ARGS__}), \
                    GS_EINVAL, text)
    REFUSED("batch size", .hops = 1);
    REFUSED("hops", .batch_size = 1);
    REFUSED("hops", .batch_size = 1, .hops = 17);
    REFUSED("no weights", .batch_size = 1, .hops = 1, .weighted = true);
    REFUSED("no types", .batch_size = 1, .hops = 1, .by_type = true);
    REFUSED("lists of 3 types", .batch_size = 1, .hops = 1, .types = 3);
    REFUSED("intervals", .kind = GS_SAMPLER_CLUSTER, .batch_size = 3);
    REFUSED("walk length", .kind = GS_SAMPLER_SAINT_WALK, .batch_size = 3);
    drawn_graph_free(g);
    g = drawn_graph_make(30, 60, 2, 0, true, 1);
    ((float *)(uintptr_t)g->in.weight)[7] = -1;
    REFUSED("-1", .batch_size = 1, .hops = 1, .weighted = true);
#undef REFUSED
    drawn_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch__is_a_part_of_the_graph_with_its_fanouts),
        cmocka_unit_test(test_batch__types_have_fanouts_of_their_own),
        cmocka_unit_test(test_batch__wide_rows_are_a_part_too),
        cmocka_unit_test(test_batch__without_fanouts_is_the_whole_neighbourhood),
        cmocka_unit_test(test_draws__of_a_hub_are_uniform_over_edges),
        cmocka_unit_test(test_group__has_the_same_bytes_for_every_number_of_threads),
        cmocka_unit_test(test_limits__are_kept_or_refused),
        cmocka_unit_test(test_fit__narrows_limits_to_what_batches_have),
        cmocka_unit_test(test_limits__of_a_fanout_above_all_degrees_are_those_of_the_longest_list),
        cmocka_unit_test(test_open__refuses_what_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
