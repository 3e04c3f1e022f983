/* Dense products with both inputs rounded to bf16 (.matmul bf16) and float32 sums, by the instructions of AVX512-BF16:
 * vdpbf16ps adds the products of two pairs of numbers to each of 16 sums.
 *
 * Both factors are laid out in pairs of what is added over: columns of a row and rows of a matrix, or, for a gradient,
 * rows of both. A matrix is laid out once a stage and pass (gemm.c); rows are as they come, a block that stays in the
 * first-level cache at a time, on the stack. A number of the result is a sum in the order of its pairs, whatever rows
 * stand beside it. The instructions take numbers below 2^-126 for 0.
 */
#include "device/cpu/bf16.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "base/size.h"

#define FOR_BF16 __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define IN_LINE FOR_BF16 static inline __attribute__((always_inline))

#define LANES 16u
#define MOST_VECTORS 4u /* of a row's result in registers, */
#define MOST_ROWS 12u   /* and rows; 24 registers of sums */
#define PANEL_ROWS 48u  /* a multiple of all numbers of rows in registers */
#define PANEL_COLUMNS (MOST_VECTORS * LANES)
#define ROW_PAIRS 256u          /* of a row at a time, */
#define ROW_STRIDE (256u + 16u) /* each row in other sets of the cache */
#define SUM_PAIRS 64u           /* of rows of a gradient at a time, */
#define SUM_PANELS 4u           /* and PANEL_ROWS of the gradient's */
#define AHEAD_BYTES (16 * 1024) /* as kernels_edge_products.c */

/* Rows [0, rows) of c[., c_row] = a b, or +=, PANEL_COLUMNS columns at most. */
typedef struct product {
    const uint32_t *a, *b;
    float *c;
    size_t b_pair, c_row; /* from one to the next */
    uint32_t rows, columns, pairs;
    bool adds;
} product;

/* Pair p of row r of `a` is at r * a_row + p * a_pair; `last` are the columns of the last vector. */
IN_LINE void multiply_rows(const product *k, const uint32_t r0, const uint32_t rows, const uint32_t vectors,
                           const uint32_t a_row, const uint32_t a_pair)
{
    const __mmask16 last = (__mmask16)((1u << (k->columns - (vectors - 1) * LANES)) - 1);
    const uint32_t *a = k->a + (size_t)r0 * a_row, *b = k->b;
    __m512 sum[MOST_ROWS][MOST_VECTORS];
#define MASK(v) ((v) + 1 < vectors ? (__mmask16)0xffff : last)
#define EACH_ROW _Pragma("GCC unroll 12") for (uint32_t r = 0; r < rows; r++)
#define EACH_VECTOR _Pragma("GCC unroll 4") for (uint32_t v = 0; v < vectors; v++)
    EACH_ROW EACH_VECTOR sum[r][v] =
        k->adds ? _mm512_maskz_loadu_ps(MASK(v), k->c + (r0 + r) * k->c_row + v * LANES) : _mm512_setzero_ps();
    for (uint32_t p = 0; p < k->pairs; p++, a += a_pair, b += k->b_pair) {
        __m512i m[MOST_VECTORS];
        EACH_VECTOR m[v] = _mm512_maskz_loadu_epi32(MASK(v), b + v * LANES);
        EACH_ROW {
            const __m512i pair = _mm512_set1_epi32((int)a[r * a_row]);
            EACH_VECTOR sum[r][v] = _mm512_dpbf16_ps(sum[r][v], (__m512bh)pair, (__m512bh)m[v]);
        }
    }
    EACH_ROW EACH_VECTOR _mm512_mask_storeu_ps(k->c + (r0 + r) * k->c_row + v * LANES, MASK(v), sum[r][v]);
#undef EACH_VECTOR
#undef EACH_ROW
#undef MASK
}

IN_LINE void multiply_panel(const product *k, const uint32_t rows, const uint32_t vectors, const uint32_t a_row,
                            const uint32_t a_pair)
{
    uint32_t r = 0;
    for (; r + rows <= k->rows; r += rows)
        multiply_rows(k, r, rows, vectors, a_row, a_pair);
    for (; r < k->rows; r++)
        multiply_rows(k, r, 1, vectors, a_row, a_pair);
}

