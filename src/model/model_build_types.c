/* model_build_types.c - what a text says of the types of vertices.
 *
 * The type of a vertex is a value of one number, of which everything here is made: x @ W[v.type] is one product of as
 * many blocks of columns as there are types, x in that of its own type and 0 in the others, with the types' matrices
 * one above the other. So values, gradients, batches and devices know nothing of types. */
#include <stdio.h>
#include <string.h>

#include "base/initial.h"
#include "model/model_internal.h"

#define MOST_ROW 65536u /* numbers of all types that a vertex has side by side */

uint32_t gs_model__vertex_types(const gs_builder *b)
{
    return b->config->types == NULL ? 1 : b->config->types->types;
}

uint32_t gs_model__vertex_type(gs_builder *b, bool source)
{
    uint32_t type;

    if (b->config->types == NULL)
        return gs_model__number(b, 0.0f);
    type = gs_ir_input(b->ir, "vertex_type", 1, GS_F32);
    return source ? gs_ir_unary(b->ir, GS_OP_SRC, type, 0) : type;
}

/* ", author, paper" */
static const char *names_of(const gs_type_table *t, char text[160])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t k = 0; k < t->types && used < 120; k++)
        used += (size_t)snprintf(text + used, 160 - used, "%s%.40s", k > 0 ? ", " : "", t->type[k].name);
    return text;
}

/* The type of vertices of this name; NULL with an error recorded where there is none. */
static const gs_vertex_type *find_type(gs_builder *b, const char *name, const char *word)
{
    const gs_type_table *const t = b->config->types;
    char text[160];

    for (uint32_t k = 0; t != NULL && k < t->types; k++)
        if (strcmp(t->type[k].name, name) == 0)
            return &t->type[k];
    if (t == NULL)
        gs_ir_error(b->ir, GS_EFORMAT, "'%s': this graph's vertices are of one type, without a name", word);
    else
        gs_ir_error(b->ir, GS_EFORMAT, "'%s': the types of this graph's vertices are %s", word, names_of(t, text));
    return NULL;
}

uint32_t gs_model__type_number(gs_builder *b, const char *name)
{
    const gs_vertex_type *const v = find_type(b, name + 5, name);
    return v == NULL ? GS_IR_NONE : gs_model__number(b, (float)(v - b->config->types->type));
}

uint32_t gs_model__type_features(const gs_builder *b, const char *name)
{
    const gs_type_table *const t = b->config->types;
    const char *const dot = strrchr(name, '.');

    if (t == NULL || dot == NULL || strcmp(dot, ".features") != 0)
        return 0;
    for (uint32_t k = 0; k < t->types; k++)
        if (strncmp(t->type[k].name, name, (size_t)(dot - name)) == 0 && t->type[k].name[dot - name] == '\0')
            return t->type[k].features;
    return 0;
}

/* 1 where the type is the k-th, else 0. */
static uint32_t is_type(gs_builder *b, uint32_t type, uint32_t k)
{
    return gs_ir_binary(b->ir, GS_OP_EQ, type, gs_model__number(b, (float)k));
}

uint32_t gs_model__input_of(gs_builder *b, const gs_expr *e)
{
    const gs_vertex_type *const v = find_type(b, e->prefix, e->prefix);
    const uint32_t all = b->features;
    uint32_t own;

    if (v == NULL)
        return GS_IR_NONE;
    if (v->features == 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "input(%s): vertices of type %s have no features", v->name, v->name);
    if (e->has_number && e->number != (float)v->features)
        return gs_ir_error(b->ir, GS_EFORMAT, "input(%s): vertices of type %s have %u features, the text says %g",
                           v->name, v->name, v->features, (double)e->number);
    own = v->features < gs_ir_node(b->ir, all)->width ? gs_ir_part(b->ir, all, 0, v->features) : all;
    if (gs_model__vertex_types(b) == 1)
        return own;
    return gs_ir_ternary(b->ir, GS_OP_WHERE,
                         is_type(b, gs_model__vertex_type(b, false), (uint32_t)(v - b->config->types->type)), own,
                         gs_model__number(b, 0.0f));
}

