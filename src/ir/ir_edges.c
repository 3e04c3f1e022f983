/* ir_edges.c - work that depends on one end of an edge only leaves the edges.
 *
 * (NeuGraph, ATC'19, moves vertex-only work out of ApplyEdge by pattern; here
 * it follows from the types.) Folding keeps every value of type S in the form SRC(x), x a
 * vertex value. A sum is split into terms
 *
 *     t * o * e,   t of the target end, o of the operand end, e of both,
 *
 * and sum(t o e) = t * sum(o e); without an e that is a sum of rows, else the sum of a
 * value that exists for an edge at a time. By in-edges the target is the destination, by
 * out-edges, in derivatives, the source. Products are multiplied out only where that frees
 * them of every e.
 */
#include "ir/ir_internal.h"

/* ---- by type ----------------------------------------------------------- */

/* X @ W[type of the edge]: sums first, or products first.
 *
 * Summed as it is, it is one product: the sums of x by type, side by side, times the matrices, one above the
 * other. Inside a value of edges (behind a softmax, under a relu) the product comes first: what an edge can see is
 * one of `types` rows of its source, so all of them are computed once a vertex, side by side (fan), and the edge picks
 * the columns of its type (WiseGraph's unique values of source and type). Nothing has a row an edge.
 *
 * A row for each type, b[type of the edge], is the number 1 of the source by a matrix [1, n] for each type: summed as
 * it is, it is the counts of types times b.
 */

#define MOST_COLUMNS 65536u /* of the types' products of one vertex, side by side */

static uint32_t ones(gs_ir *ir)
{
    const uint32_t degree = gs_ir_input(ir, "in_degree", 1, GS_F32);
    return gs_ir_unary(ir, GS_OP_STEP, gs_ir_binary(ir, GS_OP_ADD, degree, gs_ir_const(ir, 1.0f, 1)), 0);
}

uint32_t gs_ir__zeros(gs_ir *ir)
{
    return gs_ir_unary(ir, GS_OP_STEP, gs_ir_unary(ir, GS_OP_NEG, gs_ir_input(ir, "in_degree", 1, GS_F32), 0), 0);
}

uint32_t gs_ir_by_type(gs_ir *ir, uint32_t param)
{
    return gs_ir_binary(ir, GS_OP_TYPED, gs_ir_unary(ir, GS_OP_SRC, ones(ir), 0), param);
}

/* The sums by type of vertex value `x`, or with `mean` the means, times the matrices. */
static uint32_t sum_by_type(gs_ir *ir, uint32_t x, uint32_t matrices, bool mean)
{
    const gs_node w = *gs_ir_node(ir, matrices);
    const uint32_t types = w.shape[0], width = gs_ir_node(ir, x)->width;
    uint32_t sum = gs_ir_resize(ir, GS_OP_SPLIT_IN, gs_ir_unary(ir, GS_OP_SRC, x, 0), types * width), count;

    if (mean) {
        count = gs_ir_resize(ir, GS_OP_SPLIT_IN, gs_ir_unary(ir, GS_OP_SRC, ones(ir), 0), types);
        count = gs_ir_binary(ir, GS_OP_MAX, count, gs_ir_const(ir, 1.0f, 1));
        sum =
            gs_ir_binary(ir, GS_OP_DIV, sum, types == 1 ? count : gs_ir_resize(ir, GS_OP_EXPAND, count, types * width));
    }
    /* W[t] = sum of c[t, b] V[b]: the types' sums become as many as bases, before the wide product */
    if (w.op == GS_OP_BASES)
        return gs_ir_binary(ir, GS_OP_MATMUL, gs_ir_binary(ir, GS_OP_MIX, sum, w.in[0]), w.in[1]);
    return gs_ir_binary(ir, GS_OP_MATMUL, sum, matrices);
}

/* The same as a value of edges, for the source's value `x` (an SRC, or what is the same for all edges). */
uint32_t gs_ir__pick_by_type(gs_ir *ir, uint32_t x, uint32_t matrices)
{
    const gs_node w = *gs_ir_node(ir, matrices), n = *gs_ir_node(ir, x);
    const uint32_t types = w.shape[0];
    uint32_t vertex = n.op == GS_OP_SRC ? n.in[0] : x, all;

    if ((uint64_t)types * w.width > MOST_COLUMNS)
        return gs_ir_error(ir, GS_EUNSUPPORTED,
                           "a value of edges with a matrix for each type needs the products of all %u types, "
                           "%u columns each, for every vertex: more than %u columns; take the sum first",
                           types, w.width, MOST_COLUMNS);
    if (gs_ir_node(ir, vertex)->type == GS_TYPE_P) /* instructions work on rows */
        vertex = gs_ir_binary(ir, GS_OP_ADD, vertex, gs_ir__zeros(ir));
    if (w.op == GS_OP_BASES)
        all = gs_ir_binary(ir, GS_OP_MIX_T, gs_ir_binary(ir, GS_OP_FAN, vertex, w.in[1]), w.in[0]);
    else
        all = gs_ir_binary(ir, GS_OP_FAN, vertex, matrices);
    return gs_ir_resize(ir, GS_OP_TYPE_SRC, all, w.width);
}

