/* schedule.c - searches for the choice of memory that takes the least time.
 *
 * Memory is divided between sums (larger blocks: operand rows are read fewer
 * times an epoch), the staging ring (reads run further ahead) and what stays
 * resident. A plan is cheap to make, so candidates are made whole, played through
 * with the cost model and compared by seconds.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/schedule_internal.h"
#include "schedule/simulate.h"

/* A ring larger than this no longer helps an SSD; the rest is better used to keep data. */
#define RING_WANTED (128 * GS_MIB)
/* Of plans with more tasks than this, fewer are tried. */
#define MANY_TASKS 200000u

/* Seconds of an epoch, with wear; without a cost model, bytes. */
static gs_status plan_cost(double *out, const gs_layout *l, const gs_plan *plan)
{
    const gs_program *const p = l->program;
    const gs_cost *const cost = l->config->cost;
    double sum = 0;
    for (uint32_t i = 0; i < p->passes; i++) {
        const double weight = gs_pass_weight(l, i), written = (double)plan->pass[i].written_bytes;
        gs_simulation x = {.seconds = (double)plan->pass[i].read_bytes + written};
        const gs_simulation_input input = {plan, p, l->set, l->parts, cost, l->config->topology, i};
        gs_status st;
        if (cost != NULL && (st = gs_simulate(&x, &input)) != GS_OK)
            return st;
        sum += weight * (x.seconds + (cost != NULL ? GS_WEAR_SHARE * written / cost->write_bps : 0));
    }
    *out = sum;
    return GS_OK;
}

/* A plan with this arena, ring and kept bytes, if it exists and its real total,
 * tables included, is within the host budget. */
static gs_status try_choice(gs_plan **out, const gs_layout *l, gs_choice *c, uint64_t keep, uint64_t ring)
{
    gs_plan *plan = NULL;
    gs_status st;

    const bool whole = gs_choice_keep(c, l, l->config->force_spill ? 0 : keep);
    c->ring_bytes = gs_align_down(whole ? GS_BLOCK_BYTES : ring, GS_BLOCK_BYTES);
    st = gs_emit(&plan, l, c);
    if (st == GS_EAGAIN && !c->chunks_alone) {
        c->chunks_alone = true;
        st = gs_emit(&plan, l, c);
        c->chunks_alone = false;
    }
    if (st != GS_OK)
        return st;
    if (plan->host_bytes > l->config->host_memory) {
        gs_plan_free(plan);
        return GS_EAGAIN;
    }
    *out = plan;
    return GS_OK;
}

/* Of the host's memory, that devices take. */
static uint64_t devices_bytes(const gs_layout *l, const gs_choice *c)
{
    const gs_schedule_config *cfg = l->config;
    return cfg->unified ? gs_layout_devices(l) * (cfg->device_fixed + c->arena_bytes + c->staging_bytes) : 0;
}

/* Host bytes left for ring and kept data under this arena, 0 where nothing is. */
static uint64_t host_left(const gs_layout *l, const gs_choice *c, uint64_t tables)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t used = cfg->host_fixed + tables + devices_bytes(l, c);
    return used < cfg->host_memory ? cfg->host_memory - used : 0;
}

/* The best plan so far, and how it is made again: an arena that gives its blocks, and who gets what of the host's
 * memory. */
struct best {
    gs_plan *plan; /* NULL: none was found, or there was no room for it beside the next one */
    bool found;
    double cost;
    uint64_t arena, ring, keep;
    uint64_t capacity; /* of the cache; 0: there is none */
    uint64_t tables;   /* bytes of the plan */
    uint32_t tasks;
};

/* Is memory short for another plan beside the best one, which may be larger? */
static bool is_short(const struct best *best, const gs_layout *l)
{
    const uint64_t most = l->config->live_most;
    return most != 0 && gs_alloc_live_bytes() + best->tables + best->tables / 2 > most;
}

/* Then the best one is freed, to be made again. */
static void make_room(struct best *best, const gs_layout *l)
{
    if (best->plan == NULL || !is_short(best, l))
        return;
    gs_plan_free(best->plan);
    best->plan = NULL;
}

