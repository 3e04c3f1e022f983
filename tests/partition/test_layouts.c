/* Folders and archives of other libraries: each layout of one graph gives the store of the plain folder. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <minizip/zip.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

#define N 300u
#define F 20u
#define E 1500u

/* One graph as its arrays. */
typedef struct arrays {
    int64_t pairs[2 * E], rows[2 * E];
    float features[N * F], labels_f32[N];
    int64_t labels[N], ids[3][N];
    uint64_t split[3];
    /* CSR of edges sorted by source, and of the features */
    int64_t indptr[N + 1], x_indptr[N + 1];
    int32_t indices[E], x_indices[N * F];
    float ones[E], x_data[N * F];
    uint64_t stored;
} arrays;

static int by_source(const void *a, const void *b)
{
    const int64_t *const p = a, *const q = b;
    return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

static void make_matrices(arrays *g)
{
    for (uint64_t e = 0; e < E; e++) {
        g->rows[e] = g->pairs[2 * e];
        g->rows[E + e] = g->pairs[2 * e + 1];
        g->indptr[g->pairs[2 * e] + 1]++;
        g->indices[e] = (int32_t)g->pairs[2 * e + 1];
        g->ones[e] = 1;
    }
    for (uint64_t v = 0; v < N; v++) {
        g->indptr[v + 1] += g->indptr[v];
        for (uint64_t c = 0; c < F; c++)
            if (g->features[v * F + c] != 0) {
                g->x_indices[g->stored] = (int32_t)c;
                g->x_data[g->stored++] = g->features[v * F + c];
            }
        g->x_indptr[v + 1] = (int64_t)g->stored;
    }
}

/* The split that IGB's package makes: the first 60 %, 20 %, and the rest. */
static arrays *make_arrays(void)
{
    arrays *const g = calloc(1, sizeof(*g));
    edge_list list = random_graph(N, E, 5, false, false);

    for (uint64_t e = 0; e < E; e++) {
        g->pairs[2 * e] = list.at[e].u;
        g->pairs[2 * e + 1] = list.at[e].v;
    }
    qsort(g->pairs, E, 16, by_source);
    for (uint64_t v = 0; v < N; v++) {
        const uint64_t s = v < N * 6 / 10 ? 0 : v < N * 8 / 10 ? 1 : 2;
        g->labels[v] = (int64_t)(v % 4);
        g->labels_f32[v] = (float)(v % 4);
        g->ids[s][g->split[s]++] = (int64_t)v;
        for (uint64_t c = 0; c < F; c++)
            g->features[v * F + c] = (v + c) % 3 == 0 ? feature_at(v, c) : 0;
    }
    make_matrices(g);
    edges_free(&list);
    return g;
}

static void write_plain(const char *dir, const arrays *g)
{
    static const char *const names[] = {"train_idx.npy", "valid_idx.npy", "test_idx.npy"};

    gs_assert_ok(gs_mkdir(dir));
    write_npy(dir, "edges.npy", GS_I64, g->pairs, E, 2);
    write_npy(dir, "features.npy", GS_F32, g->features, N, F);
    write_npy(dir, "labels.npy", GS_I64, g->labels, N, 0);
    for (int i = 0; i < 3; i++)
        write_npy(dir, names[i], GS_I64, g->ids[i], g->split[i], 0);
}

/* -- .npz files, by minizip's other half ---------------------------------------------- */

typedef struct archive {
    zipFile zip;
    const char *dir; /* for one array at a time */
    int level;       /* 0: stored */
} archive;

static archive new_archive(const char *dir, const char *path, int level)
{
    const archive a = {zipOpen64(path, APPEND_STATUS_CREATE), dir, level};
    assert_non_null(a.zip);
    return a;
}

static void add(archive *a, const char *name, gs_dtype type, const void *data, uint64_t rows, uint64_t columns)
{
    char member[64], *bytes = NULL;
    uint64_t n = 0;

    write_npy(a->dir, "one.npy", type, data, rows, columns);
    gs_assert_ok(gs_file_read_all(&bytes, &n, gs_test_path(a->dir, "one.npy"), GS_GIB));
    snprintf(member, sizeof(member), "%s.npy", name);
    assert_int_equal(zipOpenNewFileInZip64(a->zip, member, &(zip_fileinfo){0}, NULL, 0, NULL, 0, NULL,
                                           a->level == 0 ? 0 : Z_DEFLATED, a->level, 1),
                     ZIP_OK);
    assert_int_equal(zipWriteInFileInZip(a->zip, bytes, (unsigned)n), ZIP_OK);
    assert_int_equal(zipCloseFileInZip(a->zip), ZIP_OK);
    gs_free(bytes);
    unlink(gs_test_path(a->dir, "one.npy"));
}

static void close_archive(archive *a) { assert_int_equal(zipClose(a->zip, NULL), ZIP_OK); }

static void add_splits(archive *a, const arrays *g)
{
    static const char *const names[] = {"train_idx", "valid_idx", "test_idx"};
    for (int i = 0; i < 3; i++)
        add(a, names[i], GS_I64, g->ids[i], g->split[i], 0);
}

static void write_shchur(const char *dir, const char *path, const arrays *g, int level)
{
    const int64_t square[2] = {N, N}, attributes[2] = {N, F};
    archive a = new_archive(dir, path, level);

    add(&a, "adj_data", GS_F32, g->ones, E, 0);
    add(&a, "adj_indices", GS_I32, g->indices, E, 0);
    add(&a, "adj_indptr", GS_I64, g->indptr, N + 1, 0);
    add(&a, "adj_shape", GS_I64, square, 2, 0);
    add(&a, "attr_data", GS_F32, g->x_data, g->stored, 0);
    add(&a, "attr_indices", GS_I32, g->x_indices, g->stored, 0);
    add(&a, "attr_indptr", GS_I64, g->x_indptr, N + 1, 0);
    add(&a, "attr_shape", GS_I64, attributes, 2, 0);
    add(&a, "labels", GS_I64, g->labels, N, 0);
    add_splits(&a, g);
    close_archive(&a);
}

static void write_pyg(const char *dir, const char *path, const arrays *g, int level)
{
    archive a = new_archive(dir, path, level);

    add(&a, "edge_index", GS_I64, g->rows, 2, E);
    add(&a, "x", GS_F32, g->features, N, F);
    add(&a, "y", GS_F32, g->labels_f32, N, 0);
    add_splits(&a, g);
    close_archive(&a);
}

/* -- folders --------------------------------------------------------------------------- */

static void put_ids(const char *path, const int64_t *ids, uint64_t n)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    for (uint64_t i = 0; i < n; i++)
        gzprintf(f, "%lld\n", (long long)ids[i]);
    assert_int_equal(gzclose(f), Z_OK);
}

