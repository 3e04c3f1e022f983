/* Sums of edge programs: rows at the operand end alone, and tiles of values. */
#include <math.h>

#include "base/dtype.h"
#include "base/size.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_rows.h"

/* ---- rows at the operand end ----
 *
 * Edge programs that add up rows at the operand end, each times one number or as it is: weighted sums, means by type
 * of edges, and their gradients; and sums of rows by type that are no program.
 *
 * They need no tile of values, so edges go straight from their numbers to sums in registers, in the order that the
 * evaluator has. A row may be the columns of the edge's type, and so may the accumulator's: edges that are sorted by
 * type keep their sums in registers.
 */

#define AHEAD 32 /* edges */
#define LINE 64

/* An address that is linear in the numbers that an edge has. */
typedef struct place {
    const float *p;
    size_t by_operand, by_target, by_type, by_edge; /* floats, of rows of bfloat16 the places of so many */
} place;

typedef struct walk {
    const gs_edges *edges;
    const void *type; /* or NULL: nothing goes by it */
    place row, number;
    uint32_t columns, from; /* at hand, from this one on */
    uint32_t last;    /* edge that may be prefetched */
} walk;

/* How the numbers of edges lie in memory: constants of a loop. */
typedef struct numbers {
    uint32_t index_bytes;
    bool typed, half, times; /* times: a row is multiplied by a number */
} numbers;

GS_INLINE uint32_t type_of(const walk *w, uint32_t k) { return gs_type_at(w->type, w->edges->type_bytes, k); }

GS_INLINE const float *operand_at(const place *p, uint32_t operand, uint32_t type)
{
    return p->p + operand * p->by_operand + type * p->by_type;
}

GS_INLINE void prefetch_ahead(const walk *w, uint32_t k, const uint32_t vectors, const numbers f)
{
    const uint32_t next = w->last - k > AHEAD ? k + AHEAD : w->last;
    const uint32_t operand = gs_index_at(w->edges->index, f.index_bytes, next), type = f.typed ? type_of(w, next) : 0;
    const uint32_t bytes = f.half ? sizeof(uint16_t) : sizeof(float);
    const char *const row = (const char *)operand_at(&w->row, operand, type) + w->from * bytes;
    for (uint32_t b = 0; b < vectors * GS_LANES * bytes; b += LINE)
        __builtin_prefetch(row + b);
    __builtin_prefetch(row + w->columns * bytes - 1);
    if (f.times)
        __builtin_prefetch(operand_at(&w->number, operand, type));
}

/* acc += edges [k, end) of a target; `n` vectors (a constant) cover the columns, the last one ends where they do. */
GS_INLINE void add_vectors(const walk *w, float *acc, const float *number, uint32_t k, uint32_t end, const uint32_t n,
                           const numbers f)
{
    const uint32_t tail = w->columns - GS_LANES;
    gs_vf sum[GS_MOST_VECTORS];
    _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        sum[v] = gs_load(acc + (v + 1 < n ? v * GS_LANES : tail));
    for (; k < end; k++) {
        const uint32_t operand = gs_index_at(w->edges->index, f.index_bytes, k), type = f.typed ? type_of(w, k) : 0;
        const float *const x = operand_at(&w->row, operand, type);
        const size_t at =
            f.times ? operand * w->number.by_operand + type * w->number.by_type + k * w->number.by_edge : 0;
        const gs_vf y = f.times ? gs_splat(number[at]) : (gs_vf){0};
        prefetch_ahead(w, k, n, f);
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        {
            const gs_vf row = gs_load_row(x, w->from + (v + 1 < n ? v * GS_LANES : tail), f.half);
            sum[v] += f.times ? row * y : row;
        }
    }
    _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        gs_store(acc + (v + 1 < n ? v * GS_LANES : tail), sum[v]);
}

GS_INLINE void add_columns(const walk *w, float *acc, const float *number, uint32_t k, uint32_t end, const numbers f)
{
#define ADD_VECTORS(N) add_vectors(w, acc, number, k, end, N, f)
    GS_BY_VECTORS(w->columns, ADD_VECTORS);
}