/* Keeps the better of the two and frees the other. */
static gs_status compare(struct best *best, const gs_layout *l, const gs_choice *c, gs_plan *plan)
{
    double cost;
    const gs_status st = plan_cost(&cost, l, plan);
    const bool better = st == GS_OK && (!best->found || cost < best->cost);
    gs_plan_free(better ? best->plan : plan);
    if (better)
        *best = (struct best){
            .plan = plan,
            .found = true,
            .cost = cost,
            .arena = c->held_bytes,
            .ring = c->ring_bytes,
            .keep = c->keep_bytes,
            .capacity = c->cache != NULL ? c->cache_bytes : 0,
            .tables = plan->table_bytes,
            .tasks = plan->tasks,
        };
    return st;
}

/* With this ring; where that is too small for what is live together, with one that takes from what is kept. */
static gs_status try_ring(struct best *best, const gs_layout *l, gs_choice *c, uint64_t left, uint64_t ring)
{
    gs_plan *plan = NULL;
    make_room(best, l);
    gs_status st = try_choice(&plan, l, c, left - ring, ring);
    for (uint64_t keep = (left - ring) / 2; st == GS_EAGAIN && keep >= l->config->array_sum_bytes; keep /= 2)
        st = try_choice(&plan, l, c, keep, left - keep);
    if (st == GS_EAGAIN)
        st = try_choice(&plan, l, c, 0, left);
    return st == GS_OK ? compare(best, l, c, plan) : st;
}

/* Rings from the largest that helps down to a quarter of it: what one does not take is kept. Only
 * the first may take more than its size. */
static gs_status try_rings(struct best *best, const gs_layout *l, gs_choice *c, uint64_t left, bool many)
{
    const uint64_t largest = GS_MIN(left / 4 * 3, RING_WANTED);
    gs_status st = try_ring(best, l, c, left, largest);

    for (uint64_t ring = largest / 2; many && st == GS_OK && ring >= largest / 4; ring /= 2) {
        gs_plan *plan = NULL;
        make_room(best, l);
        const gs_status tried = try_choice(&plan, l, c, left - ring, ring);
        if (tried == GS_EAGAIN)
            break;
        st = tried == GS_OK ? compare(best, l, c, plan) : tried;
    }
    return st;
}

/* Plans with one arena. Tables are part of the budget but known only
 * afterwards: a first plan tells their size. */
static gs_status try_arena(struct best *best, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    gs_plan *probe = NULL;
    gs_status st;

    if (!gs_choice_set_arena(c, l, arena))
        return GS_EAGAIN;
    gs_choice_keep(c, l, 0);
    c->ring_bytes = UINT64_MAX / 4;
    make_room(best, l);
    if ((st = gs_emit(&probe, l, c)) != GS_OK)
        return st;
    const uint64_t left = host_left(l, c, probe->table_bytes + probe->table_bytes / 8);
    const bool many = l->config->cost != NULL && probe->tasks <= MANY_TASKS;
    gs_plan_free(probe);
    if (left < GS_BLOCK_BYTES)
        return GS_EAGAIN;

    gs_choice_keep(c, l, 0);
    /* Whole in memory? Then there is nothing to stage. */
    if (!l->config->force_spill && gs_choice_keep(c, l, left - GS_BLOCK_BYTES)) {
        gs_plan *plan = NULL;
        st = try_choice(&plan, l, c, left - GS_BLOCK_BYTES, GS_BLOCK_BYTES);
        return st == GS_OK ? compare(best, l, c, plan) : st;
    }
    return try_rings(best, l, c, left, many);
}

