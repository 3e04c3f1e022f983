/* emit_copies.c - what devices compute on is copied to their own memory, handed on, and brought back.
 *
 * Each device has a staging ring in its arena, behind the sums, laid out like the host's; behind it is what stays. A
 * piece on the host is free when the copies from it are done; a piece on a device, when its last computation and the
 * copy to the next device are.
 */
#include "schedule/emit_copies.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emit_cells.h"
#include "schedule/emit_chunks.h"
#include "schedule/emit_needs.h"
#include "schedule/emit_rows.h"
#include "schedule/emit_tasks.h"
#include "schedule/link.h"
#include "schedule/runs.h"
#include "schedule/simulate.h"

/* ---- opening, and the borders of passes and stages ---- */

gs_status gs_emit__copies_open(struct emitter *e)
{
    if (!e->copies)
        return GS_OK;
    for (uint32_t m = GS_DEVICE_MEMORIES; m < GS_DEVICE_MEMORIES + e->devices; m++) {
        e->memory[m].ring_at = (gs_place){GS_REGION_ARENA, m, e->c->arena_bytes};
        gs_ring_init(&e->memory[m].ring, e->c->staging_bytes);
    }
    e->ends.mask_of_all = gs_calloc(e->l->config->needs.granules.words + 1, sizeof(*e->ends.mask_of_all));
    return e->ends.mask_of_all != NULL ? GS_OK : gs_fail(GS_ENOMEM, "out of memory while planning");
}

void gs_emit__copies_close(struct emitter *e)
{
    gs_free(e->ends.mask_of_all);
    gs_free(e->wait.joined);
}

void gs_emit__pass_begin(struct emitter *e)
{
    memset(e->wait.lane_last, 0xff, sizeof(e->wait.lane_last));
    e->wait.joins = 0;
    for (uint32_t m = GS_HOST; m < GS_DEVICE_MEMORIES + e->devices; m++)
        gs_ring_reset(&e->memory[m].ring);
}

void gs_emit__stage_begin(struct emitter *e)
{
    memcpy(e->wait.lane_before, e->wait.lane_last, sizeof(e->wait.lane_before));
    memset(e->wait.lane_open, 0, sizeof(e->wait.lane_open));
}

/* ---- pieces with several users ---- */

uint64_t gs_emit__bytes_here(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows)
{
    if (!e->copies)
        return gs_emit__staged_bytes(e, array, interval, rows);
    return gs_align_up(rows * e->l->row_bytes[array], GS_BLOCK_BYTES) + GS_BLOCK_BYTES;
}

/* ---- copies ---- */

gs_status gs_emit__copy_to(struct emitter *e, gs_task *t, const struct unit *from, struct unit *out)
{
    gs_status st;

    t->place = out->place;
    t->source = from->place;
    gs_emit__wait(e, from->read);
    if ((st = gs_emit__task(e, t, &out->read)) != GS_OK)
        return st;
    const uint64_t bytes = gs_task_bytes(e->plan, t);
    *(gs_task_driver(t) == GS_DRIVER_PEER ? &e->pass->forward_bytes : &e->pass->upload_bytes) += bytes;
    gs_emit__came_here(e, out, out->read, bytes);
    return GS_OK;
}

/* A new piece of the device's ring, or the place where it is to stay. `out` is what looking for it has left, `to` where
 * it was told to be put. */
static gs_status place_here(struct emitter *e, uint64_t bytes, uint64_t to, struct unit *out)
{
    const uint32_t cached = out->cached;

    if (to != GS_CACHE_NOWHERE)
        return gs_emit__settle_here(e, cached - 1, to, out);
    *out = (struct unit){.read = GS_NONE, .cached = cached};
    return gs_emit__take(e, gs_emit__own_memory(e), bytes, out);
}

gs_status gs_emit__copy_here(struct emitter *e, const gs_task *like, const struct unit *from, uint64_t to,
                           struct unit *out)
{
    gs_task t = *like;
    const gs_status st = place_here(e, t.bytes, to, out);
    return st == GS_OK ? gs_emit__copy_to(e, &t, from, out) : st;
}

/* `here`: what looking for it on the device has left, which becomes `u`. */
static gs_status bring(struct emitter *e, const gs_task *t, uint64_t to, struct unit *here, struct unit *u)
{
    const gs_status st = gs_emit__copy_here(e, t, u, to, here);

    if (st != GS_OK)
        return st;
    gs_emit__release(e, u, here->read);
    *u = *here;
    return GS_OK;
}

