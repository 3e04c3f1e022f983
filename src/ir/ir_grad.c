/* ir_grad.c - reverse-mode derivative of a normalised graph, as IR again.
 *
 * The gradient of a sum over in-edges is a sum over out-edges: row u of
 * x goes to every v with an edge u -> v, so dx[u] = sum of g[v] over those (Seastar,
 * section 5: the transposed graph). The gradient of a value of edges is one too; where it
 * reaches SRC(x) it is summed over out-edges, where it reaches a value of the destination over in-edges.
 * Attention's softmax comes again from its log-sum-exp, a number a vertex and head. Derivatives use a node's output
 * instead of its input where that suffices (relu, sigmoid, tanh, ...): one array less to keep.
 */
#include <string.h>

#include "ir/ir_internal.h"

/* ---- the tape ---------------------------------------------------------- */

/* What has flowed to each node of a graph that is being differentiated.
 *
 * The gradient of a node is the sum of the contributions of all nodes that read it. A contribution may be narrower than
 * its node, where all columns have the same one. */
typedef struct gs_tape {
    gs_ir *ir;
    uint32_t *grad; /* per node: what has flowed to it, GS_IR_NONE for nothing */
    uint32_t *edge; /* per vertex value: what has flowed to it on in-edges, not yet summed */
    bool *needs;    /* something that gradients are wanted of is below it, and not only through flat operators */
    uint32_t seed;  /* the root's gradient, which all others are made of */
} gs_tape;

/* -- open and free ------------------------------------------------------------ */

static void find_needs(const gs_ir *ir, bool *needs, const char *input)
{
    for (uint32_t i = 0; i < ir->nodes; i++) {
        const gs_node *n = &ir->node[i];
        needs[i] = (n->op == GS_OP_PARAM && !n->fixed) || gs_node_table(n) != NULL ||
                   (n->op == GS_OP_INPUT && input != NULL && strcmp(n->name, input) == 0);
        for (uint32_t k = 0; k < gs_node_inputs(n) && !gs_op_is(n->op, GS_FACT_FLAT); k++)
            needs[i] |= needs[n->in[k]];
    }
}

static gs_status open_tape(gs_tape *t, gs_ir *ir, const char *input)
{
    const uint32_t forward = ir->nodes;

    *t = (gs_tape){.ir = ir};
    t->grad = gs_malloc_array(forward, sizeof(*t->grad));
    t->edge = gs_malloc_array(forward, sizeof(*t->edge));
    t->needs = gs_calloc(forward, sizeof(*t->needs));
    GS_NEED(t->grad != NULL && t->edge != NULL && t->needs != NULL, "%s: no memory for the model's graph", ir->source);
    memset(t->grad, 0xff, forward * sizeof(*t->grad)); /* GS_IR_NONE */
    memset(t->edge, 0xff, forward * sizeof(*t->edge));
    find_needs(ir, t->needs, input);
    return GS_OK;
}

/* A tape of the graph's nodes as they are now, to which nothing has flowed. Gradients are wanted of the parameters that
 * are learned, of the tables, and of the input of the name `input`, if it is not NULL. free_tape() frees it, also
 * after GS_ENOMEM. */
static void free_tape(gs_tape *t)
{
    gs_free(t->grad);
    gs_free(t->edge);
    gs_free(t->needs);
}

/* -- flows ---------------------------------------------------------------------- */

static bool is_zero(const gs_ir *ir, uint32_t i)
{
    return ir->node[i].op == GS_OP_CONST && ir->node[i].alpha == 0.0f;
}

static void accumulate(const gs_tape *t, uint32_t *slot, uint32_t c)
{
    *slot = *slot == GS_IR_NONE ? c : gs_ir_binary(t->ir, GS_OP_ADD, *slot, c);
}

static void param_gradient(const gs_tape *t, uint32_t param, uint32_t c)
{
    if (!t->ir->node[param].fixed)
        gs_ir_add_output(t->ir, GS_OUTPUT_GRAD, gs_ir__make(t->ir, gs_ir__blank(GS_OP_COLSUM, c, GS_IR_NONE)), param);
}

