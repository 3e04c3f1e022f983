/* What is wrong with an input is said in one line that names file and place. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

/* Partitions DIR/in, expects the failure, and that no store is left. */
static void expect(const char *dir, const char *input, gs_status status, const char *part)
{
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *store = strdup(gs_test_path(dir, "store"));
    o.ids = "keep";
    o.task = "classify";
    gs_assert_fails(gs_partition(input, store, &o, NULL), status, part);
    assert_gone(store);
    free(store);
}

static void put_text(const char *path, const char *text) { gs_test_write_file(path, text, strlen(text)); }

/* A folder with a good graph of 4 vertices, 5 features; files are then replaced by bad ones. */
static void good_folder(const char *dir)
{
    edge few[] = {{0, 1, 0, 0}, {1, 2, 0, 0}, {3, 0, 0, 0}};
    edge_list list = {few, 3};
    const int64_t labels[] = {0, 1, -1, 1}, train[] = {0}, valid[] = {1}, test[] = {3};
    write_edges(dir, &list, false, false);
    write_features(dir, 4, 5);
    write_npy(dir, "labels.npy", GS_I64, labels, 4, 0);
    write_npy(dir, "train_idx.npy", GS_I64, train, 1, 0);
    write_npy(dir, "valid_idx.npy", GS_I64, valid, 1, 0);
    write_npy(dir, "test_idx.npy", GS_I64, test, 1, 0);
}

static void test_input__edges_are_checked(void **state)
{
    const char *dir = *state;
    const int64_t beyond[] = {0, 1, 2, 4}, negative[] = {0, 1, -1, 2}, flat[] = {1, 2, 3};
    const float floats[] = {0, 1};
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);

    expect(dir, gs_test_path(dir, "nowhere"), GS_ENOTFOUND, "nowhere: there is no such file or folder");
    expect(dir, dir, GS_ENOTFOUND, "no edges.npy");
    good_folder(dir);
    write_npy(dir, "edges.npy", GS_I64, beyond, 2, 2);
    expect(dir, dir, GS_EFORMAT, "edges.npy: row 1, column 1: vertex 4 is not one of the 4 vertices");
    write_npy(dir, "edges.npy", GS_I64, negative, 2, 2);
    expect(dir, dir, GS_EFORMAT, "edges.npy: row 1, column 0: vertex -1");
    write_npy(dir, "edges.npy", GS_F32, floats, 1, 2);
    expect(dir, dir, GS_EFORMAT, "edges.npy: has type f32");
    write_npy(dir, "edges.npy", GS_I64, flat, 3, 0);
    expect(dir, dir, GS_EFORMAT, "edges are [E, 2]");
    gs_test_write_file(gs_test_path(dir, "edges.npy"), "", 0);
    expect(dir, dir, GS_EFORMAT, "edges.npy");
    o.format = "dot";
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "store"), &o, NULL), GS_EINVAL,
                    "format: 'dot' is not known");
    o.format = NULL;
    o.method = "ldg";
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "store"), &o, NULL), GS_EINVAL,
                    ".method ldg: is not known");
}

static void test_input__ids_of_every_integer_type(void **state)
{
    const char *dir = *state;
    const int32_t i32[] = {0, 1, 2, 3};
    const uint32_t u32[] = {0, 1, 2, 3};
    const uint64_t u64[] = {0, 1, 2, 3};
    const int16_t i16[] = {0, 1, 2, 3};
    const uint8_t u8[] = {0, 1, 2, 3};
    const void *data[] = {i32, u32, u64, i16, u8};
    const gs_dtype types[] = {GS_I32, GS_U32, GS_U64, GS_I16, GS_U8};
    edge two[] = {{0, 1, 0, 0}, {2, 3, 0, 0}};
    edge_list want = {two, 2};

    for (size_t i = 0; i < GS_ARRAY_LEN(types); i++) {
        gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
        o.force = true;
        char *sub = gs_test_temp_dir();
        write_npy(sub, "edges.npy", types[i], data[i], 2, 2);
        gs_store_close(partition_and_check(sub, gs_test_path(dir, "s"), &o, &want, 4, NULL));
        gs_test_temp_remove(sub);
    }
    const uint64_t huge[] = {0, UINT64_MAX};
    char *sub = gs_test_temp_dir();
    write_npy(sub, "edges.npy", GS_U64, huge, 1, 2);
    expect(dir, sub, GS_EFORMAT, "row 0, column 1");
    gs_test_temp_remove(sub);
}

