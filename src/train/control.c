#include "train/control.h"

#include <math.h>

#include "base/option_table.h"

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

    const gs_status st = gs_judge_find(&c.judge, o->keep_by, task);
    if (st != GS_OK)
        return st;
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

bool gs_control_is_over(const gs_control *c, uint32_t epoch)
{
    const uint32_t last = c->state.last_better; /* of an epoch that was judged and is not done: above `epoch` */
    return c->patience != 0 && epoch >= last && epoch - last >= c->patience;
}
