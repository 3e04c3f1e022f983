/* Malice: stores whose checksums are right and whose contents are not. Each is
 * refused when it is opened or verified, with a text that says where and what. */
#include "tiny_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

typedef struct forgery {
    const char *from, *to, *text;
} forgery;

/* Of three columns. */
#define NAMED(list) "\"version\":\t7,\"edge_features\":0,\"edge_feature_type\":\"f32\",\"named_features\":[" list \
                    "],\"named_edge_features\":[]"

static const forgery manifests[] = {
    {"\"version\":\t2", NAMED(""), "no feature has a name"},
    {"\"version\":\t2", NAMED("{\"name\":\"a\",\"columns\":4}"), "names have more columns than there are"},
    {"\"version\":\t2", NAMED("{\"name\":\"a\",\"columns\":2},{\"name\":\"b\",\"columns\":2}"),
     "features with names have more columns than there are"},
    {"\"version\":\t2", NAMED("{\"name\":\"a\",\"columns\":1},{\"name\":\"a\",\"columns\":1}"),
     "two features have one name"},
    {"\"version\":\t2", NAMED("{\"name\":\"type\",\"columns\":1}"), "a feature's name is not of letters"},
    {"\"version\":\t2", NAMED("{\"name\":\"a\",\"columns\":1,\"first\":2}"), "\"named_features.first\" is unknown"},
    {"\"version\":\t2", "\"version\":\t8,\"edge_features\":0,\"edge_feature_type\":\"f32\"",
     "types of edges have no names"},
    {"\"arrays\":\t{", "\"arrays\":\t{\"edge_type_names\":{\"type\":\"u8\",\"width\":1,\"bytes\":6},",
     "types of edges have no names"},
    {"\"version\":\t2", "\"version\":\t9", "store version 9, but this program reads versions 1 to 8"},
    {"\"version\":\t2", "\"version\":\t0", "store version 0, but"},
    {"\"version\":\t2", "\"version\":\t1", "chunk (0, 0) by destination has a number of targets"},
    {"\"version\":\t2,", "", "\"version\" is missing"},
    {"\"gnnstream store\"", "\"other\"", "this is no store"},
    {"\"vertices\":\t5", "\"vertices\":\t0", "\"vertices\" is 0, not a whole number"},
    {"\"vertices\":\t5", "\"vertices\":\t5.5", "\"vertices\" is 5.5, not a whole number"},
    {"\"vertices\":\t5", "\"vertices\":\t-5", "\"vertices\" is -5, not a whole number"},
    {"\"vertices\":\t5", "\"vertices\":\t1e999", "\"vertices\" is inf, not a whole number"},
    {"\"vertices\":\t5", "\"vertices\":\t-1e999", "\"vertices\" is -inf, not a whole number"},
    {"\"vertices\":\t5", "\"vertices\":\t4294967296", "\"vertices\" is 4294967296, not a whole number"},
    {"\"vertices\":\t5", "\"vertices\":\tNaN", "not a JSON object"},
    {"\"vertices\":\t5", "\"vertices\":\t\"5\"", "\"vertices\" is not a number"},
    {"\"vertices\":\t5", "\"vertices\":\tnull", "\"vertices\" is not a number"},
    {"\"vertices\":\t5", "\"vertices\":\t[5]", "\"vertices\" is not a number"},
    {"\"vertices\":\t5", "\"vertices\":\t6",
     "features.bin: checksum mismatch"}, /* no file gets longer by a row */
    {"\"vertices\":\t5", "\"vertices\":\t5, \"vertices\":\t5", "\"vertices\" is unknown or there twice"},
    {"\"vertices\":\t5", "\"vertices\":\t5, \"Vertices\":\t5", "\"Vertices\" is unknown or there twice"},
    {"\"vertices\":\t5", "\"vertices\":\t5, \"colour\":\t\"red\"", "\"colour\" is unknown or there twice"},
    {"\"edges\":\t9", "\"edges\":\t9007199254740993", "have 9 edges, the manifest 9007199254740992"},
    {"\"edges\":\t9", "\"edges\":\t1e300", "\"edges\" is"},
    {"\"edges\":\t9", "\"edges\":\t10", "have 9 edges, the manifest 10"},
    {"\"edges\":\t9", "\"edges\":\t0", "is above \"edges\""},
    {"\"parts\":\t2", "\"parts\":\t3", "do not cut"},
    {"\"parts\":\t2", "\"parts\":\t1", "do not cut"},
    {"\"parts\":\t2", "\"parts\":\t65536", "do not cut"},
    {"\"parts\":\t2", "\"parts\":\t4294967297", "\"parts\" is 4294967297"},
    {"\"interval_rows\":\t3", "\"interval_rows\":\t5", "do not cut"},
    {"\"interval_rows\":\t3", "\"interval_rows\":\t2", "do not cut"},
    {"\"interval_rows\":\t3", "\"interval_rows\":\t4",
     "chunk (0, 1) by destination has a number of operands"},
    {"\"symmetric\":\tfalse", "\"symmetric\":\t0", "\"symmetric\" is neither true nor false"},
    {"\"symmetric\":\tfalse", "\"symmetric\":\ttrue", "not mirror images"},
    {"\"shared_edges\":\tfalse", "\"shared_edges\":\ttrue", "not symmetric"},
    {"\"weights\":\tfalse", "\"weights\":\ttrue", "carry other types, weights or features"},
    {"\"edge_types\":\t0", "\"edge_types\":\t3", "\"type_bytes\" does not fit"},
    {"\"type_bytes\":\t0", "\"type_bytes\":\t4", "\"type_bytes\" is 4"},
    {"\"max_in_degree\":\t3", "\"max_in_degree\":\t4", "\"max_in_degree\" is 4, but the edges give 3"},
    {"\"max_out_degree\":\t2", "\"max_out_degree\":\t3", "\"max_out_degree\" is 3, but the edges give 2"},
    {"\"features\":\t3", "\"features\":\t16777216", "the array of features disagree"},
    {"\"features\":\t3", "\"features\":\t0", "\"feature_id\""},
    {"\"feature_type\":\t\"f32\"", "\"feature_type\":\t\"i32\"", "is not f32, bf16 or f16"},
    {"\"feature_type\":\t\"f32\"", "\"feature_type\":\t\"x\"", "is no element type"},
    {"\"classes\":\t3", "\"classes\":\t0", "the array of labels disagree"},
    {"\"classes\":\t3", "\"classes\":\t1", "labels.bin: row 1: is no label"},
    {"\"train\":\t1", "\"train\":\t2", "split.bin: 1 rows of split 1, but the manifest says 2"},
    {"\"train\":\t1", "\"train\":\t5", "more than \"vertices\""},
    {"\"self_loops\":\t1", "\"self_loops\":\t2", "\"self_loops\" is 2, but the edges give 1"},
    {"\"self_loops\":\t1", "\"self_loops\":\t0", "the array of loops disagree"},
    {"\"natural\"", "\"nat\\u001b[2J\"", "\"method\" has a character"},
    {"\"natural\"", "\"naturalnaturalnatural\"", "\"method\" is not a string of fewer than 16"},
    {"\"natural\"", "7", "\"method\" is not a string"},
    {"\"fedcba9876543210\"", "\"FEDCBA9876543210\"", "\"seed\" is not 16 lower-case hex digits"},
    {"\"fedcba9876543210\"", "\"fedcba987654321\"", "\"seed\" is not 16 lower-case hex digits"},
    {"\"edges_dest_bytes\":\t12288", "\"edges_dest_bytes\":\t16384",
     "edges.dest.bin: has 12288 bytes instead of 16384"},
    {"\"edges_dest_bytes\":\t12288", "\"edges_dest_bytes\":\t8192",
     "edges.dest.bin: has 12288 bytes instead of 8192"},
    {"\"edges_dest_bytes\":\t12288", "\"edges_dest_bytes\":\t12289", "not a multiple of 4096"},
    {"\"arrays\":\t{", "\"arrays\":\t{\"x\": 1,", "\"arrays.x\" is unknown"},
    {"\"arrays\":\t{", "\"arrays\":\t[{", "not a JSON object"},
    {"\"width\":\t1", "\"width\":\t2", "another width than"},
    {"\"width\":\t3", "\"width\":\t0", "\"arrays.features.width\" is 0"},
    {"\"width\":\t3", "\"width\":\t3, \"width\":\t3", "\"arrays.features.width\" is unknown or there twice"},
    {"\"type\":\t\"i32\"", "\"type\":\t\"u32\"", "another element type than"},
    {"\"loops\":\t{", "\"Loops\":\t{", "\"arrays.Loops\" is unknown"},
    {"{", "", "not a JSON object"},
    {"{", "[[[[[[[[", "not a JSON object"},
};