static void test_input__labels_and_splits_are_checked(void **state)
{
    const char *dir = *state;
    const int64_t low[] = {0, -2, 1, 1}, short_list[] = {0, 1}, twice[] = {0, 0}, out[] = {4}, both[] = {1, 0},
                  unlabelled[] = {2};
    const float wrong[] = {0, 1, 2.5f, 3}, whole[] = {0, 1, __builtin_nanf(""), 1};
    const int64_t labels[] = {0, 1, -1, 1};

    good_folder(dir);
    write_npy(dir, "labels.npy", GS_I64, low, 4, 0);
    expect(dir, dir, GS_EFORMAT, "labels.npy: row 1: label -2");
    write_npy(dir, "labels.npy", GS_I64, short_list, 2, 0);
    expect(dir, dir, GS_EFORMAT, "labels.npy: has 2 rows");
    write_npy(dir, "labels.npy", GS_F32, wrong, 4, 0);
    expect(dir, dir, GS_EFORMAT, "labels.npy: row 2: 2.5 is no whole number");
    write_npy(dir, "labels.npy", GS_F32, whole, 4, 1); /* a class, none, as OGB saves them */
    put_text(gs_test_path(dir, "meta.json"), "{\"num_classes\": 1}");
    expect(dir, dir, GS_EFORMAT, "labels.npy: row 1: label 1 is outside 0 to 0");
    unlink(gs_test_path(dir, "meta.json"));
    write_npy(dir, "labels.npy", GS_I64, labels, 4, 0);
    put_text(gs_test_path(dir, "meta.json"), "{\"num_classes\": 1}");
    expect(dir, dir, GS_EFORMAT, "labels.npy: row 1: label 1 is outside 0 to 0");
    unlink(gs_test_path(dir, "meta.json"));
    write_npy(dir, "train_idx.npy", GS_I64, twice, 2, 0);
    expect(dir, dir, GS_EFORMAT, "train_idx.npy: row 1: vertex 0 is listed twice");
    write_npy(dir, "train_idx.npy", GS_I64, out, 1, 0);
    expect(dir, dir, GS_EFORMAT, "train_idx.npy: row 0: vertex 4");
    write_npy(dir, "train_idx.npy", GS_I64, unlabelled, 1, 0);
    expect(dir, dir, GS_EFORMAT, "train_idx.npy: row 0: vertex 2 has no label");
    write_npy(dir, "train_idx.npy", GS_I64, twice, 1, 0);
    write_npy(dir, "valid_idx.npy", GS_I64, both, 2, 0);
    expect(dir, dir, GS_EFORMAT, "valid_idx.npy: row 1: vertex 0 is in train_idx.npy as well");
    write_npy(dir, "valid_idx.npy", GS_F32, wrong, 4, 0);
    expect(dir, dir, GS_EFORMAT, "valid_idx.npy: is f32");
}

