/* model_parse.c - layers and statements of a model text, by recursive descent over its tokens.
 *
 *   file   := { layer }
 *   layer  := "layer" NAME "(" NAME "[" dim "]" ")" "->" "[" dim "]" ":" { statement NEWLINE }
 *   statement := ("param" | "buffer") shape { "," shape } | NAME "=" expr | "return" expr
 *              | "repeat" NUMBER ":" | "end"
 *   shape  := NAME "[" dim [ "," dim [ "," dim ] ] "]"
 *   dim    := (NAME | NUMBER) { "*" (NAME | NUMBER) }
 *   expr   := ... (model_parse_expr.c)
 *
 * A layer ends with its return. Blank lines and indentation mean nothing;
 * neither do line ends inside brackets.
 */
#include <string.h>

#include "base/alloc.h"
#include "model/model_parser.h"

static gs_status parse_dim(gs_parser *p, gs_dim *out)
{
    gs_status st;

    out->line = p->t.line;
    out->column = p->t.column;
    for (;;) {
        if (out->factors == GS_DIM_FACTORS)
            return GS_PARSER_ERROR(p, "a width is a product of %d at most", GS_DIM_FACTORS);
        if (p->t.kind == GS_TOKEN_NUMBER) {
            if (!(p->t.number >= 1.0f && p->t.number <= 1e6f) || p->t.number != (float)(uint32_t)p->t.number)
                return GS_PARSER_ERROR(p, "a width must be a whole number from 1 to 1000000");
            out->factor[out->factors].value = (uint32_t)p->t.number;
            st = gs_parser__next(p);
        } else {
            st = gs_parser__take_name(p, out->factor[out->factors].name, "a width (a name or a number)", false);
        }
        out->factors++;
        if (st != GS_OK || !gs_parser__is_char(p, '*') || (st = gs_parser__next(p)) != GS_OK)
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
    const gs_text *const where = p->m->text;
    if (reserved(name) || strncmp(name, "u.", 2) == 0 || strncmp(name, "v.", 2) == 0 || strncmp(name, "e.", 2) == 0 ||
        strncmp(name, "input.", 6) == 0)
        return gs_model__error(where, line, column, "'%s' has a meaning of its own; choose another name", name);
    if (strcmp(l->input, name) == 0)
        return gs_model__error(where, line, column, "'%s' is the layer's input already", name);
    for (uint32_t i = 0; i < l->params; i++)
        if (strcmp(l->param[i].name, name) == 0)
            return gs_model__error(where, line, column, "'%s' is defined already, at line %u", name, l->param[i].line);
    for (uint32_t i = 0; i < l->statements && !again; i++)
        if (strcmp(l->statement[i].name, name) == 0)
            return gs_model__error(where, line, column, "'%s' is defined already, at line %u", name,
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

    if ((st = gs_parser__take_name(p, q.name, "a parameter's name", true)) != GS_OK ||
        (st = check_new_name(p, l, q.name, q.line, q.column, false)) != GS_OK ||
        (st = gs_parser__take_char(p, '[')) != GS_OK)
        return st;
    for (;;) {
        if ((st = parse_dim(p, &q.dim[q.dims++])) != GS_OK)
            return st;
        if (!gs_parser__is_char(p, ',') || q.dims == 3)
            break;
        if ((st = gs_parser__next(p)) != GS_OK)
            return st;
    }
    if ((st = gs_parser__take_char(p, ']')) != GS_OK || (st = grow(p, &array, l->params, sizeof(q))) != GS_OK)
        return st;
    l->param = array;
    l->param[l->params++] = q;
    return GS_OK;
}

static gs_status parse_params(gs_parser *p, gs_text_layer *l)
{
    const bool fixed = gs_parser__is_word(p, "buffer");
    gs_status st;
    do {
        if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__skip_newlines(p)) != GS_OK ||
            (st = parse_shape(p, l, fixed)) != GS_OK)
            return st;
    } while (gs_parser__is_char(p, ','));
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

    if ((st = gs_parser__take_name(p, a.name, "a variable's name", false)) != GS_OK ||
        (st = check_new_name(p, l, a.name, a.line, a.column, again)) != GS_OK ||
        (st = gs_parser__take_char(p, '=')) != GS_OK || (st = gs_parser__expr(p, &a.expr)) != GS_OK)
        return st;
    return add_statement(p, l, &a);
}

static gs_status parse_repeat(gs_parser *p, gs_text_layer *l)
{
    gs_statement r = {.kind = GS_STATEMENT_REPEAT, .line = p->t.line, .column = p->t.column, .expr = GS_TEXT_NONE};
    gs_status st;

    if (open_repeat(l) != GS_TEXT_NONE)
        return GS_PARSER_ERROR(p, "a repeat cannot stand inside a repeat");
    if ((st = gs_parser__next(p)) != GS_OK)
        return st;
    if (p->t.kind != GS_TOKEN_NUMBER || !(p->t.number >= 1.0f && p->t.number <= 1000.0f) ||
        p->t.number != (float)(uint32_t)p->t.number)
        return gs_parser__expected(p, "how often (a whole number from 1 to 1000)");
    r.count = (uint32_t)p->t.number;
    if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__take_char(p, ':')) != GS_OK)
        return st;
    return add_statement(p, l, &r);
}

