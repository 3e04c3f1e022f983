#include "train/control.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/option_table.h"
#include "store/store.h" /* gs_split */

/* ---- which figure -------------------------------------------------------- */

#define CLASSIFY (1u << GS_TRAIN_TASK_CLASSIFY)
#define MULTILABEL (1u << GS_TRAIN_TASK_MULTILABEL)
#define REGRESS (1u << GS_TRAIN_TASK_REGRESS)
#define LINK (1u << GS_TRAIN_TASK_LINK)
#define EDGE_CLASSIFY (1u << GS_TRAIN_TASK_EDGE_CLASSIFY)
#define EDGE_REGRESS (1u << GS_TRAIN_TASK_EDGE_REGRESS)
#define NAMES_BYTES 80u
#define VALID_OF(member) offsetof(gs_task_figures, member[GS_SPLIT_VALID - 1])

static const struct {
    const char *name;
    unsigned tasks; /* that have it */
    bool less;      /* is better */
    size_t at;      /* in gs_task_figures; 0: it is no part of these */
} judge[GS_JUDGES] = {
    [GS_BY_LOSS] = {"loss", CLASSIFY | MULTILABEL | REGRESS | EDGE_CLASSIFY | EDGE_REGRESS, true,
                    offsetof(gs_task_figures, valid_loss)},
    [GS_BY_ACCURACY] = {"accuracy", CLASSIFY | EDGE_CLASSIFY, false, 0},
    [GS_BY_BALANCED] = {"balanced", CLASSIFY | EDGE_CLASSIFY, false, VALID_OF(balanced_acc)},
    [GS_BY_F1] = {"f1", CLASSIFY | MULTILABEL | EDGE_CLASSIFY, false, VALID_OF(macro_f1)},
    [GS_BY_MICRO_F1] = {"micro_f1", MULTILABEL, false, VALID_OF(micro_f1)},
    [GS_BY_AUC] = {"auc", CLASSIFY | MULTILABEL | LINK, false, VALID_OF(roc_auc)},
    [GS_BY_AP] = {"ap", CLASSIFY | MULTILABEL, false, VALID_OF(average_precision)},
    [GS_BY_MSE] = {"mse", REGRESS | EDGE_REGRESS, true, VALID_OF(mse)},
    [GS_BY_MAE] = {"mae", REGRESS | EDGE_REGRESS, true, VALID_OF(mae)},
    [GS_BY_R2] = {"r2", REGRESS | EDGE_REGRESS, false, VALID_OF(r2)},
    [GS_BY_MRR] = {"mrr", LINK, false, VALID_OF(mrr)},
};

/* Which of them a task is judged by where nothing is said. */
static const gs_judge usual[GS_TRAIN_TASKS] = {
    [GS_TRAIN_TASK_CLASSIFY] = GS_BY_LOSS,
    [GS_TRAIN_TASK_MULTILABEL] = GS_BY_LOSS,
    [GS_TRAIN_TASK_REGRESS] = GS_BY_MSE,
    [GS_TRAIN_TASK_LINK] = GS_BY_MRR,
    [GS_TRAIN_TASK_EDGE_CLASSIFY] = GS_BY_LOSS,
    [GS_TRAIN_TASK_EDGE_REGRESS] = GS_BY_MSE,
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
    double figure = accuracy[GS_SPLIT_VALID - 1];

    if (j < GS_JUDGES && judge[j].at > 0)
        memcpy(&figure, (const char *)f + judge[j].at, sizeof(figure));
    return figure;
}

double gs_judge_worth(gs_judge j, double figure) { return judge[j].less ? -figure : figure; }

/* ---- rates, weights, patience -------------------------------------------- */

#define STEP_EPOCHS 30u    /* torch's examples' */
#define PLATEAU_EPOCHS 10u /* ReduceLROnPlateau's */
#define ELBOW 0.1 /* of the largest drop of the loss in an epoch */
#define PI 3.14159265358979323846