static void test_input__features_are_checked(void **state)
{
    const char *dir = *state;
    float rows[20] = {0};
    double wide[20] = {0};

    good_folder(dir);
    rows[7] = __builtin_nanf("");
    write_npy(dir, "features.npy", GS_F32, rows, 4, 5);
    expect(dir, dir, GS_EFORMAT, "features.npy: row 1, column 2: the value is not a finite");
    wide[19] = 1e300;
    write_npy(dir, "features.npy", GS_F64, wide, 4, 5);
    expect(dir, dir, GS_EFORMAT, "features.npy: row 3, column 4: the value is not a finite float32");
    write_npy(dir, "features.npy", GS_F32, rows, 5, 4);
    expect(dir, dir, GS_EFORMAT, "labels.npy: has 4 rows, but there are features of 5 vertices");
    rows[7] = 70000;
    write_npy(dir, "features.npy", GS_F32, rows, 4, 5);
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    o.feature_type = "f16";
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "store"), &o, NULL), GS_EFORMAT,
                    "features.npy: row 1, column 2: 70000 is too large for f16");
    o.feature_type = "f32";
    o.random_features = 8;
    gs_assert_fails(gs_partition(dir, gs_test_path(dir, "store"), &o, NULL), GS_EINVAL, "has features of its own");
}

/* As NumPy saves an array of truth values. */
static void write_bool(const char *dir, const char *name, const uint8_t *data, uint64_t rows, uint64_t cols)
{
    char *const path = strdup(gs_test_path(dir, "%s", name)), *at = NULL, *text = NULL;
    uint64_t bytes = 0;

    write_npy(dir, name, GS_U8, data, rows, cols);
    gs_assert_ok(gs_file_read_all(&text, &bytes, path, 1 << 20));
    for (uint64_t i = 0; i + 3 < bytes && at == NULL; i++)
        at = memcmp(text + i, "|u1", 3) == 0 ? text + i : NULL;
    assert_non_null(at);
    at[1] = 'b';
    gs_test_write_file(path, text, bytes);
    gs_free(text);
    free(path);
}

static void test_input__a_split_may_be_a_mask(void **state)
{
    const uint8_t train[] = {1, 1, 0, 0}, valid[] = {0, 0, 1, 1}, none[] = {0, 0, 1, 0}, odd[] = {0, 2, 0, 0},
                  few[] = {1, 0, 0}, pairs[] = {0, 1, 1, 0};
    const int64_t test[] = {3};
    const char *const dir = *state, *const store = gs_test_path(dir, "s");
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    gs_store *s = NULL;

    good_folder(dir);
    write_bool(dir, "train_idx.npy", train, 4, 0);
    write_bool(dir, "valid_idx.npy", none, 4, 1);
    gs_assert_ok(gs_partition(dir, store, &o, NULL));
    gs_assert_ok(gs_store_open(&s, store));
    assert_int_equal(gs_store_get_info(s)->train, 2);
    assert_int_equal(gs_store_get_info(s)->valid, 1);
    assert_int_equal(gs_store_get_info(s)->test, 1);
    uint8_t *const split = read_array(s, GS_ARRAY_SPLIT);
    const uint8_t want[] = {GS_SPLIT_TRAIN, GS_SPLIT_TRAIN, GS_SPLIT_VALID, GS_SPLIT_TEST};
    assert_memory_equal(split, want, sizeof(want));
    gs_free(split);
    gs_store_close(s);
    gs_assert_ok(gs_remove_tree(store));

    write_bool(dir, "valid_idx.npy", valid, 4, 0);
    write_npy(dir, "test_idx.npy", GS_I64, test, 1, 0);
    expect(dir, dir, GS_EFORMAT, "test_idx.npy: row 0: vertex 3 is in valid_idx.npy as well");
    write_bool(dir, "valid_idx.npy", odd, 4, 0);
    expect(dir, dir, GS_EFORMAT, "valid_idx.npy: row 1: 2 is no truth value");
    write_bool(dir, "valid_idx.npy", few, 3, 0);
    expect(dir, dir, GS_EFORMAT, "valid_idx.npy: is bool [3, 1]; a split is a mask of bool [4]");
    write_bool(dir, "valid_idx.npy", none, 4, 1);
    write_bool(dir, "edges.npy", pairs, 2, 2);
    expect(dir, dir, GS_EFORMAT, "edges.npy: has type bool");
}

