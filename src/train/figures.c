#include "train/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h" /* gs_split */

void gs_figures_none(gs_task_figures *out, const gs_session_labels *l)
{
    snprintf(out->task, sizeof(out->task), "%s", gs_learning_name(l->task));
    for (int s = 0; s < 3; s++)
        out->micro_f1[s] = out->macro_f1[s] = out->roc_auc[s] = out->average_precision[s] = out->mse[s] =
            out->mae[s] = out->r2[s] = NAN;
}

double gs_figures_loss(const gs_session_labels *l, const gs_metrics *m)
{
    return m->rows[GS_SPLIT_TRAIN] == 0 || !(l->mass > 0) ? NAN : m->loss_sum / l->mass;
}

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
static double r2(double squared_errors, const gs_label_spread *p)
{
    if (p->count < 2)
        return NAN;
    if (p->squares == 0)
        return squared_errors == 0;
    return 1 - squared_errors / p->squares;
}

static void judge_numbers(gs_task_figures *out, const gs_session_labels *l, const double *sum, int split)
{
    const gs_label_spread *const p = l->spread + (uint64_t)split * l->columns;
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

void gs_figures_of(gs_task_figures *out, const gs_session_labels *l, const gs_metrics *m)
{
    gs_figures_none(out, l);
    for (int s = 0; s < (int)GS_LOSS_SPLITS && m->column != NULL; s++) {
        const double *const sum = m->column + (uint64_t)s * l->columns * GS_LOSS_SUMS;
        if (m->rows[s + 1] == 0)
            continue;
        if (l->task == GS_LEARN_MULTILABEL)
            judge_labels(out, l, sum, s);
        else
            judge_numbers(out, l, sum, s);
    }
}

double gs_figures_judge(const gs_task_figures *f, const double accuracy[3])
{
    const int valid = GS_SPLIT_VALID - 1;
    if (strcmp(f->task, gs_learning_name(GS_LEARN_CLASSIFY)) == 0)
        return accuracy[valid];
    return strcmp(f->task, gs_learning_name(GS_LEARN_MULTILABEL)) == 0 ? f->micro_f1[valid] : -f->mse[valid];
}
