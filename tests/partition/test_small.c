/* Every method and number of parts on small graphs, compared edge by edge. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

static const char *const methods[] = {"natural", "random", "fennel", "metis", "lp"};
static const uint32_t part_counts[] = {1, 2, 3, 8, 17};

/* `step` 2 leaves out P = 2 and 8: each store is synced to disk, which takes its time. */
static void sweep(const char *dir, uint32_t n, const edge_list *want, uint64_t memory, size_t step)
{
    for (size_t m = 0; m < GS_ARRAY_LEN(methods); m++) {
        for (size_t p = 0; p < GS_ARRAY_LEN(part_counts); p += step) {
            const char *out = gs_test_path(dir, "store-%s-%u", methods[m], part_counts[p]);
            gs_partition_options o = test_options(methods[m], part_counts[p], memory);
            gs_partition_report r;
            gs_store *s = partition_and_check(dir, out, &o, want, n, &r);
            const gs_store_info *info = gs_store_get_info(s);
            const uint32_t rows = (uint32_t)gs_div_up(n, GS_MIN(part_counts[p], n));
            assert_int_equal(info->interval_rows, rows);
            assert_int_equal(info->parts, gs_div_up(n, rows));
            assert_int_equal(r.parts, info->parts);
            assert_int_equal(r.edges, want->count);
            gs_store_close(s);
        }
    }
}

static void test_partition__directed_multigraph_survives(void **state)
{
    edge_list list = random_graph(211, 1500, 1, false, false);
    write_edges(*state, &list, false, false);
    sort_edges(&list);
    sweep(*state, 211, &list, 32 * GS_MIB, 1);
    edges_free(&list);
}

static void test_partition__types_and_weights_survive(void **state)
{
    edge_list list = random_graph(150, 900, 2, true, true);
    write_edges(*state, &list, true, true);
    sort_edges(&list);
    sweep(*state, 150, &list, 32 * GS_MIB, 2);
    edges_free(&list);
}

/* N smaller than P, one vertex, isolated vertices at the end. */
static void test_partition__tiny_graphs(void **state)
{
    edge one[] = {{0, 0, 0, 0}};
    edge few[] = {{0, 1, 0, 0}, {1, 2, 0, 0}, {4, 0, 0, 0}};
    edge_list list = {one, 1};
    const char *meta = "{\"num_nodes\": 10}";

    write_edges(*state, &list, false, false);
    sweep(*state, 1, &list, 8 * GS_MIB, 4);
    list = (edge_list){few, 3};
    char *sub = gs_test_temp_dir();
    write_edges(sub, &list, false, false);
    gs_test_write_file(gs_test_path(sub, "meta.json"), meta, strlen(meta));
    sweep(sub, 10, &list, 8 * GS_MIB, 2);
    gs_test_temp_remove(sub);
}

static void test_partition__no_edges_at_all(void **state)
{
    edge_list list = {NULL, 0};
    write_edges(*state, &list, false, false);
    write_features(*state, 9, 5);
    sweep(*state, 9, &list, 8 * GS_MIB, 4);
}

static void test_partition__symmetric_graph_is_stored_once(void **state)
{
    edge_list list = random_graph(100, 400, 3, false, true);
    char *store = strdup(gs_test_path(*state, "s"));
    add_reverses(&list);
    write_edges(*state, &list, false, true);
    gs_partition_options o = test_options("fennel", 3, 16 * GS_MIB);
    sort_edges(&list);
    gs_store *s = partition_and_check(*state, store, &o, &list, 100, NULL);
    /* add_reverses() adds one reverse an edge: duplicates keep it symmetric unless the input had one of two */
    edge_list swapped = {malloc(list.count * sizeof(edge)), list.count};
    for (size_t i = 0; i < list.count; i++)
        swapped.at[i] = (edge){list.at[i].v, list.at[i].u, 0, list.at[i].weight};
    sort_edges(&swapped);
    bool symmetric = true;
    for (size_t i = 0; i < list.count && symmetric; i++)
        symmetric = memcmp(&swapped.at[i], &list.at[i], sizeof(edge)) == 0;
    assert_int_equal(gs_store_get_info(s)->symmetric, symmetric);
    edges_free(&swapped);
    gs_store_close(s);

    /* one weight changed: not symmetric any more */
    for (size_t i = 0; i < list.count; i++)
        if (list.at[i].u != list.at[i].v) {
            list.at[i].weight += 1;
            break;
        }
    write_edges(*state, &list, false, true);
    sort_edges(&list);
    o.force = true;
    s = partition_and_check(*state, store, &o, &list, 100, NULL);
    assert_false(gs_store_get_info(s)->symmetric);
    gs_store_close(s);
    edges_free(&list);
    free(store);
}

static void test_partition__clean_symmetric_graph_is_shared(void **state)
{
    edge ring[12];
    for (uint32_t i = 0; i < 6; i++) {
        ring[2 * i] = (edge){i, (i + 1) % 6, 0, 0};
        ring[2 * i + 1] = (edge){(i + 1) % 6, i, 0, 0};
    }
    edge_list list = {ring, 12};
    write_edges(*state, &list, false, false);
    sort_edges(&list);
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    gs_store *s = partition_and_check(*state, gs_test_path(*state, "s"), &o, &list, 6, NULL);
    assert_true(gs_store_get_info(s)->symmetric);
    gs_store_close(s);
}

