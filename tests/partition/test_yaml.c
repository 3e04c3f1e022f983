/* metadata.yaml of shapes that libyaml alone would read for minutes. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/size.h"

/* `piece` over and over, up to 1 MiB with what stands before it: libyaml alone would take minutes. */
static void expect_long_yaml(const char *dir, const char *before, const char *piece, const char *part)
{
    const size_t room = (size_t)GS_MIB - 64, step = strlen(piece);
    char *const text = malloc(room);
    size_t n = strlen(before);

    memcpy(text, before, n);
    for (; n + step <= room; n += step)
        memcpy(text + n, piece, step);
    gs_test_write_file(gs_test_path(dir, "metadata.yaml"), text, n);
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL), GS_EFORMAT, part);
    free(text);
}

static void test_yaml__metadata_of_any_shape_are_read_in_time(void **state)
{
    const clock_t start = clock();
    char *const dir = strdup(gs_test_path(*state, "g"));

    gs_assert_ok(gs_mkdir(dir));
    expect_long_yaml(dir, "", "[", "metadata.yaml: line 1: lists and mappings in more than 64 levels");
    expect_long_yaml(dir, "", "[\n", "metadata.yaml: line 65: lists and mappings in more than 64 levels");
    expect_long_yaml(dir, "", "- ", "line 1: lists and mappings in more than 64 levels");
    expect_long_yaml(dir, "a: [", "&a b, ", "line 1: more than 1000 anchors, aliases and directives");
    expect_long_yaml(dir, "", "%TAG ! !\n", "line 1001: more than 1000 anchors, aliases and directives");
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    free(dir);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_yaml__metadata_of_any_shape_are_read_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
