/* csr_edges.c - a CSR matrix, piece by piece, into the temporary file of edges. */
#include "partition/csr_edges.h"

#include <math.h>

#include "base/size.h"
#include "partition/csr_reader.h"
#include "partition/edge_text.h"
#include "partition/job.h"

#define PIECE 65536u

typedef struct walk {
    gs_part_input *in;
    gs_part_job *job;
    gs_csr_reader r;
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

static gs_status check_weights(const walk *w, uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(w->r.value[i]))
            return gs_fail(GS_EFORMAT, "%s: row %llu: the weight is not a finite float32", w->r.data->path,
                           (unsigned long long)(at + i));
    return GS_OK;
}

/* Is any value another than 1? */
static gs_status find_weights(walk *w)
{
    const uint64_t n = w->r.indices->npy.shape[0];
    gs_status st = GS_OK;

    for (uint64_t at = 0; w->r.data->npy.fd >= 0 && at < n && !w->in->weighted && st == GS_OK; at += PIECE) {
        const uint64_t count = GS_MIN(PIECE, n - at);
        if ((st = gs_part__job_result(w->job)) != GS_OK || (st = gs_csr__values(&w->r, at, count)) != GS_OK ||
            (st = check_weights(w, at, count)) != GS_OK)
            break;
        for (uint64_t i = 0; i < count; i++)
            w->in->weighted |= w->r.value[i] != 1;
    }
    return st;
}

static gs_status load_entries(walk *w, uint64_t at)
{
    gs_status st;

    if ((st = gs_part__job_result(w->job)) != GS_OK || (st = gs_csr__entries(&w->r, at, w->in->weighted)) != GS_OK)
        return st;
    gs_part__tick(w->job, "reading edges", (double)at / (double)w->r.indices->npy.shape[0]);
    return w->in->weighted ? check_weights(w, at, w->r.have) : GS_OK;
}

static gs_status put_rows(walk *w)
{
    uint64_t at = 0, end = 0;
    gs_status st = gs_csr__bound(&w->r, 0, 0, &end);

    for (uint64_t row = 0; row < w->in->vertices && st == GS_OK; row++) {
        if ((st = gs_csr__bound(&w->r, row + 1, at, &end)) != GS_OK)
            break;
        for (; at < end && st == GS_OK; at++) {
            if (at >= w->r.from + w->r.have && (st = load_entries(w, at)) != GS_OK)
                break;
            const uint64_t k = at - w->r.from;
            st = gs_part__text_put(w->in, row, (uint64_t)w->r.column[k], w->in->weighted ? w->r.value[k] : 1, 0);
        }
    }
    return st;
}

gs_status gs_part__csr_edges(gs_part_input *in, gs_part_job *job, const gs_part_csr *matrix)
{
    walk w = {.in = in, .job = job, .r = {.indptr = &matrix->indptr, .indices = &matrix->indices,
                                          .data = &matrix->data, .rows = in->vertices, .columns = in->vertices,
                                          .columns_are = "vertices"}};
    gs_status st;

    if (in->vertices > GS_MOST_ID)
        return gs_fail(GS_EUNSUPPORTED, "%s: %llu vertices; a store holds fewer than 2^32 - 1", in->path,
                       (unsigned long long)in->vertices);
    if ((st = check_shape(in, matrix)) != GS_OK)
        return st;
    st = gs_csr__alloc(&w.r, PIECE, in->path);
    if (st == GS_OK && (st = find_weights(&w)) == GS_OK && (st = gs_part__text_begin(in, job)) == GS_OK &&
        (st = put_rows(&w)) == GS_OK)
        st = gs_part__text_end(in);
    gs_csr__free(&w.r);
    return st;
}

void gs_part__csr_close(gs_part_csr *matrix)
{
    gs_part__file_close(&matrix->indptr);
    gs_part__file_close(&matrix->indices);
    gs_part__file_close(&matrix->data);
}
