/* compile_cone.c - what an edge pass has to read and compute for a sum.
 *
 * A sum of rows adds up an array as it is. Any other sum needs an edge program: the cone of
 * values of edges above it, down to vertex values, which are arrays of earlier stages.
 */
#include <stdlib.h>

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

void gs_compile__mark(gs_marks *m, uint32_t node, unsigned bits)
{
    if (m->bits[node] == 0)
        m->node[m->count++] = node;
    m->bits[node] |= (uint8_t)bits;
}

void gs_compile__unmark(gs_marks *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        m->bits[m->node[i]] = 0;
    m->count = 0;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void gs_compile__sort_marks(gs_marks *m)
{
    if (m->count > 1)
        qsort(m->node, m->count, sizeof(*m->node), by_number);
}

/* Marks what an edge reads or computes for its value `v`. */
static void mark(const gs_ir *ir, uint32_t v, gs_marks *m)
{
    const gs_node *n = gs_ir_node(ir, v);
    if (n->op == GS_OP_SRC)
        gs_compile__mark(m, n->in[0], GS_CONE_SOURCE);
    else if (n->type == GS_TYPE_D)
        gs_compile__mark(m, v, GS_CONE_DESTINATION);
    else if (n->type == GS_TYPE_E)
        gs_compile__mark(m, v, GS_CONE_EDGE);
}

/* Values of edges are marked once each, so the list of marks is also the list of what is left to follow. */
void gs_compile__cone(const gs_ir *ir, uint32_t i, gs_marks *m)
{
    const gs_node *n = gs_ir_node(ir, i);
    uint32_t next = m->count;

    for (uint32_t k = 0; k < gs_node_inputs(n); k++)
        mark(ir, n->in[k], m);
    for (; next < m->count; next++) {
        const uint32_t v = m->node[next];
        if ((m->bits[v] & GS_CONE_EDGE) == 0)
            continue;
        n = gs_ir_node(ir, v);
        if (gs_compile__is_typed(n))
            gs_compile__mark(m, n->in[0],
                             n->op == GS_OP_TYPE_SRC ? GS_CONE_TYPED_SOURCE : GS_CONE_TYPED_DESTINATION);
        for (uint32_t k = 0; !gs_compile__is_typed(n) && k < gs_node_inputs(n); k++)
            mark(ir, n->in[k], m);
    }
}

/* Is `v` made from `from`? */
static bool depends(const gs_ir *ir, uint32_t v, uint32_t from, gs_marks *m)
{
    bool found = v == from;

    gs_compile__mark(m, v, 1);
    for (uint32_t i = 0; i < m->count && !found; i++) {
        const gs_node *const n = gs_ir_node(ir, m->node[i]);
        for (uint32_t k = 0; k < gs_node_inputs(n) && !found; k++) {
            found = n->in[k] == from;
            if (n->in[k] > from) /* inputs have lower numbers */
                gs_compile__mark(m, n->in[k], 1);
        }
    }
    gs_compile__unmark(m);
    return found;
}

uint32_t gs_compile__partner(const gs_ir *ir, uint32_t i, const uint32_t *attend, uint32_t attends, gs_marks *m)
{
    const uint32_t score = gs_ir_node(ir, i)->in[0];
    for (uint32_t k = 0; k < attends; k++)
        if (gs_ir_node(ir, attend[k])->in[0] == score && (attend[k] < i || !depends(ir, attend[k], i, m)))
            return attend[k];
    return GS_IR_NONE;
}
