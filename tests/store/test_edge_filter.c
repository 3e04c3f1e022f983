/* What a filter leaves of a chunk is a chunk, and holds those edges whose ends both stay, in their order. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "store/edge_scan.h"

#define ROWS 300u

struct edge {
    uint32_t target, operand, type;
    float weight;
};

static uint32_t rng;

static uint32_t draw(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (rng >> 8) % n;
}

static int by_target(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return x->operand < y->operand ? -1 : x->operand > y->operand;
}

static void put(const void *list, uint32_t width, uint64_t k, uint32_t v)
{
    if (width == 2)
        ((uint16_t *)(uintptr_t)list)[k] = (uint16_t)v;
    else
        ((uint32_t *)(uintptr_t)list)[k] = v;
}

static uint32_t get(const void *list, uint32_t width, uint64_t k)
{
    return width == 2 ? ((const uint16_t *)list)[k] : ((const uint32_t *)list)[k];
}

/* A chunk of sorted edges; free with gs_test's free. */
static void *build(const struct edge *e, uint32_t n, uint32_t width, bool data, gs_chunk_view *v, gs_chunk_expect *c)
{
    bool seen[ROWS] = {false};
    uint32_t t = 0, o = 0;
    *c = (gs_chunk_expect){.target_rows = ROWS, .operand_rows = ROWS, .index_bytes = width, .edges = n};
    for (uint32_t k = 0; k < n; k++) {
        c->targets += k == 0 || e[k].target != e[k - 1].target;
        c->operands += !seen[e[k].operand];
        seen[e[k].operand] = true;
    }
    const uint64_t bytes = gs_chunk_bytes(n, c->targets, c->operands, width, (gs_edge_data){data ? 1 : 0, data, 0});
    void *p = aligned_alloc(4096, bytes);
    memset(p, 0, bytes);
    gs_chunk_layout(v, p, c, (gs_edge_data){data ? 1 : 0, data, 0});
    for (uint32_t k = 0; k < n; k++) {
        if (k == 0 || e[k].target != e[k - 1].target) {
            put(v->target, width, t, e[k].target);
            ((uint32_t *)(uintptr_t)v->start)[t++] = k;
        }
        put(v->index, width, k, e[k].operand);
        if (data) {
            ((uint8_t *)(uintptr_t)v->type)[k] = (uint8_t)e[k].type;
            ((float *)(uintptr_t)v->weight)[k] = e[k].weight;
        }
    }
    ((uint32_t *)(uintptr_t)v->start)[t] = n;
    for (uint32_t r = 0; r < ROWS; r++)
        if (seen[r])
            put(v->operand, width, o++, r);
    gs_assert_ok(gs_chunk_view_make(v, p, bytes, c, true));
    return p;
}

static bool in(const uint64_t *set, uint32_t words, uint32_t interval, uint32_t granule, uint32_t row)
{
    const uint32_t g = row / granule;
    return set == NULL || (set[interval * words + g / 64] >> (g % 64) & 1) != 0;
}

/* Against the edge list, one by one. */
static void check(const gs_chunk_view *left, const struct edge *e, uint32_t n, uint32_t width, bool data)
{
    uint32_t t = 0;
    for (uint32_t k = 0; k < n; k++) {
        while (left->start[t + 1] <= k)
            t++;
        assert_int_equal(get(left->target, width, t), e[k].target);
        assert_int_equal(get(left->index, width, k), e[k].operand);
        if (data) {
            assert_int_equal(((const uint8_t *)left->type)[k], e[k].type);
            assert_true(left->weight[k] == e[k].weight);
        }
    }
}

static void run(uint32_t width, bool data, uint32_t granule, uint32_t share, bool all_targets, bool all_operands)
{
    enum { EDGES = 4000 };
    static struct edge e[EDGES], stay[EDGES];
    const gs_chunk_table t = {.vertices = 3 * ROWS, .parts = 3, .interval_rows = ROWS};
    const gs_granules g = gs_granules_of(&t, granule), coarse = gs_granules_of(&t, 16);
    uint64_t targets[16] = {0}, operands[16] = {0}, seen[5] = {0}, need[1] = {0}, want[1] = {0};
    uint32_t n = 0;
    gs_chunk_view v, out;
    gs_chunk_expect c;
    gs_chunk counts = {0};

    for (uint32_t k = 0; k < EDGES; k++)
        e[k] = (struct edge){draw(ROWS), draw(ROWS), data ? draw(3) : 0, (float)draw(100)};
    qsort(e, EDGES, sizeof(e[0]), by_target);
    for (uint32_t k = 0; k < 3 * g.words; k++)
        for (uint32_t b = 0; b < 64; b++) {
            targets[k] |= (uint64_t)(draw(100) < share) << b;
            operands[k] |= (uint64_t)(draw(100) < share) << b;
        }
    const gs_edge_filter f = {.granules = g, .targets = all_targets ? NULL : targets,
                              .seen_words = gs_edge_filter_words(&t), .operands = all_operands ? NULL : operands,
                              .seen = seen};
    void *whole = build(e, EDGES, width, data, &v, &c);
    for (uint32_t k = 0; k < EDGES; k++)
        if (in(f.targets, g.words, 2, granule, e[k].target) && in(f.operands, g.words, 1, granule, e[k].operand)) {
            stay[n++] = e[k];
            want[0] |= 1ull << (e[k].operand / 16);
        }
    gs_edge_filter_count(&f, 2, 1, &v, &counts, need, coarse);
    assert_int_equal(counts.edges, n);
    assert_int_equal(need[0], want[0]);
    for (int k = 0; k < 5; k++)
        assert_int_equal(seen[k], 0);
    if (n > 0) {
        const gs_edge_data carried = {data ? 1 : 0, data, 0};
        const uint64_t bytes = gs_chunk_bytes(n, counts.targets, counts.operands, width, carried);
        c = (gs_chunk_expect){ROWS, ROWS, width, n, counts.targets, counts.operands, counts.largest};
        void *p = aligned_alloc(4096, bytes);
        memset(p, 0, bytes);
        gs_chunk_layout(&out, p, &c, (gs_edge_data){data ? 1 : 0, data, 0});
        gs_edge_filter_fill(&f, 2, 1, &v, &out);
        gs_assert_ok(gs_chunk_view_make(&out, p, bytes, &c, true));
        check(&out, stay, n, width, data);
        free(p);
    }
    free(whole);
}

static void test_filter__leaves_the_edges_between_two_sets(void **state)
{
    (void)state;
    rng = 5;
    for (uint32_t width = 2; width <= 4; width += 2)
        for (uint32_t granule = 1; granule <= 16; granule *= 4)
            for (uint32_t share = 0; share <= 100; share += 20)
                for (uint32_t which = 0; which < 4; which++)
                    run(width, which % 2 == 1, granule, share, which == 2, which == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter__leaves_the_edges_between_two_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
