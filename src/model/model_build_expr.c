/* model_build_expr.c - an expression of a layer's text to IR.
 *
 * Nothing is simplified here: what `gnnstream model` prints first is what the text says.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"

/* ---- normalisation ----------------------------------------------------- */

/* Normalisations with their parameters, named as torch's.
 *
 * batch_norm(x) is torch_geometric.nn.norm.BatchNorm, whose torch.nn.BatchNorm1d is called `module`: behind layer i
 * BasicGNN calls it norms.i. In a network, which has no layer around it, its name is its whole name. While training it
 * takes mean and biased variance of each column over all vertices,
 */

#define EPSILON 1e-5f /* torch's, of both norms */
#define LEAST_VARIANCE 1e-30f /* below it the root's gradient is taken for 0, as torch does where all are equal */

static uint32_t bin(gs_builder *b, gs_op op, uint32_t x, uint32_t y)
{
    return gs_ir_binary(b->ir, op, x, y);
}

static bool is_there(const gs_ir *ir, const char *name)
{
    for (uint32_t i = 0; i < gs_ir_count(ir); i++)
        if (gs_ir_node(ir, i)->op == GS_OP_PARAM && strcmp(gs_ir_node(ir, i)->name, name) == 0)
            return true;
    return false;
}

/* A row of parameters of this norm alone. */
static uint32_t new_row(gs_builder *b, const gs_expr *e, const char *name, uint32_t width, float start, bool fixed,
                        bool counter)
{
    char full[2 * GS_TEXT_NAME + 32];
    uint32_t row;

    if (e->prefix[0] == 0)
        snprintf(full, sizeof(full), "norms.%u.module.%s", b->index, name);
    else
        gs_model__full_name(b, full, sizeof(full), e->prefix, name);
    if (is_there(b->ir, full))
        return gs_ir_error(b->ir, GS_EFORMAT, "a second %s() with parameters '%s': give it a name, %s(x, NAME)",
                           e->name, full, e->name);
    row = gs_ir_param(b->ir, full, 1, 1, width);
    gs_ir_param_shape(b->ir, row, 0, NULL, fixed);
    gs_ir_initial(b->ir, row, (gs_initial){GS_INITIAL_FILL, start});
    gs_ir_param_moves(b->ir, row, fixed, counter);
    return row;
}

static uint32_t scaled(gs_builder *b, uint32_t d, uint32_t variance)
{
    const uint32_t above_0 = bin(b, GS_OP_ADD, variance, gs_model__number(b, EPSILON));
    return bin(b, GS_OP_MUL, d, gs_ir_unary(b->ir, GS_OP_RSQRT, above_0, 0));
}

static uint32_t row_mean(gs_builder *b, uint32_t x)
{
    const uint32_t part = gs_model__number(b, 1.0f / (float)gs_ir_node(b->ir, x)->width);
    return bin(b, GS_OP_MUL, gs_ir_unary(b->ir, GS_OP_ROWSUM, x, 0), part);
}

/* With a name also times weight plus bias. */
static uint32_t affine(gs_builder *b, const gs_expr *e, uint32_t y)
{
    const uint32_t width = gs_ir_node(b->ir, y)->width;
    uint32_t weight;
    if (e->prefix[0] == 0)
        return y;
    weight = new_row(b, e, "weight", width, 1, false, false);
    return bin(b, GS_OP_ADD, bin(b, GS_OP_MUL, y, weight), new_row(b, e, "bias", width, 0, false, false));
}

/* (x - mean) / sqrt(variance + eps) over the row, as torch.nn.LayerNorm. */
static uint32_t build_layer_norm(gs_builder *b, const gs_expr *e, uint32_t x)
{
    const uint32_t d = bin(b, GS_OP_SUB, x, row_mean(b, x));
    return affine(b, e, scaled(b, d, row_mean(b, bin(b, GS_OP_MUL, d, d))));
}

/* (x - mean) / (sqrt(variance) + eps) over all elements of all vertices, as torch_geometric.nn.norm.LayerNorm with
 * mode="graph", in an evaluation too. */