/* Rows of less than a vector, as they are. */
static void add_narrow(const walk *w, float *acc, uint32_t k, uint32_t end)
{
    const numbers f = {.index_bytes = w->edges->index_bytes, .typed = w->type != NULL};
    for (; k < end; k++) {
        const uint32_t operand = gs_index_at(w->edges->index, f.index_bytes, k), type = f.typed ? type_of(w, k) : 0;
        const float *const x = operand_at(&w->row, operand, type);
        prefetch_ahead(w, k, 1, f);
        for (uint32_t c = 0; c < w->columns; c++)
            acc[c] += x[c];
    }
}

/* Wider rows in blocks of vectors, the last of which may overlap another of its block. `number` NULL: as they are. */
static void add_row(const walk *whole, float *acc, const float *number, uint32_t k, uint32_t end, bool half)
{
#define ADD(...) add_columns(&w, acc + first, number, k, end, (numbers){__VA_ARGS__})
#define ADD_INDEX(...) (two ? ADD(.index_bytes = 2, __VA_ARGS__) : ADD(.index_bytes = 4, __VA_ARGS__))
    const uint32_t vectors = (whole->columns + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + GS_MOST_VECTORS - 1) / GS_MOST_VECTORS;
    const bool two = whole->edges->index_bytes == 2, typed = whole->type != NULL;
    if (whole->columns < GS_LANES) {
        add_narrow(whole, acc, k, end);
        return;
    }
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t first = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
        walk w = *whole;
        w.from = first;
        w.columns = (next < whole->columns ? next : whole->columns) - first;
        if (number == NULL && typed)
            ADD_INDEX(.typed = true);
        else if (number == NULL)
            ADD_INDEX(.typed = false);
        else if (half)
            ADD_INDEX(.half = true, .times = true);
        else if (typed)
            ADD_INDEX(.typed = true, .times = true);
        else
            ADD_INDEX(.times = true);
    }
}

static place place_of(const gs_cpu_edge_value *v, uint32_t types)
{
    static const float one = 1.0f;
    const size_t width = v->width;
    switch (v->form) {
    case GS_CPU_EDGE_OPERAND:
        return (place){.p = v->p, .by_operand = gs_row_floats(v)};
    case GS_CPU_EDGE_OPERAND_TYPE:
        return (place){.p = v->p, .by_operand = width * types, .by_type = width};
    case GS_CPU_EDGE_TARGET:
        return (place){.p = v->p, .by_target = width};
    case GS_CPU_EDGE_TARGET_TYPE:
        return (place){.p = v->p, .by_target = width * types, .by_type = width};
    case GS_CPU_EDGE_STORED:
        return (place){.p = v->p, .by_edge = v->stride};
    case GS_CPU_EDGE_FIXED:
        return (place){.p = v->p};
    default: /* NOTHING */
        return (place){.p = &one};
    }
}

/* Edges [k, end) of a target, sorted by type: each to the columns of its type, `width` of them. */
static void add_runs(const walk *w, float *acc, size_t width, const float *number, uint32_t k, uint32_t end)
{
    const gs_edges *const e = w->edges;
    for (uint32_t next; k < end; k = next) {
        const uint32_t type = gs_type_at(e->type, e->type_bytes, k);
        for (next = k + 1; next < end && gs_type_at(e->type, e->type_bytes, next) == type; next++)
            ;
        add_row(w, acc + type * width, number, k, next, false);
    }
}

/* Edges [k, end) of target t, whose sums are row `row`. */
static void add_target(const walk *w, const gs_cpu_edge_plan *plan, float *acc, uint32_t t, uint32_t k, uint32_t end)
{
    const gs_cpu_edge_step *const s = &plan->step[0];
    const float *const number = w->number.p + t * w->number.by_target;
    if (s->kind == GS_CPU_EDGE_SUM)
        add_row(w, acc, number, k, end, s->a.half);
    else
        add_runs(w, acc, s->width, number, k, end);
}

