/* emit_share.c - rows at the operand end come to the devices that need them.
 *
 * Either each switch has a *chain*: its first device that needs an interval's rows gets them from the host, and each
 * hands them on to the next. Or all devices are a *ring*: each gets a part of the rows from the host, and hands it and
 * what it gets from the one before it on to the next, until all have all (an all-gather). A chain takes all rows over
 * each switch's wire to the host once; a ring takes each row over one of these wires.
 */
#include "schedule/emit_share.h"

#include <string.h>

#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emit_cells.h"
#include "schedule/emit_copies.h"
#include "schedule/emit_needs.h"
#include "schedule/emit_rows.h"
#include "schedule/emit_tasks.h"
#include "schedule/link.h"
#include "schedule/runs.h"

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
        if (st != GS_OK || (st = gs_emit__copy_here(e, &t, from, found[d].to, to)) != GS_OK)
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
            st = gs_emit__copy_to(e, t, &from, &gs_emit__here(e)->operand[index]);
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
        st = gs_emit__copy_here(e, &t, host, found[e->device].to, &gs_emit__here(e)->operand[index]);
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