/* ---- dense products ------------------------------------------------------ */

/* X @ W of a value of both ends. It is linear, so what of x is of one end is multiplied there, once a vertex, and the
 * rest edge by edge (DENSE): (u.h - v.h) @ W is u.h @ W - v.h @ W, and concat(u.h, e.x) @ W is u.h by the upper part of
 * W and e.x by the lower one. A vertex multiplies by a part of W as columns of 0 beside its own do by all of it. */

typedef struct gs_dense {
    gs_op op;       /* DENSE, DENSE_T */
    uint32_t w, site, width; /* of the result */
    bool columns_alone;
} gs_dense;

static uint32_t zero_columns(gs_ir *ir, uint32_t width)
{
    return gs_ir_resize(ir, GS_OP_EXPAND, gs_ir__zeros(ir), width);
}

/* x, a vertex value, by d's part of the matrix. */
static uint32_t vertex_product(gs_ir *ir, const gs_dense *d, uint32_t x)
{
    const gs_node w = *gs_ir_node(ir, d->w);
    const bool back = d->op == GS_OP_DENSE_T;
    const uint32_t from = gs_ir_node(ir, x)->width, all = back ? w.width : w.rows, out = back ? w.rows : w.width;
    uint32_t y;

    if (gs_ir_node(ir, x)->type == GS_TYPE_P)
        x = gs_ir_binary(ir, GS_OP_ADD, x, gs_ir__zeros(ir));
    if (from < all && d->site > 0)
        x = gs_ir_binary(ir, GS_OP_CONCAT, zero_columns(ir, d->site), x);
    if (from < all && d->site + from < all)
        x = gs_ir_binary(ir, GS_OP_CONCAT, x, zero_columns(ir, all - d->site - from));
    y = gs_ir_binary(ir, back ? GS_OP_MATMUL_T : GS_OP_MATMUL, x, d->w);
    return d->width < out ? gs_ir_part(ir, y, d->site, d->width) : y;
}

/* Does x stay a product by all of the matrix, which a sum may be taken before? */
static bool stays_product(const gs_ir *ir, const gs_dense *d, uint32_t x)
{
    const gs_node *const w = gs_ir_node(ir, d->w);
    return d->columns_alone && gs_ir_node(ir, x)->width == (d->op == GS_OP_DENSE_T ? w->width : w->rows);
}

static uint32_t edge_product(gs_ir *ir, const gs_dense *d, uint32_t x)
{
    gs_node n = gs_ir__blank(d->op, x, d->w);

    if (stays_product(ir, d, x))
        return gs_ir_binary(ir, d->op == GS_OP_DENSE_T ? GS_OP_MATMUL_T : GS_OP_MATMUL, x, d->w);
    n.width = d->width;
    n.site = d->site;
    return gs_ir__make(ir, n);
}

static uint32_t dense(gs_ir *ir, const gs_dense *d, uint32_t x);

/* Each by its own part of the matrix. */
static uint32_t dense_columns(gs_ir *ir, const gs_dense *d, const gs_node *n)
{
    gs_dense second = *d;
    second.site += gs_ir_node(ir, n->in[0])->width;
    const uint32_t a = dense(ir, d, n->in[0]), b = dense(ir, &second, n->in[1]);
    return gs_ir_binary(ir, GS_OP_ADD, a, b);
}

/* Is some term of the sum, which is as wide, of one end? */
static bool splits(const gs_ir *ir, const gs_node *n, int depth)
{
    bool found = false;
    if ((n->op != GS_OP_ADD && n->op != GS_OP_SUB) || depth == 8)
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (gs_ir_node(ir, n->in[k])->width != n->width)
            return false;
    for (uint32_t k = 0; k < 2; k++) {
        const gs_node *const a = gs_ir_node(ir, n->in[k]);
        found = found || a->type == GS_TYPE_S || a->type == GS_TYPE_D || splits(ir, a, depth + 1);
    }
    return found;
}

static uint32_t dense(gs_ir *ir, const gs_dense *d, uint32_t x)
{
    const gs_node n = *gs_ir_node(ir, x);

    if (n.type == GS_TYPE_S)
        return gs_ir_unary(ir, GS_OP_SRC, vertex_product(ir, d, n.in[0]), 0);
    if (n.type != GS_TYPE_E)
        return vertex_product(ir, d, x);
    if (n.op == GS_OP_CONCAT)
        return dense_columns(ir, d, &n);
    if (!stays_product(ir, d, x) && splits(ir, &n, 0))
        return gs_ir_binary(ir, n.op, dense(ir, d, n.in[0]), dense(ir, d, n.in[1]));
    if (!stays_product(ir, d, x) && n.op == GS_OP_NEG)
        return gs_ir_unary(ir, GS_OP_NEG, dense(ir, d, n.in[0]), 0);
    return edge_product(ir, d, x);
}

