/* learned.c - the task of a run, the weights of its loss, and how the labels are spread. */
#include "session/learned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/npy.h"
#include "base/option_table.h"
#include "session/session.h"
#include "session/store_rows.h"

/* ---- the task ------------------------------------------------------------- */

bool gs_train_is_of_pairs(const gs_train_options *o)
{
    return o->task != NULL && gs_train_task_is_of_pairs((gs_train_task)gs_choice(o, task));
}

/* Labels of one kind serve another task only as numbers. */
static gs_status find_task(gs_train_task *out, const gs_session *s)
{
    const gs_train_task labels = gs_store_get_info(s->store)->labels;
    const char *const asked = s->config.options->task;

    *out = asked == NULL ? labels : (gs_train_task)gs_choice(s->config.options, task);
    if (*out == labels || *out == GS_TRAIN_TASK_REGRESS)
        return GS_OK;
    return gs_fail(GS_EINVAL, ".task %s: the labels of %s are for %s; leave it out, or partition with .task %s", asked,
                   gs_store_dir(s->store), gs_train_task_name(labels), asked);
}

gs_status gs_session_find_loss(gs_loss *out, const gs_train_options *options, gs_train_task task)
{
    const gs_loss loss = options->loss == NULL ? gs_loss_of_task(task) : (gs_loss)gs_choice(options, loss);

    if (loss >= GS_LOSSES)
        return gs_fail(GS_EINVAL, ".loss %s: is of .task link; leave it out, or take that", options->loss);
    if (gs_loss_task(loss) != task)
        return gs_fail(GS_EINVAL, ".loss %s: is of the task %s, and these labels are for %s; leave it out, or take one "
                                  "that .task %s has", options->loss, gs_train_task_name(gs_loss_task(loss)),
                       gs_train_task_name(task), gs_train_task_name(task));
    *out = loss;
    return GS_OK;
}

/* ---- weights -------------------------------------------------------------- */

static gs_status bad_weights(const gs_session *s, const char *what)
{
    return gs_fail(GS_EINVAL, ".class_weights %s: %s; give balanced, %u numbers (1,2.5,...), or a .npy file of them",
                   s->config.options->class_weights, what, s->labels.columns);
}

static gs_status check_weights(const gs_session *s)
{
    double sum = 0;
    for (uint32_t c = 0; c < s->labels.columns; c++) {
        if (!(s->labels.weight[c] >= 0) || !isfinite(s->labels.weight[c]))
            return bad_weights(s, "a weight is not a finite number of 0 or more");
        sum += (double)s->labels.weight[c];
    }
    return sum > 0 ? GS_OK : bad_weights(s, "all weights are 0");
}

static gs_status list_weights(const gs_session *s, const char *text)
{
    for (uint32_t c = 0; c < s->labels.columns; c++) {
        char *after;
        s->labels.weight[c] = strtof(text, &after);
        if (after == text)
            return bad_weights(s, "is no list of as many numbers as there are columns of logits");
        if (*after != (c + 1 < s->labels.columns ? ',' : '\0'))
            return bad_weights(s, "has another number of weights than there are columns of logits");
        text = after + 1;
    }
    return GS_OK;
}

static gs_status load_weights(const gs_session *s, const char *path)
{
    GS_ENDS(gs_npy_close) gs_npy npy = {.fd = -1};
    GS_FREED double *wide = NULL;

    GS_TRY(gs_npy_open(&npy, path));
    if (npy.shape[0] * npy.shape[1] != s->labels.columns || (npy.dtype != GS_F32 && npy.dtype != GS_F64))
        return bad_weights(s, "the file is not of as many f32 or f64 as there are columns of logits");
    GS_NEED((wide = gs_malloc_array(s->labels.columns, sizeof(*wide))) != NULL, "%s: no memory for weights", path);
    GS_TRY(gs_npy_read_rows(&npy, wide, 0, npy.shape[0], path));
    for (uint32_t c = 0; c < s->labels.columns; c++)
        s->labels.weight[c] = npy.dtype == GS_F64 ? (float)wide[c] : ((const float *)(const void *)wide)[c];
    return GS_OK;
}

