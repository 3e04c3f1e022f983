/* Batches of edges that stay in the store are, bit for bit, those of the same edges in memory. */
#include "drawn_graph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gnnstream.h"
#include "base/alloc.h"
#include "base/size.h"
#include "reference/reference.h"

enum { VERTICES = 230, EDGES = 4000, GROUP = 5 };

static char *folder;
static uint32_t overflowed, fitted; /* batches of limits that some exceed */

/* The same edges in the store and in memory. */
typedef struct pair {
    drawn_graph *graph;
    gs_store *store;
    gs_adjacency *in[2], *out[2]; /* memory, store */
    gs_adjacency *places;         /* of out-edges */
} pair;

/* What the graph of a pair is like. */
typedef struct kind {
    uint32_t parts, types;
    bool weights, symmetric;
} kind;

/* Each edge the other way, too, and each loop twice, with what it carries. */
static drawn_graph *make_graph(const kind *k, uint32_t seed)
{
    drawn_graph *const one = drawn_graph_make(VERTICES, k->symmetric ? EDGES / 2 : EDGES, k->parts, k->types,
                                              k->weights, seed);
    if (!k->symmetric)
        return one;
    drawn_edge *const both = ref_alloc(EDGES, sizeof(*both));
    for (uint32_t e = 0; e < one->edges; e++) {
        both[2 * e] = both[2 * e + 1] = one->edge[e];
        both[2 * e + 1].source = one->edge[e].dest;
        both[2 * e + 1].dest = one->edge[e].source;
    }
    drawn_graph *const g = drawn_graph_of(both, EDGES, VERTICES, k->parts, k->types, k->weights);
    drawn_graph_free(one);
    free(both);
    return g;
}

static pair open_kind(const kind *of, uint32_t seed)
{
    pair p = {.graph = make_graph(of, seed)};
    const uint32_t parts = of->parts;
    const bool weights = of->weights;
    const char *const graph = gs_test_path(folder, "graph"), *const path = gs_test_path(folder, "store");
    int64_t(*const edge)[2] = ref_alloc(EDGES, sizeof(*edge));
    float *const weight = ref_alloc(EDGES, sizeof(*weight));
    int64_t *const type = ref_alloc(EDGES, sizeof(*type));
    gs_partition_options o;
    for (uint32_t k = 0; k < EDGES; k++) {
        edge[k][0] = p.graph->edge[k].source;
        edge[k][1] = p.graph->edge[k].dest;
        weight[k] = p.graph->edge[k].weight;
        type[k] = p.graph->edge[k].type;
    }
    (void)mkdir(graph, 0700); /* of the test before */
    (void)unlink(gs_test_path(graph, "edge_weights.npy"));
    (void)unlink(gs_test_path(graph, "edge_types.npy"));
    ref_npy_write(gs_test_path(graph, "edges.npy"), "i8", EDGES, 2, edge);
    if (weights)
        ref_npy_write(gs_test_path(graph, "edge_weights.npy"), "f4", EDGES, 0, weight);
    if (of->types > 0)
        ref_npy_write(gs_test_path(graph, "edge_types.npy"), "i8", EDGES, 0, type);
    free(edge);
    free(weight);
    free(type);
    gs_partition_options_init(&o);
    o.parts = parts;
    o.method = "natural";
    o.force = true;
    gs_assert_ok(gs_partition(graph, path, &o, NULL));
    gs_assert_ok(gs_store_open(&p.store, path));
    gs_assert_ok(gs_adjacency_load(&p.in[0], p.store, GS_BY_DEST, GS_GIB, NULL));
    gs_assert_ok(gs_adjacency_stream(&p.in[1], p.store, GS_BY_DEST, NULL));
    assert_int_equal(gs_store_get_info(p.store)->symmetric, of->symmetric);
    if (of->symmetric)
        return p;
    gs_assert_ok(gs_adjacency_load(&p.out[0], p.store, GS_BY_SOURCE, GS_GIB, NULL));
    gs_assert_ok(gs_adjacency_stream(&p.out[1], p.store, GS_BY_SOURCE, NULL));
    gs_assert_ok(gs_adjacency_count(&p.places, p.store, GS_BY_SOURCE, NULL));
    return p;
}

static pair open_pair(uint32_t parts, bool weights, uint32_t seed)
{
    const kind k = {.parts = parts, .weights = weights};
    return open_kind(&k, seed);
}

