/* Edge programs: tiles of edges, one after the other, and all steps of the plan on each.
 *
 * A target whose edges fit in a tile is never cut, and one with more is cut at whole
 * tiles from its own first edge. So what is computed for a target does not depend on
 * which targets a thread takes together.
 *
 * The row numbers of the next tile are known while one is computed: its rows are prefetched
 * between the steps, a share of them each time.
 */
#include "base/dtype.h"
#include "base/size.h"
#include "device/cpu/gemm.h" /* gs_cpu__steady_rows() */
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_math.h"
#include "device/cpu/simd_rows.h"

#define LINE 64          /* bytes of a cache line */
#define PREFETCH_EDGES 32 /* at least, between two steps, so that the loops over them are predicted */

/* Where a thread is in its work. */
typedef struct cursor {
    const gs_edges *edges;
    const gs_cpu_edge_work *work;
    uint32_t target, end; /* the target that comes next */
    uint32_t edge, stop;  /* its edges that come next */
    uint32_t tile;        /* edges of a full one */
    uint32_t types;       /* 0: nothing goes by them */
    uint32_t limit;       /* no edge from here on */
    bool typed;
} cursor;

static void cursor_start(cursor *c, const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work)
{
    const gs_edges *const e = &plan->l->edges;
    *c = (cursor){.edges = e, .work = work, .tile = plan->tile, .types = plan->types, .typed = plan->typed,
                  .target = work->first, .end = work->end, .limit = UINT32_MAX};
    if (work->from < work->to) {
        c->end = GS_MAX(work->end, work->first + 1);
        c->limit = work->to;
        c->edge = work->from;
        c->stop = GS_MIN(e->start[work->first + 1], c->limit);
    } else if (c->target < c->end) {
        c->edge = e->start[c->target];
        c->stop = e->start[c->target + 1];
    }
}

static void next_target(cursor *c)
{
    c->target++;
    if (c->target < c->end && c->edges->start[c->target] < c->limit) {
        c->edge = c->edges->start[c->target];
        c->stop = GS_MIN(c->edges->start[c->target + 1], c->limit);
    } else {
        c->target = c->end;
    }
}

/* Edges of the cursor's target that go into a tile with this much room: all, or none, or of
 * many a tile full. */
static uint32_t edges_to_take(const cursor *c, uint32_t room)
{
    const uint32_t left = c->stop - c->edge;
    if (left <= room)
        return left;
    return room == c->tile ? room : 0;
}

/* Where the columns of each edge's type are, in arrays of so many times as many rows. */
static void find_types(const gs_edges *e, gs_cpu_edge_tile *t, uint32_t types)
{
    const uint32_t edges = t->edges, *const operand = t->operand, *const restrict target = t->target;
    uint32_t *const restrict type = t->type, *const restrict operand_type = t->operand_type;
    uint32_t *const restrict target_type = t->target_type;
    const uint8_t *const narrow = (const uint8_t *)e->type + t->edge;
    const uint16_t *const wide = (const uint16_t *)e->type + t->edge;
    for (uint32_t i = 0; i < edges; i++) {
        type[i] = e->type_bytes == 1 ? narrow[i] : wide[i];
        operand_type[i] = operand[i] * types + type[i];
        target_type[i] = target[i] * types + type[i];
    }
}

/* The tile's edges' rows at the operand end. */
static void find_operands(const gs_edges *e, gs_cpu_edge_tile *t)
{
    const uint32_t edges = t->edges;
    uint32_t *const restrict room = t->room;
    const uint16_t *const narrow = (const uint16_t *)e->index + t->edge;
    for (uint32_t i = 0; e->index_bytes == 2 && i < edges; i++)
        room[i] = narrow[i];
    t->operand = e->index_bytes == 2 ? room : (const uint32_t *)e->index + t->edge;
}

/* False when there is no more. */
static bool next_tile(cursor *c, gs_cpu_edge_tile *t)
{
    const gs_edges *const e = c->edges;
    t->edges = t->runs = 0;
    while (c->target < c->end) {
        const uint32_t n = edges_to_take(c, c->tile - t->edges);
        if (n == 0 && c->edge < c->stop)
            break;
        if (n > 0) {
            const uint32_t row = gs_index_at(e->target, e->index_bytes, c->target);
            if (t->runs == 0)
                t->edge = c->edge;
            const uint32_t sums_row = c->work->from < c->work->to ? c->work->row : row;
            t->run[t->runs++] = (gs_cpu_edge_run){.row = sums_row, .first = t->edges, .end = t->edges + n};
            const gs_vu all = (gs_vu){0} + row;
            for (uint32_t i = 0; i < n; i += GS_LANES) /* what is too much is written over later: types come behind */
                memcpy(t->target + t->edges + i, &all, sizeof(all));
            t->edges += n;
            c->edge += n;
        }
        if (c->edge == c->stop)
            next_target(c);
        else
            break; /* a full tile of a target that has more */
    }
    find_operands(e, t);
    if (c->types > 0)
        find_types(e, t, c->types);
    if (c->typed)
        gs_cpu_edge_order(t->type, t->edges, c->types, t->order, t->spare);
    return t->edges > 0;
}

