/* model_build.c - the network: layers as their text says, parameters, and what stands between layers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "model/model_internal.h"

/* ---- values ------------------------------------------------------------ */

/* What names in a layer's text are: inputs, variables, parameters, facts of the graph. */

uint32_t gs_model__heads(const gs_builder *b)
{
    return b->config->heads == 0 ? 1 : b->config->heads;
}

uint32_t gs_model__types(const gs_builder *b)
{
    return b->config->edge_types == 0 ? 1 : b->config->edge_types;
}

static uint32_t bases(const gs_builder *b)
{
    return b->config->bases == 0 ? GS_MODEL_BASES : b->config->bases;
}

/* The value of edges, e.NAME, that a layer returned or the network named last; GS_IR_NONE where there is none yet. */
static uint32_t edge_value(const gs_builder *b, const char *name)
{
    for (uint32_t i = 0; i < b->edge_values; i++)
        if (strcmp(b->edge_value[i].name, name) == 0)
            return b->edge_value[i].node;
    return GS_IR_NONE;
}

/* The width that the header gives to a value of edges that the layer gets, e.z[k]; 0: the name is none of these. */
static uint32_t width_of_edges(const gs_builder *b, const char *name)
{
    for (uint32_t i = 0; i < b->l->edges_in; i++) {
        const gs_text_edge *const e = &b->l->edge_in[i];
        const uint32_t node = edge_value(b, e->name);
        if (node != GS_IR_NONE && e->dim.factors == 1 && strcmp(name, e->dim.factor[0].name) == 0)
            return gs_ir_node(b->ir, node)->width;
    }
    return 0;
}

/* Value of a width's name where we are; 0 where it has none. */
static uint32_t width_named(const gs_builder *b, const char *name)
{
    if (strcmp(name, "heads") == 0)
        return gs_model__heads(b);
    if (strcmp(name, "types") == 0)
        return gs_model__types(b);
    if (strcmp(name, "bases") == 0)
        return bases(b);
    if (strcmp(name, "edge_features") == 0)
        return gs_model__edge_width(b->config);
    if (strcmp(name, "vertex_types") == 0)
        return gs_model__vertex_types(b);
    if (strchr(name, '.') != NULL)
        return gs_model__type_features(b, name);
    if (b->l->in.factors == 1 && strcmp(name, b->l->in.factor[0].name) == 0)
        return b->in;
    if (b->unknown != NULL && strcmp(name, b->unknown) == 0)
        return b->unknown_value;
    if (b->network && strcmp(name, "hidden") == 0)
        return b->config->hidden;
    return width_of_edges(b, name);
}

