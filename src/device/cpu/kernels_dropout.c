/* Dropout, of vertices and of edges: Philox4x32-10 (program.h says which counter) for many counters at a
 * time, then a compare and a multiply for each element.
 *
 * A 64-bit lane holds one counter. A 32 x 32 -> 64 bit multiply reads only the
 * lower half of a lane, so the upper half may hold anything: shifting a product
 * gives its high word, and the product itself serves as its low word.
 */
#include "base/dtype.h"
#include "base/philox.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_rows.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define PAIRS (GS_LANES / 2)  /* counters a vector */
#define CHAINS 4              /* vectors at a time: a round is a chain of about 6 cycles, this fills them */
#define STEP (PAIRS * CHAINS) /* counters a step */
#define COUNTERS 64           /* counters between generating and using: words stay in L1 */

typedef uint64_t vq __attribute__((vector_size(8 * PAIRS)));
typedef uint32_t half_mem __attribute__((vector_size(4 * PAIRS), aligned(4), may_alias));
typedef uint64_t vq_mem __attribute__((vector_size(8 * PAIRS), aligned(4), may_alias));

GS_INLINE vq multiply_low_halves(vq a, uint32_t by)
{
    const vq b = (vq){0} + by;
#if defined(__AVX512F__) && PAIRS == 8
    return (vq)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && PAIRS == 4
    return (vq)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && PAIRS == 2
    return (vq)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * b;
#endif
}

GS_INLINE vq widen(const uint32_t *p) { return __builtin_convertvector(*(const half_mem *)p, vq); }

/* Words 0, 1 in the lanes of `low` and 2, 3 in those of `high`, to the order of memory. */
GS_INLINE void store_words(uint32_t *words, vq low, vq high)
{
#if PAIRS == 8
    const vq first = __builtin_shufflevector(low, high, 0, 8, 1, 9, 2, 10, 3, 11);
    const vq second = __builtin_shufflevector(low, high, 4, 12, 5, 13, 6, 14, 7, 15);
#elif PAIRS == 4
    const vq first = __builtin_shufflevector(low, high, 0, 4, 1, 5);
    const vq second = __builtin_shufflevector(low, high, 2, 6, 3, 7);
#else
    const vq first = __builtin_shufflevector(low, high, 0, 2);
    const vq second = __builtin_shufflevector(low, high, 1, 3);
#endif
    *(vq_mem *)words = first;
    *(vq_mem *)(words + 2 * PAIRS) = second;
}

/* Counters that are drawn together: word[k][i] is word k of the i-th. */
typedef struct counters {
    uint32_t word[4][COUNTERS];
} counters;

/* words[4 * STEP] of the counters from `first` on. */
GS_INLINE void philox_step(uint32_t *words, const counters *b, uint32_t first, const uint32_t key[2])
{
    vq c0[CHAINS], c1[CHAINS], c2[CHAINS], c3[CHAINS];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < CHAINS; i++) {
        c0[i] = widen(b->word[0] + first + i * PAIRS);
        c1[i] = widen(b->word[1] + first + i * PAIRS);
        c2[i] = widen(b->word[2] + first + i * PAIRS);
        c3[i] = widen(b->word[3] + first + i * PAIRS);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < CHAINS; i++) {
            const vq p0 = multiply_low_halves(c0[i], GS_PHILOX_M0), p1 = multiply_low_halves(c2[i], GS_PHILOX_M1);
            c0[i] = (p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = p1;
            c2[i] = (p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = p0;
        }
        k0 += GS_PHILOX_W0;
        k1 += GS_PHILOX_W1;
    }
    for (int i = 0; i < CHAINS; i++)
        store_words(words + i * 4 * PAIRS, (c0[i] & 0xffffffffu) | (c1[i] << 32),
                    (c2[i] & 0xffffffffu) | (c3[i] << 32));
}

/* `src` NULL: of ones. */
GS_INLINE void apply(const gs_cpu_dropout *d, float *dst, const float *src, const uint32_t *words, size_t n)
{
    const int32_t threshold = (int32_t)d->threshold;
    const float scale = d->scale;
    _Pragma("omp simd") for (size_t i = 0; i < n; i++)
    {
        const float scaled = src == NULL ? scale : src[i] * scale;
        dst[i] = (int32_t)(words[i] >> 8) >= threshold ? scaled : 0.0f;
    }
}

/* The counters of groups [group, group + take) of a row, from place n of `b` on. Of a vertex words 2 and 3 are
 * the same for all and there already. */
GS_INLINE void count_groups(counters *b, uint32_t n, const gs_cpu_draws *w, uint32_t row, uint32_t row_groups,
                            uint32_t group, uint32_t take, const bool edges)
{
    const uint32_t first = edges && w->rank != NULL ? w->rank[row] * row_groups : 0;
    for (uint32_t i = 0; i < take; i++) {
        b->word[0][n + i] = w->source[row];
        b->word[1][n + i] = edges ? w->destination[row] : group + i;
        if (edges) {
            b->word[2][n + i] = first + group + i;
            b->word[3][n + i] = w->type != NULL ? w->type[row] : 0;
        }
    }
}

/* Walks (row, group of 4 columns) in order, COUNTERS counters at a time. With whole groups the words of
 * `b` lie as the elements do; else every row's last group is cut. */
