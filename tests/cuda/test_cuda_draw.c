/* Batches of neighbours drawn on a GPU: vertices, edges and their order are those of the CPU's sampler. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "base/size.h"
#include "device_fixture.h"
#include "gpu_devices.h"
#include "sample/sampler.h"

/* In-degrees are 0 to MOST_DEGREE, small ones the most often. */
enum { VERTICES = 16000, MOST_DEGREE = 90 };

typedef struct graph {
    gs_adjacency in;
    uint32_t *first, *other, *target, *own;
    uint64_t *loops;
    float *weight;
    void *type;
} graph;

/* Two thirds of the edges come from a sixteenth of the vertices, which edges of a batch share. */
static uint32_t far_end(uint32_t k)
{
    return random_below(k, 2, 3) > 0 ? random_below(k, 3, VERTICES / 16) * 16 : random_below(k, 4, VERTICES);
}

static graph make_graph(void)
{
    graph g = {.first = gs_malloc_array(VERTICES + 1, 4), .target = gs_malloc_array(VERTICES, 4)};
    uint32_t n = 0;
    g.own = gs_calloc(VERTICES, 4);
    g.loops = gs_calloc(VERTICES / 64 + 1, 8);
    for (uint32_t v = 0; v < VERTICES; v++) {
        g.first[v] = n;
        n += random_below(v, 1, random_below(v, 5, 3) == 0 ? MOST_DEGREE + 1 : 14);
        g.target[v] = v;
    }
    g.first[VERTICES] = n;
    g.other = gs_malloc_array(n, 4);
    for (uint32_t k = 0; k < n; k++)
        g.other[k] = far_end(k);
    for (uint32_t v = 0; v < VERTICES; v++)
        for (uint32_t k = g.first[v]; k < g.first[v + 1]; k++) {
            g.other[k] = random_below(k, 6, 9) == 0 ? v : g.other[k];
            g.own[v] += g.other[k] == v;
            g.loops[v / 64] |= (uint64_t)(g.other[k] == v) << v % 64;
        }
    g.in = (gs_adjacency){.vertices = VERTICES, .edges = n, .parts = 1, .interval_rows = VERTICES,
                          .first32 = g.first, .other = g.other, .loops = g.loops};
    return g;
}

/* A list has edges of 1 to 3 types, each in one piece, as gs_adjacency_sort_types() leaves them; or in any
 * order. */
static void add_types(graph *g, uint32_t type_bytes, bool in_order)
{
    const uint32_t types = type_bytes == 1 ? 5 : 300;
    g->type = gs_malloc_array(g->in.edges, type_bytes);
    for (uint32_t v = 0; v < VERTICES; v++) {
        const uint32_t first = random_below(v, 7, types - 2), kinds = 1 + random_below(v, 8, 3);
        const uint32_t degree = g->first[v + 1] - g->first[v];
        for (uint32_t i = 0; i < degree; i++) {
            const uint32_t of = in_order ? i * kinds / degree : random_below(g->first[v] + i, 9, kinds);
            put_number(g->type, type_bytes, g->first[v] + i, first + of);
        }
    }
    g->in.type = g->type;
    g->in.data.type_bytes = type_bytes;
    g->in.edge_types = types;
    g->in.by_type = in_order;
}

/* Of a vertex in eight all edges have one weight, of another a third has none, of another none has any; the others'
 * lie within a factor of ten thousand, and some are the largest and least there are. */
static void add_weights(graph *g)
{
    g->weight = gs_malloc_array(g->in.edges, sizeof(float));
    for (uint32_t v = 0; v < VERTICES; v++) {
        const uint32_t kind = random_below(v, 10, 8);
        for (uint32_t k = g->first[v]; k < g->first[v + 1]; k++) {
            const float any = exp2f(random_between(k, 11, -7, 7)), ends[] = {1e-45f, 3e38f, any};
            g->weight[k] = kind == 0 ? 1 : kind == 1 ? 0 : kind == 2 && random_below(k, 12, 3) == 0 ? 0
                         : kind == 3 ? ends[random_below(k, 13, 3)] : any;
        }
    }
    g->in.weight = g->weight;
    g->in.data.weights = true;
}

