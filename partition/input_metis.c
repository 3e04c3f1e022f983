/* input_metis.c - METIS graph files: `N M [FMT [NCON]]`, then line i has the neighbours of vertex i, from 1.
 *
 * Read word by word, since the line of a hub may be longer than memory. Each edge stands in the lines of both its
 * ends. FMT has three digits: vertex sizes, vertex weights (NCON of them), edge weights. Only the last are the
 * store's; the others are for cutting the graph and are passed over. */
#include "partition/input_metis.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/job.h"
#include "partition/stream.h"
#include "partition/edge_text.h"

#define READ_BYTES (256 * GS_KIB)
#define MOST_WEIGHT (1u << 24) /* whole numbers to here are exact as f32 */

typedef enum word { NUMBER, NEWLINE, END } word;

typedef struct metis {
    gs_part_input *in;
    gs_part_job *job;
    gs_stream *stream;
    char *buffer;
    uint64_t at, have;
    bool ended;
    uint64_t line, column;           /* of the last word, from 1 */
    uint64_t next_line, next_column; /* of the byte that comes */
    uint64_t vertices, edges;        /* as the header says */
    uint64_t before;                 /* numbers of a line before its neighbours */
    bool weights;
} metis;

static gs_status wrong(const metis *m, const char *what)
{
    return gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", m->in->path, (unsigned long long)m->line,
                   (unsigned long long)m->column, what);
}

/* The next byte, -1 at the end; it stays. */
static gs_status peek(metis *m, int *out)
{
    if (m->at == m->have && !m->ended) {
        const gs_status st = gs_part__stream_read(m->stream, m->buffer, READ_BYTES, &m->have);
        if (st != GS_OK)
            return st;
        m->at = 0;
        m->ended = m->have < READ_BYTES;
        gs_part__tick(m->job, "reading edges", gs_part__stream_done(m->stream));
        if (gs_part__job_stop(m->job))
            return gs_part__job_result(m->job);
    }
    *out = m->at < m->have ? (unsigned char)m->buffer[m->at] : -1;
    return GS_OK;
}

static void pass(metis *m)
{
    m->at++;
    m->next_column++;
}

static void pass_newline(metis *m)
{
    m->at++;
    m->next_line++;
    m->next_column = 1;
}

/* Over blanks, or over what is left of a comment. */
static gs_status skip_to(metis *m, const char *kind, int *c)
{
    gs_status st;
    const bool comment = *kind == '%';
    while ((st = peek(m, c)) == GS_OK && *c >= 0 && *c != '\n' && (comment || *c == ' ' || *c == '\t' || *c == '\r'))
        pass(m);
    return st;
}

static gs_status digits(metis *m, int c, uint64_t *value)
{
    uint64_t v = 0;
    gs_status st = GS_OK;

    m->line = m->next_line;
    m->column = m->next_column;
    if (c < '0' || c > '9')
        return wrong(m, "expected a whole number");
    for (; st == GS_OK && c >= '0' && c <= '9'; st = peek(m, &c)) {
        v = v > UINT64_MAX / 16 ? v : v * 10 + (uint64_t)(c - '0');
        pass(m);
    }
    if (st == GS_OK && c >= 0 && c != ' ' && c != '\t' && c != '\r' && c != '\n')
        return wrong(m, "a number ends in something that is neither a digit nor a blank");
    *value = v;
    return st;
}

/* A number, or the end of a line; lines of comment are none. */
static gs_status next_word(metis *m, word *kind, uint64_t *value)
{
    gs_status st;
    int c;

    for (;;) {
        if ((st = skip_to(m, " ", &c)) != GS_OK)
            return st;
        if (c != '%' || m->next_column != 1)
            break;
        if ((st = skip_to(m, "%", &c)) != GS_OK)
            return st;
        if (c == '\n')
            pass_newline(m);
    }
    *kind = c < 0 ? END : c == '\n' ? NEWLINE : NUMBER;
    if (*kind == NUMBER)
        return digits(m, c, value);
    m->line = m->next_line;
    m->column = m->next_column;
    if (*kind == NEWLINE)
        pass_newline(m);
    return GS_OK;
}

