/* emit_cache.c - what is found in a memory, and what is put there to be found.
 *
 * A pass is emitted twice: once to list its accesses to units of a memory, then with the plan of them (cache.h), access
 * by access in the same order. The host has a plan for the pass that epochs consist of alone; its other passes find
 * what stays between epochs, and leave it where it is. A device has one for each pass.
 */
#include "schedule/emit_cache.h"

#include <stdlib.h>

#include "schedule/device_cache.h"
#include "schedule/emit_cells.h"
#include "schedule/emit_tasks.h"

/* -- opening ---------------------------------------------------------------------- */

/* Lists the units that are on the host when an epoch begins: they are loaded once, when the run opens. */
static gs_status list_first(struct emitter *e)
{
    const gs_cache_list *const list = &e->c->host.list;
    gs_plan *const p = e->plan;

    for (uint32_t k = 0; k < list->accesses; k++) {
        struct cell *const cell = &e->memory[GS_HOST].cell[list->access[k].unit];
        uint64_t skip;
        if (cell->seen)
            continue;
        cell->seen = true;
        if (!list->plan->hit[k])
            continue;
        cell->first_place = e->memory[GS_HOST].base + list->plan->place[k];
        const gs_task t = gs_emit__whole_unit(e, list->access[k].unit, &skip);
        const gs_status st =
            gs_emit__grow((void **)&p->resident, &e->room.resident, p->residents + 1, sizeof(*p->resident));
        if (st != GS_OK)
            return st;
        p->resident[p->residents++] = (gs_resident){
            .file = t.file, .memory = GS_HOST, .first = t.source.offset, .bytes = t.bytes,
            .offset = cell->first_place, .load = true};
    }
    return GS_OK;
}

/* The same on a device: from the host, or once the pass that makes it has run. */
static gs_status list_fixed(struct emitter *e, uint32_t device)
{
    const gs_device_cache *const c = &e->c->device;
    const gs_layout *const l = e->l;
    struct memory *const k = &e->memory[GS_DEVICE_MEMORIES + device];
    gs_plan *const p = e->plan;

    for (uint32_t i = 0; i < c->fixeds[device]; i++) {
        const gs_cache_fixed *const f = &c->fixed[device][i];
        const uint32_t interval = f->unit % l->parts, array = f->unit / l->parts;
        uint64_t skip;
        const gs_status st =
            gs_emit__grow((void **)&p->resident, &e->room.resident, p->residents + 1, sizeof(*p->resident));
        if (st != GS_OK)
            return st;
        gs_resident r = {.memory = k->number, .offset = k->base + f->place, .load = true, .made_by = GS_NONE};
        if (array < l->program->arrays) {
            r.file = array;
            r.first = gs_interval_first(l->chunks, interval) * l->row_bytes[array];
            r.bytes = gs_interval_rows(l->chunks, interval) * l->row_bytes[array];
            r.made_by = l->stored_by[array];
        } else {
            const gs_task t = gs_emit__whole_unit(e, f->unit, &skip);
            r.file = t.file;
            r.first = t.source.offset;
            r.bytes = t.bytes;
            r.target = t.target;
            r.operand = t.operand;
        }
        k->cell[f->unit].first_place = r.offset;
        p->resident[p->residents++] = r;
    }
    return GS_OK;
}

static gs_status open_devices(struct emitter *e)
{
    gs_status st = GS_OK;
    for (uint32_t d = 0; e->c->device.devices > 0 && d < e->devices && st == GS_OK; d++) {
        struct memory *const k = &e->memory[GS_DEVICE_MEMORIES + d];
        k->base = e->c->arena_bytes + e->c->staging_bytes;
        k->tracing = e->c->device.tracing;
        if ((st = gs_emit__cells_open(e, k, gs_layout_units(e->l))) == GS_OK)
            st = list_fixed(e, d);
    }
    return st;
}

gs_status gs_emit__cache_open(struct emitter *e)
{
    struct memory *const host = &e->memory[GS_HOST];
    gs_status st;

    if ((st = open_devices(e)) != GS_OK || (!e->c->host.tracing && e->c->host.list.plan == NULL))
        return st;
    host->tracing = e->c->host.tracing;
    host->base = e->plan->region_bytes[GS_REGION_RESIDENT];
    if ((st = gs_emit__cells_open(e, host, gs_layout_units(e->l))) != GS_OK || e->c->host.list.plan == NULL)
        return st;
    st = list_first(e);
    e->plan->region_bytes[GS_REGION_RESIDENT] += e->c->host.list.plan->used_bytes;
    return st;
}

/* The list that a pass traces or follows; NULL: none. */
static gs_cache_list *list_of(struct emitter *e, const struct memory *k, uint32_t pass)
{
    if (k->number != GS_HOST)
        return &e->c->device.list[(k->number - GS_DEVICE_MEMORIES) * e->c->device.passes + pass];
    return pass == e->c->cached_pass ? &e->c->host.list : NULL;
}

