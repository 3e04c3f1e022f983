/* column_order.c - in which order does a stage take its blocks of columns?
 *
 * NeuGraph (ATC'19) takes a random order and swaps pairs while a simulation of the pipeline says that it gets
 * shorter, so that columns that wait for the disk stand beside columns that compute. Here store order, back and forth
 * (every other stage backwards, so that it begins with what the one before touched last) and a random one compete
 * first. The sums of a column are added up in the same order wherever it stands; gradients of parameters are added up
 * over columns, so they change by rounding. That is why an order must save a share of the time to be taken.
 *
 * The simulation's times are fitted to real epochs of this machine (cost/cost.c).
 */
#include "schedule/column_order.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/deals.h"
#include "schedule/effort.h"
#include "schedule/ring_sim.h"
#include "schedule/simulate.h"

/* Each trial makes a plan: fewer where they have more tasks than these together (some half a second). */
#define TASKS_MOST 1000000u

uint32_t gs_choice_blocks(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    const uint32_t step = l->program->stage[stage].sums ? c->block[stage] : 1;
    return (uint32_t)gs_div_up(gs_choice_longest(c, l, stage), step);
}

void gs_order_reset(gs_choice *c, const gs_layout *l)
{
    for (uint32_t s = 0; s < l->program->stages; s++)
        for (uint32_t k = 0; k < l->parts; k++)
            c->order[s * l->parts + k] = k;
}

struct search {
    const gs_layout *l;
    gs_choice *c;
    uint32_t pass;
    gs_order_make *make;
    void *context;
    uint32_t rng;
    uint32_t *best;  /* [stages * parts] */
    double seconds;  /* of the best */
    uint32_t tried;
};

static uint32_t below(struct search *s, uint32_t n)
{
    s->rng = s->rng * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(s->rng >> 4) * n >> 28);
}

/* Blocks of a stage that may be taken in any order; 0 where there is one order alone: a sequence's derivative adds to
 * rows that all of its blocks share. */
static uint32_t free_blocks(const struct search *s, uint32_t stage)
{
    const gs_pass *const pass = &s->l->program->pass[s->pass];
    const uint32_t blocks = gs_choice_blocks(s->c, s->l, stage);
    const bool in_pass = stage >= pass->first_stage && stage < pass->first_stage + pass->stages;
    return !in_pass || blocks < 2 || gs_stage_is_back(&s->l->program->stage[stage]) ? 0 : blocks;
}

static uint32_t *order_of(const struct search *s, uint32_t stage)
{
    return s->c->order + (uint64_t)stage * s->l->parts;
}

static uint64_t order_bytes(const struct search *s)
{
    return (uint64_t)s->l->program->stages * s->l->parts * sizeof(*s->best);
}

static void swap(uint32_t *order, uint32_t a, uint32_t b)
{
    const uint32_t x = order[a];
    order[a] = order[b];
    order[b] = x;
}

static void go_back_and_forth(struct search *s)
{
    bool back = false;
    gs_order_reset(s->c, s->l);
    for (uint32_t k = 0; k < s->l->program->stages; k++) {
        const uint32_t n = free_blocks(s, k);
        for (uint32_t i = 0; back && i < n; i++)
            order_of(s, k)[i] = n - 1 - i;
        back = n > 0 ? !back : back;
    }
}

static void shuffle(struct search *s)
{
    gs_order_reset(s->c, s->l);
    for (uint32_t k = 0; k < s->l->program->stages; k++)
        for (uint32_t i = free_blocks(s, k); i > 1; i--)
            swap(order_of(s, k), i - 1, below(s, i));
}

static gs_status seconds_of(double *out, const struct search *s, gs_plan *plan)
{
    const gs_simulation_input input = gs_simulation_of(s->l, plan, s->pass);
    gs_predicted x;
    GS_TRY(gs_simulate_once(&x, plan, &input));
    *out = x.seconds;
    return GS_OK;
}