/* A gradient narrower than its value, the same in every column, gets its width. */
static uint32_t fit(const gs_tape *t, uint32_t to, uint32_t c)
{
    const uint32_t want = t->ir->node[to].width, has = t->ir->node[c].width;
    if (want == 1 && has > 1)
        return gs_ir_resize(t->ir, GS_OP_FOLD, c, 1); /* which takes a product's factors */
    return want > has ? gs_ir_resize(t->ir, GS_OP_EXPAND, c, want) : c;
}

/* Adds contribution `c` to what flows to node `to`: a vertex value's gradient is accumulated, a parameter's is an
 * output. */
static void flow(gs_tape *t, uint32_t to, uint32_t c)
{
    if (c == GS_IR_NONE || !t->needs[to] || is_zero(t->ir, c))
        return;
    c = fit(t, to, c);
    if (t->ir->node[to].op == GS_OP_PARAM)
        param_gradient(t, to, c);
    else
        accumulate(t, &t->grad[to], c);
}

/* The same for a contribution `c` on every in-edge. */
static void flow_on_edges(gs_tape *t, uint32_t to, uint32_t c)
{
    if (c == GS_IR_NONE || !t->needs[to] || is_zero(t->ir, c))
        return;
    c = fit(t, to, c);
    if (t->ir->node[to].op == GS_OP_PARAM)
        param_gradient(t, to, gs_ir__sum(t->ir, GS_OP_SUM_IN, c, false));
    else if (t->ir->node[to].type == GS_TYPE_D)
        accumulate(t, &t->edge[to], c);
    else
        accumulate(t, &t->grad[to], c);
}

/* From a node to one of its inputs: from a value of edges it flows on edges. */
static void pass(gs_tape *t, uint32_t from, uint32_t to, uint32_t c)
{
    if ((t->ir->node[from].type & GS_TYPE_S) != 0)
        flow_on_edges(t, to, c);
    else
        flow(t, to, c);
}

/* -- what has come of them ------------------------------------------------------ */

/* All that has flowed to node i, on in-edges too; GS_IR_NONE for nothing. */
static uint32_t total(const gs_tape *t, uint32_t i)
{
    uint32_t g = t->grad[i], y;

    if (t->edge[i] == GS_IR_NONE)
        return g;
    y = gs_ir__sum_of_scores(t->ir, t->edge[i], t->seed);
    accumulate(t, &g, y != GS_IR_NONE ? y : gs_ir__sum(t->ir, GS_OP_SUM_IN, t->edge[i], false));
    return g;
}

/* A gradient with rows: one that is the same for all vertices (of a statistic) gets some. */
static uint32_t rows_of(const gs_tape *t, uint32_t g)
{
    return t->ir->node[g].type == GS_TYPE_P ? gs_ir_binary(t->ir, GS_OP_ADD, g, gs_ir__zeros(t->ir)) : g;
}

/* The same as rows of the node's width, once nothing more flows there; GS_IR_NONE also after an error. */
static uint32_t flowed_to(const gs_tape *t, uint32_t i)
{
    const uint32_t g = total(t, i);

    if (g == GS_IR_NONE || t->ir->status != GS_OK)
        return GS_IR_NONE;
    return fit(t, i, rows_of(t, g));
}

/* ---- gradients --------------------------------------------------------- */

static uint32_t bin(const gs_tape *t, gs_op op, uint32_t a, uint32_t b)
{
    return gs_ir_binary(t->ir, op, a, b);
}

static uint32_t mul(const gs_tape *t, uint32_t a, uint32_t b)
{
    return gs_ir_binary(t->ir, GS_OP_MUL, a, b);
}

static uint32_t un(const gs_tape *t, gs_op op, uint32_t a)
{
    return gs_ir_unary(t->ir, op, a, 0.0f);
}

static uint32_t number(const gs_tape *t, float v)
{
    return gs_ir_const(t->ir, v, 1);
}

