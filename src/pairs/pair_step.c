#include "pairs/pair_step.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "base/size.h"

#define LANES_MOST 16u /* of any instruction set */

/* ---- losses ---------------------------------------------------------------- */

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double logistic(double x) { return 1 / (1 + exp(-x)); }

static double softmax_loss(float own, const float *other, const bool *skip, uint32_t count, float scale, float *d_own,
                           float *d_other)
{
    double most = (double)own, sum;

    for (uint32_t k = 0; k < count; k++)
        most = skip[k] ? most : GS_MAX(most, (double)other[k]);
    sum = exp((double)own - most);
    for (uint32_t k = 0; k < count; k++)
        sum += skip[k] ? 0 : exp((double)other[k] - most);
    *d_own = scale * (float)(exp((double)own - most) / sum - 1);
    for (uint32_t k = 0; k < count; k++)
        d_other[k] = skip[k] ? 0 : scale * (float)(exp((double)other[k] - most) / sum);
    return most + log(sum) - (double)own;
}

static double logistic_loss(float own, const float *other, const bool *skip, uint32_t count, float scale, float *d_own,
                            float *d_other)
{
    double loss = softplus(-(double)own) / 2;

    *d_own = -scale * (float)(logistic(-(double)own) / 2);
    for (uint32_t k = 0; k < count; k++) {
        loss += skip[k] ? 0 : softplus((double)other[k]) / (2 * count);
        d_other[k] = skip[k] ? 0 : scale * (float)(logistic((double)other[k]) / (2 * count));
    }
    return loss;
}

static double margin_loss(float margin, float own, const float *other, const bool *skip, uint32_t count, float scale,
                          float *d_own, float *d_other)
{
    double loss = 0;

    *d_own = 0;
    for (uint32_t k = 0; k < count; k++) {
        const double by = skip[k] ? 0 : (double)margin - (double)own + (double)other[k];
        d_other[k] = by > 0 ? scale / (float)count : 0;
        *d_own -= d_other[k];
        loss += GS_MAX(by, 0) / count;
    }
    return loss;
}

/* Loss of a score and of `count` others, of which those with skip[k] do not count; their derivatives, times `scale`,
 * come to *d_own and to d_other. */
static double loss_of(gs_pair_loss loss, float margin, float own, const float *other, const bool *skip, uint32_t count,
                      float scale, float *d_own, float *d_other)
{
    switch (loss) {
    case GS_PAIR_LOGISTIC:
        return logistic_loss(own, other, skip, count, scale, d_own, d_other);
    case GS_PAIR_MARGIN:
        return margin_loss(margin, own, other, skip, count, scale, d_own, d_other);
    case GS_PAIR_SOFTMAX:
        break;
    }
    return softmax_loss(own, other, skip, count, scale, d_own, d_other);
}

/* ---- memory ---------------------------------------------------------------- */

/* Pairs of a group: as many as negatives, but for a short batch. */
static uint32_t group_pairs(const gs_pair_step_options *o) { return GS_MIN(o->negatives, o->most_pairs); }

static uint32_t columns_of(const gs_pair_step_options *o)
{
    return (uint32_t)gs_align_up(o->negatives, LANES_MOST);
}

/* Of a thread: queries and their gradients, negatives' rows as they are and as a panel, scores and their derivatives,
 * marks, and one panel of own ends. */
typedef struct group_scratch {
    float *query, *d_query, *other, *panel, *score, *d_score, *own_panel, *own;
    bool *skip;
} group_scratch;

static uint64_t scratch_floats(const gs_pair_step_options *o)
{
    const uint64_t pairs = group_pairs(o), columns = columns_of(o), width = o->width;
    return 2 * pairs * width + o->negatives * width + columns * width + 2 * pairs * columns + LANES_MOST * width +
           LANES_MOST;
}

static uint64_t scratch_bytes(const gs_pair_step_options *o)
{
    return gs_align_up(scratch_floats(o) * sizeof(float) + columns_of(o), 64);
}

