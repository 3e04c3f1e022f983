/* What is read from a store's chunks is the list of its edges. */
#include "support/support.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/sampler.h"
#include "tiny_store.h"

static uint32_t interval_rows; /* of the lists that are sorted; all: by type first */

static int by_near(const void *a, const void *b)
{
    const tiny_edge *x = a, *y = b;
    const uint32_t p[4] = {x->dest, x->source / interval_rows, x->type, x->source},
                   q[4] = {y->dest, y->source / interval_rows, y->type, y->source};
    for (int k = 0; k < 4; k++)
        if (p[k] != q[k])
            return p[k] < q[k] ? -1 : 1;
    return 0;
}

static void check_lists(const gs_adjacency *a, const tiny_graph *g, tiny_edge *edge, uint32_t rows)
{
    uint32_t near = 0;

    interval_rows = rows;
    qsort(edge, g->edges, sizeof(edge[0]), by_near);
    for (uint32_t k = 0; k < g->edges; k++) {
        while (gs_adjacency_first(a, near + 1) <= k)
            near++;
        assert_int_equal(near, edge[k].dest);
        assert_int_equal(a->other[k], edge[k].source);
        if (g->edge_types > 0)
            assert_int_equal(gs_adjacency_type(a, k), edge[k].type);
        if (g->weights)
            assert_true(a->weight[k] == edge[k].weight);
        if (edge[k].source == edge[k].dest)
            assert_true(a->loops != NULL && (a->loops[near / 64] >> (near % 64) & 1) != 0);
    }
}

static void check(const tiny_graph *g, gs_direction d)
{
    char *dir = gs_test_temp_dir();
    const char *path = gs_test_path(dir, "store");
    tiny_edge edge[32];
    gs_adjacency *a = NULL;
    gs_store *s;

    tiny_write(path, g);
    gs_assert_ok(gs_store_open(&s, path));
    for (uint32_t k = 0; k < g->edges; k++) { /* dest: the near end */
        edge[k] = g->edge[k];
        edge[k].dest = d == GS_BY_DEST ? g->edge[k].dest : g->edge[k].source;
        edge[k].source = d == GS_BY_DEST ? g->edge[k].source : g->edge[k].dest;
    }
    const uint64_t bytes = gs_adjacency_bytes(s), reading = gs_adjacency_read_bytes(s);
    const uint64_t before = gs_alloc_live_bytes();
    gs_assert_fails(gs_adjacency_load(&a, s, d, bytes + reading - 1, NULL), GS_EBUDGET, "are left");
    gs_assert_ok(gs_adjacency_load(&a, s, d, bytes + reading, NULL));
    assert_true(gs_alloc_live_bytes() - before <= bytes + 8 * 32); /* what an allocation has beside its bytes */
    assert_int_equal(a->vertices, g->vertices);
    assert_int_equal(a->edges, g->edges);
    assert_int_equal(gs_adjacency_first(a, a->vertices), g->edges);
    check_lists(a, g, edge, g->interval_rows);
    gs_assert_ok(gs_adjacency_sort_types(a));
    check_lists(a, g, edge, UINT32_MAX);
    gs_adjacency_free(a);
    gs_store_close(s);
    gs_test_temp_remove(dir);
}

/* Places of lists that are not loaded are those of lists that are. */
static void test_count__gives_the_places_of_both_directions(void **state)
{
    char *dir = gs_test_temp_dir();
    const char *path = gs_test_path(dir, "store");
    gs_adjacency *whole = NULL, *places = NULL, *lists = NULL;
    gs_store *s;
    (void)state;
    tiny_write(path, &tiny_rich);
    gs_assert_ok(gs_store_open(&s, path));
    for (int d = 0; d < 2; d++) {
        gs_assert_ok(gs_adjacency_load(&whole, s, (gs_direction)d, GS_MIB, NULL));
        gs_assert_ok(gs_adjacency_count(&places, s, (gs_direction)d, NULL));
        gs_assert_ok(gs_adjacency_stream(&lists, s, (gs_direction)d, NULL));
        for (uint32_t v = 0; v <= whole->vertices; v++) {
            assert_int_equal(gs_adjacency_first(places, v), gs_adjacency_first(whole, v));
            assert_int_equal(gs_adjacency_first(lists, v), gs_adjacency_first(whole, v));
        }
        assert_null(places->columns);
        gs_adjacency_free(whole);
        gs_adjacency_free(places);
        gs_adjacency_free(lists);
    }
    gs_store_close(s);
    gs_test_temp_remove(dir);
}

static void test_load__gives_up_when_it_is_told_to(void **state)
{
    char *dir = gs_test_temp_dir();
    const char *path = gs_test_path(dir, "store");
    const volatile int stop = 1;
    gs_adjacency *a = NULL;
    gs_store *s;
    (void)state;
    tiny_write(path, &tiny_plain);
    gs_assert_ok(gs_store_open(&s, path));
    gs_assert_fails(gs_adjacency_load(&a, s, GS_BY_DEST, GS_MIB, &stop), GS_EINTERRUPTED, "edges were read");
    gs_assert_fails(gs_adjacency_stream(&a, s, GS_BY_DEST, &stop), GS_EINTERRUPTED, "edges were read");
    gs_store_close(s);
    gs_test_temp_remove(dir);
}

static void test_load__gives_each_vertex_its_edges(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        check(&tiny_plain, (gs_direction)d);
        check(&tiny_rich, (gs_direction)d);
        check(&tiny_symmetric, (gs_direction)d);
    }
}

static void test_load__fails_cleanly_where_memory_is_short(void **state)
{
    char *dir = gs_test_temp_dir();
    const char *path = gs_test_path(dir, "store");
    gs_adjacency *a = NULL;
    gs_store *s;
    gs_status st = GS_ENOMEM;
    (void)state;
    tiny_write(path, &tiny_rich);
    gs_assert_ok(gs_store_open(&s, path));
    const uint64_t before = gs_alloc_live_bytes();
    for (uint64_t nth = 1; st != GS_OK; nth++) {
        gs_alloc_fail_nth(nth);
        st = gs_adjacency_load(&a, s, GS_BY_DEST, GS_MIB, NULL);
        gs_alloc_fail_nth(0);
        if (st != GS_OK) {
            assert_int_equal(st, GS_ENOMEM);
            assert_int_equal(gs_alloc_live_bytes(), before);
        }
    }
    gs_adjacency_free(a);
    gs_store_close(s);
    gs_test_temp_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load__gives_each_vertex_its_edges),
        cmocka_unit_test(test_count__gives_the_places_of_both_directions),
        cmocka_unit_test(test_load__gives_up_when_it_is_told_to),
        cmocka_unit_test(test_load__fails_cleanly_where_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