/* a beside itself, as often as there are types, and 0 in all places but that of the type. */
static uint32_t in_place_of_type(gs_builder *b, uint32_t a, uint32_t type)
{
    uint32_t all = GS_IR_NONE;

    for (uint32_t k = 0; k < gs_model__vertex_types(b); k++) {
        const uint32_t one = gs_ir_ternary(b->ir, GS_OP_WHERE, is_type(b, type, k), a, gs_model__number(b, 0.0f));
        all = k == 0 ? one : gs_ir_binary(b->ir, GS_OP_CONCAT, all, one);
    }
    return all;
}

uint32_t gs_model__product_of_type(gs_builder *b, const gs_expr *e, uint32_t a, uint32_t w)
{
    const bool source = e->end == 'u';

    if (gs_ir_node(b->ir, a)->type != (source ? GS_TYPE_S : GS_TYPE_D))
        return gs_ir_error(b->ir, GS_EFORMAT, "left of @ %s[%c.type] a value of %s must stand", e->name, e->end,
                           source ? "the in-neighbour, as u.x," : "this vertex");
    if (gs_model__vertex_types(b) > 1)
        a = in_place_of_type(b, a, gs_model__vertex_type(b, source));
    return gs_ir_binary(b->ir, GS_OP_MATMUL, a, w);
}

uint32_t gs_model__row_of_type(gs_builder *b, const gs_expr *e, uint32_t w)
{
    const uint32_t types = gs_model__vertex_types(b);
    const bool rows = gs_ir_node(b->ir, w)->dims == 2;
    const uint32_t type = gs_model__vertex_type(b, e->end == 'u');
    uint32_t all = GS_IR_NONE;

    if (types == 1)
        return w;
    for (uint32_t k = 0; k < types; k++)
        all = k == 0 ? is_type(b, type, k) : gs_ir_binary(b->ir, GS_OP_CONCAT, all, is_type(b, type, k));
    return rows ? gs_ir_binary(b->ir, GS_OP_MATMUL, all, w)
                : gs_ir_unary(b->ir, GS_OP_ROWSUM, gs_ir_binary(b->ir, GS_OP_MUL, all, w), 0);
}

/* ---- a graph without features ------------------------------------------- */

/* Its features are the identity, so h @ W is W: a learned row for each vertex, and h @ W[e.type] with W [types, in, n]
 * a row for each vertex and type (Schlichtkrull et al., ESWC'18; PyG's RGCNConv with x = None). These lie side by side,
 * and an edge picks that of its type. */

static bool is_width(const gs_dim *d, const char *name)
{
    return d->factors == 1 && strcmp(d->factor[0].name, name) == 0;
}

bool gs_model__is_of_input(const gs_text_layer *l, const gs_text_param *p)
{
    const char *const in = l->in.factors == 1 ? l->in.factor[0].name : "";
    const bool typed = p->dims == 3 && (is_width(&p->dim[0], "types") || is_width(&p->dim[0], "bases"));

    return in[0] != '\0' && !p->fixed && (p->dims == 2 || typed) && is_width(&p->dim[p->dims - 2], in) &&
           !is_width(&p->dim[p->dims - 1], in);
}

static bool is_input(const gs_text_layer *l, const gs_expr *e)
{
    const char *name = e->name;

    if (e->kind != GS_EXPR_NAME)
        return false;
    name += strncmp(name, "u.", 2) == 0 || strncmp(name, "v.", 2) == 0 ? 2 : 0;
    return strcmp(name, l->input) == 0 || strncmp(name, "input.", 6) == 0;
}

