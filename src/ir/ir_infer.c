/* ir_infer.c - graph type and width of a new node, from its inputs. */
#include <assert.h>

#include "ir/ir_internal.h"

static bool all_there(const gs_node *n)
{
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if (n->in[k] == GS_IR_NONE)
            return false;
    return true;
}

static bool is_matrix(const gs_node *n)
{
    return (n->op == GS_OP_PARAM || n->op == GS_OP_BASES) && n->dims == 2;
}

static bool infer_leaf(gs_ir *ir, gs_node *n)
{
    const bool edge = n->op == GS_OP_WEIGHT || n->op == GS_OP_EDGE_FEATURES;

    n->type = n->op == GS_OP_INPUT ? GS_TYPE_D : edge ? GS_TYPE_E : GS_TYPE_P;
    if (n->width == 0 || (n->op == GS_OP_PARAM && n->rows == 0)) {
        gs_ir_error(ir, GS_EFORMAT, "'%s' would have no elements", n->name);
        return false;
    }
    return true;
}

/* fold, spread, across, tile: the node says its width; one of the two is so many times the other. */
static bool infer_resize(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]];
    const bool grows = gs_op_form_of(n->op) == GS_FORM_MORE;
    const uint32_t wide = grows ? n->width : a->width, narrow = grows ? a->width : n->width;
    if (is_matrix(a) || narrow == 0 || wide % narrow != 0) {
        gs_ir_error(ir, GS_EFORMAT, "%s: width %u does not become %u", gs_op_name(n->op), a->width, n->width);
        return false;
    }
    n->type = a->type;
    return true;
}

static bool infer_elementwise(gs_ir *ir, gs_node *n)
{
    n->type = GS_TYPE_P;
    n->width = 1;
    for (uint32_t k = 0; k < gs_op_inputs(n->op); k++) {
        const gs_node *a = &ir->node[n->in[k]];
        if (is_matrix(a)) {
            gs_ir_error(ir, GS_EFORMAT, "%s: '%s' is a matrix; a matrix can only stand right of @", gs_op_name(n->op),
                        a->name);
            return false;
        }
        if (a->width != n->width && a->width != 1 && n->width != 1) {
            gs_ir_error(ir, GS_EFORMAT, "%s: the two sides have widths %u and %u", gs_op_name(n->op), n->width,
                        a->width);
            return false;
        }
        n->type = (gs_graph_type)(n->type | a->type);
        n->width = a->width > n->width ? a->width : n->width;
    }
    if (gs_op_form_of(n->op) == GS_FORM_ROW)
        n->width = 1;
    return true;
}

/* Columns side by side, or some of them, are of one end, but for some of an edge's features, and for what a product
 * takes apart (ir_edges.c). */
static bool infer_columns(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *b = n->op == GS_OP_CONCAT ? &ir->node[n->in[1]] : a;

    n->type = (gs_graph_type)(a->type | b->type);
    if (is_matrix(a) || is_matrix(b) || a->type == GS_TYPE_P || b->type == GS_TYPE_P) {
        gs_ir_error(ir, GS_EFORMAT, "%s: values of vertices are expected, not parameters or numbers",
                    gs_op_name(n->op));
        return false;
    }
    if (n->type == GS_TYPE_E && n->op == GS_OP_PART && a->op != GS_OP_EDGE_FEATURES) {
        gs_ir_error(ir, GS_EUNSUPPORTED, "part of a value of both ends: only of e.x, or of a value of one end");
        return false;
    }
    if (n->op == GS_OP_CONCAT) {
        n->width = a->width + b->width;
    } else if (n->width == 0 || n->site > a->width || n->width > a->width - n->site) {
        gs_ir_error(ir, GS_EFORMAT, "part: columns %u to %u of %u", n->site, n->site + n->width, a->width);
        return false;
    }
    return true;
}

/* Elements of the node's own number, of an edge or, at the vertex itself, of a vertex. */
static bool infer_mask(const gs_ir *ir, gs_node *n)
{
    n->type = (gs_graph_type)(ir->node[n->in[0]].type | ir->node[n->in[1]].type);
    return true;
}

