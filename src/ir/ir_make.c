/* ir_make.c - new nodes: types inferred, folded, and made once. */
#include "ir/ir_internal.h"

#include <assert.h>
#include <string.h>

/* a + b and b + a are one node. */
static void order_inputs(gs_node *n)
{
    if (gs_op_is(n->op, GS_FACT_COMMUTES) && n->in[0] > n->in[1]) {
        const uint32_t a = n->in[0];
        n->in[0] = n->in[1];
        n->in[1] = a;
    }
}

/* A row that is the same for all vertices, left of a matrix, as one of each of them: 0 is added, as no degree is below
 * it. What is normalised over one number is found to be such a row only here. */
static uint32_t left_of_product(gs_ir *ir, const gs_node *n)
{
    const gs_node *const a = &ir->node[n->in[0]];
    uint32_t zero;

    if ((n->op != GS_OP_MATMUL && n->op != GS_OP_MATMUL_T) || a->type != GS_TYPE_P || a->dims == 2 ||
        (a->op == GS_OP_CONST && a->alpha == 0.0f))
        return n->in[0];
    zero = gs_ir_unary(ir, GS_OP_NEG, gs_ir_input(ir, "in_degree", 1, GS_F32), 0);
    return gs_ir_binary(ir, GS_OP_ADD, n->in[0], gs_ir_unary(ir, GS_OP_STEP, zero, 0));
}

uint32_t gs_ir__make(gs_ir *ir, gs_node n)
{
    uint32_t found;

    if (ir->status != GS_OK)
        return GS_IR_NONE;
    if (n.in[0] != GS_IR_NONE && gs_op_classof(n.op) == GS_CLASS_MATMUL)
        n.in[0] = left_of_product(ir, &n);
    n.line = ir->line;
    n.column = ir->column;
    if (!gs_ir__infer(ir, &n))
        return GS_IR_NONE;
    if (ir->fold) {
        order_inputs(&n);
        found = gs_ir__fold(ir, &n);
        if (found != GS_IR_NONE || ir->status != GS_OK)
            return found;
    }
    if (ir->fold || gs_ir__is_named(n.op)) {
        found = gs_ir__find(ir, &n);
        if (found != GS_IR_NONE)
            return found;
    }
    return gs_ir__append(ir, &n);
}

gs_node gs_ir__blank(gs_op op, uint32_t a, uint32_t b)
{
    gs_node n;
    memset(&n, 0, sizeof(n));
    n.op = op;
    n.dtype = GS_F32;
    n.in[0] = a;
    n.in[1] = b;
    n.in[2] = GS_IR_NONE;
    return n;
}

static uint32_t make_leaf(gs_ir *ir, gs_node *n, const char *name)
{
    uint32_t i;
    if (strlen(name) >= sizeof(n->name))
        return gs_ir_error(ir, GS_EFORMAT, "the name '%s' is longer than %zu bytes", name, sizeof(n->name) - 1);
    snprintf(n->name, sizeof(n->name), "%s", name);
    i = gs_ir__make(ir, *n);
    if (i != GS_IR_NONE &&
        (ir->node[i].width != n->width || ir->node[i].rows != n->rows || ir->node[i].dims != n->dims))
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is used with two shapes", name);
    return i;
}

uint32_t gs_ir_input(gs_ir *ir, const char *name, uint32_t width, gs_dtype dtype)
{
    gs_node n = gs_ir__blank(GS_OP_INPUT, GS_IR_NONE, GS_IR_NONE);
    n.width = width;
    n.dtype = dtype;
    return make_leaf(ir, &n, name);
}

uint32_t gs_ir_table(gs_ir *ir, const char *name, uint32_t width)
{
    char full[2 * GS_IR_NAME_BYTES];
    snprintf(full, sizeof(full), GS_IR_TABLE "%s", name);
    const uint32_t table = gs_ir_input(ir, full, width, GS_F32);
    gs_ir_initial(ir, table, (gs_initial){GS_INITIAL_NORMAL, 1});
    return table;
}

uint32_t gs_ir_param(gs_ir *ir, const char *name, uint32_t dims, uint32_t rows, uint32_t cols)
{
    gs_node n = gs_ir__blank(GS_OP_PARAM, GS_IR_NONE, GS_IR_NONE);
    n.dims = dims;
    n.rows = rows;
    n.width = cols;
    n.initial.rule = dims == 2 ? GS_INITIAL_GLOROT : GS_INITIAL_FILL;
    return make_leaf(ir, &n, name);
}