static group_scratch scratch_of(const gs_pair_step *s)
{
    const gs_pair_step_options *const o = &s->o;
    const uint64_t pairs = group_pairs(o), columns = columns_of(o), width = o->width;
    float *at = (float *)(void *)(s->scratch + (uint64_t)omp_get_thread_num() * s->scratch_bytes);
    group_scratch x;

    x.query = at;
    x.d_query = x.query + pairs * width;
    x.other = x.d_query + pairs * width;
    x.panel = x.other + o->negatives * width;
    x.score = x.panel + columns * width;
    x.d_score = x.score + pairs * columns;
    x.own_panel = x.d_score + pairs * columns;
    x.own = x.own_panel + LANES_MOST * width;
    x.skip = (bool *)(void *)(x.own + LANES_MOST);
    return x;
}

static uint64_t scored_rows(const gs_pair_step_options *o) { return (1ull + o->decoder->projects) * o->most_rows; }

static uint64_t projection_bytes(const gs_pair_step_options *o)
{
    const uint64_t groups = gs_div_up(o->most_pairs, o->negatives), width = o->width * sizeof(float);
    return gs_perceptron_bytes(o->width) + 3 * o->most_rows * width + o->most_slots * sizeof(uint32_t) +
           groups * (width + sizeof(float));
}

uint64_t gs_pair_step_bytes(const gs_pair_step_options *o)
{
    const uint64_t groups = gs_div_up(o->most_pairs, o->negatives), width = o->width * sizeof(float);
    return (o->decoder->projects ? projection_bytes(o) : 0) +
           (o->most_rows + (uint64_t)o->most_slots + (o->decoder->of_types ? o->most_pairs : 0)) * width +
           groups * sizeof(double) +
           (scored_rows(o) + 1 + o->most_slots + o->types + 1ull + o->most_pairs) * sizeof(uint32_t) +
           o->threads * scratch_bytes(o);
}

static gs_status take_projection(gs_pair_step *s)
{
    const gs_pair_step_options *const o = &s->o;

    GS_TRY(gs_perceptron_open(&s->perceptron, s->kernels, o->width, o->threads, 2));
    s->projected = gs_arena_take(&s->arrays, 2ull * o->most_rows * o->width, sizeof(float));
    s->projected_row = gs_arena_take(&s->arrays, o->most_slots, sizeof(uint32_t));
    s->d_rows = gs_arena_take(&s->arrays, (size_t)o->most_rows * o->width, sizeof(float));
    s->d_lin2 = gs_arena_take(&s->arrays, gs_div_up(o->most_pairs, o->negatives) * (o->width + 1ull), sizeof(float));
    return s->arrays.is_short ? gs_fail(GS_ENOMEM, "no memory for batches of pairs") : GS_OK;
}

gs_status gs_pair_step_open(gs_pair_step *s, const gs_pair_step_options *options)
{
    const gs_pair_step_options *const o = options;

    *s = (gs_pair_step){.o = *o, .columns = columns_of(o), .scratch_bytes = scratch_bytes(o)};
    GS_TRY(gs_cpu_kernels_find(&s->kernels));
    if (o->decoder->projects)
        GS_TRY(take_projection(s));
    s->rows = gs_arena_take(&s->arrays, (size_t)o->most_rows * o->width, sizeof(float));
    s->d_slot = gs_arena_take(&s->arrays, (size_t)o->most_slots * o->width, sizeof(float));
    s->loss = gs_arena_take(&s->arrays, gs_div_up(o->most_pairs, o->negatives), sizeof(double));
    s->first = gs_arena_take(&s->arrays, scored_rows(o) + 1, sizeof(uint32_t));
    s->order = gs_arena_take(&s->arrays, o->most_slots, sizeof(uint32_t));
    s->type_first = gs_arena_take(&s->arrays, o->types + 1ull, sizeof(uint32_t));
    s->type_order = gs_arena_take(&s->arrays, o->most_pairs, sizeof(uint32_t));
    s->scratch = gs_arena_take(&s->arrays, o->threads, s->scratch_bytes);
    if (o->decoder->of_types)
        s->d_type = gs_arena_take(&s->arrays, (size_t)o->most_pairs * o->width, sizeof(float));
    return s->arrays.is_short ? gs_fail(GS_ENOMEM, "no memory for batches of pairs") : GS_OK;
}

