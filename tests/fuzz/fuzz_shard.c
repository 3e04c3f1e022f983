/* A shard.json of any bytes is refused with a text or says a deal that its readers can rely on.
 *
 * Each input is tried as it is (the checksum refuses nearly all) and with its checksum made right, beside a manifest
 * that is fixed. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "fuzz.h"
#include "store/store_internal.h"

#define STORE_ID 0x0123456789ABCDEFull

static gs_manifest beside(void)
{
    return (gs_manifest){
        .version = 2,
        .info = {.vertices = 1000, .edges = 9000, .parts = 10, .interval_rows = 100, .features = 8,
                 .feature_type = GS_F32, .classes = 4, .method = "random", .id = STORE_ID},
        .edge_bytes = {4096 * 100, 4096 * 101},
        .array = {[GS_ARRAY_FEATURES] = {true, GS_F32, 8},
                  [GS_ARRAY_LABELS] = {true, GS_I32, 1},
                  [GS_ARRAY_IN_DEGREE] = {true, GS_F32, 1},
                  [GS_ARRAY_OUT_DEGREE] = {true, GS_F32, 1},
                  [GS_ARRAY_INPUT_ID] = {true, GS_U32, 1}},
    };
}

static void check_promises(const gs_store_shard *x, const gs_extent *extent, const gs_manifest *m)
{
    uint64_t all = 0;

    gs_fuzz_require(x->ranks >= 2 && x->ranks <= GS_SHARDS_MOST && x->rank < x->ranks, "a rank of 2 to 16");
    gs_fuzz_require(x->first[0] == 0 && x->first[x->ranks] == m->info.parts, "all intervals are dealt");
    for (uint32_t k = 0; k < x->ranks; k++)
        gs_fuzz_require(x->first[k] < x->first[k + 1], "no rank is without");
    gs_fuzz_require(x->store_id == STORE_ID, "it is of the store beside it");
    gs_fuzz_require(strnlen(x->name, sizeof(x->name)) < sizeof(x->name), "the name ends");
    for (unsigned k = GS_FILE_DEST; k < GS_STORE_FILES; k++)
        if (gs_store__file_expected(m, k, &all))
            gs_fuzz_require(extent[k].first <= all && extent[k].bytes <= all - extent[k].first, "stretches of files");
}

static void try_text(const char *text, size_t size)
{
    const gs_manifest m = beside();
    gs_extent extent[GS_STORE_FILES] = {{0, 0}}, same[GS_STORE_FILES] = {{0, 0}};
    gs_store_shard x, again;
    char *printed = NULL;
    uint64_t bytes = 0;

    memset(&x, 0xEE, sizeof(x));
    const gs_status st = gs_shard__parse(&x, extent, &m, text, size, "shard.json");
    gs_fuzz_judge(st);
    if (st != GS_OK)
        return;
    check_promises(&x, extent, &m);
    gs_fuzz_require(gs_shard__format(&printed, &bytes, &x, extent, &m) == GS_OK, "it can be written");
    gs_fuzz_require(gs_shard__parse(&again, same, &m, printed, bytes, "again") == GS_OK, "it can be read again");
    gs_fuzz_require(memcmp(extent, same, sizeof(same)) == 0 && again.rank == x.rank && again.ranks == x.ranks &&
                        memcmp(again.first, x.first, sizeof(x.first)) == 0 && strcmp(again.name, x.name) == 0,
                    "it is the same after a round trip");
    gs_free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size <= GS_SHARD_LIMIT)
        gs_fuzz_try_sealed(data, size, try_text);
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    const gs_manifest m = beside();
    gs_store_shard x = {.ranks = k == 0 ? 3 : 10, .rank = 1, .store_id = STORE_ID, .name = "papers"};
    gs_extent extent[GS_STORE_FILES] = {{0, 0}};
    char *text = NULL;
    uint64_t bytes = 0, all = 0;

    if (k > 1)
        return 0;
    for (uint32_t r = 0; r <= x.ranks; r++)
        x.first[r] = k == 0 ? (uint32_t[]){0, 2, 7, 10}[r] : r;
    for (unsigned f = GS_FILE_DEST; f < GS_STORE_FILES; f++)
        if (gs_store__file_expected(&m, f, &all))
            extent[f] = (gs_extent){GS_MIN(4096, all), all > 8192 ? 4096 : 0};
    if (gs_shard__format(&text, &bytes, &x, extent, &m) != GS_OK || bytes > capacity)
        abort();
    memcpy(data, text, bytes);
    gs_free(text);
    return bytes;
}