static void test_store__forged_manifests_are_refused(void **state)
{
    const char *dir = *state;
    size_t bytes;
    tiny_write(dir, &tiny_plain);
    unsigned char *whole = tiny_read(dir, "manifest.json", &bytes);
    for (size_t k = 0; k < GS_ARRAY_LEN(manifests); k++) {
        const forgery *f = &manifests[k];
        tiny_forge_manifest(dir, f->from, f->to);
        const gs_status st = tiny_open_and_verify(dir);
        if (st != GS_EFORMAT || strstr(gs_last_error(), f->text) == NULL ||
            strncmp(gs_last_error(), dir, strlen(dir)) != 0)
            fail_msg("%s -> %s: %s: \"%s\" instead of \"%s\"", f->from, f->to, gs_status_text(st),
                     gs_last_error(), f->text);
        tiny_replace(dir, "manifest.json", whole, bytes);
    }
    free(whole);
}

/* Any one key gone: named. Keys of the top level stand one a line. */
static void test_store__each_key_is_needed(void **state)
{
    const char *dir = *state;
    size_t bytes, keys = 0;
    tiny_write(dir, &tiny_plain);
    unsigned char *whole = tiny_read(dir, "manifest.json", &bytes);
    for (const char *line = strstr((char *)whole, "\n\t\""); line != NULL;
         line = strstr(line + 1, "\n\t\"")) {
        const size_t key = strcspn(line + 3, "\"");
        char from[80], to[80], text[80];
        if (strncmp(line + 3, "checksum", key) == 0)
            break; /* the seal itself: test_corrupt.c */
        snprintf(from, sizeof(from), "\t\"%.*s\"", (int)key, line + 3);
        snprintf(to, sizeof(to), "\t\"was_%.*s\"", (int)key, line + 3);
        snprintf(text, sizeof(text), "\"%.*s\" is missing", (int)key, line + 3);
        tiny_forge_manifest(dir, from, to);
        gs_assert_fails(tiny_open_and_verify(dir), GS_EFORMAT, text);
        tiny_replace(dir, "manifest.json", whole, bytes);
        keys++;
    }
    assert_int_equal(keys, 28);
    free(whole);
}