void gs_pair_step_close(gs_pair_step *s)
{
    gs_arena_free(&s->arrays);
    gs_perceptron_close(&s->perceptron);
    *s = (gs_pair_step){0};
}

/* ---- a group --------------------------------------------------------------- */

/* The pairs [first, first + pairs) of a group, whose ends of one kind are given. */
typedef struct group_work {
    const gs_pair_batch *batch;
    const gs_decoder_values *values;
    uint32_t first, pairs, wrong; /* wrong: slot of its first negative */
    gs_pair_end given;
    float scale;
} group_work;

static uint32_t given_slot(const group_work *w, uint32_t p)
{
    return w->first + p + (w->given == GS_PAIR_HEAD ? 0 : w->batch->pairs);
}
static uint32_t other_slot(const group_work *w, uint32_t p)
{
    return w->first + p + (w->given == GS_PAIR_HEAD ? w->batch->pairs : 0);
}

static const float *row_of(const gs_pair_step *s, uint32_t slot)
{
    return s->scored + (uint64_t)s->row[slot] * s->o.width;
}
static float *d_slot(const gs_pair_step *s, uint32_t slot) { return s->d_slot + (uint64_t)slot * s->o.width; }

static const float *type_row(const gs_pair_step *s, const group_work *w, uint32_t p)
{
    return s->o.decoder->of_types ? w->values->types + (uint64_t)w->batch->pair[w->first + p].type * s->o.width : NULL;
}

static void score_group(const gs_pair_step *s, const group_work *w, const group_scratch *x)
{
    const uint32_t width = s->o.width, negatives = w->batch->negatives, lanes = s->kernels->lanes;

    for (uint32_t p = 0; p < w->pairs; p++)
        s->o.decoder->query(x->query + (uint64_t)p * width, row_of(s, given_slot(w, p)), type_row(s, w, p), width,
                            w->given);
    for (uint32_t k = 0; k < negatives; k++)
        memcpy(x->other + (uint64_t)k * width, row_of(s, w->wrong + k), width * sizeof(float));
    s->kernels->pair_pack(x->panel, x->other, negatives, width);
    const gs_cpu_pairs pairs = {.score = x->score, .stride = s->columns, .query = x->query, .panel = x->panel,
                                .queries = w->pairs, .vectors = (negatives + lanes - 1) / lanes, .width = width,
                                .similarity = s->o.decoder->similarity, .weight = w->values->lin2};
    s->kernels->pair_scores(&pairs);
}

/* The score of a pair itself: as one of a panel of one row. */
static float own_score(const gs_pair_step *s, const group_work *w, const group_scratch *x, uint32_t p)
{
    const gs_cpu_pairs pairs = {.score = x->own, .stride = LANES_MOST, .query = x->query + (uint64_t)p * s->o.width,
                                .panel = x->own_panel, .queries = 1, .vectors = 1, .width = s->o.width,
                                .similarity = s->o.decoder->similarity, .weight = w->values->lin2};
    s->kernels->pair_pack(x->own_panel, row_of(s, other_slot(w, p)), 1, s->o.width);
    s->kernels->pair_scores(&pairs);
    return x->own[0];
}

/* Derivatives by scores become those by minus the length of query - other: coefficients of that difference. */
static float by_length(float d, float score) { return score < 0 ? d / score : 0; }

/* The group's gradients of lin2 and of its bias. */
static float *group_lin2(const gs_pair_step *s, const group_work *w)
{
    return s->d_lin2 + (uint64_t)(w->first / w->batch->negatives) * (s->o.width + 1);
}

