/* refuse.c - no plan fits: which budget is too small, and what is the smallest that works?
 *
 * Found by making plans with less and less memory, which are thrown away.
 */
#include "schedule/refuse.h"

#include <stdio.h>

#include "base/size.h"
#include "schedule/deal.h"
#include "schedule/device_cache.h"
#include "schedule/emit.h"
#include "schedule/keep.h"
#include "schedule/regrid.h"

uint64_t gs_choice_devices_bytes(const gs_choice *c, const gs_layout *l)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t each = cfg->device_fixed + c->arena_bytes + c->staging_bytes;
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < gs_layout_devices(l); d++)
        bytes += gs_layout_on_host(l, d) ? each + c->device.used[d] : 0;
    return bytes;
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
    for (uint64_t arena = least_arena; arena <= GS_REFUSED_ARENAS * least_arena; arena *= 2) {
        uint64_t ring = 0, tables = 0;
        gs_status st;
        if (arena > cfg->device_memory - cfg->device_fixed || !gs_choice_set_arena(c, l, arena))
            break;
        /* several devices: no room for what is staged there */
        if ((st = least_ring(&ring, &tables, l, c)) == GS_EAGAIN)
            break;
        if (st != GS_OK)
            return st;
        least = GS_MIN(least, cfg->host_fixed + tables + tables / 8 + ring + GS_BLOCK_BYTES +
                                  gs_choice_devices_bytes(c, l));
    }
    *out = least;
    return GS_OK;
}

/* Does anything work with this staging ring? */
static gs_status try_staging(const gs_layout *l, gs_choice *c, uint64_t bytes)
{
    gs_plan *plan = NULL;
    c->staging_bytes = bytes;
    const gs_status st = gs_emit(&plan, l, c);
    gs_plan_free(plan);
    return st;
}

/* Memory of devices with copies as tasks: the least arena, and behind it the smallest staging ring with which anything
 * works, to a hundredth of it: growing, then halving the gap. */
static gs_status least_device(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES;
    uint64_t low = 0, high = step;
    gs_status st;

    *out = l->config->device_fixed + arena;
    if (l->config->topology == NULL || !gs_choice_set_arena(c, l, arena))
        return GS_OK;
    gs_choice_keep(c, l, 0);
    c->ring_bytes = UINT64_MAX / 4;
    while ((st = try_staging(l, c, high)) == GS_EAGAIN && high < UINT64_MAX / 8) {
        low = high;
        high += GS_MAX(step, high / 8);
    }
    while (st == GS_OK && high - low > GS_MAX(step, high / 100)) {
        const uint64_t middle = gs_align_up(low + (high - low) / 2, GS_BLOCK_BYTES);
        const gs_status tried = try_staging(l, c, middle);
        if (tried != GS_OK && tried != GS_EAGAIN)
            return tried;
        *(tried == GS_OK ? &high : &low) = middle;
    }
    *out = l->config->device_fixed + c->arena_bytes + high;
    return st;
}

static void note_refusal(const gs_schedule_config *config, gs_refusal refusal)
{
    if (config->refusal != NULL)
        *config->refusal = refusal;
}

/* "; or partition again with .parts 24", where a finer grid would do. `device`: what this one's devices need. */
static const char *finer_grid(char *buf, size_t cap, const gs_layout *l, gs_choice *c, uint64_t device)
{
    uint64_t ring = 0, tables = 0;
    uint32_t parts = 0;

    if (gs_choice_set_arena(c, l, gs_layout_least_arena(l))) {
        c->staging_bytes = l->config->topology != NULL ? device - l->config->device_fixed - c->arena_bytes : 0;
        if (least_ring(&ring, &tables, l, c) == GS_OK)
            parts = gs_regrid_parts(l, c->staging_bytes, ring, tables);
    }
    *buf = '\0';
    if (parts > 0)
        snprintf(buf, cap, "; or partition again with .parts %u", parts);
    return buf;
}

gs_status gs_choice_refuse(gs_choice *c, const gs_layout *l)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t arena = gs_layout_least_arena(l);
    uint64_t least = 0, device = 0;
    char have[32], need[32], fixed[32], finer[64];
    gs_status st;

    gs_device_cache_drop(c);
    if (cfg->no_sizes)
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    c->any_tables = true;
    if ((st = least_device(&device, l, c, arena)) != GS_OK)
        return st;
    if (device > cfg->device_memory) {
        note_refusal(cfg, (gs_refusal){.device = device});
        return gs_fail(GS_EBUDGET,
                       ".device_memory %s is too small: this model on this store needs at least %s%s",
                       gs_size_format(have, sizeof(have), cfg->device_memory), mib_up(need, sizeof(need), device),
                       finer_grid(finer, sizeof(finer), l, c, device));
    }
    if ((st = least_host(&least, l, c, arena)) != GS_OK)
        return st;
    note_refusal(cfg, (gs_refusal){.host = least + cfg->host_varies});
    return gs_fail(GS_EBUDGET,
                   ".host_memory %s is too small: this model on this store needs at least %s, %s of it"
                   " for the program itself%s",
                   gs_size_format(have, sizeof(have), cfg->host_memory),
                   mib_up(need, sizeof(need), least + cfg->host_varies),
                   gs_size_format(fixed, sizeof(fixed), cfg->host_fixed),
                   finer_grid(finer, sizeof(finer), l, c, device));
}
