/* Where rows stand within their interval. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

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

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_order__rows_with_the_same_needs_are_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