static void through_binary(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t a = n->in[0], b = n->in[1];
    uint32_t mask;

    switch (n->op) {
    case GS_OP_ADD:
        pass(t, i, a, g);
        pass(t, i, b, g);
        return;
    case GS_OP_SUB:
        pass(t, i, a, g);
        if (t->needs[b])
            pass(t, i, b, un(t, GS_OP_NEG, g));
        return;
    case GS_OP_MUL:
        if (t->needs[a])
            pass(t, i, a, mul(t, g, b));
        if (t->needs[b])
            pass(t, i, b, mul(t, g, a));
        return;
    case GS_OP_DIV: /* y = a / b: da = g / b, db = -(g / b) y */
        g = bin(t, GS_OP_DIV, g, b);
        pass(t, i, a, g);
        if (t->needs[b])
            pass(t, i, b, un(t, GS_OP_NEG, mul(t, g, i)));
        return;
    default: /* GS_OP_MAX, GS_OP_MIN: a tie goes to b */
        mask = un(t, GS_OP_STEP, n->op == GS_OP_MIN ? bin(t, GS_OP_SUB, b, a) : bin(t, GS_OP_SUB, a, b));
        pass(t, i, a, mul(t, g, mask));
        pass(t, i, b, mul(t, g, bin(t, GS_OP_SUB, number(t, 1), mask)));
        return;
    }
}

/* Derivative of y = f(a), as a factor of the gradient. */
static uint32_t slope(gs_tape *t, uint32_t y, const gs_node *n)
{
    const uint32_t a = n->in[0], one = number(t, 1);
    uint32_t mask;

    switch (n->op) {
    case GS_OP_NEG:
        return number(t, -1);
    case GS_OP_EXP:
        return y;
    case GS_OP_LOG:
        return bin(t, GS_OP_DIV, one, a);
    case GS_OP_SQRT:
        return bin(t, GS_OP_DIV, number(t, 0.5f), y);
    case GS_OP_RSQRT: /* -1/2 a^(-3/2) */
        return mul(t, mul(t, mul(t, y, y), y), number(t, -0.5f));
    case GS_OP_SIGMOID:
        return mul(t, y, bin(t, GS_OP_SUB, one, y));
    case GS_OP_TANH:
        return bin(t, GS_OP_SUB, one, mul(t, y, y));
    case GS_OP_RELU:
        return un(t, GS_OP_STEP, y);
    case GS_OP_LEAKY_RELU: /* a positive slope keeps the sign, so the output tells the side */
        mask = un(t, GS_OP_STEP, n->alpha > 0 ? y : a);
        return bin(t, GS_OP_ADD, mul(t, mask, number(t, 1.0f - n->alpha)), number(t, n->alpha));
    case GS_OP_GELU:
        return un(t, GS_OP_GELU_SLOPE, a);
    case GS_OP_SILU: /* a s: s (1 + a (1 - s)), s = sigmoid(a) */
        mask = un(t, GS_OP_SIGMOID, a);
        return mul(t, mask, bin(t, GS_OP_ADD, one, mul(t, a, bin(t, GS_OP_SUB, one, mask))));
    case GS_OP_ABS: /* 1, -1, and 0 at 0 */
        return bin(t, GS_OP_SUB, un(t, GS_OP_STEP, a), un(t, GS_OP_STEP, un(t, GS_OP_NEG, a)));
    case GS_OP_POW: /* also where a is 0: 0 for alpha 0, 1 for alpha 1 */
        if (n->alpha == 0.0f || n->alpha == 1.0f)
            return number(t, n->alpha);
        return mul(t, number(t, n->alpha), gs_ir_unary(t->ir, GS_OP_POW, a, n->alpha - 1.0f));
    case GS_OP_ELU: /* below 0: alpha exp(a) = y + alpha */
        mask = un(t, GS_OP_STEP, n->alpha > 0 ? y : a);
        return bin(t, GS_OP_ADD, mask,
                   mul(t, bin(t, GS_OP_SUB, one, mask), bin(t, GS_OP_ADD, y, number(t, n->alpha))));
    default:
        return gs_ir_error(t->ir, GS_EUNSUPPORTED, "%s has no derivative", gs_op_name(n->op));
    }
}

/* Columns of 0 before and behind. */
static uint32_t padded(const gs_tape *t, uint32_t g, uint32_t before, uint32_t behind)
{
    const uint32_t zeros = gs_ir__zeros(t->ir);
    if (before > 0)
        g = bin(t, GS_OP_CONCAT, gs_ir_resize(t->ir, GS_OP_EXPAND, zeros, before), g);
    if (behind > 0)
        g = bin(t, GS_OP_CONCAT, g, gs_ir_resize(t->ir, GS_OP_EXPAND, zeros, behind));
    return g;
}

