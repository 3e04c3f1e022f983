/* text_lines.c - lines of a text file, piece by piece. */
#include "partition/text_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

#define READ_BYTES (1 * GS_MIB)

gs_status gs_part__lines_open(gs_lines *l, const gs_part_job *job, const char *path, uint64_t limit)
{
    memset(l, 0, sizeof(*l));
    l->path = path;
    l->limit = limit;
    const gs_status st = gs_part__stream_open(&l->stream, path, job->memory / 4);
    if (st != GS_OK)
        return st;
    if ((l->buffer = gs_malloc(READ_BYTES + limit + 1)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    l->at = l->end = l->buffer;
    return GS_OK;
}

void gs_part__lines_close(gs_lines *l)
{
    gs_part__stream_close(l->stream);
    gs_free(l->buffer);
    memset(l, 0, sizeof(*l));
}

static gs_status too_long(const gs_lines *l)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu is longer than %llu bytes", l->path, (unsigned long long)l->number + 1,
                   (unsigned long long)l->limit);
}

/* Moves what is left to the front and reads more behind it. */
static gs_status refill(gs_lines *l)
{
    const size_t left = (size_t)(l->end - l->at);
    uint64_t got = 0;

    if (left > l->limit)
        return too_long(l);
    memmove(l->buffer, l->at, left);
    l->at = l->buffer;
    l->end = l->buffer + left;
    const gs_status st = gs_part__stream_read(l->stream, l->end, READ_BYTES, &got);
    l->end += got;
    l->ended = got < READ_BYTES;
    return st;
}

gs_status gs_part__lines_wrong(const gs_lines *l, const char *at, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", l->path, (unsigned long long)l->number,
                   (unsigned long long)(at - l->line) + 1, what);
}

gs_status gs_part__lines_next(gs_lines *l, bool *more)
{
    char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));

    if (newline == NULL && !l->ended) {
        const gs_status st = refill(l);
        if (st != GS_OK)
            return st;
        newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        if (newline == NULL && !l->ended)
            return too_long(l);
    }
    *more = newline != NULL || l->at < l->end;
    if (!*more)
        return GS_OK;
    l->line = l->at;
    if (newline == NULL)
        newline = l->end; /* the last line has no newline; the buffer has room for the 0 */
    l->number++;
    const char *const zero = memchr(l->line, '\0', (size_t)(newline - l->line));
    if (zero != NULL) /* as the end of the line it would hide the rest */
        return gs_part__lines_wrong(l, zero, "a byte of 0, which no text holds; the file is damaged, or no text");
    *newline = '\0';
    l->at = GS_MIN(newline + 1, l->end);
    return GS_OK;
}

gs_status gs_part__lines_tick(gs_part_job *job, const gs_lines *l, const char *doing)
{
    if (l->number % 16384 != 0)
        return GS_OK;
    gs_part__tick(job, doing, gs_part__stream_done(l->stream));
    return gs_part__job_result(job);
}

char *gs_part__skip_blanks(char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

gs_status gs_part__take_number(uint64_t *out, char **p, const gs_lines *l, uint64_t least, uint64_t most,
                               const char *what)
{
    char *at = *p;
    uint64_t v = 0;
    char text[160];

    if (*at < '0' || *at > '9') {
        snprintf(text, sizeof(text), "expected %s, a whole number", what);
        return gs_part__lines_wrong(l, at, text);
    }
    for (; *at >= '0' && *at <= '9'; at++)
        v = v > UINT64_MAX / 16 ? v : v * 10 + (uint64_t)(*at - '0');
    if (v < least || v > most) {
        snprintf(text, sizeof(text), "%s is outside %llu to %llu", what, (unsigned long long)least,
                 (unsigned long long)most);
        return gs_part__lines_wrong(l, *p, text);
    }
    if (*at != '\0' && *at != ' ' && *at != '\t' && *at != '\r')
        return gs_part__lines_wrong(l, at, "a number ends in something that is neither a digit nor a blank");
    *out = v;
    *p = gs_part__skip_blanks(at);
    return GS_OK;
}