bool gs_model__takes_identity(const gs_model *m)
{
    const gs_text_layer *const l = &m->layer[0];
    uint32_t uses = 0, products = 0, matrices = 0;

    if (m->network != NULL)
        return false;
    for (uint32_t i = 0; i < l->params; i++) {
        matrices += gs_model__is_of_input(l, &l->param[i]);
        for (uint32_t k = 0; k < l->param[i].dims; k++)
            uses += is_width(&l->param[i].dim[k], l->in.factor[0].name);
    }
    if (matrices == 0 || uses != matrices)
        return false;
    uses = 0;
    for (uint32_t i = l->first_expr; i < l->end_expr; i++) {
        const gs_expr *const e = &m->expr[i];
        uses += is_input(l, e) || e->kind == GS_EXPR_INPUT;
        products += e->kind == GS_EXPR_MATMUL && is_input(l, &m->expr[e->a]);
    }
    return uses == products;
}

uint32_t gs_model__rows_of_input(gs_builder *b, const gs_text_param *p, const char *name)
{
    const uint32_t blocks = p->dims == 3 ? gs_model__width_of(b, &p->dim[0]) : 1;
    const uint32_t width = gs_model__width_of(b, &p->dim[p->dims - 1]);
    uint32_t table;

    gs_ir_at(b->ir, p->line, p->column);
    if ((uint64_t)blocks * width > MOST_ROW)
        return gs_ir_error(b->ir, GS_EUNSUPPORTED,
                           "'%s': of a graph without features each vertex has %u rows of %u numbers, at most %u",
                           p->name, blocks, width, MOST_ROW);
    table = gs_ir_table(b->ir, name, blocks * width);
    if (p->dims == 3)
        gs_ir_table_blocks(b->ir, table, blocks);
    gs_ir_initial(b->ir, table, gs_initial_glorot((uint32_t)b->config->vertices, width));
    return table;
}

/* The rows of all types side by side that `w` is, and how wide each is; false where it is no such. */
static bool rows_of_types(const gs_builder *b, uint32_t w, uint32_t *width)
{
    const gs_node n = *gs_ir_node(b->ir, w), table = n.op == GS_OP_MIX_T ? *gs_ir_node(b->ir, n.in[0]) : n;

    *width = gs_node_table_blocks(&table) > 0 ? table.width / gs_node_table_blocks(&table) : table.width;
    return gs_node_table(&table) != NULL;
}

bool gs_model__product_of_identity(gs_builder *b, const gs_expr *e, uint32_t a, uint32_t *out)
{
    const gs_node n = *gs_ir_node(b->ir, a);
    const bool source = n.op == GS_OP_SRC && n.in[0] == b->here;
    const uint32_t w = gs_model__lookup(b, e->name);
    uint32_t width;

    if (w == GS_IR_NONE || !rows_of_types(b, w, &width))
        return false;
    if (!source && a != b->here) { /* of bases: W = c @ V */
        *out = gs_ir_binary(b->ir, GS_OP_MIX_T, w, a);
        return true;
    }
    if (e->end != 'e')
        *out = source ? gs_ir_unary(b->ir, GS_OP_SRC, w, 0) : w;
    else if (!source)
        *out = gs_ir_error(b->ir, GS_EFORMAT, "left of @ %s[e.type] a value of the in-neighbour must stand, as u.x",
                           e->name);
    else
        *out = gs_model__types(b) > 1 ? gs_ir_resize(b->ir, GS_OP_TYPE_SRC, w, width)
                                      : gs_ir_unary(b->ir, GS_OP_SRC, w, 0);
    return true;
}

/* A row of 1 of so many types is counted by type. */
uint32_t gs_model__share_of_type(gs_builder *b)
{
    gs_ir *const ir = b->ir;
    const uint32_t one = gs_model__number(b, 1.0f), types = gs_model__types(b);
    const uint32_t ones = gs_ir_unary(ir, GS_OP_STEP, gs_ir_binary(ir, GS_OP_ADD, gs_model__degree(b), one), 0);
    const uint32_t count = gs_ir_resize(ir, GS_OP_SPLIT_IN, gs_ir_unary(ir, GS_OP_SRC, ones, 0), types);

    return gs_ir_resize(ir, GS_OP_TYPE_DST,
                        gs_ir_binary(ir, GS_OP_DIV, one, gs_ir_binary(ir, GS_OP_MAX, count, one)), 1);
}