/* Each field of each record of the chunk table, to values that matter. */
static void test_store__forged_chunk_tables_are_refused(void **state)
{
    static const uint64_t values[] = {0,          1,          3,          4096,      4097,
                                      0xFFFFFFFF, 1ull << 32, 1ull << 63, UINT64_MAX - 4095};
    const char *dir = *state;
    size_t bytes, manifest_bytes;
    tiny_write(dir, &tiny_plain);
    unsigned char *manifest = tiny_read(dir, "manifest.json", &manifest_bytes);
    unsigned char *table = tiny_read(dir, "chunks.bin", &bytes);
    assert_int_equal(bytes, 8 * 48);
    for (size_t at = 0; at < bytes; at += 8)
        for (size_t k = 0; k < GS_ARRAY_LEN(values); k++) {
            char chunk[32] = "chunk";
            const bool checksum = at % 48 == 24, empty = at / 48 % 4 == 3;
            if (memcmp(table + at, &values[k], 8) == 0)
                continue;
            tiny_forge(dir, "chunks.bin", at, &values[k], 8);
            if (at % 48 < 16 || checksum) /* counts may be possible for the chunk, but not for the whole */
                snprintf(chunk, sizeof(chunk), "chunk (%zu, %zu)", at / 48 % 4 / 2, at / 48 % 2);
            const uint64_t live = gs_alloc_live_bytes();
            const gs_status st = tiny_open_and_verify(dir);
            /* Only the verifier can tell a wrong checksum of a chunk; it names the edge file then. */
            const char *file = checksum && !empty ? ".bin: chunk" : "chunks.bin: chunk";
            if (st != GS_EFORMAT || strstr(gs_last_error(), file) == NULL ||
                strstr(gs_last_error(), chunk) == NULL)
                fail_msg("byte %zu = %llx: %s: \"%s\"", at, (unsigned long long)values[k], gs_status_text(st),
                         gs_last_error());
            assert_int_equal(gs_alloc_live_bytes(), live);
            tiny_replace(dir, "chunks.bin", table, bytes);
            tiny_replace(dir, "manifest.json", manifest, manifest_bytes);
        }
    free(table);
    free(manifest);
}