static gs_status take_weights(gs_session *s)
{
    const char *const text = s->config.options->class_weights;
    const size_t length = strlen(text);

    if (s->labels.task == GS_TRAIN_TASK_REGRESS)
        return gs_fail(GS_EINVAL, ".class_weights %s: numbers have no classes; leave it out", text);
    if ((s->labels.weight = gs_malloc_array(s->labels.columns, sizeof(float))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the weights of classes");
    s->labels.balanced = strcmp(text, "balanced") == 0;
    for (uint32_t c = 0; c < s->labels.columns; c++)
        s->labels.weight[c] = 1;
    if (!s->labels.balanced)
        GS_TRY(length > 4 && strcmp(text + length - 4, ".npy") == 0 ? load_weights(s, text) : list_weights(s, text));
    return check_weights(s);
}

gs_status gs_session_choose_task(gs_session *s)
{
    const gs_train_options *const o = s->config.options;
    const gs_store_info *const info = gs_store_get_info(s->store);

    if (gs_train_is_of_pairs(o)) { /* labels are not looked at; a vertex's row is as wide as a hidden one */
        s->labels.task = (gs_train_task)gs_choice(o, task);
        s->classes = s->labels.columns = o->hidden;
        return GS_OK;
    }
    GS_TRY(find_task(&s->labels.task, s));
    GS_TRY(gs_session_find_loss(&s->labels.loss, o, s->labels.task));
    const bool of_classes = s->labels.task == GS_TRAIN_TASK_REGRESS && info->labels == GS_TRAIN_TASK_CLASSIFY;
    s->labels.columns = of_classes ? 1 : info->classes;
    if (s->config.classes != 0) { /* of weights: they may know classes that no label is of */
        if (info->classes != 0 && (s->labels.task == GS_TRAIN_TASK_CLASSIFY ? s->labels.columns > s->config.classes
                                                                       : s->labels.columns != s->config.classes))
            return gs_fail(GS_EINVAL, "%s: the store's labels are of %u classes, the weights are for %u",
                           gs_store_dir(s->store), s->labels.columns, s->config.classes);
        s->labels.columns = s->config.classes;
    }
    s->classes = s->labels.columns;
    if (o->label_smoothing > 0 && s->labels.task != GS_TRAIN_TASK_CLASSIFY)
        return gs_fail(GS_EINVAL, ".label_smoothing %g: is of one class a vertex, and these labels are for %s",
                       o->label_smoothing, gs_train_task_name(s->labels.task));
    return o->class_weights != NULL ? take_weights(s) : GS_OK;
}

/* ---- reading -------------------------------------------------------------- */

typedef struct sweep {
    gs_block_reader labels, split;
    uint64_t split_first, split_end; /* rows whose splits are in memory */
} sweep;

static gs_status split_of(sweep *w, uint64_t row, uint32_t *out)
{
    while (row >= w->split_end) {
        uint64_t bytes;
        GS_TRY(gs_block_reader_next(&w->split, w->split_end / GS_SUM_BYTES, &bytes));
        w->split_first = w->split_end;
        w->split_end += bytes;
    }
    *out = ((const uint8_t *)w->split.block)[row - w->split_first];
    return GS_OK;
}

static double label_at(const void *block, gs_dtype type, uint64_t k)
{
    if (type == GS_F32)
        return (double)((const float *)block)[k];
    if (type == GS_I32)
        return ((const int32_t *)block)[k] < 0 ? NAN : ((const int32_t *)block)[k];
    return ((const uint8_t *)block)[k] == GS_LABEL_UNKNOWN ? NAN : ((const uint8_t *)block)[k];
}

/* Elements [first, first + count) of the labels, which are in memory. */
static gs_status each_in_block(sweep *w, uint64_t first, uint64_t count, gs_label_fn *fn, void *context)
{
    const uint32_t width = w->labels.info->width;
    uint64_t row = first / width, column = first % width;
    uint32_t split = GS_SPLIT_NONE;

    for (uint64_t k = 0; k < count; k++) {
        if (k == 0 || column == 0)
            GS_TRY(split_of(w, row, &split));
        const double value = label_at(w->labels.block, w->labels.info->dtype, k);
        if (split != GS_SPLIT_NONE && split <= GS_LOSS_SPLITS && !isnan(value))
            GS_TRY(fn(context, row, (uint32_t)column, split - 1, value));
        if (++column == width) {
            column = 0;
            row++;
        }
    }
    return GS_OK;
}

static void sweep_end(sweep *w)
{
    gs_block_reader_close(&w->labels);
    gs_block_reader_close(&w->split);
}

gs_status gs_session_each_label(const gs_session *s, gs_label_fn *fn, void *context)
{
    const volatile int *const stop = s->config.options->stop;
    GS_ENDS(sweep_end) sweep w = {0};

    if (!s->pass.labelled)
        return GS_OK;
    GS_TRY(gs_block_reader_open(&w.labels, s->store, GS_ARRAY_LABELS));
    GS_TRY(gs_block_reader_open(&w.split, s->store, GS_ARRAY_SPLIT));
    const uint64_t element = gs_dtype_bytes(w.labels.info->dtype);
    for (uint64_t at = 0, block = 0, bytes; at < w.labels.info->bytes; at += bytes, block++) {
        if (stop != NULL && *stop)
            return gs_fail(GS_EINTERRUPTED, "%s: interrupted", w.labels.path);
        GS_TRY(gs_block_reader_next(&w.labels, block, &bytes));
        GS_TRY(each_in_block(&w, at / element, bytes / element, fn, context));
    }
    return GS_OK;
}

/* ---- counting ------------------------------------------------------------- */

static uint64_t spreads(const gs_session_labels *l) { return (uint64_t)GS_LOSS_SPLITS * l->columns; }

/* Classes are columns: a class that is seen is a 1 there. */
static gs_status spread_label(void *context, uint64_t row, uint32_t column, uint32_t split, double value)
{
    gs_session_labels *const l = context;
    const bool class = l->task == GS_TRAIN_TASK_CLASSIFY;

    (void)row;
    gs_label_moments_add(&l->moments[(uint64_t)split * l->columns + (class ? (uint32_t)value : column)],
                         class ? 1 : value);
    return GS_OK;
}

static double training_labels(const gs_session_labels *l)
{
    double n = 0;
    for (uint32_t c = 0; c < l->columns; c++)
        n += l->moments[c].count;
    return n;
}

/* Weighs classes as scikit-learn's "balanced" does, and each of several labels by the number of vertices that lack it
 * for each that has it. */
static void balance(gs_session_labels *l)
{
    const double n = training_labels(l);
    for (uint32_t c = 0; c < l->columns; c++) {
        const double mean = l->task == GS_TRAIN_TASK_CLASSIFY ? 1 : l->moments[c].mean;
        const double there = l->moments[c].count * mean;
        if (there >= 0.5) /* a count, up to rounding; a label that never occurs keeps 1 */
            l->weight[c] = (float)(l->task == GS_TRAIN_TASK_CLASSIFY ? n / (l->columns * there)
                                                                 : (l->moments[c].count - there) / there);
    }
}

/* Does anything ask how labels are spread? */
static bool is_spread(const gs_session *s)
{
    return !gs_train_task_is_of_pairs(s->labels.task) &&
           (s->labels.task != GS_TRAIN_TASK_CLASSIFY || s->labels.weight != NULL || s->pass.ranked);
}

gs_status gs_session_read_labels(gs_session *s)
{
    gs_session_labels *const l = &s->labels;

    l->mass = (double)gs_store_get_info(s->store)->train;
    if (!is_spread(s))
        return GS_OK;
    gs_free(l->moments);
    if ((l->moments = gs_calloc(spreads(l), sizeof(*l->moments))) == NULL)
        return gs_fail(GS_ENOMEM, "no memory for the spread of the labels");
    GS_TRY(gs_session_each_label(s, spread_label, l));
    if (l->balanced)
        balance(l);
    l->mass = l->task == GS_TRAIN_TASK_CLASSIFY && l->weight != NULL ? 0 : training_labels(l);
    for (uint32_t c = 0; l->task == GS_TRAIN_TASK_CLASSIFY && l->weight != NULL && c < l->columns; c++)
        l->mass += (double)l->weight[c] * l->moments[c].count;
    return GS_OK;
}

void gs_session_drop_labels(gs_session *s)
{
    gs_free(s->labels.weight);
    gs_free(s->labels.moments);
}

uint64_t gs_session_label_bytes(const gs_session *s)
{
    const gs_session_labels *const l = &s->labels;
    if (!is_spread(s))
        return 0;
    return spreads(l) * (sizeof(*l->moments) + GS_LOSS_SUMS * sizeof(double) * s->machine.devices) +
           l->columns * sizeof(*l->weight) + 2 * GS_SUM_BYTES;
}