uint32_t gs_model__width_of(gs_builder *b, const gs_dim *d)
{
    uint64_t product = 1, sum = 0;

    gs_ir_at(b->ir, d->line, d->column);
    for (uint32_t k = 0; k < d->factors; k++) {
        const char *name = d->factor[k].name;
        sum += d->factor[k].plus ? product : 0;
        product = d->factor[k].plus ? 1 : product;
        const uint32_t value = name[0] == 0 ? d->factor[k].value : width_named(b, name);
        if (value == 0 && strcmp(name, "edge_features") == 0) {
            gs_ir_error(b->ir, GS_EFORMAT, "'edge_features': the edges of this graph have no features");
            return 1;
        }
        if (value == 0) {
            gs_ir_error(b->ir, GS_EFORMAT, "'%s' is neither a number nor a width of this layer", name);
            return 1;
        }
        product *= value;
        if (sum + product > INT32_MAX) {
            gs_ir_error(b->ir, GS_EFORMAT, "a width beyond %d", INT32_MAX);
            return 1;
        }
    }
    return (uint32_t)(sum + product);
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
static uint32_t of_vertices(gs_builder *b, uint32_t x)
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
static uint32_t loop_weight(gs_builder *b)
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
static uint32_t gcn_norm(gs_builder *b)
{
    gs_ir *const ir = b->ir;
    uint32_t degree, own, zero;

    if (!b->config->edge_weights) {
        degree = gs_model__degree(b);
        degree = gs_ir_binary(ir, GS_OP_SUB, degree, gs_model__loops(b));
        return gs_ir_unary(ir, GS_OP_RSQRT, gs_ir_binary(ir, GS_OP_ADD, degree, gs_model__number(b, 1.0f)), 0);
    }
    own = gs_ir_binary(ir, GS_OP_SUB, gs_model__number(b, 1.0f), gs_model__loops(b));
    own = gs_ir_binary(ir, GS_OP_MUL, own, loop_weight(b));
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
        return loop_weight(b);
    if (strcmp(name, "gcn_norm") == 0)
        return gcn_norm(b);
    if (strncmp(name, "input.", 6) == 0)
        return build_input(b, name);
    for (uint32_t i = 0; i < b->values; i++)
        if (strcmp(name, b->value[i].name) == 0)
            return b->value[i].node;
    for (uint32_t i = 0; i < b->l->params; i++)
        if (strcmp(name, b->l->param[i].name) == 0)
            return b->param[i];
    return gs_model__named(b, name, false);
}

/* u.x or v.x */
static uint32_t build_end(gs_builder *b, const char *name)
{
    gs_ir *ir = b->ir;
    const bool type = strcmp(name + 2, "type") == 0;
    const uint32_t node = type ? gs_model__vertex_type(b, name[0] == 'u') : gs_model__lookup(b, name + 2);
    const gs_node *n;

    if (type)
        return node;
    if (node == GS_IR_NONE)
        return gs_model__unknown(b, name + 2, false);
    n = gs_ir_node(ir, node);
    if (n->op == GS_OP_PARAM)
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is a parameter and belongs to no vertex: leave out '%.2s'", name + 2,
                           name);
    if (gs_model__is_of_edges(n))
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is a value of edges already: leave out '%.2s'", name + 2, name);
    return name[0] == 'u' ? gs_ir_unary(ir, GS_OP_SRC, node, 0) : node;
}

/* e.x or e.NAME, of which `whole` is the text's */
static uint32_t build_edge_features(gs_builder *b, const char *whole)
{
    const uint32_t all = b->config->edge_features, width = gs_model__edge_width(b->config);
    const char *const name = whole + 2;
    bool handed_on = b->network;
    uint32_t node;

    for (uint32_t i = 0; i < b->l->edges_in; i++)
        handed_on = handed_on || strcmp(b->l->edge_in[i].name, whole) == 0;
    if (handed_on && (node = edge_value(b, whole)) != GS_IR_NONE)
        return node;
    if (strcmp(name, "x") != 0) {
        node = gs_model__named(b, name, true);
        return node != GS_IR_NONE ? node : gs_model__unknown(b, name, true);
    }
    if (all == 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "'e.x': the edges of this graph have no features");
    node = gs_ir_edge_features(b->ir, all);
    return width < all ? gs_ir_part(b->ir, node, 0, width) : node;
}

