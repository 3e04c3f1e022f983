/* Other people's formats: each gives the store that the plain one gives, and what is damaged is said in one line. */
#include "graphs.h"

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
    o.ids = "keep";
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
    gs_test_need_data("cora_formats/cora.txt"); /* without it there is nothing to free */
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
    uint64_t window = GS_MIB; /* of a short text: what covers it */
    while (window < bytes)
        window *= 2;
    char want[80];
    snprintf(want, sizeof(want), "a quarter of .memory; give more, at least %lluM, or",
             (unsigned long long)((4 * window + TEST_PROCESS_BYTES) / GS_MIB));
    expect(*state, path, GS_EBUDGET, want);
    /* a frame in one piece of 2^63 bytes and more, whose window no power of two covers */
    static const char huge[] = "\x28\xb5\x2f\xfd\xe0\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e\x8e";
    gs_test_write_file(path, huge, sizeof(huge) - 1);
    expect(*state, path, GS_EFORMAT, "larger window than any");
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
    static const char *const plain[] = {
        "0,1\n3,1\n", "\xef\xbb\xbf" "0,1\n3,1\n", "\xef\xbb\xbf" "0 1\n3 1\n",
        "\xef\xbb\xbf%%MatrixMarket matrix coordinate pattern general\n4 4 2\n1 2\n4 2\n",
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(plain); i++) {
        put_text(path, plain[i]);
        gs_store_close(partition_and_check(path, gs_test_path(*state, "s"), &o, &want, 4, NULL));
    }
    free(path);
}

/* Weights without a header, KONECT's lines, Gephi's export: edges with weights, both ways where the file says so. */
static void test_formats__columns_of_others_are_understood(void **state)
{
    static const struct {
        const char *text;
        bool both;
        const char *warning; /* NULL: none */
    } cases[] = {
        {"0 1 0.5\n3 1 -0.1\n", false, "its columns are taken as source, destination, weight"},
        {"0,1,0.5\n3,1,-0.1\n", false, "its columns are taken as source, destination, weight"},
        {"u\tv\tw\n0\t1\t0.5\n3\t1\t-0.1\n", false, NULL},
        {"% asym weighted\n% 2 4 4\n0 1 0.5\n3 1 -0.1\n", false, NULL},
        {"% sym posweighted\n0 1\t0.5 1082040961\n3 1  -0.1\t1082155839\n", true,
         "the fourth column, of times, is not read"},
        {"Source,Target,Type,Id,Label,timeset,Weight\n0,1,Directed,0,,,0.5\n3,1,Directed,1,\"a \"\"b\"\", c\",,-0.1\n",
         false, "the column 'timeset' is not read"},
        {"Source;Target;Type;Weight\n0;1;Undirected;0.5\n1;3;undirected;-0.1\n", true, NULL},
        {"Source,Target,Type,Weight\n0,1,Undirected,0.5\n1,3,Directed,-0.1\n3,1,Directed,-0.1\n", true, NULL},
    };
    edge edges[] = {{0, 1, 0, 0.5f}, {1, 0, 0, 0.5f}, {1, 3, 0, -0.1f}, {3, 1, 0, -0.1f}};
    edge one_way[] = {{0, 1, 0, 0.5f}, {3, 1, 0, -0.1f}};
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *const path = strdup(gs_test_path(*state, "out.any"));

    o.force = true;
    o.warn = keep_warning;
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        const edge_list want = cases[i].both ? (edge_list){edges, 4} : (edge_list){one_way, 2};
        put_text(path, cases[i].text);
        warnings[0] = '\0';
        gs_store *s = partition_and_check(path, gs_test_path(*state, "s"), &o, &want, 4, NULL);
        assert_true(gs_store_get_info(s)->weights);
        assert_int_equal(gs_store_get_info(s)->edge_types, 0);
        assert_int_equal(gs_store_get_info(s)->symmetric, cases[i].both);
        gs_store_close(s);
        if (cases[i].warning == NULL)
            assert_string_equal(warnings, "");
        else
            assert_non_null(strstr(warnings, cases[i].warning));
    }
    expect_text(*state, "out.bip", "% asym positive x\n0 1 2 1082040961\n", "more than three columns");
    put_text(path, "% bip unweighted\n1 1\n");
    gs_assert_ok(gs_remove_tree(gs_test_path(*state, "s")));
    expect(*state, path, GS_EUNSUPPORTED, "is bipartite (% bip): its two columns count different vertices");
    free(path);
}

