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
    for (uint32_t d = 0; d < e->devices; d++)
        gs_ring_init(&e->seat[d].ring, e->c->staging_bytes);
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
    for (uint32_t d = 0; d < e->devices; d++)
        gs_ring_reset(&e->seat[d].ring);
}

void gs_emit__stage_begin(struct emitter *e)
{
    memcpy(e->wait.lane_before, e->wait.lane_last, sizeof(e->wait.lane_before));
    memset(e->wait.lane_open, 0, sizeof(e->wait.lane_open));
}

/* ---- pieces with several users ---- */

gs_ring_sim *gs_emit__ring_here(struct emitter *e) { return e->copies ? &gs_emit__here(e)->ring : &e->ring; }

uint64_t gs_emit__bytes_here(const struct emitter *e, uint32_t array, uint32_t interval, uint64_t rows)
{
    if (!e->copies)
        return gs_emit__staged_bytes(e, array, interval, rows);
    return gs_align_up(rows * e->l->row_bytes[array], GS_BLOCK_BYTES) + GS_BLOCK_BYTES;
}

gs_status gs_emit__take_here(struct emitter *e, uint64_t bytes, struct unit *out)
{
    const uint32_t before = e->wait.count;
    const gs_status st = gs_ring_take(&gs_emit__here(e)->ring, bytes, &out->ring, e->wait.task, WAITS, &e->wait.count);

    gs_emit__expand(e, before);
    out->on = 1 + e->device;
    out->handed = out->cached = 0;
    out->place = (gs_place){GS_REGION_ARENA, e->c->arena_bytes + out->ring};
    return st;
}

/* ---- copies ---- */

/* The task brings bytes of `from` to `out`, which has its place. */
static gs_status copy_to(struct emitter *e, gs_task *t, const struct unit *from, struct unit *out)
{
    gs_status st;

    t->place = out->place;
    t->source = from->place;
    gs_emit__wait(e, from->read);
    if ((st = gs_emit__task(e, t, &out->read)) != GS_OK)
        return st;
    const uint64_t bytes = gs_task_bytes(e->plan, t);
    *(t->kind == GS_TASK_UPLOAD ? &e->pass->upload_bytes : &e->pass->forward_bytes) += bytes;
    gs_emit__came_here(e, out, out->read, bytes);
    return GS_OK;
}

/* A copy of `from` into a new piece of the device's ring, or where it is to stay. `like`: kind, peer, bytes, runs.
 * `out` is what looking for it has left, `to` where it was told to be put. */
static gs_status copy_here(struct emitter *e, const gs_task *like, const struct unit *from, uint64_t to,
                           struct unit *out)
{
    const uint32_t cached = out->cached;
    gs_task t = *like;
    gs_status st;

    if (to != GS_CACHE_NOWHERE) {
        st = gs_emit__settle_here(e, cached - 1, to, out);
    } else {
        *out = (struct unit){.read = GS_NONE};
        st = gs_emit__take_here(e, t.bytes, out);
        out->cached = cached;
    }
    return st == GS_OK ? copy_to(e, &t, from, out) : st;
}

/* `here`: what looking for it on the device has left, which becomes `u`. */
static gs_status bring(struct emitter *e, const gs_task *t, uint64_t to, struct unit *here, struct unit *u)
{
    const gs_status st = copy_here(e, t, u, to, here);

    if (st != GS_OK)
        return st;
    gs_emit__release(e, u, here->read);
    *u = *here;
    return GS_OK;
}

gs_status gs_emit__bring(struct emitter *e, uint64_t bytes, struct unit *u)
{
    struct unit here = {.read = GS_NONE, .ring = NOT_STAGED};
    if (!e->copies)
        return GS_OK;
    return bring(e, &(gs_task){.kind = GS_TASK_UPLOAD, .bytes = bytes}, GS_CACHE_NOWHERE, &here, u);
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
            (st = bring(e, &(gs_task){.kind = GS_TASK_UPLOAD, .bytes = count * row}, to, &here, out)) != GS_OK || part)
            return st;
    }
    out->place.offset += from * row;
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
    if ((!loaded && (st = gs_emit__load_chunk(e, t->target, t->operand, u)) != GS_OK) || !e->copies)
        return st;
    return bring(e,
                 &(gs_task){.kind = GS_TASK_UPLOAD, .bytes = t->chunk_bytes, .chunk_bytes = t->chunk_bytes,
                            .file = t->file, .target = t->target, .operand = t->operand},
                 to, &here, u);
}

bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from)
{
    const gs_topology *const t = e->l->config->topology;
    return !e->l->config->no_chain && from < e->device &&
           gs_topology_switch_of(t, from) == gs_topology_switch_of(t, e->device);
}

gs_status gs_emit__hand_on(struct emitter *e, uint64_t bytes, struct unit *u)
{
    struct unit here = {.read = GS_NONE, .ring = NOT_STAGED};
    const gs_task t = {.kind = GS_TASK_FORWARD, .peer = (uint16_t)(u->on - 1), .bytes = bytes};
    return bring(e, &t, GS_CACHE_NOWHERE, &here, u);
}

gs_status gs_emit__take_back(struct emitter *e, const struct unit *from, gs_place to, uint64_t bytes, uint32_t *task)
{
    const gs_task t = {.kind = GS_TASK_DOWNLOAD, .place = to, .source = from->place, .bytes = bytes};
    const gs_status st = gs_emit__task(e, &t, task);

    if (st == GS_OK) {
        gs_emit__release(e, from, *task);
        e->pass->download_bytes += bytes;
    }
    return st;
}

/* ---- operand intervals ---- */

/* What devices found of an operand interval's rows: nothing (they need it), or where it is or is to be. */
struct found {
    bool there;
    uint64_t to;
};

/* Runs of rows that the devices [first, end) need and lack of the interval, for `t`. */
static gs_status choose_copy_runs(struct emitter *e, gs_task *t, uint32_t array, uint32_t operand, uint32_t first,
                                  uint32_t end, const bool *needs, const struct found *found)
{
    const gs_layout *l = e->l;
    const uint32_t words = l->config->needs.granules.words, rows = gs_interval_rows(l->chunks, operand);
    const gs_link link = gs_link_of(l->config->topology, l->config->cost, first, GS_LINK_TO_DEVICE);
    const gs_run_extent extent = {.bytes = gs_align_up(rows * l->row_bytes[array], GS_BLOCK_BYTES),
                                  .row = l->row_bytes[array], .rows = rows, .unit = GS_BLOCK_BYTES,
                                  .bps = link.bps, .request_seconds = link.request_seconds};
    const uint64_t room = extent.bytes / GS_BLOCK_BYTES + 1;
    gs_plan *p = e->plan;
    gs_status st;

    memset(e->ends.mask_of_all, 0, words * sizeof(*e->ends.mask_of_all));
    for (uint32_t d = first; d < end; d++) {
        if (!needs[d] || found[d].there)
            continue;
        const uint64_t *const mask = gs_emit__needed_rows(e, e->seat[d].block, operand);
        if (mask == NULL)
            return GS_OK;
        for (uint32_t w = 0; w < words; w++)
            e->ends.mask_of_all[w] |= mask[w];
    }
    if ((st = gs_emit__grow((void **)&p->run, &e->room.run, (uint32_t)GS_MIN(p->runs + room, UINT32_MAX),
                            sizeof(*p->run))) != GS_OK)
        return st;
    (void)gs_runs_choose(p->run + p->runs, (uint32_t)room, &t->runs, l, &extent, e->ends.mask_of_all);
    t->first_run = p->runs;
    p->runs += t->runs;
    return GS_OK;
}

/* Does any device of the chain put the whole interval by? Then all of it travels. */
static bool stays_whole(const gs_topology_switch *chain, const bool *needs, const struct found *found)
{
    for (uint32_t d = chain->first; d < chain->first + chain->devices; d++)
        if (needs[d] && !found[d].there && found[d].to != GS_CACHE_NOWHERE)
            return true;
    return false;
}

