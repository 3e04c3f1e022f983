/* search.c - searches for the choice of memory that takes the least time.
 *
 * Memory is divided between sums (larger blocks: operand rows are read fewer
 * times an epoch), the staging ring (reads run further ahead) and what stays
 * resident. A plan is cheap to make, so candidates are made whole, played through
 * with the cost model and compared by seconds.
 */
#include "schedule/search.h"

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/column_order.h"
#include "schedule/keep.h"
#include "schedule/effort.h"
#include "schedule/emitter.h"
#include "schedule/simulate.h"
#include "schedule/ring_sim.h"

/* A ring larger than this no longer helps an SSD; the rest is better used to keep data. */
#define RING_WANTED (128 * GS_MIB)
/* Nor does one that a pass goes through a part of only once: what a run takes is written over, page by page, before its
 * first epoch. This often what a pass puts into it, for pieces that outlive others; and never less than a MiB. */
#define RING_ROUNDS 4u
/* Fewer plans are tried where one has more tasks than this. */
#define MANY_TASKS 200000u
/* Arenas that are noted when some around the best one are tried, and how near two of them are the same. */
#define MOST_TRIED 32u
#define LIKE_ARENAS 64u
/* A part of the host's memory that does not matter. */
#define NEXT_TO_NOTHING 64u
/* Where the host's memory is short, devices on it stage this part of what they could, and this part of that. */
#define STAGED_LESS 4u

/* An order of columns is looked for beside other programs where the plans have this part of what there is; with several
 * devices, which are listed again for each, and dealt columns in other ways, too. */
#define DEVICES_ORDER 32u

/* The shortest plan of another arena is tried with other orders, too, where it is no longer than so many times the best
 * in store order, and has this part of the tries: of 172 such searches on R-MAT and planted classes, 9 ended 3 to 16 %
 * below the best plan's, 8 of them within a third of the tries. */
#define SECOND_NEAR 1.07
#define SECOND_TRIES (GS_ORDER_TRIES / 3)

/* Seconds of an epoch, with wear; without a cost model, bytes. */
static gs_status plan_cost(double *out, const gs_layout *l, gs_plan *plan)
{
    const gs_program *const p = l->program;
    const gs_cost *const cost = l->config->cost;
    double sum = 0;
    for (uint32_t i = 0; i < p->passes; i++) {
        const gs_plan_pass *const pass = &plan->pass[i];
        const double weight = gs_pass_weight(l, i), written = (double)pass->written_bytes;
        const double copied = (double)(pass->upload_bytes + pass->forward_bytes + pass->download_bytes);
        gs_predicted x = {.seconds = (double)pass->read_bytes + written + copied};
        const gs_simulation_input input = gs_simulation_of(l, plan, i);
        gs_status st;
        if (cost != NULL && (st = gs_simulate_once(&x, plan, &input)) != GS_OK)
            return st;
        sum += weight * (x.seconds + (cost != NULL ? GS_WEAR_SHARE * written / cost->write_bps : 0));
    }
    *out = sum;
    return GS_OK;
}

/* With a read for each chunk, which takes less of the ring, and more of tables. Where those are not known they are
 * counted first. */
static gs_status emit_alone(gs_plan **out, const gs_layout *l, gs_choice *c)
{
    gs_plan *counted = NULL;
    gs_status st = GS_OK;

    c->chunks_alone = true;
    if (!c->counts && c->least[true].arena == 0)
        st = gs_emit_count(&counted, l, c);
    gs_plan_free(counted);
    if (st == GS_OK)
        st = gs_emit(out, l, c);
    c->chunks_alone = false;
    return st;
}

/* A plan with this arena, ring and kept bytes, if it exists and its real total,
 * tables included, is within the host budget. */
static gs_status try_choice(gs_plan **out, const gs_layout *l, gs_choice *c, uint64_t keep, uint64_t ring)
{
    gs_plan *plan = NULL;
    gs_status st;

    const bool whole = gs_choice_keep(c, l, l->config->force_spill ? 0 : keep);
    c->ring_bytes = gs_align_down(whole ? GS_BLOCK_BYTES : ring, GS_BLOCK_BYTES);
    c->ring_bytes = GS_MAX(c->ring_bytes, gs_align_up(c->device.load_most, GS_BLOCK_BYTES));
    c->ring_bytes = GS_MAX(c->ring_bytes, c->ring_least);
    st = gs_emit(&plan, l, c);
    if (st == GS_ENOFIT && l->memory.groups_chunks && !c->chunks_alone && !c->crammed)
        st = emit_alone(&plan, l, c);
    if (st != GS_OK)
        return st;
    if (plan->host_bytes > l->config->host_memory) {
        gs_plan_free(plan);
        return GS_ENOFIT;
    }
    *out = plan;
    return GS_OK;
}

