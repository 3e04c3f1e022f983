/* A chunk's layout, and what a view refuses. Sizes and offsets are worked out by hand here. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "store/chunk_view.h"

static void test_chunk_bytes__are_those_of_the_format(void **state)
{
    (void)state;
    assert_int_equal(gs_chunk_bytes(0, 0, 0, 2, (gs_edge_data){0}), 0);
    assert_int_equal(gs_chunk_bytes(1, 1, 1, 2, (gs_edge_data){0}), 4096);
    /* 32 + pad16(2 * 1000) + pad16(4 * 1001) + pad16(2 * 5000) + 2 * 900 = 17856 */
    assert_int_equal(gs_chunk_bytes(5000, 1000, 900, 2, (gs_edge_data){0}), 20480);
    /* the same with indices of 4: 32 + 4000 + 4016 + 20000 + 3600 = 31648 */
    assert_int_equal(gs_chunk_bytes(5000, 1000, 900, 4, (gs_edge_data){0}), 32768);
    /* + types of 2 (10000 -> operands padded to 3600) + weights (20000): 61648 */
    assert_int_equal(gs_chunk_bytes(5000, 1000, 900, 4, (gs_edge_data){2, true, 0}), 65536);
    /* 32 + 16 + 16 + pad16(4 * n) + 16 = 4096 where n = 1004: full, and one more */
    assert_int_equal(gs_chunk_bytes(1004, 1, 1, 4, (gs_edge_data){0}), 4096);
    assert_int_equal(gs_chunk_bytes(1005, 1, 4, 4, (gs_edge_data){0}), 8192);
    assert_true(gs_chunk_bytes(UINT32_MAX, UINT32_MAX, UINT32_MAX, 4, (gs_edge_data){2, true, 0}) > 16ull * UINT32_MAX);
    assert_true(gs_chunk_bytes(1ull << 32, 1, 1, 2, (gs_edge_data){0}) == UINT64_MAX);
    assert_true(gs_chunk_bytes(UINT64_MAX, 1, 1, 4, (gs_edge_data){2, true, 0}) == UINT64_MAX);
}

/* 4 edges into rows 2 and 5 of 8, from rows 0, 6 and 9 of 10, with types and weights. */
static const gs_chunk_expect sample = {
    .target_rows = 8, .operand_rows = 10, .index_bytes = 2, .edges = 4, .targets = 2, .operands = 3};

typedef struct sample_chunk {
    unsigned char *data;
    uint64_t length;
    gs_chunk_view at;
} sample_chunk;

static void *edit(const void *p)
{
    return (void *)(uintptr_t)p;
}

static int make_sample(void **state)
{
    static const uint16_t target[] = {2, 5}, index[] = {0, 9, 6, 0}, operand[] = {0, 6, 9};
    static const uint32_t start[] = {0, 2, 4};
    static const uint8_t type[] = {1, 1, 0, 3};
    static const float weight[] = {1, 2, 3, 4};
    sample_chunk *c = calloc(1, sizeof(*c));

    c->length = gs_chunk_bytes(4, 2, 3, 2, (gs_edge_data){1, true, 0});
    assert_int_equal(c->length, 4096);
    if (posix_memalign((void **)&c->data, 16, c->length) != 0)
        return -1;
    memset(c->data, 0, c->length);
    gs_chunk_layout(&c->at, c->data, &sample, (gs_edge_data){1, true, 0});
    memcpy(edit(c->at.target), target, sizeof(target));
    memcpy(edit(c->at.start), start, sizeof(start));
    memcpy(edit(c->at.index), index, sizeof(index));
    memcpy(edit(c->at.operand), operand, sizeof(operand));
    memcpy(edit(c->at.type), type, sizeof(type));
    memcpy(edit(c->at.weight), weight, sizeof(weight));
    *state = c;
    return 0;
}

static int free_sample(void **state)
{
    sample_chunk *c = *state;
    free(c->data);
    free(c);
    return 0;
}

