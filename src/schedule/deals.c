/* deals.c - which device has which columns: dealt in proportion, and ways of dealing them compared. */
#include "schedule/deals.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/effort.h"
#include "schedule/simulate.h"
#include "schedule/search.h"

/* ---- a deal --------------------------------------------------------------- */

/* Which device has which target intervals of a stage.
 *
 * Runs of intervals, so that blocks are runs too, each of its device's share of the predicted seconds: of the edges of
 * its columns, of its rows, and of what only this device copies. A device's share is as large as it is fast.
 */

static double task_seconds(const gs_layout *l, const gs_stage_work *of, const gs_task *t)
{
    gs_work w;
    gs_task_work_by(&w, l->program, of, l->set, l->parts, t);
    return gs_cost_seconds(gs_cost_on(l->config->cost, l->config->host_cost, l->config->topology, t->device), &w);
}

static double chunk_seconds(const gs_layout *l, const gs_stage_work *of, uint32_t stage, uint32_t target,
                            uint32_t operand, uint32_t device)
{
    const gs_stage *const s = &l->program->stage[stage];
    gs_task t = {.stage = stage, .file = GS_FILE_EDGES(l->program, l->stage_set[stage]), .target = target,
                 .operand = operand, .device = device};
    double seconds = 0;

    for (uint32_t i = 0; i < s->sums; i++) {
        t.kind = GS_TASK_EDGES;
        t.sum = i;
        seconds += gs_stage_sums_rows(s, i) ? task_seconds(l, of, &t) : 0;
    }
    t.kind = gs_stage_is_back(s) ? GS_TASK_BACK : GS_TASK_EDGES;
    t.sum = GS_NONE;
    return seconds + (gs_stage_has_edge_program(s) ? task_seconds(l, of, &t) : 0);
}

static double interval_seconds(const gs_layout *l, uint32_t stage, uint32_t interval, uint32_t device)
{
    const gs_stage *const s = &l->program->stage[stage];
    const gs_schedule_config *const config = l->config;
    const gs_cost *const cost = gs_cost_on(config->cost, config->host_cost, config->topology, device);
    const double bps = gs_link_of(config->topology, cost, gs_link_to(device)).bps;
    const uint32_t rows = gs_layout_rows(l, stage, interval);
    double seconds = 0, row = 0;
    gs_stage_work of;

    gs_stage_work_find(&of, l->program, s);
    for (uint32_t o = 0; s->sums > 0 && (o = gs_layout_next_operand(l, stage, interval, o)) < l->parts; o++) {
        const gs_chunk *const c = gs_layout_chunk(l, stage, interval, o);
        seconds += l->config->cost != NULL ? chunk_seconds(l, &of, stage, interval, o, device) : (double)c->edges;
        seconds += (double)c->length / bps;
    }
    for (uint32_t r = 0; r < s->regs; r++)
        row += s->reg[r].kind == GS_REG_LOAD ? (double)l->row_bytes[s->reg[r].array] : 0;
    seconds += rows * row / bps;
    return seconds + (l->config->cost != NULL
                          ? task_seconds(l, &of, &(gs_task){.kind = GS_TASK_VERTEX, .stage = stage, .rows = rows,
                                                       .device = device})
                          : rows);
}

static double stage_seconds(const gs_layout *l, uint32_t stage, uint32_t device)
{
    double seconds = 0;
    for (uint32_t i = 0; i < l->parts; i++)
        seconds += interval_seconds(l, stage, i, device);
    return seconds;
}

/* How fast each device is at the stage, which takes the first one so long: of a kind, all are as fast as the topology
 * says. */
static void stage_speeds(const gs_layout *l, uint32_t stage, double first, double *speed)
{
    const bool *const on_host = l->config->topology->on_host;
    double of[2] = {0, 0}; /* a stage takes longer on such devices than on the first */

    of[on_host[0] ? 1 : 0] = 1;
    for (uint32_t d = 0; d < l->config->topology->devices; d++) {
        double *const times = &of[on_host[d] ? 1 : 0];
        if (*times == 0)
            *times = first > 0 ? stage_seconds(l, stage, d) / first : 1;
        speed[d] = 1 / *times;
    }
}