uint32_t gs_model__build_name(gs_builder *b, const gs_expr *e)
{
    gs_ir *ir = b->ir;
    uint32_t node;
    const gs_node *n;

    if (strncmp(e->name, "u.", 2) == 0 || strncmp(e->name, "v.", 2) == 0)
        return build_end(b, e->name);
    if (strncmp(e->name, "type.", 5) == 0)
        return gs_model__type_number(b, e->name);
    if (strcmp(e->name, "e.weight") == 0)
        return b->config->edge_weights ? gs_ir_weight(ir) : gs_model__number(b, 1.0f);
    if (strcmp(e->name, "e.type") == 0)
        return gs_ir_error(ir, GS_EFORMAT, "'e.type' can only stand as W[e.type] right of @, or as b[e.type]");
    if (strncmp(e->name, "e.", 2) == 0)
        return build_edge_features(b, e->name);
    node = gs_model__lookup(b, e->name);
    if (node == GS_IR_NONE && width_named(b, e->name) != 0)
        return gs_model__number(b, (float)width_named(b, e->name));
    if (node == GS_IR_NONE)
        return gs_model__unknown(b, e->name, false);
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

/* ---- statements -------------------------------------------------------- */

/* ---- widths ---- */

/* The output may have one name that nothing else gives a value: [out], [heads * d]. */
static void find_unknown(gs_builder *b)
{
    const gs_dim *d = &b->l->out;
    uint64_t known = 1;
    bool sum = false;

    b->unknown = NULL;
    for (uint32_t k = 0; k < d->factors; k++)
        sum = sum || d->factor[k].plus;
    for (uint32_t k = 0; k < d->factors && !sum; k++) {
        const char *name = d->factor[k].name;
        const uint32_t value = name[0] == 0 ? d->factor[k].value : width_named(b, name);
        if (value == 0 && b->unknown == NULL)
            b->unknown = name;
        else
            known *= value; /* at most 2^20 twice */
    }
    if (b->unknown == NULL || known == 0)
        return;
    b->unknown_value = (uint32_t)(b->out / known);
    gs_ir_at(b->ir, d->line, d->column);
    if (b->unknown_value * known != b->out || b->unknown_value == 0)
        gs_ir_error(b->ir, GS_EFORMAT, "layer %u of the network has output width %u, which is no multiple of %llu",
                    b->index, b->out, (unsigned long long)known);
}

/* A width that the text fixes, or names twice, must be what the network asks for. */
static void check_width(gs_builder *b, const gs_dim *d, uint32_t asked, const char *what)
{
    const uint32_t has = gs_model__width_of(b, d);
    gs_ir_at(b->ir, d->line, d->column);
    if (has != asked)
        gs_ir_error(b->ir, GS_EFORMAT, "layer %u of the network has %s width %u, the text says %u", b->index, what,
                    asked, has);
}

static void check_widths(gs_builder *b)
{
    gs_ir_at(b->ir, b->l->in.line, b->l->in.column);
    if (b->l->in.factors != 1)
        gs_ir_error(b->ir, GS_EFORMAT, "the input's width is one name or one number");
    find_unknown(b);
    check_width(b, &b->l->in, b->in, "input");
    check_width(b, &b->l->out, b->out, "output");
}

/* ---- parameters ---- */

/* [types, n, m], [bases, n, m]: a matrix for each edge type or basis, one above the other. [1, n, m]: a vector, as
 * attention has them, with files saying three dimensions. */
static uint32_t build_param3(gs_builder *b, const gs_text_param *p, const char *name)
{
    uint32_t shape[3], w, total;
    const char *const first = p->dim[0].factors == 1 ? p->dim[0].factor[0].name : "";
    const bool typed = strcmp(first, "types") == 0 || strcmp(first, "bases") == 0 || strcmp(first, "vertex_types") == 0;

    for (uint32_t k = 0; k < 3; k++)
        shape[k] = gs_model__width_of(b, &p->dim[k]);
    gs_ir_at(b->ir, p->line, p->column);
    if (!typed && shape[0] != 1)
        return gs_ir_error(b->ir, GS_EFORMAT,
                           "a parameter of three dimensions is [types, n, m], [bases, n, m], [vertex_types, n, m] or "
                           "[1, n, m]");
    if (gs_ir_status(b->ir) == GS_OK && (uint64_t)shape[0] * shape[1] * shape[2] > INT32_MAX)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s' would have more than %d elements", p->name, INT32_MAX);
    total = typed ? shape[0] * shape[1] : shape[1] * shape[2];
    w = typed ? gs_ir_param(b->ir, name, 2, total, shape[2]) : gs_ir_param(b->ir, name, 1, 1, total);
    gs_ir_param_shape(b->ir, w, 3, shape, p->fixed);
    return w;
}

/* Whose type says which row where no product is, as in NAME[e.type]; 0 where the layer's text has no such. */
static char picked_by(const gs_builder *b, const char *name)
{
    for (uint32_t i = b->l->first_expr; i < b->l->end_expr; i++)
        if (b->m->expr[i].kind == GS_EXPR_PICK && strcmp(b->m->expr[i].name, name) == 0)
            return b->m->expr[i].end;
    return 0;
}

/* [types], [types, n] of edges, or vertex_types: of one type its row alone, which is then the same for all. */
static uint32_t build_picked(gs_builder *b, const gs_text_param *p, const char *name, bool of_edges)
{
    const char *const of = of_edges ? "types" : "vertex_types";
    const uint32_t types = gs_model__width_of(b, &p->dim[0]);
    const uint32_t width = p->dims == 2 ? gs_model__width_of(b, &p->dim[1]) : 1;
    const uint32_t shape[3] = {types, width, 0};
    uint32_t w;

    gs_ir_at(b->ir, p->line, p->column);
    if (p->dims > 2 || p->dim[0].factors != 1 || strcmp(p->dim[0].factor[0].name, of) != 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s[%c.type]' needs a parameter [%s] or [%s, n]; right of @ one "
                           "[%s, n, m]", p->name, of_edges ? 'e' : 'v', of, of, of);
    if (of_edges && types > 1)
        return gs_ir_param_by_type(b->ir, name, types, width, p->dims, p->fixed);
    w = p->dims == 2 && types > 1 ? gs_ir_param(b->ir, name, 2, types, width)
                                  : gs_ir_param(b->ir, name, 1, 1, p->dims == 2 ? width : types);
    gs_ir_param_shape(b->ir, w, p->dims == 2 ? 2 : 0, shape, p->fixed);
    return w;
}

/* [vertices, ...]: is it learned rows of vertices? Of a layer whose input's width is called so it is not. */
static bool is_of_vertices(const gs_text_param *p)
{
    return p->dim[0].factors == 1 && strcmp(p->dim[0].factor[0].name, "vertices") == 0;
}

/* [vertices, n]: learned rows of vertices, which are a value like any other. */
static bool is_table(const gs_builder *b, const gs_text_param *p)
{
    return is_of_vertices(p) && width_named(b, "vertices") == 0;
}

static uint32_t build_table(gs_builder *b, const gs_text_param *p, const char *name)
{
    const uint32_t width = p->dims == 2 ? gs_model__width_of(b, &p->dim[1]) : 0;

    gs_ir_at(b->ir, p->line, p->column);
    if (p->dims != 2 || p->fixed)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s': what has a row for each vertex is param %s[vertices, n]", p->name,
                           p->name);
    return gs_ir_table(b->ir, name, width);
}