static char warnings[2048];
static void keep_warning(void *context, const char *line)
{
    (void)context;
    snprintf(warnings + strlen(warnings), sizeof(warnings) - strlen(warnings), "%s\n", line);
}

/* Whole numbers of 0 and 1, one a vertex, are a mask, and that is said; of two vertices they may be ids as well. */
static void test_input__a_mask_may_be_whole_numbers(void **state)
{
    const int64_t train[] = {1, 1, 0, 0}, test[] = {0, 0, 0, 1}, none[] = {0, 0, 0, 0}, pair[] = {1, 0};
    const uint8_t valid[] = {0, 0, 1, 0}, want[] = {GS_SPLIT_TRAIN, GS_SPLIT_TRAIN, GS_SPLIT_VALID, GS_SPLIT_TEST};
    edge edges[] = {{0, 1, 0, 0}};
    const edge_list list = {edges, 1};
    const char *const dir = *state, *const store = gs_test_path(dir, "s");
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    gs_store *s = NULL;

    good_folder(dir);
    write_npy(dir, "train_idx.npy", GS_I64, train, 4, 0);
    write_npy(dir, "valid_idx.npy", GS_U8, valid, 4, 0);
    write_npy(dir, "test_idx.npy", GS_I64, test, 4, 0);
    o.warn = keep_warning;
    o.force = true;
    warnings[0] = '\0';
    gs_assert_ok(gs_partition(dir, store, &o, NULL));
    assert_non_null(strstr(warnings, "train_idx.npy: is a number of 0 or 1 for each vertex, taken as a mask with 2"));
    assert_non_null(strstr(warnings, "valid_idx.npy: is a number of 0 or 1 for each vertex, taken as a mask with 1"));
    gs_assert_ok(gs_store_open(&s, store));
    uint8_t *const split = read_array(s, GS_ARRAY_SPLIT);
    assert_memory_equal(split, want, sizeof(want));
    gs_free(split);
    gs_store_close(s);
    write_npy(dir, "test_idx.npy", GS_I64, none, 4, 0);
    gs_assert_ok(gs_partition(dir, store, &o, NULL));

    gs_assert_ok(gs_remove_tree(store));
    char *const two = strdup(gs_test_path(dir, "two"));
    gs_assert_ok(gs_mkdir(two));
    write_edges(two, &list, false, false);
    write_npy(two, "train_idx.npy", GS_I64, pair, 2, 0);
    expect(two, two, GS_EFORMAT, "train_idx.npy: may be a mask of 2 vertices or a list of ids; save a mask as bool");
    free(two);
}

/* What is there and cannot be read is not taken for absent. */
static void test_input__a_link_to_nothing_is_not_absent(void **state)
{
    static const char *const names[] = {"labels.npy",       "features.npy",  "edge_weights.npy", "edge_types.npy",
                                        "features_indptr.npy", "valid_idx.npy", "meta.json"};
    const char *const dir = *state;

    for (size_t i = 0; i < GS_ARRAY_LEN(names); i++) {
        good_folder(dir);
        unlink(gs_test_path(dir, "%s", names[i]));
        assert_int_equal(symlink("nowhere", gs_test_path(dir, "%s", names[i])), 0);
        expect(dir, dir, GS_ENOTFOUND, names[i]);
        unlink(gs_test_path(dir, "%s", names[i]));
    }
}

