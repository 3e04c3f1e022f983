/* model_build_types.c - what a text says of the types of vertices.
 *
 * The type of a vertex is a value of one number, of which everything here is made: x @ W[v.type] is one product of as
 * many blocks of columns as there are types, x in that of its own type and 0 in the others, with the types' matrices
 * one above the other. So values, gradients, batches and devices know nothing of types. */
#include <stdio.h>
#include <string.h>

#include "base/initial.h"
#include "base/size.h"
#include "model/model_internal.h"

#define MOST_TYPES 64u /* types of edges that a reduction goes over one by one */
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

/* ---- features with names ---------------------------------------------------- */

static const gs_named_feature *names_of_end(const gs_builder *b, bool of_edges, uint32_t *count)
{
    const gs_feature_table *const t = b->config->named;

    *count = t == NULL ? 0 : of_edges ? t->edges : t->vertices;
    return t == NULL ? NULL : of_edges ? t->edge : t->vertex;
}

uint32_t gs_model__named(gs_builder *b, const char *name, bool of_edges)
{
    const uint32_t columns = of_edges ? b->config->edge_features : GS_MAX(b->config->in_width, 1u);
    uint32_t count;
    const gs_named_feature *const named = names_of_end(b, of_edges, &count);

    for (uint32_t k = 0; k < count; k++) {
        if (strcmp(named[k].name, name) != 0)
            continue;
        const uint32_t all = of_edges ? gs_ir_edge_features(b->ir, columns) : b->columns;
        return named[k].columns == columns ? all : gs_ir_part(b->ir, all, named[k].first, named[k].columns);
    }
    return GS_IR_NONE;
}