/* The chain of one switch: from the host to the first that needs it, then from one to the next. */
static gs_status share_chain(struct emitter *e, uint32_t index, uint32_t operand, const struct unit *host,
                             const bool *needs, const struct found *found, const gs_topology_switch *chain,
                             uint32_t *upload, uint32_t *uploads)
{
    const uint32_t array = e->ends.operand_array[index], end = chain->first + chain->devices;
    const bool alone = e->l->config->no_chain, whole = stays_whole(chain, needs, found);
    gs_task t = {.kind = GS_TASK_UPLOAD, .bytes = gs_interval_rows(e->l->chunks, operand) * e->l->row_bytes[array]};
    struct unit *before = NULL;
    bool chosen = false;
    gs_status st = GS_OK;

    for (uint32_t d = chain->first; d < end && st == GS_OK; d++) {
        struct unit *const to = &e->seat[d].operand[index];
        if (!needs[d])
            continue;
        e->device = d;
        if (found[d].there) {
            before = to;
            continue;
        }
        if ((alone || !chosen) && !whole) /* for those that follow, too */
            st = choose_copy_runs(e, &t, array, operand, d, alone ? d + 1 : end, needs, found);
        chosen = true;
        t.kind = before == NULL || alone ? GS_TASK_UPLOAD : GS_TASK_FORWARD;
        t.peer = (uint16_t)(t.kind == GS_TASK_FORWARD ? before->on - 1 : 0);
        const struct unit *const from = t.kind == GS_TASK_UPLOAD ? host : before;
        if (st != GS_OK || (st = copy_here(e, &t, from, found[d].to, to)) != GS_OK)
            return st;
        if (t.kind == GS_TASK_UPLOAD)
            upload[(*uploads)++] = to->read;
        else
            before->handed = 1 + to->read;
        before = to;
    }
    return st;
}

/* Does the host have to have the rows: does a chain's first device that needs them lack them? */
static bool asks_host(const struct emitter *e, const bool *needs, const struct found *found)
{
    const gs_topology *const t = e->l->config->topology;
    for (uint32_t s = 0; s < t->switches; s++) {
        bool before = false;
        for (uint32_t d = t->at[s].first; d < t->at[s].first + t->at[s].devices; d++) {
            if (needs[d] && !found[d].there && (!before || e->l->config->no_chain))
                return true;
            before = before || needs[d];
        }
    }
    return false;
}

/* Looks for the rows on each device that needs them. */
static gs_status find_everywhere(struct emitter *e, uint32_t index, uint32_t operand, const uint64_t *mask,
                                 const bool *needs, struct found *found)
{
    const uint32_t unit = gs_emit__array_unit(e, e->ends.operand_array[index], operand);
    const struct access how = {.whole = mask == NULL};
    gs_status st = GS_OK;

    for (e->device = 0; e->device < e->devices && st == GS_OK; e->device++)
        if (needs[e->device])
            st = gs_emit__find_here(e, unit, &how, &gs_emit__here(e)->operand[index], &found[e->device].there,
                                    &found[e->device].to);
    e->device = 0;
    return st;
}

gs_status gs_emit__share(struct emitter *e, uint32_t index, uint32_t operand, const bool *needs)
{
    const gs_topology *const t = e->l->config->topology;
    struct found found[GS_PLAN_DEVICES] = {{0}};
    struct unit host = {.read = GS_NONE, .ring = NOT_STAGED};
    uint32_t upload[GS_PLAN_DEVICES], uploads = 0;
    bool lacks[GS_PLAN_DEVICES];
    gs_status st = find_everywhere(e, index, operand, gs_emit__needed_by(e, operand, needs), needs, found);

    if (st != GS_OK)
        return st;
    for (uint32_t d = 0; d < e->devices; d++)
        lacks[d] = needs[d] && !found[d].there;
    const uint64_t *mask = gs_emit__needed_by(e, operand, lacks);
    for (uint32_t s = 0; s < t->switches; s++)
        mask = stays_whole(&t->at[s], needs, found) ? NULL : mask;
    if (asks_host(e, needs, found) &&
        (st = gs_emit__load_needed(e, e->ends.operand_array[index], operand, mask, &host)) != GS_OK)
        return st;
    for (uint32_t s = 0; s < t->switches && st == GS_OK; s++)
        st = share_chain(e, index, operand, &host, needs, found, &t->at[s], upload, &uploads);
    if (st == GS_OK && uploads > 0)
        gs_emit__release(e, &host, gs_emit__join(e, upload, uploads));
    return st;
}
