/* Ids of any kind: numbers to 2^64 - 1 and names become vertices within memory, and the store keeps them. */
#include "graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"

static char warnings[4096];
static void keep_warning(void *context, const char *line)
{
    (void)context;
    const size_t n = strlen(warnings);
    snprintf(warnings + n, sizeof(warnings) - n, "%s\n", line);
}

static gs_partition_options options(const char *ids, uint64_t memory)
{
    gs_partition_options o = test_options("natural", 2, memory);
    o.force = true;
    o.warn = keep_warning;
    o.ids = ids;
    warnings[0] = '\0';
    return o;
}

static void put_text(const char *path, const char *text) { gs_test_write_file(path, text, strlen(text)); }

/* What gs_write_ids() makes of the store, which is what it keeps. */
static char *ids_of(const char *dir)
{
    char *text = NULL;
    uint64_t n = 0;

    unlink(gs_test_path(dir, "ids.txt"));
    gs_assert_ok(gs_write_ids(gs_test_path(dir, "s"), gs_test_path(dir, "ids.txt")));
    gs_assert_ok(gs_file_read_all(&text, &n, gs_test_path(dir, "ids.txt"), GS_GIB));
    return text;
}

static void expect_ids(const char *dir, const char *want)
{
    char *const got = ids_of(dir);
    assert_string_equal(got, want);
    gs_free(got);
}

static void test_ids__names_are_numbered_shortest_first(void **state)
{
    static const char *const texts[] = {
        "bob alice\nalice \xc3\xa9va\n# a comment\n\nbob bob\n",
        "# words\nbob\talice\nalice\t\xc3\xa9va\nbob bob",
    };
    edge edges[] = {{0, 2, 0, 0}, {2, 1, 0, 0}, {0, 0, 0, 0}}; /* bob, eva, alice: 3, 4 and 5 bytes */
    edge_list want = {edges, 3};
    char *const path = strdup(gs_test_path(*state, "edges"));

    sort_edges(&want);
    for (size_t i = 0; i < GS_ARRAY_LEN(texts); i++) {
        gs_partition_options o = options(NULL, 8 * GS_MIB);
        gs_store_summary s;
        put_text(path, texts[i]);
        gs_store_close(partition_and_check(path, gs_test_path(*state, "s"), &o, &want, 3, NULL));
        assert_non_null(strstr(warnings, "'bob' is no number"));
        expect_ids(*state, "bob\n\xc3\xa9va\nalice\n");
        gs_assert_ok(gs_inspect(&s, gs_test_path(*state, "s")));
        assert_int_equal(s.name_bytes, 15);
        gs_assert_ok(gs_verify(gs_test_path(*state, "s"), 0));
    }
    free(path);
}

static void test_ids__columns_may_hold_names(void **state)
{
    edge edges[] = {{1, 0, 2, 0.5f}, {0, 2, 1, 2}};
    edge_list want = {edges, 2};
    gs_partition_options o = options(NULL, 8 * GS_MIB);

    sort_edges(&want);
    put_text(gs_test_path(*state, "e.csv"), "src,what,dst,weight,type\n\"b, c\",1,aa,0.5,2\n\"aa\",2,ddddd,2,1\n");
    gs_store_close(partition_and_check(gs_test_path(*state, "e.csv"), gs_test_path(*state, "s"), &o, &want, 3, NULL));
    expect_ids(*state, "aa\nb, c\nddddd\n");
    char *const first = strstr(warnings, "'what' is not read");
    assert_non_null(first);
    assert_null(strstr(first + 1, "'what' is not read")); /* said once, though the text is read twice */
}

/* Numbers are in their own order, whatever their number of digits. */
static void test_ids__large_numbers_are_compacted(void **state)
{
    edge edges[] = {{3, 0, 0, 0}, {2, 1, 0, 0}, {1, 3, 0, 0}};
    edge_list want = {edges, 3};
    gs_partition_options o = options(NULL, 8 * GS_MIB);

    sort_edges(&want);
    put_text(gs_test_path(*state, "e"), "18446744073709551615 9\n4294967296 10\n10 18446744073709551615\n");
    gs_store_close(partition_and_check(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, &want, 4, NULL));
    expect_ids(*state, "9\n10\n4294967296\n18446744073709551615\n");
}

