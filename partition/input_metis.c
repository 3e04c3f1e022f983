/* input_metis.c - METIS graph files: `N M [FMT [NCON]]`, then line i has the neighbours of vertex i, from 1.
 *
 * Read in pieces that end at any blank, since the line of a hub may be longer than memory, one after the other, since
 * what a number means depends on how many stood before it in its line. Each edge stands in the lines of both its
 * ends. FMT has three digits: vertex sizes, vertex weights (NCON of them), edge weights. Only the last are the
 * store's; the others are for cutting the graph and are passed over. */
#include "partition/input_metis.h"

#include <string.h>

#include "base/size.h"
#include "partition/edge_text.h"
#include "partition/job.h"
#include "partition/text_blocks.h"
#include "partition/text_lines.h"
#include "partition/text_number.h"

#define MOST_WEIGHT (1u << 24) /* whole numbers to here are exact as f32 */
#define SAFE_DIGITS 19 /* a number of so many fits 64 bits */

typedef struct metis {
    gs_part_input *in;
    gs_edge_lines lines;             /* for the records of a piece: in->path is said in its errors */
    gs_line at;                      /* the line that a piece goes on with; its text is where it would begin */
    uint64_t column;                 /* of the piece's first byte in it, from 0 */
    uint64_t vertex, count;          /* whose line it is, and its numbers so far */
    uint64_t neighbour;              /* whose weight is next */
    bool comment;                    /* the line is one */
    uint64_t vertices, edges;        /* as the header says */
    uint64_t before;                 /* numbers of a line before its neighbours */
    bool weights;
} metis;

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

/* The first line that is not empty and no comment. */
static gs_status read_header(metis *m, gs_lines *lines)
{
    const gs_line *const l = &lines->line;
    uint64_t v[4] = {0};
    const char *p = "";
    char *text = NULL;
    int count = 0;
    gs_status st;

    do {
        if ((st = gs_part__lines_next(lines, &text)) != GS_OK)
            return st;
        if (text == NULL)
            return gs_fail(GS_EFORMAT, "%s: holds no line with the number of vertices and of edges", l->path);
        p = gs_part__skip_blanks(text);
    } while (*text == '%' || *p == '\0');
    for (; *p != '\0'; count++) {
        if (count == 4)
            return gs_part__line_wrong(l, p, "more than four numbers in the first line; say .format snap if this is a "
                                             "list of edges");
        if ((st = gs_part__take_number(&v[count], &p, l, 0, UINT64_MAX, "a count or the format")) != GS_OK)
            return st;
    }
    return check_header(m, l, p, v, count);
}

/* -- pieces ------------------------------------------------------------------------------ */

/* `at` is in the piece that is being read; columns count from where its first line would begin. */
static gs_status wrong(const metis *m, const char *at, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", m->at.path, (unsigned long long)m->at.number,
                   (unsigned long long)(m->column + (uint64_t)(at - m->at.text)) + 1, what);
}

/* The next number of the line of m->vertex. */
static gs_status take(metis *m, gs_edge_block *b, const char *at, uint64_t value)
{
    const uint64_t k = m->count++;

    if (m->vertex == m->vertices)
        return wrong(m, at, "more lines than the first line counts vertices");
    if (k < m->before)
        return GS_OK;
    if (m->weights && (k - m->before) % 2 == 1) {
        if (value > MOST_WEIGHT)
            return wrong(m, at, "the weight is above 16777216, to where whole numbers are exact");
        return gs_part__edge_put(b, m->vertex, m->neighbour, (float)value, 0);
    }
    if (value < 1 || value > m->vertices)
        return wrong(m, at, "the neighbour is none of the vertices that the first line counts (ids start at 1)");
    m->neighbour = value - 1;
    return m->weights ? GS_OK : gs_part__edge_put(b, m->vertex, m->neighbour, 1, 0);
}

