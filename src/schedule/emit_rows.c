/* emit_rows.c - units are delivered to the memories that want them, and what was made is taken home. */

#include <string.h>

#include "base/size.h"
#include "schedule/emit_cache.h"
#include "schedule/emitter.h"
#include "schedule/route.h"
#include "schedule/runs.h"
#include "schedule/simulate.h"

/* ---- pieces of rings ------------------------------------------------------ */

/* Each device with memory of its own has a staging ring in its arena, behind the sums, laid out like the host's; behind
 * it is what stays. A piece on the host is free when the moves from it are done; a piece on a device, when its last
 * computation and the move to the next device are.
 */

gs_status gs_emit__take(struct emitter *e, struct memory *m, uint64_t bytes, struct unit *out)
{
    const uint32_t before = e->wait.count;
    const gs_status st = gs_ring_take(&m->ring, bytes, &out->ring, e->wait.task, WAITS, &e->wait.count);

    if (st == GS_ENOFIT)
        e->c->short_of = m->number;
    gs_emit__expand(e, before);
    out->place = gs_place_behind(m->ring_at, out->ring);
    out->handed = 0;
    return st;
}

void gs_emit__release(struct emitter *e, const struct unit *u, uint32_t task)
{
    const uint32_t last = u->handed ? gs_emit__later(e, task, u->handed - 1) : task;
    if (u->ring != NOT_STAGED)
        gs_ring_release(&e->memory[u->place.memory].ring, u->ring, last);
    gs_emit__cache_release(e, u, last);
}

uint64_t gs_emit__ring_bytes(const struct emitter *e, const struct memory *m, uint32_t array, uint32_t interval,
                             uint64_t rows)
{
    const bool blocks = m->is.as_in_files && e->l->spill_interval[array] == 0;
    const uint64_t block = blocks ? e->l->config->array_sum_bytes : GS_BLOCK_BYTES;
    if (m->number == GS_HOST && interval < e->c->kept_intervals[array])
        return 0;
    return gs_align_up(rows * e->l->row_bytes[array], block) + block;
}

/* In the memory, which lacks it: where it was told to stay, or in a piece of the ring. */
static gs_status place(struct emitter *e, struct memory *m, uint64_t bytes, uint64_t to, struct unit *out)
{
    return to != GS_CACHE_NOWHERE ? gs_emit__settle(e, m, out->cached - 1, to, out) : gs_emit__take(e, m, bytes, out);
}

/* ---- from the disk -------------------------------------------------------- */

gs_status gs_emit__add_read(struct emitter *e, gs_task *t, uint64_t bytes, struct unit *out)
{
    GS_TRY(gs_emit__task(e, t, &out->read));
    e->pass->read_bytes += bytes;
    e->pass->read_requests += GS_MAX(t->runs, 1);
    return GS_OK;
}

/* Which runs of what stands for `t` it brings: all of it without a mask. *bytes: of those. */
static gs_status choose_runs(struct emitter *e, gs_task *t, const gs_run_extent *x, const uint64_t *mask,
                             uint64_t *bytes)
{
    gs_plan *p = e->plan;
    const uint64_t room = x->bytes / x->unit + 1;

    *bytes = x->bytes;
    if (mask == NULL)
        return GS_OK;
    GS_TRY(gs_emit__grow((void **)&p->run, &e->room.run, (uint32_t)GS_MIN(p->runs + room, UINT32_MAX),
                         sizeof(*p->run)));
    *bytes = gs_runs_choose(p->run + p->runs, (uint32_t)room, &t->runs, e->l, x, mask);
    t->first_run = p->runs;
    p->runs += t->runs;
    return GS_OK;
}

/* The read waits for those that have written what it reads of the interval. */
static void wait_for_writes(struct emitter *e, uint32_t unit, const gs_task *read)
{
    const uint64_t begin = read->source.offset, end = begin + read->bytes;
    const uint64_t behind = gs_emit__spilled_at(e, read->file, unit % e->l->parts) + e->l->spill_interval[read->file];
    const uint32_t *const w = e->spill.written[unit];
    struct looked *const k = &e->spill.looked[unit];
    bool before = true;

    if (w[0] == GS_NONE)
        return;
    uint32_t i = gs_emit__writes_from(e, w[0]);
    for (i = begin >= k->begin ? GS_MAX(i, k->from) : i; i < e->made.writes && e->made.write[i].task <= w[1]; i++) {
        const struct moved *const m = &e->made.write[i];
        if (m->file != read->file || m->offset + m->bytes <= begin || m->offset >= behind)
            continue; /* those of other intervals may stand among them */
        if (m->offset >= end && !k->mixed)
            break;
        if (before) {
            k->begin = begin;
            k->from = i;
        }
        before = false;
        if (m->offset < end)
            gs_emit__wait(e, m->task);
    }
}