static uint32_t build_param(gs_builder *b, const gs_text_param *p, const char *name)
{
    uint32_t first, second, w;

    if (is_table(b, p))
        return build_table(b, p, name);
    if (b->identity && gs_model__is_of_input(b->l, p))
        return gs_model__rows_of_input(b, p, name);
    if (picked_by(b, p->name) != 0)
        return build_picked(b, p, name, picked_by(b, p->name) == 'e');
    if (p->dims == 3)
        return build_param3(b, p, name);
    first = gs_model__width_of(b, &p->dim[0]);
    second = p->dims == 2 ? gs_model__width_of(b, &p->dim[1]) : 0;
    gs_ir_at(b->ir, p->line, p->column);
    w = p->dims == 2 ? gs_ir_param(b->ir, name, 2, first, second) : gs_ir_param(b->ir, name, 1, 1, first);
    gs_ir_param_shape(b->ir, w, 0, NULL, p->fixed);
    return w;
}

static void build_params(gs_builder *b)
{
    char name[2 * GS_TEXT_NAME + 16];
    for (uint32_t i = 0; i < b->l->params; i++) {
        const gs_text_param *p = &b->l->param[i];
        gs_model__full_name(b, name, sizeof(name), "", p->name);
        b->param[i] = build_param(b, p, name);
        gs_model__start_param(b, p, b->param[i]);
    }
}

/* ---- values of edges that layers hand on ---- */

/* What `e.NAME` is from here on. */
static void hand_on(gs_builder *b, const char *name, uint32_t node)
{
    uint32_t i = 0;

    if (node == GS_IR_NONE || gs_ir_status(b->ir) != GS_OK)
        return;
    if (gs_ir_node(b->ir, node)->type == GS_TYPE_D) {
        gs_ir_error(b->ir, GS_EFORMAT, "'%s' is a value of edges, and this is one of vertices: u.NAME is the "
                    "in-neighbour's", name);
        return;
    }
    while (i < b->edge_values && strcmp(b->edge_value[i].name, name) != 0)
        i++;
    if (i == GS_TEXT_EDGE_VALUES)
        gs_ir_error(b->ir, GS_EFORMAT, "'%s': a text hands on at most %u values of edges", name, GS_TEXT_EDGE_VALUES);
    else
        b->edge_value[i] = (gs_named){name, node};
    b->edge_values += i == b->edge_values && i < GS_TEXT_EDGE_VALUES;
}

