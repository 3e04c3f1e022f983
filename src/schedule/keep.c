/* keep.c - what stays in memory between tasks: in the host's for good, in devices' by their next use. */
#include "schedule/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

/* ---- the host ------------------------------------------------------------- */

/* What stays in host memory for good.
 *
 * A first part of a file each, files ranked by the bytes that an epoch saves for each byte held. cache.c decides about
 * the rest where that is better.
 */

static double stage_weight(const gs_layout *l, uint32_t stage)
{
    const gs_program *const p = l->program;
    for (uint32_t i = 0; i < p->passes; i++)
        if (stage >= p->pass[i].first_stage && stage < p->pass[i].first_stage + p->pass[i].stages)
            return gs_pass_weight(l, i);
    return 1.0;
}

/* Times that the chunks of a column, and the rows at their operand ends, are gone over. */
static double sweeps_of(const gs_choice *c, const gs_layout *l, uint32_t stage)
{
    if (!gs_stage_is_back(&l->program->stage[stage]) || l->parts == 1)
        return 1;
    return c->group[stage] > 1 ? 3 : 2;
}

/* Times a whole array goes over the disk's wire for one use by a stage in an epoch, but for the stage's weight. */
static double times_used(const gs_choice *c, const gs_layout *l, uint32_t stage, gs_use_role role)
{
    const uint32_t step = GS_MAX(c->block[stage], 1) * l->memory.devices;

    switch (role) {
    case GS_USE_OPERAND:
    case GS_USE_SCALE:
        return c->operand_uses[stage] * sweeps_of(c, l, stage);
    case GS_USE_BACK:
        return 2.0 * (double)gs_div_up(l->parts, step) - 1;
    case GS_USE_TARGET:
    case GS_USE_LOAD:
        return 1;
    case GS_USE_STORE:
        return 1 + GS_WEAR_SHARE;
    default:
        return 0;
    }
}

/* The same of every file, a direction's edges among them, in all stages: one sweep over the program. */
static void count_uses(const gs_choice *c, const gs_layout *l, double *uses)
{
    const gs_program *const p = l->program;
    const uint32_t files = p->arrays + l->sets;

    memset(uses, 0, files * sizeof(*uses));
    for (uint32_t s = 0; s < p->stages; s++) {
        const double weight = stage_weight(l, s);
        if (p->stage[s].sums)
            uses[GS_FILE_EDGES(p, l->stage_set[s])] += weight * sweeps_of(c, l, s);
        for (const gs_array_use *u = gs_layout_uses(l, s); u < gs_layout_uses(l, s + 1); u++)
            uses[u->array] += weight * times_used(c, l, s, u->role);
    }
    for (uint32_t f = 0; f < files && c->device.used_bytes > 0; f++)
        uses[f] *= c->device.host_share[f];
    /* Between passes the run goes over tables, their state and their gradients, on the host. */
    for (uint32_t a = 0; a < p->arrays; a++)
        uses[a] += p->array[a].lasting ? 2 + GS_WEAR_SHARE : p->array[a].result ? 1 : 0;
}

static uint64_t file_bytes(const gs_layout *l, uint32_t file)
{
    if (file < l->program->arrays)
        return l->row_bytes[file] * l->chunks->vertices;
    return l->set_bytes[file - l->program->arrays];
}

/* Keeps the first `room` bytes of `file`, or what is whole of them. */
static void keep_part(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t room)
{
    if (file >= l->program->arrays) {
        const uint32_t set = file - l->program->arrays;
        c->kept_edges[set] = GS_MIN(l->set_bytes[set], room);
    } else {
        const uint64_t interval = l->row_bytes[file] * l->chunks->interval_rows;
        if (room >= gs_choice_room(l, file_bytes(l, file)))
            c->kept_intervals[file] = l->parts;
        else
            c->kept_intervals[file] = (uint32_t)GS_MIN(room / GS_MAX(interval, 1), l->parts - 1);
    }
}

/* Keeps as much of `file` as there is room for below `limit`. */
static void keep_file(gs_choice *c, const gs_layout *l, uint32_t file, uint64_t limit)
{
    const uint64_t whole = gs_choice_room(l, file_bytes(l, file));
    keep_part(c, l, file, gs_align_down(gs_liveness_room(c, l, file, whole, limit), l->config->array_sum_bytes));
    const uint64_t bytes = gs_choice_room(l, gs_choice_kept_bytes(c, l, file));
    if (bytes > 0)
        gs_liveness_settle(c, l, file, bytes);
}

