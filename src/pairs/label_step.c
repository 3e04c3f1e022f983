
#include <string.h>

#include "base/size.h"
#include "pairs/pair_step.h" /* gs_pair_sort */

#define PAIRS 64u /* of a thread at a time */

/* ---- memory ---------------------------------------------------------------- */

/* Rows that lin1 is of. */
static uint64_t lin1_rows(const gs_label_step_options *o) { return o->product ? o->most_pairs : 2ull * o->most_rows; }

static uint64_t floats_of(const gs_label_step_options *o)
{
    const uint64_t width = o->width, columns = o->columns, pairs = o->most_pairs;
    return (2ull * o->most_rows + lin1_rows(o) + (o->product ? 3 : 2) * pairs) * width + 2 * pairs * columns +
           width * columns;
}

/* A row more, where sorting ends. */
static uint64_t places_of(const gs_label_step_options *o) { return 4ull * o->most_pairs + 2ull * o->most_rows + 1; }

uint64_t gs_label_step_bytes(const gs_label_step_options *o)
{
    return gs_perceptron_bytes(o->width) + floats_of(o) * sizeof(float) + places_of(o) * sizeof(uint32_t) +
           o->most_pairs;
}

gs_status gs_label_step_open(gs_label_step *s, const gs_label_step_options *options)
{
    const gs_label_step_options *const o = options;
    const uint64_t width = o->width, pairs = o->most_pairs;

    *s = (gs_label_step){.o = *o};
    GS_TRY(gs_cpu_kernels_find(&s->kernels));
    GS_TRY(gs_perceptron_open(&s->perceptron, s->kernels, o->width, o->threads, o->product ? 1 : 2));
    s->rows = gs_malloc_array(floats_of(o), sizeof(float));
    s->slot = gs_malloc_array(places_of(o), sizeof(*s->slot));
    s->split = gs_malloc_array(pairs, sizeof(*s->split));
    GS_NEED(s->rows != NULL && s->slot != NULL && s->split != NULL, "no memory for batches of pairs");
    s->d_rows = s->rows + o->most_rows * width;
    s->lin1 = s->d_rows + o->most_rows * width;
    s->hidden = s->lin1 + lin1_rows(o) * width;
    s->d_hidden = s->hidden + pairs * width;
    s->product = s->d_hidden + pairs * width;
    s->logit = s->product + (o->product ? pairs * width : 0);
    s->d_logit = s->logit + pairs * o->columns;
    s->lin2 = s->d_logit + pairs * o->columns;
    s->order = s->slot + 2 * pairs;
    s->first = s->order + 2 * pairs;
    return GS_OK;
}

void gs_label_step_close(gs_label_step *s)
{
    gs_perceptron_close(&s->perceptron);
    gs_free(s->rows);
    gs_free(s->slot);
    gs_free(s->split);
    *s = (gs_label_step){0};
}

/* ---- forward --------------------------------------------------------------- */

static const float *row_of(const gs_label_step *s, const gs_pair_batch *b, uint64_t slot)
{
    return s->rows + (uint64_t)b->row[slot] * s->o.width;
}

/* lin1 of all that pairs have, in s->slot by row, of both ends or of the product. */
static void project(gs_label_step *s, const gs_pair_batch *b, const gs_decoder_values *values)
{
    const uint64_t width = s->o.width;

    gs_perceptron_take(&s->perceptron, values);
    if (!s->o.product) {
        for (uint32_t end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
            gs_perceptron_project(&s->perceptron, s->lin1 + end * b->rows * width, s->rows, b->rows,
                                  (gs_pair_end)end);
        for (uint32_t k = 0; k < 2 * b->pairs; k++)
            s->slot[k] = b->row[k] + (k < b->pairs ? 0 : b->rows);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t p = 0; p < b->pairs; p++)
        for (uint64_t i = 0; i < width; i++)
            s->product[p * width + i] = row_of(s, b, p)[i] * row_of(s, b, (uint64_t)b->pairs + p)[i];
    gs_perceptron_project(&s->perceptron, s->lin1, s->product, b->pairs, GS_PAIR_HEAD);
    memcpy(s->slot, b->row, 2ull * b->pairs * sizeof(*s->slot));
}

static void hide(const gs_label_step *s, const gs_pair_batch *b, const gs_decoder_values *values, uint32_t p)
{
    const uint64_t width = s->o.width;
    const float *const head = s->lin1 + (s->o.product ? p : s->slot[p]) * width,
                *const tail = s->o.product ? NULL : s->lin1 + s->slot[b->pairs + p] * width,
                *const type = s->o.of_types ? values->types + b->pair[p].type * width : NULL;
    float *const to = s->hidden + p * width;

    for (uint64_t i = 0; i < width; i++) {
        const float sum = head[i] + (tail != NULL ? tail[i] : 0) + (type != NULL ? type[i] : 0);
        to[i] = sum > 0 ? sum : 0;
    }
}

void gs_label_step_forward(gs_label_step *s, const gs_pair_batch *b, const gs_decoder_values *values)
{
    const uint32_t width = s->o.width, columns = s->o.columns;

    project(s, b, values);
    for (uint64_t c = 0; c < columns; c++)
        for (uint64_t i = 0; i < width; i++)
            s->lin2[i * columns + c] = values->lin2[c * width + i];
#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t first = 0; first < b->pairs; first += PAIRS) {
        const uint32_t n = GS_MIN(b->pairs - first, PAIRS);
        float *const logit = s->logit + (uint64_t)first * columns;
        const gs_cpu_pair_mix m = {.coefficient = s->hidden + (uint64_t)first * width, .other = s->lin2,
                                   .by_row = width, .by_other = 1, .rows = n, .others = width, .width = columns};
        for (uint32_t p = 0; p < n; p++) {
            hide(s, b, values, first + p);
            memcpy(logit + (uint64_t)p * columns, values->lin2_bias, columns * sizeof(*logit));
        }
        s->kernels->pair_mix(logit, &m);
    }
}

