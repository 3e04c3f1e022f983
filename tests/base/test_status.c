/* Codes, their texts, and one line a thread. */
#include "support/support.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static void test_status__every_code_has_its_own_text(void **state)
{
    static const gs_status codes[] = {
#define X(name, value, text) name,
        GS_STATUS_MAP(X)
#undef X
    };
    const size_t n = sizeof(codes) / sizeof(codes[0]);

    (void)state;
    assert_int_equal(codes[0], 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || codes[i] < 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(gs_status_text(codes[i]), gs_status_text(codes[j]));
    }
    assert_string_equal(gs_status_text(GS_EBUDGET), "does not fit the memory budget");
    assert_string_equal(gs_status_text((gs_status)-99), "unknown status");
}

static void test_status__fail_records_and_returns(void **state)
{
    (void)state;
    assert_int_equal(gs_fail(GS_EFORMAT, "%s: chunk %u", "a/b", 7u), GS_EFORMAT);
    assert_string_equal(gs_last_error(), "a/b: chunk 7");
}

static void test_status__fail_may_quote_the_last_error(void **state)
{
    (void)state;
    gs_fail(GS_EIO, "read failed");
    gs_fail(GS_EIO, "chunk 3: %s", gs_last_error());
    assert_string_equal(gs_last_error(), "chunk 3: read failed");
}

static void test_status__hostile_names_stay_one_line(void **state)
{
    (void)state;
    gs_fail(GS_EINVAL, "%s: no", "a\nb\x1b[31m\x7f");
    assert_string_equal(gs_last_error(), "a?b?[31m?: no");
    gs_fail(GS_EINVAL, "%s", "h\xc3\xa9"); /* UTF-8 is kept */
    assert_string_equal(gs_last_error(), "h\xc3\xa9");
}

static void test_status__long_lines_are_cut(void **state)
{
    static char name[5000];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    memcpy(name, "/first/", 7);
    memcpy(name + sizeof(name) - 6, "/last", 5);
    gs_fail(GS_EINVAL, "%s: is a folder; give the name of a file", name);
    assert_int_equal(strlen(gs_last_error()), GS_ERROR_BYTES - 1);
    assert_non_null(strstr(gs_last_error(), "xx/last: is a folder; give the name of a file"));
    assert_ptr_equal(strstr(gs_last_error(), "/first/xx"), gs_last_error());
    assert_int_equal(gs_fail_errno(ENOSPC, "%s: cannot open", name), GS_EIO);
    assert_non_null(strstr(gs_last_error(), "xx/last: cannot open: No space left on device; free some"));
    assert_true(strlen(gs_last_error()) < GS_ERROR_BYTES);
}

static void test_status__errno_maps_to_a_code(void **state)
{
    static const struct {
        int err;
        gs_status st;
    } cases[] = {
        {ENOMEM, GS_ENOMEM},       {ENOENT, GS_ENOTFOUND},    {ENOTDIR, GS_ENOTFOUND}, {EEXIST, GS_EEXIST},
        {ENOTEMPTY, GS_EEXIST},    {EINVAL, GS_EIO},          {EISDIR, GS_EEXIST},     {EINTR, GS_EINTERRUPTED},
        {EAGAIN, GS_EAGAIN},       {ENOSYS, GS_EUNSUPPORTED}, {ENOSPC, GS_EIO},        {EACCES, GS_EIO},
        {EOPNOTSUPP, GS_EUNSUPPORTED}, {EIO, GS_EIO},         {ELOOP, GS_EIO}, {ENAMETOOLONG, GS_EIO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(gs_fail_errno(cases[i].err, "x"), cases[i].st);
    gs_fail_errno(ENOSPC, "%s: write of %d bytes", "f.bin", 5);
    assert_string_equal(
        gs_last_error(),
        "f.bin: write of 5 bytes: No space left on device; free some, or choose a folder on another disk");
}

static void test_status__one_hint_a_line(void **state)
{
    (void)state;
    gs_fail_errno(ENOSPC, "a%sb", "\n");
    assert_int_equal(gs_fail_hint(GS_EIO, "use --spill"), GS_EIO);
    assert_string_equal(gs_last_error(), "a?b: No space left on device; use --spill");
    gs_fail_errno(EACCES, "f.bin: cannot create");
    gs_fail_hint(GS_EIO, "use --spill");
    assert_string_equal(gs_last_error(), "f.bin: cannot create: Permission denied; use --spill");
    gs_fail(GS_EIO, "%s: no; 100 %% sure", "f.bin");
    gs_fail_hint(GS_EIO, "use --spill");
    assert_string_equal(gs_last_error(), "f.bin: no; 100 % sure; use --spill");
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    assert_string_equal(gs_last_error(), "");
    gs_fail(GS_EIO, "theirs");
    return NULL;
}

static void test_status__each_thread_has_its_own_line(void **state)
{
    pthread_t thread;

    (void)state;
    gs_fail(GS_EIO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(gs_last_error(), "mine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status__every_code_has_its_own_text),
        cmocka_unit_test(test_status__fail_records_and_returns),
        cmocka_unit_test(test_status__fail_may_quote_the_last_error),
        cmocka_unit_test(test_status__hostile_names_stay_one_line),
        cmocka_unit_test(test_status__long_lines_are_cut),
        cmocka_unit_test(test_status__errno_maps_to_a_code),
        cmocka_unit_test(test_status__one_hint_a_line),
        cmocka_unit_test(test_status__each_thread_has_its_own_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
