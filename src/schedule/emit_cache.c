/* emit_cache.c - reads that the cache answers, or whose data it keeps.
 *
 * One pass, the one that epochs consist of, is emitted twice: once to list its accesses, then with the cache's plan of
 * them, access by access in the same order. Other passes find what stays between epochs, and leave it where it is.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/emit_internal.h"

static uint32_t units_of(const gs_layout *l)
{
    return l->program->arrays * l->parts + l->sets * l->parts * l->parts;
}

uint32_t gs_emit__array_unit(const struct emitter *e, uint32_t array, uint32_t interval)
{
    return array * e->l->parts + interval;
}

uint32_t gs_emit__chunk_unit(const struct emitter *e, uint32_t target, uint32_t operand)
{
    const uint32_t parts = e->l->parts;
    return e->l->program->arrays * parts + (e->l->stage_set[e->stage] * parts + target) * parts + operand;
}

/* The read that brings a unit as a whole; *skip: bytes before an interval's first row. */
static gs_task whole_unit(const struct emitter *e, uint32_t unit, uint64_t *skip)
{
    const gs_layout *const l = e->l;
    const uint32_t parts = l->parts, rows_units = l->program->arrays * parts;
    gs_task t = {.kind = GS_TASK_READ};

    *skip = 0;
    if (unit < rows_units) {
        t.file = unit / parts;
        gs_emit__store_extent(l, t.file, gs_interval_first(l->chunks, unit % parts),
                              gs_interval_rows(l->chunks, unit % parts), &t, skip);
    } else {
        const uint32_t set = (unit - rows_units) / (parts * parts), chunk = (unit - rows_units) % (parts * parts);
        t.file = GS_FILE_EDGES(l->program, set);
        t.check = GS_CHECK_CHUNK;
        t.target = chunk / parts;
        t.operand = chunk % parts;
        t.offset = l->set[set].chunk[chunk].offset;
        t.bytes = l->set[set].chunk[chunk].length;
    }
    return t;
}

/* -- opening ---------------------------------------------------------------------- */

/* What is there at the beginning of an epoch is loaded once, when the run opens. */
static gs_status list_first(struct emitter *e)
{
    const gs_choice *const c = e->c;
    gs_plan *const p = e->plan;

    for (uint32_t k = 0; k < c->accesses; k++) {
        struct cell *const cell = &e->cell[c->access[k].unit];
        uint64_t skip;
        if (cell->seen)
            continue;
        cell->seen = true;
        if (!c->cache->hit[k])
            continue;
        cell->first_place = e->cache_base + c->cache->place[k];
        const gs_task t = whole_unit(e, c->access[k].unit, &skip);
        const gs_status st =
            gs_emit__grow((void **)&p->resident, &e->resident_room, p->residents + 1, sizeof(*p->resident));
        if (st != GS_OK)
            return st;
        p->resident[p->residents++] = (gs_resident){
            .file = t.file, .first = t.offset, .bytes = t.bytes, .offset = cell->first_place, .load = true};
    }
    return GS_OK;
}

gs_status gs_emit__cache_open(struct emitter *e)
{
    const uint32_t units = units_of(e->l);
    gs_status st = GS_OK;

    if (!e->c->tracing && e->c->cache == NULL)
        return GS_OK;
    e->cell = gs_calloc(units + 1, sizeof(*e->cell));
    e->occupant = gs_malloc_array(units + 1, sizeof(*e->occupant));
    if (e->cell == NULL || e->occupant == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t u = 0; u < units; u++)
        e->cell[u].first_place = GS_CACHE_NOWHERE;
    e->cache_base = e->plan->region_bytes[GS_REGION_RESIDENT];
    if (e->c->cache != NULL) {
        st = list_first(e);
        e->plan->region_bytes[GS_REGION_RESIDENT] += e->c->cache->used_bytes;
    }
    return st;
}

void gs_emit__cache_begin(struct emitter *e)
{
    const uint32_t units = units_of(e->l);

    e->accesses = e->occupants = 0;
    for (uint32_t u = 0; e->cell != NULL && u < units; u++) {
        struct cell *const c = &e->cell[u];
        c->place = c->first_place;
        c->read = c->last = GS_NONE;
        c->users = c->inside = 0;
        c->held = c->place != GS_CACHE_NOWHERE;
        if (c->place != GS_CACHE_NOWHERE)
            e->occupant[e->occupants++] = u;
    }
}

void gs_emit__cache_close(struct emitter *e)
{
    gs_free(e->cell);
    gs_free(e->occupant);
}

/* -- accesses ----------------------------------------------------------------------- */

static bool in_cached_pass(const struct emitter *e)
{
    return e->pass == &e->plan->pass[e->c->cached_pass];
}

/* The next task waits for whoever used [at, +bytes), who then has left. The cache's plan knows how long uses are, but
 * not of vertex programs of pruned stages: where one of those goes on, GS_EAGAIN. */