/* The unit, where it is to stay, or what is wanted of it comes to a memory that lacks it. */
static gs_status read_unit(struct emitter *e, struct memory *m, const struct want *w, uint64_t to, struct unit *out)
{
    const bool whole = to != GS_CACHE_NOWHERE;
    const uint64_t *const mask = whole ? NULL : w->mask;
    uint64_t skip, none, read;
    gs_task t;

    if (whole)
        gs_emit__whole_unit(&t, e, w->unit, &skip);
    else
        gs_emit__read_of(&t, e, w->unit, w->first, w->rows, &skip);
    const bool made = !gs_emit__is_chunk(e, w->unit) && e->l->spill_interval[t.file] > 0;
    const uint64_t row = gs_emit__row_bytes(e, w->unit);
    const gs_run_extent extent = {.bytes = t.bytes, .skip = skip, .row = row, .rows = w->rows,
                                  .unit = made ? GS_BLOCK_BYTES : e->l->config->array_sum_bytes};

    if (made)
        wait_for_writes(e, w->unit, &t);
    GS_TRY(place(e, m, t.bytes, to, out));
    GS_TRY(choose_runs(e, &t, &extent, mask, &read));
    t.place = out->place;
    out->place.offset += skip + (whole ? w->first * row : 0);
    e->pass->skipped_bytes += (mask != NULL ? gs_emit__whole_bytes(e, w->unit, &none) : t.bytes) - read;
    if (m->number != GS_HOST) {
        t.check = GS_CHECK_NONE; /* the device compares a mark */
        t.chunk_bytes = t.bytes;
        e->plan->loads = true;
        e->pass->loaded_bytes += read;
    }
    if (read == 0)
        return GS_OK;
    GS_TRY(gs_emit__add_read(e, &t, read, out));
    gs_emit__came(e, out, out->read, read);
    return GS_OK;
}

gs_status gs_emit__find_on_host(struct emitter *e, const struct want *w, struct unit *out)
{
    struct memory *const host = &e->memory[GS_HOST];
    uint64_t to;
    const gs_status st = gs_emit__look(e, host, w, out, &to);
    return st == GS_OK && to != GS_CACHE_NOWHERE ? read_unit(e, host, w, to, out) : st;
}

/* Where the host has it, or is to keep it from now on, or in its ring. */
static gs_status need_on_host(struct emitter *e, const struct want *w, struct unit *out)
{
    const gs_status st = gs_emit__find_on_host(e, w, out);
    return st == GS_OK && !gs_emit__is_there(out) ? read_unit(e, &e->memory[GS_HOST], w, GS_CACHE_NOWHERE, out) : st;
}

/* ---- between memories ----------------------------------------------------- */

/* `t`: bytes and runs of a move to where `out` is. */
static gs_status move_to(struct emitter *e, gs_task *t, const struct unit *from, struct unit *out)
{
    t->place = out->place;
    t->source = from->place;
    gs_emit__wait(e, from->read);
    GS_TRY(gs_emit__task(e, t, &out->read));
    const uint64_t bytes = gs_task_bytes(e->plan, t);
    *(gs_link_driver(gs_task_way(t)) == GS_DRIVER_PEER ? &e->pass->forward_bytes : &e->pass->upload_bytes) += bytes;
    gs_emit__came(e, out, out->read, bytes);
    return GS_OK;
}

gs_status gs_emit__fetch(struct emitter *e, uint64_t bytes, struct unit *u)
{
    struct memory *const m = gs_emit__memory_here(e);
    struct unit here = {.read = GS_NONE, .ring = NOT_STAGED};
    gs_task t = {.kind = GS_TASK_MOVE, .bytes = bytes};

    if (u->place.memory == m->number)
        return GS_OK;
    GS_TRY(gs_emit__take(e, m, bytes, &here));
    GS_TRY(move_to(e, &t, u, &here));
    gs_emit__release(e, u, here.read);
    *u = here;
    return GS_OK;
}

bool gs_emit__is_handed_on(const struct emitter *e, uint32_t from)
{
    const gs_topology *const t = e->l->config->topology;
    return !e->l->config->no_chain && from < e->device &&
           gs_topology_switch_of(t, from) == gs_topology_switch_of(t, e->device);
}