/* e.x; where there are no such features e.weight, which is 1 of each edge without one. */
static uint32_t first_edge_value(gs_builder *b)
{
    if (gs_model__edge_width(b->config) > 0)
        return build_edge_features(b, "e.x");
    if (b->config->edge_weights)
        return gs_ir_weight(b->ir);
    const uint32_t one = gs_ir_binary(b->ir, GS_OP_ADD, gs_model__degree(b), gs_model__number(b, 1.0f));
    return gs_ir_unary(b->ir, GS_OP_SRC, gs_ir_unary(b->ir, GS_OP_STEP, one, 0), 0);
}

/* Where no layer has returned it yet, e.z is the edges' feature of that name, else the first value. */
static void start_edge_values(gs_builder *b)
{
    for (uint32_t i = 0; i < b->l->edges_in; i++) {
        const gs_text_edge *const e = &b->l->edge_in[i];
        uint32_t node;
        gs_ir_at(b->ir, e->dim.line, e->dim.column);
        if (edge_value(b, e->name) != GS_IR_NONE)
            continue;
        node = gs_model__named(b, e->name + 2, true);
        hand_on(b, e->name, node != GS_IR_NONE ? node : first_edge_value(b));
    }
}

static void check_edge_widths(gs_builder *b)
{
    for (uint32_t i = 0; i < b->l->edges_in && gs_ir_status(b->ir) == GS_OK; i++) {
        const gs_text_edge *const e = &b->l->edge_in[i];
        const uint32_t has = gs_model__width_of(b, &e->dim), gets = gs_ir_node(b->ir, edge_value(b, e->name))->width;
        gs_ir_at(b->ir, e->dim.line, e->dim.column);
        if (has != gets)
            gs_ir_error(b->ir, GS_EFORMAT, "layer %u of the network gets an %s of width %u, the text says %u", b->index,
                        e->name, gets, has);
    }
}

/* A name that nothing gives a width to stands for that of what is returned. */
static bool is_open(const gs_builder *b, const gs_dim *d)
{
    const char *const name = d->factor[0].name;
    return d->factors == 1 && name[0] != '\0' && strchr(name, '.') == NULL && strcmp(name, "edge_features") != 0 &&
           width_named(b, name) == 0;
}

/* All are built before one is handed on: each may be made of what the layer got. */
static void return_edge_values(gs_builder *b)
{
    uint32_t made[GS_TEXT_EDGE_VALUES];
    const gs_text_layer *const l = b->l;

    for (uint32_t i = 0; i < l->edges_out; i++) {
        const gs_dim *const d = &l->edge_out[i].dim;
        const uint32_t width = is_open(b, d) ? 0 : gs_model__width_of(b, d);
        const gs_expr *const at = &b->m->expr[l->edge_out[i].result];
        made[i] = gs_model__build_expr(b, l->edge_out[i].result);
        gs_ir_at(b->ir, at->line, at->column);
        if (gs_ir_status(b->ir) == GS_OK && width != 0 && gs_ir_node(b->ir, made[i])->width != width)
            gs_ir_error(b->ir, GS_EFORMAT, "the layer returns an %s of width %u instead of %u", l->edge_out[i].name,
                        gs_ir_node(b->ir, made[i])->width, width);
    }
    for (uint32_t i = 0; i < l->edges_out && gs_ir_status(b->ir) == GS_OK; i++)
        hand_on(b, l->edge_out[i].name, made[i]);
}

/* ---- a layer ---- */

static void assign(gs_builder *b, const gs_statement *s)
{
    char label[2 * GS_TEXT_NAME + 16];
    const uint32_t node = gs_model__build_expr(b, s->expr);
    uint32_t i = 0;

    if (strncmp(s->name, "e.", 2) == 0) {
        hand_on(b, s->name, node);
        return;
    }
    gs_model__full_name(b, label, sizeof(label), "", s->name);
    gs_ir_label(b->ir, node, label);
    while (i < b->values && strcmp(b->value[i].name, s->name) != 0)
        i++;
    b->value[i] = (gs_named){s->name, node};
    if (i == b->values)
        b->values++;
}

