/* labels.c - labels and splits, checked and held in input order. */
#include "partition/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/size.h"
#include "partition/integers.h"
#include "store/store.h" /* gs_split */

/* ---- splits drawn from the seed.
 *
 * Each vertex has a random key; in order of keys the first share is for training, the next for validation, the next
 * for test. Where a share ends is found by counting keys by their upper bits, then sorting the few that share the
 * upper bits of the end: nothing of O(N) is held but the result. */

#define BUCKETS 65536u
#define BUCKET_SHIFT 48

typedef struct draw {
    const int32_t *labels;
    uint64_t vertices, candidates;
    uint32_t key[2];
    uint64_t *count;  /* [BUCKETS] keys of each */
    uint64_t end[3];  /* the first key after each share */
    bool all[3];      /* no key comes after it */
} draw;

gs_status gs_part__split_shares(double share[3], const char *text)
{
    const char *p = text;
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        char *after;
        share[i] = strtod(p, &after);
        if (after == p || !(share[i] >= 0 && share[i] <= 1) || *after != (i < 2 ? ',' : '\0'))
            return gs_fail(GS_EINVAL, ".split %s: must be three shares from 0 to 1 for training, validation and test, "
                                      "such as 0.6,0.2,0.2", text);
        p = after + 1;
        sum += share[i];
    }
    return sum <= 1 + 1e-9 ? GS_OK : gs_fail(GS_EINVAL, ".split %s: the shares are more than 1 together", text);
}

static bool is_candidate(const draw *d, uint64_t v) { return d->labels == NULL || d->labels[v] >= 0; }

static uint64_t key_of(const draw *d, uint64_t v)
{
    const uint32_t counter[4] = {(uint32_t)v, 0, 0, 0};
    uint32_t word[4];
    gs_philox4x32(word, counter, d->key);
    return (uint64_t)word[1] << 32 | word[0];
}

/* The key with `rank` keys before it. */
static gs_status find_end(draw *d, int share, uint64_t rank)
{
    uint64_t before = 0, found = 0;
    uint32_t bucket = 0;

    d->all[share] = rank >= d->candidates;
    if (d->all[share])
        return GS_OK;
    while (before + d->count[bucket] <= rank)
        before += d->count[bucket++];
    GS_FREED uint64_t *const sorted = gs_malloc_array(d->count[bucket], 8);
    GS_FREED uint64_t *const spare = gs_malloc_array(d->count[bucket], 8);
    GS_NEED(sorted != NULL && spare != NULL, ".split: no memory for %lu keys", d->count[bucket]);
    for (uint64_t v = 0; v < d->vertices; v++) {
        const uint64_t key = key_of(d, v);
        if (key >> BUCKET_SHIFT == bucket && is_candidate(d, v))
            sorted[found++] = key;
    }
    d->end[share] = gs_part__sort8(sorted, spare, found, BUCKET_SHIFT)[rank - before];
    return GS_OK;
}

static void count_keys(draw *d)
{
    for (uint64_t v = 0; v < d->vertices; v++)
        if (is_candidate(d, v)) {
            d->count[key_of(d, v) >> BUCKET_SHIFT]++;
            d->candidates++;
        }
}

static void assign(const draw *d, uint8_t *split, uint64_t count[3])
{
    memset(count, 0, 3 * sizeof(*count));
    for (uint64_t v = 0; v < d->vertices; v++) {
        const uint64_t key = key_of(d, v);
        int share = 0;
        while (share < 3 && !d->all[share] && key >= d->end[share])
            share++;
        if (share == 3 || !is_candidate(d, v))
            continue;
        split[v] = (uint8_t)(GS_SPLIT_TRAIN + share);
        count[share]++;
    }
}

gs_status gs_part__split_draw(uint8_t **split, uint64_t count[3], const gs_part_input *in, const int32_t *labels,
                              const gs_part_job *job)
{
    draw d = {.labels = labels, .vertices = in->vertices};
    double share[3], sum = 0;

    if (*split != NULL)
        return gs_fail(GS_EINVAL, ".split %s: %s has splits of its own; leave the option out", job->opt->split,
                       in->path);
    GS_TRY(gs_part__split_shares(share, job->opt->split));
    gs_random_key(d.key, job->opt->seed, GS_RANDOM_SPLIT);
    GS_FREED uint64_t *const counts = d.count = gs_calloc(BUCKETS, sizeof(*d.count));
    GS_FREED uint8_t *drawn = gs_calloc(in->vertices, 1);
    GS_NEED(counts != NULL && drawn != NULL, "%s: no memory for the splits", in->path);
    count_keys(&d);
    for (int i = 0; i < 3; i++) {
        sum += share[i];
        GS_TRY(find_end(&d, i, (uint64_t)llround(GS_MIN(sum, 1.0) * (double)d.candidates)));
    }
    assign(&d, drawn, count);
    *split = GS_HANDED_OVER(drawn);
    return GS_OK;
}

