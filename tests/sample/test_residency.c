/* What is copied from a slot is what was put there, and no plan of the same slots reads less. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "sample/residency.h"

static uint32_t rng;

static uint32_t draw(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (rng >> 8) % n;
}

/* `batches` batches of up to `most` distinct vertices below `vertices`. */
static void make_group(gs_batch *b, uint32_t *list, uint32_t batches, uint32_t most, uint32_t vertices)
{
    for (uint32_t k = 0; k < batches; k++) {
        bool in[2048] = {false};
        uint32_t *vertex = list + k * most;
        b[k] = (gs_batch){.vertex = vertex, .vertices = 0};
        for (uint32_t i = 0; i < most; i++) {
            const uint32_t v = draw(3) == 0 ? draw(vertices) : draw(vertices) * draw(vertices) / vertices;
            if (!in[v])
                vertex[b[k].vertices++] = v;
            in[v] = true;
        }
    }
}

/* Takes the step as an engine would: `content` of slots by their item. How many items are read. */
static uint32_t take_step(const gs_batch *b, const gs_residency_step *s, uint32_t rows_per_item, uint32_t *content)
{
    bool *seen = calloc(b->vertices + 1, sizeof(*seen));
    uint32_t reads = 0, hits = 0, item = UINT32_MAX;
    assert_int_equal(s->rows, b->vertices);
    for (uint32_t e = 0; e < s->rows; e++) {
        const uint32_t row = b->vertex[s->place[e]];
        assert_false(seen[s->place[e]]);
        seen[s->place[e]] = true;
        assert_true(e == 0 || row > b->vertex[s->place[e - 1]]);
        if (s->from[e] != GS_RESIDENCY_NONE)
            assert_int_equal(content[s->from[e]], row / rows_per_item);
        if (row / rows_per_item == item) {
            assert_int_equal(s->keep[e], GS_RESIDENCY_NONE);
            assert_int_equal(s->from[e], s->from[e - 1]);
            continue;
        }
        item = row / rows_per_item;
        *(s->from[e] == GS_RESIDENCY_NONE ? &reads : &hits) += 1;
        assert_true(s->keep[e] == GS_RESIDENCY_NONE || s->from[e] == GS_RESIDENCY_NONE);
    }
    for (uint32_t e = 0; e < s->rows; e++)
        if (s->keep[e] != GS_RESIDENCY_NONE)
            content[s->keep[e]] = b->vertex[s->place[e]] / rows_per_item;
    assert_int_equal(reads, s->reads);
    assert_int_equal(hits, s->hits);
    free(seen);
    return reads;
}

static uint32_t bits_of(const gs_batch *b, uint32_t rows_per_item)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < b->vertices; i++)
        bits |= 1u << b->vertex[i] / rows_per_item;
    return bits;
}

/* Least reads of a group from an empty cache, of all ways: over every set that can stay after each batch. */
static uint32_t least_reads(const gs_batch *b, uint32_t batches, uint32_t capacity, uint32_t items, uint32_t per)
{
    uint32_t best[256], next[256];
    assert_true(items <= 8);
    memset(best, 0xff, sizeof(best));
    best[0] = 0;
    for (uint32_t k = 0; k < batches; k++) {
        const uint32_t want = bits_of(&b[k], per);
        memset(next, 0xff, sizeof(next));
        for (uint32_t had = 0; had < 1u << items; had++)
            for (uint32_t stay = 0; stay < 1u << items && best[had] != UINT32_MAX; stay++)
                if ((stay & ~(had | want)) == 0 && (uint32_t)__builtin_popcount(stay) <= capacity)
                    next[stay] = GS_MIN(next[stay], best[had] + (uint32_t)__builtin_popcount(want & ~had));
        memcpy(best, next, sizeof(best));
    }
    uint32_t least = UINT32_MAX;
    for (uint32_t s = 0; s < 1u << items; s++)
        least = GS_MIN(least, best[s]);
    return least;
}

static void test_group__reads_the_least_that_can_be(void **state)
{
    gs_batch b[6];
    uint32_t list[6 * 6], content[4];
    (void)state;
    rng = 1;
    for (uint32_t c = 0; c < 60; c++) {
        const uint32_t per = 1 + c % 3, capacity = c % 5, items = 7, batches = 2 + c % 5;
        gs_residency *r;
        gs_residency_step s;
        uint32_t reads = 0;
        make_group(b, list, batches, 6, items * per);
        gs_assert_ok(gs_residency_open(&r, items * per, per, capacity, 6, 6));
        gs_residency_begin(r, b, batches);
        for (uint32_t k = 0; k < batches; k++) {
            gs_residency_next(r, &s);
            reads += take_step(&b[k], &s, per, content);
        }
        assert_int_equal(reads, least_reads(b, batches, capacity, items, per));
        gs_residency_close(r);
    }
}

/* Groups follow each other: slots are what they were, and rows that all batches use are read once. */
static void test_groups__keep_what_was_there(void **state)
{
    enum { MOST = 300, BATCHES = 5, SLOTS = 40, N = 2000 };
    gs_batch b[BATCHES];
    uint32_t *list = malloc(BATCHES * MOST * sizeof(*list)), content[SLOTS], reads = 0, rows = 0, later = 0;
    gs_residency *r;
    gs_residency_step s;
    (void)state;
    rng = 7;
    memset(content, 0xff, sizeof(content));
    gs_assert_ok(gs_residency_open(&r, N, 3, SLOTS, BATCHES, MOST));
    gs_alloc_freeze(true);
    for (uint32_t g = 0; g < 12; g++) {
        make_group(b, list, 1 + g % BATCHES, MOST, N);
        gs_residency_begin(r, b, 1 + g % BATCHES);
        for (uint32_t k = 0; k < 1 + g % BATCHES; k++) {
            gs_residency_next(r, &s);
            const uint32_t read = take_step(&b[k], &s, 3, content);
            reads += read;
            rows += s.reads + s.hits;
            later += g > 0 && k == 0 ? s.hits : 0;
        }
    }
    gs_alloc_freeze(false);
    assert_int_equal(gs_alloc_frozen_count(), 0);
    assert_true(reads < rows);
    assert_true(later > 0); /* a group's first batch finds what the group before left */
    gs_residency_close(r);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group__reads_the_least_that_can_be),
        cmocka_unit_test(test_groups__keep_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
