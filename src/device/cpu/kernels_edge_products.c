/* Products of rows by a small matrix, and its gradient: of vertices; and of edges, by the matrix of their type, the
 * edges of a type together (WiseGraph's gTask); and rows by rows of targets (below).
 *
 * Rows of edges are read where they are and written where the tile has them: what is ordered by type are their
 * numbers. A matrix is read once for as many rows as fit registers, so it should lie in a near cache, and batches
 * should not be of one edge. A number of the result is a sum in the order of the row's columns, whatever rows are
 * beside it.
 */
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_rows.h"

#if GS_LANES == 16
#define MOST_VECTORS 4 /* of a row's result in registers; the others have half as many of these */
#else
#define MOST_VECTORS 2
#endif
#define MOST_ROWS 8
#define LINE 16 /* numbers of a cache line */
/* So far behind the rows at hand what follows is fetched. A processor's own prefetches end with a page, which is the 8
 * rows of 128 numbers of a tile: of rows in memory 250 GFLOP/s for 180 (128 -> 64, a thread of Zen 5, 2 KiB to 32 KiB
 * alike). */
#define AHEAD_BYTES (16 * 1024)

/* Rows of one type, and their columns at hand. */
typedef struct product {
    const gs_cpu_rows *a;
    const uint32_t *at;  /* their numbers */
    const float *matrix; /* first column at hand */
    float *dst;          /* the same, of row 0 */
    uint32_t in, out;    /* columns of a row of a and of dst */
    uint32_t columns;    /* at hand */
    uint32_t ahead;      /* AHEAD_BYTES, or 0 where rows do not lie in order, or are at hand */
    bool adds;           /* to what is in dst */
} product;

/* Rows [i, i + rows) of the product; `vectors` cover the columns, the last one ends where they do. `part`: there are
 * less columns than a vector has. All three are constants. */
GS_INLINE void multiply_rows(const product *k, uint32_t i, const uint32_t rows, const uint32_t vectors, const bool part)
{
    const uint32_t tail = part ? 0 : k->columns - GS_LANES;
    const float *x[MOST_ROWS];
    gs_vf sum[MOST_ROWS][MOST_VECTORS];

    _Pragma("GCC unroll 8") for (uint32_t r = 0; r < rows; r++) {
        const float *const y = k->dst + (size_t)k->at[i + r] * k->out;
        x[r] = gs_row(k->a, k->at[i + r]);
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
            sum[r][v] = !k->adds ? gs_splat(0)
                        : part   ? gs_load_part(y, k->columns)
                                 : gs_load(y + (v + 1 < vectors ? v * GS_LANES : tail));
    }
    for (uint32_t c = 0; c < k->in; c++) {
        const float *const w = k->matrix + (size_t)c * k->out;
        gs_vf m[MOST_VECTORS];
        for (uint32_t r = 0; c % LINE == 0 && r < rows; r++)
            __builtin_prefetch((const char *)(x[r] + c) + k->ahead);
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
            m[v] = part ? gs_load_part(w, k->columns) : gs_load(w + (v + 1 < vectors ? v * GS_LANES : tail));
        _Pragma("GCC unroll 8") for (uint32_t r = 0; r < rows; r++) {
            const gs_vf number = gs_splat(x[r][c]);
            _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
                sum[r][v] += number * m[v];
        }
    }
    _Pragma("GCC unroll 8") for (uint32_t r = 0; r < rows; r++) {
        float *const y = k->dst + (size_t)k->at[i + r] * k->out;
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
            if (part)
                gs_store_part(y, sum[r][v], k->columns);
            else
                gs_store(y + (v + 1 < vectors ? v * GS_LANES : tail), sum[r][v]);
    }
}

GS_INLINE void multiply_all_rows(const product *k, uint32_t rows, const uint32_t vectors, const bool part)
{
    uint32_t i = 0;
    for (; vectors < MOST_VECTORS && i + 8 <= rows; i += 8)
        multiply_rows(k, i, 8, vectors, part);
    for (; i + 6 <= rows; i += 6)
        multiply_rows(k, i, 6, vectors, part);
    for (; i + 4 <= rows; i += 4)
        multiply_rows(k, i, 4, vectors, part);
    for (; i + 2 <= rows; i += 2)
        multiply_rows(k, i, 2, vectors, part);
    if (i < rows)
        multiply_rows(k, i, 1, vectors, part);
}