/* Edge types that are words: the shortest is 0, those of one length stand by their bytes, whatever comes first. */
static void test_formats__edge_types_may_be_words(void **state)
{
    static const char *const texts[] = {
        "src,dst,relation\n0,1,likes\n3,1,has\n3,3,knows\n",
        "relation;target;source\n\"knows\";3;3\nlikes;1;0\nhas;1;3",
        "a\tlikes\tb\nd\thas\tb\nd\tknows\td\n", /* head, relation, tail */
    };
    edge edges[] = {{0, 1, 2, 0}, {3, 1, 0, 0}, {3, 3, 1, 0}}, named[] = {{0, 1, 2, 0}, {2, 1, 0, 0}, {2, 2, 1, 0}};
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *const path = strdup(gs_test_path(*state, "edges.any"));

    o.force = true;
    o.warn = keep_warning;
    for (size_t i = 0; i < GS_ARRAY_LEN(texts); i++) {
        const edge_list want = {i < 2 ? edges : named, 3};
        put_text(path, texts[i]);
        warnings[0] = '\0';
        gs_store *s = partition_and_check(path, gs_test_path(*state, "s"), &o, &want, i < 2 ? 4 : 3, NULL);
        assert_int_equal(gs_store_get_info(s)->edge_types, 3);
        gs_store_close(s);
        assert_non_null(strstr(warnings, "edge types are words, numbered shortest first, those of one length by their "
                                         "bytes: 0 has, 1 knows, 2 likes\n"));
    }
    free(path);
}

/* Names are held in memory beside the budget: they have a bound of their own, here 300 words of 4,000 bytes. */
static void test_formats__names_of_edge_types_are_bounded(void **state)
{
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *const path = strdup(gs_test_path(*state, "edges.any")), word[4001];
    FILE *const f = fopen(path, "w");

    assert_non_null(f);
    fputs("src,dst,relation\n", f);
    for (int k = 0; k < 300; k++) {
        memset(word, 'a' + k % 26, sizeof(word) - 1);
        snprintf(word + sizeof(word) - 5, 5, "%04u", (unsigned)k % 10000);
        fprintf(f, "%d,%d,%s\n", k, k + 1, word);
    }
    assert_int_equal(fclose(f), 0);
    gs_assert_fails(gs_partition(path, gs_test_path(*state, "s"), &o, NULL), GS_EUNSUPPORTED, "1 MiB of their names");
    free(path);
}