/* The device's share of the stage's columns, in proportion to others'. */
static double share_of(const gs_layout *l, uint32_t stage, uint32_t device)
{
    const gs_topology *const t = l->config->topology;

    if (l->config->share != NULL)
        return l->config->share[stage * t->devices + device];
    if (t->place.said)
        return l->program->stage[stage].sums > 0 ? t->place.edges[device] : t->place.vertices[device];
    return gs_topology_speed(t, device);
}

/* Share of the devices before `end` in that of all. */
static double share_before(const gs_layout *l, uint32_t stage, const double *speed, uint32_t end)
{
    const uint32_t devices = l->memory.devices;
    double before = 0, all = 0;

    for (uint32_t d = 0; d < devices; d++) {
        const double share = share_of(l, stage, d) * speed[d];
        before += d < end ? share : 0;
        all += share;
    }
    return before / all;
}

/* `seconds`: [parts] scratch. */
static void deal_stage(gs_choice *c, const gs_layout *l, uint32_t stage, double *seconds)
{
    const uint32_t devices = l->memory.devices;
    uint32_t *const first = &c->deal[stage * (devices + 1)];
    double total = 0, before = 0, speed[GS_TOPOLOGY_DEVICES];
    uint32_t at = 0;

    first[0] = 0;
    first[devices] = l->parts;
    if (devices == 1)
        return;
    if (l->program->stage[stage].alone > 0) {
        for (uint32_t d = 1; d < devices; d++)
            first[d] = d < l->program->stage[stage].alone ? 0 : l->parts;
        return;
    }
    if (l->config->owners != NULL) {
        memcpy(first, l->config->owners, (devices + 1) * sizeof(*first));
        return;
    }
    for (uint32_t i = 0; i < l->parts; i++)
        total += seconds[i] = interval_seconds(l, stage, i, 0);
    stage_speeds(l, stage, total, speed);
    for (uint32_t d = 1; d < devices; d++) {
        const double share = share_before(l, stage, speed, d);
        for (; at < l->parts; at++) { /* up to the bound between two intervals that is nearest to the share */
            if (before + seconds[at] / 2 > total * share)
                break;
            before += seconds[at];
        }
        first[d] = at;
    }
}

gs_status gs_choice_deal(gs_choice *c, const gs_layout *l)
{
    GS_FREED double *const seconds = gs_malloc_array(l->parts, sizeof(*seconds));
    if (seconds == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t s = 0; s < l->program->stages; s++)
        deal_stage(c, l, s, seconds);
    return GS_OK;
}

uint32_t gs_choice_longest(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    const uint32_t devices = l->memory.devices;
    const uint32_t *const first = gs_choice_deal_of(c, l, stage);
    uint32_t longest = 1;

    for (uint32_t d = 0; d < devices; d++)
        longest = GS_MAX(longest, first[d + 1] - first[d]);
    return longest;
}

/* ---- ways ----------------------------------------------------------------- */

/* How many columns each of several devices that are not alike gets, stage by stage.
 *
 * What a device that is slower than the best one does may hold the others up: its link, or that of all of them, is busy
 * with its rows. So plans are made and compared by predicted seconds in which, one after the other,
 *   1. devices of one kind have less than their share of all stages, or nothing;
 *   2. edge passes are on some devices and vertex programs on others: DAHA's two rewritings of A H W, to transform
 *      (T = H W) or to aggregate (T = A H) where H is, so that the narrower T crosses a link, are such placements;
 *   3. a stage has shares of its own, stage after stage, where that makes the shortest plan so far shorter still.
 * Stages of one name in several passes have the same shares, as they read the same rows.
 */

/* For shares of stages so many plans are made, or fewer, so that all of them have so many tasks: planning should take
 * seconds. */
#define STAGED_PLANS 64u
#define STAGED_TASKS 300000u
/* Of the tasks that all ways may have together, one's part: of a program that is compared with others; of the one that
 * is taken, whose stages are tried one by one, too; and of the best way, which is planned once more. */
#define SCREENED_EFFORT 8u
#define TRY_EFFORT 48u
#define TAKEN_EFFORT 8u
/* What there is a part of, where the program is one of many. */
#define SCREENED_PART 4u
/* Stages with other shares than others must save so much of the epoch, and another share of one stage. */
#define KINDS_WORTH 0.98
#define STAGED_WORTH 0.99
/* Rows that do not go from device to device are tried where the plan in which they do takes so many times the best. */
#define APART_NEAR 1.1

