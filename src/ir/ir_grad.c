/* ir_grad.c - reverse-mode derivative of a normalised graph, as IR again.
 *
 * The gradient of a sum over in-edges is a sum over out-edges: row u of
 * x goes to every v with an edge u -> v, so dx[u] = sum of g[v] over those (Seastar,
 * section 5: the transposed graph). Derivatives use a node's output instead of its
 * input where that suffices (relu, sigmoid, tanh, ...): one array less to keep.
 */
#include "ir/ir_internal.h"

#include <string.h>

#include "base/alloc.h"

typedef struct gs_tape {
    gs_ir *ir;
    uint32_t *grad; /* per node: what has flowed to it, GS_IR_NONE for nothing */
    bool *needs;    /* some parameter is below it */
} gs_tape;

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

static bool is_zero(const gs_ir *ir, uint32_t i)
{
    return ir->node[i].op == GS_OP_CONST && ir->node[i].alpha == 0.0f;
}

/* Adds contribution `c` to what flows to node `to`: a vertex value's gradient is
 * accumulated, a parameter's is an output. */
static void flow(gs_tape *t, uint32_t to, uint32_t c)
{
    gs_ir *ir = t->ir;

    if (c == GS_IR_NONE || !t->needs[to] || is_zero(ir, c))
        return;
    if (ir->node[to].width == 1 && ir->node[c].width > 1)
        c = un(t, GS_OP_ROWSUM, c);
    if (ir->node[to].op == GS_OP_PARAM) {
        gs_node sum = gs_ir__blank(GS_OP_COLSUM, c, GS_IR_NONE);
        gs_ir_add_output(ir, GS_OUTPUT_GRAD, gs_ir__make(ir, sum), to);
        return;
    }
    t->grad[to] = t->grad[to] == GS_IR_NONE ? c : bin(t, GS_OP_ADD, t->grad[to], c);
}

static void through_binary(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    const uint32_t a = n->in[0], b = n->in[1];
    uint32_t mask;

    switch (n->op) {
    case GS_OP_ADD:
        flow(t, a, g);
        flow(t, b, g);
        return;
    case GS_OP_SUB:
        flow(t, a, g);
        if (t->needs[b])
            flow(t, b, un(t, GS_OP_NEG, g));
        return;
    case GS_OP_MUL:
        if (t->needs[a])
            flow(t, a, mul(t, g, b));
        if (t->needs[b])
            flow(t, b, mul(t, g, a));
        return;
    case GS_OP_DIV: /* y = a / b: da = g / b, db = -(g / b) y */
        g = bin(t, GS_OP_DIV, g, b);
        flow(t, a, g);
        if (t->needs[b])
            flow(t, b, un(t, GS_OP_NEG, mul(t, g, i)));
        return;
    default: /* GS_OP_MAX: a tie goes to b */
        mask = un(t, GS_OP_STEP, bin(t, GS_OP_SUB, a, b));
        flow(t, a, mul(t, g, mask));
        flow(t, b, mul(t, g, bin(t, GS_OP_SUB, number(t, 1), mask)));
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
    case GS_OP_ELU: /* below 0: alpha exp(a) = y + alpha */
        mask = un(t, GS_OP_STEP, n->alpha > 0 ? y : a);
        return bin(t, GS_OP_ADD, mask,
                   mul(t, bin(t, GS_OP_SUB, one, mask), bin(t, GS_OP_ADD, y, number(t, n->alpha))));
    case GS_OP_STEP:
        return number(t, 0);
    default:
        return gs_ir_error(t->ir, GS_EUNSUPPORTED, "%s has no derivative", gs_op_name(n->op));
    }
}

static void through_elementwise(gs_tape *t, uint32_t i, const gs_node *n, uint32_t g)
{
    if (n->op == GS_OP_DROPOUT)
        flow(t, n->in[0], gs_ir_dropout(t->ir, g, n->alpha, n->site));
    else if (n->op == GS_OP_CAST)
        flow(t, n->in[0], g);
    else if (gs_op_inputs(n->op) == 2)
        through_binary(t, i, n, g);
    else
        flow(t, n->in[0], mul(t, g, slope(t, i, n)));
}