static uint32_t build_layer_norm_all(gs_builder *b, const gs_expr *e, uint32_t x)
{
    gs_ir *ir = b->ir;
    const uint32_t mean = gs_ir_unary(ir, GS_OP_MEAN_ALL, row_mean(b, x), 0), d = bin(b, GS_OP_SUB, x, mean);
    const uint32_t variance = gs_ir_unary(ir, GS_OP_MEAN_ALL, row_mean(b, bin(b, GS_OP_MUL, d, d)), 0);
    const uint32_t above_0 = bin(b, GS_OP_MAX, variance, gs_model__number(b, LEAST_VARIANCE));
    const uint32_t deviation = gs_ir_unary(ir, GS_OP_SQRT, above_0, 0);

    return affine(b, e, bin(b, GS_OP_DIV, d, bin(b, GS_OP_ADD, deviation, gs_model__number(b, EPSILON))));
}

static uint32_t build_batch_norm(gs_builder *b, const gs_expr *e, uint32_t x)
{
    gs_ir *ir = b->ir;
    const uint32_t width = gs_ir_node(ir, x)->width;
    const uint32_t weight = new_row(b, e, "weight", width, 1, false, false);
    const uint32_t bias = new_row(b, e, "bias", width, 0, false, false);
    const uint32_t mean = new_row(b, e, "running_mean", width, 0, true, false);
    const uint32_t variance = new_row(b, e, "running_var", width, 1, true, false);
    uint32_t m = mean, v = variance;

    new_row(b, e, "num_batches_tracked", 1, 0, true, true);
    if (b->config->training) {
        m = gs_ir_unary(ir, GS_OP_MEAN_ALL, x, 0);
        v = gs_ir_unary(ir, GS_OP_VAR_ALL, x, 0);
        gs_ir_add_output(ir, GS_OUTPUT_FOLLOW, m, mean);
        gs_ir_add_output(ir, GS_OUTPUT_FOLLOW, v, variance);
    }
    return bin(b, GS_OP_ADD, bin(b, GS_OP_MUL, scaled(b, bin(b, GS_OP_SUB, x, m), v), weight), bias);
}

/* The normalised value of x. */
static uint32_t build_norm(gs_builder *b, const gs_expr *e, uint32_t x)
{
    if (x == GS_IR_NONE)
        return x;
    if (strcmp(e->name, "layer_norm") == 0)
        return build_layer_norm(b, e, x);
    if (gs_ir_node(b->ir, x)->type != GS_TYPE_D)
        return gs_ir_error(b->ir, GS_EFORMAT, "%s() needs a value of vertices; give it a name outside the reduction",
                           e->name);
    return e->name[0] == 'l' ? build_layer_norm_all(b, e, x) : build_batch_norm(b, e, x);
}

/* ---- products ---------------------------------------------------------- */

/* Products: by one matrix, or by the one of each edge's type; and rows of the edge's type.
 *
 * Matrices of types are a parameter [types, in, out], or made from one: W = c @ V, with c [types, bases] and V
 * [bases, in, out], says W[t] = sum over b of c[t, b] V[b] (Schlichtkrull et al., ESWC'18, equation 3).
 */

static const gs_text_param *text_param(const gs_builder *b, const char *name)
{
    for (uint32_t i = 0; i < b->l->params; i++)
        if (strcmp(name, b->l->param[i].name) == 0)
            return &b->l->param[i];
    return NULL;
}

static bool first_is(const gs_text_param *p, const char *name)
{
    return p->dims == 3 && p->dim[0].factors == 1 && strcmp(p->dim[0].factor[0].name, name) == 0;
}

/* x @ (c @ V)[e.type] where the graph has one type: x in as many columns as there are bases, and one product. */
static uint32_t only_type(gs_builder *b, uint32_t x, uint32_t bases)
{
    const gs_node n = *gs_ir_node(b->ir, bases);
    return gs_ir_binary(b->ir, GS_OP_MATMUL, gs_ir_binary(b->ir, GS_OP_MIX, x, n.in[0]), n.in[1]);
}

static uint32_t build_typed(gs_builder *b, const gs_expr *e, uint32_t a, uint32_t w)
{
    const bool here = gs_ir_node(b->ir, a)->type == GS_TYPE_D;

    if (gs_ir_node(b->ir, a)->type != GS_TYPE_S && !here)
        return gs_ir_error(b->ir, GS_EFORMAT, "left of @ %s[e.type] a value of one end must stand, as u.x or v.x",
                           e->name);
    if (here && gs_model__types(b) > 1)
        return gs_model__product_here(b, a, w);
    if (gs_model__types(b) > 1)
        return gs_ir_binary(b->ir, GS_OP_TYPED, a, w);
    if (gs_ir_node(b->ir, w)->op == GS_OP_BASES)
        return only_type(b, a, w);
    return gs_ir_binary(b->ir, GS_OP_MATMUL, a, w);
}

