/* Other people's formats: each gives the store that the plain one gives, and what is damaged is said in one line. */
#include "graphs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

static void put_text(const char *path, const char *text) { gs_test_write_file(path, text, strlen(text)); }

static void put_gzip(const char *path, const void *data, size_t bytes, const char *mode)
{
    gzFile f = gzopen(path, mode);
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)bytes), bytes);
    assert_int_equal(gzclose(f), Z_OK);
}

static size_t put_zstd(const char *path, const void *data, size_t bytes, int window)
{
    const size_t room = ZSTD_compressBound(bytes);
    char *const packed = malloc(room);
    ZSTD_CCtx *const c = ZSTD_createCCtx();
    if (window != 0)
        ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    const size_t n = ZSTD_compress2(c, packed, room, data, bytes);
    assert_false(ZSTD_isError(n));
    gs_test_write_file(path, packed, n);
    ZSTD_freeCCtx(c);
    free(packed);
    return n;
}

/* Every file of the two stores has the same bytes. */
static void assert_same_store(const char *a, const char *b)
{
    DIR *const d = opendir(a);
    int files = 0;

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char *one = NULL, *other = NULL, *first = gs_path_join(a, e->d_name), *second = gs_path_join(b, e->d_name);
        uint64_t n = 0, m = 0;
        if (e->d_name[0] != '.') {
            gs_assert_ok(gs_file_read_all(&one, &n, first, GS_GIB));
            gs_assert_ok(gs_file_read_all(&other, &m, second, GS_GIB));
            if (n != m || memcmp(one, other, n) != 0)
                fail_msg("%s and %s differ", first, second);
            files++;
        }
        gs_free(one);
        gs_free(other);
        gs_free(first);
        gs_free(second);
    }
    closedir(d);
    assert_true(files >= 7);
}

static void make_store(const char *input, const char *store)
{
    gs_partition_options o = test_options("fennel", 4, 32 * GS_MIB);
    o.force = true;
    gs_assert_ok(gs_partition(input, store, &o, NULL));
}

static void expect(const char *dir, const char *input, gs_status status, const char *part)
{
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *store = strdup(gs_test_path(dir, "store"));
    gs_assert_fails(gs_partition(input, store, &o, NULL), status, part);
    assert_gone(store);
    free(store);
}

static void expect_text(const char *dir, const char *name, const char *text, const char *part)
{
    char *path = strdup(gs_test_path(dir, "%s", name));
    put_text(path, text);
    expect(dir, path, GS_EFORMAT, part);
    unlink(path);
    free(path);
}

/* -- compressed texts --------------------------------------------------------------- */

static void test_formats__packed_texts_give_the_same_store(void **state)
{
    static const char *const names[] = {"cora.txt", "cora.mtx", "cora.graph"};
    char *const plain = strdup(gs_test_path(*state, "plain")), *const store = strdup(gs_test_path(*state, "s"));

    make_store(gs_test_need_data("cora_formats/cora.txt"), plain);
    for (size_t i = 0; i < GS_ARRAY_LEN(names); i++) {
        char *text = NULL, *gz = strdup(gs_test_path(*state, "%s.gz", names[i])),
             *zst = strdup(gs_test_path(*state, "%s.zst", names[i]));
        const char *const input = gs_test_need_data(gs_test_path("cora_formats", "%s", names[i]));
        uint64_t bytes = 0;
        gs_assert_ok(gs_file_read_all(&text, &bytes, input, GS_GIB));
        make_store(input, store);
        assert_same_store(plain, store);
        put_gzip(gz, text, bytes / 3, "wb"); /* of two members, as cat makes them */
        put_gzip(gz, text + bytes / 3, bytes - bytes / 3, "ab");
        make_store(gz, store);
        assert_same_store(plain, store);
        put_zstd(zst, text, bytes, 0);
        make_store(zst, store);
        assert_same_store(plain, store);
        gs_free(text);
        free(gz);
        free(zst);
    }
    free(plain);
    free(store);
}