void GS_KERNEL(edge_rows)(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work)
{
    const gs_edges *const e = &plan->l->edges;
    const gs_cpu_edge_step *const s = &plan->step[0];
    const size_t stride = (size_t)s->width * (s->kind == GS_CPU_EDGE_SUM ? 1 : plan->types);
    float *const acc = work->sum[s->sum].acc;
    walk w = {.edges = e,
              .type = plan->types > 0 ? e->type : NULL,
              .row = place_of(&s->a, plan->types),
              .number = place_of(&s->b, plan->types),
              .columns = s->width};

    if (work->from < work->to) {
        w.last = work->to - 1;
        add_target(&w, plan, acc + work->row * stride, gs_index_at(e->target, e->index_bytes, work->first), work->from,
                   work->to);
        return;
    }
    if (e->start[work->first] == e->start[work->end])
        return;
    w.last = e->start[work->end] - 1;
    for (uint32_t t = work->first; t < work->end; t++) {
        const uint32_t target = gs_index_at(e->target, e->index_bytes, t);
        add_target(&w, plan, acc + target * stride, target, e->start[t], e->start[t + 1]);
    }
}

void GS_KERNEL(typed)(const gs_edge_launch *l, uint32_t first, uint32_t end, uint32_t column, uint32_t columns)
{
    const gs_edges *const e = &l->edges;
    const size_t width = l->width, all = width * l->types;
    if (first == end || e->start[first] == e->start[end])
        return;
    const walk w = {.edges = e,
                    .type = l->pick ? e->type : NULL,
                    .row = {.p = (const float *)l->operand + column,
                            .by_operand = l->pick ? all : width,
                            .by_type = l->pick ? width : 0},
                    .columns = columns,
                    .last = e->start[end] - 1};
    for (uint32_t t = first; t < end; t++) {
        float *const acc =
            l->acc + gs_index_at(e->target, e->index_bytes, t) * (l->pick ? width : all) + column;
        if (l->pick)
            add_row(&w, acc, NULL, e->start[t], e->start[t + 1], false);
        else
            add_runs(&w, acc, width, NULL, e->start[t], e->start[t + 1]);
    }
}

/* ---- sums of a tile ----
 *
 * A tile of edges is added to its targets: sums, largest and least values, and
 * the running maximum and norm of attention.
 *
 * Columns of a target's row stay in registers over its edges in the tile, up to GS_MOST_VECTORS at a time.
 * The last vector ends where the row ends and may overlap the one before it: both then hold the same sums.
 * Wider rows are cut in blocks of at least GS_MOST_VECTORS / 2 vectors, so that the overlap is within a block.
 */

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

/* A row that a later run adds to is on its way; `acc` is row 0. */
GS_INLINE void prefetch_sum(const sum_block *k, const float *acc, uint32_t r, const uint32_t n)
{
    gs_prefetch(acc + gs_run_ahead(k->run, k->runs, r)->row * k->stride, n);
}

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
        gs_vf sum[GS_MOST_VECTORS];
        prefetch_sum(k, k->acc, r, n);
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
    const uint32_t vectors = (columns + GS_LANES - 1) / GS_LANES;
    const uint32_t blocks = (vectors + GS_MOST_VECTORS - 1) / GS_MOST_VECTORS;
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

/* That stand in registers together, three of each. */
#if GS_LANES == 16 && !defined(GS_FEW_VECTORS)
#define HELD_VECTORS 4
#else
#define HELD_VECTORS 2
#endif

/* A vector of largest or least values, who has each alone (0: several, or none), and how many edges have it. */
typedef struct held {
    gs_vf most, who, count;
} held;

/* Another edge, of number `who`. */
GS_INLINE void hold(held *h, gs_vf x, gs_vf who, const bool largest)
{
    const gs_vf none = gs_splat(0);
    const gs_mask number = gs_is_equal(x, x), same = gs_is_equal(x, h->most);
    const gs_mask beyond = (largest ? gs_is_above(x, h->most) : gs_is_above(h->most, x)) | gs_is_other(x, x);
    const gs_mask first = beyond | (same & gs_is_equal(h->count, none));
    const gs_vf count = gs_blend(beyond, none, h->count);
    h->most = gs_blend(beyond, x, h->most);
    h->count = gs_blend(same | (beyond & number), count + gs_splat(1), count);
    h->who = gs_blend(first & number, who, gs_blend(beyond | (same & gs_is_other(h->who, who)), none, h->who));
}