/* The form that ogbn-papers100M has. */
static void write_ogb_binary(const char *dir, const arrays *g, int level)
{
    static const char *const names[] = {"train", "valid", "test"};
    static const char *const folders[] = {"", "raw", "split", "split/time"};
    const int64_t vertices = N, edges = E;

    for (size_t i = 0; i < GS_ARRAY_LEN(folders); i++)
        gs_assert_ok(gs_mkdir(gs_test_path(dir, "%s", folders[i])));
    archive a = new_archive(dir, gs_test_path(dir, "raw/data.npz"), level);
    add(&a, "edge_index", GS_I64, g->rows, 2, E);
    add(&a, "node_feat", GS_F32, g->features, N, F);
    add(&a, "node_year", GS_I64, g->labels, N, 1);
    add(&a, "num_nodes_list", GS_I64, &vertices, 1, 0);
    add(&a, "num_edges_list", GS_I64, &edges, 1, 0);
    close_archive(&a);
    a = new_archive(dir, gs_test_path(dir, "raw/node-label.npz"), level);
    add(&a, "node_label", GS_F32, g->labels_f32, N, 1);
    close_archive(&a);
    for (int i = 0; i < 3; i++)
        put_ids(gs_test_path(dir, "split/time/%s.csv.gz", names[i]), g->ids[i], g->split[i]);
}

