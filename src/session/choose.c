/* choose.c - which of a model's programs is run: the first that fits, or one that is predicted to be shorter.
 *
 * Programs are compared by their plans, and a plan of many parts can be a large share of a small budget. So the best
 * session so far stands beside the next one only where memory has room for both; else it is closed, and made again
 * from what is known of it if it stays the best. The store is opened once for all. What comes of it is the same where
 * budgets are given: plans depend on the store, the options and what is known of the machine. Budgets that are not
 * given are parts of what is free, which is looked at again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/size.h"
#include "ranks/ranks.h"
#include "schedule/deals.h"
#include "schedule/effort.h"
#include "session/choose_products.h"
#include "session/describe.h"
#include "session/session.h"
#include "session/session_plan.h"

/* Another program is taken where its predicted run is no longer than this part of the best one's. */
#define WORTH 0.99
/* Where no choice makes it shorter, the search goes on from one that is no longer than so many times the best. */
#define NEAR 1.02
/* And from others that were worth it beside the one that they were tried from, if they are no longer than so many. */
#define BRANCH 1.1
/* A leaner one is taken, too, which has no more than this part of its memory and takes no more than so many times as
 * long. */
#define LEAN_BYTES 0.75
#define LEAN_SECONDS 1.01
/* What is computed once is wide from so many times the features' columns on. */
#define WIDE 2
/* Planning has this many plans at a time, where it has room, and bits of rows in a part of it (edges.c). */
#define PLANS_AT_ONCE 3
#define BITS_SHARE 8
/* Another program is not tried with less than the tasks of so many plans like the best one's: to see what fits, and to
 * compare a few arenas (effort.h). */
#define PLANS_A_TRY 4u
/* Nor is the best one planned again with less than those of so many. */
#define PLANS_TO_REFINE 12u
/* Tables of a program are taken to be no smaller than this part of what another's were, of the least that theirs might
 * have been; from how many bytes on, of many parts, they are more alike (measured: 0.83 at 32 parts, 0.94 at 64). */
#define ALIKE_TABLES 0.75
#define LARGE_TABLES (32 * GS_MIB)
#define LARGE_ALIKE 0.9
#define MOST_TRIES 10 /* to open a store that others replace meanwhile */

/* What programs may do without, or do in another way: a field of gs_variant each. Tried in this order: where there is
 * time for few, what saves traffic of the disk goes first. */
typedef enum choice { LEAN, RECOMPUTE, KEEP, HOIST, PRUNE, MOVE, FUSE, TYPED, SPLIT, WIDTH, CHOICES } choice;

/* What is kept of a program whose session may be closed. */
typedef struct candidate {
    gs_variant variant;
    uint64_t program;    /* checksum of its text, and of whether rows are left out; 0: not known */
    double seconds, epoch_seconds; /* predicted, of the run and of one epoch */
    uint64_t host_bytes;
    uint64_t columns;    /* that the pass "setup" leaves to others */
    uint32_t tasks;
    uint64_t most;       /* of plans that were compared for it, tasks that there might be; 0: as many as for any one */
    bool screens;        /* and they were a few, to compare it with other programs */
    bool cut;            /* more plans might be better */
    bool moves;          /* an epoch goes to the disk, or to devices and back */
    bool pruned;         /* rows are left out */
    bool fused;          /* some sums share an edge program */
    bool dealt;          /* to devices that are not alike, in one of several ways */
    bool streams;        /* edges come to devices anew in each epoch */
    gs_refusal refused;  /* it has no plan: what would do */
    gs_found found;      /* it has one: how it is made again */
    bool again;          /* so it is */
    uint64_t sets;       /* bytes of tables of edges */
} candidate;

/* What a variant does, for people. */
static const char *const choice_words[CHOICES] = {
    [LEAN] = "products before sums, epoch by epoch", [RECOMPUTE] = "values made again, not stored",
    [KEEP] = "values stored, not made again",
    [HOIST] = "nothing computed once", [PRUNE] = "no row left out", [MOVE] = "no operator moved across sums",
    [FUSE] = "a pass over edges for each sum", [TYPED] = "products by type of edges, in tiles",
    [SPLIT] = "sums and rows on unlike devices", [WIDTH] = "a part of the width on each device"};