static void close_pair(pair *p)
{
    gs_adjacency_free(p->in[0]);
    gs_adjacency_free(p->in[1]);
    gs_adjacency_free(p->out[0]);
    gs_adjacency_free(p->out[1]);
    gs_adjacency_free(p->places);
    gs_store_close(p->store);
    drawn_graph_free(p->graph);
}

static void expect_same(const gs_batch *a, const gs_batch *b)
{
    assert_int_equal(a->overflows, b->overflows);
    assert_int_equal(a->number, b->number);
    assert_int_equal(a->vertices, b->vertices);
    assert_int_equal(a->targets, b->targets);
    assert_int_equal(a->expanded, b->expanded);
    assert_int_equal(a->edges, b->edges);
    if (a->overflows)
        return;
    assert_memory_equal(a->hop_end, b->hop_end, sizeof(a->hop_end));
    assert_memory_equal(a->vertex, b->vertex, a->vertices * sizeof(*a->vertex));
    assert_memory_equal(a->in_degree, b->in_degree, a->vertices * sizeof(*a->in_degree));
    assert_memory_equal(a->loops, b->loops, a->vertices * sizeof(*a->loops));
    assert_int_equal(a->loss_weight != NULL, b->loss_weight != NULL);
    if (a->loss_weight != NULL)
        assert_memory_equal(a->loss_weight, b->loss_weight, a->targets * sizeof(*a->loss_weight));
    for (int d = 0; d < 2 && a->edges > 0; d++) {
        assert_int_equal(a->chunk[d].length, b->chunk[d].length);
        assert_memory_equal(a->bytes[d], b->bytes[d], a->chunk[d].length);
    }
}

/* All batches of an epoch by groups, and a part of one; how many overflow. */
static uint32_t compare(const pair *p, const gs_sampler_options *o)
{
    gs_sampler *s[2];
    gs_batch_arena *arena[2][GROUP];
    gs_batch b[2][GROUP];
    uint32_t overflow = 0;

    for (int d = 0; d < 2; d++) {
        const gs_adjacency *const out = o->kind == GS_SAMPLER_NEIGHBOR     ? NULL
                                        : o->kind == GS_SAMPLER_SAINT_NODE ? p->places
                                                                           : p->out[d];
        gs_assert_ok(gs_sampler_open(&s[d], p->in[d], out, p->graph->target, p->graph->targets, o));
        for (uint32_t k = 0; k < GROUP; k++)
            gs_assert_ok(gs_batch_arena_make(&arena[d][k], s[d]));
    }
    gs_alloc_freeze(true);
    for (uint32_t first = 0; first < gs_sampler_batches(s[0]); first += GROUP) {
        const uint32_t n = GS_MIN(GROUP, gs_sampler_batches(s[0]) - first);
        const gs_status in_memory = gs_sampler_draw_group(b[0], s[0], arena[0], n, 3, first, 2, NULL);
        assert_int_equal(gs_sampler_draw_group(b[1], s[1], arena[1], n, 3, first, 2, NULL), in_memory);
        for (uint32_t k = 0; k < n; k++) {
            expect_same(&b[0][k], &b[1][k]);
            overflow += b[0][k].overflows;
        }
    }
    for (int d = 0; d < 2 && o->kind == GS_SAMPLER_NEIGHBOR; d++)
        gs_assert_ok(gs_sampler_draw_part(&b[d][0], s[d], arena[d][0], 1, 1, 2, 3));
    expect_same(&b[0][0], &b[1][0]);
    gs_alloc_freeze(false);
    assert_int_equal(gs_alloc_frozen_count(), 0);
    for (int d = 0; d < 2; d++) {
        for (uint32_t k = 0; k < GROUP; k++)
            gs_batch_arena_free(arena[d][k]);
        gs_sampler_close(s[d]);
    }
    return overflow;
}

static void test_batches__are_those_of_edges_in_memory(void **state)
{
    static const uint32_t fanout[4][3] = {{3, 2, 40}, {0, 5, 3}, {4, 0, 0}, {300, 1, 2}};
    (void)state;
    for (uint32_t c = 0; c < 4; c++) {
        pair p = open_pair(1 + c % 4 * 2, c % 2 == 1, c);
        for (uint32_t f = 0; f < 8; f++) {
            gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = c, .batch_size = 6 + c, .hops = 1 + f % 3,
                                    .replace = f > 3};
            memcpy(o.fanout, fanout[f % 4], sizeof(fanout[0]));
            if (gs_test_takes(c * 8 + f, 2))
                assert_int_equal(compare(&p, &o), 0);
        }
        close_pair(&p);
    }
}