/* ---- delivered ------------------------------------------------------------ */

/* A unit comes to the memories that want it: where they do not have it, over the links that the plan's route says
 * (route.h). A device that keeps it keeps all of it, so then all of it comes to the devices of its lot.
 */

struct delivery {
    const struct want *want;
    struct unit *at[GS_PLAN_DEVICES];   /* what wants it, NULL: nothing */
    uint32_t in_place;                  /* the device that uses what the host has, if that wants it; GS_NONE */
    struct unit maker;                  /* where the device has it that made it, and does not want it itself */
    bool wants[GS_PLAN_DEVICES], has[GS_PLAN_DEVICES];
    uint64_t to[GS_PLAN_DEVICES];       /* where it is to stay */
    bool whole;                         /* somewhere: all of it is moved */
    struct unit host;
    uint32_t came[GS_PLAN_DEVICES][GS_PLAN_DEVICES]; /* the task that has brought a part to a device */
    uint32_t sent[GS_PLAN_DEVICES], sends; /* moves from the host */
    gs_block_run part[GS_PLAN_DEVICES]; /* first and number of plan->run */
    gs_hops route;
};

/* What a device that computes in place uses is listed as others' accesses are, though none of it stays in its arena: so
 * it is known what the host is asked for. */
static gs_status note_use(struct emitter *e, uint32_t device, const struct want *w)
{
    struct memory *const m = &e->memory[e->seat[device].arena];
    struct unit u;
    uint64_t skip, to;
    const gs_status st = gs_emit__look(e, m, w, &u, &to);

    u.place.memory = m->number;
    gs_emit__came(e, &u, GS_NONE, gs_emit__is_chunk(e, w->unit) ? gs_emit__whole_bytes(e, w->unit, &skip)
                                                                : w->rows * gs_emit__row_bytes(e, w->unit));
    gs_emit__cache_release(e, &u, GS_NONE);
    return st;
}

/* Looks for it in each memory that wants it. *lacks: some have it not. */
static gs_status look_everywhere(struct emitter *e, struct delivery *v, bool *lacks)
{
    v->in_place = GS_NONE;
    for (uint32_t d = 0; d < e->devices; d++) {
        v->wants[d] = v->at[d] != NULL && !e->l->memory.in_place[d];
        v->has[d] = false;
        if (v->at[d] != NULL && !v->wants[d]) {
            v->in_place = d;
            GS_TRY(note_use(e, d, v->want));
        }
        if (!v->wants[d])
            continue;
        GS_TRY(gs_emit__look(e, &e->memory[e->seat[d].memory], v->want, v->at[d], &v->to[d]));
        v->has[d] = gs_emit__is_there(v->at[d]);
        v->came[d][0] = v->at[d]->read;
        *lacks = *lacks || !v->has[d];
    }
    return GS_OK;
}

static bool wants_any(const struct emitter *e, const struct delivery *v)
{
    uint32_t d = 0;
    while (d < e->devices && !v->wants[d])
        d++;
    return d < e->devices;
}

/* The device that made the rows in this pass is asked for them, too, and hands them on if it still has them. */
static gs_status look_at_maker(struct emitter *e, struct delivery *v)
{
    const struct want *const w = v->want;
    const uint32_t by = e->spill.maker == NULL || gs_emit__is_chunk(e, w->unit) ? 0 : e->spill.maker[w->unit];
    struct want how = {.unit = w->unit, .first = w->first, .rows = w->rows, .again = w->again, .serves = true};
    uint64_t to;

    if (by == 0 || v->at[by - 1] != NULL || e->l->config->no_chain || e->l->memory.apart)
        return GS_OK;
    GS_TRY(gs_emit__look(e, &e->memory[e->seat[by - 1].memory], &how, &v->maker, &to));
    if (!gs_emit__is_there(&v->maker)) {
        v->maker.place.memory = (uint8_t)e->seat[by - 1].memory;
        gs_emit__cache_release(e, &v->maker, GS_NONE);
        return GS_OK;
    }
    v->at[by - 1] = &v->maker;
    v->wants[by - 1] = v->has[by - 1] = true;
    v->came[by - 1][0] = v->maker.read;
    return GS_OK;
}

/* It has been handed on, or all had it. */
static void release_maker(struct emitter *e, const struct delivery *v)
{
    struct unit u = v->maker;
    const uint32_t last = u.handed > 0 ? u.handed - 1 : GS_NONE;

    u.handed = 0;
    if (gs_emit__is_there(&u))
        gs_emit__release(e, &u, last);
}