/* A program that was planned. */
typedef struct compared {
    uint32_t number; /* of its variant */
    double seconds;  /* 0: refused */
    uint64_t host_bytes;
} compared;

typedef struct choosing {
    const gs_session_config *o;
    compared compared[GS_PLAN_PROGRAMS];
    uint32_t programs;
    gs_scans scans;
    uint64_t process_bytes;
    /* of every session alike */
    bool trains;
    bool may[CHOICES];   /* what a program of this run can do without, or otherwise */
    const char *default_budget; /* what is to be said of the devices' budget, where no option gave it; NULL: nothing */
    uint32_t features;
    bool least_windows;  /* no program has a plan beside windows that are more than the least */
    bool tried[1 << CHOICES];      /* by the choices of a variant */
    uint64_t tables[1 << CHOICES]; /* of those that were refused, that any plan's tables take at least; 0: not known */
    uint64_t tables_planned[1 << CHOICES]; /* the same, of planned[] */
    uint64_t planned[1 << CHOICES]; /* programs that were planned */
    uint32_t plans;
    double tables_part;  /* tables of the first program's plans, of the least that they might have; 0: not known */
    bool large;          /* they are */
    uint64_t tasks, most_tasks;    /* of all plans that were compared, and how many there may be (effort.h) */
    gs_session *s;       /* of the best so far; NULL: refused, or closed */
    candidate best;
    candidate near;      /* the shortest that was planned and is not the best one; seconds 0: none */
    double from_seconds; /* of the program that others are tried from */
    candidate branch;    /* the shortest that was worth it beside the one that it was tried from, but is not best */
} choosing;

static gs_taken *field_of(gs_variant *v, choice k)
{
    switch (k) {
    case HOIST: return &v->no_hoist;
    case PRUNE: return &v->no_prune;
    case MOVE: return &v->no_move;
    case FUSE: return &v->no_fuse;
    case LEAN: return &v->lean;
    case TYPED: return &v->typed;
    case RECOMPUTE: return &v->recompute;
    case KEEP: return &v->keep;
    case WIDTH: return &v->width;
    default: return &v->split;
    }
}

static uint32_t number_of(gs_variant v)
{
    uint32_t number = 0;
    for (uint32_t k = 0; k < CHOICES; k++)
        number |= *field_of(&v, (choice)k) != GS_NOT_TAKEN ? 1u << k : 0;
    return number;
}

/* ---- a program and what is known of it ---- */

/* 0 where memory is too short to know. */
static uint64_t program_of(const gs_session *s)
{
    size_t bytes;
    char *const text = gs_session_program_text(s->program, &bytes);
    const uint64_t sum = text == NULL ? 0 : gs_hash64(text, bytes) ^ (s->variant.no_prune != GS_NOT_TAKEN);
    free(text);
    return sum;
}

