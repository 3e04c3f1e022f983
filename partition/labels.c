/* labels.c - labels and splits, checked and held in input order. */
#include "partition/labels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "partition/input_files.h"
#include "partition/job.h"
#include "partition/label_rows.h"
#include "store/store.h" /* gs_split */

#define PIECE 65536u

/* Calls per piece with what was read as i64. */
typedef gs_status piece_fn(void *context, const int64_t *values, uint64_t first, uint64_t count);

/* Labels as others save them: whole numbers in float32, NaN for none. */
static gs_status whole_numbers(int64_t *values, double *wide, const void *raw, const gs_part_file *f, uint64_t first,
                               uint64_t count)
{
    gs_part__to_f64(wide, raw, f->npy.dtype, count);
    for (uint64_t i = 0; i < count; i++) {
        const double v = isnan(wide[i]) ? -1 : wide[i];
        if (!(fabs(v) < 0x1p53) || floor(v) != v)
            return gs_fail(GS_EFORMAT, "%s: row %llu: %g is no whole number, so no class", f->path,
                           (unsigned long long)(first + i), v);
        values[i] = (int64_t)v;
    }
    return GS_OK;
}

static gs_status each_piece(const gs_part_file *f, gs_part_job *job, piece_fn *fn, void *context)
{
    const uint64_t n = f->npy.shape[0];
    int64_t *values = gs_malloc_array(PIECE, 8);
    void *raw = gs_malloc_array(PIECE, 8);
    double *wide = gs_malloc_array(PIECE, 8);
    gs_status st = values && raw && wide ? GS_OK : gs_fail(GS_ENOMEM, "%s: no memory to read it", f->path);

    for (uint64_t at = 0; st == GS_OK && at < n; at += PIECE) {
        const uint64_t count = GS_MIN(PIECE, n - at);
        if ((st = gs_part__job_result(job)) != GS_OK ||
            (st = gs_npy_read_rows(&f->npy, raw, at, count, f->path)) != GS_OK)
            break;
        if (gs_part__is_integer(f->npy.dtype))
            gs_part__to_i64(values, raw, f->npy.dtype, count);
        else if ((st = whole_numbers(values, wide, raw, f, at, count)) != GS_OK)
            break;
        st = fn(context, values, at, count);
    }
    gs_free(values);
    gs_free(raw);
    gs_free(wide);
    return st;
}

typedef struct label_work {
    gs_part_input *in;
    int32_t *labels;
    int64_t most;
} label_work;

static gs_status label_piece(void *context, const int64_t *values, uint64_t first, uint64_t count)
{
    label_work *w = context;
    const int64_t classes = w->in->classes != 0 ? w->in->classes : INT32_MAX;

    for (uint64_t i = 0; i < count; i++) {
        if (values[i] < -1 || values[i] >= classes)
            return gs_fail(GS_EFORMAT, "%s: row %llu: label %s is outside 0 to %lld (-1: none)", w->in->label.path,
                           (unsigned long long)(first + i), GS_PART_I64(values[i]), (long long)classes - 1);
        w->most = GS_MAX(w->most, values[i]);
        w->labels[first + i] = (int32_t)values[i];
    }
    return GS_OK;
}

static gs_status load_classes(int32_t **labels, gs_part_input *in, gs_part_job *job)
{
    label_work w = {.in = in, .most = -1};
    gs_status st;

    in->task = GS_TRAIN_TASK_CLASSIFY;
    if (in->label.npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is %s [%llu, %llu]; of .task classify a vertex has one class, -1 for none",
                       in->label.path, gs_dtype_name(in->label.npy.dtype), (unsigned long long)in->label.npy.shape[0],
                       (unsigned long long)in->label.npy.shape[1]);
    if ((w.labels = gs_malloc_array(in->vertices, sizeof(*w.labels))) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the labels", in->label.path);
    if ((st = each_piece(&in->label, job, label_piece, &w)) != GS_OK) {
        gs_free(w.labels);
        return st;
    }
    if (in->classes == 0)
        in->classes = (uint32_t)(w.most + 1);
    if (in->classes == 0) { /* not one vertex is labelled: no labels */
        gs_free(w.labels);
        w.labels = NULL;
    }
    *labels = w.labels;
    return GS_OK;
}

/* Without .task: whole numbers [N] are classes, other numbers what regression learns, a matrix of 0 and 1 several
 * labels a vertex. */
gs_status gs_part__labels_load(int32_t **labels, gs_part_input *in, gs_part_job *job)
{
    gs_status st;

    if (in->label.npy.fd < 0)
        return GS_OK;
    if (job->opt->task != NULL)
        (void)gs_train_task_parse(&in->task, job->opt->task); /* gs_partition() has checked it */
    else if ((st = gs_part__label_task(&in->task, &in->label, job)) != GS_OK)
        return st;
    if (job->opt->task == NULL && in->task == GS_TRAIN_TASK_REGRESS && in->note[0] == '\0')
        snprintf(in->note, sizeof(in->note), "labels are numbers to predict, as they are not whole");
    return in->task == GS_TRAIN_TASK_CLASSIFY ? load_classes(labels, in, job) : gs_part__label_rows(labels, in, job);
}

typedef struct split_work {
    const gs_part_input *in;
    const gs_part_file *file;
    const int32_t *labels;
    uint8_t *split;
    uint8_t which; /* gs_split */
    uint64_t *count; /* vertices in it */
} split_work;

/* Row `row` of the file puts `vertex`, one of them, into the split. */
static gs_status enter(const split_work *w, uint64_t row, uint64_t vertex)
{
    static const char *const names[] = {"", "train_idx.npy", "valid_idx.npy", "test_idx.npy"};
    const unsigned long long at = row, v = vertex;
    uint8_t *const s = &w->split[vertex];

    if (*s == w->which)
        return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %llu is listed twice", w->file->path, at, v);
    if (*s != GS_SPLIT_NONE)
        return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %llu is in %s as well; splits may not overlap", w->file->path,
                       at, v, names[*s]);
    if (w->which == GS_SPLIT_TRAIN && w->labels != NULL && w->labels[vertex] < 0)
        return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %llu has no label; training vertices need one",
                       w->file->path, at, v);
    *s = w->which;
    (*w->count)++;
    return GS_OK;
}