/* The smallest ring with which anything works: doubling, then halving the gap. */
static gs_status least_ring(uint64_t *out, uint64_t *tables, const gs_layout *l, gs_choice *c)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES;
    uint64_t low = 0, high = step;
    gs_plan *plan = NULL;
    gs_status st;

    gs_choice_keep(c, l, 0);
    c->chunks_alone = true;
    for (;; high *= 2) {
        c->ring_bytes = high;
        if ((st = gs_emit(&plan, l, c)) == GS_OK || st != GS_EAGAIN || high > UINT64_MAX / 8)
            break;
        low = high;
    }
    if (st != GS_OK)
        return st;
    *tables = plan->table_bytes;
    gs_plan_free(plan);
    while (high - low > step) {
        c->ring_bytes = gs_align_up(low + (high - low) / 2, step);
        if (c->ring_bytes >= high)
            break;
        st = gs_emit(&plan, l, c);
        if (st == GS_OK) {
            gs_plan_free(plan);
            high = c->ring_bytes;
        } else if (st == GS_EAGAIN) {
            low = c->ring_bytes;
        } else {
            return st;
        }
    }
    *out = high;
    return GS_OK;
}

/* As a user types it, rounded up. */
static const char *mib_up(char *buf, size_t cap, uint64_t bytes)
{
    snprintf(buf, cap, "%lluM", (unsigned long long)gs_div_up(bytes, GS_MIB));
    return buf;
}

/* The smallest host budget: larger blocks need more memory for sums, but fewer
 * tasks, whose tables count too. */
static gs_status least_host(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t least_arena)
{
    const gs_schedule_config *cfg = l->config;
    uint64_t least = UINT64_MAX;
    for (uint64_t arena = least_arena; arena <= 8 * least_arena; arena *= 2) {
        uint64_t ring = 0, tables = 0;
        gs_status st;
        if (arena > cfg->device_memory - cfg->device_fixed || !gs_choice_set_arena(c, l, arena))
            break;
        /* several devices: no room for what is staged there */
        if ((st = least_ring(&ring, &tables, l, c)) == GS_EAGAIN)
            break;
        if (st != GS_OK)
            return st;
        least = GS_MIN(least, cfg->host_fixed + tables + tables / 8 + ring + GS_BLOCK_BYTES + devices_bytes(l, c));
    }
    *out = least;
    return GS_OK;
}

/* Device memory of several: the least arena, and the smallest staging ring behind it with which anything works. */
static gs_status least_device(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES;
    gs_status st = GS_EAGAIN;

    *out = l->config->device_fixed + arena;
    if (l->config->topology == NULL || !gs_choice_set_arena(c, l, arena))
        return GS_OK;
    gs_choice_keep(c, l, 0);
    c->ring_bytes = UINT64_MAX / 4;
    for (c->staging_bytes = step; st == GS_EAGAIN && c->staging_bytes < UINT64_MAX / 8;
         c->staging_bytes += GS_MAX(step, c->staging_bytes / 8)) {
        gs_plan *plan = NULL;
        st = gs_emit(&plan, l, c);
        gs_plan_free(plan);
        *out = l->config->device_fixed + c->arena_bytes + c->staging_bytes;
    }
    return st;
}

static void note_refusal(const gs_schedule_config *config, gs_refusal refusal)
{
    if (config->refusal != NULL)
        *config->refusal = refusal;
}

/* Of one device with memory of its own, room for copies grows with the budget (gs_schedule_launch_rows()). */
static uint64_t with_copies(const gs_schedule_config *cfg, uint64_t least)
{
    const bool grows = !cfg->unified && cfg->topology == NULL && least >= GS_OWN_COPIES_FROM;
    return least + (grows ? least / (GS_OWN_COPIES_SHARE - 1) + 1 : 0);
}

