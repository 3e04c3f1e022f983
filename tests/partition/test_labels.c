/* Labels that are rows: which task they are of, what the store holds of them, what is refused. */
#include "graphs.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/outfile.h"
#include "base/size.h"

enum { N = 300, C = 7 };

static void graph(const char *dir)
{
    edge_list list = random_graph(N, 1500, 9, false, false);
    write_edges(dir, &list, false, false);
    write_features(dir, N, 3);
    edges_free(&list);
}

static gs_status make(const char *dir, const char *task, gs_store **s)
{
    gs_partition_options o = test_options("fennel", 4, 32 * GS_MIB);
    o.force = true;
    o.task = task;
    const gs_status st = gs_partition(dir, gs_test_path(dir, "store"), &o, NULL);
    if (st == GS_OK) {
        gs_assert_ok(gs_store_open(s, gs_test_path(dir, "store")));
        gs_assert_ok(gs_store_verify(*s, 16 * GS_MIB));
    }
    return st;
}

static uint8_t truth_at(uint64_t v, uint64_t c) { return (v * 7 + c * 3) % 5 == 0; }
static bool known_at(uint64_t v, uint64_t c) { return v % 11 != 0 && (v + c) % 9 != 0; }

static void check_truths(const gs_store *s, bool all_known)
{
    uint8_t *const rows = read_array(s, GS_ARRAY_LABELS);
    uint32_t *const ids = read_array(s, GS_ARRAY_INPUT_ID);
    assert_int_equal(gs_store_get_info(s)->labels, GS_TRAIN_TASK_MULTILABEL);
    assert_int_equal(gs_store_get_info(s)->classes, C);
    for (int p = 0; p < N; p++)
        for (uint64_t c = 0; c < C; c++)
            assert_int_equal(rows[p * C + (int)c], all_known || known_at(ids[p], c) ? truth_at(ids[p], c) : 255);
    gs_free(rows);
    gs_free(ids);
}

/* A matrix of 0 and 1 is several labels a vertex, whatever its type; NaN is not known. */
static void test_labels__a_matrix_of_truths(void **state)
{
    static uint8_t bytes[N][C];
    static int64_t wide[N][C];
    static float part[N][C];
    gs_store *s = NULL;

    graph(*state);
    for (uint64_t v = 0; v < N; v++)
        for (uint64_t c = 0; c < C; c++) {
            bytes[v][c] = truth_at(v, c);
            wide[v][c] = truth_at(v, c);
            part[v][c] = known_at(v, c) ? truth_at(v, c) : NAN;
        }
    write_npy(*state, "labels_multi.npy", GS_U8, bytes, N, C);
    gs_assert_ok(make(*state, NULL, &s));
    check_truths(s, true);
    gs_store_close(s);
    write_npy(*state, "labels.npy", GS_I64, wide, N, C);
    gs_assert_ok(make(*state, "multilabel", &s)); /* the file of that name */
    check_truths(s, true);
    gs_store_close(s);
    write_npy(*state, "labels.npy", GS_F32, part, N, C);
    gs_assert_ok(make(*state, NULL, &s));
    check_truths(s, false);
    gs_store_close(s);
}

static double number_at(uint64_t v, uint64_t c) { return (double)v * 0.37 - (double)c * 1.5; }