/* Host bytes left for ring and kept data under this arena, 0 where nothing is. */
static uint64_t host_left(const gs_layout *l, const gs_choice *c, uint64_t tables)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t used = cfg->host_fixed + tables + gs_choice_devices_bytes(c, l);
    return used < cfg->host_memory ? cfg->host_memory - used : 0;
}

/* Host bytes that are missing for the least ring. */
static uint64_t host_lacks(const gs_layout *l, const gs_choice *c, uint64_t tables)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t used = cfg->host_fixed + tables + gs_choice_devices_bytes(c, l) + GS_BLOCK_BYTES;
    return used > cfg->host_memory ? used - cfg->host_memory : 0;
}

/* Is there a plan with this ring, and nothing kept? */
static gs_status count_choice(const gs_layout *l, gs_choice *c, uint64_t ring)
{
    gs_plan *plan = NULL;
    const bool counts = c->counts;
    c->counts = true;
    const gs_status st = try_choice(&plan, l, c, 0, ring);
    c->counts = counts;
    gs_plan_free(plan);
    return st;
}

/* Arenas that were tried. */
struct tried {
    uint64_t arena[MOST_TRIED];
    uint32_t count;
    uint64_t first; /* of those that were probed; 0: none was */
    uint64_t lacks; /* bytes of the host's memory, in the way that takes least of it */
};

/* Is there another one that differs by no more than `by`? Notes this one, where not. */
static bool was_tried(struct tried *t, uint64_t arena, uint64_t by)
{
    for (uint32_t k = 0; k < t->count; k++)
        if (GS_MAX(arena, t->arena[k]) - GS_MIN(arena, t->arena[k]) <= by)
            return true;
    if (t->count < MOST_TRIED)
        t->arena[t->count++] = arena;
    return false;
}

/* The best plan so far, and how it is made again: an arena that gives its blocks, and who gets what of the host's
 * memory. */
struct best {
    gs_plan *plan; /* NULL: none was found, or there was no room for it beside the next one */
    bool found;
    double cost;
    uint64_t arena, ring, keep;
    uint64_t staging; /* of devices with copies as tasks; what they have besides is for what stays there */
    uint32_t listed;   /* devices of the gs_device_cache; 0: there is none */
    gs_cache_parts parts; /* of it */
    uint64_t capacity; /* of the cache; 0: there is none */
    uint64_t tables;   /* bytes of the plan */
    uint32_t tasks;
    bool crammed;      /* tables of an arena had no room, so those of smaller ones, with more tasks, have none */
    uint64_t least_tables; /* of the first arena whose tables had no room, so that those of smaller ones have more */
    struct tried *held; /* what blocks took in arenas that were tried: the same blocks make the same plans */
    struct best *second; /* the shortest one of another arena, without its plan */
};

/* Are there plans enough? Where only so many may be made, as others are there, also without one that fits. */
static bool is_enough(const struct best *best, const gs_layout *l)
{
    const gs_schedule_config *const c = l->config;
    if (!best->found)
        return c->effort != NULL && c->effort->most > 0 && gs_effort_left(c, 0) == 0;
    return c->any_plan || !gs_effort_lasts(c, best->cost);
}

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

/* Notes a plan that is not the best. */
static void note_second(struct best *second, const struct best *best, const struct best *other)
{
    if (!other->found || other->arena == best->arena)
        return;
    if (!second->found || second->arena == best->arena || other->cost < second->cost)
        *second = *other;
    second->plan = NULL;
}

/* Keeps the better of the two and frees the other. */
static gs_status compare(struct best *best, const gs_layout *l, const gs_choice *c, gs_plan *plan)
{
    double cost = 0;
    const gs_status st = c->counts ? GS_OK : plan_cost(&cost, l, plan);
    struct best other = {
        .plan = plan,
        .found = st == GS_OK,
        .cost = cost,
        .arena = c->held_bytes, .ring = c->ring_bytes, .keep = c->keep_bytes, .staging = c->staging_bytes,
        .listed = c->device.devices, .parts = c->device.parts,
        .capacity = c->host.list.plan != NULL ? c->host.capacity : 0,
        .tables = plan->table_bytes, .tasks = plan->tasks, .least_tables = best->least_tables,
        .held = best->held, .second = best->second,
    };
    if (other.found && (!best->found || cost < best->cost)) {
        const struct best was = *best;
        *best = other;
        other = was;
    }
    gs_plan_free(other.plan);
    note_second(best->second, best, &other);
    return st;
}