/* Is what an epoch begins with there when this pass runs, which may be the one that makes it? */
static bool is_there(const struct emitter *e, const struct memory *k, uint32_t unit, uint32_t pass)
{
    const gs_pass *const p = &e->l->program->pass[pass];
    const uint32_t array = unit / e->l->parts;
    const uint32_t by = k->number != GS_HOST && array < e->l->program->arrays ? e->l->stored_by[array] : GS_NONE;
    return k->cell[unit].first_place != GS_CACHE_NOWHERE &&
           (by == GS_NONE || by < p->first_stage || by - p->first_stage >= p->stages);
}

static int by_place(const void *a, const void *b, void *cells)
{
    const struct cell *const cell = cells;
    const uint64_t x = cell[*(const uint32_t *)a].place, y = cell[*(const uint32_t *)b].place;
    return (x > y) - (x < y);
}

static void begin(struct emitter *e, struct memory *k, uint32_t pass)
{
    const uint32_t units = gs_layout_units(e->l);

    k->accesses = k->occupants = k->vacancies = 0;
    if (k->cell == NULL)
        return;
    k->list = list_of(e, k, pass);
    if (k->tracing && k->list != NULL)
        k->list->accesses = 0;
    for (uint32_t u = 0; u < units; u++) {
        struct cell *const c = &k->cell[u];
        c->place = is_there(e, k, u, pass) ? c->first_place : GS_CACHE_NOWHERE;
        c->read = c->last = GS_NONE;
        c->users = c->inside = 0;
        c->held = c->place != GS_CACHE_NOWHERE;
        if (c->held)
            k->occupant[k->occupants++] = u;
    }
    qsort_r(k->occupant, k->occupants, sizeof(*k->occupant), by_place, k->cell);
}

void gs_emit__cache_begin(struct emitter *e)
{
    const uint32_t pass = (uint32_t)(e->pass - e->plan->pass);

    for (uint32_t m = GS_HOST; m < GS_DEVICE_MEMORIES + e->devices; m++)
        begin(e, &e->memory[m], pass);
}

void gs_emit__cache_close(struct emitter *e)
{
    for (uint32_t m = GS_HOST; m < GS_DEVICE_MEMORIES + e->devices; m++)
        gs_emit__cells_close(&e->memory[m]);
}

/* -- accesses ----------------------------------------------------------------------- */

/* One access. *to: where the unit is to be put; nowhere, where it is there or is not to stay. */
static gs_status enter(struct emitter *e, struct memory *k, uint32_t unit, const struct access *how, uint64_t *to)
{
    gs_cache_list *const list = k->list;
    gs_status st;

    if (list == NULL)
        return GS_OK;
    const uint32_t n = k->accesses++;
    k->cell[unit].access = n;
    if (k->tracing) {
        if ((st = gs_emit__grow((void **)&list->access, &list->room, n + 1, sizeof(*list->access))) != GS_OK)
            return st;
        list->access[n] = (gs_cache_access){.unit = unit, .whole = how->whole, .bytes = gs_emit__unit_bytes(e, k, unit),
                                            .made = how->made};
        list->accesses = n + 1;
        e->beside += sizeof(*list->access);
        return GS_OK;
    }
    if (list->plan == NULL)
        return GS_OK;
    /* other accesses than were listed: the cache's plan is not for them */
    if (n >= list->accesses || list->access[n].unit != unit)
        return GS_EAGAIN;
    k->cell[unit].held = list->plan->place[n] != GS_CACHE_NOWHERE;
    if (k->cell[unit].held && !list->plan->hit[n])
        *to = k->base + list->plan->place[n];
    return GS_OK;
}

static gs_place place_in(const struct memory *k, uint64_t offset)
{
    return (gs_place){k->number == GS_HOST ? GS_REGION_RESIDENT : GS_REGION_ARENA, k->number, offset};
}

/* One more user of the unit where it is in the memory. */
static void use(struct memory *k, uint32_t unit, struct unit *out)
{
    struct cell *const c = &k->cell[unit];
    c->inside++;
    *out = (struct unit){.place = place_in(k, c->place), .read = c->read, .ring = NOT_STAGED, .cached = unit + 1,
                         .in_cache = true};
}

/* A unit that is in use already gets no access of its own: its use becomes longer. */
static gs_status find(struct emitter *e, struct memory *k, uint32_t unit, const struct access *how, struct unit *out,
                      bool *there, uint64_t *to)
{
    gs_status st = GS_OK;

    *there = false;
    *to = GS_CACHE_NOWHERE;
    if (k->cell == NULL)
        return GS_OK;
    struct cell *const c = &k->cell[unit];
    if (!how->again && c->users == 0 && (st = enter(e, k, unit, how, to)) != GS_OK)
        return st;
    c->users++;
    out->cached = unit + 1;
    out->in_cache = false;
    if (*to != GS_CACHE_NOWHERE || c->place == GS_CACHE_NOWHERE || !c->held)
        return GS_OK;
    use(k, unit, out);
    *there = true;
    return GS_OK;
}