static void drop_graph(graph *g)
{
    gs_free(g->weight);
    gs_free(g->type);
    gs_free(g->first);
    gs_free(g->other);
    gs_free(g->target);
    gs_free(g->own);
    gs_free(g->loops);
}

/* What lies in the device's arena, for batches of these limits, each array at a whole block. */
typedef struct there {
    uint8_t *at;
    uint64_t used;
} there;

static void *take(there *t, uint64_t bytes)
{
    void *const p = t->at + t->used;
    t->used += gs_align_up(bytes, GS_BLOCK_BYTES);
    return p;
}

static void *bring(gs_device *d, there *t, const void *from, uint64_t bytes)
{
    void *const to = take(t, bytes);
    uint64_t number;
    bool done = false;
    gs_assert_ok(gs_device_transfer(d, GS_DEVICE_FROM_HOST, NULL, to, from, bytes));
    gs_assert_ok(gs_device_mark_transfers(d, GS_DEVICE_FROM_HOST, &number));
    gs_assert_ok(gs_device_poll_transfers(d, GS_DEVICE_FROM_HOST, number, true, &done));
    return to;
}

static gs_draw_launch launch_of(gs_device *d, there *t, const graph *g, const gs_sampler_options *o,
                                const gs_batch_limits *limits)
{
    const uint64_t rows = limits->vertices, edges = limits->edges;
    gs_draw_launch l = {.first = bring(d, t, g->first, (VERTICES + 1) * 4ull),
                        .other = bring(d, t, g->other, g->in.edges * 4), .hops = o->hops,
                        .own = bring(d, t, g->own, VERTICES * 4), .loops = take(t, rows * 4),
                        .most_rows = limits->vertices, .most_edges = (uint32_t)edges,
                        .type_bytes = g->in.data.type_bytes, .weights = g->in.data.weights,
                        .weighted = o->weighted, .by_types = o->by_type ? g->in.edge_types : 0,
                        .index_bytes = gs_batch_index_bytes(limits), .in_split = 1, .out_split = 3,
                        .vertex = take(t, rows * 4), .in_degree = take(t, rows * 4), .split = take(t, rows),
                        .lists = o->hops + 1};
    l.scratch = take(t, gs_device_draw_bytes(d, &l));
    l.type = l.type_bytes > 0 ? bring(d, t, g->type, g->in.edges * l.type_bytes) : NULL;
    l.weight = l.weights ? bring(d, t, g->weight, g->in.edges * 4) : NULL;
    memcpy(l.fanout, o->fanout, sizeof(l.fanout));
    gs_random_key(l.key, o->seed, GS_RANDOM_SAMPLE);
    for (uint32_t k = 0; k < l.lists; k++)
        l.list[k] = (gs_draw_list){.operands = k, .target = take(t, rows * 4), .start = take(t, (rows + 1) * 4),
                                   .index = take(t, edges * 4), .type = take(t, edges * l.type_bytes),
                                   .weight = take(t, l.weights ? edges * 4 : 0)};
    return l;
}

static void expect_numbers(gs_device *d, const void *from, const void *expected, uint64_t bytes, const char *what)
{
    uint8_t *const host = gs_malloc_array(bytes + 1, 1);
    gs_assert_ok(gs_device_peek(d, host, from, bytes));
    if (memcmp(host, expected, bytes) != 0)
        fail_msg("%s: not those of the CPU", what);
    gs_free(host);
}