#define PICK_AHEAD 12 /* edges whose rows are on their way */

/* Bits of columns [from, end) of x, 64 at most: is the number that of y, a row or one number? */
GS_INLINE uint64_t equal_columns(const float *x, const float *y, const bool number, uint32_t from, uint32_t end)
{
    const uint32_t more = (end - from) % GS_LANES;
    uint64_t bits = 0;
    uint32_t c = from;
    for (; c + GS_LANES <= end; c += GS_LANES)
        bits |= (uint64_t)gs_equal(gs_load(x + c), number ? gs_splat(*y) : gs_load(y + c)) << (c - from);
    if (more > 0)
        bits |= (uint64_t)(gs_equal(gs_load_part(x + c, more), number ? gs_splat(*y) : gs_load_part(y + c, more)) &
                           ((1u << more) - 1))
                << (c - from);
    return bits;
}

/* Does the row have a number that is 0 or `source`? `bits`: which numbers are, of words of 64, or NULL; `ties` becomes
 * true where some are 0. All of the row is looked at: half of the edges are picked, so few would foresee where a loop
 * ends that stops where that is known. */
GS_INLINE bool is_picked(const float *who, float source, uint32_t width, uint64_t *bits, bool *ties)
{
    static const float none = 0;
    bool picked = false;
    for (uint32_t from = 0; from < width; from += 64) {
        const uint32_t end = GS_MIN(width, from + 64);
        const uint64_t is = equal_columns(who, &source, true, from, end),
                       zero = equal_columns(who, &none, true, from, end);
        if (bits != NULL)
            bits[from / 64] = is;
        *ties |= zero != 0;
        picked |= (is | zero) != 0;
    }
    return picked;
}

/* Leaves edges that add something in a tile. */
static void pick_edges(const gs_cpu_edge_plan *plan, gs_cpu_edge_tile *t)
{
    const gs_cpu_edge_frame f = {.plan = plan, .tile = t};
    const gs_cpu_rows who = gs_value_rows(&f, &plan->who), source = gs_value_rows(&f, &plan->source);
    const uint32_t edges = t->edges, width = plan->who.width, words = gs_cpu_bits_width(width) / 2;
    uint32_t n = 0, runs = 0;
    bool ties = false;

    for (uint32_t r = 0; r < t->runs; r++) {
        const gs_cpu_edge_run run = t->run[r];
        const uint32_t first = n;
        for (uint32_t e = run.first; e < run.end; e++) {
            if (e + PICK_AHEAD < edges) {
                const char *const row = (const char *)gs_row(&who, e + PICK_AHEAD);
                __builtin_prefetch(gs_row(&source, e + PICK_AHEAD));
                for (size_t i = 0; i < width * sizeof(float); i += LINE)
                    __builtin_prefetch(row + i);
            }
            const bool picked = is_picked(gs_row(&who, e), *gs_row(&source, e), width,
                                          t->bits == NULL ? NULL : t->bits + (size_t)n * words, &ties);
            t->room[n] = t->operand[e];
            t->target[n] = t->target[e];
            n += picked;
        }
        if (n > first)
            t->run[runs++] = (gs_cpu_edge_run){.row = run.row, .first = first, .end = n};
    }
    t->operand = t->room;
    t->edges = n;
    t->runs = runs;
    t->ties = ties;
}

/* The next one that has edges; false when there is no more. */
static bool next_full_tile(cursor *c, const gs_cpu_edge_plan *plan, gs_cpu_edge_tile *t)
{
    while (next_tile(c, t)) {
        if (plan->picks)
            pick_edges(plan, t);
        if (t->edges > 0)
            return true;
    }
    return false;
}

/* So many lines from each of these rows on: a constant where it is a usual number. */
GS_INLINE void prefetch_lines(const gs_cpu_edge_gather *g, const uint32_t *at, uint32_t first, uint32_t end,
                              const uint32_t lines)
{
    for (uint32_t e = first; e < end; e++) {
        const char *const row = (const char *)g->p + (size_t)at[e] * g->bytes;
        for (uint32_t i = 0; i < lines; i++)
            __builtin_prefetch(row + (size_t)i * LINE);
        if (g->straddles)
            __builtin_prefetch(row + g->bytes - 1);
    }
}

static void prefetch(const gs_cpu_edge_plan *plan, const gs_cpu_edge_tile *t, uint32_t first, uint32_t end)
{
    for (uint32_t i = 0; i < plan->gathers; i++) {
        const gs_cpu_edge_gather *const g = &plan->gather[i];
        const uint32_t *const at = g->typed ? t->operand_type : t->operand;
        const uint32_t lines = (g->bytes + LINE - 1) / LINE;
        if (lines == 1)
            prefetch_lines(g, at, first, end, 1);
        else if (lines == 4)
            prefetch_lines(g, at, first, end, 4);
        else
            prefetch_lines(g, at, first, end, lines);
    }
}

