/* Folders of others: metadata of any shape are read in time; labels without a header have the right width. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
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

/* Labels without a header have the width that the features' rows say, or that their numbers do. */
static void test_igb__labels_may_be_whole_numbers(void **state)
{
    enum { N = 40, F = 6 };
    static const gs_dtype types[] = {GS_F32, GS_I32, GS_I64};
    edge edges[] = {{0, 1, 0, 0}, {39, 2, 0, 0}};
    const edge_list list = {edges, 2};
    const char *const dir = *state;
    char *const papers = strdup(gs_test_path(dir, "paper")), *const labels = strdup(gs_test_path(
                                                                papers, "node_label_19.npy"));
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    static float features[N * F];
    char raw[8 * N];

    gs_assert_ok(gs_mkdir(papers));
    write_edges(dir, &list, false, false);
    gs_assert_ok(gs_mkdir(gs_test_path(dir, "paper__cites__paper")));
    assert_int_equal(rename(gs_test_path(dir, "edges.npy"),
                            gs_test_path(dir, "paper__cites__paper/edge_index.npy")), 0);
    gs_test_write_file(gs_test_path(papers, "node_feat.npy"), features, sizeof(features));
    o.force = true;
    for (int headers = 0; headers <= 1; headers++) {
        for (size_t t = 0; t < GS_ARRAY_LEN(types); t++) {
            const size_t width = types[t] == GS_I64 ? 8 : 4;
            gs_store *s = NULL;
            for (int64_t v = 0; v < N; v++) {
                const int64_t label = v % 4;
                const float real = (float)label;
                memcpy(raw + (size_t)v * width, types[t] == GS_F32 ? (const void *)&real : &label, width);
            }
            gs_test_write_file(labels, raw, width * N);
            gs_assert_ok(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL));
            gs_assert_ok(gs_store_open(&s, gs_test_path(dir, "s")));
            assert_int_equal(gs_store_get_info(s)->vertices, N);
            assert_int_equal(gs_store_get_info(s)->features, F);
            assert_int_equal(gs_store_get_info(s)->classes, 4);
            int32_t *const got = read_array(s, GS_ARRAY_LABELS);
            for (int32_t v = 0; v < N; v++)
                assert_int_equal(got[v], v % 4);
            gs_free(got);
            gs_store_close(s);
        }
        write_npy(papers, "node_feat.npy", GS_F32, features, N, F);
    }
    o.force = false;
    gs_assert_ok(gs_remove_tree(gs_test_path(dir, "s")));
    gs_test_write_file(labels, raw, 8 * N - 8);
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL), GS_EFORMAT,
                    "node_label_19.npy: has no .npy header and 312 bytes, which are neither 4 nor 8 for each of");
    memset(raw, 0, sizeof(raw));
    gs_test_write_file(labels, raw, 4 * N);
    unlink(gs_test_path(papers, "node_feat.npy"));
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL), GS_EFORMAT,
                    "neither its numbers nor the features say of which type they are");
    free(labels);
    free(papers);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_yaml__metadata_of_any_shape_are_read_in_time),
        T(test_igb__labels_may_be_whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