static gs_status parse_end(gs_parser *p, gs_text_layer *l)
{
    gs_statement e = {.kind = GS_STATEMENT_END, .line = p->t.line, .column = p->t.column, .expr = GS_TEXT_NONE,
                      .other = open_repeat(l)};
    gs_status st;

    if (e.other == GS_TEXT_NONE)
        return GS_PARSER_ERROR(p, "there is no repeat to end");
    l->statement[e.other].other = l->statements;
    if ((st = gs_parser__next(p)) != GS_OK)
        return st;
    return add_statement(p, l, &e);
}

static gs_status end_of_line(const gs_parser *p)
{
    const bool ended = p->t.kind == GS_TOKEN_NEWLINE || p->t.kind == GS_TOKEN_END;
    return ended ? GS_OK : gs_parser__expected(p, "the end of the line");
}

static gs_status parse_body(gs_parser *p, gs_text_layer *l)
{
    gs_status st;
    for (;;) {
        bool last = false;
        if ((st = gs_parser__skip_newlines(p)) != GS_OK)
            return st;
        if (gs_parser__is_word(p, "param") || gs_parser__is_word(p, "buffer")) {
            st = parse_params(p, l);
        } else if (gs_parser__is_word(p, "repeat")) {
            st = parse_repeat(p, l);
        } else if (gs_parser__is_word(p, "end")) {
            st = parse_end(p, l);
        } else if (gs_parser__is_word(p, "return")) {
            last = true;
            if (open_repeat(l) != GS_TEXT_NONE)
                return GS_PARSER_ERROR(p, "the repeat of line %u is not ended", l->statement[open_repeat(l)].line);
            if ((st = gs_parser__next(p)) == GS_OK)
                st = gs_parser__expr(p, &l->result);
        } else if (p->t.kind == GS_TOKEN_NAME && !gs_parser__is_word(p, "layer")) {
            st = parse_assign(p, l);
        } else {
            st = gs_parser__expected(p, "'param', 'NAME = ...' or 'return'");
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

    if (!gs_parser__is_word(p, "layer"))
        return gs_parser__expected(p, "'layer'");
    if ((st = grow(p, &array, m->layers, sizeof(*m->layer))) != GS_OK)
        return st;
    m->layer = array;
    l = &m->layer[m->layers++]; /* freed by gs_model_close() from here on */
    memset(l, 0, sizeof(*l));
    l->line = p->t.line;
    l->column = p->t.column;
    if ((st = gs_parser__next(p)) != GS_OK ||
        (st = gs_parser__take_name(p, l->name, "the layer's name", false)) != GS_OK ||
        (st = gs_parser__take_char(p, '(')) != GS_OK ||
        (st = gs_parser__take_name(p, l->input, "the input's name", false)) != GS_OK ||
        (st = gs_parser__take_char(p, '[')) != GS_OK || (st = parse_dim(p, &l->in)) != GS_OK ||
        (st = gs_parser__take_char(p, ']')) != GS_OK || (st = gs_parser__take_char(p, ')')) != GS_OK)
        return st;
    if (reserved(l->input))
        return gs_model__error(m->text, l->line, l->column, "the layer's input cannot be called '%s'", l->input);
    if (p->t.kind != GS_TOKEN_ARROW)
        return gs_parser__expected(p, "'->'");
    if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__take_char(p, '[')) != GS_OK ||
        (st = parse_dim(p, &l->out)) != GS_OK || (st = gs_parser__take_char(p, ']')) != GS_OK ||
        (st = gs_parser__take_char(p, ':')) != GS_OK || (st = end_of_line(p)) != GS_OK)
        return st;
    return parse_body(p, l);
}

gs_status gs_model__parse(gs_model *m)
{
    gs_parser p = {.m = m, .lexer = {.whole = m->text, .line = 1, .column = 1}};
    gs_status st;

    p.lexer.text = gs_text_bytes(m->text, &p.lexer.bytes);
    st = gs_parser__next(&p);
    if (st == GS_OK)
        st = gs_parser__skip_newlines(&p);
    if (st == GS_OK && p.t.kind == GS_TOKEN_END)
        return gs_model__error(m->text, p.t.line, p.t.column, "the text has no layer");
    while (st == GS_OK && p.t.kind != GS_TOKEN_END)
        if ((st = parse_layer(&p)) == GS_OK)
            st = gs_parser__skip_newlines(&p);
    return st;
}