static void through_elementwise(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    static const gs_op transpose[GS_OP_COUNT] = {[GS_OP_FOLD] = GS_OP_EXPAND, [GS_OP_EXPAND] = GS_OP_FOLD,
                                                 [GS_OP_ACROSS] = GS_OP_TILE, [GS_OP_TILE] = GS_OP_ACROSS};
    const uint32_t a = n->in[0], width = t->ir->node[a].width;

    switch (n->op) {
    case GS_OP_DROPOUT:
        pass(t, i, a, gs_ir_dropout(t->ir, g, n->alpha, n->site));
        return;
    case GS_OP_CAST:
    case GS_OP_ROWSUM: /* fit() widens it */
        pass(t, i, a, g);
        return;
    case GS_OP_CONCAT:
        pass(t, i, a, gs_ir_part(t->ir, rows_of(t, g), 0, width));
        pass(t, i, n->in[1], gs_ir_part(t->ir, rows_of(t, g), width, n->width - width));
        return;
    case GS_OP_PART:
        pass(t, i, a, padded(t, rows_of(t, g), n->site, width - n->site - n->width));
        return;
    case GS_OP_FOLD:
    case GS_OP_EXPAND:
    case GS_OP_ACROSS:
    case GS_OP_TILE:
        pass(t, i, a, gs_ir_resize(t->ir, transpose[n->op], g, width));
        return;
    default:
        break;
    }
    if (n->op == GS_OP_WHERE) { /* a choice and no product: what is not taken may be infinite */
        pass(t, i, n->in[1], gs_ir_ternary(t->ir, GS_OP_WHERE, a, g, number(t, 0)));
        pass(t, i, n->in[2], gs_ir_ternary(t->ir, GS_OP_WHERE, a, number(t, 0), g));
    } else if (gs_op_inputs(n->op) == 2)
        through_binary(t, i, n, g);
    else
        pass(t, i, a, mul(t, g, slope(t, i, n)));
}

/* Products y = a W, W some arrangement of parameter w's numbers: da = g W', dw = a' g as they are arranged, or the
 * transpose of that. */
static const struct {
    gs_op back, outer; /* 0: it is no such product */
    bool transposed;
} product[GS_OP_COUNT] = {
    [GS_OP_MATMUL] = {GS_OP_MATMUL_T, GS_OP_OUTER, false}, [GS_OP_MATMUL_T] = {GS_OP_MATMUL, GS_OP_OUTER, true},
    [GS_OP_MIX] = {GS_OP_MIX_T, GS_OP_MIX_OUTER, false},   [GS_OP_MIX_T] = {GS_OP_MIX, GS_OP_MIX_OUTER, true},
    [GS_OP_FAN] = {GS_OP_FAN_T, GS_OP_FAN_OUTER, false},
};

static void through_product(gs_tape *t, const gs_node *n, uint32_t g)
{
    const uint32_t a = n->in[0], w = n->in[1];
    const bool transposed = product[n->op].transposed;
    if (!t->ir->node[w].fixed)
        gs_ir_add_output(t->ir, GS_OUTPUT_GRAD, bin(t, product[n->op].outer, transposed ? g : a, transposed ? a : g),
                         w);
    if (t->needs[a])
        flow(t, a, bin(t, product[n->op].back, g, w));
}

/* The same edge by edge, y = x W[type]: the gradient of W has an edge pass of its own. */
static void through_by_type(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t x = n->in[0], w = n->in[1];
    gs_node outer = gs_ir__blank(GS_OP_TYPE_OUTER, x, rows_of(t, g));

    outer.in[2] = w;
    if (!t->ir->node[w].fixed)
        gs_ir_add_output(t->ir, GS_OUTPUT_GRAD, un(t, GS_OP_TYPE_WEIGHT, gs_ir__make(t->ir, outer)), w);
    if (t->needs[x])
        pass(t, i, x, bin(t, GS_OP_BY_TYPE_T, rows_of(t, g), w));
}

