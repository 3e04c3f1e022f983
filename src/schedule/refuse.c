/* refuse.c - what a refusal names: the budgets that would do, or the parts of a finer grid. */
#include "schedule/search.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "schedule/keep.h"
#include "schedule/effort.h"
#include "schedule/emitter.h"
#include "schedule/ring_sim.h"

/* ---- a finer grid --------------------------------------------------------- */

/* Which finer grid of the same graph would do with the budgets?
 *
 * A store's chunks are as they are, so what a finer grid needs is not planned but derived from the least that this
 * grid needs. Sums and rows at either end of edges go down with the rows of an interval, and so does the ring, but for
 * the tiles of vertex programs; tables of the plan and of chunks go up by the number of chunks that are more. Estimates
 * are on the safe side: the store that is named may turn out to need less.
 */

#define MOST_PARTS 16384u  /* as partition has it */
#define CHUNK_BYTES 256u   /* of tables besides the plan, a chunk: the store's, the run's, those of a few edge sets */
#define CHUNK_TASKS 3u     /* of an edge pass, a chunk, at most: a read, the operand rows' read, a compute */
#define TASK_BYTES 64u     /* of a task besides the task itself: what it waits for, its registers and runs */
#define MARGIN 16u         /* estimates may be too small by so much of themselves */

/* Rows of a finer grid's interval, of so many that a stage runs for now, at most. */
static uint64_t finer_rows(const gs_layout *l, uint64_t rows, uint32_t parts)
{
    return GS_MIN(rows, gs_div_up(l->chunks->vertices, parts));
}

static uint64_t finer_arena(const gs_layout *l, uint32_t parts)
{
    uint64_t least = GS_BLOCK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++) {
        const uint64_t scratch = l->stage[s].scratch_bytes, held = gs_layout_held_bytes(l, s) - scratch;
        const bool back = gs_stage_is_back(&l->program->stage[s]);
        const uint64_t now = back ? l->chunks->interval_rows : GS_MAX(l->span[s], 1), then = finer_rows(l, now, parts);
        double bytes = (double)held * (double)then / (double)now;
        if (back)
            bytes *= gs_layout_least_slots(parts) / gs_layout_least_slots(l->parts);
        least = GS_MAX(least, scratch + (uint64_t)bytes + 2 * GS_BLOCK_BYTES);
    }
    return least;
}

/* Bytes of the ring that do not shrink with the intervals. */
static uint64_t tile_bytes(const gs_layout *l)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < l->program->stages; s++) {
        uint64_t row = 0;
        for (const gs_array_use *u = gs_layout_uses(l, s); u < gs_layout_uses(l, s + 1); u++)
            row += u->role == GS_USE_LOAD || u->role == GS_USE_STORE ? l->row_bytes[u->array] : 0;
        most = GS_MAX(most, row * l->stage[s].tile_rows);
    }
    return most;
}

/* Tables of a chunk more: those that stand besides the plan, and its tasks. */
static uint64_t chunk_tables(const gs_layout *l)
{
    uint64_t bytes = CHUNK_BYTES;
    for (uint32_t s = 0; s < l->program->stages; s++)
        bytes += l->program->stage[s].sums > 0 ? CHUNK_TASKS * (sizeof(gs_task) + TASK_BYTES) : 0;
    return bytes;
}

/* The fewest parts of a finer store of the same graph that should do with both budgets; 0: none. This one's needs a
 * staging ring (several devices), a ring and tables of so many bytes at the least. */
static uint32_t regrid_parts(const gs_layout *l, uint64_t staging, uint64_t ring, uint64_t tables)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t tiles = tile_bytes(l), more = chunk_tables(l);

    for (uint64_t p = l->parts + 1ull; p <= GS_MIN(MOST_PARTS, l->chunks->vertices); p += GS_MAX(p / 16, 1)) {
        const double shrinks = (double)l->parts / (double)p;
        const uint64_t device = cfg->device_fixed + finer_arena(l, (uint32_t)p) + (uint64_t)((double)staging * shrinks);
        const uint64_t chunks = p * p - (uint64_t)l->parts * l->parts;
        const uint64_t host = cfg->host_fixed + cfg->host_varies + tables + tables / 8 + chunks * more +
                              (uint64_t)((double)ring * shrinks) + tiles +
                              l->memory.on_hosts * device;
        if (host + host / MARGIN <= cfg->host_memory && device + device / MARGIN <= cfg->device_memory)
            return (uint32_t)p;
    }
    return 0;
}

