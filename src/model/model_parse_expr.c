/* model_parse_expr.c - expressions of a model text, by recursive descent.
 *
 *   expr   := sum [ COMPARISON sum ]
 *   sum    := term { ("+" | "-") term }
 *   term   := sign { ("*" | "/") sign | "@" NAME [ "'" | "[" "e.type" "]" ] }
 *   sign   := "-" sign | NUMBER | "(" expr ")" | NAME "[" "e.type" "]" | NAME [ "(" expr [ "," second ] ")" ]
 *   second := [ "-" ] NUMBER [ "," NUMBER (of part) ] | "self" | "type" | NAME (of norms) | dim (of layers)
 *           | expr { "," expr } (of dot, concat, and functions of several operands)
 *
 * A constant's name is a number.
 *
 * Infix signs and functions are those of the table of operators (tensor/op.h).
 */
#include <string.h>

#include "base/grow.h"
#include "model/model_parser.h"

static gs_status add_expr(gs_parser *p, uint32_t *out, const gs_expr *e)
{
    gs_model *m = p->m;
    if (m->exprs == GS_TEXT_MAX_EXPRS)
        return GS_PARSER_ERROR(p, "the text has more than %u operations, the most that fit; use repeat for repeats",
                               GS_TEXT_MAX_EXPRS);
    if (!gs_grow(&m->expr, m->exprs, &m->expr_cap, sizeof(*m->expr)))
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", m->path);
    m->expr[m->exprs] = *e;
    *out = m->exprs++;
    return GS_OK;
}

static gs_expr expr_at(const gs_parser *p, gs_expr_kind kind)
{
    return (gs_expr){.kind = kind, .line = p->t.line, .column = p->t.column, .a = GS_TEXT_NONE, .b = GS_TEXT_NONE,
                     .c = GS_TEXT_NONE};
}

static gs_status parse_second_number(gs_parser *p, gs_expr *e)
{
    e->has_number = true;
    return gs_parser__take_number(p, &e->number, true, "a number");
}

static gs_status parse_over(gs_parser *p, gs_expr *e)
{
    if (gs_parser__is_word(p, "self"))
        e->over = GS_OVER_SELF;
    else if (gs_parser__is_word(p, "type"))
        e->over = GS_OVER_TYPE;
    else
        return gs_parser__expected(p, "'self' or 'type'");
    return gs_parser__next(p);
}

/* part(a, K, N): the K-th of N equal parts, from 0. */
static gs_status parse_which_part(gs_parser *p, gs_expr *e)
{
    gs_status st = parse_second_number(p, e);
    if (st != GS_OK || (st = gs_parser__take_char(p, ',')) != GS_OK)
        return st;
    return gs_parser__take_number(p, &e->third, false, "a number");
}

/* concat(a, b, c) is concat(concat(a, b), c). */
static gs_status parse_more_columns(gs_parser *p, gs_expr *e)
{
    gs_status st = GS_OK;
    while (st == GS_OK && gs_parser__is_char(p, ','))
        if ((st = add_expr(p, &e->a, e)) == GS_OK && (st = gs_parser__next(p)) == GS_OK)
            st = gs_parser__expr(p, &e->b);
    return st;
}

/* After the first and its comma. */
static gs_status parse_operands(gs_parser *p, gs_expr *e, uint32_t operands)
{
    gs_status st = gs_parser__expr(p, &e->b);
    if (st == GS_OK && strcmp(e->name, "concat") == 0)
        return parse_more_columns(p, e);
    if (st != GS_OK || operands < 3 || (st = gs_parser__take_char(p, ',')) != GS_OK)
        return st;
    return gs_parser__expr(p, &e->c);
}