/* Was it planned before? Where that is not known, it is taken to be so. */
static bool is_planned(choosing *c, const candidate *x)
{
    for (uint32_t k = 0; k < c->plans; k++)
        if (c->planned[k] == x->program) {
            c->tables[number_of(x->variant)] = c->tables_planned[k];
            return true;
        }
    return x->program == 0;
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

static bool has_fused(const gs_program *p)
{
    for (uint32_t k = 0; k < p->stages; k++)
        if (p->stage[k].sums > 1)
            return true;
    return false;
}

/* Do chunks of edges come to a device's memory in the pass? */
static bool moves_chunks(const gs_plan *p, const gs_plan_pass *pass)
{
    for (uint32_t k = 0; p->task != NULL && k < pass->tasks; k++) {
        const gs_task *const t = &p->task[pass->first_task + k];
        if (t->kind == GS_TASK_MOVE && t->chunk_bytes > 0 && gs_is_device_memory(t->place.memory))
            return true;
    }
    return false;
}

/* What its plan, or a refusal, says. */
static void learn(candidate *x, const gs_session *s)
{
    const gs_plan_pass *const pass = s->plan == NULL || s->pass.train == GS_NONE ? NULL : &s->plan->pass[s->pass.train];

    x->refused = s->memory.refused;
    x->sets = s->memory.sets;
    x->columns = standing_columns(s->program);
    x->fused = has_fused(s->program);
    x->moves = pass != NULL &&
               pass->read_bytes + pass->written_bytes + pass->upload_bytes + pass->download_bytes > 0;
    x->pruned = s->edges.sets > 2;
    if (s->plan == NULL)
        return;
    x->seconds = gs_session_run_seconds(s);
    x->epoch_seconds = gs_session_epoch_seconds(s);
    x->host_bytes = s->plan->host_bytes;
    x->tasks = s->plan->tasks;
    x->dealt = s->plan->deals.count > 0;
    x->streams = pass != NULL && moves_chunks(s->plan, pass);
}

/* ---- sessions that come and go ---- */

static void close_best(choosing *c)
{
    gs_session_close(c->s);
    c->s = NULL;
    gs_alloc_trim();
}

/* Has the heap room for so many bytes more, of all ranks? */
static bool has_room(const choosing *c, uint64_t bytes)
{
    const uint64_t most = c->s == NULL ? 0 : c->s->memory.live_most;
    uint8_t has = most == 0 || gs_alloc_live_bytes() + bytes <= most;

    return gs_ranks_least_u8(&has, 1) == GS_OK && has != 0;
}

/* A program that fails is not the one that is taken. But ranks try the same ones, and meet: one that fails alone, and
 * not for its budgets, ends all. The first program's failure is that of the run. */
static gs_status of_program(const choosing *c, gs_status st)
{
    const bool first = c->process_bytes == 0 || c->o->trial;

    if (gs_ranks_count() > 1 && !first && (st == GS_ENOMEM || st == GS_EIO))
        gs_ranks_abort(gs_last_error());
    return st;
}

/* A session that is compiled so, without a plan. */
static gs_status prepare(gs_session **out, choosing *c, candidate *x, gs_variant variant)
{
    GS_TRY(of_program(c, gs_session_prepare(out, c->o, &c->scans, variant)));
    if (c->scans.store == NULL)
        c->scans.store = gs_store_share((*out)->store);
    (*out)->memory.process = c->process_bytes;
    *x = (candidate){.variant = variant, .program = program_of(*out)};
    return GS_OK;
}

/* What a plan takes of the host's memory beside what is fixed: its tables at the least, or, where the best program is
 * known in full, what they and those of edges are expected to be. Arenas and rings, which are not known, are none. */
static uint64_t least_bytes(const choosing *c, gs_variant v, bool sizes)
{
    const gs_refusal *const best = &c->best.refused;
    const uint64_t tables = c->tables[number_of(v)], least = tables + tables / 8;
    const bool alike = (v.no_prune != GS_NOT_TAKEN) == (c->best.variant.no_prune != GS_NOT_TAKEN);

    if (!sizes || !alike || tables == 0 || best->host == 0 || best->least_tables == 0)
        return least;
    return (uint64_t)((double)least * (double)best->tables / (double)best->least_tables) + c->best.sets;
}

/* `sizes`: a refusal says what would do. It makes larger plans to find out, so it is for runs that do not begin. */
static gs_status plan(choosing *c, gs_session *s, candidate *x, bool sizes)
{
    gs_effort effort = {.most = x->most, .screens = x->screens, .again = x->again, .found = x->found,
                        .question = x->program, .counts = &c->scans.counts};

    if (c->o->shape != NULL && effort.most == 0) /* nobody waits for its epochs */
        effort.most = gs_effort_all(0) / (x->screens ? GS_EFFORT_SCREENED : GS_EFFORT_TAKEN);
    s->memory.sizes = sizes;
    s->memory.least_windows = c->least_windows;
    s->memory.known = sizes && c->best.refused.device == 0 ? c->best.refused.host : 0;
    s->memory.least = least_bytes(c, s->variant, sizes);
    s->memory.tables_part = (c->large ? LARGE_ALIKE : ALIKE_TABLES) * c->tables_part;
    const gs_status st = of_program(c, gs_session_plan(s, &effort));
    c->tasks += effort.tasks;
    x->found = effort.found;
    learn(x, s);
    x->cut = effort.cut || 2 * effort.tasks > gs_effort_all(x->epoch_seconds) / GS_EFFORT_SCREENED;
    if (st == GS_EBUDGET)
        c->tables[number_of(s->variant)] = GS_MAX(c->tables[number_of(s->variant)], x->refused.least_tables);
    return st;
}

/* A variant that is planned again replaces what it was. */
static void note_compared(choosing *c, const candidate *x)
{
    const uint32_t number = number_of(x->variant);
    uint32_t k = 0;

    while (k < c->programs && c->compared[k].number != number)
        k++;
    if (k == GS_PLAN_PROGRAMS)
        return;
    c->programs = GS_MAX(c->programs, k + 1);
    c->compared[k] = (compared){number, x->seconds, x->host_bytes};
}

/* For the session that is taken. */
static void describe_compared(const choosing *c, gs_session *s)
{
    const uint32_t taken = number_of(s->variant);

    s->programs = c->programs;
    for (uint32_t k = 0; k < c->programs; k++) {
        gs_program_report *const out = &s->compared[k];
        const uint32_t number = c->compared[k].number;
        size_t used = 0;
        *out = (gs_program_report){.seconds = c->compared[k].seconds, .host_bytes = c->compared[k].host_bytes,
                                   .taken = number == taken};
        for (uint32_t i = 0; i < CHOICES && used < sizeof(out->words); i++)
            if ((number >> i & 1) != 0)
                used += (size_t)snprintf(out->words + used, sizeof(out->words) - used, "%s%s", used > 0 ? "; " : "",
                                         choice_words[i]);
        if (used == 0)
            snprintf(out->words, sizeof(out->words), "the first one");
    }
}

static void note_planned(choosing *c, const candidate *x)
{
    note_compared(c, x);
    c->tried[number_of(x->variant)] = true;
    if (c->plans == GS_ARRAY_LEN(c->planned))
        return;
    c->tables_planned[c->plans] = c->tables[number_of(x->variant)];
    c->planned[c->plans++] = x->program;
}

/* Another session of the same, where the best one was closed. */
static gs_status open_again(choosing *c)
{
    candidate same;

    if (c->s != NULL)
        return GS_OK;
    GS_TRY(prepare(&c->s, c, &same, c->best.variant));
    same.most = c->best.most;
    same.screens = c->best.screens;
    same.again = true;
    same.found = c->best.found;
    return plan(c, c->s, &same, true);
}

static void take(choosing *c, gs_session **s, const candidate *x)
{
    gs_session_close(c->s);
    c->s = GS_HANDED_OVER(*s);
    c->best = *x;
    c->s->variant = c->best.variant;
}

/* It is not the best one, or no more. */
static void note_branch(choosing *c, const candidate *x)
{
    if (x->seconds < WORTH * c->from_seconds && (c->branch.seconds == 0 || x->seconds < c->branch.seconds))
        c->branch = *x;
}

/* Takes the program that is compiled so, if it is another one and `is_better`. `most`: tasks of plans that are compared
 * for it; `again`: it is the best one, with all of them. */
static bool try_another(choosing *c, gs_variant variant, uint64_t most, bool again,
                        bool (*is_better)(candidate *x, const candidate *best))
{
    const uint64_t bits = c->s == NULL ? 0 : c->s->memory.live_most / BITS_SHARE;
    const uint64_t plans = c->s == NULL ? 0 : PLANS_AT_ONCE * c->s->plan->table_bytes + bits;
    GS_ENDS(gs_session_close_at) gs_session *other = NULL;
    candidate x = {0};

    c->tried[number_of(variant)] = true;
    if (prepare(&other, c, &x, variant) != GS_OK || (!again && is_planned(c, &x)))
        return false;
    if (!has_room(c, plans))
        close_best(c);
    x.most = most;
    x.screens = !again;
    const gs_status st = plan(c, other, &x, false);
    const bool taken = st == GS_OK && is_better(&x, &c->best);
    note_planned(c, &x);
    if (st == GS_OK)
        note_branch(c, taken ? &c->best : &x);
    if (taken)
        take(c, &other, &x);
    else if (st == GS_OK && (c->near.seconds == 0 || x.seconds < c->near.seconds))
        c->near = x;
    return taken;
}

/* ---- one search over what is optional, by the predicted run ---- */

static bool is_shorter(candidate *x, const candidate *best) { return x->seconds < WORTH * best->seconds; }

static bool is_shorter_at_all(candidate *x, const candidate *best) { return x->seconds < best->seconds; }

/* Also says so, where it is not shorter. */
static bool is_leaner(candidate *x, const candidate *best)
{
    if (is_shorter(x, best))
        return true;
    x->variant.lean = x->variant.lean != GS_NOT_TAKEN ? GS_TAKEN_LEANER : GS_NOT_TAKEN;
    return (double)x->host_bytes <= LEAN_BYTES * (double)best->host_bytes && x->seconds <= LEAN_SECONDS * best->seconds;
}

/* May a program that differs in this be another one, and shorter? Predictions keep their bits whatever
 * the budgets, so theirs differ in nothing that only time is a reason for, but for batches.
 *
 * Sums by type that are computed once stand in memory all the time, wider than the features: products in front of the
 * sums, epoch by epoch, take less (lean). An epoch that goes to the disk, or over wires, may be shorter where values
 * are made again instead of stored (recompute), and one in memory the other way round (keep). Of devices that are not
 * alike, some may make the sums, and others what comes of them (split). Of several that are, each may have a part of
 * the width in place of targets (width). */
static bool may_differ(const choosing *c, const candidate *from, choice k)
{
    gs_variant now = from->variant;

    if (*field_of(&now, k) != GS_NOT_TAKEN)
        return k == TYPED || c->trains;
    switch (k) {
    case PRUNE: return c->may[k] && from->pruned;
    case FUSE: return c->may[k] && from->fused;
    case LEAN: return c->may[k] && from->columns > (uint64_t)WIDE * c->features;
    case RECOMPUTE: return c->may[k] && from->moves && from->variant.keep == GS_NOT_TAKEN;
    case KEEP: return c->may[k] && !from->moves && from->variant.recompute == GS_NOT_TAKEN;
    case SPLIT: return c->may[k] && from->dealt && from->epoch_seconds >= GS_STAGED_SECONDS;
    default: return c->may[k];
    }
}

/* One choice made otherwise. */
static gs_variant other_than(const candidate *from, uint32_t k)
{
    gs_variant other = from->variant;
    gs_taken *const field = field_of(&other, (choice)k);
    *field = *field == GS_NOT_TAKEN ? GS_TAKEN_SHORTER : GS_NOT_TAKEN;
    other.counts_edges = k == WIDTH ? from->streams : other.counts_edges;
    return other;
}

static bool is_worth_trying(const choosing *c, const candidate *from, uint32_t k)
{
    return !c->tried[number_of(other_than(from, k))] && may_differ(c, from, (choice)k);
}

/* Tasks of plans that may be compared for another program: all that are left. (A part of them each would be too few to
 * find the better arenas.) 0: they are too few for a try. */
static uint64_t effort_left(const choosing *c, const candidate *from, uint64_t plans)
{
    const uint64_t left = c->most_tasks - GS_MIN(c->most_tasks, c->tasks);
    return left < plans * from->tasks ? 0 : left;
}

/* Each choice alone is made otherwise than in that program. Is another one the best then? */
static bool improve_from(choosing *c, const candidate *from)
{
    bool better = false;

    c->from_seconds = from->seconds;
    for (uint32_t k = 0; k < CHOICES; k++) {
        const uint64_t most = effort_left(c, from, PLANS_A_TRY);
        if (most > 0 && is_worth_trying(c, from, k))
            better |= try_another(c, other_than(from, k), most, false, k == LEAN ? is_leaner : is_shorter);
    }
    return better;
}

/* From one that was worth it, too, but not as much as another one, what comes of both may be worth it together. */
static bool improve_from_branch(choosing *c)
{
    const candidate branch = c->branch;

    c->branch = (candidate){0};
    return branch.seconds > 0 && branch.seconds <= BRANCH * c->best.seconds && improve_from(c, &branch);
}

/* From the first program on; then again from the best of those, until none is worth it. (Not from the first that is:
 * one choice may leave nothing to another that is worth more.) Then from others that were worth it, and once from the
 * next best, as two choices may be worth it that are not alone. */
static void improve(choosing *c)
{
    bool once = false;

    for (;;) {
        const candidate from = c->best;
        if (improve_from(c, &from) || improve_from_branch(c))
            continue;
        const candidate near = c->near;
        if (once || near.seconds == 0 || near.seconds > NEAR * c->best.seconds || !improve_from(c, &near))
            return;
        once = true;
    }
}

/* The program that is taken is planned with what time the others have left. */
static void refine(choosing *c)
{
    const uint64_t most = effort_left(c, &c->best, PLANS_TO_REFINE);

    if (c->best.cut && most > 0)
        (void)try_another(c, c->best.variant, most, true, is_shorter_at_all);
}

/* ---- programs that fit ---- */

static bool is_refused(const candidate *x) { return x->refused.host != 0 || x->refused.device != 0; }

/* Of two that are refused: where it is for host memory, the device's is enough. */
static bool asks_less(const candidate *x, const candidate *than)
{
    const gs_refusal *const a = &x->refused, *const b = &than->refused;
    if (!is_refused(than))
        return is_refused(x);
    if (!is_refused(x) || (a->host != 0) != (b->host != 0))
        return a->host != 0;
    return a->host + a->device < b->host + b->device;
}

/* May this one be tried to fit? Predictions compute nothing once, and store nothing for a derivative. */
static bool may_fit(const choosing *c, gs_variant v)
{
    if (v.typed != GS_NOT_TAKEN && !c->may[TYPED])
        return false;
    return c->o->purpose == GS_FOR_TRAINING ||
           (v.recompute == GS_NOT_TAKEN && v.lean == GS_NOT_TAKEN && v.no_hoist == GS_NOT_TAKEN);
}

/* Programs that may fit where others do not. */
static const gs_variant other_variants[] = {
    {.no_hoist = GS_NOT_TAKEN}, /* where the first is another one */
    {.recompute = GS_TAKEN_TO_FIT},
    {.lean = GS_TAKEN_TO_FIT},
    {.recompute = GS_TAKEN_TO_FIT, .lean = GS_TAKEN_TO_FIT},
    {.typed = GS_TAKEN_TO_FIT},
    {.recompute = GS_TAKEN_TO_FIT, .typed = GS_TAKEN_TO_FIT},
    {.no_hoist = GS_TAKEN_TO_FIT},
    {.no_hoist = GS_TAKEN_TO_FIT, .recompute = GS_TAKEN_TO_FIT},
    {.no_hoist = GS_TAKEN_TO_FIT, .typed = GS_TAKEN_TO_FIT},
    {.no_fuse = GS_TAKEN_TO_FIT},
    {.no_fuse = GS_TAKEN_TO_FIT, .recompute = GS_TAKEN_TO_FIT},
    {.no_fuse = GS_TAKEN_TO_FIT, .no_hoist = GS_TAKEN_TO_FIT},
    {.no_move = GS_TAKEN_TO_FIT},
    {.no_move = GS_TAKEN_TO_FIT, .no_hoist = GS_TAKEN_TO_FIT},
    {.no_prune = GS_TAKEN_TO_FIT},
    {.no_prune = GS_TAKEN_TO_FIT, .no_hoist = GS_TAKEN_TO_FIT},
};

/* The next one that was not tried and may fit: where sizes are asked for, one with the smallest tables, as others need
 * not be looked at whose tables are beyond what it needs. Else GS_NONE. */
static uint32_t next_variant(const choosing *c, const bool *done, bool sizes)
{
    uint32_t next = GS_NONE;

    for (uint32_t k = 0; k < GS_ARRAY_LEN(other_variants); k++) {
        if (done[k] || !may_fit(c, other_variants[k]))
            continue;
        if (next == GS_NONE ||
            (sizes && c->tables[number_of(other_variants[k])] < c->tables[number_of(other_variants[next])]))
            next = k;
    }
    return next;
}

/* Is there a budget to name, and no time left to look for less? */
static bool is_named(const choosing *c, bool sizes)
{
    return sizes && is_refused(&c->best) && c->tasks >= gs_effort_all(0);
}

/* The first program has no plan within the budgets: another one may have. `sizes`: none has, and the error is of the
 * one that needs least. */
static gs_status fit_another(choosing *c, bool sizes)
{
    bool fits = false, done[GS_ARRAY_LEN(other_variants)] = {false};
    char error[GS_ERROR_BYTES];

    snprintf(error, sizeof(error), "%s", gs_last_error());
    for (uint32_t k; !fits && !is_named(c, sizes) && (k = next_variant(c, done, sizes)) != GS_NONE;) {
        gs_session *other = NULL;
        candidate x = {0};
        gs_status st;
        done[k] = true;
        close_best(c); /* what was refused */
        if ((st = prepare(&other, c, &x, other_variants[k])) == GS_OK) {
            x.screens = true;
            st = is_planned(c, &x) ? GS_EBUDGET : plan(c, other, &x, sizes);
            note_planned(c, &x);
        }
        fits = st == GS_OK;
        if (sizes && other != NULL && st == GS_EBUDGET && asks_less(&x, &c->best)) {
            snprintf(error, sizeof(error), "%s", gs_last_error());
            take(c, &other, &x);
        } else if (fits) {
            take(c, &other, &x);
        }
        gs_session_close(other);
    }
    return fits ? GS_OK : gs_fail(GS_EBUDGET, "%s", error);
}

/* No program fits: which budget is too small, and what would do? What else grows with the budget is the least then, or
 * the figure would not do when it is given; so there may be a plan after all. */
static gs_status say_sizes(choosing *c)
{
    c->least_windows = true;
    close_best(c);
    c->plans = 0;
    c->best = (candidate){0};
    return fit_another(c, true);
}

/* Sums by type, and products of all types, are rows of V * T numbers; products in batches of edges are 2 * E * in * out
 * operations, which are fewer than theirs where types outnumber the mean degree. The cost model decides, and the
 * budgets. */
static bool may_type(const gs_session *s)
{
    const gs_store_info *const info = gs_store_get_info(s->store);
    return !s->config.options->no_batch && (double)info->edge_types * (double)info->vertices > (double)info->edges;
}

/* What a run may do otherwise, whatever the program is: nothing where it does not train, but products by type. */
static void list_choices(choosing *c)
{
    const gs_train_options *const o = c->o->options;
    const gs_session *const s = c->s;
    const bool own = gs_session_has_memories(s);

    c->trains = s->pass.train != GS_NONE;
    for (int k = 0; k < CHOICES; k++)
        c->may[k] = c->trains;
    c->may[HOIST] = c->trains && !o->no_hoist; /* else moves may be those that are best with it, if it is left out */
    c->may[MOVE] = c->trains && !o->no_move;
    c->may[FUSE] = c->trains && !o->no_fuse;
    c->may[LEAN] = c->trains && !own;
    c->may[WIDTH] = c->trains && gs_session_may_part(s);
    c->may[TYPED] = may_type(s);
    if (o->device_memory == 0) /* one that is a part of the host's is never named */
        c->default_budget = s->machine.wires.memory[0] > 0
                                ? "it is the least of .topology's \"memories\", which can be given more"
                            : own ? "it is 90 % of what is free on the device unless given"
                                  : NULL;
}

/* Of a trial for which no time is left: the program that the budget was named for says itself what it needs. It was
 * refused, so that is a little more. */
static gs_status say_own_size(choosing *c)
{
    close_best(c);
    GS_TRY(prepare(&c->s, c, &c->best, c->o->first));
    return plan(c, c->s, &c->best, true);
}

/* A plan for the model's first program, or for one that fits. */
static gs_status choose_first(choosing *c)
{
    gs_status st;

    GS_TRY(prepare(&c->s, c, &c->best, c->o->first));
    c->process_bytes = c->o->trial ? c->o->process_bytes : gs_session_process_bytes(c->s, c->o->process_bytes);
    GS_TRY(gs_ranks_share(&c->process_bytes, sizeof(c->process_bytes)));
    c->s->memory.process = c->process_bytes;
    list_choices(c);
    c->features = gs_store_get_info(c->s->store)->features;
    c->best.screens = true;
    st = plan(c, c->s, &c->best, false);
    note_planned(c, &c->best);
    if (st == GS_EBUDGET && c->best.refused.least_tables > 0)
        c->tables_part = (double)c->best.refused.tables / (double)c->best.refused.least_tables;
    c->large = c->best.refused.tables >= LARGE_TABLES;
    if (st == GS_EBUDGET && c->o->trial && c->scans.tasks >= gs_effort_all(0))
        st = say_own_size(c);
    else if (st == GS_EBUDGET && (st = fit_another(c, false)) == GS_EBUDGET)
        st = say_sizes(c);
    return st == GS_EBUDGET && c->best.refused.device != 0 && c->default_budget != NULL
               ? gs_fail_hint(GS_EBUDGET, c->default_budget)
               : st;
}

/* Trials begin with what scans said before. (What others hold of it would count as the process's.) */
static void take_scans(choosing *c, const gs_session_config *config)
{
    if (config->scans == NULL)
        return;
    if (!config->trial)
        gs_scans_drop(config->scans);
    c->scans = *config->scans;
    *config->scans = (gs_scans){0};
}

static gs_status open_once(gs_session **out, const gs_session_config *config)
{
    choosing c = {.o = config};
    gs_status st;

    take_scans(&c, config);
    gs_alloc_map_large(); /* plans are made and freed by the dozen */
    st = choose_first(&c);
    if (st == GS_OK) {
        c.most_tasks = gs_effort_all(config->shape != NULL ? 0 : c.best.epoch_seconds);
        if (!config->trial) { /* which asks whether there is a plan */
            improve(&c);
            refine(&c);
        }
        st = open_again(&c);
    }
    if (config->options->stop != NULL && *config->options->stop != 0) /* trials of other programs say nothing of it */
        st = gs_fail(GS_EINTERRUPTED, "interrupted before the first epoch; nothing was written");
    if (st == GS_OK) {
        c.s->edges.scans = NULL;
        gs_session_recall_products(c.s);
        describe_compared(&c, c.s);
        *out = c.s;
        c.s = NULL; /* now the caller's */
    }
    if (st == GS_EBUDGET && config->refused != NULL) {
        *config->refused = c.best.refused;
        *config->refused_as = c.best.variant;
        config->refused->process = c.process_bytes;
    }
    gs_session_close(c.s);
    c.scans.tasks += c.tasks;
    if (st == GS_EBUDGET && config->scans != NULL)
        *config->scans = c.scans;
    else
        gs_scans_drop(&c.scans);
    gs_alloc_keep_large(0);
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
        if (config->scans != NULL)
            gs_scans_drop(config->scans);
    }
    return gs_fail(GS_EIO, "%s: is replaced again and again while it is opened", config->store);
}