/* `plain`: without headers, as large and full are. */
static void write_igb(const char *dir, const arrays *g, bool plain)
{
    static const char *const folders[] = {"", "processed", "processed/paper", "processed/paper__cites__paper"};

    for (size_t i = 0; i < GS_ARRAY_LEN(folders); i++)
        gs_assert_ok(gs_mkdir(gs_test_path(dir, "%s", folders[i])));
    write_npy(gs_test_path(dir, "processed/paper__cites__paper"), "edge_index.npy", GS_I64, g->pairs, E, 2);
    if (plain) {
        gs_test_write_file(gs_test_path(dir, "processed/paper/node_feat.npy"), g->features, sizeof(g->features));
        gs_test_write_file(gs_test_path(dir, "processed/paper/node_label_19.npy"), g->labels_f32,
                           sizeof(g->labels_f32));
    } else {
        write_npy(gs_test_path(dir, "processed/paper"), "node_feat.npy", GS_F32, g->features, N, F);
        write_npy(gs_test_path(dir, "processed/paper"), "node_label_2K.npy", GS_F32, g->labels_f32, N, 0);
    }
}

/* `csv`: edges as text. Labels stand beside the vertices of their split. */
static void write_graphbolt(const char *dir, const arrays *g, bool csv)
{
    static const char *const sets[] = {"train", "validation", "test"};
    static const char *const folders[] = {"", "edges", "data", "set"};
    static int64_t labels[N];
    char text[4096];
    size_t n = 0;

    for (size_t i = 0; i < GS_ARRAY_LEN(folders); i++)
        gs_assert_ok(gs_mkdir(gs_test_path(dir, "%s", folders[i])));
    n += (size_t)sprintf(text, "dataset_name: small\ngraph:\n  nodes:\n    - type: null\n      num: %u\n  edges:\n"
                               "    - format: %s\n      path: edges/e\nfeature_data:\n  - domain: node\n"
                               "    type: ~\n    name: feat\n    format: numpy\n    path: data/feat.npy\ntasks:\n"
                               "  - name: nodes\n    num_classes: 4\n",
                         N, csv ? "csv" : "numpy");
    if (csv) {
        FILE *const f = fopen(gs_test_path(dir, "edges/e"), "w");
        assert_non_null(f);
        for (uint64_t e = 0; e < E; e++)
            fprintf(f, "%lld,%lld\n", (long long)g->pairs[2 * e], (long long)g->pairs[2 * e + 1]);
        assert_int_equal(fclose(f), 0);
    } else {
        write_npy(dir, "edges/e", GS_I64, g->rows, 2, E);
    }
    write_npy(dir, "data/feat.npy", GS_F32, g->features, N, F);
    for (int i = 0; i < 3; i++) {
        for (uint64_t k = 0; k < g->split[i]; k++)
            labels[k] = g->labels[g->ids[i][k]];
        n += (size_t)sprintf(text + n,
                             "    %s_set:\n      - data:\n          - name: seeds\n            format: numpy\n"
                             "            path: set/%s-seeds.npy\n          - name: labels\n"
                             "            format: numpy\n            path: set/%s-labels.npy\n",
                             sets[i], sets[i], sets[i]);
        write_npy(dir, gs_test_path("set", "%s-seeds.npy", sets[i]), GS_I64, g->ids[i], g->split[i], 0);
        write_npy(dir, gs_test_path("set", "%s-labels.npy", sets[i]), GS_I64, labels, g->split[i], 0);
    }
    gs_test_write_file(gs_test_path(dir, "metadata.yaml"), text, n);
}

/* -- the tests -------------------------------------------------------------------------- */

static char warnings[4096];
static void keep_warning(void *context, const char *line)
{
    (void)context;
    const size_t n = strlen(warnings);
    snprintf(warnings + n, sizeof(warnings) - n, "%s\n", line);
}

static void expect_same(const char *dir, const char *input)
{
    static const char *const methods[] = {"natural", "fennel"};

    for (uint32_t i = 0; i < 2; i++) {
        gs_partition_options o = test_options(methods[i], 1 + 3 * i, 8 * GS_MIB);
        o.force = true;
        o.warn = keep_warning;
        gs_assert_ok(gs_partition(gs_test_path(dir, "plain"), gs_test_path(dir, "a"), &o, NULL));
        warnings[0] = '\0';
        gs_assert_ok(gs_partition(input, gs_test_path(dir, "b"), &o, NULL));
        assert_same_store(gs_test_path(dir, "a"), gs_test_path(dir, "b"));
    }
}