/* After NAME "(". */
static gs_status parse_arguments(gs_parser *p, gs_expr *e)
{
    const char *const second = strcmp(e->name, "dot") == 0    ? "',' and what dot() multiplies by"
                               : strcmp(e->name, "lstm") == 0 ? "',' and lstm()'s recurrent weight"
                               : strcmp(e->name, "concat") == 0 ? "',' and what stands beside it"
                                                              : NULL;
    const bool reduces = gs_model__is_reduction(e->name); /* max and min run over edges, or have two operands */
    gs_op op;
    const uint32_t operands = second != NULL ? 2 : gs_model__function(e->name, &op) ? gs_op_inputs(op) : 0;
    gs_status st;

    if ((st = gs_parser__expr(p, &e->a)) != GS_OK)
        return st;
    if (!gs_parser__is_char(p, ',') && second != NULL)
        return gs_parser__expected(p, second);
    if (!gs_parser__is_char(p, ','))
        return gs_parser__take_char(p, operands > 1 && !reduces ? ',' : ')');
    if ((st = gs_parser__next(p)) != GS_OK)
        return st;
    if (operands > 1 && !gs_parser__is_word(p, "self") && !gs_parser__is_word(p, "type"))
        st = parse_operands(p, e, operands);
    else if (strcmp(e->name, "part") == 0)
        st = parse_which_part(p, e);
    else if (gs_model__is_norm(e->name))
        st = gs_parser__take_name(p, e->prefix, "a name for its parameters", true);
    else
        st = reduces ? parse_over(p, e) : parse_second_number(p, e);
    return st == GS_OK ? gs_parser__take_char(p, ')') : st;
}

/* "[" "e.type" "]" */
static gs_status parse_type(gs_parser *p)
{
    gs_status st = gs_parser__next(p);
    if (st == GS_OK && !gs_parser__is_word(p, "e.type"))
        st = gs_parser__expected(p, "'e.type'");
    if (st == GS_OK && (st = gs_parser__next(p)) == GS_OK)
        st = gs_parser__take_char(p, ']');
    return st;
}

/* LAYER "(" expr "," dim ")", from its bracket on. */
static gs_status parse_layer_call(gs_parser *p, gs_expr *e)
{
    gs_model *const m = p->m;
    gs_dim dim = {0};
    gs_status st;

    e->kind = GS_EXPR_LAYER;
    if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__expr(p, &e->a)) != GS_OK)
        return st;
    if (!gs_parser__is_char(p, ','))
        return gs_parser__expected(p, "',' and the layer's width");
    if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__dim(p, &dim)) != GS_OK)
        return st;
    void *array = m->dim; /* now: layers in the expression have grown it */
    if ((st = gs_parser__grow(p, &array, m->dims, sizeof(dim))) != GS_OK)
        return st;
    m->dim = array;
    e->dim = m->dims;
    m->dim[m->dims++] = dim;
    return gs_parser__take_char(p, ')');
}

/* Is it a layer that the network, in which we are, can call? */
static bool is_layer(const gs_parser *p, gs_expr *e)
{
    for (uint32_t i = 0; p->m->network != NULL && i < p->m->layers && !gs_model__is_reserved(e->name); i++)
        if (strcmp(p->m->layer[i].name, e->name) == 0) {
            e->layer = i;
            return true;
        }
    return false;
}

static gs_status parse_named(gs_parser *p, uint32_t *out)
{
    const gs_text_const *const constant = gs_parser__const(p);
    gs_expr e = expr_at(p, constant != NULL ? GS_EXPR_NUMBER : GS_EXPR_NAME);
    gs_status st = gs_parser__take_name(p, e.name, "a name", true);

    if (constant != NULL) {
        e.number = constant->value;
    } else if (st == GS_OK && gs_parser__is_char(p, '[')) {
        e.kind = GS_EXPR_PICK;
        st = parse_type(p);
    } else if (st == GS_OK && gs_parser__is_char(p, '(') && is_layer(p, &e)) {
        st = parse_layer_call(p, &e);
    } else if (st == GS_OK && gs_parser__is_char(p, '(')) {
        e.kind = GS_EXPR_CALL;
        if ((st = gs_parser__next(p)) == GS_OK)
            st = parse_arguments(p, &e);
    }
    return st == GS_OK ? add_expr(p, out, &e) : st;
}