static void test_chunk_layout__sections_stand_at_multiples_of_16(void **state)
{
    static const unsigned char header[32] = {'G', 'S', 'C', 'H', 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0,
                                             4,   0,   0,   0,   0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    const sample_chunk *c = *state;
    assert_memory_equal(c->data, header, sizeof(header));
    assert_ptr_equal(c->at.target, c->data + 32);
    assert_ptr_equal(c->at.start, c->data + 48);
    assert_ptr_equal(c->at.index, c->data + 64);
    assert_ptr_equal(c->at.operand, c->data + 80);
    assert_ptr_equal(c->at.type, c->data + 96);
    assert_ptr_equal(c->at.weight, c->data + 112);
}

static void test_chunk_view__points_at_the_sections(void **state)
{
    const sample_chunk *c = *state;
    gs_chunk_view v;
    memset(&v, 0xEE, sizeof(v));
    gs_assert_ok(gs_chunk_view_make(&v, c->data, c->length, &sample, true));
    assert_int_equal(v.index_bytes, 2);
    assert_int_equal(v.targets, 2);
    assert_int_equal(v.operands, 3);
    assert_int_equal(v.edges, 4);
    assert_int_equal(v.type_bytes, 1);
    assert_ptr_equal(v.target, c->at.target);
    assert_ptr_equal(v.start, c->at.start);
    assert_ptr_equal(v.index, c->at.index);
    assert_ptr_equal(v.operand, c->at.operand);
    assert_ptr_equal(v.type, c->at.type);
    assert_ptr_equal(v.weight, c->at.weight);
    /* The sections end at 128: that is enough, one byte less is not. */
    gs_assert_ok(gs_chunk_view_make(&v, c->data, 128, &sample, true));
    for (uint64_t length = 0; length < 128; length++)
        gs_assert_fails(gs_chunk_view_make(&v, c->data, length, &sample, true), GS_EFORMAT, "too short");
}

static void refuse(const sample_chunk *c, size_t at, uint64_t value, size_t bytes, bool deep,
                   const char *text)
{
    unsigned char kept[8];
    gs_chunk_view v, untouched;
    memset(&v, 0xEE, sizeof(v));
    untouched = v;
    memcpy(kept, c->data + at, bytes);
    memcpy(c->data + at, &value, bytes);
    gs_assert_fails(gs_chunk_view_make(&v, c->data, c->length, &sample, true), GS_EFORMAT, text);
    assert_memory_equal(&v, &untouched, sizeof(v));
    if (deep) /* what only a deep check looks at */
        gs_assert_ok(gs_chunk_view_make(&v, c->data, c->length, &sample, false));
    else
        gs_assert_fails(gs_chunk_view_make(&v, c->data, c->length, &sample, false), GS_EFORMAT, text);
    memcpy(c->data + at, kept, bytes);
}

static void test_chunk_view__refuses_bad_headers_and_starts(void **state)
{
    const sample_chunk *c = *state;
    refuse(c, 0, 'g', 1, false, "GSCH");
    refuse(c, 4, 4, 4, false, "indices of 4 bytes instead of 2");
    refuse(c, 4, 0, 4, false, "indices of 0 bytes");
    refuse(c, 8, 0xFFFFFFFF, 4, false, "its header counts 4 edges, 4294967295 targets");
    refuse(c, 12, 0x80000003, 4, false, "its header counts");
    refuse(c, 16, 1ull << 32 | 4, 8, false, "its header counts 4294967300 edges");
    refuse(c, 24, 3, 4, false, "edge types of 3 bytes");
    refuse(c, 28, 0x1000001, 4, false, "features of 8388608");
    refuse(c, 48, 1, 4, false, "starts do not ascend from 0 to 4");
    refuse(c, 52, 0, 4, false, "starts do not ascend");
    refuse(c, 52, 4, 4, false, "starts do not ascend");
    refuse(c, 52, 0xFFFFFFFF, 4, false, "starts do not ascend");
    refuse(c, 56, 3, 4, false, "starts do not ascend");
    refuse(c, 56, 0x80000004, 4, false, "starts do not ascend");
}

static void test_chunk_view__deep_check_refuses_bad_rows(void **state)
{
    const sample_chunk *c = *state;
    refuse(c, 32, 5, 2, true, "list of targets is not ascending");
    refuse(c, 34, 8, 2, true, "list of targets has row 8 of an interval of 8 rows");
    refuse(c, 82, 0, 2, true, "list of operands is not ascending");
    refuse(c, 84, 10, 2, true, "list of operands has row 10 of an interval of 10 rows");
    refuse(c, 70, 10, 2, true, "an edge names operand row 10 of an interval of 10 rows");
    refuse(c, 66, 0xFFFF, 2, true, "an edge names operand row 65535");
}

/* With types the order is (type, operand); the same indices without types are out of order. */
static void test_chunk_view__order_is_by_type_first(void **state)
{
    const sample_chunk *c = *state;
    gs_chunk_view v;
    uint8_t *type = edit(c->at.type);
    uint16_t *index = edit(c->at.index);

    gs_assert_ok(
        gs_chunk_view_make(&v, c->data, c->length, &sample, true)); /* row 5: type 0 from 6, type 3 from 0 */
    type[3] = 0;                                                    /* both type 0: 6 before 0 */
    gs_assert_fails(gs_chunk_view_make(&v, c->data, c->length, &sample, true), GS_EFORMAT,
                    "not in ascending order");
    index[3] = 6; /* a double edge is in order */
    gs_assert_ok(gs_chunk_view_make(&v, c->data, c->length, &sample, true));
    type[2] = 1; /* descending types */
    gs_assert_fails(gs_chunk_view_make(&v, c->data, c->length, &sample, true), GS_EFORMAT,
                    "not in ascending order");
    gs_assert_ok(gs_chunk_view_make(&v, c->data, c->length, &sample, false));
}

/* Counts that no edges can have, agreed on by header and table. */
static void test_chunk_view__refuses_impossible_counts(void **state)
{
    static const uint32_t counts[][3] = {/* edges, targets, operands */
                                         {0, 0, 0}, {4, 0, 3}, {4, 2, 0},   {4, 5, 3},
                                         {4, 2, 5}, {4, 9, 3}, {100, 9, 3}, {100, 2, 11}};
    const sample_chunk *c = *state;
    for (size_t k = 0; k < GS_ARRAY_LEN(counts); k++) {
        gs_chunk_expect e = sample;
        gs_chunk_view v;
        const uint64_t edges = counts[k][0];
        e.edges = edges;
        e.targets = counts[k][1];
        e.operands = counts[k][2];
        memcpy(c->data + 8, &e.targets, 4);
        memcpy(c->data + 12, &e.operands, 4);
        memcpy(c->data + 16, &edges, 8);
        gs_assert_fails(gs_chunk_view_make(&v, c->data, c->length, &e, true), GS_EFORMAT, "cannot have");
    }
}

/* Deep checks of 4-byte indices against a plain reference, over random chunks with one change each. */
static bool reference_good(const uint32_t *start, uint32_t targets, const uint32_t *index, uint32_t limit)
{
    for (uint32_t t = 0; t < targets; t++)
        for (uint32_t k = start[t]; k < start[t + 1]; k++)
            if (index[k] >= limit || (k > start[t] && index[k] < index[k - 1]))
                return false;
    return true;
}

static void test_chunk_view__deep_check_agrees_with_a_plain_one(void **state)
{
    enum { TARGETS = 7, EDGES = 61, ROWS = 9 };
    const gs_chunk_expect e = {.target_rows = TARGETS,
                               .operand_rows = ROWS,
                               .index_bytes = 4,
                               .edges = EDGES,
                               .targets = TARGETS,
                               .operands = 1};
    static _Alignas(16) unsigned char data[4096];
    uint32_t seed = 1, good = 0, bad = 0;
    gs_chunk_view v;

    (void)state;
    gs_chunk_layout(&v, data, &e, (gs_edge_data){0});
    uint32_t *start = edit(v.start), *index = edit(v.index), *target = edit(v.target);
    for (uint32_t round = 0; round < 2000; round++) {
        for (uint32_t t = 0; t < TARGETS; t++) {
            target[t] = t;
            start[t + 1] =
                t + 1 == TARGETS ? EDGES : start[t] + 1 + (seed = seed * 1664525 + 1013904223) % 12 / 2;
            for (uint32_t k = start[t], row = 0; k < start[t + 1]; k++)
                index[k] = row =
                    GS_MIN(row + (seed = seed * 1664525 + 1013904223) / 65536 % 3 / 2, ROWS - 1u);
        }
        seed = seed * 1664525 + 1013904223;
        index[seed / 65536 % EDGES] = seed % (ROWS + 1);
        const bool want = reference_good(start, TARGETS, index, ROWS);
        gs_chunk_view made;
        assert_int_equal(gs_chunk_view_make(&made, data, 4096, &e, true), want ? GS_OK : GS_EFORMAT);
        good += want;
        bad += !want;
    }
    assert_true(good > 100 && bad > 100);
}

/* ---- merging ---- */

/* Every target's edges, each as often as it counts, are those that were there. */
static void check_merged(const gs_chunk_view *merged, const uint32_t *start, const uint32_t *index)
{
    for (uint32_t t = 0; t < merged->targets; t++) {
        uint32_t k = start[t];
        for (uint32_t m = merged->start[t]; m < merged->start[t + 1]; m++) {
            const uint32_t row =
                merged->index_bytes == 2 ? ((const uint16_t *)merged->index)[m] : ((const uint32_t *)merged->index)[m];
            assert_true(merged->count[m] > 0);
            for (uint32_t i = 0; i < merged->count[m]; i++)
                assert_int_equal(index[k++], row);
        }
        assert_int_equal(k, start[t + 1]);
    }
}

/* `targets` rows with `runs` different operands each, the j-th of them repeated repeats(t, j) times. */
static void merge_case(uint32_t index_bytes, uint32_t targets, uint32_t runs, uint32_t most, bool merges)
{
    const gs_chunk_expect counts = {.target_rows = targets, .operand_rows = 500, .index_bytes = index_bytes};
    gs_chunk_expect expect = counts;
    uint32_t *const start = calloc(targets + 1, sizeof(*start)), *const index = calloc((size_t)targets * runs * most,
                                                                                       sizeof(*index));
    gs_chunk_view v, merged = {0};
    void *data = NULL;

    for (uint32_t t = 0; t < targets; t++) {
        for (uint32_t j = 0; j < runs; j++)
            for (uint32_t i = 0; i <= (t * 7919 + j * 104729) % most; i++)
                index[expect.edges++] = 5 * j + t % 5;
        start[t + 1] = (uint32_t)expect.edges;
    }
    expect.targets = targets;
    expect.operands = 5 * runs < 500 && targets > 4 ? 5 * runs : runs;
    const uint64_t bytes = gs_chunk_bytes(expect.edges, targets, expect.operands, index_bytes, (gs_edge_data){0});
    assert_int_equal(posix_memalign(&data, 16, bytes), 0);
    memset(data, 0, bytes);
    gs_chunk_layout(&v, data, &expect, (gs_edge_data){0});
    memcpy(edit(v.start), start, (targets + 1) * sizeof(*start));
    for (uint64_t k = 0; k < expect.edges; k++) {
        if (index_bytes == 2)
            ((uint16_t *)edit(v.index))[k] = (uint16_t)index[k];
        else
            ((uint32_t *)edit(v.index))[k] = index[k];
    }
    void *const before = malloc(bytes), *const scratch = malloc(expect.edges);
    memcpy(before, data, bytes);
    assert_int_equal(gs_chunk_merge(&v, data, scratch), merges);
    if (merges) {
        gs_chunk_merged_view(&merged, data, &expect);
        assert_true(merged.edges < expect.edges && merged.targets == targets);
        check_merged(&merged, start, index);
    } else {
        assert_memory_equal(before, data, bytes);
    }
    free(before);
    free(scratch);
    free(data);
    free(start);
    free(index);
}

static void test_chunk_merge__keeps_every_edge(void **state)
{
    (void)state;
    for (uint32_t bytes = 2; bytes <= 4; bytes += 2) {
        merge_case(bytes, 1, 1, 1, false);
        merge_case(bytes, 50, 20, 1, false);
        merge_case(bytes, 50, 20, 5, true);
        merge_case(bytes, 7, 3, 2000, true); /* more than a byte counts */
        merge_case(bytes, 300, 40, 9, true);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_sample, free_sample)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_bytes__are_those_of_the_format),
        TEST(test_chunk_layout__sections_stand_at_multiples_of_16),
        TEST(test_chunk_view__points_at_the_sections),
        TEST(test_chunk_view__refuses_bad_headers_and_starts),
        TEST(test_chunk_view__deep_check_refuses_bad_rows),
        TEST(test_chunk_view__order_is_by_type_first),
        TEST(test_chunk_view__refuses_impossible_counts),
        cmocka_unit_test(test_chunk_view__deep_check_agrees_with_a_plain_one),
        cmocka_unit_test(test_chunk_merge__keeps_every_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
