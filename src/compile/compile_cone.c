/* compile_cone.c - what an edge pass has to read and compute for a sum.
 *
 * A sum of rows adds up an array as it is. Any other sum needs an edge program: the cone of
 * values of edges above it, down to vertex values, which are arrays of earlier stages.
 */
#include <string.h>

#include "compile/compile_internal.h"

bool gs_compile__is_sum(const gs_node *n)
{
    return gs_op_classof(n->op) == GS_CLASS_EDGE && n->op != GS_OP_SRC && !gs_compile__is_typed(n);
}

uint32_t gs_compile__operand(const gs_ir *ir, const gs_node *n)
{
    const gs_node *a;
    switch (n->op) {
    case GS_OP_SUM_IN:
    case GS_OP_SPLIT_IN:
        a = gs_ir_node(ir, n->in[0]);
        return a->op == GS_OP_SRC ? a->in[0] : GS_IR_NONE;
    case GS_OP_SUM_OUT:
    case GS_OP_PICK_OUT:
        return gs_ir_node(ir, n->in[0])->type == GS_TYPE_D ? n->in[0] : GS_IR_NONE;
    default:
        return GS_IR_NONE;
    }
}

static bool is_half(const gs_node *n) { return n->op == GS_OP_INPUT && (n->dtype == GS_BF16 || n->dtype == GS_F16); }

/* The input that a value is, or is the cast of; GS_IR_NONE. */
static uint32_t input_of(const gs_ir *ir, uint32_t v)
{
    const gs_node *n = gs_ir_node(ir, v);
    if (n->op == GS_OP_CAST && is_half(gs_ir_node(ir, n->in[0])))
        return n->in[0];
    return n->op == GS_OP_INPUT && n->dtype == GS_F32 ? v : GS_IR_NONE;
}

/* A float32 number a vertex. */
static bool is_scale(const gs_node *n)
{
    return n->type == GS_TYPE_D && n->width == 1 && n->dtype == GS_F32;
}

bool gs_compile__read_instead(gs_rows_read *out, const gs_ir *ir, const gs_node *sum)
{
    const uint32_t v = gs_compile__operand(ir, sum);
    const gs_node *const n = v == GS_IR_NONE ? NULL : gs_ir_node(ir, v);
    if (n == NULL || (sum->op != GS_OP_SUM_IN && sum->op != GS_OP_SUM_OUT))
        return false;
    *out = (gs_rows_read){input_of(ir, v), GS_IR_NONE};
    if (n->op == GS_OP_CAST && out->operand != GS_IR_NONE)
        return true;
    for (uint32_t k = 0; n->op == GS_OP_MUL && n->width > 1 && k < 2; k++) {
        *out = (gs_rows_read){input_of(ir, n->in[k]), n->in[1 - k]};
        if (out->operand != GS_IR_NONE && gs_ir_node(ir, n->in[k])->width == n->width &&
            is_scale(gs_ir_node(ir, out->scale)))
            return true;
    }
    return false;
}

/* Marks what an edge reads or computes for its value `v`. */
static void mark(const gs_ir *ir, uint32_t v, uint8_t *bits)
{
    const gs_node *n = gs_ir_node(ir, v);
    if (n->op == GS_OP_SRC)
        bits[n->in[0]] |= GS_CONE_SOURCE;
    else if (n->type == GS_TYPE_D)
        bits[v] |= GS_CONE_DESTINATION;
    else if (n->type == GS_TYPE_E)
        bits[v] |= GS_CONE_EDGE;
}

void gs_compile__cone(const gs_ir *ir, uint32_t i, uint8_t *bits)
{
    const gs_node *n = gs_ir_node(ir, i);
    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        mark(ir, n->in[k], bits);
    for (uint32_t v = i; v-- > 0;) {
        if ((bits[v] & GS_CONE_EDGE) == 0)
            continue;
        n = gs_ir_node(ir, v);
        if (gs_compile__is_typed(n))
            bits[n->in[0]] |= n->op == GS_OP_TYPE_SRC ? GS_CONE_TYPED_SOURCE : GS_CONE_TYPED_DESTINATION;
        for (uint32_t k = 0; !gs_compile__is_typed(n) && k < gs_node_inputs(n); k++)
            mark(ir, n->in[k], bits);
    }
}

/* Is `v` made from `from`? */
static bool depends(const gs_ir *ir, uint32_t v, uint32_t from, uint8_t *reached)
{
    memset(reached, 0, gs_ir_count(ir));
    reached[v] = 1;
    for (uint32_t i = v + 1; i-- > from + 1;)
        for (uint32_t k = 0; reached[i] && k < gs_node_inputs(gs_ir_node(ir, i)); k++)
            reached[gs_ir_node(ir, i)->in[k]] = 1;
    return reached[from];
}

uint32_t gs_compile__partner(const gs_ir *ir, uint32_t i, uint8_t *scratch)
{
    const uint32_t score = gs_ir_node(ir, i)->in[0];
    for (uint32_t v = 0; v < gs_ir_count(ir); v++)
        if (gs_ir_node(ir, v)->op == GS_OP_ATTEND && gs_ir_node(ir, v)->in[0] == score &&
            (v < i || !depends(ir, v, i, scratch)))
            return v;
    return GS_IR_NONE;
}