/* With this ring; where that is too small for what is live together, with one that takes from what is kept. */
static gs_status try_ring(struct best *best, const gs_layout *l, gs_choice *c, uint64_t left, uint64_t ring)
{
    gs_plan *plan = NULL;
    make_room(best, l);
    gs_status st = try_choice(&plan, l, c, left - ring, ring);
    if (st == GS_ENOFIT) { /* where all that is left is too small a ring, so is a part of it */
        GS_TRY(count_choice(l, c, left));
        st = GS_ENOFIT;
        for (uint64_t keep = (left - ring) / 2; st == GS_ENOFIT && keep >= l->config->array_sum_bytes; keep /= 2)
            st = try_choice(&plan, l, c, keep, left - keep);
        if (st == GS_ENOFIT)
            st = try_choice(&plan, l, c, 0, left);
    }
    return st == GS_OK ? compare(best, l, c, plan) : st;
}

/* Rings from the largest that helps down to a quarter of it: what one does not take is kept. Only
 * the first may take more than its size. */
static gs_status try_rings(struct best *best, const gs_layout *l, gs_choice *c, uint64_t left, bool many)
{
    const uint64_t largest = GS_MIN(left / 4 * 3, c->ring_most);
    gs_status st = try_ring(best, l, c, left, largest);

    for (uint64_t ring = largest / 2; many && st == GS_OK && ring >= largest / 4 && !is_enough(best, l); ring /= 2) {
        gs_plan *plan = NULL;
        make_room(best, l);
        const gs_status tried = try_choice(&plan, l, c, left - ring, ring);
        if (tried == GS_ENOFIT)
            break;
        st = tried == GS_OK ? compare(best, l, c, plan) : tried;
    }
    return st;
}

/* Lists what devices access under this arena, in a plan that is thrown away: *tables and *tasks are its. Where the
 * lists have no room beside it, nothing is to stay there. */
static gs_status probe_arena(const gs_layout *l, gs_choice *c, uint64_t *tables, uint32_t *tasks)
{
    gs_plan *probe = NULL;
    gs_status st;

    gs_choice_keep(c, l, 0);
    c->ring_bytes = GS_RING_ENDLESS;
    c->device.tracing = true;
    st = gs_emit_count(&probe, l, c);
    if (st == GS_ENOFIT && c->device.crowded) {
        gs_device_cache_drop(c);
        st = gs_emit_count(&probe, l, c);
    }
    c->device.tracing = false;
    if (st != GS_OK)
        return st;
    c->ring_most = GS_MIN(RING_WANTED, GS_MAX(RING_ROUNDS * c->staged_bytes, GS_MIB));
    *tables = probe->table_bytes;
    *tasks = probe->tasks;
    gs_plan_free(probe);
    return GS_OK;
}

/* With what devices keep as it is. Tables are part of the budget but known only afterwards: `tables` were a like
 * plan's. */
static gs_status try_host(struct best *best, const gs_layout *l, gs_choice *c, uint64_t tables, bool many)
{
    const uint64_t left = host_left(l, c, tables + tables / 8);

    if (left < GS_BLOCK_BYTES)
        return GS_ENOFIT;
    gs_choice_keep(c, l, 0);
    /* Whole in memory? Then there is nothing to stage. */
    if (!l->config->force_spill && gs_choice_keep(c, l, left - GS_BLOCK_BYTES)) {
        gs_plan *plan = NULL;
        GS_TRY(try_choice(&plan, l, c, left - GS_BLOCK_BYTES, GS_BLOCK_BYTES));
        return compare(best, l, c, plan);
    }
    return try_rings(best, l, c, left, many);
}

static bool some_have_more(const gs_layout *l)
{
    for (uint32_t d = 0; d < l->memory.own; d++)
        if (!l->memory.in_place[d] && gs_topology_more(l->config->topology, d, l->config->device_memory) > 0)
            return true;
    return false;
}

/* Divides what devices have for staging and for data that stay: `staging` bytes are for the first. */
static gs_status divide(gs_choice *c, const gs_layout *l, uint64_t staging, gs_cache_parts parts)
{
    c->staging_bytes = gs_align_down(GS_MIN(staging, c->spare_bytes), GS_BLOCK_BYTES);
    c->device.parts = parts;
    if (c->device.devices == 0)
        return GS_OK;
    if (c->staging_bytes == c->spare_bytes && !some_have_more(l)) {
        gs_device_cache_drop_plan(c, l);
        return GS_OK;
    }
    return gs_device_cache_plan(c, l, c->spare_bytes - c->staging_bytes);
}

/* Is all that the epochs' pass asks for on the devices, but for what is used in place? */
static bool has_all(const gs_choice *c, const gs_layout *l)
{
    if (c->cached_pass >= c->device.passes) /* nothing is trained */
        return false;
    for (uint32_t d = 0; d < c->device.devices; d++) {
        const gs_cache_list *const list = &c->device.list[d * c->device.passes + c->cached_pass];
        if (list->plan == NULL || (!l->memory.in_place[d] && list->plan->read_bytes > 0))
            return false;
    }
    return true;
}