/* Types of edges, which chunks have in order and lists by type have, too; drawn by type and not. */
static void test_batches__of_typed_edges_are_those_in_memory(void **state)
{
    static const uint32_t fanout[4][3] = {{3, 2, 40}, {0, 5, 3}, {4, 0, 0}, {2, 1, 2}};
    (void)state;
    for (uint32_t c = 0; c < 4; c++) {
        const kind k = {.parts = 1 + c * 2, .types = 2 + c * 3, .weights = c % 2 == 1};
        pair p = open_kind(&k, c);
        for (uint32_t f = 0; f < 16; f++) {
            gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = c, .batch_size = 6 + c, .hops = 1 + f % 3,
                                    .replace = (f & 4) != 0, .by_type = f >= 8};
            memcpy(o.fanout, fanout[f % 4], sizeof(fanout[0]));
            for (uint32_t i = 0; f >= 12 && i < o.hops * (o.types = k.types); i++)
                o.type_fanout[i] = i % 5 == 4 ? GS_FANOUT_NONE : fanout[i % 4][i % 3];
            if (f == 8)
                gs_assert_ok(gs_adjacency_sort_types(p.in[0]));
            if (f == 8 || gs_test_takes(c * 16 + f, 2))
                assert_int_equal(compare(&p, &o), 0);
        }
        close_pair(&p);
    }
}

/* Subgraphs by each law, with coefficients and without, of graphs that are symmetric or not. */
static void test_subgraphs__are_those_of_edges_in_memory(void **state)
{
    static const gs_sampler_options saint[] = {
        {.kind = GS_SAMPLER_SAINT_NODE, .batch_size = 40},
        {.kind = GS_SAMPLER_SAINT_EDGE, .batch_size = 25},
        {.kind = GS_SAMPLER_SAINT_WALK, .batch_size = 12, .walk_length = 3},
    };
    (void)state;
    for (uint32_t c = 0; c < 8; c++) {
        const kind k = {.parts = 1 + c % 4 * 2, .types = c % 3 == 1 ? 4 : 0, .weights = c % 2 == 1,
                        .symmetric = c % 8 > 3};
        pair p = open_kind(&k, c);
        for (uint32_t i = 0; i < GS_ARRAY_LEN(saint); i++)
            for (uint32_t coverage = 0; coverage < 10; coverage += 7) {
                gs_sampler_options o = saint[i];
                o.seed = c;
                o.batches = 2 * GROUP + 1;
                o.coverage = coverage;
                o.coefficients_alone = c % 4 == 1;
                o.cover_bytes = c % 2 * GS_MIB;
                assert_int_equal(compare(&p, &o), 0);
                if (coverage > 0)
                    continue;
                o.most_vertices = i == 0 ? 36 : 38; /* about what they have */
                const uint32_t by_rows = compare(&p, &o);
                o.most_vertices = 0;
                o.most_edges = EDGES / 50;
                const uint32_t by_edges = compare(&p, &o);
                overflowed += by_rows + by_edges;
                fitted += 2 * o.batches - by_rows - by_edges;
            }
        close_pair(&p);
    }
    assert_true(overflowed > 20 && fitted > 20);
}

static void test_batches__overflow_where_those_in_memory_do(void **state)
{
    pair p = open_pair(4, false, 9);
    gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = 2, .batch_size = 7, .hops = 2, .fanout = {6, 6}};
    (void)state;
    o.most_vertices = 100;
    const uint32_t by_rows = compare(&p, &o);
    assert_true(by_rows > 0 && by_rows < 11);
    o.most_vertices = 0;
    o.most_edges = 160;
    const uint32_t by_edges = compare(&p, &o);
    assert_true(by_edges > 0 && by_edges < 11);
    close_pair(&p);
}

