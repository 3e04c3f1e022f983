/* A folder of the Open Graph Benchmark whose tables are of any bytes, as gs_fuzz_bundle has them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "fuzz.h"
#include "fuzz_input.h"

static const char *const names[] = {
    "ogb/raw/edge.csv",          "ogb/raw/node-feat.csv",     "ogb/raw/node-label.csv",  "ogb/raw/num-node-list.csv",
    "ogb/raw/num-edge-list.csv", "ogb/split/way/train.csv",   "ogb/split/way/valid.csv", "ogb/split/way/test.csv",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const folders[] = {"ogb", "ogb/raw", "ogb/split", "ogb/split/way"};
    char dir[300];
    for (size_t k = 0; k < GS_ARRAY_LEN(folders); k++) {
        snprintf(dir, sizeof(dir), "%s/%s", gs_fuzz_folder(), folders[k]);
        mkdir(dir, 0700);
    }
    gs_fuzz_bundle_write(names, GS_ARRAY_LEN(names), data, size);
    snprintf(dir, sizeof(dir), "%s/ogb", gs_fuzz_folder());
    gs_fuzz_input(dir);
    return 0;
}

/* 0: the least; 1: all that is read; 2: fields that are empty, several labels a vertex. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const text[][GS_ARRAY_LEN(names)] = {
        {"0,1\n1,2\n2,0\n", "", "", "3\n", "", "", "", ""},
        {"0,1\n1,2\n2,0\n3,3\n", "1,2.5\n-3e-1,0\n5,6\n7,8\n", "0\n1\n1\n0\n", "4\n", "4\n", "0\n1\n", "2\n", "3\n"},
        {"0,1\r\n1,0\r\n", "0.5,\nnan,1\n", "0,1\n,0\n", "2\n", "2\n", "0\n", "", "1\n"},
        {"3,1\n1,2\n2,0\n3,3\n", "", "2.0\n\n1\n0\n", "4\n", "", "0\n", "1\n", "2\n3\n"},
    };
    gs_fuzz_bundle b = {.data = data, .capacity = capacity};
    for (unsigned i = 0; k < GS_ARRAY_LEN(text) && i < GS_ARRAY_LEN(names); i++)
        if (*text[k][i] != '\0')
            gs_fuzz_bundle_put(&b, i, text[k][i], strlen(text[k][i]));
    return b.size;
}