/* ---- budgets -------------------------------------------------------------- */

/* No plan fits: which budget is too small, and what is the smallest that works?
 *
 * Found by making plans with less and less memory, which are thrown away.
 */

/* The smallest staging ring is looked for to one part of it in so many: where a refusal names a device's memory; and
 * where it is a term of the host's, for which several arenas are tried. */
#define DEVICE_PART 100u
#define MORE_TRIES 32
/* And the ring, which is a small term, to one part of it in so many, or of all that the host needs. */
#define RING_PART 128u
#define HOST_PART 512u
/* A budget less by so small a part is not looked for. */
#define NEXT_TO_NOTHING 128u
#define STAGING_PART 16u
/* A ring that is a smaller part of all that the host needs is not made smaller. */
#define LITTLE_PART 128u

uint64_t gs_choice_devices_bytes(const gs_choice *c, const gs_layout *l)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t each = cfg->device_fixed + c->arena_bytes;
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < l->memory.devices; d++)
        if (l->memory.on_host[d])
            bytes = gs_layout_add_arena(&l->memory, bytes,
                                        each + (l->memory.in_place[d] ? 0 : c->staging_bytes + c->device.used[d]));
    return bytes;
}

/* All of the host's memory, with such a ring and tables. */
static uint64_t host_bytes(const gs_layout *l, const gs_choice *c, uint64_t ring, uint64_t tables)
{
    return l->config->host_fixed + tables + tables / 8 + ring + GS_BLOCK_BYTES + gs_choice_devices_bytes(c, l);
}

/* Does anything work with these rings? */
static gs_status try_rings(const gs_layout *l, gs_choice *c, uint64_t ring, uint64_t staging, uint64_t *tables)
{
    c->ring_bytes = ring;
    c->staging_bytes = staging;
    return gs_emit_tables(tables, l, c);
}

/* What an arena that is set takes at the least: one plan is counted that has as much of the ring as it asks for, and
 * of staging rings where `staged`; no smaller ones do than what is in them at a time. Sets the staging ring. GS_ENOFIT:
 * the devices have no room for it, or the tables are too large. */
static gs_status bound(gs_least *out, const gs_layout *l, gs_choice *c, bool staged)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES, staging = staged ? GS_RING_ENDLESS : c->staging_bytes;

    gs_choice_keep(c, l, 0);
    GS_TRY(try_rings(l, c, GS_RING_ENDLESS, staging, &out->tables));
    if (staged && c->live_staging > c->spare_bytes)
        return GS_ENOFIT;
    if (staged)
        out->staging = c->staging_bytes = GS_MIN(GS_MAX(c->live_staging, step), c->spare_bytes);
    out->ring = GS_MAX(c->live_bytes, step);
    out->alone = out->tables + c->joined * gs_emit_task_bytes(l);
    out->host = host_bytes(l, c, out->ring, out->tables);
    return GS_OK;
}

/* The smallest ring with which anything works, of at most about `most`, from the bound on: hardly a larger one is
 * needed, so by more and more it is made larger, then the gap is halved. */
static gs_status find_ring(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t most)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES, staging = c->staging_bytes;
    const uint64_t share = (l->config->host_fixed + out->tables) / HOST_PART;
    const uint64_t near = GS_MAX(step, GS_MAX(out->ring / RING_PART, share));
    uint64_t low = 0, high = out->ring;
    gs_status st;

    for (uint64_t more = near; (st = try_rings(l, c, high, staging, &out->tables)) == GS_ENOFIT; more *= 2) {
        if (c->crammed || high > most)
            return st;
        low = high;
        high = gs_align_up(high + more, step);
    }
    while (st == GS_OK && low > 0 && high - low > near) {
        const uint64_t middle = gs_align_up(low + (high - low) / 2, step);
        if (middle >= high)
            break;
        const gs_status tried = try_rings(l, c, middle, staging, &out->tables);
        if (tried != GS_OK && tried != GS_ENOFIT)
            return tried;
        *(tried == GS_OK ? &high : &low) = middle;
    }
    out->ring = high;
    out->host = host_bytes(l, c, high, out->tables);
    return st;
}

/* With chunks that come together or alone, as `c` says. */
static gs_status least_ring(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t most)
{
    GS_TRY(out->tables > 0 ? GS_OK : bound(out, l, c, false));
    out->beyond = out->host > c->host_most;
    return out->beyond ? GS_ENOFIT : find_ring(out, l, c, most);
}

