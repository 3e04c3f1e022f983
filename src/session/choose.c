/* choose.c - which of a model's programs is run: the first that fits, or one that is predicted to be shorter.
 *
 * Programs are compared by their plans, and a plan of many parts can be a large share of a small budget, as can the
 * store's tables, of which each session has its own. So the best session so far stands beside the next one only where
 * memory has room for both; else it is closed, and made again from what is known of it if it stays the best. What comes
 * of it is the same where budgets are given: plans depend on the store, the options and what is known of the machine.
 * Budgets that are not given are parts of what is free, which is looked at again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "schedule/deals.h"
#include "session/describe.h"
#include "session/session.h"
#include "session/session_plan.h"
#include "session/session_prepare.h"

/* Another program must save this much of the predicted epoch; */
#define RECOMPUTE_WORTH 0.95
/* or this much of the memory, for an epoch that is predicted to be no longer than so (edge programs take less than is
 * predicted until they were measured). */
#define LEAN_BYTES 0.75
#define LEAN_SECONDS 1.9
/* What is computed once is wide from so many times the features' columns on. */
#define WIDE 2
/* Planning has this many plans at a time, where it has room, and bits of rows in a part of it (edges.c). */
#define PLANS_AT_ONCE 3
#define BITS_SHARE 8
#define MOST_TRIES 10 /* to open a store that others replace meanwhile */

/* What is kept of a program whose session may be closed. */
typedef struct candidate {
    gs_variant variant;
    char *text;          /* the program, of open_memstream(); NULL: not known */
    double seconds;      /* predicted, of a run of the pass that the session is for */
    uint64_t host_bytes;
    uint64_t columns;    /* that the pass "setup" leaves to others */
    bool moves;          /* an epoch goes to the disk */
    bool dealt;          /* to devices that are not alike, in one of several ways */
    gs_refusal refused;  /* it has no plan: what would do */
} candidate;

typedef struct choosing {
    const gs_session_config *o;
    gs_scans scans;
    uint64_t process_bytes;
    /* of every session alike */
    bool unified, trains;
    bool wired; /* the topology says what devices have */
    bool may_batch;
    uint32_t features;
    bool least_windows;  /* no program has a plan beside windows that are more than the least */
    gs_session *s;       /* of the best so far; NULL: refused, or closed */
    candidate best;
} choosing;

/* ---- a program and what is known of it ---- */

