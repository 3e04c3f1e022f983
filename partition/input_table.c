/* input_table.c - rows of numbers in a text, as an array in a temporary file.
 *
 * Each worker unpacks a block of whole lines, one worker at a time, and then parses it, while others do the same; where
 * a block's rows begin in the array is known once all before it are parsed, so blocks pass one after the other there,
 * and the first error of the file is the one that is told. */
#include "partition/input_table.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/job.h"
#include "partition/made_array.h"
#include "partition/stream.h"
#include "partition/text_lines.h"

#define LEAST_BLOCK (16 * GS_KIB)
#define MOST_BLOCK (256 * GS_KIB)
#define MOST_LINE (16 * GS_MIB)
#define EXACT_DIGITS (1ull << 53) /* whole numbers to here, and powers of ten to 10^22, are exact as f64 */
#define FLOW 6u /* a block's numbers take at most so many times the bytes of usual text: its share of memory */

/* What all workers share. */
typedef struct table {
    gs_part_file *file;
    gs_part_job *job;
    gs_dtype as;
    uint64_t block_bytes, limit; /* of a line */
    gs_made made;
    pthread_mutex_t reading; /* guards the four below */
    gs_stream *stream;
    char *carry; /* what follows the last whole line */
    uint64_t carry_bytes, carry_room, blocks;
    bool ended;
    pthread_mutex_t turns; /* guards the four below */
    pthread_cond_t turned;
    uint64_t turn;           /* the block that is next */
    uint64_t rows, columns, lines; /* of those before it */
    bool over;               /* by a failure */
} table;

/* A worker's own. */
typedef struct block {
    table *t;
    char *text, *line; /* whole lines; the one being parsed */
    uint64_t room, bytes, number;
    char *values;      /* of type t->as */
    uint64_t value_room, count; /* elements */
    uint64_t rows, columns, lines, first; /* the line of its first row, from 1 */
    char wrong[160];   /* what is wrong in line `lines` of the block; "" for nothing */
    uint64_t wrong_column;
} block;

/* -- numbers ----------------------------------------------------------------------- */

/* A quotient or product of two exact numbers is the nearest one; whatever else there is, strtod() reads. */
static double take_real(const char *text, char **after)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *p = text + (*text == '-');
    const char *const first = p;
    uint64_t digits = 0;
    int scale = 0, e = 0;

    for (; *p >= '0' && *p <= '9' && digits < EXACT_DIGITS / 10; p++)
        digits = digits * 10 + (uint64_t)(*p - '0');
    if (p > first && *p == '.')
        for (p++; *p >= '0' && *p <= '9' && digits < EXACT_DIGITS / 10; p++, scale--)
            digits = digits * 10 + (uint64_t)(*p - '0');
    if (p > first && (*p == 'e' || *p == 'E')) {
        const char sign = p[1];
        const char *q = p + 1 + (sign == '-' || sign == '+');
        const char *const from = q;
        for (; *q >= '0' && *q <= '9' && e < 1000; q++)
            e = e * 10 + (*q - '0');
        p = q > from ? q : first; /* no digits: strtod() stops before the e */
        scale += sign == '-' ? -e : e;
    }
    if (p == first || (*p >= '0' && *p <= '9') || *p == '.' || *p == 'x' || *p == 'X' || scale < -22 || scale > 22)
        return strtod(text, after);
    *after = (char *)(uintptr_t)p;
    const double v = scale < 0 ? (double)digits / tens[-scale] : (double)digits * tens[scale];
    return *text == '-' ? -v : v;
}

static bool wrong(block *b, const char *at, const char *what)
{
    b->wrong_column = (uint64_t)(at - b->line) + 1;
    snprintf(b->wrong, sizeof(b->wrong), "%s", what);
    return false;
}

static bool grow(block *b)
{
    const uint64_t room = GS_MAX(b->value_room * 2, 1024u);
    char *const grown = gs_realloc(b->values, room * gs_dtype_bytes(b->t->as));
    if (grown == NULL)
        return wrong(b, b->line, "no memory for its numbers");
    b->values = grown;
    b->value_room = room;
    return true;
}

