/* emit_cache.c - what a memory keeps while a plan is made: cells, accesses of its cache, and files of the run. */
#include "schedule/emit_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/keep.h"
#include "schedule/emitter.h"

/* ---- cells ---------------------------------------------------------------- */

/* Where units stand in a memory, and who used them last. */

/* -- units ---------------------------------------------------------------------------- */

uint32_t gs_emit__array_unit(const struct emitter *e, uint32_t array, uint32_t interval)
{
    return array * e->l->parts + interval;
}

uint32_t gs_emit__chunk_unit(const struct emitter *e, uint32_t target, uint32_t operand)
{
    const uint32_t parts = e->l->parts;
    return e->l->program->arrays * parts + (e->l->stage_set[e->stage] * parts + target) * parts + operand;
}

/* A unit that is a chunk. *set: its own. */
static const gs_chunk *chunk_of(const struct emitter *e, uint32_t unit, uint32_t *set)
{
    const uint32_t parts = e->l->parts, chunk = unit - e->l->program->arrays * parts;

    *set = chunk / (parts * parts);
    return &e->l->set[*set].chunk[chunk % (parts * parts)];
}

/* The read of rows [first, first + rows) of an interval, or of a chunk. *skip: bytes before the first row. */
void gs_emit__read_of(gs_task *t, const struct emitter *e, uint32_t unit, uint32_t first, uint32_t rows, uint64_t *skip)
{
    const gs_layout *const l = e->l;
    const uint32_t parts = l->parts, rows_units = l->program->arrays * parts;

    *t = (gs_task){.kind = GS_TASK_MOVE, .file = unit / parts};
    *skip = 0;
    if (unit >= rows_units) {
        const uint32_t set = (unit - rows_units) / (parts * parts), chunk = (unit - rows_units) % (parts * parts);
        t->file = GS_FILE_EDGES(l->program, set);
        t->check = GS_CHECK_CHUNK;
        t->target = chunk / parts;
        t->operand = chunk % parts;
        t->source = gs_place_on_disk(l->set[set].chunk[chunk].offset);
        t->bytes = l->set[set].chunk[chunk].length;
    } else if (l->spill_interval[t->file] == 0) {
        gs_emit__store_extent(l, t->file, gs_interval_first(l->chunks, unit % parts) + first, rows, t, skip);
    } else {
        const uint64_t row = l->row_bytes[t->file], begin = gs_align_down(first * row, GS_BLOCK_BYTES);
        t->source = gs_place_on_disk(gs_emit__spilled_at(e, t->file, unit % parts) + begin);
        t->bytes = gs_align_up((first + rows) * row, GS_BLOCK_BYTES) - begin;
        *skip = first * row - begin;
    }
    if (unit < rows_units)
        t->target = l->memory.apart ? unit % parts : 0; /* bytes of the store may begin before it */
}

bool gs_emit__is_kept(const struct emitter *e, uint32_t unit)
{
    const uint32_t parts = e->l->parts;
    uint32_t set;
    if (!gs_emit__is_chunk(e, unit))
        return unit % parts < e->c->kept_intervals[unit / parts];
    const gs_chunk *const c = chunk_of(e, unit, &set);
    return c->offset + c->length <= e->c->kept_edges[set];
}

gs_place gs_emit__kept_place(const struct emitter *e, uint32_t unit, uint32_t first)
{
    const uint32_t array = unit / e->l->parts, interval = unit % e->l->parts;
    const uint64_t at = gs_interval_first(e->l->chunks, interval) + first;
    uint32_t set;
    if (!gs_emit__is_chunk(e, unit))
        return gs_place_on_host(GS_REGION_RESIDENT, e->c->places.offset[array] + at * e->l->row_bytes[array]);
    const gs_chunk *const c = chunk_of(e, unit, &set);
    return gs_place_on_host(GS_REGION_RESIDENT,
                            e->c->places.offset[GS_FILE_EDGES(e->l->program, set)] + c->offset);
}

bool gs_emit__is_chunk(const struct emitter *e, uint32_t unit) { return unit >= e->l->program->arrays * e->l->parts; }

uint64_t gs_emit__row_bytes(const struct emitter *e, uint32_t unit)
{
    return gs_emit__is_chunk(e, unit) ? 0 : e->l->row_bytes[unit / e->l->parts];
}