/* ---- losses ---------------------------------------------------------------- */

static void lose(gs_label_step *s, const gs_pair_batch *b, uint8_t split, float *gradient, float scale, gs_metrics *m)
{
    const gs_cpu_loss x = {.logits = s->logit, .label = b->label, .label_type = s->o.label_type, .split = s->split,
                           .gradient = gradient, .rows = b->pairs, .classes = s->o.columns, .scale = scale,
                           .found = m->found};

    memset(s->split, split, b->pairs);
    s->kernels->loss[s->o.loss](&x, m);
}

void gs_label_step_judge(gs_label_step *s, const gs_pair_batch *b, uint8_t split, gs_metrics *m)
{
    lose(s, b, split, NULL, 0, m);
}

/* ---- back ------------------------------------------------------------------ */

/* From the gradients of logits: those of lin2, its bias and types are added to `d`, those before the relu come to
 * s->d_hidden. */
static void reveal(gs_label_step *s, const gs_pair_batch *b, const gs_decoder_values *values,
                   const gs_decoder_values *d)
{
    const uint32_t width = s->o.width, columns = s->o.columns;

#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t c = 0; c < columns; c++) {
        const gs_cpu_pair_mix m = {.coefficient = s->d_logit + c, .other = s->hidden, .by_row = 1, .by_other = columns,
                                   .rows = 1, .others = b->pairs, .width = width};
        s->kernels->pair_mix(d->lin2 + (uint64_t)c * width, &m);
        for (uint64_t p = 0; p < b->pairs; p++)
            d->lin2_bias[c] += s->d_logit[p * columns + c];
    }
#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t p = 0; p < b->pairs; p++) {
        const uint64_t at = (uint64_t)p * width;
        const gs_cpu_pair_mix m = {.coefficient = s->d_logit + (uint64_t)p * columns, .other = values->lin2,
                                   .by_other = 1, .rows = 1, .others = columns, .width = width};
        memset(s->d_hidden + at, 0, width * sizeof(float));
        s->kernels->pair_mix(s->d_hidden + at, &m);
        for (uint64_t i = at; i < at + width; i++)
            s->d_hidden[i] = s->hidden[i] > 0 ? s->d_hidden[i] : 0;
    }
    for (uint64_t p = 0; p < b->pairs && s->o.of_types; p++)
        s->kernels->add(d->types + (uint64_t)b->pair[p].type * width, s->d_hidden + p * width, width);
}

/* Gradients of rows as heads and as tails, in the place of these; of rows from those. */
static void to_ends(gs_label_step *s, const gs_pair_batch *b, const gs_decoder_values *d)
{
    const uint64_t width = s->o.width;

    gs_pair_sort(s->first, s->order, s->slot, 1, 2 * b->pairs, 2 * b->rows);
#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t r = 0; r < 2 * b->rows; r++) {
        memset(s->lin1 + r * width, 0, width * sizeof(float));
        for (uint32_t k = s->first[r]; k < s->first[r + 1]; k++)
            s->kernels->add(s->lin1 + r * width, s->d_hidden + s->order[k] % b->pairs * width, width);
    }
    for (uint32_t end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
        gs_perceptron_back(&s->perceptron, s->d_rows, d, s->lin1 + end * b->rows * width, s->rows, b->rows,
                           (gs_pair_end)end);
}

/* Gradients of products, and of either row: that times the other one. */
static void to_factors(gs_label_step *s, const gs_pair_batch *b, const gs_decoder_values *d)
{
    const uint64_t width = s->o.width;

    memset(s->lin1, 0, b->pairs * width * sizeof(float));
    gs_perceptron_back(&s->perceptron, s->lin1, d, s->d_hidden, s->product, b->pairs, GS_PAIR_HEAD);
    gs_pair_sort(s->first, s->order, s->slot, 1, 2 * b->pairs, b->rows);
#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t r = 0; r < b->rows; r++)
        for (uint32_t k = s->first[r]; k < s->first[r + 1]; k++) {
            const uint32_t slot = s->order[k], p = slot % b->pairs;
            const float *const other = row_of(s, b, slot < b->pairs ? (uint64_t)b->pairs + p : p);
            for (uint64_t i = 0; i < width; i++)
                s->d_rows[r * width + i] += s->lin1[p * width + i] * other[i];
        }
}

void gs_label_step_run(gs_label_step *s, const gs_pair_batch *batch, const gs_decoder_values *values,
                       const gs_decoder_values *d, double *loss_sum)
{
    const uint64_t pairs = s->o.mean_over > 0 ? s->o.mean_over : batch->pairs;
    gs_metrics m = {0};

    gs_label_step_forward(s, batch, values);
    lose(s, batch, GS_SPLIT_TRAIN, s->d_logit, 1 / (float)pairs, &m);
    *loss_sum = m.loss_sum;
    reveal(s, batch, values, d);
    memset(s->d_rows, 0, (uint64_t)batch->rows * s->o.width * sizeof(float));
    if (s->o.product)
        to_factors(s, batch, d);
    else
        to_ends(s, batch, d);
}