static void run_statements(gs_builder *b)
{
    const gs_text_layer *l = b->l;
    uint32_t left = 0;

    b->values = 0;
    for (uint32_t i = 0; i < l->statements && gs_ir_status(b->ir) == GS_OK; i++) {
        const gs_statement *s = &l->statement[i];
        if (s->kind == GS_STATEMENT_ASSIGN)
            assign(b, s);
        else if (s->kind == GS_STATEMENT_REPEAT)
            left = s->count;
        else if (--left > 0)
            i = s->other;
    }
}

static void check_result(gs_builder *b, uint32_t result)
{
    const gs_expr *e = &b->m->expr[b->l->result];
    const gs_node *n;

    if (gs_ir_status(b->ir) != GS_OK)
        return;
    n = gs_ir_node(b->ir, result);
    gs_ir_at(b->ir, e->line, e->column);
    if ((n->type & GS_TYPE_S) != 0)
        gs_ir_error(b->ir, GS_EFORMAT, "a layer returns a value of vertices; this is one of edges: sum() it");
    else if (n->width != b->out)
        gs_ir_error(b->ir, GS_EFORMAT, "the layer returns width %u instead of %u", n->width, b->out);
}

static gs_status build_layer(gs_builder *b, uint32_t *out)
{
    const gs_text_layer *l = b->l;
    char label[2 * GS_TEXT_NAME + 16];
    GS_FREED gs_named *const value = gs_malloc_array((size_t)l->statements + 1, sizeof(*value));
    GS_FREED uint32_t *const param = gs_malloc_array((size_t)l->params + 1, sizeof(*param));

    GS_NEED(value != NULL && param != NULL, "%s: no memory for the model's graph", b->m->path);
    b->value = value;
    b->param = param;
    start_edge_values(b);
    check_widths(b);
    check_edge_widths(b);
    build_params(b);
    GS_TRY(gs_ir_status(b->ir));
    run_statements(b);
    const uint32_t result = gs_model__build_expr(b, l->result);
    check_result(b, result);
    return_edge_values(b);
    gs_model__full_name(b, label, sizeof(label), "", "out");
    gs_ir_label(b->ir, result, label);
    *out = result;
    return gs_ir_status(b->ir);
}

/* What is of the layer that is built; the rest of the builder goes on. */
static void go_back(gs_builder *b, const gs_builder *to)
{
    b->l = to->l;
    b->index = to->index;
    b->network = to->network;
    b->here = to->here;
    b->in = to->in;
    b->out = to->out;
    b->unknown = to->unknown;
    b->unknown_value = to->unknown_value;
    b->values = to->values;
    b->value = to->value;
    b->param = to->param;
}

static uint32_t build_called_layer(gs_builder *b, const gs_expr *e, uint32_t given)
{
    const gs_builder outer = *b;
    const uint32_t width = gs_model__width_of(b, &b->m->dim[e->dim]), x = of_vertices(b, given);
    uint32_t y = GS_IR_NONE;

    gs_ir_at(b->ir, e->line, e->column);
    if (x == GS_IR_NONE || gs_ir_status(b->ir) != GS_OK)
        return GS_IR_NONE;
    if (b->reduction != GS_TEXT_NONE || gs_ir_node(b->ir, x)->type != GS_TYPE_D)
        return gs_ir_error(b->ir, GS_EFORMAT, "a layer gets a value of vertices, outside reductions");
    if (b->calls == GS_MODEL_MOST_LAYERS)
        return gs_ir_error(b->ir, GS_EFORMAT, "a network has at most %u layers", GS_MODEL_MOST_LAYERS);
    b->l = &b->m->layer[e->layer];
    b->network = false;
    b->index = b->calls++;
    b->here = b->input[b->index] = x;
    b->in = gs_ir_node(b->ir, x)->width;
    b->out = width;
    if (build_layer(b, &y) != GS_OK)
        y = GS_IR_NONE;
    go_back(b, &outer);
    b->index = b->calls - 1; /* whose norm a nameless one is */
    return y;
}

/* ---- the network ---- */

bool gs_model_has_heads(const gs_model *m)
{
    for (uint32_t i = 0; i < m->exprs; i++)
        if (m->expr[i].kind == GS_EXPR_CALL &&
            (strcmp(m->expr[i].name, "dot") == 0 || strcmp(m->expr[i].name, "head_mean") == 0))
            return true;
    for (uint32_t l = 0; l < m->layers; l++)
        for (uint32_t k = 0; k < m->layer[l].out.factors; k++)
            if (strcmp(m->layer[l].out.factor[k].name, "heads") == 0)
                return true;
    return false;
}