#define PIECE 65536u /* numbers */

/* ---- labels that are rows, read once front to back: what are they, is each one a label, which are known? */

/* What is made of a piece's values, which are double or, of whole numbers, int64_t; a failure ends the reading. */
typedef gs_status piece_fn(void *context, const void *values, uint64_t first, uint64_t rows);

/* Labels as others save them: whole numbers in float32, NaN for none. */
static gs_status whole_numbers(int64_t *values, const double *wide, const gs_part_file *f, uint64_t first,
                               uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double v = isnan(wide[i]) ? -1 : wide[i];
        if (!(fabs(v) < 0x1p53) || floor(v) != v)
            return gs_fail(GS_EFORMAT, "%s: row %lu: %g is no whole number, so no class", f->path, first + i, v);
        values[i] = (int64_t)v;
    }
    return GS_OK;
}

/* `whole`: of one column, as whole numbers. */
static gs_status each_piece(const gs_part_file *f, gs_part_job *job, bool whole, piece_fn *fn, void *context)
{
    const uint64_t columns = f->npy.shape[1], step = GS_MAX(PIECE / columns, 1);
    GS_ENDS(gs_arena_free) gs_arena memory = {0};
    double *const wide = gs_arena_take(&memory, step * columns, sizeof(*wide));
    int64_t *const values = gs_arena_take(&memory, whole ? step : 1, sizeof(*values));
    void *const raw = gs_arena_take(&memory, step * columns, 8);

    GS_NEED(!memory.is_short, "%s: no memory to read it", f->path);
    for (uint64_t at = 0; at < f->npy.shape[0]; at += step) {
        const uint64_t rows = GS_MIN(step, f->npy.shape[0] - at);
        GS_TRY(gs_part__job_result(job));
        GS_TRY(gs_npy_read_rows(&f->npy, raw, at, rows, f->path));
        if (whole && gs_part__is_integer(f->npy.dtype)) {
            gs_part__to_i64(values, raw, f->npy.dtype, rows);
        } else {
            gs_part__to_f64(wide, raw, f->npy.dtype, rows * columns);
            GS_TRY(whole ? whole_numbers(values, wide, f, at, rows) : GS_OK);
        }
        GS_TRY(fn(context, whole ? (const void *)values : wide, at, rows));
    }
    return GS_OK;
}

/* ---- which task? ---------------------------------------------------------- */

typedef struct looking {
    bool whole, truths; /* are all numbers so? */
    uint64_t columns;
} looking;

static gs_status look(void *context, const void *values, uint64_t first, uint64_t rows)
{
    looking *const w = context;
    const double *const row = values;
    (void)first;
    for (uint64_t i = 0; i < rows * w->columns; i++) {
        if (isnan(row[i]))
            continue;
        w->whole &= floor(row[i]) == row[i]; /* an infinity is its own floor, and is refused later */
        w->truths &= row[i] == 0 || row[i] == 1;
    }
    return GS_OK;
}

/* The task that the file's numbers are labels of, found by reading them. */
static gs_status label_task(gs_train_task *out, const gs_part_file *f, gs_part_job *job)
{
    const bool integer = gs_part__is_integer(f->npy.dtype);
    looking w = {.whole = true, .truths = true, .columns = f->npy.shape[1]};

    if (w.columns == 1 && integer) {
        *out = GS_TRAIN_TASK_CLASSIFY;
        return GS_OK;
    }
    GS_TRY(each_piece(f, job, false, look, &w));
    if (w.columns == 1)
        *out = w.whole ? GS_TRAIN_TASK_CLASSIFY : GS_TRAIN_TASK_REGRESS;
    else if (w.truths)
        *out = GS_TRAIN_TASK_MULTILABEL;
    else if (!integer)
        *out = GS_TRAIN_TASK_REGRESS;
    else
        return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu] and holds other numbers than 0 and 1; a row of numbers that "
                       "are to be predicted needs .task regress", f->path, gs_dtype_name(f->npy.dtype), f->npy.shape[0],
                       w.columns);
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
    const unsigned long long r = row - in->label_first, c = column;
    if (in->task == GS_TRAIN_TASK_MULTILABEL)
        return gs_fail(GS_EFORMAT, "%s: row %llu, column %llu: %g is neither 0 nor 1 (nor NaN, for not known)",
                       in->label.path, r, c, value);
    return gs_fail(GS_EFORMAT, "%s: row %llu, column %llu: %g is not a finite float32 (NaN is for not known)",
                   in->label.path, r, c, value);
}

