/* input_matrices.c - graphs as sparse matrices in a text: MatrixMarket's files and METIS's, parsed into a temporary
 * file of binary records. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "partition/edge_text.h"

/* ---- MatrixMarket ------------------------------------------------------------------------- */

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

/* ---- METIS graph files: `N M [FMT [NCON]]`, then line i has the neighbours of vertex i, from 1.
 *
 * Read in blocks that end at a line's end, or at any blank where a hub's line is longer than a block. A line's number
 * is its vertex. A worker reads a block as if its first line were vertex 0's. In the block's turn, the number of
 * lines before it is known and is added to the vertices of its edges. A block that begins within a line, or in which
 * something is wrong, is read in its turn, with what stood before known. Each edge stands in the lines of both its
 * ends. FMT has three digits: vertex sizes, vertex weights (NCON of them), edge weights. Only the last are the
 * store's; the others are for cutting the graph and are passed over. */

#define MOST_WEIGHT (1u << 24) /* whole numbers to here are exact as f32 */
#define SAFE_DIGITS 19 /* a number of so many fits 64 bits */

/* How far a reader is. */
typedef struct place {
    gs_line line;           /* the one that goes on; its text is where it would begin in the block */
    uint64_t column;        /* of the block's first byte in it, from 0 */
    uint64_t vertex, count; /* whose line it is, and its numbers so far */
    uint64_t neighbour;     /* whose weight is next */
    bool comment;           /* the line is one */
} place;

/* State that all workers share. */
typedef struct metis {
    gs_part_input *in;
    gs_edge_lines lines;      /* for the records of a block: in->path is said in its errors */
    place at;                 /* behind the blocks whose turn was */
    uint64_t vertices, edges; /* as the header says */
    uint64_t before;          /* numbers of a line before its neighbours */
    bool weights;
} metis;

/* A worker's own. */
typedef struct metis_block {
    gs_edge_block edges; /* first, as it is released by its address */
    place end;           /* behind the block, as if vertex 0's line were its first */
    bool whole;          /* it was read to there */
} metis_block;

static gs_status check_header(metis *m, const gs_line *l, const char *end, const uint64_t *v, int count)
{
    const uint64_t format = count > 2 ? v[2] : 0, weights = count > 3 ? v[3] : 1;

    if (count < 2)
        return gs_part__line_wrong(l, end, "expected the number of vertices and of edges in the first line");
    if (v[0] == 0 || v[0] > GS_MOST_ID + 1ull)
        return gs_part__line_wrong(l, end, "the number of vertices is outside 1 to 4294967294");
    if (v[1] > UINT64_MAX / 64)
        return gs_part__line_wrong(l, end, "the number of edges is beyond what a store holds");
    if (format % 10 > 1 || format / 10 % 10 > 1 || format > 111 || weights > 1000)
        return gs_part__line_wrong(l, end, "the third number, the format, must be three digits of 0 and 1");
    m->vertices = v[0];
    m->edges = v[1];
    m->weights = format % 10 == 1;
    m->before = format / 100 + (format / 10 % 10 == 1 ? weights : 0);
    return GS_OK;
}

static gs_status read_header(metis *m, gs_lines *lines)
{
    const gs_line *const l = &lines->line;
    uint64_t v[4] = {0};
    const char *p;
    int count = 0;

    GS_TRY(gs_part__lines_next_said(lines, &p, "holds no line with the number of vertices and of edges"));
    for (; *p != '\0'; count++) {
        if (count == 4)
            return gs_part__line_wrong(l, p, "more than four numbers in the first line; say .format snap if this is a "
                                             "list of edges");
        GS_TRY(gs_part__take_number(&v[count], &p, l, 0, UINT64_MAX, "a count or the format"));
    }
    return check_header(m, l, p, v, count);
}

/* -- blocks ------------------------------------------------------------------------------ */

/* `at` is in the block that is being read; columns count from where its first line would begin. */
static gs_status wrong(const place *w, const char *at, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %lu, column %lu: %s", w->line.path, w->line.number,
                   (w->column + (uint64_t)(at - w->line.text)) + 1, what);
}

/* The next number of the line of w->vertex. */
static gs_status take(const metis *m, place *w, gs_edge_block *b, const char *at, uint64_t value)
{
    const uint64_t k = w->count++;

    if (w->vertex == m->vertices)
        return wrong(w, at, "more lines than the first line counts vertices");
    if (k < m->before)
        return GS_OK;
    if (m->weights && (k - m->before) % 2 == 1) {
        if (value > MOST_WEIGHT)
            return wrong(w, at, "the weight is above 16777216, to where whole numbers are exact");
        return gs_part__edge_put(b, w->vertex, w->neighbour, (float)value, 0);
    }
    if (value < 1 || value > m->vertices)
        return wrong(w, at, "the neighbour is none of the vertices that the first line counts (ids start at 1)");
    w->neighbour = value - 1;
    return m->weights ? GS_OK : gs_part__edge_put(b, w->vertex, w->neighbour, 1, 0);
}

/* The line ends here. */
static gs_status end_line(const metis *m, place *w, const char *at)
{
    if (w->vertex < m->vertices && !w->comment) {
        if (w->count < m->before)
            return wrong(w, at, "the line ends before the vertex' sizes and weights that the first line announces");
        if (m->weights && (w->count - m->before) % 2 == 1)
            return wrong(w, at, "the line ends before the weight of its last edge");
        w->vertex++;
        w->count = 0;
    }
    w->comment = false;
    w->column = 0;
    w->line.text = at + 1;
    w->line.number++;
    return GS_OK;
}