/* The largest degree, which stands above the targets. */
static void test_store__impossible_degrees_are_refused(void **state)
{
    static const uint32_t values[] = {0, 1, 4, 0xFFFFFFFF}; /* chunk (0, 0) has 4 edges and 2 targets */
    const char *dir = *state;
    tiny_write(dir, &tiny_plain);
    for (size_t k = 0; k < GS_ARRAY_LEN(values); k++) {
        tiny_forge(dir, "chunks.bin", 36, &values[k], 4);
        gs_assert_fails(tiny_open_and_verify(dir), GS_EFORMAT,
                        "chunk (0, 0) by destination has a largest degree that its targets and its edges cannot have");
    }
    tiny_forge(dir, "chunks.bin", 36, &(uint32_t){3}, 4);
    tiny_forge(dir, "chunks.bin", 3 * 48 + 36, &(uint32_t){1}, 4); /* of no edges */
    gs_assert_fails(tiny_open_and_verify(dir), GS_EFORMAT, "chunk (1, 1) by destination has no edges, but");
}

/* A store as the first version wrote it opens, and says nothing of degrees. */
static void test_store__version_1_is_read(void **state)
{
    const char *dir = *state;
    gs_store *s = NULL;
    tiny_write(dir, &tiny_plain);
    for (size_t k = 0; k < 8; k++)
        tiny_forge(dir, "chunks.bin", k * 48 + 36, &(uint32_t){0}, 4);
    tiny_forge_manifest(dir, "\"version\":\t2", "\"version\":\t1");
    gs_assert_ok(tiny_open_and_verify(dir));
    gs_assert_ok(gs_store_open(&s, dir));
    for (int d = 0; d < 2; d++)
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(gs_store_chunks(s)->chunk[d][k].largest, 0);
    assert_int_equal(gs_store_chunks(s)->chunk[0][0].targets, 2);
    gs_store_close(s);
    tiny_forge(dir, "chunks.bin", 36, &(uint32_t){3}, 4);
    gs_assert_fails(tiny_open_and_verify(dir), GS_EFORMAT, "chunk (0, 0) by destination has a number of targets");
}

typedef struct patch {
    const tiny_graph *graph;
    const char *file;
    size_t offset, bytes;
    uint64_t value;
    const char *text;
} patch;

/* Offsets: docs/format.md. Chunk (0, 0) of the plain graph by destination has 4 edges at byte 0:
 * targets at 32, starts at 48, index at 64, operands at 80; chunk (1, 0) is at byte 8192. */