static void test_input__files_that_nothing_reads_are_named(void **state)
{
    static const struct {
        const char *name, *meant; /* NULL: nothing is near */
    } cases[] = {
        {"val_idx.npy", "valid_idx.npy"}, {"edge_weight.npy", "edge_weights.npy"}, {"train_mask.npy", NULL},
        {"edge_type.npy", "edge_types.npy"}, {"features.npz", NULL}, {"x.npy", NULL}, {"other.bin", NULL},
    };
    const char *const dir = *state;
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);

    good_folder(dir);
    unlink(gs_test_path(dir, "valid_idx.npy"));
    o.warn = keep_warning;
    o.force = true;
    warnings[0] = '\0';
    gs_assert_ok(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL));
    assert_string_equal(warnings, ""); /* the store within is a folder */
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        char want[128];
        warnings[0] = '\0';
        gs_test_write_file(gs_test_path(dir, "%s", cases[i].name), "x", 1);
        gs_assert_ok(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL));
        if (cases[i].meant != NULL)
            snprintf(want, sizeof(want), "/%s: is not read; was %s meant?\n", cases[i].name, cases[i].meant);
        else
            snprintf(want, sizeof(want), ": nothing reads %s\n", cases[i].name);
        if (strstr(warnings, want) == NULL)
            fail_msg("of %s: %s", cases[i].name, warnings);
        unlink(gs_test_path(dir, "%s", cases[i].name));
    }
}

static void test_input__csr_features_are_checked(void **state)
{
    const char *dir = *state;
    edge one[] = {{0, 1, 0, 0}};
    edge_list list = {one, 1};
    const int64_t good_ptr[] = {0, 2, 3}, down[] = {0, 4, 3}, not_all[] = {0, 1, 2}, nonzero[] = {1, 2, 3};
    const int64_t no_ptr[] = {0, 0, 0};
    const int32_t good_idx[] = {0, 3, 1}, bad_idx[] = {0, 3, 9}, below[] = {-1, -2, -3};
    const float data[] = {1, 2, 3};

    write_edges(dir, &list, false, false);
    put_text(gs_test_path(dir, "meta.json"), "{\"num_features\": 4}");
    write_npy(dir, "features_indptr.npy", GS_I64, down, 3, 0);
    write_npy(dir, "features_indices.npy", GS_I32, good_idx, 3, 0);
    expect(dir, dir, GS_ENOTFOUND, "features_data.npy");
    write_npy(dir, "features_data.npy", GS_F32, data, 3, 0);
    expect(dir, dir, GS_EFORMAT, "features_indptr.npy: row 1");
    write_npy(dir, "features_indptr.npy", GS_I64, not_all, 3, 0);
    expect(dir, dir, GS_EFORMAT, "features_indptr.npy: row 2");
    write_npy(dir, "features_indptr.npy", GS_I64, nonzero, 3, 0);
    expect(dir, dir, GS_EFORMAT, "features_indptr.npy: row 0");
    write_npy(dir, "features_indptr.npy", GS_I64, good_ptr, 3, 0);
    write_npy(dir, "features_indices.npy", GS_I32, bad_idx, 3, 0);
    expect(dir, dir, GS_EFORMAT, "features_indices.npy: row 2: column 9 is not one of the 4 features");
    unlink(gs_test_path(dir, "meta.json"));
    write_npy(dir, "features_indices.npy", GS_I32, below, 3, 0);
    expect(dir, dir, GS_EFORMAT, "features_indices.npy: row 0: column -1 is below 0");
    write_npy(dir, "features_indptr.npy", GS_I64, no_ptr, 3, 0);
    write_npy(dir, "features_indices.npy", GS_I32, below, 0, 0);
    write_npy(dir, "features_data.npy", GS_F32, data, 0, 0);
    expect(dir, dir, GS_EFORMAT, "features_indices.npy: holds no value");
}

