#include "train/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "store/store.h" /* gs_split */

void gs_figures_none(gs_task_figures *out, const gs_session_labels *l)
{
    snprintf(out->task, sizeof(out->task), "%s", gs_train_task_name(l->task));
    for (int s = 0; s < 3; s++)
        out->micro_f1[s] = out->macro_f1[s] = out->roc_auc[s] = out->average_precision[s] = out->mse[s] =
            out->mae[s] = out->r2[s] = out->balanced_acc[s] = NAN;
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
    if (l->task == GS_TRAIN_TASK_CLASSIFY)
        return m->found != NULL ? constant_class(by, l, m, smoothing) : NAN;
    return l->task == GS_TRAIN_TASK_MULTILABEL ? constant_labels(by, l) : constant_numbers(by, l);
}
