/* model_build_values.c - what names in a layer's text are: inputs, variables, parameters, facts of the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_builder.h"

uint32_t gs_model__heads(const gs_builder *b)
{
    return b->config->heads == 0 ? 1 : b->config->heads;
}

uint32_t gs_model__types(const gs_builder *b)
{
    return b->config->edge_types == 0 ? 1 : b->config->edge_types;
}

uint32_t gs_model__bases(const gs_builder *b)
{
    return b->config->bases == 0 ? GS_MODEL_BASES : b->config->bases;
}

uint32_t gs_model__width(const gs_builder *b, const char *name)
{
    if (strcmp(name, "heads") == 0)
        return gs_model__heads(b);
    if (strcmp(name, "types") == 0)
        return gs_model__types(b);
    if (strcmp(name, "bases") == 0)
        return gs_model__bases(b);
    if (b->l->in.factors == 1 && strcmp(name, b->l->in.factor[0].name) == 0)
        return b->in;
    if (b->unknown != NULL && strcmp(name, b->unknown) == 0)
        return b->unknown_value;
    return b->network && strcmp(name, "hidden") == 0 ? b->config->hidden : 0;
}

uint32_t gs_model__width_of(gs_builder *b, const gs_dim *d)
{
    uint64_t product = 1;

    gs_ir_at(b->ir, d->line, d->column);
    for (uint32_t k = 0; k < d->factors; k++) {
        const char *name = d->factor[k].name;
        const uint32_t value = name[0] == 0 ? d->factor[k].value : gs_model__width(b, name);
        if (value == 0) {
            gs_ir_error(b->ir, GS_EFORMAT, "'%s' is neither a number nor a width of this layer", name);
            return 1;
        }
        product *= value;
        if (product > INT32_MAX) {
            gs_ir_error(b->ir, GS_EFORMAT, "a width beyond %d", INT32_MAX);
            return 1;
        }
    }
    return (uint32_t)product;
}

void gs_model__full_name(const gs_builder *b, char *out, size_t bytes, const char *prefix, const char *name)
{
    const char *const dot = prefix[0] != '\0' ? "." : "";
    if (b->network)
        snprintf(out, bytes, "%s%s%s", prefix, dot, name);
    else
        snprintf(out, bytes, "convs.%u.%s%s%s", b->index, prefix, dot, name);
}

uint32_t gs_model__number(gs_builder *b, float v)
{
    return gs_ir_const(b->ir, v, 1);
}

uint32_t gs_model__degree(gs_builder *b)
{
    return gs_ir_input(b->ir, "in_degree", 1, GS_F32);
}

/* A normalised row of one number is such a row, and a parameter may be one: 0 is added, as no degree is below it. */
uint32_t gs_model__of_vertices(gs_builder *b, uint32_t x)
{
    const gs_node *const n = x != GS_IR_NONE ? gs_ir_node(b->ir, x) : NULL;
    uint32_t zero;

    if (n == NULL || n->type != GS_TYPE_P || n->op == GS_OP_BASES || (n->op == GS_OP_PARAM && n->dims == 2))
        return x;
    zero = gs_ir_unary(b->ir, GS_OP_STEP, gs_ir_unary(b->ir, GS_OP_NEG, gs_model__degree(b), 0), 0);
    return gs_ir_binary(b->ir, GS_OP_ADD, x, zero);
}

uint32_t gs_model__loops(gs_builder *b)
{
    return b->config->self_loops ? gs_ir_input(b->ir, "loops", 1, GS_F32) : gs_model__number(b, 0.0f);
}

uint32_t gs_model__is_loop(gs_builder *b)
{
    const uint32_t id = gs_ir_input(b->ir, "input_id", 1, GS_U32);
    return gs_ir_binary(b->ir, GS_OP_IS_LOOP, gs_ir_unary(b->ir, GS_OP_SRC, id, 0), id);
}

/* Takes the mean of several loops: PyG keeps one of them, and does not say which. */
uint32_t gs_model__loop_weight(gs_builder *b)
{
    gs_ir *const ir = b->ir;

    if (!b->config->edge_weights || !b->config->self_loops)
        return gs_model__number(b, 1.0f);
    const uint32_t loops = gs_model__loops(b), weight = gs_ir_weight(ir);
    const uint32_t sum = gs_ir_sum(ir, GS_OP_SUM_IN, gs_ir_binary(ir, GS_OP_MUL, weight, gs_model__is_loop(b)), false);
    const uint32_t none = gs_ir_binary(ir, GS_OP_EQ, loops, gs_model__number(b, 0.0f));
    return gs_ir_binary(ir, GS_OP_DIV, gs_ir_binary(ir, GS_OP_ADD, sum, none),
                        gs_ir_binary(ir, GS_OP_MAX, loops, gs_model__number(b, 1.0f)));
}

/* The loops that are there are taken out by their number: exact with at most one a vertex, as 1 - 1 = 0. */
uint32_t gs_model__gcn_norm(gs_builder *b)
{
    gs_ir *const ir = b->ir;
    uint32_t degree, own, zero;

    if (!b->config->edge_weights) {
        degree = gs_model__degree(b);
        degree = gs_ir_binary(ir, GS_OP_SUB, degree, gs_model__loops(b));
        return gs_ir_unary(ir, GS_OP_RSQRT, gs_ir_binary(ir, GS_OP_ADD, degree, gs_model__number(b, 1.0f)), 0);
    }
    own = gs_ir_binary(ir, GS_OP_SUB, gs_model__number(b, 1.0f), gs_model__loops(b));
    own = gs_ir_binary(ir, GS_OP_MUL, own, gs_model__loop_weight(b));
    degree = gs_ir_binary(ir, GS_OP_ADD, gs_ir_sum(ir, GS_OP_SUM_IN, gs_ir_weight(ir), false), own);
    zero = gs_model__number(b, 0.0f);
    return gs_ir_ternary(ir, GS_OP_WHERE, gs_ir_binary(ir, GS_OP_EQ, degree, zero), zero,
                         gs_ir_unary(ir, GS_OP_RSQRT, degree, 0));
}

