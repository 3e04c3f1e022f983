/* model_build.c - syntax tree to IR: one layer as its text says, and the network around it.
 *
 * Nothing is simplified here: what `gnnstream model` prints first is what the text says.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/model_internal.h"

#define MAX_LAYERS 64u

typedef struct gs_builder {
    const gs_model *m;
    const gs_model_config *config;
    gs_ir *ir;
    const gs_text_layer *l;
    uint32_t index;      /* of the layer in the network */
    uint32_t in, out;    /* its widths */
    uint32_t input;      /* node of its input */
    uint32_t assigned;   /* variables that have a value so far */
    uint32_t *value;     /* [l->assigns] nodes */
    uint32_t *param;     /* [l->params] nodes */
    uint32_t next_site;  /* of a dropout inside a layer's text */
    uint32_t reduction;  /* expression of the reduction we are in, or GS_TEXT_NONE */
} gs_builder;

bool gs_model__function(const char *name, gs_op *op, bool *takes_number, float *number)
{
    static const struct {
        const char *name;
        gs_op op;
        bool takes;
        float number; /* torch's default */
    } table[] = {
        {"relu", GS_OP_RELU, false, 0},       {"leaky_relu", GS_OP_LEAKY_RELU, true, 0.01f},
        {"elu", GS_OP_ELU, true, 1},          {"sigmoid", GS_OP_SIGMOID, false, 0},
        {"tanh", GS_OP_TANH, false, 0},       {"exp", GS_OP_EXP, false, 0},
        {"log", GS_OP_LOG, false, 0},         {"sqrt", GS_OP_SQRT, false, 0},
        {"rsqrt", GS_OP_RSQRT, false, 0},     {"dropout", GS_OP_DROPOUT, true, -1}, /* the network's */
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, name) == 0) {
            *op = table[i].op;
            *takes_number = table[i].takes;
            *number = table[i].number;
            return true;
        }
    return false;
}

static uint32_t degree(gs_builder *b)
{
    return gs_ir_input(b->ir, "in_degree", 1, GS_F32);
}

static uint32_t loops(gs_builder *b)
{
    return b->config->self_loops ? gs_ir_input(b->ir, "loops", 1, GS_F32) : gs_ir_const(b->ir, 0.0f, 1);
}

/* The vertex value or parameter called `name`, GS_IR_NONE where there is none (no error recorded). */
static uint32_t lookup(gs_builder *b, const char *name)
{
    if (strcmp(name, b->l->input) == 0)
        return b->input;
    if (strcmp(name, "in_degree") == 0)
        return degree(b);
    if (strcmp(name, "loops") == 0)
        return loops(b);
    for (uint32_t i = 0; i < b->assigned; i++)
        if (strcmp(name, b->l->assign[i].name) == 0)
            return b->value[i];
    for (uint32_t i = 0; i < b->l->params; i++)
        if (strcmp(name, b->l->param[i].name) == 0)
            return b->param[i];
    return GS_IR_NONE;
}

static bool is_edge_type(const gs_node *n)
{
    return (n->type & GS_TYPE_S) != 0;
}

/* u.x or v.x */
static uint32_t build_end(gs_builder *b, const char *name)
{
    gs_ir *ir = b->ir;
    const uint32_t node = lookup(b, name + 2);
    const gs_node *n;

    if (node == GS_IR_NONE)
        return gs_ir_error(ir, GS_EFORMAT, "there is no '%s' here", name + 2);
    n = gs_ir_node(ir, node);
    if (n->op == GS_OP_PARAM)
        return gs_ir_error(ir, GS_EFORMAT, "'%s' is a parameter and belongs to no vertex: leave out '%.2s'", name + 2,
                           name);
    if (is_edge_type(n))
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
    if (strncmp(e->name, "e.", 2) == 0)
        return gs_ir_error(ir, GS_EUNSUPPORTED, "'%s': data of edges is not supported yet", e->name);
    node = lookup(b, e->name);
    if (node == GS_IR_NONE)
        return gs_ir_error(ir, GS_EFORMAT, "there is no '%s' here", e->name);
    n = gs_ir_node(ir, node);
    if (b->reduction != GS_TEXT_NONE && n->type == GS_TYPE_D)
        return gs_ir_error(ir, GS_EFORMAT, "inside %s() say u.%s (the in-neighbour's) or v.%s (this vertex's)",
                           b->m->expr[b->reduction].name, e->name, e->name);
    return node;
}