static void through_matmul(gs_tape *t, const gs_node *n, uint32_t g)
{
    const uint32_t a = n->in[0], w = n->in[1];
    const bool transposed = n->op == GS_OP_MATMUL_T; /* y = a w' : da = g w, dw = g' a */
    gs_ir *ir = t->ir;

    gs_ir_add_output(ir, GS_OUTPUT_GRAD, transposed ? bin(t, GS_OP_OUTER, g, a) : bin(t, GS_OP_OUTER, a, g), w);
    if (t->needs[a])
        flow(t, a, bin(t, transposed ? GS_OP_MATMUL : GS_OP_MATMUL_T, g, w));
}

static void through(gs_tape *t, uint32_t i)
{
    const gs_node n = t->ir->node[i];
    const uint32_t g = t->grad[i];
    char label[GS_IR_NAME_BYTES + 8];

    gs_ir_at(t->ir, n.line, n.column);
    if (n.name[0] != 0) {
        snprintf(label, sizeof(label), "d.%s", n.name);
        gs_ir_label(t->ir, g, label);
    }
    switch (gs_op_classof(n.op)) {
    case GS_CLASS_ELEMENTWISE:
        through_elementwise(t, i, &n, g);
        return;
    case GS_CLASS_MATMUL:
        through_matmul(t, &n, g);
        return;
    case GS_CLASS_EDGE:
        if (n.op == GS_OP_SUM_IN && t->ir->node[n.in[0]].op == GS_OP_SRC) {
            flow(t, t->ir->node[n.in[0]].in[0], gs_ir_sum(t->ir, GS_OP_SUM_OUT, g, n.self));
            return;
        }
        break;
    default:
        break;
    }
    gs_ir_error(t->ir, GS_EUNSUPPORTED, "%s has no derivative", gs_op_name(n.op));
}

static void find_needs(const gs_ir *ir, bool *needs)
{
    for (uint32_t i = 0; i < ir->nodes; i++) {
        needs[i] = ir->node[i].op == GS_OP_PARAM;
        for (uint32_t k = 0; k < gs_node_inputs(&ir->node[i]); k++)
            needs[i] |= needs[ir->node[i].in[k]];
    }
}

static uint32_t make_loss(gs_ir *ir, gs_op op, uint32_t logits)
{
    gs_node n = gs_ir__blank(op, logits, gs_ir_input(ir, "labels", 1, GS_I32));
    n.in[2] = gs_ir_input(ir, "split", 1, GS_U8);
    return gs_ir__make(ir, n);
}

gs_status gs_ir_add_loss(gs_ir *ir)
{
    const uint32_t root = gs_ir_root(ir);
    if (root == GS_IR_NONE)
        return gs_fail(GS_EINVAL, "%s: a loss needs logits, and the graph has no root", ir->source);
    gs_ir_drop_outputs(ir, GS_OUTPUT_LOSS);
    gs_ir_add_output(ir, GS_OUTPUT_LOSS, make_loss(ir, GS_OP_XENT, root), GS_IR_NONE);
    return ir->status;
}

static uint32_t loss_of(const gs_ir *ir)
{
    for (uint32_t i = 0; i < ir->outputs; i++)
        if (ir->output[i].kind == GS_OUTPUT_LOSS)
            return ir->output[i].node;
    return GS_IR_NONE;
}

gs_status gs_ir_differentiate(gs_ir *ir)
{
    gs_tape t = {.ir = ir};
    uint32_t loss, root, forward;
    gs_status st;

    gs_ir_drop_outputs(ir, GS_OUTPUT_GRAD);
    if (loss_of(ir) == GS_IR_NONE)
        return gs_fail(GS_EINVAL, "%s: there is no loss to differentiate", ir->source);
    if ((st = gs_ir_normalise(ir)) != GS_OK)
        return st;
    loss = loss_of(ir);
    root = ir->node[loss].in[0];
    forward = ir->nodes;
    t.grad = gs_malloc_array(forward, sizeof(*t.grad));
    t.needs = gs_calloc(forward, sizeof(*t.needs));
    if (t.grad == NULL || t.needs == NULL) {
        st = gs_fail(GS_ENOMEM, "%s: no memory for the model's graph", ir->source);
        goto done;
    }
    memset(t.grad, 0xff, forward * sizeof(*t.grad)); /* GS_IR_NONE */
    find_needs(ir, t.needs);
    flow(&t, root, make_loss(ir, GS_OP_XENT_GRAD, root));
    for (uint32_t i = root + 1; i-- > 0 && ir->status == GS_OK;)
        if (t.grad[i] != GS_IR_NONE)
            through(&t, i);
    ir->differentiated = true;
    st = ir->status;
done:
    gs_free(t.grad);
    gs_free(t.needs);
    return st;
}