/* Chunks that come together have fewer tasks, and take more of the ring. (Those of devices with copies as tasks never
 * do.) */
static gs_status least_together_or_alone(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t most)
{
    const uint64_t host_most = c->host_most;
    gs_least alone = {0};

    c->chunks_alone = false;
    const gs_status st = least_ring(out, l, c, most);
    const bool little = st == GS_OK && out->ring < out->host / LITTLE_PART;
    if (!l->memory.groups_chunks || little || c->crammed || (st != GS_OK && st != GS_ENOFIT))
        return st;
    if (st == GS_OK)
        c->host_most = GS_MIN(host_most, out->host);
    if (host_bytes(l, c, 0, out->alone) > c->host_most) { /* nor is there room without a ring */
        c->host_most = host_most;
        return st;
    }
    c->chunks_alone = true;
    const gs_status other = least_ring(&alone, l, c, most);
    c->host_most = host_most;
    c->chunks_alone = other == GS_OK;
    if (other == GS_OK)
        *out = alone;
    return other == GS_ENOFIT ? st : other;
}

/* As a user types it, rounded up. */
static const char *mib_up(char *buf, size_t cap, uint64_t bytes)
{
    snprintf(buf, cap, "%lluM", (unsigned long long)gs_div_up(bytes, GS_MIB));
    return buf;
}

/* How a staging ring is looked for: of at most `most`, to one part of it in `part`; `fails`: the first is known not to
 * work. Beside a ring of so many bytes, which turns out to be enough, too, or not: `both`. */
struct staging {
    uint64_t most, part, ring;
    bool fails, both;
};

/* Does the staging ring work? It is tried beside the other ring that is wanted; where that one has no room, alone. */
static gs_status try_staging(struct staging *s, const gs_layout *l, gs_choice *c, uint64_t staging, uint64_t *tables)
{
    const bool endless = s->ring == GS_RING_ENDLESS;
    gs_status st = try_rings(l, c, s->ring, staging, tables);
    const bool both = !endless && st == GS_OK;

    if (st == GS_ENOFIT && !endless && !c->crammed && c->short_of == GS_HOST)
        st = try_rings(l, c, GS_RING_ENDLESS, staging, tables);
    s->both = st == GS_OK ? both : s->both;
    return st;
}

/* Behind the arena that is set, the smallest staging ring with which anything works: found as the host's is, from the
 * out->staging that is in it at a time. A larger ring may fail by its turns where a smaller one works: so below the
 * most, a sixteenth at a time is tried, too. Tables are as long with another ring. GS_ENOFIT: none works. */
static gs_status least_staging(gs_least *out, const gs_layout *l, gs_choice *c, struct staging *s)
{
    const uint64_t step = 16 * GS_BLOCK_BYTES;
    uint64_t low = 0, high = GS_MIN(GS_MAX(out->staging, step), s->most), more = GS_MAX(step, high / s->part);
    const uint64_t near = more, less = gs_align_up(s->most / 16, GS_BLOCK_BYTES);
    bool fails = s->fails;
    gs_status st = GS_ENOFIT;

    while ((fails || (st = try_staging(s, l, c, high, &out->tables)) == GS_ENOFIT) && high < s->most && !c->crammed) {
        fails = false;
        low = high;
        high = GS_MIN(gs_align_up(high + more, GS_BLOCK_BYTES), s->most);
        more *= 2;
    }
    while (st == GS_ENOFIT && high > low + less && !c->crammed)
        st = try_staging(s, l, c, high -= less, &out->tables);
    while (st == GS_OK && low > 0 && high - low > near) {
        const uint64_t middle = gs_align_up(low + (high - low) / 2, GS_BLOCK_BYTES);
        const gs_status tried = try_staging(s, l, c, middle, &out->tables);
        if (tried != GS_OK && tried != GS_ENOFIT)
            return tried;
        *(tried == GS_OK ? &high : &low) = middle;
    }
    out->staging = c->staging_bytes = high;
    return st;
}

/* Is more needed than is of interest? */
static bool is_beyond(gs_least *out, const gs_layout *l, const gs_choice *c)
{
    out->host = host_bytes(l, c, out->ring, out->tables);
    return out->beyond = out->host > c->host_most;
}

