/* input_mtx.c - MatrixMarket files, parsed into a temporary file of binary records. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "partition/edge_text.h"
#include "partition/text_lines.h"

typedef struct mtx {
    bool symmetric, values;
    uint64_t rows, entries;
} mtx;

static gs_status mtx_banner(mtx *m, const gs_line *l, char *text)
{
    char object[32], format[32], field[32], symmetry[32];
    for (char *p = text; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    if (sscanf(text, "%%%%matrixmarket %31s %31s %31s %31s", object, format, field, symmetry) != 4)
        return gs_part__line_wrong(l, l->text, "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'");
    if (strcmp(object, "matrix") != 0 || strcmp(format, "coordinate") != 0)
        return gs_part__line_wrong(l, l->text, "only 'matrix coordinate' files hold a graph's edges");
    if (strcmp(field, "pattern") != 0 && strcmp(field, "real") != 0 && strcmp(field, "integer") != 0)
        return gs_part__line_wrong(l, l->text, "the field must be pattern, real or integer");
    if (strcmp(symmetry, "general") != 0 && strcmp(symmetry, "symmetric") != 0)
        return gs_part__line_wrong(l, l->text, "the symmetry must be general or symmetric");
    m->values = strcmp(field, "pattern") != 0;
    m->symmetric = strcmp(symmetry, "symmetric") == 0;
    return GS_OK;
}

static gs_status mtx_size(mtx *m, gs_lines *lines)
{
    const gs_line *const l = &lines->line;
    uint64_t columns;
    const char *p;

    GS_TRY(gs_part__lines_next_said(lines, &p, "ends before its size line"));
    GS_TRY(gs_part__take_number(&m->rows, &p, l, 1, GS_MOST_ID + 1ull, "the number of rows"));
    const char *const at = p;
    GS_TRY(gs_part__take_number(&columns, &p, l, 1, GS_MOST_ID + 1ull, "the number of columns"));
    if (columns != m->rows)
        return gs_part__line_wrong(l, at, "rows and columns differ; a graph's matrix is square");
    return gs_part__take_number(&m->entries, &p, l, 0, UINT64_MAX / 64, "the number of entries");
}

/* A symmetric file has one triangle; of one with both, every edge would be there twice. */
static bool is_fine(const gs_edge_lines *lines, const gs_edge_counts *seen)
{
    const mtx *const m = lines->context;
    return seen->entries <= m->entries && !(m->symmetric && seen->below && seen->above);
}

static gs_status count_entry(gs_edge_block *b, const gs_line *l, uint64_t row, uint64_t column)
{
    b->seen.below |= row > column;
    b->seen.above |= row < column;
    if (is_fine(b->lines, &b->seen))
        return GS_OK;
    return gs_part__line_wrong(l, l->text,
                 "the file says symmetric, and has entries on both sides of the diagonal; leave one side out, or "
                 "write general where both directions of an edge are listed");
}

/* Entry (i, j) is the edge i -> j; a symmetric file stands for j -> i as well. */
static gs_status mtx_line(gs_edge_block *b, const gs_line *l, const char **end)
{
    const mtx *const m = b->lines->context;
    const char *p = gs_part__skip_blanks(l->text), *after;
    uint64_t u, v;
    float weight = 1;

    if (*p == '\n' || *p == '%') {
        *end = strchr(p, '\n');
        return GS_OK;
    }
    if (++b->seen.entries > m->entries)
        return gs_part__line_wrong(l, p, "more entries than the size line says");
    GS_TRY(gs_part__take_number(&u, &p, l, 1, m->rows, "the row"));
    GS_TRY(gs_part__take_number(&v, &p, l, 1, m->rows, "the column"));
    GS_TRY(count_entry(b, l, u, v));
    if (m->values) {
        weight = gs_text_real32(p, &after);
        if (after == p || !isfinite(weight))
            return gs_part__line_wrong(l, p, "expected a finite value");
        p = gs_part__skip_blanks(after);
    }
    if (*p != '\n')
        return gs_part__line_wrong(l, p, "expected the end of the line");
    *end = p;
    GS_TRY(gs_part__edge_put(b, u - 1, v - 1, weight, 0));
    if (m->symmetric && u != v)
        GS_TRY(gs_part__edge_put(b, v - 1, u - 1, weight, 0));
    return GS_OK;
}

static gs_status mtx_entries(gs_part_input *in, gs_part_job *job, gs_lines *l, mtx *m)
{
    gs_edge_lines lines = {.in = in, .job = job, .context = m, .line = mtx_line, .fits = is_fine};

    GS_TRY(gs_part__edge_lines_read(&lines, l));
    if (lines.seen.entries != m->entries)
        return gs_fail(GS_EFORMAT, "%s: ends after %lu entries; its size line says %lu", in->path, lines.seen.entries,
                       m->entries);
    return gs_part__text_end(in);
}

static gs_status mtx_read(gs_part_input *in, gs_part_job *job)
{
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};
    mtx m = {0};
    char *text = NULL;

    GS_TRY(gs_part__lines_open(&l, job, in->path));
    GS_TRY(gs_part__lines_next(&l, &text));
    if (text == NULL)
        return gs_fail(GS_EFORMAT, "%s: the file is empty", in->path);
    GS_TRY(mtx_banner(&m, &l.line, text));
    GS_TRY(mtx_size(&m, &l));
    in->weighted = m.values;
    in->vertices = m.rows;
    GS_TRY(gs_part__text_begin(in, job));
    return mtx_entries(in, job, &l, &m);
}

static bool mtx_looks(const char *path, const gs_part_head *head)
{
    (void)path;
    return strncmp(head->bytes, "%%MatrixMarket", 14) == 0;
}

const gs_part_format gs_part__mtx_formats[] = {{"mtx", "MatrixMarket", false, mtx_looks, NULL, mtx_read}, {0}};
