/* input_text.c - SNAP edge lists and MatrixMarket files, parsed once into a
 * temporary file of binary records, since N is known only at the end. */
#include "partition/input_text.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/edge_text.h"
#include "partition/text_ids.h"
#include "partition/text_lines.h"

/* The word at *p; *p is then behind it and the blanks after it. */
static gs_text_id take_word(char **p)
{
    gs_text_id id = {*p, 0};
    while (id.at[id.length] != '\0' && id.at[id.length] != ' ' && id.at[id.length] != '\t' &&
           id.at[id.length] != '\r')
        id.length++;
    *p = gs_part__skip_blanks(id.at + id.length);
    return id;
}

static gs_status snap_line(gs_text_reading *r, const gs_lines *l)
{
    char *p = gs_part__skip_blanks(l->line);
    gs_text_id ends[2];

    if (*p == '#' || *p == '\0')
        return GS_OK;
    ends[0] = take_word(&p);
    ends[1] = take_word(&p);
    if (*p != '\0')
        return gs_part__lines_wrong(l, p, "expected the end of the line after two ids");
    return gs_part__reading_put(r, l, ends, 1, 0);
}

static gs_status read_lines(gs_text_reading *r)
{
    gs_lines l;
    bool more = true;
    gs_status st;

    if ((st = gs_part__lines_open(&l, r->job, r->in->path, GS_LINE_LIMIT)) != GS_OK ||
        (st = gs_part__reading_begin(r)) != GS_OK)
        goto done;
    while ((st = gs_part__lines_next(&l, &more)) == GS_OK && more)
        if ((st = snap_line(r, &l)) != GS_OK || (st = gs_part__lines_tick(r->job, &l, "reading edges")) != GS_OK)
            break;
done:
    gs_part__lines_close(&l);
    return st;
}

gs_status gs_part__snap_read(gs_part_input *in, gs_part_job *job) { return gs_part__text_read(in, job, read_lines); }

typedef struct mtx {
    bool symmetric, values;
    bool below, above; /* of the diagonal there have been entries */
    uint64_t rows, entries;
} mtx;