/* Of devices on host memory: both rings are found at once where neither needs more than is in it at a time. */
static gs_status least_rings(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t most)
{
    gs_status st;

    GS_TRY(out->tables > 0 ? GS_OK : bound(out, l, c, true));
    if (is_beyond(out, l, c))
        return GS_ENOFIT;
    c->short_of = GS_HOST;
    if ((st = try_rings(l, c, out->ring, out->staging, &out->tables)) == GS_ENOFIT && !c->crammed) {
        struct staging s = {c->spare_bytes, STAGING_PART, out->ring, c->short_of != GS_HOST, false};
        if ((st = least_staging(out, l, c, &s)) == GS_OK && !s.both)
            st = is_beyond(out, l, c) ? GS_ENOFIT : find_ring(out, l, c, most);
    }
    out->host = host_bytes(l, c, out->ring, out->tables);
    return st;
}

static bool set_arena(const gs_layout *l, gs_choice *c, uint64_t arena)
{
    c->crammed = false;
    return arena <= l->config->device_memory - l->config->device_fixed && gs_choice_set_arena(c, l, arena);
}

gs_status gs_choice_bound(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    return set_arena(l, c, arena) ? bound(out, l, c, l->memory.arenas > 0) : GS_ENOFIT;
}

gs_status gs_choice_least(gs_least *out, const gs_layout *l, gs_choice *c, uint64_t arena, uint64_t ring_most)
{
    if (out->tables == 0 && !set_arena(l, c, arena))
        return GS_ENOFIT;
    const gs_status st = l->memory.arenas > 0 ? least_rings(out, l, c, ring_most)
                                        : least_together_or_alone(out, l, c, ring_most);
    out->device = l->config->device_fixed + GS_MAX(c->held_bytes, c->arena_bytes) + out->staging;
    return st;
}

/* What is found out about the host's memory. */
struct least_host {
    uint64_t bytes;   /* the smallest budget; UINT64_MAX: none was found */
    gs_least with;    /* what it is made of */
    bool beyond;      /* an arena was given up, as it needs more than is known to do */
    gs_least finest;  /* of the least arena; host 0: it was given up */
};

/* An arena, and what nothing works without beside it. */
struct bounded {
    uint64_t arena;
    uint64_t beside;  /* the budget with which chunks came together so */
    gs_least least;   /* host 0: it was given up, or the search is done with it */
};

/* The budget that has all of it, where the device's is a part of it, too. */
static uint64_t budget_for(const gs_schedule_config *cfg, const gs_least *least)
{
    return GS_MAX(least->host + cfg->host_varies, cfg->host_parts * least->device);
}

/* Smaller blocks need less memory for sums, but more tasks, whose tables count too. So no smaller arena than the last
 * is tried where what it saves of the best one's budget is next to nothing. */
static bool is_worth_less(uint64_t best, const gs_least *last, const gs_layout *l, uint64_t arena)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t least = cfg->host_fixed + last->tables + last->tables / 8 +
                           l->memory.on_hosts * (cfg->device_fixed + arena);
    return last->host == 0 || least + best / NEXT_TO_NOTHING < best;
}

/* How often a budget is looked at again that turned out to be larger, and the part by which it is made larger still. */
#define GUESSES 3
#define GUESSED_MORE 64u

/* What nothing works without, beside a budget that has it: of a larger one, more chunks come together. `beside`: the
 * layout's, whose own budget becomes that. */
static gs_status bound_beside(struct bounded *out, const gs_layout *l, gs_schedule_config *beside, gs_choice *c)
{
    bool enough = false;

    for (int k = 0; k < GUESSES && !enough; k++) {
        out->least = (gs_least){0};
        out->beside = beside->host_memory;
        c->chunks_alone = false;
        GS_TRY(gs_choice_bound(&out->least, l, c, out->arena));
        const uint64_t need = out->least.host + beside->host_varies;
        enough = !l->memory.groups_chunks || need <= beside->host_memory || need > c->host_most;
        if (!enough)
            beside->host_memory = need + need / GUESSED_MORE;
    }
    return GS_OK;
}

/* From the largest arena on. Of those that are given up *out is as it was. */
static gs_status bound_arenas(struct least_host *out, struct bounded *arena, const gs_layout *l,
                              gs_schedule_config *beside, gs_choice *c, uint64_t least_arena)
{
    gs_least last = {0};
    uint64_t best = UINT64_MAX;

    for (uint32_t k = 0, times = GS_REFUSED_ARENAS; times > 0; k++, times /= 2) {
        if (!is_worth_less(best, &last, l, least_arena) || (last.host > 0 && gs_effort_spent(l->config)))
            break;
        arena[k].arena = times * least_arena;
        const gs_status st = bound_beside(&arena[k], l, beside, c);
        if (st != GS_OK && st != GS_ENOFIT) /* which is: several devices have no room for what is staged there */
            return st;
        out->beyond = out->beyond || (st == GS_ENOFIT && c->crammed);
        if (st == GS_ENOFIT && c->crammed && l->memory.arenas == 0) /* by tables: with smaller arenas more so */
            break;
        if (st == GS_ENOFIT)
            continue;
        last = arena[k].least;
        best = GS_MIN(best, last.host + l->config->host_varies);
        if (times == 1)
            out->finest = last;
    }
    return GS_OK;
}