/* ---- rows by rows ---- */

typedef enum rows_form_kind { ROW_ROW, ROW_NUMBER, NUMBER_ROW } rows_form_kind;

#define PICK(condition, yes, no) gs_select(condition, yes, no)
#define NUMBER(value) gs_splat(value)

GS_INLINE gs_vf apply(const gs_op op, gs_vf x, gs_vf y)
{
    switch (op) {
#define X(id, name, value) \
    case id:               \
        return (value);
        GS_CPU_OF_TWO(X)
#undef X
    default:
        __builtin_unreachable(); /* edge_plan.c sends no other */
    }
}

/* The last vector of a row may overlap the one before it: `dst` is none of the operands. */
GS_INLINE void rows_form(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t edges, uint32_t width,
                         const gs_op op, const rows_form_kind f)
{
    const uint32_t tail = width - GS_LANES;
    for (uint32_t e = 0; e < edges; e++, dst += width) {
        const float *const x = gs_row(a, e), *const y = gs_row(b, e);
        const gs_vf x0 = gs_splat(*x), y0 = gs_splat(*y);
        for (uint32_t c = 0; c < tail; c += GS_LANES)
            gs_store(dst + c, apply(op, f == NUMBER_ROW ? x0 : gs_load(x + c), f == ROW_NUMBER ? y0 : gs_load(y + c)));
        gs_store(dst + tail,
                 apply(op, f == NUMBER_ROW ? x0 : gs_load(x + tail), f == ROW_NUMBER ? y0 : gs_load(y + tail)));
    }
}

/* Rows of half a vector: two edges at once. */
GS_INLINE void half_rows_form(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t edges, const gs_op op,
                              const rows_form_kind f)
{
    for (uint32_t e = 0; e < edges; e += 2, dst += GS_LANES) {
        const bool two = e + 1 < edges;
        const uint32_t second = two ? e + 1 : e;
        const float *const x = gs_row(a, e), *const x2 = gs_row(a, second);
        const float *const y = gs_row(b, e), *const y2 = gs_row(b, second);
        const gs_vf result = apply(op, f == NUMBER_ROW ? gs_splat_halves(*x, *x2) : gs_load_halves(x, x2),
                                   f == ROW_NUMBER ? gs_splat_halves(*y, *y2) : gs_load_halves(y, y2));
        if (two)
            gs_store(dst, result);
        else
            gs_store_part(dst, result, GS_LANES / 2);
    }
}

GS_INLINE void rows_op(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t edges, uint32_t width,
                       const gs_op op, rows_form_kind f)
{
    const bool half = width == GS_LANES / 2;
    if (half && f == ROW_NUMBER)
        half_rows_form(dst, a, b, edges, op, ROW_NUMBER);
    else if (half && f == NUMBER_ROW)
        half_rows_form(dst, a, b, edges, op, NUMBER_ROW);
    else if (half)
        half_rows_form(dst, a, b, edges, op, ROW_ROW);
    else if (f == ROW_NUMBER)
        rows_form(dst, a, b, edges, width, op, ROW_NUMBER);
    else if (f == NUMBER_ROW)
        rows_form(dst, a, b, edges, width, op, NUMBER_ROW);
    else
        rows_form(dst, a, b, edges, width, op, ROW_ROW);
}

/* A number of b for each group of columns, whole vectors or halves of them. */
static void multiply_groups(float *dst, const gs_cpu_rows *a, const gs_cpu_rows *b, uint32_t edges, uint32_t width,
                            uint32_t each)
{
    for (uint32_t e = 0; each < GS_LANES && e < edges; e++, dst += width) {
        const float *const x = gs_row(a, e), *y = gs_row(b, e);
        for (uint32_t c = 0; c < width; c += GS_LANES, y += 2)
            gs_store(dst + c, gs_load(x + c) * gs_splat_halves(y[0], y[1]));
    }
    if (each < GS_LANES)
        return;
    for (uint32_t e = 0; e < edges; e++, dst += width) {
        const float *const x = gs_row(a, e), *y = gs_row(b, e);
        for (uint32_t from = 0; from < width; from += each, y++)
            for (uint32_t c = from; c < from + each; c += GS_LANES)
                gs_store(dst + c, gs_load(x + c) * gs_splat(*y));
    }
}

static void run_binary(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a), b = gs_value_rows(f, &s->b);
    const uint32_t edges = f->tile->edges, width = s->width;
    const rows_form_kind form = s->a.width == 1 ? NUMBER_ROW : s->b.width == 1 ? ROW_NUMBER : ROW_ROW;
    float *const dst = gs_slot(f, s->dst);

    if (s->b.width != 1 && s->b.width != width) {
        multiply_groups(dst, &a, &b, edges, width, width / s->b.width);
        return;
    }
    switch (s->op) {
#define X(id, name, value)                              \
    case id:                                            \
        rows_op(dst, &a, &b, edges, width, id, form);   \
        break;
        GS_CPU_OF_TWO(X)
#undef X
    default:
        __builtin_unreachable();
    }
}