gs_status gs_emit__fetch(struct emitter *e, uint64_t bytes, struct unit *u)
{
    struct unit here = {.read = GS_NONE, .ring = NOT_STAGED};
    if (!e->copies)
        return GS_OK;
    return bring(e, &(gs_task){.kind = GS_TASK_MOVE, .bytes = bytes}, GS_CACHE_NOWHERE, &here, u);
}

gs_status gs_emit__rows_here(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             bool again, struct unit *out)
{
    const uint32_t all = gs_interval_rows(e->l->chunks, interval), unit = gs_emit__array_unit(e, array, interval);
    const uint64_t row = e->l->row_bytes[array];
    const bool every = rows == all || (e->in_vertex && !gs_layout_prunes(e->l, e->stage));
    const struct access how = {.whole = every, .again = again};
    struct unit here = {.read = GS_NONE, .ring = NOT_STAGED};
    uint64_t to = GS_CACHE_NOWHERE;
    bool there = false;
    gs_status st;

    if (!e->copies)
        return gs_emit__load_rows(e, array, interval, from, rows, out);
    if ((st = gs_emit__find_here(e, unit, &how, &here, &there, &to)) != GS_OK)
        return st;
    if (there) {
        *out = here;
    } else {
        const bool part = to == GS_CACHE_NOWHERE;
        const uint32_t count = part ? rows : all;
        if ((st = gs_emit__load_rows(e, array, interval, part ? from : 0, count, out)) != GS_OK ||
            (st = bring(e, &(gs_task){.kind = GS_TASK_MOVE, .bytes = count * row}, to, &here, out)) != GS_OK || part)
            return st;
    }
    out->place.offset += from * row;
    return GS_OK;
}

/* The chunk comes to the device's ring, or to where it is to stay, past the host. `here` as above. */
static gs_status load_here(struct emitter *e, const gs_task *t, uint64_t to, struct unit *here)
{
    gs_task l = {.kind = GS_TASK_MOVE, .file = t->file, .target = t->target, .operand = t->operand,
                 .source = gs_place_on_disk(gs_layout_chunk(e->l, e->stage, t->target, t->operand)->offset),
                 .bytes = t->chunk_bytes, .chunk_bytes = t->chunk_bytes};
    gs_status st = place_here(e, l.bytes, to, here);

    l.place = here->place;
    if (st != GS_OK || (st = gs_emit__task(e, &l, &here->read)) != GS_OK)
        return st;
    e->plan->loads = true;
    e->pass->read_bytes += l.bytes;
    e->pass->loaded_bytes += l.bytes;
    e->pass->read_requests++;
    gs_emit__came_here(e, here, here->read, l.bytes);
    return GS_OK;
}

gs_status gs_emit__chunk_here(struct emitter *e, const gs_task *t, struct unit *u)
{
    struct unit here = {.read = GS_NONE, .ring = NOT_STAGED};
    const bool loaded = e->ends.group_end - e->ends.group_first > 1; /* with those of other operand intervals */
    uint64_t to = GS_CACHE_NOWHERE;
    bool there = false;
    gs_status st = GS_OK;

    if (e->copies)
        st = gs_emit__find_here(e, gs_emit__chunk_unit(e, t->target, t->operand), &(struct access){.whole = true},
                                &here, &there, &to);
    if (st == GS_OK && there)
        *u = here;
    if (st != GS_OK || there)
        return st;
    if (e->copies && e->l->config->loads && !gs_emit__chunk_stays(e, t->target, t->operand)) {
        if ((st = load_here(e, t, to, &here)) == GS_OK)
            *u = here;
        return st;
    }
    if ((!loaded && (st = gs_emit__load_chunk(e, t->target, t->operand, u)) != GS_OK) || !e->copies)
        return st;
    return bring(e,
                 &(gs_task){.kind = GS_TASK_MOVE, .bytes = t->chunk_bytes, .chunk_bytes = t->chunk_bytes,
                            .file = t->file, .target = t->target, .operand = t->operand},
                 to, &here, u);
}

bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from)
{
    const gs_topology *const t = e->l->config->topology;
    return !e->l->config->no_chain && from < e->device &&
           gs_topology_switch_of(t, from) == gs_topology_switch_of(t, e->device);
}

gs_status gs_emit__take_back(struct emitter *e, const struct unit *from, gs_place to, uint64_t bytes, uint32_t *task)
{
    const gs_task t = {.kind = GS_TASK_MOVE, .place = to, .source = from->place, .bytes = bytes};
    const gs_status st = gs_emit__task(e, &t, task);

    if (st == GS_OK) {
        gs_emit__release(e, from, *task);
        e->pass->download_bytes += bytes;
    }
    return st;
}