/* Is the file one of the store's, and no narrow array, whose reads are mostly overhead? */
static bool left_to_cache(const gs_layout *l, uint32_t file)
{
    return file >= l->program->arrays ||
           (l->program->array[file].store_id >= 0 && l->row_bytes[file] > GS_SHORT_ROW_BYTES);
}

/* Sets the bytes that keeping each file saves; 0: none. Narrow arrays come first, since their reads are mostly
 * overhead. */
static void rank_files(gs_choice *c, const gs_layout *l)
{
    count_uses(c, l, c->rank);
    for (uint32_t f = 0; f < l->program->arrays + l->sets; f++) {
        const double uses = c->made_only && left_to_cache(l, f) ? 0 : c->rank[f];
        const bool narrow = f < l->program->arrays && l->row_bytes[f] <= GS_SHORT_ROW_BYTES;
        c->rank[f] = uses > 0 && narrow ? uses + 1e6 : uses;
    }
}

/* The first file of the highest rank, or GS_NONE. */
static uint32_t highest_file(const gs_choice *c, uint32_t files)
{
    uint32_t best = GS_NONE;
    for (uint32_t f = 0; f < files; f++)
        if (c->rank[f] > (best == GS_NONE ? 0 : c->rank[best]))
            best = f;
    return best;
}

static void keep_nothing(gs_choice *c, const gs_layout *l)
{
    memset(c->kept_intervals, 0, l->program->arrays * sizeof(*c->kept_intervals));
    memset(c->kept_edges, 0, l->sets * sizeof(*c->kept_edges));
    gs_liveness_begin(c, l);
}

/* Everything, if there is room. */
static bool keep_whole(gs_choice *c, const gs_layout *l, uint64_t bytes)
{
    for (uint32_t f = 0; f < l->program->arrays + l->sets; f++)
        if (c->rank[f] > 0)
            keep_part(c, l, f, UINT64_MAX);
    gs_liveness_pack(c, l);
    return c->places.bytes <= bytes;
}

bool gs_choice_keep(gs_choice *c, const gs_layout *l, uint64_t bytes)
{
    const uint32_t files = l->program->arrays + l->sets;
    bool whole = true;

    c->keep_bytes = bytes;
    gs_liveness_find(c, l);
    rank_files(c, l);
    keep_nothing(c, l);
    if (keep_whole(c, l, bytes))
        return true;
    keep_nothing(c, l);
    for (uint32_t f; (f = highest_file(c, files)) != GS_NONE;) {
        c->rank[f] = 0;
        keep_file(c, l, f, bytes);
        whole = whole && gs_choice_kept_bytes(c, l, f) >= file_bytes(l, f);
    }
    return whole;
}

/* ---- devices -------------------------------------------------------------- */

/* What stays in the memory of a device that has its own, when all accesses of a run are known.
 *
 * The same rule as for the host's memory (cache.h), for each device and each pass. The pass that epochs consist of is
 * planned first, as a cycle: what it begins and ends with is loaded once, and other passes find it and leave it where
 * it is. They plan the rest of the memory for themselves. Arrays that a stage makes are units too: where a device keeps
 * what it made until its last use, and no one else wants it, those rows never leave it.
 */

/* With more units than this, all devices together, planning would take longer than it saves. */
#define UNITS_MOST 400000u

/* -- units ---------------------------------------------------------------------- */

uint32_t gs_layout_units(const gs_layout *l)
{
    return l->program->arrays * l->parts + l->sets * l->parts * l->parts;
}

uint64_t gs_layout_unit_bytes(const gs_layout *l, uint32_t unit)
{
    const uint32_t rows_units = l->program->arrays * l->parts, chunks = l->parts * l->parts;

    if (unit < rows_units)
        return gs_align_up(l->row_bytes[unit / l->parts] * gs_interval_rows(l->chunks, unit % l->parts),
                           GS_BLOCK_BYTES);
    return gs_align_up(l->set[(unit - rows_units) / chunks].chunk[(unit - rows_units) % chunks].length, GS_BLOCK_BYTES);
}

static bool is_lasting(const gs_layout *l, uint32_t unit)
{
    const uint32_t array = unit / l->parts;
    return array < l->program->arrays && l->program->array[array].lasting;
}

bool gs_layout_unit_stays(const gs_layout *l, uint32_t unit)
{
    const uint32_t array = unit / l->parts;
    return array >= l->program->arrays || l->spill_interval[array] == 0 || l->stored_by[array] != GS_NONE ||
           is_lasting(l, unit) || l->memory.devices == 1;
}