/* Is the arena, of which smaller ones leave the more to tables, next to nothing of what tables may have? */
static bool leaves_little(const gs_layout *l, const gs_choice *c)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t left = cfg->host_memory - GS_MIN(cfg->host_memory, cfg->host_fixed);
    return l->memory.arenas * c->arena_bytes < left / NEXT_TO_NOTHING;
}

/* Have the tables that are known at the least no room beside this arena? */
static bool is_crammed(const struct best *best, const gs_layout *l, const gs_choice *c)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t arenas = l->memory.arenas * (cfg->device_fixed + c->arena_bytes);
    const uint64_t tables = best->least_tables / 8 * 9;

    return tables > 0 && cfg->host_fixed + tables + arenas >= cfg->host_memory;
}

/* A plan of the arena that has the least of everything else, of which there is one if there is any. The first arena's
 * tables are counted to their end, as they say of smaller arenas that their tables have no room either. */
static gs_status try_least(struct best *best, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    const uint64_t most = c->host_most;
    gs_least least = {0};
    gs_plan *plan = NULL;
    gs_status st;

    gs_device_cache_drop(c);
    c->host_most = best->least_tables == 0 ? UINT64_MAX : most;
    st = gs_choice_bound(&least, l, c, arena);
    c->host_most = most;
    if (best->least_tables == 0)
        best->least_tables = least.tables;
    if (st != GS_OK)
        return st;
    if (least.host <= most)
        st = try_choice(&plan, l, c, 0, least.ring);
    else
        st = GS_ENOFIT;
    if (st == GS_ENOFIT && !is_crammed(best, l, c) && (l->memory.groups_chunks || least.host <= most) &&
        (st = gs_choice_least(&least, l, c, arena, most)) == GS_OK)
        st = try_choice(&plan, l, c, 0, least.ring);
    if (st == GS_OK)
        return compare(best, l, c, plan);
    c->chunks_alone = false;
    return st;
}

/* Has the host no room for the least ring beside this arena, as it had none beside the first? Smaller ones have
 * no smaller tables, where chunks never come together, and what they leave of devices' memory is for other data. */
static bool has_no_room(const struct tried *held, const gs_layout *l, const gs_choice *c)
{
    return !l->memory.groups_chunks && c->arena_bytes <= held->first &&
           held->lacks > l->memory.on_hosts * (held->first - c->arena_bytes);
}

/* Plans with one arena. A first one tells the size of tables and what devices access; its ring being endless, a small
 * ring's tables may be larger by half: `tight`. */
static gs_status try_arena(struct best *best, const gs_layout *l, gs_choice *c, uint64_t arena, bool tight)
{
    static const struct {
        uint32_t share; /* of the device's spare memory, for staging */
        gs_cache_parts parts;
    } ways[] = {{1, GS_PARTS_PASS}, {4, GS_PARTS_WHOLE}, {16, GS_PARTS_WHOLE}, {2, GS_PARTS_WHOLE},
                {4, GS_PARTS_PASS}, {4, GS_PARTS_BY_SIZE}};
    uint64_t tables;
    uint32_t tasks;
    gs_status st;

    if (!gs_choice_set_arena(c, l, arena) || (!tight && was_tried(best->held, c->held_bytes, 0)) ||
        is_crammed(best, l, c))
        return GS_ENOFIT;
    if (l->config->any_plan)
        return try_least(best, l, c, arena);
    make_room(best, l);
    GS_TRY(gs_device_cache_begin(c, l));
    if (has_no_room(best->held, l, c))
        return GS_ENOFIT;
    if ((st = probe_arena(l, c, &tables, &tasks)) != GS_OK) {
        best->crammed = st == GS_ENOFIT && c->crammed && leaves_little(l, c);
        return st;
    }
    tables += tight ? tables / 2 : 0;
    const bool many = l->config->cost != NULL && tasks <= MANY_TASKS;
    uint64_t lacks = UINT64_MAX, short_of = 0;
    bool any = false;
    const size_t tries = c->device.devices == 0 ? 1 : many ? GS_ARRAY_LEN(ways) : 2;
    for (size_t i = 0; i < tries; i++) {
        const size_t k = (i + (l->config->keeps_first && tries > 1)) % tries;
        if (ways[k].parts == GS_PARTS_BY_SIZE && short_of == 0) /* what is there lies well */
            continue;
        GS_TRY(divide(c, l, c->spare_bytes / ways[k].share, ways[k].parts));
        short_of += ways[k].parts == GS_PARTS_WHOLE ? c->device.short_of : 0;
        const bool all = has_all(c, l);
        lacks = GS_MIN(lacks, host_lacks(l, c, tables + tables / 8));
        st = try_host(best, l, c, tables, many);
        if (st != GS_OK && st != GS_ENOFIT)
            return st;
        any = any || st == GS_OK;
        if (st == GS_OK && (all || is_enough(best, l)))
            break;
    }
    if (best->held->first == 0 && !tight) {
        best->held->first = c->arena_bytes;
        best->held->lacks = c->device.crowded ? 0 : lacks;
    }
    if (!any && c->device.crowded) {
        gs_device_cache_drop(c);
        GS_TRY(divide(c, l, c->spare_bytes, GS_PARTS_PASS));
        return try_host(best, l, c, tables, many);
    }
    return any ? GS_OK : GS_ENOFIT;
}

