/* A manifest of any bytes is refused with a text or obeys the format.
 *
 * Each input is tried as it is (the checksum refuses nearly all) and with its
 * checksum made right, so that what is behind the checksum is reached. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "fuzz.h"
#include "store/store_internal.h"

/* What readers of an open store rely on; not taken from gs_manifest__check(). */
static void check_promises(const gs_manifest *m)
{
    const gs_store_info *i = &m->info;
    const gs_chunk_table t = {.vertices = i->vertices, .parts = i->parts, .interval_rows = i->interval_rows};
    uint64_t rows = 0, bytes = 0, total = 0;
    gs_fuzz_require(i->vertices >= 1 && i->vertices <= UINT32_MAX, "1 <= vertices < 2^32");
    gs_fuzz_require(i->parts >= 1 && i->interval_rows >= 1, "parts, interval_rows >= 1");
    gs_fuzz_require(gs_interval_first(&t, t.parts - 1) < t.vertices, "the last interval begins before the end");
    for (uint32_t k = 0; k < t.parts; k++)
        rows += gs_interval_rows(&t, k);
    gs_fuzz_require(rows == i->vertices, "intervals cover the vertices");
    gs_fuzz_require(m->data.type_bytes <= 2 && (m->data.type_bytes == 0) == (i->edge_types == 0), "type_bytes");
    gs_fuzz_require(strnlen(i->method, sizeof(i->method)) < sizeof(i->method), "method ends");
    gs_fuzz_require(i->train <= i->vertices && i->valid <= i->vertices && i->test <= i->vertices, "splits");
    for (unsigned k = GS_FILE_CHUNKS; k < GS_STORE_FILES; k++)
        if (gs_store__file_expected(m, k, &bytes))
            gs_fuzz_require(!__builtin_add_overflow(total, bytes, &total) && total < 1ull << 63,
                    "sizes of files add up");
    for (unsigned id = 0; id < GS_ARRAY_COUNT; id++)
        gs_fuzz_require(!m->array[id].present || (m->array[id].width >= 1 && m->array[id].dtype < GS_DTYPE_COUNT),
                "arrays");
}

static void try_text(const char *text, size_t size)
{
    gs_manifest m, again;
    char *printed = NULL;
    uint64_t bytes = 0;
    memset(&m, 0xEE, sizeof(m));
    const gs_status st = gs_manifest__parse(&m, text, size, "manifest.json");
    gs_fuzz_judge(st);
    if (st != GS_OK)
        return;
    check_promises(&m);
    /* Written again and read again it is the same. */
    gs_fuzz_require(gs_manifest__format(&printed, &bytes, &m) == GS_OK, "it can be written");
    gs_fuzz_require(gs_manifest__parse(&again, printed, bytes, "again") == GS_OK, "it can be read again");
    char *second = NULL;
    uint64_t second_bytes = 0;
    gs_fuzz_require(gs_manifest__format(&second, &second_bytes, &again) == GS_OK && second_bytes == bytes &&
                memcmp(printed, second, bytes) == 0,
            "it is the same after a round trip");
    gs_free(m.info.types);
    gs_free(again.info.types);
    gs_free(second);
    gs_free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= GS_MANIFEST_LIMIT)
        gs_fuzz_try_sealed(data, size, try_text);
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    gs_manifest m = {
        .version = GS_STORE_EDGE_FEATURES,
        .info = {.vertices = 111059956,
                 .edges = 1615685872,
                 .parts = 64,
                 .interval_rows = 1735312,
                 .features = 128,
                 .feature_type = GS_F16,
                 .edge_features = 3,
                 .edge_feature_type = GS_F16,
                 .classes = 172,
                 .train = 1207179,
                 .valid = 125265,
                 .test = 214338,
                 .max_in_degree = 26000,
                 .max_out_degree = 3000,
                 .feature_id = 0x0123456789ABCDEF,
                 .method = "fennel",
                 .seed = 7},
        .data = {.feature_bytes = 6},
        .edge_bytes = {4096 * 1000, 4096 * 1001},
        .chunks_checksum = 1,
        .sums_checksum = UINT64_MAX,
        .array = {[GS_ARRAY_FEATURES] = {true, GS_F16, 128},
                  [GS_ARRAY_LABELS] = {true, GS_I32, 1},
                  [GS_ARRAY_SPLIT] = {true, GS_U8, 1},
                  [GS_ARRAY_IN_DEGREE] = {true, GS_F32, 1},
                  [GS_ARRAY_OUT_DEGREE] = {true, GS_F32, 1},
                  [GS_ARRAY_INPUT_ID] = {true, GS_U32, 1}},
    };
    char *text = NULL;
    uint64_t bytes = 0;
    static gs_type_table types = {.types = 2, .relations = 1, .labelled = 1,
                                  .type = {{.name = "author", .vertices = 7, .features = 3}, {.name = "paper"}},
                                  .relation = {{.name = "writes", .destination = 1}}};
    if (k > 2)
        return 0;
    if (k == 2) { /* of several types of vertices, edges without features */
        types.type[1].vertices = m.info.vertices - 7;
        m.version = GS_STORE_VERTEX_TYPES;
        m.info.types = &types;
        m.info.edge_types = 1;
        m.info.edge_features = 0;
        m.data = (gs_edge_data){.type_bytes = 1};
        m.array[GS_ARRAY_VERTEX_TYPE] = m.array[GS_ARRAY_IN_DEGREE];
    }
    if (k == 1) { /* older, typed, weighted, shared, with loops and nothing else */
        m.info.symmetric = m.shared = m.info.weights = true;
        m.edge_bytes[1] = 0;
        m.info.edge_types = 300;
        m.version = 2;
        m.info.edge_features = 0;
        m.data = (gs_edge_data){2, true, 0};
        m.info.self_loops = 5;
        m.array[GS_ARRAY_LOOPS] = m.array[GS_ARRAY_IN_DEGREE];
        m.array[GS_ARRAY_FEATURES].present = m.array[GS_ARRAY_LABELS].present = false;
        m.info.features = m.info.classes = 0;
        m.info.feature_id = 0;
    }
    if (gs_manifest__format(&text, &bytes, &m) != GS_OK || bytes > capacity)
        abort();
    memcpy(data, text, bytes);
    gs_free(text);
    return bytes;
}