/* Simulates the order that `c` says; the best one is kept. */
static gs_status try_order(struct search *s)
{
    gs_plan *plan = NULL;
    double seconds = 0;
    gs_status st = s->make(&plan, s->context);

    s->tried++;
    if (st != GS_OK)
        return st == GS_ENOFIT ? GS_OK : st;
    st = seconds_of(&seconds, s, plan);
    gs_plan_free(plan);
    if (st == GS_OK && seconds < s->seconds) {
        s->seconds = seconds;
        memcpy(s->best, s->c->order, order_bytes(s));
    }
    return st;
}

/* Exchanges two blocks of a stage in the best order. False where there are none. */
static bool swap_pair(struct search *s)
{
    const gs_pass *const pass = &s->l->program->pass[s->pass];
    uint32_t stage = pass->first_stage + below(s, pass->stages), looked = 0;

    memcpy(s->c->order, s->best, order_bytes(s));
    while (free_blocks(s, stage) == 0 && looked++ < pass->stages)
        stage = stage + 1 < pass->first_stage + pass->stages ? stage + 1 : pass->first_stage;
    const uint32_t n = free_blocks(s, stage);
    if (n == 0)
        return false;
    const uint32_t a = below(s, n);
    swap(order_of(s, stage), a, (a + 1 + below(s, n - 1)) % n);
    return true;
}

static gs_status search(struct search *s, uint32_t tries, double cost)
{
    go_back_and_forth(s);
    GS_TRY(try_order(s));
    shuffle(s);
    GS_TRY(try_order(s));
    while (s->tried < tries && gs_effort_lasts(s->l->config, cost) && swap_pair(s))
        GS_TRY(try_order(s));
    return GS_OK;
}

/* The plan in the best order takes the place of *plan, where it is worth it and can be made. Else the one in store
 * order stands, or is made again where it was freed. */
static gs_status take_order(gs_plan **plan, struct search *s, bool worth)
{
    gs_plan *better = NULL;
    gs_status st = GS_OK;

    if (worth) {
        memcpy(s->c->order, s->best, order_bytes(s));
        st = s->make(&better, s->context);
    }
    if (better != NULL) {
        better->pass[s->pass].order.taken = true;
        gs_plan_free(*plan);
        *plan = better;
    }
    if (st != GS_OK && st != GS_ENOFIT)
        return st;
    gs_order_reset(s->c, s->l);
    return *plan != NULL ? GS_OK : s->make(plan, s->context);
}

gs_status gs_order_search(gs_plan **plan, double cost, const gs_layout *l, gs_choice *c, uint32_t pass, uint32_t tries,
                          bool alone, gs_order_make *make, void *context)
{
    struct search s = {.l = l, .c = c, .pass = pass, .make = make, .context = context, .rng = 1};
    const uint64_t most = GS_MIN(TASKS_MOST, gs_effort_left(l->config, cost));
    bool any = false;

    tries = (uint32_t)GS_MIN(most / GS_MAX((*plan)->tasks, 1), tries);
    for (uint32_t k = 0; k < l->program->stages; k++)
        any = any || free_blocks(&s, k) > 0;
    if (!any || tries < 3)
        return GS_OK;
    GS_FREED uint32_t *const best = s.best = gs_malloc_array(order_bytes(&s), 1);
    if (best == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    memcpy(best, c->order, order_bytes(&s));
    GS_TRY(seconds_of(&s.seconds, &s, *plan));
    const double before = s.seconds;
    if (alone) {
        gs_plan_free(*plan);
        *plan = NULL;
    }
    GS_TRY(search(&s, tries, cost));
    GS_TRY(take_order(plan, &s, s.seconds < before * GS_ORDER_WORTH));
    gs_order_report *const order = &(*plan)->pass[pass].order;
    *order = (gs_order_report){s.tried, before, s.seconds, order->taken};
    return GS_OK;
}