static gs_status parse_sign(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_NUMBER);
    gs_status st;

    if (p->depth == GS_TEXT_MAX_DEPTH)
        return GS_PARSER_ERROR(p, "nested deeper than %u", GS_TEXT_MAX_DEPTH);
    p->depth++;
    if (gs_parser__is_char(p, '-')) {
        e.kind = GS_EXPR_NEG;
        if ((st = gs_parser__next(p)) == GS_OK && (st = parse_sign(p, &e.a)) == GS_OK)
            st = add_expr(p, out, &e);
    } else if (gs_parser__is_char(p, '(')) {
        if ((st = gs_parser__next(p)) == GS_OK && (st = gs_parser__expr(p, out)) == GS_OK)
            st = gs_parser__take_char(p, ')');
    } else if (p->t.kind == GS_TOKEN_NUMBER) {
        e.number = p->t.number;
        if ((st = gs_parser__next(p)) == GS_OK)
            st = add_expr(p, out, &e);
    } else if (p->t.kind == GS_TOKEN_NAME) {
        st = parse_named(p, out);
    } else {
        st = gs_parser__expected(p, "an expression");
    }
    p->depth--;
    return st;
}

static gs_status parse_matmul(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_MATMUL);
    gs_status st;

    e.a = *out;
    if ((st = gs_parser__next(p)) != GS_OK ||
        (st = gs_parser__take_name(p, e.name, "a parameter right of @", true)) != GS_OK)
        return st;
    if (gs_parser__is_char(p, '\'')) {
        e.transposed = true;
        st = gs_parser__next(p);
    } else if (gs_parser__is_char(p, '[')) {
        e.typed = true;
        st = parse_type(p);
    }
    return st == GS_OK ? add_expr(p, out, &e) : st;
}

/* How tightly an infix sign binds. */
typedef enum gs_binding { GS_BINDS_COMPARISON, GS_BINDS_SUM, GS_BINDS_PRODUCT } gs_binding;

static gs_binding binding_of(char sign)
{
    return strchr("*/", sign) ? GS_BINDS_PRODUCT : strchr("+-", sign) ? GS_BINDS_SUM : GS_BINDS_COMPARISON;
}

/* Is the next token an operator's sign that binds so tightly? */
static bool is_sign(const gs_parser *p, gs_binding binding, gs_op *out)
{
    for (gs_op op = 0; op < GS_OP_COUNT && p->t.kind == GS_TOKEN_CHAR; op++) {
        const char *const text = gs_op_facts_of(op)->text;
        if (text != NULL && strlen(text) == p->t.bytes && memcmp(text, p->t.text, p->t.bytes) == 0) {
            *out = op;
            return binding_of(text[0]) == binding;
        }
    }
    return false;
}

/* The sign and what stands right of it, which `right` parses; *out is what stands left. */
static gs_status parse_infix(gs_parser *p, uint32_t *out, gs_op op, gs_status (*right)(gs_parser *p, uint32_t *out))
{
    gs_expr e = expr_at(p, GS_EXPR_BINARY);
    gs_status st;
    e.op = op;
    e.a = *out;
    if ((st = gs_parser__next(p)) == GS_OK && (st = right(p, &e.b)) == GS_OK)
        st = add_expr(p, out, &e);
    return st;
}

static gs_status parse_term(gs_parser *p, uint32_t *out)
{
    gs_status st = parse_sign(p, out);
    gs_op op = GS_OP_COUNT;

    while (st == GS_OK && (gs_parser__is_char(p, '@') || is_sign(p, GS_BINDS_PRODUCT, &op)))
        st = gs_parser__is_char(p, '@') ? parse_matmul(p, out) : parse_infix(p, out, op, parse_sign);
    return st;
}

static gs_status parse_sum(gs_parser *p, uint32_t *out)
{
    gs_status st = parse_term(p, out);
    gs_op op;

    while (st == GS_OK && is_sign(p, GS_BINDS_SUM, &op))
        st = parse_infix(p, out, op, parse_term);
    return st;
}

/* a < b < c would compare 0 or 1 with c: who means that writes brackets. */
gs_status gs_parser__expr(gs_parser *p, uint32_t *out)
{
    gs_status st = parse_sum(p, out);
    gs_op op;

    if (st == GS_OK && is_sign(p, GS_BINDS_COMPARISON, &op))
        st = parse_infix(p, out, op, parse_sum);
    if (st == GS_OK && is_sign(p, GS_BINDS_COMPARISON, &op))
        return GS_PARSER_ERROR(p, "comparisons do not follow one another; put one of them in brackets");
    return st;
}