static uint32_t file_of(const gs_layout *l, uint32_t unit)
{
    const uint32_t rows_units = l->program->arrays * l->parts;
    return unit < rows_units ? unit / l->parts
                             : GS_FILE_EDGES(l->program, (unit - rows_units) / (l->parts * l->parts));
}

/* The pass whose stage makes the unit's array; GS_NONE: the store has it. */
static uint32_t made_in(const gs_layout *l, uint32_t unit)
{
    const uint32_t file = file_of(l, unit), by = file < l->program->arrays ? gs_layout_made_by(l, file) : GS_NONE;

    for (uint32_t p = 0; by != GS_NONE && p < l->program->passes; p++)
        if (by >= l->program->pass[p].first_stage && by - l->program->pass[p].first_stage < l->program->pass[p].stages)
            return p;
    return GS_NONE;
}

/* -- memory --------------------------------------------------------------------- */

void gs_device_cache_drop_plan(gs_choice *c, const gs_layout *l)
{
    gs_device_cache *const k = &c->device;

    for (uint32_t i = 0; k->plan != NULL && i < k->devices * k->passes; i++) {
        gs_cache_plan_drop(&k->plan[i]);
        k->list[i].plan = NULL;
    }
    for (uint32_t d = 0; k->fixed != NULL && d < k->devices; d++) {
        gs_free(k->fixed[d]);
        k->fixed[d] = NULL;
        k->fixeds[d] = 0;
    }
    k->used_bytes = k->load_most = k->short_of = 0;
    memset(k->used, 0, sizeof(k->used));
    for (uint32_t f = 0; k->host_share != NULL && l != NULL && f < l->program->arrays + l->sets; f++)
        k->host_share[f] = 1;
    if (k->own != NULL && l != NULL) {
        memset(k->own, 0, (size_t)l->program->arrays * l->parts * sizeof(*k->own));
        memset(k->named, 0, (size_t)l->program->arrays * l->parts * sizeof(*k->named));
        memset(k->alone, 0, l->program->arrays * sizeof(*k->alone));
    }
}

void gs_device_cache_drop(gs_choice *c)
{
    gs_device_cache *const k = &c->device;

    gs_device_cache_drop_plan(c, NULL);
    for (uint32_t i = 0; k->list != NULL && i < k->devices * k->passes; i++)
        gs_free(k->list[i].access);
    gs_arena_free(&k->arrays);
    *k = (gs_device_cache){0};
}

gs_status gs_device_cache_begin(gs_choice *c, const gs_layout *l)
{
    const uint32_t devices = l->memory.own, passes = l->program->passes;
    gs_device_cache *const k = &c->device;

    gs_device_cache_drop(c);
    if (devices == 0 || l->config->force_spill ||
        (uint64_t)devices * l->parts * ((uint64_t)l->program->arrays + (uint64_t)l->sets * l->parts) > UNITS_MOST)
        return GS_OK;
    k->devices = devices;
    k->passes = passes;
    k->list = gs_arena_take(&k->arrays, (size_t)devices * passes + 1, sizeof(*k->list));
    k->plan = gs_arena_take(&k->arrays, (size_t)devices * passes + 1, sizeof(*k->plan));
    k->fixed = gs_arena_take(&k->arrays, devices, sizeof(*k->fixed));
    k->fixeds = gs_arena_take(&k->arrays, devices, sizeof(*k->fixeds));
    k->own = gs_arena_take(&k->arrays, (size_t)l->program->arrays * l->parts + 1, sizeof(*k->own));
    k->named = gs_arena_take(&k->arrays, (size_t)l->program->arrays * l->parts + 1, sizeof(*k->named));
    k->alone = gs_arena_take(&k->arrays, l->program->arrays + 1, sizeof(*k->alone));
    k->host_share = gs_arena_take(&k->arrays, l->program->arrays + l->sets, sizeof(*k->host_share));
    if (k->arrays.is_short)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    gs_device_cache_drop_plan(c, l);
    return GS_OK;
}

/* -- plans ---------------------------------------------------------------------- */