bool gs_model_has_bases(const gs_model *m)
{
    for (uint32_t l = 0; l < m->layers; l++)
        for (uint32_t i = 0; i < m->layer[l].params; i++)
            for (uint32_t k = 0; k < m->layer[l].param[i].dims; k++)
                for (uint32_t f = 0; f < m->layer[l].param[i].dim[k].factors; f++)
                    if (strcmp(m->layer[l].param[i].dim[k].factor[f].name, "bases") == 0)
                        return true;
    return false;
}

static bool layer_has_tables(const gs_text_layer *l)
{
    bool found = false;
    for (uint32_t i = 0; i < l->params; i++)
        found = found || is_of_vertices(&l->param[i]);
    return found;
}

static bool has_tables(const gs_model *m)
{
    bool found = m->network != NULL && layer_has_tables(m->network);
    for (uint32_t l = 0; l < m->layers; l++)
        found = found || layer_has_tables(&m->layer[l]);
    return found;
}

bool gs_model_learns_rows(const gs_model *m, uint32_t features)
{
    return has_tables(m) || (features == 0 && gs_model__takes_identity(m));
}

static gs_status check_config(const gs_model *m, const gs_model_config *c, gs_builder *b)
{
    if (c->layers == 0 || c->layers > GS_MODEL_MOST_LAYERS)
        return gs_fail(GS_EINVAL, ".layers %u: must be from 1 to %u", c->layers, GS_MODEL_MOST_LAYERS);
    if (c->heads > 1 && !gs_model_has_heads(m))
        return gs_fail(GS_EINVAL, ".heads %u: model %s has no attention heads; leave it at 1", c->heads, m->path);
    if (c->bases > 0 && !gs_model_has_bases(m))
        return gs_fail(GS_EINVAL, ".bases %u: model %s has no bases; leave it out", c->bases, m->path);
    if (c->in_width == 0 && !gs_model_learns_rows(m, 0))
        return gs_fail(GS_EINVAL, "%s: the graph has no features for the first layer", m->path);
    if (c->classes == 0 || (c->layers > 1 && c->hidden == 0))
        return gs_fail(GS_EINVAL, "%s: widths %u (hidden) and %u (classes) must not be 0", m->path, c->hidden,
                       c->classes);
    if (!(c->dropout >= 0 && c->dropout < 1) || !(c->input_dropout >= 0 && c->input_dropout < 1))
        return gs_fail(GS_EINVAL, "dropout %g, input dropout %g: must be at least 0 and below 1", (double)c->dropout,
                       (double)c->input_dropout);
    b->has_act = c->act != NULL && strcmp(c->act, "none") != 0;
    if (b->has_act &&
        (!gs_model__function(c->act, &b->act) || gs_op_inputs(b->act) != 1 || isnan(gs_op_facts_of(b->act)->standard)))
        return gs_fail(GS_EINVAL, ".activation %s: not one of relu, leaky_relu, elu, gelu, silu, sigmoid, tanh, none",
                       c->act);
    if (b->has_act)
        b->act_alpha = gs_op_facts_of(b->act)->standard;
    return GS_OK;
}

/* The text's last layer is the network's last; those before it are used in order, the
 * one before the last as often as needed. */
static uint32_t text_layer(const gs_model *m, const gs_model_config *c, uint32_t i)
{
    if (m->layers == 1 || i + 1 == c->layers)
        return m->layers - 1;
    return i < m->layers - 2 ? i : m->layers - 2;
}

/* Activation and dropout behind layer i. */
static uint32_t between_layers(gs_builder *b, uint32_t h, uint32_t i)
{
    char label[32];
    gs_ir_at(b->ir, 0, 0);
    if (b->has_act)
        h = gs_ir_unary(b->ir, b->act, h, b->act_alpha);
    snprintf(label, sizeof(label), "layer%u.h", i);
    gs_ir_label(b->ir, h, label);
    if (b->config->training && b->config->dropout > 0)
        h = gs_ir_dropout(b->ir, h, b->config->dropout, i + 1);
    return h;
}