/* Says which budget is too small, and the smallest one that works. */
static gs_status refuse(const gs_layout *l, gs_choice *c)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t arena = gs_layout_least_arena(l);
    uint64_t least = 0;
    char have[32], need[32], fixed[32];
    gs_status st;

    if (cfg->no_sizes)
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    c->any_tables = true;
    if ((st = least_device(&least, l, c, arena)) != GS_OK)
        return st;
    if (least > cfg->device_memory) {
        least = with_copies(cfg, least);
        note_refusal(cfg, (gs_refusal){.device = least});
        return gs_fail(GS_EBUDGET,
                       ".device_memory %s is too small: this model on this store needs at least %s"
                       " (or a store with more .parts, whose intervals are smaller)",
                       gs_size_format(have, sizeof(have), cfg->device_memory),
                       mib_up(need, sizeof(need), least));
    }
    if ((st = least_host(&least, l, c, arena)) != GS_OK)
        return st;
    note_refusal(cfg, (gs_refusal){.host = least + cfg->host_varies});
    return gs_fail(GS_EBUDGET,
                   ".host_memory %s is too small: this model on this store needs at least %s, %s of it"
                   " for the program itself (or a store with more .parts, whose chunks are smaller)",
                   gs_size_format(have, sizeof(have), cfg->host_memory),
                   mib_up(need, sizeof(need), least + cfg->host_varies),
                   gs_size_format(fixed, sizeof(fixed), cfg->host_fixed));
}

/* ---- the cache: what the store's data leaves to be kept is decided access by access ---- */

/* Lists the accesses of the pass that is cached. */
static gs_status trace_accesses(const gs_layout *l, gs_choice *c)
{
    gs_plan *probe = NULL;
    gs_status st;

    c->ring_bytes = UINT64_MAX / 4;
    c->accesses = 0;
    c->tracing = true;
    st = gs_emit(&probe, l, c);
    c->tracing = false;
    gs_plan_free(probe);
    return st;
}

/* GS_EAGAIN: it does not fit. The plan is compared with the best one, or given out where there is none. */
static gs_status plan_cached(gs_plan **out, struct best *best, const gs_layout *l, gs_choice *c, uint64_t ring,
                             uint64_t capacity)
{
    gs_cache_plan cache = {0};
    gs_plan *plan = NULL;
    const uint32_t units = l->program->arrays * l->parts + l->sets * l->parts * l->parts;
    gs_status st = trace_accesses(l, c);

    if (st != GS_OK || (st = gs_cache_plan_make(&cache, c->access, c->accesses, units, capacity, true)) != GS_OK)
        return st;
    c->ring_bytes = ring;
    c->cache = &cache;
    c->cache_bytes = capacity;
    if ((st = gs_emit(&plan, l, c)) == GS_OK && plan->host_bytes > l->config->host_memory) {
        gs_plan_free(plan);
        st = GS_EAGAIN;
    }
    if (st == GS_OK && best != NULL)
        st = compare(best, l, c, plan);
    else if (st == GS_OK)
        *out = plan;
    c->cache = NULL;
    gs_cache_plan_drop(&cache);
    return st;
}

/* With the best plan's blocks and ring; `keep`: arrays of the run go before what the cache could hold. */
static gs_status try_cache(struct best *best, const gs_layout *l, gs_choice *c, uint64_t ring, bool keep)
{
    const uint64_t left = host_left(l, c, best->tables + best->tables / 8);
    gs_status st;

    if (left <= ring)
        return GS_OK;
    make_room(best, l);
    gs_choice_keep(c, l, keep ? left - ring : 0);
    st = plan_cached(NULL, best, l, c, ring, gs_align_down(left - ring - c->resident_bytes, GS_BLOCK_BYTES));
    return st == GS_EAGAIN ? GS_OK : st; /* the plan without it stands */
}

static gs_status with_cache(struct best *best, const gs_layout *l, gs_choice *c)
{
    const uint64_t ring = best->ring;
    gs_status st = GS_OK;

    /* A device with memory of its own has copies of what is resident, and does not expect it to change. */
    if (c->cached_pass == l->program->passes || !l->config->unified || l->config->topology != NULL ||
        l->config->force_spill || best->cost == 0 || best->tasks > MANY_TASKS ||
        !gs_choice_set_arena(c, l, best->arena))
        return GS_OK;
    c->made_only = true;
    for (int keep = 1; keep >= 0 && st == GS_OK; keep--)
        st = try_cache(best, l, c, ring, keep);
    c->made_only = false;
    return st;
}

/* ---- the order of columns ---- */