/* `n` vectors (a constant) cover the columns, of rows of `width`. */
GS_INLINE void held_vectors(const sum_block *k, size_t width, const uint32_t n, const bool largest)
{
    const uint32_t tail = k->columns - GS_LANES;
    for (uint32_t r = 0; r < k->runs; r++) {
        const gs_cpu_edge_run run = k->run[r];
        float *const acc = k->acc + run.row * k->stride;
        held h[HELD_VECTORS];
        for (uint32_t i = 0; i < 3; i++)
            prefetch_sum(k, k->acc + i * width, r, n);
#define AT(v) ((v) + 1 < n ? (v) * GS_LANES : tail)
        _Pragma("GCC unroll 4") for (uint32_t v = 0; v < n; v++)
            h[v] = (held){gs_load(acc + AT(v)), gs_load(acc + width + AT(v)), gs_load(acc + 2 * width + AT(v))};
        for (uint32_t e = run.first; e < run.end; e++) {
            const float *const x = gs_row(&k->a, e) + k->from, *const who = gs_row(&k->b, e);
            _Pragma("GCC unroll 4") for (uint32_t v = 0; v < n; v++)
                hold(&h[v], gs_load(x + AT(v)), gs_splat(*who), largest);
        }
        _Pragma("GCC unroll 4") for (uint32_t v = 0; v < n; v++)
            gs_store(acc + AT(v), h[v].most), gs_store(acc + width + AT(v), h[v].who),
                gs_store(acc + 2 * width + AT(v), h[v].count);
#undef AT
    }
}

/* Rows of less than a vector. */
static void held_narrow(const sum_block *k, uint32_t width, bool largest)
{
    for (uint32_t r = 0; r < k->runs; r++) {
        float *const acc = k->acc + k->run[r].row * k->stride, *const who = acc + width, *const count = who + width;
        held h = {gs_load_part(acc, width), gs_load_part(who, width), gs_load_part(count, width)};
        for (uint32_t e = k->run[r].first; e < k->run[r].end; e++)
            hold(&h, gs_load_part(gs_row(&k->a, e), width), gs_splat(*gs_row(&k->b, e)), largest);
        gs_store_part(acc, h.most, width);
        gs_store_part(who, h.who, width);
        gs_store_part(count, h.count, width);
    }
}

/* The last vector may overlap the one before it within a block: both hold the same then. */
GS_INLINE void sum_held(const sum_block *whole, uint32_t width, const bool largest)
{
    const uint32_t vectors = (width + GS_LANES - 1) / GS_LANES, blocks = (vectors + HELD_VECTORS - 1) / HELD_VECTORS;
    for (uint32_t i = 0; width >= GS_LANES && i < blocks; i++) {
        const uint32_t first = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
        sum_block k = *whole;
        k.columns = (next < width ? next : width) - first;
        k.acc += first;
        k.from = first;
        if (k.columns <= GS_LANES)
            held_vectors(&k, width, 1, largest);
        else if (k.columns <= 2 * GS_LANES)
            held_vectors(&k, width, 2, largest);
#if HELD_VECTORS == 4
        else if (k.columns <= 3 * GS_LANES)
            held_vectors(&k, width, 3, largest);
        else
            held_vectors(&k, width, 4, largest);
#endif
    }
    if (width < GS_LANES)
        held_narrow(whole, width, largest);
}

static void held_largest(const sum_block *k, uint32_t width) { sum_held(k, width, true); }
static void held_least(const sum_block *k, uint32_t width) { sum_held(k, width, false); }

/* Rows that have had no edge get one: from here on their first number is one like the others. */
static void open_rows(const sum_block *k, float neutral)
{
    for (uint32_t r = 0; r < k->runs; r++) {
        float *const acc = k->acc + k->run[r].row * k->stride;
        if (gs_cpu_has_no_edge(acc))
            *acc = neutral;
    }
}