static char *many_edges(size_t *bytes)
{
    char *const text = malloc(4 << 20);
    size_t n = 0;
    for (unsigned i = 0; n < (4 << 20) - 32; i++)
        n += (size_t)sprintf(text + n, "%u %u\n", i * 2654435761u >> 12, i * 40503u % 100003u);
    *bytes = n;
    return text;
}

/* Cut anywhere it says so; with a byte changed it never passes for whole. */
static void test_formats__damaged_packed_texts_are_refused(void **state)
{
    size_t bytes;
    char *const text = many_edges(&bytes), *const path = strdup(gs_test_path(*state, "edges"));

    for (int way = 0; way < 2; way++) {
        char *packed = NULL;
        uint64_t n = 0;
        if (way == 0)
            put_gzip(path, text, bytes, "wb1");
        else
            put_zstd(path, text, bytes, 0);
        gs_assert_ok(gs_file_read_all(&packed, &n, path, GS_GIB));
        for (unsigned i = 1; i <= 8; i++) {
            gs_test_write_file(path, packed, i == 8 ? n - 1 : n * i / 9);
            expect(*state, path, GS_EFORMAT, "is cut short");
        }
        for (unsigned i = 1; i <= 8; i++) {
            const uint64_t at = n * i / 9;
            packed[at] ^= 0x55;
            gs_test_write_file(path, packed, n);
            expect(*state, path, GS_EFORMAT, "edges");
            packed[at] ^= 0x55;
        }
        char *const longer = malloc(n + 4);
        memcpy(longer, packed, n);
        memcpy(longer + n, "tail", 4);
        gs_test_write_file(path, longer, n + 4);
        expect(*state, path, GS_EFORMAT, "data are damaged");
        free(longer);
        gs_free(packed);
    }
    put_zstd(path, text, bytes, 27);
    expect(*state, path, GS_EBUDGET, ".memory");
    free(text);
    free(path);
}

/* -- columns with names -------------------------------------------------------------- */

static char warnings[1024];
static void keep_warning(void *context, const char *line)
{
    (void)context;
    snprintf(warnings + strlen(warnings), sizeof(warnings) - strlen(warnings), "%s\n", line);
}

static void test_formats__columns_are_found_by_name(void **state)
{
    static const char *const texts[] = {
        "src,dst,weight,type\n0,1,0.5,2\n3,1,-1e-1,0\n3,3,2,1\n",
        "Type;Weight;Target;Source\r\n2;0.5;1;0\r\n0;-1e-1;1;3\r\n1;2;3;3\r\n",
        "# words\nfrom\tname\tto\tw\trel\n0\ta b\t1\t0.5\t2\n3\t\t1\t-0.1\t0\n\n3\tc\t3\t2.0\t1",
        "\xef\xbb\xbf\"source\", \"target\", \"edge_weight\", \"edge_type\"\n\"0\", \"1\", 0.5, 2\n3,1,-0.1,0\n"
        "3,3,2,1\n",
        "u  v weight   type\n0 1 0.5 2 \n3  1\t-0.1 0\n 3 3 2 1\n",
    };
    edge edges[] = {{0, 1, 2, 0.5f}, {3, 1, 0, -0.1f}, {3, 3, 1, 2}};
    edge_list want = {edges, 3};
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *const path = strdup(gs_test_path(*state, "edges.any"));

    o.force = true;
    o.warn = keep_warning;
    for (size_t i = 0; i < GS_ARRAY_LEN(texts); i++) {
        put_text(path, texts[i]);
        gs_store *s = partition_and_check(path, gs_test_path(*state, "s"), &o, &want, 4, NULL);
        assert_true(gs_store_get_info(s)->weights);
        assert_int_equal(gs_store_get_info(s)->edge_types, 3);
        gs_store_close(s);
    }
    assert_non_null(strstr(warnings, "the column 'name' is not read"));
    edge bare[] = {{0, 1, 0, 0}, {3, 1, 0, 0}};
    want = (edge_list){bare, 2};
    put_text(path, "0,1\n3,1\n");
    gs_store_close(partition_and_check(path, gs_test_path(*state, "s"), &o, &want, 4, NULL));
    free(path);
}

