/* Real graphs: every edge, feature and label arrives; formats agree. */
#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/npy.h"
#include "base/size.h"

static edge_list read_edges(const char *dir)
{
    gs_npy npy;
    const char *path = gs_test_path(dir, "edges.npy");
    gs_assert_ok(gs_npy_open(&npy, path));
    edge_list list = {malloc(npy.shape[0] * sizeof(edge)), npy.shape[0]};
    int64_t *pairs = malloc(npy.data_bytes);
    gs_assert_ok(gs_npy_read_rows(&npy, pairs, 0, npy.shape[0], path));
    for (size_t i = 0; i < list.count; i++)
        list.at[i] = (edge){(uint32_t)pairs[2 * i], (uint32_t)pairs[2 * i + 1], 0, 0};
    free(pairs);
    gs_npy_close(&npy);
    sort_edges(&list);
    return list;
}

static void test_real__cora_with_metis_and_fennel(void **state)
{
    char *cora = strdup(gs_test_need_data("cora"));
    edge_list want = read_edges(cora);
    static const char *const methods[] = {"metis", "fennel"};

    for (int m = 0; m < 2; m++) {
        gs_partition_options o = test_options(methods[m], 4, 32 * GS_MIB);
        gs_partition_report r;
        gs_store *s = partition_and_check(cora, gs_test_path(*state, "s%d", m), &o, &want, 2708, &r);
        const gs_store_info *info = gs_store_get_info(s);
        assert_string_equal(info->method, methods[m]);
        assert_int_equal(info->features, 1433);
        assert_int_equal(info->classes, 7);
        assert_int_equal(info->train, 140);
        assert_int_equal(info->valid, 500);
        assert_int_equal(info->test, 1000);
        assert_int_equal(info->max_in_degree, 168);
        assert_true(info->symmetric);
        assert_true(r.cut_fraction < (m == 0 ? 0.15 : 0.60)); /* random would cut 0.75 */
        gs_store_close(s);
    }
    edges_free(&want);
    free(cora);
}

/* The values of a store, in input order. */
static float *rows_by_id(const gs_store *s)
{
    const gs_store_info *info = gs_store_get_info(s);
    float *rows = read_array(s, GS_ARRAY_FEATURES), *out = malloc(info->vertices * info->features * 4);
    uint32_t *ids = read_array(s, GS_ARRAY_INPUT_ID);
    for (uint64_t p = 0; p < info->vertices; p++)
        memcpy(out + (uint64_t)ids[p] * info->features, rows + p * info->features, info->features * 4);
    gs_free(rows);
    gs_free(ids);
    return out;
}

static void test_real__dblp_csr_features_are_exact(void **state)
{
    char *dblp = strdup(gs_test_need_data("dblp"));
    edge_list want = read_edges(dblp);
    gs_partition_options o = test_options("fennel", 5, 24 * GS_MIB);
    gs_store *s = partition_and_check(dblp, gs_test_path(*state, "s"), &o, &want, 17716, NULL);
    float *rows = rows_by_id(s);
    gs_npy ptr, idx, data;
    const char *a = gs_test_path(dblp, "features_indptr.npy"), *b = gs_test_path(dblp, "features_indices.npy"),
               *c = gs_test_path(dblp, "features_data.npy");

    gs_assert_ok(gs_npy_open(&ptr, a));
    gs_assert_ok(gs_npy_open(&idx, b));
    gs_assert_ok(gs_npy_open(&data, c));
    int64_t *at = malloc(ptr.data_bytes);
    int32_t *column = malloc(idx.data_bytes);
    float *value = malloc(data.data_bytes);
    gs_assert_ok(gs_npy_read_rows(&ptr, at, 0, ptr.shape[0], a));
    gs_assert_ok(gs_npy_read_rows(&idx, column, 0, idx.shape[0], b));
    gs_assert_ok(gs_npy_read_rows(&data, value, 0, data.shape[0], c));
    for (int v = 0; v < 17716; v++) {
        float *row = rows + (size_t)v * 1639;
        for (int64_t i = at[v]; i < at[v + 1]; i++) {
            assert_memory_equal(&row[column[i]], &value[i], 4);
            row[column[i]] = 0;
        }
        for (int k = 0; k < 1639; k++)
            assert_true(row[k] == 0); /* and nothing else */
    }
    gs_npy_close(&ptr);
    gs_npy_close(&idx);
    gs_npy_close(&data);
    gs_store_close(s);
    free(at);
    free(column);
    free(value);
    free(rows);
    edges_free(&want);
    free(dblp);
}

static void test_real__cora_formats_give_the_same_chunks(void **state)
{
    char *files[] = {strdup(gs_test_need_data("cora")), strdup(gs_test_need_data("cora_formats/cora.txt")),
                     strdup(gs_test_need_data("cora_formats/cora.mtx"))};
    edge_list want = read_edges(files[0]);
    gs_store *s[3];

    for (int k = 0; k < 3; k++) {
        gs_partition_options o = test_options("natural", 4, 32 * GS_MIB);
        s[k] = partition_and_check(files[k], gs_test_path(*state, "s%d", k), &o, &want, 2708, NULL);
    }
    for (int k = 1; k < 3; k++)
        for (int c = 0; c < 16; c++)
            assert_memory_equal(&gs_store_chunks(s[0])->chunk[0][c], &gs_store_chunks(s[k])->chunk[0][c],
                                sizeof(gs_chunk));
    for (int k = 0; k < 3; k++) {
        gs_store_close(s[k]);
        free(files[k]);
    }
    edges_free(&want);
}

static void test_real__blogcatalog_says_that_labels_are_left_out(void **state)
{
    char *blog = strdup(gs_test_need_data("blogcatalog"));
    gs_partition_options o = test_options("fennel", 3, 64 * GS_MIB);
    gs_partition_report r;
    gs_store *s = NULL;

    gs_assert_ok(gs_partition(blog, gs_test_path(*state, "s"), &o, &r));
    gs_assert_ok(gs_store_open(&s, gs_test_path(*state, "s")));
    gs_assert_ok(gs_store_verify(s, 16 * GS_MIB));
    assert_int_equal(gs_store_get_info(s)->classes, 39);
    assert_int_equal(gs_store_get_info(s)->labels, GS_TRAIN_TASK_MULTILABEL);
    assert_int_equal(gs_store_get_info(s)->train, 6187);
    assert_int_equal(gs_store_get_info(s)->edges, 667966);
    gs_store_close(s);
    free(blog);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_real__cora_with_metis_and_fennel),
        T(test_real__dblp_csr_features_are_exact),
        T(test_real__cora_formats_give_the_same_chunks),
        T(test_real__blogcatalog_says_that_labels_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