uint32_t gs_emit__unit_rows(const struct emitter *e, uint32_t unit)
{
    return gs_emit__is_chunk(e, unit) ? 0 : gs_interval_rows(e->l->chunks, unit % e->l->parts);
}

void gs_emit__whole_unit(gs_task *t, const struct emitter *e, uint32_t unit, uint64_t *skip)
{
    gs_emit__read_of(t, e, unit, 0, gs_emit__unit_rows(e, unit), skip);
}

uint64_t gs_emit__whole_bytes(const struct emitter *e, uint32_t unit, uint64_t *skip)
{
    uint32_t set;
    gs_task t;

    *skip = 0;
    if (gs_emit__is_chunk(e, unit)) /* which is asked for most often */
        return chunk_of(e, unit, &set)->length;
    gs_emit__whole_unit(&t, e, unit, skip);
    return t.bytes;
}

/* Bytes that the unit takes in this memory. */
static uint64_t unit_bytes(const struct emitter *e, const struct memory *k, uint32_t unit)
{
    uint64_t skip;
    return k->is.as_in_files ? gs_emit__whole_bytes(e, unit, &skip) : gs_layout_unit_bytes(e->l, unit);
}

/* -- cells ------------------------------------------------------------------------------ */

static gs_status cells_open(struct emitter *e, struct memory *k, uint32_t units)
{
    e->beside += units * (sizeof(*k->cell) + sizeof(*k->occupant));
    if (!gs_emit__has_room(e)) /* of many parts they are more than the plan itself */
        return GS_ENOFIT;
    k->cell = gs_calloc(units + 1ull, sizeof(*k->cell));
    k->occupant = gs_malloc_array(units + 1ull, sizeof(*k->occupant));
    if (k->cell == NULL || k->occupant == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t u = 0; u < units; u++)
        k->cell[u].first_place = GS_CACHE_NOWHERE;
    return GS_OK;
}

static void cells_close(struct memory *k)
{
    gs_free(k->cell);
    gs_free(k->occupant);
    gs_free(k->vacated);
}

uint32_t gs_emit__later(struct emitter *e, uint32_t a, uint32_t b)
{
    uint32_t last[GS_PLAN_LANES], n = 0;
    const uint32_t before = e->wait.count;

    if (a == GS_NONE || b == GS_NONE || a == b)
        return a == GS_NONE ? b : a;
    gs_emit__wait(e, a);
    gs_emit__wait(e, b);
    gs_emit__expand(e, before);
    for (uint32_t i = before; i < e->wait.count; i++) {
        uint32_t k = 0;
        while (k < n && gs_emit__lane(e, last[k]) != gs_emit__lane(e, e->wait.task[i]))
            k++;
        last[k] = k < n ? GS_MAX(last[k], e->wait.task[i]) : e->wait.task[i];
        n += k == n;
    }
    e->wait.count = before;
    return n == 1 ? last[0] : gs_emit__join(e, last, n);
}

static void wait_for_users(struct emitter *e, const struct cell *c)
{
    const uint32_t before = e->wait.count;
    gs_emit__wait(e, c->read);
    gs_emit__wait(e, c->last);
    gs_emit__expand(e, before);
}

/* Reads of the host begin in their order, so whoever comes after this one finds the rest of the bytes unused. */
static gs_status vacate(struct memory *k, uint64_t at, uint64_t end, uint32_t last)
{
    if (!k->is.many_lanes || at >= end || last == GS_NONE)
        return GS_OK;
    GS_TRY(gs_emit__grow((void **)&k->vacated, &k->vacated_room, k->vacancies + 1, sizeof(*k->vacated)));
    k->vacated[k->vacancies++] = (struct vacated){at, end - at, last};
    return GS_OK;
}

/* The parts of [first, end), last used by `last`, that are not in [at, at + bytes). */
static gs_status vacate_rest(struct memory *k, uint64_t first, uint64_t end, uint64_t at, uint64_t bytes, uint32_t last)
{
    const gs_status st = vacate(k, first, GS_MIN(end, at), last);
    return st == GS_OK ? vacate(k, GS_MAX(first, at + bytes), end, last) : st;
}