uint32_t gs_ir__dense(gs_ir *ir, gs_op op, uint32_t x, uint32_t w, bool columns_alone)
{
    const bool back = op == GS_OP_MATMUL_T;
    const gs_dense d = {.op = back ? GS_OP_DENSE_T : GS_OP_DENSE, .w = w, .columns_alone = columns_alone,
                        .width = back ? gs_ir_node(ir, w)->rows : gs_ir_node(ir, w)->width};
    return dense(ir, &d, x);
}

/* ---- sums of values of edges ------------------------------------------- */

#define MAX_TERMS 32
#define MAX_PRODUCT 4 /* terms that a product may be multiplied out to */
#define MAX_WORK 4096 /* nodes looked at for one sum: shared values are split again at each use */
#define MAX_FACTORS 16

typedef struct gs_term {
    uint32_t t, o; /* vertex values (o may be a parameter); GS_IR_NONE: 1 */
    uint32_t e;    /* a value of both ends, or GS_IR_NONE */
    uint32_t done; /* instead of o and e: their sum, a vertex value */
} gs_term;

typedef struct gs_terms {
    gs_op op;       /* SUM_IN or SUM_OUT */
    uint32_t count;
    uint32_t *work; /* left, of MAX_WORK */
    gs_term term[MAX_TERMS];
} gs_terms;

static const gs_term nothing = {GS_IR_NONE, GS_IR_NONE, GS_IR_NONE, GS_IR_NONE};

static uint32_t times(gs_ir *ir, uint32_t a, uint32_t b)
{
    return a == GS_IR_NONE ? b : b == GS_IR_NONE ? a : gs_ir_binary(ir, GS_OP_MUL, a, b);
}

/* The LSE_IN m of the softmax exp(s - m), s the score of its edges or, with `own`, of the vertex itself; spread over
 * heads or not. GS_IR_NONE: the value is none. */
static uint32_t softmax_of(const gs_ir *ir, uint32_t value, bool own)
{
    const gs_node *n = gs_ir_node(ir, value), *d, *m;
    if (n->op == GS_OP_EXPAND)
        n = gs_ir_node(ir, n->in[0]);
    if (n->op != GS_OP_EXP)
        return GS_IR_NONE;
    d = gs_ir_node(ir, n->in[0]);
    if (d->op != GS_OP_SUB)
        return GS_IR_NONE;
    m = gs_ir_node(ir, d->in[1]);
    return m->op == GS_OP_LSE_IN && m->in[own] == d->in[0] ? d->in[1] : GS_IR_NONE;
}

static bool is_softmax(const gs_ir *ir, uint32_t value) { return softmax_of(ir, value, false) != GS_IR_NONE; }

static bool split(gs_ir *ir, uint32_t value, gs_terms *out);

/* `value` as one term that stays on the edges. */
static bool keep(gs_ir *ir, uint32_t value, gs_terms *out)
{
    gs_term t = nothing;
    t.e = value;
    out->count = 0;
    out->term[out->count++] = t;
    return ir->status == GS_OK;
}

static bool put(gs_ir *ir, gs_terms *out, gs_term t)
{
    out->term[out->count++] = t;
    return ir->status == GS_OK;
}

/* Constant factors of a value of the operand end leave the sum too. */
static gs_term operand_term(gs_ir *ir, uint32_t o)
{
    gs_term t = nothing;
    t.o = o;
    for (;;) {
        const gs_node n = *gs_ir_node(ir, t.o);
        uint32_t k;
        if (n.op == GS_OP_NEG) {
            t.t = times(ir, t.t, gs_ir_const(ir, -1.0f, 1));
            t.o = n.in[0];
            continue;
        }
        if (n.op != GS_OP_MUL)
            return t;
        k = gs_ir_node(ir, n.in[0])->op == GS_OP_CONST ? 0 : 1;
        if (gs_ir_node(ir, n.in[k])->op != GS_OP_CONST || gs_ir_node(ir, n.in[1 - k])->width != n.width)
            return t;
        t.t = times(ir, t.t, n.in[k]);
        t.o = n.in[1 - k];
    }
}

static bool stays(const gs_terms *x)
{
    for (uint32_t i = 0; i < x->count; i++)
        if (x->term[i].e != GS_IR_NONE || x->term[i].done != GS_IR_NONE)
            return true;
    return false;
}