/* ---- steps with links ---- */

/* A step of several: where its second operand is, and the numbers between its vectors (0: one for all). */
typedef struct link {
    gs_op op;
    float alpha;
    bool number;
    gs_cpu_rows b;
} link;

typedef struct chain {
    link link[GS_CPU_EDGE_LINKS + 1];
    uint32_t links, width, edges;
    gs_cpu_rows a;
    bool number; /* a is one */
    float *dst;
    uint32_t gathered; /* rows at the operand end */
    gs_cpu_rows gather[GS_CPU_EDGE_LINKS + 2];
} chain;

/* `n` vectors (a constant) of row e, from column `from` on; the last one ends where `columns` do. */
GS_INLINE void chain_row(const chain *k, uint32_t e, uint32_t from, uint32_t columns, const uint32_t n)
{
    const uint32_t tail = columns - GS_LANES;
    const float *const a = gs_row(&k->a, e) + (k->number ? 0 : from);
    float *const dst = k->dst + (size_t)e * k->width + from;
    gs_vf v[GS_MOST_VECTORS];

#define AT(i) ((i) + 1 < n ? (i) * GS_LANES : tail)
#define EACH _Pragma("GCC unroll 8") for (uint32_t i = 0; i < n; i++)
    EACH v[i] = k->number ? gs_splat(*a) : gs_load(a + AT(i));
    for (uint32_t s = 0; s < k->links; s++) {
        const link *const l = &k->link[s];
        const float *const b = l->b.p == NULL ? NULL : gs_row(&l->b, e) + (l->number ? 0 : from);
        switch (l->op) {
#define X(id, name, value)                                \
        case id:                                          \
            if (l->number) {                              \
                const gs_vf y = gs_splat(*b);             \
                EACH v[i] = apply(id, v[i], y);           \
            } else {                                      \
                EACH v[i] = apply(id, v[i], gs_load(b + AT(i))); \
            }                                             \
            break;
            GS_CPU_OF_TWO(X)
#undef X
        case GS_OP_RELU:
            EACH v[i] = gs_select(v[i] < 0.0f, gs_splat(0), v[i]);
            break;
        case GS_OP_LEAKY_RELU:
            EACH v[i] = gs_select(v[i] > 0.0f, v[i], v[i] * l->alpha);
            break;
        case GS_OP_STEP:
            EACH v[i] = gs_select(v[i] > 0.0f, gs_splat(1), gs_splat(0));
            break;
        default: /* NEG */
            EACH v[i] = -v[i];
        }
    }
    EACH gs_store(dst + AT(i), v[i]);
#undef EACH
#undef AT
}

/* Rows were brought near while the tile before was computed, and are no longer in the first-level cache. */
GS_INLINE void chain_rows(const chain *k, uint32_t from, uint32_t columns, const uint32_t n)
{
    for (uint32_t e = 0; e < k->edges; e++) {
        for (uint32_t i = 0; i < k->gathered && e + GS_ROWS_AHEAD < k->edges; i++)
            gs_prefetch(gs_row(&k->gather[i], e + GS_ROWS_AHEAD) + from, n);
        chain_row(k, e, from, columns, n);
    }
}

/* Blocks of columns of which none but the last ends within a vector. */
static void run_chain(const chain *k)
{
    const uint32_t vectors = (k->width + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + GS_MOST_VECTORS - 1) / GS_MOST_VECTORS;
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t from = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
        const uint32_t columns = (next < k->width ? next : k->width) - from;
#define CHAIN_ROWS(N) chain_rows(k, from, columns, N)
        GS_BY_VECTORS(columns, CHAIN_ROWS);
    }
}

static gs_cpu_rows chain_operand(const gs_cpu_edge_frame *f, const gs_cpu_edge_value *v)
{
    return v->form == GS_CPU_EDGE_NOTHING ? (gs_cpu_rows){0} : gs_value_rows(f, v);
}

/* A step and those behind it that take its result, row by row. */
static void run_links(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_edge_step *const last = s + s->links;
    const bool narrow = s->width < GS_LANES; /* then a tile's are one row */
    chain k = {.links = s->links + 1, .width = s->width, .edges = f->tile->edges, .a = gs_value_rows(f, &s->a),
               .number = narrow ? s->a.form == GS_CPU_EDGE_FIXED : s->a.width == 1, .dst = gs_slot(f, last->dst)};
    if (narrow) {
        k.width = (uint32_t)gs_align_up((uint64_t)k.edges * s->width, GS_LANES);
        k.edges = 1;
    }
    for (uint32_t i = 0; i < k.links; i++) {
        k.link[i] = (link){.op = s[i].op, .alpha = s[i].alpha, .b = chain_operand(f, &s[i].b),
                           .number = narrow ? s[i].b.form == GS_CPU_EDGE_FIXED : s[i].b.width == 1};
        if (s[i].b.form == GS_CPU_EDGE_OPERAND && s[i].b.width == s->width)
            k.gather[k.gathered++] = k.link[i].b;
    }
    if (s->a.form == GS_CPU_EDGE_OPERAND && !k.number)
        k.gather[k.gathered++] = k.a;
    run_chain(&k);
}