/* input.0 is the network's input, input.1 what the second layer gets, and so on. */
static uint32_t build_input(gs_builder *b, const char *name)
{
    char *end;
    const unsigned long k = strtoul(name + 6, &end, 10);
    if (name[6] < '0' || name[6] > '9' || *end != 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s': after 'input.' the number of a layer must stand", name);
    if (b->network)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s': a network gives what its layers get names of its own", name);
    if (k > b->index)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s' is not there yet in layer %u of the network", name, b->index);
    return b->input[k];
}

uint32_t gs_model__lookup(gs_builder *b, const char *name)
{
    if (strcmp(name, b->l->input) == 0)
        return b->here;
    if (strcmp(name, "in_degree") == 0)
        return gs_model__degree(b);
    if (strcmp(name, "loops") == 0)
        return gs_model__loops(b);
    if (strcmp(name, "loop_weight") == 0)
        return gs_model__loop_weight(b);
    if (strcmp(name, "gcn_norm") == 0)
        return gs_model__gcn_norm(b);
    if (strncmp(name, "input.", 6) == 0)
        return build_input(b, name);
    for (uint32_t i = 0; i < b->values; i++)
        if (strcmp(name, b->value[i].name) == 0)
            return b->value[i].node;
    for (uint32_t i = 0; i < b->l->params; i++)
        if (strcmp(name, b->l->param[i].name) == 0)
            return b->param[i];
    return GS_IR_NONE;
}

/* u.x or v.x */
static uint32_t build_end(gs_builder *b, const char *name)
{
    gs_ir *ir = b->ir;
    const uint32_t node = gs_model__lookup(b, name + 2);
    const gs_node *n;

    if (node == GS_IR_NONE)
        return gs_ir_error(ir, GS_EFORMAT, "there is no '%s' here", name + 2);
    n = gs_ir_node(ir, node);
    if (n->op == GS_OP_PARAM)
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is a parameter and belongs to no vertex: leave out '%.2s'", name + 2,
                           name);
    if (gs_model__is_of_edges(n))
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is a value of edges already: leave out '%.2s'", name + 2, name);
    return name[0] == 'u' ? gs_ir_unary(ir, GS_OP_SRC, node, 0) : node;
}

uint32_t gs_model__build_name(gs_builder *b, const gs_expr *e)
{
    gs_ir *ir = b->ir;
    uint32_t node;
    const gs_node *n;

    if (strncmp(e->name, "u.", 2) == 0 || strncmp(e->name, "v.", 2) == 0)
        return build_end(b, e->name);
    if (strcmp(e->name, "e.weight") == 0)
        return b->config->edge_weights ? gs_ir_weight(ir) : gs_model__number(b, 1.0f);
    if (strcmp(e->name, "e.type") == 0)
        return gs_ir_error(ir, GS_EFORMAT, "'e.type' can only stand as W[e.type] right of @, or as b[e.type]");
    if (strncmp(e->name, "e.", 2) == 0)
        return gs_ir_error(ir, GS_EFORMAT, "'%s': edges have e.weight and e.type", e->name);
    node = gs_model__lookup(b, e->name);
    if (node == GS_IR_NONE && gs_model__width(b, e->name) != 0)
        return gs_model__number(b, (float)gs_model__width(b, e->name));
    if (node == GS_IR_NONE)
        return gs_ir_error(ir, GS_EFORMAT, "there is no '%s' here", e->name);
    n = gs_ir_node(ir, node);
    for (uint32_t i = 0; i < b->softs; i++)
        if (b->soft[i].edge == node)
            return node; /* at all edges the same, a softmax is one of edges all the same */
    if (b->reduction != GS_TEXT_NONE && n->type == GS_TYPE_D)
        return gs_ir_error(ir, GS_EFORMAT, "inside %s() say u.%s (the in-neighbour's) or v.%s (this vertex's)",
                           b->m->expr[b->reduction].name, e->name, e->name);
    return node;
}

/* A number a head against several a head: each is repeated for its head. */
void gs_model__fit_heads(gs_builder *b, uint32_t *x, uint32_t *y)
{
    const uint32_t heads = gs_model__heads(b);
    uint32_t wx, wy;

    if (*x == GS_IR_NONE || *y == GS_IR_NONE || heads == 1)
        return;
    wx = gs_ir_node(b->ir, *x)->width;
    wy = gs_ir_node(b->ir, *y)->width;
    if (wx == heads && wy > heads && wy % heads == 0)
        *x = gs_ir_resize(b->ir, GS_OP_EXPAND, *x, wy);
    else if (wy == heads && wx > heads && wx % heads == 0)
        *y = gs_ir_resize(b->ir, GS_OP_EXPAND, *y, wx);
}

uint32_t gs_model__binary(gs_builder *b, gs_op op, uint32_t x, uint32_t y)
{
    gs_model__fit_heads(b, &x, &y);
    return gs_ir_binary(b->ir, op, x, y);
}
