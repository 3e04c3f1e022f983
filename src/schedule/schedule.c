/* schedule.c - the plan of a run; where devices are not alike, also how much each of them gets. */
#include "schedule/schedule.h"

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/link.h"
#include "schedule/search.h"

/* The device that computes fastest; of several such, the one with the fastest link to the host. */
static uint32_t best_device(const gs_topology *t)
{
    uint32_t best = 0;

    for (uint32_t d = 1; d < t->devices; d++) {
        const double speed = gs_topology_speed(t, d), than = gs_topology_speed(t, best);
        const double link = gs_link_said_bps(t, GS_LINK_TO_DEVICE, d, 0);
        const double of = gs_link_said_bps(t, GS_LINK_TO_DEVICE, best, 0);
        if (speed > than || (speed == than && of > 0 && (link == 0 || link > of)))
            best = d;
    }
    return best;
}

static bool is_alike(const gs_topology *t, uint32_t a, uint32_t b)
{
    return t->on_host[a] == t->on_host[b] && t->memory[a] == t->memory[b] &&
           gs_topology_speed(t, a) == gs_topology_speed(t, b) &&
           gs_link_said_bps(t, GS_LINK_TO_DEVICE, a, 0) == gs_link_said_bps(t, GS_LINK_TO_DEVICE, b, 0);
}

static bool are_alike(const gs_topology *t)
{
    for (uint32_t d = 1; d < t->devices; d++)
        if (!is_alike(t, d, 0))
            return false;
    return true;
}

/* Plans as `other` says; the shorter one of the two plans stays. *full: there is no room for two. *seconds: of the new
 * one; 0: there is none. */
static gs_status try_other(gs_plan **best, double *best_cost, const gs_schedule_config *other, bool *full,
                           double *seconds)
{
    const uint64_t tables = (*best)->table_bytes;
    gs_plan *plan = NULL;

    *seconds = 0;
    *full = other->live_most != 0 && gs_alloc_live_bytes() + tables + tables / 2 > other->live_most;
    if (*full)
        return GS_OK;
    const gs_status st = gs_schedule_search(&plan, seconds, other);
    if (st != GS_OK)
        return st == GS_EBUDGET ? GS_OK : st;
    plan->ring = other->ring;
    gs_plan_free(*seconds < *best_cost ? *best : plan);
    if (*seconds < *best_cost) {
        *best = plan;
        *best_cost = *seconds;
    }
    return GS_OK;
}

static void note_deal(gs_plan_deals *d, uint32_t like, double others, double seconds, bool taken)
{
    if (seconds == 0 || d->count == GS_PLAN_DEALS)
        return;
    d->taken = taken ? d->count : d->taken;
    d->deal[d->count++] = (gs_plan_deal){like, others, seconds};
}

/* What a device that is slower than the best one does may hold the others up: its link, or that of all of them, is
 * busy with its rows. So all that are not like `first` are tried with less than their share, and with nothing. */
static gs_status deal_less(gs_plan **best, double *best_cost, const gs_schedule_config *config, uint32_t first,
                           gs_plan_deals *tried)
{
    static const double less[] = {0.7, 0.4, 0};
    const gs_topology *const t = config->topology;
    double share[GS_TOPOLOGY_DEVICES];
    gs_schedule_config other = *config;
    bool full = false;
    double seconds = 0;
    gs_status st = GS_OK;

    other.ring = (*best)->ring;
    other.share = share;
    other.refusal = NULL;
    other.no_sizes = true;
    for (size_t k = 0; k < GS_ARRAY_LEN(less) - (t->all ? 1 : 0) && st == GS_OK && !full; k++) {
        for (uint32_t d = 0; d < t->devices; d++)
            share[d] = gs_topology_speed(t, d) * (is_alike(t, d, first) ? 1 : less[k]);
        st = try_other(best, best_cost, &other, &full, &seconds);
        note_deal(tried, first, less[k], seconds, *best_cost == seconds);
    }
    return st;
}

/* Is there a choice between chains and a ring? */
static bool may_be_a_ring(const gs_schedule_config *config)
{
    const gs_topology *const t = config->topology;
    return t != NULL && t->switches > 1 && t->across.joined && t->across.share == GS_SHARE_FASTER &&
           config->cost != NULL && !config->ring && !config->no_chain;
}

/* Of devices of two kinds, or of which some have more memory, the plan does not know beforehand which are the better
 * ones. */
static gs_status deal_all_ways(gs_plan **best, double *best_cost, const gs_schedule_config *config)
{
    const gs_topology *const t = config->topology;
    const uint32_t first = best_device(t);
    uint32_t other = 0;
    gs_plan_deals tried = {.count = 0};
    note_deal(&tried, first, 1, *best_cost, true);
    gs_status st = deal_less(best, best_cost, config, first, &tried);

    while (other < t->devices && t->on_host[other] == t->on_host[first] && t->memory[other] == t->memory[first])
        other++;
    if (st == GS_OK && other < t->devices)
        st = deal_less(best, best_cost, config, other, &tried);
    (*best)->deals = tried;
    return st;
}

gs_status gs_schedule(gs_plan **out, const gs_schedule_config *config)
{
    gs_schedule_config first = *config, ring;
    gs_plan *plan = NULL;
    double cost = 0, seconds;
    bool full;

    if (config->topology != NULL && config->topology->across.share == GS_SHARE_RING && !config->no_chain)
        first.ring = true;
    gs_status st = gs_schedule_search(&plan, &cost, &first);
    if (st == GS_OK)
        plan->ring = first.ring;
    if (st == GS_OK && may_be_a_ring(&first)) {
        ring = first;
        ring.ring = true;
        ring.refusal = NULL;
        ring.no_sizes = true;
        st = try_other(&plan, &cost, &ring, &full, &seconds);
    }
    if (st == GS_OK && config->topology != NULL && config->cost != NULL && config->share == NULL &&
        !are_alike(config->topology))
        st = deal_all_ways(&plan, &cost, &first);
    if (st == GS_OK)
        *out = plan;
    else
        gs_plan_free(plan);
    return st;
}
