/* emit_rows.c - how rows come to a device: asked for, brought by the host, a chain or a ring, and taken home. */
#include "schedule/emit_rows.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emit_edges.h"
#include "schedule/emit_tasks.h"
#include "schedule/simulate.h"
#include "schedule/runs.h"

/* ---- needs of rows -------------------------------------------------------- */

/* Rows of arrays come to the host: where they are kept, where the cache has them, or by a read. */

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

/* ---- copies of one device ------------------------------------------------- */

/* What devices compute on is copied to their own memory, handed on, and brought back.
 *
 * Each device has a staging ring in its arena, behind the sums, laid out like the host's; behind it is what stays. A
 * piece on the host is free when the copies from it are done; a piece on a device, when its last computation and the
 * copy to the next device are.
 */

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

static gs_status copy_to(struct emitter *e, gs_task *t, const struct unit *from, struct unit *out)
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

/* A copy of `from` into a new piece of the device's ring, or the place where it is to stay. `like`: bytes, runs.
 * `out` is what looking for it has left, `to` where it was told to be put. */
static gs_status copy_here(struct emitter *e, const gs_task *like, const struct unit *from, uint64_t to,
                           struct unit *out)
{
    gs_task t = *like;
    const gs_status st = place_here(e, t.bytes, to, out);
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

/* ---- rows that several devices share -------------------------------------- */

/* Rows at the operand end come to the devices that need them.
 *
 * Either each switch has a *chain*: its first device that needs an interval's rows gets them from the host, and each
 * hands them on to the next. Or all devices are a *ring*: each gets a part of the rows from the host, and hands it and
 * what it gets from the one before it on to the next, until all have all (an all-gather). A chain takes all rows over
 * each switch's wire to the host once; a ring takes each row over one of these wires.
 */

/* A device's copy of an operand interval's rows: none (the device needs it), or where it is or is to be. */
struct found {
    bool there;
    uint64_t to;
};

/* Devices that hand rows on, in the order in which they do. */
struct chain {
    uint32_t device[GS_PLAN_DEVICES], devices;
};

static uint32_t chains(const struct emitter *e)
{
    return e->l->config->ring ? 1 : e->l->config->topology->switches;
}

/* Those of a switch. Of a ring, where rows are not divided, all of them, from the first on that has the rows: else from
 * another one for each interval, so that all links to the host bring some. */
static struct chain chain_of(const struct emitter *e, uint32_t number, uint32_t operand, const bool *needs,
                             const struct found *found)
{
    const gs_topology_switch *const at = &e->l->config->topology->at[number];
    struct chain c = {.devices = e->l->config->ring ? e->devices : at->devices};
    uint32_t first = operand % e->devices;

    for (uint32_t i = 0; i < e->devices && !(needs[first] && found[first].there); i++)
        first = (first + 1) % e->devices;
    for (uint32_t i = 0; i < c.devices; i++)
        c.device[i] = e->l->config->ring ? (first + i) % e->devices : at->first + i;
    return c;
}

/* Runs of rows that the devices of a chain from its `from`-th on need and lack of the interval, for `t`. `alone`: that
 * one alone. */
static gs_status choose_copy_runs(struct emitter *e, gs_task *t, uint32_t array, uint32_t operand,
                                  const struct chain *chain, uint32_t from, bool alone, const bool *needs,
                                  const struct found *found)
{
    const gs_layout *l = e->l;
    const uint32_t words = l->config->needs.granules.words, rows = gs_interval_rows(l->chunks, operand);
    const gs_cost *const cost = gs_cost_on(l->config->cost, l->config->host_cost, l->config->topology,
                                           chain->device[from]);
    const gs_link link = gs_link_of(l->config->topology, cost, gs_link_to(chain->device[from]));
    const gs_run_extent extent = {.bytes = gs_align_up(rows * l->row_bytes[array], GS_BLOCK_BYTES),
                                  .row = l->row_bytes[array], .rows = rows, .unit = GS_BLOCK_BYTES,
                                  .bps = link.bps, .request_seconds = link.request_seconds};
    const uint64_t room = extent.bytes / GS_BLOCK_BYTES + 1;
    gs_plan *p = e->plan;
    gs_status st;

    memset(e->ends.mask_of_all, 0, words * sizeof(*e->ends.mask_of_all));
    for (uint32_t i = from; i < (alone ? from + 1 : chain->devices); i++) {
        const uint32_t d = chain->device[i];
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
static bool stays_whole(const struct chain *chain, const bool *needs, const struct found *found)
{
    for (uint32_t i = 0; i < chain->devices; i++) {
        const uint32_t d = chain->device[i];
        if (needs[d] && !found[d].there && found[d].to != GS_CACHE_NOWHERE)
            return true;
    }
    return false;
}

/* From the host to the chain's first that needs it, then from one to the next. */
static gs_status share_chain(struct emitter *e, uint32_t index, uint32_t operand, const struct unit *host,
                             const bool *needs, const struct found *found, const struct chain *chain,
                             uint32_t *upload, uint32_t *uploads)
{
    const uint32_t array = e->ends.operand_array[index];
    const bool alone = e->l->config->no_chain, whole = stays_whole(chain, needs, found);
    gs_task t = {.kind = GS_TASK_MOVE, .bytes = gs_interval_rows(e->l->chunks, operand) * e->l->row_bytes[array]};
    struct unit *before = NULL;
    bool chosen = false;
    gs_status st = GS_OK;

    for (uint32_t i = 0; i < chain->devices && st == GS_OK; i++) {
        const uint32_t d = chain->device[i];
        struct unit *const to = &e->seat[d].operand[index];
        if (!needs[d])
            continue;
        e->device = d;
        if (found[d].there) {
            before = to;
            continue;
        }
        if ((alone || !chosen) && !whole) /* for those that follow, too */
            st = choose_copy_runs(e, &t, array, operand, chain, i, alone, needs, found);
        chosen = true;
        const struct unit *const from = before == NULL || alone ? host : before;
        if (st != GS_OK || (st = copy_here(e, &t, from, found[d].to, to)) != GS_OK)
            return st;
        if (from == host)
            upload[(*uploads)++] = to->read;
        else
            before->handed = 1 + to->read;
        before = to;
    }
    return st;
}

/* ---- a ring: each device gets a part of the rows from the host, and the others' parts from the one before it ---- */

/* The part of the rows that a device of the ring brings. */
struct part {
    uint32_t first_run, runs;
};

/* The runs of `t`, or all of it, in as many parts of the same number of blocks, but for one. *divided: there are enough
 * blocks. */
static gs_status cut(struct emitter *e, const gs_task *t, struct part *part, uint32_t parts, bool *divided)
{
    const gs_block_run whole = {0, (uint32_t)gs_div_up(t->bytes, GS_BLOCK_BYTES)};
    const uint32_t runs = GS_MAX(t->runs, 1u);
    gs_plan *const p = e->plan;
    uint32_t blocks = 0, done = 0, at = 0, used = 0;
    const gs_status st = gs_emit__grow((void **)&p->run, &e->room.run, p->runs + runs + parts, sizeof(*p->run));

    if (st != GS_OK)
        return st;
    for (uint32_t i = 0; i < runs; i++)
        blocks += t->runs > 0 ? p->run[t->first_run + i].blocks : whole.blocks;
    *divided = blocks >= parts;
    for (uint32_t k = 0; *divided && k < parts; k++) {
        const uint32_t end = (uint32_t)((uint64_t)blocks * (k + 1) / parts);
        part[k].first_run = p->runs;
        while (done < end) {
            const gs_block_run run = t->runs > 0 ? p->run[t->first_run + at] : whole;
            const uint32_t n = GS_MIN(run.blocks - used, end - done);
            p->run[p->runs++] = (gs_block_run){run.first + used, n};
            done += n;
            used = used + n < run.blocks ? used + n : 0;
            at += used == 0;
        }
        part[k].runs = p->runs - part[k].first_run;
    }
    return GS_OK;
}

/* Each device hands its rows on to the next one of the ring, until all have all: at the k-th step the part of the
 * device k places before. A device's first such copy waits for its own part, and so for its place. */
static gs_status hand_round(struct emitter *e, uint32_t index, gs_task *t, const struct chain *ring,
                            const struct part *part)
{
    const uint32_t n = ring->devices;
    uint32_t came[GS_PLAN_DEVICES];
    gs_status st = GS_OK;

    for (uint32_t step = 1; step < n && st == GS_OK; step++) {
        for (uint32_t i = 0; i < n; i++)
            came[i] = e->seat[ring->device[i]].operand[index].read;
        for (uint32_t i = 0; i < n && st == GS_OK; i++) {
            const uint32_t before = (i + n - 1) % n;
            struct unit from = e->seat[ring->device[before]].operand[index];
            e->device = ring->device[i];
            from.read = came[before];
            t->first_run = part[(i + n - step) % n].first_run;
            t->runs = part[(i + n - step) % n].runs;
            gs_emit__wait(e, came[i]);
            st = copy_to(e, t, &from, &gs_emit__here(e)->operand[index]);
        }
    }
    for (uint32_t i = 0; i < n && st == GS_OK; i++)
        e->seat[ring->device[i]].operand[index].handed = 1 + e->seat[ring->device[(i + 1) % n]].operand[index].read;
    return st;
}

/* Among devices that need the rows, of which none has them. *divided: there are enough blocks, and it was done. */
static gs_status share_ring(struct emitter *e, uint32_t index, uint32_t operand, const struct unit *host,
                            const struct found *found, const struct chain *ring, const bool *needs, uint32_t *upload,
                            uint32_t *uploads, bool *divided)
{
    const uint32_t array = e->ends.operand_array[index];
    struct part part[GS_PLAN_DEVICES];
    gs_task t = {.kind = GS_TASK_MOVE, .bytes = gs_interval_rows(e->l->chunks, operand) * e->l->row_bytes[array]};
    gs_status st = GS_OK;

    if (!stays_whole(ring, needs, found))
        st = choose_copy_runs(e, &t, array, operand, ring, 0, false, needs, found);
    if (st != GS_OK || (st = cut(e, &t, part, ring->devices, divided)) != GS_OK || !*divided)
        return st;
    for (uint32_t i = 0; i < ring->devices && st == GS_OK; i++) {
        e->device = ring->device[i];
        t.first_run = part[i].first_run;
        t.runs = part[i].runs;
        st = copy_here(e, &t, host, found[e->device].to, &gs_emit__here(e)->operand[index]);
        upload[(*uploads)++] = gs_emit__here(e)->operand[index].read;
    }
    return st == GS_OK ? hand_round(e, index, &t, ring, part) : st;
}

/* The devices that need the rows, where all of them lack them and there are several; else none. */
static struct chain ring_of(const struct emitter *e, const bool *needs, const struct found *found)
{
    struct chain ring = {.devices = 0};
    for (uint32_t d = 0; d < e->devices && e->l->config->ring; d++) {
        if (needs[d] && found[d].there)
            return (struct chain){.devices = 0};
        if (needs[d])
            ring.device[ring.devices++] = d;
    }
    return ring.devices > 1 ? ring : (struct chain){.devices = 0};
}

/* ---- which of the two ---- */

/* Does the host have to have the rows: does a chain's first device that needs them lack them? */
static bool asks_host(const struct emitter *e, const struct chain *chain, const bool *needs, const struct found *found)
{
    bool before = false;
    for (uint32_t i = 0; i < chain->devices; i++) {
        const uint32_t d = chain->device[i];
        if (needs[d] && !found[d].there && (!before || e->l->config->no_chain))
            return true;
        before = before || needs[d];
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
    struct found found[GS_PLAN_DEVICES] = {{0}};
    struct unit host = {.read = GS_NONE, .ring = NOT_STAGED};
    uint32_t upload[GS_PLAN_DEVICES], uploads = 0;
    bool lacks[GS_PLAN_DEVICES], asks = false, divided = false;
    gs_status st = find_everywhere(e, index, operand, gs_emit__needed_by(e, operand, needs), needs, found);

    if (st != GS_OK)
        return st;
    for (uint32_t d = 0; d < e->devices; d++)
        lacks[d] = needs[d] && !found[d].there;
    const uint64_t *mask = gs_emit__needed_by(e, operand, lacks);
    for (uint32_t s = 0; s < chains(e); s++) {
        const struct chain chain = chain_of(e, s, operand, needs, found);
        mask = stays_whole(&chain, needs, found) ? NULL : mask;
        asks = asks || asks_host(e, &chain, needs, found);
    }
    if (asks && (st = gs_emit__load_needed(e, e->ends.operand_array[index], operand, mask, &host)) != GS_OK)
        return st;
    const struct chain ring = ring_of(e, needs, found);
    if (ring.devices > 0)
        st = share_ring(e, index, operand, &host, found, &ring, needs, upload, &uploads, &divided);
    for (uint32_t s = 0; !divided && s < chains(e) && st == GS_OK; s++) {
        const struct chain chain = chain_of(e, s, operand, needs, found);
        st = share_chain(e, index, operand, &host, needs, found, &chain, upload, &uploads);
    }
    if (st == GS_OK && uploads > 0)
        gs_emit__release(e, &host, gs_emit__join(e, upload, uploads));
    return st;
}