/* One layer behind the other, as BasicGNN without more. */
static gs_status build_layers(gs_builder *b, uint32_t h, uint32_t *out)
{
    const gs_model_config *const c = b->config;

    for (uint32_t i = 0; i < c->layers; i++) {
        const bool last = i + 1 == c->layers;
        b->l = &b->m->layer[text_layer(b->m, c, i)];
        b->index = i;
        b->here = b->input[i] = h;
        b->identity = i == 0 && c->in_width == 0 && !has_tables(b->m);
        b->in = b->identity ? (uint32_t)c->vertices : i == 0 ? gs_model__in_width(c) : c->hidden;
        b->out = last ? c->classes : c->hidden;
        GS_TRY(build_layer(b, &h));
        if (!last)
            h = of_vertices(b, between_layers(b, h, i));
    }
    *out = h;
    return GS_OK;
}

/* As the text says. Its dropouts are numbered as they come. */
static gs_status build_network(gs_builder *b, uint32_t h, uint32_t *out)
{
    b->l = b->m->network;
    b->network = true;
    b->here = h;
    b->in = gs_model__in_width(b->config);
    b->out = b->config->classes;
    b->next_site = 1;
    return build_layer(b, out);
}

/* What the last layer gets; where a linear map stands behind all layers (jumping knowledge), what that gets. */
static uint32_t before_last(const gs_builder *b, uint32_t logits)
{
    const gs_node *n = gs_ir_node(b->ir, logits);

    if (b->m->network == NULL)
        return b->input[b->config->layers - 1];
    for (uint32_t k = 0; n->op == GS_OP_ADD && k < 2; k++)
        if (gs_ir_node(b->ir, n->in[k])->type == GS_TYPE_P)
            n = gs_ir_node(b->ir, n->in[1 - k]);
    if ((n->op == GS_OP_MATMUL || n->op == GS_OP_MATMUL_T) &&
        strncmp(gs_ir_node(b->ir, n->in[1])->name, "convs.", 6) != 0)
        return n->in[0];
    return b->calls > 0 ? b->input[b->calls - 1] : GS_IR_NONE;
}

/* The node that is the graph's result, among the logits' or in their place. */
static gs_status choose_root(gs_builder *b, uint32_t *h)
{
    const uint32_t logits = *h;

    if (gs_ir_status(b->ir) != GS_OK || !b->config->embeddings)
        return gs_ir_status(b->ir);
    *h = before_last(b, logits);
    if (*h == GS_IR_NONE || gs_ir_node(b->ir, *h)->op == GS_OP_INPUT)
        return gs_fail(GS_EINVAL, ".embeddings: nothing but the features stands before the last layer of model %s",
                       b->m->path);
    return GS_OK;
}

static void drop(gs_builder *b)
{
    gs_free(b->soft);
    gs_ir_free(b->ir);
}

gs_status gs_model_build(gs_ir **out, const gs_model *m, const gs_model_config *config)
{
    GS_ENDS(drop) gs_builder b = {.m = m, .config = config, .next_site = config->layers, .reduction = GS_TEXT_NONE,
                                  .build_layer = build_called_layer};
    const uint32_t columns = GS_MAX(config->in_width, 1u), unnamed = gs_model__in_width(config);
    uint32_t h;

    GS_TRY(check_config(m, config, &b));
    GS_NEED((b.ir = gs_ir_new(m->path, false)) != NULL, "%s: no memory for the model's graph", m->path);
    gs_ir_set_text(b.ir, m->text);
    /* of a graph without features nothing may read them: the store will not have them */
    b.columns = h = gs_ir_input(b.ir, "features", columns, GS_F32);
    if (unnamed < columns)
        h = gs_ir_part(b.ir, h, 0, unnamed);
    if (config->training && config->input_dropout > 0)
        h = gs_ir_dropout(b.ir, h, config->input_dropout, 0);
    b.features = h;
    GS_TRY(m->network != NULL ? build_network(&b, h, &h) : build_layers(&b, h, &h));
    GS_TRY(choose_root(&b, &h));
    gs_ir_add_output(b.ir, GS_OUTPUT_LOGITS, h, GS_IR_NONE);
    GS_TRY(gs_ir_status(b.ir));
    *out = b.ir;
    b.ir = NULL; /* now the caller's */
    return GS_OK;
}
