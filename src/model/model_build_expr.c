/* model_build_expr.c - an expression of a layer's text to IR.
 *
 * Nothing is simplified here: what `gnnstream model` prints first is what the text says.
 */
#include <math.h>
#include <string.h>

#include "model/model_builder.h"

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
    return strcmp(e->name, "lstm") == 0 ? build_lstm(b, e, value) : gs_model__reduce(b, e, value);
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

/* Functions that know heads, the network, or whole rows. false where it is none of them. */
static bool build_special(gs_builder *b, const gs_expr *e, uint32_t *out)
{
    const uint32_t heads = gs_model__heads(b);
    gs_ir *ir = b->ir;
    uint32_t a, other;

    if (strcmp(e->name, "dot") != 0 && strcmp(e->name, "head_mean") != 0 && strcmp(e->name, "act") != 0 &&
        strcmp(e->name, "concat") != 0 && strcmp(e->name, "row_softmax") != 0 &&
        strcmp(e->name, "l2_normalize") != 0 && !gs_model__is_norm(e->name))
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
    else if (strcmp(e->name, "act") == 0)
        *out = b->has_act ? gs_ir_unary(ir, b->act, a, b->act_alpha) : a;
    else if (gs_model__is_norm(e->name))
        *out = gs_model__build_norm(b, e, a);
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
                       "row_softmax, l2_normalize, act, norm_act, layer_norm, layer_norm_all, batch_norm, dropout%s)",
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
        return gs_model__build_matmul(b, e, gs_model__build_expr(b, e->a));
    case GS_EXPR_PICK:
        return gs_model__build_pick(b, e);
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
