/* text_lines.c - lines of a text file, piece by piece. */
#include "partition/text_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/text_number.h"

#define READ_BYTES (64 * GS_KIB)
#define SAFE_DIGITS 19 /* a number of so many fits 64 bits */

/* Moves what is left to the front and reads more behind it. */
static gs_status refill(gs_lines *l)
{
    const size_t left = (size_t)(l->end - l->at);
    uint64_t got = 0;

    if (left > GS_LINE_LIMIT)
        return gs_part__line_too_long(&l->line, GS_LINE_LIMIT);
    memmove(l->buffer, l->at, left);
    l->at = l->buffer;
    l->end = l->buffer + left;
    const gs_status st = gs_part__stream_read(l->stream, l->end, READ_BYTES, &got);
    l->end += got;
    l->ended = got < READ_BYTES;
    return st;
}

gs_status gs_part__lines_open(gs_lines *l, const gs_part_job *job, const char *path)
{
    memset(l, 0, sizeof(*l));
    l->line.path = path;
    gs_status st = gs_part__stream_open(&l->stream, path, job->memory / 4);
    if (st != GS_OK)
        return st;
    if ((l->buffer = gs_malloc(READ_BYTES + GS_LINE_LIMIT + 1 + GS_TEXT_PADDING)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    l->at = l->end = l->buffer;
    if ((st = refill(l)) == GS_OK && l->end - l->at >= 3 && memcmp(l->at, GS_TEXT_MARK, 3) == 0)
        l->at += 3;
    return st;
}

void gs_part__lines_close(gs_lines *l)
{
    gs_part__stream_close(l->stream);
    gs_free(l->buffer);
    memset(l, 0, sizeof(*l));
}

gs_status gs_part__lines_next(gs_lines *l, char **text)
{
    char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));

    if (newline == NULL && !l->ended) {
        const gs_status st = refill(l);
        if (st != GS_OK)
            return st;
        newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        if (newline == NULL && !l->ended)
            return gs_part__line_too_long(&l->line, GS_LINE_LIMIT);
    }
    *text = NULL;
    if (newline == NULL && l->at == l->end)
        return GS_OK;
    if (newline == NULL)
        newline = l->end; /* the last line has no newline; the buffer has room for the 0 */
    *text = l->at;
    l->line.text = l->at;
    l->line.number++;
    l->at = GS_MIN(newline + 1, l->end);
    const gs_status st = gs_part__line_check(&l->line, (size_t)(newline - l->line.text));
    *newline = '\0';
    return st;
}

gs_status gs_part__lines_next_said(gs_lines *l, const char **p, const char *missing)
{
    char *text = NULL;

    do {
        const gs_status st = gs_part__lines_next(l, &text);
        if (st != GS_OK)
            return st;
        if (text == NULL)
            return gs_fail(GS_EFORMAT, "%s: %s", l->line.path, missing);
        *p = gs_part__skip_blanks(text);
    } while (**p == '%' || **p == '\0');
    return GS_OK;
}

void gs_part__lines_back(gs_lines *l)
{
    char *const newline = l->buffer + (l->line.text - l->buffer) + strlen(l->line.text);

    if (newline < l->end)
        *newline = '\n';
    l->at = l->buffer + (l->line.text - l->buffer);
    l->line.number--;
}

gs_status gs_part__line_wrong(const gs_line *l, const char *at, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", l->path, (unsigned long long)l->number,
                   (unsigned long long)(at - l->text) + 1, what);
}

gs_status gs_part__line_too_long(const gs_line *l, uint64_t limit)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu is longer than %llu bytes", l->path, (unsigned long long)l->number + 1,
                   (unsigned long long)limit);
}

gs_status gs_part__line_check(const gs_line *l, size_t length)
{
    const char *const zero = memchr(l->text, '\0', length);
    return zero == NULL ? GS_OK : gs_part__line_wrong(l, zero, GS_ZERO_IN_TEXT);
}

/* Number of as many digits as there are; beyond 64 bits it stays large. */
static uint64_t saturated(const char *p)
{
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++)
        v = v > UINT64_MAX / 16 ? v : v * 10 + (uint64_t)(*p - '0');
    return v;
}

gs_status gs_part__take_number(uint64_t *out, const char **p, const gs_line *l, uint64_t least, uint64_t most,
                               const char *what)
{
    uint64_t v = 0;
    const char *const at = gs_text_digits(*p, &v);
    char text[160];

    if (at == *p) {
        snprintf(text, sizeof(text), "expected %s, a whole number", what);
        return gs_part__line_wrong(l, at, text);
    }
    if (at - *p > SAFE_DIGITS)
        v = saturated(*p);
    if (v < least || v > most) {
        snprintf(text, sizeof(text), "%s is outside %llu to %llu", what, (unsigned long long)least,
                 (unsigned long long)most);
        return gs_part__line_wrong(l, *p, text);
    }
    if (!gs_part__is_end(*at) && !gs_part__is_blank(*at))
        return gs_part__line_wrong(l, at, "a number ends in something that is neither a digit nor a blank");
    *out = v;
    *p = gs_part__skip_blanks(at);
    return GS_OK;
}
