/* Feature rows, labels and splits follow the permutation, bit for bit. */
#include "graphs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum { N = 700, F = 37 };

static void good_input(const char *dir)
{
    edge_list list = random_graph(N, 4000, 9, false, false);
    int64_t labels[N], train[50], valid[60];
    write_edges(dir, &list, false, false);
    write_features(dir, N, F);
    for (int v = 0; v < N; v++)
        labels[v] = v % 10 == 9 ? -1 : v % 10;
    for (int i = 0; i < 50; i++)
        train[i] = i * 10 + 1;
    for (int i = 0; i < 60; i++)
        valid[i] = i * 10 + 2;
    write_npy(dir, "labels.npy", GS_I64, labels, N, 0);
    write_npy(dir, "train_idx.npy", GS_I64, train, 50, 0);
    write_npy(dir, "valid_idx.npy", GS_I64, valid, 60, 0);
    edges_free(&list);
}

static gs_store *run(const char *dir, const gs_partition_options *o)
{
    gs_store *s = NULL;
    const char *out = gs_test_path(dir, "store");
    gs_assert_ok(gs_partition(dir, out, o, NULL));
    gs_assert_ok(gs_store_open(&s, out));
    gs_assert_ok(gs_store_verify(s, 16 * GS_MIB));
    return s;
}

static void test_features__f32_is_bit_exact_with_every_method(void **state)
{
    static const char *const methods[] = {"natural", "random", "fennel", "metis", "lp"};
    good_input(*state);
    for (int m = 0; m < 4; m++) {
        gs_partition_options o = test_options(methods[m], 5, m == 2 ? 2 * GS_MIB : 32 * GS_MIB);
        o.force = true;
        gs_store *s = run(*state, &o);
        float *rows = read_array(s, GS_ARRAY_FEATURES);
        uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
        for (int p = 0; p < N; p++)
            for (int c = 0; c < F; c++) {
                const float want = feature_at(ids[p], (uint64_t)c);
                assert_memory_equal(&rows[p * F + c], &want, 4);
            }
        if (m == 0)
            for (uint32_t p = 0; p < N; p++)
                assert_int_equal(ids[p], p); /* natural keeps input order */
        gs_free(rows);
        gs_free(ids);
        gs_store_close(s);
    }
}

static void test_features__labels_and_splits_follow(void **state)
{
    gs_partition_options o = test_options("fennel", 5, 32 * GS_MIB);
    good_input(*state);
    gs_store *s = run(*state, &o);
    const gs_store_info *info = gs_store_get_info(s);
    int32_t *labels = read_array(s, GS_ARRAY_LABELS);
    uint8_t *split = read_array(s, GS_ARRAY_SPLIT);
    uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);

    assert_int_equal(info->classes, 9);
    assert_int_equal(info->train, 50);
    assert_int_equal(info->valid, 60);
    assert_int_equal(info->test, 0);
    for (int p = 0; p < N; p++) {
        const uint32_t v = ids[p];
        assert_int_equal(labels[p], v % 10 == 9 ? -1 : (int)(v % 10));
        assert_int_equal(split[p], v % 10 == 1 && v < 500   ? GS_SPLIT_TRAIN
                                   : v % 10 == 2 && v < 600 ? GS_SPLIT_VALID
                                                            : GS_SPLIT_NONE);
    }
    gs_free(labels);
    gs_free(split);
    gs_free(ids);
    gs_store_close(s);
}

/* Nearest value of the 16-bit type, by trying the neighbours of the stored one. */
static void check_rounding(float want, uint16_t stored, gs_dtype t)
{
    const uint16_t near[] = {stored, (uint16_t)(stored + 1), (uint16_t)(stored - 1)};
    float v[3];
    gs_convert_to_f32(v, near, t, 3);
    for (int i = 1; i < 3; i++) {
        if (!isfinite(v[i]))
            continue;
        const double own = fabs((double)v[0] - (double)want), other = fabs((double)v[i] - (double)want);
        assert_true(own < other || (own == other && stored % 2 == 0));
    }
}

static void test_features__halves_are_rounded_to_nearest_even(void **state)
{
    const gs_dtype types[] = {GS_BF16, GS_F16};
    good_input(*state);
    for (int k = 0; k < 2; k++) {
        gs_partition_options o = test_options("random", 3, 32 * GS_MIB);
        o.feature_type = gs_dtype_name(types[k]);
        o.force = true;
        gs_store *s = run(*state, &o);
        uint16_t *rows = read_array(s, GS_ARRAY_FEATURES);
        uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
        assert_int_equal(gs_store_get_info(s)->feature_type, types[k]);
        for (int p = 0; p < N; p++)
            for (int c = 0; c < F; c++)
                check_rounding(feature_at(ids[p], (uint64_t)c), rows[p * F + c], types[k]);
        gs_free(rows);
        gs_free(ids);
        gs_store_close(s);
    }
}

