/* chunk_fill.c - sorted edges to the arrays of a chunk. */
#include "partition/chunk_fill.h"

#include "base/dtype.h"
#include "base/size.h"

void gs_part__run_count(gs_part_run *r, uint64_t *seen, const gs_part_grid *g)
{
    const uint64_t mask = (1ull << g->local_bits) - 1;
    uint64_t before = UINT64_MAX, begin = 0, largest = 0;

    r->targets = r->operands = 0;
    for (uint64_t i = 0; i < r->edges; i++) {
        const uint64_t key = gs_part__key_at(r->keys, i, r->payload);
        const uint64_t operand = key & mask, target = key >> g->local_bits;
        if (target != before) {
            r->targets++;
            largest = GS_MAX(largest, i - begin);
            begin = i;
        }
        before = target;
        const uint64_t bit = 1ull << (operand & 63);
        r->operands += (seen[operand >> 6] & bit) == 0;
        seen[operand >> 6] |= bit;
    }
    r->largest = GS_MAX(largest, r->edges - begin);
}

/* Distinct operands, ascending; clears `seen`. */
static void fill_operands(void *section, uint64_t *seen, uint32_t rows, uint32_t ix)
{
    uint64_t n = 0;
    for (uint32_t word = 0; word < (rows + 63) / 64; word++) {
        for (uint64_t bits = seen[word]; bits != 0; bits &= bits - 1)
            gs_index_put(section, ix, n++, word * 64 + (uint32_t)__builtin_ctzll(bits));
        seen[word] = 0;
    }
}

/* `degree` counts the edges of each target row. The view's arrays are const
 * for readers; here they point into our own buffer. */
static inline __attribute__((always_inline)) void fill_edges(const gs_chunk_view *view, const gs_part_run *r,
                                                             const gs_part_grid *g, uint32_t *degree, uint32_t ix)
{
    const uint64_t mask = (1ull << g->local_bits) - 1;
    void *const target = (void *)(uintptr_t)view->target, *const index = (void *)(uintptr_t)view->index;
    uint32_t *const start = (uint32_t *)(uintptr_t)view->start;
    uint64_t before = UINT64_MAX, t = 0;

    for (uint64_t i = 0; i < r->edges; i++) {
        const uint64_t key = gs_part__key_at(r->keys, i, r->payload), row = key >> g->local_bits & mask;
        if (row != before) {
            gs_index_put(target, ix, t, (uint32_t)row);
            start[t++] = (uint32_t)i;
            before = row;
        }
        gs_index_put(index, ix, i, (uint32_t)(key & mask));
    }
    start[t] = (uint32_t)r->edges;
    for (uint64_t i = 0; i < t; i++) {
        const uint32_t row = gs_index_at(target, ix, i);
        __atomic_fetch_add(&degree[row], start[i + 1] - start[i], __ATOMIC_RELAXED);
    }
}

static void fill_payload(const gs_chunk_view *view, const gs_part_run *r)
{
    const gs_part_key16 *keys = r->keys;
    float *const weight = (float *)(uintptr_t)view->weight;

    if (view->type != NULL)
        for (uint64_t i = 0; i < r->edges; i++)
            gs_type_put(view->type, view->type_bytes, i, keys[i].type);
    if (weight != NULL)
        for (uint64_t i = 0; i < r->edges; i++)
            weight[i] = keys[i].weight;
}

void gs_part__run_fill(const gs_chunk_view *view, const gs_part_run *r, const gs_part_grid *g, uint32_t operand_rows,
                       uint32_t *degree, uint64_t *seen)
{
    if (view->index_bytes == 2)
        fill_edges(view, r, g, degree, 2);
    else
        fill_edges(view, r, g, degree, 4);
    fill_operands((void *)(uintptr_t)view->operand, seen, operand_rows, view->index_bytes);
    if (r->payload)
        fill_payload(view, r);
}
