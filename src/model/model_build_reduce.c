/* model_build_reduce.c - reductions over the in-edges, and over the vertex itself where the text says so. */
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "model/model_builder.h"

#define FAR 1e30f /* below all scores, and finite also when some are added */
#define LEAST_REST 1e-12f /* of a vertex with fewer than 10^12 self loops, all of which are there */

/* Values at the vertex itself, so far: scratch of value_at_self(). */
typedef struct gs_at_self {
    gs_builder *b;
    uint32_t nodes, *map;
} gs_at_self;

static uint32_t at_self(const gs_at_self *x, uint32_t value)
{
    gs_ir *ir = x->b->ir;
    const gs_node n = *gs_ir_node(ir, value);
    uint32_t in[GS_IR_INPUTS] = {GS_IR_NONE, GS_IR_NONE, GS_IR_NONE}, made;

    if (!gs_model__is_of_edges(&n))
        return value;
    if (value < x->nodes && x->map[value] != GS_IR_NONE)
        return x->map[value];
    for (uint32_t i = 0; i < x->b->softs; i++)
        if (x->b->soft[i].edge == value)
            return x->b->soft[i].self;
    if (n.op == GS_OP_SRC)
        return n.in[0];
    if (n.op == GS_OP_WEIGHT)
        return gs_model__number(x->b, 1.0f);
    if (n.op == GS_OP_IS_LOOP) /* the vertex's own edge is none of the graph's */
        return gs_model__number(x->b, 0.0f);
    if (n.op == GS_OP_TYPED)
        return gs_ir_error(ir, GS_EFORMAT, "W[e.type] means nothing for the vertex itself: leave out 'self'");
    if (n.op == GS_OP_EDGE_MASK && !n.self && x->b->config->self_loops)
        return gs_ir_error(ir, GS_EFORMAT, "what runs over the vertex itself is dropped inside the sum(..., self)");
    for (uint32_t k = 0; k < gs_node_inputs(&n); k++)
        if ((in[k] = at_self(x, n.in[k])) == GS_IR_NONE)
            return GS_IR_NONE;
    made = gs_ir_like(ir, &n, in);
    if (value < x->nodes)
        x->map[value] = made;
    return made;
}

static uint32_t value_at_self(gs_builder *b, uint32_t value)
{
    gs_at_self x = {.b = b, .nodes = gs_ir_count(b->ir)};
    uint32_t made;

    if (value == GS_IR_NONE)
        return value;
    x.map = gs_malloc_array((size_t)x.nodes + 1, sizeof(*x.map));
    if (x.map == NULL)
        return gs_ir_error(b->ir, GS_ENOMEM, "no memory for the model's graph");
    memset(x.map, 0xff, ((size_t)x.nodes + 1) * sizeof(*x.map)); /* GS_IR_NONE */
    made = at_self(&x, value);
    gs_free(x.map);
    return made;
}

/* Remembers what a softmax is at the vertex itself; `edge` again. */
static uint32_t remember_soft(gs_builder *b, uint32_t edge, uint32_t self)
{
    if (gs_ir_status(b->ir) != GS_OK)
        return GS_IR_NONE;
    if (!gs_grow(&b->soft, b->softs, &b->soft_cap, sizeof(*b->soft)))
        return gs_ir_error(b->ir, GS_ENOMEM, "no memory for the model's graph");
    b->soft[b->softs++] = (gs_soft){edge, self};
    return edge;
}

/* Is a value of edges made of this operator, or of vertices' values that are? */
static bool is_made_of(gs_builder *b, uint32_t value, gs_op op)
{
    bool *seen, found = false;

    if ((seen = gs_calloc((size_t)value + 1, sizeof(*seen))) == NULL) {
        gs_ir_error(b->ir, GS_ENOMEM, "no memory for the model's graph");
        return false;
    }
    seen[value] = true;
    for (uint32_t i = value + 1; i-- > 0 && !found;) {
        const gs_node *n = gs_ir_node(b->ir, i);
        found = seen[i] && n->op == op;
        for (uint32_t k = 0; seen[i] && gs_model__is_of_edges(n) && k < gs_node_inputs(n); k++)
            seen[n->in[k]] = true;
    }
    gs_free(seen);
    return found;
}

/* The graph's loops have weights of their own, and the value depends on weights: they cannot be taken out by their
 * number. */
static bool loops_differ(gs_builder *b, uint32_t value)
{
    const bool may = b->config->self_loops && b->config->edge_weights && value != GS_IR_NONE;
    return may && is_made_of(b, value, GS_OP_WEIGHT);
}