/* The number at *p. */
static gs_status read_number(const metis *m, place *w, gs_edge_block *b, const char **p, const char *end)
{
    const char *const at = *p;
    uint64_t value = 0;

    *p = gs_text_digits(at, &value);
    if (*p == at)
        return wrong(w, at, "expected a whole number");
    if (*p < end && !gs_part__is_blank(**p) && **p != '\n')
        return wrong(w, at, "a number ends in something that is neither a digit nor a blank");
    return take(m, w, b, at, *p - at <= SAFE_DIGITS ? value : UINT64_MAX);
}

/* The block follows `w`, which moves behind it. */
static gs_status read_block(const metis *m, place *w, gs_edge_block *b, const gs_text_block *text)
{
    const char *p = text->text, *const end = p + text->bytes;
    gs_status st = GS_OK;

    b->count = 0;
    w->line.text = p;
    if (text->cut)
        return wrong(w, p, "a word of more than 65536 bytes");
    while (st == GS_OK && (p = gs_part__skip_blanks(p)) < end) {
        w->comment |= *p == '%' && w->column == 0 && p == w->line.text;
        if (w->comment && (p = memchr(p, '\n', (size_t)(end - p))) == NULL)
            p = end; /* and the next block goes on with it */
        else if (*p == '\n')
            st = end_line(m, w, p++);
        else
            st = read_number(m, w, b, &p, end);
    }
    w->column += (uint64_t)(end - w->line.text);
    return st;
}

static void parse(void *context, const gs_text_block *text, void *own)
{
    metis *const m = context;
    metis_block *const b = own;

    b->edges.lines = &m->lines;
    b->edges.words = m->in->text->spec.words;
    b->end = (place){.line = {.path = m->in->path}};
    b->whole = read_block(m, &b->end, &b->edges, text) == GS_OK;
}

/* False where only what stood before tells what the block's numbers are, or that there are too many lines. */
static bool fits(const metis *m, const metis_block *b)
{
    const place *const w = &m->at;
    return b->whole && w->column == 0 && w->vertex + b->end.vertex + (b->end.count > 0) <= m->vertices;
}

static gs_status pass(void *context, const gs_text_block *text, void *own)
{
    metis *const m = context;
    metis_block *const b = own;
    const place before = m->at;

    if (fits(m, b)) {
        for (uint64_t i = 0; i < b->edges.count; i++)
            b->edges.record[i * b->edges.words] += (uint32_t)before.vertex;
        m->at = b->end;
        m->at.vertex += before.vertex;
        m->at.line.number += before.line.number;
    } else {
        GS_TRY(read_block(m, &m->at, &b->edges, text));
    }
    return gs_part__edge_block_end(m->in, &b->edges);
}

static gs_status read_vertices(metis *m, gs_part_job *job, gs_lines *l)
{
    const gs_text_reader reader = {.context = m, .doing = "reading edges", .limit = GS_LINE_LIMIT, .pieces = true,
                                   .own_bytes = sizeof(metis_block), .parse = parse, .pass = pass,
                                   .release = gs_part__edge_block_release};
    const gs_part_input *const in = m->in;

    m->at.line = l->line;
    m->at.line.number++;
    GS_TRY(gs_part__text_blocks(l, job, &reader));
    if (m->at.count > 0) /* the last line has no newline */
        GS_TRY(end_line(m, &m->at, m->at.line.text));
    if (m->at.vertex != m->vertices)
        return gs_fail(GS_EFORMAT, "%s: ends after the lines of %lu vertices; its first line says %lu", in->path,
                       m->at.vertex, m->vertices);
    if (in->edges != 2 * m->edges)
        return gs_fail(GS_EFORMAT, "%s: lists %lu neighbours; its first line says %lu edges, each of which stands in "
                       "the lines of both its ends", in->path, in->edges, m->edges);
    return gs_part__text_end(m->in);
}

static gs_status metis_read(gs_part_input *in, gs_part_job *job)
{
    metis m = {.in = in, .lines = {.in = in, .job = job}};
    GS_ENDS(gs_part__lines_close) gs_lines l = {0};

    GS_TRY(gs_part__lines_open(&l, job, in->path));
    GS_TRY(read_header(&m, &l));
    in->weighted = m.weights;
    in->both_ways = true;
    in->vertices = m.vertices;
    GS_TRY(gs_part__text_begin(in, job));
    return read_vertices(&m, job, &l);
}

/* Whether the name ends so, before .gz or .zst. */
static bool is_named(const char *path, const char *end)
{
    size_t n = strlen(path);
    const size_t e = strlen(end);

    n -= n > 3 && strcmp(path + n - 3, ".gz") == 0 ? 3 : n > 4 && strcmp(path + n - 4, ".zst") == 0 ? 4 : 0;
    return n > e && strncmp(path + n - e, end, e) == 0;
}

static bool metis_looks(const char *path, const gs_part_head *head)
{
    (void)head;
    return is_named(path, ".graph") || is_named(path, ".metis");
}

/* ---- the formats -------------------------------------------------------------------------- */

const gs_part_format gs_part__matrix_formats[] = {
    {.name = "mtx", .words = "MatrixMarket", .looks = mtx_looks, .read = mtx_read},
    {.name = "metis", .words = ".graph", .looks = metis_looks, .read = metis_read},
    {0},
};