static gs_status check_header(metis *m, const uint64_t *v, int count)
{
    const uint64_t format = count > 2 ? v[2] : 0, weights = count > 3 ? v[3] : 1;

    if (count < 2)
        return wrong(m, "expected the number of vertices and of edges in the first line");
    if (v[0] == 0 || v[0] > GS_MOST_ID + 1ull)
        return wrong(m, "the number of vertices is outside 1 to 4294967294");
    if (v[1] > UINT64_MAX / 64)
        return wrong(m, "the number of edges is beyond what a store holds");
    if (format % 10 > 1 || format / 10 % 10 > 1 || format > 111 || weights > 1000)
        return wrong(m, "the third number, the format, must be three digits of 0 and 1");
    m->vertices = v[0];
    m->edges = v[1];
    m->weights = format % 10 == 1;
    m->before = format / 100 + (format / 10 % 10 == 1 ? weights : 0);
    return GS_OK;
}

static gs_status read_header(metis *m)
{
    uint64_t v[4] = {0}, value = 0;
    int count = 0;
    word kind;
    gs_status st;

    while ((st = next_word(m, &kind, &value)) == GS_OK && (kind == NUMBER || (kind == NEWLINE && count == 0))) {
        if (kind == NEWLINE)
            continue;
        if (count == 4)
            return wrong(m, "more than four numbers in the first line; say .format snap if this is a list of edges");
        v[count++] = value;
    }
    return st != GS_OK ? st : check_header(m, v, count);
}

/* What a vertex's line says: number `k` of it. */
static gs_status take(metis *m, uint64_t vertex, uint64_t k, uint64_t value, uint64_t *neighbour)
{
    if (k < m->before)
        return GS_OK;
    if (m->weights && (k - m->before) % 2 == 1) {
        if (value > MOST_WEIGHT)
            return wrong(m, "the weight is above 16777216, to where whole numbers are exact");
        return gs_part__text_put(m->in, vertex, *neighbour, (float)value, 0);
    }
    if (value < 1 || value > m->vertices)
        return wrong(m, "the neighbour is none of the vertices that the first line counts (ids start at 1)");
    *neighbour = value - 1;
    return m->weights ? GS_OK : gs_part__text_put(m->in, vertex, *neighbour, 1, 0);
}

/* The line ends after `k` numbers. */
static gs_status end_line(const metis *m, uint64_t k)
{
    if (k < m->before)
        return wrong(m, "the line ends before the vertex' sizes and weights that the first line announces");
    return m->weights && (k - m->before) % 2 == 1 ? wrong(m, "the line ends before the weight of its last edge")
                                                  : GS_OK;
}

static gs_status read_vertices(metis *m)
{
    uint64_t vertex = 0, k = 0, value = 0, neighbour = 0;
    word kind;
    gs_status st;

    while ((st = next_word(m, &kind, &value)) == GS_OK && (kind != END || k != 0)) {
        if (kind == NUMBER) {
            if (vertex == m->vertices)
                return wrong(m, "more lines than the first line counts vertices");
            if ((st = take(m, vertex, k++, value, &neighbour)) != GS_OK)
                return st;
        } else if (vertex < m->vertices) {
            if ((st = end_line(m, k)) != GS_OK)
                return st;
            vertex++;
            k = 0;
        }
    }
    if (st != GS_OK)
        return st;
    if (vertex != m->vertices)
        return gs_fail(GS_EFORMAT, "%s: ends after the lines of %llu vertices; its first line says %llu", m->in->path,
                       (unsigned long long)vertex, (unsigned long long)m->vertices);
    if (m->in->edges != 2 * m->edges)
        return gs_fail(GS_EFORMAT,
                       "%s: lists %llu neighbours; its first line says %llu edges, each of which stands in the "
                       "lines of both its ends",
                       m->in->path, (unsigned long long)m->in->edges, (unsigned long long)m->edges);
    return gs_part__text_end(m->in);
}

gs_status gs_part__metis_read(gs_part_input *in, gs_part_job *job)
{
    metis m = {.in = in, .job = job, .next_line = 1, .next_column = 1};
    gs_status st;

    if ((m.buffer = gs_malloc(READ_BYTES)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", in->path);
    if ((st = gs_part__stream_open(&m.stream, in->path, job->memory / 4)) != GS_OK || (st = read_header(&m)) != GS_OK)
        goto done;
    in->weighted = m.weights;
    in->vertices = m.vertices;
    if ((st = gs_part__text_begin(in, job)) == GS_OK)
        st = read_vertices(&m);
done:
    gs_part__stream_close(m.stream);
    gs_free(m.buffer);
    return st;
}