static bool split_product(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    gs_terms x[2] = {{.op = out->op, .work = out->work}, {.op = out->op, .work = out->work}};

    for (int k = 0; k < 2; k++)
        if (!split(ir, n.in[k], &x[k]))
            return false;
    if (stays(&x[0]) || stays(&x[1]) || x[0].count * x[1].count > MAX_PRODUCT)
        for (int k = 0; k < 2; k++)
            if (x[k].count > 1 && !keep(ir, n.in[k], &x[k]))
                return false;
    for (uint32_t i = 0; i < x[0].count; i++)
        for (uint32_t j = 0; j < x[1].count; j++) {
            const gs_term a = x[0].term[i], b = x[1].term[j];
            gs_term t = {times(ir, a.t, b.t), times(ir, a.o, b.o), times(ir, a.e, b.e), GS_IR_NONE};
            if (a.done != GS_IR_NONE || b.done != GS_IR_NONE) {
                t.done = a.done != GS_IR_NONE ? a.done : b.done;
                if (t.o != GS_IR_NONE || t.e != GS_IR_NONE || (a.done != GS_IR_NONE && b.done != GS_IR_NONE))
                    return keep(ir, value, out);
            }
            if (!put(ir, out, t))
                return false;
        }
    return true;
}

/* A divisor of the target end: 1 where no edge asks, so that no edges give 0 and not 0 / 0. */
static uint32_t divisor(gs_ir *ir, const gs_terms *out, uint32_t b)
{
    const gs_node n = *gs_ir_node(ir, b);
    uint32_t has;
    if (out->op != GS_OP_SUM_IN || n.op == GS_OP_CONST)
        return b;
    for (uint32_t k = 0; n.op == GS_OP_MAX && k < 2; k++)
        if (gs_ir_node(ir, n.in[k])->op == GS_OP_CONST && gs_ir_node(ir, n.in[k])->alpha > 0.0f)
            return b;
    has = gs_ir_unary(ir, GS_OP_STEP, gs_ir_input(ir, "in_degree", 1, GS_F32), 0);
    return gs_ir_binary(ir, GS_OP_ADD, gs_ir_binary(ir, GS_OP_MUL, has, b),
                        gs_ir_binary(ir, GS_OP_SUB, gs_ir_const(ir, 1.0f, 1), has));
}

/* Division by something of one end only: each term is divided at that end. */
static bool split_quotient(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    gs_terms a = {.op = out->op, .work = out->work}, b = {.op = out->op, .work = out->work};
    const uint32_t one = gs_ir_const(ir, 1.0f, 1);

    if (!split(ir, n.in[0], &a) || !split(ir, n.in[1], &b))
        return false;
    if (b.count != 1 || stays(&b) || (stays(&a) && a.count > 1))
        return keep(ir, value, out);
    for (uint32_t i = 0; i < a.count; i++) {
        gs_term t = a.term[i];
        if (b.term[0].t != GS_IR_NONE)
            t.t = gs_ir_binary(ir, GS_OP_DIV, t.t == GS_IR_NONE ? one : t.t, divisor(ir, out, b.term[0].t));
        if (b.term[0].o != GS_IR_NONE && t.done != GS_IR_NONE)
            return keep(ir, value, out);
        if (b.term[0].o != GS_IR_NONE && t.o == GS_IR_NONE && t.t != GS_IR_NONE &&
            gs_ir_node(ir, b.term[0].o)->type == GS_TYPE_P)
            t.t = gs_ir_binary(ir, GS_OP_DIV, t.t, b.term[0].o);
        else if (b.term[0].o != GS_IR_NONE)
            t.o = gs_ir_binary(ir, GS_OP_DIV, t.o == GS_IR_NONE ? one : t.o, b.term[0].o);
        if (!put(ir, out, t))
            return false;
    }
    return true;
}

static void negate(gs_ir *ir, gs_terms *out, uint32_t from)
{
    for (uint32_t i = from; i < out->count; i++)
        out->term[i].t = times(ir, out->term[i].t, gs_ir_const(ir, -1.0f, 1));
}

static bool split_sum(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    gs_terms b = {.op = out->op, .work = out->work};

    if (!split(ir, n.in[0], out) || !split(ir, n.in[1], &b))
        return false;
    if (out->count + b.count > MAX_TERMS)
        return keep(ir, value, out);
    if (n.op == GS_OP_SUB)
        negate(ir, &b, 0);
    for (uint32_t i = 0; i < b.count; i++)
        out->term[out->count++] = b.term[i];
    return ir->status == GS_OK;
}

/* (t o) @ W = t (o @ W) where t is a scalar a vertex; of both ends, the sum comes first. */
static bool split_matmul(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    gs_terms a = {.op = out->op, .work = out->work};
    bool commutes = true;

    if (!split(ir, n.in[0], &a))
        return false;
    for (uint32_t i = 0; i < a.count; i++) {
        const gs_term t = a.term[i];
        commutes &= t.e == GS_IR_NONE && t.done == GS_IR_NONE;
        if (t.t != GS_IR_NONE && t.o != GS_IR_NONE)
            commutes &= gs_ir_node(ir, t.t)->width == 1 && gs_ir_node(ir, t.o)->width == gs_ir_node(ir, n.in[0])->width;
    }
    if (!commutes) {
        gs_term t = nothing;
        t.done = gs_ir_binary(ir, n.op, gs_ir__sum(ir, out->op, n.in[0], true), n.in[1]);
        return put(ir, out, t);
    }
    for (uint32_t i = 0; i < a.count; i++) {
        gs_term t = a.term[i];
        if (t.o != GS_IR_NONE)
            t.o = gs_ir_binary(ir, n.op, t.o, n.in[1]);
        else
            t.t = gs_ir_binary(ir, n.op, t.t, n.in[1]);
        if (!put(ir, out, t))
            return false;
    }
    return true;
}