static void test_partition__undirected_adds_what_is_missing(void **state)
{
    edge_list list = random_graph(90, 500, 4, true, true);
    gs_partition_options o = test_options("fennel", 3, 16 * GS_MIB);
    write_edges(*state, &list, true, true);
    add_reverses(&list);
    sort_edges(&list);
    o.undirected = true;
    gs_store_close(partition_and_check(*state, gs_test_path(*state, "s"), &o, &list, 90, NULL));
    edges_free(&list);
}

/* A small bound forces: buckets on disk, blocks and regions split again, several feature passes. */
static void test_partition__memory_and_threads_do_not_change_the_store(void **state)
{
    edge_list list = random_graph(3000, 60000, 6, false, false);
    char *small = strdup(gs_test_path(*state, "small")), *large = strdup(gs_test_path(*state, "large"));
    gs_partition_options o = test_options("fennel", 17, 2 * GS_MIB);
    write_edges(*state, &list, false, false);
    write_features(*state, 3000, 70);
    sort_edges(&list);
    gs_store *s = partition_and_check(*state, small, &o, &list, 3000, NULL);
    o.memory = 256 * GS_MIB + TEST_PROCESS_BYTES;
    const cpu_set_t all = use_cpus(true); /* the other one ran on all */
    gs_store *l = partition_and_check(*state, large, &o, &list, 3000, NULL);
    sched_setaffinity(0, sizeof(all), &all);
    for (int d = 0; d < 2; d++)
        for (uint32_t c = 0; c < 17 * 17; c++)
            assert_memory_equal(&gs_store_chunks(s)->chunk[d][c], &gs_store_chunks(l)->chunk[d][c], sizeof(gs_chunk));
    assert_int_equal(gs_store_get_info(s)->feature_id, gs_store_get_info(l)->feature_id);
    gs_store_close(s);
    gs_store_close(l);
    edges_free(&list);
    free(small);
    free(large);
}

static void test_partition__auto_parts_fit_an_eighth_of_memory(void **state)
{
    edge_list list = random_graph(5000, 30000, 7, false, false);
    gs_partition_options o = test_options(NULL, 0, 2 * GS_MIB);
    write_edges(*state, &list, false, false);
    sort_edges(&list);
    gs_store *s = partition_and_check(*state, gs_test_path(*state, "s"), &o, &list, 5000, NULL);
    /* 2 MiB / 8 = 256 rows of 256 floats */
    assert_in_range(gs_store_get_info(s)->interval_rows, 1, 256);
    const gs_chunk_table *t = gs_store_chunks(s);
    for (uint32_t c = 0; c < t->parts * t->parts; c++)
        assert_true(t->chunk[0][c].length <= 2 * GS_MIB / 8);
    gs_store_close(s);
    edges_free(&list);
}

static void test_partition__too_few_parts_say_so(void **state)
{
    edge_list list = random_graph(3000, 60000, 8, false, false);
    gs_partition_options o = test_options("natural", 1, 2 * GS_MIB);
    char *out = strdup(gs_test_path(*state, "s"));
    write_edges(*state, &list, false, false);
    gs_assert_fails(gs_partition(*state, out, &o, NULL), GS_EBUDGET, "use more .parts");
    assert_gone(out);
    o.memory = 64 * GS_KIB;
    gs_assert_fails(gs_partition(*state, out, &o, NULL), GS_EBUDGET, "give at least");
    assert_gone(out);
    edges_free(&list);
    free(out);
}

/* The size in "at least 12M", in bytes. */
static uint64_t named_memory(void)
{
    const char *const at = strstr(gs_last_error(), "at least ");
    unsigned mib = 0;
    if (at == NULL || sscanf(at, "at least %uM", &mib) != 1)
        fail_msg("names no memory: %s", gs_last_error());
    return mib * GS_MIB;
}

/* 1000 x 1000 chunks have 168 MiB of tables, and a chunk of all edges has to be sorted: both are part of the bound,
 * and what is named for them is enough. */
static void test_partition__named_memory_is_enough(void **state)
{
    edge_list list = random_graph(3000, 60000, 8, false, false);
    char *out = strdup(gs_test_path(*state, "s"));

    write_edges(*state, &list, false, false);
    for (uint32_t parts = 1; parts <= 1000; parts += 999) {
        gs_partition_options o = test_options("natural", parts, 2 * GS_MIB);
        gs_partition_report r;
        gs_assert_fails(gs_partition(*state, out, &o, NULL), GS_EBUDGET,
                        parts == 1 ? "is too little for a chunk of " : "the tables of 1000 x 1000 chunks");
        assert_gone(out);
        o.memory = named_memory();
        assert_in_range(o.memory, parts == 1 ? 15 * GS_MIB : 172 * GS_MIB,
                        parts == 1 ? 28 * GS_MIB : 268 * GS_MIB);
        gs_assert_ok(gs_partition(*state, out, &o, &r));
        assert_int_equal(gs_remove_tree(out), GS_OK);
    }
    edges_free(&list);
    free(out);
}