/* A list against a chunk of the CPU's: its first `targets`, which have so many edges. */
static void expect_list(gs_device *d, const gs_draw_list *l, const gs_draw_counts *n, uint32_t number,
                        const gs_chunk_view *v, uint32_t hops, const uint32_t *hop_end)
{
    assert_int_equal(n->list[number].targets[hops], v->targets);
    assert_int_equal(n->list[number].ends[hops], v->edges);
    assert_int_equal(n->list[number].largest, v->largest);
    expect_numbers(d, l->target, v->target, (uint64_t)v->targets * v->index_bytes, "rows with edges");
    expect_numbers(d, l->start, v->start, (v->targets + 1ull) * 4, "where they begin");
    expect_numbers(d, l->index, v->index, (uint64_t)v->edges * v->index_bytes, "the other ends");
    if (v->type_bytes > 0)
        expect_numbers(d, l->type, v->type, (uint64_t)v->edges * v->type_bytes, "types");
    if (v->weight != NULL)
        expect_numbers(d, l->weight, v->weight, (uint64_t)v->edges * 4, "weights");
    for (uint32_t h = 0; h <= hops; h++) {
        uint32_t below = 0;
        while (below < v->targets && gs_index_at(v->target, v->index_bytes, below) < hop_end[h])
            below++;
        assert_int_equal(n->list[number].targets[h], below);
        assert_int_equal(n->list[number].ends[h], v->start[below]);
    }
}

/* Edges into rows before hop `operands`, by source, each in the order of the chunk by destination, from which a batch
 * on the host makes them: looked for source by source. */
static void expect_part(gs_device *d, const gs_draw_list *l, const gs_draw_counts *n, const gs_batch *b)
{
    const gs_chunk_view *const v = &b->view[GS_BY_DEST];
    const uint32_t below = b->hop_end[l->operands - 1], ix = v->index_bytes;
    uint32_t *const next = gs_calloc(b->vertices + 1ull, 4), edges = 0, targets = 0, taken = 0;
    while (targets < v->targets && gs_index_at(v->target, ix, targets) < below)
        targets++;
    edges = v->start[targets];
    uint8_t *const index = gs_malloc_array(edges + 1ull, ix), *const target = gs_malloc_array(b->vertices + 1ull, ix);
    uint8_t *const type = gs_calloc(edges + 1ull, 2), *const weight = gs_calloc(edges + 1ull, 4);
    for (uint32_t k = 0; k < edges; k++)
        next[gs_index_at(v->index, ix, k) + 1]++;
    for (uint32_t r = 0; r < b->vertices; r++) {
        if (next[r + 1] > 0)
            gs_index_put(target, ix, taken++, r);
        next[r + 1] += next[r];
    }
    for (uint32_t t = 0; t < targets; t++)
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint32_t to = next[gs_index_at(v->index, ix, k)]++;
            gs_index_put(index, ix, to, gs_index_at(v->target, ix, t));
            if (v->type_bytes > 0)
                put_number(type, v->type_bytes, to, gs_type_at(v->type, v->type_bytes, k));
            if (v->weight != NULL)
                ((float *)(void *)weight)[to] = v->weight[k];
        }
    assert_int_equal(n->list[l->operands].targets[b->hops], taken);
    assert_int_equal(n->list[l->operands].ends[b->hops], edges);
    expect_numbers(d, l->target, target, (uint64_t)taken * ix, "rows with edges into the first hops");
    expect_numbers(d, l->index, index, (uint64_t)edges * ix, "the other ends in the first hops");
    expect_numbers(d, l->type, type, (uint64_t)edges * v->type_bytes, "types in the first hops");
    if (v->weight != NULL)
        expect_numbers(d, l->weight, weight, edges * 4ull, "weights in the first hops");
    gs_free(next);
    gs_free(index);
    gs_free(target);
    gs_free(type);
    gs_free(weight);
}

static void expect_batch(gs_device *d, const gs_draw_launch *l, const gs_draw_counts *n, const gs_batch *b)
{
    uint8_t *const split = gs_malloc_array(b->vertices, 1);
    assert_int_equal(n->overflows, 0);
    for (uint32_t h = 0; h <= b->hops; h++)
        assert_int_equal(n->rows[h], b->hop_end[h]);
    assert_int_equal(n->edges[b->hops], b->edges);
    expect_numbers(d, l->vertex, b->vertex, b->vertices * 4ull, "vertices");
    expect_numbers(d, l->in_degree, b->in_degree, b->vertices * 4ull, "in-degrees");
    expect_numbers(d, l->loops, b->loops, b->vertices * 4ull, "self loops");
    for (uint32_t r = 0; r < b->vertices; r++)
        split[r] = r < b->targets ? 1 : 3;
    expect_numbers(d, l->split, split, b->vertices, "the split");
    gs_free(split);
    expect_list(d, &l->list[0], n, 0, &b->view[GS_BY_DEST], b->hops, b->hop_end);
    expect_list(d, &l->list[b->hops], n, b->hops, &b->view[GS_BY_SOURCE], b->hops, b->hop_end);
    for (uint32_t k = 1; k < b->hops; k++)
        expect_part(d, &l->list[k], n, b);
}