/* Gradients of `others` rows from those of their RELU scores with some queries. */
static void relu_gradients(const gs_pair_step *s, const group_work *w, const float *query, float *d_query,
                           uint32_t queries, const float *other, float *d_other, uint32_t others, const float *c)
{
    const gs_cpu_pair_relu relu = {.coefficient = c, .stride = s->columns, .query = query, .d_query = d_query,
                                   .queries = queries, .other = other, .d_other = d_other, .others = others,
                                   .weight = w->values->lin2, .d_weight = group_lin2(s, w), .width = s->o.width};
    s->kernels->pair_relu(&relu);
}

/* Of the pair's own other end. */
static void own_gradient(const gs_pair_step *s, const group_work *w, const group_scratch *x, uint32_t p, float d,
                         float score)
{
    const float *const query = x->query + (uint64_t)p * s->o.width, *const own = row_of(s, other_slot(w, p));
    float *const d_query = x->d_query + (uint64_t)p * s->o.width, *const d_own = d_slot(s, other_slot(w, p));
    const bool distance = s->o.decoder->similarity == GS_CPU_DISTANCE;
    const float c = distance ? by_length(d, score) : d;

    if (s->d_lin2 != NULL) {
        memset(d_query, 0, s->o.width * sizeof(*d_query));
        relu_gradients(s, w, query, d_query, 1, own, d_own, 1, &d);
        return;
    }
    for (uint32_t i = 0; i < s->o.width; i++) {
        d_query[i] = distance ? c * (query[i] - own[i]) : c * own[i];
        d_own[i] += distance ? c * (own[i] - query[i]) : c * query[i];
    }
}

/* Losses of the group's pairs; derivatives by scores in x->d_score, of own ends in their slots. */
static double lose(const gs_pair_step *s, const group_work *w, const group_scratch *x)
{
    const uint32_t negatives = w->batch->negatives;
    const bool distance = s->o.decoder->similarity == GS_CPU_DISTANCE;
    const float bias = s->d_lin2 != NULL ? w->values->lin2_bias[0] : 0;
    double loss = 0;

    for (uint32_t p = 0; p < w->pairs; p++) {
        const uint32_t own_row = s->row[other_slot(w, p)];
        const float own = own_score(s, w, x, p) + bias;
        float *const score = x->score + (uint64_t)p * s->columns;
        float *const d = x->d_score + (uint64_t)p * s->columns, d_own;
        for (uint32_t k = 0; k < negatives; k++)
            x->skip[k] = s->row[w->wrong + k] == own_row;
        for (uint32_t k = 0; k < negatives && s->d_lin2 != NULL; k++)
            score[k] += bias;
        loss += loss_of(s->o.loss, s->o.margin, own, score, x->skip, negatives, w->scale, &d_own, d);
        own_gradient(s, w, x, p, d_own, own);
        for (uint32_t k = 0; k < negatives && s->d_lin2 != NULL; k++)
            d_own += d[k];
        if (s->d_lin2 != NULL)
            group_lin2(s, w)[s->o.width] += d_own;
        for (uint32_t k = 0; k < negatives && distance; k++)
            d[k] = by_length(d[k], score[k]);
    }
    return loss;
}