static uint32_t device_of(uint32_t memory) { return memory - GS_DEVICE_MEMORIES; }

/* Does any of the moves' memories keep the whole unit? */
static bool stays_whole(const struct delivery *v, uint32_t first, uint32_t end)
{
    bool whole = false;
    for (uint32_t i = first; i < end; i++)
        whole = whole || v->to[device_of(v->route.hop[i].to)] != GS_CACHE_NOWHERE;
    return whole;
}

/* Granules that memories to which these moves go need of the interval, and the device `also`, if any; NULL: all. */
static const uint64_t *needed_by(struct emitter *e, const struct delivery *v, uint32_t first, uint32_t end,
                                 uint32_t also)
{
    bool needs[GS_PLAN_DEVICES] = {false};
    for (uint32_t i = first; i < end; i++)
        needs[device_of(v->route.hop[i].to)] = true;
    if (also != GS_NONE)
        needs[also] = true;
    return gs_emit__needed_by(e, v->want->unit % e->l->parts, needs);
}

/* Rows that the host of another rank has. */
static bool is_far(const struct emitter *e, uint32_t unit, uint32_t device)
{
    return e->l->memory.apart && !gs_emit__is_chunk(e, unit) && e->spill.maker[unit] > 0 &&
           e->spill.maker[unit] != 1 + device;
}

/* A choice must save this much of the time. */
#define WORTH 0.98

/* Appends the bits of rows that `t` moves by themselves; those of the task before are often the same. */
static gs_status list_rows(struct emitter *e, gs_task *t, const uint64_t *bits)
{
    gs_plan *const p = e->plan;
    const uint32_t words = (uint32_t)gs_task_row_words(t);

    t->first_word = p->row_words - words;
    if (p->row_words >= words && memcmp(p->row_bits + t->first_word, bits, words * sizeof(*bits)) == 0)
        return GS_OK;
    t->first_word = p->row_words;
    GS_TRY(gs_emit__grow((void **)&p->row_bits, &e->room.row_word, p->row_words + words, sizeof(*p->row_bits)));
    memcpy(p->row_bits + p->row_words, bits, words * sizeof(*bits));
    p->row_words += words;
    return GS_OK;
}

/* Are the rows whose bits are set moved by themselves, in place of the runs that were chosen, or all, of `bytes`?
 * NeuGraph's rule: where to pick them and to send them takes less time than to send what they lie among. */
static gs_status choose_rows(struct emitter *e, uint32_t unit, gs_task *t, gs_plan_link way, uint64_t bytes,
                             const uint64_t *bits)
{
    const gs_schedule_config *const cfg = e->l->config;
    const uint64_t row = gs_emit__row_bytes(e, unit) * cfg->needs.rows.rows;
    uint64_t rows = 0;

    if (bits == NULL)
        return GS_OK;
    for (uint32_t w = 0; w < cfg->needs.rows.words; w++)
        rows += (uint64_t)__builtin_popcountll(bits[w]);
    const gs_link_load all = {way, bytes, gs_task_requests(t), 0}, picked = {way, rows * row, 1, rows * row};
    if (gs_link_seconds(cfg->topology, cfg->cost, cfg->host_cost, &picked) >=
        WORTH * gs_link_seconds(cfg->topology, cfg->cost, cfg->host_cost, &all))
        return GS_OK;
    e->plan->runs -= t->runs;
    t->runs = 0;
    t->row_bytes = (uint32_t)row;
    t->moved_rows = rows;
    e->packed = GS_MAX(e->packed, e->l->memory.apart ? rows * row : 0);
    return list_rows(e, t, bits);
}