static void test_formats__csv_errors_name_line_and_column(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"src,weight\n0,1\n", "line 1, column 1: no columns called src and dst"},
        {"src,dst,source\n0,1,2\n", "line 1, column 9: a second column of this meaning"},
        {"0,1,0.5,7\n", "line 1, column 1: more than three columns, and no header"},
        {"0,1,x\n", "line 1, column 3: is this a relation, or the next column?"},
        {"0 1 1082008561\n", "line 1, column 5: this column may hold times or weights"},
        {"0 1 0.5\n1 2\n", "line 2, column 1: fewer columns"},
        {"0 1 0.5\n1 2 x\n", "line 2, column 5: expected a finite weight"},
        {"source,target,type\n0,1,Directed\n1,2,Mutual\n", "line 3, column 5: neither Directed nor Undirected"},
        {"src,dst\n0,1\n2,x\n", "line 3, column 3: expected the destination id"},
        {"src,dst\n0,1\n2\n", "line 3, column 1: fewer columns"},
        {"src,dst\n0,1,7\n", "line 2, column 5: more columns"},
        {"src,dst\n0,1 7\n", "line 2, column 5: expected one number a column"},
        {"src,dst\n0,4294967294\n", "line 2, column 3: the destination id is outside"},
        {"src,dst,weight\n0,1,inf\n", "line 2, column 5: expected a finite weight"},
        {"src,dst,weight\n0,1,\n", "line 2, column 5: expected a finite weight"},
        {"src,dst,type\n0,1,2\n1,2,likes\n", "line 3, column 5: expected the edge type, a whole number"},
        {"src,dst,type\n0,1,likes\n1,2,\n", "line 3, column 5: expected an edge type, a word of 1 to 4096 bytes"},
        {"src,dst,type\n0,1,65536\n", "line 2, column 5: the edge type is outside 0 to 65535"},
        {"src,dst\n", "holds no edge"},
        {"src,dst\n\"a\"\"b\",c\n", "line 2, column 4: more of a field behind its quotes"},
        {"src,dst\n\"a\" b,c\n", "line 2, column 5: more of a field behind its quotes"},
        {"src,dst\n0,1\n\"2,3\n", "line 3, column 1: this quote is not closed in its line"},
        {"src,dst\n\"a,b\n", "line 2, column 1: this quote is not closed in its line"},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        expect_text(*state, "e.csv", cases[i].text, cases[i].part);

    /* One line says what is wrong: columns of a header that is refused are no news. */
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    char *const path = strdup(gs_test_path(*state, "e.csv")), *const store = strdup(gs_test_path(*state, "s"));
    o.warn = keep_warning;
    warnings[0] = '\0';
    put_text(path, "citing,cited\n0,1\n");
    assert_int_equal(gs_partition(path, store, &o, NULL), GS_EFORMAT);
    assert_string_equal(warnings, "");
    free(store);
    free(path);
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
        {"3 2\n2 3\n1\n2\n", "g.graph: lists an edge in the line of one of its ends alone"},
        {"3 1 1\n2 5\n1 6\n\n", "g.graph: lists an edge in the line of one of its ends alone, or with another weight"},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++)
        expect_text(*state, "g.graph", cases[i].text, cases[i].part);
}

#define RING 4000u
#define HUB 3u

static void put_neighbour(FILE *f, edge_list *list, uint32_t u, uint32_t v)
{
    const uint32_t weight = (u + 1) * (v + 1) % 97;
    fprintf(f, " %u %u", v + 1, weight);
    list->at[list->count++] = (edge){u, v, 0, (float)weight};
}

/* A ring where each vertex knows those 1 and 7 away, and a hub that all know, whose line is longer than a block.
 * Comments stand between: vertex v's line is 4 + v + v / 500. `last` ends the last line. */
static edge_list put_ring(const char *path, const char *last)
{
    static const uint32_t away[] = {1, 7, RING - 7, RING - 1};
    edge_list list = {malloc(6 * RING * sizeof(edge)), 0};
    FILE *const f = fopen(path, "w");

    assert_non_null(f);
    fprintf(f, "%% a ring\n%u %u 1\n", RING, 3 * RING - 5);
    for (uint32_t u = 0; u < RING; u++) {
        if (u % 500 == 0)
            fprintf(f, "%% before %u\n", u + 1);
        for (uint32_t v = 0; u == HUB && v < RING; v++)
            if (v != HUB)
                put_neighbour(f, &list, u, v);
        if (u != HUB)
            put_neighbour(f, &list, u, HUB);
        for (size_t i = 0; u != HUB && i < GS_ARRAY_LEN(away); i++)
            if ((u + away[i]) % RING != HUB)
                put_neighbour(f, &list, u, (u + away[i]) % RING);
        fputs(u + 1 < RING ? "\n" : last, f);
    }
    assert_int_equal(fclose(f), 0);
    return list;
}

