/* model_parse.c - recursive descent over the tokens of a model text.
 *
 *   file   := { layer }
 *   layer  := "layer" NAME "(" NAME "[" dim "]" ")" "->" "[" dim "]" ":" { statement NEWLINE }
 *   statement := ("param" | "buffer") shape { "," shape } | NAME "=" expr | "return" expr
 *              | "repeat" NUMBER ":" | "end"
 *   shape  := NAME "[" dim [ "," dim [ "," dim ] ] "]"
 *   dim    := (NAME | NUMBER) { "*" (NAME | NUMBER) }
 *   expr   := sum [ COMPARISON sum ]
 *   sum    := term { ("+" | "-") term }
 *   term   := sign { ("*" | "/") sign | "@" NAME [ "'" | "[" "e.type" "]" ] }
 *   sign   := "-" sign | NUMBER | "(" expr ")" | NAME [ "(" expr [ "," second ] ")" ]
 *   second := [ "-" ] NUMBER [ "," NUMBER (of part) ] | "self" | "type" | NAME (of norms)
 *           | expr { "," expr } (of dot, concat, and functions of several operands)
 *
 * Infix signs and functions are those of the table of operators (tensor/op.h).
 * A layer ends with its return. Blank lines and indentation mean nothing;
 * neither do line ends inside brackets.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/model_internal.h"

typedef struct gs_parser {
    gs_lexer lexer;
    gs_token t; /* the next token, not yet taken */
    gs_model *m;
    uint32_t depth;
} gs_parser;

#define ERROR(p, ...) gs_model__error((p)->m->path, (p)->t.line, (p)->t.column, __VA_ARGS__)

static gs_status next(gs_parser *p)
{
    return gs_model__lex(&p->lexer, &p->t);
}

static bool is_char(const gs_parser *p, char c)
{
    return p->t.kind == GS_TOKEN_CHAR && p->t.bytes == 1 && p->t.text[0] == c;
}

static bool is_word(const gs_parser *p, const char *word)
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

static gs_status expected(const gs_parser *p, const char *what)
{
    char buf[48];
    return ERROR(p, "expected %s, found %s", what, found(p, buf));
}

static gs_status take_char(gs_parser *p, char c)
{
    const char what[] = {'\'', c, '\'', 0};
    return is_char(p, c) ? next(p) : expected(p, what);
}

static gs_status take_name(gs_parser *p, char out[GS_TEXT_NAME], const char *what, bool dots)
{
    if (p->t.kind != GS_TOKEN_NAME)
        return expected(p, what);
    if (p->t.bytes >= GS_TEXT_NAME)
        return ERROR(p, "a name may have %d characters at most", GS_TEXT_NAME - 1);
    memcpy(out, p->t.text, p->t.bytes);
    out[p->t.bytes] = 0;
    if (!dots && strchr(out, '.') != NULL)
        return ERROR(p, "%s cannot have a dot: '%s'", what, out);
    return next(p);
}

static gs_status skip_newlines(gs_parser *p)
{
    while (p->t.kind == GS_TOKEN_NEWLINE) {
        const gs_status st = next(p);
        if (st != GS_OK)
            return st;
    }
    return GS_OK;
}

/* ---- expressions ---- */

static gs_status parse_expr(gs_parser *p, uint32_t *out);

static gs_status add_expr(gs_parser *p, uint32_t *out, const gs_expr *e)
{
    gs_model *m = p->m;
    if (m->exprs == GS_TEXT_MAX_EXPRS)
        return ERROR(p, "the text has more than %u operations", GS_TEXT_MAX_EXPRS);
    if (m->exprs == m->expr_cap) {
        const uint32_t cap = m->expr_cap == 0 ? 64 : m->expr_cap * 2;
        gs_expr *q = gs_realloc(m->expr, cap * sizeof(*q));
        if (q == NULL)
            return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", m->path);
        m->expr = q;
        m->expr_cap = cap;
    }
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
    const bool minus = is_char(p, '-');
    gs_status st = minus ? next(p) : GS_OK;

    if (st != GS_OK)
        return st;
    if (p->t.kind != GS_TOKEN_NUMBER)
        return expected(p, "a number");
    e->number = minus ? -p->t.number : p->t.number;
    e->has_number = true;
    return next(p);
}

