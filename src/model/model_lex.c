/* model_lex.c - model text to tokens. Any bytes may come in. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_internal.h"

gs_status gs_model__error(const gs_text *where, uint32_t line, uint32_t column, const char *fmt, ...)
{
    char text[384];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return gs_fail_in_text(GS_EFORMAT, where, line, column, "%s", text);
}

/* The byte `ahead` from here, 0 past the end (a real 0 byte is an error anyway). */
static unsigned char peek(const gs_lexer *x, size_t ahead)
{
    return ahead < x->bytes - x->at ? (unsigned char)x->text[x->at + ahead] : 0;
}

static void advance(gs_lexer *x, size_t bytes)
{
    x->at += bytes;
    x->column += (uint32_t)bytes;
}

static void skip_blank(gs_lexer *x)
{
    for (;;) {
        const unsigned char c = peek(x, 0);
        if (c == ' ' || c == '\t' || c == '\r')
            advance(x, 1);
        else if (c == '#')
            while (x->at < x->bytes && x->text[x->at] != '\n')
                advance(x, 1);
        else if (c == '\n' && x->brackets > 0) {
            x->at++;
            x->line++;
            x->column = 1;
        } else {
            return;
        }
    }
}

static bool name_start(unsigned char c)
{
    return c < 128 && (isalpha(c) || c == '_');
}

static bool name_part(unsigned char c)
{
    return c < 128 && (isalnum(c) || c == '_');
}

static size_t name_bytes(const gs_lexer *x)
{
    size_t n = 0;
    while (name_part(peek(x, n)) || (peek(x, n) == '.' && name_part(peek(x, n + 1))))
        n++;
    return n;
}

static size_t number_bytes(const gs_lexer *x)
{
    size_t n = 0;
    while (isdigit(peek(x, n)))
        n++;
    if (peek(x, n) == '.') {
        n++;
        while (isdigit(peek(x, n)))
            n++;
    }
    if (peek(x, n) == 'e' || peek(x, n) == 'E') {
        const size_t sign = peek(x, n + 1) == '+' || peek(x, n + 1) == '-';
        if (isdigit(peek(x, n + 1 + sign))) {
            n += 1 + sign;
            while (isdigit(peek(x, n)))
                n++;
        }
    }
    return n;
}

static gs_status lex_number(gs_lexer *x, gs_token *t)
{
    char buf[64];

    t->bytes = number_bytes(x);
    if (t->bytes >= sizeof(buf))
        return gs_model__error(x->whole, t->line, t->column, "a number of %zu characters is too long", t->bytes);
    memcpy(buf, t->text, t->bytes);
    buf[t->bytes] = 0;
    t->number = strtof(buf, NULL);
    if (!isfinite(t->number))
        return gs_model__error(x->whole, t->line, t->column, "the number %s is out of range", buf);
    if (name_start(peek(x, t->bytes)) || peek(x, t->bytes) == '.')
        return gs_model__error(x->whole, t->line, t->column, "malformed number");
    t->kind = GS_TOKEN_NUMBER;
    advance(x, t->bytes);
    return GS_OK;
}

/* Bytes of the longest infix sign of an operator that stands here; 0 where there is none. */
static size_t sign_bytes(const gs_lexer *x)
{
    size_t most = 0;
    for (gs_op op = 0; op < GS_OP_COUNT; op++) {
        const char *const text = gs_op_facts_of(op)->text;
        size_t n = 0;
        if (text == NULL || name_start((unsigned char)text[0]))
            continue;
        while (text[n] != 0 && peek(x, n) == (unsigned char)text[n])
            n++;
        if (text[n] == 0 && n > most)
            most = n;
    }
    return most;
}

static gs_status lex_char(gs_lexer *x, gs_token *t)
{
    const unsigned char c = peek(x, 0);
    const size_t sign = sign_bytes(x);

    if (c == '-' && peek(x, 1) == '>') {
        t->kind = GS_TOKEN_ARROW;
        t->bytes = 2;
        advance(x, 2);
        return GS_OK;
    }
    if (sign == 0 && (c == 0 || strchr("()[],:=@'~", c) == NULL)) {
        if (c > 32 && c < 127)
            return gs_model__error(x->whole, t->line, t->column, "unexpected character '%c'", c);
        return gs_model__error(x->whole, t->line, t->column, "unexpected byte 0x%02x", c);
    }
    if (c == '(' || c == '[')
        x->brackets++;
    if ((c == ')' || c == ']') && x->brackets > 0)
        x->brackets--;
    t->kind = GS_TOKEN_CHAR;
    t->bytes = sign > 0 ? sign : 1;
    advance(x, t->bytes);
    return GS_OK;
}

gs_status gs_model__lex(gs_lexer *x, gs_token *out)
{
    gs_token t = {0};
    unsigned char c;

    skip_blank(x);
    t.line = x->line;
    t.column = x->column;
    t.text = x->text + x->at;
    if (x->at == x->bytes) {
        t.kind = GS_TOKEN_END;
        *out = t;
        return GS_OK;
    }
    c = peek(x, 0);
    if (c == '\n') {
        t.kind = GS_TOKEN_NEWLINE;
        x->at++;
        x->line++;
        x->column = 1;
    } else if (name_start(c)) {
        t.kind = GS_TOKEN_NAME;
        t.bytes = name_bytes(x);
        advance(x, t.bytes);
    } else if (isdigit(c) || (c == '.' && isdigit(peek(x, 1)))) {
        GS_TRY(lex_number(x, &t));
    } else {
        GS_TRY(lex_char(x, &t));
    }
    *out = t;
    return GS_OK;
}
