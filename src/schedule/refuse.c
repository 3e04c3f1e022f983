/* refuse.c - no plan fits: which budget is too small, and what is the smallest that works?
 *
 * Found by making plans with less and less memory, which are thrown away.
 */
#include "schedule/refuse.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "schedule/deal.h"
#include "schedule/device_cache.h"
#include "schedule/emit.h"
#include "schedule/keep.h"
#include "schedule/regrid.h"

/* The smallest staging ring is looked for to one part of it in so many: where a refusal names a device's memory; and
 * where it is a term of the host's, for which several arenas are tried. */
#define DEVICE_PART 100u
#define MORE_TRIES 32
/* And the ring, which is a small term, to one part of it in so many. */
#define RING_PART 128u
#define STAGING_PART 16u

uint64_t gs_choice_devices_bytes(const gs_choice *c, const gs_layout *l)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t each = cfg->device_fixed + c->arena_bytes + c->staging_bytes;
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < gs_layout_devices(l); d++)
        bytes += gs_layout_on_host(l, d) ? each + c->device.used[d] : 0;
    return bytes;
}

/* The smallest ring with which anything works, of at most about `most`: doubling, then halving the gap. */
static gs_status least_ring(uint64_t *out, uint64_t *tables, const gs_layout *l, gs_choice *c, uint64_t most)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES;
    uint64_t low = 0, high = step;
    gs_plan *plan = NULL;
    gs_status st;

    gs_choice_keep(c, l, 0);
    c->chunks_alone = true;
    for (;; high *= 2) {
        c->ring_bytes = high;
        if ((st = gs_emit_count(&plan, l, c)) != GS_EAGAIN || c->crammed || high > most)
            break;
        low = high;
    }
    if (st != GS_OK)
        return st;
    *tables = plan->table_bytes;
    gs_plan_free(plan);
    while (high - low > GS_MAX(step, high / RING_PART)) {
        c->ring_bytes = gs_align_up(low + (high - low) / 2, step);
        if (c->ring_bytes >= high)
            break;
        st = gs_emit_count(&plan, l, c);
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

/* Does anything work with this staging ring? */
static gs_status try_staging(const gs_layout *l, gs_choice *c, uint64_t bytes)
{
    gs_plan *plan = NULL;
    c->staging_bytes = bytes;
    const gs_status st = gs_emit_count(&plan, l, c);
    gs_plan_free(plan);
    return st;
}

/* Behind the arena that is set, the smallest staging ring with which anything works, to one part of it in `part`:
 * doubling, then halving the gap. A larger ring may fail by its turns where a smaller one works: so below `most`, a
 * sixteenth at a time is tried, too. Tables are as long with another ring. GS_EAGAIN: none works. */
static gs_status least_staging(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t most, uint64_t part)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES;
    uint64_t low = 0, high = GS_MIN(step, most);
    gs_status st;

    gs_choice_keep(c, l, 0);
    c->ring_bytes = UINT64_MAX / 4;
    while ((st = try_staging(l, c, high)) == GS_EAGAIN && high < most && !c->crammed) {
        low = high;
        high = GS_MIN(2 * high, most);
    }
    const uint64_t less = gs_align_up(most / 16, GS_BLOCK_BYTES);
    while (st == GS_EAGAIN && high > low + less && !c->crammed)
        st = try_staging(l, c, high -= less);
    while (st == GS_OK && high - low > GS_MAX(step, high / part)) {
        const uint64_t middle = gs_align_up(low + (high - low) / 2, GS_BLOCK_BYTES);
        const gs_status tried = try_staging(l, c, middle);
        if (tried != GS_OK && tried != GS_EAGAIN)
            return tried;
        *(tried == GS_OK ? &high : &low) = middle;
    }
    *out = c->staging_bytes = high;
    return st;
}

static bool any_on_host(const gs_layout *l)
{
    bool any = false;
    for (uint32_t d = 0; l->config->topology != NULL && d < gs_layout_devices(l); d++)
        any = any || gs_layout_on_host(l, d);
    return any;
}

gs_status gs_choice_least(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t arena, uint64_t ring_most)
{
    const gs_schedule_config *cfg = l->config;
    uint64_t tables = 0;
    gs_status st = GS_OK;

    if (arena > cfg->device_memory - cfg->device_fixed || !gs_choice_set_arena(c, l, arena))
        return GS_EAGAIN;
    if (any_on_host(l))
        st = least_staging(&out->staging, l, c, c->spare_bytes, STAGING_PART);
    if (st == GS_OK)
        st = least_ring(&out->ring, &tables, l, c, ring_most);
    out->host = cfg->host_fixed + tables + tables / 8 + out->ring + GS_BLOCK_BYTES + gs_choice_devices_bytes(c, l);
    return st;
}

/* The smallest host budget: larger blocks need more memory for sums, but fewer
 * tasks, whose tables count too. */
