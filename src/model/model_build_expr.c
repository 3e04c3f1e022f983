/* model_build_expr.c - an expression of a layer's text to IR.
 *
 * Nothing is simplified here: what `gnnstream model` prints first is what the text says.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/model_internal.h"

#define FAR 1e30f /* below all scores, and finite also when some are added */

bool gs_model__function(const char *name, gs_op *op)
{
    for (gs_op i = 0; i < GS_OP_COUNT; i++) {
        const char *const text = gs_op_facts_of(i)->text;
        if (text != NULL && isalpha((unsigned char)text[0]) && strcmp(text, name) == 0) {
            *op = i;
            return true;
        }
    }
    return false;
}

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

static uint32_t number(gs_builder *b, float v)
{
    return gs_ir_const(b->ir, v, 1);
}

static uint32_t degree(gs_builder *b)
{
    return gs_ir_input(b->ir, "in_degree", 1, GS_F32);
}

static uint32_t loops(gs_builder *b)
{
    return b->config->self_loops ? gs_ir_input(b->ir, "loops", 1, GS_F32) : number(b, 0.0f);
}

static bool is_of_edges(const gs_node *n)
{
    return (n->type & GS_TYPE_S) != 0;
}

/* ---- names ---- */

/* input.0 is the network's input, input.1 what the second layer gets, and so on. */
static uint32_t build_input(gs_builder *b, const char *name)
{
    char *end;
    const unsigned long k = strtoul(name + 6, &end, 10);
    if (name[6] < '0' || name[6] > '9' || *end != 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s': after 'input.' the number of a layer must stand", name);
    if (k > b->index)
        return gs_ir_error(b->ir, GS_EFORMAT, "'%s' is not there yet in layer %u of the network", name, b->index);
    return b->input[k];
}

uint32_t gs_model__lookup(gs_builder *b, const char *name)
{
    if (strcmp(name, b->l->input) == 0)
        return b->input[b->index];
    if (strcmp(name, "in_degree") == 0)
        return degree(b);
    if (strcmp(name, "loops") == 0)
        return loops(b);
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
    if (is_of_edges(n))
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is a value of edges already: leave out '%.2s'", name + 2, name);
    return name[0] == 'u' ? gs_ir_unary(ir, GS_OP_SRC, node, 0) : node;
}

static uint32_t build_name(gs_builder *b, const gs_expr *e)
{
    gs_ir *ir = b->ir;
    uint32_t node;
    const gs_node *n;

    if (strncmp(e->name, "u.", 2) == 0 || strncmp(e->name, "v.", 2) == 0)
        return build_end(b, e->name);
    if (strcmp(e->name, "e.weight") == 0)
        return b->config->edge_weights ? gs_ir_weight(ir) : number(b, 1.0f);
    if (strcmp(e->name, "e.type") == 0)
        return gs_ir_error(ir, GS_EFORMAT, "'e.type' can only stand as W[e.type], right of @");
    if (strncmp(e->name, "e.", 2) == 0)
        return gs_ir_error(ir, GS_EFORMAT, "'%s': edges have e.weight and e.type", e->name);
    node = gs_model__lookup(b, e->name);
    if (node == GS_IR_NONE)
        return gs_ir_error(ir, GS_EFORMAT, "there is no '%s' here", e->name);
    n = gs_ir_node(ir, node);
    if (b->reduction != GS_TEXT_NONE && n->type == GS_TYPE_D)
        return gs_ir_error(ir, GS_EFORMAT, "inside %s() say u.%s (the in-neighbour's) or v.%s (this vertex's)",
                           b->m->expr[b->reduction].name, e->name, e->name);
    return node;
}

/* ---- two sides ---- */

/* A number a head against several a head: each is repeated for its head. */
static void fit_heads(gs_builder *b, uint32_t *x, uint32_t *y)
{
    const uint32_t heads = gs_model__heads(b);
    uint32_t wx, wy;

    if (*x == GS_IR_NONE || *y == GS_IR_NONE || heads == 1)
        return;
    wx = gs_ir_node(b->ir, *x)->width;
    wy = gs_ir_node(b->ir, *y)->width;
    if (wx == heads && wy > heads && wy % heads == 0)
        *x = gs_ir_resize(b->ir, GS_OP_SPREAD, *x, wy);
    else if (wy == heads && wx > heads && wx % heads == 0)
        *y = gs_ir_resize(b->ir, GS_OP_SPREAD, *y, wx);
}

static uint32_t binary(gs_builder *b, gs_op op, uint32_t x, uint32_t y)
{
    fit_heads(b, &x, &y);
    return gs_ir_binary(b->ir, op, x, y);
}

/* ---- reductions ---- */

/* Values at the vertex itself, so far: scratch of gs_model__at_self(). */
typedef struct gs_at_self {
    gs_builder *b;
    uint32_t nodes, *map;
} gs_at_self;

static uint32_t at_self(const gs_at_self *x, uint32_t value)
{
    gs_ir *ir = x->b->ir;
    const gs_node n = *gs_ir_node(ir, value);
    uint32_t in[GS_IR_INPUTS] = {GS_IR_NONE, GS_IR_NONE, GS_IR_NONE}, made;

    if (!is_of_edges(&n))
        return value;
    if (value < x->nodes && x->map[value] != GS_IR_NONE)
        return x->map[value];
    for (uint32_t i = 0; i < x->b->softs; i++)
        if (x->b->soft[i].edge == value)
            return x->b->soft[i].self;
    if (n.op == GS_OP_SRC)
        return n.in[0];
    if (n.op == GS_OP_WEIGHT)
        return number(x->b, 1.0f);
    if (n.op == GS_OP_IS_LOOP) /* the vertex's own edge is none of the graph's */
        return number(x->b, 0.0f);
    if (n.op == GS_OP_TYPED)
        return gs_ir_error(ir, GS_EFORMAT, "W[e.type] means nothing for the vertex itself: leave out 'self'");
    if (n.op == GS_OP_EDGE_MASK && !n.self && x->b->config->self_loops)
        return gs_ir_error(ir, GS_EFORMAT, "what runs over the vertex itself is dropped inside the sum(..., self)");
    for (uint32_t k = 0; k < gs_node_inputs(&n); k++)
        if ((in[k] = at_self(x, n.in[k])) == GS_IR_NONE)
            return GS_IR_NONE;
    made = gs_ir_like(ir, &n, in);
    if (value < x->nodes)
        x->map[value] = made;
    return made;
}

uint32_t gs_model__at_self(gs_builder *b, uint32_t value)
{
    gs_at_self x = {.b = b, .nodes = gs_ir_count(b->ir)};
    uint32_t made;

    if (value == GS_IR_NONE)
        return value;
    x.map = gs_malloc_array((size_t)x.nodes + 1, sizeof(*x.map));
    if (x.map == NULL)
        return gs_ir_error(b->ir, GS_ENOMEM, "no memory for the model's graph");
    memset(x.map, 0xff, ((size_t)x.nodes + 1) * sizeof(*x.map)); /* GS_IR_NONE */
    made = at_self(&x, value);
    gs_free(x.map);
    return made;
}

/* Remembers what a softmax is at the vertex itself; `edge` again. */
static uint32_t remember_soft(gs_builder *b, uint32_t edge, uint32_t self)
{
    if (edge == GS_IR_NONE || self == GS_IR_NONE)
        return GS_IR_NONE;
    if (b->softs == b->soft_cap) {
        const uint32_t cap = b->soft_cap == 0 ? 8 : b->soft_cap * 2;
        gs_soft *q = gs_realloc(b->soft, cap * sizeof(*q));
        if (q == NULL)
            return gs_ir_error(b->ir, GS_ENOMEM, "no memory for the model's graph");
        b->soft = q;
        b->soft_cap = cap;
    }
    b->soft[b->softs++] = (gs_soft){edge, self};
    return edge;
}

/* The graph's loops have weights of their own, and the value depends on weights: they cannot be taken out by their
 * number. */
static bool loops_differ(gs_builder *b, uint32_t value)
{
    bool *seen, found = false;

    if (!b->config->self_loops || !b->config->edge_weights || value == GS_IR_NONE)
        return false;
    if ((seen = gs_calloc((size_t)value + 1, sizeof(*seen))) == NULL) {
        gs_ir_error(b->ir, GS_ENOMEM, "no memory for the model's graph");
        return false;
    }
    seen[value] = true;
    for (uint32_t i = value + 1; i-- > 0 && !found;) {
        const gs_node *n = gs_ir_node(b->ir, i);
        found = seen[i] && n->op == GS_OP_WEIGHT;
        for (uint32_t k = 0; seen[i] && is_of_edges(n) && k < gs_node_inputs(n); k++)
            seen[n->in[k]] = true;
    }
    gs_free(seen);
    return found;
}

/* 1 for the graph's self loops, 0 for its other edges. */
static uint32_t is_loop(gs_builder *b)
{
    const uint32_t id = gs_ir_input(b->ir, "input_id", 1, GS_U32);
    return gs_ir_binary(b->ir, GS_OP_IS_LOOP, gs_ir_unary(b->ir, GS_OP_SRC, id, 0), id);
}

/* The value, but far from all others at the graph's self loops: finite, so that a vertex with nothing but loops divides
 * nothing by 0. */
static uint32_t away_from_loops(gs_builder *b, uint32_t value, float away)
{
    return gs_ir_binary(b->ir, GS_OP_ADD, value, gs_ir_binary(b->ir, GS_OP_MUL, is_loop(b), number(b, away)));
}

/* softmax over the in-edges is exp(s - lse). With the vertex itself, whose score is t, and its L
 * self loops counted once: q = sigmoid(t - lse) is its share beside all the edges, and
 *     at the vertex   q / (1 - L q),
 *     at an edge      exp(s - lse) (1 - q) / (1 - L q);
 * exact, and safe where there are no edges (lse = -inf: q = 1) or only loops (q <= 1 / (L + 1)). Loops that differ from
 * the vertex's own edge have scores so low that they do not count, and L is 0. */
static uint32_t build_softmax(gs_builder *b, uint32_t score, bool self)
{
    gs_ir *ir = b->ir;
    const bool differ = self && loops_differ(b, score);
    const uint32_t own = score;
    uint32_t lse, p, t, q, r, rest;

    if (score == GS_IR_NONE)
        return score;
    if (gs_ir_node(ir, score)->type == GS_TYPE_P)
        return gs_ir_error(ir, GS_EFORMAT, "softmax() of what is the same for all edges");
    if (differ)
        score = away_from_loops(b, score, -FAR);
    lse = gs_ir_sum(ir, GS_OP_LSE_IN, score, false);
    p = gs_ir_unary(ir, GS_OP_EXP, gs_ir_binary(ir, GS_OP_SUB, score, lse), 0);
    if (!self)
        return p;
    t = gs_model__at_self(b, own);
    q = gs_ir_unary(ir, GS_OP_SIGMOID, gs_ir_binary(ir, GS_OP_SUB, t, lse), 0);
    r = gs_ir_unary(ir, GS_OP_SIGMOID, gs_ir_binary(ir, GS_OP_SUB, lse, t), 0);
    rest = gs_ir_binary(ir, GS_OP_SUB, number(b, 1.0f),
                        gs_ir_binary(ir, GS_OP_MUL, differ ? number(b, 0.0f) : loops(b), q));
    p = gs_ir_binary(ir, GS_OP_MUL, gs_ir_binary(ir, GS_OP_DIV, r, rest), p);
    return remember_soft(b, p, gs_ir_binary(ir, GS_OP_DIV, q, rest));
}

/* Edges that a mean runs over; a vertex without any gets 0, as in PyG. */
static uint32_t mean_of(gs_builder *b, uint32_t sum, bool self)
{
    gs_ir *ir = b->ir;
    uint32_t count = degree(b);
    if (self)
        count = gs_ir_binary(ir, GS_OP_ADD, gs_ir_binary(ir, GS_OP_SUB, count, loops(b)), number(b, 1.0f));
    else
        count = gs_ir_binary(ir, GS_OP_MAX, count, number(b, 1.0f));
    return gs_ir_binary(ir, GS_OP_DIV, sum, count);
}

static uint32_t build_sum(gs_builder *b, const gs_expr *e, uint32_t value)
{
    gs_ir *ir = b->ir;
    const bool mean = e->name[0] == 'm', self = e->over == GS_OVER_SELF;
    uint32_t sum, own;

    if (e->over == GS_OVER_TYPE && gs_model__types(b) > 1) {
        gs_node n = *gs_ir_node(ir, value);
        if (!mean || n.op != GS_OP_TYPED)
            return gs_ir_error(ir, GS_EFORMAT, "only mean(... @ W[e.type], type) is by type");
        n.self = true;
        return gs_ir_sum(ir, GS_OP_SUM_IN, gs_ir_like(ir, &n, n.in), false);
    }
    if (self && loops_differ(b, value)) {
        sum = gs_ir_binary(ir, GS_OP_MUL, value, gs_ir_binary(ir, GS_OP_SUB, number(b, 1.0f), is_loop(b)));
        sum = gs_ir_binary(ir, GS_OP_ADD, gs_ir_sum(ir, GS_OP_SUM_IN, sum, false), gs_model__at_self(b, value));
        return mean ? mean_of(b, sum, self) : sum;
    }
    sum = gs_ir_sum(ir, GS_OP_SUM_IN, value, false);
    if (self) {
        own = gs_model__at_self(b, value);
        sum = gs_ir_binary(ir, GS_OP_ADD, sum,
                           gs_ir_binary(ir, GS_OP_MUL, gs_ir_binary(ir, GS_OP_SUB, number(b, 1.0f), loops(b)), own));
    }
    return mean ? mean_of(b, sum, self) : sum;
}

/* With the vertex itself: its own value alone where there are no edges. */
static uint32_t build_extreme(gs_builder *b, const gs_expr *e, uint32_t value)
{
    gs_ir *ir = b->ir;
    const bool min = e->name[1] == 'i';
    const bool differ = e->over == GS_OVER_SELF && loops_differ(b, value);
    const uint32_t far = differ ? away_from_loops(b, value, min ? FAR : -FAR) : value;
    const uint32_t y = gs_ir_sum(ir, min ? GS_OP_MIN_IN : GS_OP_MAX_IN, far, false);
    uint32_t own, both, has;

    if (e->over == GS_OVER_TYPE)
        return gs_ir_error(ir, GS_EFORMAT, "only mean(... @ W[e.type], type) is by type");
    if (e->over != GS_OVER_SELF)
        return y;
    own = gs_model__at_self(b, value);
    if (min)
        both = gs_ir_unary(
            ir, GS_OP_NEG,
            gs_ir_binary(ir, GS_OP_MAX, gs_ir_unary(ir, GS_OP_NEG, y, 0), gs_ir_unary(ir, GS_OP_NEG, own, 0)), 0);
    else
        both = gs_ir_binary(ir, GS_OP_MAX, y, own);
    has = gs_ir_unary(ir, GS_OP_STEP, degree(b), 0);
    return gs_ir_binary(ir, GS_OP_ADD, gs_ir_binary(ir, GS_OP_MUL, both, has),
                        gs_ir_binary(ir, GS_OP_MUL, own, gs_ir_binary(ir, GS_OP_SUB, number(b, 1.0f), has)));
}

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
    bool self = e->over == GS_OVER_SELF;
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
    if (softmax && e->over == GS_OVER_TYPE)
        return gs_ir_error(b->ir, GS_EFORMAT, "only mean(... @ W[e.type], type) is by type");
    if (softmax) { /* inside sum(..., self) it runs over the same */
        self |= outer != GS_TEXT_NONE && b->m->expr[outer].over == GS_OVER_SELF;
        return build_softmax(b, value, self);
    }
    if (strcmp(e->name, "max") == 0 || strcmp(e->name, "min") == 0)
        return build_extreme(b, e, value);
    if (strcmp(e->name, "lstm") == 0)
        return build_lstm(b, e, value);
    return build_sum(b, e, value);
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

/* Functions that know heads, the network, or whole rows. false where it is none of them. */
static bool build_special(gs_builder *b, const gs_expr *e, uint32_t *out)
{
    const uint32_t heads = gs_model__heads(b);
    gs_ir *ir = b->ir;
    uint32_t a, other;

    if (strcmp(e->name, "dot") != 0 && strcmp(e->name, "head_mean") != 0 && strcmp(e->name, "act") != 0 &&
        strcmp(e->name, "concat") != 0 && strcmp(e->name, "row_softmax") != 0 && !gs_model__is_norm(e->name))
        return false;
    if (e->has_number) {
        *out = gs_ir_error(ir, GS_EFORMAT, "%s() takes one argument", e->name);
        return true;
    }
    a = gs_model__build_expr(b, e->a);
    other = e->b != GS_TEXT_NONE ? gs_model__build_expr(b, e->b) : GS_IR_NONE;
    gs_ir_at(ir, e->line, e->column);
    if (strcmp(e->name, "dot") == 0)
        *out = gs_ir_resize(ir, GS_OP_FOLD, binary(b, GS_OP_MUL, a, other), heads);
    else if (strcmp(e->name, "concat") == 0)
        *out = gs_ir_binary(ir, GS_OP_CONCAT, a, other);
    else if (strcmp(e->name, "row_softmax") == 0)
        *out = build_row_softmax(b, a);
    else if (strcmp(e->name, "act") == 0)
        *out = b->has_act ? gs_ir_unary(ir, b->act, a, b->act_alpha) : a;
    else if (gs_model__is_norm(e->name))
        *out = gs_model__build_norm(b, e, a);
    else if (a == GS_IR_NONE || heads == 1)
        *out = a;
    else if (is_of_edges(gs_ir_node(ir, a)) || gs_ir_node(ir, a)->width % heads != 0)
        *out = gs_ir_error(ir, GS_EFORMAT, "head_mean() needs a value of vertices, %u * so many wide", heads);
    else
        *out = gs_ir_binary(ir, GS_OP_MUL, gs_ir_resize(ir, GS_OP_ACROSS, a, gs_ir_node(ir, a)->width / heads),
                            number(b, 1.0f / (float)heads));
    return true;
}

/* Does the value at the vertex itself come from a softmax that runs over the vertex too? */
static bool has_self(const gs_builder *b, uint32_t value)
{
    for (uint32_t i = 0; i < b->softs; i++)
        if (b->soft[i].edge == value)
            return true;
    return b->reduction != GS_TEXT_NONE && b->m->expr[b->reduction].over == GS_OVER_SELF;
}

/* Of a value of both ends (of a number or parameter, inside a reduction): for each edge by itself. */
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

/* "relu, leaky_relu, ...": what the table of operators has. */
static const char *function_names(char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = 0;
    for (gs_op i = 0; i < GS_OP_COUNT && at < bytes; i++) {
        const char *const name = gs_op_facts_of(i)->text;
        if (name != NULL && isalpha((unsigned char)name[0]) && !gs_model__is_reduction(name))
            at += (size_t)snprintf(text + at, bytes - at, ", %s", name);
    }
    return text;
}

static uint32_t unknown_function(gs_builder *b, const gs_expr *e)
{
    char names[256];
    return gs_ir_error(b->ir, GS_EFORMAT,
                       "unknown function '%s' (sum, mean, max, min, softmax, lstm, dot, concat, part, head_mean, "
                       "row_softmax, act, layer_norm, batch_norm, dropout%s)",
                       e->name, function_names(names, sizeof(names)));
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
        return binary(b, op, x, y);
    fit_heads(b, &y, &z);
    fit_heads(b, &x, &y);
    fit_heads(b, &x, &z);
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
        return number(b, e->number);
    case GS_EXPR_NAME:
        return build_name(b, e);
    case GS_EXPR_CALL:
        return build_call(b, index);
    case GS_EXPR_MATMUL:
        return gs_model__build_matmul(b, e);
    case GS_EXPR_NEG:
        x = gs_model__build_expr(b, e->a);
        gs_ir_at(b->ir, e->line, e->column);
        return gs_ir_unary(b->ir, GS_OP_NEG, x, 0);
    case GS_EXPR_BINARY:
        x = gs_model__build_expr(b, e->a);
        y = gs_model__build_expr(b, e->b);
        gs_ir_at(b->ir, e->line, e->column);
        return binary(b, e->op, x, y);
    }
    return GS_IR_NONE;
}
