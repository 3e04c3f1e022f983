/* Answers of scans: found for the same question, for no other, and within the memory that they may have. */
#include <string.h>

#include "support/support.h"
#include "session/edges.h"

enum { WORDS = 3 };

static const uint64_t some[WORDS] = {1, 2, 3}, others[WORDS] = {1, 2, 4};

static gs_scan_key key_of(gs_scan_kind kind, const uint64_t *targets, const uint64_t *operands)
{
    return (gs_scan_key){.kind = kind, .direction = 1, .rows = 4, .coarse_rows = 16, .targets = targets,
                         .operands = operands, .words = WORDS};
}

static gs_scan_answer answer_of(uint64_t *a, uint64_t *b)
{
    return (gs_scan_answer){{a, b}, {2 * sizeof(*a), b == NULL ? 0 : sizeof(*b)}};
}

static void test_scans__the_same_question_has_its_answer(void **state)
{
    (void)state;
    uint64_t a[2] = {11, 12}, b[1] = {13}, copy[WORDS] = {1, 2, 3};
    gs_scans s = {.most = 4096};
    const gs_scan_answer in = answer_of(a, b);
    gs_scan_key k = key_of(GS_SCAN_COUNT, copy, NULL);
    gs_scans_keep(&s, &k, &in);
    copy[0] = a[0] = b[0] = 0; /* it has its own */
    const gs_scan_answer out = answer_of(a, b);
    k.targets = some;
    assert_true(gs_scans_find(&s, &k, &out));
    assert_int_equal(a[0], 11);
    assert_int_equal(a[1], 12);
    assert_int_equal(b[0], 13);
    gs_scans_drop(&s);
    assert_false(gs_scans_find(&s, &k, &out));
    assert_false(gs_scans_find(NULL, &k, &out));
}

static void test_scans__another_question_has_none(void **state)
{
    (void)state;
    uint64_t a[2] = {11, 12}, b[1] = {13};
    gs_scans s = {.most = 4096};
    const gs_scan_answer both = answer_of(a, b), one = answer_of(a, NULL);
    const gs_scan_key k = key_of(GS_SCAN_COUNT, some, NULL);
    gs_scan_key other[8] = {k, k, k, k, k, k, k, k};
    gs_scans_keep(&s, &k, &both);
    other[0].kind = GS_SCAN_REACH;
    other[1].direction = 0;
    other[2].rows = 8;
    other[3].coarse_rows = 32;
    other[4].targets = others;
    other[5].targets = NULL;
    other[6].operands = some;
    other[7].words = WORDS - 1;
    for (int i = 0; i < 8; i++)
        assert_false(gs_scans_find(&s, &other[i], &both));
    assert_false(gs_scans_find(&s, &k, &one)); /* less was asked for */
    assert_true(gs_scans_find(&s, &k, &both));
    gs_scans_drop(&s);
}

static void test_scans__hold_no_more_than_they_may(void **state)
{
    (void)state;
    uint64_t a[2] = {11, 12};
    /* either number is a byte with one before it */
    gs_scans s = {.most = WORDS * sizeof(uint64_t) + 2 * 2};
    const gs_scan_answer in = answer_of(a, NULL);
    const gs_scan_key first = key_of(GS_SCAN_REACH, some, NULL), second = key_of(GS_SCAN_REACH, others, NULL);
    gs_scans_keep(&s, &first, &in);
    gs_scans_keep(&s, &second, &in);
    assert_true(gs_scans_find(&s, &first, &in));
    assert_false(gs_scans_find(&s, &second, &in));
    assert_int_equal(s.bytes, s.most);
    gs_scans_drop(&s);
}

/* Runs of 0 and of other bytes, shorter and longer than a word and than what is kept as one, and a part of a word. */
static void test_scans__answers_come_back_as_they_were(void **state)
{
    (void)state;
    enum { BYTES = 8195 };
    static uint8_t in[BYTES], out[BYTES];
    const uint32_t runs[] = {1, 1, 2, 1, 127, 3, 128, 129, 130, 127, 300, 2, 1, 640, 5, 2500, 9, 2045};
    uint32_t at = 5;
    for (uint32_t k = 0; k < sizeof(runs) / sizeof(runs[0]); at += runs[k++])
        memset(in + at, k % 2 == 0 ? (int)k + 1 : 0, runs[k]);
    in[BYTES - 1] = 1;
    gs_scans s = {.most = BYTES};
    const gs_scan_key k = key_of(GS_SCAN_NEED, NULL, NULL);
    gs_scans_keep(&s, &k, &(gs_scan_answer){{in, NULL}, {BYTES, 0}});
    assert_true(s.bytes > 0 && s.bytes < BYTES / 2);
    memset(out, 0xff, sizeof(out));
    assert_true(gs_scans_find(&s, &k, &(gs_scan_answer){{out, NULL}, {BYTES, 0}}));
    assert_memory_equal(in, out, BYTES);
    gs_scans_drop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scans__the_same_question_has_its_answer),
        cmocka_unit_test(test_scans__another_question_has_none),
        cmocka_unit_test(test_scans__hold_no_more_than_they_may),
        cmocka_unit_test(test_scans__answers_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