/* The same by one matrix m, y = x m or x m'. */
static void through_dense(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t x = n->in[0], w = n->in[1];
    const bool back = n->op == GS_OP_DENSE_T;
    gs_node outer = gs_ir__blank(GS_OP_DENSE_OUTER, back ? rows_of(t, g) : x, back ? x : rows_of(t, g));
    gs_node dx = gs_ir__blank(back ? GS_OP_DENSE : GS_OP_DENSE_T, rows_of(t, g), w);

    outer.in[2] = w;
    outer.site = dx.site = n->site;
    dx.width = t->ir->node[x].width;
    if (!t->ir->node[w].fixed)
        gs_ir_add_output(t->ir, GS_OUTPUT_GRAD, un(t, GS_OP_TYPE_WEIGHT, gs_ir__make(t->ir, outer)), w);
    if (t->needs[x])
        pass(t, i, x, gs_ir__make(t->ir, dx));
}

static void through_matmul(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    if (n->op == GS_OP_BY_TYPE)
        through_by_type(t, i, n, g);
    else if (gs_op_is_dense(n->op))
        through_dense(t, i, n, g);
    else if (product[n->op].outer != 0)
        through_product(t, n, g);
    else
        gs_ir_error(t->ir, GS_EUNSUPPORTED, "%s has no derivative", gs_op_name(n->op));
}

/* exp(s - m): what a score weighs in the softmax that m is of. */
static uint32_t weight(const gs_tape *t, uint32_t s, uint32_t m)
{
    return un(t, GS_OP_EXP, bin(t, GS_OP_SUB, s, m));
}

static uint32_t spread(const gs_tape *t, uint32_t p, uint32_t width)
{
    return t->ir->node[p].width == 1 ? p : gs_ir_resize(t->ir, GS_OP_EXPAND, p, width);
}

/* y = sum(p x) with p = exp(s - m): dx = p g, ds = p (g x), and dm = -(g y), the products summed within each
 * head. With what comes of dm, ds = p (g x - g y) (FlashAttention, section 3.1, with one row of scores a vertex). The
 * vertex's own row is as one more edge's. */
static void through_attend(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t m = n->in[0], x = n->in[1], own = n->in[2], heads = t->ir->node[m].width;
    const uint32_t s = t->ir->node[m].in[0], own_s = t->ir->node[m].in[1], p = weight(t, s, m);

    flow_on_edges(t, x, mul(t, spread(t, p, n->width), g));
    if (t->needs[s])
        flow_on_edges(t, s, mul(t, p, gs_ir_resize(t->ir, GS_OP_FOLD, mul(t, g, x), heads)));
    if (own != GS_IR_NONE) {
        const uint32_t q = weight(t, own_s, m);
        flow(t, own, mul(t, spread(t, q, n->width), g));
        flow(t, own_s, mul(t, q, gs_ir_resize(t->ir, GS_OP_FOLD, mul(t, g, own), heads)));
    }
    if (t->needs[m])
        flow(t, m, un(t, GS_OP_NEG, gs_ir_resize(t->ir, GS_OP_FOLD, mul(t, g, i), heads)));
}

static void through_lse(gs_tape *t, uint32_t m, const gs_node *n, uint32_t g)
{
    flow_on_edges(t, n->in[0], mul(t, weight(t, n->in[0], m), g));
    if (n->in[1] != GS_IR_NONE)
        flow(t, n->in[1], mul(t, weight(t, n->in[1], m), mul(t, n->in[2], g)));
}

/* The gradient goes to the edges that attain the extreme, in equal parts (as torch's amax). */
static void through_extreme(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t attains = bin(t, GS_OP_EQ, n->in[0], i);
    const uint32_t ties = gs_ir__sum(t->ir, GS_OP_SUM_IN, attains, false);
    const uint32_t share = bin(t, GS_OP_DIV, g, bin(t, GS_OP_MAX, ties, number(t, 1)));
    flow_on_edges(t, n->in[0], mul(t, attains, share));
}

/* The states of a sequence are computed again where they are needed; one pass over the in-edges gives the
 * gradients of both its inputs. It ends at the source end, so its rows are there only for later stages. */
static void through_lstm(gs_tape *t, const gs_node *n, uint32_t g)
{
    gs_node back = gs_ir__blank(GS_OP_LSTM_BACK, n->in[0], n->in[1]);
    uint32_t y;

    back.in[2] = g;
    y = gs_ir__make(t->ir, back);
    if (y == GS_IR_NONE)
        return;
    flow(t, t->ir->node[n->in[0]].in[0], y);
    if (!t->ir->node[n->in[1]].fixed)
        gs_ir_add_output(t->ir, GS_OUTPUT_GRAD, gs_ir_unary(t->ir, GS_OP_LSTM_WEIGHT, y, 0), n->in[1]);
}

