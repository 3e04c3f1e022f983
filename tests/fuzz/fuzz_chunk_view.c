/* A chunk of any bytes is refused with a text, or every index in it may be followed.
 *
 * Input: 16 bytes of expectation (u32 target rows, u32 operand rows, u32 index
 * bytes, u32 flags), then the chunk. Flag 1: the counts that the table would say are those of
 * the chunk's header, so that what is behind that comparison is reached. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "fuzz.h"
#include "store/chunk_view.h"

#define PREFIX_BYTES 16u

static uint32_t row(const void *p, uint32_t width, uint64_t k)
{
    uint32_t v = 0;
    memcpy(&v, (const char *)p + k * width, width);
    return v;
}

/* What a kernel does with a view: any wild index is a read outside these arrays. */
static void follow(const gs_chunk_view *v, const gs_chunk_expect *e)
{
    uint64_t edges = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        gs_fuzz_require(row(v->target, v->index_bytes, t) < e->target_rows, "target rows in range");
        gs_fuzz_require(t == 0 || row(v->target, v->index_bytes, t) > row(v->target, v->index_bytes, t - 1),
                "targets ascend");
        gs_fuzz_require(v->start[t] == edges && v->start[t + 1] > v->start[t] && v->start[t + 1] <= v->edges,
                "starts");
        for (uint64_t k = v->start[t]; k < v->start[t + 1]; k++, edges++) {
            gs_fuzz_require(row(v->index, v->index_bytes, k) < e->operand_rows, "indices in range");
            gs_fuzz_require(v->type != NULL || k == v->start[t] ||
                        row(v->index, v->index_bytes, k) >= row(v->index, v->index_bytes, k - 1),
                    "indices ascend");
        }
    }
    gs_fuzz_require(edges == v->edges, "starts cover the edges");
    for (uint32_t k = 0; k < v->operands; k++)
        gs_fuzz_require(row(v->operand, v->index_bytes, k) < e->operand_rows, "operand rows in range");
}

static volatile unsigned sink;

/* Reads the last byte of each section: outside the input it is a fault. */
static void touch(const gs_chunk_view *v)
{
    sink += ((const uint8_t *)v->target)[(uint64_t)v->targets * v->index_bytes - 1];
    sink += v->start[v->targets];
    sink += ((const uint8_t *)v->index)[v->edges * v->index_bytes - 1];
    sink += ((const uint8_t *)v->operand)[(uint64_t)v->operands * v->index_bytes - 1];
    if (v->type != NULL)
        sink += ((const uint8_t *)v->type)[v->edges * v->type_bytes - 1];
    if (v->weight != NULL)
        sink += ((const uint8_t *)v->weight)[v->edges * 4 - 1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t prefix[4];
    gs_chunk_view v;
    void *exact = NULL;
    if (size < PREFIX_BYTES)
        return 0;
    memcpy(prefix, data, sizeof(prefix));
    data += PREFIX_BYTES;
    size -= PREFIX_BYTES;
    if (posix_memalign(&exact, 16, size ? size : 1) != 0)
        return 0;
    memcpy(exact, data, size);

    gs_chunk_expect e = {.target_rows = prefix[0],
                         .operand_rows = prefix[1],
                         .index_bytes = prefix[2],
                         .edges = 6,
                         .targets = 3,
                         .operands = 4};
    if ((prefix[3] & 1) && size >= GS_CHUNK_HEADER_BYTES) {
        memcpy(&e.targets, data + 8, 4);
        memcpy(&e.operands, data + 12, 4);
        memcpy(&e.edges, data + 16, 8);
    }
    if (gs_chunk_view_make(&v, exact, size, &e, false) == GS_OK)
        touch(&v);
    const gs_status st = gs_chunk_view_make(&v, exact, size, &e, true);
    gs_fuzz_judge(st);
    if (st == GS_OK) {
        touch(&v);
        follow(&v, &e);
    }
    free(exact);
    return 0;
}

static void fill(const void *where, uint32_t width, const uint32_t *values, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        memcpy((char *)(uintptr_t)where + k * width, &values[k], width);
}

/* Six edges into 3 of 8 rows from 4 of 10, without the padding to a block: the
 * mutations shall hit what matters. k: bit 0 index width, bit 1 types and weights, bit 2 flag 1. */
size_t gs_fuzz_seed(unsigned k, uint8_t *data, size_t capacity)
{
    static const uint32_t target[] = {0, 3, 7}, start[] = {0, 1, 4, 6}, index[] = {9, 0, 4, 9, 2, 2},
                          operand[] = {0, 2, 4, 9};
    const uint32_t width = k & 1 ? 4 : 2, type_bytes = k & 2 ? 1 : 0;
    const uint32_t prefix[4] = {8, 10, width, k & 4 ? 1 : 0};
    const gs_chunk_expect e = {.index_bytes = width, .edges = 6, .targets = 3, .operands = 4};
    static _Alignas(16) uint8_t chunk[GS_BLOCK_BYTES];
    gs_chunk_view v;
    if (k > 7)
        return 0;
    memset(chunk, 0, sizeof(chunk));
    gs_chunk_layout(&v, chunk, &e, (gs_edge_data){type_bytes, type_bytes != 0, 0});
    fill(v.target, width, target, 3);
    fill(v.start, 4, start, 4);
    fill(v.index, width, index, 6);
    fill(v.operand, width, operand, 4);
    const uint8_t *end =
        type_bytes ? (const uint8_t *)(v.weight + 6) : (const uint8_t *)v.operand + 4 * width;
    const size_t bytes = (size_t)(end - chunk);
    if (PREFIX_BYTES + bytes > capacity)
        abort();
    memcpy(data, prefix, PREFIX_BYTES);
    memcpy(data + PREFIX_BYTES, chunk, bytes);
    return PREFIX_BYTES + bytes;
}