/* Of rows that edges name: which runs go over the link of the first of these moves, for the memories of all. */
static gs_status choose_moved(struct emitter *e, const struct delivery *v, gs_task *t, uint32_t first, uint32_t end)
{
    const gs_schedule_config *const cfg = e->l->config;
    const uint32_t device = device_of(v->route.hop[first].to);
    const gs_cost *const cost = gs_cost_on(cfg->cost, cfg->host_cost, cfg->topology, device);
    const gs_plan_link way = is_far(e, v->want->unit, device)
                                 ? (gs_plan_link){GS_DEVICE_MEMORIES + e->spill.maker[v->want->unit] - 1,
                                                  GS_DEVICE_MEMORIES + device}
                                 : (gs_plan_link){v->route.hop[first].from, GS_DEVICE_MEMORIES + device};
    const gs_link link = gs_link_of(cfg->topology, cost, way);
    const gs_run_extent extent = {.bytes = gs_align_up(t->bytes, GS_BLOCK_BYTES), .unit = GS_BLOCK_BYTES,
                                  .row = gs_emit__row_bytes(e, v->want->unit),
                                  .rows = gs_emit__unit_rows(e, v->want->unit),
                                  .bps = link.bps, .request_seconds = link.request_seconds};
    uint64_t bytes;
    t->runs = t->row_bytes = 0;
    const gs_status st = choose_runs(e, t, &extent, needed_by(e, v, first, end, GS_NONE), &bytes);
    /* nobody is behind who would take them from here */
    return st == GS_OK && end - first == 1 && v->route.hop[first].from == GS_HOST && v->route.parts == 1
               ? choose_rows(e, v->want->unit, t, way, bytes,
                             gs_emit__rows_needed_by(e, v->want->unit % e->l->parts, device))
               : st;
}

/* The runs of `t`, or all of it, in as many parts of the same number of blocks, but for one. *divided: there are enough
 * blocks. */
static gs_status cut(struct emitter *e, const gs_task *t, gs_block_run *part, uint32_t parts, bool *divided)
{
    const gs_block_run whole = {0, (uint32_t)gs_div_up(t->bytes, GS_BLOCK_BYTES)};
    const uint32_t runs = GS_MAX(t->runs, 1u);
    gs_plan *const p = e->plan;
    uint32_t blocks = 0, done = 0, at = 0, used = 0;

    GS_TRY(gs_emit__grow((void **)&p->run, &e->room.run, p->runs + runs + parts, sizeof(*p->run)));
    for (uint32_t i = 0; i < runs; i++)
        blocks += t->runs > 0 ? p->run[t->first_run + i].blocks : whole.blocks;
    *divided = blocks >= parts;
    for (uint32_t k = 0; *divided && k < parts; k++) {
        const uint32_t end = (uint32_t)((uint64_t)blocks * (k + 1) / parts);
        part[k].first = p->runs;
        while (done < end) {
            const gs_block_run run = t->runs > 0 ? p->run[t->first_run + at] : whole;
            const uint32_t n = GS_MIN(run.blocks - used, end - done);
            p->run[p->runs++] = (gs_block_run){run.first + used, n};
            done += n;
            used = used + n < run.blocks ? used + n : 0;
            at += used == 0;
        }
        part[k].blocks = p->runs - part[k].first;
    }
    return GS_OK;
}

/* Of the unit, before what is wanted. */
static uint64_t skipped_bytes(const struct emitter *e, const struct want *w)
{
    return w->first * gs_emit__row_bytes(e, w->unit);
}

/* One more move out of the unit's place. */
static void hand_on(struct emitter *e, struct unit *u, uint32_t move)
{
    u->handed = 1 + gs_emit__later(e, move, u->handed > 0 ? u->handed - 1 : GS_NONE);
}

/* The first move to a memory takes the place; later ones, of other parts, wait for the one before. */
static gs_status move_over(struct emitter *e, struct delivery *v, const gs_hop *hop, gs_task *t)
{
    const uint32_t d = device_of(hop->to);
    struct unit *const out = v->at[d];
    struct unit from = hop->from == GS_HOST ? v->host : *v->at[device_of(hop->from)];

    e->device = d;
    t->operand = gs_emit__is_chunk(e, v->want->unit) ? t->operand : 0;
    if (hop->from == GS_HOST && is_far(e, v->want->unit, d)) {
        t->operand = e->spill.maker[v->want->unit];
        e->packed = GS_MAX(e->packed, e->l->memory.on_host[d] ? 0 : t->bytes);
    }
    if (hop->from != GS_HOST) {
        from.read = v->came[device_of(hop->from)][hop->part];
        from.place.offset -= v->whole && v->has[device_of(hop->from)] ? skipped_bytes(e, v->want) : 0;
    }
    if (gs_emit__is_there(out))
        gs_emit__wait(e, out->read);
    else
        GS_TRY(place(e, gs_emit__memory_here(e), t->bytes, v->to[d], out));
    GS_TRY(move_to(e, t, &from, out));
    v->came[d][hop->part] = out->read;
    if (hop->from == GS_HOST)
        v->sent[v->sends++] = out->read;
    else
        hand_on(e, v->at[device_of(hop->from)], out->read);
    return GS_OK;
}

/* The moves of one lot, each of which `t` becomes. *divided: false where it should be in parts, and has too few
 * blocks. */
