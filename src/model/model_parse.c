/* model_parse.c - layers and statements of a model text, by recursive descent over its tokens.
 *
 *   file   := { "const" NAME "=" [ "-" ] NUMBER NEWLINE | layer } [ network ]
 *   network := "network" "(" NAME "[" dim "]" ")" "->" "[" dim "]" ":" { statement NEWLINE }
 *   layer  := "layer" NAME "(" NAME "[" dim "]" ")" "->" "[" dim "]" ":" { statement NEWLINE }
 *   statement := ("param" | "buffer") shape [ "~" rule ] { "," shape [ "~" rule ] } | NAME "=" expr | "return" expr
 *              | "repeat" NUMBER ":" | "end"
 *   shape  := NAME "[" dim [ "," dim [ "," dim ] ] "]"
 *   rule   := ... (model_initial.c), of all shapes before it that have none
 *   dim    := (NAME | NUMBER) { "*" (NAME | NUMBER) }
 *   expr   := ... (model_parse_expr.c)
 *
 * A layer ends with its return. Blank lines and indentation mean nothing;
 * neither do line ends inside brackets.
 */
#include <string.h>

#include "base/alloc.h"
#include "model/model_parser.h"

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
    void *array = l->param;
    gs_status st;

    if ((st = gs_parser__take_name(p, q.name, "a parameter's name", true)) != GS_OK ||
        (st = check_new_name(p, l, q.name, q.line, q.column, false)) != GS_OK ||
        (st = gs_parser__take_char(p, '[')) != GS_OK)
        return st;
    for (;;) {
        if ((st = gs_parser__dim(p, &q.dim[q.dims++])) != GS_OK)
            return st;
        if (!gs_parser__is_char(p, ',') || q.dims == 3)
            break;
        if ((st = gs_parser__next(p)) != GS_OK)
            return st;
    }
    if ((st = gs_parser__take_char(p, ']')) != GS_OK ||
        (st = gs_parser__grow(p, &array, l->params, sizeof(q))) != GS_OK)
        return st;
    l->param = array;
    l->param[l->params++] = q;
    return GS_OK;
}

static gs_status parse_params(gs_parser *p, gs_text_layer *l)
{
    const bool fixed = gs_parser__is_word(p, "buffer");
    gs_text_initial initial;
    uint32_t first = l->params;
    gs_status st;
    do {
        if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__skip_newlines(p)) != GS_OK ||
            (st = parse_shape(p, l, fixed)) != GS_OK)
            return st;
        if (!gs_parser__is_char(p, '~'))
            continue;
        if ((st = gs_parser__initial(p, &initial)) != GS_OK)
            return st;
        while (first < l->params)
            l->param[first++].initial = initial;
    } while (gs_parser__is_char(p, ','));
    return GS_OK;
}

static gs_status add_statement(const gs_parser *p, gs_text_layer *l, const gs_statement *s)
{
    void *array = l->statement;
    const gs_status st = gs_parser__grow(p, &array, l->statements, sizeof(*s));
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
    const gs_text_const *named;
    float often;
    gs_status st;

    if (open_repeat(l) != GS_TEXT_NONE)
        return GS_PARSER_ERROR(p, "a repeat cannot stand inside a repeat");
    if ((st = gs_parser__next(p)) != GS_OK)
        return st;
    named = gs_parser__const(p);
    often = named != NULL ? named->value : p->t.kind == GS_TOKEN_NUMBER ? p->t.number : 0.0f;
    if (!(often >= 1.0f && often <= 1000.0f) || often != (float)(uint32_t)often)
        return gs_parser__expected(p, "how often (a whole number from 1 to 1000)");
    r.count = (uint32_t)often;
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

/* From the brackets on. */
static gs_status parse_header_and_body(gs_parser *p, gs_text_layer *l)
{
    const gs_model *const m = p->m;
    gs_status st;

    l->first_expr = m->exprs;
    if ((st = gs_parser__take_char(p, '(')) != GS_OK ||
        (st = gs_parser__take_name(p, l->input, "the input's name", false)) != GS_OK ||
        (st = gs_parser__take_char(p, '[')) != GS_OK || (st = gs_parser__dim(p, &l->in)) != GS_OK ||
        (st = gs_parser__take_char(p, ']')) != GS_OK || (st = gs_parser__take_char(p, ')')) != GS_OK)
        return st;
    if (gs_model__is_reserved(l->input))
        return gs_model__error(m->text, l->line, l->column, "the layer's input cannot be called '%s'", l->input);
    if (p->t.kind != GS_TOKEN_ARROW)
        return gs_parser__expected(p, "'->'");
    if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__take_char(p, '[')) != GS_OK ||
        (st = gs_parser__dim(p, &l->out)) != GS_OK || (st = gs_parser__take_char(p, ']')) != GS_OK ||
        (st = gs_parser__take_char(p, ':')) != GS_OK || (st = end_of_line(p)) != GS_OK)
        return st;
    st = parse_body(p, l);
    l->end_expr = m->exprs;
    return st;
}

static gs_status parse_layer(gs_parser *p)
{
    gs_model *m = p->m;
    gs_text_layer *l;
    void *array = m->layer;
    gs_status st;

    if (!gs_parser__is_word(p, "layer"))
        return gs_parser__expected(p, m->layers == 0 ? "'layer'" : "'layer' or 'network'");
    if ((st = gs_parser__grow(p, &array, m->layers, sizeof(*m->layer))) != GS_OK)
        return st;
    m->layer = array;
    l = &m->layer[m->layers++]; /* freed by gs_model_close() from here on */
    memset(l, 0, sizeof(*l));
    l->line = p->t.line;
    l->column = p->t.column;
    if ((st = gs_parser__next(p)) != GS_OK ||
        (st = gs_parser__take_name(p, l->name, "the layer's name", false)) != GS_OK)
        return st;
    return parse_header_and_body(p, l);
}

/* Ends the text: it calls the layers above it. */
static gs_status parse_network(gs_parser *p)
{
    gs_text_layer *const l = gs_calloc(1, sizeof(*l));
    gs_status st;

    if (l == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the model's text", p->m->path);
    p->m->network = l; /* freed by gs_model_close() from here on */
    memcpy(l->name, "network", sizeof("network"));
    l->line = p->t.line;
    l->column = p->t.column;
    if ((st = gs_parser__next(p)) != GS_OK || (st = parse_header_and_body(p, l)) != GS_OK ||
        (st = gs_parser__skip_newlines(p)) != GS_OK || p->t.kind == GS_TOKEN_END)
        return st;
    return gs_parser__expected(p, "the end of the text behind the network");
}

static gs_status parse_const(gs_parser *p)
{
    const gs_status st = gs_parser__take_const(p);
    return st == GS_OK ? end_of_line(p) : st;
}

gs_status gs_model__parse(gs_model *m)
{
    gs_parser p = {.m = m, .lexer = {.whole = m->text, .line = 1, .column = 1}};
    gs_status st;

    p.lexer.text = gs_text_bytes(m->text, &p.lexer.bytes);
    st = gs_parser__next(&p);
    if (st == GS_OK)
        st = gs_parser__skip_newlines(&p);
    while (st == GS_OK && p.t.kind != GS_TOKEN_END) {
        st = gs_parser__is_word(&p, "const")                        ? parse_const(&p)
             : m->layers > 0 && gs_parser__is_word(&p, "network") ? parse_network(&p)
                                                                   : parse_layer(&p);
        if (st == GS_OK)
            st = gs_parser__skip_newlines(&p);
    }
    return st == GS_OK && m->layers == 0 ? GS_PARSER_ERROR(&p, "the text has no layer") : st;
}