/* ---- products by one matrix ---- */

/* Which numbers of a row are not 0: column c is bit c % 64 of word c / 64. */
typedef struct nonzeros {
    uint32_t words;
    uint64_t bits[GS_CPU_SPARSE_WIDTH / 64];
} nonzeros;

/* `bits`: those that count, or NULL: all. */
GS_INLINE void find_nonzeros(nonzeros *z, const float *x, uint32_t width, const uint64_t *bits)
{
    static const float none = 0;
    z->words = (width + 63) / 64;
    for (uint32_t w = 0; w < z->words; w++) {
        const uint32_t from = w * 64, end = GS_MIN(width, from + 64);
        const uint64_t some = bits == NULL ? UINT64_MAX >> (64 - (end - from)) : bits[w];
        z->bits[w] = some & ~equal_columns(x, &none, true, from, end);
    }
}

/* For each column `c` of these. One loop a word: a loop a vector ends, unforeseen, as often as there are vectors. */
#define EACH_NONZERO(z)                                    \
    for (uint32_t word = 0; word < (z)->words; word++)     \
        for (uint64_t left = (z)->bits[word], c; left != 0 \
             && (c = 64 * word + (uint32_t)__builtin_ctzll(left), true); left &= left - 1)

/* dst[n vectors] = the numbers of x that are not 0 by their rows of the matrix; `n` is a constant. */
GS_INLINE void multiply_nonzeros(float *dst, const float *x, const nonzeros *z, const float *matrix, size_t stride,
                                 uint32_t columns, const uint32_t n)
{
    const uint32_t tail = columns - GS_LANES;
    gs_vf sum[GS_MOST_VECTORS];
    _Pragma("GCC unroll 8") for (uint32_t i = 0; i < n; i++)
        sum[i] = gs_splat(0);
    EACH_NONZERO(z) {
        const float *const w = matrix + c * stride;
        const gs_vf number = gs_splat(x[c]);
        _Pragma("GCC unroll 8") for (uint32_t i = 0; i < n; i++)
            sum[i] += number * gs_load(w + (i + 1 < n ? i * GS_LANES : tail));
    }
    _Pragma("GCC unroll 8") for (uint32_t i = 0; i < n; i++)
        gs_store(dst + (i + 1 < n ? i * GS_LANES : tail), sum[i]);
}

/* sum[rows of x, n vectors] += the numbers of x that are not 0 by y. */
GS_INLINE void add_nonzeros(float *sum, const float *x, const nonzeros *z, const float *y, size_t stride,
                            uint32_t columns, const uint32_t n)
{
    const uint32_t tail = columns - GS_LANES;
    gs_vf row[GS_MOST_VECTORS];
    _Pragma("GCC unroll 8") for (uint32_t i = 0; i < n; i++)
        row[i] = gs_load(y + (i + 1 < n ? i * GS_LANES : tail));
    EACH_NONZERO(z) {
        float *const to = sum + c * stride;
        const gs_vf number = gs_splat(x[c]);
        const gs_vf last = gs_load(to + tail) + number * row[n - 1];
        _Pragma("GCC unroll 8") for (uint32_t i = 0; i + 1 < n; i++)
            gs_store(to + i * GS_LANES, gs_load(to + i * GS_LANES) + number * row[i]);
        gs_store(to + tail, last);
    }
}

/* Bits of a tile's edges, or NULL where there are none. */
static uint64_t *bits_of(const gs_cpu_edge_frame *f, const gs_cpu_edge_value *v)
{
    if (v->form == GS_CPU_EDGE_NOTHING)
        return NULL;
    return v->slot == f->plan->picked ? f->tile->bits : (uint64_t *)(void *)gs_slot(f, v->slot);
}

static void run_sparse_outer(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a), b = gs_value_rows(f, &s->b);
    const uint32_t vectors = (s->width + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + GS_MOST_VECTORS - 1) / GS_MOST_VECTORS;
    float *const sum = f->work->outer + s->stride;
    const uint64_t *const bits = bits_of(f, &s->c);
    nonzeros z;

    for (uint32_t e = 0; e < f->tile->edges; e++) {
        const float *const x = gs_row(&a, e), *const y = gs_row(&b, e);
        find_nonzeros(&z, x, s->a.width, bits == NULL ? NULL : bits + (size_t)e * (s->c.width / 2));
        for (uint32_t i = 0; i < blocks; i++) {
            const uint32_t from = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
            const uint32_t columns = (next < s->width ? next : s->width) - from;
#define ADD_NONZEROS(N) add_nonzeros(sum + from, x, &z, y + from, s->width, columns, N)
            GS_BY_VECTORS(columns, ADD_NONZEROS);
        }
    }
}