/* b[e.type]: the row 1 of one column times the matrix [1, n] of the edge's type. */
static uint32_t build_pick(gs_builder *b, const gs_expr *e)
{
    uint32_t w;

    gs_ir_at(b->ir, e->line, e->column);
    if (text_param(b, e->name) == NULL)
        return gs_ir_error(b->ir, GS_EFORMAT, "left of [%c.type] a parameter must stand, and '%s' is none", e->end,
                           e->name);
    w = gs_model__lookup(b, e->name);
    if (e->end != 'e')
        return gs_model__row_of_type(b, e, w);
    return gs_model__types(b) > 1 ? gs_ir_by_type(b->ir, w) : w;
}

/* A @ the parameter that `e` names. */
static uint32_t build_matmul(gs_builder *b, const gs_expr *e, uint32_t a)
{
    const gs_text_param *const p = text_param(b, e->name);
    uint32_t w;
    bool typed;

    gs_ir_at(b->ir, e->line, e->column);
    if (b->identity && a != GS_IR_NONE && gs_model__product_of_identity(b, e, a, &w))
        return w;
    w = gs_model__lookup(b, e->name);
    if (w == GS_IR_NONE || (p == NULL && gs_ir_node(b->ir, w)->op != GS_OP_BASES))
        return gs_ir_error(b->ir, GS_EFORMAT, "right of @ a parameter must stand, and '%s' is none", e->name);
    if (a == GS_IR_NONE)
        return a;
    if (p != NULL && first_is(p, "bases")) {
        if (e->end != 0 || e->transposed)
            return gs_ir_error(b->ir, GS_EFORMAT,
                               "'%s' has a matrix for each basis, not for each type: say W = c @ %s with "
                               "param c[types, bases], then W[e.type]",
                               e->name, e->name);
        return gs_ir_binary(b->ir, GS_OP_BASES, a, w);
    }
    if (p != NULL && (first_is(p, "vertex_types") || e->end == 'u' || e->end == 'v')) {
        if (!first_is(p, "vertex_types") || e->end == 0 || e->end == 'e')
            return gs_ir_error(b->ir, GS_EFORMAT,
                               e->end == 'u' || e->end == 'v'
                                   ? "'%s' has no matrix for each type of vertices: param %s[vertex_types, ...] does"
                                   : "'%s' has a matrix for each type of vertices: say %s[v.type] or [u.type]",
                               e->name, e->name);
        return gs_model__product_of_type(b, e, a, w);
    }
    typed = p == NULL || first_is(p, "types");
    if (typed != (e->end != 0))
        return gs_ir_error(b->ir, GS_EFORMAT,
                           e->end != 0 ? "'%s' has no matrix for each type: param %s[types, ...] does"
                                       : "'%s' has a matrix for each type: say %s[e.type]",
                           e->name, e->name);
    if (typed)
        return build_typed(b, e, a, w);
    return gs_ir_binary(b->ir, e->transposed ? GS_OP_MATMUL_T : GS_OP_MATMUL, a, w);
}

/* ---- reductions -------------------------------------------------------- */

/* Reductions over the in-edges, and over the vertex itself where the text says so. */

#define FAR 1e30f /* below all scores, and finite also when some are added */

/* Values at the vertex itself, so far: scratch of value_at_self(). */
typedef struct gs_at_self {
    gs_builder *b;
    uint32_t nodes, *map;
} gs_at_self;