static void through_edges(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t a = n->in[0];
    const bool rows = t->ir->node[a].op == GS_OP_SRC;

    switch (n->op) {
    case GS_OP_SRC:
        flow(t, a, gs_ir__sum(t->ir, GS_OP_SUM_OUT, g, false));
        return;
    case GS_OP_SUM_IN:
        if (rows)
            flow(t, t->ir->node[a].in[0], gs_ir_sum(t->ir, GS_OP_SUM_OUT, g, n->self));
        else
            flow_on_edges(t, a, g);
        return;
    case GS_OP_TYPE_SRC:
        flow(t, a, gs_ir_resize(t->ir, GS_OP_SPLIT_OUT, rows_of(t, g), t->ir->node[a].width));
        return;
    case GS_OP_SPLIT_IN:
        flow(t, t->ir->node[a].in[0], gs_ir_resize(t->ir, GS_OP_PICK_OUT, g, t->ir->node[a].width));
        return;
    case GS_OP_ATTEND:
        through_attend(t, i, n, g);
        return;
    case GS_OP_LSE_IN:
        through_lse(t, i, n, g);
        return;
    case GS_OP_LSTM_IN:
        through_lstm(t, n, g);
        return;
    case GS_OP_MAX_IN:
    case GS_OP_MIN_IN:
        through_extreme(t, i, n, g);
        return;
    default:
        gs_ir_error(t->ir, GS_EUNSUPPORTED, "%s has no derivative", gs_op_name(n->op));
    }
}

/* The gradient of a statistic is the sum over the vertices of one row each. m = mean(x): dx = mean of
 * those rows; v = variance(x): dx = 2 (x - mean(x)) times it. */
static void through_statistic(gs_tape *t, const gs_node *n, uint32_t g)
{
    const uint32_t x = n->in[0], mean = un(t, GS_OP_MEAN_ALL, g);
    if (n->op == GS_OP_MEAN_ALL)
        flow(t, x, mean);
    else
        flow(t, x, mul(t, mul(t, bin(t, GS_OP_SUB, x, un(t, GS_OP_MEAN_ALL, x)), number(t, 2)), mean));
}

static void through(gs_tape *t, uint32_t i)
{
    const gs_node n = t->ir->node[i];
    uint32_t g;
    char label[GS_IR_NAME_BYTES + 8];

    gs_ir_at(t->ir, n.line, n.column);
    g = total(t, i);
    if (n.type == GS_TYPE_D && t->ir->node[g].type == GS_TYPE_P) /* instructions work on rows */
        g = rows_of(t, g);
    if (n.name[0] != 0) {
        snprintf(label, sizeof(label), "d.%s", n.name);
        gs_ir_label(t->ir, g, label);
    }
    switch (gs_op_classof(n.op)) {
    case GS_CLASS_ELEMENTWISE:
        through_elementwise(t, i, &n, g);
        return;
    case GS_CLASS_MATMUL:
        through_matmul(t, i, &n, g);
        return;
    case GS_CLASS_STATISTIC:
        through_statistic(t, &n, g);
        return;
    case GS_CLASS_EDGE:
        through_edges(t, i, &n, g);
        return;
    default:
        gs_ir_error(t->ir, GS_EUNSUPPORTED, "%s has no derivative", gs_op_name(n.op));
    }
}

static uint32_t make_loss(gs_ir *ir, gs_op op, uint32_t logits, uint32_t labels)
{
    gs_node n = gs_ir__blank(op, logits, labels);
    n.in[2] = gs_ir_input(ir, "split", 1, GS_U8);
    return gs_ir__make(ir, n);
}

gs_status gs_ir_add_loss(gs_ir *ir, gs_loss loss, gs_dtype labels)
{
    const uint32_t root = gs_ir_root(ir);
    uint32_t width;
    if (root == GS_IR_NONE)
        return gs_fail(GS_EINVAL, "%s: a loss needs logits, and the graph has no root", ir->source);
    gs_ir_drop_outputs(ir, GS_OUTPUT_LOSS);
    width = labels == GS_I32 ? 1 : ir->node[root].width; /* one class a vertex, whatever is to be learned of it */
    gs_ir_add_output(ir, GS_OUTPUT_LOSS,
                     make_loss(ir, gs_op_of_loss(loss, false), root, gs_ir_input(ir, "labels", width, labels)),
                     GS_IR_NONE);
    return ir->status;
}