/* Blocks are read before it is known how many lines stand in front of them: edges and errors are the same. */
static void test_formats__metis_blocks_know_their_vertices(void **state)
{
    static const struct {
        const char *last, *part;
    } cases[] = {
        {" x\n", "line 4010, column 33: expected a whole number"},
        {" 9\n", "line 4010, column 34: the line ends before the weight of its last edge"},
        {"\n%\n\n5 5\n", "line 4013, column 1: more lines than the first line counts vertices"},
        {" 5 5\n", "g.graph: lists 23991 neighbours"},
    };
    char *const path = strdup(gs_test_path(*state, "g.graph"));
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);
    edge_list want = put_ring(path, "\n\n% the end\n");
    sort_edges(&want);

    gs_store_close(partition_and_check(path, gs_test_path(*state, "s"), &o, &want, RING, NULL));
    edges_free(&want);
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        edge_list list = put_ring(path, cases[i].last);
        expect(*state, path, GS_EFORMAT, cases[i].part);
        edges_free(&list);
    }
    free(path);
}

/* -- the Open Graph Benchmark ----------------------------------------------------------- */

static void test_formats__ogb_cora_gives_the_same_store(void **state)
{
    gs_test_need_data("cora_formats/ogb_cora");
    char *const plain = strdup(gs_test_path(*state, "plain")), *const store = strdup(gs_test_path(*state, "s"));

    make_store(gs_test_need_data("cora"), plain);
    make_store(gs_test_need_data("cora_formats/ogb_cora"), store);
    assert_same_store(plain, store);
    free(plain);
    free(store);
}

static void small_ogb(const char *dir)
{
    static const char *const folders[] = {"raw", "split", "split/time"};
    for (size_t i = 0; i < GS_ARRAY_LEN(folders); i++)
        gs_assert_ok(gs_mkdir(gs_test_path(dir, "%s", folders[i])));
    put_gzip(gs_test_path(dir, "raw/edge.csv.gz"), "0,1\n3,2\n", 8, "wb");
    put_text(gs_test_path(dir, "raw/num-node-list.csv"), "4\n");
    put_text(gs_test_path(dir, "raw/num-edge-list.csv"), "2\n");
    put_text(gs_test_path(dir, "raw/node-label.csv"), "1\nnan\n0.0\n\n");
    put_text(gs_test_path(dir, "raw/node-feat.csv"), "0.1,-2e-3\n1234567890123456789,.5\n0,-0\n1e30,1e-30\n");
    put_text(gs_test_path(dir, "split/time/train.csv"), "0\n");
    put_text(gs_test_path(dir, "split/time/valid.csv"), "2\n");
    put_text(gs_test_path(dir, "split/time/test.csv"), "1\n3\n");
}

static void test_formats__ogb_tables_are_read_exactly(void **state)
{
    const float want[] = {0.1f, -2e-3f, 1234567890123456789.f, .5f, 0, -0.f, 1e30f, 1e-30f};
    const int32_t labels[] = {1, -1, 0, -1};
    const uint8_t split[] = {GS_SPLIT_TRAIN, GS_SPLIT_TEST, GS_SPLIT_VALID, GS_SPLIT_TEST};
    edge edges[] = {{0, 1, 0, 0}, {3, 2, 0, 0}};
    const edge_list list = {edges, 2};
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);

    small_ogb(*state);
    gs_store *const s = partition_and_check(*state, gs_test_path(*state, "s"), &o, &list, 4, NULL);
    float *const rows = read_array(s, GS_ARRAY_FEATURES);
    int32_t *const classes = read_array(s, GS_ARRAY_LABELS);
    uint8_t *const which = read_array(s, GS_ARRAY_SPLIT);
    assert_memory_equal(rows, want, sizeof(want));
    assert_memory_equal(classes, labels, sizeof(labels));
    assert_memory_equal(which, split, sizeof(split));
    gs_free(rows);
    gs_free(classes);
    gs_free(which);
    gs_store_close(s);
}