/* The next task takes bytes that units have left before. */
static gs_status take_vacated(struct emitter *e, struct memory *k, uint64_t at, uint64_t bytes)
{
    const uint32_t count = k->vacancies;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct vacated v = k->vacated[i];
        if (v.at >= at + bytes || at >= v.at + v.bytes) {
            k->vacated[kept++] = v;
            continue;
        }
        const uint32_t before = e->wait.count;
        gs_emit__wait(e, v.last);
        gs_emit__expand(e, before);
        GS_TRY(vacate_rest(k, v.at, v.at + v.bytes, at, bytes, v.last));
    }
    memmove(k->vacated + kept, k->vacated + count, (k->vacancies - count) * sizeof(*k->vacated));
    k->vacancies -= count - kept;
    return GS_OK;
}

/* The first occupant that ends after `at`: they are disjoint. */
static uint32_t occupant_after(const struct emitter *e, const struct memory *k, uint64_t at)
{
    uint32_t low = 0, high = k->occupants;
    GS_BISECT(low, high, k->cell[k->occupant[middle]].place + unit_bytes(e, k, k->occupant[middle]) <= at);
    return low;
}

static void drop_occupants(struct memory *k, uint32_t first, uint32_t end)
{
    memmove(&k->occupant[first], &k->occupant[end], (k->occupants - end) * sizeof(*k->occupant));
    k->occupants -= end - first;
}

/* The next task waits for whoever used [at, +bytes), who then has left. The cache's plan knows how long uses are, but
 * not of vertex programs of pruned stages: where one of those goes on, GS_ENOFIT. */
static gs_status evict(struct emitter *e, struct memory *k, uint64_t at, uint64_t bytes)
{
    const uint32_t first = occupant_after(e, k, at);
    uint32_t i = first;
    GS_TRY(k->vacancies > 0 ? take_vacated(e, k, at, bytes) : GS_OK);

    for (; i < k->occupants && k->cell[k->occupant[i]].place < at + bytes; i++) {
        struct cell *const c = &k->cell[k->occupant[i]];
        const uint64_t end = c->place + unit_bytes(e, k, k->occupant[i]);
        if (c->inside > 0)
            return GS_ENOFIT;
        wait_for_users(e, c);
        if (k->is.many_lanes)
            GS_TRY(vacate_rest(k, c->place, end, at, bytes, gs_emit__later(e, c->read, c->last)));
        c->place = GS_CACHE_NOWHERE;
    }
    drop_occupants(k, first, i);
    return GS_OK;
}

/* The unit is at `place` from now on. The next task, which puts it there, waits until the place is free. GS_ENOFIT:
 * what stands there is still in use. */
static gs_status settle(struct emitter *e, struct memory *k, uint32_t unit, uint64_t place)
{
    struct cell *const c = &k->cell[unit];

    GS_TRY(evict(e, k, place, unit_bytes(e, k, unit)));
    /* Bytes of it that nobody keeps any more may stand elsewhere. */
    if (c->place != GS_CACHE_NOWHERE) {
        const uint32_t was = occupant_after(e, k, c->place);
        const uint64_t end = c->place + unit_bytes(e, k, unit);
        wait_for_users(e, c);
        if (k->is.many_lanes)
            GS_TRY(vacate(k, c->place, end, gs_emit__later(e, c->read, c->last)));
        drop_occupants(k, was, was + 1);
    }
    const uint32_t now = occupant_after(e, k, place);
    memmove(&k->occupant[now + 1], &k->occupant[now], (k->occupants - now) * sizeof(*k->occupant));
    k->occupant[now] = unit;
    k->occupants++;
    c->place = place;
    c->read = c->last = GS_NONE;
    return GS_OK;
}

/* ---- accesses ------------------------------------------------------------- */

/* What is found in a memory, and what is put there to be found.
 *
 * A pass is emitted twice: once to list its accesses to units of a memory, then with the plan of them (cache.h), access
 * by access in the same order. The host has a plan for the pass that epochs consist of alone; its other passes find
 * what stays between epochs, and leave it where it is. A device has one for each pass.
 */

/* -- opening ---------------------------------------------------------------------- */

/* The unit stands at `place` when an epoch begins: it is loaded once, when the run opens, or behind the pass that makes
 * it. */