static void test_formats__csv_errors_name_line_and_column(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"src,weight\n0,1\n", "line 1, column 1: no columns called src and dst"},
        {"src,dst,source\n0,1,2\n", "line 1, column 9: a second column of this meaning"},
        {"0,1,0.5\n", "line 1, column 1: more or fewer than two columns"},
        {"src,dst\n0,1\n2,x\n", "line 3, column 3: expected the destination id"},
        {"src,dst\n0,1\n2\n", "line 3, column 1: fewer columns"},
        {"src,dst\n0,1,7\n", "line 2, column 5: more columns"},
        {"src,dst\n0,1 7\n", "line 2, column 5: expected one number a column"},
        {"src,dst\n0,4294967294\n", "line 2, column 3: the destination id is outside"},
        {"src,dst,weight\n0,1,inf\n", "line 2, column 5: expected a finite weight"},
        {"src,dst,weight\n0,1,\n", "line 2, column 5: expected a finite weight"},
        {"src,dst,type\n0,1,65536\n", "line 2, column 5: the edge type is outside 0 to 65535"},
        {"src,dst\n", "holds no edge"},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        expect_text(*state, "e.csv", cases[i].text, cases[i].part);
}

/* -- METIS --------------------------------------------------------------------------- */

static void test_formats__metis_weights_and_sizes(void **state)
{
    edge plain[] = {{0, 1, 0, 0}, {1, 0, 0, 0}, {1, 3, 0, 0}, {3, 1, 0, 0}};
    edge heavy[] = {{0, 1, 0, 7}, {1, 0, 0, 7}, {1, 3, 0, 2}, {3, 1, 0, 2}};
    static const struct {
        const char *text;
        bool weights;
    } cases[] = {
        {"% words\n4 2\n2\n1 4\n\n2\n", false}, /* the third has no neighbour */
        {"4 2 0\n2\n%\n1  4 \r\n\n2", false},
        {"4 2 001\n2 7\n1 7 4 2\n\n2 2\n", true},
        {"4 2 10 2\n8 9 2\n8 9 1 4\n8 9\n8 9 2\n\n", false},
        {"4 2 111 1\n5 8 2 7\n5 8 1 7 4 2\n5 8\n5 8 2 2\n", true},
    };
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *const path = strdup(gs_test_path(*state, "g.graph"));

    o.force = true;
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        const edge_list want = {cases[i].weights ? heavy : plain, 4};
        put_text(path, cases[i].text);
        gs_store *s = partition_and_check(path, gs_test_path(*state, "s"), &o, &want, 4, NULL);
        assert_int_equal(gs_store_get_info(s)->weights, cases[i].weights);
        gs_store_close(s);
    }
    free(path);
}

static void test_formats__metis_errors_name_line_and_column(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"3\n\n\n\n", "line 1, column 2: expected the number of vertices and of edges"},
        {"0 0\n", "the number of vertices is outside"},
        {"3 1 2\n2\n1\n\n", "the format"},
        {"3 1\n2\n4\n\n", "line 3, column 1: the neighbour is none of the vertices"},
        {"3 1\n2\n0\n\n", "line 3, column 1: the neighbour is none of the vertices"},
        {"3 1\n2\n1\n", "ends after the lines of 2 vertices; its first line says 3"},
        {"3 1\n2\n1\n\n1\n", "line 5, column 1: more lines"},
        {"3 2\n2\n1\n\n", "lists 2 neighbours; its first line says 2 edges"},
        {"3 1 1\n2\n1 5\n\n", "line 2, column 2: the line ends before the weight"},
        {"3 1 10\n\n1 1\n1\n", "line 2, column 1: the line ends before"},
        {"3 1\n2 x\n1\n\n", "line 2, column 3: expected a whole number"},
        {"3 1\n2x\n1\n\n", "line 2, column 1: a number ends"},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        expect_text(*state, "g.graph", cases[i].text, cases[i].part);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_formats__packed_texts_give_the_same_store),
        T(test_formats__damaged_packed_texts_are_refused),
        T(test_formats__columns_are_found_by_name),
        T(test_formats__csv_errors_name_line_and_column),
        T(test_formats__metis_weights_and_sizes),
        T(test_formats__metis_errors_name_line_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