/* All columns, in blocks of which the last may overlap none. */
static void multiply(const product *whole, uint32_t rows)
{
    for (uint32_t first = 0; first < whole->out; first += MOST_VECTORS * GS_LANES) {
        product k = *whole;
        k.matrix += first;
        k.dst += first;
        k.columns = k.out - first < MOST_VECTORS * GS_LANES ? k.out - first : MOST_VECTORS * GS_LANES;
        k.ahead = first == 0 ? k.ahead : 0;
        if (k.columns < GS_LANES) {
            multiply_all_rows(&k, rows, 1, true);
            continue;
        }
        switch ((k.columns + GS_LANES - 1) / GS_LANES) {
        case 1:
            multiply_all_rows(&k, rows, 1, false);
            break;
        case 2:
            multiply_all_rows(&k, rows, 2, false);
            break;
#if MOST_VECTORS == 4
        case 3:
            multiply_all_rows(&k, rows, 3, false);
            break;
        default:
            multiply_all_rows(&k, rows, 4, false);
#else
        default:
            break;
#endif
        }
    }
}

void GS_KERNEL(edge_by_type)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_edge_tile *const t = f->tile;
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    product k = {.a = &a, .dst = gs_slot(f, s->dst), .in = s->a.width, .out = s->width};

    for (uint32_t first = 0, end; first < t->edges; first = end) {
        const uint32_t type = t->type[t->order[first]];
        for (end = first + 1; end < t->edges && t->type[t->order[end]] == type; end++)
            ;
        k.at = t->order + first;
        k.matrix = s->matrix + (size_t)type * k.in * k.out;
        multiply(&k, end - first);
    }
}

void GS_KERNEL(by_matrix)(float *dst, const float *a, const float *matrix, uint32_t rows, uint32_t in, uint32_t out,
                          bool adds)
{
    const gs_cpu_rows from = gs_rows_in_order(a, in);
    multiply(&(product){.a = &from, .at = from.at, .matrix = matrix, .dst = dst, .in = in, .out = out,
                        .ahead = AHEAD_BYTES, .adds = adds}, rows);
}

/* ---- gradients of the matrices ---- */

/* Columns at hand: `in` of a [rows, stride], and some of b [rows, out]. */
typedef struct pair {
    float *sum; /* first row, first column at hand */
    const float *a, *b;
    uint32_t stride, out, columns;
} pair;

/* `in` columns of a by the columns at hand of b; constants as above. */
GS_INLINE void outer_rows(const pair *k, uint32_t rows, const uint32_t in, const uint32_t vectors, const bool part)
{
    const uint32_t tail = part ? 0 : k->columns - GS_LANES;
    gs_vf sum[MOST_ROWS][MOST_VECTORS];

    _Pragma("GCC unroll 8") for (uint32_t i = 0; i < in; i++)
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
            sum[i][v] = gs_splat(0);
    for (uint32_t r = 0; r < rows; r++) {
        const float *const x = k->a + (size_t)r * k->stride, *const y = k->b + (size_t)r * k->out;
        gs_vf g[MOST_VECTORS];
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
            g[v] = part ? gs_load_part(y, k->columns) : gs_load(y + (v + 1 < vectors ? v * GS_LANES : tail));
        _Pragma("GCC unroll 8") for (uint32_t i = 0; i < in; i++) {
            const gs_vf number = gs_splat(x[i]);
            _Pragma("GCC unroll 8") for (uint32_t v = 0; v < vectors; v++)
                sum[i][v] += number * g[v];
        }
    }
    for (uint32_t i = 0; i < in; i++) { /* vectors that overlap are added to once */
        float *const to = k->sum + (size_t)i * k->out;
        float row[MOST_VECTORS * GS_LANES];
        for (uint32_t v = 0; v < vectors; v++)
            if (part)
                gs_store_part(row, sum[i][v], k->columns);
            else
                gs_store(row + (v + 1 < vectors ? v * GS_LANES : tail), sum[i][v]);
        for (uint32_t c = 0; c < k->columns; c++)
            to[c] += row[c];
    }
}

GS_INLINE void outer_columns(const pair *whole, uint32_t rows, uint32_t in, const uint32_t vectors, const bool part)
{
    pair k = *whole;
    uint32_t i = 0;
    for (; vectors == 1 && i + 8 <= in; i += 8, k.a += 8, k.sum += 8 * (size_t)k.out)
        outer_rows(&k, rows, 8, vectors, part);
    for (; i + 4 <= in; i += 4, k.a += 4, k.sum += 4 * (size_t)k.out)
        outer_rows(&k, rows, 4, vectors, part);
    for (; i < in; i++, k.a++, k.sum += k.out)
        outer_rows(&k, rows, 1, vectors, part);
}