/* The number at *p, which may be missing where it is a fraction; *p is then behind it. */
static bool take_number(block *b, char **p)
{
    char *const field = *p;

    if (b->count == b->value_room && !grow(b))
        return false;
    if (b->t->as == GS_I64) {
        errno = 0;
        const int64_t v = strtoll(field, p, 10);
        if (*p == field || errno != 0)
            return wrong(b, field, "expected a whole number");
        ((int64_t *)(void *)b->values)[b->count++] = v;
        return true;
    }
    const bool missing = *field == '\0' || *field == ',';
    const double v = missing ? (double)NAN : take_real(field, p);
    if (*p == field && !missing)
        return wrong(b, field, "expected a number");
    if (b->t->as == GS_F32)
        ((float *)(void *)b->values)[b->count++] = (float)v;
    else
        ((double *)(void *)b->values)[b->count++] = v;
    return true;
}

static bool take_line(block *b)
{
    const uint64_t before = b->count;
    char text[96], *p = gs_part__skip_blanks(b->line);

    for (;;) {
        if (!take_number(b, &p))
            return false;
        p = gs_part__skip_blanks(p);
        if (*p == '\0')
            break;
        if (*p != ',')
            return wrong(b, p, "expected a comma or the end of the line after a number");
        p = gs_part__skip_blanks(p + 1);
    }
    const uint64_t count = b->count - before;
    if (b->rows++ == 0) {
        b->columns = count;
        b->first = b->lines;
    }
    if (count == b->columns)
        return true;
    snprintf(text, sizeof(text), "%llu numbers; the first line has %llu", (unsigned long long)count,
             (unsigned long long)b->columns);
    return wrong(b, b->line, text);
}

static void parse(block *b)
{
    char *at = b->text, *const end = b->text + b->bytes;

    b->count = b->rows = b->columns = b->lines = 0;
    b->wrong[0] = '\0';
    while (at < end) {
        char *const newline = memchr(at, '\n', (size_t)(end - at)), *const stop = newline != NULL ? newline : end;
        b->line = at;
        b->lines++;
        const char *const zero = memchr(at, '\0', (size_t)(stop - at));
        if (zero != NULL) { /* as the end of the line it would hide the rest */
            wrong(b, zero, "a byte of 0, which no text holds; the file is damaged, or no text");
            return;
        }
        *stop = '\0'; /* the text has room for one more */
        at = stop + 1;
        if (b->t->as == GS_I64 && *gs_part__skip_blanks(b->line) == '\0')
            continue;
        if (!take_line(b))
            return;
    }
}

/* -- blocks -------------------------------------------------------------------------- */

static gs_status set_room(char **buffer, uint64_t *room, uint64_t bytes, const char *path)
{
    if (bytes <= *room)
        return GS_OK;
    char *const grown = gs_realloc(*buffer, bytes);
    if (grown == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
    *buffer = grown;
    *room = bytes;
    return GS_OK;
}

/* Whole lines, and what follows them is carried over. *more is false after the last. Under t->reading. */
static gs_status next_block(block *b, bool *more)
{
    table *const t = b->t;
    const char *const path = t->file->path;
    uint64_t got, whole = 0;
    gs_status st;

    if ((st = set_room(&b->text, &b->room, t->carry_bytes + t->block_bytes + 1, path)) != GS_OK)
        return st;
    if (t->carry_bytes > 0)
        memcpy(b->text, t->carry, t->carry_bytes);
    b->bytes = t->carry_bytes;
    t->carry_bytes = 0;
    while (!t->ended && whole == 0) {
        if (b->bytes > t->limit)
            return gs_fail(GS_EFORMAT, "%s: a line is longer than %llu bytes", path, (unsigned long long)t->limit);
        if ((st = set_room(&b->text, &b->room, b->bytes + t->block_bytes + 1, path)) != GS_OK ||
            (st = gs_part__stream_read(t->stream, b->text + b->bytes, t->block_bytes, &got)) != GS_OK)
            return st;
        const char *const last = memrchr(b->text + b->bytes, '\n', got);
        whole = last != NULL ? (uint64_t)(last - b->text) + 1 : 0;
        b->bytes += got;
        t->ended = got < t->block_bytes;
    }
    if (!t->ended) {
        if ((st = set_room(&t->carry, &t->carry_room, b->bytes - whole, path)) != GS_OK)
            return st;
        if (b->bytes > whole)
            memcpy(t->carry, b->text + whole, b->bytes - whole);
        t->carry_bytes = b->bytes - whole;
        b->bytes = whole;
    }
    *more = b->bytes > 0;
    b->number = t->blocks++;
    gs_part__tick(t->job, "reading tables", gs_part__stream_done(t->stream));
    return GS_OK;
}

/* Waits until all blocks before it are counted, then counts it. *row: where its rows begin. */
static gs_status take_turn(block *b, uint64_t *row)
{
    table *const t = b->t;
    const char *const path = t->file->path;
    gs_status st = GS_OK;

    pthread_mutex_lock(&t->turns);
    while (t->turn != b->number && !t->over)
        pthread_cond_wait(&t->turned, &t->turns);
    if (t->over) {
        st = gs_part__job_result(t->job);
    } else if (b->wrong[0] != '\0') {
        st = gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", path, (unsigned long long)(t->lines + b->lines),
                     (unsigned long long)b->wrong_column, b->wrong);
    } else if (t->rows > 0 && b->rows > 0 && b->columns != t->columns) {
        st = gs_fail(GS_EFORMAT, "%s: line %llu, column 1: %llu numbers; the first line has %llu", path,
                     (unsigned long long)(t->lines + b->first), (unsigned long long)b->columns,
                     (unsigned long long)t->columns);
    } else {
        *row = t->rows;
        t->columns = t->rows == 0 ? b->columns : t->columns;
        t->rows += b->rows;
        t->lines += b->lines;
        t->turn++;
    }
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->turns);
    return st;
}