static void test_input__types_weights_and_meta_are_checked(void **state)
{
    const char *dir = *state;
    const int64_t types[] = {0, -1, 2}, many[] = {0, 1, 70000}, good[] = {0, 1, 2};
    float weights[] = {1, 2, __builtin_inff()};

    good_folder(dir);
    write_npy(dir, "edge_types.npy", GS_I64, types, 3, 0);
    expect(dir, dir, GS_EFORMAT, "edge_types.npy: row 1: type -1");
    write_npy(dir, "edge_types.npy", GS_I64, many, 3, 0);
    expect(dir, dir, GS_EFORMAT, "edge_types.npy: row 2: type 70000");
    write_npy(dir, "edge_types.npy", GS_I64, good, 2, 0);
    expect(dir, dir, GS_EFORMAT, "edge types are integers [3]");
    unlink(gs_test_path(dir, "edge_types.npy"));
    write_npy(dir, "edge_weights.npy", GS_F32, weights, 3, 0);
    expect(dir, dir, GS_EFORMAT, "edge_weights.npy: row 2: the weight is not a finite");
    unlink(gs_test_path(dir, "edge_weights.npy"));
    put_text(gs_test_path(dir, "meta.json"), "{\"num_nodes\": 4} {\"num_nodes\": 5}");
    expect(dir, dir, GS_EFORMAT, "meta.json: is not a JSON object");
    put_text(gs_test_path(dir, "meta.json"), "{\"num_nodes\": 4, \"num_nodes\": 5}");
    expect(dir, dir, GS_EFORMAT, "meta.json: \"num_nodes\" is there twice");
    put_text(gs_test_path(dir, "meta.json"), "{\"num_nodes\": 5}");
    expect(dir, dir, GS_EFORMAT, "meta.json: num_nodes is 5, but the features have 4 rows");
    put_text(gs_test_path(dir, "meta.json"), "{\"num_nodes\": -1}");
    expect(dir, dir, GS_EFORMAT, "meta.json: \"num_nodes\" is not a whole number");
    put_text(gs_test_path(dir, "meta.json"), "nonsense");
    expect(dir, dir, GS_EFORMAT, "meta.json: is not a JSON object");
}

static void expect_text(const char *dir, const char *text, gs_status status, const char *part)
{
    char *path = strdup(gs_test_path(dir, "graph.txt"));
    put_text(path, text);
    expect(dir, path, status, part);
    free(path);
}

static void test_input__snap_errors_name_line_and_column(void **state)
{
    expect_text(*state, "", GS_EFORMAT, "graph.txt: the file is empty");
    expect_text(*state, "# a\n0 1\n2 x\n", GS_EFORMAT, "line 3, column 3: expected the destination id");
    expect_text(*state, "0 1\n2\n", GS_EFORMAT, "line 2, column 2: expected the destination id");
    expect_text(*state, "0 1\n2 3 4\n", GS_EFORMAT, "line 2, column 5: expected the end of the line");
    expect_text(*state, "0 1\n2 -3\n", GS_EFORMAT, "line 2, column 3");
    expect_text(*state, "0 1\n2 4294967295\n", GS_EFORMAT,
                "line 2, column 3: the destination id is outside 0 to 4294967293");
    expect_text(*state, "0 1\n12a 4\n", GS_EFORMAT, "line 2, column 3: a number ends");
    static const char zero[] = "0 1\n1 2\0 3\n2 3\n";
    gs_test_write_file(gs_test_path(*state, "graph.txt"), zero, sizeof(zero) - 1);
    expect(*state, gs_test_path(*state, "graph.txt"), GS_EFORMAT, "graph.txt: line 2, column 4: a byte of 0");
    expect_text(*state, "# only\n# comments\n", GS_EFORMAT, "holds no edge");
    expect_text(*state, "hello\n", GS_EFORMAT, "no known format");
}