/* What batches tried together had is what they had one by one. */
static void test_fit__is_that_of_edges_in_memory(void **state)
{
    pair p = open_pair(4, false, 5);
    gs_sampler_options o[2];
    (void)state;
    for (uint64_t memory = 0; memory <= GS_MIB; memory += GS_MIB) {
        for (int d = 0; d < 2; d++) {
            o[d] = (gs_sampler_options){.kind = GS_SAMPLER_NEIGHBOR, .seed = 2, .batch_size = 3, .hops = 2,
                                        .fanout = {3, 3}, .arena_bytes = d == 1 ? memory : 0};
            gs_assert_ok(gs_sampler_fit(&o[d], p.in[d], NULL, p.graph->target, p.graph->targets, 13));
        }
        assert_int_equal(o[0].most_vertices, o[1].most_vertices);
        assert_int_equal(o[0].most_edges, o[1].most_edges);
    }
    o[1].arena_bytes = 100; /* no room for one */
    gs_assert_fails(gs_sampler_fit(&o[1], p.in[1], NULL, p.graph->target, p.graph->targets, 13), GS_EBUDGET,
                    "give smaller batches");
    close_pair(&p);
}

static void test_stream__keeps_its_memory_and_reads_what_it_says(void **state)
{
    pair p = open_pair(4, true, 6);
    gs_adjacency *a = NULL;
    gs_status st;
    (void)state;
    const uint64_t before = gs_alloc_live_bytes();
    gs_assert_ok(gs_adjacency_stream(&a, p.store, GS_BY_DEST, NULL));
    assert_true(gs_alloc_live_bytes() - before <= a->bytes + 2 * GS_BLOCK_BYTES);
    /* places and self loops of the vertices, a window */
    assert_true(a->bytes <= 8 * GS_MIB + 12 * (uint64_t)a->vertices + 64 * GS_KIB && a->other == NULL);
    assert_int_equal(gs_adjacency_bytes_read(a) / GS_BLOCK_BYTES >= 4, 1); /* EDGES of 6 bytes */
    gs_adjacency_free(a);
    st = GS_ENOMEM;
    for (uint64_t nth = 1; st != GS_OK; nth++) {
        gs_alloc_fail_nth(nth);
        st = gs_adjacency_stream(&a, p.store, GS_BY_DEST, NULL);
        gs_alloc_fail_nth(0);
        if (st != GS_OK) {
            assert_int_equal(st, GS_ENOMEM);
            assert_int_equal(gs_alloc_live_bytes(), before);
        }
    }
    gs_adjacency_free(a);
    close_pair(&p);
}

/* Told to give up, a draw does, and says that it was one: of lists in memory and in the store, alone and in groups. */
static void test_draws__give_up_when_they_are_told_to(void **state)
{
    static const gs_sampler_options kinds[] = {
        {.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 6, .hops = 2, .fanout = {3, 3}},
        {.kind = GS_SAMPLER_CLUSTER, .batch_size = 2},
        {.kind = GS_SAMPLER_SAINT_NODE, .batch_size = 40},
        {.kind = GS_SAMPLER_SAINT_EDGE, .batch_size = 25},
        {.kind = GS_SAMPLER_SAINT_WALK, .batch_size = 12, .walk_length = 3},
    };
    pair p = open_pair(4, false, 8);
    (void)state;
    for (size_t i = 0; i < GS_ARRAY_LEN(kinds); i++)
        for (int d = 0; d < 2; d++) {
            const gs_adjacency *const out = i == 2 ? p.places : i > 2 ? p.out[d] : NULL;
            gs_sampler_options o = kinds[i];
            gs_batch_arena *arena[2];
            volatile int stop = 0;
            gs_sampler *s;
            gs_batch b[2];
            o.stop = &stop;
            gs_assert_ok(gs_sampler_open(&s, p.in[d], out, p.graph->target, p.graph->targets, &o));
            for (int k = 0; k < 2; k++)
                gs_assert_ok(gs_batch_arena_make(&arena[k], s));
            stop = 1;
            gs_assert_fails(gs_sampler_draw(b, s, arena[0], 0, 0), GS_EINTERRUPTED, "while batches were drawn");
            gs_assert_fails(gs_sampler_draw_group(b, s, arena, 2, 0, 0, 2, NULL), GS_EINTERRUPTED, "while batches");
            stop = 0;
            gs_assert_ok(gs_sampler_draw_group(b, s, arena, 2, 0, 0, 2, NULL));
            assert_true(b[0].vertices > 0 && b[1].vertices > 0);
            for (int k = 0; k < 2; k++)
                gs_batch_arena_free(arena[k]);
            gs_sampler_close(s);
            stop = 1;
            o.coverage = 2;
            if (i >= 2)
                gs_assert_fails(gs_sampler_open(&s, p.in[d], out, p.graph->target, p.graph->targets, &o),
                                GS_EINTERRUPTED, "while batches were drawn");
        }
    close_pair(&p);
}

