/* Where rows stand within their interval. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/order.h"

enum { N = 6000, PARTS = 24 };

/* [N] by position: the intervals that hear this row, its own left out. */
static uint64_t *needs(const gs_store *s, const uint32_t *ids)
{
    const uint32_t rows = gs_store_get_info(s)->interval_rows;
    edge_list list = decode(s, GS_BY_DEST);
    uint32_t *position = malloc(N * 4);
    uint64_t *need = calloc(N, 8);

    for (uint32_t p = 0; p < N; p++)
        position[ids[p]] = p;
    for (size_t i = 0; i < list.count; i++) {
        const uint32_t from = position[list.at[i].u], to = position[list.at[i].v];
        need[from] |= from / rows != to / rows ? 1ull << (to / rows) : 0;
        need[to] |= from / rows != to / rows ? 1ull << (from / rows) : 0; /* and by source */
    }
    edges_free(&list);
    free(position);
    return need;
}

/* Rows that the same intervals need stand together; but for rows that most intervals need. */
static void test_order__rows_with_the_same_needs_are_neighbours(void **state)
{
    static const char *const methods[] = {"fennel", "lp"};
    edge_list list = random_graph(N, 9000, 3, false, false);

    write_edges(*state, &list, false, false);
    for (int m = 0; m < 2; m++) {
        gs_partition_options o = test_options(methods[m], PARTS, 16 * GS_MIB);
        gs_store *s = NULL;
        uint32_t alike = 0;
        o.force = true;
        gs_assert_ok(gs_partition(*state, gs_test_path(*state, "store"), &o, NULL));
        gs_assert_ok(gs_store_open(&s, gs_test_path(*state, "store")));
        uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
        uint64_t *need = needs(s, ids);
        const uint32_t rows = gs_store_get_info(s)->interval_rows;
        for (uint32_t p = 1; p < N; p++) {
            alike += p % rows != 0 && need[p] == need[p - 1];
            if (p % rows == 0 || need[p] == need[p - 1] || __builtin_popcountll(need[p]) * 2 > PARTS)
                continue;
            for (uint32_t before = p / rows * rows; before < p; before++)
                assert_true(need[before] != need[p]);
        }
        assert_true(alike > N / 10); /* or the graph shows nothing */
        gs_free(ids);
        free(need);
        gs_store_close(s);
    }
    edges_free(&list);
}

/* Knuth's linear congruence; the upper bits of it. */
static uint64_t below(uint64_t *random, uint64_t bound)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (*random >> 33) % bound;
}

/* Intervals of hubs, of nearly no edges and of all between, in any order and in runs: renumbered for ranks, each has as
 * many intervals, at most a tenth or a hub more edges than its share, and its own in the order that they had. A last
 * one that is short stays there. */
static void test_order__ranks_have_edges_alike(void **state)
{
    enum { MOST = 208 };
    uint64_t ends[MOST], at[MOST];
    uint32_t to[MOST], spare[MOST], moved = 0;
    (void)state;

    for (uint32_t seed = 0; seed < 300; seed++) {
        uint64_t random = seed;
        const uint32_t ranks = 2 + seed % 7, parts = ranks * (6 + seed % 20) + seed % 3;
        uint64_t all = 0, largest = 0;
        for (uint32_t i = 0; i < parts; i++) {
            const bool poor = seed % 2 == 0 ? i > parts / 2 : below(&random, 2) == 0;
            ends[i] = poor ? below(&random, 300) : 80000 + below(&random, 80000);
            all += ends[i];
            largest = GS_MAX(largest, ends[i]);
        }
        gs_part__number_for(to, spare, ends, parts, seed % 4 > 1, ranks);
        assert_true(seed % 4 < 2 || to[parts - 1] == parts - 1);
        memset(at, 0xff, sizeof(at));
        for (uint32_t i = 0; i < parts; i++) {
            assert_true(to[i] < parts && at[to[i]] == UINT64_MAX);
            at[to[i]] = i;
            moved += to[i] != i;
        }
        for (uint32_t k = 0; k < ranks; k++) {
            const uint32_t first = parts * k / ranks, end = parts * (k + 1) / ranks;
            uint64_t own = 0;
            for (uint32_t i = first; i < end; i++) {
                own += ends[at[i]];
                assert_true(i == first || at[i - 1] < at[i]);
            }
            if (own * ranks > all + all / 10 + largest * ranks / 2)
                fail_msg("seed %u: rank %u of %u has %llu of %llu", seed, k, ranks, (unsigned long long)own,
                         (unsigned long long)all);
        }
    }
    assert_true(moved > 0);
    for (uint32_t i = 0; i < MOST; i++) /* where all have as many, nothing is moved */
        ends[i] = 1000 + i % 5;
    gs_part__number_for(to, spare, ends, MOST, false, 4);
    for (uint32_t i = 0; i < MOST; i++)
        assert_true(to[i] == i);
}

/* Of hubs and vertices without edges, which METIS and label propagation put side by side, each rank is dealt as many
 * intervals and about as many edges, in a store that was made for so many. */
static void test_order__a_store_for_ranks_is_dealt_evenly(void **state)
{
    static const char *const methods[] = {"metis", "lp"};
    edge_list list = random_graph(N / 2, 30000, 5, false, false);

    list.at[0].u = N - 1;
    write_edges(*state, &list, false, false);
    for (uint32_t k = 0; k < 4; k++) {
        gs_partition_options o = test_options(methods[k % 2], PARTS, 64 * GS_MIB);
        gs_store *s = NULL;
        uint32_t first[5], uneven = 0;
        o.force = true;
        o.ranks = k < 2 ? 0 : 4;
        gs_assert_ok(gs_partition(*state, gs_test_path(*state, "store"), &o, NULL));
        gs_assert_ok(gs_store_open(&s, gs_test_path(*state, "store")));
        const gs_chunk_table *const t = gs_store_chunks(s);
        gs_chunk_deal(t, 4, first);
        for (uint32_t r = 0; r < 4; r++) {
            uint64_t edges = 0;
            for (uint32_t i = first[r]; i < first[r + 1]; i++)
                for (uint32_t j = 0; j < t->parts; j++)
                    edges += gs_chunk_at(t, GS_BY_DEST, i, j)->edges + gs_chunk_at(t, GS_BY_SOURCE, i, j)->edges;
            uneven += first[r + 1] - first[r] != PARTS / 4 || edges > list.count * 2 / 4 * 9 / 8;
        }
        assert_true(o.ranks == 0 ? uneven > 0 : uneven == 0); /* without, or the graph shows nothing */
        gs_store_close(s);
        o.parts = 0; /* as many as that takes */
        gs_assert_ok(gs_partition(*state, gs_test_path(*state, "store"), &o, NULL));
        gs_assert_ok(gs_store_open(&s, gs_test_path(*state, "store")));
        assert_int_equal(gs_store_chunks(s)->parts, o.ranks == 0 ? 1 : 16);
        gs_store_close(s);
    }
    edges_free(&list);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_order__rows_with_the_same_needs_are_neighbours),
        T(test_order__a_store_for_ranks_is_dealt_evenly),
        cmocka_unit_test(test_order__ranks_have_edges_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
