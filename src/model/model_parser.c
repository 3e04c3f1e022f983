/* model_parser.c - the next token, taken or refused. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/model_parser.h"

gs_status gs_parser__next(gs_parser *p)
{
    return gs_model__lex(&p->lexer, &p->t);
}

bool gs_parser__is_char(const gs_parser *p, char c)
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
    return gs_parser__is_char(p, c) ? gs_parser__next(p) : gs_parser__expected(p, what);
}

gs_status gs_parser__take_name(gs_parser *p, char out[GS_TEXT_NAME], const char *what, bool dots)
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

gs_status gs_parser__skip_newlines(gs_parser *p)
{
    while (p->t.kind == GS_TOKEN_NEWLINE) {
        const gs_status st = gs_parser__next(p);
        if (st != GS_OK)
            return st;
    }
    return GS_OK;
}

gs_status gs_parser__grow(const gs_parser *p, void **array, uint32_t count, size_t size)
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
