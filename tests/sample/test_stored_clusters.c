/* Clusters of edges that stay in the store are those of edges in memory, byte for byte. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/sampler.h"
#include "tiny_store.h"

enum { VERTICES = 90, PARTS = 12, ROWS = 8, EDGES = 700, TOGETHER = 3 };

/* Loops, edges that are there twice, and intervals between which there are none. */
static void make_edges(tiny_edge *edge, uint32_t types, bool weights)
{
    uint32_t state = 1;
    for (uint32_t k = 0; k < EDGES; k++) {
        uint32_t r[4];
        for (int i = 0; i < 4; i++)
            r[i] = (state = state * 1664525u + 1013904223u) >> 8;
        edge[k] = (tiny_edge){r[0] % VERTICES, r[1] % VERTICES, types > 0 ? r[2] % types : 0,
                              weights ? (float)(r[3] % 64) / 8 : 1};
        if (k % 9 == 0)
            edge[k].dest = edge[k].source;
        if (k % 13 == 5)
            edge[k] = edge[k - 1];
        if (edge[k].dest / ROWS == 4 && edge[k].source / ROWS != 4)
            edge[k].source = edge[k].dest;
    }
}

static tiny_graph graph_of(const tiny_edge *edge, uint32_t types, bool weights)
{
    return (tiny_graph){.vertices = VERTICES, .parts = PARTS, .interval_rows = ROWS, .edge = edge, .edges = EDGES,
                        .weights = weights, .edge_types = types};
}

static void same_batch(const gs_batch *a, const gs_batch *b)
{
    assert_int_equal(a->vertices, b->vertices);
    assert_int_equal(a->targets, b->targets);
    assert_int_equal(a->expanded, b->expanded);
    assert_int_equal(a->edges, b->edges);
    assert_memory_equal(a->vertex, b->vertex, a->vertices * sizeof(*a->vertex));
    assert_memory_equal(a->in_degree, b->in_degree, a->vertices * sizeof(*a->in_degree));
    assert_memory_equal(a->loops, b->loops, a->vertices * sizeof(*a->loops));
    for (int d = 0; d < 2; d++) {
        assert_int_equal(a->chunk[d].length, b->chunk[d].length);
        if (a->edges > 0)
            assert_memory_equal(a->bytes[d], b->bytes[d], a->chunk[d].length);
    }
}

/* All edges of the list between the batch's rows, and no other: a cluster's. */
static void whole(const tiny_graph *g, const gs_batch *b)
{
    bool in[VERTICES] = {false};
    uint64_t edges = 0;
    for (uint32_t r = 0; r < b->vertices; r++)
        in[b->vertex[r]] = true;
    for (uint32_t k = 0; k < g->edges; k++)
        edges += in[g->edge[k].source] && in[g->edge[k].dest];
    assert_int_equal(b->edges, edges);
}

/* Edges of the interval that has the most within it: as many a batch of one interval can have. */
static uint64_t most_within(const tiny_graph *g)
{
    uint64_t within[PARTS] = {0}, most = 0;
    for (uint32_t k = 0; k < g->edges; k++)
        within[g->edge[k].dest / ROWS] += g->edge[k].source / ROWS == g->edge[k].dest / ROWS;
    for (uint32_t i = 0; i < PARTS; i++)
        most = GS_MAX(most, within[i]);
    return most;
}