static void expect(const char *dir, const char *input, gs_status status, const char *part)
{
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    gs_assert_fails(gs_partition(input, gs_test_path(dir, "store"), &o, NULL), status, part);
    assert_gone(gs_test_path(dir, "store"));
}

static void test_layouts__npz_files_give_the_same_store(void **state)
{
    arrays *const g = make_arrays();

    write_plain(gs_test_path(*state, "plain"), g);
    for (int level = 0; level <= 6; level += 6) {
        write_shchur(*state, gs_test_path(*state, "s.npz"), g, level);
        expect_same(*state, gs_test_path(*state, "s.npz"));
        assert_non_null(strstr(warnings, ".undirected"));
        write_pyg(*state, gs_test_path(*state, "p.npz"), g, level);
        expect_same(*state, gs_test_path(*state, "p.npz"));
        assert_string_equal(warnings, "");
    }
    free(g);
}

static void test_layouts__ogb_npz_gives_the_same_store(void **state)
{
    arrays *const g = make_arrays();

    write_plain(gs_test_path(*state, "plain"), g);
    for (int level = 0; level <= 1; level++) {
        write_ogb_binary(gs_test_path(*state, "ogb%d", level), g, level);
        expect_same(*state, gs_test_path(*state, "ogb%d", level));
        assert_non_null(strstr(warnings, "node_year.npy: is not read"));
    }
    free(g);
}

static void test_layouts__igb_gives_the_same_store(void **state)
{
    arrays *const g = make_arrays();

    write_plain(gs_test_path(*state, "plain"), g);
    for (int plain = 0; plain <= 1; plain++) {
        write_igb(gs_test_path(*state, "igb%d", plain), g, plain);
        expect_same(*state, gs_test_path(*state, "igb%d", plain));
        assert_string_equal(warnings, "");
        expect_same(*state, gs_test_path(*state, "igb%d/processed", plain));
    }
    free(g);
}

static void test_layouts__graphbolt_gives_the_same_store(void **state)
{
    arrays *const g = make_arrays();

    write_plain(gs_test_path(*state, "plain"), g);
    for (int csv = 0; csv <= 1; csv++) {
        write_graphbolt(gs_test_path(*state, "g%d", csv), g, csv);
        expect_same(*state, gs_test_path(*state, "g%d", csv));
        assert_string_equal(warnings, "");
    }
    free(g);
}

static void test_layouts__graphbolt_has_features_of_edges(void **state)
{
    static const char entry[] = "feature_data:\n  - domain: edge\n    type: ~\n    name: feat\n    format: numpy\n"
                                "    path: data/efeat.npy\n";
    arrays *const g = make_arrays();
    float *const values = malloc(3ull * E * sizeof(*values));
    const char *const dir = gs_test_path(*state, "g"), *const path = gs_test_path(dir, "metadata.yaml");
    char *text = NULL, changed[4096];
    uint64_t n = 0;

    assert_non_null(values);
    for (uint64_t k = 0; k < 3ull * E; k++)
        values[k] = (float)(k % 509) / 4;
    write_plain(gs_test_path(*state, "plain"), g);
    write_npy(gs_test_path(*state, "plain"), "edge_features.npy", GS_F32, values, E, 3);
    write_graphbolt(dir, g, false);
    write_npy(dir, "data/efeat.npy", GS_F32, values, E, 3);
    gs_assert_ok(gs_file_read_all(&text, &n, path, GS_MIB));
    char *const at = strstr(text, "feature_data:\n");
    assert_non_null(at);
    const int length = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, entry,
                                at + strlen("feature_data:\n"));
    gs_test_write_file(path, changed, (size_t)length);
    expect_same(*state, dir);
    assert_string_equal(warnings, "");
    gs_free(text);
    free(values);
    free(g);
}