/* float64 and float16 input, and a header that leaves rows unaligned. */
static void test_features__other_input_types(void **state)
{
    edge one[] = {{0, 1, 0, 0}};
    edge_list list = {one, 1};
    double wide[] = {0.1, 1e-3, 3, 4, 5, -6};
    const uint16_t half[] = {0x3c00, 0x4000, 0x0001, 0xbc00, 0x3555, 0x7bff};
    gs_partition_options o = test_options("natural", 1, 8 * GS_MIB);
    char odd[10 + 118 + 3 + 24] = "\x93NUMPY\x01\x00"; /* 3 beyond a multiple of 4 */
    const float values[] = {1, 2, 3, 4, 5, 6};

    o.force = true;
    write_edges(*state, &list, false, false);
    write_npy(*state, "features.npy", GS_F64, wide, 2, 3);
    gs_store *s = run(*state, &o);
    float *rows = read_array(s, GS_ARRAY_FEATURES);
    for (int i = 0; i < 6; i++)
        assert_true(rows[i] == (float)wide[i]);
    gs_free(rows);
    gs_store_close(s);

    write_npy(*state, "features.npy", GS_F16, half, 2, 3);
    s = run(*state, &o);
    rows = read_array(s, GS_ARRAY_FEATURES);
    const float want[] = {1, 2, 0x1p-24f, -1, 0.333251953125f, 65504};
    for (int i = 0; i < 6; i++)
        assert_true(rows[i] == want[i]);
    gs_free(rows);
    gs_store_close(s);

    odd[8] = 121;
    memset(odd + 10, ' ', 121);
    memcpy(odd + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 59);
    odd[130] = '\n';
    memcpy(odd + 131, values, 24);
    gs_test_write_file(gs_test_path(*state, "features.npy"), odd, sizeof(odd));
    s = run(*state, &o);
    rows = read_array(s, GS_ARRAY_FEATURES);
    assert_memory_equal(rows, values, 24);
    gs_free(rows);
    gs_store_close(s);
}

static void test_features__csr_rows_become_dense(void **state)
{
    edge few[] = {{0, 1, 0, 0}, {2, 1, 0, 0}};
    edge_list list = {few, 2};
    const int64_t ptr[] = {0, 2, 2, 5};
    const int32_t idx[] = {3, 0, 1, 2, 1};
    const float data[] = {0.5f, 1.5f, 2, 3, 4}; /* column 1 of row 2 twice: adds up */
    const float want[3][4] = {{1.5f, 0, 0, 0.5f}, {0}, {0, 6, 3, 0}};
    gs_partition_options o = test_options("random", 2, 8 * GS_MIB);

    write_edges(*state, &list, false, false);
    write_npy(*state, "features_indptr.npy", GS_I64, ptr, 4, 0);
    write_npy(*state, "features_indices.npy", GS_I32, idx, 5, 0);
    write_npy(*state, "features_data.npy", GS_F32, data, 5, 0);
    gs_store *s = run(*state, &o);
    assert_int_equal(gs_store_get_info(s)->features, 4); /* the largest column + 1 */
    float *rows = read_array(s, GS_ARRAY_FEATURES);
    uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
    for (int p = 0; p < 3; p++)
        assert_memory_equal(rows + p * 4, want[ids[p]], 16);
    gs_free(rows);
    gs_free(ids);
    gs_store_close(s);
}

/* Normal, the same for every order, different for another seed. */
static void test_features__random_features(void **state)
{
    enum { WIDTH = 9 };
    edge_list list = random_graph(N, 3000, 10, false, false);
    float *by_id[3];
    write_edges(*state, &list, false, false);
    for (int k = 0; k < 3; k++) {
        gs_partition_options o = test_options(k == 1 ? "fennel" : "natural", 4, 16 * GS_MIB);
        o.random_features = WIDTH;
        o.force = true;
        o.seed = k == 2 ? 6 : 5;
        gs_store *s = run(*state, &o);
        float *rows = read_array(s, GS_ARRAY_FEATURES);
        uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
        by_id[k] = malloc(N * WIDTH * 4);
        for (int p = 0; p < N; p++)
            memcpy(by_id[k] + ids[p] * WIDTH, rows + p * WIDTH, WIDTH * 4);
        gs_free(rows);
        gs_free(ids);
        gs_store_close(s);
    }
    assert_memory_equal(by_id[0], by_id[1], N * WIDTH * 4);
    assert_memory_not_equal(by_id[0], by_id[2], N * WIDTH * 4);
    double sum = 0, square = 0;
    for (int i = 0; i < N * WIDTH; i++) {
        sum += (double)by_id[0][i];
        square += (double)by_id[0][i] * (double)by_id[0][i];
    }
    gs_assert_close(1 + sum / (N * WIDTH), 1.0, 0.05);
    gs_assert_close(square / (N * WIDTH), 1.0, 0.06);
    for (int k = 0; k < 3; k++)
        free(by_id[k]);
    edges_free(&list);
}

