/* A folder of .npy files of any bytes, as gs_fuzz_bundle has them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dtype.h"
#include "base/size.h"
#include "fuzz.h"
#include "fuzz_input.h"

static const char *const names[] = {
    "graph/edges.npy",          "graph/features.npy",     "graph/labels.npy",
    "graph/train_idx.npy",      "graph/valid_idx.npy",    "graph/test_idx.npy",
    "graph/meta.json",          "graph/edge_types.npy",   "graph/edge_weights.npy",
    "graph/features_indptr.npy", "graph/features_indices.npy", "graph/features_data.npy",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[300];
    snprintf(dir, sizeof(dir), "%s/graph", gs_fuzz_folder());
    mkdir(dir, 0700);
    gs_fuzz_bundle_write(names, GS_ARRAY_LEN(names), data, size);
    gs_fuzz_input(dir);
    return 0;
}

/* A version-1 file; `shape` as in its header. */
static void put_npy(gs_fuzz_bundle *b, unsigned which, const char *descr, const char *shape, const void *values,
                    size_t n)
{
    unsigned char file[512];
    char text[128];
    int length = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    memset(text + length, ' ', sizeof(text) - (size_t)length);
    length = (int)gs_align_up((uint64_t)length + 11, 16) - 10;
    text[length - 1] = '\n';
    memcpy(file, "\x93NUMPY\x01\x00", 8);
    file[8] = (unsigned char)length;
    file[9] = 0;
    memcpy(file + 10, text, (size_t)length);
    memcpy(file + 10 + length, values, n);
    gs_fuzz_bundle_put(b, which, file, 10 + (size_t)length + n);
}

/* 0: the least; 1: dense features, labels and splits; 2: CSR features, types and weights. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const int64_t wide[] = {0, 1, 1, 2, 2, 0, 3, 3};
    static const int32_t edges[] = {0, 1, 1, 2, 2, 0, 3, 3}, labels[] = {0, 1, -1, 1};
    static const float features[] = {1, 2, 3, 4, 5, 6, 7, 8}, weights[] = {0.5f, 1, 2, -1};
    static const int64_t one[] = {0}, two[] = {1}, three[] = {3}, indptr[] = {0, 1, 2, 2, 4};
    static const uint8_t types[] = {0, 1, 1, 0};
    static const int32_t indices[] = {0, 2, 1, 2};
    static const char *const meta[] = {"{\"num_nodes\": 4, \"num_classes\": 2}",
                                       "{\"num_features\": 3, \"num_edge_types\": 2}"};
    gs_fuzz_bundle b = {.data = data, .capacity = capacity};
    if (k > 2)
        return 0;
    if (k == 0)
        put_npy(&b, 0, "<i8", "(4, 2)", wide, sizeof(wide));
    else
        put_npy(&b, 0, "<i4", "(4, 2)", edges, sizeof(edges));
    if (k == 1) {
        put_npy(&b, 1, "<f4", "(4, 2)", features, sizeof(features));
        put_npy(&b, 2, "<i4", "(4,)", labels, sizeof(labels));
        put_npy(&b, 3, "<i8", "(1,)", one, sizeof(one));
        put_npy(&b, 4, "<i8", "(1,)", two, sizeof(two));
        put_npy(&b, 5, "<i8", "(1,)", three, sizeof(three));
        gs_fuzz_bundle_put(&b, 6, meta[0], strlen(meta[0]));
    }
    if (k == 2) {
        gs_fuzz_bundle_put(&b, 6, meta[1], strlen(meta[1]));
        put_npy(&b, 7, "|u1", "(4,)", types, sizeof(types));
        put_npy(&b, 8, "<f4", "(4,)", weights, sizeof(weights));
        put_npy(&b, 9, "<i8", "(5,)", indptr, sizeof(indptr));
        put_npy(&b, 10, "<i4", "(4,)", indices, sizeof(indices));
        put_npy(&b, 11, "<f4", "(4,)", weights, sizeof(weights));
    }
    return b.size;
}