/* What is made once for coefficients is given back where memory is short. */
static void test_open__fails_cleanly_where_memory_is_short(void **state)
{
    const gs_sampler_options o = {.kind = GS_SAMPLER_SAINT_EDGE, .batch_size = 25, .coverage = 3,
                                  .cover_bytes = GS_MIB};
    pair p = open_pair(4, false, 3);
    gs_sampler *s = NULL;
    (void)state;
    for (int d = 0; d < 2; d++) {
        const uint64_t before = gs_alloc_live_bytes();
        gs_status st = GS_ENOMEM;
        for (uint64_t nth = 1; st != GS_OK; nth++) {
            gs_alloc_fail_nth(nth);
            st = gs_sampler_open(&s, p.in[d], p.out[d], p.graph->target, p.graph->targets, &o);
            gs_alloc_fail_nth(0);
            if (st != GS_OK) {
                assert_int_equal(st, GS_ENOMEM);
                assert_int_equal(gs_alloc_live_bytes(), before);
            }
        }
        /* what an allocation has beside its bytes */
        assert_true(gs_alloc_live_bytes() - before <= gs_sampler_bytes(s) + 8 * 32);
        gs_sampler_close(s);
    }
    close_pair(&p);
}

static void test_open__refuses_what_needs_edges_in_memory(void **state)
{
    static const struct {
        gs_sampler_options o;
        const char *words;
    } cases[] = {
        {{.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 3, .hops = 1, .weighted = true}, "drawn by weight"},
        {{.kind = GS_SAMPLER_NEIGHBOR, .batch_size = 3, .hops = 1, .by_type = true}, "the store has no types"},
    };
    pair p = open_pair(4, true, 7);
    gs_sampler *s;
    (void)state;
    for (size_t k = 0; k < GS_ARRAY_LEN(cases); k++)
        gs_assert_fails(gs_sampler_open(&s, p.in[1], NULL, p.graph->target, p.graph->targets, &cases[k].o), GS_EINVAL,
                        cases[k].words);
    close_pair(&p);
}

static int begin(void **state)
{
    (void)state;
    folder = gs_test_temp_dir();
    return 0;
}

static int end(void **state)
{
    (void)state;
    gs_test_temp_remove(folder);
    return 0;
}

/* ---- seeds --------------------------------------------------------------- */

enum { PAIRS = 9 };

typedef struct seeding {
    const drawn_graph *graph;
    bool typed;
} seeding;

typedef struct seed_lists {
    uint32_t vertex[2 * PAIRS], source[PAIRS], destination[PAIRS], type[PAIRS];
} seed_lists;

static uint32_t place_of(seed_lists *l, uint32_t *vertices, uint32_t vertex)
{
    uint32_t at = 0;
    while (at < *vertices && l->vertex[at] != vertex)
        at++;
    l->vertex[at] = vertex;
    *vertices += at == *vertices;
    return at;
}

/* Edges of the graph, of the hub and of others, one twice; the last one's type is another one than the edge's. */
static gs_status fill_seeds(void *context, gs_batch_seeds *out, void *memory, uint32_t epoch, uint32_t number)
{
    const seeding *const s = context;
    seed_lists *const l = memory;
    uint32_t vertices = 0;

    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint32_t at = (epoch * 1000 + number * 389 + (k == 1 ? 0 : k) * 443) % s->graph->edges;
        l->source[k] = place_of(l, &vertices, s->graph->edge[at].source);
        l->destination[k] = place_of(l, &vertices, s->graph->edge[at].dest);
        l->type[k] = s->graph->edge[at].type + (k == PAIRS - 1);
    }
    *out = (gs_batch_seeds){.vertex = l->vertex, .vertices = vertices, .end = {l->source, l->destination},
                            .type = s->typed ? l->type : NULL, .edges = PAIRS, .of_caller = l};
    return GS_OK;
}

