/* figures.c - areas under the ROC and the precision-recall curve, from logits in store order.
 *
 * A list is what a label has in a split: a score and a truth for each vertex that is known. As many lists as fit memory
 * are collected by one sweep over labels and logits, and sorted. A list that does not fit is taken in ranges of scores,
 * from the highest down, that do; a histogram says where to cut it. Where even scores that share their upper 16 bits do
 * not fit, a histogram over the lower ones has a count for each score there is, and nothing needs to be sorted.
 */
#include "train/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "session/tables.h"
#include "store/store.h" /* gs_split */

/* ---- areas under curves -------------------------------------------------- */

#define BATCH_BYTES (256 * GS_KIB) /* of logits; a row at the least */
#define HALF 65536u                /* values of 16 bits */

/* The two curves so far, from the highest score down. */
typedef struct curve {
    double found, wrong, area, precision; /* area: pairs in order; precision: summed over those found */
} curve;

typedef struct list_figures {
    double auc, precision;
} list_figures;

typedef struct tally {
    uint64_t there, not_there;
} tally;

typedef struct ranking {
    gs_session *s;
    uint32_t columns;
    float *batch;
    uint64_t batch_rows, batch_first, batch_end;
    uint64_t *entry, room; /* score << 1 | truth */
    uint64_t *end;         /* [lists] behind the last entry of each list of the sweep */
    uint32_t first, last;  /* lists [first, last) are taken: column * GS_LOSS_SPLITS + split */
    uint64_t low, high;    /* scores in [low, high) */
    tally *bin;            /* [HALF] or NULL: counted, not collected */
    uint32_t shift;        /* of the score's bits that are the bin */
} ranking;

/* ---- curves --------------------------------------------------------------- */

/* Vertices of one score. */
static void add_group(curve *c, double there, double not_there)
{
    c->area += not_there * (c->found + there / 2);
    c->found += there;
    c->wrong += not_there;
    if (there > 0)
        c->precision += there * c->found / (c->found + c->wrong);
}

static list_figures figures_of(const curve *c)
{
    return (list_figures){.auc = c->found > 0 && c->wrong > 0 ? c->area / (c->found * c->wrong) : NAN,
                          .precision = c->found > 0 ? c->precision / c->found : 0};
}

/* In place, by bits from the highest: no memory and no comparisons. Descending. */
static void sort_bits(uint64_t *v, uint64_t n, int bit)
{
    while (n > 1 && bit >= 0) {
        uint64_t i = 0, j = n;
        while (i < j) {
            if (v[i] >> bit & 1)
                i++;
            else {
                const uint64_t other = v[--j];
                v[j] = v[i];
                v[i] = other;
            }
        }
        sort_bits(v, i, bit - 1);
        v += i;
        n -= i;
        bit--;
    }
}

static void add_sorted(curve *c, const uint64_t *v, uint64_t n)
{
    for (uint64_t i = 0, k; i < n; i = k) {
        double there = 0;
        for (k = i; k < n && v[k] >> 1 == v[i] >> 1; k++)
            there += (double)(v[k] & 1);
        add_group(c, there, (double)(k - i) - there);
    }
}

/* ---- sweeps --------------------------------------------------------------- */