static uint32_t loss_of(const gs_ir *ir)
{
    for (uint32_t i = 0; i < ir->outputs; i++)
        if (ir->output[i].kind == GS_OUTPUT_LOSS)
            return ir->output[i].node;
    return GS_IR_NONE;
}

/* Everything that flows to the tape's nodes, from the root on, whose gradient is `seed`. */
static void flow_back(gs_tape *t, uint32_t root, uint32_t seed)
{
    t->seed = seed;
    flow(t, root, seed);
    for (uint32_t i = root + 1; i-- > 0 && t->ir->status == GS_OK;)
        if (t->ir->node[i].op != GS_OP_INPUT && (t->grad[i] != GS_IR_NONE || t->edge[i] != GS_IR_NONE))
            through(t, i);
}

/* The rows i as a value that the pass computes, with an array of its own: of what it is given a copy. */
static uint32_t computed(gs_ir *ir, uint32_t i)
{
    return ir->node[i].op == GS_OP_INPUT ? gs_ir__plus_zero(ir, i) : i;
}

/* Adds the gradients of tables, which the run reads when the pass is over. */
static void add_tables(const gs_tape *t, uint32_t forward)
{
    for (uint32_t i = 0; i < forward && t->ir->status == GS_OK; i++) {
        const uint32_t g = gs_node_table(&t->ir->node[i]) == NULL ? GS_IR_NONE : flowed_to(t, i);
        if (g != GS_IR_NONE)
            gs_ir_add_output(t->ir, GS_OUTPUT_GRAD_ROWS, computed(t->ir, g), i);
    }
}

gs_status gs_ir_differentiate(gs_ir *ir)
{
    GS_ENDS(free_tape) gs_tape t = {.ir = ir};
    uint32_t loss, root;

    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD);
    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD_ROWS);
    if (loss_of(ir) == GS_IR_NONE)
        return gs_fail(GS_EINVAL, "%s: there is no loss to differentiate", ir->source);
    GS_TRY(gs_ir_normalise(ir));
    loss = loss_of(ir);
    root = ir->node[loss].in[0];
    GS_TRY(open_tape(&t, ir, NULL));
    const uint32_t forward = ir->nodes;
    const gs_op gradient = gs_op_of_loss(gs_op_facts_of(ir->node[loss].op)->loss, true);
    flow_back(&t, root, make_loss(ir, gradient, root, ir->node[loss].in[1]));
    add_tables(&t, forward);
    ir->differentiated = true;
    return ir->status;
}

static uint32_t input_named(const gs_ir *ir, const char *name)
{
    for (uint32_t i = 0; i < ir->nodes; i++)
        if (ir->node[i].op == GS_OP_INPUT && strcmp(ir->node[i].name, name) == 0)
            return i;
    return GS_IR_NONE;
}

gs_status gs_ir_differentiate_from(gs_ir *ir, bool of_features)
{
    GS_ENDS(free_tape) gs_tape t = {.ir = ir};
    uint32_t root;

    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD);
    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD_ROWS);
    gs_ir_drop_outputs(ir, GS_OUTPUT_STORE);
    GS_TRY(gs_ir_normalise(ir));
    root = gs_ir_root(ir);
    GS_TRY(open_tape(&t, ir, of_features ? "features" : NULL));
    const uint32_t features = of_features ? input_named(ir, "features") : GS_IR_NONE, forward = ir->nodes;
    flow_back(&t, root, gs_ir_input(ir, GS_IR_UPSTREAM, ir->node[root].width, GS_F32));
    const uint32_t g = features == GS_IR_NONE ? GS_IR_NONE : flowed_to(&t, features);
    if (g != GS_IR_NONE)
        gs_ir_add_output(ir, GS_OUTPUT_STORE, computed(ir, g), GS_IR_NONE);
    add_tables(&t, forward);
    ir->differentiated = true;
    return ir->status;
}
