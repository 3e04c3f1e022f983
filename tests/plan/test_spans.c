/* Stretches that are set over each other, beside a table of who has each byte. */
#include <string.h>

#include "base/alloc.h"
#include "plan/spans.h"
#include "support/support.h"

#define BYTES 4000u

/* Each byte has what was set there last; neighbours that are alike are one span. */
static void check(gs_spans *s, const uint32_t who[BYTES], const uint32_t from[BYTES])
{
    uint32_t k = 0;
    for (uint32_t at = 0; at < BYTES; k++) {
        uint32_t end = at + 1;
        if (who[at] == 0) {
            at++;
            k--;
            continue;
        }
        while (end < BYTES && who[end] == who[at] && from[end] == from[at])
            end++;
        assert_true(k < s->count);
        const gs_span *const x = gs_spans_at(s, k);
        assert_true(x->begin == at && x->end == end && x->who == who[at] && x->from == from[at]);
        assert_int_equal(gs_spans_find(s, (at + end) / 2), k);
        at = end;
    }
    assert_int_equal(k, s->count);
}

static void test_spans__are_what_was_set_last(void **state)
{
    (void)state;
    gs_spans s = {0};
    for (uint32_t seed = 1; seed <= 20; seed++, gs_spans_empty(&s)) {
        uint32_t who[BYTES] = {0}, from[BYTES] = {0}, random = seed;
        for (uint32_t i = 0; i < 600; i++) {
            random = random * 1664525u + 1013904223u;
            const uint32_t begin = (random >> 8) % BYTES, length = 1 + (random >> 4) % (i % 3 == 0 ? 400 : 16);
            const gs_span x = {begin, begin + length > BYTES ? BYTES : begin + length, 1 + random % 3, i % 2};
            for (uint64_t at = x.begin; at < x.end; at++) {
                who[at] = x.who;
                from[at] = x.from;
            }
            gs_assert_ok(gs_spans_set(&s, x));
            if (i % 20 == 19)
                check(&s, who, from);
        }
    }
    gs_free(s.span);
}

/* Places of a ring, one behind the other, each of a task of its own, before and behind as many: the time of it
 * does not grow with their number (0.1 s of a processor). */
static void test_spans__of_a_ring_are_set_in_turn(void **state)
{
    const uint32_t places = 400000;
    gs_spans s = {0};
    (void)state;
    for (uint32_t half = 2; half-- > 0;)
        for (uint32_t i = 0; i < places; i++) {
            const uint64_t begin = 8 * ((uint64_t)half * places + i);
            gs_assert_ok(gs_spans_set(&s, (gs_span){begin, begin + 8, 1, i}));
        }
    assert_int_equal(s.count, 2 * places);
    gs_free(s.span);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans__are_what_was_set_last),
        cmocka_unit_test(test_spans__of_a_ring_are_set_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