/* Of the vertex's own edge: the mean of those of its other in-edges, as PyG's add_self_loops(fill_value="mean"). */
static uint32_t mean_features(gs_builder *b, uint32_t features)
{
    gs_ir *const ir = b->ir;
    const uint32_t one = gs_model__number(b, 1.0f);
    uint32_t count = gs_model__degree(b);

    if (b->config->self_loops) {
        features = gs_ir_binary(ir, GS_OP_MUL, features, gs_ir_binary(ir, GS_OP_SUB, one, gs_model__is_loop(b)));
        count = gs_ir_binary(ir, GS_OP_SUB, count, gs_model__loops(b));
    }
    return gs_ir_binary(ir, GS_OP_DIV, gs_ir_sum(ir, GS_OP_SUM_IN, features, false),
                        gs_ir_binary(ir, GS_OP_MAX, count, one));
}

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
    if (n.op == GS_OP_EDGE_FEATURES)
        return mean_features(x->b, value);
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

static uint32_t share_of(gs_builder *b, uint32_t score, uint32_t lse)
{
    return gs_ir_unary(b->ir, GS_OP_EXP, bin(b, GS_OP_SUB, score, lse), 0);
}

/* Is a value of edges made of this operator, or of vertices' values that are? */
static bool is_made_of(gs_builder *b, uint32_t value, gs_op op)
{
    bool found = false;
    GS_FREED bool *seen = NULL;

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
    return found;
}

/* The graph's loops have weights or features of their own, and the value depends on these: they cannot be taken out by
 * their number. */