/* What the arena needs at the least, by what is known: chunks may come alone, too. */
static uint64_t bound_of(const gs_layout *l, const struct bounded *a)
{
    const gs_least *const b = &a->least;
    const uint64_t alone = b->host - b->ring - (b->tables + b->tables / 8) + (b->alone + b->alone / 8);
    return (l->memory.groups_chunks ? GS_MIN(b->host, alone) : b->host) + l->config->host_varies;
}

/* The one that is left that may need least; NULL: none may need less than is known to do. */
static struct bounded *most_promising(const struct least_host *found, const gs_layout *l, struct bounded *arena)
{
    struct bounded *best = NULL;
    for (struct bounded *a = arena; a < arena + GS_REFUSED_ARENAS; a++)
        if (a->least.host > 0 && bound_of(l, a) < found->bytes && (best == NULL || bound_of(l, a) < bound_of(l, best)))
            best = a;
    return best;
}

/* The smallest host budget: arenas are bounded, and those looked at that may be the best. */
static gs_status least_host(struct least_host *out, const gs_layout *l, gs_schedule_config *beside, gs_choice *c,
                            uint64_t least_arena)
{
    const uint64_t known = l->config->host_known > 0 ? l->config->host_known / NEXT_TO_NOTHING * (NEXT_TO_NOTHING - 1)
                                                     : UINT64_MAX;
    struct bounded arena[GS_REFUSED_ARENAS] = {0}, *a;

    *out = (struct least_host){.bytes = UINT64_MAX};
    c->host_most = known;
    gs_status st = bound_arenas(out, arena, l, beside, c, least_arena);
    while (st == GS_OK && (a = most_promising(out, l, arena)) != NULL) {
        gs_least least = a->least;
        a->least.host = 0;
        c->host_most = GS_MIN(known, out->bytes);
        beside->host_memory = a->beside;
        if (!set_arena(l, c, a->arena))
            continue;
        c->staging_bytes = l->memory.arenas > 0 ? least.staging : c->staging_bytes;
        st = gs_choice_least(&least, l, c, a->arena, UINT64_MAX / 8);
        out->beyond = out->beyond || (st == GS_ENOFIT && (c->crammed || least.beyond));
        if (st == GS_OK && budget_for(l->config, &least) < out->bytes) {
            out->bytes = budget_for(l->config, &least);
            out->with = least;
        }
        st = st == GS_ENOFIT ? GS_OK : st;
    }
    c->host_most = UINT64_MAX;
    return st;
}

/* Memory of devices with copies as tasks: the least arena, and behind it the smallest staging ring. */
static gs_status least_device(uint64_t *out, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    gs_least least = {0};
    gs_status st;

    *out = l->config->device_fixed + arena;
    if (l->memory.own == 0 || !gs_choice_set_arena(c, l, arena))
        return GS_OK;
    gs_choice_keep(c, l, 0);
    GS_TRY(try_rings(l, c, GS_RING_ENDLESS, GS_RING_ENDLESS, &least.tables));
    least.staging = c->live_staging;
    st = least_staging(&least, l, c, &(struct staging){UINT64_MAX / 8, DEVICE_PART, GS_RING_ENDLESS, false, false});
    *out = l->config->device_fixed + c->arena_bytes + least.staging;
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
    if (config->refusal != NULL) {
        refusal.least_tables = config->refusal->least_tables;
        *config->refusal = refusal;
    }
    return gs_refusal_fail(&refusal);
}

/* Of a finer grid, where that would do; or 0, and where a budget is tried that nobody has. `staging`: what this one's
 * devices need; `least`: of the least arena, or with .host 0. */
