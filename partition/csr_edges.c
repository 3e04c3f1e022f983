/* csr_edges.c - a CSR matrix, piece by piece, into the temporary file of edges. */
#include "partition/csr_edges.h"

#include <math.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/edge_text.h"
#include "partition/job.h"

#define PIECE 65536u

typedef struct walk {
    gs_part_input *in;
    gs_part_job *job;
    const gs_part_csr *m;
    int64_t *ends;    /* [PIECE] of rows: where each ends */
    int64_t *column;  /* [PIECE] of entries */
    float *value;
    void *raw;
    uint64_t row, row_have;     /* the first row whose end is in memory, and how many are */
    uint64_t from, entry_have;  /* the same of entries */
} walk;

static gs_status check_shape(const gs_part_input *in, const gs_part_csr *m)
{
    const gs_npy *const p = &m->indptr.npy, *const x = &m->indices.npy, *const d = &m->data.npy;

    if (!gs_part__is_integer(p->dtype) || p->truth || p->shape[1] != 1 || p->shape[0] != in->vertices + 1)
        return gs_fail(GS_EFORMAT, "%s: is %s [%llu]; it must be integers [%llu], one a row and one more",
                       m->indptr.path, gs_dtype_name(p->dtype), (unsigned long long)p->shape[0],
                       (unsigned long long)in->vertices + 1);
    if (!gs_part__is_integer(x->dtype) || x->truth || x->shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: must be integers, the column of each entry", m->indices.path);
    if (d->fd >= 0 && (d->shape[1] != 1 || d->shape[0] != x->shape[0]))
        return gs_fail(GS_EFORMAT, "%s: has %llu values for %llu entries in %s", m->data.path,
                       (unsigned long long)d->shape[0], (unsigned long long)x->shape[0], m->indices.path);
    return GS_OK;
}

static gs_status load_values(walk *w, uint64_t at, uint64_t count)
{
    const gs_part_file *const d = &w->m->data;
    const gs_status st = gs_npy_read_rows(&d->npy, w->raw, at, count, d->path);

    if (st != GS_OK)
        return st;
    gs_part__to_f32(w->value, w->raw, d->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(w->value[i]))
            return gs_fail(GS_EFORMAT, "%s: row %llu: the weight is not a finite float32", d->path,
                           (unsigned long long)(at + i));
    return GS_OK;
}

/* Is any value another than 1? */
static gs_status find_weights(walk *w)
{
    const uint64_t n = w->m->indices.npy.shape[0];
    gs_status st = GS_OK;

    for (uint64_t at = 0; w->m->data.npy.fd >= 0 && at < n && !w->in->weighted && st == GS_OK; at += PIECE) {
        const uint64_t count = GS_MIN(PIECE, n - at);
        if ((st = gs_part__job_result(w->job)) != GS_OK || (st = load_values(w, at, count)) != GS_OK)
            break;
        for (uint64_t i = 0; i < count; i++)
            w->in->weighted |= w->value[i] != 1;
    }
    return st;
}

static gs_status load_entries(walk *w, uint64_t at)
{
    const gs_part_file *const x = &w->m->indices;
    const uint64_t count = GS_MIN(PIECE, x->npy.shape[0] - at);
    gs_status st;

    if ((st = gs_part__job_result(w->job)) != GS_OK ||
        (st = gs_npy_read_rows(&x->npy, w->raw, at, count, x->path)) != GS_OK)
        return st;
    gs_part__to_i64(w->column, w->raw, x->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++)
        if (w->column[i] < 0 || (uint64_t)w->column[i] >= w->in->vertices)
            return gs_fail(GS_EFORMAT, "%s: row %llu: column %s is not one of the %llu vertices", x->path,
                           (unsigned long long)(at + i), GS_PART_I64(w->column[i]),
                           (unsigned long long)w->in->vertices);
    w->from = at;
    w->entry_have = count;
    gs_part__tick(w->job, "reading edges", (double)at / (double)x->npy.shape[0]);
    return w->in->weighted ? load_values(w, at, count) : GS_OK;
}

/* Where row `row` begins or, for the number of rows, the last one ends. */
static gs_status row_end(walk *w, uint64_t row, uint64_t before, uint64_t *end)
{
    const gs_part_file *const p = &w->m->indptr;
    const uint64_t rows = w->in->vertices + 1, entries = w->m->indices.npy.shape[0];

    if (row >= w->row + w->row_have) {
        const uint64_t count = GS_MIN(PIECE, rows - row);
        const gs_status st = gs_npy_read_rows(&p->npy, w->raw, row, count, p->path);
        if (st != GS_OK)
            return st;
        gs_part__to_i64(w->ends, w->raw, p->npy.dtype, count);
        w->row = row;
        w->row_have = count;
    }
    const int64_t v = w->ends[row - w->row];
    if (v < (int64_t)before || (uint64_t)v > entries || (row == 0 && v != 0) ||
        (row + 1 == rows && (uint64_t)v != entries))
        return gs_fail(GS_EFORMAT, "%s: row %llu: %s does not fit between %llu and the %llu entries", p->path,
                       (unsigned long long)row, GS_PART_I64(v), (unsigned long long)before,
                       (unsigned long long)entries);
    *end = (uint64_t)v;
    return GS_OK;
}

static gs_status put_rows(walk *w)
{
    uint64_t at = 0, end = 0;
    gs_status st = row_end(w, 0, 0, &end);

    for (uint64_t row = 0; row < w->in->vertices && st == GS_OK; row++) {
        if ((st = row_end(w, row + 1, at, &end)) != GS_OK)
            break;
        for (; at < end && st == GS_OK; at++) {
            if (at >= w->from + w->entry_have && (st = load_entries(w, at)) != GS_OK)
                break;
            const uint64_t k = at - w->from;
            st = gs_part__text_put(w->in, row, (uint64_t)w->column[k], w->in->weighted ? w->value[k] : 1, 0);
        }
    }
    return st;
}

gs_status gs_part__csr_edges(gs_part_input *in, gs_part_job *job, const gs_part_csr *matrix)
{
    walk w = {.in = in, .job = job, .m = matrix};
    gs_status st;

    if (in->vertices > GS_MOST_ID)
        return gs_fail(GS_EUNSUPPORTED, "%s: %llu vertices; a store holds fewer than 2^32 - 1", in->path,
                       (unsigned long long)in->vertices);
    if ((st = check_shape(in, matrix)) != GS_OK)
        return st;
    w.ends = gs_malloc_array(PIECE, 8);
    w.column = gs_malloc_array(PIECE, 8);
    w.value = gs_malloc_array(PIECE, 4);
    w.raw = gs_malloc_array(PIECE, 8);
    if (w.ends == NULL || w.column == NULL || w.value == NULL || w.raw == NULL)
        st = gs_fail(GS_ENOMEM, "%s: no memory to read it", in->path);
    if (st == GS_OK && (st = find_weights(&w)) == GS_OK && (st = gs_part__text_begin(in, job)) == GS_OK &&
        (st = put_rows(&w)) == GS_OK)
        st = gs_part__text_end(in);
    gs_free(w.ends);
    gs_free(w.column);
    gs_free(w.value);
    gs_free(w.raw);
    return st;
}

void gs_part__csr_close(gs_part_csr *matrix)
{
    gs_part__file_close(&matrix->indptr);
    gs_part__file_close(&matrix->indices);
    gs_part__file_close(&matrix->data);
}