/* The sum comes first. */
static bool split_dense(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    const gs_dense d = {.op = n.op, .w = n.in[1], .site = n.site, .width = n.width};
    gs_term t = nothing;

    t.done = vertex_product(ir, &d, gs_ir__sum(ir, out->op, n.in[0], true));
    return put(ir, out, t);
}

static uint32_t expand(gs_ir *ir, uint32_t a, uint32_t narrow, uint32_t wide)
{
    return a == GS_IR_NONE || gs_ir_node(ir, a)->width != narrow ? a : gs_ir_resize(ir, GS_OP_EXPAND, a, wide);
}

static bool split_expand(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    const uint32_t narrow = gs_ir_node(ir, n.in[0])->width;
    if (narrow == 1)
        return keep(ir, value, out);
    if (!split(ir, n.in[0], out))
        return false;
    for (uint32_t i = 0; i < out->count; i++) {
        gs_term *t = &out->term[i];
        t->t = expand(ir, t->t, narrow, n.width);
        t->o = expand(ir, t->o, narrow, n.width);
        t->e = expand(ir, t->e, narrow, n.width);
        t->done = expand(ir, t->done, narrow, n.width);
    }
    return ir->status == GS_OK;
}

static bool split_typed(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    gs_term t = nothing;

    if (gs_ir_node(ir, n.in[0])->op != GS_OP_SRC)
        return keep(ir, value, out);
    t.done = sum_by_type(ir, gs_ir_node(ir, n.in[0])->in[0], n.in[1], n.self);
    return put(ir, out, t);
}

static bool split_edge_value(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    if (*out->work == 0)
        return keep(ir, value, out);
    --*out->work;
    gs_ir_at(ir, n.line, n.column);
    switch (n.op) {
    case GS_OP_ADD:
    case GS_OP_SUB:
        return split_sum(ir, value, out);
    case GS_OP_MUL:
        return split_product(ir, value, out);
    case GS_OP_DIV:
        return split_quotient(ir, value, out);
    case GS_OP_MATMUL:
    case GS_OP_MATMUL_T:
        return split_matmul(ir, value, out);
    case GS_OP_DENSE:
    case GS_OP_DENSE_T:
        return split_dense(ir, value, out);
    case GS_OP_EXPAND:
        return split_expand(ir, value, out);
    case GS_OP_TYPED:
        return split_typed(ir, value, out);
    case GS_OP_NEG:
        if (!split(ir, n.in[0], out))
            return false;
        negate(ir, out, 0);
        return ir->status == GS_OK;
    default:
        return keep(ir, value, out);
    }
}

/* Fills `out`, which is empty. */
static bool split(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);
    const bool in = out->op == GS_OP_SUM_IN;
    gs_term t = nothing;

    if (is_softmax(ir, value))
        return keep(ir, value, out);
    if (n.op == GS_OP_CONST)
        t.t = value;
    else if (n.type ==
             GS_TYPE_P) /* with the operand's part: t may be a constant, and that times a parameter is no value */
        t.o = value;
    else if (n.type == GS_TYPE_S && in)
        return put(ir, out, operand_term(ir, n.in[0])); /* an SRC: folding's invariant */
    else if (n.type == GS_TYPE_D && !in)
        return put(ir, out, operand_term(ir, value));
    else if (n.type == GS_TYPE_S)
        t.t = n.in[0];
    else if (n.type == GS_TYPE_D)
        t.t = value;
    else
        return split_edge_value(ir, value, out);
    return put(ir, out, t);
}

/* ---- sums of terms ---- */

/* A vertex value as the edge sees it, at its end. */
static uint32_t at_end(gs_ir *ir, uint32_t v, bool source)
{
    if (v == GS_IR_NONE || !source || gs_ir_node(ir, v)->type == GS_TYPE_P)
        return v;
    return gs_ir_unary(ir, GS_OP_SRC, v, 0);
}

/* Lists the factors of a product; where it is spread over heads, each factor is spread. */
static uint32_t factors(gs_ir *ir, uint32_t value, uint32_t *out, uint32_t count)
{
    const gs_node n = *gs_ir_node(ir, value);
    const gs_node product = n.op == GS_OP_EXPAND ? *gs_ir_node(ir, n.in[0]) : n;
    if (product.op != GS_OP_MUL || count + 2 > MAX_FACTORS) {
        if (count < MAX_FACTORS)
            out[count++] = value;
        return count;
    }
    for (uint32_t k = 0; k < 2; k++)
        count =
            factors(ir, n.op == GS_OP_EXPAND ? gs_ir_resize(ir, GS_OP_EXPAND, product.in[k], n.width) : product.in[k],
                    out, count);
    return count;
}