struct again {
    const struct best *best;
    const gs_layout *l;
    gs_choice *c;
};

static gs_status plan_again(gs_plan **out, void *context)
{
    const struct again *const a = context;
    const struct best *const b = a->best;
    gs_status st;

    if (!gs_choice_set_arena(a->c, a->l, b->arena))
        return GS_EAGAIN;
    if (b->capacity == 0)
        return try_choice(out, a->l, a->c, b->keep, b->ring);
    a->c->made_only = true;
    gs_choice_keep(a->c, a->l, b->keep);
    st = plan_cached(out, NULL, a->l, a->c, b->ring, b->capacity);
    a->c->made_only = false;
    return st;
}

static gs_status with_order(struct best *best, const gs_layout *l, gs_choice *c)
{
    struct again again = {best, l, c};
    if (c->cached_pass == l->program->passes || l->config->cost == NULL || l->config->no_swap ||
        l->config->topology != NULL || best->cost == 0 || best->tasks > MANY_TASKS ||
        !gs_choice_set_arena(c, l, best->arena))
        return GS_OK;
    return gs_order_search(&best->plan, l, c, c->cached_pass, is_short(best, l), plan_again, &again);
}

static gs_status search(gs_plan **out, const gs_layout *l, gs_choice *c)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t least = gs_layout_least_arena(l);
    struct best best = {0};
    gs_status st = GS_OK;

    if (cfg->device_memory < cfg->device_fixed + least)
        return refuse(l, c);
    /* From all of the device's memory down to the least, by quarters. */
    for (uint64_t arena = cfg->device_memory - cfg->device_fixed;; arena = arena / 4 * 3) {
        arena = GS_MAX(arena, least);
        if ((st = try_arena(&best, l, c, arena)) != GS_OK && st != GS_EAGAIN)
            break;
        st = GS_OK;
        if (arena == least || (best.found && best.cost == 0))
            break;
        arena = GS_MIN(arena, c->held_bytes ? c->held_bytes : arena);
    }
    if (st == GS_OK && !best.found)
        return refuse(l, c);
    while (c->cached_pass < l->program->passes && strcmp(l->program->pass[c->cached_pass].name, "train") != 0)
        c->cached_pass++;
    if (st == GS_OK)
        st = with_cache(&best, l, c);
    if (st == GS_OK && best.plan == NULL)
        st = plan_again(&best.plan, &(struct again){&best, l, c});
    if (st == GS_OK)
        st = with_order(&best, l, c);
    if (st == GS_OK)
        *out = best.plan;
    else
        gs_plan_free(best.plan);
    return st;
}

/* With everything in memory, if there is room: GS_EAGAIN where there is not. */
static gs_status keep_all(gs_plan **out, const gs_layout *l, gs_choice *c)
{
    const gs_schedule_config *cfg = l->config;
    if (cfg->force_spill || cfg->device_memory < cfg->device_fixed ||
        !gs_choice_set_arena(c, l, cfg->device_memory - cfg->device_fixed) || !gs_choice_keep(c, l, cfg->host_memory))
        return GS_EAGAIN;
    return try_choice(out, l, c, cfg->host_memory, GS_BLOCK_BYTES);
}

static gs_status schedule(gs_plan **out, const gs_schedule_config *config, bool staged)
{
    gs_layout l = {0};
    gs_choice c = {0};
    gs_status st;

    if ((st = gs_layout_make(&l, config, staged)) != GS_OK)
        return st;
    if ((st = gs_choice_make(&c, &l)) == GS_OK)
        st = staged ? search(out, &l, &c) : keep_all(out, &l, &c);
    gs_choice_drop(&c);
    gs_layout_drop(&l);
    return st;
}

gs_status gs_schedule(gs_plan **out, const gs_schedule_config *config)
{
    /* What comes to several devices is staged there, wherever it is on the host. */
    const gs_status st = config->topology == NULL ? schedule(out, config, false) : GS_EAGAIN;
    return st == GS_EAGAIN ? schedule(out, config, true) : st;
}
