/* device_cache.c - what stays in the memory of a device that has its own, when all accesses of a run are known.
 *
 * The same rule as for the host's memory (cache.h), for each device and each pass. The pass that epochs consist of is
 * planned first, as a cycle: what it begins and ends with is loaded once, and other passes find it and leave it where
 * it is. They plan the rest of the memory for themselves. Arrays that a stage makes are units too: where a device keeps
 * what it made until its last use, and no one else wants it, those rows never leave it.
 */
#include "schedule/device_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/deal.h"

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
           is_lasting(l, unit) || gs_layout_devices(l) == 1;
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
    k->used_bytes = k->load_most = 0;
    memset(k->used, 0, sizeof(k->used));
    for (uint32_t f = 0; k->host_share != NULL && l != NULL && f < l->program->arrays + l->sets; f++)
        k->host_share[f] = 1;
    if (k->own != NULL && l != NULL) {
        memset(k->own, 0, (size_t)l->program->arrays * l->parts * sizeof(*k->own));
        memset(k->alone, 0, l->program->arrays * sizeof(*k->alone));
    }
}

void gs_device_cache_drop(gs_choice *c)
{
    gs_device_cache *const k = &c->device;

    gs_device_cache_drop_plan(c, NULL);
    for (uint32_t i = 0; k->list != NULL && i < k->devices * k->passes; i++)
        gs_free(k->list[i].access);
    gs_free(k->list);
    gs_free(k->plan);
    gs_free(k->fixed);
    gs_free(k->fixeds);
    gs_free(k->own);
    gs_free(k->alone);
    gs_free(k->host_share);
    *k = (gs_device_cache){0};
}

gs_status gs_device_cache_begin(gs_choice *c, const gs_layout *l)
{
    const uint32_t devices = gs_layout_devices(l), passes = l->program->passes;
    gs_device_cache *const k = &c->device;

    gs_device_cache_drop(c);
    if (l->config->topology == NULL || l->config->force_spill ||
        (uint64_t)devices * l->parts * ((uint64_t)l->program->arrays + (uint64_t)l->sets * l->parts) > UNITS_MOST)
        return GS_OK;
    k->devices = devices;
    k->passes = passes;
    k->list = gs_calloc((size_t)devices * passes + 1, sizeof(*k->list));
    k->plan = gs_calloc((size_t)devices * passes + 1, sizeof(*k->plan));
    k->fixed = gs_calloc(devices, sizeof(*k->fixed));
    k->fixeds = gs_calloc(devices, sizeof(*k->fixeds));
    k->own = gs_calloc((size_t)l->program->arrays * l->parts + 1, sizeof(*k->own));
    k->alone = gs_calloc(l->program->arrays + 1, sizeof(*k->alone));
    k->host_share = gs_calloc(l->program->arrays + l->sets, sizeof(*k->host_share));
    if (k->list == NULL || k->plan == NULL || k->fixed == NULL || k->fixeds == NULL || k->own == NULL ||
        k->alone == NULL || k->host_share == NULL)
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
                               .capacity = capacity, .bring_parts = k->whole, .across = pass == c->cached_pass,
                               .fixed = fixed, .fixeds = fixeds};
    for (uint32_t i = 0; i < list->accesses; i++) /* lasting rows change on the host, between passes */
        list->access[i].renewed = made_in(l, list->access[i].unit) == pass || is_lasting(l, list->access[i].unit);
    const gs_status st = gs_cache_plan_make(plan, &in);

    if (st == GS_OK) {
        list->plan = plan;
        k->used[device] = GS_MAX(k->used[device], gs_align_up(plan->used_bytes, GS_BLOCK_BYTES));
        k->used_bytes = GS_MAX(k->used_bytes, k->used[device]);
    }
    return st;
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
    gs_cache_fixed *const fixed = gs_malloc_array(k->fixeds[device] + 1ull, sizeof(*fixed));
    gs_status st;

    if (fixed == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t i = 0; i < k->fixeds[device]; i++) {
        fixed[i] = k->fixed[device][i];
        if (made_in(l, fixed[i].unit) == pass)
            fixed[i].unit = UINT32_MAX;
    }
    st = plan_list(c, l, device, pass, capacity, fixed, k->fixeds[device]);
    gs_free(fixed);
    return st;
}

/* -- what is left for the host ----------------------------------------------------- */

/* A unit that a stage makes: which device made it, and whether another one misses it. */
struct wanted {
    uint32_t maker; /* 1 + device; 0: none has it in its memory */
    bool read, missed;
};

static void look_at(struct wanted *w, const gs_choice *c, const gs_layout *l, uint32_t device, uint32_t pass)
{
    const gs_cache_list *const list = &c->device.list[device * c->device.passes + pass];
    const uint32_t rows_units = l->program->arrays * l->parts;

    for (uint32_t i = 0; i < list->accesses; i++) {
        const gs_cache_access *const a = &list->access[i];
        if (a->unit >= rows_units)
            continue;
        struct wanted *const u = &w[a->unit];
        if (a->made) {
            u->missed = u->missed || u->maker != 0 || list->plan->place[i] == GS_CACHE_NOWHERE;
            u->maker = 1 + device;
        } else {
            u->read = true;
            u->missed = u->missed || u->maker != 1 + device || !list->plan->hit[i] || made_in(l, a->unit) != pass;
        }
    }
}

/* Does the run read the array on the host, when the pass is over? */
static bool is_result(const gs_layout *l, uint32_t array)
{
    return array == l->program->logits || l->program->array[array].result;
}

/* A unit that its maker alone reads, in the pass that makes it, is the device's own. */
static gs_status find_own(gs_choice *c, const gs_layout *l)
{
    const uint32_t units = l->program->arrays * l->parts;
    struct wanted *const w = gs_calloc(units + 1ull, sizeof(*w));

    if (w == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t p = 0; p < c->device.passes; p++)
        for (uint32_t d = 0; d < c->device.devices; d++)
            look_at(w, c, l, d, p);
    for (uint32_t u = 0; u < units; u++)
        c->device.own[u] = l->spill_interval[u / l->parts] != 0 && w[u].maker != 0 && w[u].read && !w[u].missed &&
                           !is_result(l, u / l->parts);
    for (uint32_t a = 0; a < l->program->arrays; a++) {
        bool some = false, others = false;
        for (uint32_t u = a * l->parts; u < (a + 1) * l->parts; u++) {
            some = some || c->device.own[u];
            others = others || (!c->device.own[u] && (w[u].maker != 0 || w[u].read || w[u].missed));
        }
        c->device.alone[a] = some && !others;
    }
    gs_free(w);
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
            const double bytes = weight * (double)(a->made ? a->bytes : a->cost);
            part[file_of(l, a->unit)][1] += bytes;
            part[file_of(l, a->unit)][0] += (a->made ? own : list->plan->hit[k]) ? 0 : bytes;
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
        const uint64_t capacity = least + gs_align_down(more, GS_BLOCK_BYTES);
        if (c->cached_pass < k->passes && (st = plan_list(c, l, d, c->cached_pass, capacity, NULL, 0)) == GS_OK)
            st = list_fixed(c, l, d);
        for (uint32_t p = 0; p < k->passes && st == GS_OK; p++)
            if (p != c->cached_pass)
                st = plan_other(c, l, d, p, capacity);
    }
    if (st == GS_OK && k->devices > 0 && (st = find_own(c, l)) == GS_OK)
        st = find_shares(c, l);
    return st;
}