/* The factor of `value` that is a softmax, of the LSE_IN m where that is not GS_IR_NONE; *rest becomes its product with
 * all others. GS_IR_NONE: there is none. */
static uint32_t softmax_factor(gs_ir *ir, uint32_t value, bool own, uint32_t m, uint32_t *rest)
{
    uint32_t f[MAX_FACTORS], soft = 0;
    const uint32_t count = factors(ir, value, f, 0);

    while (soft < count && (softmax_of(ir, f[soft], own) == GS_IR_NONE ||
                            (m != GS_IR_NONE && softmax_of(ir, f[soft], own) != m)))
        soft++;
    if (soft == count || count == MAX_FACTORS)
        return GS_IR_NONE;
    for (uint32_t k = 0; k < count; k++)
        if (k != soft)
            *rest = times(ir, *rest, f[k]);
    return f[soft];
}

/* ATTEND for a softmax among the factors of t.o * t.e; GS_IR_NONE where there is none. */
static uint32_t attend(gs_ir *ir, gs_term t)
{
    uint32_t rest = at_end(ir, t.o, true);
    const uint32_t soft = softmax_factor(ir, t.e, false, GS_IR_NONE, &rest);

    if (soft == GS_IR_NONE || rest == GS_IR_NONE || gs_ir_node(ir, rest)->type == GS_TYPE_P)
        return GS_IR_NONE;
    const uint32_t m = softmax_of(ir, soft, false), heads = gs_ir_node(ir, m)->width;
    const uint32_t width = gs_ir_node(ir, soft)->width;
    if (gs_ir_node(ir, rest)->width % heads != 0) /* a scalar, the same for all heads */
        rest = gs_ir_resize(ir, GS_OP_EXPAND, rest, heads);
    const uint32_t y = gs_ir_binary(ir, GS_OP_ATTEND, m, rest);
    return gs_ir_node(ir, y)->width < width ? gs_ir_resize(ir, GS_OP_EXPAND, y, width) : y;
}

uint32_t gs_ir__attend_own(gs_ir *ir, uint32_t a, uint32_t b)
{
    const uint32_t y[2] = {a, b};

    for (uint32_t k = 0; k < 2; k++) {
        const gs_node n = *gs_ir_node(ir, y[k]);
        uint32_t rest = GS_IR_NONE;
        if (n.op == GS_OP_ATTEND && n.in[2] == GS_IR_NONE && gs_ir_node(ir, y[1 - k])->width == n.width &&
            softmax_factor(ir, y[1 - k], true, n.in[0], &rest) != GS_IR_NONE && rest != GS_IR_NONE &&
            gs_ir_node(ir, rest)->width == n.width)
            return gs_ir_ternary(ir, GS_OP_ATTEND, n.in[0], n.in[1], rest);
    }
    return GS_IR_NONE;
}

/* Is `on`, or something that is made of it, below value i? Where there is too much to look at, it is. */
static bool depends(const gs_ir *ir, uint32_t i, uint32_t on, uint32_t *work)
{
    const gs_node *const n = gs_ir_node(ir, i);
    if (i <= on || *work == 0)
        return i == on || *work == 0;
    --*work;
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if (depends(ir, n->in[k], on, work))
            return true;
    return false;
}

/* The factors of a sum over in-edges of p w (q m fold(g x) - r): p a softmax, q, g and r of the destination. */
typedef struct gs_scored {
    uint32_t p, w, m, x; /* m: a mask, or GS_IR_NONE; x: rows, all others numbers a head */
    uint32_t q, g, r;
} gs_scored;

static bool is_difference(const gs_ir *ir, const gs_node *n)
{
    return n->op == GS_OP_SUB && n->type == GS_TYPE_E && gs_ir_node(ir, n->in[1])->type == GS_TYPE_D;
}

/* Puts the factors of `value` that are of the destination into *d, all others into *rest; `fold`: but one such sum of
 * columns, whose operand this gives. */
static uint32_t sort_factors(gs_ir *ir, uint32_t value, bool fold, uint32_t *d, uint32_t *rest)
{
    uint32_t f[MAX_FACTORS], found = GS_IR_NONE;
    const uint32_t count = factors(ir, value, f, 0);

    for (uint32_t k = 0; k < count; k++) {
        const gs_node n = *gs_ir_node(ir, f[k]);
        if (fold && found == GS_IR_NONE && n.op == GS_OP_FOLD)
            found = n.in[0];
        else if (n.type == GS_TYPE_D || n.op == GS_OP_CONST)
            *d = times(ir, *d, f[k]);
        else
            *rest = times(ir, *rest, f[k]);
    }
    return found;
}