static bool is_left_out(const gs_batch *b, const drawn_edge *e, bool typed, bool both_ways)
{
    const seed_lists *const l = b->seeds;
    bool out = false;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint32_t source = l->vertex[l->source[k]], destination = l->vertex[l->destination[k]];
        const bool same = source == e->source && destination == e->dest,
                   other = both_ways && source == e->dest && destination == e->source;
        out = out || ((same || other) && (!typed || l->type[k] == e->type));
    }
    return out;
}

/* Of a batch with all in-edges: those of each row that was expanded, but for what is left out of the targets'. */
static void check_left_out(const drawn_graph *g, const gs_batch *b, bool typed, bool both_ways)
{
    uint32_t gone = 0, row;
    for (uint32_t r = 0; r < b->expanded; r++) {
        uint32_t left = 0, there = 0;
        for (uint32_t k = g->first[b->vertex[r]]; k < g->first[b->vertex[r] + 1]; k++) {
            const bool out = is_left_out(b, &g->edge[k], typed, both_ways);
            assert_true(!out || r < b->targets);
            left += !out;
            gone += out;
        }
        for (uint64_t k = 0; k < b->edges; k++) {
            const drawn_edge e = drawn_batch_edge(b, k, &row);
            there += row == r;
            assert_false(is_left_out(b, &e, typed, both_ways));
        }
        assert_int_equal(there, left);
        assert_true(b->in_degree[r] == (float)left);
    }
    assert_true(gone >= PAIRS - 2);
    assert_int_equal(memcmp(b->vertex, ((const seed_lists *)b->seeds)->vertex, b->targets * sizeof(*b->vertex)), 0);
}

/* Batches of seeds do without the edges that these say, whether lists are in memory or in the store. */
static void test_seeds__edges_are_left_out(void **state)
{
    static const kind kinds[] = {{.parts = 3}, {.parts = 4, .types = 3, .weights = true},
                                 {.parts = 2, .types = 2, .symmetric = true}, {.parts = 5, .symmetric = true}};
    (void)state;
    for (uint32_t c = 0; c < GS_ARRAY_LEN(kinds); c++) {
        pair p = open_kind(&kinds[c], 20 + c);
        seeding of = {.graph = p.graph, .typed = kinds[c].types > 0};
        const gs_seed_source seeds = {.context = &of, .fill = fill_seeds, .bytes = sizeof(seed_lists), .batches = 7,
                                      .most_vertices = 2 * PAIRS, .most_edges = PAIRS,
                                      .both_ways = kinds[c].symmetric};
        gs_sampler_options o = {.kind = GS_SAMPLER_NEIGHBOR, .seed = c, .batch_size = PAIRS, .hops = 2,
                                .seeds = &seeds};
        gs_sampler *s;
        gs_batch_arena *a;
        gs_batch b;
        gs_assert_ok(gs_sampler_open(&s, p.in[0], NULL, NULL, 0, &o));
        gs_assert_ok(gs_batch_arena_make(&a, s));
        assert_int_equal(gs_sampler_batches(s), 7);
        for (uint32_t k = 0; k < 7; k++) {
            gs_assert_ok(gs_sampler_draw(&b, s, a, 2, k));
            drawn_graph_check(p.graph, &b, gs_sampler_limits(s), false, kinds[c].weights);
            check_left_out(p.graph, &b, of.typed, seeds.both_ways);
        }
        gs_batch_arena_free(a);
        gs_sampler_close(s);
        assert_int_equal(compare(&p, &o), 0);
        o.fanout[0] = 20;
        o.fanout[1] = 2;
        assert_int_equal(compare(&p, &o), 0);
        close_pair(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches__are_those_of_edges_in_memory),
        cmocka_unit_test(test_batches__of_typed_edges_are_those_in_memory),
        cmocka_unit_test(test_seeds__edges_are_left_out),
        cmocka_unit_test(test_subgraphs__are_those_of_edges_in_memory),
        cmocka_unit_test(test_batches__overflow_where_those_in_memory_do),
        cmocka_unit_test(test_fit__is_that_of_edges_in_memory),
        cmocka_unit_test(test_stream__keeps_its_memory_and_reads_what_it_says),
        cmocka_unit_test(test_draws__give_up_when_they_are_told_to),
        cmocka_unit_test(test_open__fails_cleanly_where_memory_is_short),
        cmocka_unit_test(test_open__refuses_what_needs_edges_in_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
