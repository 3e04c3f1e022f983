/* edge_filter.c - one pass over a chunk's edges to count what stays, one to copy it. */
#include "store/edge_filter.h"

#include "base/size.h"
#include "store/store_internal.h"

static const uint64_t *bits_of(const gs_edge_filter *f, const uint64_t *set, uint32_t interval)
{
    return set == NULL ? NULL : set + (uint64_t)interval * f->granules.words;
}

static inline bool stays(const uint64_t *bits, uint32_t row, uint32_t shift)
{
    const uint32_t g = row >> shift;
    return bits == NULL || (bits[g / 64] >> (g % 64) & 1) != 0;
}

/* Counts the rows seen, marks their granules, and forgets them. */
static uint32_t take_seen(const gs_edge_filter *f, uint64_t *need, gs_granules coarse)
{
    uint32_t rows = 0;
    for (uint64_t w = 0; w < f->seen_words; w++) {
        rows += (uint32_t)__builtin_popcountll(f->seen[w]);
        for (uint64_t left = need == NULL ? 0 : f->seen[w]; left != 0; left &= left - 1) {
            const uint64_t g = (w * 64 + (uint64_t)__builtin_ctzll(left)) / coarse.rows;
            need[g / 64] |= 1ull << (g % 64);
        }
        f->seen[w] = 0;
    }
    return rows;
}

void gs_edge_filter_count(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                          gs_chunk *out, uint64_t *need, gs_granules coarse)
{
    const uint64_t *const targets = bits_of(f, f->targets, target), *const operands = bits_of(f, f->operands, operand);
    const uint32_t shift = (uint32_t)__builtin_ctz(f->granules.rows);
    uint64_t edges = 0;

    out->targets = out->operands = out->largest = 0;
    for (uint32_t t = 0; t < v->targets; t++) {
        const uint64_t before = edges;
        if (!stays(targets, gs_index_at(v->target, v->index_bytes, t), shift))
            continue;
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint32_t row = gs_index_at(v->index, v->index_bytes, k);
            if (!stays(operands, row, shift))
                continue;
            edges++;
            f->seen[row / 64] |= 1ull << (row % 64);
        }
        out->targets += edges > before;
        out->largest = GS_MAX(out->largest, edges - before);
    }
    out->edges = edges;
    out->operands = take_seen(f, need, coarse);
}

/* Row r of target t becomes entry `n` of the smaller chunk's index. */
static void copy_edge(gs_chunk_view *out, uint64_t n, const gs_chunk_view *v, uint64_t k)
{
    gs_index_put(out->index, v->index_bytes, n, gs_index_at(v->index, v->index_bytes, k));
    if (v->type != NULL)
        gs_type_put(out->type, v->type_bytes, n, gs_type_at(v->type, v->type_bytes, k));
    if (v->weight != NULL)
        ((float *)(uintptr_t)out->weight)[n] = v->weight[k];
}

static void list_operands(const gs_edge_filter *f, gs_chunk_view *out)
{
    uint32_t n = 0;
    for (uint64_t w = 0; w < f->seen_words; w++) {
        for (uint64_t left = f->seen[w]; left != 0; left &= left - 1)
            gs_index_put(out->operand, out->index_bytes, n++, (uint32_t)(w * 64 + (uint64_t)__builtin_ctzll(left)));
        f->seen[w] = 0;
    }
}

void gs_edge_filter_fill(const gs_edge_filter *f, uint32_t target, uint32_t operand, const gs_chunk_view *v,
                         gs_chunk_view *out)
{
    const uint64_t *const targets = bits_of(f, f->targets, target), *const operands = bits_of(f, f->operands, operand);
    const uint32_t shift = (uint32_t)__builtin_ctz(f->granules.rows);
    uint32_t *const start = (uint32_t *)(uintptr_t)out->start;
    uint64_t edges = 0;
    uint32_t n = 0;

    for (uint32_t t = 0; t < v->targets; t++) {
        const uint32_t row = gs_index_at(v->target, v->index_bytes, t);
        const uint64_t before = edges;
        if (!stays(targets, row, shift))
            continue;
        for (uint32_t k = v->start[t]; k < v->start[t + 1]; k++) {
            const uint32_t at = gs_index_at(v->index, v->index_bytes, k);
            if (!stays(operands, at, shift))
                continue;
            copy_edge(out, edges++, v, k);
            f->seen[at / 64] |= 1ull << (at % 64);
        }
        if (edges == before)
            continue;
        gs_index_put(out->target, v->index_bytes, n, row);
        start[n++] = (uint32_t)before;
    }
    start[n] = (uint32_t)edges;
    list_operands(f, out);
}