static void test_formats__ogb_errors_name_the_table(void **state)
{
    static const struct {
        const char *name, *text, *part;
    } cases[] = {
        {"raw/num-node-list.csv", "4\n5\n", "num-node-list.csv: counts 2 graphs; a store holds one"},
        {"raw/num-node-list.csv", "5\n", "the stated number of vertices is 5, but the features have 4 rows"},
        {"raw/num-edge-list.csv", "3\n", "edge.csv.gz: has 2 edges; raw/ says 3"},
        {"raw/node-feat.csv", "1,2\n1\n", "node-feat.csv: line 2, column 1: 1 numbers; the first line has 2"},
        {"raw/node-feat.csv", "1,2\n1,x\n", "node-feat.csv: line 2, column 3: expected a number"},
        {"raw/node-feat.csv", "1,2\n1,\n3,4\n5,6\n", "node-feat.csv: row 1, column 1: the value is not a finite"},
        {"raw/node-feat.csv", "1;2\n", "node-feat.csv: line 1, column 2: expected a comma"},
        {"raw/node-label.csv", "1\n0\n", "node-label.csv: has 2 rows, but there are features of 4 vertices"},
        {"raw/node-label.csv", "1\n0\ninf\n0\n", "node-label.csv: row 2: inf is no whole number"},
        {"split/time/test.csv", "4\n", "test.csv: row 0: vertex 4 is not one of the 4 vertices"},
        {"split/time/test.csv", "1.5\n", "test.csv: line 1, column 2: expected a comma"},
    };
    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        small_ogb(*state);
        put_text(gs_test_path(*state, "%s", cases[i].name), cases[i].text);
        expect(*state, *state, GS_EFORMAT, cases[i].part);
    }
    small_ogb(*state);
    gs_assert_ok(gs_mkdir(gs_test_path(*state, "split/random")));
    expect(*state, *state, GS_EFORMAT, "more than one way to split");
}

/* -- numbers of any type ------------------------------------------------------------------ */

static void test_formats__features_of_every_type(void **state)
{
    const uint8_t u8[] = {0, 1, 255, 7};
    const int16_t i16[] = {0, 1, 255, 7};
    const uint32_t u32[] = {0, 1, 255, 7};
    const int64_t i64[] = {0, 1, 255, 7};
    const uint64_t u64[] = {0, 1, 255, 7};
    const double f64[] = {0, 1, 255, 7};
    const uint16_t f16[] = {0, gs_f16_from_f32(1), gs_f16_from_f32(255), gs_f16_from_f32(7)};
    const float want[] = {0, 1, 255, 7};
    const struct {
        gs_dtype type;
        const void *data;
    } cases[] = {{GS_U8, u8}, {GS_I16, i16}, {GS_U32, u32}, {GS_I64, i64}, {GS_U64, u64}, {GS_F64, f64}, {GS_F16, f16}};
    edge edges[] = {{0, 1, 0, 255}, {1, 0, 0, 7}};
    const edge_list list = {edges, 2};

    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        gs_partition_options o = test_options("natural", 1, 8 * GS_MIB);
        o.force = true;
        write_edges(*state, &list, false, false);
        write_npy(*state, "features.npy", cases[i].type, cases[i].data, 2, 2);
        const char *const last = (const char *)cases[i].data + 2 * gs_dtype_bytes(cases[i].type);
        write_npy(*state, "edge_weights.npy", cases[i].type, last, 2, 0);
        gs_store *const s = partition_and_check(*state, gs_test_path(*state, "s"), &o, &list, 2, NULL);
        float *const rows = read_array(s, GS_ARRAY_FEATURES);
        assert_memory_equal(rows, want, sizeof(want));
        gs_free(rows);
        gs_store_close(s);
    }
}

/* -- splits from the seed ------------------------------------------------------------------ */

#define DRAWN 5000u