static void test_ids__sparse_numbers_are_compacted_and_dense_ones_kept(void **state)
{
    edge edges[] = {{1, 0, 0, 0}, {0, 2, 0, 0}};
    edge_list want = {edges, 2};
    gs_partition_options o = options(NULL, 8 * GS_MIB);
    gs_store_summary s;

    sort_edges(&want);
    put_text(gs_test_path(*state, "e"), "70 7\n7 4000000\n");
    gs_store_close(partition_and_check(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, &want, 3, NULL));
    assert_non_null(strstr(warnings, "the largest id is 4000000, and there are 2 edges"));
    put_text(gs_test_path(*state, "e"), "70 7\n7 100\n");
    gs_assert_ok(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, NULL));
    gs_assert_ok(gs_inspect(&s, gs_test_path(*state, "s")));
    assert_int_equal(s.vertices, 101);
    assert_int_equal(s.name_bytes, 0);
    o = options("compact", 8 * GS_MIB);
    gs_assert_ok(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, NULL));
    expect_ids(*state, "7\n70\n100\n");
    assert_string_equal(warnings, "");
}

static void test_ids__keep_refuses_what_is_no_number(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"0 1\n1 x\n", "line 2, column 3: expected the destination id, a whole number"},
        {"0 1\n4294967294 1\n", "line 2, column 1: the source id is outside 0 to 4294967293"},
        {"0 1\n1\n", "line 2, column 2: expected the destination id"},
        {"0 1x\n", "line 1, column 4: a number ends"},
    };
    gs_partition_options o = options("keep", 8 * GS_MIB);

    for (size_t i = 0; i < GS_ARRAY_LEN(cases); i++) {
        put_text(gs_test_path(*state, "e"), cases[i].text);
        gs_assert_fails(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, NULL), GS_EFORMAT,
                        cases[i].part);
    }
    o.ids = "some";
    gs_assert_fails(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, NULL), GS_EINVAL,
                    ".ids some: is neither keep nor compact");
    o.ids = NULL;
    put_text(gs_test_path(*state, "e"), "0 1\n1\n");
    gs_assert_fails(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, NULL), GS_EFORMAT,
                    "expected the destination id");
    put_text(gs_test_path(*state, "e.csv"), "src,dst\na,b\n,c\n");
    gs_assert_fails(gs_partition(gs_test_path(*state, "e.csv"), gs_test_path(*state, "s"), &o, NULL), GS_EFORMAT,
                    "line 3, column 1: the source id is empty");
}

#define MANY 30000u

static int compare_names(const void *a, const void *b)
{
    const char *const p = a, *const q = b;
    const size_t n = strlen(p), m = strlen(q);
    return n != m ? (n > m) - (n < m) : strcmp(p, q);
}

/* Names of 1 to 24 letters from a number, no two alike. */
static void name_of(char out[32], uint32_t k)
{
    const uint32_t mixed = k * 2654435761u;
    int n = 0;
    for (uint32_t rest = k; rest > 0 || n == 0; rest /= 26)
        out[n++] = (char)('a' + rest % 26);
    out[n++] = '_';
    for (uint32_t i = 0; i < mixed % 16; i++)
        out[n++] = (char)('A' + (mixed >> i) % 26);
    out[n] = '\0';
}

/* More names than memory holds at a time: sorted in runs, with the same result as with room for all. */
static void test_ids__many_names_within_little_memory(void **state)
{
    static char names[MANY][32];
    char *const path = strdup(gs_test_path(*state, "edges"));
    FILE *const f = fopen(path, "w");

    assert_non_null(f);
    for (uint32_t e = 0; e < 3 * MANY; e++) { /* each name in every third of the file */
        char u[32], v[32];
        name_of(u, e % MANY);
        name_of(v, (uint32_t)((e * 7919ull + 13) % MANY));
        fprintf(f, "%s %s\n", u, v);
    }
    assert_int_equal(fclose(f), 0);
    for (uint32_t k = 0; k < MANY; k++)
        name_of(names[k], k);
    qsort(names, MANY, sizeof(names[0]), compare_names);
    for (int way = 0; way < 2; way++) {
        gs_partition_options o = options("compact", way == 0 ? 64 * GS_MIB : 3 * GS_MIB);
        gs_store_summary s;
        o.parts = 8;
        gs_assert_ok(gs_partition(path, gs_test_path(*state, way == 0 ? "large" : "s"), &o, NULL));
        gs_assert_ok(gs_inspect(&s, gs_test_path(*state, way == 0 ? "large" : "s")));
        assert_int_equal(s.vertices, MANY);
    }
    assert_same_store(gs_test_path(*state, "large"), gs_test_path(*state, "s"));
    gs_assert_ok(gs_verify(gs_test_path(*state, "s"), 0));
    char *const got = ids_of(*state), *at = got;
    for (uint32_t k = 0; k < MANY; k++) {
        char *const end = strchr(at, '\n');
        assert_non_null(end);
        *end = '\0';
        assert_string_equal(at, names[k]);
        at = end + 1;
    }
    gs_free(got);
    free(path);
}