static uint32_t build(gs_builder *b, uint32_t index);

static uint32_t build_reduction(gs_builder *b, uint32_t index, bool mean)
{
    const gs_expr *e = &b->m->expr[index];
    gs_ir *ir = b->ir;
    uint32_t value;

    if (b->reduction != GS_TEXT_NONE)
        return gs_ir_error(ir, GS_EFORMAT, "%s() cannot stand inside %s(); give it a name on a line of its own", e->name,
                           b->m->expr[b->reduction].name);
    if (e->has_number)
        return gs_ir_error(ir, GS_EFORMAT, "%s() takes one argument", e->name);
    b->reduction = index;
    value = build(b, e->a);
    b->reduction = GS_TEXT_NONE;
    gs_ir_at(ir, e->line, e->column);
    value = gs_ir_sum(ir, GS_OP_SUM_IN, value, false);
    if (!mean)
        return value;
    /* A vertex without in-edges gets 0, as in PyG. */
    return gs_ir_binary(ir, GS_OP_DIV, value, gs_ir_binary(ir, GS_OP_MAX, degree(b), gs_ir_const(ir, 1.0f, 1)));
}

static uint32_t build_call(gs_builder *b, uint32_t index)
{
    const gs_expr *e = &b->m->expr[index];
    gs_ir *ir = b->ir;
    gs_op op;
    bool takes;
    float number;
    uint32_t a;

    if (strcmp(e->name, "sum") == 0 || strcmp(e->name, "mean") == 0)
        return build_reduction(b, index, e->name[0] == 'm');
    if (!gs_model__function(e->name, &op, &takes, &number))
        return gs_ir_error(ir, GS_EFORMAT,
                           "unknown function '%s' (sum, mean, relu, leaky_relu, elu, sigmoid, tanh, exp, log, sqrt, "
                           "rsqrt, dropout)",
                           e->name);
    if (e->has_number && !takes)
        return gs_ir_error(ir, GS_EFORMAT, "%s() takes one argument", e->name);
    if (e->has_number)
        number = e->number;
    else if (op == GS_OP_DROPOUT)
        number = b->config->dropout;
    a = build(b, e->a);
    gs_ir_at(ir, e->line, e->column);
    if (op != GS_OP_DROPOUT)
        return gs_ir_unary(ir, op, a, number);
    if (!(number >= 0.0f && number < 1.0f))
        return gs_ir_error(ir, GS_EFORMAT, "dropout(): the probability must be at least 0 and below 1");
    return b->config->training && number > 0.0f ? gs_ir_dropout(ir, a, number, b->next_site++) : a;
}

static uint32_t build_matmul(gs_builder *b, const gs_expr *e)
{
    const uint32_t a = build(b, e->a);
    uint32_t w = GS_IR_NONE;

    gs_ir_at(b->ir, e->line, e->column);
    for (uint32_t i = 0; i < b->l->params; i++)
        if (strcmp(e->name, b->l->param[i].name) == 0)
            w = b->param[i];
    if (w == GS_IR_NONE)
        return gs_ir_error(b->ir, GS_EFORMAT, "right of @ a parameter must stand, and '%s' is none", e->name);
    return gs_ir_binary(b->ir, e->transposed ? GS_OP_MATMUL_T : GS_OP_MATMUL, a, w);
}