static void test_input__mtx_errors_name_line_and_column(void **state)
{
    const char *banner = "%%MatrixMarket matrix coordinate pattern general\n";
    char text[512];
    const struct {
        const char *rest, *part;
    } cases[] = {
        {"", "ends before its size line"},
        {"3 4 1\n1 1\n", "line 2, column 3: rows and columns differ"},
        {"3 3 2\n1 1\n", "ends after 1 entries; its size line says 2"},
        {"3 3 1\n1 1\n2 2\n", "line 4, column 1: more entries"},
        {"3 3 1\n0 1\n", "line 3, column 1: the row is outside 1 to 3"},
        {"3 3 1\n1 4\n", "line 3, column 3: the column is outside 1 to 3"},
        {"3 3 1\n1 2 7\n", "line 3, column 5: expected the end of the line"},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        snprintf(text, sizeof(text), "%s%s", banner, cases[i].rest);
        expect_text(*state, text, GS_EFORMAT, cases[i].part);
    }
    expect_text(*state, "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n1 2\n2 1\n", GS_EFORMAT,
                "line 5, column 1: the file says symmetric, and has entries on both sides");
    expect_text(*state, "%%MatrixMarket matrix array real general\n", GS_EFORMAT,
                "line 1, column 1: only 'matrix coordinate'");
    expect_text(*state, "%%MatrixMarket matrix coordinate complex general\n", GS_EFORMAT, "pattern, real or integer");
    expect_text(*state, "%%MatrixMarket matrix coordinate real skew-symmetric\n", GS_EFORMAT, "general or symmetric");
    expect_text(*state, "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 nan\n", GS_EFORMAT,
                "line 3, column 5: expected a finite value");
}

static void test_input__text_files_are_read(void **state)
{
    edge snap[] = {{0, 1, 0, 0}, {0, 1, 0, 0}, {5, 2, 0, 0}};
    edge real[] = {{0, 1, 0, 2.5f}, {1, 0, 0, 2.5f}, {2, 2, 0, -1}};
    edge_list want = {snap, 3};
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *path = strdup(gs_test_path(*state, "g"));

    put_text(path, "# comment\n0\t1\r\n\n  0 1  \n5 2"); /* no newline at the end */
    gs_store_close(partition_and_check(path, gs_test_path(*state, "s1"), &o, &want, 6, NULL));
    put_text(path, "% asym unweighted\n% 3 6 6\n0 1\n%\n0 1\n5 2\n"); /* as KONECT's files begin */
    gs_store_close(partition_and_check(path, gs_test_path(*state, "s3"), &o, &want, 6, NULL));
    put_text(path, "%%MatrixMarket MATRIX coordinate Real symmetric\n% c\n\n4 4 2\n1 2 2.5\n3 3 -1e0\n");
    want = (edge_list){real, 3};
    sort_edges(&want);
    gs_store *s = partition_and_check(path, gs_test_path(*state, "s2"), &o, &want, 4, NULL);
    assert_true(gs_store_get_info(s)->weights);
    assert_true(gs_store_get_info(s)->symmetric);
    gs_store_close(s);
    free(path);
}

static void test_input__an_existing_store_survives_a_bad_input(void **state)
{
    edge one[] = {{0, 1, 0, 0}};
    edge_list list = {one, 1};
    gs_partition_options o = test_options("natural", 1, 8 * GS_MIB);
    char *store = strdup(gs_test_path(*state, "store"));
    gs_store *s = NULL;

    write_edges(*state, &list, false, false);
    gs_store_close(partition_and_check(*state, store, &o, &list, 2, NULL));
    gs_assert_fails(gs_partition(*state, store, &o, NULL), GS_EEXIST, ".force");
    o.force = true;
    gs_assert_fails(gs_partition(gs_test_path(*state, "nowhere"), store, &o, NULL), GS_ENOTFOUND, "nowhere");
    gs_assert_ok(gs_store_open(&s, store));
    gs_store_close(s);
    gs_store_close(partition_and_check(*state, store, &o, &list, 2, NULL));
    free(store);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_input__edges_are_checked),
        T(test_input__ids_of_every_integer_type),
        T(test_input__labels_and_splits_are_checked),
        T(test_input__features_are_checked),
        T(test_input__a_split_may_be_a_mask),
        T(test_input__a_mask_may_be_whole_numbers),
        T(test_input__a_link_to_nothing_is_not_absent),
        T(test_input__files_that_nothing_reads_are_named),
        T(test_input__csr_features_are_checked),
        T(test_input__types_weights_and_meta_are_checked),
        T(test_input__snap_errors_name_line_and_column),
        T(test_input__mtx_errors_name_line_and_column),
        T(test_input__text_files_are_read),
        T(test_input__an_existing_store_survives_a_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
