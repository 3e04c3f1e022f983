/* A tile of edges is added to its targets: sums, largest and least values, and
 * the running maximum and norm of attention.
 *
 * Columns of a target's row stay in registers over its edges in the tile, up to MAX_TILE vectors at a time.
 * The last vector ends where the row ends and may overlap the one before it: both then hold the same sums.
 * Wider rows are cut in blocks of at least MAX_TILE / 2 vectors, so that the overlap is within a block.
 */
#include <math.h>

#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_rows.h"

#define MAX_TILE 8

/* How an edge is added: a row, times a row, times a number, times a number for each group of as many columns as a
 * vector has, or half of it; or as a rival for the largest or least value. */
typedef enum sum_form { PLAIN, TIMES_ROW, TIMES_NUMBER, TIMES_GROUPS, TIMES_HALVES, LARGEST, LEAST } sum_form;

/* A block of columns of all runs of a tile. */
typedef struct sum_block {
    const gs_cpu_edge_run *run;
    uint32_t runs;
    float *acc;     /* first column of row 0 */
    size_t stride;
    uint32_t columns;
    uint32_t from;  /* first column of a's rows */
    gs_cpu_rows a, b;
} sum_block;

GS_INLINE gs_vf v_max(gs_vf x, gs_vf y) { return gs_select((x > y) | (x != x), x, y); } /* NaN wins */
GS_INLINE gs_vf v_min(gs_vf x, gs_vf y) { return gs_select((x < y) | (x != x), x, y); }

GS_INLINE gs_vf with_edge(gs_vf sum, gs_vf x, const float *y, uint32_t at, uint32_t v, gs_vf number,
                          const sum_form form)
{
    switch (form) {
    case TIMES_ROW:
        return sum + x * gs_load(y + at);
    case TIMES_NUMBER:
        return sum + x * number;
    case TIMES_GROUPS:
        return sum + x * gs_splat(y[v]);
    case TIMES_HALVES:
        return sum + x * gs_splat_halves(y[2 * v], y[2 * v + 1]);
    case LARGEST:
        return v_max(x, sum);
    case LEAST:
        return v_min(x, sum);
    default:
        return sum + x;
    }
}

/* `n` vectors (a constant) cover the columns. */
GS_INLINE void sum_vectors(const sum_block *k, const uint32_t n, const sum_form form, const bool half)
{
    const uint32_t tail = k->columns - GS_LANES;
    const bool second = form != PLAIN && form != LARGEST && form != LEAST;
    for (uint32_t r = 0; r < k->runs; r++) {
        const gs_cpu_edge_run run = k->run[r];
        float *const acc = k->acc + run.row * k->stride;
        gs_vf sum[MAX_TILE];
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
            sum[v] = gs_load(acc + (v + 1 < n ? v * GS_LANES : tail));
        for (uint32_t e = run.first; e < run.end; e++) {
            const float *const x = gs_row(&k->a, e), *const y = second ? gs_row(&k->b, e) : NULL;
            const gs_vf number = form == TIMES_NUMBER ? gs_splat(*y) : (gs_vf){0};
            _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
            {
                const uint32_t at = v + 1 < n ? v * GS_LANES : tail;
                sum[v] = with_edge(sum[v], gs_load_row(x, k->from + at, half), y, at, v, number, form);
            }
        }
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
            gs_store(acc + (v + 1 < n ? v * GS_LANES : tail), sum[v]);
    }
}

GS_INLINE void sum_columns(const sum_block *k, const sum_form form, const bool half)
{
#define SUM_VECTORS(N) sum_vectors(k, N, form, half)
    GS_BY_VECTORS(k->columns, SUM_VECTORS);
}

