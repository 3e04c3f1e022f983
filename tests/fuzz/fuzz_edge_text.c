/* A SNAP, CSV or MatrixMarket file of any bytes, told apart as the partitioner does. */
#include "fuzz.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gs_fuzz_input(gs_fuzz_file("edges.txt", data, size));
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const text[] = {
        "# a comment\n0 1\n1\t2\r\n2 0\n",
        "0 1\n0 1\n3 3\n\n7 2",
        "%%MatrixMarket matrix coordinate pattern general\n% words\n4 4 3\n1 2\n2 3\n4 1\n",
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 0.5\n2 1 -1e3\n3 2 7\n",
        "%%MatrixMarket matrix coordinate integer general\n\n3 3 2\n1 3 -4\n3 1 12\n",
        "src,dst,weight,type\n0,1,0.5,2\n3,1,-1e-1,0\n",
        "\"target\"\tname\tfrom\n1\ta b\t0\n# c\n\"2\"\t\t 1\n",
    };
    return k < sizeof(text) / sizeof(text[0]) ? gs_fuzz_text_seed(data, capacity, text[k]) : 0;
}
