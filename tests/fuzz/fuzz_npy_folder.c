/* A folder of .npy files of any bytes.
 *
 * Input: files one after the other, each u8 which, u16 length, and so many bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/size.h"
#include "fuzz.h"
#include "fuzz_input.h"

static const char *const names[] = {
    "edges.npy",        "features.npy",        "labels.npy",           "train_idx.npy",
    "valid_idx.npy",    "test_idx.npy",        "meta.json",            "edge_types.npy",
    "edge_weights.npy", "features_indptr.npy", "features_indices.npy", "features_data.npy",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[300], name[64];
    snprintf(dir, sizeof(dir), "%s/graph", gs_fuzz_folder());
    mkdir(dir, 0700);
    for (size_t k = 0; k < GS_ARRAY_LEN(names); k++) {
        char path[400];
        snprintf(path, sizeof(path), "%s/%s", dir, names[k]);
        unlink(path);
    }
    for (size_t at = 0; at + 3 <= size;) {
        const size_t length = GS_MIN((size_t)(data[at + 1] | data[at + 2] << 8), size - at - 3);
        snprintf(name, sizeof(name), "graph/%s", names[data[at] % GS_ARRAY_LEN(names)]);
        gs_fuzz_file(name, data + at + 3, length);
        at += 3 + length;
    }
    gs_fuzz_input(dir);
    return 0;
}

typedef struct bundle {
    uint8_t *data;
    size_t size, capacity;
} bundle;

static void put(bundle *b, unsigned which, const void *bytes, size_t n)
{
    if (b->size + 3 + n > b->capacity)
        abort();
    b->data[b->size] = (uint8_t)which;
    b->data[b->size + 1] = (uint8_t)(n & 255);
    b->data[b->size + 2] = (uint8_t)(n >> 8);
    memcpy(b->data + b->size + 3, bytes, n);
    b->size += 3 + n;
}

/* A version-1 file; `shape` as in its header. */
static void put_npy(bundle *b, unsigned which, const char *descr, const char *shape, const void *values, size_t n)
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
    put(b, which, file, 10 + (size_t)length + n);
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
    bundle b = {.data = data, .capacity = capacity};
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
        put(&b, 6, meta[0], strlen(meta[0]));
    }
    if (k == 2) {
        put(&b, 6, meta[1], strlen(meta[1]));
        put_npy(&b, 7, "|u1", "(4,)", types, sizeof(types));
        put_npy(&b, 8, "<f4", "(4,)", weights, sizeof(weights));
        put_npy(&b, 9, "<i8", "(5,)", indptr, sizeof(indptr));
        put_npy(&b, 10, "<i4", "(4,)", indices, sizeof(indices));
        put_npy(&b, 11, "<f4", "(4,)", weights, sizeof(weights));
    }
    return b.size;
}