/* `from` in metadata.yaml becomes `to`. */
static void expect_yaml(const char *dir, const char *from, const char *to, gs_status status, const char *part)
{
    char *const path = strdup(gs_test_path(dir, "metadata.yaml")), *text = NULL, changed[4096];
    uint64_t n = 0;

    gs_assert_ok(gs_file_read_all(&text, &n, path, GS_MIB));
    char *const at = strstr(text, from);
    assert_non_null(at);
    const int length = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    gs_test_write_file(path, changed, (size_t)length);
    expect(dir, dir, status, part);
    gs_test_write_file(path, text, n);
    gs_free(text);
    free(path);
}

static void test_layouts__graphbolt_errors_name_the_line(void **state)
{
    static const struct {
        const char *from, *to, *part;
    } cases[] = {
        {"num: 300", "num: many", "metadata.yaml: line 5: the number of vertices (num) is not a whole number"},
        {"num: 300", "num: 301", "the stated number of vertices is 301, but the features have 300 rows"},
        {"graph:", "grap:", "'graph' is missing"},
        {"graph:", "graph_topology:", "line 3: is of a folder that GraphBolt has preprocessed"},
        {"path: edges/e", "path: edges/f", "line 8: there is no file edges/f; was edges/e meant?"},
        {"path: edges/e", "pat: edges/e", "line 7: a path is missing"},
        {"format: numpy", "format: torch", "line 7: edges/e: the format is torch; numpy or csv is read"},
        {"format: numpy\n    path: data", "format: csv\n    path: data",
         "data/feat.npy: the format is csv; numpy is read"},
        {"path: data/feat.npy", "path: data/faet.npy", "there is no file data/faet.npy; was data/feat.npy meant?"},
        {"num_classes: 4", "num_classes: 3", "label 3 is outside 0 to 2"},
        {"name: seeds", "name: node_pairs", "a set of 'node_pairs'; sets of vertices are read"},
        {"set/train-labels", "set/test-labels", "labels are [180], one for each vertex of"},
        {"tasks:", "tasks: [", "is no YAML"},
    };
    arrays *const g = make_arrays();
    char *const dir = strdup(gs_test_path(*state, "g"));

    write_graphbolt(dir, g, false);
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        expect_yaml(dir, cases[i].from, cases[i].to, GS_EFORMAT, cases[i].part);
    expect_yaml(dir, "      num: 300\n", "      num: 200\n    - num: 100\n", GS_EFORMAT,
                "a type of vertices has no name");
    free(dir);
    free(g);
}

/* [2, E] in a plain folder is torch_geometric's edge_index. */
static void test_layouts__edges_may_be_two_rows(void **state)
{
    arrays *const g = make_arrays();
    char *const rows = strdup(gs_test_path(*state, "rows"));

    write_plain(gs_test_path(*state, "plain"), g);
    write_plain(rows, g);
    write_npy(rows, "edges.npy", GS_I64, g->rows, 2, E);
    expect_same(*state, rows);
    g->rows[E + 7] = N;
    write_npy(rows, "edges.npy", GS_I64, g->rows, 2, E);
    expect(*state, rows, GS_EFORMAT, "edges.npy: row 1, column 7: vertex 300 is not one of the 300 vertices");
    g->rows[7] = -1;
    write_npy(rows, "edges.npy", GS_I64, g->rows, 2, E);
    expect(*state, rows, GS_EFORMAT, "edges.npy: row 0, column 7: vertex -1");
    write_npy(rows, "edges.npy", GS_I64, g->rows, 3, 4);
    expect(*state, rows, GS_EFORMAT, "edges are [E, 2], or [2, E]");
    free(rows);
    free(g);
}