static bool find_scored(gs_ir *ir, uint32_t value, gs_scored *s)
{
    uint32_t f[MAX_FACTORS], difference = GS_IR_NONE;
    const uint32_t count = factors(ir, value, f, 0);

    *s = (gs_scored){GS_IR_NONE, GS_IR_NONE, GS_IR_NONE, GS_IR_NONE, GS_IR_NONE, GS_IR_NONE, GS_IR_NONE};
    for (uint32_t k = 0; k < count; k++)
        if (s->p == GS_IR_NONE && is_softmax(ir, f[k]))
            s->p = f[k];
        else if (difference == GS_IR_NONE && is_difference(ir, gs_ir_node(ir, f[k])))
            difference = f[k];
        else
            s->w = times(ir, s->w, f[k]);
    if (s->p == GS_IR_NONE || difference == GS_IR_NONE || s->w == GS_IR_NONE)
        return false;
    s->r = gs_ir_node(ir, difference)->in[1];
    const uint32_t product = sort_factors(ir, gs_ir_node(ir, difference)->in[0], true, &s->q, &s->m);
    if (product != GS_IR_NONE)
        sort_factors(ir, product, false, &s->g, &s->x);
    return s->g != GS_IR_NONE && s->x != GS_IR_NONE;
}

/* Is it a number a head of each edge, made before `gradient`? */
static bool is_weight(const gs_ir *ir, uint32_t i, uint32_t heads, uint32_t gradient, uint32_t *work)
{
    return gs_ir_node(ir, i)->width == heads && gs_ir_node(ir, i)->type == GS_TYPE_E && !depends(ir, i, gradient, work);
}

uint32_t gs_ir__sum_of_scores(gs_ir *ir, uint32_t value, uint32_t gradient)
{
    uint32_t work = MAX_WORK;
    gs_term rows = nothing, numbers = nothing;
    gs_scored s;

    if (value == GS_IR_NONE || !find_scored(ir, value, &s))
        return GS_IR_NONE;
    const uint32_t heads = gs_ir_node(ir, s.p)->width;
    if (!is_weight(ir, s.w, heads, gradient, &work) || depends(ir, s.x, gradient, &work) ||
        (s.m != GS_IR_NONE && !is_weight(ir, s.m, heads, gradient, &work)))
        return GS_IR_NONE;
    numbers.e = times(ir, s.p, s.w);
    rows.e = times(ir, s.m, numbers.e);
    if (heads > 1)
        rows.e = gs_ir_resize(ir, GS_OP_EXPAND, rows.e, gs_ir_node(ir, s.x)->width);
    rows.e = times(ir, rows.e, s.x);
    const uint32_t y = gs_ir_resize(ir, GS_OP_FOLD, times(ir, s.g, attend(ir, rows)), heads);
    return gs_ir_binary(ir, GS_OP_SUB, times(ir, s.q, y), times(ir, s.r, attend(ir, numbers)));
}

/* sum(o e); without an e, of rows. */
static uint32_t sum_of(gs_ir *ir, gs_op op, gs_term t)
{
    const bool in = op == GS_OP_SUM_IN;
    if (t.e != GS_IR_NONE)
        return gs_ir_sum(ir, op, times(ir, at_end(ir, t.o, in), t.e), false);
    if (t.o != GS_IR_NONE && gs_ir_node(ir, t.o)->type != GS_TYPE_P)
        return gs_ir_sum(ir, op, at_end(ir, t.o, in), false);
    return times(ir, t.o, in ? gs_ir_input(ir, "in_degree", 1, GS_F32) : gs_ir_sum(ir, op, ones(ir), false));
}

static uint32_t add(gs_ir *ir, uint32_t total, uint32_t v)
{
    return total == GS_IR_NONE ? v : gs_ir_binary(ir, GS_OP_ADD, total, v);
}

/* Terms that stay on the edges go into one sum; alone, a term's target factor leaves it. */
static uint32_t sum_edge_terms(gs_ir *ir, const gs_terms *x)
{
    const bool in = x->op == GS_OP_SUM_IN;
    uint32_t count = 0, last = 0, value = GS_IR_NONE;

    for (uint32_t i = 0; i < x->count; i++)
        if (x->term[i].e != GS_IR_NONE) {
            count++;
            last = i;
        }
    if (count == 0)
        return GS_IR_NONE;
    if (count == 1)
        return times(ir, x->term[last].t, sum_of(ir, x->op, x->term[last]));
    for (uint32_t i = 0; i < x->count; i++) {
        const gs_term t = x->term[i];
        if (t.e != GS_IR_NONE)
            value = add(ir, value, times(ir, at_end(ir, t.t, !in), times(ir, at_end(ir, t.o, in), t.e)));
    }
    return gs_ir_sum(ir, x->op, value, false);
}