/* The term of a sum, as often as its edge stands for. What is a share of a softmax has that in it. Loops stand for
 * themselves: who draws a vertex draws these. */
static uint32_t as_often(gs_builder *b, uint32_t value)
{
    if (!b->config->edge_coefficients || value == GS_IR_NONE || is_made_of(b, value, GS_OP_LSE_IN))
        return value;
    return gs_ir_binary(b->ir, GS_OP_MUL, value, gs_ir_weight(b->ir));
}

/* The value, but far from all others at the graph's self loops: finite, so that a vertex with nothing but loops divides
 * nothing by 0. */
static uint32_t away_from_loops(gs_builder *b, uint32_t value, float away)
{
    const uint32_t far = gs_ir_binary(b->ir, GS_OP_MUL, gs_model__is_loop(b), gs_model__number(b, away));
    return gs_ir_binary(b->ir, GS_OP_ADD, value, far);
}

/* A softmax of scores that are the same for all edges into a vertex, or, as weights that a store has not, for all:
 * equal shares, also where there are no edges, whose log-sum-exp would be -inf and be looked at, as such a share leaves
 * the sum over edges. */
static uint32_t build_even_softmax(gs_builder *b, bool self)
{
    gs_ir *ir = b->ir;
    const uint32_t one = gs_model__number(b, 1.0f);
    uint32_t count = gs_ir_sum(ir, GS_OP_SUM_IN, as_often(b, one), false), p;

    if (self)
        count = gs_ir_binary(ir, GS_OP_ADD, gs_ir_binary(ir, GS_OP_SUB, count, gs_model__loops(b)), one);
    else /* shares of what counts less than 1 are right, too; only 0 becomes 1 */
        count = gs_ir_binary(ir, GS_OP_ADD, count,
                             gs_ir_binary(ir, GS_OP_SUB, one, gs_ir_unary(ir, GS_OP_STEP, count, 0)));
    p = gs_ir_binary(ir, GS_OP_DIV, one, count);
    return remember_soft(b, p, self ? p : GS_IR_NONE);
}

/* softmax over the in-edges is exp(s - lse). With the vertex itself, whose score is t, and its L
 * self loops counted once: q = sigmoid(t - lse) is its share beside all the edges, and
 *     at the vertex   q / (1 - L q),
 *     at an edge      exp(s - lse) (1 - q) / (1 - L q);
 * exact, and safe where there are no edges (lse = -inf: q = 1) or only loops (q <= 1 / (L + 1)). Loops that differ from
 * the vertex's own edge have scores so low that they do not count, and L is 0. A vertex of a batch's last hop has L
 * without its edges: what it gets is looked at by nobody, but must be a number, as it is multiplied by a gradient of
 * 0. */
static uint32_t build_softmax(gs_builder *b, uint32_t score, bool self)
{
    gs_ir *ir = b->ir;
    const bool differ = self && loops_differ(b, score);
    const uint32_t own = score;
    uint32_t lse, p, t, q, r, rest;

    if (score == GS_IR_NONE)
        return score;
    if ((gs_ir_node(ir, score)->type & GS_TYPE_S) == 0)
        return build_even_softmax(b, self);
    if (differ)
        score = away_from_loops(b, score, -FAR);
    if (b->config->edge_coefficients)
        score = gs_ir_binary(ir, GS_OP_ADD, score, gs_ir_unary(ir, GS_OP_LOG, gs_ir_weight(ir), 0));
    lse = gs_ir_sum(ir, GS_OP_LSE_IN, score, self);
    p = gs_ir_unary(ir, GS_OP_EXP, gs_ir_binary(ir, GS_OP_SUB, score, lse), 0);
    if (!self)
        return p;
    t = value_at_self(b, own);
    q = gs_ir_unary(ir, GS_OP_SIGMOID, gs_ir_binary(ir, GS_OP_SUB, t, lse), 0);
    r = gs_ir_unary(ir, GS_OP_SIGMOID, gs_ir_binary(ir, GS_OP_SUB, lse, t), 0);
    rest = gs_ir_binary(ir, GS_OP_SUB, gs_model__number(b, 1.0f),
                        gs_ir_binary(ir, GS_OP_MUL, differ ? gs_model__number(b, 0.0f) : gs_model__loops(b), q));
    if (b->config->unexpanded && b->config->self_loops)
        rest = gs_ir_binary(ir, GS_OP_MAX, rest, gs_model__number(b, LEAST_REST));
    p = gs_ir_binary(ir, GS_OP_MUL, gs_ir_binary(ir, GS_OP_DIV, r, rest), p);
    return remember_soft(b, p, gs_ir_binary(ir, GS_OP_DIV, q, rest));
}

