/* model_build_matmul.c - products: by one matrix, or by the one of each edge's type; and rows of the edge's type.
 *
 * Matrices of types are a parameter [types, in, out], or made from one: W = c @ V, with c [types, bases] and V
 * [bases, in, out], says W[t] = sum over b of c[t, b] V[b] (Schlichtkrull et al., ESWC'18, equation 3).
 */
#include <string.h>

#include "model/model_builder.h"

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
    if (gs_ir_node(b->ir, a)->type != GS_TYPE_S)
        return gs_ir_error(b->ir, GS_EFORMAT, "left of @ %s[e.type] a value of the in-neighbour must stand, as u.x",
                           e->name);
    if (gs_model__types(b) > 1)
        return gs_ir_binary(b->ir, GS_OP_TYPED, a, w);
    if (gs_ir_node(b->ir, w)->op == GS_OP_BASES)
        return only_type(b, a, w);
    return gs_ir_binary(b->ir, GS_OP_MATMUL, a, w);
}

/* b[e.type]: the row 1 of one column times the matrix [1, n] of the edge's type. */
uint32_t gs_model__build_pick(gs_builder *b, const gs_expr *e)
{
    uint32_t w;

    gs_ir_at(b->ir, e->line, e->column);
    if (text_param(b, e->name) == NULL)
        return gs_ir_error(b->ir, GS_EFORMAT, "left of [e.type] a parameter must stand, and '%s' is none", e->name);
    w = gs_model__lookup(b, e->name);
    return gs_model__types(b) > 1 ? gs_ir_by_type(b->ir, w) : w;
}

uint32_t gs_model__build_matmul(gs_builder *b, const gs_expr *e, uint32_t a)
{
    const gs_text_param *const p = text_param(b, e->name);
    uint32_t w;
    bool typed;

    gs_ir_at(b->ir, e->line, e->column);
    w = gs_model__lookup(b, e->name);
    if (w == GS_IR_NONE || (p == NULL && gs_ir_node(b->ir, w)->op != GS_OP_BASES))
        return gs_ir_error(b->ir, GS_EFORMAT, "right of @ a parameter must stand, and '%s' is none", e->name);
    if (a == GS_IR_NONE)
        return a;
    if (p != NULL && first_is(p, "bases")) {
        if (e->typed || e->transposed)
            return gs_ir_error(b->ir, GS_EFORMAT,
                               "'%s' has a matrix for each basis, not for each type: say W = c @ %s with "
                               "param c[types, bases], then W[e.type]",
                               e->name, e->name);
        return gs_ir_binary(b->ir, GS_OP_BASES, a, w);
    }
    typed = p == NULL || first_is(p, "types");
    if (typed != e->typed)
        return gs_ir_error(b->ir, GS_EFORMAT, e->typed ? "'%s' has no matrix for each type: param %s[types, ...] does"
                                                       : "'%s' has a matrix for each type: say %s[e.type]",
                           e->name, e->name);
    if (typed)
        return build_typed(b, e, a, w);
    return gs_ir_binary(b->ir, e->transposed ? GS_OP_MATMUL_T : GS_OP_MATMUL, a, w);
}