static gs_status list_resident(struct emitter *e, struct memory *k, uint32_t unit, uint64_t place)
{
    const uint32_t array = unit / e->l->parts;
    gs_plan *const p = e->plan;
    uint64_t skip;
    gs_task t;
    const gs_status st =
        gs_emit__grow((void **)&p->resident, &e->room.resident, p->residents + 1, sizeof(*p->resident));

    gs_emit__whole_unit(&t, e, unit, &skip);
    gs_resident r = {.file = t.file, .memory = k->number, .first = t.source.offset, .bytes = t.bytes,
                     .offset = k->base + place, .load = true, .made_by = GS_NONE, .target = t.target,
                     .operand = t.operand};

    if (st != GS_OK)
        return st;
    if (!k->is.as_in_files && !gs_emit__is_chunk(e, unit)) {
        r.first = gs_interval_first(e->l->chunks, unit % e->l->parts) * e->l->row_bytes[array];
        r.bytes = gs_emit__unit_rows(e, unit) * e->l->row_bytes[array];
        r.made_by = e->l->stored_by[array];
    }
    k->cell[unit].first_place = r.offset;
    p->resident[p->residents++] = r;
    return GS_OK;
}

/* Those that the host's plan finds at their first access. */
static gs_status list_first(struct emitter *e, struct memory *host)
{
    const gs_cache_list *const list = &e->c->host.list;

    for (uint32_t k = 0; k < list->accesses; k++) {
        struct cell *const cell = &host->cell[list->access[k].unit];
        if (!cell->seen && list->plan->hit[k])
            GS_TRY(list_resident(e, host, list->access[k].unit, list->plan->place[k]));
        cell->seen = true;
    }
    return GS_OK;
}

static gs_status open_devices(struct emitter *e)
{
    const gs_device_cache *const c = &e->c->device;

    for (uint32_t d = 0; d < c->devices; d++) {
        struct memory *const k = &e->memory[GS_DEVICE_MEMORIES + d];
        k->base = e->c->arena_bytes + e->c->staging_bytes;
        k->tracing = c->tracing;
        GS_TRY(cells_open(e, k, gs_layout_units(e->l)));
        for (uint32_t i = 0; i < c->fixeds[d]; i++)
            GS_TRY(list_resident(e, k, c->fixed[d][i].unit, c->fixed[d][i].place));
    }
    return GS_OK;
}

gs_status gs_emit__cache_open(struct emitter *e)
{
    struct memory *const host = &e->memory[GS_HOST];

    GS_TRY(open_devices(e));
    if (!e->c->host.tracing && e->c->host.list.plan == NULL)
        return GS_OK;
    host->tracing = e->c->host.tracing;
    host->base = e->plan->region_bytes[GS_REGION_RESIDENT];
    GS_TRY(cells_open(e, host, gs_layout_units(e->l)));
    if (e->c->host.list.plan == NULL)
        return GS_OK;
    GS_TRY(list_first(e, host));
    e->plan->region_bytes[GS_REGION_RESIDENT] += e->c->host.list.plan->used_bytes;
    return GS_OK;
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
        cells_close(&e->memory[m]);
}

/* -- accesses ----------------------------------------------------------------------- */

