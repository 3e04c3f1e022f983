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
        const double link = gs_link_said_bps(t, d, GS_LINK_TO_DEVICE);
        const double of = gs_link_said_bps(t, best, GS_LINK_TO_DEVICE);
        if (speed > than || (speed == than && of > 0 && (link == 0 || link > of)))
            best = d;
    }
    return best;
}

static bool is_alike(const gs_topology *t, uint32_t a, uint32_t b)
{
    return gs_topology_speed(t, a) == gs_topology_speed(t, b) &&
           gs_link_said_bps(t, a, GS_LINK_TO_DEVICE) == gs_link_said_bps(t, b, GS_LINK_TO_DEVICE);
}

static bool are_alike(const gs_topology *t)
{
    for (uint32_t d = 1; d < t->devices; d++)
        if (!is_alike(t, d, 0))
            return false;
    return true;
}

/* What a device that is slower than the best one does may hold the others up: its link, or that of all of them, is
 * busy with its rows. So it is tried with less than its share, and with nothing. */
static gs_status deal_less(gs_plan **best, double *best_cost, const gs_schedule_config *config)
{
    static const double less[] = {0.7, 0.4, 0};
    const gs_topology *const t = config->topology;
    const uint32_t first = best_device(t);
    double share[GS_TOPOLOGY_DEVICES];
    gs_schedule_config other = *config;

    other.share = share;
    other.refusal = NULL;
    other.no_sizes = true;
    for (size_t k = 0; k < GS_ARRAY_LEN(less); k++) {
        const uint64_t tables = (*best)->table_bytes;
        gs_plan *plan = NULL;
        double cost = 0;
        if (config->live_most != 0 && gs_alloc_live_bytes() + tables + tables / 2 > config->live_most)
            break; /* no room for two plans: the first one stands */
        for (uint32_t d = 0; d < t->devices; d++)
            share[d] = gs_topology_speed(t, d) * (is_alike(t, d, first) ? 1 : less[k]);
        const gs_status st = gs_schedule_search(&plan, &cost, &other);
        if (st == GS_OK && cost < *best_cost) {
            gs_plan_free(*best);
            *best = plan;
            *best_cost = cost;
        } else if (st == GS_OK) {
            gs_plan_free(plan);
        } else if (st != GS_EBUDGET) {
            return st;
        }
    }
    return GS_OK;
}

gs_status gs_schedule(gs_plan **out, const gs_schedule_config *config)
{
    gs_plan *plan = NULL;
    double cost = 0;
    gs_status st = gs_schedule_search(&plan, &cost, config);

    if (st == GS_OK && config->topology != NULL && config->cost != NULL && config->share == NULL &&
        !are_alike(config->topology))
        st = deal_less(&plan, &cost, config);
    if (st == GS_OK)
        *out = plan;
    else
        gs_plan_free(plan);
    return st;
}