/* Rows whose edges were drawn; and batches that had no room. */
static uint64_t check_fanouts(const graph *g, const gs_sampler_options *o, uint32_t batches, uint32_t *overflowed)
{
    gs_device *const d = open_gpu();
    gs_device_memory m = {.arena_bytes = 16 * GS_MIB};
    gs_batch_arena *arena = NULL;
    gs_sampler *s = NULL;
    void *memory = NULL;
    uint64_t cases = 0;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, VERTICES, o));
    uint32_t *const seeds = gs_malloc_array(gs_sampler_most_targets(s), sizeof(*seeds));
    gs_assert_ok(gs_batch_arena_make(&arena, s));
    gs_assert_ok(gs_device_take_memory(d, &m, &memory));
    gs_assert_ok(gs_device_join(&d, 1));
    there t = {.at = memory};
    gs_draw_launch l = launch_of(d, &t, g, o, gs_sampler_limits(s));
    assert_true(t.used <= m.arena_bytes);
    for (uint32_t k = 0; k < batches; k++) {
        gs_draw_counts n;
        gs_batch b;
        l.number = k % gs_sampler_batches(s);
        l.epoch = k;
        gs_sampler_seeds(&b, s, seeds, l.epoch, l.number);
        l.targets = b.vertex;
        l.targets_held = b.targets;
        gs_assert_ok(gs_device_draw(d, &l, &n));
        const gs_status st = gs_sampler_draw(&b, s, arena, l.epoch, l.number);
        assert_int_equal(n.overflows != 0, st == GS_EBUDGET);
        *overflowed += st == GS_EBUDGET;
        if (st == GS_OK)
            expect_batch(d, &l, &n, &b);
        cases += b.expanded;
    }
    gs_device_quiet(d);
    gs_device_give_memory(d);
    gs_device_close(d);
    gs_free(seeds);
    gs_batch_arena_free(arena);
    gs_sampler_close(s);
    return cases;
}

static void test_cuda_draw__batches_are_those_of_the_cpu(void **state)
{
    static const struct {
        uint32_t targets, edges, batches, fanout[3];
    } of[] = {{4000, 25000, 9, {3, 2, 0}},   {8000, 28000, 3, {1, 2, 2}}, {500, 30000, 2, {15, 10, 0}},
              {500, 15000, 2, {32, 0, 0}}, {100, 15000, 2, {7, 31, 0}}, {100, 10000, 2, {5, 5, 5}}};
    const bool all = getenv("GS_TEST_ALL") != NULL;
    graph g = make_graph();
    uint32_t overflowed = 0;
    uint64_t cases = 0;
    (void)state;
    choose_gpu();
    for (uint32_t i = 0; i < GS_ARRAY_LEN(of); i++) {
        gs_sampler_options o = {.batch_size = all ? of[i].targets : GS_MIN(of[i].targets, 1000),
                                .most_edges = of[i].edges, .seed = 0x123456789abcull * (i + 1)};
        for (; o.hops < 3 && of[i].fanout[o.hops] > 0; o.hops++)
            o.fanout[o.hops] = of[i].fanout[o.hops];
        cases += check_fanouts(&g, &o, all ? of[i].batches : 1, &overflowed);
    }
    assert_int_equal(overflowed, 0);
    assert_true(cases > (all ? 100000 : 5000));
    drop_graph(&g);
}