static const patch patches[] = {
    {&tiny_plain, "edges.dest.bin", 0, 1, 'X', "chunk (0, 0) by destination: does not start with \"GSCH\""},
    {&tiny_plain, "edges.dest.bin", 4, 4, 4, "chunk (0, 0) by destination: indices of 4 bytes instead of 2"},
    {&tiny_plain, "edges.dest.bin", 8, 4, 3,
     "its header counts 4 edges, 3 targets, 3 operands, the chunk table 4, 2, 3"},
    {&tiny_plain, "edges.dest.bin", 12, 4, 2, "its header counts"},
    {&tiny_plain, "edges.dest.bin", 16, 8, UINT64_MAX, "its header counts"},
    {&tiny_plain, "edges.dest.bin", 24, 4, 1, "carry other types, weights or features"},
    {&tiny_plain, "edges.dest.bin", 24, 4, 3, "edge types of 3 bytes"},
    {&tiny_plain, "edges.dest.bin", 28, 4, 2, "carry other types, weights or features"},
    {&tiny_plain, "edges.dest.bin", 32, 2, 1, "list of targets is not ascending"},
    {&tiny_plain, "edges.dest.bin", 34, 2, 3, "list of targets has row 3 of an interval of 3 rows"},
    {&tiny_plain, "edges.dest.bin", 48, 4, 1, "its starts do not ascend"},
    {&tiny_plain, "edges.dest.bin", 52, 4, 0, "its starts do not ascend"},
    {&tiny_plain, "edges.dest.bin", 52, 4, 0xFFFFFFFF, "its starts do not ascend"},
    {&tiny_plain, "edges.dest.bin", 56, 4, 5, "its starts do not ascend"},
    {&tiny_plain, "edges.dest.bin", 64, 2, 3, "an edge names operand row 3 of an interval of 3 rows"},
    {&tiny_plain, "edges.dest.bin", 64, 2, 0xFFFF, "an edge names operand row 65535"},
    {&tiny_plain, "edges.dest.bin", 66, 2, 2, "edges of a target row are not in ascending order"},
    {&tiny_plain, "edges.dest.bin", 80, 2, 2, "list of operands is not ascending"},
    {&tiny_plain, "edges.dest.bin", 84, 2, 3, "list of operands has row 3"},
    {&tiny_plain, "edges.dest.bin", 64, 2, 2,
     "chunk (0, 0) by destination and (0, 0) by source hold different edges"},
    {&tiny_plain, "edges.dest.bin", 4096 + 52, 4, 1, "in_degree.bin: row 0 says 3, but it has 2 such edges"},
    {&tiny_plain, "edges.dest.bin", 36, 1, 1, "chunk (0, 0) by destination: its padding is not zero"},
    {&tiny_plain, "edges.dest.bin", 95, 1, 1, "its padding is not zero"},
    {&tiny_plain, "edges.dest.bin", 8192 + 80, 2, 1,
     "chunk (1, 0) by destination: its list of operands is not what"},
    {&tiny_plain, "edges.dest.bin", 12287, 1, 1, "chunk (1, 0) by destination: its padding is not zero"},
    {&tiny_plain, "edges.source.bin", 64, 2, 9,
     "edges.source.bin: chunk (0, 0) by source: an edge names operand row 9"},
    /* chunk (0, 0): 3 edges into row 1, one into row 0; two rows may have 2 and 2 */
    {&tiny_plain, "chunks.bin", 36, 4, 2, "by destination: its largest target has 3 edges, the chunk table says 2"},
    {&tiny_plain, "in_degree.bin", 8, 4, 0x40000000, "in_degree.bin: row 2 says 2, but it has 1 such edges"},
    {&tiny_plain, "in_degree.bin", 12, 4, 0x7FC00000,
     "in_degree.bin: row 3 says nan, but it has 1 such edges"},
    {&tiny_plain, "out_degree.bin", 16, 4, 0, "out_degree.bin: row 4 says 0, but it has 1 such edges"},
    {&tiny_plain, "loops.bin", 8, 4, 0x3F800000, "loops.bin: row 2 says 1, but it has 0 such edges"},
    {&tiny_plain, "labels.bin", 4, 4, 3, "labels.bin: row 1: is no label"},
    {&tiny_plain, "labels.bin", 4, 4, 0xFFFFFFFE, "labels.bin: row 1: is no label"},
    {&tiny_plain, "split.bin", 4, 1, 4, "split.bin: row 4: the split is not"},
    {&tiny_plain, "split.bin", 4, 1, 2, "split.bin: 2 rows of split 2, but the manifest says 1"},
    {&tiny_plain, "input_id.bin", 16, 4, 4, "input_id.bin: row 4: the input id"},
    {&tiny_plain, "input_id.bin", 0, 4, 5, "input_id.bin: row 0: the input id"},
    {&tiny_plain, "input_id.bin", 0, 4, 0xFFFFFFFF, "input_id.bin: row 0: the input id"},
    {&tiny_plain, "features.bin", 20, 4, 0x7FC00000, "features.bin: row 1: a feature is not finite"},
    {&tiny_plain, "features.bin", 56, 4, 0xFF800000, "features.bin: row 4: a feature is not finite"},
    {&tiny_plain, "features.bin", 60, 1, 1, "features.bin: byte 60 of the padding is not zero"},
    {&tiny_plain, "features.bin", 4095, 1, 1, "features.bin: byte 4095 of the padding is not zero"},
    {&tiny_rich, "features.bin", 24, 2, 0x7F81, "features.bin: row 6: a feature is not finite"},
    {&tiny_symmetric, "features.bin", 6, 2, 0xFC00, "features.bin: row 1: a feature is not finite"},
    /* chunk (0, 1): targets 0, 2 from 4, 3. Exchanged: the degrees stay, the mirror image does not. */
    {&tiny_symmetric, "edges.dest.bin", 4096 + 64, 4, 0x10000,
     "chunks (0, 1) and (1, 0) are not mirror images"},
    {&tiny_symmetric, "out_degree.bin", 0, 4, 0, "out_degree.bin: row 0 says 0, but it has 2 such edges"},
    /* chunk (0, 0) of the rich graph: edges of types 0, 1, 2 into row 1; types at 96, weights at 112. */
    {&tiny_rich, "edges.dest.bin", 96, 1, 2, "edges of a target row are not in ascending order"},
    {&tiny_rich, "edges.dest.bin", 98, 1, 3, "the type of an edge is out of range"},
    {&tiny_rich, "edges.dest.bin", 112, 4, 0x7F800000, "the weight of an edge is not finite"},
    {&tiny_rich, "edges.dest.bin", 112, 4, 0x40000000, "(0, 0) by source hold different edges"},
};

