/* Chunks of a column joined to one: every target has the edges that the chunks gave it, in their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"
#include "store/chunk_view.h"

#define MOST_EDGES 4096u

/* A column of chunks whose edges are kept as plain lists beside them. */
typedef struct column {
    uint32_t chunks, rows, operand_rows;
    gs_chunk_view view[16];
    uint32_t start[16][257];
    uint32_t target[16][256], index[16][MOST_EDGES];
    uint16_t narrow_target[16][256], narrow_index[16][MOST_EDGES];
    uint8_t count[16][MOST_EDGES];
} column;

static uint32_t next(uint32_t *seed) { return (*seed = *seed * 1664525 + 1013904223) >> 8; }

/* Of `rows` targets some have no edges in a chunk, some none at all; `counts`: edges of every second chunk have. */
static void make(column *c, uint32_t chunks, uint32_t rows, uint32_t operand_rows, uint32_t index_bytes, bool counts)
{
    uint32_t seed = chunks * 31 + rows;

    memset(c, 0, sizeof(*c));
    *c = (column){.chunks = chunks, .rows = rows, .operand_rows = operand_rows};
    for (uint32_t k = 0; k < chunks; k++) {
        uint32_t targets = 0, edges = 0;
        for (uint32_t r = 0; r < rows; r++) {
            const uint32_t degree = r % 7 == 3 ? 0 : next(&seed) % 5;
            for (uint32_t i = 0; i < degree; i++, edges++) {
                c->index[k][edges] = c->narrow_index[k][edges] = (uint16_t)(next(&seed) % operand_rows);
                c->count[k][edges] = (uint8_t)(1 + next(&seed) % 255);
            }
            if (degree > 0)
                c->target[k][targets] = c->narrow_target[k][targets] = (uint16_t)r, targets++;
            c->start[k][targets] = edges;
        }
        c->view[k] = (gs_chunk_view){
            .index_bytes = index_bytes, .targets = targets, .edges = edges, .start = c->start[k],
            .target = index_bytes == 2 ? (void *)c->narrow_target[k] : (void *)c->target[k],
            .index = index_bytes == 2 ? (void *)c->narrow_index[k] : (void *)c->index[k],
            .count = counts && k % 2 == 0 ? c->count[k] : NULL};
    }
}

static uint32_t at(const void *list, uint32_t bytes, uint64_t i)
{
    return bytes == 2 ? ((const uint16_t *)list)[i] : ((const uint32_t *)list)[i];
}

static void check(const column *c, const gs_chunk_view *got, bool counts)
{
    uint32_t t = 0;

    assert_true((got->count != NULL) == counts);
    for (uint32_t r = 0; r < c->rows; r++) {
        uint32_t edge = t < got->targets ? got->start[t] : 0, first = edge;
        const bool there = t < got->targets && at(got->target, got->index_bytes, t) == r;
        for (uint32_t k = 0; k < c->chunks; k++)
            for (uint32_t i = 0; i < c->view[k].targets; i++)
                for (uint32_t j = c->start[k][i]; c->target[k][i] == r && j < c->start[k][i + 1]; j++, edge++) {
                    assert_true(there);
                    assert_int_equal(at(got->index, got->index_bytes, edge), k * c->operand_rows + c->index[k][j]);
                    if (counts)
                        assert_int_equal(got->count[edge], c->view[k].count != NULL ? c->count[k][j] : 1);
                }
        assert_int_equal(there, edge > first);
        if (there)
            assert_int_equal(got->start[++t], edge);
    }
    assert_int_equal(t, got->targets);
    assert_int_equal(got->edges, got->start[got->targets]);
}

static void join_case(uint32_t chunks, uint32_t rows, uint32_t operand_rows, uint32_t index_bytes, bool counts)
{
    column *const c = malloc(sizeof(*c));
    const uint64_t room = 1 << 20, bytes = 1 << 20;
    uint8_t *const scratch = aligned_alloc(64, room), *const data = aligned_alloc(64, bytes);
    uint64_t least = bytes;
    gs_chunk_join j;
    gs_chunk_view got;

    make(c, chunks, rows, operand_rows, index_bytes, counts);
    memset(scratch, 0xa5, room);
    for (uint64_t size = bytes; size > 0; size /= 2) { /* fits, until it does not */
        assert_true(gs_chunk_join_begin(&j, rows, (uint64_t)chunks * operand_rows, scratch, room));
        for (uint32_t k = 0; k < chunks; k++)
            gs_chunk_join_count(&j, &c->view[k]);
        if (!gs_chunk_join_fits(&j, size))
            break;
        least = size;
    }
    assert_true(least < bytes && least > 0);
    gs_chunk_join_begin(&j, rows, (uint64_t)chunks * operand_rows, scratch, room);
    for (uint32_t k = 0; k < chunks; k++)
        gs_chunk_join_count(&j, &c->view[k]);
    assert_true(gs_chunk_join_fits(&j, least));
    for (uint32_t k = 0; k < chunks; k++)
        gs_chunk_join_add(&j, &c->view[k], k * operand_rows);
    memset(data, 0x5a, bytes);
    gs_chunk_join_write(&j, data);
    for (uint64_t i = least; i < bytes; i++)
        assert_int_equal(data[i], 0x5a);
    for (uint64_t i = j.used; i < room; i++)
        assert_int_equal(scratch[i], 0xa5);
    gs_chunk_joined_view(&got, data);
    check(c, &got, counts);
    free(scratch);
    free(data);
    free(c);
}

static void test_chunk_join__keeps_every_edge_in_its_order(void **state)
{
    (void)state;
    join_case(2, 40, 50, 2, false);
    join_case(16, 250, 4000, 2, false);  /* of all operands together still two bytes */
    join_case(16, 250, 5000, 2, false);  /* four bytes */
    join_case(16, 250, 60000, 4, true);
    join_case(5, 1, 7, 4, true);
    join_case(3, 256, 20, 2, true);
}

static void test_chunk_join__refuses_scratch_that_is_too_small(void **state)
{
    column *const c = malloc(sizeof(*c));
    uint8_t *const scratch = aligned_alloc(64, 1 << 16);
    gs_chunk_join j;

    (void)state;
    make(c, 4, 100, 50, 2, true);
    assert_false(gs_chunk_join_begin(&j, 100, 200, scratch, 399)); /* a number a row */
    assert_true(gs_chunk_join_begin(&j, 100, 200, scratch, 400));
    for (uint32_t k = 0; k < 4; k++)
        gs_chunk_join_count(&j, &c->view[k]);
    assert_false(gs_chunk_join_fits(&j, 1 << 20));
    const uint64_t need = 400 + j.edges * 3;
    for (uint64_t room = need - 1; room <= need; room++) {
        gs_chunk_join_begin(&j, 100, 200, scratch, room);
        for (uint32_t k = 0; k < 4; k++)
            gs_chunk_join_count(&j, &c->view[k]);
        assert_int_equal(gs_chunk_join_fits(&j, 1 << 20), room == need);
    }
    free(scratch);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_join__keeps_every_edge_in_its_order),
        cmocka_unit_test(test_chunk_join__refuses_scratch_that_is_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