/* Columns [from, from + columns), in blocks that fit the registers; `each` columns of b's are one of its own. */
GS_INLINE void sum_wide(const sum_block *whole, uint32_t from, uint32_t columns, const sum_form form, const bool half)
{
    const uint32_t vectors = (columns + GS_LANES - 1) / GS_LANES, blocks = (vectors + MAX_TILE - 1) / MAX_TILE;
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t first = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
        sum_block k = *whole;
        k.columns = (next < columns ? next : columns) - first;
        k.acc += from + first;
        k.from += from + first;
        if (form == TIMES_ROW)
            k.b.p += from + first;
        else if (form == TIMES_GROUPS)
            k.b.p += first / GS_LANES;
        else if (form == TIMES_HALVES)
            k.b.p += 2 * (size_t)(first / GS_LANES);
        sum_columns(&k, form, half);
    }
}

/* Rows of less than a vector; `width` is a constant where it is a usual one. */
GS_INLINE void sum_narrow(const sum_block *k, const uint32_t width, const sum_form form)
{
    for (uint32_t r = 0; r < k->runs; r++) {
        const gs_cpu_edge_run run = k->run[r];
        float *const acc = k->acc + run.row * k->stride;
        float sum[GS_LANES];
        for (uint32_t c = 0; c < width; c++)
            sum[c] = acc[c];
        for (uint32_t e = run.first; e < run.end; e++) {
            const float *const x = gs_row(&k->a, e);
            const float *const y = form == TIMES_ROW || form == TIMES_NUMBER ? gs_row(&k->b, e) : NULL;
            for (uint32_t c = 0; c < width; c++) {
                if (form == LARGEST)
                    sum[c] = x[c] > sum[c] || x[c] != x[c] ? x[c] : sum[c];
                else if (form == LEAST)
                    sum[c] = x[c] < sum[c] || x[c] != x[c] ? x[c] : sum[c];
                else
                    sum[c] += form == TIMES_ROW ? x[c] * y[c] : form == TIMES_NUMBER ? x[c] * *y : x[c];
            }
        }
        for (uint32_t c = 0; c < width; c++)
            acc[c] = sum[c];
    }
}

/* Rows of bfloat16 have a vector at least. */
GS_INLINE void sum_any(const sum_block *k, const sum_form form)
{
    if (k->a.half) {
        sum_wide(k, 0, k->columns, form, true);
        return;
    }
    if (k->columns >= GS_LANES) {
        sum_wide(k, 0, k->columns, form, false);
        return;
    }
    switch (k->columns) {
    case 1:
        sum_narrow(k, 1, form);
        break;
    case 2:
        sum_narrow(k, 2, form);
        break;
    case 4:
        sum_narrow(k, 4, form);
        break;
#if GS_LANES > 8
    case 8:
        sum_narrow(k, 8, form);
        break;
#endif
    default:
        sum_narrow(k, k->columns, form);
    }
}

static void sum_plain(const sum_block *k) { sum_any(k, PLAIN); }
static void sum_times_row(const sum_block *k) { sum_any(k, TIMES_ROW); }
static void sum_times_number(const sum_block *k) { sum_any(k, TIMES_NUMBER); }
static void sum_largest(const sum_block *k) { sum_any(k, LARGEST); }
static void sum_least(const sum_block *k) { sum_any(k, LEAST); }

/* One number for each group of `each` columns, at least a vector of them; or half of one, rows of whole vectors. */
GS_INLINE void sum_groups(const sum_block *k, uint32_t each, const bool half)
{
    if (each < GS_LANES) {
        sum_wide(k, 0, k->columns, TIMES_HALVES, half);
        return;
    }
    if (each == GS_LANES) {
        sum_wide(k, 0, k->columns, TIMES_GROUPS, half);
        return;
    }
    sum_block group = *k;
    for (uint32_t from = 0; from < k->columns; from += each, group.b.p++)
        sum_wide(&group, from, each, TIMES_NUMBER, half);
}

static void sum_times_groups(const sum_block *k, uint32_t each)
{
    if (k->a.half)
        sum_groups(k, each, true);
    else
        sum_groups(k, each, false);
}

/* Rows that have had no edge get one: from here on their first number is one like the others. */
static void open_rows(const sum_block *k, float neutral)
{
    for (uint32_t r = 0; r < k->runs; r++) {
        float *const acc = k->acc + k->run[r].row * k->stride;
        if (gs_cpu_has_no_edge(acc))
            *acc = neutral;
    }
}