static gs_status parse_over(gs_parser *p, gs_expr *e)
{
    if (is_word(p, "self"))
        e->over = GS_OVER_SELF;
    else if (is_word(p, "type"))
        e->over = GS_OVER_TYPE;
    else
        return expected(p, "'self' or 'type'");
    return next(p);
}

bool gs_model__is_reduction(const char *name)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "softmax", "lstm"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool gs_model__is_norm(const char *name)
{
    return strcmp(name, "batch_norm") == 0 || strcmp(name, "layer_norm") == 0;
}

/* part(a, K, N): the K-th of N equal parts, from 0. */
static gs_status parse_which_part(gs_parser *p, gs_expr *e)
{
    gs_status st = parse_second_number(p, e);
    if (st != GS_OK || (st = take_char(p, ',')) != GS_OK)
        return st;
    if (p->t.kind != GS_TOKEN_NUMBER)
        return expected(p, "a number");
    e->third = p->t.number;
    return next(p);
}

/* After the first and its comma. */
static gs_status parse_operands(gs_parser *p, gs_expr *e, uint32_t operands)
{
    gs_status st = parse_expr(p, &e->b);
    if (st != GS_OK || operands < 3 || (st = take_char(p, ',')) != GS_OK)
        return st;
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
    gs_status st;

    if ((st = parse_expr(p, &e->a)) != GS_OK)
        return st;
    if (!is_char(p, ','))
        return second != NULL ? expected(p, second) : take_char(p, operands > 1 && !reduces ? ',' : ')');
    if ((st = next(p)) != GS_OK)
        return st;
    if (operands > 1 && !is_word(p, "self") && !is_word(p, "type"))
        st = parse_operands(p, e, operands);
    else if (strcmp(e->name, "part") == 0)
        st = parse_which_part(p, e);
    else if (gs_model__is_norm(e->name))
        st = take_name(p, e->prefix, "a name for its parameters", true);
    else
        st = reduces ? parse_over(p, e) : parse_second_number(p, e);
    return st == GS_OK ? take_char(p, ')') : st;
}

static gs_status parse_named(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_NAME);
    gs_status st = take_name(p, e.name, "a name", true);

    if (st == GS_OK && is_char(p, '(')) {
        e.kind = GS_EXPR_CALL;
        if ((st = next(p)) == GS_OK)
            st = parse_arguments(p, &e);
    }
    return st == GS_OK ? add_expr(p, out, &e) : st;
}

static gs_status parse_sign(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_NUMBER);
    gs_status st;

    if (p->depth == GS_TEXT_MAX_DEPTH)
        return ERROR(p, "nested deeper than %u", GS_TEXT_MAX_DEPTH);
    p->depth++;
    if (is_char(p, '-')) {
        e.kind = GS_EXPR_NEG;
        if ((st = next(p)) == GS_OK && (st = parse_sign(p, &e.a)) == GS_OK)
            st = add_expr(p, out, &e);
    } else if (is_char(p, '(')) {
        if ((st = next(p)) == GS_OK && (st = parse_expr(p, out)) == GS_OK)
            st = take_char(p, ')');
    } else if (p->t.kind == GS_TOKEN_NUMBER) {
        e.number = p->t.number;
        if ((st = next(p)) == GS_OK)
            st = add_expr(p, out, &e);
    } else if (p->t.kind == GS_TOKEN_NAME) {
        st = parse_named(p, out);
    } else {
        st = expected(p, "an expression");
    }
    p->depth--;
    return st;
}

