/* ranking.c - areas under the ROC and the precision-recall curve, from logits in store order.
 *
 * A list is what a label has in a split: a score and a truth for each vertex that is known. As many lists as fit memory
 * are collected by one sweep over labels and logits, and sorted. A list that does not fit is taken in ranges of scores,
 * from the highest down, that do; a histogram says where to cut it. Where even scores that share their upper 16 bits do
 * not fit, a histogram over the lower ones has a count for each score there is, and nothing needs to be sorted.
 */
#include "train/ranking.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

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
        const gs_status st = gs_session_logits(w->s, row, w->batch_end - row, w->batch);
        if (st != GS_OK)
            return st;
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
    const gs_status st = find_row(&logit, w, row);
    if (st == GS_OK)
        put_score(w, list, logit[column], value != 0);
    return st;
}

/* A vertex is there in the list of its class, and not in those of the others; its score is the log-probability. */
static gs_status put_class(void *context, uint64_t row, uint32_t column, uint32_t split, double value)
{
    ranking *const w = context;
    double total = 0;
    const float *logit;
    const gs_status st = find_row(&logit, w, row);
    float most;

    (void)column;
    if (st != GS_OK)
        return st;
    most = logit[0];
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

/* Counts the scores of the only list by 16 of their bits. */
static gs_status count_bins(ranking *w, tally *bin, uint32_t shift)
{
    memset(bin, 0, HALF * sizeof(*bin));
    w->bin = bin;
    w->shift = shift;
    const gs_status st = sweep(w);
    w->bin = NULL;
    return st;
}

/* Scores that share their upper bits, and are too many. */
static gs_status add_crowd(ranking *w, curve *c)
{
    tally *const fine = gs_malloc_array(HALF, sizeof(*fine));
    gs_status st = fine == NULL ? gs_fail(GS_ENOMEM, "no memory to rank logits") : count_bins(w, fine, 0);
    for (uint32_t k = HALF; st == GS_OK && k-- > 0;)
        if (fine[k].there + fine[k].not_there > 0)
            add_group(c, (double)fine[k].there, (double)fine[k].not_there);
    gs_free(fine);
    return st;
}

static gs_status add_range(ranking *w, curve *c)
{
    w->end[w->first] = 0;
    const gs_status st = sweep(w);
    if (st != GS_OK)
        return st;
    sort_bits(w->entry, w->end[w->first], 32);
    add_sorted(c, w->entry, w->end[w->first]);
    return GS_OK;
}

/* A list that does not fit. */
static gs_status rank_long(ranking *w, list_figures *out)
{
    tally *const bin = gs_malloc_array(HALF, sizeof(*bin));
    curve c = {0};
    gs_status st = bin == NULL ? gs_fail(GS_ENOMEM, "no memory to rank logits") : count_bins(w, bin, 16);

    for (uint32_t top = HALF; st == GS_OK && top > 0;) {
        uint32_t k = top;
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
            st = crowd ? add_crowd(w, &c) : add_range(w, &c);
        top = k;
    }
    w->low = 0;
    w->high = 1ull << 32;
    gs_free(bin);
    *out = figures_of(&c);
    return st;
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
    const gs_status st = sweep(w);
    for (uint32_t k = w->first; st == GS_OK && k < w->last; k++) {
        curve c = {0};
        sort_bits(w->entry + begin, w->end[k] - begin, 32);
        add_sorted(&c, w->entry + begin, w->end[k] - begin);
        out[k] = figures_of(&c);
        begin = w->end[k];
    }
    return st;
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
    gs_status st = GS_OK;

    w.room = GS_MAX((s->memory.ranking - GS_MIN(s->memory.ranking, others)) / sizeof(*w.entry), 1);
    list_figures *const figures = gs_calloc(lists, sizeof(*figures));
    w.batch = gs_malloc_array(w.batch_rows, row_bytes);
    w.entry = gs_malloc_array(w.room, sizeof(*w.entry));
    w.end = gs_calloc(lists, sizeof(*w.end));
    if (figures == NULL || w.batch == NULL || w.entry == NULL || w.end == NULL)
        st = gs_fail(GS_ENOMEM, "no memory to rank logits");
    for (w.first = 0; st == GS_OK && w.first < lists; w.first = w.last)
        st = rank_some(&w, figures);
    if (st == GS_OK)
        average(out, &w, figures);
    gs_free(figures);
    gs_free(w.batch);
    gs_free(w.entry);
    gs_free(w.end);
    return st;
}