uint32_t gs_model__unknown(gs_builder *b, const char *name, bool of_edges)
{
    uint32_t count;
    const gs_named_feature *const named = names_of_end(b, of_edges, &count);
    char names[200] = "";
    size_t used = 0;

    for (uint32_t k = 0; k < count && used < 140; k++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.40s", k > 0 ? ", " : "", named[k].name);
    if (of_edges && count == 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "'e.%s': edges have e.weight, e.type and e.x", name);
    if (of_edges)
        return gs_ir_error(b->ir, GS_EFORMAT, "'e.%s': the graph's edges have e.weight, e.type, e.x, and by name %s",
                           name, names);
    if (count == 0)
        return gs_ir_error(b->ir, GS_EFORMAT, "there is no '%s' here", name);
    return gs_ir_error(b->ir, GS_EFORMAT, "there is no '%s' here; the graph's features with names are %s", name, names);
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

/* ---- reductions in two levels --------------------------------------------- */

/* Within the in-edges of each type, and over types (Seastar, EuroSys'21). A sum over the sums or means within types is
 * one sum over all edges. Else each type has a sum, maximum or softmax of its own, over all in-edges, of which those of
 * other types bring nothing; of a value of the in-neighbour alone the sums of all types are one pass. What no learned
 * number is in, as counts, is computed once. */

#define FAR 1e30f /* below all values that are to be compared */

static uint32_t bin(gs_builder *b, gs_op op, uint32_t x, uint32_t y)
{
    return gs_ir_binary(b->ir, op, x, y);
}

static uint32_t choose(gs_builder *b, uint32_t condition, uint32_t x, uint32_t y)
{
    return gs_ir_ternary(b->ir, GS_OP_WHERE, condition, x, y);
}

static uint32_t ones(gs_builder *b)
{
    return gs_ir_unary(b->ir, GS_OP_STEP, bin(b, GS_OP_ADD, gs_model__degree(b), gs_model__number(b, 1.0f)), 0);
}

/* In-edges of each type, side by side. */
static uint32_t counts(gs_builder *b)
{
    return gs_ir_resize(b->ir, GS_OP_SPLIT_IN, gs_ir_unary(b->ir, GS_OP_SRC, ones(b), 0), gs_model__types(b));
}

/* A value of edges: 1 / the number of v's in-edges of the edge's type. */
static uint32_t share_of_type(gs_builder *b)
{
    const uint32_t one = gs_model__number(b, 1.0f);
    return gs_ir_resize(b->ir, GS_OP_TYPE_DST, bin(b, GS_OP_DIV, one, bin(b, GS_OP_MAX, counts(b), one)), 1);
}

/* The number of an edge's type, from 1 (numbers that are 0 for all vertices are no rows): one of the numbers of all
 * types side by side, which each vertex has. */
static uint32_t edge_type(gs_builder *b)
{
    uint32_t all = GS_IR_NONE;

    for (uint32_t t = 0; t < gs_model__types(b); t++) {
        const uint32_t number = bin(b, GS_OP_MUL, ones(b), gs_model__number(b, (float)(t + 1)));
        all = t == 0 ? number : gs_ir_binary(b->ir, GS_OP_CONCAT, all, number);
    }
    return gs_ir_resize(b->ir, GS_OP_TYPE_DST, all, 1);
}

/* The value where the edge is of the type, else a number. */
static uint32_t of_type(gs_builder *b, uint32_t type, uint32_t t, uint32_t value, float other)
{
    return choose(b, is_type(b, type, t + 1), value, gs_model__number(b, other));
}

/* The products by the matrices of all types are made once a vertex; an edge takes that of its type. */
uint32_t gs_model__product_here(gs_builder *b, uint32_t x, uint32_t w)
{
    const gs_node matrices = *gs_ir_node(b->ir, w);
    const uint32_t width = matrices.width, types = gs_model__types(b), type = edge_type(b);
    uint32_t all, y = GS_IR_NONE;

    if ((uint64_t)types * width > MOST_ROW || types > MOST_TYPES)
        return gs_ir_error(b->ir, GS_EUNSUPPORTED,
                           "v.x @ W[e.type]: of at most %u types of edges and %u numbers of all of them", MOST_TYPES,
                           MOST_ROW);
    all = matrices.op == GS_OP_BASES
              ? bin(b, GS_OP_MIX_T, bin(b, GS_OP_FAN, x, matrices.in[1]), matrices.in[0])
              : bin(b, GS_OP_FAN, x, w);
    for (uint32_t t = 0; t < types && gs_ir_status(b->ir) == GS_OK; t++) {
        const uint32_t own = gs_ir_part(b->ir, all, t * width, width);
        y = t == 0 ? own : choose(b, is_type(b, type, t + 1), own, y);
    }
    return y;
}

uint32_t gs_model__softmax_of_type(gs_builder *b, uint32_t score)
{
    const uint32_t type = edge_type(b);
    uint32_t lse = GS_IR_NONE;

    for (uint32_t t = 0; t < gs_model__types(b); t++) {
        const uint32_t own = gs_ir_sum(b->ir, GS_OP_LSE_IN, of_type(b, type, t, score, -FAR), false);
        lse = t == 0 ? own : choose(b, is_type(b, type, t + 1), own, lse);
    }
    return gs_ir_unary(b->ir, GS_OP_EXP, bin(b, GS_OP_SUB, score, lse), 0);
}

/* What a type's in-edges come to at each vertex; 0 where there are none. */
static void reduce_within(gs_builder *b, const char *within, uint32_t value, uint32_t *of)
{
    gs_ir *const ir = b->ir;
    const uint32_t types = gs_model__types(b), width = gs_ir_node(ir, value)->width, count = counts(b);
    const bool extreme = strcmp(within, "max") == 0 || strcmp(within, "min") == 0;
    const bool rows = !extreme && gs_ir_node(ir, value)->type == GS_TYPE_S && (uint64_t)types * width <= MOST_ROW;
    const uint32_t all = rows ? gs_ir_resize(ir, GS_OP_SPLIT_IN, value, types * width) : GS_IR_NONE;
    const uint32_t type = rows ? GS_IR_NONE : edge_type(b);
    const float away = strcmp(within, "max") == 0 ? -FAR : extreme ? FAR : 0.0f;
    const gs_op op = !extreme ? GS_OP_SUM_IN : away < 0 ? GS_OP_MAX_IN : GS_OP_MIN_IN;

    for (uint32_t t = 0; t < types && gs_ir_status(ir) == GS_OK; t++) {
        const uint32_t own = gs_ir_part(ir, count, t, 1);
        of[t] = rows ? gs_ir_part(ir, all, t * width, width)
                     : gs_ir_sum(ir, op, of_type(b, type, t, value, away), false);
        if (extreme)
            of[t] = choose(b, own, of[t], gs_model__number(b, 0.0f));
        else if (strcmp(within, "mean") == 0)
            of[t] = bin(b, GS_OP_DIV, of[t], bin(b, GS_OP_MAX, own, gs_model__number(b, 1.0f)));
    }
}

/* 1 at the vertices where edges of type t can end, else 0. */
static uint32_t ends_here(gs_builder *b, uint32_t t)
{
    const gs_type_table *const types = b->config->types;

    if (types == NULL || types->types == 1 || t >= types->relations)
        return ones(b);
    return is_type(b, gs_model__vertex_type(b, false), types->relation[t].destination);
}

static uint32_t sum_of_types(gs_builder *b, const uint32_t *of)
{
    uint32_t sum = of[0];
    for (uint32_t t = 1; t < gs_model__types(b); t++)
        sum = bin(b, GS_OP_ADD, sum, of[t]);
    return sum;
}

/* Types that can end at a vertex, at least 1. */
static uint32_t types_here(gs_builder *b)
{
    uint32_t here[MOST_TYPES];
    for (uint32_t t = 0; t < gs_model__types(b); t++)
        here[t] = ends_here(b, t);
    return sum_of_types(b, here);
}

/* The largest or the smallest of the types that can end here; 0 where none can. */
static uint32_t extreme_of_types(gs_builder *b, const uint32_t *of, gs_op op)
{
    const uint32_t away = gs_model__number(b, op == GS_OP_MAX ? -FAR : FAR);
    uint32_t y = GS_IR_NONE;

    for (uint32_t t = 0; t < gs_model__types(b); t++) {
        const uint32_t own = choose(b, ends_here(b, t), of[t], away);
        y = t == 0 ? own : bin(b, op, y, own);
    }
    return choose(b, types_here(b), y, gs_model__number(b, 0.0f));
}

/* Each times its softmax over types, element by element, as PyG's SoftmaxAggregation. */
static uint32_t softmax_of_types(gs_builder *b, const uint32_t *of)
{
    const uint32_t most = extreme_of_types(b, of, GS_OP_MAX);
    uint32_t weight[MOST_TYPES], weighted[MOST_TYPES];

    for (uint32_t t = 0; t < gs_model__types(b); t++) {
        const uint32_t p = gs_ir_unary(b->ir, GS_OP_EXP, bin(b, GS_OP_SUB, of[t], most), 0);
        weight[t] = choose(b, ends_here(b, t), p, gs_model__number(b, 0.0f));
        weighted[t] = bin(b, GS_OP_MUL, weight[t], of[t]);
    }
    return choose(b, types_here(b),
                  bin(b, GS_OP_DIV, sum_of_types(b, weighted),
                      bin(b, GS_OP_MAX, sum_of_types(b, weight), gs_model__number(b, 1e-30f))),
                  gs_model__number(b, 0.0f));
}

static uint32_t beside(gs_builder *b, const uint32_t *of)
{
    uint32_t all = of[0];
    for (uint32_t t = 1; t < gs_model__types(b); t++)
        all = gs_ir_binary(b->ir, GS_OP_CONCAT, all, of[t]);
    return all;
}

uint32_t gs_model__reduce_of_types(gs_builder *b, const gs_expr *e, uint32_t value)
{
    const char *const over = e->prefix[0] == '\0' ? "sum" : e->prefix;
    uint32_t of[MOST_TYPES];

    if (gs_model__types(b) > MOST_TYPES)
        return gs_ir_error(b->ir, GS_EUNSUPPORTED, "%s(..., type): a reduction in two levels is of at most %u types of "
                           "edges, and these are %u", e->name, MOST_TYPES, gs_model__types(b));
    if (strcmp(over, "sum") == 0 && strcmp(e->name, "sum") == 0)
        return gs_ir_sum(b->ir, GS_OP_SUM_IN, value, false);
    if (strcmp(over, "sum") == 0 && strcmp(e->name, "mean") == 0)
        return gs_ir_sum(b->ir, GS_OP_SUM_IN, bin(b, GS_OP_MUL, value, share_of_type(b)), false);
    reduce_within(b, e->name, value, of);
    if (gs_ir_status(b->ir) != GS_OK)
        return GS_IR_NONE;
    if (strcmp(over, "sum") == 0)
        return sum_of_types(b, of);
    if (strcmp(over, "mean") == 0)
        return bin(b, GS_OP_DIV, sum_of_types(b, of), bin(b, GS_OP_MAX, types_here(b), gs_model__number(b, 1.0f)));
    if (strcmp(over, "concat") == 0)
        return beside(b, of);
    if (strcmp(over, "softmax") == 0)
        return softmax_of_types(b, of);
    return extreme_of_types(b, of, strcmp(over, "max") == 0 ? GS_OP_MAX : GS_OP_MIN);
}
