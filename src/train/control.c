#include "train/control.h"

#include <math.h>
#include <string.h>

#define STEP_EPOCHS 30u    /* torch's examples' */
#define PLATEAU_EPOCHS 10u /* ReduceLROnPlateau's */
#define ELBOW 0.1 /* of the largest drop of the loss in an epoch */
#define PI 3.14159265358979323846

static const char *const rates_name[] = {"none", "step", "cosine", "plateau"};

static bool find_rates(gs_rates *out, const char *name)
{
    for (int k = GS_RATES_NONE; name != NULL && k <= GS_RATES_PLATEAU; k++)
        if (strcmp(name, rates_name[k]) == 0) {
            *out = (gs_rates)k;
            return true;
        }
    return false;
}

bool gs_control_find_shuffles(gs_shuffles *out, const char *name)
{
    static const char *const shuffles_name[] = {"always", "never", "adaptive"};
    for (int k = GS_SHUFFLES_ALWAYS; k <= GS_SHUFFLES_ADAPTIVE; k++)
        if (strcmp(name == NULL ? "always" : name, shuffles_name[k]) == 0) {
            *out = (gs_shuffles)k;
            return true;
        }
    return false;
}

gs_status gs_control_check(const gs_train_options *o)
{
    gs_rates rates;

    if (!find_rates(&rates, o->schedule))
        return gs_fail(GS_EINVAL, ".schedule %s: is none of none, step, cosine, plateau",
                       o->schedule == NULL ? "(none)" : o->schedule);
    if (!(o->schedule_by > 0 && o->schedule_by < 1))
        return gs_fail(GS_EINVAL, ".schedule_by %g: must be above 0 and below 1", o->schedule_by);
    if (o->schedule_every != 0 && rates != GS_RATES_STEP && rates != GS_RATES_PLATEAU)
        return gs_fail(GS_EINVAL, ".schedule_every %u: is of the schedules step and plateau", o->schedule_every);
    if (o->keep != NULL && strcmp(o->keep, "best") != 0 && strcmp(o->keep, "last") != 0)
        return gs_fail(GS_EINVAL, ".keep %s: is neither best nor last", o->keep);
    return gs_judge_check(o->keep_by);
}

gs_status gs_control_open(gs_control *out, const gs_train_options *o, gs_train_task task, uint64_t valid,
                          const char *store)
{
    const bool asked = o->keep != NULL && strcmp(o->keep, "best") == 0;
    gs_control c = {.lr = o->lr, .by = o->schedule_by, .epochs = o->epochs, .warmup = o->warmup,
                    .every = o->schedule_every, .patience = o->patience};

    const gs_status st = gs_judge_find(&c.judge, o->keep_by, task);
    if (st != GS_OK)
        return st;
    (void)find_rates(&c.rates, o->schedule);
    (void)gs_control_find_shuffles(&c.shuffles, o->shuffle);
    if (c.every == 0)
        c.every = c.rates == GS_RATES_STEP ? STEP_EPOCHS : PLATEAU_EPOCHS;
    if (valid == 0 && (asked || o->patience != 0 || o->keep_by != NULL))
        return gs_fail(GS_EINVAL, "%s: %s needs validation vertices that are evaluated: a valid_idx.npy in the store's "
                                  "input, and .eval_every above 0", store,
                       asked ? ".keep best" : o->patience != 0 ? ".patience" : ".keep_by");
    c.valid = valid != 0;
    c.keeps_best = valid != 0 && (o->keep == NULL || asked);
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
