/* ir_edges.c - work that depends on one end of an edge only leaves the edges.
 *
 * (NeuGraph section 3.2 moves vertex-only work out of ApplyEdge by pattern; here
 * it follows from the types.) Rewriting upwards keeps two invariants:
 *   - a value of type S is SRC(x) with x of type D: f(SRC a, SRC b) = SRC(f(a, b));
 *   - a sum of type-E terms is split: each term is d * s, d of the destination or constant,
 *     s of the source, and sum over in-edges of d * s = d * SUM_IN(SRC s).
 */
#include "ir/ir_internal.h"

#include <string.h>

#define MAX_TERMS 32
#define MAX_WORK 4096 /* nodes looked at for one sum: shared values are split again at each use */

typedef struct gs_term {
    uint32_t d, s; /* the factor of the destination / the vertex value at the source; GS_IR_NONE: 1 */
} gs_term;

typedef struct gs_terms {
    uint32_t count;
    uint32_t *work; /* left, of MAX_WORK */
    gs_term term[MAX_TERMS];
} gs_terms;

static uint32_t times(gs_ir *ir, uint32_t a, uint32_t b)
{
    return a == GS_IR_NONE ? b : b == GS_IR_NONE ? a : gs_ir_binary(ir, GS_OP_MUL, a, b);
}

static bool mixed(gs_ir *ir, const gs_node *n)
{
    gs_ir_at(ir, n->line, n->column);
    gs_ir_error(ir, GS_EUNSUPPORTED, "an expression of both ends inside sum() is not supported yet");
    return false;
}

static bool split(gs_ir *ir, uint32_t value, gs_terms *out);

/* Constant factors of a source value leave the sum too. */
static gs_term source_term(gs_ir *ir, uint32_t s)
{
    gs_term t = {GS_IR_NONE, s};
    for (;;) {
        const gs_node n = *gs_ir_node(ir, t.s);
        uint32_t k;
        if (n.op == GS_OP_NEG) {
            t.d = times(ir, t.d, gs_ir_const(ir, -1.0f, 1));
            t.s = n.in[0];
            continue;
        }
        if (n.op != GS_OP_MUL)
            return t;
        k = gs_ir_node(ir, n.in[0])->op == GS_OP_CONST ? 0 : 1;
        if (gs_ir_node(ir, n.in[k])->op != GS_OP_CONST || gs_ir_node(ir, n.in[1 - k])->width != n.width)
            return t;
        t.d = times(ir, t.d, n.in[k]);
        t.s = n.in[1 - k];
    }
}

static bool too_long(gs_ir *ir)
{
    gs_ir_error(ir, GS_EUNSUPPORTED, "an expression inside sum() splits into more than %d terms", MAX_TERMS);
    return false;
}

static bool put(gs_ir *ir, gs_terms *out, gs_term t)
{
    if (out->count == MAX_TERMS)
        return too_long(ir);
    out->term[out->count++] = t;
    return ir->status == GS_OK;
}

static bool split_product(gs_ir *ir, const gs_node *n, gs_terms *out)
{
    gs_terms a = {.work = out->work}, b = {.work = out->work};
    if (!split(ir, n->in[0], &a) || !split(ir, n->in[1], &b))
        return false;
    for (uint32_t i = 0; i < a.count; i++)
        for (uint32_t j = 0; j < b.count; j++) {
            const gs_term t = {times(ir, a.term[i].d, b.term[j].d), times(ir, a.term[i].s, b.term[j].s)};
            if (!put(ir, out, t))
                return false;
        }
    return true;
}

/* Division by something of one end only: each term is divided at that end. */
static bool split_quotient(gs_ir *ir, const gs_node *n, gs_terms *out)
{
    gs_terms a = {.work = out->work}, b = {.work = out->work};
    const uint32_t one = gs_ir_const(ir, 1.0f, 1);
    if (!split(ir, n->in[0], &a) || !split(ir, n->in[1], &b))
        return false;
    if (b.count != 1)
        return mixed(ir, n);
    for (uint32_t i = 0; i < a.count; i++) {
        gs_term t = a.term[i];
        if (b.term[0].d != GS_IR_NONE)
            t.d = gs_ir_binary(ir, GS_OP_DIV, t.d == GS_IR_NONE ? one : t.d, b.term[0].d);
        if (b.term[0].s != GS_IR_NONE && t.s == GS_IR_NONE && gs_ir_node(ir, b.term[0].s)->type == GS_TYPE_P)
            t.d = gs_ir_binary(ir, GS_OP_DIV, t.d, b.term[0].s);
        else if (b.term[0].s != GS_IR_NONE)
            t.s = gs_ir_binary(ir, GS_OP_DIV, t.s == GS_IR_NONE ? one : t.s, b.term[0].s);
        if (!put(ir, out, t))
            return false;
    }
    return true;
}

static bool split_sum(gs_ir *ir, const gs_node *n, gs_terms *out)
{
    uint32_t first_of_b;
    if (!split(ir, n->in[0], out))
        return false;
    first_of_b = out->count;
    if (!split(ir, n->in[1], out))
        return false;
    for (uint32_t i = first_of_b; n->op == GS_OP_SUB && i < out->count; i++)
        out->term[i].d = times(ir, out->term[i].d, gs_ir_const(ir, -1.0f, 1));
    return true;
}