typedef struct deals {
    const gs_schedule_config *config;
    uint32_t first;  /* the device whose like are told from others */
    uint64_t tables; /* bytes of a plan */
    uint64_t tasks, most; /* of plans so far; that they may have, all together (effort.h) */
    uint64_t apart_tasks; /* of those in which rows do not go from device to device, beside them: as many at the most */
    gs_plan_part *now, *best; /* [stages] */
    double *share;    /* [stages * devices] of what is tried */
    double cost;      /* of the best one */
    double computing; /* the part of it in which devices compute, or copy at speeds that the topology does not say */
    double computing_now; /* the same, of the one that was predicted last */
    uint32_t like;    /* of the best one: its `first` */
    struct {
        double cost;  /* 0: there is no plan for devices of one kind alone */
        uint32_t like, deal; /* the kind; its number in `tried` */
    } alone;          /* the best of those */
    bool apart;       /* of the best one: rows do not go from device to device */
    bool tried_apart; /* of what was tried last */
    bool screens;     /* the program is one of many */
    bool full;        /* there is no room for two plans, or no time */
    bool better;      /* what was tried last became the best one */
    bool changed;     /* the best one is not that which was there */
    gs_plan_deals tried;
} deals;

/* ---- devices ---- */

/* The device that computes fastest; of several such, the one with the fastest link to the host. */
static uint32_t best_device(const gs_topology *t)
{
    uint32_t best = 0;

    for (uint32_t d = 1; d < t->devices; d++) {
        const double speed = gs_topology_speed(t, d), than = gs_topology_speed(t, best);
        const double link = gs_link_said_bps(t, gs_link_to(d));
        const double of = gs_link_said_bps(t, gs_link_to(best));
        if (speed > than || (speed == than && of > 0 && (link == 0 || link > of)))
            best = d;
    }
    return best;
}

/* With as much memory as the other, of one kind. */
static bool is_kind(const gs_topology *t, uint32_t a, uint32_t b)
{
    return t->on_host[a] == t->on_host[b] && t->in_place[a] == t->in_place[b] && t->memory[a] == t->memory[b];
}

static bool is_alike(const gs_topology *t, uint32_t a, uint32_t b)
{
    return is_kind(t, a, b) &&
           gs_topology_speed(t, a) == gs_topology_speed(t, b) &&
           gs_link_said_bps(t, gs_link_to(a)) == gs_link_said_bps(t, gs_link_to(b));
}

bool gs_deals_differ(const gs_schedule_config *config)
{
    const gs_topology *const t = config->topology;

    if (config->cost == NULL || config->share != NULL || config->owners != NULL || t->place.said)
        return false;
    for (uint32_t d = 1; d < t->devices; d++)
        if (!is_alike(t, d, 0))
            return true;
    return false;
}

bool gs_may_go_apart(const gs_schedule_config *c, const gs_plan *plan)
{
    bool forwards = false;

    for (uint32_t i = 0; i < plan->passes; i++)
        forwards = forwards || plan->pass[i].forward_bytes > 0;
    return forwards && !c->no_chain && c->cost != NULL && c->needs.rows.words > 0;
}

/* ---- a plan ---- */

static void set_shares(const deals *x, const gs_plan_part *of)
{
    const gs_topology *const t = x->config->topology;

    for (uint32_t s = 0; s < x->config->program->stages; s++)
        for (uint32_t d = 0; d < t->devices; d++)
            x->share[s * t->devices + d] =
                gs_topology_speed(t, d) * (is_alike(t, d, x->first) ? of[s].like : of[s].others);
}

/* For another plan. */
static bool has_room(const deals *x)
{
    const uint64_t most = x->config->live_most;
    return most == 0 || gs_alloc_live_bytes() + x->tables + x->tables / 2 <= most;
}

/* Is there no room for another plan, or no time? */
static bool is_full(const deals *x) { return x->tasks >= x->most || !has_room(x); }

