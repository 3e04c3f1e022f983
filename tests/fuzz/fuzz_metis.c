/* A METIS graph file of any bytes. */
#include "fuzz.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gs_fuzz_input(gs_fuzz_file("edges.graph", data, size));
    return 0;
}

size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const char *const text[] = {
        "4 3\n2 3\n1\n1 4\n3\n",
        "% a comment\n3 2 1\n2 7\n1 7 3 16777216\n2 16777216\n",
        "3 2 111 2\n5 1 1 2 9\n5 1 1 1 9 3 8\n5 0 0 2 8",
        "5 2 10 1\n4 2\n4 1\r\n4\n4\t5\n4 4\n\n",
        "2 0\n\n\n",
    };
    return k < sizeof(text) / sizeof(text[0]) ? gs_fuzz_text_seed(data, capacity, text[k]) : 0;
}