/* Devices as they were in the best plan so far, or for another order of columns. */
static gs_status devices_again(const struct best *best, const gs_layout *l, gs_choice *c)
{
    uint64_t tables;
    uint32_t tasks;

    if (best->listed == 0) {
        gs_device_cache_drop(c);
        return divide(c, l, best->staging, best->parts);
    }
    GS_TRY(gs_device_cache_begin(c, l));
    GS_TRY(probe_arena(l, c, &tables, &tasks));
    return divide(c, l, best->staging, best->parts);
}

/* ---- the cache: what the store's data leaves to be kept is decided access by access ---- */

/* Lists the accesses of the pass that is cached. */
static gs_status trace_accesses(const gs_layout *l, gs_choice *c)
{
    gs_plan *probe = NULL;
    gs_status st;

    c->ring_bytes = GS_RING_ENDLESS;
    c->host.tracing = true;
    st = gs_emit_count(&probe, l, c);
    c->host.tracing = false;
    gs_plan_free(probe);
    return st;
}

/* GS_ENOFIT: it does not fit. The plan is compared with the best one, or given out where there is none. */
static gs_status plan_cached(gs_plan **out, struct best *best, const gs_layout *l, gs_choice *c, uint64_t ring,
                             uint64_t capacity)
{
    gs_cache_plan cache = {0};
    gs_plan *plan = NULL;
    gs_status st = trace_accesses(l, c);
    const gs_cache_input in = {.access = c->host.list.access, .accesses = c->host.list.accesses,
                               .units = gs_layout_units(l), .capacity = capacity, .across = true};

    if (st != GS_OK || (st = gs_cache_plan_make(&cache, &in)) != GS_OK)
        return st;
    c->ring_bytes = ring;
    c->host.list.plan = &cache;
    c->host.capacity = capacity;
    if ((st = gs_emit(&plan, l, c)) == GS_OK && plan->host_bytes > l->config->host_memory) {
        gs_plan_free(plan);
        st = GS_ENOFIT;
    }
    if (st == GS_OK && best != NULL)
        st = compare(best, l, c, plan);
    else if (st == GS_OK)
        *out = plan;
    c->host.list.plan = NULL;
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
    st = plan_cached(NULL, best, l, c, ring, gs_align_down(left - ring - c->places.bytes, GS_BLOCK_BYTES));
    return st == GS_ENOFIT ? GS_OK : st; /* the plan without it stands */
}

static gs_status with_cache(struct best *best, const gs_layout *l, gs_choice *c)
{
    const uint64_t ring = best->ring;
    gs_status st = GS_OK;

    if (c->cached_pass == l->program->passes || l->config->force_spill || best->cost == 0 || best->tasks > MANY_TASKS ||
        is_enough(best, l) || !gs_choice_set_arena(c, l, best->arena))
        return GS_OK;
    GS_TRY(devices_again(best, l, c));
    c->made_only = true;
    for (int keep = 1; keep >= 0 && st == GS_OK && !is_enough(best, l); keep--)
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

    if (!gs_choice_set_arena(a->c, a->l, b->arena))
        return GS_ENOFIT;
    GS_TRY(devices_again(b, a->l, a->c));
    if (b->capacity == 0)
        return try_choice(out, a->l, a->c, b->keep, b->ring);
    a->c->made_only = true;
    gs_choice_keep(a->c, a->l, b->keep);
    const gs_status st = plan_cached(out, NULL, a->l, a->c, b->ring, b->capacity);
    a->c->made_only = false;
    return st;
}

/* Is the search for an order more than one of many programs may take? */
static bool is_too_long(const struct best *best, const gs_layout *l)
{
    gs_effort *const effort = l->config->effort;
    const uint64_t share = l->memory.own == 0 ? 1 : DEVICES_ORDER;

    if (effort == NULL || !effort->screens ||
        gs_effort_left(l->config, best->cost) >= share * GS_ORDER_TRIES * best->tasks)
        return false;
    return effort->cut = true;
}

/* May plans of this length be tried with other orders? */
static bool has_orders(const struct best *best, const gs_layout *l, const gs_choice *c)
{
    return c->cached_pass < l->program->passes && l->config->cost != NULL && !l->config->no_swap && best->cost > 0 &&
           best->tasks <= MANY_TASKS && !is_enough(best, l);
}