static void test_labels__numbers(void **state)
{
    static double rows[N][2], one[N];
    static int64_t whole[N];
    gs_store *s = NULL;

    graph(*state);
    for (uint64_t v = 0; v < N; v++) {
        for (uint64_t c = 0; c < 2; c++)
            rows[v][c] = v % 7 == 3 && c == 1 ? NAN : number_at(v, c);
        one[v] = v % 7 == 3 ? NAN : number_at(v, 1);
        whole[v] = -3 * (int64_t)v;
    }
    for (int width = 1; width <= 2; width++) {
        write_npy(*state, "labels.npy", GS_F64, width == 2 ? &rows[0][0] : one, N, width == 2 ? 2 : 0);
        gs_assert_ok(make(*state, NULL, &s));
        float *const got = read_array(s, GS_ARRAY_LABELS);
        uint32_t *const ids = read_array(s, GS_ARRAY_INPUT_ID);
        assert_int_equal(gs_store_get_info(s)->labels, GS_TRAIN_TASK_REGRESS);
        assert_int_equal(gs_store_get_info(s)->classes, width);
        for (int p = 0; p < N; p++)
            for (int c = 0; c < width; c++) {
                const double want = width == 2 ? rows[ids[p]][c] : one[ids[p]];
                const float is = got[p * width + c];
                assert_true(isnan(want) ? isnan(is) : is == (float)want);
            }
        gs_free(got);
        gs_free(ids);
        gs_store_close(s);
    }
    write_npy(*state, "labels.npy", GS_I64, whole, N, 0);
    gs_assert_fails(make(*state, NULL, &s), GS_EFORMAT, "row 1: label -3 is outside"); /* classes, as integers are */
    gs_assert_ok(make(*state, "regress", &s));
    gs_store_close(s);
}

static void test_labels__contradictions_are_named(void **state)
{
    static int64_t counts[N][C], train[1] = {5};
    static float truths[N][C], far[N];
    gs_store *s = NULL;

    graph(*state);
    counts[4][2] = 3;
    truths[5][0] = 2;
    far[7] = INFINITY;
    far[8] = 0.5f;
    write_npy(*state, "labels.npy", GS_I64, counts, N, C);
    gs_assert_fails(make(*state, NULL, &s), GS_EFORMAT, ".task regress");
    gs_assert_fails(make(*state, "classify", &s), GS_EFORMAT, "one class");
    gs_assert_fails(make(*state, "multilabel", &s), GS_EFORMAT, "row 4, column 2: 3 is neither 0 nor 1");
    gs_assert_ok(make(*state, "regress", &s));
    gs_store_close(s);
    write_npy(*state, "labels.npy", GS_F32, truths, N, C);
    gs_assert_fails(make(*state, "multilabel", &s), GS_EFORMAT, "row 5, column 0: 2 is neither");
    write_npy(*state, "labels.npy", GS_F32, far, N, 0);
    gs_assert_fails(make(*state, NULL, &s), GS_EFORMAT, "row 7, column 0: inf is not a finite");
    gs_assert_fails(make(*state, "sort", &s), GS_EINVAL, ".task sort");
    for (int c = 0; c < C; c++)
        truths[5][c] = NAN;
    write_npy(*state, "labels.npy", GS_F32, truths, N, C);
    write_npy(*state, "train_idx.npy", GS_I64, train, 1, 0);
    gs_assert_fails(make(*state, NULL, &s), GS_EFORMAT, "vertex 5 has no label");
}

/* Labels of vertices of one type, and of several. */
static void test_labels__no_columns_are_no_labels(void **state)
{
    char text[128] = "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (300, 0), }";
    static const int64_t pair[1][2] = {{0, 1}};
    gs_store *s = NULL;

    memset(text + 10 + strlen(text + 10), ' ', sizeof(text) - 10 - strlen(text + 10));
    text[sizeof(text) - 1] = '\n';
    graph(*state);
    gs_assert_ok(gs_file_write_atomic(gs_test_path(*state, "labels.npy"), text, sizeof(text)));
    gs_assert_fails(make(*state, NULL, &s), GS_EFORMAT, "labels.npy: has 0 columns of labels");
    assert_int_equal(unlink(gs_test_path(*state, "edges.npy")), 0);
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "nodes")));
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "nodes/a")));
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "edges")));
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "edges/a__to__a")));
    write_npy(*state, "edges/a__to__a/edges.npy", GS_I64, pair, 1, 2);
    gs_assert_ok(gs_file_write_atomic(gs_test_path(*state, "nodes/a/labels.npy"), text, sizeof(text)));
    gs_assert_fails(make(*state, NULL, &s), GS_EFORMAT, "labels.npy: has 0 columns of labels");
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_labels__a_matrix_of_truths),
        T(test_labels__numbers),
        T(test_labels__contradictions_are_named),
        T(test_labels__no_columns_are_no_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