/* The step's sum over these runs. */
static void sum_runs(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s, const gs_cpu_edge_run *run, uint32_t runs)
{
    sum_block k = {.run = run,
                   .runs = runs,
                   .acc = f->work->sum[s->sum].acc,
                   .stride = s->width,
                   .columns = s->width,
                   .a = gs_value_rows(f, &s->a)};
    if (s->fold == GS_SUM_MAX) {
        open_rows(&k, -INFINITY);
        sum_largest(&k);
    } else if (s->fold == GS_SUM_MIN) {
        open_rows(&k, INFINITY);
        sum_least(&k);
    } else if (s->b.form == GS_CPU_EDGE_NOTHING) {
        sum_plain(&k);
    } else {
        k.b = gs_value_rows(f, &s->b);
        if (s->b.width == s->width)
            sum_times_row(&k);
        else if (s->b.width == 1)
            sum_times_number(&k);
        else
            sum_times_groups(&k, s->width / s->b.width);
    }
}

void GS_KERNEL(edge_sum)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    sum_runs(f, s, f->tile->run, f->tile->runs);
}

/* A target has as many rows as there are types; its edges lie sorted by type, so that most of a type are one run. */
void GS_KERNEL(edge_sum_type)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_edge_tile *const t = f->tile;
    gs_cpu_edge_run run[GS_CPU_TILE_EDGES];
    uint32_t runs = 0;

    for (uint32_t r = 0; r < t->runs; r++)
        for (uint32_t e = t->run[r].first; e < t->run[r].end; e++) {
            const uint32_t row = t->run[r].row * f->plan->types + t->type[e];
            if (e == t->run[r].first || row != run[runs - 1].row)
                run[runs++] = (gs_cpu_edge_run){.row = row, .first = e};
            run[runs - 1].end = e + 1;
        }
    sum_runs(f, s, run, runs);
}

/* ---- attention ---- */

/* A head's running maximum rose from `old` to `new`: what was added up with the old one is scaled. */
static void rescale(const gs_accumulator *sum, size_t row, uint32_t heads, uint32_t each, uint32_t head, float old,
                    float new)
{
    if (old == -INFINITY) /* nothing was added yet */
        return;
    const float factor = gs_v_exp(gs_splat(old - new))[0];
    float *const acc = sum->acc + (row * heads + head) * each;
    sum->norm[row * heads + head] *= factor;
    for (uint32_t c = 0; c < each; c++)
        acc[c] *= factor;
}

/* The number that is subtracted from scores: the maximum, but no infinity from infinities. */
GS_INLINE float base_of(float maximum) { return maximum == -INFINITY ? 0 : maximum; }

/* Scores of one head for all runs, vectors along the edges. */
static void raise_one_head(const gs_cpu_edge_tile *tile, const gs_accumulator *sum, float *p, const float *score,
                           uint32_t each)
{
    for (uint32_t r = 0; r < tile->runs; r++) {
        const gs_cpu_edge_run run = tile->run[r];
        const float old = sum->maximum[run.row];
        float m = old;
        uint32_t e = run.first;
        if (run.end - e >= GS_LANES) {
            gs_vf most = gs_load(score + e);
            for (e += GS_LANES; e + GS_LANES <= run.end; e += GS_LANES)
                most = v_max(gs_load(score + e), most);
            const float vector_most = gs_lanes_max(most);
            m = vector_most > m ? vector_most : m;
        }
        for (; e < run.end; e++)
            m = score[e] > m ? score[e] : m;
        if (m > old) {
            rescale(sum, run.row, 1, each, 0, old, m);
            sum->maximum[run.row] = m;
        }
        const float base = base_of(m);
        for (e = run.first; e < run.end; e++)
            p[e] = score[e] - base;
    }
}