static gs_status plan_list(gs_choice *c, const gs_layout *l, uint32_t device, uint32_t pass, uint64_t capacity,
                           const gs_cache_fixed *fixed, uint32_t fixeds)
{
    gs_device_cache *const k = &c->device;
    gs_cache_list *const list = &k->list[device * k->passes + pass];
    gs_cache_plan *const plan = &k->plan[device * k->passes + pass];
    const gs_cache_input in = {.access = list->access, .accesses = list->accesses, .units = gs_layout_units(l),
                               .capacity = capacity, .parts = k->parts, .across = pass == c->cached_pass,
                               .fixed = fixed, .fixeds = fixeds};
    for (uint32_t i = 0; i < list->accesses; i++) /* lasting rows change on the host, between passes */
        list->access[i].renewed = made_in(l, list->access[i].unit) == pass || is_lasting(l, list->access[i].unit);

    GS_TRY(gs_cache_plan_make(plan, &in));
    list->plan = plan;
    k->short_of += pass == c->cached_pass ? plan->short_of : 0;
    k->used[device] = GS_MAX(k->used[device], gs_align_up(plan->used_bytes, GS_BLOCK_BYTES));
    k->used_bytes = GS_MAX(k->used_bytes, k->used[device]);
    return GS_OK;
}

static int by_place(const void *a, const void *b)
{
    const gs_cache_fixed *const x = a, *const y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* Lists the units that an epoch begins with, and so ends with: those whose first access is a hit. */
static gs_status list_fixed(gs_choice *c, const gs_layout *l, uint32_t device)
{
    gs_device_cache *const k = &c->device;
    const gs_cache_list *const list = &k->list[device * k->passes + c->cached_pass];
    bool *const seen = gs_calloc(gs_layout_units(l) + 1ull, sizeof(*seen));
    gs_cache_fixed *const fixed = gs_malloc_array((size_t)list->accesses + 1, sizeof(*fixed));
    uint32_t n = 0;

    if (seen == NULL || fixed == NULL) {
        gs_free(seen);
        gs_free(fixed);
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    }
    for (uint32_t i = 0; i < list->accesses; i++) {
        const uint32_t unit = list->access[i].unit;
        if (!seen[unit] && list->plan->hit[i]) {
            fixed[n++] = (gs_cache_fixed){unit, list->plan->place[i], list->access[i].bytes};
            k->load_most = GS_MAX(k->load_most, list->access[i].bytes + 2 * l->config->array_sum_bytes);
        }
        seen[unit] = true;
    }
    gs_free(seen);
    qsort(fixed, n, sizeof(*fixed), by_place);
    k->fixed[device] = fixed;
    k->fixeds[device] = n;
    return GS_OK;
}

/* Plans a pass that makes units which are loaded only after it: their places are taken, and that is all. */
static gs_status plan_other(gs_choice *c, const gs_layout *l, uint32_t device, uint32_t pass, uint64_t capacity)
{
    const gs_device_cache *const k = &c->device;
    GS_FREED gs_cache_fixed *const fixed = gs_malloc_array(k->fixeds[device] + 1ull, sizeof(*fixed));

    if (fixed == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t i = 0; i < k->fixeds[device]; i++) {
        fixed[i] = k->fixed[device][i];
        if (made_in(l, fixed[i].unit) == pass)
            fixed[i].unit = UINT32_MAX;
    }
    return plan_list(c, l, device, pass, capacity, fixed, k->fixeds[device]);
}

/* -- what is left for the host ----------------------------------------------------- */

/* A unit that a stage makes: which device made it, and whether somebody misses it there. */
struct wanted {
    uint32_t maker; /* 1 + device; 0: none has it in its memory */
    bool read, missed;
    bool lacked;    /* by that device itself */
};

/* Does the device that has made a unit hand it on to device `to`? */
static bool hands_on(const gs_layout *l, uint32_t maker, uint32_t to)
{
    return maker == 1 + to || (maker > 0 && !l->config->no_chain && !l->memory.apart &&
                               gs_topology_hands_on(l->config->topology, maker - 1, to));
}

/* Accesses that make units, or those that read what was made. */
static void look_at(struct wanted *w, const gs_choice *c, const gs_layout *l, uint32_t device, uint32_t pass, bool made)
{
    const gs_cache_list *const list = &c->device.list[device * c->device.passes + pass];
    const uint32_t rows_units = l->program->arrays * l->parts;

    for (uint32_t i = 0; i < list->accesses; i++) {
        const gs_cache_access *const a = &list->access[i];
        if (a->unit >= rows_units || a->made != made)
            continue;
        struct wanted *const u = &w[a->unit];
        if (a->made) {
            u->lacked = u->lacked || u->maker != 0 || list->plan->place[i] == GS_CACHE_NOWHERE;
            u->maker = 1 + device;
        } else {
            u->read = true;
            u->lacked = u->lacked || made_in(l, a->unit) != pass || (u->maker == 1 + device && !list->plan->hit[i]);
            u->missed = u->missed || l->memory.in_place[device] || !hands_on(l, u->maker, device);
        }
    }
}

/* Does the run read the array on the host, when the pass is over? */
static bool is_result(const gs_layout *l, uint32_t array)
{
    return array == l->program->logits || l->program->array[array].result;
}

/* Units stay `named` of which devices that have not made them need no rows but those that edges into their columns
 * name. */
static void find_named(gs_choice *c, const gs_layout *l, const struct wanted *w)
{
    for (uint32_t s = 0; s < l->program->stages; s++)
        for (const gs_array_use *u = gs_layout_uses(l, s); u < gs_layout_uses(l, s + 1); u++)
            for (uint32_t i = 0; i < l->parts && u->role != GS_USE_STORE; i++) {
                const uint32_t unit = u->array * l->parts + i;
                const uint32_t *const own = gs_choice_deal_of(c, l, s) + GS_MAX(w[unit].maker, 1) - 1;
                if (gs_use_by_edges(u->role) ? l->set[l->stage_set[s]].rows == NULL
                                             : u->role == GS_USE_BACK || i < own[0] || i >= own[1])
                    c->device.named[unit] = false;
            }
}

/* A unit is the device's own that makes it and has it as long as it, and others to which it hands it on, read it in
 * that pass. */
static gs_status find_own(gs_choice *c, const gs_layout *l)
{
    const uint32_t units = l->program->arrays * l->parts;
    GS_FREED struct wanted *const w = gs_calloc(units + 1ull, sizeof(*w));

    if (w == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t k = 0; k < 2 * c->device.passes; k++)
        for (uint32_t d = 0; d < c->device.devices; d++)
            look_at(w, c, l, d, k / 2, k % 2 == 0);
    for (uint32_t u = 0; u < units; u++) {
        const bool stays = l->spill_interval[u / l->parts] != 0 && w[u].maker != 0 && w[u].read && !w[u].lacked &&
                           !is_result(l, u / l->parts);
        c->device.own[u] = stays && !w[u].missed;
        c->device.named[u] = stays && !l->memory.apart && l->config->needs.rows.words > 0;
    }
    find_named(c, l, w);
    for (uint32_t a = 0; a < l->program->arrays; a++) {
        bool some = false, others = false;
        for (uint32_t u = a * l->parts; u < (a + 1) * l->parts; u++) {
            some = some || c->device.own[u];
            others = others || (!c->device.own[u] && (w[u].maker != 0 || w[u].read));
        }
        c->device.alone[a] = some && !others;
    }
    return GS_OK;
}

/* Bytes that accesses ask of the host for, of all that they would if nothing stayed. */
static gs_status find_shares(gs_choice *c, const gs_layout *l)
{
    const uint32_t files = l->program->arrays + l->sets;
    double(*const part)[2] = gs_calloc(files, sizeof(*part));

    if (part == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t i = 0; i < c->device.devices * c->device.passes; i++) {
        const gs_cache_list *const list = &c->device.list[i];
        const double weight = gs_pass_weight(l, i % c->device.passes);
        for (uint32_t k = 0; k < list->accesses; k++) {
            const gs_cache_access *const a = &list->access[k];
            const bool own = a->unit < l->program->arrays * l->parts && c->device.own[a->unit];
            const bool there = list->plan->hit[k] && !a->made;
            const double bytes = weight * (double)(a->made ? a->bytes : a->cost);
            part[file_of(l, a->unit)][1] += bytes;
            part[file_of(l, a->unit)][0] += own || there ? 0 : bytes;
        }
    }
    for (uint32_t f = 0; f < files; f++)
        c->device.host_share[f] = part[f][1] > 0 ? part[f][0] / part[f][1] : 1;
    gs_free(part);
    return GS_OK;
}

gs_status gs_device_cache_plan(gs_choice *c, const gs_layout *l, uint64_t least)
{
    const gs_device_cache *const k = &c->device;
    gs_status st = GS_OK;

    gs_device_cache_drop_plan(c, l);
    for (uint32_t d = 0; d < k->devices && st == GS_OK; d++) {
        const uint64_t more = gs_topology_more(l->config->topology, d, l->config->device_memory);
        const uint64_t capacity = l->memory.in_place[d] ? 0 : least + gs_align_down(more, GS_BLOCK_BYTES);
        if (c->cached_pass < k->passes && (st = plan_list(c, l, d, c->cached_pass, capacity, NULL, 0)) == GS_OK)
            st = list_fixed(c, l, d);
        for (uint32_t p = 0; p < k->passes && st == GS_OK; p++)
            if (p != c->cached_pass)
                st = plan_other(c, l, d, p, capacity);
    }
    if (st == GS_OK && (st = find_own(c, l)) == GS_OK)
        st = find_shares(c, l);
    return st;
}