static gs_status with_order(struct best *best, const gs_layout *l, gs_choice *c, uint32_t tries)
{
    struct again again = {best, l, c};
    if (!has_orders(best, l, c) || is_too_long(best, l) || !gs_choice_set_arena(c, l, best->arena))
        return GS_OK;
    return gs_order_search(&best->plan, best->cost, l, c, c->cached_pass, tries, is_short(best, l), plan_again, &again);
}

/* The second plan in an order of its own takes the best one's place where that is worth it. */
static gs_status with_second(struct best *best, const gs_layout *l, gs_choice *c)
{
    struct best *const second = best->second;
    double cost = 0, other = 0;

    if (!second->found || second->arena == best->arena || second->cost > SECOND_NEAR * best->cost ||
        is_short(best, l) || (l->config->effort != NULL && l->config->effort->screens) || !has_orders(second, l, c))
        return GS_OK;
    gs_status st = plan_again(&second->plan, &(struct again){second, l, c});
    if (st == GS_OK && (st = with_order(second, l, c, SECOND_TRIES)) == GS_OK &&
        (st = plan_cost(&cost, l, best->plan)) == GS_OK && (st = plan_cost(&other, l, second->plan)) == GS_OK &&
        other < GS_ORDER_WORTH * cost) {
        const struct best was = *best;
        *best = *second;
        *second = was;
    }
    gs_plan_free(second->plan);
    return st == GS_ENOFIT ? GS_OK : st;
}

/* With so much to stage on each device. */
static gs_status try_staging(struct best *best, const gs_layout *l, gs_choice *c, uint64_t staging)
{
    uint64_t tables;
    uint32_t tasks;

    GS_TRY(divide(c, l, staging, false));
    GS_TRY(probe_arena(l, c, &tables, &tasks));
    return try_host(best, l, c, tables, false);
}

/* Devices on host memory that stage less than they could leave it to the host: a part of it, and of that, down to the
 * least, with which there is a plan if there is any. */
static gs_status try_staged_less(struct best *best, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    gs_least least = {0};
    gs_plan *plan = NULL;
    gs_status st = GS_ENOFIT;

    gs_device_cache_drop(c);
    if (l->config->any_plan || !gs_choice_set_arena(c, l, arena) || is_crammed(best, l, c))
        return GS_ENOFIT;
    uint64_t staging = l->memory.arenas > 0 ? c->spare_bytes / STAGED_LESS : 0;
    if (staging > 0 && (st = try_staging(best, l, c, staging)) != GS_ENOFIT)
        return st;
    GS_TRY(gs_choice_least(&least, l, c, arena, l->config->host_memory));
    do {
        staging = GS_MAX(staging / STAGED_LESS, least.staging);
        st = try_staging(best, l, c, staging);
    } while (st == GS_ENOFIT && staging > least.staging);
    if (st == GS_ENOFIT && (st = try_choice(&plan, l, c, 0, least.ring)) == GS_OK)
        st = compare(best, l, c, plan);
    return st;
}

/* With what else is needed at the least. GS_OK, too, where there is no plan. */
static gs_status try_tightly(struct best *best, const gs_layout *l, gs_choice *c, uint64_t arena)
{
    gs_status st = try_arena(best, l, c, arena, true);

    st = st == GS_ENOFIT ? try_staged_less(best, l, c, arena) : st;
    if (st != GS_ENOFIT)
        return st;
    c->chunks_alone = false;
    return GS_OK;
}

/* The arenas and staging rings of which a refusal names the least host memory: what it names must do. And those that
 * were tried, of which any plan that was looked for may have come. */
static gs_status try_named(struct best *best, const gs_layout *l, gs_choice *c, uint64_t least)
{
    const uint64_t most = l->config->device_memory - l->config->device_fixed;

    for (uint64_t arena = GS_REFUSED_ARENAS * least; arena >= least && !best->found; arena /= 2)
        if (arena <= most && !is_enough(best, l))
            GS_TRY(try_tightly(best, l, c, arena));
    for (uint32_t k = 0; k < best->held->count && !best->found; k++)
        if (!l->config->any_plan && !is_enough(best, l))
            GS_TRY(try_tightly(best, l, c, best->held->arena[k]));
    return GS_OK;
}

/* What an arena costs to try: it is counted, and planned with some rings. */
#define PLANS_AN_ARENA 4u

/* The next smaller arena: by quarters, or in larger steps where there is no time to plan so many. */
static uint64_t smaller_arena(const struct best *best, const gs_layout *l, uint64_t arena, uint64_t least)
{
    const gs_schedule_config *const cfg = l->config;
    const uint64_t each = PLANS_AN_ARENA * (uint64_t)(cfg->effort == NULL ? 1 : GS_MAX(cfg->effort->last, 1u));
    const uint64_t left = gs_effort_left(cfg, best->found ? best->cost : 0) / 2 / each;
    uint64_t steps = 1, at = arena;

    while (at > least && steps++ < left)
        at = at / 4 * 3;
    if (at <= least)
        return arena / 4 * 3;
    for (steps = 1, at = arena; at > least && steps++ < left;) /* by halves */
        at /= 2;
    return at <= least ? arena / 2 : arena / 4;
}