IN_LINE void multiply(const product *k, const uint32_t a_row, const uint32_t a_pair)
{
    switch ((k->columns + LANES - 1) / LANES) {
    case 1: multiply_panel(k, 12, 1, a_row, a_pair); break;
    case 2: multiply_panel(k, 12, 2, a_row, a_pair); break;
    case 3: multiply_panel(k, 8, 3, a_row, a_pair); break;
    default: multiply_panel(k, 6, 4, a_row, a_pair);
    }
}

/* The first n of 32 numbers; the others are 0. */
IN_LINE __m512i rounded(const float *low, const float *high, uint32_t n)
{
    const uint32_t first = GS_MIN(n, LANES), mask = (1u << first) - 1, rest = (1u << (n - first)) - 1;
    return (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps((__mmask16)rest, high),
                                        _mm512_maskz_loadu_ps((__mmask16)mask, low));
}

/* A part of a row, as pairs: the first number is the second one of its pair with `odd`. */
FOR_BF16 static void round_row(uint32_t *to, const float *from, uint32_t n, uint32_t odd)
{
    uint16_t *const at = (uint16_t *)to + odd;
    const uint32_t with_end = n + (n + odd) % 2;
    to[0] = 0;
    for (uint32_t i = 0; i < with_end; i += 2 * LANES) {
        const uint32_t some = GS_MIN(with_end - i, 2 * LANES);
        __builtin_prefetch((const char *)(from + i) + AHEAD_BYTES);
        __builtin_prefetch((const char *)(from + i + LANES) + AHEAD_BYTES);
        const __m512i v = rounded(from + i, from + i + LANES, GS_MIN(n - i, some));
        _mm512_mask_storeu_epi16(at + i, (__mmask32)((1ull << some) - 1), v);
    }
}