void GS_KERNEL(outer)(float *sum, const float *a, uint32_t a_stride, const float *b, uint32_t rows, uint32_t in,
                      uint32_t out)
{
    for (uint32_t first = 0; first < out; first += MOST_VECTORS * GS_LANES) {
        const uint32_t left = out - first;
        const pair k = {.sum = sum + first, .a = a, .b = b + first, .stride = a_stride, .out = out,
                        .columns = left < MOST_VECTORS * GS_LANES ? left : MOST_VECTORS * GS_LANES};
        if (k.columns < GS_LANES)
            outer_columns(&k, rows, in, 1, true);
        else if (k.columns == GS_LANES)
            outer_columns(&k, rows, in, 1, false);
        else if (k.columns <= 2 * GS_LANES)
            outer_columns(&k, rows, in, 2, false);
#if MOST_VECTORS == 4
        else if (k.columns <= 3 * GS_LANES)
            outer_columns(&k, rows, in, 3, false);
        else
            outer_columns(&k, rows, in, 4, false);
#endif
    }
}

/* ---- of rows at both ends, which are added up, too ---- */

/* dot[e] = an edge's row by its target's, added up as GS_KERNEL(fold) does; and the row, times `by`, is added to the
 * target's sum: it is read once. `n` vectors (a constant) are a row. */
GS_INLINE void dots_vectors(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s, const gs_cpu_rows *target,
                            const uint32_t n)
{
    const uint32_t edges = f->tile->edges;
    const gs_cpu_rows a = gs_value_rows(f, &s[1].a);
    const float *const by = gs_slot(f, s[1].b.slot);
    float *const dot = gs_slot(f, s->dst), *const sums = f->work->sum[s[1].sum].acc;
    gs_vf part[GS_LANES];
    uint32_t e = 0;
#define EACH _Pragma("GCC unroll 4") for (uint32_t v = 0; v < n; v++)
    for (uint32_t r = 0; r < f->tile->runs; r++) {
        const gs_cpu_edge_run run = f->tile->run[r];
        const float *const own = gs_row(target, run.first);
        float *const acc = sums + (size_t)run.row * n * GS_LANES;
        const gs_cpu_edge_run *const ahead = gs_run_ahead(f->tile->run, f->tile->runs, r);
        gs_prefetch(gs_row(target, ahead->first), n);
        gs_prefetch(sums + (size_t)ahead->row * n * GS_LANES, n);
        gs_vf y[GS_CPU_DOT_VECTORS], sum[GS_CPU_DOT_VECTORS];
        EACH y[v] = gs_load(own + v * GS_LANES);
        EACH sum[v] = gs_load(acc + v * GS_LANES);
        for (e = run.first; e < run.end; e++) {
            const float *const x = gs_row(&a, e);
            if (n > 1 && e + GS_ROWS_AHEAD < edges)
                gs_prefetch(gs_row(&a, e + GS_ROWS_AHEAD), n);
            const gs_vf times = gs_splat(by[e]);
            gs_vf total = {0};
            EACH {
                const gs_vf row = gs_load(x + v * GS_LANES);
                sum[v] += row * times;
                total += row * y[v];
            }
            part[e % GS_LANES] = total;
            if (e % GS_LANES == GS_LANES - 1)
                gs_store(dot + e + 1 - GS_LANES, gs_sums_of(part));
        }
        EACH gs_store(acc + v * GS_LANES, sum[v]);
    }
#undef EACH
    for (uint32_t i = e % GS_LANES; i > 0 && i < GS_LANES; i++)
        part[i] = (gs_vf){0};
    if (e % GS_LANES > 0)
        gs_store_part(dot + e - e % GS_LANES, gs_sums_of(part), e % GS_LANES);
}

void GS_KERNEL(edge_dots)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_edge_value *const target = s->a.form == GS_CPU_EDGE_TARGET ? &s->a : &s->b;
    const gs_cpu_rows own = gs_value_rows(f, target);
#define DOTS(n) \
    case n:     \
        dots_vectors(f, s, &own, n); \
        break
    switch (s[1].width / GS_LANES) {
        DOTS(1);
        DOTS(2);
        DOTS(3);
        DOTS(4);
    default:
        __builtin_unreachable(); /* edge_layout.c */
    }
}
