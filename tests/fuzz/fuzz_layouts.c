/* Inputs that other libraries write, of any bytes: a .npz file, GraphBolt's metadata.yaml, IGB's files without headers.
 *
 * Input: u8 which, then the bytes: 0 a .npz file; 1 metadata.yaml beside whole arrays; 2 labels (u8 how many bytes) and
 * features without headers; 3 an edge list of names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <minizip/zip.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "fuzz.h"
#include "fuzz_input.h"

enum { NPZ, YAML, IGB, NAMES, KINDS };

/* A version-1 .npy file of `n` bytes of values; gives its size. */
static size_t npy(uint8_t *out, const char *descr, const char *shape, const void *values, size_t n)
{
    char text[118];
    const int length = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                                shape);
    memset(text + length, ' ', sizeof(text) - (size_t)length);
    text[sizeof(text) - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(out + 10, text, sizeof(text));
    memcpy(out + 128, values, n);
    return 128 + n;
}

static void put_npy(const char *name, const char *descr, const char *shape, const void *values, size_t n)
{
    uint8_t file[512];
    gs_fuzz_file(name, file, npy(file, descr, shape, values, n));
}

static const char *folder(const char *name)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/%s", gs_fuzz_folder(), name);
    mkdir(path, 0700);
    return path;
}

static const int64_t rows[] = {0, 1, 1, 2, 2, 0, 3, 3};
static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};

static void try_yaml(const uint8_t *data, size_t size)
{
    folder("bolt");
    put_npy("bolt/e", "<i8", "(2, 4)", rows, sizeof(rows));
    put_npy("bolt/f", "<f4", "(4, 2)", numbers, sizeof(numbers));
    put_npy("bolt/s", "<i8", "(2,)", rows, 16);
    put_npy("bolt/l", "<i8", "(2,)", rows, 16);
    gs_fuzz_file("bolt/metadata.yaml", data, size);
    gs_fuzz_input(folder("bolt"));
}

static void try_igb(const uint8_t *data, size_t size)
{
    const size_t labels = size == 0 ? 0 : GS_MIN((size_t)data[0], size - 1);
    const size_t features = size == 0 ? 0 : size - 1 - labels;

    folder("igb");
    folder("igb/paper");
    folder("igb/paper__cites__paper");
    put_npy("igb/paper__cites__paper/edge_index.npy", "<i8", "(4, 2)", rows, sizeof(rows));
    gs_fuzz_file("igb/paper/node_label_19.npy", data + (size > 0), labels);
    gs_fuzz_file("igb/paper/node_feat.npy", data + (size > 0) + labels, features);
    gs_fuzz_input(folder("igb"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] % KINDS) {
    case NPZ:
        gs_fuzz_input(gs_fuzz_file("g.npz", data + 1, size - 1));
        break;
    case YAML:
        try_yaml(data + 1, size - 1);
        break;
    case IGB:
        try_igb(data + 1, size - 1);
        break;
    default:
        gs_fuzz_input(gs_fuzz_file("names.txt", data + 1, size - 1));
    }
    return 0;
}

static void add(zipFile zip, const char *name, const char *descr, const char *shape, const void *values, size_t n,
                int level)
{
    uint8_t file[512];
    const size_t bytes = npy(file, descr, shape, values, n);

    if (zipOpenNewFileInZip(zip, name, &(zip_fileinfo){0}, NULL, 0, NULL, 0, NULL, level == 0 ? 0 : 8, level) !=
            ZIP_OK ||
        zipWriteInFileInZip(zip, file, (unsigned)bytes) != ZIP_OK || zipCloseFileInZip(zip) != ZIP_OK)
        abort();
}

/* The same graph as edges and features, or as two CSR matrices. */
static size_t npz_seed(uint8_t *data, size_t capacity, bool matrices, int level)
{
    static const int64_t ends[] = {0, 1, 2, 3, 4}, columns[] = {1, 2, 0, 3}, square[] = {4, 4};
    const char *const path = gs_fuzz_file("seed.npz", "", 0);
    const zipFile zip = zipOpen(path, APPEND_STATUS_CREATE);
    char *bytes = NULL;
    uint64_t n = 0;

    if (zip == NULL)
        abort();
    if (matrices) {
        add(zip, "adj_indptr.npy", "<i8", "(5,)", ends, sizeof(ends), level);
        add(zip, "adj_indices.npy", "<i8", "(4,)", columns, sizeof(columns), level);
        add(zip, "adj_data.npy", "<f4", "(4,)", numbers, 16, level);
        add(zip, "adj_shape.npy", "<i8", "(2,)", square, sizeof(square), level);
        add(zip, "attr_indptr.npy", "<i8", "(5,)", ends, sizeof(ends), level);
        add(zip, "attr_indices.npy", "<i8", "(4,)", columns, sizeof(columns), level);
        add(zip, "attr_data.npy", "<f4", "(4,)", numbers, 16, level);
        add(zip, "attr_shape.npy", "<i8", "(2,)", square, sizeof(square), level);
    } else {
        add(zip, "edge_index.npy", "<i8", "(2, 4)", rows, sizeof(rows), level);
        add(zip, "x.npy", "<f4", "(4, 2)", numbers, sizeof(numbers), level);
        add(zip, "y.npy", "<i8", "(4,)", columns, sizeof(columns), level);
    }
    if (zipClose(zip, NULL) != ZIP_OK || gs_file_read_all(&bytes, &n, path, capacity - 1) != GS_OK)
        abort();
    data[0] = NPZ;
    memcpy(data + 1, bytes, n);
    gs_free(bytes);
    return (size_t)n + 1;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char yaml[] =
        "graph:\n  nodes:\n  - num: 4\n  edges:\n  - format: numpy\n    path: e\nfeature_data:\n- domain: node\n"
        "  name: feat\n  format: numpy\n  path: f\ntasks:\n- num_classes: 2\n  train_set:\n  - data:\n"
        "    - name: seeds\n      format: numpy\n      path: s\n    - name: labels\n      format: numpy\n"
        "      path: l\n";
    static const char *const names[] = {"bob alice\nalice eve\neve bob\n",
                                        "src,dst\n\"a\",b\nb,18446744073709551615\n"};
    static const float labels[] = {0, 1, 0, 1};

    if (k < 4)
        return npz_seed(data, capacity, k % 2 == 1, k < 2 ? 0 : 6);
    if (k == 4 || k == 6 || k == 7) {
        const char *const text = k == 4 ? yaml : names[k - 6];
        data[0] = k == 4 ? YAML : NAMES;
        memcpy(data + 1, text, strlen(text));
        return strlen(text) + 1;
    }
    if (k != 5)
        return 0;
    data[0] = IGB;
    data[1] = sizeof(labels);
    memcpy(data + 2, labels, sizeof(labels));
    memcpy(data + 2 + sizeof(labels), numbers, sizeof(numbers));
    return 2 + sizeof(labels) + sizeof(numbers);
}