/* Numbers from 0 without gaps are the same store but for the map, kept or compacted. */
static void test_ids__dense_numbers_compact_to_themselves(void **state)
{
    static const char *const same[] = {"edges.dest.bin", "edges.source.bin", "chunks.bin", "input_id.bin",
                                       "in_degree.bin", "out_degree.bin"};
    edge_list list = random_graph(3000, 9000, 4, false, false);
    FILE *const f = fopen(gs_test_path(*state, "e"), "w");

    assert_non_null(f);
    for (uint32_t v = 0; v < 3000; v++)
        fprintf(f, "%u %u\n", v, (v + 1) % 3000);
    for (size_t e = 0; e < list.count; e++)
        fprintf(f, "%u %u\n", list.at[e].u, list.at[e].v);
    assert_int_equal(fclose(f), 0);
    for (int way = 0; way < 2; way++) {
        gs_partition_options o = options(way == 0 ? "keep" : "compact", 16 * GS_MIB);
        o.method = "fennel";
        o.parts = 4;
        gs_assert_ok(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, way == 0 ? "a" : "b"), &o, NULL));
    }
    for (size_t i = 0; i < GS_ARRAY_LEN(same); i++) {
        char *a = NULL, *b = NULL;
        uint64_t n = 0, m = 0;
        gs_assert_ok(gs_file_read_all(&a, &n, gs_test_path(*state, "a/%s", same[i]), GS_GIB));
        gs_assert_ok(gs_file_read_all(&b, &m, gs_test_path(*state, "b/%s", same[i]), GS_GIB));
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        gs_free(a);
        gs_free(b);
    }
    edges_free(&list);
}

static void test_ids__verify_looks_at_the_names(void **state)
{
    gs_partition_options o = options(NULL, 8 * GS_MIB);
    char *bytes = NULL, *const names = strdup(gs_test_path(*state, "s/names.bin"));
    uint64_t n = 0;

    put_text(gs_test_path(*state, "e"), "bob alice\nalice eve\n");
    gs_assert_ok(gs_partition(gs_test_path(*state, "e"), gs_test_path(*state, "s"), &o, NULL));
    gs_assert_ok(gs_file_read_all(&bytes, &n, names, GS_GIB));
    assert_int_equal(n, 4096);
    bytes[1] = 'i';
    gs_test_write_file(names, bytes, n);
    gs_assert_fails(gs_verify(gs_test_path(*state, "s"), 0), GS_EFORMAT, "names.bin: checksum mismatch");
    gs_assert_fails(gs_write_ids(gs_test_path(*state, "s"), gs_test_path(*state, "out")), GS_EFORMAT,
                    "names.bin: checksum mismatch");
    assert_gone(gs_test_path(*state, "out"));
    bytes[1] = 'o';
    bytes[4000] = 'x';
    gs_test_write_file(names, bytes, n);
    gs_assert_fails(gs_verify(gs_test_path(*state, "s"), 0), GS_EFORMAT, "padding is not zero");
    unlink(names);
    gs_assert_fails(gs_verify(gs_test_path(*state, "s"), 0), GS_EFORMAT, "names.bin: missing");
    gs_free(bytes);
    free(names);
}

#define T(name) cmocka_unit_test_setup_teardown(name, gs_test_temp_setup, gs_test_temp_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_ids__names_are_numbered_shortest_first),
        T(test_ids__columns_may_hold_names),
        T(test_ids__large_numbers_are_compacted),
        T(test_ids__sparse_numbers_are_compacted_and_dense_ones_kept),
        T(test_ids__keep_refuses_what_is_no_number),
        T(test_ids__many_names_within_little_memory),
        T(test_ids__dense_numbers_compact_to_themselves),
        T(test_ids__verify_looks_at_the_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
