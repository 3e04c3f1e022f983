/* model_parse_number.c - numbers, the constants of a text that stand for some, and widths. */
#include <string.h>

#include "model/model_parser.h"

const gs_text_const *gs_parser__const(const gs_parser *p)
{
    for (uint32_t i = 0; i < p->m->consts && p->t.kind == GS_TOKEN_NAME; i++)
        if (gs_parser__is_word(p, p->m->constant[i].name))
            return &p->m->constant[i];
    return NULL;
}

gs_status gs_parser__take_number(gs_parser *p, float *out, bool sign, const char *what)
{
    const bool minus = sign && gs_parser__is_char(p, '-');
    const gs_text_const *named;
    gs_status st = minus ? gs_parser__next(p) : GS_OK;

    if (st != GS_OK)
        return st;
    named = gs_parser__const(p);
    if (named == NULL && p->t.kind != GS_TOKEN_NUMBER)
        return gs_parser__expected(p, what);
    *out = named != NULL ? named->value : p->t.number;
    if (minus)
        *out = -*out;
    return gs_parser__next(p);
}

gs_status gs_parser__take_const(gs_parser *p)
{
    gs_model *const m = p->m;
    gs_text_const c = {0};
    gs_token name;
    const char *begin;
    void *array = m->constant;
    gs_status st;

    if ((st = gs_parser__next(p)) != GS_OK)
        return st;
    name = p->t;
    c.line = name.line;
    if ((st = gs_parser__take_name(p, c.name, "a constant's name", false)) != GS_OK)
        return st;
    if (gs_model__is_reserved(c.name))
        return gs_model__error(m->text, name.line, name.column, "'%s' has a meaning of its own; choose another name",
                               c.name);
    for (uint32_t i = 0; i < m->consts; i++)
        if (strcmp(m->constant[i].name, c.name) == 0)
            return gs_model__error(m->text, name.line, name.column, "'%s' is defined already, at line %u", c.name,
                                   m->constant[i].line);
    if ((st = gs_parser__take_char(p, '=')) != GS_OK)
        return st;
    begin = p->t.text;
    c.at = (size_t)(begin - p->lexer.text);
    if (gs_parser__is_char(p, '-') && (st = gs_parser__next(p)) != GS_OK)
        return st;
    if (p->t.kind != GS_TOKEN_NUMBER)
        return gs_parser__expected(p, "a number");
    c.value = begin[0] == '-' ? -p->t.number : p->t.number;
    c.bytes = (size_t)(p->t.text + p->t.bytes - begin);
    if ((st = gs_parser__next(p)) != GS_OK || (st = gs_parser__grow(p, &array, m->consts, sizeof(c))) != GS_OK)
        return st;
    m->constant = array;
    m->constant[m->consts++] = c;
    return GS_OK;
}

gs_status gs_parser__dim(gs_parser *p, gs_dim *out)
{
    float number;
    gs_status st;

    out->line = p->t.line;
    out->column = p->t.column;
    for (;;) {
        if (out->factors == GS_DIM_FACTORS)
            return GS_PARSER_ERROR(p, "a width is a product of %d at most", GS_DIM_FACTORS);
        if (p->t.kind == GS_TOKEN_NUMBER || gs_parser__const(p) != NULL) {
            number = gs_parser__const(p) != NULL ? gs_parser__const(p)->value : p->t.number;
            if (!(number >= 1.0f && number <= 1e6f) || number != (float)(uint32_t)number)
                return GS_PARSER_ERROR(p, "a width must be a whole number from 1 to 1000000");
            out->factor[out->factors].value = (uint32_t)number;
            st = gs_parser__next(p);
        } else {
            st = gs_parser__take_name(p, out->factor[out->factors].name, "a width (a name or a number)", false);
        }
        out->factors++;
        if (st != GS_OK || !gs_parser__is_char(p, '*') || (st = gs_parser__next(p)) != GS_OK)
            return st;
    }
}