static void run_outer(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a), b = gs_value_rows(f, &s->b);
    if (s->sparse)
        run_sparse_outer(f, s);
    else if (!gs_cpu__sgemm('T', 'N', s->a.width, s->width, f->tile->edges, a.p, s->a.width, b.p, s->width, 1.0f,
                            f->work->outer + s->stride, s->width))
        __atomic_store_n(f->plan->failed, 1, __ATOMIC_RELAXED); /* read when the launch's threads have ended */
}

static void run_sparse(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    const uint32_t vectors = (s->width + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + GS_MOST_VECTORS - 1) / GS_MOST_VECTORS;
    float *dst = gs_slot(f, s->dst);
    const uint64_t *const bits = bits_of(f, &s->c);
    nonzeros z;

    for (uint32_t e = 0; e < f->tile->edges; e++, dst += s->width) {
        const float *const x = gs_row(&a, e);
        if (s->a.form == GS_CPU_EDGE_OPERAND && e + GS_ROWS_AHEAD < f->tile->edges)
            gs_prefetch(gs_row(&a, e + GS_ROWS_AHEAD), (s->a.width + GS_LANES - 1) / GS_LANES);
        find_nonzeros(&z, x, s->a.width, bits == NULL ? NULL : bits + (size_t)e * (s->c.width / 2));
        for (uint32_t i = 0; i < blocks; i++) {
            const uint32_t from = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
            const uint32_t columns = (next < s->width ? next : s->width) - from;
#define MULTIPLY(N) multiply_nonzeros(dst + from, x, &z, s->matrix + from, s->stride, columns, N)
            GS_BY_VECTORS(columns, MULTIPLY);
        }
    }
}

/* ---- steps ---- */

static gs_cpu_operand flat_operand(const gs_cpu_edge_frame *f, const gs_cpu_edge_value *v)
{
    const gs_cpu_rows rows = gs_value_rows(f, v);
    return (gs_cpu_operand){rows.p, v->form == GS_CPU_EDGE_FIXED ? GS_CPU_SCALAR : GS_CPU_FULL};
}

static void run_flat(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_operand o[3] = {flat_operand(f, &s->a), flat_operand(f, &s->b), flat_operand(f, &s->c)};
    GS_KERNEL(each)(s->op, gs_slot(f, s->dst), o, f->tile->edges, s->width);
}

/* Ids are whole numbers in the place of floats. */
static void run_loop(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a), b = gs_value_rows(f, &s->b);
    for (uint32_t e = 0; e < f->tile->edges; e++)
        gs_slot(f, s->dst)[e] = memcmp(gs_row(&a, e), gs_row(&b, e), sizeof(uint32_t)) == 0 ? 1.0f : 0.0f;
}

/* Rows go where those of their type lie together. */
static void run_keep(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    const uint32_t *const place = f->work->place + (f->tile->edge - f->work->place_first);
    for (uint32_t e = 0; e < f->tile->edges; e++) {
        const float *const from = gs_row(&a, e);
        float *const to = f->work->kept[s->sum] + (size_t)place[e] * s->width;
        uint32_t c = 0;
        for (; c + GS_LANES <= s->width; c += GS_LANES)
            gs_store(to + c, gs_load(from + c));
        if (c < s->width)
            gs_store_part(to + c, gs_load_part(from + c, s->width - c), s->width - c);
    }
}

static void run_rowmax(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    for (uint32_t e = 0; e < f->tile->edges; e++)
        GS_KERNEL(rowmax)(gs_slot(f, s->dst) + e, gs_row(&a, e), 1, s->a.width);
}

/* Some columns of each edge's features. */
static void run_widen(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const size_t bytes = s->stride * gs_dtype_bytes(s->stored_type);
    const char *const from = s->stored + f->tile->edge * bytes;
    float *const to = gs_slot(f, s->dst);

    if (s->stride == s->width)
        GS_KERNEL(cast)(to, from, s->stored_type, (size_t)f->tile->edges * s->width);
    for (uint32_t e = 0; s->stride != s->width && e < f->tile->edges; e++)
        GS_KERNEL(cast)(to + (size_t)e * s->width, from + e * bytes, s->stored_type, s->width);
}

/* In bits that do not depend on how edges are cut into tiles. */
static void run_dense(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    if (s->sparse)
        run_sparse(f, s);
    else if (!gs_cpu__steady_rows(f->tile->edges, s->width, s->a.width, a.p, s->a.width, s->matrix, s->stride, 0.0f,
                             gs_slot(f, s->dst), s->width))
        __atomic_store_n(f->plan->failed, 1, __ATOMIC_RELAXED); /* read when the launch's threads have ended */
}