/* The part of an epoch for which devices may be in each other's way. */
static double computing_part(const gs_schedule_config *config, const gs_plan *plan)
{
    const uint32_t train = gs_program_pass(config->program, "train");
    const gs_plan_pass *const pass = &plan->pass[train == GS_NONE ? 0 : train];
    const gs_predicted *const p = &pass->predicted;

    for (uint32_t d = 0; d < config->topology->devices; d++)
        if (gs_link_said_bps(config->topology, gs_link_to(d)) == 0)
            return 1;
    return pass->predicted_by == 0 || p->seconds == 0 ? 1 : fmin(1, (p->edge_seconds + p->vertex_seconds) / p->seconds);
}

/* *seconds: of a plan, 0: there is none; *either: its rows may come the other way, too. Its tasks are added. */
static gs_status predict(deals *x, gs_schedule_config *other, uint64_t *tasks, double *seconds, bool *either)
{
    gs_effort effort = {.most = x->most / (x->screens ? SCREENED_EFFORT : TRY_EFFORT)};
    gs_plan *plan = NULL;

    other->effort = x->config->effort == NULL ? NULL : &effort;
    const gs_status st = gs_schedule_search(&plan, seconds, other);
    *tasks += effort.tasks;
    *either = st == GS_OK && gs_may_go_apart(other, plan);
    x->computing_now = st == GS_OK ? computing_part(other, plan) : 1;
    gs_plan_free(plan);
    *seconds = st == GS_OK ? *seconds : 0;
    return st == GS_EBUDGET ? GS_OK : st;
}

/* The same without rows from device to device, where that is shorter: which way is better depends on the shares. It
 * takes no time from other shares: what is known of rows, for which alone this is tried, would else hide the best. */
static gs_status try_apart(deals *x, gs_schedule_config *other, double *seconds)
{
    double apart;
    bool either;

    if (*seconds >= APART_NEAR * x->cost || x->apart_tasks >= x->most || !has_room(x))
        return GS_OK;
    other->no_chain = true;
    const double computing = x->computing_now;
    const gs_status st = predict(x, other, &x->apart_tasks, &apart, &either);
    x->tried_apart = st == GS_OK && apart > 0 && apart < GS_APART_SAVES * *seconds;
    if (x->tried_apart)
        *seconds = apart;
    else
        x->computing_now = computing;
    return st;
}

/* Predicts a plan with the shares of x->now, which become the best ones if it is shorter by `worth`. *seconds: of it;
 * 0: there is none. Columns are in store order: the best plan's are swapped later. */
static gs_status try_now(deals *x, double worth, double *seconds)
{
    gs_schedule_config other = *x->config;
    bool either;

    *seconds = 0;
    x->better = false;
    x->tried_apart = other.no_chain;
    if ((x->full = is_full(x)))
        return GS_OK;
    set_shares(x, x->now);
    other.share = x->share;
    other.no_swap = true;
    other.refusal = NULL;
    other.no_sizes = true;
    other.keeps_first = true;
    GS_TRY(predict(x, &other, &x->tasks, seconds, &either));
    if (either)
        GS_TRY(try_apart(x, &other, seconds));
    if (*seconds == 0 || *seconds >= worth * x->cost)
        return GS_OK;
    memcpy(x->best, x->now, x->config->program->stages * sizeof(*x->best));
    x->cost = *seconds;
    x->computing = x->computing_now;
    x->like = x->first;
    x->apart = x->tried_apart;
    x->better = x->changed = true;
    return GS_OK;
}

/* What was tried; it became the best one, or not. */
static void note(deals *x, gs_plan_part edges, gs_plan_part vertices, bool by_stage, double seconds)
{
    gs_plan_deals *const to = &x->tried;

    if (seconds == 0 || to->count == GS_PLAN_DEALS)
        return;
    to->taken = x->better ? to->count : to->taken;
    to->deal[to->count++] = (gs_plan_deal){x->first, edges, vertices, by_stage, seconds};
}

static void note_alone(deals *x, double seconds)
{
    if (seconds > 0 && (x->alone.cost == 0 || seconds < x->alone.cost)) {
        x->alone.cost = seconds;
        x->alone.like = x->first;
        x->alone.deal = x->tried.count - 1;
    }
}