/* The line ends here. */
static gs_status end_line(metis *m, const char *at)
{
    if (m->vertex < m->vertices && !m->comment) {
        if (m->count < m->before)
            return wrong(m, at, "the line ends before the vertex' sizes and weights that the first line announces");
        if (m->weights && (m->count - m->before) % 2 == 1)
            return wrong(m, at, "the line ends before the weight of its last edge");
        m->vertex++;
        m->count = 0;
    }
    m->comment = false;
    m->column = 0;
    m->at.text = at + 1;
    m->at.number++;
    return GS_OK;
}

/* The number at *p. */
static gs_status read_number(metis *m, gs_edge_block *b, const char **p, const char *end)
{
    const char *const at = *p;
    uint64_t value = 0;

    *p = gs_text_digits(at, &value);
    if (*p == at)
        return wrong(m, at, "expected a whole number");
    if (*p < end && !gs_part__is_blank(**p) && **p != '\n')
        return wrong(m, at, "a number ends in something that is neither a digit nor a blank");
    return take(m, b, at, *p - at <= SAFE_DIGITS ? value : UINT64_MAX);
}

static gs_status pass(void *context, const gs_text_block *text, void *own)
{
    metis *const m = context;
    gs_edge_block *const b = own;
    const char *p = text->text, *const end = p + text->bytes;
    gs_status st = GS_OK;

    b->lines = &m->lines;
    b->words = m->in->text->words;
    m->at.text = p;
    if (text->cut)
        return wrong(m, p, "a word of more than 65536 bytes");
    while (st == GS_OK && (p = gs_part__skip_blanks(p)) < end) {
        m->comment |= *p == '%' && m->column == 0 && p == m->at.text;
        if (m->comment && (p = memchr(p, '\n', (size_t)(end - p))) == NULL)
            p = end; /* and the next piece goes on with it */
        else if (*p == '\n')
            st = end_line(m, p++);
        else
            st = read_number(m, b, &p, end);
    }
    m->column += (uint64_t)(end - m->at.text);
    return st != GS_OK ? st : gs_part__edge_block_end(m->in, b);
}

static gs_status read_vertices(metis *m, gs_part_job *job, gs_lines *l)
{
    const gs_text_reader reader = {.context = m, .doing = "reading edges", .limit = GS_LINE_LIMIT, .pieces = true,
                                   .own_bytes = sizeof(gs_edge_block), .pass = pass,
                                   .release = gs_part__edge_block_release};
    const gs_part_input *const in = m->in;
    gs_status st;

    m->at = l->line;
    m->at.number++;
    if ((st = gs_part__text_blocks(l, job, &reader)) != GS_OK)
        return st;
    if (m->count > 0 && (st = end_line(m, m->at.text)) != GS_OK) /* the last line has no newline */
        return st;
    if (m->vertex != m->vertices)
        return gs_fail(GS_EFORMAT, "%s: ends after the lines of %llu vertices; its first line says %llu", in->path,
                       (unsigned long long)m->vertex, (unsigned long long)m->vertices);
    if (in->edges != 2 * m->edges)
        return gs_fail(GS_EFORMAT,
                       "%s: lists %llu neighbours; its first line says %llu edges, each of which stands in the "
                       "lines of both its ends",
                       in->path, (unsigned long long)in->edges, (unsigned long long)m->edges);
    return gs_part__text_end(m->in);
}

gs_status gs_part__metis_read(gs_part_input *in, gs_part_job *job)
{
    metis m = {.in = in, .lines = {.in = in, .job = job}};
    gs_lines l;
    gs_status st;

    if ((st = gs_part__lines_open(&l, job, in->path)) == GS_OK && (st = read_header(&m, &l)) == GS_OK) {
        in->weighted = m.weights;
        in->both_ways = true;
        in->vertices = m.vertices;
        if ((st = gs_part__text_begin(in, job)) == GS_OK)
            st = read_vertices(&m, job, &l);
    }
    gs_part__lines_close(&l);
    return st;
}