/* One access. *to: where the unit is to be put; nowhere, where it is there or is not to stay. */
static gs_status enter(struct emitter *e, struct memory *k, uint32_t unit, const struct want *how, uint64_t *to)
{
    gs_cache_list *const list = k->list;

    if (list == NULL)
        return GS_OK;
    const uint32_t n = k->accesses++;
    k->cell[unit].access = n;
    if (k->tracing) {
        GS_TRY(gs_emit__grow((void **)&list->access, &list->room, n + 1, sizeof(*list->access)));
        list->access[n] = (gs_cache_access){.unit = unit, .whole = how->whole, .bytes = unit_bytes(e, k, unit),
                                            .made = how->made, .serves = how->serves};
        list->accesses = n + 1;
        e->beside += sizeof(*list->access);
        return GS_OK;
    }
    if (list->plan == NULL)
        return GS_OK;
    /* other accesses than were listed: the cache's plan is not for them */
    if (n >= list->accesses || list->access[n].unit != unit)
        return GS_ENOFIT;
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
static gs_status find(struct emitter *e, struct memory *k, const struct want *w, struct unit *out, uint64_t *to)
{
    if (k->cell == NULL)
        return GS_OK;
    struct cell *const c = &k->cell[w->unit];
    if (!w->again && c->users == 0)
        GS_TRY(enter(e, k, w->unit, w, to));
    c->users++;
    out->cached = w->unit + 1;
    if (*to == GS_CACHE_NOWHERE && c->place != GS_CACHE_NOWHERE && c->held)
        use(k, w->unit, out);
    return GS_OK;
}

/* May accesses keep it in this memory? */
static bool may_stay(const struct emitter *e, const struct memory *k, uint32_t unit)
{
    const uint32_t array = unit / e->l->parts;
    return k->is.keeps_made ? gs_layout_unit_stays(e->l, unit)
                            : gs_emit__is_chunk(e, unit) || e->l->spill_interval[array] == 0;
}

/* What the pass's figures say of a unit that was found. */
static void count_found(struct emitter *e, const struct memory *k, const struct want *w, uint64_t bytes,
                        const struct unit *u)
{
    if (w->made || w->serves)
        return;
    if (k->number == GS_HOST)
        e->pass->cached_bytes += u->read == GS_NONE ? bytes : 0;
    else
        e->pass->device_cached_bytes += w->again ? 0 : gs_layout_unit_bytes(e->l, w->unit);
}

gs_status gs_emit__look(struct emitter *e, struct memory *k, const struct want *w, struct unit *out, uint64_t *to)
{
    const bool chunk = gs_emit__is_chunk(e, w->unit);
    const uint64_t row = gs_emit__row_bytes(e, w->unit);
    struct want how = *w;
    uint64_t skip = 0, bytes = w->rows * row;

    *out = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    *to = GS_CACHE_NOWHERE;
    if (chunk && k->is.as_in_files)
        bytes = gs_emit__whole_bytes(e, w->unit, &skip);
    if (k->number == GS_HOST && gs_emit__is_kept(e, w->unit)) {
        out->place = gs_emit__kept_place(e, w->unit, w->first);
        count_found(e, k, w, w->mask != NULL ? gs_emit__unit_rows(e, w->unit) * row : bytes, out);
        out->read = chunk ? GS_NONE : e->spill.written[w->unit][1];
        return GS_OK;
    }
    if (!may_stay(e, k, w->unit))
        return GS_OK;
    if (!chunk && !k->is.lists_pruned && gs_layout_prunes(e->l, e->stage)) {
        how.whole = false;
        how.again = w->again || e->in_vertex;
    }
    GS_TRY(find(e, k, &how, out, to));
    if (!gs_emit__is_there(out))
        return GS_OK;
    if (!chunk && k->is.as_in_files)
        (void)gs_emit__whole_bytes(e, w->unit, &skip);
    count_found(e, k, w, bytes, out);
    out->place.offset += skip + w->first * row;
    return GS_OK;
}

gs_status gs_emit__settle(struct emitter *e, struct memory *k, uint32_t unit, uint64_t to, struct unit *out)
{
    GS_TRY(settle(e, k, unit, to));
    use(k, unit, out);
    return GS_OK;
}

/* In the vertex program of a stage that leaves rows out nothing is an access. */
static bool is_listed(const struct emitter *e, const struct memory *k)
{
    return k->tracing && k->cell != NULL && k->list != NULL &&
           (k->is.lists_pruned || !(gs_layout_prunes(e->l, e->stage) && e->in_vertex));
}

void gs_emit__came(struct emitter *e, const struct unit *u, uint32_t task, uint64_t bytes)
{
    struct memory *const k = &e->memory[u->place.memory];
    if (u->cached == 0)
        return;
    struct cell *const c = &k->cell[u->cached - 1];
    if (u->in_cache)
        c->read = task;
    if (is_listed(e, k))
        k->list->access[c->access].cost += bytes;
}

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

/* ---- files of the run ----------------------------------------------------- */

/* The run's file, in which arrays that are never there at the same time share bytes.
 *
 * Reads of what was there before are over when something is written: computes that needed them come before the one that
 * made it. Writes are done in any order, so a write waits for the one before of each of its bytes, which has waited
 * likewise. Plans of deep models have hundreds of arrays and a million writes: who had the bytes before is listed once,
 * and asked from the last owner on until all bytes are known.
 */

static bool share_bytes(const gs_plan *p, uint32_t a, uint32_t b)
{
    return p->spill.bytes[a] > 0 && p->spill.bytes[b] > 0 &&
           p->spill.first[a] < p->spill.first[b] + p->spill.bytes[b] &&
           p->spill.first[b] < p->spill.first[a] + p->spill.bytes[a];
}

/* Appends those that share bytes with `array` and are stored by a stage in [first, by), the last one first. */
static gs_status list_owners(struct emitter *e, uint32_t array, uint32_t first, uint32_t by, uint32_t *room,
                             uint32_t *count)
{
    for (uint32_t s = by; s-- > first;) {
        const gs_stage *const stage = &e->l->program->stage[s];
        GS_TRY(gs_emit__grow((void **)&e->spill.owner, room, *count + stage->regs, sizeof(*e->spill.owner)));
        for (uint32_t r = 0; r < stage->regs; r++)
            if (stage->reg[r].kind == GS_REG_TEMP && stage->reg[r].array != GS_NONE &&
                share_bytes(e->plan, array, stage->reg[r].array))
                e->spill.owner[(*count)++] = stage->reg[r].array;
    }
    return GS_OK;
}

gs_status gs_emit__spill_open(struct emitter *e)
{
    const gs_program *const p = e->l->program;
    uint32_t room = 0, count = 0;

    e->plan->spill.total = gs_liveness_spill(e->plan->spill.first, e->plan->spill.bytes, e->c, e->l);
    if ((e->spill.owners = gs_calloc(p->arrays, sizeof(*e->spill.owners))) == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t i = 0; i < p->passes; i++) /* nothing of a pass is under way in the next */
        for (uint32_t a = 0; a < p->arrays; a++) {
            const uint32_t by = e->l->stored_by[a], first = p->pass[i].first_stage;
            if (by == GS_NONE || by < first || by >= first + p->pass[i].stages)
                continue;
            e->spill.owners[a].first = count;
            GS_TRY(list_owners(e, a, first, by, &room, &count));
            e->spill.owners[a].end = count;
        }
    return GS_OK;
}

void gs_emit__spill_close(struct emitter *e)
{
    gs_free(e->spill.owner);
    gs_free(e->spill.owners);
}

uint64_t gs_emit__spilled_at(const struct emitter *e, uint32_t array, uint32_t interval)
{
    return e->plan->spill.first[array] + (interval - e->c->kept_intervals[array]) * e->l->spill_interval[array];
}

/* For the writes of `array` that touch [begin, end) of the run's file: how many bytes of it those are. Tasks from the
 * first to the last write of an interval's rows may be other intervals' too, which count there. */
static uint64_t wait_for_writes(struct emitter *e, uint32_t array, uint64_t begin, uint64_t end)
{
    const uint64_t first = e->plan->spill.first[array], step = e->l->spill_interval[array];
    const uint64_t from = GS_MAX(begin, first), to = GS_MIN(end, first + e->plan->spill.bytes[array]);
    uint64_t bytes = 0;
    if (from >= to)
        return 0;
    for (uint64_t k = (from - first) / step; k <= (to - 1 - first) / step; k++) {
        const uint32_t *const w = e->spill.written[(uint64_t)array * e->l->parts + e->c->kept_intervals[array] + k];
        const uint64_t low = GS_MAX(from, first + k * step), high = GS_MIN(to, first + (k + 1) * step);
        for (uint32_t i = w[0] == GS_NONE ? e->made.writes : gs_emit__writes_from(e, w[0]);
             i < e->made.writes && e->made.write[i].task <= w[1]; i++) {
            const struct moved *const t = &e->made.write[i];
            if (t->file == array && t->offset < high && low < t->offset + t->bytes) {
                gs_emit__wait(e, t->task);
                bytes += GS_MIN(high, t->offset + t->bytes) - GS_MAX(low, t->offset);
            }
        }
    }
    return bytes;
}

void gs_emit__wait_for_owners(struct emitter *e, const gs_task *write)
{
    const struct owners *const before = &e->spill.owners[write->file];
    const uint64_t begin = write->place.offset;

    for (uint32_t k = before->first; k < before->end; k++)
        if (wait_for_writes(e, e->spill.owner[k], begin, begin + write->bytes) == write->bytes)
            return;
}
