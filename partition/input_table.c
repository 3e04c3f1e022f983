/* input_table.c - rows of numbers in a text, as an array in a temporary file.
 *
 * Where a block's rows begin in the array is known once all blocks before it are parsed. */
#include "partition/input_table.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/job.h"
#include "partition/made_array.h"
#include "partition/text_blocks.h"
#include "partition/text_lines.h"
#include "partition/text_number.h"

#define MOST_LINE (16 * GS_MIB)
#define SAFE_DIGITS 18 /* a number of so many is an i64 */

typedef struct table {
    gs_dtype as;
    gs_made made;
    gs_line line; /* the last one of the blocks before, and the table's path */
    uint64_t rows, columns; /* of the blocks before */
    uint64_t limit; /* of a line */
} table;

/* What a worker makes of a block. */
typedef struct block {
    gs_line line;      /* the one being parsed; numbers count from the block's first */
    char *values;      /* of type table.as */
    uint64_t room, count; /* elements */
    uint64_t rows, columns, first; /* the line of its first row, from 1 */
    uint64_t row;      /* of the array, where its rows begin */
    const table *t;
    char wrong[160];   /* what is wrong in `line`; "" for nothing */
    uint64_t wrong_column;
} block;

static bool wrong(block *b, const char *at, const char *what)
{
    b->wrong_column = (uint64_t)(at - b->line.text) + 1;
    snprintf(b->wrong, sizeof(b->wrong), "%s", what);
    return false;
}

static bool grow(block *b)
{
    const uint64_t room = GS_MAX(b->room * 2, 1024u);
    char *const grown = gs_realloc(b->values, room * gs_dtype_bytes(b->t->as));
    if (grown == NULL)
        return wrong(b, b->line.text, "no memory for its numbers");
    b->values = grown;
    b->room = room;
    return true;
}

/* As strtoll(), but for blanks in front. */
static bool take_integer(int64_t *out, const char **p)
{
    const bool minus = **p == '-';
    const char *const from = *p + minus;
    uint64_t v = 0;
    char *after;

    *out = 0;
    const char *const end = gs_text_digits(from, &v);
    if (end > from && end - from <= SAFE_DIGITS) {
        *out = minus ? -(int64_t)v : (int64_t)v;
        *p = end;
        return true;
    }
    if (isspace((unsigned char)**p))
        return false;
    errno = 0;
    *out = strtoll(*p, &after, 10);
    if (after == *p || errno != 0)
        return false;
    *p = after;
    return true;
}

/* The number at *p, which may be missing where it is a fraction; *p is then behind it. */
static bool take_value(block *b, const char **p)
{
    const char *const field = *p;

    if (b->count == b->room && !grow(b))
        return false;
    if (b->t->as == GS_I64)
        return take_integer(&((int64_t *)(void *)b->values)[b->count++], p) ||
               wrong(b, field, "expected a whole number");
    const bool missing = *field == '\n' || *field == ',';
    const double v = missing ? (double)NAN : gs_text_real(field, p);
    if (*p == field && !missing)
        return wrong(b, field, "expected a number");
    if (b->t->as == GS_F32)
        ((float *)(void *)b->values)[b->count++] = (float)v;
    else
        ((double *)(void *)b->values)[b->count++] = v;
    return true;
}

/* The row of the line at b->line; *end is its newline. */
static bool take_line(block *b, const char **end)
{
    const uint64_t before = b->count;
    const char *p = gs_part__skip_blanks(b->line.text);
    char text[96];

    if (b->t->as == GS_I64 && *p == '\n') {
        *end = p;
        return true;
    }
    for (;;) {
        if (!take_value(b, &p))
            return false;
        p = gs_part__skip_blanks(p);
        if (*p == '\n')
            break;
        if (*p != ',')
            return wrong(b, p, "expected a comma or the end of the line after a number");
        p = gs_part__skip_blanks(p + 1);
    }
    *end = p;
    const uint64_t count = b->count - before;
    if (b->rows++ == 0) {
        b->columns = count;
        b->first = b->line.number;
    }
    if (count == b->columns)
        return true;
    snprintf(text, sizeof(text), "%llu numbers; the first line has %llu", (unsigned long long)count,
             (unsigned long long)b->columns);
    return wrong(b, b->line.text, text);
}

static void parse(void *context, const gs_text_block *text, void *own)
{
    block *const b = own;
    const char *const end = text->text + text->bytes;
    const char *const zero = memchr(text->text, '\0', text->bytes);

    b->t = context;
    b->count = b->rows = b->columns = 0;
    b->line = (gs_line){.path = b->t->line.path, .text = text->text};
    b->wrong[0] = '\0';
    while (b->line.text < end) {
        const char *stop = NULL;
        b->line.number++;
        if (zero != NULL) {
            stop = memchr(b->line.text, '\n', (size_t)(end - b->line.text));
            if (zero < stop) {
                wrong(b, zero, GS_ZERO_IN_TEXT);
                return;
            }
        }
        if (!take_line(b, &stop))
            return;
        b->line.text = stop + 1;
    }
}

/* Counts the block behind those before it. */
static gs_status pass(void *context, const gs_text_block *text, void *own)
{
    table *const t = context;
    block *const b = own;

    if (text->cut)
        return gs_part__line_too_long(&t->line, t->limit);
    if (b->wrong[0] != '\0')
        return gs_fail(GS_EFORMAT, "%s: line %llu, column %llu: %s", t->line.path,
                       (unsigned long long)(t->line.number + b->line.number), (unsigned long long)b->wrong_column,
                       b->wrong);
    if (t->rows > 0 && b->rows > 0 && b->columns != t->columns)
        return gs_fail(GS_EFORMAT, "%s: line %llu, column 1: %llu numbers; the first line has %llu", t->line.path,
                       (unsigned long long)(t->line.number + b->first), (unsigned long long)b->columns,
                       (unsigned long long)t->columns);
    b->row = t->rows;
    t->columns = t->rows == 0 ? b->columns : t->columns;
    t->rows += b->rows;
    t->line.number += b->line.number;
    return GS_OK;
}

static gs_status store(void *context, void *own)
{
    const table *const t = context;
    const block *const b = own;
    const uint64_t each = gs_dtype_bytes(t->as);
    return gs_part__made_write(&t->made, b->values, b->count * each, b->row * b->columns * each);
}

static void release(void *own)
{
    block *const b = own;
    gs_free(b->values);
}

gs_status gs_part__table_read(gs_part_file *f, gs_part_job *job, char *path, gs_dtype as)
{
    table t = {.as = as, .line = {.path = path},
               .limit = GS_MAX(GS_LINE_LIMIT, GS_MIN(job->memory / 8, MOST_LINE))};
    const gs_text_reader reader = {.context = &t, .doing = "reading tables", .own_bytes = sizeof(block),
                                   .limit = t.limit,
                                   .parse = parse, .pass = pass, .store = store, .release = release};
    gs_lines l = {0};
    gs_status st;

    if ((st = gs_part__made_begin(&t.made, f, job, path)) == GS_OK &&
        (st = gs_part__lines_open(&l, job, path)) == GS_OK &&
        (st = gs_part__text_blocks(&l, job, &reader)) == GS_OK)
        st = gs_part__made_end(&t.made, as, t.rows, GS_MAX(t.columns, 1));
    gs_part__made_free(&t.made);
    gs_part__lines_close(&l);
    return st;
}