/* Gradients that come of x->d_score: of queries, and of the negatives, which are in the group's own slots. */
static void spread_group(const gs_pair_step *s, const group_work *w, const group_scratch *x)
{
    const uint32_t width = s->o.width, negatives = w->batch->negatives;
    float *const d_wrong = d_slot(s, w->wrong);
    const bool distance = s->o.decoder->similarity == GS_CPU_DISTANCE;
    float *const c = x->d_score;

    if (s->d_lin2 != NULL) {
        relu_gradients(s, w, x->query, x->d_query, w->pairs, x->other, d_wrong, negatives, c);
        return;
    }
    for (uint32_t p = 0; p < w->pairs && distance; p++) { /* c (query - other): what is of the query itself */
        float sum = 0;
        for (uint32_t k = 0; k < negatives; k++)
            sum += c[(uint64_t)p * s->columns + k];
        for (uint32_t i = 0; i < width; i++)
            x->d_query[(uint64_t)p * width + i] += sum * x->query[(uint64_t)p * width + i];
    }
    for (uint32_t k = 0; k < negatives && distance; k++) {
        float sum = 0;
        for (uint32_t p = 0; p < w->pairs; p++)
            sum += c[(uint64_t)p * s->columns + k];
        for (uint32_t i = 0; i < width; i++)
            d_wrong[(uint64_t)k * width + i] += sum * x->other[(uint64_t)k * width + i];
    }
    for (uint64_t k = 0; k < (uint64_t)w->pairs * s->columns && distance; k++)
        c[k] = -c[k];
    const gs_cpu_pair_mix to_queries = {.coefficient = c, .other = x->other, .by_row = s->columns, .by_other = 1,
                                        .rows = w->pairs, .others = negatives, .width = width},
                          to_others = {.coefficient = c, .other = x->query, .by_row = 1, .by_other = s->columns,
                                       .rows = negatives, .others = w->pairs, .width = width};
    s->kernels->pair_mix(x->d_query, &to_queries);
    s->kernels->pair_mix(d_wrong, &to_others);
}

static double run_group(const gs_pair_step *s, const group_work *w)
{
    const group_scratch x = scratch_of(s);
    const uint32_t width = s->o.width;

    score_group(s, w, &x);
    const double loss = lose(s, w, &x);
    spread_group(s, w, &x);
    for (uint32_t p = 0; p < w->pairs; p++)
        s->o.decoder->back(d_slot(s, given_slot(w, p)),
                           s->d_type != NULL ? s->d_type + (uint64_t)(w->first + p) * width : NULL,
                           x.d_query + (uint64_t)p * width, row_of(s, given_slot(w, p)), type_row(s, w, p), width,
                           w->given);
    return loss;
}

/* ---- a batch --------------------------------------------------------------- */

void gs_pair_sort(uint32_t *first, uint32_t *order, const uint32_t *number, uint64_t stride, uint32_t count,
                  uint32_t numbers)
{
    memset(first, 0, (numbers + 1ull) * sizeof(*first));
    for (uint32_t k = 0; k < count; k++)
        first[number[k * stride] + 1]++;
    for (uint32_t r = 0; r < numbers; r++)
        first[r + 1] += first[r];
    for (uint32_t k = 0; k < count; k++)
        order[first[number[k * stride]]++] = k;
    memmove(first + 1, first, numbers * sizeof(*first));
    first[0] = 0;
}

static void add_rows(float *to, const float *from, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        to[i] += from[i];
}

/* A row's slots are added up in that of the first. */
static void add_slots(gs_pair_step *s, const gs_pair_batch *b)
{
    const uint32_t rows = s->d_rows != NULL ? 2 * b->rows : b->rows;
    gs_pair_sort(s->first, s->order, s->row, 1, b->slots, rows);
#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t k = s->first[r] + 1; k < s->first[r + 1]; k++)
            add_rows(d_slot(s, s->order[s->first[r]]), d_slot(s, s->order[k]), s->o.width);
}

static void add_types(gs_pair_step *s, const gs_pair_batch *b, float *d_types)
{
    gs_pair_sort(s->type_first, s->type_order, &b->pair->type, sizeof(gs_pair) / sizeof(uint32_t), b->pairs,
                 s->o.types);
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->o.threads)
    for (uint32_t t = 0; t < s->o.types; t++)
        for (uint32_t k = s->type_first[t]; k < s->type_first[t + 1]; k++)
            add_rows(d_types + (uint64_t)t * s->o.width, s->d_type + (uint64_t)s->type_order[k] * s->o.width,
                     s->o.width);
}