static void test_layouts__npz_errors_name_the_array(void **state)
{
    arrays *const g = make_arrays();
    const int64_t square[2] = {N, N + 1}, short_ptr[2] = {0, 0};
    char *const path = strdup(gs_test_path(*state, "x.npz")), *packed = NULL;
    uint64_t n = 0;
    archive a = new_archive(*state, path, 0);

    add(&a, "adj_indptr", GS_I64, short_ptr, 2, 0);
    add(&a, "adj_indices", GS_I32, g->indices, E, 0);
    close_archive(&a);
    expect(*state, path, GS_EFORMAT, "has adj_indptr, but not adj_shape");
    a = new_archive(*state, path, 0);
    add(&a, "adj_indptr", GS_I64, short_ptr, 2, 0);
    add(&a, "adj_indices", GS_I32, g->indices, E, 0);
    add(&a, "adj_shape", GS_I64, square, 2, 0);
    close_archive(&a);
    expect(*state, path, GS_EFORMAT, "adj_shape.npy: has 300 rows and 301 columns");
    a = new_archive(*state, path, 0);
    add(&a, "adj_indptr", GS_I64, short_ptr, 2, 0);
    add(&a, "adj_indices", GS_I32, g->indices, E, 0);
    add(&a, "adj_shape", GS_I64, (int64_t[]){N, N}, 2, 0);
    close_archive(&a);
    expect(*state, path, GS_EFORMAT, "adj_indptr.npy: is i64 [2]; it must be integers [301]");
    a = new_archive(*state, path, 0);
    add(&a, "x", GS_F32, g->features, N, F);
    close_archive(&a);
    expect(*state, path, GS_EFORMAT, "holds no array of edges: neither edges, nor edge_index, nor adj_indptr");
    a = new_archive(*state, path, 0);
    add(&a, "edges", GS_I64, g->pairs, E, 2);
    add(&a, "edge_index", GS_I64, g->rows, 2, E);
    close_archive(&a);
    expect(*state, path, GS_EFORMAT, "a second array of this meaning is edge_index");
    for (int level = 0; level <= 1; level++) { /* cut anywhere it says so */
        write_pyg(*state, path, g, level);
        gs_assert_ok(gs_file_read_all(&packed, &n, path, GS_GIB));
        for (unsigned i = 1; i <= 4; i++) {
            gs_test_write_file(path, packed, n * i / 5);
            expect(*state, path, GS_EFORMAT, "cut short or damaged");
        }
        gs_free(packed);
    }
    free(path);
    free(g);
}

static void test_layouts__igb_errors_name_the_file(void **state)
{
    arrays *const g = make_arrays();
    char *const dir = strdup(gs_test_path(*state, "igb"));

    write_igb(dir, g, true);
    gs_test_write_file(gs_test_path(dir, "processed/paper/node_feat.npy"), g->features, 4 * N * F - 4);
    expect(*state, dir, GS_EFORMAT, "no whole rows for 300 vertices");
    gs_test_write_file(gs_test_path(dir, "processed/paper/node_label_19.npy"), g->labels_f32, 4 * N - 2);
    expect(*state, dir, GS_EFORMAT, "node_label_19.npy: has 1198 bytes and no .npy header");
    free(dir);
    free(g);
}

static void expect_warning(const char *input, const char *dir, const char *part)
{
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    o.warn = keep_warning;
    o.force = true;
    warnings[0] = '\0';
    (void)!gs_partition(input, gs_test_path(dir, "s"), &o, NULL); /* it may fail for want of the file, too */
    if (strstr(warnings, part) == NULL)
        fail_msg("%s: no warning says '%s', but: %s", input, part, warnings);
}

static void rename_in(const char *dir, const char *from, const char *to)
{
    char *const a = strdup(gs_test_path(dir, "%s", from));
    assert_int_equal(rename(a, gs_test_path(dir, "%s", to)), 0);
    free(a);
}

/* Large files of an input often stand elsewhere. */
static void test_layouts__files_may_be_links(void **state)
{
    static const char *const names[] = {"edges.npy", "features.npy", "labels.npy"};
    arrays *const g = make_arrays();
    char *const linked = strdup(gs_test_path(*state, "linked"));

    write_plain(gs_test_path(*state, "plain"), g);
    write_plain(linked, g);
    for (size_t i = 0; i < GS_ARRAY_LEN(names); i++) {
        char *const link = strdup(gs_test_path(linked, "%s", names[i]));
        unlink(link);
        assert_int_equal(symlink(gs_test_path(*state, "plain/%s", names[i]), link), 0);
        free(link);
    }
    expect_same(*state, linked);
    free(linked);
    free(g);
}