gs_status gs_control_open(gs_control *out, const gs_train_options *o, gs_train_task task, uint64_t valid,
                          const char *store)
{
    const bool best = gs_choice(o, keep) == 0, asked = best && o->keep != NULL;
    gs_control c = {.lr = o->lr, .by = o->schedule_by, .epochs = o->epochs, .warmup = o->warmup,
                    .every = o->schedule_every, .patience = o->patience,
                    .rates = (gs_rates)gs_choice(o, schedule), .shuffles = (gs_shuffles)gs_choice(o, shuffle)};

    GS_TRY(gs_judge_find(&c.judge, o->keep_by, task));
    if (c.every == 0)
        c.every = c.rates == GS_RATES_STEP ? STEP_EPOCHS : PLATEAU_EPOCHS;
    if (valid == 0 && (asked || o->patience != 0 || o->keep_by != NULL))
        return gs_fail(GS_EINVAL, "%s: %s needs validation vertices that are evaluated: a valid_idx.npy in the store's "
                                  "input, and .eval_every above 0", store,
                       asked ? ".keep best" : o->patience != 0 ? ".patience" : ".keep_by");
    c.valid = valid != 0;
    c.keeps_best = valid != 0 && best;
    gs_control_forget(&c);
    *out = c;
    return GS_OK;
}

void gs_control_forget(gs_control *c)
{
    c->state = (gs_control_state){.best = NAN, .plateau_best = NAN, .factor = 1, .last_loss = NAN};
}

double gs_control_rate(const gs_control *c, uint32_t epoch)
{
    const uint32_t after = epoch - 1 - c->warmup, of = c->epochs > c->warmup ? c->epochs - c->warmup : 1;

    if (epoch <= c->warmup)
        return c->lr * epoch / c->warmup;
    if (c->rates == GS_RATES_STEP)
        return c->lr * pow(c->by, (double)(after / c->every));
    if (c->rates == GS_RATES_COSINE)
        return after >= of ? 0 : c->lr * (1 + cos(PI * after / of)) / 2;
    return c->lr * c->state.factor;
}

/* As torch's ReduceLROnPlateau does with a threshold of 0. More is better. */
static void note_plateau(gs_control *c, double value)
{
    gs_control_state *const s = &c->state;

    if (isnan(value))
        return;
    if (isnan(s->plateau_best) || value > s->plateau_best) {
        s->plateau_best = value;
        s->plateau_bad = 0;
        return;
    }
    if (++s->plateau_bad <= c->every)
        return;
    s->factor *= c->by;
    s->plateau_bad = 0;
}

bool gs_control_note(gs_control *c, uint32_t epoch, double valid, double loss)
{
    gs_control_state *const s = &c->state;
    const double worth = epoch > 1 ? gs_judge_worth(c->judge, valid) : NAN; /* before any update nothing was learned */
    const bool better = !isnan(worth) && (isnan(s->best) || worth > s->best);

    if (c->rates == GS_RATES_PLATEAU && epoch > c->warmup)
        note_plateau(c, c->valid ? worth : -loss);
    if (s->last_better == 0)
        s->last_better = epoch;
    if (!better)
        return false;
    s->best = worth;
    s->best_epoch = s->last_better = epoch;
    return true;
}

/* DAHA's elbow of the learning curve: from there on an epoch brings little of what one brought before. */
void gs_control_note_loss(gs_control *c, uint32_t epoch, double loss)
{
    gs_control_state *const s = &c->state;
    const double drop = s->last_loss - loss; /* NaN: there was none before */

    if (c->shuffles != GS_SHUFFLES_ADAPTIVE || s->elbow != 0 || isnan(loss))
        return;
    if (drop > s->largest_drop)
        s->largest_drop = drop;
    else if (drop <= ELBOW * s->largest_drop)
        s->elbow = epoch;
    s->last_loss = loss;
}

bool gs_control_shuffles(const gs_control *c)
{
    return c->shuffles == GS_SHUFFLES_ALWAYS || (c->shuffles == GS_SHUFFLES_ADAPTIVE && c->state.elbow != 0);
}

bool gs_control_keeps_order(const gs_control *c)
{
    return c->shuffles != GS_SHUFFLES_ADAPTIVE || c->state.elbow != 0;
}

bool gs_control_is_over(const gs_control *c, uint32_t epoch)
{
    const uint32_t last = c->state.last_better; /* of an epoch that was judged and is not done: above `epoch` */
    return c->patience != 0 && epoch >= last && epoch - last >= c->patience;
}