/* The number in "at most 12 .parts". */
static uint32_t named_parts(void)
{
    const char *const at = strstr(gs_last_error(), "at most ");
    unsigned parts = 0;
    if (at == NULL || sscanf(at, "at most %u .parts", &parts) != 1)
        fail_msg("names no parts: %s", gs_last_error());
    return parts;
}

/* 1000 x 1000 chunks have 84 MiB of tables where each edge has its reverse, else twice as much. What is too little for
 * either is refused before edges are read: one of them is none of the vertices'. */
static void test_partition__named_memory_and_parts_are_of_the_graph(void **state)
{
    edge_list list = random_graph(3000, 4000, 8, false, false);
    char *out = strdup(gs_test_path(*state, "s"));
    const uint64_t tables = 88ull * 1000 * 1000;
    const uint32_t good = list.at[0].v;
    gs_partition_options o = test_options("natural", 1000, 0);

    write_features(*state, 3000, 1);
    list.at[0].v = 3000;
    write_edges(*state, &list, false, false);
    for (uint64_t mib = 4; mib <= 64; mib *= 4) {
        unsigned once = 0;
        o.memory = mib * GS_MIB + TEST_PROCESS_BYTES;
        gs_assert_fails(gs_partition(*state, out, &o, NULL), GS_EBUDGET, "the tables of 1000 x 1000 chunks");
        assert_in_range(named_memory(), 2 * tables + 12 * GS_MIB, 2 * tables + 32 * GS_MIB);
        assert_int_equal(sscanf(strchr(gs_last_error(), '('), "(%uM where each edge has its reverse)", &once), 1);
        assert_in_range(once * GS_MIB, tables + 12 * GS_MIB, tables + 32 * GS_MIB);
    }
    list.at[0].v = good;
    for (uint64_t mib = 8; mib <= 128; mib *= 16) { /* before edges are read, and when they have no reverses */
        write_edges(*state, &list, false, false);
        o.memory = mib * GS_MIB + TEST_PROCESS_BYTES;
        o.parts = 1000;
        gs_assert_fails(gs_partition(*state, out, &o, NULL), GS_EBUDGET, "the tables of 1000 x 1000 chunks");
        assert_gone(out);
        o.parts = named_parts();
        assert_true(2 * 88ull * (o.parts + 8) * (o.parts + 8) > mib * GS_MIB / 2);
        gs_assert_ok(gs_partition(*state, out, &o, NULL));
        gs_assert_ok(gs_remove_tree(out));
    }
    add_reverses(&list);
    write_edges(*state, &list, false, false);
    o.parts = 1000;
    gs_assert_ok(gs_partition(*state, out, &o, NULL));
    edges_free(&list);
    free(out);
}

/* Two cliques joined by one edge: all orders that look at edges must find them. */
static void test_partition__orders_find_communities(void **state)
{
    enum { HALF = 60 };
    edge_list list = {malloc(2 * HALF * HALF * sizeof(edge)), 0};
    for (uint32_t i = 0; i < 2 * HALF; i++)
        for (uint32_t k = 0; k < 2 * HALF; k++)
            if (i != k && i % 2 == k % 2) /* interleaved, so that input order is the worst */
                list.at[list.count++] = (edge){i, k, 0, 0};
    write_edges(*state, &list, false, false);
    sort_edges(&list);
    for (size_t m = 2; m < GS_ARRAY_LEN(methods); m++) {
        gs_partition_options o = test_options(methods[m], 2, 16 * GS_MIB);
        gs_partition_report r;
        gs_store_close(partition_and_check(*state, gs_test_path(*state, "s%zu", m), &o, &list, 2 * HALF, &r));
        assert_string_equal(r.method, methods[m]);
        gs_assert_close(r.cut_fraction + 1, 1.0, 0.02);
    }
    gs_partition_options o = test_options("natural", 2, 16 * GS_MIB);
    gs_partition_report r;
    gs_store_close(partition_and_check(*state, gs_test_path(*state, "n"), &o, &list, 2 * HALF, &r));
    gs_assert_close(r.cut_fraction, 30.0 / 59.0, 1e-12); /* of 60 in a clique, half are in each interval */
    edges_free(&list);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_partition__directed_multigraph_survives),
        T(test_partition__types_and_weights_survive),
        T(test_partition__tiny_graphs),
        T(test_partition__no_edges_at_all),
        T(test_partition__symmetric_graph_is_stored_once),
        T(test_partition__clean_symmetric_graph_is_shared),
        T(test_partition__undirected_adds_what_is_missing),
        T(test_partition__memory_and_threads_do_not_change_the_store),
        T(test_partition__auto_parts_fit_an_eighth_of_memory),
        T(test_partition__too_few_parts_say_so),
        T(test_partition__named_memory_is_enough),
        T(test_partition__named_memory_and_parts_are_of_the_graph),
        T(test_partition__orders_find_communities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