static gs_status know(void *context, const void *values, uint64_t first, uint64_t rows)
{
    knowing *const w = context;
    const double *row = values;
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

/* Reads all rows of in->label and refuses what is no label of in->task. *known: 0 for vertices of which a label is
 * known, -1 for the others; [vertices], the caller's; untouched where none is. Sets in->classes, the columns. */
static gs_status load_rows(int32_t **known, gs_part_input *in, gs_part_job *job)
{
    const uint64_t columns = in->label.npy.shape[1];
    GS_FREED int32_t *taken = gs_malloc_array(in->vertices, sizeof(*taken));
    knowing w = {.in = in, .known = taken};

    if (columns > INT32_MAX)
        return gs_fail(GS_EFORMAT, "%s: has %lu columns of labels", in->label.path, columns);
    if (in->classes != 0 && in->task == GS_TRAIN_TASK_MULTILABEL && in->classes != columns)
        return gs_fail(GS_EFORMAT, "%s: has %lu columns, but there are said to be %u classes", in->label.path, columns,
                       in->classes);
    GS_NEED(taken != NULL, "%s: no memory for which vertices have labels", in->label.path);
    GS_TRY(each_piece(&in->label, job, false, know, &w));
    if (!w.any)
        return GS_OK;
    in->classes = (uint32_t)columns;
    *known = GS_HANDED_OVER(taken);
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

/* ---- the labels and splits of an input -------------------------------------------- */

typedef struct label_work {
    gs_part_input *in;
    int32_t *labels;
    int64_t most;
} label_work;

static gs_status label_piece(void *context, const void *piece, uint64_t first, uint64_t count)
{
    const int64_t *const values = piece;
    label_work *w = context;
    const int64_t classes = w->in->classes != 0 ? w->in->classes : INT32_MAX;

    for (uint64_t i = 0; i < count; i++) {
        if (values[i] < -1 || values[i] >= classes)
            return gs_fail(GS_EFORMAT, "%s: row %lu: label %s is outside 0 to %lld (-1: none)", w->in->label.path,
                           first + i - w->in->label_first, GS_PART_I64(values[i]), (long long)classes - 1);
        w->most = GS_MAX(w->most, values[i]);
        w->labels[first + i] = (int32_t)values[i];
    }
    return GS_OK;
}

static gs_status load_classes(int32_t **labels, gs_part_input *in, gs_part_job *job)
{
    GS_FREED int32_t *taken = gs_malloc_array(in->vertices, sizeof(*taken));
    label_work w = {.in = in, .labels = taken, .most = -1};

    in->task = GS_TRAIN_TASK_CLASSIFY;
    if (in->label.npy.shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is %s [%lu, %lu]; of .task classify a vertex has one class, -1 for none",
                       in->label.path, gs_dtype_name(in->label.npy.dtype), in->label.npy.shape[0],
                       in->label.npy.shape[1]);
    GS_NEED(taken != NULL, "%s: no memory for the labels", in->label.path);
    GS_TRY(each_piece(&in->label, job, true, label_piece, &w));
    if (in->classes == 0)
        in->classes = (uint32_t)(w.most + 1);
    if (in->classes == 0) /* not one vertex is labelled: no labels */
        return GS_OK;
    *labels = GS_HANDED_OVER(taken);
    return GS_OK;
}

/* Without .task: whole numbers [N] are classes, other numbers what regression learns, a matrix of 0 and 1 several
 * labels a vertex. */
gs_status gs_part__labels_load(int32_t **labels, gs_part_input *in, gs_part_job *job)
{
    if (in->label.npy.fd < 0)
        return GS_OK;
    if (job->opt->task != NULL)
        (void)gs_train_task_parse(&in->task, job->opt->task); /* gs_partition() has checked it */
    else
        GS_TRY(label_task(&in->task, &in->label, job));
    if (job->opt->task == NULL && in->task == GS_TRAIN_TASK_REGRESS && in->note[0] == '\0')
        snprintf(in->note, sizeof(in->note), "labels are numbers to predict, as they are not whole");
    return in->task == GS_TRAIN_TASK_CLASSIFY ? load_classes(labels, in, job) : load_rows(labels, in, job);
}

typedef struct split_work {
    const gs_part_input *in;
    const gs_part_file *file;
    const int32_t *labels;
    uint8_t *split;
    uint8_t which; /* gs_split */
    uint64_t *count; /* vertices in it */
} split_work;

/* Row `row` of the file puts `vertex`, one of those that can be labelled, into the split. */
static gs_status enter(const split_work *w, uint64_t row, uint64_t vertex)
{
    static const char *const names[] = {"", "train_idx.npy", "valid_idx.npy", "test_idx.npy"};
    const unsigned long long at = row, v = vertex;
    const uint64_t id = w->in->label_first + vertex;
    uint8_t *const s = &w->split[id];

    if (*s == w->which)
        return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %llu is listed twice", w->file->path, at, v);
    if (*s != GS_SPLIT_NONE)
        return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %llu is in %s as well; splits may not overlap", w->file->path,
                       at, v, names[*s]);
    if (w->which == GS_SPLIT_TRAIN && w->labels != NULL && w->labels[id] < 0)
        return gs_fail(GS_EFORMAT, "%s: row %llu: vertex %llu has no label; training vertices need one",
                       w->file->path, at, v);
    *s = w->which;
    (*w->count)++;
    return GS_OK;
}

static gs_status id_piece(void *context, const void *piece, uint64_t first, uint64_t count)
{
    const int64_t *const values = piece;
    const split_work *const w = context;

    for (uint64_t i = 0; i < count; i++) {
        if (values[i] < 0 || (uint64_t)values[i] >= w->in->label_vertices)
            return gs_fail(GS_EFORMAT, "%s: row %lu: vertex %s is not one of the %lu vertices (ids start at 0)",
                           w->file->path, first + i, GS_PART_I64(values[i]), w->in->label_vertices);
        GS_TRY(enter(w, first + i, (uint64_t)values[i]));
    }
    return GS_OK;
}

static gs_status mask_piece(void *context, const void *piece, uint64_t first, uint64_t count)
{
    const int64_t *const values = piece;
    const split_work *const w = context;

    for (uint64_t i = 0; i < count; i++) {
        if (values[i] != 0 && values[i] != 1)
            return gs_fail(GS_EFORMAT, "%s: row %lu: %lld is no truth value; the file is damaged", w->file->path,
                           first + i, (long long)values[i]);
        if (values[i] == 1)
            GS_TRY(enter(w, first + i, first + i));
    }
    return GS_OK;
}

/* Whole numbers that could be a mask: one a vertex, all of them 0 or 1. */
typedef struct mask_look {
    bool fits;
    uint64_t ones;
} mask_look;

static gs_status look_piece(void *context, const void *piece, uint64_t first, uint64_t count)
{
    const int64_t *const values = piece;
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
    const uint64_t n = w->in->label_vertices;
    mask_look k = {.fits = w->file->npy.shape[0] == n};

    if (k.fits)
        GS_TRY(each_piece(w->file, job, true, look_piece, &k));
    *mask = k.fits && (n > 2 || strstr(gs_path_name(w->file->path), "mask") != NULL);
    if (!k.fits)
        return GS_OK;
    if (!*mask && k.ones <= 1 && (n == 1 || k.ones == 1)) /* else an id is listed twice, which is said */
        return gs_fail(GS_EFORMAT, "%s: may be a mask of %lu vertices or a list of ids; save a mask as bool",
                       w->file->path, n);
    if (*mask)
        gs_part__warn(job, "%s: is a number of 0 or 1 for each vertex, taken as a mask with %lu ones", w->file->path,
                      k.ones);
    return GS_OK;
}

/* A list of ids, or, as in torch_geometric, a truth value for each vertex. */
static gs_status load_split(split_work *w, gs_part_job *job)
{
    const gs_npy *const npy = &w->file->npy;
    bool mask = npy->truth;

    if (npy->truth && (npy->shape[1] != 1 || npy->shape[0] != w->in->label_vertices))
        return gs_fail(GS_EFORMAT, "%s: is bool [%lu, %lu]; a split is a mask of bool [%lu], one a vertex, or a list "
                       "of vertex ids (int64)", w->file->path, npy->shape[0], npy->shape[1], w->in->label_vertices);
    if (!gs_part__is_integer(npy->dtype) || npy->shape[1] != 1)
        return gs_fail(GS_EFORMAT, "%s: is %s; a split is a list of vertex ids (int64), or a mask (bool)",
                       w->file->path, gs_dtype_name(npy->dtype));
    if (!mask)
        GS_TRY(find_mask(&mask, w, job));
    return each_piece(w->file, job, true, mask ? mask_piece : id_piece, w);
}

gs_status gs_part__splits_load(uint8_t **split, uint64_t count[3], const gs_part_input *in,
                               const int32_t *labels, gs_part_job *job)
{
    GS_FREED uint8_t *taken = NULL;

    for (int i = 0; i < 3; i++) {
        split_work w = {.in = in, .labels = labels, .file = &in->split[i], .which = (uint8_t)(GS_SPLIT_TRAIN + i),
                        .count = &count[i]};
        count[i] = 0;
        if (w.file->npy.fd < 0)
            continue;
        if (taken == NULL)
            taken = gs_calloc(in->vertices, 1);
        GS_NEED((w.split = taken) != NULL, "%s: no memory for the splits", in->path);
        GS_TRY(load_split(&w, job));
    }
    if (taken != NULL)
        *split = GS_HANDED_OVER(taken);
    return GS_OK;
}