/* Four edges at once. Behind a tile's last edge its numbers are written again, and of fewer lists the last one. */
static void run_numbers(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    const uint32_t last = f->tile->edges - 1;
    float *to[GS_CPU_PACKED];
    for (uint32_t i = 0; i < GS_CPU_PACKED; i++)
        to[i] = gs_slot(f, s->dst + GS_MIN(i, s->lists - 1));
    for (uint32_t e = 0; e <= last; e += 4) {
        const gs_v4_v w = gs_v4_load(gs_row(&a, e)), x = gs_v4_load(gs_row(&a, GS_MIN(e + 1, last))),
                      y = gs_v4_load(gs_row(&a, GS_MIN(e + 2, last))), z = gs_v4_load(gs_row(&a, GS_MIN(e + 3, last)));
        const gs_v4_v wx = __builtin_shufflevector(w, x, 0, 4, 1, 5), yz = __builtin_shufflevector(y, z, 0, 4, 1, 5),
                      wx2 = __builtin_shufflevector(w, x, 2, 6, 3, 7), yz2 = __builtin_shufflevector(y, z, 2, 6, 3, 7);
        gs_v4_store(to[3] + e, __builtin_shufflevector(wx2, yz2, 2, 3, 6, 7));
        gs_v4_store(to[2] + e, __builtin_shufflevector(wx2, yz2, 0, 1, 4, 5));
        gs_v4_store(to[1] + e, __builtin_shufflevector(wx, yz, 2, 3, 6, 7));
        gs_v4_store(to[0] + e, __builtin_shufflevector(wx, yz, 0, 1, 4, 5));
    }
}

static void run_copy(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a);
    if (a.half)
        GS_KERNEL(widen)(gs_slot(f, s->dst), &a, f->tile->edges, s->width);
    else
        GS_KERNEL(expand)(gs_slot(f, s->dst), &a, f->tile->edges, s->a.width, s->width / s->a.width);
}

static void run_fold(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a), b = gs_value_rows(f, &s->b);
    GS_KERNEL(fold)(gs_slot(f, s->dst), &a, s->b.form == GS_CPU_EDGE_NOTHING ? NULL : &b, f->tile->edges, s->width,
                    s->a.width / s->width);
}

/* Is some number 0? Rows of a target's edges are one. */
static bool has_zero(const gs_cpu_rows *a, uint32_t edges, uint32_t width)
{
    for (uint32_t e = 0; e < edges; e++) {
        const float *const x = gs_row(a, e);
        uint32_t c = 0;
        if (e > 0 && x == gs_row(a, e - 1))
            continue;
        for (; c + GS_LANES <= width; c += GS_LANES)
            if (gs_nonzero(gs_load(x + c)) != (1u << GS_LANES) - 1)
                return true;
        for (; c < width; c++)
            if (x[c] == 0)
                return true;
    }
    return false;
}

static void run_equal(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    const gs_cpu_rows a = gs_value_rows(f, &s->a), b = gs_value_rows(f, &s->b);
    const uint32_t words = s->width / 2, width = GS_MAX(s->a.width, s->b.width);
    uint64_t *to = (uint64_t *)(void *)gs_slot(f, s->dst);

    for (uint32_t e = 0; s->dst != f->plan->picked && e < f->tile->edges; e++)
        for (uint32_t w = 0; w < words; w++, to++) {
            const uint32_t from = 64 * w, end = GS_MIN(width, from + 64);
            const float *const x = gs_row(&a, e), *const y = gs_row(&b, e);
            *to = s->a.width == 1 ? equal_columns(y, x, true, from, end)
                                  : equal_columns(x, y, s->b.width == 1, from, end);
        }
}

static void run_else(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    static const float none = 0;
    const gs_cpu_rows a = gs_value_rows(f, &s->a), other = gs_value_rows(f, &s->c);
    float *to = gs_slot(f, s->b.slot);
    uint64_t *bits = s->sparse ? bits_of(f, &s->b) : NULL;

    for (uint32_t e = 0; e < f->tile->edges; e++, to += s->width) {
        const float *const x = gs_row(&a, e), *const y = gs_row(&other, e);
        for (uint32_t from = 0; s->sparse && from < s->width; from += 64, bits++) {
            const uint32_t end = GS_MIN(s->width, from + 64);
            const uint64_t zero = equal_columns(x, &none, true, from, end);
            *bits = (*bits & ~zero) | (zero & ~equal_columns(y, &none, true, from, end));
        }
        for (uint32_t c = 0; !s->sparse && c < s->width; c++)
            to[c] = x[c] != 0 ? to[c] : y[c];
    }
}

static void run_unary(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    GS_KERNEL(unary)(s->op, gs_slot(f, s->dst), gs_value_rows(f, &s->a).p, (size_t)f->tile->edges * s->width,
                     s->alpha);
}