/* Where arenas were tried in large steps: those around the best one, while that makes it better. */
static gs_status refine(struct best *best, const gs_layout *l, gs_choice *c, uint64_t least, struct tried *tried)
{
    static const double steps[] = {2, 1.0 / 2, 4.0 / 3, 3.0 / 4, 8.0 / 7, 7.0 / 8, 16.0 / 15, 15.0 / 16};
    const uint64_t most = l->config->device_memory - l->config->device_fixed;
    gs_status st = GS_OK;

    for (size_t k = 0; k < GS_ARRAY_LEN(steps) && st == GS_OK && !is_enough(best, l); k++) {
        const uint64_t was = best->arena, arena = (uint64_t)(steps[k] * (double)was);
        if (arena < least || arena > most || was_tried(tried, arena, arena / LIKE_ARENAS))
            continue;
        st = try_arena(best, l, c, arena, false);
        st = st == GS_ENOFIT ? GS_OK : st;
        if (best->arena != was)
            k = (size_t)-1; /* from the new one on */
    }
    return st;
}

/* Where the sizes are asked for that would do: are they beyond the budgets? Else there may be a plan. */
static bool is_refused(gs_status *st, const gs_layout *l, gs_choice *c)
{
    const gs_schedule_config *const cfg = l->config;
    const gs_refusal none = {.least_tables = l->least_tables};
    gs_refusal *const r = cfg->refusal;

    *r = none;
    *st = gs_choice_refuse(c, l);
    if (*st != GS_EBUDGET || (r->host == 0 && r->device == 0) || r->device > cfg->device_memory ||
        r->host > cfg->host_memory + cfg->host_varies)
        return true;
    *r = none;
    c->host_most = cfg->host_memory;
    c->chunks_alone = false;
    return false;
}

/* For those who make the plan again. (An order of columns that was looked for is not known.) */
static void note_found(const gs_layout *l, const struct best *best)
{
    gs_effort *const effort = l->config->effort;
    bool ordered = false;

    for (uint32_t i = 0; i < best->plan->passes; i++)
        ordered = ordered || best->plan->pass[i].order.tried > 0;
    if (effort != NULL)
        effort->found = (gs_found){.known = !ordered && !l->config->any_plan && best->cost > 0,
                                   .listed = best->listed, .parts = best->parts, .arena = best->arena,
                                   .ring = best->ring, .keep = best->keep, .staging = best->staging,
                                   .capacity = best->capacity, .cost = best->cost};
}

/* The plan that was found before. GS_ENOFIT: none was, or there is none now. */
static gs_status find_again(gs_plan **out, double *cost, const gs_layout *l, gs_choice *c)
{
    const gs_effort *const effort = l->config->effort;

    if (effort == NULL || !effort->again || !effort->found.known || l->config->any_plan)
        return GS_ENOFIT;
    const gs_found *const f = &effort->found;
    const struct best best = {.found = true, .cost = f->cost, .arena = f->arena, .ring = f->ring, .keep = f->keep,
                              .staging = f->staging, .listed = f->listed, .parts = f->parts,
                              .capacity = f->capacity};
    *cost = f->cost;
    return plan_again(out, &(struct again){&best, l, c});
}

/* From all of the device's memory down to the least. */
static gs_status try_arenas(struct best *best, const gs_layout *l, gs_choice *c, uint64_t least, struct tried *tried)
{
    const gs_schedule_config *const cfg = l->config;
    uint64_t arena = cfg->device_memory - cfg->device_fixed;

    for (;; arena = smaller_arena(best, l, arena, least)) {
        arena = GS_MAX(arena, least);
        (void)was_tried(tried, arena, arena / LIKE_ARENAS);
        gs_status st = try_arena(best, l, c, arena, false);
        if (st != GS_OK && st != GS_ENOFIT)
            return st;
        if (cfg->any_plan && !best->found && best->held->count == 1 &&
            (st = try_named(best, l, c, least)) != GS_OK)
            return st;
        if (arena == least || (best->found && best->cost == 0) || best->crammed || is_enough(best, l))
            return GS_OK;
        arena = GS_MIN(arena, c->held_bytes ? c->held_bytes : arena);
    }
}

/* The best plan within the budgets. One that a refusal has named is tried first with the arenas that it looked at,
 * whose plans are counted. */
