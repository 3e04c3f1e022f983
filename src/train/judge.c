#include "train/judge.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/option_table.h"
#include "store/store.h" /* gs_split */

#define CLASSIFY (1u << GS_TRAIN_TASK_CLASSIFY)
#define MULTILABEL (1u << GS_TRAIN_TASK_MULTILABEL)
#define REGRESS (1u << GS_TRAIN_TASK_REGRESS)
#define NAMES_BYTES 80u

static const struct {
    const char *name;
    unsigned tasks; /* that have it */
    bool less;      /* is better */
} judge[GS_JUDGES] = {
    [GS_BY_LOSS] = {"loss", CLASSIFY | MULTILABEL | REGRESS, true},
    [GS_BY_ACCURACY] = {"accuracy", CLASSIFY, false},
    [GS_BY_BALANCED] = {"balanced", CLASSIFY, false},
    [GS_BY_F1] = {"f1", CLASSIFY | MULTILABEL, false},
    [GS_BY_MICRO_F1] = {"micro_f1", MULTILABEL, false},
    [GS_BY_AUC] = {"auc", CLASSIFY | MULTILABEL, false},
    [GS_BY_AP] = {"ap", CLASSIFY | MULTILABEL, false},
    [GS_BY_MSE] = {"mse", REGRESS, true},
    [GS_BY_MAE] = {"mae", REGRESS, true},
    [GS_BY_R2] = {"r2", REGRESS, false},
};

/* Which of them a task is judged by where nothing is said. */
static const gs_judge usual[GS_TRAIN_TASK_COUNT] = {
    [GS_TRAIN_TASK_CLASSIFY] = GS_BY_LOSS,
    [GS_TRAIN_TASK_MULTILABEL] = GS_BY_LOSS,
    [GS_TRAIN_TASK_REGRESS] = GS_BY_MSE,
};

const char *gs_judge_name(gs_judge j) { return judge[j].name; }

/* GS_JUDGES: there is none of that name. */
static gs_judge find(const char *name)
{
    const int place = gs_word_place(gs_option_at(offsetof(gs_train_options, keep_by))->words, name);
    return place < 0 ? GS_JUDGES : (gs_judge)place;
}

/* "loss|accuracy|...": those that some of `tasks` have. */
static void list(char out[NAMES_BYTES], unsigned tasks)
{
    out[0] = '\0';
    for (int k = 0; k < GS_JUDGES; k++) {
        const size_t n = strlen(out);
        if ((judge[k].tasks & tasks) != 0)
            snprintf(out + n, NAMES_BYTES - n, "%s%s", n > 0 ? "|" : "", judge[k].name);
    }
}

gs_status gs_judge_find(gs_judge *out, const char *name, gs_train_task task)
{
    char names[NAMES_BYTES];
    const gs_judge j = name != NULL ? find(name) : usual[task];

    if (j < GS_JUDGES && (judge[j].tasks >> task & 1) != 0) {
        *out = j;
        return GS_OK;
    }
    list(names, 1u << task);
    return gs_fail(GS_EINVAL, ".keep_by %s: is no figure of the task %s, which has %s", name, gs_train_task_name(task),
                   names);
}

bool gs_judge_ranks(const char *name)
{
    const gs_judge j = name != NULL ? find(name) : GS_JUDGES;
    return j == GS_BY_AUC || j == GS_BY_AP;
}

double gs_judge_figure(gs_judge j, const gs_task_figures *f, const double accuracy[3])
{
    const int valid = GS_SPLIT_VALID - 1;
    switch (j) {
    case GS_BY_LOSS:
        return f->valid_loss;
    case GS_BY_BALANCED:
        return f->balanced_acc[valid];
    case GS_BY_F1:
        return f->macro_f1[valid];
    case GS_BY_MICRO_F1:
        return f->micro_f1[valid];
    case GS_BY_AUC:
        return f->roc_auc[valid];
    case GS_BY_AP:
        return f->average_precision[valid];
    case GS_BY_MSE:
        return f->mse[valid];
    case GS_BY_MAE:
        return f->mae[valid];
    case GS_BY_R2:
        return f->r2[valid];
    case GS_BY_ACCURACY:
    case GS_JUDGES:
        break;
    }
    return accuracy[valid];
}

double gs_judge_worth(gs_judge j, double figure) { return judge[j].less ? -figure : figure; }