static uint32_t build(gs_builder *b, uint32_t index)
{
    const gs_expr *e = &b->m->expr[index];
    uint32_t x, y;

    gs_ir_at(b->ir, e->line, e->column);
    switch (e->kind) {
    case GS_EXPR_NUMBER:
        return gs_ir_const(b->ir, e->number, 1);
    case GS_EXPR_NAME:
        return build_name(b, e);
    case GS_EXPR_CALL:
        return build_call(b, index);
    case GS_EXPR_MATMUL:
        return build_matmul(b, e);
    case GS_EXPR_NEG:
        x = build(b, e->a);
        gs_ir_at(b->ir, e->line, e->column);
        return gs_ir_unary(b->ir, GS_OP_NEG, x, 0);
    case GS_EXPR_BINARY:
        x = build(b, e->a);
        y = build(b, e->b);
        gs_ir_at(b->ir, e->line, e->column);
        return gs_ir_binary(b->ir, e->op, x, y);
    }
    return GS_IR_NONE;
}

static uint32_t width_of(gs_builder *b, const gs_dim *d)
{
    if (d->name[0] == 0)
        return d->value;
    if (strcmp(d->name, b->l->in.name) == 0)
        return b->in;
    if (strcmp(d->name, b->l->out.name) == 0)
        return b->out;
    gs_ir_at(b->ir, d->line, d->column);
    gs_ir_error(b->ir, GS_EFORMAT, "'%s' is neither a number nor a width of this layer", d->name);
    return 1;
}

/* A width that the text fixes, or names twice, must be what the network asks for. */
static void check_width(gs_builder *b, const gs_dim *d, uint32_t asked, const char *what)
{
    const uint32_t has = width_of(b, d);
    gs_ir_at(b->ir, d->line, d->column);
    if (has != asked)
        gs_ir_error(b->ir, GS_EFORMAT, "layer %u of the network has %s width %u, the text says %u", b->index, what, asked,
                    has);
}

static void build_params(gs_builder *b)
{
    char name[2 * GS_TEXT_NAME + 16];
    for (uint32_t i = 0; i < b->l->params; i++) {
        const gs_text_param *p = &b->l->param[i];
        const uint32_t first = width_of(b, &p->dim[0]);
        snprintf(name, sizeof(name), "convs.%u.%s", b->index, p->name);
        gs_ir_at(b->ir, p->line, p->column);
        b->param[i] = p->dims == 2 ? gs_ir_param(b->ir, name, 2, first, width_of(b, &p->dim[1]))
                                   : gs_ir_param(b->ir, name, 1, 1, first);
    }
}

static gs_status build_layer(gs_builder *b, uint32_t *out)
{
    const gs_text_layer *l = b->l;
    char label[2 * GS_TEXT_NAME + 16];
    const gs_node *n;
    uint32_t result;
    gs_status st = GS_ENOMEM;

    b->value = gs_malloc_array((size_t)l->assigns + 1, sizeof(*b->value));
    b->param = gs_malloc_array((size_t)l->params + 1, sizeof(*b->param));
    if (b->value == NULL || b->param == NULL) {
        gs_fail(st, "%s: no memory for the model's graph", b->m->path);
        goto done;
    }
    check_width(b, &l->in, b->in, "input");
    check_width(b, &l->out, b->out, "output");
    build_params(b);
    for (b->assigned = 0; b->assigned < l->assigns; b->assigned++) {
        b->value[b->assigned] = build(b, l->assign[b->assigned].expr);
        snprintf(label, sizeof(label), "convs.%u.%s", b->index, l->assign[b->assigned].name);
        gs_ir_label(b->ir, b->value[b->assigned], label);
    }
    result = build(b, l->result);
    if ((st = gs_ir_status(b->ir)) != GS_OK)
        goto done;
    n = gs_ir_node(b->ir, result);
    gs_ir_at(b->ir, b->m->expr[l->result].line, b->m->expr[l->result].column);
    if (is_edge_type(n))
        gs_ir_error(b->ir, GS_EFORMAT, "a layer returns a value of vertices; this is one of edges: sum() it");
    else if (n->width != b->out)
        gs_ir_error(b->ir, GS_EFORMAT, "the layer returns width %u instead of %u", n->width, b->out);
    snprintf(label, sizeof(label), "convs.%u.out", b->index);
    gs_ir_label(b->ir, result, label);
    *out = result;
    st = gs_ir_status(b->ir);
done:
    gs_free(b->value);
    gs_free(b->param);
    b->value = b->param = NULL;
    return st;
}