static bool infer_matmul(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *w = &ir->node[n->in[1]];
    const bool transposed = n->op == GS_OP_MATMUL_T;
    uint32_t inner;

    if (!is_matrix(w)) {
        gs_ir_error(ir, GS_EFORMAT, "right of @ a parameter with two dimensions must stand");
        return false;
    }
    inner = transposed ? w->width : w->rows;
    if (is_matrix(a) || a->width != inner) {
        gs_ir_error(ir, GS_EFORMAT, "@: the left side has width %u, but %s%s is [%u, %u]", a->width, w->name,
                    transposed ? "'" : "", inner, transposed ? w->rows : w->width);
        return false;
    }
    if (a->type == GS_TYPE_P && !(a->op == GS_OP_CONST && a->alpha == 0.0f)) {
        gs_ir_error(ir, GS_EUNSUPPORTED,
                    "@ of parameters alone is not supported; left of it a vertex's value must stand");
        return false;
    }
    n->type = a->type;
    n->width = transposed ? w->rows : w->width;
    return true;
}

/* A matrix of the types from those of the bases: W[t] = sum over b of c[t, b] V[b]. */
static bool infer_bases(gs_ir *ir, gs_node *n)
{
    const gs_node *c = &ir->node[n->in[0]], *v = &ir->node[n->in[1]];

    if (!is_matrix(c) || !is_matrix(v) || c->shape_dims == 3 || v->shape_dims != 3 || c->width != v->shape[0]) {
        gs_ir_error(ir, GS_EFORMAT, "@: left of %s[%u, %u, %u] a parameter [types, %u] must stand", v->name,
                    v->shape[0], v->shape[1], v->shape[2], v->shape[0]);
        return false;
    }
    if ((uint64_t)c->rows * v->shape[1] * v->width > INT32_MAX) {
        gs_ir_error(ir, GS_EFORMAT, "the matrices of %u types would have more than %d elements", c->rows, INT32_MAX);
        return false;
    }
    n->type = GS_TYPE_P;
    n->dims = 2;
    n->rows = c->rows * v->shape[1];
    n->width = v->width;
    n->shape_dims = 3;
    n->shape[0] = c->rows;
    n->shape[1] = v->shape[1];
    n->shape[2] = v->shape[2];
    return true;
}

/* As many blocks of columns as the matrix has rows (transposed: columns) become as many as it has of the others. */
static bool infer_mix(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *c = &ir->node[n->in[1]];
    const uint32_t from = n->op == GS_OP_MIX ? c->rows : c->width, to = n->op == GS_OP_MIX ? c->width : c->rows;

    if (!is_matrix(c) || is_matrix(a) || a->width % from != 0) {
        gs_ir_error(ir, GS_EFORMAT, "%s: %u columns are no %u blocks", gs_op_name(n->op), a->width, from);
        return false;
    }
    n->type = a->type;
    n->width = a->width / from * to;
    return true;
}

static bool infer_fan(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *w = &ir->node[n->in[1]];
    const uint32_t types = w->shape_dims == 3 ? w->shape[0] : 0;

    if (types == 0 || is_matrix(a) || (n->op == GS_OP_FAN ? a->width != w->shape[1] : a->width != types * w->width)) {
        gs_ir_error(ir, GS_EFORMAT, "%s: %u columns do not fit the matrices", gs_op_name(n->op), a->width);
        return false;
    }
    n->type = a->type;
    n->width = n->op == GS_OP_FAN ? types * w->width : w->shape[1];
    return true;
}

/* The matrix of an edge's type, or its transpose, right of a value of edges. */
static bool infer_by_type(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *w = &ir->node[n->in[1]];
    const bool back = n->op == GS_OP_BY_TYPE_T;

    if (w->shape_dims != 3 || is_matrix(a) || a->width != (back ? w->width : w->shape[1])) {
        gs_ir_error(ir, GS_EFORMAT, "%s: %u columns do not fit the matrices of the types", gs_op_name(n->op), a->width);
        return false;
    }
    n->type = GS_TYPE_E;
    n->width = back ? w->shape[1] : w->width;
    return true;
}