/* Heads [c, c + n), at most a vector of them. */
GS_INLINE void raise_heads(const gs_cpu_edge_frame *f, const gs_accumulator *sum, float *p, const float *score,
                           uint32_t heads, uint32_t each, uint32_t c, const uint32_t n)
{
    for (uint32_t r = 0; r < f->tile->runs; r++) {
        const gs_cpu_edge_run run = f->tile->run[r];
        float *const maximum = sum->maximum + (size_t)run.row * heads + c;
        float m[GS_LANES], base[GS_LANES];
        bool rose = false;
        for (uint32_t i = 0; i < n; i++)
            m[i] = maximum[i];
        for (uint32_t e = run.first; e < run.end; e++)
            for (uint32_t i = 0; i < n; i++)
                m[i] = score[(size_t)e * heads + c + i] > m[i] ? score[(size_t)e * heads + c + i] : m[i];
        for (uint32_t i = 0; i < n; i++) {
            rose |= m[i] > maximum[i];
            base[i] = base_of(m[i]);
        }
        for (uint32_t e = run.first; e < run.end; e++)
            for (uint32_t i = 0; i < n; i++)
                p[(size_t)e * heads + c + i] = score[(size_t)e * heads + c + i] - base[i];
        for (uint32_t i = 0; rose && i < n; i++) {
            if (!(m[i] > maximum[i]))
                continue;
            rescale(sum, run.row, heads, each, c + i, maximum[i], m[i]);
            maximum[i] = m[i];
        }
    }
}

static void raise_maxima(const gs_cpu_edge_frame *f, const gs_accumulator *sum, float *p, const float *score,
                         uint32_t heads, uint32_t each)
{
    uint32_t c = 0;
    if (heads == 1) {
        raise_one_head(f->tile, sum, p, score, each);
        return;
    }
    for (; c + GS_LANES <= heads; c += GS_LANES)
        raise_heads(f, sum, p, score, heads, each, c, GS_LANES);
    if (heads - c == GS_LANES / 2)
        raise_heads(f, sum, p, score, heads, each, c, GS_LANES / 2);
    else if (c < heads)
        raise_heads(f, sum, p, score, heads, each, c, heads - c);
}

void GS_KERNEL(edge_attend)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_accumulator *const sum = &f->work->sum[s->sum];
    const uint32_t heads = s->width, each = f->plan->l->stage->reg[f->plan->l->stage->sum[s->sum].reg].width / heads;
    float *const p = gs_slot(f, s->dst);
    const float *const score = gs_value_rows(f, &s->a).p;

    raise_maxima(f, sum, p, score, heads, each);
    GS_KERNEL(unary)(GS_OP_EXP, p, p, (size_t)f->tile->edges * heads, 0);
    sum_plain(&(sum_block){.run = f->tile->run,
                           .runs = f->tile->runs,
                           .acc = sum->norm,
                           .stride = heads,
                           .columns = heads,
                           .a = gs_rows_in_order(p, heads)});
}

/* What sums are multiplied by where the norm is no number above 0: -0 without edges, 0 where all scores are -inf, or
 * NaN. */
static float share_of_nothing(float norm, bool beside)
{
    if (norm == 0.0f)
        return signbit(norm) || beside ? 0.0f : NAN;
    return norm;
}

/* No edges: the sum is 0; the logarithm gives -inf. */
void GS_KERNEL(finish_attend)(const gs_accumulator *sum, uint32_t rows, uint32_t width, uint32_t heads)
{
    const uint32_t each = width / heads;
    const size_t n = (size_t)rows * heads;
    float *acc = sum->acc;
    for (size_t i = 0; i < n; i++, acc += each) {
        const float inverse =
            sum->norm[i] > 0 ? 1.0f / sum->norm[i] : share_of_nothing(sum->norm[i], sum->beside);
        for (uint32_t c = 0; c < each; c++)
            acc[c] *= inverse;
    }
    GS_KERNEL(unary)(GS_OP_LOG, sum->norm, sum->norm, n, 0);
    GS_KERNEL(add)(sum->maximum, sum->norm, n);
}