static gs_status parse_matmul(gs_parser *p, uint32_t *out)
{
    gs_expr e = expr_at(p, GS_EXPR_MATMUL);
    gs_status st;

    e.a = *out;
    if ((st = next(p)) != GS_OK || (st = take_name(p, e.name, "a parameter right of @", true)) != GS_OK)
        return st;
    if (is_char(p, '\'')) {
        e.transposed = true;
        st = next(p);
    } else if (is_char(p, '[')) {
        e.typed = true;
        if ((st = next(p)) == GS_OK && !is_word(p, "e.type"))
            st = expected(p, "'e.type'");
        if (st == GS_OK && (st = next(p)) == GS_OK)
            st = take_char(p, ']');
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
    if ((st = next(p)) == GS_OK && (st = right(p, &e.b)) == GS_OK)
        st = add_expr(p, out, &e);
    return st;
}

static gs_status parse_term(gs_parser *p, uint32_t *out)
{
    gs_status st = parse_sign(p, out);
    gs_op op = GS_OP_COUNT;

    while (st == GS_OK && (is_char(p, '@') || is_sign(p, GS_BINDS_PRODUCT, &op)))
        st = is_char(p, '@') ? parse_matmul(p, out) : parse_infix(p, out, op, parse_sign);
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
static gs_status parse_expr(gs_parser *p, uint32_t *out)
{
    gs_status st = parse_sum(p, out);
    gs_op op;

    if (st == GS_OK && is_sign(p, GS_BINDS_COMPARISON, &op))
        st = parse_infix(p, out, op, parse_sum);
    if (st == GS_OK && is_sign(p, GS_BINDS_COMPARISON, &op))
        return ERROR(p, "comparisons do not follow one another; put one of them in brackets");
    return st;
}

/* ---- statements ---- */

static gs_status parse_dim(gs_parser *p, gs_dim *out)
{
    gs_status st;

    out->line = p->t.line;
    out->column = p->t.column;
    for (;;) {
        if (out->factors == GS_DIM_FACTORS)
            return ERROR(p, "a width is a product of %d at most", GS_DIM_FACTORS);
        if (p->t.kind == GS_TOKEN_NUMBER) {
            if (!(p->t.number >= 1.0f && p->t.number <= 1e6f) || p->t.number != (float)(uint32_t)p->t.number)
                return ERROR(p, "a width must be a whole number from 1 to 1000000");
            out->factor[out->factors].value = (uint32_t)p->t.number;
            st = next(p);
        } else {
            st = take_name(p, out->factor[out->factors].name, "a width (a name or a number)", false);
        }
        out->factors++;
        if (st != GS_OK || !is_char(p, '*') || (st = next(p)) != GS_OK)
            return st;
    }
}

/* Names that mean something already. */
static bool reserved(const char *name)
{
    static const char *const words[] = {"layer",     "param",      "buffer",     "return", "repeat", "end",
                                        "u",         "v",          "e",          "self",   "type",   "heads",
                                        "types",     "bases",      "in_degree",  "loops",  "dot",    "act",
                                        "head_mean", "layer_norm", "batch_norm", "concat", "part",   "row_softmax",
                                        "dropout"};
    gs_op op;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i], name) == 0)
            return true;
    return gs_model__is_reduction(name) || gs_model__function(name, &op);
}

/* A name may be given again only by a statement of a `repeat`, and only if it is a variable's. */
static gs_status check_new_name(const gs_parser *p, const gs_text_layer *l, const char *name, uint32_t line,
                                uint32_t column, bool again)
{
    const char *path = p->m->path;
    if (reserved(name) || strncmp(name, "u.", 2) == 0 || strncmp(name, "v.", 2) == 0 || strncmp(name, "e.", 2) == 0 ||
        strncmp(name, "input.", 6) == 0)
        return gs_model__error(path, line, column, "'%s' has a meaning of its own; choose another name", name);
    if (strcmp(l->input, name) == 0)
        return gs_model__error(path, line, column, "'%s' is the layer's input already", name);
    for (uint32_t i = 0; i < l->params; i++)
        if (strcmp(l->param[i].name, name) == 0)
            return gs_model__error(path, line, column, "'%s' is defined already, at line %u", name, l->param[i].line);
    for (uint32_t i = 0; i < l->statements && !again; i++)
        if (strcmp(l->statement[i].name, name) == 0)
            return gs_model__error(path, line, column, "'%s' is defined already, at line %u", name,
                                   l->statement[i].line);
    return GS_OK;
}

