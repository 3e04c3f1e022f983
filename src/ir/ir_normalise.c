/* ir_normalise.c - the two passes after which nothing that depends on one end of an edge only is left on the edges. */
#include "ir/ir_internal.h"

#include <string.h>

static uint32_t rewrite(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *n = gs_ir_node(from, i), *e;
    uint32_t s;
    (void)context;

    if (n->op == GS_OP_MAX_IN || n->op == GS_OP_MIN_IN) {
        e = gs_ir_node(to, in[0]);
        if ((e->type & GS_TYPE_S) == 0) /* the same on all edges */
            return gs_ir_ternary(to, GS_OP_WHERE, gs_ir_input(to, "in_degree", 1, GS_F32), in[0],
                                 gs_ir_const(to, 0.0f, 1));
    }
    if (n->op == GS_OP_SUM_IN) {
        s = gs_ir__sum(to, GS_OP_SUM_IN, in[0], true);
        /* With `self` the graph was normal before; folding finds the own row again. */
        if (s == GS_IR_NONE || !n->self)
            return s;
        e = gs_ir_node(to, in[0]);
        return gs_ir_binary(to, GS_OP_ADD, s, e->op == GS_OP_SRC ? e->in[0] : in[0]);
    }
    return gs_ir_like(to, n, in);
}

/* Arithmetic on parameters alone is done a row at a time, as instructions work on rows; and
 * no matrix product is left on the edges. */
static uint32_t promote(gs_ir *to, const gs_ir *from, uint32_t i, const uint32_t *in, void *context)
{
    const gs_node *n = gs_ir_node(from, i);
    const gs_op_class cls = gs_op_classof(n->op);
    uint32_t again[GS_IR_INPUTS], type = GS_TYPE_P;
    (void)context;

    if (n->op == GS_OP_TYPED)
        return gs_ir__pick_by_type(to, in[0], in[1]);
    if (cls == GS_CLASS_MATMUL && n->type == GS_TYPE_E && n->op != GS_OP_BY_TYPE && n->op != GS_OP_BY_TYPE_T)
        return gs_ir_error(
            to, GS_EUNSUPPORTED,
            "a matrix product of a value of both ends cannot leave the edges; multiply at one end first");
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        type |= (uint32_t)gs_ir_node(to, in[k])->type;
    if (cls != GS_CLASS_ELEMENTWISE || type != GS_TYPE_P || n->type != GS_TYPE_P)
        return gs_ir_like(to, n, in);
    memcpy(again, in, sizeof(again));
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        if (gs_ir_node(to, in[k])->op == GS_OP_PARAM ||
            gs_op_classof(gs_ir_node(to, in[k])->op) == GS_CLASS_STATISTIC) {
            again[k] = gs_ir_binary(to, GS_OP_ADD, in[k], gs_ir__zeros(to));
            break;
        }
    return gs_ir_like(to, n, again);
}

gs_status gs_ir_normalise(gs_ir *ir)
{
    const gs_status st = gs_ir_rewrite(ir, rewrite, NULL);
    return st == GS_OK ? gs_ir_rewrite(ir, promote, NULL) : st; /* what splitting left behind goes */
}
