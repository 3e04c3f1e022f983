/* emit_cells.c - where units stand in a memory, and who used them last. */
#include "schedule/emit_cells.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/device_cache.h"
#include "schedule/emit_tasks.h"

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

gs_task gs_emit__whole_unit(const struct emitter *e, uint32_t unit, uint64_t *skip)
{
    const gs_layout *const l = e->l;
    const uint32_t parts = l->parts, rows_units = l->program->arrays * parts;
    gs_task t = {.kind = GS_TASK_MOVE};

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
        t.source = gs_place_on_disk(l->set[set].chunk[chunk].offset);
        t.bytes = l->set[set].chunk[chunk].length;
    }
    return t;
}

uint64_t gs_emit__unit_bytes(const struct emitter *e, const struct memory *k, uint32_t unit)
{
    uint64_t skip;
    return k->number != GS_HOST ? gs_layout_unit_bytes(e->l, unit) : gs_emit__whole_unit(e, unit, &skip).bytes;
}

/* -- cells ------------------------------------------------------------------------------ */

gs_status gs_emit__cells_open(struct emitter *e, struct memory *k, uint32_t units)
{
    e->beside += units * (sizeof(*k->cell) + sizeof(*k->occupant));
    k->cell = gs_calloc(units + 1ull, sizeof(*k->cell));
    k->occupant = gs_malloc_array(units + 1ull, sizeof(*k->occupant));
    if (k->cell == NULL || k->occupant == NULL)
        return gs_fail(GS_ENOMEM, "out of memory while planning");
    for (uint32_t u = 0; u < units; u++)
        k->cell[u].first_place = GS_CACHE_NOWHERE;
    return GS_OK;
}

void gs_emit__cells_close(struct memory *k)
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
    gs_status st;
    if (k->number == GS_HOST || at >= end || last == GS_NONE)
        return GS_OK;
    if ((st = gs_emit__grow((void **)&k->vacated, &k->vacated_room, k->vacancies + 1, sizeof(*k->vacated))) == GS_OK)
        k->vacated[k->vacancies++] = (struct vacated){at, end - at, last};
    return st;
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
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < count; i++) {
        const struct vacated v = k->vacated[i];
        if (v.at >= at + bytes || at >= v.at + v.bytes) {
            k->vacated[kept++] = v;
            continue;
        }
        const uint32_t before = e->wait.count;
        gs_emit__wait(e, v.last);
        gs_emit__expand(e, before);
        if (st == GS_OK)
            st = vacate_rest(k, v.at, v.at + v.bytes, at, bytes, v.last);
    }
    memmove(k->vacated + kept, k->vacated + count, (k->vacancies - count) * sizeof(*k->vacated));
    k->vacancies -= count - kept;
    return st;
}

/* The first occupant that ends after `at`: they are disjoint. */
static uint32_t occupant_after(const struct emitter *e, const struct memory *k, uint64_t at)
{
    uint32_t low = 0, high = k->occupants;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2, unit = k->occupant[middle];
        if (k->cell[unit].place + gs_emit__unit_bytes(e, k, unit) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop_occupants(struct memory *k, uint32_t first, uint32_t end)
{
    memmove(&k->occupant[first], &k->occupant[end], (k->occupants - end) * sizeof(*k->occupant));
    k->occupants -= end - first;
}

/* The next task waits for whoever used [at, +bytes), who then has left. The cache's plan knows how long uses are, but
 * not of vertex programs of pruned stages: where one of those goes on, GS_EAGAIN. */
static gs_status evict(struct emitter *e, struct memory *k, uint64_t at, uint64_t bytes)
{
    const uint32_t first = occupant_after(e, k, at);
    uint32_t i = first;
    gs_status st = k->vacancies > 0 ? take_vacated(e, k, at, bytes) : GS_OK;

    for (; st == GS_OK && i < k->occupants && k->cell[k->occupant[i]].place < at + bytes; i++) {
        struct cell *const c = &k->cell[k->occupant[i]];
        const uint64_t end = c->place + gs_emit__unit_bytes(e, k, k->occupant[i]);
        if (c->inside > 0)
            return GS_EAGAIN;
        wait_for_users(e, c);
        if (k->number != GS_HOST)
            st = vacate_rest(k, c->place, end, at, bytes, gs_emit__later(e, c->read, c->last));
        c->place = GS_CACHE_NOWHERE;
    }
    drop_occupants(k, first, i);
    return st;
}

gs_status gs_emit__settle(struct emitter *e, struct memory *k, uint32_t unit, uint64_t place)
{
    struct cell *const c = &k->cell[unit];
    gs_status st;

    if ((st = evict(e, k, place, gs_emit__unit_bytes(e, k, unit))) != GS_OK)
        return st;
    /* Bytes of it that nobody keeps any more may stand elsewhere. */
    if (c->place != GS_CACHE_NOWHERE) {
        const uint32_t was = occupant_after(e, k, c->place);
        const uint64_t end = c->place + gs_emit__unit_bytes(e, k, unit);
        wait_for_users(e, c);
        if (k->number != GS_HOST)
            st = vacate(k, c->place, end, gs_emit__later(e, c->read, c->last));
        drop_occupants(k, was, was + 1);
    }
    if (st != GS_OK)
        return st;
    const uint32_t now = occupant_after(e, k, place);
    memmove(&k->occupant[now + 1], &k->occupant[now], (k->occupants - now) * sizeof(*k->occupant));
    k->occupant[now] = unit;
    k->occupants++;
    c->place = place;
    c->read = c->last = GS_NONE;
    return GS_OK;
}
