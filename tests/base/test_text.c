/* test_text.c - a shared text, and the line with a caret that an error in it shows. */
#include <string.h>

#include "base/text.h"
#include "support/support.h"

static void shows(const char *text, uint32_t line, uint32_t column, const char *want)
{
    gs_text *t = gs_text_new("m.gnn", text, strlen(text));

    assert_non_null(t);
    gs_assert_fails(gs_fail_in_text(GS_EFORMAT, t, line, column, "what is %s", "wrong"), GS_EFORMAT,
                    ": what is wrong");
    assert_string_equal(gs_last_error_place(), want);
    gs_text_drop(t);
}

static void test_text__shows_the_line_and_a_caret(void **state)
{
    (void)state;
    shows("one\ntwo three\nfour", 2, 5, "    two three\n        ^");
    shows("one\r\ntwo\r\n", 1, 1, "    one\n    ^");
    shows("one\n", 1, 4, "    one\n       ^"); /* the end of the line */
    shows("one\n", 2, 1, "    \n    ^");       /* the end of the text */
    shows("", 1, 1, "    \n    ^");
    shows("\tx\ty", 1, 4, "    \tx\ty\n    \t \t^");
    shows("# \xc3\xa9 x", 1, 6, "    # \xc3\xa9 x\n        ^"); /* two bytes are one place */
    shows("a\x1b[1mb", 1, 2, "    a?[1mb\n     ^");
}

static void test_text__shows_nothing_where_there_is_no_place(void **state)
{
    (void)state;
    shows("one", 0, 0, "");
    shows("one", 2, 1, "");
    shows("one", 1, 9, "");
    gs_assert_fails(gs_fail(GS_EINVAL, "another"), GS_EINVAL, "another");
    assert_string_equal(gs_last_error_place(), "");
}

/* The first lets go last; a place that was shown does not need the text any more. */
static void test_text__a_place_outlives_its_text(void **state)
{
    gs_text *t = gs_text_new("m.gnn", "x = 1", 5);
    size_t bytes;

    (void)state;
    gs_text_drop(gs_text_keep(t));
    assert_string_equal(gs_text_bytes(t, &bytes), "x = 1");
    assert_int_equal(bytes, 5);
    gs_assert_fails(gs_fail_in_text(GS_EFORMAT, t, 1, 3, "wrong"), GS_EFORMAT, "m.gnn:1:3: wrong");
    gs_text_drop(t);
    assert_string_equal(gs_last_error_place(), "    x = 1\n      ^");
}

static void test_text__of_a_long_line_the_part_around_the_column(void **state)
{
    char line[1001];
    const char *place, *end;
    gs_text *t;

    (void)state;
    memset(line, 'a', 1000);
    line[1000] = '\0';
    line[699] = 'X';
    t = gs_text_new("m.gnn", line, 1000);
    (void)gs_fail_in_text(GS_EFORMAT, t, 1, 700, "wrong");
    gs_text_drop(t);
    place = gs_last_error_place();
    end = strchr(place, '\n');
    assert_non_null(end);
    assert_true(end - place < 200);
    assert_int_equal(place[strchr(end, '^') - end - 1], 'X');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text__shows_the_line_and_a_caret),
        cmocka_unit_test(test_text__shows_nothing_where_there_is_no_place),
        cmocka_unit_test(test_text__a_place_outlives_its_text),
        cmocka_unit_test(test_text__of_a_long_line_the_part_around_the_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