static char *text_of(const gs_program *p)
{
    char *text = NULL;
    size_t bytes;
    FILE *const f = open_memstream(&text, &bytes);

    if (f == NULL)
        return NULL;
    gs_program_print(p, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* Where memory was too short to know, they are taken for the same: the other one is not tried. */
static bool same_program(const candidate *a, const candidate *b)
{
    return a->text == NULL || b->text == NULL || strcmp(a->text, b->text) == 0;
}

static void forget(candidate *x)
{
    free(x->text);
    *x = (candidate){0};
}

/* Columns that the pass "setup" leaves to others. */
static uint64_t standing_columns(const gs_program *p)
{
    const uint32_t setup = gs_program_pass(p, "setup");
    uint64_t columns = 0;
    for (uint32_t k = 0; setup != GS_NONE && k < p->pass[setup].stages; k++) {
        const gs_stage *const stage = &p->stage[p->pass[setup].first_stage + k];
        for (uint32_t r = 0; r < stage->regs; r++)
            columns += stage->reg[r].kind == GS_REG_TEMP && stage->reg[r].array != GS_NONE ? stage->reg[r].width : 0;
    }
    return columns;
}

/* What its plan, or a refusal, says. */
static void learn(candidate *x, const gs_session *s)
{
    const gs_plan_pass *const pass = s->plan == NULL || s->pass.train == GS_NONE ? NULL : &s->plan->pass[s->pass.train];

    x->refused = s->memory.refused;
    x->columns = standing_columns(s->program);
    x->moves = pass != NULL && pass->read_bytes + pass->written_bytes > 0;
    if (s->plan == NULL)
        return;
    x->seconds = gs_session_epoch_seconds(s);
    x->host_bytes = s->plan->host_bytes;
    x->dealt = s->plan->deals.count > 0;
}

/* ---- sessions that come and go ---- */

static void close_best(choosing *c)
{
    gs_session_close(c->s);
    c->s = NULL;
    gs_alloc_trim();
}

/* Has the heap room for so many bytes more? */
static bool has_room(const choosing *c, uint64_t bytes)
{
    return c->s == NULL || c->s->memory.live_most == 0 || gs_alloc_live_bytes() + bytes <= c->s->memory.live_most;
}

/* A session that is compiled so, without a plan. */
static gs_status prepare(gs_session **out, choosing *c, candidate *x, gs_variant variant)
{
    const gs_status st = gs_session_prepare(out, c->o, variant);

    if (st != GS_OK)
        return st;
    (*out)->memory.process = c->process_bytes;
    (*out)->edges.scans = &c->scans;
    *x = (candidate){.variant = variant, .text = text_of((*out)->program)};
    return GS_OK;
}

/* `sizes`: a refusal says what would do. It makes larger plans to find out, so it is for runs that do not begin. */
static gs_status plan(const choosing *c, gs_session *s, candidate *x, bool sizes)
{
    s->memory.sizes = sizes;
    s->memory.least_windows = c->least_windows;
    const gs_status st = gs_session_plan(s);
    learn(x, s);
    return st;
}

/* Another session of the same, where the best one was closed. */
static gs_status open_again(choosing *c)
{
    candidate same;
    gs_status st;

    if (c->s != NULL)
        return GS_OK;
    if ((st = prepare(&c->s, c, &same, c->best.variant)) != GS_OK)
        return st;
    st = plan(c, c->s, &same, true);
    forget(&same);
    return st;
}

static void take(choosing *c, gs_session **s, candidate *x)
{
    gs_session_close(c->s);
    c->s = *s;
    *s = NULL;
    forget(&c->best);
    c->best = *x;
    *x = (candidate){0};
    c->s->variant = c->best.variant;
}

/* Takes the program that is compiled so, if it is another one and `is_better`. */
static void try_another(choosing *c, gs_variant variant, bool (*is_better)(candidate *x, const candidate *best))
{
    const uint64_t tables = c->s == NULL ? 0 : gs_store_table_bytes(c->s->store);
    const uint64_t bits = c->s == NULL ? 0 : c->s->memory.live_most / BITS_SHARE;
    const uint64_t plans = c->s == NULL ? 0 : PLANS_AT_ONCE * c->s->plan->table_bytes + bits;
    gs_session *other = NULL;
    candidate x = {0};

    if (!has_room(c, tables))
        close_best(c);
    if (prepare(&other, c, &x, variant) != GS_OK || same_program(&x, &c->best))
        goto done;
    if (!has_room(c, plans))
        close_best(c);
    if (plan(c, other, &x, false) == GS_OK && is_better(&x, &c->best))
        take(c, &other, &x);
done:
    gs_session_close(other);
    forget(&x);
}

/* ---- programs that are shorter, or leaner ---- */

static bool is_shorter(candidate *x, const candidate *best) { return x->seconds < RECOMPUTE_WORTH * best->seconds; }

/* Also says so, where it is not shorter. */
static bool is_leaner(candidate *x, const candidate *best)
{
    if (is_shorter(x, best))
        return true;
    x->variant.lean = GS_TAKEN_LEANER;
    return (double)x->host_bytes <= LEAN_BYTES * (double)best->host_bytes && x->seconds <= LEAN_SECONDS * best->seconds;
}

/* Sums by type that are computed once stand in memory all the time, wider than the features. Products in front of the
 * sums, epoch by epoch, take less and may take about as long. */
static void lean_where_worth(choosing *c)
{
    if (c->trains && c->unified && c->best.columns > (uint64_t)WIDE * c->features)
        try_another(c, (gs_variant){.lean = GS_TAKEN_SHORTER}, is_leaner);
}

static void batch_where_shorter(choosing *c)
{
    if (c->may_batch && c->best.variant.batch == GS_NOT_TAKEN)
        try_another(c, (gs_variant){.batch = GS_TAKEN_SHORTER}, is_shorter);
}

/* An epoch that goes to the disk may be shorter with a program that makes values again instead of storing them: the
 * cost model decides. Of two programs alike, and of an epoch in memory, there is nothing to decide. */
static void recompute_where_shorter(choosing *c)
{
    const gs_variant was = c->best.variant;
    if (c->trains && c->unified && c->best.moves)
        try_another(c, (gs_variant){.recompute = GS_TAKEN_SHORTER, .lean = was.lean, .batch = was.batch}, is_shorter);
}

/* Of devices that are not alike, some may make the sums, and others what comes of them. */
static void split_where_shorter(choosing *c)
{
    gs_variant split = c->best.variant;

    split.split = GS_TAKEN_SHORTER;
    if (c->trains && c->best.dealt && c->best.seconds >= GS_STAGED_SECONDS)
        try_another(c, split, is_shorter);
}

/* ---- programs that fit ---- */

static bool is_refused(const candidate *x) { return x->refused.host != 0 || x->refused.device != 0; }

/* Of two that are refused: where it is for host memory, the device's is enough. */
static bool asks_less(const candidate *x, const candidate *than)
{
    const gs_refusal *const a = &x->refused, *const b = &than->refused;
    if (!is_refused(x) || (a->host != 0) != (b->host != 0))
        return a->host != 0;
    return a->host + a->device < b->host + b->device;
}

/* The first program has no plan within the budgets: another one may have. `sizes`: none has, and the error is of the
 * one that needs least. */
static gs_status fit_another(choosing *c, bool sizes)
{
    static const gs_variant variants[] = {
        {.recompute = GS_TAKEN_TO_FIT},
        {.lean = GS_TAKEN_TO_FIT},
        {.recompute = GS_TAKEN_TO_FIT, .lean = GS_TAKEN_TO_FIT},
        {.batch = GS_TAKEN_TO_FIT},
        {.recompute = GS_TAKEN_TO_FIT, .batch = GS_TAKEN_TO_FIT},
    };
    bool fits = false;
    char error[GS_ERROR_BYTES];

    snprintf(error, sizeof(error), "%s", gs_last_error());
    for (uint32_t k = 0; !fits && k < sizeof(variants) / sizeof(variants[0]); k++) {
        gs_session *other = NULL;
        candidate x = {0};
        gs_status st;
        close_best(c); /* what was refused */
        if (variants[k].batch != GS_NOT_TAKEN ? !c->may_batch : c->o->purpose != GS_FOR_TRAINING)
            continue;
        if ((st = prepare(&other, c, &x, variants[k])) == GS_OK)
            st = same_program(&x, &c->best) ? GS_EBUDGET : plan(c, other, &x, sizes);
        fits = st == GS_OK;
        if (sizes && other != NULL && st == GS_EBUDGET && asks_less(&x, &c->best)) {
            snprintf(error, sizeof(error), "%s", gs_last_error());
            take(c, &other, &x);
        } else if (fits) {
            take(c, &other, &x);
        }
        gs_session_close(other);
        forget(&x);
    }
    return fits ? GS_OK : gs_fail(GS_EBUDGET, "%s", error);
}

/* No program fits: which budget is too small, and what would do? What else grows with the budget is the least then, or
 * the figure would not do when it is given; so there may be a plan after all. */
static gs_status say_sizes(choosing *c)
{
    gs_status st;

    c->least_windows = true;
    close_best(c);
    forget(&c->best);
    if ((st = prepare(&c->s, c, &c->best, (gs_variant){0})) != GS_OK)
        return st;
    st = plan(c, c->s, &c->best, true);
    return st == GS_EBUDGET && is_refused(&c->best) ? fit_another(c, true) : st;
}

/* The last error names a device's budget that was not asked for. (One that is a part of the host's is never named.) */
static gs_status explain_default(const choosing *c)
{
    return gs_fail_hint(GS_EBUDGET, c->wired ? "it is the least of .topology's \"memories\", which can be given more"
                                             : "it is 90 % of what is free on the device unless given");
}

/* Sums by type, and products of all types, are rows of V * T numbers; products in batches of edges are 2 * E * in * out
 * operations, which are fewer than theirs where types outnumber the mean degree. The cost model decides, and the
 * budgets. */
static bool may_batch(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    return !s->config.options->no_batch && (double)info->edge_types * (double)info->vertices > (double)info->edges;
}

/* A plan for the model's first program, or for one that fits. */
static gs_status choose_first(choosing *c)
{
    gs_status st = prepare(&c->s, c, &c->best, (gs_variant){0});

    if (st != GS_OK)
        return st;
    c->s->memory.process = c->process_bytes =
        c->o->trial ? c->o->process_bytes : gs_session_process_bytes(c->o->process_bytes);
    c->unified = !gs_session_has_memories(c->s);
    c->wired = c->s->machine.wires.memory[0] > 0;
    c->trains = c->s->pass.train != GS_NONE;
    c->may_batch = may_batch(c->s);
    c->features = gs_store_get_info(c->s->store)->features;
    st = plan(c, c->s, &c->best, false);
    if (st == GS_EBUDGET && (st = fit_another(c, false)) == GS_EBUDGET)
        st = say_sizes(c);
    if (st == GS_EBUDGET && c->best.refused.device != 0 && c->o->options->device_memory == 0 &&
        (c->wired || !c->unified))
        st = explain_default(c);
    return st;
}

static gs_status open_once(gs_session **out, const gs_session_config *config)
{
    choosing c = {.o = config};
    gs_status st;

    gs_alloc_map_large(); /* plans are made and freed by the dozen */
    st = choose_first(&c);
    if (st == GS_OK) {
        lean_where_worth(&c);
        batch_where_shorter(&c);
        recompute_where_shorter(&c);
        split_where_shorter(&c);
        st = open_again(&c);
    }
    if (config->options->stop != NULL && *config->options->stop != 0) /* trials of other programs say nothing of it */
        st = gs_fail(GS_EINTERRUPTED, "interrupted before the first epoch; nothing was written");
    if (st == GS_OK) {
        c.s->edges.scans = NULL;
        *out = c.s;
        c.s = NULL; /* now the caller's */
    }
    if (st == GS_EBUDGET && config->refused != NULL) {
        *config->refused = c.best.refused;
        config->refused->process = c.process_bytes;
    }
    gs_session_close(c.s);
    forget(&c.best);
    gs_scans_drop(&c.scans);
    gs_alloc_trim();
    return st;
}

/* Another store may take the place of this one meanwhile, and what was opened is of both then. */
gs_status gs_session_open_on(gs_session **out, const gs_session_config *config)
{
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        const int folder = open(config->store, O_PATH | O_DIRECTORY | O_CLOEXEC);
        const gs_status st = open_once(out, config);
        const bool replaced = st != GS_OK && folder >= 0 && !gs_path_is_open_at(config->store, folder);

        if (folder >= 0)
            close(folder);
        if (!replaced)
            return st;
    }
    return gs_fail(GS_EIO, "%s: is replaced again and again while it is opened", config->store);
}
