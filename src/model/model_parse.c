/* model_parse.c - layers and statements of a model text, by recursive descent over its tokens.
 *
 *   file   := { "const" NAME "=" [ "-" ] NUMBER NEWLINE | layer } [ network ]
 *   network := "network" "(" NAME "[" dim "]" ")" "->" "[" dim "]" ":" { statement NEWLINE }
 *   layer  := "layer" NAME "(" NAME "[" dim "]" edges ")" "->" "[" dim "]" edges ":" { statement NEWLINE }
 *   edges  := { "," "e." NAME "[" dim "]" }
 *   statement := ("param" | "buffer") shape [ "~" rule ] { "," shape [ "~" rule ] } | NAME "=" expr
 *              | "return" expr { "," expr } | "repeat" NUMBER ":" | "end"
 *   shape  := NAME "[" dim [ "," dim [ "," dim ] ] "]"
 *   rule   := ... (model.c), of all shapes before it that have none
 *   dim    := (NAME | NUMBER) { "*" (NAME | NUMBER) }
 *   expr   := ... ("expressions", below)
 *
 * A layer ends with its return. Blank lines and indentation mean nothing;
 * neither do line ends inside brackets.
 */
#include <stdio.h>
#include <string.h>

#include "model/model_internal.h"

/* ---- the parser -------------------------------------------------------- */

/* The next token, taken or refused. */

gs_status gs_parser__next(gs_parser *p)
{
    return gs_model__lex(&p->lexer, &p->t);
}

static bool is_char(const gs_parser *p, char c)
{
    return p->t.kind == GS_TOKEN_CHAR && p->t.bytes == 1 && p->t.text[0] == c;
}

bool gs_parser__is_word(const gs_parser *p, const char *word)
{
    return p->t.kind == GS_TOKEN_NAME && p->t.bytes == strlen(word) && memcmp(p->t.text, word, p->t.bytes) == 0;
}

/* What the next token is, for messages. */
static const char *found(const gs_parser *p, char buf[48])
{
    if (p->t.kind == GS_TOKEN_END)
        return "the end of the text";
    if (p->t.kind == GS_TOKEN_NEWLINE)
        return "the end of the line";
    snprintf(buf, 48, "'%.*s'", (int)(p->t.bytes < 40 ? p->t.bytes : 40), p->t.text);
    return buf;
}

gs_status gs_parser__expected(const gs_parser *p, const char *what)
{
    char buf[48];
    return GS_PARSER_ERROR(p, "expected %s, found %s", what, found(p, buf));
}

gs_status gs_parser__take_char(gs_parser *p, char c)
{
    const char what[] = {'\'', c, '\'', 0};
    return is_char(p, c) ? gs_parser__next(p) : gs_parser__expected(p, what);
}

/* `what` names it in messages; `dots`: it may have some. */
static gs_status take_name(gs_parser *p, char out[GS_TEXT_NAME], const char *what, bool dots)
{
    if (p->t.kind != GS_TOKEN_NAME)
        return gs_parser__expected(p, what);
    if (p->t.bytes >= GS_TEXT_NAME)
        return GS_PARSER_ERROR(p, "a name may have %d characters at most", GS_TEXT_NAME - 1);
    memcpy(out, p->t.text, p->t.bytes);
    out[p->t.bytes] = 0;
    if (!dots && strchr(out, '.') != NULL)
        return GS_PARSER_ERROR(p, "%s cannot have a dot: '%s'", what, out);
    return gs_parser__next(p);
}

static gs_status skip_newlines(gs_parser *p)
{
    while (p->t.kind == GS_TOKEN_NEWLINE)
        GS_TRY(gs_parser__next(p));
    return GS_OK;
}

