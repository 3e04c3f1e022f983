/* emit_rows.c - rows of arrays come to the host: where they are kept, where the cache has them, or by a read. */
#include "schedule/emit_rows.h"

#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emit_cells.h"
#include "schedule/emit_needs.h"
#include "schedule/emit_spill.h"
#include "schedule/emit_tasks.h"
#include "schedule/runs.h"

gs_status gs_emit__take(struct emitter *e, struct memory *m, uint64_t bytes, struct unit *out)
{
    const uint32_t before = e->wait.count;
    const gs_status st = gs_ring_take(&m->ring, bytes, &out->ring, e->wait.task, WAITS, &e->wait.count);

    gs_emit__expand(e, before);
    out->place = gs_place_behind(m->ring_at, out->ring);
    out->handed = 0;
    return st;
}

gs_status gs_emit__take_ring(struct emitter *e, uint64_t bytes, struct unit *out)
{
    return gs_emit__take(e, &e->memory[GS_HOST], bytes, out);
}

void gs_emit__release(struct emitter *e, const struct unit *u, uint32_t task)
{
    const uint32_t last = u->handed ? gs_emit__join(e, (uint32_t[]){task, u->handed - 1}, 2) : task;
    if (u->ring != NOT_STAGED)
        gs_ring_release(&e->memory[u->place.memory].ring, u->ring, last);
    gs_emit__cache_release(e, u, last);
}

gs_status gs_emit__add_read(struct emitter *e, gs_task *t, uint64_t bytes, struct unit *out)
{
    const gs_status st = gs_emit__task(e, t, &out->read);
    if (st == GS_OK) {
        e->pass->read_bytes += bytes;
        e->pass->read_requests += GS_MAX(t->runs, 1);
    }
    return st;
}

uint64_t gs_emit__staged_bytes(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows)
{
    const uint64_t bytes = rows * e->l->row_bytes[array], block = e->l->config->array_sum_bytes;
    if (interval < e->c->kept_intervals[array])
        return 0;
    return e->l->spill_interval[array] ? gs_align_up(bytes, GS_BLOCK_BYTES) + GS_BLOCK_BYTES
                                       : gs_align_up(bytes, block) + block;
}

/* Which runs of the extent to read, for the read being made: all of it without a mask. */
static gs_status choose_runs(struct emitter *e, gs_task *t, const gs_run_extent *x, const uint64_t *mask,
                             uint64_t *bytes)
{
    gs_plan *p = e->plan;
    const uint64_t room = x->bytes / x->unit + 1;
    gs_status st;

    *bytes = x->bytes;
    if (mask == NULL)
        return GS_OK;
    if ((st = gs_emit__grow((void **)&p->run, &e->room.run, (uint32_t)GS_MIN(p->runs + room, UINT32_MAX),
                            sizeof(*p->run))) != GS_OK)
        return st;
    *bytes = gs_runs_choose(p->run + p->runs, (uint32_t)room, &t->runs, e->l, x, mask);
    t->first_run = p->runs;
    p->runs += t->runs;
    return GS_OK;
}

/* That are read where all of its rows are. */
static uint64_t interval_bytes(const struct emitter *e, uint32_t array, uint32_t interval)
{
    const gs_layout *const l = e->l;
    const uint64_t rows = gs_interval_rows(l->chunks, interval);
    gs_task t = {0};
    uint64_t skip;
    if (l->spill_interval[array] > 0)
        return gs_align_up(rows * l->row_bytes[array], GS_BLOCK_BYTES);
    gs_emit__store_extent(l, array, gs_interval_first(l->chunks, interval), rows, &t, &skip);
    return t.bytes;
}

/* Rows of an interval that are not kept: a read into the ring. */
static gs_status load_staged(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             const uint64_t *mask, struct unit *out)
{
    const gs_layout *l = e->l;
    const uint64_t first = gs_interval_first(l->chunks, interval) + from, row = l->row_bytes[array];
    gs_task t = {.kind = GS_TASK_MOVE, .file = array};
    uint64_t skip = 0, read = 0;
    gs_status st;

    if (l->spill_interval[array] == 0) {
        gs_emit__store_extent(l, array, first, rows, &t, &skip);
    } else {
        const uint32_t *w = e->spill.written[(uint64_t)array * l->parts + interval];
        const uint64_t begin = gs_align_down(from * row, GS_BLOCK_BYTES);
        t.source = gs_place_on_disk(gs_emit__spilled_at(e, array, interval) + begin);
        t.bytes = gs_align_up((from + rows) * row, GS_BLOCK_BYTES) - begin;
        skip = from * row - begin;
        for (uint32_t i = w[0] == GS_NONE ? e->made.writes : gs_emit__writes_from(e, w[0]);
             i < e->made.writes && e->made.write[i].task <= w[1]; i++)
            if (e->made.write[i].file == array)
                gs_emit__wait(e, e->made.write[i].task);
    }
    const uint64_t unit = l->spill_interval[array] ? GS_BLOCK_BYTES : l->config->array_sum_bytes;
    const gs_run_extent extent = {.bytes = t.bytes, .skip = skip, .row = row, .rows = rows, .unit = unit};
    if ((st = gs_emit__take_ring(e, t.bytes, out)) != GS_OK || (st = choose_runs(e, &t, &extent, mask, &read)) != GS_OK)
        return st;
    t.place = out->place;
    out->place.offset += skip;
    e->pass->skipped_bytes += (mask != NULL ? interval_bytes(e, array, interval) : t.bytes) - read;
    if (read == 0)
        return GS_OK;
    return gs_emit__add_read(e, &t, read, out);
}

gs_place gs_emit__kept_place(const struct emitter *e, uint32_t array, uint32_t interval, uint32_t from)
{
    const uint64_t first = gs_interval_first(e->l->chunks, interval) + from;
    return gs_place_on_host(GS_REGION_RESIDENT, e->c->places.offset[array] + first * e->l->row_bytes[array]);
}

static bool kept_rows(const struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                      struct unit *out)
{
    *out = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    if (interval >= e->c->kept_intervals[array])
        return false;
    e->pass->cached_bytes += rows * e->l->row_bytes[array];
    out->place = gs_emit__kept_place(e, array, interval, from);
    return true;
}

static gs_status load_or_find(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                              const uint64_t *mask, struct unit *out)
{
    bool there;
    gs_status st = gs_emit__cached_rows(e, array, interval, from, rows, mask == NULL, out, &there);
    const uint64_t before = e->pass->read_bytes;

    if (st != GS_OK || there)
        return st;
    st = load_staged(e, array, interval, from, rows, mask, out);
    if (e->l->spill_interval[array] == 0)
        gs_emit__cache_cost(e, gs_emit__array_unit(e, array, interval), before);
    return st;
}

gs_status gs_emit__load_rows(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             struct unit *out)
{
    if (kept_rows(e, array, interval, from, rows, out))
        return GS_OK;
    return load_or_find(e, array, interval, from, rows, NULL, out);
}

gs_status gs_emit__load_needed(struct emitter *e, uint32_t array, uint32_t interval, const uint64_t *mask,
                               struct unit *out)
{
    if (kept_rows(e, array, interval, 0, gs_interval_rows(e->l->chunks, interval), out))
        return GS_OK;
    return load_or_find(e, array, interval, 0, gs_emit__needed_end(e, interval, mask), mask, out);
}