static gs_status move_lot(struct emitter *e, struct delivery *v, gs_task *t, uint32_t first, uint32_t end,
                          bool *divided)
{
    const bool chooses = v->want->by_edges && !stays_whole(v, first, end), each = e->l->config->no_chain;

    *divided = true;
    t->runs = t->first_run = t->row_bytes = 0;
    t->moved_rows = 0;
    for (uint32_t i = first; i < end; i++) {
        if (chooses && (i == first || each))
            GS_TRY(choose_moved(e, v, t, i, each ? i + 1 : end));
        if (i == first && v->route.parts > 1)
            GS_TRY(cut(e, t, v->part, v->route.parts, divided));
        if (!*divided)
            return GS_OK;
        if (v->route.parts > 1) {
            t->first_run = v->part[v->route.hop[i].part].first;
            t->runs = v->part[v->route.hop[i].part].blocks;
        }
        GS_TRY(move_over(e, v, &v->route.hop[i], t));
    }
    return GS_OK;
}

static gs_status move_all(struct emitter *e, struct delivery *v, gs_task *t, bool *divided)
{
    *divided = true;
    for (uint32_t first = 0, end; first < v->route.hops && *divided; first = end) {
        for (end = first; end < v->route.hops && v->route.hop[end].lot == v->route.hop[first].lot;)
            end++;
        GS_TRY(move_lot(e, v, t, first, end, divided));
    }
    return GS_OK;
}

/* What is to be moved of the unit: all of it where somebody keeps it, or of rows that edges name. */
static void move_of(gs_task *t, const struct emitter *e, const struct want *w, bool all)
{
    uint64_t skip;

    if (gs_emit__is_chunk(e, w->unit)) {
        gs_emit__whole_unit(t, e, w->unit, &skip);
        t->check = GS_CHECK_NONE;
        t->chunk_bytes = t->bytes;
    } else {
        *t = (gs_task){.kind = GS_TASK_MOVE,
                       .bytes = (all ? gs_emit__unit_rows(e, w->unit) : w->rows) * gs_emit__row_bytes(e, w->unit)};
    }
}

/* Who computes in place has the host's until its last computation, and others' moves from there, are done. */
static void use_in_place(struct emitter *e, struct delivery *v)
{
    struct unit *const out = v->at[v->in_place];

    *out = v->host;
    out->place.offset += v->whole ? skipped_bytes(e, v->want) : 0;
    for (uint32_t i = 0; i < v->sends; i++)
        hand_on(e, out, v->sent[i]);
}

/* On the host's memory from the disk, where a move begins there, then over the route. */
static gs_status bring(struct emitter *e, struct delivery *v)
{
    const gs_schedule_config *const cfg = e->l->config;
    const gs_route route = cfg->no_chain ? GS_ROUTE_EACH : cfg->ring ? GS_ROUTE_ROUND : GS_ROUTE_CHAINS;
    const uint32_t turn = v->want->unit % e->l->parts;
    struct want host = *v->want;
    bool asks = v->in_place != GS_NONE, divided;
    gs_task t;

    gs_route_hops(&v->route, cfg->topology, route, turn, v->wants, v->has);
    v->whole = stays_whole(v, 0, v->route.hops);
    for (uint32_t i = 0; i < v->route.hops; i++)
        asks = asks || v->route.hop[i].from == GS_HOST;
    if (v->whole) {
        host.first = 0;
        host.rows = gs_emit__unit_rows(e, host.unit);
    }
    host.mask = host.by_edges && !v->whole ? needed_by(e, v, 0, v->route.hops, v->in_place) : NULL;
    host.whole = host.mask == NULL;
    if (asks)
        GS_TRY(need_on_host(e, &host, &v->host));
    move_of(&t, e, v->want, v->whole);
    GS_TRY(move_all(e, v, &t, &divided));
    if (!divided) {
        gs_route_hops(&v->route, cfg->topology, GS_ROUTE_ALONG, turn, v->wants, v->has);
        GS_TRY(move_all(e, v, &t, &divided));
    }
    if (v->in_place != GS_NONE)
        use_in_place(e, v);
    else if (v->sends > 0)
        gs_emit__release(e, &v->host, v->sends > 1 ? gs_emit__join(e, v->sent, v->sends) : v->sent[0]);
    for (uint32_t d = 0; d < e->devices && v->whole; d++)
        if (v->wants[d] && !v->has[d])
            v->at[d]->place.offset += skipped_bytes(e, v->want);
    return GS_OK;
}