/* Rows as heads, and as tails; sources and what stands in their place are heads. */
static void project(gs_pair_step *s, const gs_pair_batch *b, const gs_decoder_values *values)
{
    gs_perceptron_take(&s->perceptron, values);
    for (uint32_t end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
        gs_perceptron_project(&s->perceptron, s->projected + (uint64_t)end * b->rows * s->o.width, s->rows, b->rows,
                              (gs_pair_end)end);
    for (uint32_t k = 0; k < b->slots; k++) {
        const bool wrong_head = s->o.asks[GS_PAIR_TAIL] && k >= b->wrong[GS_PAIR_TAIL];
        s->projected_row[k] = b->row[k] + (k < b->pairs || wrong_head ? 0 : b->rows);
    }
    memset(s->d_lin2, 0, (uint64_t)b->groups * (s->o.width + 1) * sizeof(float));
}

/* From the gradients of projected rows, which take the place of these: those of rows, and of what is learned. */
static void add_projected(gs_pair_step *s, const gs_pair_batch *b, const gs_decoder_values *d)
{
    const uint64_t width = s->o.width;

#pragma omp parallel for schedule(static) num_threads(s->o.threads)
    for (uint32_t r = 0; r < 2 * b->rows; r++) {
        float *const to = s->projected + r * width;
        if (s->first[r] == s->first[r + 1])
            memset(to, 0, width * sizeof(*to));
        else
            memcpy(to, d_slot(s, s->order[s->first[r]]), width * sizeof(*to));
    }
    memset(s->d_rows, 0, b->rows * width * sizeof(float));
    for (uint32_t end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++)
        gs_perceptron_back(&s->perceptron, s->d_rows, d, s->projected + end * b->rows * width, s->rows, b->rows,
                           (gs_pair_end)end);
    for (uint32_t g = 0; g < b->groups; g++) {
        add_rows(d->lin2, s->d_lin2 + g * (width + 1), s->o.width);
        d->lin2_bias[0] += s->d_lin2[g * (width + 1) + width];
    }
}

void gs_pair_step_run(gs_pair_step *s, const gs_pair_batch *batch, const gs_decoder_values *values,
                      const gs_decoder_values *d, double *loss_sum)
{
    const uint32_t ends = s->o.asks[GS_PAIR_HEAD] + s->o.asks[GS_PAIR_TAIL];
    const uint64_t pairs = s->o.mean_over > 0 ? s->o.mean_over : batch->pairs;
    const float scale = 1 / ((float)pairs * (float)ends);

    if (s->d_rows != NULL)
        project(s, batch, values);
    s->scored = s->d_rows != NULL ? s->projected : s->rows;
    s->row = s->d_rows != NULL ? s->projected_row : batch->row;
    memset(s->d_slot, 0, (uint64_t)batch->slots * s->o.width * sizeof(float));
    if (s->d_type != NULL)
        memset(s->d_type, 0, (uint64_t)batch->pairs * s->o.width * sizeof(float));
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->o.threads)
    for (uint32_t g = 0; g < batch->groups; g++) {
        s->loss[g] = 0;
        for (int end = GS_PAIR_HEAD; end <= GS_PAIR_TAIL; end++) {
            const group_work w = {.batch = batch, .values = values, .first = g * batch->negatives,
                                  .pairs = gs_pair_group_pairs(batch, g), .given = (gs_pair_end)end, .scale = scale,
                                  .wrong = batch->wrong[end] + g * batch->negatives};
            s->loss[g] += s->o.asks[end] ? run_group(s, &w) : 0;
        }
    }
    *loss_sum = 0;
    for (uint32_t g = 0; g < batch->groups; g++)
        *loss_sum += s->loss[g];
    add_slots(s, batch);
    if (s->d_type != NULL)
        add_types(s, batch, d->types);
    if (s->d_rows != NULL)
        add_projected(s, batch, d);
}