/* Maxima and norms of the other sums by the same scores are those of sum `own`. */
static void copy_norms(const gs_cpu_edge_frame *f, uint32_t own)
{
    const gs_stage *const stage = f->plan->l->stage;
    const uint32_t heads = stage->edge_reg[stage->sum[own].score].width;
    const gs_accumulator copy = f->work->sum[own], *const from = &copy;
    for (uint32_t k = own + 1; k < stage->sums; k++) {
        const gs_accumulator to = f->work->sum[k];
        for (uint32_t r = 0, runs = gs_same_scores(stage, k, own) ? f->tile->runs : 0; r < runs; r++)
            for (size_t i = f->tile->run[r].row * (size_t)heads, end = i + heads; i < end; i++) {
                to.maximum[i] = from->maximum[i];
                to.norm[i] = from->norm[i];
            }
    }
}

static float *sums_of(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    return s->norm ? f->work->sum[s->sum].norm : f->work->sum[s->sum].acc;
}

/* The step's sum over these runs. */
static void sum_runs(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s, const gs_cpu_edge_run *run, uint32_t runs)
{
    sum_block k = {.run = run,
                   .runs = runs,
                   .acc = sums_of(f, s),
                   .stride = s->width,
                   .columns = s->width,
                   .a = gs_value_rows(f, &s->a)};
    if (gs_sum_is_held(s->fold)) {
        k.stride = 3 * (size_t)s->width;
        k.b = gs_value_rows(f, &s->b);
        open_rows(&k, s->fold == GS_SUM_MAX_HELD ? -INFINITY : INFINITY);
        (s->fold == GS_SUM_MAX_HELD ? held_largest : held_least)(&k, s->width);
    } else if (s->fold == GS_SUM_MAX) {
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
    if (s->norm)
        copy_norms(f, s->sum);
}

/* ---- several sums in one walk ----
 *
 * A row that is at hand is added to each sum of such rows, and a vertex with few edges, as most are, has one end of a
 * loop that is not foreseen.
 */

/* A sum of numbers: acc += x * y. */
typedef struct number_sum {
    float *acc;
    const float *x, *y;
    uint32_t row_step, x_step, y_step; /* 0: the same for all */
} number_sum;

typedef struct together {
    sum_block k; /* of rows; b: not looked at */
    uint32_t rows, numbers;
    float *acc[GS_CPU_EDGE_TOGETHER];           /* of row 0, k.columns of k.stride */
    const float *by[GS_CPU_EDGE_TOGETHER];      /* what an edge's row is multiplied by */
    number_sum number[GS_CPU_EDGE_TOGETHER];
} together;

/* `n` vectors (a constant) cover the columns; `two` sums of rows. */
GS_INLINE void together_vectors(const together *t, const uint32_t n, const bool two)
{
    const sum_block *const k = &t->k;
    const uint32_t tail = k->columns - GS_LANES;
    const number_sum a = t->number[0], b = t->number[1];
    const uint32_t edges = k->run[k->runs - 1].end;
#define AT(v) ((v) + 1 < n ? (v) * GS_LANES : tail)
#define EACH _Pragma("GCC unroll 4") for (uint32_t v = 0; v < n; v++)
    for (uint32_t r = 0; r < k->runs; r++) {
        const gs_cpu_edge_run run = k->run[r];
        float *const acc = t->acc[0] + run.row * k->stride, *const other = t->acc[1] + run.row * k->stride;
        float *const a_to = a.acc + (size_t)run.row * a.row_step, *const b_to = b.acc + (size_t)run.row * b.row_step;
        float a_sum = *a_to, b_sum = *b_to;
        gs_vf sum[GS_MOST_VECTORS], more[GS_MOST_VECTORS];
        prefetch_sum(k, t->acc[0], r, n);
        if (two)
            prefetch_sum(k, t->acc[1], r, n);
        EACH sum[v] = gs_load(acc + AT(v));
        EACH more[v] = two ? gs_load(other + AT(v)) : gs_splat(0);
        for (uint32_t e = run.first; e < run.end; e++) {
            const float *const x = gs_row(&k->a, e) + k->from;
            if (n > 1 && e + GS_ROWS_AHEAD < edges) /* a line comes soon enough by itself */
                gs_prefetch(gs_row(&k->a, e + GS_ROWS_AHEAD) + k->from, n);
            const gs_vf by = gs_splat(t->by[0][e]), by_other = two ? gs_splat(t->by[1][e]) : gs_splat(0);
            EACH {
                const gs_vf row = gs_load(x + AT(v));
                sum[v] += row * by;
                more[v] = two ? more[v] + row * by_other : more[v];
            }
            a_sum += a.x[e * a.x_step] * a.y[e * a.y_step];
            b_sum += b.x[e * b.x_step] * b.y[e * b.y_step];
        }
        EACH gs_store(acc + AT(v), sum[v]);
        if (two)
            EACH gs_store(other + AT(v), more[v]);
        *a_to = a_sum;
        *b_to = b_sum;
    }
#undef EACH
#undef AT
}

/* As many vectors as leave registers for the rows; two at least, so that the last one of a row may overlap another. */
#define TOGETHER_VECTORS ((GS_MOST_VECTORS + 1u) / 2)

static void together_block(const together *t)
{
    const uint32_t vectors = (t->k.columns + GS_LANES - 1) / GS_LANES;
#define TOGETHER(n) \
    case n:         \
        t->rows > 1 ? together_vectors(t, n, true) : together_vectors(t, n, false); \
        break
    switch (vectors) {
        TOGETHER(1);
        TOGETHER(2);
#if !defined(GS_FEW_VECTORS)
        TOGETHER(3);
        TOGETHER(4);
#endif
    default:
        __builtin_unreachable();
    }
}

/* A sum of rows or of numbers among those together. */
static void add_to_walk(together *t, const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    static const float one = 1.0f;
    if (s->width > 1) {
        t->k.stride = s->width;
        t->k.a = gs_value_rows(f, &s->a);
        t->acc[t->rows] = sums_of(f, s);
        t->by[t->rows++] = gs_slot(f, s->b.slot);
        return;
    }
    const bool product = s->b.form != GS_CPU_EDGE_NOTHING;
    t->number[t->numbers++] = (number_sum){.acc = sums_of(f, s), .row_step = 1, .x = gs_slot(f, s->a.slot), .x_step = 1,
                                           .y = product ? gs_slot(f, s->b.slot) : &one, .y_step = product};
}

void GS_KERNEL(edge_sums)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    float none = 0;
    together t = {.k = {.run = f->tile->run, .runs = f->tile->runs}, .number = {{&none, &none, &none, 0, 0, 0},
                                                                                 {&none, &none, &none, 0, 0, 0}}};
    for (uint32_t i = 0; i <= s->links; i++)
        add_to_walk(&t, f, &s[i]);
    const uint32_t width = (uint32_t)t.k.stride, vectors = (width + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + TOGETHER_VECTORS - 1) / TOGETHER_VECTORS;
    for (uint32_t i = 0; i < blocks; i++) {
        together b = t;
        const uint32_t next = vectors * (i + 1) / blocks * GS_LANES;
        b.k.from = vectors * i / blocks * GS_LANES;
        b.k.columns = (next < width ? next : width) - b.k.from;
        for (uint32_t k = 0; k < GS_CPU_EDGE_TOGETHER; k++) {
            b.acc[k] = t.acc[GS_MIN(k, t.rows - 1)] + b.k.from;
            b.by[k] = t.by[GS_MIN(k, t.rows - 1)];
        }
        for (uint32_t k = 0; i > 0 && k < GS_CPU_EDGE_TOGETHER; k++) /* numbers are added once */
            b.number[k] = (number_sum){&none, &none, &none, 0, 0, 0};
        together_block(&b);
    }
    for (uint32_t i = 0; i <= s->links; i++)
        if (s[i].norm)
            copy_norms(f, s[i].sum);
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

/* Sums that one step attends for, and its own: those of its scores. */
typedef struct attended {
    const gs_stage *stage;
    const gs_accumulator *sum; /* of the stage */
    uint32_t own, heads;
} attended;

/* A head's running maximum rose from `old` to `new`: what was added up with the old one is scaled. */
static void rescale(const attended *t, size_t row, uint32_t head, float old, float new)
{
    const size_t at = row * t->heads + head;
    if (old == -INFINITY) /* nothing was added yet */
        return;
    const float factor = gs_v_exp(gs_splat(old - new))[0];
    t->sum[t->own].norm[at] *= factor;
    for (uint32_t k = t->own; k < t->stage->sums; k++) {
        if (!gs_same_scores(t->stage, k, t->own))
            continue;
        const uint32_t each = t->stage->reg[t->stage->sum[k].reg].width / t->heads;
        float *const acc = t->sum[k].acc + at * each;
        for (uint32_t c = 0; c < each; c++)
            acc[c] *= factor;
    }
}

/* The number that is subtracted from scores: the maximum, but no infinity from infinities. */
GS_INLINE float base_of(float maximum) { return maximum == -INFINITY ? 0 : maximum; }

/* A vector of scores of edges [e, end), and -inf behind them: where there are fewer in memory than a vector has, a part
 * is read. */
GS_INLINE gs_vf scores_from(const float *score, uint32_t e, uint32_t end, uint32_t edges)
{
    const uint32_t n = end - e < GS_LANES ? end - e : GS_LANES;
    const gs_vf x = edges - e < GS_LANES ? gs_load_part(score + e, n) : gs_load(score + e);
    return gs_select(gs_lane_numbers() < (int32_t)n, x, gs_splat(-INFINITY));
}

/* Scores of one head for all runs, vectors along the edges: most runs have no more than one. What is written behind a
 * run's end is written over by the next one. */
static void raise_one_head(const gs_cpu_edge_tile *tile, const attended *t, float *p, const float *score)
{
    const gs_accumulator *const sum = &t->sum[t->own];
    for (uint32_t r = 0; r < tile->runs; r++) {
        const gs_cpu_edge_run run = tile->run[r];
        const float old = sum->maximum[run.row];
        gs_vf most = gs_splat(old);
        for (uint32_t e = run.first; e < run.end; e += GS_LANES)
            most = v_max(scores_from(score, e, run.end, tile->edges), most);
        const float found = gs_lanes_max(most), m = found > old ? found : old, base = base_of(m);
        if (m > old) {
            rescale(t, run.row, 0, old, m);
            sum->maximum[run.row] = m;
        }
        for (uint32_t e = run.first; e < run.end; e += GS_LANES) {
            const gs_vf x = scores_from(score, e, run.end, tile->edges) - base;
            if (tile->edges - e < GS_LANES)
                gs_store_part(p + e, x, tile->edges - e);
            else
                gs_store(p + e, x);
        }
    }
}

/* Heads [c, c + n), at most a vector of them. */
GS_INLINE void raise_heads(const gs_cpu_edge_tile *tile, const attended *t, float *p, const float *score, uint32_t c,
                           const uint32_t n)
{
    const uint32_t heads = t->heads;
    for (uint32_t r = 0; r < tile->runs; r++) {
        const gs_cpu_edge_run run = tile->run[r];
        float *const maximum = t->sum[t->own].maximum + (size_t)run.row * heads + c;
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
            rescale(t, run.row, c + i, maximum[i], m[i]);
            maximum[i] = m[i];
        }
    }
}

static void raise_maxima(const gs_cpu_edge_tile *tile, const attended *t, float *p, const float *score)
{
    uint32_t c = 0;
    if (t->heads == 1) {
        raise_one_head(tile, t, p, score);
        return;
    }
    for (; c + GS_LANES <= t->heads; c += GS_LANES)
        raise_heads(tile, t, p, score, c, GS_LANES);
    if (t->heads - c == GS_LANES / 2)
        raise_heads(tile, t, p, score, c, GS_LANES / 2);
    else if (c < t->heads)
        raise_heads(tile, t, p, score, c, t->heads - c);
}

void GS_KERNEL(edge_attend)(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const uint32_t heads = s->width;
    const attended t = {.stage = f->plan->l->stage, .sum = f->work->sum, .own = s->sum, .heads = heads};
    float *const p = gs_slot(f, s->dst);

    raise_maxima(f->tile, &t, p, gs_value_rows(f, &s->a).p);
    GS_KERNEL(unary)(GS_OP_EXP, p, p, (size_t)f->tile->edges * heads, 0);
}