typedef struct saved_file {
    const char *name;
    unsigned char *data;
    size_t bytes;
} saved_file;

/* One forgery in a whole store, which is whole again afterwards. */
static void refuse_patch(const char *dir, const patch *p)
{
    saved_file saved[] = {
        {.name = p->file}, {.name = "chunks.bin"}, {.name = "sums.bin"}, {.name = "manifest.json"}};
    gs_store *s = NULL;
    for (size_t k = 0; k < GS_ARRAY_LEN(saved); k++)
        saved[k].data = tiny_read(dir, saved[k].name, &saved[k].bytes);
    tiny_forge(dir, p->file, p->offset, &p->value, p->bytes);
    gs_assert_ok(gs_store_open(&s, dir)); /* no table is wrong */
    const gs_status st = gs_store_verify(s, GS_MIB);
    if (st != GS_EFORMAT || strstr(gs_last_error(), p->text) == NULL ||
        strncmp(gs_last_error(), dir, strlen(dir)) != 0)
        fail_msg("%s at %zu: %s: \"%s\" instead of \"%s\"", p->file, p->offset, gs_status_text(st),
                 gs_last_error(), p->text);
    gs_store_close(s);
    for (size_t k = 0; k < GS_ARRAY_LEN(saved); k++) {
        tiny_replace(dir, saved[k].name, saved[k].data, saved[k].bytes);
        free(saved[k].data);
    }
}

static void test_verify__forged_contents_are_refused(void **state)
{
    static const tiny_graph *const graphs[] = {&tiny_plain, &tiny_symmetric, &tiny_rich};
    size_t done = 0;
    for (size_t g = 0; g < GS_ARRAY_LEN(graphs); g++) {
        char dir[512];
        snprintf(dir, sizeof(dir), "%s/%zu", (char *)*state, g);
        tiny_write(dir, graphs[g]);
        for (size_t k = 0; k < GS_ARRAY_LEN(patches); k++)
            if (patches[k].graph == graphs[g]) {
                refuse_patch(dir, &patches[k]);
                done++;
            }
        gs_assert_ok(tiny_open_and_verify(dir));
    }
    assert_int_equal(done, GS_ARRAY_LEN(patches));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, gs_test_temp_setup, gs_test_temp_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_store__forged_manifests_are_refused),
        TEST(test_store__each_key_is_needed),
        TEST(test_store__forged_chunk_tables_are_refused),
        TEST(test_store__impossible_degrees_are_refused),
        TEST(test_store__version_1_is_read),
        TEST(test_verify__forged_contents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