static gs_status check_config(const gs_model *m, const gs_model_config *c, gs_op *act, float *alpha, bool *has_act)
{
    bool takes;
    if (c->layers == 0 || c->layers > MAX_LAYERS)
        return gs_fail(GS_EINVAL, "--layers %u: must be from 1 to %u", c->layers, MAX_LAYERS);
    if (c->in_width == 0)
        return gs_fail(GS_EINVAL, "%s: the graph has no features for the first layer", m->path);
    if (c->classes == 0 || (c->layers > 1 && c->hidden == 0))
        return gs_fail(GS_EINVAL, "%s: widths %u (hidden) and %u (classes) must not be 0", m->path, c->hidden, c->classes);
    if (!(c->dropout >= 0 && c->dropout < 1) || !(c->input_dropout >= 0 && c->input_dropout < 1))
        return gs_fail(GS_EINVAL, "dropout %g, input dropout %g: must be at least 0 and below 1", (double)c->dropout,
                       (double)c->input_dropout);
    *has_act = c->act != NULL && strcmp(c->act, "none") != 0;
    if (*has_act && (!gs_model__function(c->act, act, &takes, alpha) || *act == GS_OP_DROPOUT))
        return gs_fail(GS_EINVAL, "--act %s: not one of relu, leaky_relu, elu, sigmoid, tanh, none", c->act);
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

gs_status gs_model_build(gs_ir **out, const gs_model *m, const gs_model_config *config)
{
    gs_builder b = {.m = m, .config = config, .next_site = config->layers, .reduction = GS_TEXT_NONE};
    gs_op act = GS_OP_RELU;
    float alpha = 0;
    bool has_act = false;
    uint32_t h;
    gs_status st = check_config(m, config, &act, &alpha, &has_act);

    if (st != GS_OK)
        return st;
    if ((b.ir = gs_ir_new(m->path, false)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's graph", m->path);
    h = gs_ir_input(b.ir, "features", config->in_width, GS_F32);
    if (config->training && config->input_dropout > 0)
        h = gs_ir_dropout(b.ir, h, config->input_dropout, 0);
    for (uint32_t i = 0; i < config->layers; i++) {
        const bool last = i + 1 == config->layers;
        char label[32];
        b.l = &m->layer[text_layer(m, config, i)];
        b.index = i;
        b.input = h;
        b.in = i == 0 ? config->in_width : config->hidden;
        b.out = last ? config->classes : config->hidden;
        if ((st = build_layer(&b, &h)) != GS_OK)
            goto done;
        if (last)
            break;
        gs_ir_at(b.ir, 0, 0);
        if (has_act)
            h = gs_ir_unary(b.ir, act, h, alpha);
        snprintf(label, sizeof(label), "layer%u.h", i);
        gs_ir_label(b.ir, h, label);
        if (config->training && config->dropout > 0)
            h = gs_ir_dropout(b.ir, h, config->dropout, i + 1);
    }
    gs_ir_add_output(b.ir, GS_OUTPUT_LOGITS, h, GS_IR_NONE);
    if ((st = gs_ir_status(b.ir)) != GS_OK)
        goto done;
    *out = b.ir;
    b.ir = NULL;
done:
    gs_ir_free(b.ir);
    return st;
}