GS_INLINE void drop(const gs_cpu_dropout *d, float *dst, const float *src, const gs_cpu_draws *w, uint32_t rows,
                    uint32_t width, counters *b, const bool edges)
{
    uint32_t words[4 * COUNTERS];
    const uint32_t row_groups = (width + 3) / 4;
    uint32_t row = 0, group = 0;

    while (row < rows) {
        const uint32_t first_row = row, first_group = group;
        uint32_t n = 0;
        while (n < COUNTERS && row < rows) {
            const uint32_t take = row_groups - group < COUNTERS - n ? row_groups - group : COUNTERS - n;
            count_groups(b, n, w, row, row_groups, group, take, edges);
            n += take;
            group += take;
            if (group == row_groups) {
                group = 0;
                row++;
            }
        }
        for (uint32_t i = 0; i < n; i += STEP)
            philox_step(words + 4 * i, b, i, d->key);

        if (width % 4 == 0) {
            const size_t at = (size_t)first_row * width + 4 * first_group;
            apply(d, dst + at, src == NULL ? NULL : src + at, words, 4 * (size_t)n);
            continue;
        }
        for (uint32_t i = 0, r = first_row, g = first_group; i < n; r++, g = 0) {
            const uint32_t take = row_groups - g < n - i ? row_groups - g : n - i;
            const uint32_t from = 4 * g, to = g + take == row_groups ? width : 4 * (g + take);
            const size_t at = (size_t)r * width + from;
            apply(d, dst + at, src == NULL ? NULL : src + at, words + 4 * i, to - from);
            i += take;
        }
    }
}

void GS_KERNEL(dropout)(const gs_cpu_dropout *d, float *dst, const float *src, const uint32_t *id, uint32_t rows,
                        uint32_t width)
{
    counters b = {{{0}}};
    for (uint32_t i = 0; i < COUNTERS; i++) {
        b.word[2][i] = d->site;
        b.word[3][i] = d->epoch;
    }
    drop(d, dst, src, &(gs_cpu_draws){.source = id}, rows, width, &b, false);
}

void GS_KERNEL(mask)(const gs_cpu_dropout *d, float *dst, const gs_cpu_draws *w, uint32_t rows, uint32_t width)
{
    counters b = {{{0}}};
    drop(d, dst, NULL, w, rows, width, &b, true);
}

/* ---- edges of a tile ---- */

GS_INLINE uint32_t type_of(const gs_edges *e, size_t edge)
{
    return e->type == NULL ? 0 : gs_type_at(e->type, e->type_bytes, edge);
}

/* Edges of the same ends and type as `edge`, one after the other, that are before it. */
static uint32_t rank_of(const gs_edges *e, uint32_t edge)
{
    const uint32_t operand = gs_index_at(e->index, e->index_bytes, edge), type = type_of(e, edge);
    uint32_t first, rank = 0;

    if (edge == e->start[0] || gs_index_at(e->index, e->index_bytes, edge - 1) != operand)
        return 0;
    first = e->start[gs_cpu_edge_owner(e, edge)];
    while (edge > first && gs_index_at(e->index, e->index_bytes, edge - 1) == operand && type_of(e, edge - 1) == type) {
        rank++;
        edge--;
    }
    return rank;
}

/* A run begins with a target's first edge, but for the first one of a tile. */
static void fill_ranks(const gs_cpu_edge_frame *f, uint32_t *rank, uint32_t *type)
{
    const gs_edges *const edges = &f->plan->l->edges;
    const gs_cpu_edge_tile *const t = f->tile;

    for (uint32_t e = 0; e < t->edges; e++)
        type[e] = type_of(edges, (size_t)t->edge + e);
    for (uint32_t r = 0; r < t->runs; r++) {
        const gs_cpu_edge_run run = t->run[r];
        rank[run.first] = r == 0 ? rank_of(edges, t->edge) : 0;
        for (uint32_t e = run.first + 1; e < run.end; e++)
            rank[e] = t->operand[e] == t->operand[e - 1] && type[e] == type[e - 1] ? rank[e - 1] + 1 : 0;
    }
}

/* Ids are u32 where the values of other steps are floats. */
static void fill_ids(const gs_cpu_edge_frame *f, const gs_cpu_edge_value *v, uint32_t *id)
{
    const gs_cpu_rows rows = gs_value_rows(f, v);
    for (uint32_t e = 0; e < f->tile->edges; e++)
        memcpy(&id[e], gs_row(&rows, e), sizeof(*id));
}

void GS_KERNEL(edge_mask)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    uint32_t source[GS_CPU_TILE_EDGES], destination[GS_CPU_TILE_EDGES], rank[GS_CPU_TILE_EDGES],
        type[GS_CPU_TILE_EDGES];
    const gs_cpu_draws w = {source, destination, rank, type};

    fill_ids(f, &s->a, source);
    fill_ids(f, &s->b, destination);
    fill_ranks(f, rank, type);
    for (uint32_t e = 0; s->loops_as_one && e < f->tile->edges; e++)
        if (source[e] == destination[e])
            rank[e] = type[e] = 0;
    GS_KERNEL(mask)(&s->mask, gs_slot(f, s->dst), &w, f->tile->edges, s->width);
}