gs_status gs_emit__deliver(struct emitter *e, const struct want *w, struct unit *const *at)
{
    const uint32_t here = e->device;
    struct delivery v; /* large, and asked for often: what is read of it is set */
    bool lacks = false;

    if (e->l->memory.own == 0)
        return need_on_host(e, w, at[0]);
    v.want = w;
    v.sends = 0;
    v.maker = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    memcpy(v.at, at, e->devices * sizeof(struct unit *));
    GS_TRY(look_everywhere(e, &v, &lacks));
    if (v.in_place == GS_NONE || wants_any(e, &v))
        GS_TRY(look_at_maker(e, &v));
    if (lacks && e->l->config->loads && gs_emit__is_chunk(e, w->unit) && !gs_emit__is_kept(e, w->unit))
        return read_unit(e, gs_emit__memory_here(e), w, v.to[here], at[here]);
    if (lacks || v.in_place != GS_NONE)
        GS_TRY(bring(e, &v));
    release_maker(e, &v);
    e->device = here;
    return GS_OK;
}

gs_status gs_emit__deliver_here(struct emitter *e, const struct want *w, struct unit *out)
{
    struct unit *at[GS_PLAN_DEVICES] = {NULL};
    at[e->device] = out;
    return gs_emit__deliver(e, w, at);
}

gs_status gs_emit__rows_here(struct emitter *e, uint32_t array, uint32_t interval, uint32_t from, uint32_t rows,
                             bool again, struct unit *out)
{
    const bool every = rows == gs_interval_rows(e->l->chunks, interval) ||
                       (e->in_vertex && !gs_layout_prunes(e->l, e->stage));
    const struct want w = {.unit = gs_emit__array_unit(e, array, interval), .first = from, .rows = rows,
                           .whole = every, .again = again};
    return gs_emit__deliver_here(e, &w, out);
}

gs_status gs_emit__chunk_here(struct emitter *e, uint32_t target, uint32_t operand, struct unit *out)
{
    const struct want w = {.unit = gs_emit__chunk_unit(e, target, operand), .whole = true};
    return gs_emit__deliver_here(e, &w, out);
}

/* ---- made ----------------------------------------------------------------- */

gs_status gs_emit__make(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *out, bool *fresh)
{
    struct memory *const m = gs_emit__memory_here(e);
    uint64_t to;

    if (e->l->memory.own > 0 && m->number == GS_HOST)
        GS_TRY(note_use(e, e->device, w));
    GS_TRY(gs_emit__look(e, m, w, out, &to));
    *fresh = to != GS_CACHE_NOWHERE;
    if (gs_emit__is_there(out))
        return GS_OK;
    GS_TRY(place(e, m, bytes, to, out));
    out->place.offset += *fresh ? w->first * gs_emit__row_bytes(e, w->unit) : 0;
    return GS_OK;
}

static void note_written(struct emitter *e, uint32_t unit, uint32_t task)
{
    uint32_t *const written = e->spill.written[unit];
    written[0] = written[0] == GS_NONE ? task : written[0];
    written[1] = task;
}

/* Rows of the unit have been made at `u`. */
static void note_maker(struct emitter *e, uint32_t unit, const struct unit *u)
{
    if (e->spill.maker != NULL && gs_is_device_memory(u->place.memory))
        e->spill.maker[unit] = (uint8_t)(1 + device_of(u->place.memory));
}

/* Does an edge pass of the stage read the array's rows at the operand ends of its edges? */
static bool reads_operands(const gs_layout *l, uint32_t stage, uint32_t array)
{
    const gs_array_use *u = gs_layout_uses(l, stage);

    while (u < gs_layout_uses(l, stage + 1) && (u->array != array || !gs_use_by_edges(u->role)))
        u++;
    return u < gs_layout_uses(l, stage + 1);
}

/* Those rows' bits from number `first` to `end` of the interval that edges into columns of other devices name, in any
 * stage. */
static const uint64_t *rows_of_others(struct emitter *e, uint32_t unit, uint32_t first, uint32_t end)
{
    const gs_layout *const l = e->l;
    const uint32_t parts = l->parts, all = l->config->needs.rows.words, words = (end - 1) / 64 - first / 64 + 1;
    uint64_t *const bits = e->ends.rows;

    memset(bits, 0, all * sizeof(*bits));
    for (uint32_t s = 0; s < l->program->stages; s++) {
        const uint32_t *const own = gs_choice_deal_of(e->c, l, s) + e->device;
        for (uint32_t t = reads_operands(l, s, unit / parts) ? 0 : parts; t < parts; t++)
            for (uint32_t w = own[0] <= t && t < own[1] ? words : 0; w < words; w++)
                bits[w] |= l->set[l->stage_set[s]].rows[((uint64_t)t * parts + unit % parts) * all + first / 64 + w];
    }
    for (uint32_t w = 0; first % 64 != 0 && w < words; w++)
        bits[w] = bits[w] >> first % 64 | (w + 1 < words ? bits[w + 1] << (64 - first % 64) : 0);
    if ((end - first) % 64 != 0)
        bits[(end - first) / 64] &= (1ull << (end - first) % 64) - 1;
    if (words > (end - first + 63) / 64)
        bits[words - 1] = 0;
    return bits;
}