/* The split of each vertex by its input id. */
static void draw(uint8_t *out, const char *dir, const char *method, uint32_t parts, uint64_t seed, uint64_t count[3])
{
    gs_partition_options o = test_options(method, parts, 8 * GS_MIB);
    gs_store *s = NULL;
    o.split = "0.6,0.25,0.1";
    o.seed = seed;
    o.force = true;
    gs_assert_ok(gs_partition(dir, gs_test_path(dir, "s"), &o, NULL));
    gs_assert_ok(gs_store_open(&s, gs_test_path(dir, "s")));
    uint8_t *const split = read_array(s, GS_ARRAY_SPLIT);
    uint32_t *const id = read_array(s, GS_ARRAY_INPUT_ID);
    for (uint32_t p = 0; p < DRAWN; p++)
        out[id[p]] = split[p];
    count[0] = gs_store_get_info(s)->train;
    count[1] = gs_store_get_info(s)->valid;
    count[2] = gs_store_get_info(s)->test;
    gs_free(split);
    gs_free(id);
    gs_store_close(s);
}

static void test_formats__splits_are_drawn_from_the_seed_alone(void **state)
{
    static int64_t labels[DRAWN];
    static uint8_t one[DRAWN], other[DRAWN];
    edge_list list = random_graph(DRAWN, 20000, 3, false, false);
    uint64_t count[3], labelled = 0, seen[4] = {0}, low[4] = {0};

    for (uint32_t v = 0; v < DRAWN; v++)
        labelled += (labels[v] = v % 5 == 4 ? -1 : (int64_t)(v % 3)) >= 0;
    write_edges(*state, &list, false, false);
    write_npy(*state, "labels.npy", GS_I64, labels, DRAWN, 0);
    draw(one, *state, "natural", 1, 7, count);
    assert_int_equal(labelled, 4000);
    assert_int_equal(count[0], 2400);
    assert_int_equal(count[1], 1000);
    assert_int_equal(count[2], 400);
    for (uint32_t v = 0; v < DRAWN; v++) {
        assert_true(labels[v] >= 0 || one[v] == GS_SPLIT_NONE);
        seen[one[v]]++;
        low[one[v]] += v < DRAWN / 2;
    }
    for (int i = 0; i < 3; i++) { /* and it is random: half of each in each half, within five standard deviations */
        const double half = (double)count[i] / 2, off = (double)low[GS_SPLIT_TRAIN + i] - half;
        assert_int_equal(seen[GS_SPLIT_TRAIN + i], count[i]);
        assert_true(off * off < 25 * half / 2);
    }
    draw(other, *state, "fennel", 4, 7, count);
    assert_memory_equal(one, other, DRAWN);
    draw(other, *state, "natural", 1, 8, count);
    assert_memory_not_equal(one, other, DRAWN);
    edges_free(&list);
}

static void test_formats__splits_are_not_drawn_twice(void **state)
{
    gs_partition_options o = test_options("natural", 2, 8 * GS_MIB);

    small_ogb(*state);
    o.split = "0.6,0.2,0.2";
    gs_assert_fails(gs_partition(*state, gs_test_path(*state, "s"), &o, NULL), GS_EINVAL, "has splits of its own");
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_formats__packed_texts_give_the_same_store),
        T(test_formats__damaged_packed_texts_are_refused),
        T(test_formats__columns_are_found_by_name),
        T(test_formats__columns_of_others_are_understood),
        T(test_formats__edge_types_may_be_words),
        T(test_formats__names_of_edge_types_are_bounded),
        T(test_formats__csv_errors_name_line_and_column),
        T(test_formats__metis_weights_and_sizes),
        T(test_formats__metis_errors_name_line_and_column),
        T(test_formats__metis_blocks_know_their_vertices),
        T(test_formats__ogb_cora_gives_the_same_store),
        T(test_formats__ogb_tables_are_read_exactly),
        T(test_formats__ogb_errors_name_the_table),
        T(test_formats__features_of_every_type),
        T(test_formats__splits_are_drawn_from_the_seed_alone),
        T(test_formats__splits_are_not_drawn_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