static void run_step(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    static void (*const run[])(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s) = {
        [GS_CPU_EDGE_NUMBERS] = run_numbers,
        [GS_CPU_EDGE_COPY] = run_copy,
        [GS_CPU_EDGE_WIDEN] = run_widen,
        [GS_CPU_EDGE_DENSE] = run_dense,
        [GS_CPU_EDGE_UNARY] = run_unary,
        [GS_CPU_EDGE_FLAT] = run_flat,
        [GS_CPU_EDGE_BINARY] = run_binary,
        [GS_CPU_EDGE_FOLD] = run_fold,
        [GS_CPU_EDGE_ROWMAX] = run_rowmax,
        [GS_CPU_EDGE_LOOP] = run_loop,
        [GS_CPU_EDGE_MASK] = GS_KERNEL(edge_mask),
        [GS_CPU_EDGE_SUM] = GS_KERNEL(edge_sum),
        [GS_CPU_EDGE_SUM_TYPE] = GS_KERNEL(edge_sum_type),
        [GS_CPU_EDGE_BY_TYPE] = GS_KERNEL(edge_by_type),
        [GS_CPU_EDGE_KEEP] = run_keep,
        [GS_CPU_EDGE_OUTER] = run_outer,
        [GS_CPU_EDGE_ATTEND] = GS_KERNEL(edge_attend),
        [GS_CPU_EDGE_EQUAL] = run_equal,
        [GS_CPU_EDGE_ELSE] = run_else,
        [GS_CPU_EDGE_KINDS] = NULL,
    };
    if (s->links > 0)
        (s->kind == GS_CPU_EDGE_SUM    ? GS_KERNEL(edge_sums)
         : s->kind == GS_CPU_EDGE_FOLD ? GS_KERNEL(edge_dots)
                                       : run_links)(f, s);
    else if (run[s->kind] != NULL) /* UNLESS is for steps_passed() */
        run[s->kind](f, s);
}

/* Steps up to the next one that is done. */
static uint32_t steps_passed(const gs_cpu_edge_frame *f, const gs_cpu_edge_step *s)
{
    if (s->kind == GS_CPU_EDGE_UNLESS) {
        const gs_cpu_rows a = gs_value_rows(f, &s->a);
        const bool known = f->plan->picked != GS_NONE && s->a.p == f->plan->who.p && s->a.form == f->plan->who.form;
        return 1 + ((known ? f->tile->ties : has_zero(&a, f->tile->edges, s->width)) ? 0 : s->skipped);
    }
    return 1 + s->links;
}

/* Rows from `*at` up to `end`, of those whose sums begin and finish with the work, begin or finish. */
static void frame_up_to(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work, gs_cpu_frame_fn *frame,
                        uint32_t *at, uint32_t end)
{
    const uint32_t first = *at;
    *at = GS_MAX(first, GS_MIN(end, work->end_row));
    if (first < *at)
        frame(plan, first, *at);
}

void GS_KERNEL(edge_program)(const gs_cpu_edge_plan *plan, const gs_cpu_edge_work *work)
{
    uint32_t begun = work->first_row, finished = work->first_row;
    uint32_t *const numbers = (uint32_t *)(void *)(work->scratch + plan->floats * plan->tile);
    gs_cpu_edge_tile tile[2] = {gs_cpu_edge_tile_at(numbers, plan->tile),
                                gs_cpu_edge_tile_at(numbers + (size_t)GS_CPU_TILE_NUMBERS * plan->tile, plan->tile)};
    cursor c;

    if (plan->only_rows) {
        GS_KERNEL(edge_rows)(plan, work);
        return;
    }
    for (uint32_t i = 0; plan->picked != GS_NONE && i < 2; i++)
        tile[i].bits = (uint64_t *)(void *)(work->scratch + plan->picked_at[i] * plan->tile);
    cursor_start(&c, plan, work);
    bool more = next_full_tile(&c, plan, &tile[0]);
    for (uint32_t i = 0; more; i ^= 1) {
        const gs_cpu_edge_frame f = {.plan = plan, .work = work, .tile = &tile[i]};
        const gs_cpu_edge_tile *const next = &tile[i ^ 1];
        more = next_full_tile(&c, plan, &tile[i ^ 1]);
        const uint32_t share = (next->edges / plan->turns + PREFETCH_EDGES) / PREFETCH_EDGES * PREFETCH_EDGES;
        const uint32_t last = tile[i].run[tile[i].runs - 1].row;
        uint32_t ahead = 0; /* edges of the next tile whose rows are on their way */
        frame_up_to(plan, work, plan->begin, &begun, last + 1);
        for (uint32_t s = 0; s < plan->steps; s += steps_passed(&f, &plan->step[s])) {
            const uint32_t end = GS_MIN(ahead + share, next->edges);
            if (ahead < end)
                prefetch(plan, next, ahead, end);
            ahead = end;
            run_step(&f, &plan->step[s]);
        }
        frame_up_to(plan, work, plan->finish, &finished, more && next->run[0].row == last ? last : last + 1);
    }
    frame_up_to(plan, work, plan->begin, &begun, work->end_row);
    frame_up_to(plan, work, plan->finish, &finished, work->end_row);
}