/* numpy.save(edges.T) is [2, E] in Fortran order, and that of edge_index.T is [E, 2]: the bytes of the other one. */
static void test_layouts__edges_may_be_in_fortran_order(void **state)
{
    arrays *const g = make_arrays();
    char *const dir = strdup(gs_test_path(*state, "f")), *bytes = NULL;

    write_plain(gs_test_path(*state, "plain"), g);
    write_plain(dir, g);
    for (int rows = 0; rows <= 1; rows++) {
        char *const path = strdup(gs_test_path(dir, "edges.npy"));
        uint64_t n = 0;
        write_npy(dir, "edges.npy", GS_I64, rows ? g->rows : g->pairs, rows ? 2 : E, rows ? E : 2);
        gs_assert_ok(gs_file_read_all(&bytes, &n, path, GS_GIB));
        memcpy(strstr(bytes + 10, "False"), "True ", 5);
        memcpy(strstr(bytes + 10, "'shape': ("), rows ? "'shape': (1500, 2), }" : "'shape': (2, 1500), }", 21);
        gs_test_write_file(path, bytes, n);
        expect_same(*state, dir);
        gs_free(bytes);
        free(path);
    }
    free(dir);
    free(g);
}

/* A misnamed file is named with the name meant, in every kind of folder. */
static void test_layouts__misnamed_files_are_named(void **state)
{
    arrays *const g = make_arrays();
    char *const plain = strdup(gs_test_path(*state, "plain")), *const igb = strdup(gs_test_path(*state, "igb")),
         *const ogb = strdup(gs_test_path(*state, "ogb")), *const bolt = strdup(gs_test_path(*state, "bolt"));
    char *text = NULL;
    uint64_t n = 0;

    write_plain(plain, g);
    write_npy(plain, "edge_weight.npy", GS_F32, g->ones, E, 0);
    expect_warning(plain, *state, "edge_weight.npy: is not read; was edge_weights.npy meant?");
    rename_in(plain, "valid_idx.npy", "val_idx.npy");
    expect_warning(plain, *state, "val_idx.npy: is not read; was valid_idx.npy meant?");
    write_igb(igb, g, false);
    rename_in(igb, "processed/paper/node_feat.npy", "processed/paper/node_feats.npy");
    expect_warning(igb, *state, "node_feats.npy: is not read; was node_feat.npy meant?");
    rename_in(igb, "processed/paper/node_label_2K.npy", "processed/paper/node_label.npy");
    expect_warning(igb, *state, "node_label.npy: is not read; was node_label_19.npy meant?");
    write_ogb_binary(ogb, g, 0);
    rename_in(ogb, "split/time/valid.csv.gz", "split/time/val.csv.gz");
    expect_warning(ogb, *state, "val.csv.gz: is not read; was valid.csv.gz meant?");
    write_graphbolt(bolt, g, false);
    gs_assert_ok(gs_file_read_all(&text, &n, gs_test_path(bolt, "metadata.yaml"), GS_MIB));
    memcpy(strstr(text, "validation_set"), "validatoin_set", 14);
    gs_test_write_file(gs_test_path(bolt, "metadata.yaml"), text, n);
    gs_free(text);
    expect_warning(bolt, *state, "'validatoin_set' is not read; was validation_set meant?");
    put_ids(gs_test_path(ogb, "raw/node_feat.csv.gz"), g->ids[0], 1);
    expect_warning(ogb, *state, "node_feat.csv.gz: is not read; was node-feat.csv.gz meant?");
    free(plain);
    free(igb);
    free(ogb);
    free(bolt);
    free(g);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_layouts__npz_files_give_the_same_store),
        T(test_layouts__ogb_npz_gives_the_same_store),
        T(test_layouts__igb_gives_the_same_store),
        T(test_layouts__graphbolt_gives_the_same_store),
        T(test_layouts__graphbolt_has_features_of_edges),
        T(test_layouts__graphbolt_errors_name_the_line),
        T(test_layouts__edges_may_be_two_rows),
        T(test_layouts__npz_errors_name_the_array),
        T(test_layouts__igb_errors_name_the_file),
        T(test_layouts__files_may_be_links),
        T(test_layouts__edges_may_be_in_fortran_order),
        T(test_layouts__misnamed_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