/* (d s) @ W = d (s @ W) where d is a scalar a vertex. */
static bool split_matmul(gs_ir *ir, const gs_node *n, gs_terms *out)
{
    gs_terms a = {.work = out->work};
    if (!split(ir, n->in[0], &a))
        return false;
    for (uint32_t i = 0; i < a.count; i++) {
        gs_term t = a.term[i];
        if (t.d != GS_IR_NONE && t.s != GS_IR_NONE &&
            (gs_ir_node(ir, t.d)->width != 1 || gs_ir_node(ir, t.s)->width != gs_ir_node(ir, n->in[0])->width))
            return mixed(ir, n);
        if (t.s != GS_IR_NONE)
            t.s = gs_ir_binary(ir, n->op, t.s, n->in[1]);
        else
            t.d = gs_ir_binary(ir, n->op, t.d, n->in[1]);
        if (!put(ir, out, t))
            return false;
    }
    return true;
}

static bool split(gs_ir *ir, uint32_t value, gs_terms *out)
{
    const gs_node n = *gs_ir_node(ir, value);

    if (n.type == GS_TYPE_S)
        return put(ir, out, source_term(ir, n.in[0])); /* an SRC: the first invariant */
    if (n.op == GS_OP_PARAM) /* with the source's part: d may be a constant, and that times a parameter is no value */
        return put(ir, out, (gs_term){GS_IR_NONE, value});
    if (n.type != GS_TYPE_E)
        return put(ir, out, (gs_term){value, GS_IR_NONE});
    gs_ir_at(ir, n.line, n.column);
    if (*out->work == 0)
        return too_long(ir);
    --*out->work;
    switch (n.op) {
    case GS_OP_ADD:
    case GS_OP_SUB:
        return split_sum(ir, &n, out);
    case GS_OP_MUL:
        return split_product(ir, &n, out);
    case GS_OP_DIV:
        return split_quotient(ir, &n, out);
    case GS_OP_MATMUL:
    case GS_OP_MATMUL_T:
        return split_matmul(ir, &n, out);
    case GS_OP_NEG:
        if (!split(ir, n.in[0], out))
            return false;
        for (uint32_t i = 0; i < out->count; i++)
            out->term[i].d = times(ir, out->term[i].d, gs_ir_const(ir, -1.0f, 1));
        return true;
    default:
        return mixed(ir, &n);
    }
}

static uint32_t sum_terms(gs_ir *ir, uint32_t value)
{
    const uint32_t width = gs_ir_node(ir, value)->width;
    uint32_t work = MAX_WORK, total = GS_IR_NONE;
    gs_terms terms = {.work = &work};

    if (!split(ir, value, &terms))
        return GS_IR_NONE;
    for (uint32_t i = 0; i < terms.count; i++) {
        const gs_term t = terms.term[i];
        uint32_t v;
        if (t.s == GS_IR_NONE || gs_ir_node(ir, t.s)->type == GS_TYPE_P)
            v = times(ir, t.d, times(ir, t.s, gs_ir_input(ir, "in_degree", 1, GS_F32)));
        else
            v = times(ir, t.d, gs_ir_sum(ir, GS_OP_SUM_IN, gs_ir_unary(ir, GS_OP_SRC, t.s, 0), false));
        total = total == GS_IR_NONE ? v : gs_ir_binary(ir, GS_OP_ADD, total, v);
    }
    if (total != GS_IR_NONE && gs_ir_node(ir, total)->width != width)
        return gs_ir_binary(ir, GS_OP_ADD, total, gs_ir_const(ir, 0.0f, width));
    return total;
}

/* f(SRC a, SRC b, parameter) = SRC(f(a, b, parameter)) */
static uint32_t lift_source(gs_ir *to, const gs_node *n, const uint32_t *in)
{
    uint32_t at_vertex[GS_IR_INPUTS];
    memcpy(at_vertex, in, sizeof(at_vertex));
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if (in[k] != GS_IR_NONE && gs_ir_node(to, in[k])->op == GS_OP_SRC)
            at_vertex[k] = gs_ir_node(to, in[k])->in[0];
    return gs_ir_unary(to, GS_OP_SRC, gs_ir_like(to, n, at_vertex), 0);
}

/* Does the operation work on values of the source alone? Asked of the new inputs:
 * folding may have turned a value of an edge into one of its source. */
static bool of_source(const gs_ir *to, const gs_node *n, const uint32_t *in)
{
    const gs_op_class cls = gs_op_classof(n->op);
    const bool two = cls == GS_CLASS_ELEMENTWISE && gs_op_inputs(n->op) == 2;
    if (cls != GS_CLASS_ELEMENTWISE && cls != GS_CLASS_MATMUL)
        return false;
    return (gs_ir_node(to, in[0])->type | (two ? gs_ir_node(to, in[1])->type : GS_TYPE_P)) == GS_TYPE_S;
}

static uint32_t rewrite(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *n = gs_ir_node(from, i);
    (void)context;
    if (n->op == GS_OP_SUM_IN) {
        const uint32_t s = sum_terms(to, in[0]);
        /* With `self` the graph was normal before; folding finds the own row again. */
        const gs_node *e = gs_ir_node(to, in[0]);
        return n->self ? gs_ir_binary(to, GS_OP_ADD, s, e->op == GS_OP_SRC ? e->in[0] : in[0]) : s;
    }
    if (of_source(to, n, in))
        return lift_source(to, n, in);
    return gs_ir_like(to, n, in);
}

gs_status gs_ir_normalise(gs_ir *ir)
{
    const gs_status st = gs_ir_rewrite(ir, rewrite, NULL);
    return st == GS_OK ? gs_ir_rewrite(ir, NULL, NULL) : st; /* what splitting left behind goes */
}