uint32_t gs_ir__sum(gs_ir *ir, gs_op op, uint32_t value, bool softmax)
{
    uint32_t work = MAX_WORK, total = GS_IR_NONE, width, edges;
    gs_terms terms = {.op = op, .work = &work};

    if (value == GS_IR_NONE)
        return value;
    width = gs_ir_node(ir, value)->width;
    if (!split(ir, value, &terms))
        return GS_IR_NONE;
    for (uint32_t i = 0; i < terms.count && ir->status == GS_OK; i++) {
        gs_term *t = &terms.term[i];
        uint32_t y = t->done;
        if (t->e != GS_IR_NONE) {
            y = softmax ? attend(ir, *t) : GS_IR_NONE;
            if (y == GS_IR_NONE)
                continue;
            t->e = GS_IR_NONE;
        } else if (y == GS_IR_NONE) {
            y = sum_of(ir, op, *t);
        }
        total = add(ir, total, times(ir, t->t, y));
    }
    if (ir->status != GS_OK)
        return GS_IR_NONE;
    edges = sum_edge_terms(ir, &terms);
    if (edges != GS_IR_NONE)
        total = add(ir, total, edges);
    if (total != GS_IR_NONE && gs_ir_node(ir, total)->width != width)
        return gs_ir_resize(ir, GS_OP_EXPAND, total, width);
    return total;
}

/* ---- the vertex's own score ---------------------------------------------- */

#define LEAST_REST 1e-12f /* of a vertex with fewer than 10^12 self loops, all of which are there */

/* An LSE_IN in the graph being made: its scores, and what the edges' softmax and the vertex's own weigh in it;
 * GS_IR_NONE: it is of edges alone. */
typedef struct gs_lowered {
    uint32_t score, edges, own;
} gs_lowered;

/* From the larger of the two on, so that nothing overflows: exact, and safe where there are no edges (lse = -inf) or,
 * where w is below 0, only loops. A vertex of a batch's last hop has loops, but no edges: what it gets is looked at by
 * nobody, but must be a number, as it is multiplied by a gradient of 0. */
static uint32_t lower_lse(gs_ir *to, const uint32_t *in, gs_lowered *l)
{
    const uint32_t lse = gs_ir_sum(to, GS_OP_LSE_IN, in[0], true), most = gs_ir_binary(to, GS_OP_MAX, lse, in[1]);
    const uint32_t edges = gs_ir_unary(to, GS_OP_EXP, gs_ir_binary(to, GS_OP_SUB, lse, most), 0);
    const uint32_t own = gs_ir_unary(to, GS_OP_EXP, gs_ir_binary(to, GS_OP_SUB, in[1], most), 0);
    uint32_t all = gs_ir_binary(to, GS_OP_ADD, edges, gs_ir_binary(to, GS_OP_MUL, own, in[2]));

    if (gs_ir_node(to, in[2])->op != GS_OP_CONST)
        all = gs_ir_binary(to, GS_OP_MAX, all, gs_ir_const(to, LEAST_REST, 1));
    l->edges = gs_ir_binary(to, GS_OP_DIV, edges, all);
    l->own = gs_ir_binary(to, GS_OP_DIV, own, all);
    return gs_ir_binary(to, GS_OP_ADD, most, gs_ir_unary(to, GS_OP_LOG, all, 0));
}

/* Rows times what their heads weigh. */
static uint32_t weighed(gs_ir *to, uint32_t rows, uint32_t heads)
{
    if (gs_ir_node(to, heads)->width > 1)
        heads = gs_ir_resize(to, GS_OP_EXPAND, heads, gs_ir_node(to, rows)->width);
    return gs_ir_binary(to, GS_OP_MUL, rows, heads);
}

static uint32_t lower(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *const n = gs_ir_node(from, i);
    gs_lowered *const all = context, *const l = &all[n->op == GS_OP_ATTEND ? n->in[0] : i];
    gs_node sum = gs_ir__blank(GS_OP_ATTEND, l->score, in[1]);

    if (n->op == GS_OP_LSE_IN) {
        *l = (gs_lowered){in[0], GS_IR_NONE, GS_IR_NONE};
        return n->in[2] == GS_IR_NONE ? gs_ir_like(to, n, in) : lower_lse(to, in, l);
    }
    if (n->op == GS_OP_EXP && softmax_of(from, i, true) != GS_IR_NONE)
        return all[softmax_of(from, i, true)].own;
    if (n->op != GS_OP_ATTEND)
        return gs_ir_like(to, n, in);
    sum.self = l->edges != GS_IR_NONE;
    const uint32_t y = gs_ir__make(to, sum), edges = sum.self ? weighed(to, y, l->edges) : y;
    return n->in[2] == GS_IR_NONE ? edges : gs_ir_binary(to, GS_OP_ADD, edges, weighed(to, in[2], l->own));
}

gs_status gs_ir_lower(gs_ir *ir)
{
    GS_FREED gs_lowered *const l = gs_calloc((size_t)ir->nodes + 1, sizeof(*l));

    GS_NEED(l != NULL, "%s: no memory for the model's graph", ir->source);
    GS_TRY(gs_ir_rewrite(ir, lower, l));
    return gs_ir_rewrite(ir, NULL, NULL); /* what nothing asks for goes */
}