/* One more element in an array that grows by powers of two. */
static gs_status grow(const gs_parser *p, void **array, uint32_t count, size_t size)
{
    void *q;
    if (count > 0 && (count & (count - 1)) != 0)
        return GS_OK;
    q = gs_realloc(*array, (count == 0 ? 1 : (size_t)count * 2) * size);
    if (q == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", p->m->path);
    *array = q;
    return GS_OK;
}

static gs_status parse_shape(gs_parser *p, gs_text_layer *l, bool fixed)
{
    gs_text_param q = {.line = p->t.line, .column = p->t.column, .fixed = fixed};
    void *array = l->param;
    gs_status st;

    if ((st = take_name(p, q.name, "a parameter's name", true)) != GS_OK ||
        (st = check_new_name(p, l, q.name, q.line, q.column, false)) != GS_OK || (st = take_char(p, '[')) != GS_OK)
        return st;
    for (;;) {
        if ((st = parse_dim(p, &q.dim[q.dims++])) != GS_OK)
            return st;
        if (!is_char(p, ',') || q.dims == 3)
            break;
        if ((st = next(p)) != GS_OK)
            return st;
    }
    if ((st = take_char(p, ']')) != GS_OK || (st = grow(p, &array, l->params, sizeof(q))) != GS_OK)
        return st;
    l->param = array;
    l->param[l->params++] = q;
    return GS_OK;
}

static gs_status parse_params(gs_parser *p, gs_text_layer *l)
{
    const bool fixed = is_word(p, "buffer");
    gs_status st;
    do {
        if ((st = next(p)) != GS_OK || (st = skip_newlines(p)) != GS_OK || (st = parse_shape(p, l, fixed)) != GS_OK)
            return st;
    } while (is_char(p, ','));
    return GS_OK;
}

static gs_status add_statement(const gs_parser *p, gs_text_layer *l, const gs_statement *s)
{
    void *array = l->statement;
    const gs_status st = grow(p, &array, l->statements, sizeof(*s));
    if (st != GS_OK)
        return st;
    l->statement = array;
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
    gs_status st;

    if ((st = take_name(p, a.name, "a variable's name", false)) != GS_OK ||
        (st = check_new_name(p, l, a.name, a.line, a.column, again)) != GS_OK || (st = take_char(p, '=')) != GS_OK ||
        (st = parse_expr(p, &a.expr)) != GS_OK)
        return st;
    return add_statement(p, l, &a);
}

static gs_status parse_repeat(gs_parser *p, gs_text_layer *l)
{
    gs_statement r = {.kind = GS_STATEMENT_REPEAT, .line = p->t.line, .column = p->t.column, .expr = GS_TEXT_NONE};
    gs_status st;

    if (open_repeat(l) != GS_TEXT_NONE)
        return ERROR(p, "a repeat cannot stand inside a repeat");
    if ((st = next(p)) != GS_OK)
        return st;
    if (p->t.kind != GS_TOKEN_NUMBER || !(p->t.number >= 1.0f && p->t.number <= 1000.0f) ||
        p->t.number != (float)(uint32_t)p->t.number)
        return expected(p, "how often (a whole number from 1 to 1000)");
    r.count = (uint32_t)p->t.number;
    if ((st = next(p)) != GS_OK || (st = take_char(p, ':')) != GS_OK)
        return st;
    return add_statement(p, l, &r);
}

static gs_status parse_end(gs_parser *p, gs_text_layer *l)
{
    gs_statement e = {.kind = GS_STATEMENT_END, .line = p->t.line, .column = p->t.column, .expr = GS_TEXT_NONE,
                      .other = open_repeat(l)};
    gs_status st;

    if (e.other == GS_TEXT_NONE)
        return ERROR(p, "there is no repeat to end");
    l->statement[e.other].other = l->statements;
    if ((st = next(p)) != GS_OK)
        return st;
    return add_statement(p, l, &e);
}

static gs_status end_of_line(const gs_parser *p)
{
    return p->t.kind == GS_TOKEN_NEWLINE || p->t.kind == GS_TOKEN_END ? GS_OK : expected(p, "the end of the line");
}

static gs_status parse_body(gs_parser *p, gs_text_layer *l)
{
    gs_status st;
    for (;;) {
        bool last = false;
        if ((st = skip_newlines(p)) != GS_OK)
            return st;
        if (is_word(p, "param") || is_word(p, "buffer")) {
            st = parse_params(p, l);
        } else if (is_word(p, "repeat")) {
            st = parse_repeat(p, l);
        } else if (is_word(p, "end")) {
            st = parse_end(p, l);
        } else if (is_word(p, "return")) {
            last = true;
            if (open_repeat(l) != GS_TEXT_NONE)
                return ERROR(p, "the repeat of line %u is not ended", l->statement[open_repeat(l)].line);
            if ((st = next(p)) == GS_OK)
                st = parse_expr(p, &l->result);
        } else if (p->t.kind == GS_TOKEN_NAME && !is_word(p, "layer")) {
            st = parse_assign(p, l);
        } else {
            st = expected(p, "'param', 'NAME = ...' or 'return'");
        }
        if (st != GS_OK || (st = end_of_line(p)) != GS_OK || last)
            return st;
    }
}

static gs_status parse_layer(gs_parser *p)
{
    gs_model *m = p->m;
    gs_text_layer *l;
    void *array = m->layer;
    gs_status st;

    if (!is_word(p, "layer"))
        return expected(p, "'layer'");
    if ((st = grow(p, &array, m->layers, sizeof(*m->layer))) != GS_OK)
        return st;
    m->layer = array;
    l = &m->layer[m->layers++]; /* freed by gs_model_close() from here on */
    memset(l, 0, sizeof(*l));
    l->line = p->t.line;
    l->column = p->t.column;
    if ((st = next(p)) != GS_OK || (st = take_name(p, l->name, "the layer's name", false)) != GS_OK ||
        (st = take_char(p, '(')) != GS_OK || (st = take_name(p, l->input, "the input's name", false)) != GS_OK ||
        (st = take_char(p, '[')) != GS_OK || (st = parse_dim(p, &l->in)) != GS_OK ||
        (st = take_char(p, ']')) != GS_OK || (st = take_char(p, ')')) != GS_OK)
        return st;
    if (reserved(l->input))
        return gs_model__error(m->path, l->line, l->column, "the layer's input cannot be called '%s'", l->input);
    if (p->t.kind != GS_TOKEN_ARROW)
        return expected(p, "'->'");
    if ((st = next(p)) != GS_OK || (st = take_char(p, '[')) != GS_OK || (st = parse_dim(p, &l->out)) != GS_OK ||
        (st = take_char(p, ']')) != GS_OK || (st = take_char(p, ':')) != GS_OK || (st = end_of_line(p)) != GS_OK)
        return st;
    return parse_body(p, l);
}

gs_status gs_model__parse(gs_model *m, const char *text, size_t bytes)
{
    gs_parser p = {.m = m, .lexer = {.path = m->path, .text = text, .bytes = bytes, .line = 1, .column = 1}};
    gs_status st = next(&p);

    if (st == GS_OK)
        st = skip_newlines(&p);
    if (st == GS_OK && p.t.kind == GS_TOKEN_END)
        return gs_model__error(m->path, p.t.line, p.t.column, "the text has no layer");
    while (st == GS_OK && p.t.kind != GS_TOKEN_END)
        if ((st = parse_layer(&p)) == GS_OK)
            st = skip_newlines(&p);
    return st;
}
