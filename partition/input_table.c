/* input_table.c - rows of numbers in a text, as an array in a temporary file. */
#include "partition/input_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "partition/job.h"
#include "partition/spill.h"
#include "partition/text_lines.h"

#define WRITE_BYTES (256 * GS_KIB)
#define DATA_OFFSET 4096u /* whole blocks, as rows are read */
#define MOST_LINE (16 * GS_MIB)
#define EXACT_DIGITS (1ull << 53) /* whole numbers to here, and powers of ten to 10^22, are exact as f64 */

typedef struct writer {
    gs_part_file *file;
    gs_dtype as;
    char *buffer;
    uint64_t fill, offset; /* bytes */
} writer;

static gs_status flush(writer *w)
{
    const gs_status st = gs_pwrite_exact(w->file->npy.fd, w->buffer, w->fill, w->offset, w->file->path);
    w->offset += w->fill;
    w->fill = 0;
    return st;
}

static gs_status put(writer *w, const void *value)
{
    const size_t bytes = gs_dtype_bytes(w->as);
    memcpy(w->buffer + w->fill, value, bytes);
    w->fill += bytes;
    return w->fill == WRITE_BYTES ? flush(w) : GS_OK;
}

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

static gs_status put_number(writer *w, const gs_lines *l, char *field, char **after)
{
    if (w->as == GS_I64) {
        errno = 0;
        const int64_t v = strtoll(field, after, 10);
        if (*after == field || errno != 0)
            return gs_part__lines_wrong(l, field, "expected a whole number");
        return put(w, &v);
    }
    *after = field;
    const double v = *field == '\0' || *field == ',' ? (double)NAN : take_real(field, after);
    if (*after == field && !isnan(v))
        return gs_part__lines_wrong(l, field, "expected a number");
    const float narrow = (float)v;
    return put(w, w->as == GS_F32 ? (const void *)&narrow : &v);
}

/* Appends the numbers of a line; *count: how many. */
static gs_status put_line(writer *w, const gs_lines *l, uint64_t *count)
{
    char *p = gs_part__skip_blanks(l->line);
    gs_status st;

    for (*count = 0;;) {
        if ((st = put_number(w, l, p, &p)) != GS_OK)
            return st;
        p = gs_part__skip_blanks(p);
        ++*count;
        if (*p == '\0')
            return GS_OK;
        if (*p != ',')
            return gs_part__lines_wrong(l, p, "expected a comma or the end of the line after a number");
        p = gs_part__skip_blanks(p + 1);
    }
}

static gs_status put_lines(writer *w, gs_part_job *job, gs_lines *l)
{
    gs_npy *const npy = &w->file->npy;
    bool more = true;
    uint64_t count;
    char text[96];
    gs_status st;

    while ((st = gs_part__lines_next(l, &more)) == GS_OK && more) {
        if (*gs_part__skip_blanks(l->line) == '\0' && w->as == GS_I64)
            continue;
        if ((st = put_line(w, l, &count)) != GS_OK || (st = gs_part__lines_tick(job, l, "reading tables")) != GS_OK)
            return st;
        if (npy->shape[0]++ == 0)
            npy->shape[1] = count;
        if (count != npy->shape[1]) {
            snprintf(text, sizeof(text), "%llu numbers; the first line has %llu", (unsigned long long)count,
                     (unsigned long long)npy->shape[1]);
            return gs_part__lines_wrong(l, l->line, text);
        }
    }
    if (st != GS_OK || (st = flush(w)) != GS_OK)
        return st;
    npy->dims = npy->shape[1] > 1 ? 2 : 1;
    npy->data_bytes = w->offset - DATA_OFFSET;
    return GS_OK;
}

gs_status gs_part__table_read(gs_part_file *f, gs_part_job *job, char *path, gs_dtype as)
{
    writer w = {.file = f, .as = as, .offset = DATA_OFFSET};
    char link[64], *hidden = NULL;
    gs_lines l;
    gs_status st;

    f->path = path;
    f->npy = (gs_npy){.dtype = as, .shape = {0, 1}, .dims = 1, .data_offset = DATA_OFFSET, .fd = -1};
    if ((st = gs_part__lines_open(&l, job, path, GS_MAX(GS_LINE_LIMIT, GS_MIN(job->memory / 8, MOST_LINE)))) != GS_OK ||
        (st = gs_part__unnamed_file(&f->npy.fd, &hidden, job->dir, "tmp.table")) != GS_OK)
        goto done;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", f->npy.fd); /* its only name */
    f->opened_as = gs_strdup(link);
    w.buffer = gs_malloc(WRITE_BYTES);
    st = w.buffer != NULL && f->opened_as != NULL ? put_lines(&w, job, &l)
                                                  : gs_fail(GS_ENOMEM, "%s: no memory to read it", path);
done:
    gs_part__lines_close(&l);
    gs_free(hidden);
    gs_free(w.buffer);
    return st;
}