/* Of all stages with an edge pass, and of all others. */
static gs_status try_kinds(deals *x, gs_plan_part edges, gs_plan_part vertices, double worth)
{
    const gs_program *const p = x->config->program;
    double seconds;

    for (uint32_t s = 0; s < p->stages; s++)
        x->now[s] = p->stage[s].sums > 0 ? edges : vertices;
    GS_TRY(try_now(x, worth, &seconds));
    note(x, edges, vertices, false, seconds);
    if (edges.others == 0 && vertices.others == 0)
        note_alone(x, seconds);
    return GS_OK;
}

/* ---- what is tried ---- */

/* All that are not like x->first with less than their share, and with nothing. */
static gs_status deal_less(deals *x)
{
    static const double less[] = {0.7, 0.4, 0};

    for (size_t k = 0; k < GS_ARRAY_LEN(less) - (x->config->topology->all ? 1 : 0) && !x->full; k++)
        GS_TRY(try_kinds(x, (gs_plan_part){1, less[k]}, (gs_plan_part){1, less[k]}, 1));
    return GS_OK;
}

/* Of devices of two kinds, or of which some have more memory, the plan does not know beforehand which are the better
 * ones. */
static gs_status deal_all_less(deals *x)
{
    const gs_topology *const t = x->config->topology;
    const uint32_t first = x->first;
    uint32_t other = 0;
    gs_status st = deal_less(x);

    while (other < t->devices && is_kind(t, other, first))
        other++;
    if (st != GS_OK || other == t->devices)
        return st;
    x->first = other;
    return deal_less(x);
}

/* Are there stages of both kinds in the pass that epochs consist of? */
static bool has_both(const gs_program *p)
{
    const uint32_t train = gs_program_pass(p, "train");
    const gs_pass *const pass = &p->pass[train == GS_NONE ? 0 : train];
    uint32_t edges = 0;

    for (uint32_t k = 0; k < pass->stages; k++)
        edges += p->stage[pass->first_stage + k].sums > 0;
    return edges > 0 && edges < pass->stages;
}

static gs_status place_kinds(deals *x)
{
    static const gs_plan_part kinds[][2] = {{{1, 0}, {0, 1}}, {{0, 1}, {1, 0}}, {{1, 0}, {1, 1}},
                                    {{0, 1}, {1, 1}}, {{1, 1}, {1, 0}}, {{1, 1}, {0, 1}}};

    for (size_t k = 0; k < GS_ARRAY_LEN(kinds) && !x->full; k++)
        GS_TRY(try_kinds(x, kinds[k][0], kinds[k][1], KINDS_WORTH));
    return GS_OK;
}

static void set_named(const deals *x, uint32_t like, gs_plan_part to)
{
    const gs_program *const p = x->config->program;

    for (uint32_t s = 0; s < p->stages; s++)
        if (strcmp(p->stage[s].name, p->stage[like].name) == 0)
            x->now[s] = to;
}

/* Where all devices are to compute, no kind of them may be left without any stage. */
static bool leaves_some_out(const deals *x)
{
    bool like = false, others = false;

    for (uint32_t s = 0; s < x->config->program->stages; s++) {
        like = like || x->now[s].like > 0;
        others = others || x->now[s].others > 0;
    }
    return x->config->topology->all && !(like && others);
}

/* The stage with other shares than in the best plan. */
static gs_status place_stage(deals *x, uint32_t stage, uint32_t *plans, uint32_t most)
{
    static const gs_plan_part parts[] = {{1, 0}, {0, 1}, {1, 1}, {1, 0.4}, {0.4, 1}};
    const gs_plan_part was = x->best[stage];
    double seconds;

    for (size_t k = 0; k < GS_ARRAY_LEN(parts) && !x->full && *plans < most; k++) {
        if (parts[k].like == was.like && parts[k].others == was.others)
            continue;
        memcpy(x->now, x->best, x->config->program->stages * sizeof(*x->now));
        set_named(x, stage, parts[k]);
        if (leaves_some_out(x))
            continue;
        GS_TRY(try_now(x, STAGED_WORTH, &seconds));
        ++*plans;
    }
    return GS_OK;
}