static bool loops_differ(gs_builder *b, uint32_t value)
{
    const bool may = b->config->self_loops && value != GS_IR_NONE;
    return may && ((b->config->edge_weights && is_made_of(b, value, GS_OP_WEIGHT)) ||
                   (b->config->edge_features > 0 && is_made_of(b, value, GS_OP_EDGE_FEATURES)));
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

/* softmax over the in-edges is exp(s - m), m the log-sum-exp of their scores s. With the vertex itself its own score t
 * is among them as often as its L self loops, which are edges, leave it to be: 1 - L times. So all of these count once,
 * and at the vertex the share is exp(t - m). Loops that differ from the vertex's own edge have scores so low that they
 * do not count, and L is 0. */
static uint32_t build_softmax(gs_builder *b, uint32_t score, bool self)
{
    gs_ir *ir = b->ir;
    const bool differ = self && loops_differ(b, score);
    const uint32_t own = score;
    uint32_t lse, t, times;

    if (score == GS_IR_NONE)
        return score;
    if ((gs_ir_node(ir, score)->type & GS_TYPE_S) == 0)
        return build_even_softmax(b, self);
    if (differ)
        score = away_from_loops(b, score, -FAR);
    if (b->config->edge_coefficients)
        score = bin(b, GS_OP_ADD, score, gs_ir_unary(ir, GS_OP_LOG, gs_ir_weight(ir), 0));
    if (!self)
        return share_of(b, score, gs_ir_sum(ir, GS_OP_LSE_IN, score, false));
    t = value_at_self(b, own);
    times = bin(b, GS_OP_SUB, gs_model__number(b, 1.0f), differ ? gs_model__number(b, 0.0f) : gs_model__loops(b));
    lse = gs_ir_ternary(ir, GS_OP_LSE_IN, score, t, times);
    return remember_soft(b, share_of(b, score, lse), share_of(b, t, lse));
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

/* Of one type there is one level. */
static bool by_type(const gs_builder *b, const gs_expr *e)
{
    return e->over == GS_OVER_TYPE && gs_model__types(b) > 1;
}

static uint32_t build_sum(gs_builder *b, const gs_expr *e, uint32_t value)
{
    gs_ir *ir = b->ir;
    const bool mean = e->name[0] == 'm', self = e->over == GS_OVER_SELF;
    uint32_t sum, own;

    if (by_type(b, e)) {
        gs_node n = *gs_ir_node(ir, value);
        if (!mean || n.op != GS_OP_TYPED || (e->prefix[0] != '\0' && strcmp(e->prefix, "sum") != 0))
            return gs_model__reduce_of_types(b, e, value);
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
    if (by_type(b, e))
        return gs_model__reduce_of_types(b, e, value);
    const bool differ = e->over == GS_OVER_SELF && loops_differ(b, value);
    const uint32_t far = differ ? away_from_loops(b, value, min ? FAR : -FAR) : value;
    const uint32_t y = gs_ir_sum(ir, min ? GS_OP_MIN_IN : GS_OP_MAX_IN, far, false);
    uint32_t own, both;

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

/* Sum, mean, max, min, or softmax of a value; b->reduction is the one around it. */
static uint32_t reduce(gs_builder *b, const gs_expr *e, uint32_t value)
{
    const uint32_t outer = b->reduction;
    bool self = e->over == GS_OVER_SELF;

    if (strcmp(e->name, "softmax") == 0) {
        if (by_type(b, e))
            return gs_model__softmax_of_type(b, value);
        /* inside sum(..., self) it runs over the same */
        self |= outer != GS_TEXT_NONE && b->m->expr[outer].over == GS_OVER_SELF;
        return build_softmax(b, value, self);
    }
    if (strcmp(e->name, "max") == 0 || strcmp(e->name, "min") == 0)
        return build_extreme(b, e, value);
    return build_sum(b, e, value);
}

/* ---- expressions ------------------------------------------------------- */

#define LEAST_NORM 1e-12f /* eps of torch.nn.functional.normalize() */

/* lstm(u.x, W): `value` is what the in-neighbours give the gates, W multiplies the state. */
static uint32_t build_lstm(gs_builder *b, const gs_expr *e, uint32_t value)
{
    const uint32_t weight = gs_model__build_expr(b, e->b);
    gs_ir_at(b->ir, e->line, e->column);
    return gs_ir_binary(b->ir, GS_OP_LSTM_IN, value, weight);
}

static uint32_t build_reduction(gs_builder *b, uint32_t index)
{
    const gs_expr *e = &b->m->expr[index];
    const uint32_t outer = b->reduction;
    const bool softmax = strcmp(e->name, "softmax") == 0;
    uint32_t value;

    if (outer != GS_TEXT_NONE && !softmax)
        return gs_ir_error(b->ir, GS_EFORMAT, "%s() cannot stand inside %s(); give it a name on a line of its own",
                           e->name, b->m->expr[outer].name);
    b->reduction = index;
    value = gs_model__build_expr(b, e->a);
    b->reduction = outer;
    gs_ir_at(b->ir, e->line, e->column);
    if (value == GS_IR_NONE)
        return value;
    return strcmp(e->name, "lstm") == 0 ? build_lstm(b, e, value) : reduce(b, e, value);
}

/* ---- functions ---- */

/* exp(a) over its sum along the row, from the largest down, so that nothing overflows. */
static uint32_t build_row_softmax(gs_builder *b, uint32_t a)
{
    gs_ir *ir = b->ir;
    const uint32_t p =
        gs_ir_unary(ir, GS_OP_EXP, gs_ir_binary(ir, GS_OP_SUB, a, gs_ir_unary(ir, GS_OP_ROWMAX, a, 0)), 0);
    return gs_ir_binary(ir, GS_OP_DIV, p, gs_ir_unary(ir, GS_OP_ROWSUM, p, 0));
}

/* torch.nn.functional.normalize(): a / max(|a|, 1e-12), a row that is all 0 as it is. */
static uint32_t build_l2_normalize(gs_builder *b, uint32_t a)
{
    gs_ir *ir = b->ir;
    const uint32_t square = gs_ir_unary(ir, GS_OP_ROWSUM, gs_ir_binary(ir, GS_OP_MUL, a, a), 0);
    const uint32_t above_0 = gs_ir_binary(ir, GS_OP_MAX, square, gs_model__number(b, LEAST_NORM * LEAST_NORM));
    return gs_ir_binary(ir, GS_OP_MUL, a, gs_ir_unary(ir, GS_OP_RSQRT, above_0, 0));
}

/* The mean of each column over all vertices, the same for all of them. */
static uint32_t build_vertex_mean(gs_builder *b, uint32_t a)
{
    if (a != GS_IR_NONE && (b->reduction != GS_TEXT_NONE || gs_ir_node(b->ir, a)->type != GS_TYPE_D))
        return gs_ir_error(b->ir, GS_EFORMAT, "vertex_mean() needs a value of vertices, outside reductions");
    return gs_ir_unary(b->ir, GS_OP_MEAN_ALL, a, 0);
}

/* Functions that know heads, the network, or whole rows. false where it is none of them. */
static bool build_special(gs_builder *b, const gs_expr *e, uint32_t *out)
{
    const uint32_t heads = gs_model__heads(b);
    gs_ir *ir = b->ir;
    uint32_t a, other;

    if (strcmp(e->name, "dot") != 0 && strcmp(e->name, "head_mean") != 0 && strcmp(e->name, "act") != 0 &&
        strcmp(e->name, "concat") != 0 && strcmp(e->name, "row_softmax") != 0 &&
        strcmp(e->name, "l2_normalize") != 0 && strcmp(e->name, "vertex_mean") != 0 && !gs_model__is_norm(e->name))
        return false;
    if (e->has_number) {
        *out = gs_ir_error(ir, GS_EFORMAT, "%s() takes one argument", e->name);
        return true;
    }
    a = gs_model__build_expr(b, e->a);
    other = e->b != GS_TEXT_NONE ? gs_model__build_expr(b, e->b) : GS_IR_NONE;
    gs_ir_at(ir, e->line, e->column);
    if (strcmp(e->name, "dot") == 0)
        *out = gs_ir_resize(ir, GS_OP_FOLD, gs_model__binary(b, GS_OP_MUL, a, other), heads);
    else if (strcmp(e->name, "concat") == 0)
        *out = gs_ir_binary(ir, GS_OP_CONCAT, a, other);
    else if (strcmp(e->name, "row_softmax") == 0)
        *out = build_row_softmax(b, a);
    else if (strcmp(e->name, "l2_normalize") == 0)
        *out = build_l2_normalize(b, a);
    else if (strcmp(e->name, "vertex_mean") == 0)
        *out = build_vertex_mean(b, a);
    else if (strcmp(e->name, "act") == 0)
        *out = b->has_act ? gs_ir_unary(ir, b->act, a, b->act_alpha) : a;
    else if (gs_model__is_norm(e->name))
        *out = build_norm(b, e, a);
    else if (a == GS_IR_NONE || heads == 1)
        *out = a;
    else if (gs_model__is_of_edges(gs_ir_node(ir, a)) || gs_ir_node(ir, a)->width % heads != 0)
        *out = gs_ir_error(ir, GS_EFORMAT, "head_mean() needs a value of vertices, %u * so many wide", heads);
    else
        *out = gs_ir_binary(ir, GS_OP_MUL, gs_ir_resize(ir, GS_OP_ACROSS, a, gs_ir_node(ir, a)->width / heads),
                            gs_model__number(b, 1.0f / (float)heads));
    return true;
}

/* Does the value at the vertex itself come from a softmax that runs over the vertex too? */
static bool has_self(const gs_builder *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->softs; i++)
        if (b->soft[i].edge == value && b->soft[i].self != GS_IR_NONE)
            return true;
    return b->reduction != GS_TEXT_NONE && b->m->expr[b->reduction].over == GS_OVER_SELF;
}

/* Drops a value of both ends (or a number or parameter, inside a reduction) for each edge by itself. */
static uint32_t build_dropout(gs_builder *b, uint32_t a, float p)
{
    gs_ir *ir = b->ir;
    gs_graph_type type;

    if (!(p >= 0.0f && p < 1.0f))
        return gs_ir_error(ir, GS_EFORMAT, "dropout(): the probability must be at least 0 and below 1");
    if (a == GS_IR_NONE || !b->config->training || p == 0.0f)
        return a;
    type = gs_ir_node(ir, a)->type;
    if (type != GS_TYPE_E && !(type == GS_TYPE_P && b->reduction != GS_TEXT_NONE))
        return gs_ir_dropout(ir, a, p, b->next_site++);
    return gs_ir_binary(ir, GS_OP_MUL, a,
                        gs_ir_edge_mask(ir, gs_ir_node(ir, a)->width, p, b->next_site++, has_self(b, a)));
}

static uint32_t build_part(gs_builder *b, const gs_expr *e)
{
    const uint32_t a = gs_model__build_expr(b, e->a);
    const float k = e->number, parts = e->third;
    uint32_t width;

    gs_ir_at(b->ir, e->line, e->column);
    if (a == GS_IR_NONE)
        return a;
    width = gs_ir_node(b->ir, a)->width;
    if (!e->has_number || !(parts >= 1 && parts <= 1e6f && k >= 0 && k < parts) || k != (float)(uint32_t)k ||
        parts != (float)(uint32_t)parts)
        return gs_ir_error(b->ir, GS_EFORMAT, "part(a, K, N) is the K-th of N parts, from 0: whole numbers, K below N");
    if (width % (uint32_t)parts != 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "part(): %u columns are no multiple of %u", width, (uint32_t)parts);
    width /= (uint32_t)parts;
    return gs_ir_part(b->ir, a, (uint32_t)k * width, width);
}

static uint32_t unknown_function(gs_builder *b, const gs_expr *e)
{
    char names[256];
    return gs_ir_error(b->ir, GS_EFORMAT,
                       "unknown function '%s' (sum, mean, max, min, softmax, lstm, dot, concat, part, head_mean, "
                       "row_softmax, l2_normalize, vertex_mean, act, norm_act, layer_norm, layer_norm_all, batch_norm, "
                       "dropout%s)",
                       e->name, gs_model__function_names(names, sizeof(names)));
}

/* An operator of form EACH. Of several operands each number a head is repeated for its head. */
static uint32_t build_each(gs_builder *b, const gs_expr *e, gs_op op)
{
    const gs_op_facts *const f = gs_op_facts_of(op);
    uint32_t x, y, z;

    if (e->has_number && (f->is & GS_FACT_ALPHA) == 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "%s() takes one argument", e->name);
    if (!e->has_number && isnan(f->standard))
        return gs_ir_error(b->ir, GS_EFORMAT, "%s() takes a number as its second argument", e->name);
    x = gs_model__build_expr(b, e->a);
    y = e->b != GS_TEXT_NONE ? gs_model__build_expr(b, e->b) : GS_IR_NONE;
    z = e->c != GS_TEXT_NONE ? gs_model__build_expr(b, e->c) : GS_IR_NONE;
    gs_ir_at(b->ir, e->line, e->column);
    if (f->inputs == 1)
        return gs_ir_unary(b->ir, op, x, e->has_number ? e->number : f->standard);
    if (f->inputs == 2)
        return gs_model__binary(b, op, x, y);
    gs_model__fit_heads(b, &y, &z);
    gs_model__fit_heads(b, &x, &y);
    gs_model__fit_heads(b, &x, &z);
    return gs_ir_ternary(b->ir, op, x, y, z);
}

static uint32_t build_call(gs_builder *b, uint32_t index)
{
    const gs_expr *e = &b->m->expr[index];
    gs_op op;
    uint32_t a;

    if (gs_model__is_reduction(e->name) && e->b == GS_TEXT_NONE) /* max(a, b) and min(a, b) are none */
        return build_reduction(b, index);
    if (build_special(b, e, &a))
        return a;
    if (strcmp(e->name, "part") == 0)
        return build_part(b, e);
    if (gs_model__function(e->name, &op))
        return build_each(b, e, op);
    if (strcmp(e->name, "lstm") == 0)
        return build_reduction(b, index);
    if (strcmp(e->name, "dropout") != 0)
        return unknown_function(b, e);
    a = gs_model__build_expr(b, e->a);
    gs_ir_at(b->ir, e->line, e->column);
    return build_dropout(b, a, e->has_number ? e->number : b->config->dropout);
}

uint32_t gs_model__build_expr(gs_builder *b, uint32_t index)
{
    const gs_expr *e = &b->m->expr[index];
    uint32_t x, y;

    gs_ir_at(b->ir, e->line, e->column);
    switch (e->kind) {
    case GS_EXPR_NUMBER:
        return gs_model__number(b, e->number);
    case GS_EXPR_NAME:
        return gs_model__build_name(b, e);
    case GS_EXPR_CALL:
        return build_call(b, index);
    case GS_EXPR_MATMUL:
        return build_matmul(b, e, gs_model__build_expr(b, e->a));
    case GS_EXPR_PICK:
        return build_pick(b, e);
    case GS_EXPR_INPUT:
        return gs_model__input_of(b, e);
    case GS_EXPR_LAYER:
        return b->build_layer(b, e, gs_model__build_expr(b, e->a));
    case GS_EXPR_NEG:
        x = gs_model__build_expr(b, e->a);
        gs_ir_at(b->ir, e->line, e->column);
        return gs_ir_unary(b->ir, GS_OP_NEG, x, 0);
    case GS_EXPR_BINARY:
        x = gs_model__build_expr(b, e->a);
        y = gs_model__build_expr(b, e->b);
        gs_ir_at(b->ir, e->line, e->column);
        return gs_model__binary(b, e->op, x, y);
    }
    return GS_IR_NONE;
}
