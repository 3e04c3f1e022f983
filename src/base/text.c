/* text.c - a shared text, and the line of it that an error is about. */
#include "base/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define SHOWN_BYTES 160 /* of a line; of a longer one what stands around the column */
#define INDENT 4

struct gs_text {
    atomic_uint users;
    size_t bytes;
    char *name, *text;
};

gs_text *gs_text_new(const char *name, const char *text, size_t bytes)
{
    gs_text *t = gs_calloc(1, sizeof(*t));

    if (t == NULL)
        return NULL;
    atomic_init(&t->users, 1);
    t->bytes = bytes;
    if ((t->name = gs_strdup(name)) == NULL || (t->text = gs_malloc(bytes + 1)) == NULL) {
        gs_text_drop(t);
        return NULL;
    }
    memcpy(t->text, text, bytes);
    t->text[bytes] = '\0';
    return t;
}

gs_text *gs_text_keep(gs_text *t)
{
    if (t != NULL)
        atomic_fetch_add(&t->users, 1);
    return t;
}

void gs_text_drop(gs_text *t)
{
    if (t == NULL || atomic_fetch_sub(&t->users, 1) > 1)
        return;
    gs_free(t->name);
    gs_free(t->text);
    gs_free(t);
}

const char *gs_text_name(const gs_text *t) { return t->name; }

const char *gs_text_bytes(const gs_text *t, size_t *bytes)
{
    *bytes = t->bytes;
    return t->text;
}

/* The line's first byte and its length without the line's end; NULL where there is none. */
static const char *find_line(const gs_text *t, uint32_t line, size_t *bytes)
{
    const char *at = t->text, *const end = t->text + t->bytes;

    for (uint32_t k = 1; k < line && at != NULL; k++)
        if ((at = memchr(at, '\n', (size_t)(end - at))) != NULL)
            at++;
    if (line == 0 || at == NULL)
        return NULL;
    const char *const stop = memchr(at, '\n', (size_t)(end - at));
    *bytes = (size_t)((stop == NULL ? end : stop) - at);
    if (*bytes > 0 && at[*bytes - 1] == '\r')
        --*bytes;
    return at;
}

static bool continues(char c) { return ((unsigned char)c & 0xC0) == 0x80; } /* a character of UTF-8 */

/* Two lines: the text's, and the caret. A tab stays one in both, so that they agree wherever its stops are. */
static void show(const gs_text *t, uint32_t line, uint32_t column)
{
    char out[2 * (INDENT + 4 * SHOWN_BYTES) + 16];
    size_t bytes = 0, n = 0, first = 0, last;
    const char *const at = find_line(t, line, &bytes);

    if (at == NULL || column == 0 || column > bytes + 1)
        return;
    if (column > SHOWN_BYTES * 3 / 4)
        first = column - SHOWN_BYTES / 2;
    while (first > 0 && continues(at[first]))
        first--;
    last = bytes - first < SHOWN_BYTES ? bytes : first + SHOWN_BYTES;
    while (last < bytes && continues(at[last]))
        last++;
    for (size_t k = 0; k < INDENT; k++)
        out[n++] = ' ';
    for (size_t k = first; k < last; k++) /* what no terminal should get is a '?' */
        out[n++] = at[k] == '\t' || ((unsigned char)at[k] >= 0x20 && at[k] != 0x7f) ? at[k] : '?';
    out[n++] = '\n';
    for (size_t k = 0; k < INDENT; k++)
        out[n++] = ' ';
    for (size_t k = first; k + 1 < column; k++)
        if (k >= bytes || !continues(at[k]))
            out[n++] = k < bytes && at[k] == '\t' ? '\t' : ' ';
    out[n++] = '^';
    out[n] = '\0';
    gs_fail_place(out);
}

gs_status gs_fail_in_text(gs_status st, const gs_text *t, uint32_t line, uint32_t column, const char *fmt, ...)
{
    char text[384];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)gs_fail(st, "%s:%u:%u: %s", t->name, line, column, text);
    if (st != GS_ENOMEM) /* which is not the line's fault */
        show(t, line, column);
    return st;
}