static gs_status write_rows(const block *b, uint64_t row)
{
    const uint64_t each = gs_dtype_bytes(b->t->as);
    return gs_part__made_write(&b->t->made, b->values, b->count * each, row * b->columns * each);
}

static void *work(void *shared)
{
    table *const t = shared;
    block b = {.t = t};
    uint64_t row = 0;
    bool more = true;
    gs_status st = GS_OK;

    while (st == GS_OK && (st = gs_part__job_result(t->job)) == GS_OK) {
        pthread_mutex_lock(&t->reading);
        st = next_block(&b, &more);
        pthread_mutex_unlock(&t->reading);
        if (st != GS_OK || !more)
            break;
        parse(&b);
        if ((st = take_turn(&b, &row)) == GS_OK)
            st = write_rows(&b, row);
    }
    if (st != GS_OK) {
        gs_part__job_fail(t->job, st);
        pthread_mutex_lock(&t->turns);
        t->over = true;
        pthread_cond_broadcast(&t->turned);
        pthread_mutex_unlock(&t->turns);
    }
    gs_free(b.text);
    gs_free(b.values);
    return NULL;
}

/* This thread works too. */
static gs_status work_together(table *t)
{
    const uint64_t each = t->block_bytes * (1 + FLOW);
    const uint64_t workers = GS_MAX(GS_MIN(t->job->threads, t->job->memory / 4 / each), 1);
    pthread_t thread[GS_PART_MOST_THREADS];
    uint64_t started = 0;

    while (started + 1 < workers && pthread_create(&thread[started], NULL, work, t) == 0)
        started++;
    work(t);
    for (uint64_t i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return gs_part__job_result(t->job);
}

gs_status gs_part__table_read(gs_part_file *f, gs_part_job *job, char *path, gs_dtype as)
{
    table t = {.file = f, .job = job, .as = as};
    gs_status st;

    t.block_bytes = GS_MIN(GS_MAX(job->memory / 256, LEAST_BLOCK), MOST_BLOCK);
    t.limit = GS_MAX(GS_LINE_LIMIT, GS_MIN(job->memory / 8, MOST_LINE));
    pthread_mutex_init(&t.reading, NULL);
    pthread_mutex_init(&t.turns, NULL);
    pthread_cond_init(&t.turned, NULL);
    if ((st = gs_part__made_begin(&t.made, f, job, path)) == GS_OK &&
        (st = gs_part__stream_open(&t.stream, path, job->memory / 4)) == GS_OK && (st = work_together(&t)) == GS_OK)
        st = gs_part__made_end(&t.made, as, t.rows, GS_MAX(t.columns, 1));
    gs_part__made_free(&t.made);
    gs_part__stream_close(t.stream);
    gs_free(t.carry);
    pthread_mutex_destroy(&t.reading);
    pthread_mutex_destroy(&t.turns);
    pthread_cond_destroy(&t.turned);
    return st;
}