/* Each stage of the pass that epochs consist of. */
static gs_status place_stages(deals *x, uint32_t most)
{
    const gs_program *const p = x->config->program;
    const uint32_t train = gs_program_pass(p, "train");
    const gs_pass *const pass = &p->pass[train == GS_NONE ? 0 : train];
    const double before = x->cost;
    uint32_t plans = 0;

    x->first = x->like;
    for (uint32_t k = 0; k < pass->stages && !x->full; k++)
        GS_TRY(place_stage(x, pass->first_stage + k, &plans, most));
    x->better = x->cost < before;
    if (x->better)
        note(x, (gs_plan_part){1, 1}, (gs_plan_part){1, 1}, true, x->cost);
    return GS_OK;
}

/* Devices of one kind alone, where all of them do not save enough. */
static void prefer_alone(deals *x)
{
    const double longer = 1 + (1 / GS_SEVERAL_WORTH - 1) * x->computing;

    if (x->alone.cost == 0 || longer * x->cost < x->alone.cost || x->tried.taken == x->alone.deal)
        return;
    for (uint32_t s = 0; s < x->config->program->stages; s++)
        x->best[s] = (gs_plan_part){1, 0};
    x->like = x->alone.like;
    x->cost = x->alone.cost;
    x->tried.taken = x->alone.deal;
    x->changed = true;
}

/* ---- the whole ---- */

static gs_status try_all(deals *x, uint32_t tasks)
{
    const uint32_t most = GS_MIN(STAGED_PLANS, STAGED_TASKS / GS_MAX(tasks, 1));

    GS_TRY(deal_all_less(x));
    x->first = x->like;
    if (x->cost < GS_STAGED_SECONDS)
        return GS_OK;
    if (most > 0 && has_both(x->config->program))
        GS_TRY(place_kinds(x));
    return place_stages(x, most);
}

/* The best plan, with columns in the order that is best for it. */
static gs_status take(gs_plan **best, double *cost, deals *x)
{
    gs_schedule_config same = *x->config;
    gs_effort effort = {.most = x->most / TAKEN_EFFORT}; /* so much at the least as it was found with */
    gs_plan *plan = NULL;
    gs_status st = GS_OK;

    if (x->changed) {
        x->first = x->like;
        set_shares(x, x->best);
        same.share = x->share;
        same.no_chain = x->apart;
        same.keeps_first = true;
        same.effort = same.effort == NULL ? NULL : &effort;
        if ((st = gs_schedule_search(&plan, cost, &same)) == GS_OK) {
            plan->ring = same.ring;
            gs_plan_free(*best);
            *best = plan;
        }
    }
    x->tasks += effort.tasks;
    if (st == GS_OK)
        (*best)->deals = x->tried;
    return st;
}

gs_status gs_deals_try(gs_plan **best, double *cost, const gs_schedule_config *config)
{
    const uint32_t stages = config->program->stages, first = best_device(config->topology);
    gs_schedule_config like = *config;
    deals x = {.config = &like, .first = first, .like = first, .tables = (*best)->table_bytes, .cost = *cost,
               .computing = computing_part(config, *best), .apart = config->no_chain,
               .most = gs_effort_most(config, *cost)};
    const bool screens = config->effort != NULL && config->effort->screens;

    x.screens = screens;
    x.most /= screens ? SCREENED_PART : 1;
    like.ring = (*best)->ring;
    GS_FREED gs_plan_part *const now = x.now = gs_calloc(stages + 1, sizeof(*x.now));
    GS_FREED gs_plan_part *const parts = x.best = gs_calloc(stages + 1, sizeof(*x.best));
    GS_FREED const void *const share = x.share =
        gs_calloc((size_t)stages * config->topology->devices + 1, sizeof(*x.share));
    if (now == NULL || parts == NULL || share == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t s = 0; s < stages; s++)
        x.best[s] = (gs_plan_part){1, 1};
    note(&x, (gs_plan_part){1, 1}, (gs_plan_part){1, 1}, false, *cost);
    gs_status st = try_all(&x, (*best)->tasks);
    if (st == GS_OK) {
        prefer_alone(&x);
        st = take(best, cost, &x);
    }
    if (config->effort != NULL)
        config->effort->tasks += x.tasks + x.apart_tasks;
    if (screens && x.tasks >= x.most)
        config->effort->cut = true;
    return st;
}