/* Rows of the matrices at one end of an edge, their columns at the other: no value but a gradient comes of it. */
static bool infer_type_outer(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *g = &ir->node[n->in[1]], *w = &ir->node[n->in[2]];

    if (w->shape_dims != 3 || is_matrix(a) || is_matrix(g) || a->width != w->shape[1] || g->width != w->width) {
        gs_ir_error(ir, GS_EFORMAT, "type_outer: %u and %u columns do not fit the matrices of the types", a->width,
                    g->width);
        return false;
    }
    n->type = GS_TYPE_D;
    n->width = 1;
    return true;
}

/* A part [rows, cols] of the matrix w, from n->site on where it has fewer of one of the two. */
static bool is_part(const gs_node *n, const gs_node *w, uint32_t rows, uint32_t cols)
{
    const bool tall = rows == w->rows, wide = cols == w->width;
    return w->dims == 2 && rows <= w->rows && cols <= w->width && (tall || wide) &&
           (tall || n->site <= w->rows - rows) && (wide || n->site <= w->width - cols);
}

static bool infer_dense(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *w = &ir->node[n->in[1]];
    const bool back = n->op == GS_OP_DENSE_T;

    if (is_matrix(a) || !is_part(n, w, back ? n->width : a->width, back ? a->width : n->width)) {
        gs_ir_error(ir, GS_EFORMAT, "%s: %u to %u columns do not fit '%s'", gs_op_name(n->op), a->width, n->width,
                    w->name);
        return false;
    }
    n->type = GS_TYPE_E;
    return true;
}

static bool infer_dense_outer(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *g = &ir->node[n->in[1]], *w = &ir->node[n->in[2]];

    if (is_matrix(a) || is_matrix(g) || !is_part(n, w, a->width, g->width)) {
        gs_ir_error(ir, GS_EFORMAT, "dense_outer: %u and %u columns do not fit '%s'", a->width, g->width, w->name);
        return false;
    }
    n->type = GS_TYPE_D;
    n->width = 1;
    return true;
}

static bool infer_typed(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *w = &ir->node[n->in[1]];
    if (!is_matrix(w) || is_matrix(a) || w->shape_dims != 3 || w->shape[1] != a->width) {
        gs_ir_error(ir, GS_EFORMAT, "@: the left side has width %u, but %s is no parameter [types, %u, ...]", a->width,
                    w->name, a->width);
        return false;
    }
    n->type = GS_TYPE_E;
    n->width = w->width;
    return true;
}

/* The gates' input [., 4h] at the source end and the recurrent matrix [4h, h]. */
static bool infer_lstm(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *w = &ir->node[n->in[1]];
    if (a->type != GS_TYPE_S || is_matrix(a)) {
        gs_ir_error(ir, GS_EFORMAT, "lstm() runs over a value of the in-neighbour, as u.x");
        return false;
    }
    if (!is_matrix(w) || w->shape_dims == 3 || w->rows != a->width || w->rows != 4 * w->width) {
        gs_ir_error(ir, GS_EFORMAT, "lstm(): for gates of width %u the second argument is a parameter [%u, %u]",
                    a->width, a->width, a->width / 4);
        return false;
    }
    n->type = GS_TYPE_D;
    n->width = n->op == GS_OP_LSTM_IN ? w->width : a->width;
    return true;
}

/* Made by passes, of values of edges and a number of the source. */
static bool infer_held(const gs_ir *ir, gs_node *n)
{
    n->type = GS_TYPE_D;
    n->width = 3 * ir->node[n->in[0]].width;
    return true;
}