/* -- the host's memory --------------------------------------------------------------- */

static gs_status find_or_read(struct emitter *e, uint32_t unit, const struct access *how, struct unit *out, bool *there)
{
    struct memory *const host = &e->memory[GS_HOST];
    uint64_t to, skip;
    gs_status st = find(e, host, unit, how, out, there, &to);

    if (st != GS_OK || to == GS_CACHE_NOWHERE)
        return st;
    gs_task t = gs_emit__whole_unit(e, unit, &skip);
    if ((st = gs_emit__settle(e, host, unit, to)) != GS_OK)
        return st;
    t.place = place_in(host, to);
    if ((st = gs_emit__task(e, &t, &host->cell[unit].read)) != GS_OK)
        return st;
    e->pass->read_bytes += t.bytes;
    e->pass->read_requests++;
    use(host, unit, out);
    *there = true;
    return GS_OK;
}

gs_status gs_emit__cached_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                               bool whole, struct unit *out, bool *there)
{
    const uint32_t unit = gs_emit__array_unit(e, array, interval);
    uint64_t skip;
    gs_status st;

    *there = false;
    if (e->l->spill_interval[array] != 0)
        return GS_OK;
    /* A pruned stage reads runs of rows. In its vertex program, where nothing is brought, it takes what it finds. */
    const bool prunes = gs_layout_prunes(e->l, e->stage);
    const struct access how = {.whole = whole && !prunes, .again = from != 0 || (prunes && e->in_vertex)};
    if ((st = find_or_read(e, unit, &how, out, there)) != GS_OK || !*there)
        return st;
    gs_emit__whole_unit(e, unit, &skip);
    out->place.offset += skip + from * e->l->row_bytes[array];
    e->pass->cached_bytes += out->read == GS_NONE ? rows * e->l->row_bytes[array] : 0;
    return GS_OK;
}

gs_status gs_emit__cached_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out, bool *there)
{
    const gs_status st =
        find_or_read(e, gs_emit__chunk_unit(e, target, operand), &(struct access){.whole = true}, out, there);
    if (st == GS_OK && *there && out->read == GS_NONE)
        e->pass->cached_bytes += gs_layout_chunk(e->l, e->stage, target, operand)->length;
    return st;
}

/* In the vertex program of a pruned stage nothing is an access. */
static bool is_listed(const struct emitter *e, const struct memory *k)
{
    return k->tracing && k->cell != NULL && k->list != NULL &&
           (k->number != GS_HOST || !(gs_layout_prunes(e->l, e->stage) && e->in_vertex));
}

void gs_emit__cache_cost(struct emitter *e, uint32_t unit, uint64_t read_before)
{
    const struct memory *const host = &e->memory[GS_HOST];
    if (is_listed(e, host))
        host->list->access[host->cell[unit].access].cost += e->pass->read_bytes - read_before;
}

/* -- a device's memory ------------------------------------------------------------------ */

gs_status gs_emit__find_here(struct emitter *e, uint32_t unit, const struct access *how, struct unit *out, bool *there,
                             uint64_t *to)
{
    struct memory *const k = gs_emit__own_memory(e);

    *there = false;
    *to = GS_CACHE_NOWHERE;
    if (!gs_layout_unit_stays(e->l, unit))
        return GS_OK;
    const gs_status st = find(e, k, unit, how, out, there, to);
    if (st == GS_OK && *there && !how->made)
        e->pass->device_cached_bytes += how->again ? 0 : gs_layout_unit_bytes(e->l, unit);
    return st;
}

gs_status gs_emit__settle_here(struct emitter *e, uint32_t unit, uint64_t to, struct unit *out)
{
    struct memory *const k = gs_emit__own_memory(e);
    const gs_status st = gs_emit__settle(e, k, unit, to);
    if (st == GS_OK)
        use(k, unit, out);
    return st;
}

void gs_emit__came_here(struct emitter *e, const struct unit *u, uint32_t task, uint64_t bytes)
{
    struct memory *const k = gs_emit__own_memory(e);
    if (u->cached == 0 || k->cell == NULL)
        return;
    struct cell *const c = &k->cell[u->cached - 1];
    if (u->in_cache)
        c->read = task;
    if (is_listed(e, k))
        k->list->access[c->access].cost += bytes;
}

/* -- both ------------------------------------------------------------------------------- */

void gs_emit__cache_release(struct emitter *e, const struct unit *u, uint32_t task)
{
    if (u->cached == 0)
        return;
    struct memory *const k = &e->memory[u->place.memory];
    struct cell *const c = &k->cell[u->cached - 1];
    c->users--;
    if (u->in_cache) {
        c->inside--;
        c->last = gs_emit__later(e, c->last, task);
    }
    if (is_listed(e, k))
        k->list->access[c->access].until = k->accesses - 1;
}