/* Edges that a mean runs over; a vertex without any gets 0, as in PyG. */
static uint32_t mean_of(gs_builder *b, uint32_t sum, bool self)
{
    gs_ir *ir = b->ir;
    uint32_t count = gs_model__degree(b);
    if (self)
        count = gs_ir_binary(ir, GS_OP_ADD, gs_ir_binary(ir, GS_OP_SUB, count, gs_model__loops(b)),
                             gs_model__number(b, 1.0f));
    else
        count = gs_ir_binary(ir, GS_OP_MAX, count, gs_model__number(b, 1.0f));
    return gs_ir_binary(ir, GS_OP_DIV, sum, count);
}

static uint32_t build_sum(gs_builder *b, const gs_expr *e, uint32_t value)
{
    gs_ir *ir = b->ir;
    const bool mean = e->name[0] == 'm', self = e->over == GS_OVER_SELF;
    uint32_t sum, own;

    if (e->over == GS_OVER_TYPE && gs_model__types(b) > 1) {
        gs_node n = *gs_ir_node(ir, value);
        if (!mean || n.op != GS_OP_TYPED)
            return gs_ir_error(ir, GS_EFORMAT, "only mean(... @ W[e.type], type) is by type");
        n.self = true;
        return gs_ir_sum(ir, GS_OP_SUM_IN, gs_ir_like(ir, &n, n.in), false);
    }
    if (self && loops_differ(b, value)) {
        sum = gs_ir_binary(ir, GS_OP_SUB, gs_model__number(b, 1.0f), gs_model__is_loop(b));
        sum = gs_ir_binary(ir, GS_OP_MUL, value, sum);
        sum = gs_ir_binary(ir, GS_OP_ADD, gs_ir_sum(ir, GS_OP_SUM_IN, sum, false), value_at_self(b, value));
        return mean ? mean_of(b, sum, self) : sum;
    }
    sum = gs_ir_sum(ir, GS_OP_SUM_IN, as_often(b, value), false);
    if (self) {
        own = value_at_self(b, value);
        own = gs_ir_binary(ir, GS_OP_MUL,
                           gs_ir_binary(ir, GS_OP_SUB, gs_model__number(b, 1.0f), gs_model__loops(b)), own);
        sum = gs_ir_binary(ir, GS_OP_ADD, sum, own);
    }
    return mean ? mean_of(b, sum, self) : sum;
}

/* With the vertex itself: its own value alone where there are no edges. */
static uint32_t build_extreme(gs_builder *b, const gs_expr *e, uint32_t value)
{
    gs_ir *ir = b->ir;
    const bool min = e->name[1] == 'i';
    const bool differ = e->over == GS_OVER_SELF && loops_differ(b, value);
    const uint32_t far = differ ? away_from_loops(b, value, min ? FAR : -FAR) : value;
    const uint32_t y = gs_ir_sum(ir, min ? GS_OP_MIN_IN : GS_OP_MAX_IN, far, false);
    uint32_t own, both;

    if (e->over == GS_OVER_TYPE)
        return gs_ir_error(ir, GS_EFORMAT, "only mean(... @ W[e.type], type) is by type");
    if (e->over != GS_OVER_SELF)
        return y;
    own = value_at_self(b, value);
    if (min)
        both = gs_ir_unary(
            ir, GS_OP_NEG,
            gs_ir_binary(ir, GS_OP_MAX, gs_ir_unary(ir, GS_OP_NEG, y, 0), gs_ir_unary(ir, GS_OP_NEG, own, 0)), 0);
    else
        both = gs_ir_binary(ir, GS_OP_MAX, y, own);
    return gs_ir_ternary(ir, GS_OP_WHERE, gs_model__degree(b), both, own);
}

uint32_t gs_model__reduce(gs_builder *b, const gs_expr *e, uint32_t value)
{
    const uint32_t outer = b->reduction;
    bool self = e->over == GS_OVER_SELF;

    if (strcmp(e->name, "softmax") == 0) {
        if (e->over == GS_OVER_TYPE)
            return gs_ir_error(b->ir, GS_EFORMAT, "only mean(... @ W[e.type], type) is by type");
        /* inside sum(..., self) it runs over the same */
        self |= outer != GS_TEXT_NONE && b->m->expr[outer].over == GS_OVER_SELF;
        return build_softmax(b, value, self);
    }
    if (strcmp(e->name, "max") == 0 || strcmp(e->name, "min") == 0)
        return build_extreme(b, e, value);
    return build_sum(b, e, value);
}