gs_status gs_emit__send_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u)
{
    const struct unit here = *u;
    const uint32_t device = e->device, known = e->l->config->needs.rows.rows; /* rows of a bit */
    gs_task t = {.kind = GS_TASK_MOVE, .source = here.place, .bytes = bytes};

    if (here.place.memory == GS_HOST)
        return GS_OK;
    *u = (struct unit){.read = GS_NONE, .ring = NOT_STAGED};
    e->device = device_of(here.place.memory);
    if (gs_emit__is_kept(e, w->unit)) {
        t.place = u->place = gs_emit__kept_place(e, w->unit, w->first);
        if (here.in_cache && e->c->device.named[w->unit] && w->first % known == 0)
            GS_TRY(choose_rows(e, w->unit, &t, gs_task_link(&t), bytes,
                               rows_of_others(e, w->unit, w->first / known,
                                              (uint32_t)gs_div_up(w->first + w->rows, known))));
    } else {
        /* whole blocks: what stands before the rows is 0, or other rows as they are */
        t.source.offset -= here.in_cache ? w->first * gs_emit__row_bytes(e, w->unit) % GS_BLOCK_BYTES : 0;
        GS_TRY(gs_emit__take(e, &e->memory[GS_HOST], bytes, u));
    }
    note_maker(e, w->unit, &here);
    t.place = u->place;
    if (gs_task_moves_rows(&t) && t.moved_rows == 0) { /* nobody asks the host for them */
        gs_emit__release(e, &here, here.read);
        e->device = device;
        return GS_OK;
    }
    gs_emit__wait(e, here.read);
    GS_TRY(gs_emit__task(e, &t, &u->read));
    if (gs_emit__is_kept(e, w->unit))
        note_written(e, w->unit, u->read);
    gs_emit__release(e, &here, u->read);
    e->pass->download_bytes += gs_task_bytes(e->plan, &t);
    if (w->updated) /* who adds to them next must not do so before they have left */
        gs_emit__came(e, &here, u->read, 0);
    e->device = device;
    return GS_OK;
}

/* From the host's ring to the run's file. */
static gs_status write_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u)
{
    const uint32_t array = w->unit / e->l->parts;
    const uint64_t first = gs_align_down(w->first * e->l->row_bytes[array], GS_BLOCK_BYTES);
    const gs_task t = {.kind = GS_TASK_MOVE, .file = array, .source = u->place,
                       .place = gs_place_on_disk(gs_emit__spilled_at(e, array, w->unit % e->l->parts) + first),
                       .bytes = gs_align_up(bytes, GS_BLOCK_BYTES)};

    gs_emit__wait(e, u->read);
    gs_emit__wait_for_owners(e, &t);
    GS_TRY(gs_emit__task(e, &t, &u->read));
    note_written(e, w->unit, u->read);
    e->spill.looked[w->unit].mixed |= t.place.offset < e->spill.looked[w->unit].last;
    e->spill.looked[w->unit].last = t.place.offset;
    gs_emit__release(e, u, u->read);
    e->pass->written_bytes += t.bytes;
    return GS_OK;
}

gs_status gs_emit__settle_home(struct emitter *e, const struct want *w, uint64_t bytes, struct unit *u)
{
    gs_status st;

    gs_emit__came(e, u, u->read, 0);
    note_maker(e, w->unit, u);
    if (u->in_cache && e->c->device.own[w->unit]) {
        gs_emit__release(e, u, u->read);
        return GS_OK;
    }
    if (e->l->memory.own > 0 && u->place.memory == GS_HOST && gs_emit__is_kept(e, w->unit))
        note_written(e, w->unit, u->read); /* for others, who will copy them from there */
    st = gs_emit__send_home(e, w, bytes, u);
    return st != GS_OK || gs_emit__is_kept(e, w->unit) ? st : write_home(e, w, bytes, u);
}