void gs_ir_param_shape(gs_ir *ir, uint32_t param, uint32_t dims, const uint32_t *shape, bool fixed)
{
    gs_node *n;
    if (param == GS_IR_NONE)
        return;
    n = &ir->node[param];
    n->shape_dims = dims;
    for (uint32_t k = 0; k < 3; k++)
        n->shape[k] = k < dims ? shape[k] : 0;
    n->fixed = fixed;
    if (dims > 1 || fixed)
        n->initial = (gs_initial){fixed ? GS_INITIAL_FILL : GS_INITIAL_GLOROT, 0};
}

uint32_t gs_ir_param_by_type(gs_ir *ir, const char *name, uint32_t types, uint32_t width, uint32_t dims, bool fixed)
{
    const uint32_t shape[3] = {types, 1, width}, param = gs_ir_param(ir, name, 2, types, width);

    gs_ir_param_shape(ir, param, 3, shape, fixed);
    if (param != GS_IR_NONE)
        ir->node[param].picked = dims;
    if (dims == 1)
        gs_ir_initial(ir, param, (gs_initial){GS_INITIAL_FILL, 0});
    return param;
}

void gs_ir_initial(gs_ir *ir, uint32_t node, gs_initial initial)
{
    if (node != GS_IR_NONE)
        ir->node[node].initial = initial;
}

void gs_ir_param_moves(gs_ir *ir, uint32_t param, bool moving, bool counter)
{
    if (param == GS_IR_NONE)
        return;
    ir->node[param].moving = moving;
    ir->node[param].counter = counter;
}

uint32_t gs_ir_weight(gs_ir *ir)
{
    gs_node n = gs_ir__blank(GS_OP_WEIGHT, GS_IR_NONE, GS_IR_NONE);
    n.width = 1;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_resize(gs_ir *ir, gs_op op, uint32_t a, uint32_t width)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_part(gs_ir *ir, uint32_t a, uint32_t first, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_PART, a, GS_IR_NONE);
    n.width = width;
    n.site = first;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_const(gs_ir *ir, float value, uint32_t width)
{
    gs_node n = gs_ir__blank(GS_OP_CONST, GS_IR_NONE, GS_IR_NONE);
    n.alpha = value;
    n.width = width;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_unary(gs_ir *ir, gs_op op, uint32_t a, float alpha)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.alpha = gs_op_is(op, GS_FACT_ALPHA) ? alpha : 0.0f;
    n.dtype = op == GS_OP_ROUND ? GS_BF16 : GS_F32;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_binary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b)
{
    return gs_ir__make(ir, gs_ir__blank(op, a, b));
}

uint32_t gs_ir_ternary(gs_ir *ir, gs_op op, uint32_t a, uint32_t b, uint32_t c)
{
    gs_node n = gs_ir__blank(op, a, b);
    n.in[2] = c;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_dropout(gs_ir *ir, uint32_t a, float p, uint32_t site)
{
    gs_node n = gs_ir__blank(GS_OP_DROPOUT, a, gs_ir_input(ir, "input_id", 1, GS_U32));
    n.alpha = p;
    n.site = site;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_edge_mask(gs_ir *ir, uint32_t width, float p, uint32_t site, bool self)
{
    const uint32_t id = gs_ir_input(ir, "input_id", 1, GS_U32);
    gs_node n = gs_ir__blank(GS_OP_EDGE_MASK, gs_ir_unary(ir, GS_OP_SRC, id, 0), id);
    n.width = width;
    n.alpha = p;
    n.site = site;
    n.self = self;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_sum(gs_ir *ir, gs_op op, uint32_t a, bool self)
{
    gs_node n = gs_ir__blank(op, a, GS_IR_NONE);
    n.self = self;
    return gs_ir__make(ir, n);
}

uint32_t gs_ir_like(gs_ir *ir, const gs_node *like, const uint32_t *in)
{
    const gs_node old = *like; /* making nodes may move `like` */
    gs_node n = old;
    for (uint32_t k = 0; k < gs_node_inputs(&old); k++)
        n.in[k] = in[k];
    if (!gs_ir__is_named(n.op))
        n.name[0] = 0;
    const uint32_t i = gs_ir__make(ir, n);
    gs_ir_label(ir, i, old.name);
    return i;
}
