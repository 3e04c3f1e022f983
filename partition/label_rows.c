/* label_rows.c - labels that are rows, read once front to back: what are they, is each one a label, which are known? */
#include "partition/label_rows.h"

#include <math.h>

#include "base/alloc.h"
#include "base/size.h"

#define PIECE 65536u /* numbers */

/* Properties of all numbers. */
typedef struct looks {
    bool whole, truths, number_seen;
} looks;

/* Calls with rows as f64; what it returns ends the reading where it is not GS_OK. */
typedef gs_status rows_fn(void *context, const double *row, uint64_t first, uint64_t rows);

static gs_status each_rows(const gs_part_file *f, gs_part_job *job, rows_fn *fn, void *context)
{
    const uint64_t columns = f->npy.shape[1], step = GS_MAX(PIECE / columns, 1);
    double *const values = gs_malloc_array(step * columns, sizeof(*values));
    void *const raw = gs_malloc_array(step * columns, 8);
    gs_status st = values != NULL && raw != NULL ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to read it", f->path);

    for (uint64_t at = 0; st == GS_OK && at < f->npy.shape[0]; at += step) {
        const uint64_t rows = GS_MIN(step, f->npy.shape[0] - at);
        if ((st = gs_part__job_result(job)) != GS_OK ||
            (st = gs_npy_read_rows(&f->npy, raw, at, rows, f->path)) != GS_OK)
            break;
        gs_part__to_f64(values, raw, f->npy.dtype, rows * columns);
        st = fn(context, values, at, rows);
    }
    gs_free(values);
    gs_free(raw);
    return st;
}

/* ---- which task? ---------------------------------------------------------- */

typedef struct looking {
    looks seen;
    uint64_t columns;
} looking;

static gs_status look(void *context, const double *row, uint64_t first, uint64_t rows)
{
    looking *const w = context;
    (void)first;
    for (uint64_t i = 0; i < rows * w->columns; i++) {
        if (isnan(row[i]))
            continue;
        w->seen.number_seen = true;
        w->seen.whole &= floor(row[i]) == row[i]; /* an infinity is its own floor, and is refused later */
        w->seen.truths &= row[i] == 0 || row[i] == 1;
    }
    return GS_OK;
}

gs_status gs_part__label_task(gs_train_task *out, const gs_part_file *f, gs_part_job *job)
{
    const bool integer = gs_part__is_integer(f->npy.dtype);
    looking w = {.seen = {.whole = true, .truths = true}, .columns = f->npy.shape[1]};
    gs_status st;

    if (w.columns == 1 && integer) {
        *out = GS_TRAIN_TASK_CLASSIFY;
        return GS_OK;
    }
    if ((st = each_rows(f, job, look, &w)) != GS_OK)
        return st;
    if (w.columns == 1)
        *out = w.seen.whole ? GS_TRAIN_TASK_CLASSIFY : GS_TRAIN_TASK_REGRESS;
    else if (w.seen.truths)
        *out = GS_TRAIN_TASK_MULTILABEL;
    else if (!integer)
        *out = GS_TRAIN_TASK_REGRESS;
    else
        return gs_fail(GS_EFORMAT,
                       "%s: is %s [%llu, %llu] and holds other numbers than 0 and 1; a row of numbers that are to be "
                       "predicted needs .task regress",
                       f->path, gs_dtype_name(f->npy.dtype), (unsigned long long)f->npy.shape[0],
                       (unsigned long long)w.columns);
    return GS_OK;
}

/* ---- which are known? ----------------------------------------------------- */

typedef struct knowing {
    const gs_part_input *in;
    int32_t *known;
    bool any;
} knowing;

static gs_status refuse(const gs_part_input *in, uint64_t row, uint64_t column, double value)
{
    const unsigned long long r = row, c = column;
    if (in->task == GS_TRAIN_TASK_MULTILABEL)
        return gs_fail(GS_EFORMAT, "%s: row %llu, column %llu: %g is neither 0 nor 1 (nor NaN, for not known)",
                       in->label.path, r, c, value);
    return gs_fail(GS_EFORMAT, "%s: row %llu, column %llu: %g is not a finite float32 (NaN is for not known)",
                   in->label.path, r, c, value);
}

static gs_status know(void *context, const double *row, uint64_t first, uint64_t rows)
{
    knowing *const w = context;
    const uint64_t columns = w->in->label.npy.shape[1];

    for (uint64_t i = 0; i < rows; i++, row += columns) {
        int32_t known = -1;
        for (uint64_t c = 0; c < columns; c++) {
            if (isnan(row[c]))
                continue;
            if (w->in->task == GS_TRAIN_TASK_MULTILABEL ? row[c] != 0 && row[c] != 1 : !isfinite((float)row[c]))
                return refuse(w->in, first + i, c, row[c]);
            known = 0;
        }
        w->known[first + i] = known;
        w->any |= known == 0;
    }
    return GS_OK;
}

gs_status gs_part__label_rows(int32_t **known, gs_part_input *in, gs_part_job *job)
{
    const uint64_t columns = in->label.npy.shape[1];
    knowing w = {.in = in};
    gs_status st;

    if (columns == 0 || columns > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s: has %llu columns of labels", in->label.path, (unsigned long long)columns);
    if (in->classes != 0 && in->task == GS_TRAIN_TASK_MULTILABEL && in->classes != columns)
        return gs_fail(GS_EFORMAT, "%s: has %llu columns, but there are said to be %u classes", in->label.path,
                       (unsigned long long)columns, in->classes);
    if ((w.known = gs_malloc_array(in->vertices, sizeof(*w.known))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for which vertices have labels", in->label.path);
    if ((st = each_rows(&in->label, job, know, &w)) != GS_OK || !w.any) {
        gs_free(w.known);
        return st;
    }
    in->classes = (uint32_t)columns;
    *known = w.known;
    return GS_OK;
}

void gs_part__label_in_store(void *dst, gs_train_task task, const float *row, uint32_t columns)
{
    for (uint32_t c = 0; c < columns; c++)
        if (task == GS_TRAIN_TASK_REGRESS)
            ((float *)dst)[c] = isnan(row[c]) ? NAN : row[c];
        else
            ((uint8_t *)dst)[c] = isnan(row[c]) ? GS_LABEL_UNKNOWN : row[c] != 0;
}