static gs_status least_host(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t least_arena)
{
    *out = UINT64_MAX;
    for (uint64_t arena = least_arena; arena <= GS_REFUSED_ARENAS * least_arena; arena *= 2) {
        gs_least least = {0};
        const gs_status st = gs_choice_least(&least, l, c, arena, UINT64_MAX / 8);
        if (st == GS_EAGAIN) /* several devices: no room for what is staged there */
            break;
        if (st != GS_OK)
            return st;
        *out = GS_MIN(*out, least.host);
    }
    return GS_OK;
}

/* Memory of devices with copies as tasks: the least arena, and behind it the smallest staging ring. */
static gs_status least_device(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    uint64_t staging;
    gs_status st;

    *out = l->config->device_fixed + arena;
    if (l->config->topology == NULL || !gs_choice_set_arena(c, l, arena))
        return GS_OK;
    st = least_staging(&staging, l, c, UINT64_MAX / 8, DEVICE_PART);
    *out = l->config->device_fixed + c->arena_bytes + staging;
    return st;
}

gs_status gs_refusal_fail(const gs_refusal *r)
{
    char have[32], need[32], fixed[32], own[128] = "", finer[64] = "";

    if (r->fixed > 0)
        snprintf(own, sizeof(own), ", %s of it for the program itself", gs_size_format(fixed, sizeof(fixed), r->fixed));
    if (r->fixed > 0 && r->libraries > 0) {
        const size_t n = strlen(own);
        snprintf(own + n, sizeof(own) - n, " (%s for the libraries of the GPU)",
                 gs_size_format(fixed, sizeof(fixed), r->libraries));
    }
    if (r->parts > 0)
        snprintf(finer, sizeof(finer), "; or partition again with .parts %u", r->parts);
    return gs_fail(GS_EBUDGET, ".%s_memory %s is too small: this model on this store needs at least %s%s%s",
                   r->host > 0 ? "host" : "device", gs_size_format(have, sizeof(have), r->have),
                   mib_up(need, sizeof(need), GS_MAX(r->host, r->device)), own, finer);
}

static gs_status refuse(const gs_schedule_config *config, gs_refusal refusal)
{
    if (config->refusal != NULL)
        *config->refusal = refusal;
    return gs_refusal_fail(&refusal);
}

/* Of a finer grid, where that would do; or 0. `device`: what this one's devices need. */
static uint32_t finer_grid(const gs_layout *l, gs_choice *c, uint64_t device)
{
    uint64_t ring = 0, tables = 0;

    if (!gs_choice_set_arena(c, l, gs_layout_least_arena(l)))
        return 0;
    c->staging_bytes = l->config->topology != NULL ? device - l->config->device_fixed - c->arena_bytes : 0;
    return least_ring(&ring, &tables, l, c, UINT64_MAX / 8) == GS_OK
               ? gs_regrid_parts(l, c->staging_bytes, ring, tables)
               : 0;
}

static gs_status refuse_device(gs_choice *c, const gs_layout *l, uint64_t device)
{
    const gs_schedule_config *const cfg = l->config;
    return refuse(cfg, (gs_refusal){.device = device, .have = cfg->device_memory, .parts = finer_grid(l, c, device)});
}

/* Both budgets are named by the host's: the device's is a part of it where none was given. */
static gs_status refuse_host(gs_choice *c, const gs_layout *l, uint64_t arena, uint64_t device)
{
    const gs_schedule_config *const cfg = l->config;
    gs_schedule_config enough = *cfg;
    gs_layout wide = *l;
    uint64_t least = 0;
    gs_status st;

    enough.device_memory = GS_MAX(cfg->device_memory, device);
    wide.config = &enough;
    st = least_host(&least, &wide, c, arena);
    for (int k = 0; st == GS_OK && least == UINT64_MAX && k < MORE_TRIES; k++) {
        enough.device_memory += enough.device_memory / 8;
        device = enough.device_memory;
        st = least_host(&least, &wide, c, arena);
    }
    if (st != GS_OK)
        return st;
    if (cfg->host_parts == 0 && device > cfg->device_memory)
        return refuse_device(c, l, device);
    least = GS_MAX(least + cfg->host_varies, cfg->host_parts * device);
    return refuse(cfg, (gs_refusal){.host = least, .have = cfg->host_memory, .fixed = cfg->host_fixed,
                                    .libraries = cfg->host_libraries,
                                    .parts = finer_grid(&wide, c, device)});
}

gs_status gs_choice_refuse(gs_choice *c, const gs_layout *l)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t arena = gs_layout_least_arena(l);
    uint64_t device = 0;
    gs_status st;

    gs_device_cache_drop(c);
    if (cfg->no_sizes)
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    c->any_tables = true;
    if ((st = least_device(&device, l, c, arena)) != GS_OK)
        return st;
    return device <= cfg->device_memory || cfg->host_parts > 0 ? refuse_host(c, l, arena, device)
                                                               : refuse_device(c, l, device);
}