/* Two rows of up to 16 columns, `second` NULL: of 0, to pairs. */
IN_LINE __m512i paired(const float *first, const float *second, uint32_t columns)
{
    const __mmask16 mask = (__mmask16)((1u << columns) - 1);
    const __m512 low = _mm512_maskz_loadu_ps(mask, first),
                 high = second == NULL ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, second);
    const __m512i lanes = _mm512_set_epi32(0x1f000f, 0x1e000e, 0x1d000d, 0x1c000c, 0x1b000b, 0x1a000a, 0x190009,
                                           0x180008, 0x170007, 0x160006, 0x150005, 0x140004, 0x130003, 0x120002,
                                           0x110001, 0x100000);
    return _mm512_permutexvar_epi16(lanes, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

/* to[ceil(rows / 2)][stride] = pairs of rows of from[rows, from_stride]. In place where `stride` is from_stride. */
FOR_BF16 static void pair_rows(uint32_t *to, uint32_t stride, const float *from, uint32_t from_stride, uint32_t rows,
                               uint32_t columns)
{
    for (uint32_t r = 0; r < rows; r += 2, to += stride) {
        const float *const first = from + (size_t)r * from_stride;
        for (uint32_t c = 0; c < columns; c += LANES) {
            const uint32_t some = GS_MIN(columns - c, LANES);
            _mm_prefetch((const char *)(first + c + 2 * SUM_PAIRS * (size_t)from_stride), _MM_HINT_T1);
            _mm_prefetch((const char *)(first + c + (2 * SUM_PAIRS + 1) * (size_t)from_stride), _MM_HINT_T1);
            const __m512i v = paired(first + c, r + 1 < rows ? first + from_stride + c : NULL, some);
            _mm512_mask_storeu_epi32(to + c, (__mmask16)((1u << some) - 1), v);
        }
    }
}

FOR_BF16 static void pair_matrix(uint32_t *to, const float *from, uint32_t rows, uint32_t columns)
{
    pair_rows(to, columns, from, columns, rows, columns);
}

/* Some rows, a part of their columns: `pairs` of them, by all columns of the matrix. */
FOR_BF16 static void multiply_block(product k, uint32_t n)
{
    const uint32_t *const b = k.b;
    float *const c = k.c;
    for (uint32_t at = 0; at < n; at += PANEL_COLUMNS) {
        k.b = b + at;
        k.c = c + at;
        k.columns = GS_MIN(n - at, PANEL_COLUMNS);
        multiply(&k, ROW_STRIDE, 1);
    }
}

FOR_BF16 static void rows_by(uint32_t m, uint32_t n, uint32_t k, const float *a, const uint32_t *matrix, uint32_t first,
                             bool adds, float *c)
{
    const uint32_t odd = first % 2, all = (odd + k + 1) / 2;
    uint32_t block[PANEL_ROWS * ROW_STRIDE];

    for (uint32_t r0 = 0; r0 < m; r0 += PANEL_ROWS) {
        const uint32_t rows = GS_MIN(m - r0, PANEL_ROWS);
        for (uint32_t p = 0; p < all; p += ROW_PAIRS) {
            const uint32_t pairs = GS_MIN(all - p, ROW_PAIRS), lead = p == 0 ? odd : 0, from = 2 * p + lead - odd;
            for (uint32_t r = 0; r < rows; r++)
                round_row(block + (size_t)r * ROW_STRIDE, a + (size_t)(r0 + r) * k + from,
                          GS_MIN(k - from, 2 * pairs - lead), lead);
            multiply_block((product){.a = block, .b = matrix + (size_t)(first / 2 + p) * n, .c = c + (size_t)r0 * n,
                                     .b_pair = n, .c_row = n, .rows = rows, .pairs = pairs, .adds = adds || p > 0}, n);
        }
    }
}

/* The same for a few rows of both factors: c[m, n] with at most SUM_PANELS panels of rows. */
FOR_BF16 static void outer_block(product k, uint32_t m, uint32_t n, uint32_t rows, const float *a, uint32_t lda,
                                 const float *b, uint32_t ldb)
{
    uint32_t a_block[SUM_PANELS][SUM_PAIRS * PANEL_ROWS], b_block[SUM_PAIRS * PANEL_COLUMNS];
    float *const c = k.c;

    for (uint32_t r = 0, i = 0; r < m; r += PANEL_ROWS, i++)
        pair_rows(a_block[i], PANEL_ROWS, a + r, lda, rows, GS_MIN(m - r, PANEL_ROWS));
    for (uint32_t at = 0; at < n; at += PANEL_COLUMNS) {
        k.columns = GS_MIN(n - at, PANEL_COLUMNS);
        pair_rows(b_block, PANEL_COLUMNS, b + at, ldb, rows, k.columns);
        k.b = b_block;
        for (uint32_t r = 0, i = 0; r < m; r += PANEL_ROWS, i++) {
            k.a = a_block[i];
            k.c = c + (size_t)r * k.c_row + at;
            k.rows = GS_MIN(m - r, PANEL_ROWS);
            multiply(&k, 1, PANEL_ROWS);
        }
    }
}

FOR_BF16 static void outer(uint32_t m, uint32_t n, uint32_t rows, const float *a, uint32_t lda, const float *b,
                           uint32_t ldb, bool adds, float *c, uint32_t ldc)
{
    const uint32_t most = SUM_PANELS * PANEL_ROWS;
    for (uint32_t r = 0; r < rows; r += 2 * SUM_PAIRS) {
        const uint32_t some = GS_MIN(rows - r, 2 * SUM_PAIRS);
        for (uint32_t at = 0; at < m; at += most)
            outer_block((product){.c = c + (size_t)at * ldc, .b_pair = PANEL_COLUMNS, .c_row = ldc,
                                  .pairs = (some + 1) / 2, .adds = adds || r > 0},
                        GS_MIN(m - at, most), n, some, a + (size_t)r * lda + at, lda, b + (size_t)r * ldb, ldb);
    }
}

const gs_cpu_bf16 *gs_cpu__bf16_find(const gs_cpu_kernels *kernels)
{
    static const gs_cpu_bf16 here = {.pair_rows = pair_matrix, .rows_by = rows_by, .outer = outer};
    return kernels->lanes == LANES && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16")
               ? &here : NULL;
}
#else
const gs_cpu_bf16 *gs_cpu__bf16_find(const gs_cpu_kernels *kernels)
{
    (void)kernels;
    return NULL;
}
#endif