static gs_status id_piece(void *context, const int64_t *values, uint64_t first, uint64_t count)
{
    const split_work *const w = context;
    gs_status st = GS_OK;

    for (uint64_t i = 0; i < count && st == GS_OK; i++) {
        if (values[i] < 0 || (uint64_t)values[i] >= w->in->vertices)
            return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %s is not one of the %llu vertices (ids start at 0)",
                           w->file->path, (unsigned long long)(first + i), GS_PART_I64(values[i]),
                           (unsigned long long)w->in->vertices);
        st = enter(w, first + i, (uint64_t)values[i]);
    }
    return st;
}

static gs_status mask_piece(void *context, const int64_t *values, uint64_t first, uint64_t count)
{
    const split_work *const w = context;
    gs_status st = GS_OK;

    for (uint64_t i = 0; i < count && st == GS_OK; i++) {
        if (values[i] != 0 && values[i] != 1)
            return gs_fail(GS_EFORMAT, "%s: row %llu: %lld is no truth value; the file is damaged", w->file->path,
                           (unsigned long long)(first + i), (long long)values[i]);
        if (values[i] == 1)
            st = enter(w, first + i, first + i);
    }
    return st;
}

/* Whole numbers that could be a mask: one a vertex, all of them 0 or 1. */
typedef struct mask_look {
    bool fits;
    uint64_t ones;
} mask_look;

static gs_status look_piece(void *context, const int64_t *values, uint64_t first, uint64_t count)
{
    mask_look *const k = context;

    (void)first;
    for (uint64_t i = 0; i < count && k->fits; i++) {
        k->fits = values[i] == 0 || values[i] == 1;
        k->ones += values[i] == 1;
    }
    return GS_OK;
}

/* Whether whole numbers are a mask. As ids, 0 and 1 can be listed once each: of three vertices or more, such numbers,
 * one a vertex, are no list. Of fewer, the array's name decides, or nobody knows. */
static gs_status find_mask(bool *mask, const split_work *w, gs_part_job *job)
{
    const char *const slash = strrchr(w->file->path, '/'), *const name = slash != NULL ? slash + 1 : w->file->path;
    const uint64_t n = w->in->vertices;
    mask_look k = {.fits = w->file->npy.shape[0] == n};
    const gs_status st = k.fits ? each_piece(w->file, job, look_piece, &k) : GS_OK;

    *mask = k.fits && (n > 2 || strstr(name, "mask") != NULL);
    if (st != GS_OK || !k.fits)
        return st;
    if (!*mask && k.ones <= 1 && (n == 1 || k.ones == 1)) /* else an id is listed twice, which is said */
        return gs_fail(GS_EFORMAT, "%s: may be a mask of %llu vertices or a list of ids; save a mask as bool",
                       w->file->path, (unsigned long long)n);
    if (*mask)
        gs_part__warn(job, "%s: is a number of 0 or 1 for each vertex, taken as a mask with %llu ones", w->file->path,
                      (unsigned long long)k.ones);
    return GS_OK;
}

/* A list of ids, or, as in torch_geometric, a truth value for each vertex. */
static gs_status load_split(split_work *w, gs_part_job *job)
{
    const gs_npy *const npy = &w->file->npy;
    bool mask = npy->truth;
    gs_status st = GS_OK;

    if (npy->truth && (npy->shape[1] != 1 || npy->shape[0] != w->in->vertices))
        return gs_fail(GS_EFORMAT,
                       "%s: is bool [%llu, %llu]; a split is a mask of bool [%llu], one a vertex, or a list of vertex "
                       "ids (int64)",
                       w->file->path, (unsigned long long)npy->shape[0], (unsigned long long)npy->shape[1],
                       (unsigned long long)w->in->vertices);
    if (!gs_part__is_integer(npy->dtype) || npy->shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is %s; a split is a list of vertex ids (int64), or a mask (bool)",
                       w->file->path, gs_dtype_name(npy->dtype));
    if (!mask && (st = find_mask(&mask, w, job)) != GS_OK)
        return st;
    return each_piece(w->file, job, mask ? mask_piece : id_piece, w);
}

gs_status gs_part__splits_load(uint8_t **split, uint64_t count[3], const gs_part_input *in,
                               const int32_t *labels, gs_part_job *job)
{
    split_work w = {.in = in, .labels = labels};
    gs_status st = GS_OK;
    bool any = false;

    for (int i = 0; i < 3; i++)
        any |= in->split[i].npy.fd >= 0;
    if (!any)
        return GS_OK;
    if ((w.split = gs_calloc(in->vertices, 1)) == NULL)
        return gs_fail(GS_ENOMEM, "%s: no memory for the splits", in->path);
    for (int i = 0; i < 3 && st == GS_OK; i++) {
        count[i] = 0;
        w.file = &in->split[i];
        w.which = (uint8_t)(GS_SPLIT_TRAIN + i);
        w.count = &count[i];
        if (w.file->npy.fd >= 0)
            st = load_split(&w, job);
    }
    if (st != GS_OK) {
        gs_free(w.split);
        return st;
    }
    *split = w.split;
    return GS_OK;
}