/* Numbers of the same order; both zeros are one. */
static uint32_t score_of(float x)
{
    uint32_t bits;
    x += 0.0f;
    memcpy(&bits, &x, sizeof(bits));
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The logits of a row: that of the last call, or one behind it. */
static gs_status find_row(const float **out, ranking *w, uint64_t row)
{
    if (row >= w->batch_end) {
        const uint64_t vertices = gs_store_get_info(w->s->store)->vertices;
        w->batch_first = row;
        w->batch_end = GS_MIN(row + w->batch_rows, vertices);
        GS_TRY(gs_session_logits(w->s, row, w->batch_end - row, w->batch));
    }
    *out = w->batch + (row - w->batch_first) * w->columns;
    return GS_OK;
}

static void put_score(ranking *w, uint32_t list, float x, bool there)
{
    const uint64_t score = score_of(x);

    if (list < w->first || list >= w->last || score < w->low || score >= w->high)
        return;
    if (w->bin == NULL)
        w->entry[w->end[list]++] = score << 1 | there;
    else
        *(there ? &w->bin[score >> w->shift & (HALF - 1)].there : &w->bin[score >> w->shift & (HALF - 1)].not_there) +=
            1;
}

static gs_status put_label(void *context, uint64_t row, uint32_t column, uint32_t split, double value)
{
    ranking *const w = context;
    const uint32_t list = column * GS_LOSS_SPLITS + split;
    const float *logit;

    if (list < w->first || list >= w->last)
        return GS_OK;
    GS_TRY(find_row(&logit, w, row));
    put_score(w, list, logit[column], value != 0);
    return GS_OK;
}

/* A vertex is there in the list of its class, and not in those of the others; its score is the log-probability. */
static gs_status put_class(void *context, uint64_t row, uint32_t column, uint32_t split, double value)
{
    ranking *const w = context;
    double total = 0;
    const float *logit;

    (void)column;
    GS_TRY(find_row(&logit, w, row));
    float most = logit[0];
    for (uint32_t c = 1; c < w->columns; c++)
        most = logit[c] > most ? logit[c] : most;
    for (uint32_t c = 0; c < w->columns; c++)
        total += exp((double)logit[c] - (double)most);
    for (uint32_t c = 0; c < w->columns; c++)
        put_score(w, c * GS_LOSS_SPLITS + split, (float)((double)logit[c] - (double)most - log(total)),
                  value == (double)c);
    return GS_OK;
}

static gs_status sweep(ranking *w)
{
    w->batch_first = w->batch_end = 0;
    return gs_session_each_label(w->s, w->s->labels.task == GS_TRAIN_TASK_CLASSIFY ? put_class : put_label, w);
}

static uint64_t known_in(const ranking *w, uint32_t list)
{
    const gs_label_moments *const l = w->s->labels.moments + (uint64_t)(list % GS_LOSS_SPLITS) * w->columns;
    double all = 0;

    if (w->s->labels.task != GS_TRAIN_TASK_CLASSIFY)
        return (uint64_t)l[list / GS_LOSS_SPLITS].count;
    for (uint32_t c = 0; c < w->columns; c++) /* each vertex has a score of each class */
        all += l[c].count;
    return (uint64_t)all;
}

/* Counts the scores of the only list by 16 of their bits; free *out with gs_free(). */
static gs_status count_bins(tally **out, ranking *w, uint32_t shift)
{
    GS_NEED((*out = gs_calloc(HALF, sizeof(**out))) != NULL, "no memory to rank logits");
    w->bin = *out;
    w->shift = shift;
    const gs_status st = sweep(w);
    w->bin = NULL;
    return st;
}

/* Scores that share their upper bits, and are too many. */
static gs_status add_crowd(ranking *w, curve *c)
{
    GS_FREED tally *fine = NULL;

    GS_TRY(count_bins(&fine, w, 0));
    for (uint32_t k = HALF; k-- > 0;)
        if (fine[k].there + fine[k].not_there > 0)
            add_group(c, (double)fine[k].there, (double)fine[k].not_there);
    return GS_OK;
}

static gs_status add_range(ranking *w, curve *c)
{
    w->end[w->first] = 0;
    GS_TRY(sweep(w));
    sort_bits(w->entry, w->end[w->first], 32);
    add_sorted(c, w->entry, w->end[w->first]);
    return GS_OK;
}

/* A list that does not fit. */
static gs_status rank_long(ranking *w, list_figures *out)
{
    GS_FREED tally *bin = NULL;
    curve c = {0};

    GS_TRY(count_bins(&bin, w, 16));
    for (uint32_t top = HALF, k; top > 0; top = k) {
        k = top;
        uint64_t n = 0;
        while (k > 0 && n + bin[k - 1].there + bin[k - 1].not_there <= w->room) {
            k--;
            n += bin[k].there + bin[k].not_there;
        }
        const bool crowd = k == top;
        k -= crowd;
        w->low = (uint64_t)k << 16;
        w->high = (uint64_t)top << 16;
        if (crowd || n > 0)
            GS_TRY(crowd ? add_crowd(w, &c) : add_range(w, &c));
    }
    w->low = 0;
    w->high = 1ull << 32;
    *out = figures_of(&c);
    return GS_OK;
}

/* Lists from w->first on, as many as fit; the figures of each. */
static gs_status rank_some(ranking *w, list_figures *out)
{
    const uint32_t lists = w->columns * GS_LOSS_SPLITS;
    uint64_t n = known_in(w, w->first), begin = 0;

    w->last = w->first + 1;
    if (n > w->room)
        return rank_long(w, &out[w->first]);
    w->end[w->first] = 0;
    while (w->last < lists && n + known_in(w, w->last) <= w->room) {
        w->end[w->last] = n;
        n += known_in(w, w->last++);
    }
    GS_TRY(sweep(w));
    for (uint32_t k = w->first; k < w->last; k++) {
        curve c = {0};
        sort_bits(w->entry + begin, w->end[k] - begin, 32);
        add_sorted(&c, w->entry + begin, w->end[k] - begin);
        out[k] = figures_of(&c);
        begin = w->end[k];
    }
    return GS_OK;
}

/* ---- all ------------------------------------------------------------------ */

static void average(gs_ranks *out, const ranking *w, const list_figures *f)
{
    for (uint32_t s = 0; s < GS_LOSS_SPLITS; s++) {
        double auc = 0, precision = 0;
        uint32_t areas = 0, any = 0;
        for (uint32_t c = 0; c < w->columns; c++) {
            const list_figures *const one = &f[c * GS_LOSS_SPLITS + s];
            any += known_in(w, c * GS_LOSS_SPLITS + s) > 0;
            precision += one->precision;
            areas += !isnan(one->auc);
            auc += isnan(one->auc) ? 0 : one->auc;
        }
        out->roc_auc[s] = areas > 0 ? auc / areas : NAN;
        out->average_precision[s] = any > 0 ? precision / w->columns : NAN;
    }
}

gs_status gs_rank_logits(gs_ranks *out, gs_session *s)
{
    const uint32_t columns = s->labels.columns, lists = columns * GS_LOSS_SPLITS;
    const uint64_t row_bytes = columns * sizeof(float), tables = lists * (sizeof(uint64_t) + sizeof(list_figures));
    ranking w = {.s = s, .columns = columns, .batch_rows = GS_MAX(BATCH_BYTES / row_bytes, 1), .high = 1ull << 32};
    const uint64_t others = tables + w.batch_rows * row_bytes + 2 * GS_SUM_BYTES + 2 * HALF * sizeof(tally);
    GS_ENDS(gs_arena_free) gs_arena memory = {0};

    w.room = GS_MAX((s->memory.ranking - GS_MIN(s->memory.ranking, others)) / sizeof(*w.entry), 1);
    list_figures *const figures = gs_arena_take(&memory, lists, sizeof(*figures));
    w.batch = gs_arena_take(&memory, w.batch_rows, row_bytes);
    w.entry = gs_arena_take(&memory, w.room, sizeof(*w.entry));
    w.end = gs_arena_take(&memory, lists, sizeof(*w.end));
    GS_NEED(!memory.is_short, "no memory to rank logits");
    for (w.first = 0; w.first < lists; w.first = w.last)
        GS_TRY(rank_some(&w, figures));
    average(out, &w, figures);
    return GS_OK;
}

/* ---- figures ------------------------------------------------------------- */

void gs_figures_none(gs_task_figures *out, const gs_session_labels *l)
{
    snprintf(out->task, sizeof(out->task), "%s", gs_train_task_name(l->task));
    for (int s = 0; s < 3; s++)
        out->micro_f1[s] = out->macro_f1[s] = out->roc_auc[s] = out->average_precision[s] = out->mse[s] =
            out->mae[s] = out->r2[s] = out->balanced_acc[s] = out->mrr[s] = out->hits1[s] = out->hits3[s] =
                out->hits10[s] = out->rmse[s] = NAN;
    out->valid_loss = NAN;
}

double gs_figures_loss(const gs_session_labels *l, const gs_metrics *m)
{
    return m->rows[GS_SPLIT_TRAIN] == 0 || !(l->mass > 0) ? NAN : m->loss_sum / l->mass;
}

/* ---- of each task --------------------------------------------------------- */

/* F1 score from counts of labels: there and found, found and not there, there and not found. */
static double f1(const double sum[GS_LOSS_SUMS])
{
    const double of = 2 * sum[0] + sum[1] + sum[2];
    return of == 0 ? 0 : 2 * sum[0] / of;
}

static void judge_labels(gs_task_figures *out, const gs_session_labels *l, const double *sum, int split)
{
    double all[GS_LOSS_SUMS] = {0}, mean = 0;
    for (uint32_t c = 0; c < l->columns; c++, sum += GS_LOSS_SUMS) {
        for (uint32_t k = 0; k < GS_LOSS_SUMS; k++)
            all[k] += sum[k];
        mean += f1(sum) / l->columns;
    }
    out->micro_f1[split] = f1(all);
    out->macro_f1[split] = mean;
}

/* R² of one column, as scikit-learn's r2_score: 1 or 0 where all numbers are equal, as they are met or not. */
static double r2(double squared_errors, const gs_label_moments *p)
{
    if (p->count < 2)
        return NAN;
    if (p->squares == 0)
        return squared_errors == 0;
    return 1 - squared_errors / p->squares;
}

static void judge_numbers(gs_task_figures *out, const gs_session_labels *l, const double *sum, int split)
{
    const gs_label_moments *const p = l->moments + (uint64_t)split * l->columns;
    double squared = 0, absolute = 0, explained = 0;
    uint32_t known = 0;
    for (uint32_t c = 0; c < l->columns; c++, sum += GS_LOSS_SUMS) {
        if (sum[2] == 0)
            continue;
        known++;
        squared += sum[0] / sum[2];
        absolute += sum[1] / sum[2];
        explained += r2(sum[0], &p[c]);
    }
    out->mse[split] = known == 0 ? NAN : squared / known;
    out->mae[split] = known == 0 ? NAN : absolute / known;
    out->r2[split] = known == 0 ? NAN : explained / known;
}

/* Of classes: rows of class c that a split has. */
static double rows_of(const gs_session_labels *l, const gs_metrics *m, int split, uint32_t c)
{
    const uint32_t *const sum = m->found + ((uint64_t)split * l->columns + c) * GS_LOSS_SUMS;
    return (double)sum[0] + (double)sum[2];
}

static double weight_of(const gs_session_labels *l, uint32_t c) { return l->weight != NULL ? (double)l->weight[c] : 1; }

static void judge_classes(gs_task_figures *out, const gs_session_labels *l, const gs_metrics *m, int split)
{
    const uint32_t *sum = m->found + (uint64_t)split * l->columns * GS_LOSS_SUMS;
    double mean = 0, right = 0;
    uint32_t there = 0, seen = 0;

    for (uint32_t c = 0; c < l->columns; c++, sum += GS_LOSS_SUMS) {
        const double of[GS_LOSS_SUMS] = {(double)sum[0], (double)sum[1], (double)sum[2]}, rows = of[0] + of[2];
        seen += rows + of[1] > 0; /* scikit-learn leaves out a class that is neither there nor answered */
        mean += f1(of);
        there += rows > 0;
        right += rows > 0 ? of[0] / rows : 0;
    }
    out->macro_f1[split] = seen > 0 ? mean / seen : NAN;
    out->balanced_acc[split] = there > 0 ? right / there : NAN;
}

/* What the mean of the validation loss is over. */
static double valid_mass(const gs_session_labels *l, const gs_metrics *m)
{
    double mass = 0;

    if (l->task != GS_TRAIN_TASK_CLASSIFY || l->weight == NULL || m->found == NULL)
        return (double)m->rows[GS_SPLIT_VALID];
    for (uint32_t c = 0; c < l->columns; c++)
        mass += weight_of(l, c) * rows_of(l, m, GS_SPLIT_VALID - 1, c);
    return mass;
}

void gs_figures_of(gs_task_figures *out, const gs_session_labels *l, const gs_metrics *m)
{
    const double mass = valid_mass(l, m);

    gs_figures_none(out, l);
    out->valid_loss = mass > 0 ? m->valid_loss / mass : NAN;
    for (int s = 0; s < (int)GS_LOSS_SPLITS; s++) {
        const double *const sum = m->column != NULL ? m->column + (uint64_t)s * l->columns * GS_LOSS_SUMS : NULL;
        if (m->rows[s + 1] == 0)
            continue;
        if (l->task == GS_TRAIN_TASK_CLASSIFY && m->found != NULL)
            judge_classes(out, l, m, s);
        else if (l->task == GS_TRAIN_TASK_MULTILABEL && sum != NULL)
            judge_labels(out, l, sum, s);
        else if (l->task == GS_TRAIN_TASK_REGRESS && sum != NULL)
            judge_numbers(out, l, sum, s);
    }
}

/* ---- constant answers ------------------------------------------------------ */

/* The largest share of rows of the class that most training rows have; of equal ones the one with more validation
 * rows. */
static uint32_t most_frequent(const gs_session_labels *l, const gs_metrics *m)
{
    uint32_t most = 0;

    for (uint32_t c = 1; c < l->columns; c++) {
        const double more = rows_of(l, m, 0, c) - rows_of(l, m, 0, most);
        if (more > 0 || (more == 0 && rows_of(l, m, GS_SPLIT_VALID - 1, c) > rows_of(l, m, GS_SPLIT_VALID - 1, most)))
            most = c;
    }
    return most;
}

/* Of class c in a split, what its log-probability is multiplied by in the sum of the losses (program.h, xent). */
static double mass_of(const gs_session_labels *l, const gs_metrics *m, double smoothing, int split, uint32_t c)
{
    return weight_of(l, c) * ((1 - smoothing) * rows_of(l, m, split, c) +
                              smoothing * (double)m->rows[split + 1] / l->columns);
}

/* The probabilities that give the training rows their least loss, on the validation rows. */
static double constant_loss(const gs_session_labels *l, const gs_metrics *m, double smoothing)
{
    double all = 0, loss = 0;

    for (uint32_t c = 0; c < l->columns; c++)
        all += mass_of(l, m, smoothing, 0, c);
    for (uint32_t c = 0; c < l->columns; c++) {
        const double mass = mass_of(l, m, smoothing, GS_SPLIT_VALID - 1, c);
        loss += mass > 0 ? mass * -log(mass_of(l, m, smoothing, 0, c) / all) : 0;
    }
    return loss / valid_mass(l, m);
}

static double constant_class(gs_judge by, const gs_session_labels *l, const gs_metrics *m, double smoothing)
{
    const int valid = GS_SPLIT_VALID - 1;
    const double n = (double)m->rows[GS_SPLIT_VALID], rows = rows_of(l, m, valid, most_frequent(l, m));
    uint32_t there = 0;

    for (uint32_t c = 0; c < l->columns; c++)
        there += rows_of(l, m, valid, c) > 0;
    switch (by) {
    case GS_BY_LOSS:
        return constant_loss(l, m, smoothing);
    case GS_BY_ACCURACY:
        return rows / n;
    case GS_BY_BALANCED:
        return 1.0 / there;
    case GS_BY_F1: /* of one class; those that are not there and not answered do not count */
        return 2 * rows / (n + rows) / (there + (rows == 0));
    case GS_BY_AUC:
        return 0.5;
    default:
        return NAN;
    }
}

/* Each label there or not by itself: by loss its probability, by F1 always there. */
static double constant_labels(gs_judge by, const gs_session_labels *l)
{
    const gs_label_moments *const train = l->moments, *const valid = train + (GS_SPLIT_VALID - 1ull) * l->columns;
    double loss = 0, macro = 0, there = 0, known = 0;

    for (uint32_t c = 0; c < l->columns; c++) {
        const double w = weight_of(l, c), q = w * train[c].mean / (w * train[c].mean + 1 - train[c].mean);
        const double yes = valid[c].count * valid[c].mean, no = valid[c].count - yes;
        loss -= (yes > 0 ? w * yes * log(q) : 0) + (no > 0 ? no * log(1 - q) : 0);
        macro += yes > 0 ? 2 * yes / (2 * yes + no) / l->columns : 0;
        there += yes;
        known += valid[c].count;
    }
    switch (by) {
    case GS_BY_LOSS:
        return loss / known;
    case GS_BY_F1:
        return macro;
    case GS_BY_MICRO_F1:
        return 2 * there / (known + there);
    case GS_BY_AUC:
        return 0.5;
    case GS_BY_AP:
        return there / known;
    default:
        return NAN;
    }
}

/* The training numbers' mean. */
static double constant_numbers(gs_judge by, const gs_session_labels *l)
{
    const gs_label_moments *const train = l->moments, *const valid = train + (GS_SPLIT_VALID - 1ull) * l->columns;
    double mse = 0, all = 0, known = 0;
    uint32_t columns = 0;

    for (uint32_t c = 0; c < l->columns; c++) {
        const double off = valid[c].mean - train[c].mean, squares = valid[c].squares + valid[c].count * off * off;
        if (valid[c].count == 0)
            continue;
        columns++;
        mse += squares / valid[c].count;
        all += squares;
        known += valid[c].count;
    }
    return by == GS_BY_MSE ? mse / columns : by == GS_BY_LOSS ? all / known : by == GS_BY_R2 ? 0 : NAN;
}

double gs_figures_constant(gs_judge by, const gs_session_labels *l, const gs_metrics *m, double smoothing)
{
    if (m->rows[GS_SPLIT_VALID] == 0 || m->rows[GS_SPLIT_TRAIN] == 0)
        return NAN;
    if (by == GS_BY_LOSS && l->loss != gs_loss_of_task(l->task)) /* what labels were counted for does not say it */
        return NAN;
    if (l->task == GS_TRAIN_TASK_CLASSIFY)
        return m->found != NULL ? constant_class(by, l, m, smoothing) : NAN;
    return l->task == GS_TRAIN_TASK_MULTILABEL ? constant_labels(by, l) : constant_numbers(by, l);
}