/* One more element in an array that grows by powers of two, whose pointer is at `array`. */
static gs_status grow_array(const gs_parser *p, void *array, uint32_t count, size_t size)
{
    void *q;
    if (count > 0 && (count & (count - 1)) != 0)
        return GS_OK;
    memcpy(&q, array, sizeof(q));
    if ((q = gs_realloc(q, (count == 0 ? 1 : (size_t)count * 2) * size)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", p->m->path);
    memcpy(array, &q, sizeof(q));
    return GS_OK;
}

/* ---- numbers ----------------------------------------------------------- */

/* Numbers, the constants of a text that stand for some, and widths. */

/* The constant that the next token names, or NULL. */
static const gs_text_const *constant_next(const gs_parser *p)
{
    for (uint32_t i = 0; i < p->m->consts && p->t.kind == GS_TOKEN_NAME; i++)
        if (gs_parser__is_word(p, p->m->constant[i].name))
            return &p->m->constant[i];
    return NULL;
}

gs_status gs_parser__take_number(gs_parser *p, float *out, bool sign, const char *what)
{
    const bool minus = sign && is_char(p, '-');
    const gs_text_const *named;

    GS_TRY(minus ? gs_parser__next(p) : GS_OK);
    named = constant_next(p);
    if (named == NULL && p->t.kind != GS_TOKEN_NUMBER)
        return gs_parser__expected(p, what);
    *out = named != NULL ? named->value : p->t.number;
    if (minus)
        *out = -*out;
    return gs_parser__next(p);
}

/* const NAME = NUMBER */
static gs_status take_const(gs_parser *p)
{
    gs_model *const m = p->m;
    gs_text_const c = {0};
    gs_token name;
    const char *begin;

    GS_TRY(gs_parser__next(p));
    name = p->t;
    c.line = name.line;
    GS_TRY(take_name(p, c.name, "a constant's name", false));
    if (gs_model__is_reserved(c.name))
        return gs_model__error(m->text, name.line, name.column, "'%s' has a meaning of its own; choose another name",
                               c.name);
    for (uint32_t i = 0; i < m->consts; i++)
        if (strcmp(m->constant[i].name, c.name) == 0)
            return gs_model__error(m->text, name.line, name.column, "'%s' is defined already, at line %u", c.name,
                                   m->constant[i].line);
    GS_TRY(gs_parser__take_char(p, '='));
    begin = p->t.text;
    c.at = (size_t)(begin - p->lexer.text);
    if (is_char(p, '-'))
        GS_TRY(gs_parser__next(p));
    if (p->t.kind != GS_TOKEN_NUMBER)
        return gs_parser__expected(p, "a number");
    c.value = begin[0] == '-' ? -p->t.number : p->t.number;
    c.bytes = (size_t)(p->t.text + p->t.bytes - begin);
    GS_TRY(gs_parser__next(p));
    GS_TRY(grow_array(p, &m->constant, m->consts, sizeof(c)));
    m->constant[m->consts++] = c;
    return GS_OK;
}

gs_status gs_parser__dim(gs_parser *p, gs_dim *out)
{
    float number;

    out->line = p->t.line;
    out->column = p->t.column;
    for (;;) {
        if (out->factors == GS_DIM_FACTORS)
            return GS_PARSER_ERROR(p, "a width has at most %d numbers and names", GS_DIM_FACTORS);
        if (p->t.kind == GS_TOKEN_NUMBER || constant_next(p) != NULL) {
            number = constant_next(p) != NULL ? constant_next(p)->value : p->t.number;
            if (!(number >= 1.0f && number <= 1e6f) || number != (float)(uint32_t)number)
                return GS_PARSER_ERROR(p, "a width must be a whole number from 1 to 1000000");
            out->factor[out->factors].value = (uint32_t)number;
            GS_TRY(gs_parser__next(p));
        } else {
            GS_TRY(take_name(p, out->factor[out->factors].name, "a width (a name or a number)", true));
        }
        out->factors++;
        const bool plus = is_char(p, '+');
        if (!plus && !is_char(p, '*'))
            return GS_OK;
        GS_TRY(gs_parser__next(p));
        if (out->factors < GS_DIM_FACTORS)
            out->factor[out->factors].plus = plus;
    }
}

/* ---- expressions ------------------------------------------------------- */

/* Expressions of a model text, by recursive descent.
 *
 *   expr   := sum [ COMPARISON sum ]
 *   sum    := term { ("+" | "-") term }
 *   term   := sign { ("*" | "/") sign | "@" NAME [ "'" | type ] }
 *   type   := "[" ( "e.type" | "u.type" | "v.type" ) "]"
 *   sign   := "-" sign | NUMBER | "(" expr ")" | NAME type | "input" "(" NAME ")" [ "[" NUMBER "]" ]
 *           | NAME [ "(" expr [ "," second ] ")" ]
 *   second := [ "-" ] NUMBER [ "," NUMBER (of part) ] | "self" | "type" [ "," reduction ] | NAME (of norms)
 *           | dim (of layers) | expr { "," expr } (of dot, concat, and functions of several operands)
 *
 * A constant's name is a number.
 *
 * Infix signs and functions are those of the table of operators (tensor/op.h).
 */

static gs_status parse_expr(gs_parser *p, uint32_t *out);

static gs_status add_expr(gs_parser *p, uint32_t *out, const gs_expr *e)
{
    gs_model *m = p->m;
    if (m->exprs == GS_TEXT_MAX_EXPRS)
        return GS_PARSER_ERROR(p, "the text has more than %u operations, the most that fit; use repeat for repeats",
                               GS_TEXT_MAX_EXPRS);
    GS_NEED(gs_grow(&m->expr, m->exprs, &m->expr_cap, sizeof(*m->expr)), "%s: no memory for the model's text", m->path);
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

/* Behind "type", from the comma on: the reduction over types. */
static gs_status parse_over_types(gs_parser *p, gs_expr *e)
{
    static const char *const words[] = {"sum", "mean", "max", "min", "softmax", "concat"};

    GS_TRY(gs_parser__next(p));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (gs_parser__is_word(p, words[i])) {
            snprintf(e->prefix, sizeof(e->prefix), "%s", words[i]);
            return gs_parser__next(p);
        }
    return gs_parser__expected(p, "'sum', 'mean', 'max', 'min', 'softmax' or 'concat', over types");
}

static gs_status parse_over(gs_parser *p, gs_expr *e)
{
    if (gs_parser__is_word(p, "self"))
        e->over = GS_OVER_SELF;
    else if (gs_parser__is_word(p, "type"))
        e->over = GS_OVER_TYPE;
    else
        return gs_parser__expected(p, "'self' or 'type'");
    GS_TRY(gs_parser__next(p));
    return e->over == GS_OVER_TYPE && is_char(p, ',') ? parse_over_types(p, e) : GS_OK;
}

/* part(a, K, N): the K-th of N equal parts, from 0. */
static gs_status parse_which_part(gs_parser *p, gs_expr *e)
{
    GS_TRY(parse_second_number(p, e));
    GS_TRY(gs_parser__take_char(p, ','));
    return gs_parser__take_number(p, &e->third, false, "a number");
}

/* concat(a, b, c) is concat(concat(a, b), c). */
static gs_status parse_more_columns(gs_parser *p, gs_expr *e)
{
    while (is_char(p, ',')) {
        GS_TRY(add_expr(p, &e->a, e));
        GS_TRY(gs_parser__next(p));
        GS_TRY(parse_expr(p, &e->b));
    }
    return GS_OK;
}

/* After the first and its comma. */
static gs_status parse_operands(gs_parser *p, gs_expr *e, uint32_t operands)
{
    GS_TRY(parse_expr(p, &e->b));
    if (strcmp(e->name, "concat") == 0)
        return parse_more_columns(p, e);
    if (operands < 3)
        return GS_OK;
    GS_TRY(gs_parser__take_char(p, ','));
    return parse_expr(p, &e->c);
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

    GS_TRY(parse_expr(p, &e->a));
    if (!is_char(p, ',') && second != NULL)
        return gs_parser__expected(p, second);
    if (!is_char(p, ','))
        return gs_parser__take_char(p, operands > 1 && !reduces ? ',' : ')');
    GS_TRY(gs_parser__next(p));
    if (operands > 1 && !gs_parser__is_word(p, "self") && !gs_parser__is_word(p, "type"))
        GS_TRY(parse_operands(p, e, operands));
    else if (strcmp(e->name, "part") == 0)
        GS_TRY(parse_which_part(p, e));
    else if (gs_model__is_norm(e->name))
        GS_TRY(take_name(p, e->prefix, "a name for its parameters", true));
    else
        GS_TRY(reduces ? parse_over(p, e) : parse_second_number(p, e));
    return gs_parser__take_char(p, ')');
}

/* "[" "e.type" "]": whose type it is */
static gs_status parse_type(gs_parser *p, char *end)
{
    GS_TRY(gs_parser__next(p));
    if (!gs_parser__is_word(p, "e.type") && !gs_parser__is_word(p, "u.type") && !gs_parser__is_word(p, "v.type"))
        return gs_parser__expected(p, "'e.type', 'u.type' or 'v.type'");
    *end = p->t.text[0];
    GS_TRY(gs_parser__next(p));
    return gs_parser__take_char(p, ']');
}

/* LAYER "(" expr "," dim ")", from its bracket on. */
static gs_status parse_layer_call(gs_parser *p, gs_expr *e)
{
    gs_model *const m = p->m;
    gs_dim dim = {0};

    e->kind = GS_EXPR_LAYER;
    GS_TRY(gs_parser__next(p));
    GS_TRY(parse_expr(p, &e->a));
    if (!is_char(p, ','))
        return gs_parser__expected(p, "',' and the layer's width");
    GS_TRY(gs_parser__next(p));
    GS_TRY(gs_parser__dim(p, &dim));
    GS_TRY(grow_array(p, &m->dim, m->dims, sizeof(dim)));
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

/* input(TYPE)[number], from its bracket on. */
static gs_status parse_input(gs_parser *p, gs_expr *e)
{
    e->kind = GS_EXPR_INPUT;
    GS_TRY(gs_parser__next(p));
    GS_TRY(take_name(p, e->prefix, "a type of vertices", true));
    GS_TRY(gs_parser__take_char(p, ')'));
    if (!is_char(p, '['))
        return GS_OK;
    e->has_number = true;
    GS_TRY(gs_parser__next(p));
    GS_TRY(gs_parser__take_number(p, &e->number, false, "a width"));
    return gs_parser__take_char(p, ']');
}

static gs_status parse_named(gs_parser *p, uint32_t *out)
{
    const gs_text_const *const constant = constant_next(p);
    gs_expr e = expr_at(p, constant != NULL ? GS_EXPR_NUMBER : GS_EXPR_NAME);

    GS_TRY(take_name(p, e.name, "a name", true));
    if (constant != NULL) {
        e.number = constant->value;
    } else if (is_char(p, '[')) {
        e.kind = GS_EXPR_PICK;
        GS_TRY(parse_type(p, &e.end));
    } else if (is_char(p, '(') && is_layer(p, &e)) {
        GS_TRY(parse_layer_call(p, &e));
    } else if (is_char(p, '(') && strcmp(e.name, "input") == 0) {
        GS_TRY(parse_input(p, &e));
    } else if (is_char(p, '(')) {
        e.kind = GS_EXPR_CALL;
        GS_TRY(gs_parser__next(p));
        GS_TRY(parse_arguments(p, &e));
    }
    return add_expr(p, out, &e);
}

static gs_status parse_sign(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_NUMBER);

    if (p->depth == GS_TEXT_MAX_DEPTH)
        return GS_PARSER_ERROR(p, "nested deeper than %u", GS_TEXT_MAX_DEPTH);
    p->depth++; /* a failure ends the text */
    if (is_char(p, '-')) {
        e.kind = GS_EXPR_NEG;
        GS_TRY(gs_parser__next(p));
        GS_TRY(parse_sign(p, &e.a));
        GS_TRY(add_expr(p, out, &e));
    } else if (is_char(p, '(')) {
        GS_TRY(gs_parser__next(p));
        GS_TRY(parse_expr(p, out));
        GS_TRY(gs_parser__take_char(p, ')'));
    } else if (p->t.kind == GS_TOKEN_NUMBER) {
        e.number = p->t.number;
        GS_TRY(gs_parser__next(p));
        GS_TRY(add_expr(p, out, &e));
    } else {
        GS_TRY(p->t.kind == GS_TOKEN_NAME ? parse_named(p, out) : gs_parser__expected(p, "an expression"));
    }
    p->depth--;
    return GS_OK;
}

static gs_status parse_matmul(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_MATMUL);

    e.a = *out;
    GS_TRY(gs_parser__next(p));
    GS_TRY(take_name(p, e.name, "a parameter right of @", true));
    if (is_char(p, '\'')) {
        e.transposed = true;
        GS_TRY(gs_parser__next(p));
    } else if (is_char(p, '[')) {
        GS_TRY(parse_type(p, &e.end));
    }
    return add_expr(p, out, &e);
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
    e.op = op;
    e.a = *out;
    GS_TRY(gs_parser__next(p));
    GS_TRY(right(p, &e.b));
    return add_expr(p, out, &e);
}

static gs_status parse_term(gs_parser *p, uint32_t *out)
{
    gs_op op = GS_OP_COUNT;

    GS_TRY(parse_sign(p, out));
    while (is_char(p, '@') || is_sign(p, GS_BINDS_PRODUCT, &op))
        GS_TRY(is_char(p, '@') ? parse_matmul(p, out) : parse_infix(p, out, op, parse_sign));
    return GS_OK;
}

static gs_status parse_sum(gs_parser *p, uint32_t *out)
{
    gs_op op;

    GS_TRY(parse_term(p, out));
    while (is_sign(p, GS_BINDS_SUM, &op))
        GS_TRY(parse_infix(p, out, op, parse_term));
    return GS_OK;
}

/* a < b < c would compare 0 or 1 with c: who means that writes brackets. */
static gs_status parse_expr(gs_parser *p, uint32_t *out)
{
    gs_op op;

    GS_TRY(parse_sum(p, out));
    if (is_sign(p, GS_BINDS_COMPARISON, &op))
        GS_TRY(parse_infix(p, out, op, parse_sum));
    return is_sign(p, GS_BINDS_COMPARISON, &op)
               ? GS_PARSER_ERROR(p, "comparisons do not follow one another; put one of them in brackets")
               : GS_OK;
}

/* ---- statements -------------------------------------------------------- */

/* A name may be given again only by a statement of a `repeat`, and only if it is a variable's. */
static gs_status check_new_name(const gs_parser *p, const gs_text_layer *l, const char *name, uint32_t line,
                                uint32_t column, bool again)
{
    const gs_text *const where = p->m->text;
    if (gs_model__is_reserved(name) || strncmp(name, "u.", 2) == 0 || strncmp(name, "v.", 2) == 0 ||
        strncmp(name, "e.", 2) == 0 || strncmp(name, "input.", 6) == 0)
        return gs_model__error(where, line, column, "'%s' has a meaning of its own; choose another name", name);
    if (strcmp(l->input, name) == 0)
        return gs_model__error(where, line, column, "'%s' is the layer's input already", name);
    for (uint32_t i = 0; i < p->m->consts; i++)
        if (strcmp(p->m->constant[i].name, name) == 0)
            return gs_model__error(where, line, column, "'%s' is a constant already, at line %u", name,
                                   p->m->constant[i].line);
    for (uint32_t i = 0; i < l->params; i++)
        if (strcmp(l->param[i].name, name) == 0)
            return gs_model__error(where, line, column, "'%s' is defined already, at line %u", name, l->param[i].line);
    for (uint32_t i = 0; i < l->statements && !again; i++)
        if (strcmp(l->statement[i].name, name) == 0)
            return gs_model__error(where, line, column, "'%s' is defined already, at line %u", name,
                                   l->statement[i].line);
    return GS_OK;
}

static gs_status parse_shape(gs_parser *p, gs_text_layer *l, bool fixed)
{
    gs_text_param q = {.line = p->t.line, .column = p->t.column, .fixed = fixed};

    GS_TRY(take_name(p, q.name, "a parameter's name", true));
    GS_TRY(check_new_name(p, l, q.name, q.line, q.column, false));
    GS_TRY(gs_parser__take_char(p, '['));
    for (;;) {
        GS_TRY(gs_parser__dim(p, &q.dim[q.dims++]));
        if (!is_char(p, ',') || q.dims == 3)
            break;
        GS_TRY(gs_parser__next(p));
    }
    GS_TRY(gs_parser__take_char(p, ']'));
    GS_TRY(grow_array(p, &l->param, l->params, sizeof(q)));
    l->param[l->params++] = q;
    return GS_OK;
}

static gs_status parse_params(gs_parser *p, gs_text_layer *l)
{
    const bool fixed = gs_parser__is_word(p, "buffer");
    gs_text_initial initial;
    uint32_t first = l->params;
    do {
        GS_TRY(gs_parser__next(p));
        GS_TRY(skip_newlines(p));
        GS_TRY(parse_shape(p, l, fixed));
        if (!is_char(p, '~'))
            continue;
        GS_TRY(gs_parser__initial(p, &initial));
        while (first < l->params)
            l->param[first++].initial = initial;
    } while (is_char(p, ','));
    return GS_OK;
}

/* A value of edges that layers may hand on: e.NAME, which no edge has by itself. */
static gs_status take_edge_name(gs_parser *p, char out[GS_TEXT_NAME])
{
    const uint32_t line = p->t.line, column = p->t.column;

    GS_TRY(take_name(p, out, "a value of edges, e.NAME", true));
    if (strncmp(out, "e.", 2) != 0 || out[2] == '\0' || strchr(out + 2, '.') != NULL)
        return gs_model__error(p->m->text, line, column, "'%s': a value of edges is called e.NAME", out);
    if (strcmp(out, "e.x") == 0 || strcmp(out, "e.type") == 0 || strcmp(out, "e.weight") == 0)
        return gs_model__error(p->m->text, line, column, "'%s' is what the graph has; choose another name", out);
    return GS_OK;
}

static gs_status add_statement(const gs_parser *p, gs_text_layer *l, const gs_statement *s)
{
    GS_TRY(grow_array(p, &l->statement, l->statements, sizeof(*s)));
    l->statement[l->statements++] = *s;
    return GS_OK;
}

/* The `repeat` that is not ended yet, or GS_TEXT_NONE. */
static uint32_t open_repeat(const gs_text_layer *l)
{
    for (uint32_t i = l->statements; i-- > 0;) {
        if (l->statement[i].kind == GS_STATEMENT_REPEAT)
            return i;
        if (l->statement[i].kind == GS_STATEMENT_END)
            break;
    }
    return GS_TEXT_NONE;
}

static gs_status parse_assign(gs_parser *p, gs_text_layer *l)
{
    gs_statement a = {.kind = GS_STATEMENT_ASSIGN, .line = p->t.line, .column = p->t.column};
    const bool again = open_repeat(l) != GS_TEXT_NONE;
    const bool of_edges = l == p->m->network && p->t.bytes > 2 && memcmp(p->t.text, "e.", 2) == 0;

    GS_TRY(of_edges ? take_edge_name(p, a.name) : take_name(p, a.name, "a variable's name", false));
    if (!of_edges)
        GS_TRY(check_new_name(p, l, a.name, a.line, a.column, again));
    GS_TRY(gs_parser__take_char(p, '='));
    GS_TRY(parse_expr(p, &a.expr));
    return add_statement(p, l, &a);
}

static gs_status parse_repeat(gs_parser *p, gs_text_layer *l)
{
    gs_statement r = {.kind = GS_STATEMENT_REPEAT, .line = p->t.line, .column = p->t.column, .expr = GS_TEXT_NONE};
    const gs_text_const *named;
    float often;

    if (open_repeat(l) != GS_TEXT_NONE)
        return GS_PARSER_ERROR(p, "a repeat cannot stand inside a repeat");
    GS_TRY(gs_parser__next(p));
    named = constant_next(p);
    often = named != NULL ? named->value : p->t.kind == GS_TOKEN_NUMBER ? p->t.number : 0.0f;
    if (!(often >= 1.0f && often <= 1000.0f) || often != (float)(uint32_t)often)
        return gs_parser__expected(p, "how often (a whole number from 1 to 1000)");
    r.count = (uint32_t)often;
    GS_TRY(gs_parser__next(p));
    GS_TRY(gs_parser__take_char(p, ':'));
    return add_statement(p, l, &r);
}

static gs_status parse_end(gs_parser *p, gs_text_layer *l)
{
    gs_statement e = {.kind = GS_STATEMENT_END, .line = p->t.line, .column = p->t.column, .expr = GS_TEXT_NONE,
                      .other = open_repeat(l)};

    if (e.other == GS_TEXT_NONE)
        return GS_PARSER_ERROR(p, "there is no repeat to end");
    l->statement[e.other].other = l->statements;
    GS_TRY(gs_parser__next(p));
    return add_statement(p, l, &e);
}

static gs_status end_of_line(const gs_parser *p)
{
    const bool ended = p->t.kind == GS_TOKEN_NEWLINE || p->t.kind == GS_TOKEN_END;
    return ended ? GS_OK : gs_parser__expected(p, "the end of the line");
}

/* Behind "return": the rows of vertices, then the values of edges that the header names. */
static gs_status parse_results(gs_parser *p, gs_text_layer *l)
{
    GS_TRY(parse_expr(p, &l->result));
    for (uint32_t i = 0; i < l->edges_out; i++) {
        if (!is_char(p, ','))
            return GS_PARSER_ERROR(p, "the layer returns %s, too: say return ..., and behind a comma what %s is",
                                   l->edge_out[i].name, l->edge_out[i].name);
        GS_TRY(gs_parser__next(p));
        GS_TRY(parse_expr(p, &l->edge_out[i].result));
    }
    return GS_OK;
}

static gs_status parse_body(gs_parser *p, gs_text_layer *l)
{
    for (;;) {
        bool last = false;
        GS_TRY(skip_newlines(p));
        if (gs_parser__is_word(p, "param") || gs_parser__is_word(p, "buffer")) {
            GS_TRY(parse_params(p, l));
        } else if (gs_parser__is_word(p, "repeat")) {
            GS_TRY(parse_repeat(p, l));
        } else if (gs_parser__is_word(p, "end")) {
            GS_TRY(parse_end(p, l));
        } else if (gs_parser__is_word(p, "return")) {
            last = true;
            if (open_repeat(l) != GS_TEXT_NONE)
                return GS_PARSER_ERROR(p, "the repeat of line %u is not ended", l->statement[open_repeat(l)].line);
            GS_TRY(gs_parser__next(p));
            GS_TRY(parse_results(p, l));
        } else if (p->t.kind == GS_TOKEN_NAME && !gs_parser__is_word(p, "layer")) {
            GS_TRY(parse_assign(p, l));
        } else {
            GS_TRY(gs_parser__expected(p, "'param', 'NAME = ...' or 'return'"));
        }
        GS_TRY(end_of_line(p));
        if (last)
            return GS_OK;
    }
}

/* "[" dim "]" */
static gs_status parse_width(gs_parser *p, gs_dim *dim)
{
    GS_TRY(gs_parser__take_char(p, '['));
    GS_TRY(gs_parser__dim(p, dim));
    return gs_parser__take_char(p, ']');
}

/* { "," e.NAME "[" dim "]" } */
static gs_status parse_edge_values(gs_parser *p, gs_text_edge *edge, uint32_t *edges)
{
    while (is_char(p, ',') && p->m->network == NULL) {
        gs_text_edge e = {.result = GS_TEXT_NONE};
        if (*edges == GS_TEXT_EDGE_VALUES)
            return GS_PARSER_ERROR(p, "a layer has at most %u values of edges", GS_TEXT_EDGE_VALUES);
        GS_TRY(gs_parser__next(p));
        GS_TRY(take_edge_name(p, e.name));
        GS_TRY(gs_parser__take_char(p, '['));
        GS_TRY(gs_parser__dim(p, &e.dim));
        for (uint32_t i = 0; i < *edges; i++)
            if (strcmp(edge[i].name, e.name) == 0)
                return GS_PARSER_ERROR(p, "'%s' is there already", e.name);
        edge[(*edges)++] = e;
        GS_TRY(gs_parser__take_char(p, ']'));
    }
    return GS_OK;
}

/* From the brackets on. */
static gs_status parse_header_and_body(gs_parser *p, gs_text_layer *l)
{
    const gs_model *const m = p->m;

    l->first_expr = m->exprs;
    GS_TRY(gs_parser__take_char(p, '('));
    GS_TRY(take_name(p, l->input, "the input's name", false));
    GS_TRY(parse_width(p, &l->in));
    GS_TRY(parse_edge_values(p, l->edge_in, &l->edges_in));
    GS_TRY(gs_parser__take_char(p, ')'));
    if (gs_model__is_reserved(l->input))
        return gs_model__error(m->text, l->line, l->column, "the layer's input cannot be called '%s'", l->input);
    if (p->t.kind != GS_TOKEN_ARROW)
        return gs_parser__expected(p, "'->'");
    GS_TRY(gs_parser__next(p));
    GS_TRY(parse_width(p, &l->out));
    GS_TRY(parse_edge_values(p, l->edge_out, &l->edges_out));
    GS_TRY(gs_parser__take_char(p, ':'));
    GS_TRY(end_of_line(p));
    GS_TRY(parse_body(p, l));
    l->end_expr = m->exprs;
    return GS_OK;
}

static gs_status parse_layer(gs_parser *p)
{
    gs_model *m = p->m;
    gs_text_layer *l;

    if (!gs_parser__is_word(p, "layer"))
        return gs_parser__expected(p, m->layers == 0 ? "'layer'" : "'layer' or 'network'");
    GS_TRY(grow_array(p, &m->layer, m->layers, sizeof(*m->layer)));
    l = &m->layer[m->layers++]; /* freed by gs_model_close() from here on */
    memset(l, 0, sizeof(*l));
    l->line = p->t.line;
    l->column = p->t.column;
    GS_TRY(gs_parser__next(p));
    GS_TRY(take_name(p, l->name, "the layer's name", false));
    return parse_header_and_body(p, l);
}

/* Ends the text: it calls the layers above it. */
static gs_status parse_network(gs_parser *p)
{
    gs_text_layer *const l = gs_calloc(1, sizeof(*l));

    GS_NEED(l != NULL, "%s: no memory for the model's text", p->m->path);
    p->m->network = l; /* freed by gs_model_close() from here on */
    memcpy(l->name, "network", sizeof("network"));
    l->line = p->t.line;
    l->column = p->t.column;
    GS_TRY(gs_parser__next(p));
    GS_TRY(parse_header_and_body(p, l));
    GS_TRY(skip_newlines(p));
    return p->t.kind == GS_TOKEN_END ? GS_OK : gs_parser__expected(p, "the end of the text behind the network");
}

static gs_status parse_const(gs_parser *p)
{
    GS_TRY(take_const(p));
    return end_of_line(p);
}

gs_status gs_model__parse(gs_model *m)
{
    gs_parser p = {.m = m, .lexer = {.whole = m->text, .line = 1, .column = 1}};

    p.lexer.text = gs_text_bytes(m->text, &p.lexer.bytes);
    GS_TRY(gs_parser__next(&p));
    GS_TRY(skip_newlines(&p));
    while (p.t.kind != GS_TOKEN_END) {
        GS_TRY(gs_parser__is_word(&p, "const")                        ? parse_const(&p)
               : m->layers > 0 && gs_parser__is_word(&p, "network") ? parse_network(&p)
                                                                     : parse_layer(&p));
        GS_TRY(skip_newlines(&p));
    }
    return m->layers > 0 ? GS_OK : GS_PARSER_ERROR(&p, "the text has no layer");
}
