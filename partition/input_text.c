/* input_text.c - SNAP edge lists and MatrixMarket files, parsed once into a
 * temporary file of binary records, since N is known only at the end. */
#include "partition/input_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/spill.h"

#define READ_BYTES (1 * GS_MIB)
#define LINE_LIMIT 65536u /* longest line */
#define MOST_ID (UINT32_MAX - 2u)

/* Lines of a file, each ended by a 0 byte in place of its newline. */
typedef struct lines {
    const char *path;
    int fd;
    uint64_t size, offset; /* of the file; read so far */
    char *buffer;          /* READ_BYTES + LINE_LIMIT + 1 */
    char *at, *end;
    uint64_t number; /* of the line last given, from 1 */
    char *line;
} lines;

static gs_status lines_open(lines *l, const char *path)
{
    memset(l, 0, sizeof(*l));
    l->fd = -1;
    l->path = path;
    const gs_status st = gs_file_open_read(&l->fd, &l->size, path);
    if (st != GS_OK)
        return st;
    if ((l->buffer = gs_malloc(READ_BYTES + LINE_LIMIT + 1)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    posix_fadvise(l->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    l->at = l->end = l->buffer;
    return GS_OK;
}

static void lines_close(lines *l)
{
    if (l->fd >= 0)
        close(l->fd);
    gs_free(l->buffer);
}

/* Moves what is left to the front and reads more behind it. */
static gs_status refill(lines *l)
{
    const size_t left = (size_t)(l->end - l->at);
    const uint64_t take = GS_MIN(READ_BYTES, l->size - l->offset);

    if (left > LINE_LIMIT)
        return gs_fail(GS_EFORMAT, "%s: line %llu is longer than %u bytes", l->path,
                       (unsigned long long)l->number + 1, LINE_LIMIT);
    memmove(l->buffer, l->at, left);
    l->at = l->buffer;
    l->end = l->buffer + left;
    const gs_status st = gs_pread_exact(l->fd, l->end, take, l->offset, l->path);
    if (st != GS_OK)
        return st;
    l->end += take;
    l->offset += take;
    return GS_OK;
}

static gs_status wrong(const lines *l, const char *at, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", l->path, (unsigned long long)l->number,
                   (unsigned long long)(at - l->line) + 1, what);
}

/* *more is false at the end of the file. */
static gs_status next_line(lines *l, bool *more)
{
    char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));

    if (newline == NULL && l->offset < l->size) {
        const gs_status st = refill(l);
        if (st != GS_OK)
            return st;
        newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        if (newline == NULL && l->offset < l->size)
            return gs_fail(GS_EFORMAT, "%s: line %llu is longer than %u bytes", l->path,
                           (unsigned long long)l->number + 1, LINE_LIMIT);
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
        return wrong(l, zero, "a byte of 0, which no text holds; the file is damaged, or no text");
    *newline = '\0';
    l->at = GS_MIN(newline + 1, l->end);
    return GS_OK;
}

static char *skip_blanks(char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* One integer of [least, most]; *p moves behind it and the blanks after it. */
static gs_status take_number(uint64_t *out, char **p, const lines *l, uint64_t least, uint64_t most, const char *what)
{
    char *at = *p;
    uint64_t v = 0;
    char text[160];

    if (*at < '0' || *at > '9') {
        snprintf(text, sizeof(text), "expected %s, a whole number", what);
        return wrong(l, at, text);
    }
    for (; *at >= '0' && *at <= '9'; at++)
        v = v > UINT64_MAX / 16 ? v : v * 10 + (uint64_t)(*at - '0');
    if (v < least || v > most) {
        snprintf(text, sizeof(text), "%s is outside %llu to %llu", what, (unsigned long long)least,
                 (unsigned long long)most);
        return wrong(l, *p, text);
    }
    if (*at != '\0' && *at != ' ' && *at != '\t' && *at != '\r')
        return wrong(l, at, "a number ends in something that is neither a digit nor a blank");
    *out = v;
    *p = skip_blanks(at);
    return GS_OK;
}

static gs_status put_edge(gs_part_input *in, uint64_t u, uint64_t v, float weight)
{
    uint32_t *record = gs_part__spill_put(in->text, 0, 0);
    if (record == NULL)
        return gs_part__spill_failure(in->text);
    record[0] = (uint32_t)u;
    record[1] = (uint32_t)v;
    if (in->weighted)
        memcpy(&record[2], &weight, 4);
    in->edges++;
    return GS_OK;
}

static gs_status check_stop(gs_part_job *job, const lines *l)
{
    if (l->number % 65536 != 0)
        return GS_OK;
    gs_part__tick(job, "reading edges", l->size == 0 ? 1 : (double)l->offset / (double)l->size);
    return gs_part__job_result(job);
}

static gs_status snap_line(gs_part_input *in, const lines *l, uint64_t *most)
{
    char *p = skip_blanks(l->line);
    uint64_t u, v;
    gs_status st;

    if (*p == '#' || *p == '\0')
        return GS_OK;
    if ((st = take_number(&u, &p, l, 0, MOST_ID, "the source id")) != GS_OK ||
        (st = take_number(&v, &p, l, 0, MOST_ID, "the destination id")) != GS_OK)
        return st;
    if (*p != '\0')
        return wrong(l, p, "expected the end of the line after two ids");
    *most = GS_MAX(*most, GS_MAX(u, v));
    return put_edge(in, u, v, 1);
}

gs_status gs_part__snap_read(gs_part_input *in, gs_part_job *job)
{
    lines l;
    uint64_t most = 0;
    bool more = true;
    gs_status st;

    if ((st = lines_open(&l, in->path)) != GS_OK ||
        (st = gs_part__spill_make(&in->text, job->dir, "tmp.edges", 1, 1, 2, 256 * GS_KIB)) != GS_OK)
        goto done;
    while ((st = next_line(&l, &more)) == GS_OK && more)
        if ((st = snap_line(in, &l, &most)) != GS_OK || (st = check_stop(job, &l)) != GS_OK)
            goto done;
    if (st != GS_OK)
        goto done;
    if (in->edges == 0) {
        st = gs_fail(GS_EFORMAT, "%s: holds no edge", in->path);
        goto done;
    }
    in->vertices = most + 1;
    st = gs_part__spill_finish(in->text);
done:
    lines_close(&l);
    return st;
}

typedef struct mtx {
    bool symmetric, values;
    bool below, above; /* of the diagonal there have been entries */
    uint64_t rows, entries;
} mtx;

static gs_status mtx_banner(mtx *m, const lines *l)
{
    char object[32], format[32], field[32], symmetry[32];
    for (char *p = l->line; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    if (sscanf(l->line, "%%%%matrixmarket %31s %31s %31s %31s", object, format, field, symmetry) != 4)
        return wrong(l, l->line, "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
    if (strcmp(object, "matrix") != 0 || strcmp(format, "coordinate") != 0)
        return wrong(l, l->line, "only 'matrix coordinate' files hold a graph's edges");
    if (strcmp(field, "pattern") != 0 && strcmp(field, "real") != 0 && strcmp(field, "integer") != 0)
        return wrong(l, l->line, "the field must be pattern, real or integer");
    if (strcmp(symmetry, "general") != 0 && strcmp(symmetry, "symmetric") != 0)
        return wrong(l, l->line, "the symmetry must be general or symmetric");
    m->values = strcmp(field, "pattern") != 0;
    m->symmetric = strcmp(symmetry, "symmetric") == 0;
    return GS_OK;
}

static gs_status mtx_size(mtx *m, lines *l)
{
    uint64_t columns;
    bool more;
    char *p;
    gs_status st;

    do {
        if ((st = next_line(l, &more)) != GS_OK)
            return st;
        if (!more)
            return gs_fail(GS_EFORMAT, "%s: ends before its size line", l->path);
        p = skip_blanks(l->line);
    } while (*p == '%' || *p == '\0');
    if ((st = take_number(&m->rows, &p, l, 1, MOST_ID + 1ull, "the number of rows")) != GS_OK)
        return st;
    char *const at = p;
    if ((st = take_number(&columns, &p, l, 1, MOST_ID + 1ull, "the number of columns")) != GS_OK)
        return st;
    if (columns != m->rows)
        return wrong(l, at, "rows and columns differ; a graph's matrix is square");
    return take_number(&m->entries, &p, l, 0, UINT64_MAX / 64, "the number of entries");
}

/* A symmetric file has one triangle; of one with both, every edge would be there twice. */
static gs_status check_triangle(mtx *m, const lines *l, uint64_t row, uint64_t column)
{
    m->below |= row > column;
    m->above |= row < column;
    if (!m->symmetric || !m->below || !m->above)
        return GS_OK;
    return wrong(l, l->line,
                 "the file says symmetric, and has entries on both sides of the diagonal; leave one side out, or "
                 "write general where both directions of an edge are listed");
}

/* Entry (i, j) is the edge i -> j; a symmetric file stands for j -> i as well. */
static gs_status mtx_line(gs_part_input *in, mtx *m, const lines *l, uint64_t *entries)
{
    char *p = skip_blanks(l->line), *after;
    uint64_t u, v;
    float weight = 1;
    gs_status st;

    if (*p == '\0' || *p == '%')
        return GS_OK;
    if (*entries == m->entries)
        return wrong(l, p, "more entries than the size line says");
    if ((st = take_number(&u, &p, l, 1, m->rows, "the row")) != GS_OK ||
        (st = take_number(&v, &p, l, 1, m->rows, "the column")) != GS_OK ||
        (st = check_triangle(m, l, u, v)) != GS_OK)
        return st;
    if (m->values) {
        weight = strtof(p, &after);
        if (after == p || !isfinite(weight))
            return wrong(l, p, "expected a finite value");
        p = skip_blanks(after);
    }
    if (*p != '\0')
        return wrong(l, p, "expected the end of the line");
    (*entries)++;
    if ((st = put_edge(in, u - 1, v - 1, weight)) == GS_OK && m->symmetric && u != v)
        st = put_edge(in, v - 1, u - 1, weight);
    return st;
}

static gs_status mtx_entries(gs_part_input *in, gs_part_job *job, lines *l, mtx *m)
{
    uint64_t entries = 0;
    bool more = true;
    gs_status st;

    while ((st = next_line(l, &more)) == GS_OK && more)
        if ((st = mtx_line(in, m, l, &entries)) != GS_OK || (st = check_stop(job, l)) != GS_OK)
            return st;
    if (st != GS_OK)
        return st;
    if (entries != m->entries)
        return gs_fail(GS_EFORMAT, "%s: ends after %llu entries; its size line says %llu", l->path,
                       (unsigned long long)entries, (unsigned long long)m->entries);
    return gs_part__spill_finish(in->text);
}

gs_status gs_part__mtx_read(gs_part_input *in, gs_part_job *job)
{
    lines l;
    mtx m = {0};
    bool more;
    gs_status st;

    if ((st = lines_open(&l, in->path)) != GS_OK || (st = next_line(&l, &more)) != GS_OK)
        goto done;
    if (!more) {
        st = gs_fail(GS_EFORMAT, "%s: the file is empty", in->path);
        goto done;
    }
    if ((st = mtx_banner(&m, &l)) != GS_OK || (st = mtx_size(&m, &l)) != GS_OK)
        goto done;
    in->weighted = m.values;
    in->vertices = m.rows;
    if ((st = gs_part__spill_make(&in->text, job->dir, "tmp.edges", 1, 1, m.values ? 3 : 2, 256 * GS_KIB)) != GS_OK)
        goto done;
    st = mtx_entries(in, job, &l, &m);
done:
    lines_close(&l);
    return st;
}
