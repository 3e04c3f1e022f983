/* docs/format.md is true: its example is, byte for byte, what the writer makes,
 * and a decoder written from its text alone finds the example's edges in it. */
#include "tiny_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"

#define DOCUMENT GS_TEST_SOURCE_ROOT "/docs/format.md"

static char *document;

static int load_document(void **state)
{
    size_t bytes;
    (void)state;
    document = (char *)tiny_read(GS_TEST_SOURCE_ROOT, "docs/format.md", &bytes);
    return 0;
}

static int free_document(void **state)
{
    (void)state;
    free(document);
    return 0;
}

/* What stands between "```FENCE\n" and "```", in a new string. */
static char *block(const char *fence)
{
    char open[64];
    snprintf(open, sizeof(open), "\n```%s\n", fence);
    const char *from = strstr(document, open);
    if (from == NULL)
        fail_msg(DOCUMENT ": no block \"%s\"", fence);
    from += strlen(open);
    const char *to = strstr(from, "```");
    assert_non_null(to);
    return strndup(from, (size_t)(to - from));
}

/* The bytes of a `hexdump -C`: lines of an offset and 16 bytes, "*" for "as the line before". */
static unsigned char *hex_block(const char *name, size_t *bytes)
{
    char fence[64];
    snprintf(fence, sizeof(fence), "hexdump %s", name);
    char *text = block(fence), *rest = text;
    unsigned char *data = calloc(1, 1 << 16), last[16] = {0};
    size_t at = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
        char *end;
        if (*line == '*')
            continue;
        const size_t offset = strtoul(line, &end, 16);
        assert_true(offset <= 1 << 16);
        for (; at < offset; at += 16)
            memcpy(data + at, last, 16);
        for (int k = 0; k < 16; k++) {
            char *next;
            const unsigned long v = strtoul(end, &next, 16);
            if (next == end || *end != ' ' || end[strspn(end, " ")] == '|')
                break;
            data[at++] = last[k] = (unsigned char)v;
            end = next;
        }
    }
    *bytes = at;
    free(text);
    return data;
}

static void test_format__example_is_what_the_writer_makes(void **state)
{
    static const char *const names[] = {"chunks.bin",     "sums.bin",   "edges.dest.bin", "edges.source.bin",
                                        "features.bin",   "labels.bin", "split.bin",      "in_degree.bin",
                                        "out_degree.bin", "loops.bin",  "input_id.bin"};
    const char *dir = *state;
    size_t real_bytes, bytes;
    tiny_write(dir, &tiny_plain);
    for (size_t k = 0; k < GS_ARRAY_LEN(names); k++) {
        unsigned char *real = tiny_read(dir, names[k], &real_bytes), *said = hex_block(names[k], &bytes);
        if (bytes != real_bytes)
            fail_msg("%s: %zu bytes in the document, %zu in the store", names[k], bytes, real_bytes);
        for (size_t b = 0; b < bytes; b++)
            if (said[b] != real[b])
                fail_msg("%s: byte %zx is %02x in the document, %02x in the store", names[k], b, said[b],
                         real[b]);
        free(real);
        free(said);
    }
    char *manifest = block("json manifest.json"),
         *real = (char *)tiny_read(dir, "manifest.json", &real_bytes);
    assert_string_equal(manifest, real);
    free(manifest);
    free(real);
}

static uint64_t word(const unsigned char *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned k = 0; k < bytes; k++)
        v |= (uint64_t)p[k] << (8 * k);
    return v;
}

static size_t up16(size_t v)
{
    return (v + 15) / 16 * 16;
}

/* Counts the edges u -> v of a chunk, by the tables of the document alone. */
static unsigned decode_chunk(const unsigned char *c, unsigned count[5][5], unsigned target_first,
                             unsigned operand_first, bool by_dest)
{
    assert_memory_equal(c, "GSCH", 4);
    const size_t ix = word(c + 4, 4), targets = word(c + 8, 4), operands = word(c + 12, 4),
                 edges = word(c + 16, 8);
    const size_t starts = up16(32 + ix * targets), index = up16(starts + 4 * (targets + 1));
    const size_t operand = up16(index + ix * edges);
    bool named[5] = {false};
    unsigned distinct = 0;
    for (size_t t = 0; t < targets; t++)
        for (size_t k = word(c + starts + 4 * t, 4); k < word(c + starts + 4 * t + 4, 4); k++) {
            const unsigned a = target_first + (unsigned)word(c + 32 + ix * t, (unsigned)ix);
            const unsigned b = operand_first + (unsigned)word(c + index + ix * k, (unsigned)ix);
            count[by_dest ? b : a][by_dest ? a : b]++;
            named[b] = true;
        }
    for (size_t k = 0; k < operands; k++)
        assert_true(named[operand_first + word(c + operand + ix * k, (unsigned)ix)]);
    for (unsigned v = 0; v < 5; v++)
        distinct += named[v];
    assert_int_equal(distinct, operands);
    return (unsigned)edges;
}

static void decode_direction(bool by_dest)
{
    unsigned count[5][5] = {{0}}, edges = 0, u, v;
    size_t bytes, table_bytes;
    unsigned char *file = hex_block(by_dest ? "edges.dest.bin" : "edges.source.bin", &bytes);
    unsigned char *table = hex_block("chunks.bin", &table_bytes);
    for (unsigned k = 0; k < 4; k++) {
        const unsigned char *record = table + (k + (by_dest ? 0 : 4)) * 48;
        const uint64_t offset = word(record, 8), length = word(record + 8, 8);
        assert_true(offset + length <= bytes);
        if (length == 0)
            continue;
        assert_true(gs_hash64(file + offset, length) == word(record + 24, 8));
        assert_int_equal(decode_chunk(file + offset, count, k / 2 * 3, k % 2 * 3, by_dest),
                         word(record + 16, 8));
        edges += (unsigned)word(record + 16, 8);
    }
    /* Strike out the edges that the document lists. */
    char *list = block("edges"), *rest = list;
    unsigned listed = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && sscanf(line, "%u -> %u", &u, &v) == 2;
         listed++) {
        assert_true(u < 5 && v < 5 && count[u][v] > 0);
        count[u][v]--;
    }
    assert_int_equal(listed, 9);
    assert_int_equal(edges, 9);
    for (u = 0; u < 5; u++)
        for (v = 0; v < 5; v++)
            assert_int_equal(count[u][v], 0);
    free(list);
    free(table);
    free(file);
}

static void test_format__example_decodes_to_its_edges(void **state)
{
    (void)state;
    decode_direction(true);
    decode_direction(false);
}

/* The rule of the seal: the last 20 bytes, and what they cover. */
static void test_format__manifest_checksum_is_as_described(void **state)
{
    char *text = block("json manifest.json"), digits[17];
    const size_t n = strlen(text);
    (void)state;
    snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)gs_hash64(text, n - 20));
    assert_memory_equal(text + n - 20, digits, 16);
    assert_string_equal(text + n - 4, "\"\n}\n");
    free(text);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_format__example_is_what_the_writer_makes),
        TEST(test_format__example_decodes_to_its_edges),
        TEST(test_format__manifest_checksum_is_as_described),
    };
    return cmocka_run_group_tests(tests, load_document, free_document);
}