static gs_status evict(struct emitter *e, uint64_t at, uint64_t bytes)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->occupants; i++) {
        struct cell *const c = &e->cell[e->occupant[i]];
        uint64_t skip;
        if (c->place < at + bytes && at < c->place + whole_unit(e, e->occupant[i], &skip).bytes) {
            if (c->inside > 0)
                return GS_EAGAIN;
            gs_emit__wait(e, c->read);
            gs_emit__wait(e, c->last);
            c->place = GS_CACHE_NOWHERE;
        } else {
            e->occupant[kept++] = e->occupant[i];
        }
    }
    e->occupants = kept;
    return GS_OK;
}

static gs_status bring(struct emitter *e, uint32_t unit, uint64_t place)
{
    struct cell *const c = &e->cell[unit];
    uint64_t skip;
    gs_task t = whole_unit(e, unit, &skip);
    gs_status st;

    if ((st = evict(e, place, t.bytes)) != GS_OK)
        return st;
    /* Bytes of it that nobody keeps any more may stand elsewhere. Reads begin in their order, so whoever comes there
     * after this one finds them unused. */
    if (c->place != GS_CACHE_NOWHERE) {
        gs_emit__wait(e, c->read);
        gs_emit__wait(e, c->last);
    } else {
        e->occupant[e->occupants++] = unit;
    }
    c->place = place;
    c->last = GS_NONE;
    t.place = (gs_place){GS_REGION_RESIDENT, place};
    if ((st = gs_emit__task(e, &t, &c->read)) != GS_OK)
        return st;
    e->pass->read_bytes += t.bytes;
    e->pass->read_requests++;
    return GS_OK;
}

/* One access: where the unit is from now on, if anywhere. */
static gs_status enter(struct emitter *e, uint32_t unit, bool whole)
{
    gs_choice *const c = e->c;
    gs_status st = GS_OK;
    uint64_t skip;

    if (!in_cached_pass(e))
        return GS_OK;
    const uint32_t k = e->accesses++;
    e->cell[unit].access = k;
    if (c->tracing) {
        if ((st = gs_emit__grow((void **)&c->access, &c->access_room, k + 1, sizeof(*c->access))) != GS_OK)
            return st;
        c->access[k] = (gs_cache_access){.unit = unit, .whole = whole, .bytes = whole_unit(e, unit, &skip).bytes};
        c->accesses = k + 1;
        return GS_OK;
    }
    /* other accesses than were listed: the cache's plan is not for them */
    if (k >= c->accesses || c->access[k].unit != unit)
        return GS_EAGAIN;
    e->cell[unit].held = c->cache->place[k] != GS_CACHE_NOWHERE;
    return e->cell[unit].held && !c->cache->hit[k] ? bring(e, unit, e->cache_base + c->cache->place[k]) : GS_OK;
}

/* `again`: no access of its own. Neither has one what is in use already: it is longer. */
static gs_status find(struct emitter *e, uint32_t unit, bool whole, bool again, struct unit *out, bool *there)
{
    gs_status st = GS_OK;

    *there = false;
    if (e->cell == NULL)
        return GS_OK;
    struct cell *const c = &e->cell[unit];
    if (!again && c->users == 0 && (st = enter(e, unit, whole)) != GS_OK)
        return st;
    c->users++;
    out->cached = unit + 1;
    out->in_cache = false;
    if (c->place == GS_CACHE_NOWHERE || !c->held)
        return GS_OK;
    c->inside++;
    *out = (struct unit){.place = {GS_REGION_RESIDENT, c->place}, .read = c->read, .ring = NOT_STAGED,
                         .cached = unit + 1, .in_cache = true};
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
    if ((st = find(e, unit, whole && !prunes, from != 0 || (prunes && e->in_vertex), out, there)) != GS_OK || !*there)
        return st;
    whole_unit(e, unit, &skip);
    out->place.offset += skip + from * e->l->row_bytes[array];
    e->pass->cached_bytes += out->read == GS_NONE ? rows * e->l->row_bytes[array] : 0;
    return GS_OK;
}

gs_status gs_emit__cached_chunk(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out, bool *there)
{
    const gs_status st = find(e, gs_emit__chunk_unit(e, target, operand), true, false, out, there);
    if (st == GS_OK && *there && out->read == GS_NONE)
        e->pass->cached_bytes += gs_layout_chunk(e->l, e->stage, target, operand)->length;
    return st;
}

/* In the vertex program of a pruned stage nothing is an access. */
static bool is_listed(const struct emitter *e)
{
    return e->c->tracing && e->cell != NULL && in_cached_pass(e) && !(gs_layout_prunes(e->l, e->stage) && e->in_vertex);
}

void gs_emit__cache_cost(struct emitter *e, uint32_t unit, uint64_t read_before)
{
    if (is_listed(e))
        e->c->access[e->cell[unit].access].cost += e->pass->read_bytes - read_before;
}

void gs_emit__cache_release(struct emitter *e, const struct unit *u, uint32_t task)
{
    if (u->cached == 0)
        return;
    struct cell *const c = &e->cell[u->cached - 1];
    c->users--;
    if (u->in_cache) {
        c->inside--;
        c->last = task;
    }
    if (is_listed(e))
        e->c->access[c->access].until = e->accesses - 1;
}