static void compare(const tiny_graph *g, const gs_adjacency *memory, const gs_adjacency *store,
                    const gs_sampler_options *options)
{
    const gs_adjacency *const in[2] = {memory, store};
    uint32_t target[VERTICES / 3];
    gs_batch_arena *arena[2][TOGETHER];
    gs_sampler *s[2];
    gs_batch b[2][TOGETHER];

    for (uint32_t k = 0; k < VERTICES / 3; k++)
        target[k] = 3 * k;
    for (int i = 0; i < 2; i++) {
        gs_assert_ok(gs_sampler_open(&s[i], in[i], NULL, target, VERTICES / 3, options));
        for (int k = 0; k < TOGETHER; k++)
            gs_assert_ok(gs_batch_arena_make(&arena[i][k], s[i]));
    }
    const uint32_t batches = gs_sampler_batches(s[0]);
    assert_int_equal(gs_sampler_batches(s[1]), batches);
    assert_int_equal(gs_sampler_limits(s[1])->edges, gs_sampler_limits(s[0])->edges);
    if (options->batch_size == 1)
        assert_int_equal(gs_sampler_limits(s[1])->edges, most_within(g));
    for (uint32_t epoch = 0; epoch < 2; epoch++)
        for (uint32_t first = 0; first < batches; first += TOGETHER) {
            const uint32_t n = GS_MIN(TOGETHER, batches - first);
            for (int i = 0; i < 2; i++)
                gs_assert_ok(gs_sampler_draw_group(b[i], s[i], arena[i], n, epoch, first, 2, NULL));
            for (uint32_t k = 0; k < n; k++) {
                same_batch(&b[0][k], &b[1][k]);
                whole(g, &b[1][k]);
            }
        }
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < TOGETHER; k++)
            gs_batch_arena_free(arena[i][k]);
        gs_sampler_close(s[i]);
    }
}

static void check(uint32_t types, bool weights)
{
    char *dir = gs_test_temp_dir();
    const char *path = gs_test_path(dir, "store");
    const gs_sampler_options clusters[] = {{.kind = GS_SAMPLER_CLUSTER, .seed = 5, .batch_size = 1},
                                           {.kind = GS_SAMPLER_CLUSTER, .seed = 5, .batch_size = 5},
                                           {.kind = GS_SAMPLER_CLUSTER, .batch_size = PARTS, .ordered = true}};
    tiny_edge edge[EDGES];
    gs_adjacency *memory = NULL, *store = NULL;
    gs_store *s;

    make_edges(edge, types, weights);
    const tiny_graph g = graph_of(edge, types, weights);
    tiny_write(path, &g);
    gs_assert_ok(gs_store_open(&s, path));
    gs_assert_ok(gs_adjacency_load(&memory, s, GS_BY_DEST, GS_MIB, NULL));
    gs_assert_ok(gs_adjacency_stream(&store, s, GS_BY_DEST, NULL));
    for (size_t i = 0; i < sizeof(clusters) / sizeof(clusters[0]); i++)
        compare(&g, memory, store, &clusters[i]);
    gs_adjacency_free(memory);
    gs_adjacency_free(store);
    gs_store_close(s);
    gs_test_temp_remove(dir);
}

static void test_clusters__give_the_batches_of_edges_in_memory(void **state)
{
    (void)state;
    check(0, false);
    check(0, true);
    check(3, false);
    check(3, true);
}

/* A batch that has more than its limits says so, and the others of its group are whole. */
static void test_clusters__too_many_edges_overflow(void **state)
{
    const gs_sampler_options options = {.kind = GS_SAMPLER_CLUSTER, .batch_size = 1, .ordered = true, .most_edges = 20};
    char *dir = gs_test_temp_dir();
    const char *path = gs_test_path(dir, "store");
    gs_batch_arena *arena[2];
    gs_adjacency *in = NULL;
    gs_sampler *sampler;
    tiny_edge edge[EDGES];
    gs_batch b[2];
    gs_store *s;
    (void)state;

    make_edges(edge, 0, false);
    const tiny_graph g = graph_of(edge, 0, false);
    tiny_write(path, &g);
    gs_assert_ok(gs_store_open(&s, path));
    gs_assert_ok(gs_adjacency_stream(&in, s, GS_BY_DEST, NULL));
    const uint32_t target = 0;
    gs_assert_ok(gs_sampler_open(&sampler, in, NULL, &target, 1, &options));
    for (int k = 0; k < 2; k++)
        gs_assert_ok(gs_batch_arena_make(&arena[k], sampler));
    gs_assert_fails(gs_sampler_draw_group(b, sampler, arena, 2, 0, 4, 1, NULL), GS_EBUDGET, "batch 4 of epoch 0");
    assert_true(b[0].overflows && !b[1].overflows); /* interval 4 has its edges within */
    whole(&g, &b[1]);
    for (int k = 0; k < 2; k++)
        gs_batch_arena_free(arena[k]);
    gs_sampler_close(sampler);
    gs_adjacency_free(in);
    gs_store_close(s);
    gs_test_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clusters__give_the_batches_of_edges_in_memory),
        cmocka_unit_test(test_clusters__too_many_edges_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