/* Edges that carry types or weights or both, drawn by these or not: any fanouts, seeds and numbers of hops. */
static void test_cuda_draw__weighted_and_typed_ones_are_those_of_the_cpu(void **state)
{
    const uint32_t rounds = getenv("GS_TEST_ALL") != NULL ? 28 : 1;
    uint32_t overflowed = 0;
    uint64_t cases = 0;
    (void)state;
    choose_gpu();
    for (uint32_t kind = 0; kind < 8; kind++) {
        graph g = make_graph();
        const bool typed = kind != 0 && kind != 3, weights = kind != 1 && kind != 2;
        if (typed)
            add_types(&g, 1 + kind % 2, kind < 4 || kind == 7);
        if (weights)
            add_weights(&g);
        for (uint32_t round = 0; round < rounds; round++) {
            const uint32_t i = kind + 8 * round;
            gs_sampler_options o = {.most_edges = 30000, .seed = 0x123456789abcull * (i + 1),
                                    .weighted = weights && kind != 3 && kind != 5, .by_type = typed && g.in.by_type};
            uint32_t room = 1500;
            for (o.hops = 0; o.hops < 3 && room >= (o.hops == 0 ? 1 : 20); o.hops++) {
                o.fanout[o.hops] = 1 + random_below(i, 20 + o.hops, random_below(i, 23, 3) > 0 ? 5 : 32);
                room /= o.fanout[o.hops];
            }
            o.batch_size = GS_MAX(room, 30);
            cases += check_fanouts(&g, &o, 2, &overflowed);
        }
        drop_graph(&g);
    }
    assert_int_equal(overflowed, 0);
    print_message("%llu rows\n", (unsigned long long)cases);
    assert_true(cases > (rounds > 1 ? 100000 : 4000));
}

/* Half of the way from the least to the most of what the first batches have. */
static void find_middle(gs_sampler_options *middle, const graph *g, const gs_sampler_options *o, uint32_t batches)
{
    uint64_t least[2] = {UINT32_MAX, UINT32_MAX}, most[2] = {0, 0};
    gs_batch_arena *arena = NULL;
    gs_sampler *s = NULL;
    gs_assert_ok(gs_sampler_open(&s, &g->in, NULL, g->target, VERTICES, o));
    gs_assert_ok(gs_batch_arena_make(&arena, s));
    for (uint32_t k = 0; k < batches; k++) {
        gs_batch b;
        gs_assert_ok(gs_sampler_draw(&b, s, arena, k, k));
        const uint64_t has[2] = {b.vertices, b.edges};
        for (int i = 0; i < 2; i++) {
            least[i] = GS_MIN(least[i], has[i]);
            most[i] = GS_MAX(most[i], has[i]);
        }
    }
    middle->most_vertices = (uint32_t)(least[0] + most[0]) / 2;
    middle->most_edges = (least[1] + most[1]) / 2;
    gs_batch_arena_free(arena);
    gs_sampler_close(s);
}

/* A batch that has more rows, or edges, than there is room for says so, as it does on the CPU. */
static void test_cuda_draw__what_has_no_room_overflows(void **state)
{
    graph g = make_graph();
    gs_sampler_options o = {.batch_size = 300, .seed = 1, .hops = 2, .fanout = {8, 8}}, middle = o;
    (void)state;
    choose_gpu();
    find_middle(&middle, &g, &o, 6);
    for (int i = 0; i < 3; i++) {
        uint32_t overflowed = 0;
        o.most_vertices = i == 0 ? middle.most_vertices : 0;
        o.most_edges = i == 1 ? middle.most_edges : i == 2 ? 400 : 0; /* or the first hop has more */
        check_fanouts(&g, &o, i < 2 ? 6 : 1, &overflowed);
        assert_true(overflowed > 0 && (i == 2 || overflowed < 6));
    }
    drop_graph(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_draw__batches_are_those_of_the_cpu),
        cmocka_unit_test(test_cuda_draw__weighted_and_typed_ones_are_those_of_the_cpu),
        cmocka_unit_test(test_cuda_draw__what_has_no_room_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