static gs_status mtx_banner(mtx *m, const gs_lines *l)
{
    char object[32], format[32], field[32], symmetry[32];
    for (char *p = l->line; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    if (sscanf(l->line, "%%%%matrixmarket %31s %31s %31s %31s", object, format, field, symmetry) != 4)
        return gs_part__lines_wrong(l, l->line, "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
    if (strcmp(object, "matrix") != 0 || strcmp(format, "coordinate") != 0)
        return gs_part__lines_wrong(l, l->line, "only 'matrix coordinate' files hold a graph's edges");
    if (strcmp(field, "pattern") != 0 && strcmp(field, "real") != 0 && strcmp(field, "integer") != 0)
        return gs_part__lines_wrong(l, l->line, "the field must be pattern, real or integer");
    if (strcmp(symmetry, "general") != 0 && strcmp(symmetry, "symmetric") != 0)
        return gs_part__lines_wrong(l, l->line, "the symmetry must be general or symmetric");
    m->values = strcmp(field, "pattern") != 0;
    m->symmetric = strcmp(symmetry, "symmetric") == 0;
    return GS_OK;
}

static gs_status mtx_size(mtx *m, gs_lines *l)
{
    uint64_t columns;
    bool more;
    char *p;
    gs_status st;

    do {
        if ((st = gs_part__lines_next(l, &more)) != GS_OK)
            return st;
        if (!more)
            return gs_fail(GS_EFORMAT, "%s: ends before its size line", l->path);
        p = gs_part__skip_blanks(l->line);
    } while (*p == '%' || *p == '\0');
    if ((st = gs_part__take_number(&m->rows, &p, l, 1, GS_MOST_ID + 1ull, "the number of rows")) != GS_OK)
        return st;
    char *const at = p;
    if ((st = gs_part__take_number(&columns, &p, l, 1, GS_MOST_ID + 1ull, "the number of columns")) != GS_OK)
        return st;
    if (columns != m->rows)
        return gs_part__lines_wrong(l, at, "rows and columns differ; a graph's matrix is square");
    return gs_part__take_number(&m->entries, &p, l, 0, UINT64_MAX / 64, "the number of entries");
}

/* A symmetric file has one triangle; of one with both, every edge would be there twice. */
static gs_status check_triangle(mtx *m, const gs_lines *l, uint64_t row, uint64_t column)
{
    m->below |= row > column;
    m->above |= row < column;
    if (!m->symmetric || !m->below || !m->above)
        return GS_OK;
    return gs_part__lines_wrong(l, l->line,
                 "the file says symmetric, and has entries on both sides of the diagonal; leave one side out, or "
                 "write general where both directions of an edge are listed");
}

/* Entry (i, j) is the edge i -> j; a symmetric file stands for j -> i as well. */
static gs_status mtx_line(gs_part_input *in, mtx *m, const gs_lines *l, uint64_t *entries)
{
    char *p = gs_part__skip_blanks(l->line), *after;
    uint64_t u, v;
    float weight = 1;
    gs_status st;

    if (*p == '\0' || *p == '%')
        return GS_OK;
    if (*entries == m->entries)
        return gs_part__lines_wrong(l, p, "more entries than the size line says");
    if ((st = gs_part__take_number(&u, &p, l, 1, m->rows, "the row")) != GS_OK ||
        (st = gs_part__take_number(&v, &p, l, 1, m->rows, "the column")) != GS_OK ||
        (st = check_triangle(m, l, u, v)) != GS_OK)
        return st;
    if (m->values) {
        weight = strtof(p, &after);
        if (after == p || !isfinite(weight))
            return gs_part__lines_wrong(l, p, "expected a finite value");
        p = gs_part__skip_blanks(after);
    }
    if (*p != '\0')
        return gs_part__lines_wrong(l, p, "expected the end of the line");
    (*entries)++;
    if ((st = gs_part__text_put(in, u - 1, v - 1, weight, 0)) == GS_OK && m->symmetric && u != v)
        st = gs_part__text_put(in, v - 1, u - 1, weight, 0);
    return st;
}

static gs_status mtx_entries(gs_part_input *in, gs_part_job *job, gs_lines *l, mtx *m)
{
    uint64_t entries = 0;
    bool more = true;
    gs_status st;

    while ((st = gs_part__lines_next(l, &more)) == GS_OK && more)
        if ((st = mtx_line(in, m, l, &entries)) != GS_OK ||
            (st = gs_part__lines_tick(job, l, "reading edges")) != GS_OK)
            return st;
    if (st != GS_OK)
        return st;
    if (entries != m->entries)
        return gs_fail(GS_EFORMAT, "%s: ends after %llu entries; its size line says %llu", l->path,
                       (unsigned long long)entries, (unsigned long long)m->entries);
    return gs_part__text_end(in);
}

gs_status gs_part__mtx_read(gs_part_input *in, gs_part_job *job)
{
    gs_lines l;
    mtx m = {0};
    bool more;
    gs_status st;

    if ((st = gs_part__lines_open(&l, job, in->path, GS_LINE_LIMIT)) != GS_OK ||
        (st = gs_part__lines_next(&l, &more)) != GS_OK)
        goto done;
    if (!more) {
        st = gs_fail(GS_EFORMAT, "%s: the file is empty", in->path);
        goto done;
    }
    if ((st = mtx_banner(&m, &l)) != GS_OK || (st = mtx_size(&m, &l)) != GS_OK)
        goto done;
    in->weighted = m.values;
    in->vertices = m.rows;
    if ((st = gs_part__text_begin(in, job)) != GS_OK)
        goto done;
    st = mtx_entries(in, job, &l, &m);
done:
    gs_part__lines_close(&l);
    return st;
}
