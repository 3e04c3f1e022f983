/* Edge programs that add up rows at the operand end, each times one number or as it is: weighted sums, means by type
 * of edges, and their gradients.
 *
 * They need no tile of values, so edges go straight from their numbers to sums in registers, in the order that the
 * evaluator has. A row may be the columns of the edge's type, and so may the accumulator's.
 */
#include "base/index_width.h"
#include "device/cpu/kernels_isa.h"
#include "device/cpu/simd_rows.h"

#define MAX_VECTORS 8 /* of sums in registers */
#define AHEAD 32      /* edges */
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
    bool typed, half;
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
    __builtin_prefetch(operand_at(&w->number, operand, type));
}

/* acc += edges [k, end) of a target; `n` vectors (a constant) cover the columns, the last one ends where they do. */
GS_INLINE void add_vectors(const walk *w, float *acc, const float *number, uint32_t k, uint32_t end, const uint32_t n,
                           const numbers f)
{
    const uint32_t tail = w->columns - GS_LANES;
    gs_vf sum[MAX_VECTORS];
    _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        sum[v] = gs_load(acc + (v + 1 < n ? v * GS_LANES : tail));
    for (; k < end; k++) {
        const uint32_t operand = gs_index_at(w->edges->index, f.index_bytes, k), type = f.typed ? type_of(w, k) : 0;
        const float *const x = operand_at(&w->row, operand, type);
        const gs_vf y =
            gs_splat(number[operand * w->number.by_operand + type * w->number.by_type + k * w->number.by_edge]);
        prefetch_ahead(w, k, n, f);
        _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
            sum[v] += gs_load_row(x, w->from + (v + 1 < n ? v * GS_LANES : tail), f.half) * y;
    }
    _Pragma("GCC unroll 8") for (uint32_t v = 0; v < n; v++)
        gs_store(acc + (v + 1 < n ? v * GS_LANES : tail), sum[v]);
}

GS_INLINE void add_columns(const walk *w, float *acc, const float *number, uint32_t k, uint32_t end, const numbers f)
{
#define ADD_VECTORS(N) add_vectors(w, acc, number, k, end, N, f)
    GS_BY_VECTORS(w->columns, ADD_VECTORS);
}

/* Wider rows in blocks of vectors, the last of which may overlap another of its block. */
static void add_row(const walk *whole, float *acc, const float *number, uint32_t k, uint32_t end, bool half)
{
    const uint32_t vectors = (whole->columns + GS_LANES - 1) / GS_LANES,
                   blocks = (vectors + MAX_VECTORS - 1) / MAX_VECTORS;
    for (uint32_t i = 0; i < blocks; i++) {
        const uint32_t first = vectors * i / blocks * GS_LANES, next = vectors * (i + 1) / blocks * GS_LANES;
        walk w = *whole;
        w.from = first;
        w.columns = (next < whole->columns ? next : whole->columns) - first;
        if (half && w.edges->index_bytes == 2)
            add_columns(&w, acc + first, number, k, end, (numbers){.index_bytes = 2, .half = true});
        else if (half)
            add_columns(&w, acc + first, number, k, end, (numbers){.index_bytes = 4, .half = true});
        else if (w.type != NULL && w.edges->index_bytes == 2)
            add_columns(&w, acc + first, number, k, end, (numbers){.index_bytes = 2, .typed = true});
        else if (w.type != NULL)
            add_columns(&w, acc + first, number, k, end, (numbers){.index_bytes = 4, .typed = true});
        else if (w.edges->index_bytes == 2)
            add_columns(&w, acc + first, number, k, end, (numbers){.index_bytes = 2});
        else
            add_columns(&w, acc + first, number, k, end, (numbers){.index_bytes = 4});
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
    case GS_CPU_EDGE_WEIGHT:
        return (place){.p = v->p, .by_edge = 1};
    case GS_CPU_EDGE_FIXED:
        return (place){.p = v->p};
    default: /* NOTHING */
        return (place){.p = &one};
    }
}

/* Edges [k, end) of target t, whose sums are row `row`. */
static void add_target(const walk *w, const gs_cpu_edge_plan *plan, float *acc, uint32_t t, uint32_t k, uint32_t end)
{
    const gs_cpu_edge_step *const s = &plan->step[0];
    const float *const number = w->number.p + t * w->number.by_target;
    if (s->kind == GS_CPU_EDGE_SUM) {
        add_row(w, acc, number, k, end, s->a.half);
        return;
    }
    for (uint32_t next; k < end; k = next) { /* edges lie sorted by type */
        const uint32_t type = type_of(w, k);
        for (next = k + 1; next < end && type_of(w, next) == type; next++)
            ;
        add_row(w, acc + (size_t)type * s->width, number, k, next, false);
    }
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