static gs_status search(gs_plan **out, double *cost, const gs_layout *l, gs_choice *c)
{
    const gs_schedule_config *cfg = l->config;
    const uint64_t least = gs_layout_least_arena(l);
    struct tried tried = {0}, held = {0};
    struct best second = {0}, best = {.held = &held, .second = &second};
    gs_status st = GS_OK;

    if (cfg->device_memory < cfg->device_fixed + least || gs_layout_least_host(l) > cfg->host_memory)
        return l->long_tiles ? GS_ENOFIT : gs_choice_refuse(c, l);
    if (cfg->effort != NULL)
        cfg->effort->chosen = true;
    c->counts = cfg->any_plan && !cfg->listed;
    if (cfg->any_plan && !cfg->no_sizes && !l->long_tiles && cfg->refusal != NULL) {
        if (is_refused(&st, l, c))
            return st;
        st = GS_OK;
    }
    if (cfg->any_plan && cfg->counted && (st = try_named(&best, l, c, least)) == GS_OK && !best.found)
        best.least_tables = 0; /* of a small arena */
    if (st == GS_OK && !best.found)
        st = try_arenas(&best, l, c, least, &tried);
    if (st == GS_OK && best.found && best.cost > 0 && cfg->effort != NULL)
        st = refine(&best, l, c, least, &tried);
    if (st == GS_OK && !best.found && !best.crammed && !cfg->any_plan)
        st = try_named(&best, l, c, least);
    if (st == GS_OK && !best.found && cfg->refusal != NULL)
        cfg->refusal->tables = best.least_tables;
    if (st == GS_OK && !best.found)
        return l->long_tiles ? GS_ENOFIT : gs_choice_refuse(c, l);
    if (st == GS_OK)
        st = with_cache(&best, l, c);
    if (st == GS_OK && best.plan == NULL)
        st = plan_again(&best.plan, &(struct again){&best, l, c});
    if (st == GS_OK)
        st = with_order(&best, l, c, GS_ORDER_TRIES);
    if (st == GS_OK)
        st = with_second(&best, l, c);
    if (st == GS_OK) {
        note_found(l, &best);
        *out = best.plan;
    } else {
        gs_plan_free(best.plan);
    }
    *cost = best.cost;
    return st;
}

/* With everything in memory, if there is room: GS_ENOFIT where there is not. */
static gs_status keep_all(gs_plan **out, const gs_layout *l, gs_choice *c)
{
    const gs_schedule_config *cfg = l->config;
    if (cfg->force_spill || cfg->device_memory < cfg->device_fixed ||
        !gs_choice_set_arena(c, l, cfg->device_memory - cfg->device_fixed) || !gs_choice_keep(c, l, cfg->host_memory) ||
        cfg->host_fixed + l->least_tables + c->places.bytes > cfg->host_memory)
        return GS_ENOFIT;
    return try_choice(out, l, c, cfg->host_memory, GS_BLOCK_BYTES);
}

/* For the pass that runs most often. */
static uint64_t flight_bytes(const gs_plan *plan, const gs_layout *l)
{
    uint32_t pass = 0;

    for (uint32_t i = 1; i < l->program->passes; i++)
        pass = gs_pass_weight(l, i) > gs_pass_weight(l, pass) ? i : pass;
    const gs_simulation_input input = gs_simulation_of(l, plan, pass);
    return gs_flight_bytes(&input);
}

static gs_status schedule(gs_plan **out, double *cost, const gs_schedule_config *config, gs_tiles tiles)
{
    gs_effort *const effort = config->effort;
    gs_layout l = {0};
    gs_choice c = {0};

    if (effort != NULL && effort->again && effort->found.known && effort->found.tiles != tiles)
        return GS_ENOFIT;
    GS_TRY(gs_layout_make(&l, config, tiles));
    if (gs_refuse_early(&l)) {
        gs_layout_drop(&l);
        return gs_fail(GS_EBUDGET, "no plan fits the budgets");
    }
    gs_status st = gs_choice_make(&c, &l);
    c.counts = config->counted;
    if (st == GS_OK && tiles == GS_TILES_IN_PLACE)
        st = keep_all(out, &l, &c);
    else if (st == GS_OK && (st = find_again(out, cost, &l, &c)) == GS_ENOFIT)
        st = search(out, cost, &l, &c);
    if (st == GS_OK && !c.counts)
        (*out)->flight_bytes = flight_bytes(*out, &l);
    if (st == GS_OK && effort != NULL)
        effort->found.tiles = tiles;
    gs_choice_drop(&c);
    gs_layout_drop(&l);
    return st;
}

gs_status gs_schedule_search(gs_plan **out, double *cost, const gs_schedule_config *config)
{
    const gs_tiles first = gs_layout_tiles(config->topology);
    const gs_status st = schedule(out, cost, config, first);

    return st == GS_ENOFIT && first != GS_TILES_SHORT ? schedule(out, cost, config, GS_TILES_SHORT) : st;
}