static uint32_t finer_grid(const gs_layout *l, gs_choice *c, uint64_t staging, gs_least least)
{
    if (l->config->counted || gs_layout_least_host(l) > l->config->host_memory ||
        !gs_choice_set_arena(c, l, gs_layout_least_arena(l)))
        return 0;
    c->staging_bytes = staging;
    c->chunks_alone = true;
    if (least.host == 0 && bound(&least, l, c, false) != GS_OK)
        return 0;
    return regrid_parts(l, c->staging_bytes, least.ring, least.tables);
}

/* Tables of a finer grid are no smaller than those of any arena of this one. */
static uint32_t finer_than(const gs_layout *l, gs_choice *c, const struct least_host *found)
{
    const uint64_t tables = found->with.tables, staging = found->with.staging;
    const bool none = l->config->host_fixed + tables + tables / 8 > l->config->host_memory ||
                      regrid_parts(l, staging, 0, tables) == 0;
    return none ? 0 : finer_grid(l, c, staging, found->finest);
}

static gs_status refuse_device(gs_choice *c, const gs_layout *l, uint64_t device)
{
    const gs_schedule_config *const cfg = l->config;
    /* What is named is made of the arena as it is set: equal blocks may need less than it may have. */
    const bool staged = l->memory.own > 0 && gs_choice_set_arena(c, l, gs_layout_least_arena(l));
    const uint64_t staging = staged ? device - cfg->device_fixed - c->arena_bytes : 0;
    return refuse(cfg, (gs_refusal){.device = device, .have = cfg->device_memory,
                                    .parts = finer_grid(l, c, staging, (gs_least){0})});
}

/* The budget that is looked at first: tables that keep nothing take a quarter more than their chunks. */
static uint64_t expected_host(const gs_layout *l)
{
    const uint64_t tables = l->bare_tables[0] / 4 * 5;
    return l->config->host_fixed + tables + tables / 8;
}

/* Both budgets are named by the host's: the device's is a part of it where none was given, and then as large as is
 * wanted. */
static gs_status refuse_host(gs_choice *c, const gs_layout *l, uint64_t arena, uint64_t device)
{
    const gs_schedule_config *const cfg = l->config;
    gs_schedule_config enough = *cfg;
    gs_layout wide = *l;
    struct least_host least;
    gs_status st;

    enough.device_memory = cfg->host_parts > 0 ? UINT64_MAX / 8 : GS_MAX(cfg->device_memory, device);
    enough.host_memory = GS_MAX(cfg->host_memory, GS_MAX(cfg->host_known, expected_host(l)));
    wide.config = &enough;
    st = least_host(&least, &wide, &enough, c, arena);
    for (int k = 0; st == GS_OK && cfg->host_parts == 0 && least.bytes == UINT64_MAX && !least.beyond &&
                    k < MORE_TRIES; k++) {
        enough.device_memory += enough.device_memory / 8;
        device = enough.device_memory;
        st = least_host(&least, &wide, &enough, c, arena);
    }
    enough.host_memory = cfg->host_memory;
    if (st != GS_OK)
        return st;
    if (cfg->host_parts == 0 && device > cfg->device_memory)
        return refuse_device(c, l, device);
    if (least.bytes == UINT64_MAX)
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    return refuse(cfg, (gs_refusal){.host = least.bytes, .have = cfg->host_memory, .fixed = cfg->host_fixed,
                                    .tables = least.with.tables, .libraries = cfg->host_libraries,
                                    .parts = finer_than(&wide, c, &least)});
}

bool gs_refuse_early(const gs_layout *l)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t least = gs_layout_least_host(l);

    if (cfg->refusal != NULL)
        cfg->refusal->least_tables = l->least_tables;
    const uint64_t known = cfg->host_fixed + l->memory.on_hosts * (cfg->device_fixed + gs_layout_least_arena(l));
    if (cfg->no_sizes && cfg->tables_part > 0 &&
        (double)(least - cfg->host_fixed) * cfg->tables_part + (double)known > (double)cfg->host_memory)
        return true;
    return least > cfg->host_memory && (cfg->no_sizes || (cfg->host_known > 0 && least >= cfg->host_known));
}

gs_status gs_choice_refuse(gs_choice *c, const gs_layout *l)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t arena = gs_layout_least_arena(l);
    uint64_t device = 0;

    gs_device_cache_drop(c);
    if (cfg->no_sizes)
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    c->host_most = UINT64_MAX;
    if (cfg->host_parts == 0)
        GS_TRY(least_device(&device, l, c, arena));
    return device <= cfg->device_memory || cfg->host_parts > 0 ? refuse_host(c, l, arena, device)
                                                               : refuse_device(c, l, device);
}
