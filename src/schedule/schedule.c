/* schedule.c - the plan of a run; where devices are not alike, also how much each of them gets. */
#include "schedule/schedule.h"

#include "base/alloc.h"
#include "schedule/deals.h"
#include "schedule/effort.h"
#include "schedule/search.h"

/* Of a second that the ordinary way takes: chunks go past the host where that saves the rest. */
#define LOADS_SAVE 0.98
/* Of the time for the first way, the part that another one has. */
#define OTHER_EFFORT 2u
/* That rows do not go from device to device is tried where there is time for so many plans; first in this part of the
 * time, and further only where that takes less than so many times the best. */
#define APART_PLANS 4u
#define APART_EFFORT 8u
#define APART_NEAR 1.1

/* Is there room for another plan beside the best one? */
static bool has_room(const gs_plan *best, const gs_schedule_config *config)
{
    const uint64_t tables = best->table_bytes;
    return config->live_most == 0 || gs_alloc_live_bytes() + tables + tables / 2 <= config->live_most;
}

/* The best plan as `other` says within so many tasks. GS_EBUDGET: none was found. */
static gs_status search_other(gs_plan **out, double *seconds, gs_schedule_config *other, uint64_t most)
{
    gs_effort *const all = other->effort;
    gs_effort effort = {.most = most};

    other->refusal = NULL;
    other->no_sizes = true;
    other->effort = all == NULL ? NULL : &effort;
    const gs_status st = gs_schedule_search(out, seconds, other);
    other->effort = all;
    if (all != NULL)
        all->tasks += effort.tasks;
    return st;
}

/* Plans as `other` says; it stays where it takes less than `share` of the best one, or there is room for one alone. */
static gs_status try_other(gs_plan **best, double *best_cost, gs_schedule_config *other, double share)
{
    gs_plan *plan = NULL;
    double seconds = 0;

    if (!has_room(*best, other))
        return GS_OK;
    const gs_status st = search_other(&plan, &seconds, other, gs_effort_most(other, *best_cost) / OTHER_EFFORT);
    if (st != GS_OK)
        return st == GS_EBUDGET ? GS_OK : st;
    plan->ring = other->ring;
    const bool better = seconds < share * *best_cost;
    gs_plan_free(better ? *best : plan);
    if (better) {
        *best = plan;
        *best_cost = seconds;
    }
    return GS_OK;
}

/* That rows come from the host alone. Most often that is far from the best: a look at it takes little. */
static gs_status try_apart(gs_plan **best, double *best_cost, gs_schedule_config *other)
{
    const uint64_t most = gs_effort_most(other, *best_cost) / OTHER_EFFORT / APART_EFFORT;
    gs_plan *plan = NULL;
    double seconds = 0;

    if (other->effort != NULL && has_room(*best, other)) {
        const gs_status st = search_other(&plan, &seconds, other, GS_MAX(most, 1));
        gs_plan_free(plan);
        if (st != GS_OK && st != GS_EBUDGET)
            return st;
        if (st == GS_OK && seconds >= APART_NEAR * *best_cost)
            return GS_OK;
    }
    return try_other(best, best_cost, other, GS_APART_SAVES);
}

/* Does the topology say that rows are to come so, and may devices hand them on? */
static bool is_said(const gs_schedule_config *config, gs_topology_share share)
{
    return config->topology->across.share == share && !config->no_chain;
}

/* May rows come from the host alone, and is there time to compare the two? */
static bool may_try_apart(const gs_schedule_config *c, const gs_plan *plan)
{
    const bool again = c->effort != NULL && c->effort->again && c->effort->found.known;

    return !again && gs_may_go_apart(c, plan) &&
           APART_PLANS * (uint64_t)plan->tasks <= gs_effort_most(c, 0) / OTHER_EFFORT;
}

/* Is there a choice between chains and a ring? */
static bool may_be_a_ring(const gs_schedule_config *config)
{
    return is_said(config, GS_SHARE_FASTER) && config->topology->switches > 1 && config->topology->across.joined &&
           config->cost != NULL && !config->ring;
}

gs_status gs_schedule(gs_plan **out, const gs_schedule_config *config)
{
    gs_schedule_config first = *config, other;
    gs_plan *plan = NULL;
    double cost = 0;

    first.ring = first.ring || is_said(config, GS_SHARE_ROUND);
    gs_status st = gs_schedule_search(&plan, &cost, &first);
    if (st == GS_OK)
        plan->ring = first.ring;
    if (st == GS_OK && config->any_plan) {
        *out = plan;
        return GS_OK;
    }
    if (st == GS_OK && config->effort != NULL) /* others that are tried are not known */
        config->effort->found.known &= !may_be_a_ring(&first) && !config->may_load && !gs_deals_differ(config);
    if (st == GS_OK && may_try_apart(&first, plan)) {
        const double chained = cost;
        other = first;
        other.no_chain = true;
        st = try_apart(&plan, &cost, &other);
        first.no_chain = cost < chained;
        if (config->effort != NULL)
            config->effort->found.known &= !first.no_chain;
    }
    if (st == GS_OK && may_be_a_ring(&first)) {
        other = first;
        other.ring = true;
        st = try_other(&plan, &cost, &other, 1);
    }
    if (st == GS_OK && config->may_load && !config->loads && config->cost != NULL) {
        other = first;
        other.loads = true;
        st = try_other(&plan, &cost, &other, LOADS_SAVE);
    }
    if (st == GS_OK && gs_deals_differ(config))
        st = gs_deals_try(&plan, &cost, &first);
    if (st == GS_OK)
        *out = plan;
    else
        gs_plan_free(plan);
    return st;
}