/* How near a loss is: 0 trained on, 1 heard by such a vertex, 2 of another split, 3 heard by one, 4 none of these. */
static void find_distances(int *near, const edge_list *list, const uint8_t *split)
{
    for (int v = 0; v < N; v++)
        near[v] = split[v] == GS_SPLIT_NONE ? 4 : split[v] == GS_SPLIT_TRAIN ? 0 : 2;
    for (int train = 0; train < 2; train++)
        for (size_t i = 0; i < list->count; i++) {
            const uint8_t at = split[list->at[i].v];
            int *const u = &near[list->at[i].u];
            if (at != GS_SPLIT_NONE && (train == 0 || at == GS_SPLIT_TRAIN))
                *u = GS_MIN(*u, train ? 1 : 3);
        }
}

static void test_features__what_few_labels_see_comes_first(void **state)
{
    static const uint32_t parts[] = {1, 5};
    edge_list list = random_graph(N, 1500, 9, false, false);
    int64_t labels[N] = {0}, train[10], valid[30];
    uint8_t split[N] = {0};
    int near[N];

    for (int i = 0; i < 30; i++) {
        if (i < 10)
            split[train[i] = i * 61 + 7] = GS_SPLIT_TRAIN;
        split[valid[i] = i * 23 + 3] = GS_SPLIT_VALID;
    }
    find_distances(near, &list, split);
    write_edges(*state, &list, false, false);
    write_features(*state, N, F);
    write_npy(*state, "labels.npy", GS_I64, labels, N, 0);
    write_npy(*state, "train_idx.npy", GS_I64, train, 10, 0);
    write_npy(*state, "valid_idx.npy", GS_I64, valid, 30, 0);
    for (size_t k = 0; k < 2; k++) {
        gs_partition_options o = test_options("metis", parts[k], 32 * GS_MIB);
        o.force = true;
        gs_store *s = run(*state, &o);
        uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
        const uint32_t rows = gs_store_chunks(s)->interval_rows;
        int seen = 0;
        for (uint32_t p = 0; p < N; p++) {
            seen |= 1 << near[ids[p]];
            if (p % rows > 0)
                assert_true(near[ids[p - 1]] <= near[ids[p]]);
        }
        assert_int_equal(seen, 31);
        gs_free(ids);
        gs_store_close(s);
    }
    edges_free(&list);
}

/* 15 MiB of rows with 1 MiB for their windows: rows go by way of buckets on disk, four times over the input.
 * Neither buckets nor passes end where windows do. */
static void test_features__larger_than_memory_are_bit_exact(void **state)
{
    enum { ROWS = 40000, WIDTH = 96 };
    edge_list list = random_graph(ROWS, 60000, 11, false, false);
    static const char *const methods[] = {"random", "fennel"};
    write_edges(*state, &list, false, false);
    write_features(*state, ROWS, WIDTH);
    for (int m = 0; m < 2; m++) {
        gs_partition_options o = test_options(methods[m], 40, 4 * GS_MIB);
        o.force = true;
        gs_store *s = run(*state, &o);
        float *rows = read_array(s, GS_ARRAY_FEATURES);
        uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
        for (int p = 0; p < ROWS; p++)
            for (int c = 0; c < WIDTH; c++) {
                const float want = feature_at(ids[p], (uint64_t)c);
                assert_memory_equal(&rows[p * WIDTH + c], &want, 4);
            }
        gs_free(rows);
        gs_free(ids);
        gs_store_close(s);
    }
    edges_free(&list);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_features__f32_is_bit_exact_with_every_method),
        T(test_features__labels_and_splits_follow),
        T(test_features__halves_are_rounded_to_nearest_even),
        T(test_features__other_input_types),
        T(test_features__csr_rows_become_dense),
        T(test_features__random_features),
        T(test_features__what_few_labels_see_comes_first),
        T(test_features__larger_than_memory_are_bit_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