static bool infer_edge(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]], *b = gs_op_inputs(n->op) == 2 ? &ir->node[n->in[1]] : NULL;
    const bool by_type = n->op == GS_OP_TYPE_SRC || n->op == GS_OP_TYPE_DST; /* of an end */
    const bool given = by_type || n->op == GS_OP_SPLIT_IN || n->op == GS_OP_PICK_OUT || n->op == GS_OP_SPLIT_OUT;

    if (n->op == GS_OP_TYPED)
        return infer_typed(ir, n);
    if (n->op == GS_OP_TYPE_OUTER)
        return infer_type_outer(ir, n);
    if (n->op == GS_OP_DENSE_OUTER)
        return infer_dense_outer(ir, n);
    if (n->op == GS_OP_LSTM_IN || n->op == GS_OP_LSTM_BACK)
        return infer_lstm(ir, n);
    if (n->op == GS_OP_MAX_HELD_IN || n->op == GS_OP_MIN_HELD_IN)
        return infer_held(ir, n);
    if (is_matrix(a) || (b != NULL && is_matrix(b))) {
        gs_ir_error(ir, GS_EFORMAT, "%s: '%s' is a matrix", gs_op_name(n->op), is_matrix(a) ? a->name : b->name);
        return false;
    }
    if (n->op == GS_OP_LSE_IN && a->type == GS_TYPE_P) { /* found out when it was simplified */
        gs_ir_error(ir, GS_EFORMAT, "softmax() of what is the same for all edges");
        return false;
    }
    if (!given)
        n->width = b != NULL ? b->width : a->width;
    if (b != NULL && b->width % a->width != 0) {
        gs_ir_error(ir, GS_EFORMAT, "attend: %u scores for values of width %u", a->width, b->width);
        return false;
    }
    assert(gs_node_inputs(n) < 3 || n->op == GS_OP_LSE_IN || ir->node[n->in[2]].width == n->width);
    n->type = n->op == GS_OP_SRC ? GS_TYPE_S : by_type ? GS_TYPE_E : GS_TYPE_D;
    return true;
}

static bool infer_statistic(gs_ir *ir, gs_node *n)
{
    const gs_node *a = &ir->node[n->in[0]];
    if (is_matrix(a) || (a->type & GS_TYPE_S) != 0) {
        gs_ir_error(ir, GS_EFORMAT, "%s needs a value of vertices, and this is %s", gs_op_name(n->op),
                    is_matrix(a) ? "a matrix" : "one of edges");
        return false;
    }
    n->type = GS_TYPE_P;
    n->width = a->width;
    return true;
}

static bool infer_loss(gs_ir *ir, gs_node *n)
{
    const bool grad = gs_op_is_loss_grad(n->op);
    n->type = grad ? GS_TYPE_D : GS_TYPE_P;
    n->width = grad ? ir->node[n->in[0]].width : 1;
    return true;
}

static bool infer_by_form(gs_ir *ir, gs_node *n)
{
    switch (gs_op_form_of(n->op)) {
    case GS_FORM_FEWER:
    case GS_FORM_MORE:
        return infer_resize(ir, n);
    case GS_FORM_COLUMNS:
        return infer_columns(ir, n);
    default:
        return n->op == GS_OP_EDGE_MASK ? infer_mask(ir, n) : infer_elementwise(ir, n);
    }
}

bool gs_ir__infer(gs_ir *ir, gs_node *n)
{
    if (!all_there(n)) /* the error that made the input missing is recorded already */
        return false;
    switch (gs_op_classof(n->op)) {
    case GS_CLASS_LEAF:
        return infer_leaf(ir, n);
    case GS_CLASS_ELEMENTWISE:
        return infer_by_form(ir, n);
    case GS_CLASS_MATMUL:
        if (n->op == GS_OP_BASES)
            return infer_bases(ir, n);
        if (n->op == GS_OP_FAN || n->op == GS_OP_FAN_T)
            return infer_fan(ir, n);
        if (n->op == GS_OP_BY_TYPE || n->op == GS_OP_BY_TYPE_T)
            return infer_by_type(ir, n);
        if (gs_op_is_dense(n->op))
            return infer_dense(ir, n);
        return n->op == GS_OP_MIX || n->op == GS_OP_MIX_T ? infer_mix(ir, n) : infer_matmul(ir, n);
    case GS_CLASS_EDGE:
        return infer_edge(ir, n);
    case GS_CLASS_STATISTIC:
        return infer_statistic(ir, n);
    case GS_CLASS_LOSS:
        return infer_loss(ir, n);
    case GS_CLASS_REDUCE:
        n->type = GS_TYPE_P;
        n->width = ir->node[n->in[gs_op_is_outer(n->op) ? 1 : 0]].width;
        return true;
    }
    return false;
}
